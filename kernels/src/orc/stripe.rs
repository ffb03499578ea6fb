//! One leaf: from the streams of its chain to Arrow buffers of just the wanted rows, all parts in
//! one.
//!
//! A chain of columns leads from the row down to the leaf. Of each, only the values that are there
//! are stored: a null has no slot in what lies inside it. Arrow keeps one for a null struct.

use crate::column::Column;
use crate::error::{Refusal, Result, corrupt};
use crate::levels::{Validity, grow};
use crate::orc::byte_rle::ByteRuns;
use crate::orc::chunks::{Packing, Stream};
use crate::orc::decimal::{Decimals, ShortDecimals};
use crate::orc::float::Floats;
use crate::orc::int_rle::{Coding, Integers, Version};
use crate::orc::leaf::{Claim, Decoder, Kind, Observed, integers_are_at, mark_integers, misplaced};
use crate::orc::marks::Place;
use crate::orc::present::BitRuns;
use crate::orc::string::{Dictionary, Entries, Strings};
use crate::orc::timestamp::Times;
use crate::output::{Bits, ByteArrays, Run};
use crate::select::{Selection, count_ones, pick_present, push_run};
use crate::values::Values;

/// Slots that are decoded together, so that what is known of them stays in the cache.
const TOGETHER: u64 = 16 << 10;
/// Slots between two wanted ones that are rather skipped than looked at.
const FAR: u64 = 512;
/// Values that room is made for before anything is decoded.
const MOST_RESERVED: u64 = 1 << 24;

/// A column above the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Above {
    Struct,
    /// Maps too.
    List,
}

/// What the values of a leaf are, and become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Boolean,
    Byte,
    /// Of so many bytes.
    Integer(usize),
    Float(usize),
    Bytes,
    Time {
        in_nanoseconds: bool,
    },
    Decimal {
        scale: i64,
        is_short: bool,
    },
}

impl Form {
    fn empty(self) -> Values {
        let width = match self {
            Form::Boolean => return Values::Bits(Bits::default()),
            Form::Bytes => return Values::Bytes(ByteArrays::default()),
            Form::Byte => 1,
            Form::Integer(width) | Form::Float(width) => width,
            Form::Time { .. } => 8,
            Form::Decimal { .. } => 16,
        };
        Values::Fixed {
            width,
            bytes: Vec::new(),
        }
    }
}

/// What all parts of a leaf have in common.
#[derive(Debug, Clone)]
pub struct Leaf {
    pub above: Vec<Above>,
    pub form: Form,
}

/// How the columns of a chain are encoded in a stripe.
#[derive(Debug, Clone, Copy)]
pub struct Encoding {
    pub version: Version,
    /// How many entries the dictionary has, if there is one.
    pub dictionary: Option<usize>,
}

/// The streams of a column, by their numbers in the format.
pub const PRESENT: u32 = 0;
pub const DATA: u32 = 1;
pub const LENGTH: u32 = 2;
pub const DICTIONARY_DATA: u32 = 3;
pub const SECONDARY: u32 = 5;

/// A stream from a chunk on.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    pub bytes: &'a [u8],
    /// Where its first value is.
    pub begin: Place,
    /// Where the first value behind the observed rows is; None: the stream ends there.
    pub following: Option<Place>,
}

/// A stream of one of the columns of a chain.
#[derive(Debug, Clone, Copy)]
pub struct Located<'a> {
    /// Which of the columns.
    pub column: usize,
    pub kind: u32,
    pub piece: Piece<'a>,
}

/// Rows that follow each other.
#[derive(Debug)]
pub struct Segment<'a> {
    pub rows: u64,
    pub streams: Vec<Located<'a>>,
    /// The rows of the first stride and what is claimed of them, where an index led to it.
    pub claim: Option<(u64, Claim)>,
}

