//! ORC: from the streams of a leaf's chain to Arrow buffers of just the wanted rows.

#[cfg(feature = "python")]
pub mod border;
pub mod byte_rle;
pub mod chunks;
pub mod decimal;
pub mod float;
pub mod int_rle;
mod int_rle_v1;
mod int_rle_v2;
pub mod leaf;
pub mod marks;
pub mod present;
pub mod string;
pub mod stripe;
pub mod timestamp;
