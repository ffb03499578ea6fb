//! Snappy, as far as a page is needed: where only its first values are wanted, the rest stays as it
//! is.

use crate::raw::snappy::{Place, decode_elements, decode_pairs};

/// Bytes behind the output that copies of whole chunks may run over.
pub const SLACK: usize = 64;
/// Bytes of output after which it is tried once more whether elements come in equal pairs: soon where
/// they did before, and late where they did not.
const SOON: usize = 1;
const LATE: usize = 2048;
/// Bytes of output that pairs must fill to be worth another try soon.
const WORTHWHILE: usize = 64;

/// Fill the output with the `needed` first of `size` bytes; None for damage.
///
/// The output has room for `SLACK` more, which may be written to.
pub fn decompress(stored: &[u8], size: usize, needed: usize, output: &mut [u8]) -> Option<()> {
    let (told, from) = read_size(stored)?;
    if told != size || needed > size {
        return None;
    }
    let output = output.get_mut(..needed.checked_add(SLACK)?)?;
    let mut place = Place { from, to: 0 };
    let mut stretch = SOON;
    loop {
        let before = place;
        place = decode_elements(stored, output, place, place.to + stretch)?;
        if place == before {
            break;
        }
        let begin = place.to;
        place = decode_pairs(stored, output, place);
        stretch = match place.to - begin {
            0..WORTHWHILE => LATE.min(2 * stretch),
            _ => SOON,
        };
    }
    while place.to < needed {
        place = decode_last(stored, output, place, needed)?;
    }
    let is_exact = place.to == size && place.from == stored.len();
    (needed < size || is_exact).then_some(())
}

/// One of the last elements, byte by byte.
fn decode_last(stored: &[u8], output: &mut [u8], place: Place, needed: usize) -> Option<Place> {
    let Place { from, to } = place;
    let tag = *stored.get(from)? as usize;
    let width = match tag & 3 {
        0 => (tag >> 2).saturating_sub(59),
        1 => 1,
        2 => 2,
        _ => 4,
    };
    let begin = from + 1 + width;
    let mut told = 0;
    for (place, &byte) in stored.get(from + 1..begin)?.iter().enumerate() {
        told |= (byte as usize) << (8 * place);
    }
    if tag & 3 == 0 {
        let length = if width == 0 { tag >> 2 } else { told } + 1;
        let literal = stored.get(begin..)?.get(..length)?;
        let kept = length.min(needed - to);
        output[to..to + kept].copy_from_slice(&literal[..kept]);
        return Some(Place {
            from: begin + length,
            to: to + length,
        });
    }
    let (length, offset) = match tag & 3 {
        1 => (4 + (tag >> 2 & 7), (tag >> 5) << 8 | told),
        _ => ((tag >> 2) + 1, told),
    };
    if offset == 0 || offset > to {
        return None;
    }
    // At most 64 bytes, for which there is room behind the output.
    for place in to..to + length {
        output[place] = output[place - offset];
    }
    Some(Place {
        from: begin,
        to: to + length,
    })
}

/// The size that comes first, and how many bytes tell it.
fn read_size(stored: &[u8]) -> Option<(usize, usize)> {
    let mut size = 0;
    for (place, &byte) in stored.iter().take(5).enumerate() {
        size |= u64::from(byte & 0x7F) << (7 * place);
        if byte < 0x80 {
            return Some((usize::try_from(size).ok()?, place + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of short and long literals, and of copies from near and far.
    fn texts() -> Vec<Vec<u8>> {
        let sorted = (0..9_000u64).flat_map(|i| (i * 3).to_le_bytes()).collect();
        let steady = (0..9_000u64).flat_map(|i| (i * i * 977).to_le_bytes());
        let wide = (0..4_000u128).flat_map(|i| (i << 40 | 7 << 90).to_le_bytes());
        let mixed = |i: u32| i.wrapping_mul(0x9E37_79B9).rotate_left(i % 31) as u8;
        let random = (0..70_000).map(mixed).collect();
        let words =
            (0..8_000u32).flat_map(|i| [b"ab".repeat(i as usize % 9), vec![mixed(i)]].concat());
        let repeated = [vec![7; 5_000], (0..300).map(mixed).collect(), vec![9; 3]].concat();
        vec![
            sorted,
            steady.collect(),
            wide.collect(),
            random,
            words.collect(),
            repeated,
            vec![1],
            vec![],
        ]
    }

    #[test]
    fn the_first_bytes_are_those_of_the_whole() {
        for text in texts() {
            let stored = snap::raw::Encoder::new().compress_vec(&text).unwrap();
            let step = text.len() / 97 + 1;
            for needed in (0..=text.len()).step_by(step).chain([text.len()]) {
                let mut output = vec![0xAA; needed + SLACK];
                let found = decompress(&stored, text.len(), needed, &mut output);
                assert_eq!(found, Some(()));
                assert_eq!(output[..needed], text[..needed]);
            }
        }
    }

    #[test]
    fn damage_is_found_where_another_decoder_finds_it() {
        for text in texts() {
            let stored = snap::raw::Encoder::new().compress_vec(&text).unwrap();
            for at in (0..stored.len()).step_by(stored.len() / 300 + 1) {
                for flip in [0x01, 0x04, 0x80, 0xFF] {
                    let mut damaged = stored.clone();
                    damaged[at] ^= flip;
                    require_same(&damaged, text.len());
                }
                require_same(&stored[..at], text.len());
                require_same(&[&stored[..], &stored[at..at + 1]].concat(), text.len());
            }
        }
    }

    /// Whole pages are what the crate `snap` makes of them; of others the first half is not more.
    fn require_same(stored: &[u8], size: usize) {
        let mut expected = vec![0; size];
        let is_told = snap::raw::decompress_len(stored) == Ok(size);
        let written = snap::raw::Decoder::new().decompress(stored, &mut expected);
        let mut output = vec![0; size + SLACK];
        let found = decompress(stored, size, size, &mut output);
        assert_eq!(found.is_some(), is_told && written.is_ok());
        if found.is_some() {
            assert_eq!(output[..size], expected);
        }
        decompress(stored, size, size / 2, &mut output[..size / 2 + SLACK]);
    }
}