/// What is read of a leaf in one stripe, and which of its rows are wanted.
#[derive(Debug)]
pub struct Part<'a> {
    pub packing: Packing,
    /// Of each column of the chain.
    pub encodings: Vec<Encoding>,
    /// The second that times count from.
    pub base: i64,
    pub dictionaries: Vec<Located<'a>>,
    pub segments: Vec<Segment<'a>>,
    pub starts: Vec<i64>,
    pub ends: Vec<i64>,
}

/// The wanted rows of a leaf; where that fails, the part is told.
pub fn decode(leaf: &Leaf, parts: &[Part]) -> std::result::Result<Column, (usize, Refusal)> {
    let mut building = Building::new(leaf);
    let wanted = parts
        .iter()
        .flat_map(|part| part.starts.iter().zip(&part.ends));
    let wanted = wanted.fold(0u64, |sum, (start, end)| {
        sum.saturating_add(end.saturating_sub(*start).max(0) as u64)
    });
    if leaf.above.is_empty() {
        let room = building.values.reserve(wanted.min(MOST_RESERVED) as usize);
        room.map_err(|refusal| (0, refusal))?;
    }
    for (place, part) in parts.iter().enumerate() {
        building.append(part).map_err(|refusal| (place, refusal))?;
    }
    Ok(building.finish())
}

/// A range of slots.
#[derive(Debug, Clone, Copy)]
struct Range {
    start: u64,
    end: u64,
}

/// The slots of a column above the leaf, as they are appended.
#[derive(Debug, Default)]
struct Layer {
    validity: Validity,
    offsets: Option<Vec<i32>>,
    below: u64,
}

/// A column that grows.
struct Building<'l> {
    leaf: &'l Leaf,
    layers: Vec<Layer>,
    validity: Validity,
    values: Values,
}

impl<'l> Building<'l> {
    fn new(leaf: &'l Leaf) -> Self {
        let layers = leaf.above.iter().map(|above| Layer {
            offsets: (*above == Above::List).then(|| vec![0]),
            ..Layer::default()
        });
        Building {
            leaf,
            layers: layers.collect(),
            validity: Validity::default(),
            values: leaf.form.empty(),
        }
    }

    fn append(&mut self, part: &Part) -> Result<()> {
        let total = part.segments.iter().map(|segment| segment.rows);
        let total = total.fold(0, u64::saturating_add);
        Selection::new(&part.starts, &part.ends, total)?;
        if part.encodings.len() != self.leaf.above.len() + 1 {
            return corrupt("another number of encodings than columns");
        }
        let dictionary = part.dictionary(self.leaf.above.len())?;
        let mut wanted = part
            .starts
            .iter()
            .zip(&part.ends)
            .map(|(start, end)| Range {
                start: *start as u64,
                end: *end as u64,
            });
        let mut next = wanted.next();
        let mut before = 0;
        for segment in &part.segments {
            let behind = before + segment.rows;
            let mut ranges = Vec::new();
            while let Some(range) = next.filter(|range| range.start < behind) {
                ranges.push(Range {
                    start: range.start - before,
                    end: range.end.min(behind) - before,
                });
                next = match range.end > behind {
                    true => Some(Range {
                        start: behind,
                        end: range.end,
                    }),
                    false => wanted.next(),
                };
            }
            before = behind;
            if !ranges.is_empty() {
                self.append_segment(part, segment, dictionary.as_ref(), &ranges)?;
            }
        }
        Ok(())
    }

    fn append_segment(
        &mut self,
        part: &Part,
        segment: &Segment,
        dictionary: Option<&Dictionary>,
        ranges: &[Range],
    ) -> Result<()> {
        let mut reader = Reader::new(self.leaf, part, segment, dictionary)?;
        let Some((rows, claim)) = &segment.claim else {
            let last = ranges.last().map_or(0, |range| range.end);
            return reader.slots(0, last, ranges, self);
        };
        let rows = *rows;
        let first: Vec<Range> = clip(ranges, 0, rows);
        reader.observed = Some(Observed::new(claim, self.leaf.form.empty())?);
        reader.slots(0, rows, &first, self)?;
        if let Some(observed) = reader.observed.take() {
            observed.finish()?;
        }
        reader.require_places(segment)?;
        reader.mark(false);
        let rest = clip(ranges, rows, u64::MAX);
        let last = rest.last().map_or(0, |range| range.end);
        reader.slots(0, last, &rest, self)
    }

