//! Strings and bytes: one behind the other with their lengths apart, or entries of a dictionary.

use std::cell::OnceCell;

use crate::error::{Refusal, Result, corrupt};
use crate::levels::grow;
use crate::orc::chunks::{Packing, Stream};
use crate::orc::float::bytes_are_at;
use crate::orc::int_rle::{Coding, Integers};
use crate::orc::leaf::{Decoder, Kind, integers_are_at, mark_integers};
use crate::orc::marks::Place;
use crate::output::{ByteArrays, Run};
use crate::raw;
use crate::values::Values;

const TOO_MANY: Refusal = Refusal::NotMine("more than 2 GiB of strings");

/// Strings as they are.
pub struct Strings<'a> {
    pub lengths: Integers<'a>,
    pub data: Stream<'a>,
    pub scratch: Vec<i64>,
}

/// What lengths are together; each must be one.
fn sum(lengths: &[i64]) -> Result<u64> {
    let mut total = 0u64;
    let mut all = 0;
    for &length in lengths {
        all |= length;
        total = total.wrapping_add(length as u64);
    }
    // Without a sign each is below 2^63, and few of them cannot be more than 64 bits have room for.
    match all >= 0 && lengths.iter().all(|length| *length < 1 << 40) {
        true => Ok(total),
        false => corrupt("lengths that are below zero, or larger than what there is"),
    }
}

impl Strings<'_> {
    /// Append strings of these lengths.
    fn append(&mut self, begin: usize, end: usize, output: &mut ByteArrays) -> Result<()> {
        let lengths = &self.scratch[begin..end];
        let size = sum(lengths)?;
        let mut reached = output.data.len() as i32;
        if size + reached as u64 > i32::MAX as u64 {
            return Err(TOO_MANY);
        }
        self.data.read(size, &mut output.data)?;
        grow(&mut output.offsets, lengths.len())?;
        output.offsets.extend(lengths.iter().map(|length| {
            reached += *length as i32;
            reached
        }));
        Ok(())
    }
}

fn arrays(values: &mut Values) -> Result<&mut ByteArrays> {
    match values {
        Values::Bytes(arrays) => Ok(arrays),
        _ => Err(Refusal::NotMine("values of another form")),
    }
}

impl Decoder for Strings<'_> {
    fn skip(&mut self, count: u64) -> Result<()> {
        let mut size = 0u64;
        self.lengths.walk(count, |lengths| {
            size = size.saturating_add(sum(lengths)?);
            Ok(())
        })?;
        self.data.skip(size)
    }

    fn read(&mut self, count: usize, output: &mut Values) -> Result<()> {
        self.scratch.clear();
        self.lengths.read(count, &mut self.scratch)?;
        self.append(0, count, arrays(output)?)
    }

    fn pick(&mut self, count: usize, runs: &[Run], output: &mut Values) -> Result<()> {
        self.scratch.clear();
        self.lengths.read(count, &mut self.scratch)?;
        let output = arrays(output)?;
        let mut position = 0;
        for run in runs {
            let (start, end) = (run.start as usize, run.end as usize);
            self.data.skip(sum(&self.scratch[position..start])?)?;
            self.append(start, end, output)?;
            position = end;
        }
        self.data.skip(sum(&self.scratch[position..])?)
    }

    fn mark(&mut self, begins: bool) {
        mark_integers(&mut self.lengths, begins);
    }

    fn is_at(&mut self, kind: Kind, place: Option<Place>) -> Result<bool> {
        match kind {
            Kind::Data => bytes_are_at(&mut self.data, place),
            _ => integers_are_at(&mut self.lengths, place),
        }
    }
}

/// The dictionary of a stripe, as it is stored, and its entries once somebody needs them.
pub struct Dictionary<'a> {
    pub packing: Packing,
    pub lengths: &'a [u8],
    pub data: &'a [u8],
    pub size: usize,
    pub coding: Coding,
    entries: OnceCell<ByteArrays>,
}

impl<'a> Dictionary<'a> {
    pub fn new(
        packing: Packing,
        lengths: &'a [u8],
        data: &'a [u8],
        size: usize,
        coding: Coding,
    ) -> Self {
        Dictionary {
            packing,
            lengths,
            data,
            size,
            coding,
            entries: OnceCell::new(),
        }
    }

    fn entries(&self) -> Result<&ByteArrays> {
        if let Some(entries) = self.entries.get() {
            return Ok(entries);
        }
        let mut strings = Strings {
            lengths: Integers::new(Stream::new(self.packing, self.lengths), self.coding),
            data: Stream::new(self.packing, self.data),
            scratch: Vec::new(),
        };
        let mut entries = Values::Bytes(ByteArrays::default());
        let mut left = self.size;
        while left > 0 {
            let some = left.min(4096);
            strings.read(some, &mut entries)?;
            left -= some;
        }
        if !strings.data.fill(1)?.is_empty() {
            return corrupt("a dictionary with bytes of no entry");
        }
        let Values::Bytes(entries) = entries else {
            return Err(TOO_MANY);
        };
        Ok(self.entries.get_or_init(|| entries))
    }
}

/// Strings that are entries of a dictionary.
pub struct Entries<'a, 'd> {
    pub indices: Integers<'a>,
    pub dictionary: &'d Dictionary<'a>,
    pub scratch: Vec<u32>,
}

impl Decoder for Entries<'_, '_> {
    fn skip(&mut self, count: u64) -> Result<()> {
        self.indices.skip(count)
    }

    fn read(&mut self, count: usize, output: &mut Values) -> Result<()> {
        self.pick(
            count,
            &[Run {
                start: 0,
                end: count as u32,
            }],
            output,
        )
    }

    fn pick(&mut self, count: usize, runs: &[Run], output: &mut Values) -> Result<()> {
        let scratch = &mut self.scratch;
        scratch.clear();
        let mut position = 0;
        for run in runs {
            self.indices.skip(u64::from(run.start - position))?;
            self.indices.walk(run.count() as u64, |indices| {
                if indices.iter().any(|index| *index >> 32 != 0) {
                    return corrupt("an index behind the last entry of the dictionary");
                }
                scratch.extend(indices.iter().map(|index| *index as u32));
                Ok(())
            })?;
            position = run.end;
        }
        self.indices.skip((count - position as usize) as u64)?;
        if scratch.is_empty() {
            return Ok(());
        }
        raw::gather_arrays(self.dictionary.entries()?, scratch, arrays(output)?)
    }

    fn mark(&mut self, begins: bool) {
        mark_integers(&mut self.indices, begins);
    }

    fn is_at(&mut self, _: Kind, place: Option<Place>) -> Result<bool> {
        integers_are_at(&mut self.indices, place)
    }
}
