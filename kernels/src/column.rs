//! One leaf: from its pages to Arrow buffers of just the wanted rows, all parts in one.

use crate::codec::{Codec, Decompressor};
use crate::contents::Contents;
use crate::dictionary::{Dictionary, is_used_by};
use crate::error::{Refusal, Result, corrupt};
use crate::find::{Finder, Matches, is_outside, rows_of_values};
use crate::levels::{self, Chain, Layer, Validity, count_level};
use crate::output::{Bits, Run};
use crate::pages::{Kind, Page, Pages};
use crate::select::{Picks, Selection, count_ones, pick_present, push_run};
use crate::value_set::ValueSet;
use crate::values::{Encoded, Form, PLAIN, Values};

/// Values that room is made for before anything is decoded; more comes page by page.
const MOST_RESERVED: u64 = 1 << 24;

/// What all parts of a leaf have in common.
#[derive(Debug, Clone)]
pub struct Leaf {
    pub form: Form,
    pub max_definition: u8,
    pub max_repetition: u8,
    pub layers: Vec<Layer>,
    /// Whether pages of version 2 are compressed even where they say that they are not.
    pub always_compressed: bool,
    /// Whether checksums are held against the pages.
    pub verify: bool,
}

/// The pages of one column chunk, and which of their rows are wanted.
pub struct Part<'a> {
    pub codec: Codec,
    pub dictionary: Option<&'a [u8]>,
    pub segments: Vec<Segment<'a>>,
    pub starts: Vec<i64>,
    pub ends: Vec<i64>,
    /// What is claimed of pages, by their first rows.
    pub claims: Vec<Claim>,
}

/// What is claimed of the values of a page.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The first row of the page.
    pub row: u64,
    pub values: ValueSet,
}

/// A set of which the values of wanted rows must be; others are not decoded.
#[derive(Debug, Clone)]
pub struct Search {
    pub set: ValueSet,
    /// Whether the values that are in the set are decoded, or only found.
    pub keeps_values: bool,
}

impl Part<'_> {
    fn wanted(&self) -> u64 {
        let runs = self.starts.iter().zip(&self.ends);
        let counts = runs.map(|(start, end)| end.saturating_sub(*start).max(0) as u64);
        counts.fold(0, u64::saturating_add)
    }
}

/// Pages one behind the other, the first of which begins a row.
pub struct Segment<'a> {
    pub bytes: &'a [u8],
    pub num_values: u64,
    pub num_rows: u64,
}

/// The wanted rows of a leaf, as Arrow keeps them.
#[derive(Debug)]
pub struct Column {
    /// From the row down to the leaf: which slots are null, and the offsets of lists.
    pub layers: Vec<(Validity, Option<Vec<i32>>)>,
    pub validity: Validity,
    pub values: Values,
    /// Data pages that were decoded.
    pub pages: usize,
    /// The rows that were searched for and found, which are the rows of the column.
    pub matches: Option<Matches>,
}

/// The wanted rows of a leaf; where that fails, the part is told.
pub fn decode(
    leaf: &Leaf,
    search: Option<&Search>,
    parts: &[Part],
) -> std::result::Result<Column, (usize, Refusal)> {
    let mut building = Building::new(leaf, search).map_err(|refusal| (0, refusal))?;
    let wanted = if search.is_some() { &[] } else { parts };
    let wanted = wanted.iter().map(Part::wanted).fold(0, u64::saturating_add);
    let room = building
        .values
        .values
        .reserve(wanted.min(MOST_RESERVED) as usize);
    room.map_err(|refusal| (0, refusal))?;
    let mut decompressor = Decompressor::of_thread();
    for (place, part) in parts.iter().enumerate() {
        building
            .append(part, &mut decompressor)
            .map_err(|refusal| (place, refusal))?;
    }
    Ok(building.finish())
}

/// A column that grows page by page.
struct Building<'l> {
    leaf: &'l Leaf,
    chain: Chain,
    values: LeafValues<'l>,
    search: Option<Searching>,
    pages: usize,
    scratch: Scratch,
}

/// A search as it goes from page to page.
struct Searching {
    finder: Finder,
    matches: Matches,
    keeps_values: bool,
    values: Vec<Run>,
    rows: Vec<Run>,
}

/// Memory that is used again from page to page.
#[derive(Default)]
struct Scratch {
    rows: Vec<Run>,
    ranges: Vec<Run>,
    picked: Vec<Run>,
    records: Vec<u32>,
    definition: Vec<u8>,
    repetition: Vec<u8>,
    present: Bits,
    slots: Bits,
}

