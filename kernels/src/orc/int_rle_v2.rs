//! Version 2: short repeats, packed integers, packed ones with patches for the largest, differences.
//!
//! Packed integers begin in the highest bit of the first byte.

use crate::error::{Refusal, Result, corrupt};
use crate::orc::chunks::Stream;
use crate::orc::int_rle::{Kind, Parsed, from_zigzag, parse_varint};

/// Widths in bits, by the five bits that stand for them.
const WIDTHS: [usize; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28,
    30, 32, 40, 48, 56, 64,
];
const LONGEST_VARINT: usize = 10;
const MOST_PATCHES: usize = 31;
/// A longer gap than this is told by entries of no patch.
const LONGEST_GAP: u64 = 255;
/// No writer has two patches of a value or one of nothing, and readers make different values of them.
const ODD_PATCHES: Refusal = Refusal::NotMine("patches that are no writer's");
/// Bytes behind a group that a load of its last value may touch.
const SLACK: usize = 8;
/// Values that are unpacked together: they begin and end with a byte, whatever the width.
const GROUP: usize = 8;

const REPEAT: u8 = 0;
const DIRECT: u8 = 1;
const PATCHED: u8 = 2;

/// How a run with packed values begins.
struct Head {
    width: usize,
    count: usize,
}

impl Head {
    fn of(first: u8, second: u8) -> Head {
        Head {
            width: WIDTHS[usize::from(first >> 1 & 31)],
            count: (usize::from(first & 1) << 8 | usize::from(second)) + 1,
        }
    }
}

/// How differences begin: behind the first value and the first step come the others.
struct Differences {
    first: i64,
    step: i64,
    /// Of the steps that are packed; 0: all are the same.
    width: usize,
    /// Where they begin.
    begin: usize,
}

impl Differences {
    fn parse(bytes: &[u8], signed: bool) -> Result<Differences> {
        let (first, size) = parse_varint(&bytes[2..])?;
        let (step, step_size) = parse_varint(&bytes[2 + size..])?;
        let code = usize::from(bytes[0] >> 1 & 31);
        Ok(Differences {
            first: number(first, signed),
            step: from_zigzag(step),
            width: if code == 0 { 0 } else { WIDTHS[code] },
            begin: 2 + size + step_size,
        })
    }
}

/// How a patched run is laid out.
struct Patched {
    head: Head,
    base_size: usize,
    patch_width: usize,
    /// Of a patch and the gap before it.
    entry_width: usize,
    patches: usize,
}

impl Patched {
    fn parse(bytes: &[u8; 4]) -> Result<Patched> {
        let patch_width = WIDTHS[usize::from(bytes[2] & 31)];
        let gap_width = usize::from(bytes[3] >> 5) + 1;
        let entry_width = WIDTHS
            .into_iter()
            .find(|width| *width >= gap_width + patch_width);
        let patches = usize::from(bytes[3] & 31);
        if patches == 0 {
            return corrupt("a patched run without patches");
        }
        match entry_width {
            Some(entry_width) => Ok(Patched {
                head: Head::of(bytes[0], bytes[1]),
                base_size: usize::from(bytes[2] >> 5) + 1,
                patch_width,
                entry_width,
                patches,
            }),
            None => corrupt("patches of more than 64 bits"),
        }
    }

    /// Where the values begin, where the patches do, and the end.
    fn bounds(&self) -> (usize, usize, usize) {
        let values = 4 + self.base_size;
        let patches = values + packed_size(self.head.width, self.head.count);
        let end = patches + packed_size(self.entry_width, self.patches);
        (values, patches, end)
    }
}

fn packed_size(width: usize, count: usize) -> usize {
    (width * count).div_ceil(8)
}

fn number(stored: u64, signed: bool) -> i64 {
    match signed {
        true => from_zigzag(stored),
        false => stored as i64,
    }
}

