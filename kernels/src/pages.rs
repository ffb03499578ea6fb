//! Pages: what their headers say, and their bytes, one behind the other in a buffer.

use crate::error::{Refusal, Result, corrupt};
use crate::thrift::{Field, Reader};

/// Pages without a value that are looked at, one behind the other; the rest is left to Arrow.
const MOST_EMPTY: usize = 1000;

/// What kind of page it is, with what only this kind says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Data {
        definition_encoding: i64,
        repetition_encoding: i64,
    },
    DataV2 {
        num_rows: usize,
        definition_length: usize,
        repetition_length: usize,
        is_compressed: bool,
    },
    Dictionary,
}

/// A page as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    pub kind: Kind,
    pub num_values: usize,
    pub encoding: i64,
    /// How many bytes the body becomes, levels included.
    pub size: usize,
    pub checksum: Option<u32>,
    pub body: &'a [u8],
}

impl Page<'_> {
    /// Damage to the stored bytes shows in the checksum, if there is one.
    pub fn verify(&self) -> Result<()> {
        match self.checksum {
            Some(checksum) if checksum != crc32fast::hash(self.body) => {
                corrupt("a page with a wrong checksum")
            }
            _ => Ok(()),
        }
    }
}

/// Walks from page to page of a buffer.
pub struct Pages<'a> {
    bytes: &'a [u8],
    empty: usize,
}

