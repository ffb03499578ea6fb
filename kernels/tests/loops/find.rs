use crate::Random;
use crate::rle::{pack, varint};
use fretsaw_kernels::codec::{Codec, Decompressor};
use fretsaw_kernels::dictionary::Dictionary;
use fretsaw_kernels::error::Result;
use fretsaw_kernels::find::{Finder, Matches, is_outside, rows_of_values};
use fretsaw_kernels::output::{Bits, Run};
use fretsaw_kernels::pages::{Kind, Page};
use fretsaw_kernels::select::Picks;
use fretsaw_kernels::value_set::{Cuts, NAN_KEY, Order, ValueSet};
use fretsaw_kernels::values::{Encoded, Form, Physical, Target};

const PLAIN: i64 = 0;
const RLE_DICTIONARY: i64 = 8;
const BYTE_STREAM_SPLIT: i64 = 9;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i128),
    Bytes(Vec<u8>),
}

/// A type, how its values compare, and some of them: the stored bytes with their keys.
struct Sample {
    form: Form,
    order: Order,
    values: Vec<(Vec<u8>, Key)>,
}

fn double_key(value: f64) -> i128 {
    let bits = value.to_bits() as i64;
    if value.is_nan() {
        return NAN_KEY;
    }
    i128::from(if bits >= 0 { bits } else { bits ^ i64::MAX })
}

fn number(value: impl Into<i128>) -> Key {
    Key::Number(value.into())
}

/// Integers that are often equal, near, or at an end.
fn integer(random: &mut Random) -> i64 {
    let ends = [0, 1, -1, i64::MIN, i64::MAX, i64::from(i32::MIN), 1 << 31];
    match random.below(4) {
        0 => ends[random.below(ends.len())],
        1 => random.below(10) as i64 - 5,
        2 => random.of_bits(20) as i64 - 500_000,
        _ => random.word() as i64,
    }
}

fn double(random: &mut Random) -> f64 {
    let ends = [
        0.0,
        -0.0,
        1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        1e-310,
    ];
    match random.below(3) {
        0 => ends[random.below(ends.len())],
        1 => random.below(10) as f64 - 5.0,
        _ => f64::from_bits(random.word()),
    }
}

fn text(random: &mut Random) -> Vec<u8> {
    let length = random.below_some(&[3, 12, 30]);
    (0..length)
        .map(|_| b"ab\xff\0"[random.below_some(&[1, 4])])
        .collect()
}

fn sample(kind: usize, count: usize, random: &mut Random) -> Option<Sample> {
    use Physical::{Boolean, ByteArray, Double, FixedBytes, Float, Int32, Int64};
    let signed = Order::Signed;
    let (physical, target, order) = [
        (Int32, Target::Copy, signed),
        (Int32, Target::Copy, Order::Unsigned),
        (Int64, Target::Copy, signed),
        (Int64, Target::Copy, Order::Unsigned),
        (Int32, Target::Narrow(1), signed),
        (Int32, Target::Narrow(2), Order::Unsigned),
        (Float, Target::Copy, Order::Float),
        (Double, Target::Copy, Order::Float),
        (FixedBytes(2), Target::Copy, Order::Float),
        (Int32, Target::Decimal(16), signed),
        (Int64, Target::Decimal(16), signed),
        (FixedBytes(5), Target::Decimal(16), signed),
        (FixedBytes(16), Target::Decimal(16), signed),
        (ByteArray, Target::Decimal(16), signed),
        (Boolean, Target::Bits, Order::Unsigned),
        (ByteArray, Target::Bytes, Order::Bytes),
        (FixedBytes(6), Target::Copy, Order::Bytes),
    ]
    .get(kind)
    .copied()?;
    let mut value = || {
        let value = integer(random);
        match (physical, target, order) {
            (Int32, Target::Narrow(1), _) => (
                (value as i8 as i32).to_le_bytes().to_vec(),
                number(value as i8),
            ),
            (Int32, Target::Narrow(2), _) => (
                (value as u16 as i32).to_le_bytes().to_vec(),
                number(value as u16),
            ),
            (Int32, _, Order::Unsigned) => {
                ((value as u32).to_le_bytes().to_vec(), number(value as u32))
            }
            (Int32, ..) => ((value as i32).to_le_bytes().to_vec(), number(value as i32)),
            (Int64, _, Order::Unsigned) => (value.to_le_bytes().to_vec(), number(value as u64)),
            (Int64, ..) => (value.to_le_bytes().to_vec(), number(value)),
            (Float, ..) => {
                let value = double(random) as f32;
                (
                    value.to_le_bytes().to_vec(),
                    number(double_key(f64::from(value))),
                )
            }
            (Double, ..) => {
                let value = double(random);
                (value.to_le_bytes().to_vec(), number(double_key(value)))
            }
            (FixedBytes(2), ..) => {
                let (bits, value) = half(random);
                (bits.to_le_bytes().to_vec(), number(double_key(value)))
            }
            (FixedBytes(5), ..) => {
                let value = value >> 24;
                (value.to_be_bytes()[3..].to_vec(), number(value))
            }
            (FixedBytes(16), ..) => {
                let value = i128::from(value) << random.below_some(&[1, 64]);
                (value.to_be_bytes().to_vec(), number(value))
            }
            (ByteArray, Target::Decimal(_), _) => {
                let bytes = value.to_be_bytes();
                (bytes[..=random.below(8)].to_vec(), number(0)) // the key follows
            }
            (Boolean, ..) => (vec![(value & 1) as u8], number(value & 1)),
            (FixedBytes(width), ..) => {
                let mut value = text(random);
                value.resize(width, b'c');
                (value.clone(), Key::Bytes(value))
            }
            _ => {
                let value = text(random);
                (value.clone(), Key::Bytes(value))
            }
        }
    };
    let mut values: Vec<(Vec<u8>, Key)> = (0..count).map(|_| value()).collect();
    if let (ByteArray, Target::Decimal(_)) = (physical, target) {
        for (stored, key) in &mut values {
            let start = if stored[0] > 0x7f { -1 } else { 0 };
            let folded = stored
                .iter()
                .fold(start, |number, byte| number << 8 | i128::from(*byte));
            *key = Key::Number(folded);
        }
    }
    let form = Form::new(physical, target, false).unwrap();
    Some(Sample {
        form,
        order,
        values,
    })
}

