//! Which of the wanted values of a page are in a set, and which rows they belong to.

use crate::dictionary::{Dictionary, is_used_by};
use crate::error::{Refusal, Result, corrupt};
use crate::output::{Bits, ByteArrays, Decoder, Run};
use crate::plain::Bytes;
use crate::rle::{EncodedRun, Indices};
use crate::select::{Picks, push_run};
use crate::value_set::{BytesTest, Key, NumberTest, Order, Test, ValueSet};
use crate::values::{Encoded, Form, PLAIN, Values};

/// Values that are tested together: the answers are the bits of a word.
const WORD: usize = 64;
/// Indices that are unpacked together.
const CHUNK: usize = 1024;

/// A search for the values of a set in the pages of a leaf.
pub struct Finder {
    form: Form,
    test: Test,
    entries: Option<Entries>,
}

/// Which entries of a dictionary are in the set.
struct Entries {
    /// 1 for those inside, 0 for others.
    table: Vec<u8>,
    inside: usize,
    /// The first one inside.
    first: u32,
}

impl Finder {
    pub fn new(set: &ValueSet, form: Form) -> Result<Self> {
        let width = match form.empty() {
            Values::Fixed { width, .. } => width,
            Values::Bits(_) => 1,
            Values::Bytes(_) => 0,
        };
        Ok(Finder {
            form: form.unchecked(),
            test: set.test(width)?,
            entries: None,
        })
    }

    /// Forget the dictionary of the part before.
    pub fn begin_part(&mut self) {
        self.entries = None;
    }

    /// Whether no entry of the dictionary is in the set.
    pub fn is_in_vain(&mut self, dictionary: &Dictionary) -> Result<bool> {
        match self.test {
            Test::Always(is_inside) => Ok(!is_inside),
            _ => Ok(self.entries(dictionary)?.inside == 0),
        }
    }

    fn entries(&mut self, dictionary: &Dictionary) -> Result<&Entries> {
        match &mut self.entries {
            Some(entries) => Ok(entries),
            none => Ok(none.insert(Entries::new(&self.test, dictionary)?)),
        }
    }

    /// Append the runs of picked values that are in the set.
    pub fn find(
        &mut self,
        page: Encoded,
        picks: Picks,
        dictionary: &Dictionary,
        found: &mut Vec<Run>,
    ) -> Result<()> {
        let whole = whole(page.num_values);
        let runs = match picks {
            Picks::All(_) => &whole[..],
            Picks::Runs(runs) => runs,
        };
        if let Test::Always(is_inside) = self.test {
            if is_inside {
                push_runs(runs, found);
            }
            return Ok(());
        }
        if is_used_by(page.encoding) {
            return self.find_entries(page, runs, dictionary, found);
        }
        if page.encoding == PLAIN {
            if let Some(width) = self.form.copied_width() {
                let bytes = page.bytes.get(..page.num_values.saturating_mul(width));
                let Some(bytes) = bytes else {
                    return corrupt("a page ends before its values");
                };
                let stored = Stored::Fixed { width, bytes };
                return stored.scan(&self.test, runs, false, found);
            }
            if let (Test::Bytes(test), true) = (&self.test, self.form.is_bytes()) {
                return find_arrays(page, runs, test, found);
            }
        }
        let mut values = self.form.empty();
        self.form.append(page, picks, &mut values)?;
        Stored::of(&values).scan(&self.test, runs, true, found)
    }

    /// Append the runs of indices whose entries are in the set.
    fn find_entries(
        &mut self,
        page: Encoded,
        runs: &[Run],
        dictionary: &Dictionary,
        found: &mut Vec<Run>,
    ) -> Result<()> {
        let entries = self.entries(dictionary)?;
        let table = &entries.table[..];
        if entries.inside == 0 {
            return Ok(());
        }
        if entries.inside == table.len() {
            push_runs(runs, found);
            return Ok(());
        }
        let first = entries.first;
        let is_only = entries.inside == 1;
        walk_indices(page, runs, table.len(), |position, indices| match indices {
            IndexRun::Repeated { index, count } => {
                if table[index as usize] == 1 {
                    push_run(found, position, position + count);
                }
            }
            IndexRun::Unpacked(indices) => {
                for (place, indices) in indices.chunks(WORD).enumerate() {
                    let mut flags = [0; WORD];
                    let pairs = flags.iter_mut().zip(indices);
                    if is_only {
                        pairs.for_each(|(flag, index)| *flag = u8::from(*index == first));
                    } else {
                        pairs.for_each(|(flag, index)| *flag = table[*index as usize]);
                    }
                    push_flags(found, position + place * WORD, &flags);
                }
            }
        })
    }
}

