//! Offset indexes and column indexes as flat arrays.
//!
//! As with footers, what is unusual in any way is refused.

use crate::error::{Result, corrupt};
use crate::levels::grow;
use crate::thrift::{Field, Kind, Reader};

/// The offsets of all pages, then their sizes, then their first rows.
pub fn read_offset_index(bytes: &[u8]) -> Result<Vec<i64>> {
    let reader = &mut Reader::new(bytes);
    let mut places = None;
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match field.id {
            1 if places.is_none() => places = Some(read_pages(reader, field)?),
            1 => return corrupt("an offset index that lists its pages twice"),
            _ => reader.skip(field)?,
        }
    }
    match places {
        Some(places) => Ok(places),
        None => corrupt("an offset index without pages"),
    }
}

fn read_pages(reader: &mut Reader, field: Field) -> Result<Vec<i64>> {
    let count = reader.list_of(field, Kind::Struct)?;
    let mut numbers = Vec::new();
    grow(&mut numbers, 3 * count)?;
    numbers.resize(3 * count, 0);
    for page in 0..count {
        let (mut offset, mut size, mut row) = (None, None, None);
        let mut last = 0;
        while let Some(field) = reader.field(&mut last)? {
            match field.id {
                1 => offset = Some(reader.int64(field)?),
                2 => size = Some(reader.int32(field)?),
                3 => row = Some(reader.int64(field)?),
                _ => reader.skip(field)?,
            }
        }
        let (Some(offset), Some(size), Some(row)) = (offset, size, row) else {
            return corrupt("a page without offset, size or first row");
        };
        numbers[page] = offset;
        numbers[count + page] = size;
        numbers[2 * count + page] = row;
    }
    Ok(numbers)
}

/// What a chunk's pages hold; lists are None where they are missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ColumnIndex<'a> {
    pub null_pages: Option<Vec<u8>>,
    pub min_values: Option<Vec<&'a [u8]>>,
    pub max_values: Option<Vec<&'a [u8]>>,
    pub null_counts: Option<Vec<i64>>,
    pub definition_level_histograms: Option<Vec<i64>>,
    pub nan_counts: Option<Vec<i64>>,
}

impl<'a> ColumnIndex<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let reader = &mut Reader::new(bytes);
        let mut index = ColumnIndex::default();
        let mut last = 0;
        while let Some(field) = reader.field(&mut last)? {
            match field.id {
                1 => index.null_pages = Some(read_flags(reader, field)?),
                2 => index.min_values = Some(read_bounds(reader, field)?),
                3 => index.max_values = Some(read_bounds(reader, field)?),
                5 => index.null_counts = Some(read_counts(reader, field)?),
                7 => index.definition_level_histograms = Some(read_counts(reader, field)?),
                8 => index.nan_counts = Some(read_counts(reader, field)?),
                _ => reader.skip(field)?,
            }
        }
        Ok(index)
    }
}

fn read_flags(reader: &mut Reader, field: Field) -> Result<Vec<u8>> {
    let count = match reader.list(field)? {
        (0, _) => 0,
        (count, Kind::True | Kind::False) => count,
        _ => return corrupt("a column index with another type than booleans"),
    };
    (0..count)
        .map(|_| reader.boolean_element().map(u8::from))
        .collect()
}

fn read_counts(reader: &mut Reader, field: Field) -> Result<Vec<i64>> {
    let count = reader.list_of(field, Kind::I64)?;
    (0..count).map(|_| reader.element()).collect()
}

fn read_bounds<'a>(reader: &mut Reader<'a>, field: Field) -> Result<Vec<&'a [u8]>> {
    let count = reader.list_of(field, Kind::Binary)?;
    (0..count).map(|_| reader.binary_element()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_columns_of_numbers() {
        // 1: two pages, the second at 300 with 70 bytes from row 10 on
        let bytes = [
            0x19, 0x2C, 0x16, 8, 0x15, 100, 0x16, 0, 0, 0x16, 0xD8, 4, 0x15, 0x8C, 1, 0x16, 20, 0,
            0,
        ];
        assert_eq!(read_offset_index(&bytes), Ok(vec![4, 300, 50, 70, 0, 10]));
        for end in 0..bytes.len() {
            assert!(read_offset_index(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn a_page_without_its_size_is_refused() {
        assert!(read_offset_index(&[0x19, 0x1C, 0x16, 8, 0x26, 0, 0, 0]).is_err());
        assert!(read_offset_index(&[0]).is_err());
    }

    #[test]
    fn lists_of_a_column_index_are_read() {
        let bytes = [
            0x19, 0x21, 2, 1, // one of two pages is null
            0x19, 0x28, 1, b'a', 0, 0x19, 0x28, 1, b'c', 0, // bounds
            0x15, 0, // their order
            0x19, 0x26, 0, 20, // nulls
            0x29, 0x46, 0, 2, 20, 0, // levels
            0,
        ];
        let index = ColumnIndex::read(&bytes).unwrap();
        assert_eq!(index.null_pages, Some(vec![0, 1]));
        assert_eq!(index.min_values, Some(vec![&b"a"[..], b""]));
        assert_eq!(index.max_values, Some(vec![&b"c"[..], b""]));
        assert_eq!(index.null_counts, Some(vec![0, 10]));
        assert_eq!(index.definition_level_histograms, Some(vec![0, 1, 10, 0]));
        assert_eq!(index.nan_counts, None);
        for end in 0..bytes.len() {
            assert!(ColumnIndex::read(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn lists_of_other_types_are_refused() {
        assert!(ColumnIndex::read(&[0x19, 0x15, 0, 0]).is_err());
        assert!(ColumnIndex::read(&[0x29, 0x15, 0, 0]).is_err());
    }
}