pub fn parse(stream: &mut Stream, signed: bool) -> Result<Parsed> {
    let header = stream.need(1)?[0];
    let parsed = match header >> 6 {
        REPEAT => {
            let size = 2 + usize::from(header >> 3 & 7);
            let value = stream.need(size)?[1..].iter();
            let value = value.fold(0, |value, byte| value << 8 | u64::from(*byte));
            return Ok(Parsed {
                count: usize::from(header & 7) + 3,
                size,
                kind: Kind::Sequence {
                    first: number(value, signed),
                    step: 0,
                },
            });
        }
        DIRECT => {
            let head = Head::of(header, stream.need(2)?[1]);
            Parsed {
                count: head.count,
                size: 2 + packed_size(head.width, head.count),
                kind: Kind::Stored,
            }
        }
        PATCHED => {
            let Some(first) = stream.need(4)?.first_chunk() else {
                return corrupt("a run ends before its values");
            };
            let patched = Patched::parse(first)?;
            Parsed {
                count: patched.head.count,
                size: patched.bounds().2,
                kind: Kind::Stored,
            }
        }
        _ => {
            let head = Head::of(header, stream.need(2)?[1]);
            let differences = Differences::parse(stream.fill(2 + 2 * LONGEST_VARINT)?, signed)?;
            let Differences {
                first, step, width, ..
            } = differences;
            let kind = match width {
                0 => Kind::Sequence { first, step },
                _ => Kind::Stored,
            };
            Parsed {
                count: head.count,
                size: differences.begin + packed_size(width, head.count.saturating_sub(2)),
                kind,
            }
        }
    };
    stream.need(parsed.size)?;
    Ok(parsed)
}

/// The values of a run, all of whose bytes are there.
pub fn decode(run: &[u8], signed: bool, values: &mut [i64]) -> Result<()> {
    match run[0] >> 6 {
        DIRECT => {
            let width = Head::of(run[0], run[1]).width;
            unpack(&run[2..], width, values);
            if signed {
                values
                    .iter_mut()
                    .for_each(|value| *value = from_zigzag(*value as u64));
            }
            Ok(())
        }
        PATCHED => decode_patched(run, values),
        _ => decode_differences(run, signed, values),
    }
}

fn decode_patched(run: &[u8], values: &mut [i64]) -> Result<()> {
    let Some(first) = run.first_chunk() else {
        return corrupt("a run ends before its values");
    };
    let patched = Patched::parse(first)?;
    let (begin, patches, end) = patched.bounds();
    let stored = run[4..begin].iter();
    let base = stored.fold(0, |value, byte| value << 8 | u64::from(*byte));
    // The highest bit of the base is its sign.
    let sign = 1 << (8 * patched.base_size - 1);
    let base = match base & sign {
        0 => base as i64,
        _ => ((base & !sign) as i64).wrapping_neg(),
    };
    let width = patched.head.width;
    unpack(&run[begin..patches], width, values);
    let mut entries = [0; MOST_PATCHES];
    let entries = &mut entries[..patched.patches];
    unpack(&run[patches..end], patched.entry_width, entries);
    let mask = u64::MAX >> (64 - patched.patch_width);
    let (mut place, mut following) = (0, 0);
    for (number, &entry) in entries.iter().enumerate() {
        let (gap, patch) = (entry as u64 >> patched.patch_width, entry as u64 & mask);
        let goes_on = patch == 0 && gap == LONGEST_GAP && number + 1 < patched.patches;
        if gap > LONGEST_GAP || (patch == 0 && !goes_on) {
            return Err(ODD_PATCHES);
        }
        place += gap as usize;
        if goes_on {
            continue;
        }
        if place < following {
            return Err(ODD_PATCHES);
        }
        following = place + 1;
        match (values.get_mut(place), patch.checked_shl(width as u32)) {
            (Some(value), Some(patch)) => *value |= patch as i64,
            (None, _) => return corrupt("a patch behind the last value of its run"),
            _ => return Err(Refusal::NotMine("patches of values of 64 bits")),
        }
    }
    for value in values {
        *value = value.wrapping_add(base);
    }
    Ok(())
}

fn decode_differences(run: &[u8], signed: bool, values: &mut [i64]) -> Result<()> {
    let differences = Differences::parse(run, signed)?;
    let [first, second, rest @ ..] = values else {
        values.fill(differences.first);
        return Ok(());
    };
    *first = differences.first;
    *second = first.wrapping_add(differences.step);
    unpack(&run[differences.begin..], differences.width, rest);
    let mut value = *second;
    let falls = differences.step < 0;
    for next in rest {
        value = match falls {
            true => value.wrapping_sub(*next),
            false => value.wrapping_add(*next),
        };
        *next = value;
    }
    Ok(())
}

