//! The values of a leaf: decoders that append what is wanted, and a look at all that they pass.

use crate::error::{Refusal, Result, corrupt};
use crate::find::all_pass;
use crate::levels::grow;
use crate::orc::byte_rle::ByteRuns;
use crate::orc::int_rle::Integers;
use crate::orc::marks::Place;
use crate::orc::present::BitRuns;
use crate::output::{Bits, Run};
use crate::select::count_ones;
use crate::value_set::{Test, ValueSet};
use crate::values::Values;

/// Values that are looked at together where all are.
const TOGETHER: u64 = 4096;

/// The streams of a leaf, by their numbers in the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Data,
    Length,
    Secondary,
}

/// The values of a leaf, one after the other: what is not wanted is skipped, not decoded.
pub trait Decoder {
    fn skip(&mut self, count: u64) -> Result<()>;

    /// Append so many values.
    fn read(&mut self, count: usize, output: &mut Values) -> Result<()>;

    /// Append the values of these runs, of the so many that come next and are all passed.
    fn pick(&mut self, count: usize, runs: &[Run], output: &mut Values) -> Result<()> {
        let mut position = 0;
        for run in runs {
            self.skip(u64::from(run.start - position))?;
            self.read(run.count(), output)?;
            position = run.end;
        }
        self.skip((count - position as usize) as u64)
    }

    /// Note where runs begin from here on, or no more.
    fn mark(&mut self, begins: bool);

    /// Whether a place of a row index, or the end, is where the reader is in one of its streams.
    fn is_at(&mut self, kind: Kind, place: Option<Place>) -> Result<bool>;
}

/// What a row index says of the values of a stride.
#[derive(Debug, Clone)]
pub struct Claim {
    pub count: u64,
    /// The sum of numbers, the bytes of texts or how many are true, as far as 64 bits tell.
    pub total: Option<u64>,
    pub bounds: Option<ValueSet>,
}

/// Values as they are held against a claim.
pub struct Observed<'c> {
    claim: &'c Claim,
    test: Option<Test>,
    count: u64,
    total: u64,
    values: Values,
}

impl<'c> Observed<'c> {
    pub fn new(claim: &'c Claim, empty: Values) -> Result<Self> {
        let width = match &empty {
            Values::Fixed { width, .. } => *width,
            Values::Bits(_) => 1,
            Values::Bytes(_) => 0,
        };
        let test = claim.bounds.as_ref().map(|set| set.test(width));
        Ok(Observed {
            claim,
            test: test.transpose()?,
            count: 0,
            total: 0,
            values: empty,
        })
    }

    /// Look at all of the values that come next, and append those of these runs.
    pub fn pick(
        &mut self,
        decoder: &mut dyn Decoder,
        count: usize,
        runs: &[Run],
        output: &mut Values,
    ) -> Result<()> {
        clear(&mut self.values);
        decoder.read(count, &mut self.values)?;
        if let Some(test) = &self.test {
            if !all_pass(&self.values, count, test)? {
                return misplaced();
            }
        }
        self.count += count as u64;
        self.total = self.total.wrapping_add(total(&self.values));
        append_runs(&self.values, runs, output)
    }

    /// Look at values of which none is wanted.
    pub fn skip(&mut self, decoder: &mut dyn Decoder, mut count: u64) -> Result<()> {
        let mut none = empty_like(&self.values);
        while count > 0 {
            let some = count.min(TOGETHER);
            self.pick(decoder, some as usize, &[], &mut none)?;
            count -= some;
        }
        Ok(())
    }

    /// Whether these were the values that are claimed.
    pub fn finish(self) -> Result<()> {
        let same = self.claim.total.is_none_or(|total| total == self.total);
        match self.count == self.claim.count && (same || self.count == 0) {
            true => Ok(()),
            false => misplaced(),
        }
    }
}

pub fn misplaced<T>() -> Result<T> {
    corrupt("a row index that does not fit its streams")
}

fn clear(values: &mut Values) {
    match values {
        Values::Fixed { bytes, .. } => bytes.clear(),
        Values::Bits(bits) => *bits = Bits::default(),
        Values::Bytes(arrays) => {
            arrays.offsets.truncate(1);
            arrays.data.clear();
        }
    }
}

fn empty_like(values: &Values) -> Values {
    match values {
        Values::Fixed { width, .. } => Values::Fixed {
            width: *width,
            bytes: Vec::new(),
        },
        Values::Bits(_) => Values::Bits(Bits::default()),
        Values::Bytes(_) => Values::Bytes(Default::default()),
    }
}

fn total(values: &Values) -> u64 {
    match values {
        Values::Bits(bits) => count_ones(&bits.bytes, 0, bits.len) as u64,
        Values::Bytes(arrays) => arrays.data.len() as u64,
        Values::Fixed { width, bytes } => {
            let mut total = 0u64;
            for value in bytes.chunks_exact(*width) {
                // The lowest 64 bits, with the sign of narrower numbers.
                let mut word = [if value[*width - 1] < 128 { 0 } else { 0xFF }; 8];
                let kept = (*width).min(8);
                word[..kept].copy_from_slice(&value[..kept]);
                total = total.wrapping_add(u64::from_le_bytes(word));
            }
            total
        }
    }
}

