//! The footer of a Parquet file without its column chunks: only where each of them is.
//!
//! What is unusual in any way is refused, so that whoever reads all of it decides what it means.

use crate::error::{Result, corrupt};
use crate::levels::grow;
use crate::thrift::{Field, Kind, Reader};

/// Logical types that have text in them.
const GEOMETRY: i16 = 17;
const GEOGRAPHY: i16 = 18;

/// What no field of 32 bits can say.
pub const NONE: i64 = i64::MIN;

/// A part of the metadata, from one byte to another.
pub type Span = [i64; 2];

pub type KeyValue<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Footer<'a> {
    /// How many bytes it has.
    pub length: usize,
    pub num_rows: Option<i64>,
    pub created_by: Option<&'a str>,
    pub key_values: Vec<KeyValue<'a>>,
    pub elements: Elements<'a>,
    pub row_groups: Vec<RowGroup>,
    /// Those of all row groups, one behind the other.
    pub chunks: Vec<Span>,
    /// For each leaf whether its order is a known one.
    pub column_orders: Vec<u8>,
}

/// The elements of the schema.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Elements<'a> {
    pub spans: Vec<Span>,
    pub names: Vec<&'a str>,
    /// Physical types; `NONE` where there is none.
    pub types: Vec<i64>,
    /// How many children each has; 0 where that is not said.
    pub children: Vec<i64>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct RowGroup {
    pub num_columns: usize,
    pub total_byte_size: Option<i64>,
    pub num_rows: Option<i64>,
    pub file_offset: Option<i64>,
    pub total_compressed_size: Option<i64>,
    /// Where its first column chunk begins, as far as that is said.
    pub start: Option<i64>,
}

impl<'a> Footer<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let reader = &mut Reader::new(bytes);
        let mut footer = Footer::default();
        let mut seen = 0u32;
        let mut last = 0;
        while let Some(field) = reader.field(&mut last)? {
            if let id @ 0..32 = field.id {
                if seen & 1 << id != 0 {
                    return corrupt("a footer that says something twice");
                }
                seen |= 1 << id;
            }
            match field.id {
                2 => footer.elements.read(reader, field)?,
                3 => footer.num_rows = Some(reader.int64(field)?),
                4 => footer.read_row_groups(reader, field)?,
                5 => footer.read_key_values(reader, field)?,
                6 => footer.created_by = Some(reader.text(field)?),
                7 => footer.read_column_orders(reader, field)?,
                _ => reader.skip(field)?,
            }
        }
        if seen & SCHEMA_AND_ROW_GROUPS != SCHEMA_AND_ROW_GROUPS {
            return corrupt("a footer without a schema or row groups");
        }
        footer.length = reader.position();
        Ok(footer)
    }

    fn read_row_groups(&mut self, reader: &mut Reader<'a>, field: Field) -> Result<()> {
        for _ in 0..reader.list_of(field, Kind::Struct)? {
            let mut group = RowGroup::default();
            let mut columns = None;
            let mut last = 0;
            while let Some(field) = reader.field(&mut last)? {
                match field.id {
                    1 if columns.is_none() => {
                        let count = reader.list_of(field, Kind::Struct)?;
                        columns = Some(count);
                        grow(&mut self.chunks, count)?;
                        for place in 0..count {
                            let begin = reader.position() as i64;
                            let start = pass_chunk(reader)?;
                            if place == 0 {
                                group.start = start;
                            }
                            self.chunks.push([begin, reader.position() as i64]);
                        }
                    }
                    1 => return corrupt("a row group that has columns twice"),
                    2 => group.total_byte_size = Some(reader.int64(field)?),
                    3 => group.num_rows = Some(reader.int64(field)?),
                    5 => group.file_offset = Some(reader.int64(field)?),
                    6 => group.total_compressed_size = Some(reader.int64(field)?),
                    _ => reader.skip(field)?,
                }
            }
            let Some(num_columns) = columns else {
                return corrupt("a row group without columns");
            };
            group.num_columns = num_columns;
            grow(&mut self.row_groups, 1)?;
            self.row_groups.push(group);
        }
        Ok(())
    }

    fn read_key_values(&mut self, reader: &mut Reader<'a>, field: Field) -> Result<()> {
        for _ in 0..reader.list_of(field, Kind::Struct)? {
            let mut pair = (None, None);
            let mut last = 0;
            while let Some(field) = reader.field(&mut last)? {
                match field.id {
                    1 => pair.0 = Some(reader.binary(field)?),
                    2 => pair.1 = Some(reader.binary(field)?),
                    _ => reader.skip(field)?,
                }
            }
            grow(&mut self.key_values, 1)?;
            self.key_values.push(pair);
        }
        Ok(())
    }

    fn read_column_orders(&mut self, reader: &mut Reader<'a>, field: Field) -> Result<()> {
        let count = reader.list_of(field, Kind::Struct)?;
        grow(&mut self.column_orders, count)?;
        for _ in 0..count {
            let mut is_known = false;
            let mut last = 0;
            while let Some(field) = reader.field(&mut last)? {
                is_known |= matches!(field.id, 1 | 2) && field.kind == Kind::Struct;
                reader.skip(field)?;
            }
            self.column_orders.push(u8::from(is_known));
        }
        Ok(())
    }
}

