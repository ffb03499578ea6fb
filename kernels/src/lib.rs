//! Compiled decoders for fretsaw: page bytes in, Arrow buffers of just the wanted rows out.

mod bit_packing;
#[cfg(feature = "python")]
mod border;
pub mod byte_stream_split;
pub mod delta;
pub mod error;
pub mod output;
pub mod pages;
pub mod plain;
pub mod rle;
pub mod thrift;
mod varint;