    fn finish(self) -> Column {
        let layers = self.layers.into_iter();
        Column {
            layers: layers
                .map(|layer| (layer.validity, layer.offsets))
                .collect(),
            validity: self.validity,
            values: self.values,
            pages: 0,
            matches: None,
        }
    }
}

/// The parts of ranges between two places, counted from the first of them.
fn clip(ranges: &[Range], start: u64, end: u64) -> Vec<Range> {
    let inside = ranges.iter().filter(|r| r.end > start && r.start < end);
    inside
        .map(|range| Range {
            start: range.start.max(start) - start,
            end: range.end.min(end) - start,
        })
        .collect()
}

impl<'a> Part<'a> {
    fn dictionary(&self, leaf: usize) -> Result<Option<Dictionary<'a>>> {
        let encoding = &self.encodings[leaf];
        let Some(size) = encoding.dictionary else {
            return Ok(None);
        };
        let find = |kind| {
            let mut streams = self.dictionaries.iter();
            let found = streams.find(|stream| stream.kind == kind && stream.column == leaf);
            found.map(|stream| stream.piece.bytes)
        };
        let (Some(lengths), Some(data)) = (find(LENGTH), find(DICTIONARY_DATA)) else {
            return corrupt("a stream is missing");
        };
        let coding = Coding {
            version: encoding.version,
            signed: false,
        };
        let dictionary = Dictionary::new(self.packing, lengths, data, size, coding);
        Ok(Some(dictionary))
    }
}

/// A column of a chain above the leaf, as it is read.
struct Nest<'a> {
    present: Option<BitRuns<'a>>,
    /// Of a list, how many items each has.
    lengths: Option<Integers<'a>>,
}

/// The columns of a chain, as they are read.
struct Reader<'a, 'd, 'c> {
    above: Vec<Nest<'a>>,
    present: Option<BitRuns<'a>>,
    decoder: Box<dyn Decoder + 'd>,
    observed: Option<Observed<'c>>,
}

/// The streams of a segment.
struct Streams<'s, 'a> {
    packing: Packing,
    segment: &'s Segment<'a>,
}