fn append_runs(from: &Values, runs: &[Run], to: &mut Values) -> Result<()> {
    for run in runs {
        let (start, end) = (run.start as usize, run.end as usize);
        match (from, &mut *to) {
            (Values::Fixed { width, bytes: from }, Values::Fixed { bytes, .. }) => {
                bytes.extend_from_slice(&from[start * width..end * width]);
            }
            (Values::Bits(from), Values::Bits(bits)) => {
                bits.extend(&from.bytes, start, end - start);
            }
            (Values::Bytes(from), Values::Bytes(arrays)) => {
                for edges in from.offsets[start..=end].windows(2) {
                    arrays.push_part(&from.data, edges[0] as usize, edges[1] as usize)?;
                }
            }
            _ => return Err(Refusal::NotMine("values of another form")),
        }
    }
    Ok(())
}

/// The memory of values of one width.
pub fn fixed(values: &mut Values) -> Result<&mut Vec<u8>> {
    match values {
        Values::Fixed { bytes, .. } => Ok(bytes),
        _ => Err(Refusal::NotMine("values of another form")),
    }
}

impl Decoder for BitRuns<'_> {
    fn skip(&mut self, count: u64) -> Result<()> {
        BitRuns::skip(self, count).map(|_| ())
    }

    fn read(&mut self, count: usize, output: &mut Values) -> Result<()> {
        match output {
            Values::Bits(bits) => BitRuns::read(self, count, bits),
            _ => Err(Refusal::NotMine("values of another form")),
        }
    }

    fn mark(&mut self, begins: bool) {
        match begins {
            true => self.begin_marks(),
            false => self.end_marks(),
        }
    }

    fn is_at(&mut self, _: Kind, place: Option<Place>) -> Result<bool> {
        match place {
            Some(place) => Ok(self.has_reached(place)),
            None => self.is_at_end(),
        }
    }
}

impl Decoder for ByteRuns<'_> {
    fn skip(&mut self, count: u64) -> Result<()> {
        ByteRuns::skip(self, count)
    }

    fn read(&mut self, count: usize, output: &mut Values) -> Result<()> {
        ByteRuns::read(self, count as u64, fixed(output)?)
    }

    fn mark(&mut self, begins: bool) {
        match begins {
            true => self.marks.begin(),
            false => self.marks.end(),
        }
    }

    fn is_at(&mut self, _: Kind, place: Option<Place>) -> Result<bool> {
        match place {
            Some(place) => Ok(self.values_before(place) == Some(self.position())),
            None => self.is_at_end(),
        }
    }
}

/// Note where the runs of integers begin, or no more.
pub fn mark_integers(integers: &mut Integers, begins: bool) {
    match begins {
        true => integers.marks.begin(),
        false => integers.marks.end(),
    }
}

pub fn integers_are_at(integers: &mut Integers, place: Option<Place>) -> Result<bool> {
    match place {
        Some(place) => Ok(integers.has_reached(place)),
        None => integers.is_at_end(),
    }
}

impl Decoder for Integers<'_> {
    fn skip(&mut self, count: u64) -> Result<()> {
        Integers::skip(self, count)
    }

    fn read(&mut self, count: usize, output: &mut Values) -> Result<()> {
        let Values::Fixed { width, bytes } = output else {
            return Err(Refusal::NotMine("values of another form"));
        };
        grow(bytes, count.saturating_mul(*width))?;
        match width {
            2 => read_as::<2>(self, count, bytes, |v| v == i64::from(v as i16)),
            4 => read_as::<4>(self, count, bytes, |v| v == i64::from(v as i32)),
            _ => read_as::<8>(self, count, bytes, |_| true),
        }
    }

    fn mark(&mut self, begins: bool) {
        mark_integers(self, begins);
    }

    fn is_at(&mut self, _: Kind, place: Option<Place>) -> Result<bool> {
        integers_are_at(self, place)
    }
}

/// Append the lowest bytes of integers that must fit into them.
fn read_as<const WIDTH: usize>(
    integers: &mut Integers,
    count: usize,
    bytes: &mut Vec<u8>,
    fits: impl Fn(i64) -> bool,
) -> Result<()> {
    integers.walk(count as u64, |values| {
        if !values.iter().all(|value| fits(*value)) {
            return Err(Refusal::NotMine("integers that their type cannot hold"));
        }
        let begin = bytes.len();
        bytes.resize(begin + values.len() * WIDTH, 0);
        for (to, value) in bytes[begin..].chunks_exact_mut(WIDTH).zip(values) {
            to.copy_from_slice(&value.to_le_bytes()[..WIDTH]);
        }
        Ok(())
    })
}