/// A float of 16 bits that is as likely to be special as not.
fn half(random: &mut Random) -> (u16, f64) {
    let bits = [
        0,
        0x8000,
        0x7c00,
        0xfc00,
        0x7e00,
        0xfe00,
        1,
        0x8001,
        random.word() as u16,
    ];
    let bits = bits[random.below_some(&[bits.len(), bits.len()])];
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction / 1024.0 * 2f64.powi(-14),
        31 if fraction > 0.0 => f64::NAN,
        31 => f64::INFINITY,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    (bits, if bits >> 15 == 1 { -size } else { size })
}

/// A set whose cuts are often keys of values.
fn set(sample: &Sample, random: &mut Random) -> ValueSet {
    let count = random.below_some(&[2, 3, 10]);
    let mut cuts: Vec<Key> = Vec::new();
    for _ in 0..count {
        let keys = sample.values.len();
        let near = random.below(3) as i128 - 1;
        cuts.push(
            match (&sample.values[random.below(keys)].1, random.below(3)) {
                (Key::Number(_), 0) => Key::Number(i128::from(integer(random)) * (near + 2) * 4),
                (Key::Number(key), _) => Key::Number(key + near),
                (Key::Bytes(_), 0) => Key::Bytes(text(random)),
                (Key::Bytes(key), _) => Key::Bytes(key[..random.below(key.len() + 1)].to_vec()),
            },
        );
    }
    if random.below(3) == 0 {
        let key = &sample.values[random.below(sample.values.len())].1;
        cuts = vec![key.clone(), following(key)]; // one value
    }
    cuts.sort();
    cuts.dedup();
    ValueSet {
        order: sample.order,
        cuts: match sample.order {
            Order::Bytes => Cuts::Bytes(
                cuts.into_iter()
                    .map(|cut| match cut {
                        Key::Bytes(cut) => cut,
                        Key::Number(_) => unreachable!(),
                    })
                    .collect(),
            ),
            _ => Cuts::Numbers(
                cuts.into_iter()
                    .map(|cut| match cut {
                        Key::Number(cut) => cut,
                        Key::Bytes(_) => unreachable!(),
                    })
                    .collect(),
            ),
        },
        begins_inside: random.below(2) == 1,
    }
}

fn following(key: &Key) -> Key {
    match key {
        Key::Number(key) => Key::Number(key + 1),
        Key::Bytes(key) => Key::Bytes([key, [0].as_slice()].concat()),
    }
}

fn contains(set: &ValueSet, key: &Key) -> bool {
    let passed = match (&set.cuts, key) {
        (Cuts::Numbers(cuts), Key::Number(key)) => cuts.iter().filter(|cut| *cut <= key).count(),
        (Cuts::Bytes(cuts), Key::Bytes(key)) => cuts.iter().filter(|cut| *cut <= key).count(),
        _ => unreachable!(),
    };
    set.begins_inside ^ (passed % 2 == 1)
}

