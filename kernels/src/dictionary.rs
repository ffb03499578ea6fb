//! The dictionary of a part: decompressed when a page refers to it, and once.

use crate::codec::{Codec, Decompressor};
use crate::error::{Refusal, Result, corrupt};
use crate::output::{Bits, ByteArrays, Decoder};
use crate::pages::{Kind, Page};
use crate::raw;
use crate::rle::Indices;
use crate::select::{Picks, count_ones};
use crate::values::{
    Encoded, Form, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY, Values, read, require_utf8,
};

/// Indices that are unpacked together, and a multiple of 64.
const CHUNK: usize = 1024;

/// Whether the values of such pages are indices of dictionary entries.
pub fn is_used_by(encoding: i64) -> bool {
    matches!(encoding, PLAIN_DICTIONARY | RLE_DICTIONARY)
}

/// A dictionary page, and its entries once they are needed.
#[derive(Default)]
pub struct Dictionary<'a> {
    page: Option<Page<'a>>,
    entries: Option<Values>,
    count: usize,
    /// Whether all entries are UTF-8; None where it was not looked at.
    utf8: Option<bool>,
}

impl<'a> Dictionary<'a> {
    /// Take the dictionary page of a part, of which there is one at most.
    pub fn offer(&mut self, page: Page<'a>) -> Result<()> {
        if page.kind != Kind::Dictionary {
            return corrupt("a data page where the dictionary should be");
        }
        if self.page.is_some() {
            return Err(Refusal::NotMine("a second dictionary"));
        }
        self.page = Some(page);
        Ok(())
    }

    /// Make the entries ready, in the form of the leaf.
    pub fn load(
        &mut self,
        form: &Form,
        codec: Codec,
        verify: bool,
        decompressor: &mut Decompressor,
    ) -> Result<()> {
        let (Some(page), None) = (self.page, &self.entries) else {
            return Ok(());
        };
        if !matches!(page.encoding, PLAIN | PLAIN_DICTIONARY) {
            return Err(Refusal::NotMine("an unknown encoding of a dictionary"));
        }
        if verify {
            page.verify()?;
        }
        let stored = Encoded {
            encoding: PLAIN,
            bytes: decompressor.decompress(codec, page.body, page.size)?,
            num_values: page.num_values,
        };
        let mut entries = form.empty();
        // Entries that no row refers to may be anything.
        let everything = form.unchecked();
        everything.append(stored, Picks::All(page.num_values), &mut entries)?;
        self.entries = Some(entries);
        self.count = page.num_values;
        Ok(())
    }

    /// The entries and their number, once they are loaded.
    pub fn entries(&self) -> Option<(&Values, usize)> {
        self.entries.as_ref().map(|entries| (entries, self.count))
    }

    /// Append the entries that all indices of a page refer to, each at its slot and zeros at those
    /// of nulls; returns whether it was done, as it is for numbers.
    ///
    /// Indices are unpacked some at a time, so that they never leave the nearest cache.
    pub fn append_all(
        &self,
        page: Encoded,
        slots: Option<&Bits>,
        indices: &mut Vec<u32>,
        values: &mut Values,
    ) -> Result<bool> {
        let (Some(Values::Fixed { width, bytes: from }), Values::Fixed { bytes, .. }) =
            (&self.entries, values)
        else {
            return Ok(false);
        };
        if slots.is_some() && !matches!(width, 4 | 8) {
            return Ok(false);
        }
        let mut source = Indices::of_page(page.bytes, page.num_values)?;
        let count = slots.map_or(page.num_values, |slots| slots.len);
        for begin in (0..count).step_by(CHUNK) {
            let end = count.min(begin + CHUNK);
            indices.clear();
            match slots {
                None => {
                    source.read(end - begin, indices)?;
                    raw::gather(from, *width, indices, bytes)?;
                }
                Some(slots) => {
                    source.read(count_ones(&slots.bytes, begin, end), indices)?;
                    raw::gather_slots(from, *width, indices, slots, begin..end, bytes)?;
                }
            }
        }
        Ok(true)
    }

    /// Append the entries that picked indices of a page refer to.
    pub fn append(
        &mut self,
        page: Encoded,
        picks: Picks,
        utf8: bool,
        indices: &mut Vec<u32>,
        values: &mut Values,
    ) -> Result<()> {
        let Some(entries) = &self.entries else {
            return corrupt("dictionary indices without a dictionary");
        };
        indices.clear();
        read(
            Indices::of_page(page.bytes, page.num_values)?,
            picks,
            indices,
        )?;
        match (entries, values) {
            (Values::Fixed { width, bytes: from }, Values::Fixed { bytes, .. }) => {
                raw::gather(from, *width, indices, bytes)
            }
            (Values::Bytes(from), Values::Bytes(arrays)) => {
                let before = arrays.offsets.len() - 1;
                raw::gather_arrays(from, indices, arrays)?;
                if utf8 && !Self::all_utf8(&mut self.utf8, from, indices.len()) {
                    require_utf8(arrays, before)?;
                }
                Ok(())
            }
            _ => Err(Refusal::NotMine("a dictionary of booleans")),
        }
    }

    /// Whether all entries are UTF-8; few values are rather looked at by themselves.
    fn all_utf8(known: &mut Option<bool>, entries: &ByteArrays, values: usize) -> bool {
        if known.is_none() && values >= entries.offsets.len() / 4 {
            *known = Some(require_utf8(entries, 0).is_ok());
        }
        known.unwrap_or(false)
    }
}
