use crate::{Random, check};
use fretsaw_kernels::byte_stream_split::Split;
use fretsaw_kernels::error::Refusal;

#[test]
fn split_values_are_put_together() {
    let mut random = Random::new(8);
    for width in 1..=20 {
        for count in [0, 1, 7, 33, 500] {
            let values: Vec<u8> = (0..width * count).map(|_| random.word() as u8).collect();
            let bytes: Vec<u8> = (0..width)
                .flat_map(|place| values.iter().skip(place).step_by(width))
                .copied()
                .collect();
            let open = |bytes, count| Split::new(bytes, width, count);
            check(&bytes, &values, width, open, &mut random);
        }
    }
}

#[test]
fn other_sizes_are_refused() {
    assert!(Split::new(&[0; 8], 0, 0).is_err());
    assert!(matches!(
        Split::new(&[0; 7], 4, 1),
        Err(Refusal::Corrupt(_))
    ));
    assert!(matches!(
        Split::new(&[0; 8], 4, 3),
        Err(Refusal::Corrupt(_))
    ));
    assert!(matches!(
        Split::new(&[0; 8], 4, 1),
        Err(Refusal::NotMine(_))
    ));
}