const SCHEMA_AND_ROW_GROUPS: u32 = 1 << 2 | 1 << 4;

impl<'a> Elements<'a> {
    fn read(&mut self, reader: &mut Reader<'a>, field: Field) -> Result<()> {
        for _ in 0..reader.list_of(field, Kind::Struct)? {
            let begin = reader.position() as i64;
            let (mut name, mut physical, mut children) = (None, NONE, 0);
            let mut last = 0;
            while let Some(field) = reader.field(&mut last)? {
                match field.id {
                    1 => physical = reader.int32(field)?,
                    4 => name = Some(reader.text(field)?),
                    5 => children = reader.int32(field)?,
                    10 => pass_logical_type(reader, field)?,
                    _ => reader.skip(field)?,
                }
            }
            let Some(name) = name else {
                return corrupt("a schema element without a name");
            };
            grow(&mut self.names, 1)?;
            grow(&mut self.spans, 1)?;
            grow(&mut self.types, 1)?;
            grow(&mut self.children, 1)?;
            self.names.push(name);
            self.spans.push([begin, reader.position() as i64]);
            self.types.push(physical);
            self.children.push(children);
        }
        Ok(())
    }
}

/// Pass over a logical type; the names of coordinate systems are text.
fn pass_logical_type(reader: &mut Reader, field: Field) -> Result<()> {
    reader.enter(field)?;
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match field.id {
            GEOMETRY | GEOGRAPHY => pass_first_text(reader, field)?,
            _ => reader.skip(field)?,
        }
    }
    Ok(())
}

fn pass_first_text(reader: &mut Reader, field: Field) -> Result<()> {
    reader.enter(field)?;
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match field.id {
            1 => reader.text(field).map(drop)?,
            _ => reader.skip(field)?,
        }
    }
    Ok(())
}

/// Pass over a column chunk, to tell where its pages begin; its text and lists are as they should be.
fn pass_chunk(reader: &mut Reader) -> Result<Option<i64>> {
    let mut start = None;
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match field.id {
            1 => reader.text(field).map(drop)?,
            3 => start = Some(pass_column(reader, field)?),
            _ => reader.skip(field)?,
        }
    }
    Ok(start)
}