impl<'a> Streams<'_, 'a> {
    fn piece(&self, column: usize, kind: u32) -> Option<Piece<'a>> {
        let mut streams = self.segment.streams.iter();
        let found = streams.find(|stream| stream.column == column && stream.kind == kind);
        found.map(|stream| stream.piece)
    }

    /// The bytes of a stream from its first value on.
    fn bytes(&self, column: usize, kind: u32) -> Result<(Stream<'a>, Place)> {
        let Some(piece) = self.piece(column, kind) else {
            return corrupt("a stream is missing");
        };
        let mut stream = Stream::new(self.packing, piece.bytes);
        stream.skip(piece.begin.inside)?;
        Ok((stream, piece.begin))
    }

    fn integers(&self, column: usize, kind: u32, coding: Coding) -> Result<Integers<'a>> {
        let (stream, begin) = self.bytes(column, kind)?;
        let mut integers = Integers::new(stream, coding);
        mark_integers(&mut integers, self.segment.claim.is_some());
        integers.skip(begin.values)?;
        Ok(integers)
    }

    fn bits(&self, column: usize, kind: u32) -> Result<BitRuns<'a>> {
        let (stream, begin) = self.bytes(column, kind)?;
        let mut bits = BitRuns::new(stream);
        if self.segment.claim.is_some() {
            bits.begin_marks();
        }
        bits.skip(begin.values.saturating_mul(8).saturating_add(begin.bits))?;
        Ok(bits)
    }

    fn present(&self, column: usize) -> Result<Option<BitRuns<'a>>> {
        match self.piece(column, PRESENT) {
            Some(_) => self.bits(column, PRESENT).map(Some),
            None => Ok(None),
        }
    }

    fn decoder<'d>(
        &self,
        form: Form,
        column: usize,
        part: &Part<'a>,
        dictionary: Option<&'d Dictionary<'a>>,
    ) -> Result<Box<dyn Decoder + 'd>>
    where
        'a: 'd,
    {
        let version = part.encodings[column].version;
        let signed = Coding {
            version,
            signed: true,
        };
        let unsigned = Coding {
            version,
            signed: false,
        };
        Ok(match form {
            Form::Boolean => Box::new(self.bits(column, DATA)?),
            Form::Byte => {
                let (stream, begin) = self.bytes(column, DATA)?;
                let mut bytes = ByteRuns::new(stream);
                if self.segment.claim.is_some() {
                    bytes.marks.begin();
                }
                bytes.skip(begin.values)?;
                Box::new(bytes)
            }
            Form::Integer(_) => Box::new(self.integers(column, DATA, signed)?),
            Form::Float(width) => Box::new(Floats {
                stream: self.bytes(column, DATA)?.0,
                width: width as u64,
            }),
            Form::Bytes => match dictionary {
                Some(dictionary) => Box::new(Entries {
                    indices: self.integers(column, DATA, unsigned)?,
                    dictionary,
                    scratch: Vec::new(),
                }),
                None => Box::new(Strings {
                    lengths: self.integers(column, LENGTH, unsigned)?,
                    data: self.bytes(column, DATA)?.0,
                    scratch: Vec::new(),
                }),
            },
            Form::Time { in_nanoseconds } => Box::new(Times {
                seconds: self.integers(column, DATA, signed)?,
                nanoseconds: self.integers(column, SECONDARY, unsigned)?,
                base: part.base,
                in_nanoseconds,
                scratch: Default::default(),
            }),
            Form::Decimal { scale, is_short } => match self.piece(column, SECONDARY) {
                Some(_) => Box::new(Decimals {
                    data: self.bytes(column, DATA)?.0,
                    scales: self.integers(column, SECONDARY, signed)?,
                    scale,
                    is_short,
                    scratch: Vec::new(),
                }),
                None => {
                    let coding = Coding {
                        version: Version::Two,
                        signed: true,
                    };
                    Box::new(ShortDecimals {
                        values: self.integers(column, DATA, coding)?,
                    })
                }
            },
        })
    }
}

