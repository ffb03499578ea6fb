//! Runs of one value and bit-packed values in turn: dictionary indices, levels, booleans.

use crate::bit_packing::{self, GROUP};
use crate::error::{Result, corrupt};
use crate::output::{Bits, Decoder, Run};
use crate::varint::parse_u32;

/// A part of the values, as they are encoded.
#[derive(Debug, Clone, Copy)]
pub enum EncodedRun<'a> {
    Repeated { value: u32, count: usize },
    Packed(PackedRun<'a>),
}

impl EncodedRun<'_> {
    pub fn count(&self) -> usize {
        match self {
            EncodedRun::Repeated { count, .. } => *count,
            EncodedRun::Packed(run) => run.count,
        }
    }
}

/// Bit-packed values, of which the first ones may be passed already.
#[derive(Debug, Clone, Copy)]
pub struct PackedRun<'a> {
    bytes: &'a [u8],
    width: usize,
    first: usize,
    pub count: usize,
}

impl<'a> PackedRun<'a> {
    /// One value.
    #[inline]
    pub fn get(&self, index: usize) -> u32 {
        bit_packing::get(self.bytes, self.width, self.first + index) as u32
    }

    /// All values, of which there must be room for as many.
    pub fn unpack(&self, output: &mut [u32]) {
        let output = &mut output[..self.count];
        let to_group = self.first.next_multiple_of(GROUP) - self.first;
        let (head, groups) = output.split_at_mut(to_group.min(self.count));
        for (index, value) in head.iter_mut().enumerate() {
            *value = self.get(index);
        }
        let begin = (self.first + head.len()) / GROUP * self.width;
        bit_packing::unpack(
            self.bytes.get(begin..).unwrap_or_default(),
            self.width,
            groups,
        );
    }

    /// The packed bits of values of one bit, and the place of the first.
    pub fn bits(&self) -> (&'a [u8], usize) {
        (self.bytes, self.first)
    }

    /// The values from one on, at most so many.
    pub fn part(&self, begin: usize, most: usize) -> Self {
        PackedRun {
            first: self.first + begin,
            count: most.min(self.count - begin),
            ..*self
        }
    }
}

/// Integers of up to 32 bits.
#[derive(Debug, Clone)]
pub struct Indices<'a> {
    /// What follows the current run.
    bytes: &'a [u8],
    width: usize,
    run: EncodedRun<'a>,
    position: usize,
    num_values: usize,
}

impl<'a> Indices<'a> {
    pub fn new(bytes: &'a [u8], bit_width: usize, num_values: usize) -> Result<Self> {
        if bit_width > 32 {
            return corrupt(format!("integers of {bit_width} bits"));
        }
        Ok(Indices {
            bytes,
            width: bit_width,
            run: EncodedRun::Repeated { value: 0, count: 0 },
            position: 0,
            num_values,
        })
    }

    /// The dictionary indices of a data page: the first byte is their width.
    pub fn of_page(bytes: &'a [u8], num_values: usize) -> Result<Self> {
        match bytes.split_first() {
            Some((width, rest)) => Indices::new(rest, *width as usize, num_values),
            None if num_values == 0 => Indices::new(bytes, 0, 0),
            None => corrupt("dictionary indices without their width"),
        }
    }

