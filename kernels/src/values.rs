//! Values of a leaf: from what a page stores to the form that Arrow keeps them in.

use crate::byte_stream_split::Split;
use crate::delta::{LengthBytes, Packed, PrefixBytes};
use crate::error::{Refusal, Result, corrupt};
use crate::levels::grow;
use crate::output::{Bits, ByteArrays, Decoder};
use crate::plain::{self, Bytes, Fixed, FixedBytes};
use crate::rle;
use crate::select::{Picks, count_ones};

/// Spread from the end, 64 slots at a time, without a branch for each.
macro_rules! spread_words {
    ($tail:expr, $present:expr, $slots:expr, $word:ty) => {{
        const WIDTH: usize = size_of::<$word>();
        let (tail, slots): (&mut [u8], &Bits) = ($tail, $slots);
        let (mut source, mut end) = ($present, slots.len);
        // What is left when there are as many values as slots is in its place.
        while source < end {
            let begin = (end - 1) / 64 * 64;
            let present = slots.word(begin);
            let count = present.count_ones() as usize;
            source -= count;
            let mut values = [0; 64];
            let stored = tail[source * WIDTH..(source + count) * WIDTH].chunks_exact(WIDTH);
            for (value, stored) in values.iter_mut().zip(stored) {
                *value = <$word>::from_ne_bytes(stored.try_into().unwrap_or_default());
            }
            let mut next = 0;
            for (place, slot) in tail[begin * WIDTH..end * WIDTH]
                .chunks_exact_mut(WIDTH)
                .enumerate()
            {
                let there = present >> place & 1;
                let value = values[next % 64] & (there as $word).wrapping_neg();
                slot.copy_from_slice(&value.to_ne_bytes());
                next += there as usize;
            }
            end = begin;
        }
    }};
}

/// How a file stores the values of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    ByteArray,
    /// So many bytes each.
    FixedBytes(usize),
}

impl Physical {
    /// The physical type of this number in the file's metadata.
    pub fn of(id: i32, type_length: usize) -> Result<Physical> {
        Ok(match id {
            0 => Physical::Boolean,
            1 => Physical::Int32,
            2 => Physical::Int64,
            3 => Physical::Int96,
            4 => Physical::Float,
            5 => Physical::Double,
            6 => Physical::ByteArray,
            7 if (1..=1 << 20).contains(&type_length) => Physical::FixedBytes(type_length),
            _ => return Err(Refusal::NotMine("an unknown physical type")),
        })
    }

    /// Bytes of each value, where all have as many.
    fn width(self) -> Option<usize> {
        match self {
            Physical::Int32 | Physical::Float => Some(4),
            Physical::Int64 | Physical::Double => Some(8),
            Physical::Int96 => Some(12),
            Physical::FixedBytes(width) => Some(width),
            Physical::Boolean | Physical::ByteArray => None,
        }
    }
}

/// The unit of timestamps that are stored as INT96.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
}

/// What values become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The bytes as they are stored.
    Copy,
    /// The lowest bytes of integers.
    Narrow(usize),
    Bits,
    /// Byte arrays or strings.
    Bytes,
    /// Signed integers of so many bytes.
    Decimal(usize),
    Timestamp(Unit),
}

/// From a physical type to a target: the form of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    physical: Physical,
    target: Target,
    /// Whether values must be UTF-8.
    pub utf8: bool,
}

impl Form {
    pub fn new(physical: Physical, target: Target, utf8: bool) -> Result<Form> {
        use Physical::{Boolean, ByteArray, FixedBytes, Int32, Int64, Int96};
        let known = match target {
            Target::Copy => !matches!(physical, Boolean | ByteArray | Int96),
            Target::Narrow(width) => physical == Int32 && width <= 4,
            Target::Bits => physical == Boolean,
            Target::Bytes => physical == ByteArray,
            Target::Decimal(width) => match physical {
                Int32 | Int64 | ByteArray => true,
                FixedBytes(stored) => stored <= width,
                _ => false,
            },
            Target::Timestamp(_) => physical == Int96,
        };
        if !known {
            return Err(Refusal::NotMine("values of this type in this form"));
        }
        Ok(Form {
            physical,
            target,
            utf8,
        })
    }

    /// The same, without a look at what strings hold.
    pub fn unchecked(self) -> Form {
        Form {
            utf8: false,
            ..self
        }
    }

