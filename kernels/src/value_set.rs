//! Sets of values of an ordered type, and the test whether a stored value is in one.
//!
//! A set is the places where it begins and ends, as in Python: each cut is the first key on its
//! other side. Numbers of one width are compared as unsigned integers that have the same order.

use std::collections::HashSet;

use crate::error::{Refusal, Result};

/// How stored values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Signed,
    Unsigned,
    /// Floats in total order, all NaN one key behind infinity.
    Float,
    Bytes,
}

/// The cuts of a set, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cuts {
    Numbers(Vec<i128>),
    Bytes(Vec<Vec<u8>>),
}

/// The key of all NaN: the place of a double behind infinity.
pub const NAN_KEY: i128 = 0x7ff0_0000_0000_0001;

/// Keys between cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSet {
    pub order: Order,
    pub cuts: Cuts,
    /// Whether the keys before the first cut are in the set.
    pub begins_inside: bool,
}

/// A set, ready to test values of one width, or byte arrays.
#[derive(Debug, Clone)]
pub enum Test {
    /// Whatever the value is.
    Always(bool),
    Bytes(BytesTest),
    Width1(Order, NumberTest<u8>),
    Width2(Order, NumberTest<u16>),
    Width4(Order, NumberTest<u32>),
    Width8(Order, NumberTest<u64>),
    Width16(Order, NumberTest<u128>),
}

impl ValueSet {
    /// The test of byte arrays, or of numbers of so many bytes.
    pub fn test(&self, width: usize) -> Result<Test> {
        let cuts = match (&self.cuts, self.order) {
            (Cuts::Bytes(cuts), Order::Bytes) => return Ok(test_bytes(cuts, self.begins_inside)),
            (Cuts::Numbers(_), Order::Float) if !matches!(width, 2 | 4 | 8) => {
                return Err(UNKNOWN_WIDTH);
            }
            (Cuts::Numbers(cuts), Order::Signed | Order::Unsigned | Order::Float) => cuts,
            _ => return Err(Refusal::NotMine("cuts of another type than the values")),
        };
        macro_rules! of_width {
            ($test:path, $key:ty) => {{
                let (cuts, begins_inside) = self.within::<$key>(cuts);
                match NumberTest::new(cuts, begins_inside) {
                    Some(test) => $test(self.order, test),
                    None => Test::Always(begins_inside),
                }
            }};
        }
        Ok(match width {
            1 => of_width!(Test::Width1, u8),
            2 => of_width!(Test::Width2, u16),
            4 => of_width!(Test::Width4, u32),
            8 => of_width!(Test::Width8, u64),
            16 => of_width!(Test::Width16, u128),
            _ => return Err(UNKNOWN_WIDTH),
        })
    }

    /// The cuts among keys of one width, and whether the lowest key is inside.
    fn within<K: Key>(&self, cuts: &[i128]) -> (Vec<K>, bool) {
        let mut kept = Vec::new();
        let mut begins_inside = self.begins_inside;
        for &cut in cuts {
            match place(cut, self.order, K::BITS) {
                Place::Before => begins_inside = !begins_inside,
                Place::At(key) if kept.last() == Some(&K::cut(key)) => {
                    kept.pop(); // nothing lies between the two
                }
                Place::At(key) => kept.push(K::cut(key)),
                Place::Behind => {}
            }
        }
        (kept, begins_inside)
    }
}

const UNKNOWN_WIDTH: Refusal = Refusal::NotMine("a search in values of this width");

/// Where a cut lies among the keys of a width.
enum Place {
    /// All keys are from the cut on.
    Before,
    /// This is the first key from the cut on.
    At(u128),
    /// All keys are before the cut.
    Behind,
}

fn place(cut: i128, order: Order, bits: u32) -> Place {
    let (least, most) = match order {
        Order::Signed => (i128::MIN >> (128 - bits), i128::MAX >> (128 - bits)),
        Order::Unsigned | Order::Bytes => (0, (u128::MAX >> (128 - bits)) as i128),
        Order::Float => {
            // Of narrower floats, the first that is not below: a search in their order.
            let behind = -least_float(bits) + 1; // the first NaN
            let mut keys = least_float(bits)..behind;
            while keys.start < keys.end {
                let middle = keys.start + (keys.end - keys.start) / 2;
                match widen_key(middle, bits) < cut {
                    true => keys.start = middle + 1,
                    false => keys.end = middle,
                }
            }
            if cut > NAN_KEY {
                return Place::Behind;
            }
            let first = (keys.start - least_float(bits)) as u128;
            return if first == 0 {
                Place::Before
            } else {
                Place::At(first)
            };
        }
    };
    if cut <= least {
        Place::Before
    } else if cut > most {
        Place::Behind
    } else {
        Place::At(cut.wrapping_sub(least) as u128)
    }
}

