//! Runs of integers, of both versions: parsed one by one, decoded where a value is wanted.

use crate::error::{Result, corrupt};
use crate::orc::chunks::Stream;
use crate::orc::marks::{Marks, Place};
use crate::orc::{int_rle_v1, int_rle_v2};

/// Values of the longest run.
pub const LONGEST: usize = 512;
/// Bytes of the longest integer of seven bits per byte.
const LONGEST_VARINT: usize = 10;

/// Which way the integers of a stream are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coding {
    pub version: Version,
    /// Whether the sign is the lowest bit.
    pub signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

/// A run that begins at a place of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Parsed {
    pub count: usize,
    /// Bytes of the run, all of which are at hand.
    pub size: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Each differs from the one before by the same step.
    Sequence { first: i64, step: i64 },
    /// Values that are to be decoded.
    Stored,
}

/// What is left of a run.
enum Run {
    Sequence {
        next: i64,
        step: i64,
    },
    /// Nothing was taken of it yet, and its bytes are at hand.
    Stored {
        size: usize,
    },
    /// In the buffer from here on.
    Decoded {
        at: usize,
    },
}

/// The integers of a stream.
pub struct Integers<'a> {
    pub stream: Stream<'a>,
    coding: Coding,
    run: Run,
    left: usize,
    buffer: Box<[i64; LONGEST]>,
    position: u64,
    pub marks: Marks,
}

impl<'a> Integers<'a> {
    pub fn new(stream: Stream<'a>, coding: Coding) -> Self {
        Integers {
            stream,
            coding,
            run: Run::Decoded { at: 0 },
            left: 0,
            buffer: Box::new([0; LONGEST]),
            position: 0,
            marks: Marks::default(),
        }
    }

    /// How many values were read or skipped.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether a place of a row index is where the reader is.
    pub fn has_reached(&self, place: Place) -> bool {
        let next = (self.left == 0).then_some(self.position);
        self.marks.values_before(&self.stream, place, next) == Some(self.position)
    }

    /// Whether nothing is left.
    pub fn is_at_end(&mut self) -> Result<bool> {
        Ok(self.left == 0 && self.stream.fill(1)?.is_empty())
    }

    fn begin_run(&mut self) -> Result<()> {
        self.marks.note(self.stream.position(), self.position);
        let parsed = match self.coding.version {
            Version::One => int_rle_v1::parse(&mut self.stream, self.coding.signed)?,
            Version::Two => int_rle_v2::parse(&mut self.stream, self.coding.signed)?,
        };
        self.left = parsed.count;
        self.run = match parsed.kind {
            Kind::Sequence { first, step } => {
                self.stream.pass(parsed.size);
                Run::Sequence { next: first, step }
            }
            Kind::Stored => Run::Stored { size: parsed.size },
        };
        Ok(())
    }

    /// The run at hand, as values in the buffer.
    fn decode_run(&mut self, size: usize) -> Result<()> {
        let bytes = self.stream.at_hand();
        let run = &bytes[..size];
        let values = &mut self.buffer[..self.left];
        match self.coding.version {
            Version::One => int_rle_v1::decode(run, self.coding.signed, values)?,
            Version::Two => int_rle_v2::decode(run, self.coding.signed, values)?,
        }
        self.stream.pass(size);
        self.run = Run::Decoded { at: 0 };
        Ok(())
    }

    pub fn skip(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            if self.left == 0 {
                self.begin_run()?;
            }
            let passed = count.min(self.left as u64) as usize;
            match self.run {
                Run::Stored { size } if passed == self.left => self.stream.pass(size),
                Run::Stored { size } => {
                    self.decode_run(size)?;
                    self.run = Run::Decoded { at: passed };
                }
                Run::Sequence { next, step } => {
                    let next = next.wrapping_add(step.wrapping_mul(passed as i64));
                    self.run = Run::Sequence { next, step };
                }
                Run::Decoded { at } => self.run = Run::Decoded { at: at + passed },
            }
            self.leave(passed);
            count -= passed as u64;
        }
        Ok(())
    }

    fn leave(&mut self, passed: usize) {
        self.left -= passed;
        self.position += passed as u64;
    }

    /// Call with so many values, some at a time.
    pub fn walk(
        &mut self,
        mut count: u64,
        mut visit: impl FnMut(&[i64]) -> Result<()>,
    ) -> Result<()> {
        while count > 0 {
            if self.left == 0 {
                self.begin_run()?;
            }
            let taken = count.min(self.left as u64) as usize;
            if let Run::Stored { size } = self.run {
                self.decode_run(size)?;
            }
            match &mut self.run {
                Run::Sequence { next, step } => {
                    let values = &mut self.buffer[..taken];
                    for value in &mut *values {
                        *value = *next;
                        *next = next.wrapping_add(*step);
                    }
                    visit(values)?;
                }
                Run::Decoded { at } => {
                    visit(&self.buffer[*at..*at + taken])?;
                    *at += taken;
                }
                Run::Stored { .. } => return corrupt("a run that was not decoded"),
            }
            self.leave(taken);
            count -= taken as u64;
        }
        Ok(())
    }

    pub fn read(&mut self, count: usize, output: &mut Vec<i64>) -> Result<()> {
        self.walk(count as u64, |values| {
            output.extend_from_slice(values);
            Ok(())
        })
    }
}

