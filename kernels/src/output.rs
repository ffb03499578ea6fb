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
///
/// Bits behind the last one are zeros.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Bits {
    pub bytes: Vec<u8>,
    pub len: usize,
}

impl Bits {
    /// The 64 bits from this one on, a multiple of 8; those behind the end are 0.
    pub fn word(&self, first: usize) -> u64 {
        let mut word = [0; 8];
        let rest = &self.bytes[first / 8..];
        let count = rest.len().min(8);
        word[..count].copy_from_slice(&rest[..count]);
        let word = u64::from_le_bytes(word);
        match self.len - first {
            0..64 => word & !(u64::MAX << (self.len - first)),
            _ => word,
        }
    }

    /// Append one bit.
    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.len % 8 == 0 {
            self.bytes.push(0);
        }
        self.bytes[self.len / 8] |= u8::from(bit) << (self.len % 8);
        self.len += 1;
    }

    /// Append one bit so many times.
    pub fn push_run(&mut self, bit: bool, count: usize) {
        let fill = if bit { u8::MAX } else { 0 };
        let head = self.push_head(fill, count);
        let end = self.len + count - head;
        self.bytes.resize(end.div_ceil(8), fill);
        self.end_at(end);
    }

    /// Append bits of a slice, from the one at `offset` on.
    pub fn extend(&mut self, source: &[u8], offset: usize, count: usize) {
        if count == 0 {
            return;
        }
        let (byte, shift) = (offset / 8, offset % 8);
        let first = match source.get(byte + 1) {
            Some(next) => (source[byte] >> shift) | (next << 1) << (7 - shift),
            None => source[byte] >> shift,
        };
        let head = self.push_head(first, count);
        let (offset, end) = (offset + head, self.len + count - head);
        let (byte, shift) = (offset / 8, offset % 8);
        let source = &source[byte..(offset + count - head).div_ceil(8)];
        if shift == 0 {
            self.bytes.extend_from_slice(source);
        } else {
            let next = source.iter().skip(1).chain(std::iter::once(&0));
            let pairs = source.iter().zip(next);
            self.bytes
                .extend(pairs.map(|(low, high)| low >> shift | high << (8 - shift)));
        }
        self.end_at(end);
    }

    /// Fill the last byte with bits of another one; returns how many.
    fn push_head(&mut self, bits: u8, count: usize) -> usize {
        let used = self.len % 8;
        if used == 0 {
            return 0;
        }
        let head = count.min(8 - used);
        let end = self.len + head;
        self.bytes[self.len / 8] |= bits << used;
        self.end_at(end);
        head
    }

    /// Drop what was written behind this bit.
    fn end_at(&mut self, end: usize) {
        self.bytes.truncate(end.div_ceil(8));
        if let (Some(last), 1..) = (self.bytes.last_mut(), end % 8) {
            *last &= u8::MAX >> (8 - end % 8);
        }
        self.len = end;
    }

    pub fn get(&self, index: usize) -> bool {
        self.bytes[index / 8] >> (index % 8) & 1 == 1
    }
}

/// Byte arrays as Arrow keeps them: all bytes, and where each value begins.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Bytes that are copied at once; most values are shorter.
const CHUNK: usize = 32;

impl ByteArrays {
    /// Append one value; more than 2 GiB are left to Arrow.
    pub fn push(&mut self, value: &[u8]) -> Result<()> {
        let end = self.end_with(value.len())?;
        self.data.extend_from_slice(value);
        self.offsets.push(end);
        Ok(())
    }

    /// Append the bytes of a source from `begin` up to `end`, which must lie inside.
    ///
    /// Faster than `push`, as more than the value can be copied.
    #[inline]
    pub fn push_part(&mut self, source: &[u8], begin: usize, end: usize) -> Result<()> {
        let length = end - begin;
        let stop = self.end_with(length)?;
        match source.get(begin..begin + CHUNK) {
            Some(chunk) if length <= CHUNK => {
                self.data.extend_from_slice(chunk);
                self.data.truncate(stop as usize);
            }
            _ => self.data.extend_from_slice(&source[begin..end]),
        }
        self.offsets.push(stop);
        Ok(())
    }

    #[inline]
    fn end_with(&self, length: usize) -> Result<i32> {
        i32::try_from(self.data.len() + length)
            .map_err(|_| Refusal::NotMine("more than 2 GiB of strings"))
    }
}