/// The values of the leaf itself.
struct LeafValues<'l> {
    form: &'l Form,
    is_optional: bool,
    validity: Validity,
    values: Values,
    indices: Vec<u32>,
}

/// Where decoding is in a part.
struct Place<'p, 'a> {
    part: &'p Part<'a>,
    selection: Selection<'p>,
    dictionary: Dictionary<'a>,
    /// Rows of the part before the page at hand.
    row: u64,
    /// Whether the record at the end of the page before is wanted: it may go on.
    is_open: bool,
}

impl<'l> Building<'l> {
    fn new(leaf: &'l Leaf, search: Option<&Search>) -> Result<Self> {
        let search = match search {
            Some(_) if leaf.max_repetition > 0 => {
                return Err(Refusal::NotMine("a search below lists"));
            }
            Some(search) => Some(Searching::new(search, leaf.form)?),
            None => None,
        };
        let chain = Chain::new(&leaf.layers, leaf.max_definition, leaf.max_repetition)?;
        let values = LeafValues {
            form: &leaf.form,
            is_optional: chain.leaf_is_optional(),
            validity: Validity::default(),
            values: leaf.form.empty(),
            indices: Vec::new(),
        };
        Ok(Building {
            leaf,
            chain,
            values,
            search,
            pages: 0,
            scratch: Scratch::default(),
        })
    }

    fn append(&mut self, part: &Part, decompressor: &mut Decompressor) -> Result<()> {
        let num_rows = part.segments.iter().map(|segment| segment.num_rows);
        let num_rows = num_rows.fold(0, u64::saturating_add);
        let mut place = Place {
            part,
            selection: Selection::new(&part.starts, &part.ends, num_rows)?,
            dictionary: Dictionary::default(),
            row: 0,
            is_open: false,
        };
        if let Some(search) = &mut self.search {
            search.finder.begin_part();
        }
        if let Some(bytes) = part.dictionary {
            match Pages::new(bytes).next_page()? {
                Some(page) => place.dictionary.offer(page)?,
                None => return corrupt("no dictionary where one should be"),
            }
        }
        for segment in &part.segments {
            let end = place.row.saturating_add(segment.num_rows);
            self.append_segment(segment, end, &mut place, decompressor)?;
            place.row = end;
            place.is_open = false;
        }
        Ok(())
    }