impl<'a, 'd> Reader<'a, 'd, '_> {
    fn new(
        leaf: &Leaf,
        part: &Part<'a>,
        segment: &Segment<'a>,
        dictionary: Option<&'d Dictionary<'a>>,
    ) -> Result<Self>
    where
        'a: 'd,
    {
        let streams = Streams {
            packing: part.packing,
            segment,
        };
        let mut above = Vec::with_capacity(leaf.above.len());
        for (column, kind) in leaf.above.iter().enumerate() {
            let coding = Coding {
                version: part.encodings[column].version,
                signed: false,
            };
            let lengths = match kind {
                Above::Struct => None,
                Above::List => Some(streams.integers(column, LENGTH, coding)?),
            };
            above.push(Nest {
                present: streams.present(column)?,
                lengths,
            });
        }
        let column = leaf.above.len();
        Ok(Reader {
            above,
            present: streams.present(column)?,
            decoder: streams.decoder(leaf.form, column, part, dictionary)?,
            observed: None,
        })
    }

    fn mark(&mut self, begins: bool) {
        for nest in &mut self.above {
            if let Some(present) = &mut nest.present {
                present.mark(begins);
            }
            if let Some(lengths) = &mut nest.lengths {
                mark_integers(lengths, begins);
            }
        }
        if let Some(present) = &mut self.present {
            present.mark(begins);
        }
        self.decoder.mark(begins);
    }

    /// All streams must be where the next stride begins.
    fn require_places(&mut self, segment: &Segment) -> Result<()> {
        let leaf = self.above.len();
        for stream in &segment.streams {
            let place = stream.piece.following;
            let nest = self.above.get_mut(stream.column);
            let is_there = match (stream.kind, nest) {
                (PRESENT, nest) => {
                    let present = match nest {
                        Some(nest) => nest.present.as_mut(),
                        None => self.present.as_mut(),
                    };
                    match present {
                        Some(present) => Decoder::is_at(present, Kind::Data, place)?,
                        None => false,
                    }
                }
                (_, Some(nest)) => match &mut nest.lengths {
                    Some(lengths) => integers_are_at(lengths, place)?,
                    None => true,
                },
                (DATA, None) => self.decoder.is_at(Kind::Data, place)?,
                (LENGTH, None) => self.decoder.is_at(Kind::Length, place)?,
                _ => self.decoder.is_at(Kind::Secondary, place)?,
            };
            if !is_there || stream.column > leaf {
                return misplaced();
            }
        }
        Ok(())
    }

    /// Pass `count` slots of a column, rows or items, and append those of these ranges.
    fn slots(
        &mut self,
        level: usize,
        count: u64,
        ranges: &[Range],
        output: &mut Building,
    ) -> Result<()> {
        let mut position = 0;
        let mut runs = Vec::new();
        let mut left = ranges.iter().copied();
        let mut next = left.next();
        while let Some(first) = next {
            self.skip(level, first.start - position)?;
            position = first.start;
            let most = position + TOGETHER;
            let mut reached = position;
            runs.clear();
            while let Some(range) = next {
                if range.start >= most || range.start - reached > FAR {
                    break;
                }
                reached = range.end.min(most);
                let start = (range.start - position) as usize;
                push_run(&mut runs, start, (reached - position) as usize);
                next = match range.end > most {
                    true => {
                        next = Some(Range {
                            start: most,
                            end: range.end,
                        });
                        break;
                    }
                    false => left.next(),
                };
            }
            self.batch(level, (reached - position) as usize, &runs, None, output)?;
            position = reached;
        }
        self.skip(level, count - position)
    }

    /// Pass over slots of a column.
    fn skip(&mut self, level: usize, count: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let Some(nest) = self.above.get_mut(level) else {
            let count = match &mut self.present {
                Some(present) => present.skip(count)?,
                None => count,
            };
            return match &mut self.observed {
                Some(observed) => observed.skip(&mut *self.decoder, count),
                None => self.decoder.skip(count),
            };
        };
        let mut count = match &mut nest.present {
            Some(present) => present.skip(count)?,
            None => count,
        };
        if let Some(lengths) = &mut nest.lengths {
            let mut items = 0u64;
            lengths.walk(count, |lengths| {
                for length in lengths {
                    items = add_items(items, *length)?;
                }
                Ok(())
            })?;
            count = items;
        }
        self.skip(level + 1, count)
    }

    /// Pass `count` slots of a column and append those of these runs.
    ///
    /// Arrow has a slot for each value inside a null struct above, too: those that are set in
    /// `parents` are the slots of the runs.
    fn batch(
        &mut self,
        level: usize,
        count: usize,
        runs: &[Run],
        parents: Option<&Bits>,
        output: &mut Building,
    ) -> Result<()> {
        let present = match self.above.get_mut(level) {
            Some(nest) => &mut nest.present,
            None => &mut self.present,
        };
        let mut picked = Vec::new();
        let (count, runs, slots) = match present {
            None => (count, runs, parents.cloned()),
            Some(present) => {
                let (mut bits, mut slots) = (Bits::default(), Bits::default());
                BitRuns::read(present, count, &mut bits)?;
                pick_present(&bits, runs, &mut slots, &mut picked);
                let slots = match parents {
                    Some(parents) => spread(&slots, parents),
                    None => slots,
                };
                let values = count_ones(&bits.bytes, 0, bits.len);
                (values, &picked[..], Some(slots))
            }
        };
        let wanted = runs.iter().map(Run::count).sum();
        let Some(nest) = self.above.get_mut(level) else {
            let before = output.validity.len();
            match &mut self.observed {
                Some(observed) => {
                    observed.pick(&mut *self.decoder, count, runs, &mut output.values)?;
                }
                None => self.decoder.pick(count, runs, &mut output.values)?,
            }
            if let Some(slots) = slots.as_ref().filter(|slots| wanted < slots.len) {
                output.values.spread(before, wanted, slots)?;
            }
            extend(&mut output.validity, slots.as_ref(), wanted);
            return Ok(());
        };
        let layer = &mut output.layers[level];
        extend(&mut layer.validity, slots.as_ref(), wanted);
        let Some(lengths) = &mut nest.lengths else {
            return self.batch(level + 1, count, runs, slots.as_ref(), output);
        };
        let mut ends = Vec::with_capacity(count);
        let mut items = 0;
        lengths.walk(count as u64, |lengths| {
            for length in lengths {
                items = add_items(items, *length)?;
                ends.push(items);
            }
            Ok(())
        })?;
        let ranges = layer.append_lists(runs, &ends, slots.as_ref())?;
        self.slots(level + 1, items, &ranges, output)
    }
}

