//! Version 1: sequences with a step of one byte, or integers as they are.

use crate::error::{Result, corrupt};
use crate::orc::chunks::Stream;
use crate::orc::int_rle::{Kind, Parsed, from_zigzag, parse_varint};

const LONGEST_VARINT: usize = 10;

pub fn parse(stream: &mut Stream, signed: bool) -> Result<Parsed> {
    let header = stream.need(1)?[0];
    if header < 128 {
        let bytes = stream.fill(2 + LONGEST_VARINT)?;
        let Some(&step) = bytes.get(1) else {
            return corrupt("a run ends before its step");
        };
        let (first, size) = parse_varint(&bytes[2..])?;
        return Ok(Parsed {
            count: usize::from(header) + 3,
            size: 2 + size,
            kind: Kind::Sequence {
                first: number(first, signed),
                step: i64::from(step as i8),
            },
        });
    }
    let count = 256 - usize::from(header);
    let bytes = &stream.fill(1 + count * LONGEST_VARINT)?[1..];
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte < 128);
    match ends.map(|(place, _)| place).nth(count - 1) {
        Some(last) => Ok(Parsed {
            count,
            size: last + 2,
            kind: Kind::Stored,
        }),
        None => corrupt("a run ends before its values"),
    }
}

fn number(stored: u64, signed: bool) -> i64 {
    match signed {
        true => from_zigzag(stored),
        false => stored as i64,
    }
}

/// The values of a run that stores them as they are.
pub fn decode(run: &[u8], signed: bool, values: &mut [i64]) -> Result<()> {
    let mut rest = &run[1..];
    for value in values {
        let (stored, size) = parse_varint(rest)?;
        *value = number(stored, signed);
        rest = &rest[size..];
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use crate::orc::int_rle::tests::to_zigzag;

    pub fn push_varint(mut value: u64, output: &mut Vec<u8>) {
        while value >= 0x80 {
            output.push(value as u8 | 0x80);
            value >>= 7;
        }
        output.push(value as u8);
    }

    pub fn encoded(values: &[i64], signed: bool) -> Vec<u8> {
        let written = |value: i64| {
            if signed {
                to_zigzag(value)
            } else {
                value as u64
            }
        };
        let mut stored = vec![];
        let mut rest = values;
        while let Some(&first) = rest.first() {
            let step = rest.get(1).map_or(0, |next| next.wrapping_sub(first));
            let steps = rest
                .windows(2)
                .take_while(|pair| pair[1].wrapping_sub(pair[0]) == step);
            let same = 1 + steps.take(129).count();
            let count = if same >= 3 && i8::try_from(step).is_ok() {
                stored.extend([(same - 3) as u8, step as u8]);
                push_varint(written(first), &mut stored);
                same
            } else {
                let count = rest.len().min(1 + (first & 127) as usize);
                stored.push((256 - count) as u8);
                for value in &rest[..count] {
                    push_varint(written(*value), &mut stored);
                }
                count
            };
            rest = &rest[count..];
        }
        stored
    }
}
