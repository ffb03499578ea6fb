//! Snappy that stops early: where only the first values of a page are wanted, the rest of it stays
//! as it is. For whole pages the crate `snap` is as fast.

/// Bytes behind the output that copies of whole chunks may run over.
pub const SLACK: usize = 64;
/// Bytes that the longest element takes but for long literals, with room for a chunk.
const LONGEST: usize = 72;

/// Fill the output with at least the `needed` first of `size` bytes; returns how many, or None for
/// damage. The output has room for `SLACK` more.
pub fn decompress_first(
    stored: &[u8],
    size: usize,
    needed: usize,
    output: &mut [u8],
) -> Option<usize> {
    let (told, mut from) = read_size(stored)?;
    if told != size || needed > size || output.len() < needed.checked_add(SLACK)? {
        return None;
    }
    let mut to = 0;
    while to < needed {
        let tag = *stored.get(from)? as usize;
        let may_run_over = from + LONGEST <= stored.len();
        if tag & 3 == 0 {
            let length = (tag >> 2) + 1;
            if length <= 16 && may_run_over {
                copy_chunk::<16>(stored.get(from + 1..)?, output.get_mut(to..)?)?;
                (from, to) = (from + 1 + length, to + length);
            } else {
                (from, to) = copy_literal(stored, from, to, needed, output)?;
            }
            continue;
        }
        let (length, offset, width) = match tag & 3 {
            1 => {
                let low = *stored.get(from + 1)? as usize;
                (4 + (tag >> 2 & 7), (tag >> 5) << 8 | low, 2)
            }
            2 => {
                let offset = stored.get(from + 1..from + 3)?.try_into().ok()?;
                ((tag >> 2) + 1, u16::from_le_bytes(offset) as usize, 3)
            }
            _ => {
                let offset = stored.get(from + 1..from + 5)?.try_into().ok()?;
                ((tag >> 2) + 1, u32::from_le_bytes(offset) as usize, 5)
            }
        };
        from += width;
        if offset == 0 || offset > to {
            return None;
        }
        let begin = to - offset;
        if offset >= 8 {
            for done in (0..length).step_by(8) {
                let chunk: [u8; 8] = output.get(begin + done..)?.first_chunk().copied()?;
                *output.get_mut(to + done..)?.first_chunk_mut()? = chunk;
            }
        } else {
            for place in 0..length {
                output[to + place] = output[begin + place];
            }
        }
        to += length;
    }
    Some(needed)
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

#[inline(always)]
fn copy_chunk<const LENGTH: usize>(from: &[u8], to: &mut [u8]) -> Option<()> {
    *to.first_chunk_mut::<LENGTH>()? = *from.first_chunk::<LENGTH>()?;
    Some(())
}

/// Copy a literal, as far as it is needed; returns where to go on.
fn copy_literal(
    stored: &[u8],
    from: usize,
    to: usize,
    needed: usize,
    output: &mut [u8],
) -> Option<(usize, usize)> {
    let tag = stored[from] as usize;
    let (mut length, mut begin) = ((tag >> 2) + 1, from + 1);
    if length > 60 {
        let width = length - 60;
        length = 1;
        for (place, &byte) in stored.get(begin..begin + width)?.iter().enumerate() {
            length += (byte as usize) << (8 * place);
        }
        begin += width;
    }
    let end = begin.checked_add(length)?;
    let literal = stored.get(begin..end)?;
    let kept = length.min(needed - to);
    output
        .get_mut(to..to + kept)?
        .copy_from_slice(&literal[..kept]);
    Some((end, to + kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of short and long literals, and of copies from near and far.
    fn texts() -> Vec<Vec<u8>> {
        let sorted = (0..9_000u64).flat_map(|i| (i * 3).to_le_bytes()).collect();
        let mixed = |i: u32| i.wrapping_mul(0x9E37_79B9).rotate_left(i % 31) as u8;
        let random = (0..70_000).map(mixed).collect();
        let words =
            (0..8_000u32).flat_map(|i| [b"ab".repeat(i as usize % 9), vec![mixed(i)]].concat());
        let repeated = [vec![7; 5_000], (0..300).map(mixed).collect(), vec![9; 3]].concat();
        vec![sorted, random, words.collect(), repeated, vec![1], vec![]]
    }

    #[test]
    fn the_first_bytes_are_those_of_the_whole() {
        for text in texts() {
            let stored = snap::raw::Encoder::new().compress_vec(&text).unwrap();
            let step = text.len() / 97 + 1;
            for needed in (0..=text.len()).step_by(step).chain([text.len()]) {
                let mut output = vec![0xAA; needed + SLACK];
                let found = decompress_first(&stored, text.len(), needed, &mut output);
                assert_eq!(found, Some(needed));
                assert_eq!(output[..needed], text[..needed]);
            }
        }
    }

    #[test]
    fn damage_is_an_error_or_other_bytes_and_never_more() {
        for text in texts() {
            let stored = snap::raw::Encoder::new().compress_vec(&text).unwrap();
            let needed = text.len() / 2;
            let mut output = vec![0; needed + SLACK];
            for at in (0..stored.len()).step_by(stored.len() / 300 + 1) {
                for flip in [0x01, 0x80, 0xFF] {
                    let mut flipped = stored.clone();
                    flipped[at] ^= flip;
                    let found = decompress_first(&flipped, text.len(), needed, &mut output);
                    assert!(found.is_none_or(|count| count == needed));
                }
                decompress_first(&stored[..at], text.len(), needed, &mut output);
            }
            assert_eq!(
                decompress_first(&stored, text.len() + 1, 0, &mut output),
                None
            );
        }
    }
}
