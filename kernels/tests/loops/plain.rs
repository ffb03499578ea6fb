use crate::{Random, check, damaged, survive};
use fretsaw_kernels::plain::{Booleans, Bytes, Fixed, FixedBytes};

#[test]
fn values_of_fixed_width_come_as_they_are() {
    let mut random = Random::new(5);
    for width in 1..=20 {
        for count in [0, 1, 7, 500] {
            let bytes: Vec<u8> = (0..width * count).map(|_| random.word() as u8).collect();
            let open = |bytes, count| FixedBytes::new(bytes, width, count);
            check(&bytes, &bytes, width, open, &mut random);
            match width {
                4 => check(&bytes, &bytes, 4, Fixed::<4>::new, &mut random),
                8 => check(&bytes, &bytes, 8, Fixed::<8>::new, &mut random),
                12 => check(&bytes, &bytes, 12, Fixed::<12>::new, &mut random),
                _ => {}
            }
        }
    }
    assert!(FixedBytes::new(&[0; 10], usize::MAX, 3).is_err());
}

#[test]
fn byte_arrays_follow_their_lengths() {
    let mut random = Random::new(6);
    for _ in 0..40 {
        let count = random.below_some(&[10, 1000]);
        let most = [1, 10, 100][random.below(3)];
        let values: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                (0..random.below(most))
                    .map(|_| random.word() as u8)
                    .collect()
            })
            .collect();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| [&(value.len() as u32).to_le_bytes(), value.as_slice()].concat())
            .collect();
        check(&bytes, &values, 1, Bytes::new, &mut random);
        let mut visited = Vec::new();
        let mut decoder = Bytes::new(&bytes, count).unwrap();
        decoder
            .visit(count, |value| visited.push(value.to_vec()))
            .unwrap();
        assert_eq!(visited, values);
        for _ in 0..50 {
            if !bytes.is_empty() {
                let bytes = damaged(&bytes, &mut random);
                survive(Bytes::new(&bytes, count), count, 1, &mut random);
            }
        }
    }
}

#[test]
fn booleans_are_bits() {
    let mut random = Random::new(7);
    for _ in 0..40 {
        let count = random.below(1000);
        let bytes: Vec<u8> = (0..count.div_ceil(8))
            .map(|_| random.word() as u8)
            .collect();
        let values: Vec<bool> = (0..count)
            .map(|place| bytes[place / 8] >> (place % 8) & 1 == 1)
            .collect();
        check(&bytes, &values, 1, Booleans::new, &mut random);
    }
}
