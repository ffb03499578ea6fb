//! Decimals: integers of seven bits per byte with a scale each, or runs of integers.

use crate::error::{Refusal, Result, corrupt};
use crate::levels::grow;
use crate::orc::chunks::Stream;
use crate::orc::float::bytes_are_at;
use crate::orc::int_rle::Integers;
use crate::orc::leaf::{Decoder, Kind, fixed, integers_are_at, mark_integers};
use crate::orc::marks::Place;
use crate::values::Values;

/// Bytes of the longest integer of 128 bits.
const LONGEST: usize = 19;
/// Ten to this power is the largest that 128 bits hold.
const MOST_SCALE: i64 = 38;
/// The same of 64 bits.
const MOST_SHORT: u64 = 18;
const TOO_LARGE: Refusal = Refusal::NotMine("decimals that are too large for their type");

/// Decimals with a scale each, which become those of one scale.
pub struct Decimals<'a> {
    pub data: Stream<'a>,
    pub scales: Integers<'a>,
    pub scale: i64,
    /// Whether they have at most 18 digits.
    pub is_short: bool,
    pub scratch: Vec<i64>,
}

/// An integer of up to 128 bits, and how many bytes it takes.
fn parse(bytes: &[u8]) -> Result<(i128, usize)> {
    let mut value = 0u128;
    for (place, &byte) in bytes.iter().take(LONGEST).enumerate() {
        let bits = u128::from(byte & 0x7F);
        if place == LONGEST - 1 && bits > 3 {
            return Err(TOO_LARGE);
        }
        value |= bits << (7 * place);
        if byte < 0x80 {
            let number = (value >> 1) as i128 ^ -((value & 1) as i128);
            return Ok((number, place + 1));
        }
    }
    corrupt("a decimal that does not end")
}

/// The same number with another scale; digits that it has no place for are cut off.
fn rescale(value: i128, from: i64, to: i64, most: u64) -> Result<i128> {
    if from == to {
        return Ok(value);
    }
    if !(0..=MOST_SCALE).contains(&from) || to.abs_diff(from) > most {
        return corrupt("decimals of a scale that none has");
    }
    let power = 10i128.pow((to - from).unsigned_abs() as u32);
    match to > from {
        true => value.checked_mul(power).ok_or(TOO_LARGE),
        false => Ok(value / power),
    }
}

impl Decoder for Decimals<'_> {
    fn skip(&mut self, mut count: u64) -> Result<()> {
        self.scales.skip(count)?;
        while count > 0 {
            let held = self.data.fill(1)?;
            if held.is_empty() {
                return corrupt("a stream ends before its values");
            }
            let mut passed = held.len();
            for (place, byte) in held.iter().enumerate() {
                if *byte < 128 {
                    count -= 1;
                    if count == 0 {
                        passed = place + 1;
                        break;
                    }
                }
            }
            self.data.pass(passed);
        }
        Ok(())
    }

    fn read(&mut self, count: usize, output: &mut Values) -> Result<()> {
        self.scratch.clear();
        self.scales.read(count, &mut self.scratch)?;
        let bytes = fixed(output)?;
        grow(bytes, count.saturating_mul(16))?;
        let most = if self.is_short {
            MOST_SHORT
        } else {
            MOST_SCALE as u64
        };
        for &scale in &self.scratch {
            let (value, size) = parse(self.data.fill(LONGEST)?)?;
            self.data.pass(size);
            let scaled = rescale(value, scale, self.scale, most)?;
            if self.is_short
                && [value, scaled]
                    .map(i64::try_from)
                    .iter()
                    .any(|v| v.is_err())
            {
                return Err(TOO_LARGE);
            }
            bytes.extend_from_slice(&scaled.to_le_bytes());
        }
        Ok(())
    }

    fn mark(&mut self, begins: bool) {
        mark_integers(&mut self.scales, begins);
    }

    fn is_at(&mut self, kind: Kind, place: Option<Place>) -> Result<bool> {
        match kind {
            Kind::Data => bytes_are_at(&mut self.data, place),
            _ => integers_are_at(&mut self.scales, place),
        }
    }
}

/// Decimals of at most 18 digits as runs of integers.
pub struct ShortDecimals<'a> {
    pub values: Integers<'a>,
}

impl Decoder for ShortDecimals<'_> {
    fn skip(&mut self, count: u64) -> Result<()> {
        self.values.skip(count)
    }

    fn read(&mut self, count: usize, output: &mut Values) -> Result<()> {
        let bytes = fixed(output)?;
        grow(bytes, count.saturating_mul(16))?;
        self.values.walk(count as u64, |values| {
            for value in values {
                bytes.extend_from_slice(&i128::from(*value).to_le_bytes());
            }
            Ok(())
        })
    }

    fn mark(&mut self, begins: bool) {
        mark_integers(&mut self.values, begins);
    }

    fn is_at(&mut self, _: Kind, place: Option<Place>) -> Result<bool> {
        integers_are_at(&mut self.values, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orc::chunks::tests::{PACKINGS, packed};
    use crate::orc::int_rle::tests::encoded;
    use crate::orc::int_rle::{Coding, Version};

    fn push(value: i128, output: &mut Vec<u8>) {
        let mut rest = ((value << 1) ^ (value >> 127)) as u128;
        while rest >= 0x80 {
            output.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        output.push(rest as u8);
    }

    #[test]
    fn decimals_become_those_of_one_scale() {
        let coding = Coding {
            version: Version::Two,
            signed: true,
        };
        let numbers: Vec<i128> = (0..900i128)
            .map(|i| ((i - 400) * (i * i * i + 1)) << (i % 60))
            .collect();
        let scales: Vec<i64> = (0..900).map(|i| 2 + i % 3).collect();
        let mut data = vec![];
        numbers.iter().for_each(|number| push(*number, &mut data));
        for packing in PACKINGS {
            let stored = (
                packed(packing, &data),
                packed(packing, &encoded(&scales, coding)),
            );
            for (skip, count) in [(0, 900), (7, 3), (450, 450), (899, 1)] {
                let mut decimals = Decimals {
                    data: Stream::new(packing, &stored.0),
                    scales: Integers::new(Stream::new(packing, &stored.1), coding),
                    scale: 3,
                    is_short: false,
                    scratch: vec![],
                };
                let mut output = Values::Fixed {
                    width: 16,
                    bytes: vec![],
                };
                decimals.skip(skip as u64).unwrap();
                decimals.read(count, &mut output).unwrap();
                let expected: Vec<u8> = (skip..skip + count)
                    .flat_map(|i| {
                        match scales[i] {
                            2 => numbers[i] * 10,
                            3 => numbers[i],
                            _ => numbers[i] / 10,
                        }
                        .to_le_bytes()
                    })
                    .collect();
                assert_eq!(fixed(&mut output).unwrap(), &expected);
                assert!(decimals.skip(901).is_err());
            }
        }
    }
}