fn pass_column(reader: &mut Reader, field: Field) -> Result<i64> {
    let (mut data, mut dictionary) = (0, 0);
    reader.enter(field)?;
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match field.id {
            9 => data = reader.int64(field)?,
            11 => dictionary = reader.int64(field)?,
            3 => {
                for _ in 0..reader.list_of(field, Kind::Binary)? {
                    reader.binary_element()?;
                }
            }
            13 => {
                for _ in 0..reader.list_of(field, Kind::Struct)? {
                    reader.skip_element(Kind::Struct)?;
                }
            }
            _ => reader.skip(field)?,
        }
    }
    // An offset of 0 means that there is no dictionary, and one behind the data is not believed.
    let is_first = 0 < dictionary && dictionary < data;
    Ok(if is_first { dictionary } else { data })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two columns, of which one lies in a struct, in one row group.
    fn footer() -> Vec<u8> {
        let mut bytes = vec![0x15, 2]; // 1: version 1
        bytes.extend([0x19, 0x4C]); // 2: four elements
        bytes.extend([0x48, 4, b'r', b'o', b'o', b't', 0x15, 4, 0]); // two children
        bytes.extend([0x15, 4, 0x25, 0, 0x18, 1, b'a', 0]); // an INT64
        bytes.extend([0x35, 0, 0x18, 1, b's', 0x15, 2, 0]); // a struct
        bytes.extend([0x15, 12, 0x25, 0, 0x18, 1, b'b', 0]); // a BYTE_ARRAY
        bytes.extend([0x16, 20]); // 3: ten rows
        bytes.extend([0x19, 0x1C]); // 4: one row group
        bytes.extend([0x19, 0x2C]); // 1: two columns
        // Data at 9, the dictionary at 4.
        bytes.extend([0x26, 8, 0x1C, 0x39, 0x18, 1, b'a', 0x66, 18, 0x26, 8, 0, 0]);
        bytes.extend([0x26, 8, 0x1C, 0x15, 12, 0, 0]);
        bytes.extend([0x16, 200, 1, 0x16, 20, 0]); // 100 bytes, ten rows
        bytes.extend([0x19, 0x1C, 0x18, 1, b'k', 0x18, 1, b'v', 0]); // 5: key and value
        bytes.extend([0x18, 2, b'm', b'e']); // 6: created by
        bytes.extend([0x19, 0x2C, 0x1C, 0, 0, 0, 0]); // 7: one order that is known, one that is not
        bytes
    }

    #[test]
    fn the_places_of_chunks_and_elements_are_found() {
        let bytes = footer();
        let footer = Footer::read(&bytes).unwrap();
        assert_eq!(footer.length, bytes.len());
        assert_eq!(footer.num_rows, Some(10));
        assert_eq!(footer.created_by, Some("me"));
        assert_eq!(footer.key_values, [(Some(&b"k"[..]), Some(&b"v"[..]))]);
        assert_eq!(footer.elements.names, ["root", "a", "s", "b"]);
        assert_eq!(footer.elements.types, [NONE, 2, NONE, 6]);
        assert_eq!(footer.elements.children, [2, 0, 1, 0]);
        assert_eq!(footer.column_orders, [1, 0]);
        let group = RowGroup {
            num_columns: 2,
            total_byte_size: Some(100),
            num_rows: Some(10),
            start: Some(4),
            ..RowGroup::default()
        };
        assert_eq!(footer.row_groups, [group]);
        let parts = footer.elements.spans.iter().chain(&footer.chunks);
        for &[begin, end] in parts {
            let part = &bytes[begin as usize..end as usize];
            let mut reader = Reader::new(part);
            assert!(reader.skip_element(Kind::Struct).is_ok());
            assert_eq!(reader.position(), part.len());
        }
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = footer();
        for end in 0..bytes.len() {
            assert!(Footer::read(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn no_changed_byte_panics() {
        let bytes = footer();
        for place in 0..bytes.len() {
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[place] = value;
                if let Ok(footer) = Footer::read(&changed) {
                    assert!(footer.length <= changed.len());
                }
            }
        }
    }

    #[test]
    fn what_is_said_twice_is_refused() {
        let mut bytes = footer();
        bytes.pop();
        bytes.extend([0x06, 6, 40, 0]); // 3 again: twenty rows
        assert!(Footer::read(&bytes).is_err());
    }
}
