//! Compiled decoders for fretsaw: page bytes in, Arrow buffers of just the wanted rows out.

#[cfg(feature = "python")]
mod border;
pub mod error;
pub mod output;
pub mod pages;
pub mod thrift;