/// Whether a picked value is not in this set, which is what is claimed of a page.
pub fn is_outside(
    claimed: &ValueSet,
    form: Form,
    page: Encoded,
    picks: Picks,
    dictionary: &mut Dictionary,
) -> Result<bool> {
    let mut finder = Finder::new(claimed, form)?;
    let mut found = Vec::new();
    let entries = dictionary.entries().filter(|_| is_used_by(page.encoding));
    let Some((_, count)) = entries else {
        finder.find(page, picks, dictionary, &mut found)?;
        return Ok(Picks::Runs(&found).count() < picks.count());
    };
    if picks.count() < count {
        // To look at few values costs less than to mark which of many entries they are.
        let mut values = form.empty();
        dictionary.append(page, picks, false, &mut Vec::new(), &mut values)?;
        Stored::of(&values).scan(&finder.test, &whole(picks.count()), false, &mut found)?;
        return Ok(Picks::Runs(&found).count() < picks.count());
    }
    let whole = whole(page.num_values);
    let runs = match picks {
        Picks::All(_) => &whole[..],
        Picks::Runs(runs) => runs,
    };
    let mut used = vec![0; count];
    walk_indices(page, runs, count, |_, indices| match indices {
        IndexRun::Repeated { index, .. } => used[index as usize] = 1,
        IndexRun::Unpacked(indices) => {
            for index in indices {
                used[*index as usize] = 1;
            }
        }
    })?;
    let mut runs = Vec::new();
    for (place, flags) in used.chunks(WORD).enumerate() {
        let mut padded = [0; WORD];
        padded[..flags.len()].copy_from_slice(flags);
        push_flags(&mut runs, place * WORD, &padded);
    }
    if let Some((entries, _)) = dictionary.entries() {
        Stored::of(entries).scan(&finder.test, &runs, false, &mut found)?;
    }
    Ok(Picks::Runs(&found).count() < Picks::Runs(&runs).count())
}

/// Whether all of so many values pass a test.
pub fn all_pass(values: &Values, count: usize, test: &Test) -> Result<bool> {
    let mut found = Vec::new();
    Stored::of(values).scan(test, &whole(count), false, &mut found)?;
    Ok(Picks::Runs(&found).count() == count)
}

impl Entries {
    fn new(test: &Test, dictionary: &Dictionary) -> Result<Self> {
        let Some((entries, count)) = dictionary.entries() else {
            return corrupt("dictionary indices without a dictionary");
        };
        let mut found = Vec::new();
        Stored::of(entries).scan(test, &whole(count), false, &mut found)?;
        let mut table = vec![0; count];
        for run in &found {
            table[run.start as usize..run.end as usize].fill(1);
        }
        Ok(Entries {
            table,
            inside: Picks::Runs(&found).count(),
            first: found.first().map_or(0, |run| run.start),
        })
    }
}

/// Indices of a page, checked.
enum IndexRun<'a> {
    Repeated { index: u32, count: usize },
    Unpacked(&'a [u32]),
}

/// Call with the wanted indices of a page, which refer to one of so many entries.
fn walk_indices(
    page: Encoded,
    runs: &[Run],
    num_entries: usize,
    mut visit: impl FnMut(usize, IndexRun),
) -> Result<()> {
    let mut indices = Indices::of_page(page.bytes, page.num_values)?;
    let mut buffer = [0; CHUNK];
    for run in runs {
        indices.skip(run.start as usize - indices.position())?;
        while indices.position() < run.end as usize {
            let position = indices.position();
            let left = run.end as usize - position;
            let highest = match indices.next_run(left)? {
                EncodedRun::Repeated { value, count } => {
                    if (value as usize) < num_entries {
                        visit(
                            position,
                            IndexRun::Repeated {
                                index: value,
                                count,
                            },
                        );
                    }
                    value
                }
                EncodedRun::Packed(packed) => {
                    let mut highest = 0;
                    for begin in (0..packed.count).step_by(CHUNK) {
                        let part = packed.part(begin, CHUNK);
                        let unpacked = &mut buffer[..part.count];
                        part.unpack(unpacked);
                        highest = unpacked
                            .iter()
                            .fold(highest, |most, value| most.max(*value));
                        if highest as usize >= num_entries {
                            break;
                        }
                        visit(position + begin, IndexRun::Unpacked(unpacked));
                    }
                    highest
                }
            };
            if highest as usize >= num_entries {
                return corrupt("an index behind the last entry of the dictionary");
            }
        }
    }
    Ok(())
}

/// Search in byte arrays as they are stored, each behind its length.
fn find_arrays(page: Encoded, runs: &[Run], test: &BytesTest, found: &mut Vec<Run>) -> Result<()> {
    let mut values = Bytes::new(page.bytes, page.num_values)?;
    for run in runs {
        values.skip(run.start as usize - values.position())?;
        for position in (run.start as usize..run.end as usize).step_by(WORD) {
            let count = WORD.min(run.end as usize - position);
            let mut flags = [0; WORD];
            let mut place = 0;
            values.visit(count, |value| {
                flags[place % WORD] = u8::from(test.contains(value));
                place += 1;
            })?;
            push_flags(found, position, &flags);
        }
    }
    Ok(())
}

