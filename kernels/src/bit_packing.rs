//! Integers of any width, packed without gaps, the first in the lowest bits.

/// An unsigned integer that packed values are widened to.
pub trait Word: Copy + Default + std::ops::BitAnd<Output = Self> {
    const BITS: usize;

    /// The lowest bits of a longer one.
    fn cut(value: u64) -> Self;
}

impl Word for u32 {
    const BITS: usize = 32;

    fn cut(value: u64) -> u32 {
        value as u32
    }
}

impl Word for u64 {
    const BITS: usize = 64;

    fn cut(value: u64) -> u64 {
        value
    }
}

/// Values that are unpacked together: they begin and end with a byte, whatever the width.
pub const GROUP: usize = 8;
/// Bytes behind a group that a load of its last value may touch.
const SLACK: usize = 16;
const MOST_WINDOW: usize = 64 + SLACK;

/// The value at a place; bytes that are missing count as zeros.
#[inline]
pub fn get(bytes: &[u8], width: usize, index: usize) -> u64 {
    if width == 0 {
        return 0;
    }
    let bit = index * width;
    let (byte, shift) = (bit / 8, bit % 8);
    if width + shift <= 64 {
        if let Some(word) = bytes.get(byte..byte + 8) {
            return (load(word, 0) >> shift) & mask(width);
        }
    }
    let mut padded = [0; SLACK];
    let rest = &bytes[byte.min(bytes.len())..bytes.len().min(byte + SLACK)];
    padded[..rest.len()].copy_from_slice(rest);
    (u128::from_le_bytes(padded) >> shift) as u64 & mask(width)
}

/// Unpack values that begin with the first byte; bytes that are missing count as zeros.
pub fn unpack<T: Word>(bytes: &[u8], width: usize, output: &mut [T]) {
    macro_rules! by_width {
        ($($width:literal)*) => {
            match width {
                $($width => unpack_groups::<T, $width>(bytes, output),)*
                _ => unreachable!("widths are checked before"),
            }
        };
    }
    by_width!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
        62 63 64);
}

fn unpack_groups<T: Word, const WIDTH: usize>(bytes: &[u8], output: &mut [T]) {
    if WIDTH == 0 {
        return output.fill(T::default());
    }
    for (place, group) in output.chunks_mut(GROUP).enumerate() {
        let begin = place * WIDTH;
        if let (Some(window), Ok(group)) = (
            bytes.get(begin..begin + WIDTH + SLACK),
            <&mut [T; GROUP]>::try_from(&mut *group),
        ) {
            *group = unpack_group::<T, WIDTH>(window);
        } else {
            let mut padded = [0; MOST_WINDOW];
            let rest = &bytes[begin.min(bytes.len())..bytes.len().min(begin + WIDTH)];
            padded[..rest.len()].copy_from_slice(rest);
            let values = unpack_group::<T, WIDTH>(&padded[..WIDTH + SLACK]);
            group.copy_from_slice(&values[..group.len()]);
        }
    }
}

/// One group; the window has the slack too, so that every load is inside.
#[inline(always)]
fn unpack_group<T: Word, const WIDTH: usize>(window: &[u8]) -> [T; GROUP] {
    let window = &window[..WIDTH + SLACK];
    let mut values = [T::default(); GROUP];
    for (place, value) in values.iter_mut().enumerate() {
        // As few loads as values fit into words: all, halves, or each alone.
        let first = match WIDTH {
            0..=8 => 0,
            9..=16 => place / 4 * 4,
            _ => place,
        };
        let (byte, shift) = (first * WIDTH / 8, first * WIDTH % 8);
        let shift = shift + (place - first) * WIDTH;
        let word = if WIDTH + shift <= 64 {
            load(window, byte) >> shift
        } else {
            load(window, byte) >> shift | load(window, byte + 8) << (64 - shift)
        };
        *value = T::cut(word & mask(WIDTH));
    }
    values
}

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

#[inline(always)]
fn mask(width: usize) -> u64 {
    u64::MAX >> (64 - width)
}