    fn append_segment<'a>(
        &mut self,
        segment: &Segment<'a>,
        end: u64,
        place: &mut Place<'_, 'a>,
        decompressor: &mut Decompressor,
    ) -> Result<()> {
        let mut pages = Pages::new(segment.bytes);
        let mut num_values = 0;
        while num_values < segment.num_values {
            let Some(page) = pages.next_page()? else {
                break;
            };
            if page.kind == Kind::Dictionary {
                place.dictionary.offer(page)?;
                continue;
            }
            if self.leaf.max_repetition == 0 {
                self.append_flat(&page, place, decompressor)?;
            } else {
                // Where records end is only told by their levels, and of no use behind the last.
                if place.selection.ends_before(place.row) && !place.is_open {
                    return match place.row > end {
                        true => corrupt("more rows than there should be"),
                        false => Ok(()),
                    };
                }
                self.append_repeated(&page, num_values == 0, place, decompressor)?;
            }
            num_values += page.num_values as u64;
        }
        if num_values != segment.num_values {
            return corrupt(format!(
                "pages with {num_values} values where there should be {}",
                segment.num_values
            ));
        }
        match place.row.cmp(&end) {
            std::cmp::Ordering::Less => corrupt("fewer rows than there should be"),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => corrupt("more rows than there should be"),
        }
    }

    /// Append the wanted rows of a page of which every value is a row.
    fn append_flat(
        &mut self,
        page: &Page,
        place: &mut Place,
        decompressor: &mut Decompressor,
    ) -> Result<()> {
        let count = page.num_values;
        let scratch = &mut self.scratch;
        let end = place.row + count as u64;
        place
            .selection
            .rows_of_page(place.row, end, &mut scratch.rows);
        let claim = place.claim();
        place.row = end;
        if scratch.rows.is_empty() {
            return Ok(());
        }
        if let (Some(search), None) = (&mut self.search, claim) {
            if search.is_in_vain(self.leaf, page, place, decompressor)? {
                search.matches.append(&scratch.rows, &[]);
                return Ok(());
            }
        }
        let is_whole = scratch.rows[0].count() == count;
        let is_searched = claim.is_some() || self.search.is_some();
        if !is_searched && self.append_first(page, place, decompressor)? {
            return Ok(());
        }
        self.pages += 1;
        let contents = open(self.leaf, page, place, decompressor)?;
        let highest = self.leaf.max_definition;
        if claim.is_some() || self.search.is_some() {
            self.find_flat(page, contents, claim, place)?;
            if self.search.is_some() {
                return Ok(());
            }
        }
        let scratch = &mut self.scratch;
        if highest == 0 || levels::all_highest(contents.definition, highest, count)? {
            let picks = match is_whole {
                true => Picks::All(count),
                false => Picks::Runs(&scratch.rows),
            };
            self.chain.extend_valid(picks.count());
            let encoded = contents.encoded(page, count);
            return self
                .values
                .append(encoded, picks, None, &mut place.dictionary);
        }
        clear(&mut scratch.slots);
        scratch.picked.clear();
        let num_values = if highest == 1 {
            levels::read_bits(contents.definition, count, &mut scratch.present)?;
            if is_whole {
                std::mem::swap(&mut scratch.slots, &mut scratch.present);
            } else {
                pick_present(
                    &scratch.present,
                    &scratch.rows,
                    &mut scratch.slots,
                    &mut scratch.picked,
                );
            }
            self.chain.extend_present(&scratch.slots);
            let present = match is_whole {
                true => &scratch.slots,
                false => &scratch.present,
            };
            count_ones(&present.bytes, 0, count)
        } else {
            levels::read_levels(contents.definition, highest, count, &mut scratch.definition)?;
            self.chain.append(
                &scratch.definition,
                &[],
                &scratch.rows,
                &mut scratch.slots,
                &mut scratch.picked,
            )?;
            count_level(&scratch.definition, highest)
        };
        let picks = match is_whole {
            true => Picks::All(num_values),
            false => Picks::Runs(&scratch.picked),
        };
        self.values.append(
            contents.encoded(page, num_values),
            picks,
            Some(&scratch.slots),
            &mut place.dictionary,
        )
    }

    /// Append the wanted rows of a page without reading what lies behind them, where that pays and
    /// there are no nulls; returns whether it was done.
    fn append_first(
        &mut self,
        page: &Page,
        place: &mut Place,
        decompressor: &mut Decompressor,
    ) -> Result<bool> {
        let (rows, highest) = (&self.scratch.rows, self.leaf.max_definition);
        let (count, last) = (page.num_values, rows[rows.len() - 1].end as usize);
        if page.encoding != PLAIN || last > count / 4 * 3 {
            return Ok(false);
        }
        let Some(needed) = self.leaf.form.likely_size(last, count, page.size) else {
            return Ok(false);
        };
        let codec = place.part.codec;
        let contents = Contents::read_first(page, codec, highest, needed, decompressor);
        let Some(contents) = contents else {
            return Ok(false);
        };
        let is_full = highest == 0
            || levels::all_highest(contents.definition, highest, count).unwrap_or(false);
        if !is_full || !self.leaf.form.reaches(contents.values, last) {
            return Ok(false);
        }
        if self.leaf.verify {
            page.verify()?;
        }
        self.pages += 1;
        let picks = Picks::Runs(rows);
        self.chain.extend_valid(picks.count());
        let encoded = contents.encoded(page, last);
        self.values
            .append(encoded, picks, None, &mut place.dictionary)?;
        Ok(true)
    }

    /// Hold the wanted values of a page against what is claimed; append those that match.
    fn find_flat(
        &mut self,
        page: &Page,
        contents: Contents,
        claim: Option<usize>,
        place: &mut Place,
    ) -> Result<()> {
        let scratch = &mut self.scratch;
        let (count, highest) = (page.num_values, self.leaf.max_definition);
        clear(&mut scratch.slots);
        scratch.picked.clear();
        let has_nulls = highest > 0 && !levels::all_highest(contents.definition, highest, count)?;
        let (num_values, picked) = match has_nulls {
            false => (count, &scratch.rows),
            true => {
                levels::read_present(
                    contents.definition,
                    highest,
                    count,
                    &mut scratch.definition,
                    &mut scratch.present,
                )?;
                pick_present(
                    &scratch.present,
                    &scratch.rows,
                    &mut scratch.slots,
                    &mut scratch.picked,
                );
                let present = count_ones(&scratch.present.bytes, 0, count);
                (present, &scratch.picked)
            }
        };
        let encoded = contents.encoded(page, num_values);
        let picks = Picks::Runs(picked);
        if let Some(claim) = claim {
            let claimed = &place.part.claims[claim].values;
            if is_outside(
                claimed,
                self.leaf.form,
                encoded,
                picks,
                &mut place.dictionary,
            )? {
                return Err(Refusal::Outside(claim));
            }
        }
        let Some(search) = &mut self.search else {
            return Ok(());
        };
        search.values.clear();
        let found = &mut search.values;
        search
            .finder
            .find(encoded, picks, &place.dictionary, found)?;
        let rows = match has_nulls {
            false => &*found,
            true => {
                search.rows.clear();
                rows_of_values(&scratch.present, found, &mut search.rows);
                &search.rows
            }
        };
        search.matches.append(&scratch.rows, rows);
        if !search.keeps_values || found.is_empty() {
            return Ok(());
        }
        let picks = match found[0].count() == num_values {
            true => Picks::All(num_values),
            false => Picks::Runs(found),
        };
        self.chain.extend_valid(picks.count());
        self.values
            .append(encoded, picks, None, &mut place.dictionary)
    }

    /// Append the wanted records of a page of a leaf below lists.
    fn append_repeated(
        &mut self,
        page: &Page,
        is_first: bool,
        place: &mut Place,
        decompressor: &mut Decompressor,
    ) -> Result<()> {
        let scratch = &mut self.scratch;
        if let Kind::DataV2 {
            num_rows,
            repetition_length,
            ..
        } = page.kind
        {
            let levels = page.body.get(..repetition_length).unwrap_or_default();
            if levels::first(levels, self.leaf.max_repetition)? != 0 {
                return Err(Refusal::NotMine("a record on two pages of version 2"));
            }
            place.is_open = false;
            let end = place.row + num_rows as u64;
            if !place.selection.has_rows(place.row, end) {
                place.row = end;
                return Ok(());
            }
        }
        self.pages += 1;
        let count = page.num_values;
        let contents = open(self.leaf, page, place, decompressor)?;
        let (highest, deepest) = (self.leaf.max_definition, self.leaf.max_repetition);
        levels::read_levels(contents.repetition, deepest, count, &mut scratch.repetition)?;
        levels::read_levels(contents.definition, highest, count, &mut scratch.definition)?;
        self.chain
            .require_sound(&scratch.definition, &scratch.repetition)?;
        if is_first && scratch.repetition[0] != 0 {
            return corrupt("pages that do not begin with a record");
        }
        let records = count_level(&scratch.repetition, 0);
        match page.kind {
            Kind::DataV2 { num_rows, .. } if num_rows != records => {
                return corrupt("another number of rows in a page than its header tells");
            }
            _ => {}
        }
        let end = place.row + records as u64;
        place
            .selection
            .rows_of_page(place.row, end, &mut scratch.rows);
        place.row = end;
        scratch.find_ranges(records, place.is_open);
        if records > 0 {
            let last = scratch.rows.last();
            place.is_open = last.is_some_and(|run| run.end as usize == records);
        }
        if scratch.ranges.is_empty() {
            return Ok(());
        }
        clear(&mut scratch.slots);
        scratch.picked.clear();
        self.chain.append(
            &scratch.definition,
            &scratch.repetition,
            &scratch.ranges,
            &mut scratch.slots,
            &mut scratch.picked,
        )?;
        let num_values = count_level(&scratch.definition, highest);
        let picks = match scratch.ranges[0].count() == count {
            true => Picks::All(num_values),
            false => Picks::Runs(&scratch.picked),
        };
        self.values.append(
            contents.encoded(page, num_values),
            picks,
            Some(&scratch.slots),
            &mut place.dictionary,
        )
    }

    fn finish(self) -> Column {
        let layers = self.chain.layers.into_iter().map(|mut layer| {
            let offsets = layer.take_offsets();
            (layer.validity, offsets)
        });
        Column {
            layers: layers.collect(),
            validity: self.values.validity,
            values: self.values.values,
            pages: self.pages,
            matches: self.search.map(|search| search.matches),
        }
    }
}