    /// The width of values that are kept as they are stored.
    pub fn copied_width(&self) -> Option<usize> {
        match self.target {
            Target::Copy => self.physical.width(),
            _ => None,
        }
    }

    /// How many bytes so many plain values take at most, if they are of one width, or likely take
    /// as a share of all.
    pub fn likely_size(&self, count: usize, of: usize, size: usize) -> Option<usize> {
        match (self.physical, self.physical.width()) {
            (_, Some(width)) => count.checked_mul(width),
            (Physical::ByteArray, None) => Some(size / of.max(1) * count + size / 32 + 64),
            _ => None,
        }
    }

    /// Whether so many plain values lie in these bytes.
    pub fn reaches(&self, bytes: &[u8], count: usize) -> bool {
        match self.physical.width() {
            Some(width) => count.saturating_mul(width) <= bytes.len(),
            None => Bytes::new(bytes, count)
                .and_then(|mut values| values.skip(count).map(|()| values.is_inside()))
                .unwrap_or(false),
        }
    }

    /// Whether values are byte arrays, as they are stored.
    pub fn is_bytes(&self) -> bool {
        self.target == Target::Bytes
    }

    /// Nothing yet, of this form.
    pub fn empty(&self) -> Values {
        let width = match self.target {
            Target::Bits => return Values::Bits(Bits::default()),
            Target::Bytes => return Values::Bytes(ByteArrays::default()),
            Target::Copy => self.physical.width().unwrap_or(1),
            Target::Narrow(width) | Target::Decimal(width) => width,
            Target::Timestamp(_) => 8,
        };
        Values::Fixed {
            width,
            bytes: Vec::new(),
        }
    }

    /// Append picked values of a page that stores so many in this encoding.
    pub fn append(&self, page: Encoded, picks: Picks, values: &mut Values) -> Result<()> {
        match (self.target, values) {
            (Target::Copy, Values::Fixed { bytes, .. }) => {
                grow(bytes, picks.count() * self.physical.width().unwrap_or(1))?;
                page.read_fixed(self.physical, picks, bytes)
            }
            (Target::Bits, Values::Bits(bits)) => page.read_bits(picks, bits),
            (Target::Bytes, Values::Bytes(arrays)) => {
                let before = arrays.offsets.len() - 1;
                page.read_arrays(picks, arrays)?;
                match self.utf8 {
                    true => require_utf8(arrays, before),
                    false => Ok(()),
                }
            }
            (_, Values::Fixed { width, bytes }) => {
                grow(bytes, picks.count() * *width)?;
                if self.physical == Physical::ByteArray {
                    let mut arrays = ByteArrays::default();
                    page.read_arrays(picks, &mut arrays)?;
                    return widen_arrays(&arrays, *width, bytes);
                }
                let mut stored = Vec::new();
                page.read_fixed(self.physical, picks, &mut stored)?;
                self.convert(&stored, bytes)
            }
            _ => Err(Refusal::NotMine("values of this type in this form")),
        }
    }

    /// From stored bytes to those of the target.
    fn convert(&self, stored: &[u8], output: &mut Vec<u8>) -> Result<()> {
        let width = self.physical.width().unwrap_or(1);
        let values = stored.chunks_exact(width);
        match self.target {
            Target::Narrow(1) => output.extend(values.map(|value| value[0])),
            Target::Narrow(narrow) => values.for_each(|v| output.extend_from_slice(&v[..narrow])),
            Target::Timestamp(unit) => {
                for value in values {
                    output.extend_from_slice(&timestamp(value, unit)?.to_le_bytes());
                }
            }
            Target::Decimal(wide) => match self.physical {
                Physical::FixedBytes(_) => {
                    values.for_each(|value| widen_big_endian(value, wide, output))
                }
                _ => values.for_each(|value| {
                    output.extend_from_slice(value);
                    output.resize(output.len() + wide - width, sign(value[width - 1]));
                }),
            },
            Target::Copy | Target::Bits | Target::Bytes => output.extend_from_slice(stored),
        }
        Ok(())
    }
}

/// The values of a page as they are stored.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    pub encoding: i64,
    pub bytes: &'a [u8],
    pub num_values: usize,
}

