//! Each decoder against plain loops: all values, parts of them, and bytes that are damaged.

mod bits;
mod byte_stream_split;
mod delta;
mod find;
mod plain;
mod rle;

use fretsaw_kernels::error::Result;
use fretsaw_kernels::output::{Bits, ByteArrays, Decoder, Run};
use std::fmt::Debug;

/// Random numbers that are the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.word() % limit as u64) as usize
    }

    /// Below one of these limits, so that small numbers are frequent.
    pub fn below_some(&mut self, limits: &[usize]) -> usize {
        let limit = limits[self.below(limits.len())];
        self.below(limit)
    }

    /// A number of so many bits.
    pub fn of_bits(&mut self, width: usize) -> u64 {
        if width == 0 {
            0
        } else {
            self.word() >> (64 - width)
        }
    }

    /// Some runs of the values of a page: single ones, long ones, or both.
    pub fn runs(&mut self, count: usize) -> Vec<Run> {
        let gap = [1, 2, 20, 200][self.below(4)];
        let length = [1, 2, 30, 300][self.below(4)];
        let mut runs = Vec::new();
        let mut start = self.below(gap + 1);
        while start < count {
            let end = (start + 1 + self.below(length)).min(count);
            runs.push(Run {
                start: start as u32,
                end: end as u32,
            });
            start = end + self.below(gap + 1);
        }
        runs
    }
}

/// What decoders append to, as a list.
pub trait Listed: Default {
    type Value: PartialEq + Debug + Clone;

    fn list(&self) -> Vec<Self::Value>;
}

impl Listed for Vec<u32> {
    type Value = u32;

    fn list(&self) -> Vec<u32> {
        self.clone()
    }
}

impl Listed for Vec<u8> {
    type Value = u8;

    fn list(&self) -> Vec<u8> {
        self.clone()
    }
}

impl Listed for Bits {
    type Value = bool;

    fn list(&self) -> Vec<bool> {
        assert_eq!(self.bytes.len(), self.len.div_ceil(8));
        let all = self
            .bytes
            .iter()
            .flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
        assert!(all.clone().skip(self.len).all(|bit| !bit));
        all.take(self.len).collect()
    }
}

impl Listed for ByteArrays {
    type Value = Vec<u8>;

    fn list(&self) -> Vec<Vec<u8>> {
        assert_eq!(self.offsets.last(), Some(&(self.data.len() as i32)));
        let edges = self.offsets.windows(2);
        edges
            .map(|edge| self.data[edge[0] as usize..edge[1] as usize].to_vec())
            .collect()
    }
}

/// All ways to read these bytes give the expected values, of which each has so many items.
pub fn check<'a, D>(
    bytes: &'a [u8],
    expected: &[<D::Output as Listed>::Value],
    items: usize,
    open: impl Fn(&'a [u8], usize) -> Result<D>,
    random: &mut Random,
) where
    D: Decoder,
    D::Output: Listed,
{
    let count = expected.len() / items;
    for _ in 0..4 {
        let mut decoder = open(bytes, count).unwrap();
        let mut output = D::Output::default();
        let mut wanted = Vec::new();
        let most = [1, 3, 40, 400, count][random.below(5)].max(1);
        while decoder.position() < count {
            let begin = decoder.position();
            let length = random.below(most.min(count - begin) + 1);
            if random.below(3) == 0 {
                decoder.skip(length).unwrap();
            } else {
                decoder.read(length, &mut output).unwrap();
                wanted.extend_from_slice(&expected[begin * items..(begin + length) * items]);
            }
            assert_eq!(decoder.position(), begin + length);
        }
        assert_eq!(output.list(), wanted);
        assert!(decoder.skip(0).is_ok());
        assert!(decoder.read(usize::MAX, &mut output).is_err() || count == usize::MAX);
    }
    for _ in 0..8 {
        let runs = random.runs(count);
        let mut output = D::Output::default();
        open(bytes, count)
            .unwrap()
            .pick(&runs, &mut output)
            .unwrap();
        let wanted: Vec<_> = runs
            .iter()
            .flat_map(|run| &expected[run.start as usize * items..run.end as usize * items])
            .cloned()
            .collect();
        assert_eq!(output.list(), wanted);
    }
    let step = bytes.len() / 100 + 1;
    for end in (0..bytes.len()).skip(random.below(step)).step_by(step) {
        let runs = random.runs(count);
        let mut output = D::Output::default();
        let read =
            open(&bytes[..end], count).and_then(|mut decoder| decoder.read(count, &mut output));
        if read.is_ok() {
            assert_eq!(output.list(), expected);
        }
        let _ = open(&bytes[..end], count)
            .and_then(|mut decoder| decoder.pick(&runs, &mut D::Output::default()));
    }
}

/// Bytes with some of them changed.
pub fn damaged(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let place = random.below_some(&[bytes.len().min(8), bytes.len()]);
        bytes[place] = [0, 1, 0x7f, 0x80, 0xff, random.word() as u8][random.below(6)];
    }
    bytes
}

/// Damaged bytes give any values or an error, never a panic, and not more than is asked for.
pub fn survive<D>(decoder: Result<D>, count: usize, items: usize, random: &mut Random)
where
    D: Decoder + Clone,
    D::Output: Listed,
{
    if let Ok(decoder) = decoder {
        let mut output = D::Output::default();
        if decoder.clone().read(count, &mut output).is_ok() {
            assert_eq!(output.list().len(), count * items);
        }
        let _ = decoder.clone().pick(&random.runs(count), &mut output);
        let _ = decoder.clone().skip(count);
    }
}
