//! Bits in runs of bytes, the first in the highest bit: which values are there, and booleans.

use crate::error::Result;
use crate::orc::byte_rle::{ByteRuns, Piece};
use crate::orc::chunks::Stream;
use crate::orc::marks::Place;
use crate::output::Bits;

/// The bits of a stream.
pub struct BitRuns<'a> {
    bytes: ByteRuns<'a>,
    /// The byte of which some bits are left, which are its lowest, in Arrow's order.
    byte: u8,
    left: usize,
}

impl<'a> BitRuns<'a> {
    pub fn new(stream: Stream<'a>) -> Self {
        BitRuns {
            bytes: ByteRuns::new(stream),
            byte: 0,
            left: 0,
        }
    }

    /// How many bits were read or skipped.
    pub fn position(&self) -> u64 {
        8 * self.bytes.position() - self.left as u64
    }

    pub fn begin_marks(&mut self) {
        self.bytes.marks.begin();
    }

    pub fn end_marks(&mut self) {
        self.bytes.marks.end();
    }

    /// Whether a place of a row index is where the reader is.
    pub fn has_reached(&self, place: Place) -> bool {
        let before = self.bytes.values_before(place);
        before.and_then(|bytes| bytes.checked_mul(8)?.checked_add(place.bits))
            == Some(self.position())
    }

    /// Whether nothing but the rest of a byte is left.
    pub fn is_at_end(&mut self) -> Result<bool> {
        Ok(self.bytes.is_at_end()? && self.left < 8)
    }

    /// Take so many bits of the byte at hand.
    fn take(&mut self, count: usize) -> u8 {
        let bits = self.byte & (0xFFu16 >> (8 - count)) as u8;
        self.byte = (u16::from(self.byte) >> count) as u8;
        self.left -= count;
        bits
    }

    fn begin_byte(&mut self) -> Result<()> {
        let mut byte = 0;
        self.bytes.walk(1, |piece| {
            byte = match piece {
                Piece::Repeated(byte, _) => byte,
                Piece::Plain(bytes) => bytes[0],
            }
        })?;
        (self.byte, self.left) = (byte.reverse_bits(), 8);
        Ok(())
    }

    /// Append so many bits.
    pub fn read(&mut self, count: usize, output: &mut Bits) -> Result<()> {
        let head = count.min(self.left);
        if head > 0 {
            let bits = self.take(head);
            output.extend(&[bits], 0, head);
        }
        let whole = (count - head) / 8;
        self.bytes.walk(whole as u64, |piece| match piece {
            Piece::Repeated(0, count) => output.push_run(false, 8 * count),
            Piece::Repeated(0xFF, count) => output.push_run(true, 8 * count),
            Piece::Repeated(byte, count) => {
                for _ in 0..count {
                    output.extend(&[byte.reverse_bits()], 0, 8);
                }
            }
            Piece::Plain(bytes) => {
                let mut reversed = [0; 128];
                for chunk in bytes.chunks(reversed.len()) {
                    for (to, from) in reversed.iter_mut().zip(chunk) {
                        *to = from.reverse_bits();
                    }
                    output.extend(&reversed, 0, 8 * chunk.len());
                }
            }
        })?;
        let tail = count - head - 8 * whole;
        if tail > 0 {
            self.begin_byte()?;
            let bits = self.take(tail);
            output.extend(&[bits], 0, tail);
        }
        Ok(())
    }

    /// Pass over bits; returns how many of them are set.
    pub fn skip(&mut self, count: u64) -> Result<u64> {
        let head = count.min(self.left as u64);
        let mut ones = match head {
            0 => 0,
            _ => u64::from(self.take(head as usize).count_ones()),
        };
        let whole = (count - head) / 8;
        self.bytes.walk(whole, |piece| match piece {
            Piece::Repeated(byte, count) => ones += u64::from(byte.count_ones()) * count as u64,
            Piece::Plain(bytes) => {
                let set: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
                ones += u64::from(set);
            }
        })?;
        let tail = (count - head) % 8;
        if tail > 0 {
            self.begin_byte()?;
            ones += u64::from(self.take(tail as usize).count_ones());
        }
        Ok(ones)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::orc::byte_rle::tests::encoded;
    use crate::orc::chunks::tests::{PACKINGS, packed};

    /// Bits as runs of bytes.
    pub fn encoded_bits(bits: &[bool]) -> Vec<u8> {
        let bytes = bits.chunks(8).map(|chunk| {
            let set = chunk.iter().enumerate();
            set.fold(0, |byte, (place, bit)| byte | u8::from(*bit) << (7 - place))
        });
        encoded(&bytes.collect::<Vec<_>>())
    }

    #[test]
    fn bits_are_read_and_counted_between_any_two_places() {
        let bits: Vec<bool> = (0..2_000u32)
            .map(|i| (400..900).contains(&i) || i % 3 == 0 && i < 1_200 || i * i % 7 == 2)
            .collect();
        for packing in PACKINGS {
            let stored = packed(packing, &encoded_bits(&bits));
            for (skip, read) in [
                (0, 2000),
                (3, 2),
                (5, 11),
                (397, 700),
                (1203, 797),
                (1999, 1),
            ] {
                let mut runs = BitRuns::new(Stream::new(packing, &stored));
                let ones = bits[..skip].iter().filter(|bit| **bit).count();
                assert_eq!(runs.skip(skip as u64), Ok(ones as u64));
                let mut output = Bits::default();
                output.push(true);
                runs.read(read, &mut output).unwrap();
                let found: Vec<bool> = (1..output.len).map(|i| output.get(i)).collect();
                assert_eq!(found, bits[skip..skip + read]);
                assert_eq!(runs.position(), (skip + read) as u64);
                assert!(runs.skip(2_001).is_err());
            }
        }
    }
}