/// Unpack values; bytes that are missing count as zeros.
fn unpack(bytes: &[u8], width: usize, values: &mut [i64]) {
    macro_rules! by_width {
        ($($width:literal)*) => {
            match width {
                $($width => unpack_groups::<$width>(bytes, values),)*
                _ => values.fill(0),
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 26 28 30 32 40 48 56 64);
}

fn unpack_groups<const WIDTH: usize>(bytes: &[u8], values: &mut [i64]) {
    for (place, group) in values.chunks_mut(GROUP).enumerate() {
        let begin = place * WIDTH;
        if let (Some(window), Ok(group)) = (
            bytes.get(begin..begin + WIDTH + SLACK),
            <&mut [i64; GROUP]>::try_from(&mut *group),
        ) {
            *group = unpack_group::<WIDTH>(window);
        } else {
            let mut padded = [0; 64 + SLACK];
            let rest = &bytes[begin.min(bytes.len())..bytes.len().min(begin + WIDTH)];
            padded[..rest.len()].copy_from_slice(rest);
            let unpacked = unpack_group::<WIDTH>(&padded[..WIDTH + SLACK]);
            group.copy_from_slice(&unpacked[..group.len()]);
        }
    }
}

/// One group; the window has the slack too, so that every load is inside.
#[inline(always)]
fn unpack_group<const WIDTH: usize>(window: &[u8]) -> [i64; GROUP] {
    let window = &window[..WIDTH + SLACK];
    std::array::from_fn(|place| {
        // A value begins and ends within 64 bits: those of more than 57 begin with a byte.
        let (byte, shift) = (place * WIDTH / 8, place * WIDTH % 8);
        let word = u64::from_be_bytes(std::array::from_fn(|at| window[byte + at]));
        (word << shift >> (64 - WIDTH)) as i64
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::orc::int_rle::tests::to_zigzag;
    use crate::orc::int_rle_v1::tests::push_varint;

    fn pack(values: &[u64], width: usize) -> Vec<u8> {
        let mut bits = values
            .iter()
            .flat_map(|value| (0..width).rev().map(move |bit| value >> bit & 1 == 1));
        let mut bytes = vec![0; packed_size(width, values.len())];
        for (place, bit) in bits.by_ref().enumerate() {
            bytes[place / 8] |= u8::from(bit) << (7 - place % 8);
        }
        bytes
    }

    fn code_of(most: u64) -> usize {
        let needed = 64 - most.leading_zeros() as usize;
        WIDTHS.iter().position(|width| *width >= needed).unwrap()
    }

    fn head(kind: u8, code: usize, count: usize) -> [u8; 2] {
        let length = count - 1;
        [
            kind << 6 | (code as u8) << 1 | (length >> 8) as u8,
            length as u8,
        ]
    }

    /// Patches for values above so many bits, at least one; None where that is not possible.
    fn patched(values: &[i64]) -> Option<Vec<u8>> {
        let base = *values.iter().min()?;
        let above: Vec<u64> = values
            .iter()
            .map(|v| v.checked_sub(base).map(|d| d as u64))
            .collect::<Option<_>>()?;
        let width = 8;
        let most = *above.iter().max()?;
        let patch_code = code_of(most >> width);
        if most >> width == 0 || WIDTHS[patch_code] > 48 || base.unsigned_abs() >> 55 != 0 {
            return None;
        }
        let mut entries = vec![];
        let mut before = 0;
        for (place, value) in above.iter().enumerate().filter(|(_, v)| *v >> width != 0) {
            let mut gap = place - before;
            while gap > 255 {
                entries.push(255 << WIDTHS[patch_code]);
                gap -= 255;
            }
            entries.push((gap as u64) << WIDTHS[patch_code] | value >> width);
            before = place;
        }
        if entries.len() > MOST_PATCHES {
            return None;
        }
        let entry_width = WIDTHS.into_iter().find(|w| *w >= 8 + WIDTHS[patch_code])?;
        let mut stored = head(PATCHED, code_of(255), values.len()).to_vec();
        stored.push(7 << 5 | patch_code as u8);
        stored.push(7 << 5 | entries.len() as u8);
        let sign = if base < 0 { 1 << 63 } else { 0 };
        stored.extend((base.unsigned_abs() | sign).to_be_bytes());
        let low: Vec<u64> = above.iter().map(|value| value & 0xFF).collect();
        stored.extend(pack(&low, width));
        stored.extend(pack(&entries, entry_width));
        Some(stored)
    }

    /// Differences with one sign; None where they have both, or are too large.
    fn differences(values: &[i64], signed: bool) -> Option<Vec<u8>> {
        let steps: Vec<i64> = values
            .windows(2)
            .map(|pair| pair[1].checked_sub(pair[0]))
            .collect::<Option<_>>()?;
        let (&step, rest) = steps.split_first()?;
        if rest
            .iter()
            .any(|other| *other != 0 && (*other < 0) != (step < 0))
        {
            return None;
        }
        let sizes: Vec<u64> = rest.iter().map(|step| step.unsigned_abs()).collect();
        let is_fixed = rest.iter().all(|other| *other == step);
        let code = match is_fixed {
            true => 0,
            false => code_of(*sizes.iter().max()?).max(1),
        };
        let mut stored = head(3, code, values.len()).to_vec();
        let first = if signed {
            to_zigzag(values[0])
        } else {
            values[0] as u64
        };
        push_varint(first, &mut stored);
        push_varint(to_zigzag(step), &mut stored);
        if !is_fixed {
            stored.extend(pack(&sizes, WIDTHS[code]));
        }
        Some(stored)
    }

    pub fn encoded(values: &[i64], signed: bool) -> Vec<u8> {
        let written = |value: &i64| {
            if signed {
                to_zigzag(*value)
            } else {
                *value as u64
            }
        };
        let mut stored = vec![];
        let mut rest = values;
        let lengths = [300, 512, 1, 7, 100, 2, 200];
        let mut turn = 0;
        while let Some(first) = rest.first() {
            turn += 1;
            let same = rest.iter().take(10).take_while(|v| *v == first).count();
            if same >= 3 && turn % 2 == 0 {
                let size = (64 - written(first).leading_zeros()).div_ceil(8).max(1) as usize;
                stored.push(((size - 1) << 3 | (same - 3)) as u8);
                stored.extend(&written(first).to_be_bytes()[8 - size..]);
                rest = &rest[same..];
                continue;
            }
            let run = &rest[..rest.len().min(lengths[turn % lengths.len()])];
            let direct = || {
                let run: Vec<u64> = run.iter().map(written).collect();
                let code = code_of(*run.iter().max().unwrap());
                let mut stored = head(DIRECT, code, run.len()).to_vec();
                stored.extend(pack(&run, WIDTHS[code]));
                stored
            };
            let other = differences(run, signed).or_else(|| patched(run));
            stored.extend(other.unwrap_or_else(direct));
            rest = &rest[run.len()..];
        }
        stored
    }

    #[test]
    fn every_kind_of_run_is_met_and_read() {
        let values: Vec<i64> = (0..3_000)
            .map(|i| if i % 250 == 9 { 1 << 30 } else { i % 9 })
            .collect();
        let stored = encoded(&values, true);
        let mut kinds = [0; 4];
        let packing = crate::orc::chunks::tests::PACKINGS[0];
        let mut stream = Stream::new(packing, &stored);
        while !stream.at_hand().is_empty() {
            kinds[usize::from(stream.at_hand()[0] >> 6)] += 1;
            let size = parse(&mut stream, true).unwrap().size;
            stream.pass(size);
        }
        assert!(kinds[1] > 0 && kinds[2] > 0, "{kinds:?}");
        for width in WIDTHS {
            let most = u64::MAX >> (64 - width);
            let values: Vec<u64> = (0..21u64)
                .map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 3) & most)
                .collect();
            let mut found = [0; 21];
            unpack(&pack(&values, width), width, &mut found);
            assert_eq!(found.map(|value| value as u64).to_vec(), values);
        }
    }
}