impl<'a> Pages<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Pages { bytes, empty: 0 }
    }

    /// The next page with a value, or the dictionary; None at the end of the buffer.
    pub fn next_page(&mut self) -> Result<Option<Page<'a>>> {
        while !self.bytes.is_empty() {
            let page = self.read()?;
            match page {
                Some(page) if page.num_values > 0 || page.kind == Kind::Dictionary => {
                    return Ok(Some(page));
                }
                _ => {
                    self.empty += 1;
                    if self.empty > MOST_EMPTY {
                        return Err(Refusal::NotMine("many pages without a value"));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The next page; None where it is an index page, which holds no values.
    fn read(&mut self) -> Result<Option<Page<'a>>> {
        let mut reader = Reader::new(self.bytes);
        let header = Header::read(&mut reader)?;
        let rest = &self.bytes[reader.position()..];
        let stored = length(header.compressed_size)?;
        let size = length(header.uncompressed_size)?;
        if stored > rest.len() {
            return corrupt("a page that goes on behind its chunk");
        }
        let (body, behind) = rest.split_at(stored);
        self.bytes = behind;
        if header.lacks_anything() {
            return corrupt("a page header that is not complete");
        }
        let kind = match header.kind {
            Some(DATA) => Kind::Data {
                definition_encoding: header.definition_encoding,
                repetition_encoding: header.repetition_encoding,
            },
            Some(DATA_V2) => Kind::DataV2 {
                num_rows: length(header.num_rows)?,
                definition_length: length(header.definition_length)?,
                repetition_length: length(header.repetition_length)?,
                is_compressed: header.is_compressed,
            },
            Some(DICTIONARY) => Kind::Dictionary,
            Some(INDEX) => return Ok(None),
            Some(_) => return Err(Refusal::NotMine("an unknown type of page")),
            None => return corrupt("a page header without a type"),
        };
        Ok(Some(Page {
            kind,
            num_values: length(header.num_values)?,
            encoding: header.encoding,
            size,
            checksum: header.crc.map(|crc| crc as u32),
            body,
        }))
    }
}

/// What the headers of all pages of a buffer say, seven numbers for each.
///
/// Where it begins, its size, whether it holds data, its values, its rows (-1: not told), whether
/// it refers to a dictionary, and the entries of one (-1: it is none).
pub fn outline(bytes: &[u8]) -> Result<Vec<i64>> {
    let mut pages = Pages::new(bytes);
    let mut found = Vec::new();
    while !pages.bytes.is_empty() {
        let begin = bytes.len() - pages.bytes.len();
        let Some(page) = pages.read()? else {
            return Err(Refusal::NotMine("an index page"));
        };
        let end = bytes.len() - pages.bytes.len();
        let (values, rows, entries) = match page.kind {
            Kind::Data { .. } => (page.num_values as i64, -1, -1),
            Kind::DataV2 { num_rows, .. } => (page.num_values as i64, num_rows as i64, -1),
            Kind::Dictionary => (0, -1, page.num_values as i64),
        };
        let is_data = page.kind != Kind::Dictionary;
        let refers = is_data && crate::dictionary::is_used_by(page.encoding);
        found.extend([
            begin as i64,
            (end - begin) as i64,
            i64::from(is_data),
            values,
            rows,
            i64::from(refers),
            entries,
        ]);
    }
    Ok(found)
}

const DATA: i64 = 0;
const INDEX: i64 = 1;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;

/// Sizes and counts are 32-bit numbers that are never negative.
fn length(stored: i64) -> Result<usize> {
    match i32::try_from(stored) {
        Ok(length) if length >= 0 => Ok(length as usize),
        _ => corrupt("a page header with impossible sizes"),
    }
}

/// The fields of a page header, of whatever kind, with what is missing as -1.
struct Header {
    kind: Option<i64>,
    uncompressed_size: i64,
    compressed_size: i64,
    crc: Option<i64>,
    num_values: i64,
    encoding: i64,
    definition_encoding: i64,
    repetition_encoding: i64,
    num_nulls: i64,
    num_rows: i64,
    definition_length: i64,
    repetition_length: i64,
    is_compressed: bool,
}

impl Header {
    /// Whether a field is missing that must be there, needed or not.
    fn lacks_anything(&self) -> bool {
        let required: &[i64] = match self.kind {
            Some(DATA) => &[self.definition_encoding, self.repetition_encoding],
            Some(DATA_V2) => &[self.num_nulls],
            _ => &[],
        };
        required.iter().any(|field| *field < 0)
    }

    fn read(reader: &mut Reader) -> Result<Header> {
        let mut header = Header {
            kind: None,
            uncompressed_size: -1,
            compressed_size: -1,
            crc: None,
            num_values: -1,
            encoding: -1,
            definition_encoding: -1,
            repetition_encoding: -1,
            num_nulls: -1,
            num_rows: -1,
            definition_length: -1,
            repetition_length: -1,
            is_compressed: true,
        };
        let mut last = 0;
        while let Some(field) = reader.field(&mut last)? {
            match field.id {
                1 => header.kind = Some(reader.integer32(field)?),
                2 => header.uncompressed_size = reader.integer32(field)?,
                3 => header.compressed_size = reader.integer32(field)?,
                4 => header.crc = Some(reader.integer32(field)?),
                5 if header.kind == Some(DATA) => header.read_data(reader, field)?,
                7 if header.kind == Some(DICTIONARY) => header.read_dictionary(reader, field)?,
                8 if header.kind == Some(DATA_V2) => header.read_data_v2(reader, field)?,
                _ => reader.skip(field)?,
            }
        }
        Ok(header)
    }

    fn read_data(&mut self, reader: &mut Reader, field: Field) -> Result<()> {
        reader.enter(field)?;
        let mut last = 0;
        while let Some(field) = reader.field(&mut last)? {
            match field.id {
                1 => self.num_values = reader.integer32(field)?,
                2 => self.encoding = reader.integer32(field)?,
                3 => self.definition_encoding = reader.integer32(field)?,
                4 => self.repetition_encoding = reader.integer32(field)?,
                _ => reader.skip(field)?,
            }
        }
        Ok(())
    }

    fn read_dictionary(&mut self, reader: &mut Reader, field: Field) -> Result<()> {
        reader.enter(field)?;
        let mut last = 0;
        while let Some(field) = reader.field(&mut last)? {
            match field.id {
                1 => self.num_values = reader.integer32(field)?,
                2 => self.encoding = reader.integer32(field)?,
                _ => reader.skip(field)?,
            }
        }
        Ok(())
    }

    fn read_data_v2(&mut self, reader: &mut Reader, field: Field) -> Result<()> {
        reader.enter(field)?;
        let mut last = 0;
        while let Some(field) = reader.field(&mut last)? {
            match field.id {
                1 => self.num_values = reader.integer32(field)?,
                2 => self.num_nulls = reader.integer32(field)?,
                3 => self.num_rows = reader.integer32(field)?,
                4 => self.encoding = reader.integer32(field)?,
                5 => self.definition_length = reader.integer32(field)?,
                6 => self.repetition_length = reader.integer32(field)?,
                7 => self.is_compressed = reader.boolean(field)?,
                _ => reader.skip(field)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page of the first version with three values and a body of two bytes.
    const DATA_PAGE: [u8; 19] = [
        0x15, 0, 0x15, 4, 0x15, 4, 0x2C, 0x15, 6, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0, 7, 8,
    ];

    #[test]
    fn a_buffer_of_pages_is_walked() {
        let mut empty = DATA_PAGE;
        empty[8] = 0; // no values: passed over
        let bytes = [&DATA_PAGE[..], &empty[..], &DATA_PAGE[..]].concat();
        let mut pages = Pages::new(&bytes);
        for _ in 0..2 {
            let page = pages.next_page().unwrap().unwrap();
            assert_eq!((page.num_values, page.encoding, page.size), (3, 0, 2));
            assert_eq!(page.body, [7, 8]);
        }
        assert!(pages.next_page().unwrap().is_none());
    }

    #[test]
    fn empty_pages_without_end_are_left_to_others() {
        let mut empty = DATA_PAGE;
        empty[8] = 0;
        let bytes = empty.repeat(MOST_EMPTY + 1);
        assert!(matches!(
            Pages::new(&bytes).next_page(),
            Err(Refusal::NotMine(_))
        ));
    }

    #[test]
    fn impossible_sizes_are_damage() {
        for (at, value) in [(3, 1), (5, 1), (8, 1), (5, 6)] {
            let mut bytes = DATA_PAGE;
            bytes[at] = value;
            assert!(matches!(
                Pages::new(&bytes).next_page(),
                Err(Refusal::Corrupt(_))
            ));
        }
        for end in 1..DATA_PAGE.len() {
            assert!(Pages::new(&DATA_PAGE[..end]).next_page().is_err());
        }
    }

    #[test]
    fn a_checksum_is_held_against_the_stored_bytes() {
        let mut page = Pages::new(&DATA_PAGE).next_page().unwrap().unwrap();
        assert_eq!(page.verify(), Ok(()));
        page.checksum = Some(crc32fast::hash(&[7, 8]));
        assert_eq!(page.verify(), Ok(()));
        page.checksum = Some(1);
        assert!(page.verify().is_err());
    }
}
