use crate::{Listed, Random};
use fretsaw_kernels::output::{Bits, ByteArrays};

#[test]
fn bits_are_appended_one_by_one_in_runs_and_from_anywhere() {
    let mut random = Random::new(1);
    for _ in 0..500 {
        let (mut bits, mut expected) = (Bits::default(), Vec::new());
        let source: Vec<u8> = (0..40).map(|_| random.word() as u8).collect();
        for _ in 0..random.below(12) {
            let bit = random.below(2) == 1;
            match random.below(3) {
                0 => {
                    bits.push(bit);
                    expected.push(bit);
                }
                1 => {
                    let count = random.below(40);
                    bits.push_run(bit, count);
                    expected.extend(vec![bit; count]);
                }
                _ => {
                    let offset = random.below(source.len() * 8);
                    let count = random.below(source.len() * 8 - offset + 1);
                    bits.extend(&source, offset, count);
                    let places = offset..offset + count;
                    expected.extend(places.map(|place| source[place / 8] >> (place % 8) & 1 == 1));
                }
            }
        }
        assert_eq!(bits.list(), expected);
        assert!(
            expected
                .iter()
                .enumerate()
                .all(|(place, bit)| bits.get(place) == *bit)
        );
    }
}

#[test]
fn parts_of_a_source_are_appended_wherever_they_lie() {
    let source: Vec<u8> = (0..100).collect();
    let (mut arrays, mut expected) = (ByteArrays::default(), Vec::new());
    for begin in 0..=source.len() {
        for end in begin..=source.len() {
            arrays.push_part(&source, begin, end).unwrap();
            arrays.push(&source[begin..end]).unwrap();
            expected.extend([source[begin..end].to_vec(), source[begin..end].to_vec()]);
        }
    }
    assert_eq!(arrays.list(), expected);
}
