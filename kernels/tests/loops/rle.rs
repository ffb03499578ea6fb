use crate::{Random, check, damaged, survive};
use fretsaw_kernels::output::Decoder;
use fretsaw_kernels::rle::{Booleans, EncodedRun, Indices};

/// Bits one after the other, the first in the lowest bit.
pub fn pack(values: &[u64], width: usize) -> Vec<u8> {
    let mut bytes = vec![0; (values.len() * width).div_ceil(8)];
    for (place, value) in values.iter().enumerate() {
        for bit in 0..width {
            let at = place * width + bit;
            bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
        }
    }
    bytes
}

pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Values in runs of both kinds, as a writer chooses them.
fn encode(count: usize, width: usize, random: &mut Random) -> (Vec<u8>, Vec<u32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    let kinds = random.below(3);
    while values.len() < count {
        if kinds == 0 || (kinds == 2 && random.below(2) == 0) {
            let value = random.of_bits(width) as u32;
            let length = 1 + random.below_some(&[3, 30, 3000]);
            bytes.extend(varint((length as u64) << 1));
            bytes.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8)]);
            values.extend(vec![value; length]);
        } else {
            let groups = 1 + random.below_some(&[2, 10, 200]);
            let group: Vec<u64> = (0..groups * 8).map(|_| random.of_bits(width)).collect();
            bytes.extend(varint((groups as u64) << 1 | 1));
            bytes.extend(pack(&group, width));
            values.extend(group.iter().map(|value| *value as u32));
        }
    }
    values.truncate(count);
    (bytes, values)
}

#[test]
fn indices_of_every_width_come_as_they_were_encoded() {
    let mut random = Random::new(2);
    for width in 0..=32 {
        for _ in 0..6 {
            let count = random.below_some(&[20, 3000]);
            let (bytes, values) = encode(count, width, &mut random);
            let open = |bytes, count| Indices::new(bytes, width, count);
            check(&bytes, &values, 1, open, &mut random);
            for _ in 0..50 {
                if !bytes.is_empty() {
                    let bytes = damaged(&bytes, &mut random);
                    survive(Indices::new(&bytes, width, count), count, 1, &mut random);
                }
            }
        }
    }
}

#[test]
fn runs_are_seen_as_they_are_encoded() {
    let mut random = Random::new(3);
    for width in 0..=32 {
        let (bytes, values) = encode(2000, width, &mut random);
        let mut indices = Indices::new(&bytes, width, values.len()).unwrap();
        let mut seen: Vec<u32> = Vec::new();
        while seen.len() < values.len() {
            match indices.next_run(1 + random.below(300)).unwrap() {
                EncodedRun::Repeated { value, count } => seen.extend(vec![value; count]),
                EncodedRun::Packed(run) => {
                    let mut group = vec![0; run.count];
                    run.unpack(&mut group);
                    let single: Vec<u32> = (0..run.count).map(|index| run.get(index)).collect();
                    assert_eq!(group, single);
                    seen.extend(group);
                }
            }
            assert_eq!(indices.position(), seen.len());
        }
        assert_eq!(seen, values);
        assert_eq!(indices.next_run(10).unwrap().count(), 0);
    }
}

#[test]
fn groups_are_whole() {
    let bytes = [3, 0b0010_0001, 0b11]; // eight values of three bits, of which five are there
    for wanted in [1, 3, 6] {
        let mut indices = Indices::new(&bytes, 3, wanted).unwrap();
        assert!(indices.read(wanted, &mut Vec::new()).is_err());
    }
    let more = [5, 0b0010_0001, 0b11, 0]; // two groups, of which one is there
    assert!(Indices::new(&more, 3, 8).unwrap().skip(8).is_err());
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(Indices::new(&[], 33, 1).is_err());
    assert!(Indices::of_page(&[33, 2, 0], 1).is_err());
    assert!(Indices::of_page(&[], 1).is_err());
    assert!(Indices::of_page(&[], 0).is_ok());
    let runs_of_nothing = [0; 9];
    assert!(
        Indices::new(&runs_of_nothing, 0, 1)
            .unwrap()
            .skip(1)
            .is_err()
    );
    let endless = [0xff; 20];
    assert!(Indices::new(&endless, 8, 1).unwrap().skip(1).is_err());
}

#[test]
fn booleans_in_runs_become_bits() {
    let mut random = Random::new(4);
    for _ in 0..40 {
        let count = random.below_some(&[20, 2000]);
        let (runs, values) = encode(count, 1, &mut random);
        let bytes = [(runs.len() as u32).to_le_bytes().as_slice(), &runs].concat();
        let values: Vec<bool> = values.iter().map(|value| *value == 1).collect();
        check(&bytes, &values, 1, Booleans::new, &mut random);
        for _ in 0..50 {
            let bytes = damaged(&bytes, &mut random);
            survive(Booleans::new(&bytes, count), count, 1, &mut random);
        }
    }
}