/// The bits of infinity.
const fn infinity(bits: u32) -> u64 {
    match bits {
        16 => 0x7c00,
        32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    }
}

/// The place of negative infinity in the total order of floats of a width.
fn least_float(bits: u32) -> i128 {
    -i128::from(infinity(bits)) - 1
}

/// The place in the order of doubles of what has this place among narrower floats.
fn widen_key(key: i128, bits: u32) -> i128 {
    let magnitude = if key < 0 { -1 - key } else { key } as u64;
    let double = match bits {
        16 => widen_half(magnitude).to_bits(),
        32 => f64::from(f32::from_bits(magnitude as u32)).to_bits(),
        _ => magnitude,
    };
    match key < 0 {
        true => -1 - i128::from(double),
        false => i128::from(double),
    }
}

/// A positive float of 16 bits.
fn widen_half(bits: u64) -> f64 {
    let (exponent, fraction) = (bits >> 10, (bits & 0x3ff) as f64);
    match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent as i32 - 25),
    }
}

/// An unsigned integer with the order of the values that it stands for.
pub trait Key: Copy + Ord {
    const BITS: u32;
    const WIDTH: usize = Self::BITS as usize / 8;

    /// A stored value as it is.
    fn load(stored: &[u8]) -> Self;
    /// From a signed integer.
    fn of_signed(self) -> Self;
    /// From a float: negative infinity becomes zero, and NaN of both signs is above all others.
    fn of_float(self) -> Self;
    fn cut(key: u128) -> Self;
    /// How far the last key of a range is from this one, which is its first.
    fn span(self, behind: Option<Self>) -> Self;
    /// Whether this is the first of a range, or up to `span` behind it.
    fn is_within(self, first: Self, span: Self) -> bool;
}

macro_rules! key {
    ($key:ty, $signed:ty) => {
        impl Key for $key {
            const BITS: u32 = <$key>::BITS;

            #[inline(always)]
            fn load(stored: &[u8]) -> Self {
                <$key>::from_le_bytes(std::array::from_fn(|place| stored[place]))
            }

            #[inline(always)]
            fn of_signed(self) -> Self {
                self ^ (1 << (Self::BITS - 1))
            }

            #[inline(always)]
            fn of_float(self) -> Self {
                // Below zero, the bits behind the sign count down.
                let sign = (self as $signed >> (Self::BITS - 1)) as $key;
                (self ^ (sign >> 1)).wrapping_add(infinity(Self::BITS) as $key + 1)
            }

            fn cut(key: u128) -> Self {
                key as $key
            }

            fn span(self, behind: Option<Self>) -> Self {
                behind.map_or(Self::MAX, |behind| behind - 1) - self
            }

            #[inline(always)]
            fn is_within(self, first: Self, span: Self) -> bool {
                self.wrapping_sub(first) <= span
            }
        }
    };
}
key!(u8, i8);
key!(u16, i16);
key!(u32, i32);
key!(u64, i64);
key!(u128, i128);

/// The test of a key: one range, which a subtraction and a comparison decide, or a search.
#[derive(Debug, Clone)]
pub enum NumberTest<K> {
    Range { first: K, span: K, is_inside: bool },
    Search { cuts: Vec<K>, begins_inside: bool },
}

impl<K: Key> NumberTest<K> {
    /// None where nothing is cut.
    fn new(cuts: Vec<K>, begins_inside: bool) -> Option<Self> {
        Some(match cuts[..] {
            [] => return None,
            [first] => NumberTest::Range {
                first,
                span: first.span(None),
                is_inside: !begins_inside,
            },
            [first, behind] => NumberTest::Range {
                first,
                span: first.span(Some(behind)),
                is_inside: !begins_inside,
            },
            _ => NumberTest::Search {
                cuts,
                begins_inside,
            },
        })
    }
}

