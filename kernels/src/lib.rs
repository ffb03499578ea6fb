//! Compiled decoders for fretsaw: page bytes in, Arrow buffers of just the wanted rows out.

mod bit_packing;
#[cfg(feature = "python")]
mod border;
pub mod byte_stream_split;
pub mod chunk;
pub mod codec;
pub mod column;
pub mod contents;
pub mod delta;
pub mod dictionary;
pub mod error;
pub mod find;
pub mod footer;
pub mod index;
pub mod levels;
pub mod orc;
pub mod output;
pub mod pages;
pub mod plain;
pub mod raw;
pub mod rle;
pub mod select;
pub mod snappy;
pub mod thrift;
pub mod value_set;
pub mod values;
mod varint;

/// Columns come and go: an allocator that keeps memory for the next ones.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