pub const PLAIN: i64 = 0;
pub const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const DELTA_BINARY_PACKED: i64 = 5;
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;
pub const RLE_DICTIONARY: i64 = 8;
const BYTE_STREAM_SPLIT: i64 = 9;
const UNKNOWN: Refusal = Refusal::NotMine("an unknown encoding");

impl Encoded<'_> {
    fn read_fixed(&self, physical: Physical, picks: Picks, output: &mut Vec<u8>) -> Result<()> {
        let (bytes, count) = (self.bytes, self.num_values);
        let width = physical.width().ok_or(UNKNOWN)?;
        match (self.encoding, physical) {
            (PLAIN, _) => match width {
                4 => read(Fixed::<4>::new(bytes, count)?, picks, output),
                8 => read(Fixed::<8>::new(bytes, count)?, picks, output),
                12 => read(Fixed::<12>::new(bytes, count)?, picks, output),
                _ => read(FixedBytes::new(bytes, width, count)?, picks, output),
            },
            (DELTA_BINARY_PACKED, Physical::Int32) => {
                read(Packed::<u32>::new(bytes, count)?, picks, output)
            }
            (DELTA_BINARY_PACKED, Physical::Int64) => {
                read(Packed::<u64>::new(bytes, count)?, picks, output)
            }
            (DELTA_BYTE_ARRAY, Physical::FixedBytes(_)) => {
                let mut arrays = ByteArrays::default();
                read(PrefixBytes::new(bytes, count)?, picks, &mut arrays)?;
                let lengths = arrays.offsets.windows(2).map(|pair| pair[1] - pair[0]);
                if lengths.into_iter().any(|length| length as usize != width) {
                    return corrupt("a value of another length than its type");
                }
                output.extend_from_slice(&arrays.data);
                Ok(())
            }
            (BYTE_STREAM_SPLIT, physical) if physical != Physical::Int96 => {
                read(Split::new(bytes, width, count)?, picks, output)
            }
            _ => Err(UNKNOWN),
        }
    }

    fn read_arrays(&self, picks: Picks, output: &mut ByteArrays) -> Result<()> {
        let (bytes, count) = (self.bytes, self.num_values);
        match self.encoding {
            PLAIN => read(Bytes::new(bytes, count)?, picks, output),
            DELTA_LENGTH_BYTE_ARRAY => read(LengthBytes::new(bytes, count)?, picks, output),
            DELTA_BYTE_ARRAY => read(PrefixBytes::new(bytes, count)?, picks, output),
            _ => Err(UNKNOWN),
        }
    }

    fn read_bits(&self, picks: Picks, output: &mut Bits) -> Result<()> {
        let (bytes, count) = (self.bytes, self.num_values);
        match self.encoding {
            PLAIN => read(plain::Booleans::new(bytes, count)?, picks, output),
            RLE => read(rle::Booleans::new(bytes, count)?, picks, output),
            _ => Err(UNKNOWN),
        }
    }
}

/// Let a decoder append what is picked.
pub fn read<D: Decoder>(mut decoder: D, picks: Picks, output: &mut D::Output) -> Result<()> {
    match picks {
        Picks::All(count) => decoder.read(count, output),
        Picks::Runs(runs) => decoder.pick(runs, output),
    }
}

/// The values of a leaf, of one form.
#[derive(Debug, Clone)]
pub enum Values {
    Fixed { width: usize, bytes: Vec<u8> },
    Bits(Bits),
    Bytes(ByteArrays),
}

impl Values {
    /// Room for so many values more, as far as it is known what they take.
    pub fn reserve(&mut self, count: usize) -> Result<()> {
        match self {
            Values::Fixed { width, bytes } => grow(bytes, count.saturating_mul(*width)),
            Values::Bits(bits) => grow(&mut bits.bytes, count.div_ceil(8)),
            Values::Bytes(arrays) => grow(&mut arrays.offsets, count),
        }
    }