/// Values of a leaf in memory, in its form.
enum Stored<'a> {
    Fixed { width: usize, bytes: &'a [u8] },
    Bits(&'a Bits),
    Arrays(&'a ByteArrays),
}

impl<'a> Stored<'a> {
    fn of(values: &'a Values) -> Self {
        match values {
            Values::Fixed { width, bytes } => Stored::Fixed {
                width: *width,
                bytes,
            },
            Values::Bits(bits) => Stored::Bits(bits),
            Values::Bytes(arrays) => Stored::Arrays(arrays),
        }
    }

    /// Append the runs of values that pass the test.
    ///
    /// Where only the wanted ones are stored they are `compact`: one run behind the other.
    fn scan(
        &self,
        test: &Test,
        runs: &[Run],
        is_compact: bool,
        found: &mut Vec<Run>,
    ) -> Result<()> {
        let spans = spans(runs, is_compact);
        match (test, self) {
            (Test::Always(true), _) => push_runs(runs, found),
            (Test::Always(false), _) => {}
            (Test::Bytes(test), Stored::Arrays(arrays)) => {
                scan(spans, found, |index| {
                    let edges = &arrays.offsets[index..index + 2];
                    test.contains(&arrays.data[edges[0] as usize..edges[1] as usize])
                });
            }
            (Test::Bytes(test), Stored::Fixed { width, bytes }) => {
                scan(spans, found, |index| {
                    test.contains(&bytes[index * width..][..*width])
                });
            }
            (Test::Width1(order, test), Stored::Bits(bits)) => {
                let answers = [0u8, 1].map(|bit| test.contains(key(*order, bit)));
                scan(spans, found, |index| answers[usize::from(bits.get(index))]);
            }
            (Test::Width1(order, test), Stored::Fixed { bytes, .. }) => {
                scan_numbers(*order, test, bytes, spans, found);
            }
            (Test::Width2(order, test), Stored::Fixed { bytes, .. }) => {
                scan_numbers(*order, test, bytes, spans, found);
            }
            (Test::Width4(order, test), Stored::Fixed { bytes, .. }) => {
                scan_numbers(*order, test, bytes, spans, found);
            }
            (Test::Width8(order, test), Stored::Fixed { bytes, .. }) => {
                scan_numbers(*order, test, bytes, spans, found);
            }
            (Test::Width16(order, test), Stored::Fixed { bytes, .. }) => {
                scan_numbers(*order, test, bytes, spans, found);
            }
            _ => return Err(Refusal::NotMine("a set of another type than the values")),
        }
        Ok(())
    }
}

/// Wanted values: their place in the page, and where they are stored.
#[derive(Debug, Clone, Copy)]
struct Span {
    position: usize,
    index: usize,
    count: usize,
}

fn spans(runs: &[Run], is_compact: bool) -> impl Iterator<Item = Span> {
    let mut before = 0;
    runs.iter().map(move |run| {
        let position = run.start as usize;
        let index = if is_compact { before } else { position };
        before += run.count();
        Span {
            position,
            index,
            count: run.count(),
        }
    })
}

/// Test values one by one.
fn scan(spans: impl Iterator<Item = Span>, found: &mut Vec<Run>, test: impl Fn(usize) -> bool) {
    for span in spans {
        for begin in (0..span.count).step_by(WORD) {
            let mut flags = [0; WORD];
            let indices = span.index + begin..span.index + span.count;
            for (flag, index) in flags.iter_mut().zip(indices) {
                *flag = u8::from(test(index));
            }
            push_flags(found, span.position + begin, &flags);
        }
    }
}

/// Test numbers, with a loop of its own for each kind of test.
fn scan_numbers<K: Key>(
    order: Order,
    test: &NumberTest<K>,
    bytes: &[u8],
    spans: impl Iterator<Item = Span>,
    found: &mut Vec<Run>,
) {
    match (order, test) {
        (Order::Float, NumberTest::Range { .. }) => {
            scan_keys(bytes, spans, found, |stored: K| {
                test.contains(stored.of_float())
            });
        }
        (
            Order::Signed,
            NumberTest::Range {
                first,
                span,
                is_inside,
            },
        ) => {
            // Differences are the same without the sign.
            let (first, span, is_inside) = (first.of_signed(), *span, *is_inside);
            scan_keys(bytes, spans, found, |stored: K| {
                stored.is_within(first, span) == is_inside
            });
        }
        _ => scan_keys(bytes, spans, found, |stored: K| {
            test.contains(key(order, stored))
        }),
    }
}

fn key<K: Key>(order: Order, stored: K) -> K {
    match order {
        Order::Signed => stored.of_signed(),
        Order::Float => stored.of_float(),
        Order::Unsigned | Order::Bytes => stored,
    }
}

#[inline(always)]
fn scan_keys<K: Key>(
    bytes: &[u8],
    spans: impl Iterator<Item = Span>,
    found: &mut Vec<Run>,
    test: impl Fn(K) -> bool,
) {
    for span in spans {
        let stored = &bytes[span.index * K::WIDTH..(span.index + span.count) * K::WIDTH];
        for (place, stored) in stored.chunks(WORD * K::WIDTH).enumerate() {
            let mut flags = [0; WORD];
            let values = stored.chunks_exact(K::WIDTH);
            for (flag, value) in flags.iter_mut().zip(values) {
                *flag = u8::from(test(K::load(value)));
            }
            push_flags(found, span.position + place * WORD, &flags);
        }
    }
}

/// Append the runs of flags that are 1, from a position on.
#[inline(always)]
fn push_flags(found: &mut Vec<Run>, position: usize, flags: &[u8; WORD]) {
    if flags.iter().fold(0, |any, flag| any | flag) != 0 {
        push_word(found, position, pack(flags));
    }
}

/// The flags, each 0 or 1, as the bits of a word.
fn pack(flags: &[u8; WORD]) -> u64 {
    let mut word = 0;
    for (place, flags) in flags.chunks_exact(8).enumerate() {
        let flags = u64::from_le_bytes(std::array::from_fn(|place| flags[place]));
        // The factor brings each flag to its place in the highest byte.
        let byte = flags.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= byte << (8 * place);
    }
    word
}

fn push_word(found: &mut Vec<Run>, mut position: usize, mut word: u64) {
    while word != 0 {
        let zeros = word.trailing_zeros();
        position += zeros as usize;
        word >>= zeros;
        let ones = word.trailing_ones();
        push_run(found, position, position + ones as usize);
        position += ones as usize;
        word = word.checked_shr(ones).unwrap_or(0);
    }
}

/// The run of so many values, if there are any.
fn whole(count: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    push_run(&mut runs, 0, count);
    runs
}

fn push_runs(runs: &[Run], found: &mut Vec<Run>) {
    for run in runs {
        push_run(found, run.start as usize, run.end as usize);
    }
}

/// Append the rows of these values, where bits tell which rows have one.
pub fn rows_of_values(present: &Bits, values: &[Run], rows: &mut Vec<Run>) {
    let mut values = values;
    let mut rank = 0; // values before the word at hand
    for (place, bytes) in present.bytes.chunks(8).enumerate() {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(padded);
        let end = rank + word.count_ones();
        let mut wanted = 0;
        while let Some(run) = values.first() {
            if run.start < end {
                let first = run.start.max(rank) - rank;
                let count = run.end.min(end) - rank - first;
                wanted |= u64::MAX >> (64 - count) << first;
            }
            if run.end > end {
                break;
            }
            values = &values[1..];
        }
        push_word(rows, place * WORD, deposit(wanted, word));
        rank = end;
    }
}

/// The bits of `wanted`, one for each bit of `word` that is set, in the places of those.
fn deposit(mut wanted: u64, mut word: u64) -> u64 {
    if wanted.count_ones() == word.count_ones() {
        return word;
    }
    let mut deposited = 0;
    while wanted != 0 {
        let lowest = word & word.wrapping_neg();
        deposited |= lowest * (wanted & 1);
        word ^= lowest;
        wanted >>= 1;
    }
    deposited
}

/// Rows that match, counted among all rows that are wanted of a leaf.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Matches {
    pub starts: Vec<i64>,
    pub ends: Vec<i64>,
    /// Wanted rows so far.
    wanted: i64,
}

impl Matches {
    /// Append those of a page, of whose wanted rows these are kept.
    pub fn append(&mut self, wanted: &[Run], kept: &[Run]) {
        let mut passed = wanted.iter();
        let mut current = passed.next();
        for run in kept {
            while let Some(around) = current {
                if around.end > run.start {
                    break;
                }
                self.wanted += around.count() as i64;
                current = passed.next();
            }
            let before = current.map_or(0, |around| run.start - around.start);
            self.push(self.wanted + i64::from(before), run.count() as i64);
        }
        let rest = current.into_iter().chain(passed);
        self.wanted += rest.map(|run| run.count() as i64).sum::<i64>();
    }

    fn push(&mut self, start: i64, count: i64) {
        match self.ends.last_mut() {
            Some(end) if *end == start => *end += count,
            _ => {
                self.starts.push(start);
                self.ends.push(start + count);
            }
        }
    }
}
