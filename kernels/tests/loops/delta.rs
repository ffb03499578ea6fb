use crate::rle::{pack, varint};
use crate::{Random, check, damaged, survive};
use fretsaw_kernels::delta::{LengthBytes, Packed, PrefixBytes};
use fretsaw_kernels::error::Result;
use fretsaw_kernels::output::Decoder;

fn zigzag(value: i64) -> Vec<u8> {
    varint((value << 1 ^ value >> 63) as u64)
}

/// Integers of so many bits, as their lowest ones, in blocks of any allowed size.
fn encode(values: &[i64], bits: u32, random: &mut Random) -> Vec<u8> {
    let miniblocks = [1, 2, 4, 8][random.below(4)];
    let miniblock_size = [32, 64, 128][random.below(3)].max(128 / miniblocks);
    let cut = |value: i64| value << (64 - bits) >> (64 - bits);
    let mut bytes = varint((miniblocks * miniblock_size) as u64);
    bytes.extend(varint(miniblocks as u64));
    bytes.extend(varint(values.len() as u64));
    bytes.extend(zigzag(values.first().copied().unwrap_or(0)));
    let pairs = values.windows(2);
    let deltas: Vec<i64> = pairs
        .map(|pair| cut(pair[1].wrapping_sub(pair[0])))
        .collect();
    for block in deltas.chunks(miniblocks * miniblock_size) {
        let least = *block.iter().min().unwrap();
        let mask = u64::MAX >> (64 - bits);
        let above: Vec<u64> = block
            .iter()
            .map(|delta| delta.wrapping_sub(least) as u64 & mask)
            .collect();
        let width = |part: &[u64]| 64 - part.iter().max().unwrap().leading_zeros() as usize;
        let widths: Vec<usize> = above.chunks(miniblock_size).map(width).collect();
        bytes.extend(zigzag(least));
        let unused = random.word() as u8; // the width of a miniblock without values is anything
        bytes.extend((0..miniblocks).map(|place| widths.get(place).map_or(unused, |w| *w as u8)));
        for (part, width) in above.chunks(miniblock_size).zip(widths) {
            let mut part = part.to_vec();
            part.resize(miniblock_size, 0);
            bytes.extend(pack(&part, width));
        }
    }
    bytes
}

/// Integers that climb, jump, stay or fill all of their bits.
fn integers(count: usize, bits: u32, random: &mut Random) -> Vec<i64> {
    let kind = random.below(4);
    let width = random.below(bits as usize + 1);
    let mut last = 0i64;
    (0..count)
        .map(|_| {
            let next = random.of_bits(width) as i64;
            last = match kind {
                0 => next,
                1 => last.wrapping_add(next),
                2 => last.wrapping_sub(next),
                _ if random.below(50) == 0 => random.word() as i64,
                _ => last,
            };
            last << (64 - bits) >> (64 - bits)
        })
        .collect()
}

fn counts(random: &mut Random) -> usize {
    [random.below(5), random.below(300), random.below(3000)][random.below(3)]
}

#[test]
fn integers_are_sums_of_their_deltas() {
    let mut random = Random::new(9);
    for _ in 0..150 {
        let count = counts(&mut random);
        let values = integers(count, 32, &mut random);
        let bytes = encode(&values, 32, &mut random);
        let stored: Vec<u8> = values
            .iter()
            .flat_map(|v| (*v as i32).to_le_bytes())
            .collect();
        check(&bytes, &stored, 4, Packed::<u32>::new, &mut random);
        let values = integers(count, 64, &mut random);
        let bytes = encode(&values, 64, &mut random);
        let stored: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        check(&bytes, &stored, 8, Packed::<u64>::new, &mut random);
        for _ in 0..50 {
            let bytes = damaged(&bytes, &mut random);
            survive(Packed::<u64>::new(&bytes, count), count, 8, &mut random);
            survive(Packed::<u32>::new(&bytes, count), count, 4, &mut random);
        }
    }
}

fn encode_lengths(lengths: impl Iterator<Item = usize>, random: &mut Random) -> Vec<u8> {
    let lengths: Vec<i64> = lengths.map(|length| length as i64).collect();
    encode(&lengths, 32, random)
}

fn encode_texts(values: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let lengths = encode_lengths(values.iter().map(Vec::len), random);
    [lengths, values.concat()].concat()
}

/// Byte arrays some of which begin as the one before.
fn texts(count: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let most = [1, 10, 100][random.below(3)];
    let mut last: Vec<u8> = Vec::new();
    (0..count)
        .map(|_| {
            last.truncate(random.below(most));
            last.extend((0..random.below(most)).map(|_| random.word() as u8));
            last.clone()
        })
        .collect()
}

#[test]
fn byte_arrays_follow_all_lengths() {
    let mut random = Random::new(10);
    for _ in 0..40 {
        let count = counts(&mut random);
        let values = texts(count, &mut random);
        let bytes = encode_texts(&values, &mut random);
        check(&bytes, &values, 1, LengthBytes::new, &mut random);
        for _ in 0..50 {
            let bytes = damaged(&bytes, &mut random);
            survive(LengthBytes::new(&bytes, count), count, 1, &mut random);
        }
    }
}

#[test]
fn byte_arrays_share_beginnings() {
    let mut random = Random::new(11);
    for _ in 0..40 {
        let count = counts(&mut random);
        let values = texts(count, &mut random);
        let mut last: &[u8] = &[];
        let mut prefixes = Vec::new();
        for value in &values {
            let pairs = last.iter().zip(value);
            prefixes.push(pairs.take_while(|(left, right)| left == right).count());
            last = value;
        }
        let pairs = values.iter().zip(&prefixes);
        let suffixes: Vec<Vec<u8>> = pairs.map(|(value, at)| value[*at..].to_vec()).collect();
        let mut bytes = encode_lengths(prefixes.into_iter(), &mut random);
        bytes.extend(encode_texts(&suffixes, &mut random));
        check(&bytes, &values, 1, PrefixBytes::new, &mut random);
        for _ in 0..50 {
            let bytes = damaged(&bytes, &mut random);
            survive(PrefixBytes::new(&bytes, count), count, 1, &mut random);
        }
    }
}

fn head(block_size: u64, miniblocks: u64, count: u64) -> Vec<u8> {
    [
        varint(block_size),
        varint(miniblocks),
        varint(count),
        vec![0],
    ]
    .concat()
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let open =
        |head: &[u8], count| -> Result<usize> { Ok(Packed::<u64>::new(head, count)?.num_values) };
    assert_eq!(open(&head(128, 4, 1), 1).unwrap(), 1);
    assert_eq!(open(&[], 0).unwrap(), 0);
    for (block_size, miniblocks) in [(0, 1), (100, 1), (128, 0), (128, 3), (128, 8), (1 << 32, 1)] {
        assert!(open(&head(block_size, miniblocks, 1), 1).is_err());
    }
    assert!(open(&head(128, 4, 1), 2).is_err());
    assert!(open(&head(128, 4, 1 << 33), 2).is_err());
    assert!(open(&[], 1).is_err());
}

#[test]
fn many_values_that_are_not_there_take_no_memory() {
    let count = u32::MAX as usize;
    let bytes = [head(1 << 31, 1, count as u64), vec![0, 32]].concat();
    assert!(
        Packed::<u32>::new(&bytes, count)
            .unwrap()
            .skip(count)
            .is_err()
    );
    assert!(LengthBytes::new(&bytes, count).is_err());
    let wide = [head(128, 1, 9), vec![0, 65], vec![0; 2000]].concat();
    assert!(Packed::<u64>::new(&wide, 9).unwrap().skip(9).is_err());
}