/// The values as a page stores them.
fn encode_plain(sample: &Sample) -> Vec<u8> {
    if sample.form == Form::new(Physical::Boolean, Target::Bits, false).unwrap() {
        let bits: Vec<u64> = sample
            .values
            .iter()
            .map(|(stored, _)| stored[0].into())
            .collect();
        return pack(&bits, 1);
    }
    let is_fixed = !matches!(sample.order, Order::Bytes) || sample.form.copied_width().is_some();
    let by_length = Form::new(Physical::ByteArray, Target::Decimal(16), false).unwrap();
    let mut bytes = Vec::new();
    for (stored, _) in &sample.values {
        if !is_fixed || sample.form == by_length {
            bytes.extend((stored.len() as u32).to_le_bytes());
        }
        bytes.extend(stored);
    }
    bytes
}

/// Indices in runs of both kinds, behind their width.
fn encode_indices(indices: &[u32], num_entries: usize, random: &mut Random) -> Vec<u8> {
    let width = (usize::BITS - num_entries.leading_zeros()) as usize;
    let mut bytes = vec![width as u8];
    let mut rest = indices;
    while !rest.is_empty() {
        let same = rest.iter().take_while(|index| **index == rest[0]).count();
        if same > 3 {
            bytes.extend(varint((same as u64) << 1));
            bytes.extend_from_slice(&rest[0].to_le_bytes()[..width.div_ceil(8)]);
            rest = &rest[same..];
        } else {
            let count = (8 + 8 * random.below_some(&[2, 200])).min(rest.len().next_multiple_of(8));
            let (packed, behind) = rest.split_at(count.min(rest.len()));
            let mut packed: Vec<u64> = packed.iter().map(|index| (*index).into()).collect();
            packed.resize(count, 0);
            bytes.extend(varint((count as u64 / 8) << 1 | 1));
            bytes.extend(pack(&packed, width));
            rest = behind;
        }
    }
    bytes
}

fn load<'a>(form: &Form, stored: &'a [u8], count: usize) -> Result<Dictionary<'a>> {
    let mut dictionary = Dictionary::default();
    dictionary.offer(Page {
        kind: Kind::Dictionary,
        num_values: count,
        encoding: PLAIN,
        size: stored.len(),
        checksum: None,
        body: stored,
    })?;
    let mut decompressor = Decompressor::of_thread();
    dictionary.load(form, Codec::Uncompressed, false, &mut decompressor)?;
    Ok(dictionary)
}

/// The wanted values that are in the set, and whether there are others.
fn expect(set: &ValueSet, keys: &[&Key], runs: &[Run]) -> (Vec<u32>, bool) {
    let wanted = runs.iter().flat_map(|run| run.start..run.end);
    let (inside, others): (Vec<u32>, Vec<u32>) =
        wanted.partition(|place| contains(set, keys[*place as usize]));
    (inside, !others.is_empty())
}

fn check(
    set: &ValueSet,
    form: Form,
    page: Encoded,
    keys: &[&Key],
    dictionary: &mut Dictionary,
    random: &mut Random,
) {
    let mut finder = Finder::new(set, form).unwrap();
    for _ in 0..4 {
        let runs = random.runs(keys.len());
        let everything = [Run {
            start: 0,
            end: keys.len() as u32,
        }];
        let (picks, runs) = match random.below(4) {
            0 => (Picks::All(keys.len()), &everything[..]),
            _ => (Picks::Runs(&runs), &runs[..]),
        };
        let mut found = Vec::new();
        finder.find(page, picks, dictionary, &mut found).unwrap();
        assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
        let places: Vec<u32> = found.iter().flat_map(|run| run.start..run.end).collect();
        let (inside, others) = expect(set, keys, runs);
        assert_eq!(places, inside);
        assert_eq!(
            is_outside(set, form, page, picks, dictionary).unwrap(),
            others
        );
    }
}

