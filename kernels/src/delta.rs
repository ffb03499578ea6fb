//! Differences to the value before: integers in blocks, lengths of byte arrays, shared beginnings.

use crate::bit_packing::{self, Word};
use crate::error::{Result, corrupt};
use crate::output::{ByteArrays, Decoder};
use crate::varint::{parse_u32, parse_zigzag};

/// Values that are decoded at once.
const CHUNK: usize = 128;
const BLOCK_MULTIPLE: u32 = 128;
const MINIBLOCK_MULTIPLE: u32 = 32;
/// The head of no values, which some writers leave out: 128 deltas in one block, none of them.
const NOTHING: &[u8] = &[0x80, 1, 1, 0, 0];

/// An integer with the arithmetic of deltas, which wraps around.
pub trait Integer: Word {
    fn add(self, other: Self) -> Self;
    fn multiply(self, count: usize) -> Self;
    fn append_to(values: &[Self], output: &mut Vec<u8>);
}

macro_rules! integer {
    ($type:ty) => {
        impl Integer for $type {
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn multiply(self, count: usize) -> Self {
                self.wrapping_mul(count as $type)
            }

            fn append_to(values: &[Self], output: &mut Vec<u8>) {
                output.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
    };
}
integer!(u32);
integer!(u64);

/// A signed integer of as many bits as the values have, and what follows it.
fn parse_integer<T: Integer>(bytes: &[u8]) -> Result<(T, &[u8])> {
    let (value, rest) = parse_zigzag(bytes)?;
    if T::BITS == 32 && i32::try_from(value).is_err() {
        return corrupt("a delta of more bits than the values");
    }
    Ok((T::cut(value as u64), rest))
}

/// Integers of 4 bytes (`u32`) or 8 (`u64`), as their bits are: signs do not matter here.
#[derive(Debug, Clone)]
pub struct Packed<'a, T> {
    /// What follows the current block's head, or the current miniblock once one is begun.
    bytes: &'a [u8],
    miniblocks: usize,
    miniblock_size: usize,
    /// The widths of the miniblocks of this block that are not begun.
    widths: &'a [u8],
    min_delta: T,
    miniblock: &'a [u8],
    width: usize,
    /// How many values of the miniblock were passed; all of them before the first.
    passed: usize,
    last: T,
    position: usize,
    /// How many values are encoded here.
    pub num_values: usize,
}

impl<'a, T: Integer> Packed<'a, T> {
    /// At least `num_values` must be there.
    pub fn new(bytes: &'a [u8], num_values: usize) -> Result<Self> {
        if num_values == 0 && bytes.is_empty() {
            return Packed::parse(NOTHING);
        }
        let packed = Packed::parse(bytes)?;
        if packed.num_values < num_values {
            return corrupt("fewer values than the page has");
        }
        Ok(packed)
    }

    fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (block_size, bytes) = parse_u32(bytes)?;
        let (miniblocks, bytes) = parse_u32(bytes)?;
        let (num_values, bytes) = parse_u32(bytes)?;
        let (first, bytes) = parse_integer::<T>(bytes)?;
        if block_size == 0
            || block_size % BLOCK_MULTIPLE != 0
            || miniblocks == 0
            || block_size % miniblocks != 0
            || block_size / miniblocks % MINIBLOCK_MULTIPLE != 0
        {
            return corrupt(format!(
                "blocks of {block_size} deltas in {miniblocks} parts"
            ));
        }
        let miniblock_size = (block_size / miniblocks) as usize;
        Ok(Packed {
            bytes,
            miniblocks: miniblocks as usize,
            miniblock_size,
            widths: &[],
            min_delta: T::default(),
            miniblock: &[],
            width: 0,
            passed: miniblock_size,
            last: first,
            position: 0,
            num_values: num_values as usize,
        })
    }

    /// Begin the next miniblock.
    fn advance(&mut self) -> Result<()> {
        if self.widths.is_empty() {
            let (min_delta, bytes) = parse_integer::<T>(self.bytes)?;
            let Some((widths, bytes)) = bytes.split_at_checked(self.miniblocks) else {
                return corrupt("a block of deltas ends before its widths");
            };
            (self.min_delta, self.widths, self.bytes) = (min_delta, widths, bytes);
        }
        self.width = self.widths[0] as usize;
        self.widths = &self.widths[1..];
        if self.width > T::BITS {
            return corrupt(format!("deltas of {} bits", self.width));
        }
        let size = self.miniblock_size / 8 * self.width;
        let Some((miniblock, bytes)) = self.bytes.split_at_checked(size) else {
            return corrupt("deltas end before their values");
        };
        (self.miniblock, self.bytes) = (miniblock, bytes);
        self.passed = 0;
        Ok(())
    }

    /// The next deltas of this miniblock, without what all of the block have in common.
    fn next_deltas<'b>(&mut self, most: usize, buffer: &'b mut [T; CHUNK]) -> Result<&'b mut [T]> {
        if self.passed == self.miniblock_size {
            self.advance()?;
        }
        // Groups of eight begin with a byte; a part of one ends the call before.
        let inside = self.passed % bit_packing::GROUP;
        let count = most
            .min(self.miniblock_size - self.passed)
            .min(CHUNK - inside);
        let end = self.passed + count;
        let begin = (self.passed - inside) / 8 * self.width;
        let deltas = &mut buffer[..inside + count];
        bit_packing::unpack(&self.miniblock[begin..], self.width, deltas);
        self.passed = end;
        self.position += count;
        Ok(&mut deltas[inside..])
    }

    /// Call with all of the next values, some at a time.
    #[inline(always)]
    fn visit(&mut self, count: usize, mut visitor: impl FnMut(&[T]) -> Result<()>) -> Result<()> {
        self.check(count)?;
        let end = self.position + count;
        if self.position == 0 && count > 0 {
            self.position = 1;
            visitor(&[self.last])?;
        }
        let mut buffer = [T::default(); CHUNK];
        while self.position < end {
            let values = self.next_deltas(end - self.position, &mut buffer)?;
            for value in &mut *values {
                self.last = self.last.add(self.min_delta).add(*value);
                *value = self.last;
            }
            visitor(values)?;
        }
        Ok(())
    }

    /// What follows all values.
    fn rest(mut self) -> Result<&'a [u8]> {
        let mut left = self.num_values.saturating_sub(1);
        while left > 0 {
            self.advance()?;
            left = left.saturating_sub(self.miniblock_size);
        }
        Ok(self.bytes)
    }

    fn check(&self, count: usize) -> Result<()> {
        if count > self.num_values - self.position {
            return corrupt("fewer values than are asked for");
        }
        Ok(())
    }
}