impl<K: Key> NumberTest<K> {
    #[inline(always)]
    pub fn contains(&self, key: K) -> bool {
        match self {
            NumberTest::Range {
                first,
                span,
                is_inside,
            } => key.is_within(*first, *span) == *is_inside,
            NumberTest::Search {
                cuts,
                begins_inside,
            } => begins_inside ^ (cuts.partition_point(|cut| *cut <= key) % 2 == 1),
        }
    }
}

/// The test of a byte array.
#[derive(Debug, Clone)]
pub enum BytesTest {
    Equal {
        value: Vec<u8>,
        is_inside: bool,
    },
    Among {
        values: HashSet<Vec<u8>>,
        marks: Marks,
        is_inside: bool,
    },
    Search {
        cuts: Vec<BytesCut>,
        begins_inside: bool,
    },
}

/// A cut with its first bytes as a number, which decide most comparisons.
#[derive(Debug, Clone)]
pub struct BytesCut {
    head: u64,
    bytes: Vec<u8>,
}

/// One bit for each of some values, at a place that is quickly worked out: where there is none, the
/// value is not among them. Small enough to stay in the cache where the values themselves do not.
#[derive(Debug, Clone)]
pub struct Marks {
    words: Vec<u64>,
    shift: u32,
}

impl Marks {
    fn of<'a>(values: impl ExactSizeIterator<Item = &'a Vec<u8>>) -> Self {
        let bits = (values.len() * 16).next_power_of_two().max(64);
        let mut marks = Marks {
            words: vec![0; bits / 64],
            shift: 64 - bits.trailing_zeros(),
        };
        for value in values {
            let place = marks.place(value);
            marks.words[place / 64] |= 1 << (place % 64);
        }
        marks
    }

    #[inline]
    fn place(&self, value: &[u8]) -> usize {
        let last = head(&value[value.len().saturating_sub(8)..]);
        let mixed = (head(value) ^ value.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed.rotate_left(32) ^ last).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> self.shift) as usize
    }

    #[inline]
    fn may_have(&self, value: &[u8]) -> bool {
        let place = self.place(value);
        self.words[place / 64] >> (place % 64) & 1 == 1
    }
}

/// Whether nothing lies between the two.
fn is_next(first: &[u8], behind: &[u8]) -> bool {
    behind.split_last() == Some((&0, first))
}

fn test_bytes(cuts: &[Vec<u8>], begins_inside: bool) -> Test {
    Test::Bytes(match cuts {
        [] => return Test::Always(begins_inside),
        [first, behind] if is_next(first, behind) => BytesTest::Equal {
            value: first.clone(),
            is_inside: !begins_inside,
        },
        _ if cuts
            .chunks(2)
            .all(|pair| pair.len() == 2 && is_next(&pair[0], &pair[1])) =>
        {
            BytesTest::Among {
                values: cuts.iter().step_by(2).cloned().collect(),
                marks: Marks::of(cuts.iter().step_by(2)),
                is_inside: !begins_inside,
            }
        }
        _ => {
            let cuts = cuts.iter().map(|bytes| BytesCut {
                head: head(bytes),
                bytes: bytes.clone(),
            });
            BytesTest::Search {
                cuts: cuts.collect(),
                begins_inside,
            }
        }
    })
}

impl BytesTest {
    #[inline]
    pub fn contains(&self, value: &[u8]) -> bool {
        match self {
            BytesTest::Equal {
                value: wanted,
                is_inside,
            } => (value == wanted) == *is_inside,
            BytesTest::Among {
                values,
                marks,
                is_inside,
            } => (marks.may_have(value) && values.contains(value)) == *is_inside,
            BytesTest::Search {
                cuts,
                begins_inside,
            } => {
                let head = head(value);
                let is_reached = |cut: &BytesCut| (cut.head, &cut.bytes[..]) <= (head, value);
                let passed = match &cuts[..] {
                    [first] => usize::from(is_reached(first)),
                    [first, behind] if is_reached(first) => 1 + usize::from(is_reached(behind)),
                    [_, _] => 0,
                    _ => cuts.partition_point(is_reached),
                };
                begins_inside ^ (passed % 2 == 1)
            }
        }
    }
}

/// The first eight bytes, as a number of the same order.
#[inline]
fn head(value: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = value.len().min(8);
    bytes[..length].copy_from_slice(&value[..length]);
    u64::from_be_bytes(bytes)
}
