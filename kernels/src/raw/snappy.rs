//! The loops of snappy's decoder, without a test for each byte.

use crate::snappy::SLACK;

/// Stored bytes that the longest element takes but for long literals, and those that a pair of
/// elements and loads of whole chunks may touch.
const AHEAD: usize = 96;

/// Where a decoder is: in the stored bytes, and in the output, or behind it with what has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub from: usize,
    pub to: usize,
}

/// Decode elements up to the first literal behind `stop` of the output, or until the stored bytes
/// come to their end; None for damage.
///
/// The last `SLACK` bytes of the output are not filled, but copies of whole chunks run over them.
pub fn decode_elements(
    stored: &[u8],
    output: &mut [u8],
    place: Place,
    stop: usize,
) -> Option<Place> {
    let size = output.len().checked_sub(SLACK)?;
    let Some(last) = stored.len().checked_sub(AHEAD) else {
        return Some(place);
    };
    let Place { mut from, mut to } = place;
    let (source, target) = (stored.as_ptr(), output.as_mut_ptr());
    while from <= last && to < size {
        // SAFETY: what is loaded of the stored bytes lies at most AHEAD behind `from`, which was
        // just tested. An element that is no long literal writes at most 64 bytes from `to` on,
        // which is below `size`, and SLACK bytes follow. Of long literals, which must lie inside of
        // the stored bytes, no more is written than there is room for.
        // What a copy loads lies at most 64 bytes behind `to - offset`, and the offset is neither
        // 0 nor above `to`, so it is inside of the output, which is initialised.
        unsafe {
            let tag = *source.add(from) as usize;
            if tag & 3 == 0 {
                if to >= stop {
                    break;
                }
                let length = (tag >> 2) + 1;
                if length <= 16 {
                    copy::<16>(source.add(from + 1), target.add(to));
                } else if length <= 60 {
                    copy::<32>(source.add(from + 1), target.add(to));
                    copy::<32>(source.add(from + 33), target.add(to + 32));
                } else {
                    let width = length - 60;
                    let mask = u32::MAX >> (32 - 8 * width);
                    let length = (load4(source.add(from + 1)) as u32 & mask) as usize + 1;
                    let literal = stored.get(from + 1 + width..)?.get(..length)?;
                    let kept = length.min(size - to);
                    std::ptr::copy_nonoverlapping(literal.as_ptr(), target.add(to), kept);
                    from += 1 + width + length;
                    to += length;
                    continue;
                }
                from += 1 + length;
                to += length;
                continue;
            }
            let rest = load4(source.add(from + 1)) as usize;
            let (length, offset);
            if tag & 3 == 1 {
                (length, offset) = (4 + (tag >> 2 & 7), (tag >> 5) << 8 | rest & 0xFF);
                from += 2;
            } else if tag & 3 == 2 {
                (length, offset) = ((tag >> 2) + 1, rest & 0xFFFF);
                from += 3;
            } else {
                (length, offset) = ((tag >> 2) + 1, rest);
                from += 5;
            }
            if offset.wrapping_sub(1) >= to {
                return None;
            }
            let (begin, end) = (target.add(to - offset), target.add(to));
            if length.wrapping_sub(4) <= 4 && offset >= length {
                store8(end, load_short(begin, length));
            } else if offset >= 16 {
                copy::<16>(begin, end);
                if length > 16 {
                    copy::<16>(begin.add(16), end.add(16));
                    copy::<16>(begin.add(32), end.add(32));
                    copy::<16>(begin.add(48), end.add(48));
                }
            } else if offset >= 8 {
                for done in (0..length).step_by(8) {
                    copy::<8>(begin.add(done), end.add(done));
                }
            } else {
                for done in 0..length {
                    *end.add(done) = *begin.add(done);
                }
            }
            to += length;
        }
    }
    Some(Place { from, to })
}

/// Decode a literal and a copy that come again and again, as they do in sorted numbers: their
/// lengths are known before they are loaded, and all copies are of the same bytes.
pub fn decode_pairs(stored: &[u8], output: &mut [u8], place: Place) -> Place {
    let (Some(size), Some(last)) = (
        output.len().checked_sub(SLACK),
        stored.len().checked_sub(AHEAD),
    ) else {
        return place;
    };
    let Place { mut from, mut to } = place;
    if from > last || to >= size {
        return place;
    }
    let tag = stored[from];
    let literal = (tag as usize >> 2) + 1;
    if tag & 3 != 0 || literal > 16 {
        return place;
    }
    let next = from + 1 + literal;
    let copied = stored[next] as usize;
    let (length, offset, width) = match copied & 3 {
        1 => (
            4 + (copied >> 2 & 7),
            (copied >> 5) << 8 | stored[next + 1] as usize,
            2,
        ),
        2 => {
            let offset = u16::from_le_bytes([stored[next + 1], stored[next + 2]]);
            ((copied >> 2) + 1, offset as usize, 3)
        }
        _ => return place,
    };
    let (step, stride) = (1 + literal + width, literal + length);
    if offset != stride || !(4..=8).contains(&length) || to + literal < offset {
        return place;
    }
    let (source, target) = (stored.as_ptr(), output.as_mut_ptr());
    // SAFETY: the offset is not above `to + literal`, what is loaded ends at `to`, and that is below
    // `size`.
    let value = unsafe { load_short(target.add(to + literal - offset), length) };
    let mask = u32::MAX >> (32 - 8 * width);
    // SAFETY: AHEAD stored bytes follow, as tested above.
    let copy_bytes = unsafe { load4(source.add(next)) } as u32 & mask;
    while from <= last && to < size {
        // SAFETY: what is loaded lies at most AHEAD behind `from`; what is written takes at most
        // 24 bytes from `to` on, and SLACK bytes follow behind `size`.
        unsafe {
            let again = load4(source.add(from + 1 + literal)) as u32 & mask;
            if *source.add(from) != tag || again != copy_bytes {
                break;
            }
            copy::<16>(source.add(from + 1), target.add(to));
            store8(target.add(to + literal), value);
        }
        from += step;
        to += stride;
    }
    Place { from, to }
}

/// # Safety
/// Both places have so many bytes.
#[inline(always)]
unsafe fn copy<const LENGTH: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: as asked for; arrays of bytes need no alignment.
    unsafe {
        to.cast::<[u8; LENGTH]>()
            .write(from.cast::<[u8; LENGTH]>().read())
    };
}

/// # Safety
/// Four bytes can be loaded.
#[inline(always)]
unsafe fn load4(from: *const u8) -> u64 {
    // SAFETY: as asked for.
    u64::from(u32::from_le_bytes(unsafe { from.cast::<[u8; 4]>().read() }))
}

/// From 4 to 8 bytes, and not one more: what was written just behind them would be waited for.
///
/// # Safety
/// So many bytes can be loaded.
#[inline(always)]
unsafe fn load_short(from: *const u8, length: usize) -> u64 {
    // SAFETY: as asked for.
    unsafe { load4(from) | load4(from.add(length - 4)) << (8 * (length - 4)) }
}

/// # Safety
/// Eight bytes can be written.
#[inline(always)]
unsafe fn store8(to: *mut u8, value: u64) {
    // SAFETY: as asked for.
    unsafe { to.cast::<[u8; 8]>().write(value.to_le_bytes()) };
}