impl<T: Integer> Decoder for Packed<'_, T> {
    type Output = Vec<u8>;

    fn position(&self) -> usize {
        self.position
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        self.check(count)?;
        let end = self.position + count;
        if self.position == 0 && count > 0 {
            self.position = 1;
        }
        let mut buffer = [T::default(); CHUNK];
        while self.position < end {
            let deltas = self.next_deltas(end - self.position, &mut buffer)?;
            let sum = deltas
                .iter()
                .fold(T::default(), |sum, delta| sum.add(*delta));
            let common = self.min_delta.multiply(deltas.len());
            self.last = self.last.add(common).add(sum);
        }
        Ok(())
    }

    fn read(&mut self, count: usize, output: &mut Vec<u8>) -> Result<()> {
        self.visit(count, |values| {
            T::append_to(values, output);
            Ok(())
        })
    }
}

/// Byte arrays: all lengths, then all bytes.
#[derive(Debug, Clone)]
pub struct LengthBytes<'a> {
    lengths: Packed<'a, u32>,
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> LengthBytes<'a> {
    pub fn new(bytes: &'a [u8], num_values: usize) -> Result<Self> {
        let lengths = Packed::new(bytes, num_values)?;
        Ok(LengthBytes {
            bytes: lengths.clone().rest()?,
            lengths,
            offset: 0,
        })
    }

    /// The next values, by where they begin and end in these bytes.
    #[inline(always)]
    fn visit(
        &mut self,
        count: usize,
        mut visitor: impl FnMut(&'a [u8], usize, usize) -> Result<()>,
    ) -> Result<()> {
        let (bytes, mut offset) = (self.bytes, self.offset);
        self.lengths.visit(count, |lengths| {
            for length in lengths {
                let begin = offset;
                // A negative length leads behind all pages.
                offset += *length as usize;
                if offset > bytes.len() {
                    return corrupt("a value ends behind its page");
                }
                visitor(bytes, begin, offset)?;
            }
            Ok(())
        })?;
        self.offset = offset;
        Ok(())
    }
}

impl Decoder for LengthBytes<'_> {
    type Output = ByteArrays;

    fn position(&self) -> usize {
        self.lengths.position
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        self.visit(count, |_, _, _| Ok(()))
    }

    fn read(&mut self, count: usize, output: &mut ByteArrays) -> Result<()> {
        self.visit(count, |bytes, begin, end| {
            output.push_part(bytes, begin, end)
        })
    }
}

/// Byte arrays that begin as the one before: how long that beginning is, and what follows it.
#[derive(Debug, Clone)]
pub struct PrefixBytes<'a> {
    prefixes: Packed<'a, u32>,
    suffixes: LengthBytes<'a>,
    last: Vec<u8>,
}

impl<'a> PrefixBytes<'a> {
    pub fn new(bytes: &'a [u8], num_values: usize) -> Result<Self> {
        let prefixes = Packed::new(bytes, num_values)?;
        Ok(PrefixBytes {
            suffixes: LengthBytes::new(prefixes.clone().rest()?, num_values)?,
            prefixes,
            last: Vec::new(),
        })
    }

    /// The next values one by one.
    pub fn visit(
        &mut self,
        count: usize,
        mut visitor: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (suffixes, last) = (&mut self.suffixes, &mut self.last);
        self.prefixes.visit(count, |prefixes| {
            let mut prefixes_left = prefixes.iter();
            suffixes.visit(prefixes.len(), |bytes, begin, end| {
                let length = prefixes_left.next().map_or(0, |length| *length as usize);
                if length > last.len() {
                    return corrupt("a value shares more than the one before has");
                }
                last.truncate(length);
                last.extend_from_slice(&bytes[begin..end]);
                visitor(last)
            })
        })
    }
}

impl Decoder for PrefixBytes<'_> {
    type Output = ByteArrays;

    fn position(&self) -> usize {
        self.prefixes.position
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        self.visit(count, |_| Ok(()))
    }

    fn read(&mut self, count: usize, output: &mut ByteArrays) -> Result<()> {
        self.visit(count, |value| output.push(value))
    }
}