    /// Move the `present` values behind the first ones to their slots: nulls come between them.
    pub fn spread(&mut self, before: usize, present: usize, slots: &Bits) -> Result<()> {
        if present != count_ones(&slots.bytes, 0, slots.len) {
            return corrupt("more or fewer values than levels");
        }
        self.reserve(slots.len - present)?;
        match self {
            Values::Fixed { width, bytes } => {
                bytes.resize((before + slots.len) * *width, 0);
                let tail = &mut bytes[before * *width..];
                match width {
                    4 => spread_words!(tail, present, slots, u32),
                    8 => spread_words!(tail, present, slots, u64),
                    _ => spread_any(tail, *width, present, slots),
                }
            }
            Values::Bits(bits) => {
                let mut source = before;
                let mut spread = Bits::default();
                spread.extend(&bits.bytes, 0, before);
                for slot in 0..slots.len {
                    let there = slots.get(slot);
                    spread.push(there && bits.get(source));
                    source += usize::from(there);
                }
                *bits = spread;
            }
            Values::Bytes(arrays) => {
                // A slot ends where its value does; that of a null where the one before does.
                arrays.offsets.resize(before + slots.len + 1, 0);
                let tail = &mut arrays.offsets[before..];
                let mut source = present;
                for slot in (0..slots.len).rev() {
                    if source > slot {
                        break;
                    }
                    tail[slot + 1] = tail[source];
                    source -= usize::from(slots.get(slot));
                }
            }
        }
        Ok(())
    }
}

fn spread_any(tail: &mut [u8], width: usize, present: usize, slots: &Bits) {
    let mut source = present;
    for slot in (0..slots.len).rev() {
        if source > slot {
            break;
        }
        if slots.get(slot) {
            source -= 1;
            tail.copy_within(source * width..(source + 1) * width, slot * width);
        } else {
            tail[slot * width..(slot + 1) * width].fill(0);
        }
    }
}

/// Values from this one on must be UTF-8, each by itself.
pub fn require_utf8(arrays: &ByteArrays, first: usize) -> Result<()> {
    let offsets = &arrays.offsets[first..];
    let begin = offsets[0] as usize;
    let text = &arrays.data[begin..];
    if simdutf8::basic::from_utf8(text).is_err() {
        return corrupt("a string that is not UTF-8");
    }
    if text.is_ascii() {
        return Ok(());
    }
    // Together they are; a value that begins within a character is not.
    let is_boundary = |&offset: &i32| {
        let byte = arrays.data.get(offset as usize);
        byte.is_none_or(|byte| byte & 0xC0 != 0x80)
    };
    match offsets.iter().all(is_boundary) {
        true => Ok(()),
        false => corrupt("a string that is not UTF-8"),
    }
}

/// The bytes before the highest one of a negative or positive number.
fn sign(highest: u8) -> u8 {
    match highest >> 7 {
        0 => 0,
        _ => u8::MAX,
    }
}

/// Append a big-endian number as a longer little-endian one; `value` is not empty.
fn widen_big_endian(value: &[u8], wide: usize, output: &mut Vec<u8>) {
    output.extend(value.iter().rev());
    output.resize(output.len() + wide - value.len(), sign(value[0]));
}

fn widen_arrays(arrays: &ByteArrays, wide: usize, output: &mut Vec<u8>) -> Result<()> {
    for pair in arrays.offsets.windows(2) {
        let value = &arrays.data[pair[0] as usize..pair[1] as usize];
        if value.is_empty() || value.len() > wide {
            return Err(Refusal::NotMine("a decimal of an unexpected length"));
        }
        widen_big_endian(value, wide, output);
    }
    Ok(())
}

const EPOCH: u64 = 2_440_588; // the Julian day of 1970-01-01
const SECONDS_PER_DAY: u64 = 86_400;

/// Nanoseconds of a day and a Julian day become a timestamp, with Arrow's arithmetic.
fn timestamp(value: &[u8], unit: Unit) -> Result<i64> {
    let (nanoseconds, day) = value.split_at(8);
    let nanoseconds = nanoseconds.try_into().map_or(0, u64::from_le_bytes);
    let day = u64::from(day.try_into().map_or(0, u32::from_le_bytes));
    let days = day.wrapping_sub(EPOCH);
    let (per_second, part) = match unit {
        Unit::Nanoseconds => {
            let exact = i128::from(days as i64) * i128::from(SECONDS_PER_DAY) * 1_000_000_000
                + i128::from(nanoseconds);
            return i64::try_from(exact).map_err(|_| {
                Refusal::OutOfRange("INT96 timestamps that do not fit into nanoseconds")
            });
        }
        Unit::Microseconds => (1_000_000, nanoseconds / 1_000),
        Unit::Milliseconds => (1_000, nanoseconds / 1_000_000),
    };
    Ok(days
        .wrapping_mul(SECONDS_PER_DAY * per_second)
        .wrapping_add(part) as i64)
}