#[test]
fn values_of_every_type_are_found_in_every_encoding() {
    let mut random = Random::new(12);
    for kind in 0..17 {
        for _ in 0..60 {
            let count = 1 + random.below_some(&[10, 200, 700]);
            let sample = sample(kind, count, &mut random).unwrap();
            let stored = encode_plain(&sample);
            let keys: Vec<&Key> = sample.values.iter().map(|(_, key)| key).collect();
            let set = set(&sample, &mut random);
            let plain = Encoded {
                encoding: PLAIN,
                bytes: &stored,
                num_values: count,
            };
            let mut none = Dictionary::default();
            check(&set, sample.form, plain, &keys, &mut none, &mut random);
            if let Some(width) = sample.form.copied_width() {
                let bytes: Vec<u8> = (0..width)
                    .flat_map(|place| stored.iter().skip(place).step_by(width).copied())
                    .collect();
                let split = Encoded {
                    encoding: BYTE_STREAM_SPLIT,
                    bytes: &bytes,
                    num_values: count,
                };
                check(&set, sample.form, split, &keys, &mut none, &mut random);
            }
            if kind == 14 {
                continue; // booleans have no dictionary
            }
            let mut dictionary = load(&sample.form, &stored, count).unwrap();
            let limit = 1 + random.below(count);
            let mut indices: Vec<u32> = Vec::new();
            while indices.len() < 500 {
                let length = 1 + random.below_some(&[1, 1, 50]);
                indices.extend(vec![random.below(limit) as u32; length]);
            }
            let bytes = encode_indices(&indices, count, &mut random);
            let keys: Vec<&Key> = indices.iter().map(|index| keys[*index as usize]).collect();
            let page = Encoded {
                encoding: RLE_DICTIONARY,
                bytes: &bytes,
                num_values: indices.len(),
            };
            check(&set, sample.form, page, &keys, &mut dictionary, &mut random);
        }
    }
}

#[test]
fn indices_behind_the_last_entry_are_refused() {
    let mut random = Random::new(13);
    let form = Form::new(Physical::Int32, Target::Copy, false).unwrap();
    let stored: Vec<u8> = (0..5i32).flat_map(i32::to_le_bytes).collect();
    let mut dictionary = load(&form, &stored, 5).unwrap();
    let set = ValueSet {
        order: Order::Signed,
        cuts: Cuts::Numbers(vec![2, 3]),
        begins_inside: false,
    };
    for indices in [vec![1, 2, 3, 5, 1, 2, 4, 1], vec![5; 10]] {
        let bytes = encode_indices(&indices, 5, &mut random);
        let page = Encoded {
            encoding: RLE_DICTIONARY,
            bytes: &bytes,
            num_values: indices.len(),
        };
        let picks = Picks::All(indices.len());
        let mut finder = Finder::new(&set, form).unwrap();
        assert!(
            finder
                .find(page, picks, &dictionary, &mut Vec::new())
                .is_err()
        );
        assert!(is_outside(&set, form, page, picks, &mut dictionary).is_err());
        let none = Dictionary::default();
        let mut finder = Finder::new(&set, form).unwrap();
        assert!(finder.find(page, picks, &none, &mut Vec::new()).is_err());
    }
}

#[test]
fn rows_are_those_that_have_the_values() {
    let mut random = Random::new(14);
    for _ in 0..300 {
        let count = random.below_some(&[5, 130, 500]);
        let nulls = [1, 2, 20][random.below(3)];
        let mut present = Bits::default();
        (0..count).for_each(|_| present.push(random.below(nulls + 1) > 0));
        let rows: Vec<u32> = (0..count as u32)
            .filter(|row| present.get(*row as usize))
            .collect();
        let values = random.runs(rows.len());
        let mut found = Vec::new();
        rows_of_values(&present, &values, &mut found);
        let found: Vec<u32> = found.iter().flat_map(|run| run.start..run.end).collect();
        let wanted = values.iter().flat_map(|run| run.start..run.end);
        let expected: Vec<u32> = wanted.map(|value| rows[value as usize]).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn matches_are_counted_among_the_wanted_rows() {
    let mut random = Random::new(15);
    for _ in 0..300 {
        let mut matches = Matches::default();
        let mut expected = Vec::new();
        let mut before = 0;
        for _ in 0..3 {
            let wanted = random.runs(200);
            let rows: Vec<u32> = wanted.iter().flat_map(|run| run.start..run.end).collect();
            let mut kept: Vec<Run> = Vec::new();
            for (place, row) in rows.iter().enumerate() {
                if random.below(3) > 0 {
                    expected.push(before + place as i64);
                    match kept.last_mut() {
                        Some(run) if run.end == *row => run.end += 1,
                        _ => kept.push(Run {
                            start: *row,
                            end: row + 1,
                        }),
                    }
                }
            }
            before += rows.len() as i64;
            matches.append(&wanted, &kept);
        }
        let runs = matches.starts.iter().zip(&matches.ends);
        let found: Vec<i64> = runs.flat_map(|(start, end)| *start..*end).collect();
        assert_eq!(found, expected);
        assert!(
            matches
                .starts
                .iter()
                .skip(1)
                .zip(&matches.ends)
                .all(|(next, end)| next > end)
        );
    }
}