impl Searching {
    fn new(search: &Search, form: Form) -> Result<Self> {
        Ok(Searching {
            finder: Finder::new(&search.set, form)?,
            matches: Matches::default(),
            keeps_values: search.keeps_values,
            values: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// Whether a page can hold nothing of the set, as no entry of its dictionary is in it.
    fn is_in_vain(
        &mut self,
        leaf: &Leaf,
        page: &Page,
        place: &mut Place,
        decompressor: &mut Decompressor,
    ) -> Result<bool> {
        if !is_used_by(page.encoding) {
            return Ok(false);
        }
        let (codec, dictionary) = (place.part.codec, &mut place.dictionary);
        dictionary.load(&leaf.form, codec, leaf.verify, decompressor)?;
        let is_in_vain = self.finder.is_in_vain(dictionary)?;
        if is_in_vain && leaf.verify {
            page.verify()?;
        }
        Ok(is_in_vain)
    }
}

impl Place<'_, '_> {
    /// What is claimed of the page at hand, if anything.
    fn claim(&self) -> Option<usize> {
        let claims = &self.part.claims;
        claims
            .binary_search_by_key(&self.row, |claim| claim.row)
            .ok()
    }
}

/// The contents of a page, with its dictionary at hand if it uses it.
fn open<'a>(
    leaf: &Leaf,
    page: &Page<'a>,
    place: &mut Place,
    decompressor: &'a mut Decompressor,
) -> Result<Contents<'a>> {
    if leaf.verify {
        page.verify()?;
    }
    let codec = place.part.codec;
    if is_used_by(page.encoding) {
        let dictionary = &mut place.dictionary;
        dictionary.load(&leaf.form, codec, leaf.verify, decompressor)?;
    }
    Contents::read(
        page,
        codec,
        leaf.max_repetition,
        leaf.max_definition,
        leaf.always_compressed,
        decompressor,
    )
}

impl Scratch {
    /// The ranges of levels that belong to wanted rows of a page with so many records.
    ///
    /// Levels before its first record go on with the one of the page before, which is wanted if
    /// `is_open`.
    fn find_ranges(&mut self, records: usize, is_open: bool) {
        self.ranges.clear();
        let levels = &self.repetition;
        let first = levels.iter().position(|&level| level == 0);
        let first = first.unwrap_or(levels.len());
        if is_open {
            push_run(&mut self.ranges, 0, first);
        }
        match self.rows[..] {
            [] => {}
            [run] if run.count() == records => push_run(&mut self.ranges, first, levels.len()),
            _ => {
                let starts = levels.iter().enumerate().filter(|(_, level)| **level == 0);
                self.records.clear();
                self.records.extend(starts.map(|(place, _)| place as u32));
                self.records.push(levels.len() as u32);
                for run in &self.rows {
                    let (start, end) = (
                        self.records[run.start as usize],
                        self.records[run.end as usize],
                    );
                    push_run(&mut self.ranges, start as usize, end as usize);
                }
            }
        }
    }
}

impl LeafValues<'_> {
    /// Append picked values, to slots of which some may be null.
    fn append(
        &mut self,
        encoded: Encoded,
        picks: Picks,
        slots: Option<&Bits>,
        dictionary: &mut Dictionary,
    ) -> Result<()> {
        let before = self.validity.len();
        let count = picks.count();
        let nulls = slots.filter(|slots| count < slots.len);
        let is_done = matches!(picks, Picks::All(1..))
            && is_used_by(encoded.encoding)
            && dictionary.append_all(encoded, nulls, &mut self.indices, &mut self.values)?;
        if !is_done {
            if count > 0 {
                self.append_present(encoded, picks, dictionary)?;
            }
            if let Some(slots) = nulls {
                self.values.spread(before, count, slots)?;
            }
        }
        let Some(slots) = slots else {
            self.validity.extend_valid(count);
            return Ok(());
        };
        match self.is_optional {
            true => self.validity.extend(slots),
            false => self.validity.extend_valid(slots.len),
        }
        Ok(())
    }

    fn append_present(
        &mut self,
        encoded: Encoded,
        picks: Picks,
        dictionary: &mut Dictionary,
    ) -> Result<()> {
        let (form, values) = (self.form, &mut self.values);
        if is_used_by(encoded.encoding) {
            dictionary.append(encoded, picks, form.utf8, &mut self.indices, values)
        } else {
            form.append(encoded, picks, values)
        }
    }
}

fn clear(bits: &mut Bits) {
    bits.bytes.clear();
    bits.len = 0;
}
