//! Offset indexes and column indexes as flat arrays.
//!
//! As with footers, what is unusual in any way is refused.

use std::ops::Range;

use crate::error::{Result, corrupt};
use crate::levels::grow;
use crate::thrift::{Field, Kind, Reader};

/// The first rows of all pages and the last row, then their offsets, then their sizes.
///
/// They begin with row 0, and lie one after the other inside of the chunk.
pub fn read_offset_index(bytes: &[u8], num_rows: i64, chunk: Range<i64>) -> Result<Vec<i64>> {
    let reader = &mut Reader::new(bytes);
    let mut places = None;
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match field.id {
            1 if places.is_none() => places = Some(read_pages(reader, field, num_rows, &chunk)?),
            1 => return corrupt("an offset index that lists its pages twice"),
            _ => reader.skip(field)?,
        }
    }
    match places {
        Some(places) => Ok(places),
        None => corrupt("an offset index without pages"),
    }
}

fn read_pages(
    reader: &mut Reader,
    field: Field,
    num_rows: i64,
    chunk: &Range<i64>,
) -> Result<Vec<i64>> {
    let count = reader.list_of(field, Kind::Struct)?;
    let mut numbers = Vec::new();
    grow(&mut numbers, 3 * count + 1)?;
    numbers.resize(3 * count + 1, num_rows);
    let (mut last_row, mut last_end) = (0, chunk.start);
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
        let follows = if page == 0 { row == 0 } else { row >= last_row };
        // An offset behind the chunk could overflow with its size.
        if !follows || offset < last_end || offset > chunk.end || size <= 0 {
            return corrupt("a page that does not follow the one before");
        }
        (last_row, last_end) = (row, offset + size);
        numbers[page] = row;
        numbers[count + 1 + page] = offset;
        numbers[2 * count + 1 + page] = size;
    }
    if count == 0 || last_row > num_rows || last_end > chunk.end {
        return corrupt("pages that do not fit into their chunk");
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
        let expected = vec![0, 10, 25, 4, 300, 50, 70];
        assert_eq!(read_offset_index(&bytes, 25, 4..370), Ok(expected));
        for end in 0..bytes.len() {
            let cut = read_offset_index(&bytes[..end], 25, 4..370);
            assert!(cut.is_err(), "cut at {end}");
        }
        for (rows, chunk) in [(9, 4..370), (25, 5..370), (25, 4..369)] {
            assert!(read_offset_index(&bytes, rows, chunk).is_err());
        }
    }

    #[test]
    fn pages_that_overlap_or_begin_behind_row_0_are_refused() {
        // 1: two pages, the second at 53 with 70 bytes from row 10 on
        let mut bytes = [
            0x19, 0x2C, 0x16, 8, 0x15, 100, 0x16, 0, 0, 0x16, 106, 0x15, 0x8C, 1, 0x16, 20, 0, 0,
        ];
        assert!(read_offset_index(&bytes, 25, 4..370).is_err());
        bytes[10] = 108;
        assert!(read_offset_index(&bytes, 25, 4..370).is_ok());
        bytes[7] = 2;
        assert!(read_offset_index(&bytes, 25, 4..370).is_err());
    }

    #[test]
    fn a_page_without_its_size_is_refused() {
        let unsized_page = [0x19, 0x1C, 0x16, 8, 0x26, 0, 0, 0];
        assert!(read_offset_index(&unsized_page, 5, 0..100).is_err());
        assert!(read_offset_index(&[0], 5, 0..100).is_err());
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
