//! What decoders append to: bits, byte arrays, and the runs of values that are wanted.

use crate::error::{Refusal, Result};

/// Values from `start` up to `end`, counted from the first value of a page.
///
/// A list of runs is ascending, and no run is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub start: u32,
    pub end: u32,
}

impl Run {
    pub fn count(&self) -> usize {
        (self.end - self.start) as usize
    }
}

/// The values of a page, one after the other: what is not wanted is skipped, not decoded.
pub trait Decoder {
    /// What the values are appended to.
    type Output;

    /// How many values were skipped or read so far.
    fn position(&self) -> usize;

    /// Pass over `count` values.
    fn skip(&mut self, count: usize) -> Result<()>;

    /// Append `count` values.
    fn read(&mut self, count: usize, output: &mut Self::Output) -> Result<()>;

    /// Append the values of these runs, none of which lies before the position.
    fn pick(&mut self, runs: &[Run], output: &mut Self::Output) -> Result<()> {
        for run in runs {
            self.skip(run.start as usize - self.position())?;
            self.read(run.count(), output)?;
        }
        Ok(())
    }
}

/// Bits in Arrow's order, the first in the lowest bit of the first byte.
#[derive(Debug, Default, Clone)]
pub struct Bits {
    pub bytes: Vec<u8>,
    pub len: usize,
}

/// Byte arrays as Arrow keeps them: all bytes, and where each value begins.
#[derive(Debug, Clone)]
pub struct ByteArrays {
    pub offsets: Vec<i32>,
    pub data: Vec<u8>,
}

impl Default for ByteArrays {
    fn default() -> Self {
        ByteArrays {
            offsets: vec![0],
            data: Vec::new(),
        }
    }
}

impl ByteArrays {
    /// Append one value; more than 2 GiB are left to Arrow.
    pub fn push(&mut self, value: &[u8]) -> Result<()> {
        self.data.extend_from_slice(value);
        let end = i32::try_from(self.data.len());
        self.offsets
            .push(end.map_err(|_| Refusal::NotMine("more than 2 GiB of strings"))?);
        Ok(())
    }
}