    /// The next values that are encoded in one way, at most so many; they count as read.
    pub fn next_run(&mut self, most: usize) -> Result<EncodedRun<'a>> {
        if most == 0 || self.position == self.num_values {
            return Ok(EncodedRun::Repeated { value: 0, count: 0 });
        }
        if self.run.count() == 0 {
            self.run = self.parse_run()?;
        }
        let passed = self.run.count().min(most);
        let run = self.run;
        self.pass(passed);
        Ok(match run {
            EncodedRun::Repeated { value, .. } => EncodedRun::Repeated {
                value,
                count: passed,
            },
            EncodedRun::Packed(run) => EncodedRun::Packed(run.part(0, passed)),
        })
    }

    /// Leave values of the current run behind.
    fn pass(&mut self, passed: usize) {
        self.position += passed;
        match &mut self.run {
            EncodedRun::Repeated { count, .. } => *count -= passed,
            EncodedRun::Packed(run) => *run = run.part(passed, usize::MAX),
        }
    }

    /// The run that begins here, without what would be behind the last value.
    fn parse_run(&mut self) -> Result<EncodedRun<'a>> {
        let (header, rest) = parse_u32(self.bytes)?;
        let left = self.num_values - self.position;
        let length = (header >> 1) as usize;
        if length == 0 {
            return corrupt("a run of no values");
        }
        if header & 1 == 0 {
            let size = self.width.div_ceil(8);
            let Some((stored, rest)) = rest.split_at_checked(size) else {
                return corrupt("a run ends before its value");
            };
            let mut value = [0; 4];
            value[..size].copy_from_slice(stored);
            self.bytes = rest;
            return Ok(EncodedRun::Repeated {
                value: u32::from_le_bytes(value),
                count: length.min(left),
            });
        }
        let size = length.saturating_mul(self.width);
        let Some((bytes, rest)) = rest.split_at_checked(size) else {
            return corrupt("a run ends before its values");
        };
        self.bytes = rest;
        Ok(EncodedRun::Packed(PackedRun {
            bytes,
            width: self.width,
            first: 0,
            count: length.saturating_mul(GROUP).min(left),
        }))
    }

    fn check(&self, count: usize) -> Result<()> {
        if count > self.num_values - self.position {
            return corrupt("fewer values than are asked for");
        }
        Ok(())
    }
}

impl Decoder for Indices<'_> {
    type Output = Vec<u32>;

    fn position(&self) -> usize {
        self.position
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        self.check(count)?;
        let end = self.position + count;
        while self.position < end {
            self.next_run(end - self.position)?;
        }
        Ok(())
    }

    fn read(&mut self, count: usize, output: &mut Vec<u32>) -> Result<()> {
        self.check(count)?;
        let end = self.position + count;
        while self.position < end {
            match self.next_run(end - self.position)? {
                EncodedRun::Repeated { value, count } => output.resize(output.len() + count, value),
                EncodedRun::Packed(run) => {
                    let begin = output.len();
                    output.resize(begin + run.count, 0);
                    run.unpack(&mut output[begin..]);
                }
            }
        }
        Ok(())
    }

    fn pick(&mut self, runs: &[Run], output: &mut Vec<u32>) -> Result<()> {
        let mut wanted = runs.iter();
        let mut next = wanted.next();
        while let Some(run) = next {
            self.skip(run.start as usize - self.position)?;
            // Single values of one packed run: nothing else of it is unpacked.
            if let EncodedRun::Packed(packed) = self.run {
                let begin = self.position as u32;
                let end = begin + packed.count as u32;
                let mut passed = begin;
                while let Some(run) = next {
                    if run.end > end || run.count() >= GROUP {
                        break;
                    }
                    output.extend((run.start..run.end).map(|at| packed.get((at - begin) as usize)));
                    passed = run.end;
                    next = wanted.next();
                }
                if passed > begin {
                    self.pass((passed - begin) as usize);
                    continue;
                }
            }
            self.read(run.count(), output)?;
            next = wanted.next();
        }
        Ok(())
    }
}

/// Booleans as runs, behind four bytes with their length.
#[derive(Debug, Clone)]
pub struct Booleans<'a> {
    indices: Indices<'a>,
}

impl<'a> Booleans<'a> {
    pub fn new(bytes: &'a [u8], num_values: usize) -> Result<Self> {
        let runs = bytes.split_first_chunk().and_then(|(length, rest)| {
            let length = u32::from_le_bytes(*length) as usize;
            rest.get(..length)
        });
        match runs {
            Some(runs) => Ok(Booleans {
                indices: Indices::new(runs, 1, num_values)?,
            }),
            None => corrupt("booleans end before their runs"),
        }
    }
}

impl Decoder for Booleans<'_> {
    type Output = Bits;

    fn position(&self) -> usize {
        self.indices.position()
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        self.indices.skip(count)
    }

    fn read(&mut self, count: usize, output: &mut Bits) -> Result<()> {
        self.indices.check(count)?;
        let end = self.position() + count;
        while self.position() < end {
            match self.indices.next_run(end - self.position())? {
                EncodedRun::Repeated { value, count } => output.push_run(value & 1 == 1, count),
                EncodedRun::Packed(run) => {
                    let (bits, first) = run.bits();
                    output.extend(bits, first, run.count);
                }
            }
        }
        Ok(())
    }
}