/// The number that an integer with its sign in the lowest bit stands for.
#[inline(always)]
pub fn from_zigzag(stored: u64) -> i64 {
    (stored >> 1) as i64 ^ -((stored & 1) as i64)
}

/// An integer, and how many bytes it takes.
pub fn parse_varint(bytes: &[u8]) -> Result<(u64, usize)> {
    let mut value = 0;
    for (place, &byte) in bytes.iter().take(LONGEST_VARINT).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * place);
        if byte < 0x80 {
            return Ok((value, place + 1));
        }
    }
    corrupt("an integer that does not end")
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::orc::chunks::tests::{PACKINGS, packed};
    use crate::orc::int_rle_v1::tests::encoded as encoded_v1;
    use crate::orc::int_rle_v2::tests::encoded as encoded_v2;

    pub fn to_zigzag(value: i64) -> u64 {
        ((value << 1) ^ (value >> 63)) as u64
    }

    /// Integers as runs.
    pub fn encoded(values: &[i64], coding: Coding) -> Vec<u8> {
        match coding.version {
            Version::One => encoded_v1(values, coding.signed),
            Version::Two => encoded_v2(values, coding.signed),
        }
    }

    /// Sequences, small and large numbers, outliers.
    fn numbers(signed: bool) -> Vec<i64> {
        let values = (0..6_000i64).map(|i| {
            let mixed = i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
            match i / 300 % 10 {
                0 => 7,
                1 => 5 * i,
                2 => mixed >> 60,
                3 => mixed >> (i % 63),
                4 => 1_000 + i * i % 13,
                5 if i % 90 == 0 => 1 << 40,
                5 => i % 10,
                6 => -i,
                7 => i + i % 3,
                8 if i % 77 == 0 => i64::MAX - i,
                8 => i % 100 - 50,
                _ => i % 2,
            }
        });
        let clip = |value: i64| if signed { value } else { value & i64::MAX };
        values.map(clip).collect()
    }

    #[test]
    fn integers_are_read_and_skipped_in_both_versions() {
        for version in [Version::One, Version::Two] {
            for signed in [true, false] {
                let coding = Coding { version, signed };
                let values = numbers(signed);
                for packing in PACKINGS {
                    let stored = packed(packing, &encoded(&values, coding));
                    let ends = [1, 2, 3, 100, 511, 512, 513, 1_900, 3_333, 5_999, 6_000];
                    for skip in ends {
                        for end in ends.into_iter().filter(|end| *end >= skip) {
                            let mut runs = Integers::new(Stream::new(packing, &stored), coding);
                            let mut output = vec![];
                            runs.skip(skip as u64).unwrap();
                            runs.read(end - skip, &mut output).unwrap();
                            assert_eq!(output, values[skip..end], "{coding:?} {skip} {end}");
                            assert_eq!(runs.position(), end as u64);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn places_in_runs_are_recognised() {
        let coding = Coding {
            version: Version::Two,
            signed: true,
        };
        let values = numbers(true);
        let stored = encoded(&values, coding);
        let new = || Integers::new(Stream::new(PACKINGS[0], &stored), coding);
        let mut begins = new();
        begins.marks.begin();
        begins.skip(6_000).unwrap();
        let place = |inside, values| Place {
            inside,
            values,
            ..Place::default()
        };
        let mut runs = new();
        runs.marks.begin();
        runs.skip(700).unwrap();
        // Any place that leads to the same value is the same, whatever run it counts from.
        assert!(runs.has_reached(place(0, 700)));
        assert!(!runs.has_reached(place(0, 699)));
        assert!(!runs.has_reached(place(1, 699)));
        assert!(!runs.has_reached(place(u64::MAX, u64::MAX)));
        runs.skip(5_300).unwrap();
        assert!(runs.has_reached(place(stored.len() as u64, 0)));
        assert!(runs.is_at_end().unwrap());
    }

    #[test]
    fn damage_is_an_error_or_other_numbers() {
        for version in [Version::One, Version::Two] {
            let coding = Coding {
                version,
                signed: true,
            };
            let stored = encoded(&numbers(true), coding);
            for at in (0..stored.len()).step_by(3) {
                for flip in [0x01, 0x40, 0x80, 0xFF] {
                    let mut flipped = stored.clone();
                    flipped[at] ^= flip;
                    let mut runs = Integers::new(Stream::new(PACKINGS[0], &flipped), coding);
                    let _ = runs.read(6_000, &mut vec![]);
                }
                let mut runs = Integers::new(Stream::new(PACKINGS[0], &stored[..at]), coding);
                assert!(runs.read(6_000, &mut vec![]).is_err());
            }
        }
    }
}
