//! Runs of bytes: one byte again and again, or some as they are.

use crate::error::Result;
use crate::orc::chunks::Stream;
use crate::orc::marks::{Marks, Place};

/// Bytes that are stored together.
pub enum Piece<'a> {
    Repeated(u8, usize),
    Plain(&'a [u8]),
}

/// The bytes of a stream of runs.
pub struct ByteRuns<'a> {
    pub stream: Stream<'a>,
    /// Bytes that are left of the run.
    left: usize,
    /// What a run repeats; None: its bytes follow as they are.
    repeated: Option<u8>,
    position: u64,
    pub marks: Marks,
}

impl<'a> ByteRuns<'a> {
    pub fn new(stream: Stream<'a>) -> Self {
        ByteRuns {
            stream,
            left: 0,
            repeated: None,
            position: 0,
            marks: Marks::default(),
        }
    }

    /// How many bytes were read or skipped.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How many values come before a place of a row index.
    pub fn values_before(&self, place: Place) -> Option<u64> {
        let next = (self.left == 0).then_some(self.position);
        self.marks.values_before(&self.stream, place, next)
    }

    /// Whether nothing is left.
    pub fn is_at_end(&mut self) -> Result<bool> {
        Ok(self.left == 0 && self.stream.fill(1)?.is_empty())
    }

    fn begin_run(&mut self) -> Result<()> {
        self.marks.note(self.stream.position(), self.position);
        let header = self.stream.need(1)?[0];
        if header < 128 {
            self.repeated = Some(self.stream.need(2)?[1]);
            self.left = usize::from(header) + 3;
            self.stream.pass(2);
        } else {
            self.repeated = None;
            self.left = 256 - usize::from(header);
            self.stream.pass(1);
        }
        Ok(())
    }

    /// Call with so many bytes, piece by piece.
    pub fn walk(&mut self, mut count: u64, mut visit: impl FnMut(Piece)) -> Result<()> {
        while count > 0 {
            if self.left == 0 {
                self.begin_run()?;
            }
            let most = (self.left as u64).min(count) as usize;
            let taken = match self.repeated {
                Some(byte) => {
                    visit(Piece::Repeated(byte, most));
                    most
                }
                None => {
                    self.stream.need(1)?;
                    let held = self.stream.at_hand();
                    let taken = most.min(held.len());
                    visit(Piece::Plain(&held[..taken]));
                    self.stream.pass(taken);
                    taken
                }
            };
            self.left -= taken;
            self.position += taken as u64;
            count -= taken as u64;
        }
        Ok(())
    }

    pub fn skip(&mut self, count: u64) -> Result<()> {
        self.walk(count, |_| {})
    }

    pub fn read(&mut self, count: u64, output: &mut Vec<u8>) -> Result<()> {
        self.walk(count, |piece| match piece {
            Piece::Repeated(byte, count) => output.resize(output.len() + count, byte),
            Piece::Plain(bytes) => output.extend_from_slice(bytes),
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::orc::chunks::tests::{PACKINGS, packed};

    /// Bytes as runs.
    pub fn encoded(bytes: &[u8]) -> Vec<u8> {
        let mut stored = vec![];
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            let same = rest.iter().take(130).take_while(|b| **b == first).count();
            if same >= 3 {
                stored.extend([(same - 3) as u8, first]);
                rest = &rest[same..];
            } else {
                let plain = rest.len().min(if first % 2 == 0 { 128 } else { 5 });
                stored.push((256 - plain) as u8);
                stored.extend(&rest[..plain]);
                rest = &rest[plain..];
            }
        }
        stored
    }

    #[test]
    fn bytes_are_read_and_skipped() {
        let bytes: Vec<u8> = (0..900u32)
            .map(|i| if i % 200 < 150 { (i * i % 17) as u8 } else { 9 })
            .collect();
        for packing in PACKINGS {
            let stored = packed(packing, &encoded(&bytes));
            for (skip, read) in [(0, 900), (1, 3), (149, 60), (333, 500), (899, 1)] {
                let mut runs = ByteRuns::new(Stream::new(packing, &stored));
                let mut output = vec![];
                runs.skip(skip as u64).unwrap();
                runs.read(read as u64, &mut output).unwrap();
                assert_eq!(output, bytes[skip..skip + read]);
                assert_eq!(runs.position(), (skip + read) as u64);
                assert!(runs.skip(900).is_err());
            }
        }
    }
}