impl Layer {
    /// Append the offsets of lists that end at these items; returns which items are wanted.
    fn append_lists(
        &mut self,
        runs: &[Run],
        ends: &[u64],
        slots: Option<&Bits>,
    ) -> Result<Vec<Range>> {
        let Some(offsets) = &mut self.offsets else {
            return corrupt("a struct with lengths");
        };
        let end_of = |list: u32| match list {
            0 => 0,
            _ => ends[list as usize - 1],
        };
        let mut ranges: Vec<Range> = Vec::new();
        let mut lists = runs.iter().flat_map(|run| run.start..run.end);
        let count = slots.map_or_else(|| runs.iter().map(Run::count).sum(), |slots| slots.len);
        grow(offsets, count)?;
        for slot in 0..count {
            if slots.is_none_or(|slots| slots.get(slot)) {
                if let Some(list) = lists.next() {
                    self.below += end_of(list + 1) - end_of(list);
                }
            }
            match i32::try_from(self.below) {
                Ok(end) => offsets.push(end),
                Err(_) => return Err(Refusal::NotMine("more than 2^31 items")),
            }
        }
        for run in runs {
            let (start, end) = (end_of(run.start), end_of(run.end));
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ if start < end => ranges.push(Range { start, end }),
                _ => {}
            }
        }
        Ok(ranges)
    }
}

/// More items, by the length of a list.
fn add_items(items: u64, length: i64) -> Result<u64> {
    let length = u64::try_from(length)
        .ok()
        .filter(|length| *length <= i32::MAX as u64);
    match length.and_then(|length| items.checked_add(length)) {
        Some(items) => Ok(items),
        None => corrupt("lengths that are below zero, or larger than what there is"),
    }
}

fn extend(validity: &mut Validity, slots: Option<&Bits>, count: usize) {
    match slots {
        Some(slots) => validity.extend(slots),
        None => validity.extend_valid(count),
    }
}

/// Bits for those that are set in others; the rest is 0.
fn spread(bits: &Bits, into: &Bits) -> Bits {
    let mut spread = Bits::default();
    let mut place = 0;
    for slot in 0..into.len {
        let is_there = into.get(slot);
        spread.push(is_there && bits.get(place));
        place += usize::from(is_there);
    }
    spread
}
