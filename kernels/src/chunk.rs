//! A column chunk as the footer has it: where its pages are and what they are.
//!
//! As with footers, what is unusual in any way is refused.

use crate::error::{Result, corrupt};
use crate::levels::grow;
use crate::thrift::{Field, Kind, Reader};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chunk<'a> {
    pub file_path: Option<&'a str>,
    pub column: Option<Column<'a>>,
    pub offset_index_offset: Option<i64>,
    pub offset_index_length: Option<i64>,
    pub is_encrypted: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Column<'a> {
    pub physical_type: Option<i64>,
    pub path: Option<Vec<&'a [u8]>>,
    pub codec: Option<i64>,
    pub num_values: Option<i64>,
    pub uncompressed_size: Option<i64>,
    pub compressed_size: Option<i64>,
    pub data_page_offset: Option<i64>,
    pub dictionary_page_offset: Option<i64>,
    /// Bytes of strings once they are decoded.
    pub unencoded_bytes: Option<i64>,
}

impl<'a> Chunk<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let reader = &mut Reader::new(bytes);
        let mut chunk = Chunk::default();
        let mut last = 0;
        while let Some(field) = reader.field(&mut last)? {
            match field.id {
                1 => chunk.file_path = Some(reader.text(field)?),
                3 if chunk.column.is_none() => chunk.column = Some(Column::read(reader, field)?),
                3 => return corrupt("a chunk that is described twice"),
                4 => chunk.offset_index_offset = Some(reader.int64(field)?),
                5 => chunk.offset_index_length = Some(reader.int32(field)?),
                8 if field.kind == Kind::Struct => {
                    chunk.is_encrypted = true;
                    reader.skip(field)?;
                }
                8 => return corrupt("keys that are not a struct"),
                _ => reader.skip(field)?,
            }
        }
        Ok(chunk)
    }
}

impl<'a> Column<'a> {
    fn read(reader: &mut Reader<'a>, field: Field) -> Result<Self> {
        reader.enter(field)?;
        let mut column = Column::default();
        let mut last = 0;
        while let Some(field) = reader.field(&mut last)? {
            match field.id {
                1 => column.physical_type = Some(reader.int32(field)?),
                3 => {
                    let count = reader.list_of(field, Kind::Binary)?;
                    let mut path = Vec::new();
                    grow(&mut path, count)?;
                    for _ in 0..count {
                        path.push(reader.binary_element()?);
                    }
                    column.path = Some(path);
                }
                4 => column.codec = Some(reader.int32(field)?),
                5 => column.num_values = Some(reader.int64(field)?),
                6 => column.uncompressed_size = Some(reader.int64(field)?),
                7 => column.compressed_size = Some(reader.int64(field)?),
                9 => column.data_page_offset = Some(reader.int64(field)?),
                11 => column.dictionary_page_offset = Some(reader.int64(field)?),
                16 => column.unencoded_bytes = read_sizes(reader, field)?,
                _ => reader.skip(field)?,
            }
        }
        Ok(column)
    }
}

fn read_sizes(reader: &mut Reader, field: Field) -> Result<Option<i64>> {
    reader.enter(field)?;
    let mut unencoded = None;
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match field.id {
            1 => unencoded = Some(reader.int64(field)?),
            _ => reader.skip(field)?,
        }
    }
    Ok(unencoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk() -> Vec<u8> {
        let mut bytes = vec![0x3C, 0x15, 4]; // 3: an INT64
        bytes.extend([0x29, 0x28, 1, b'a', 1, b'b']); // 3: a.b
        bytes.extend([0x15, 2, 0x16, 20, 0x16, 200, 1, 0x16, 100]); // codec 1, 10, 100, 50
        bytes.extend([0x26, 18, 0x26, 8]); // 9: at 9, 11: dictionary at 4
        bytes.extend([0x5C, 0x16, 6, 0, 0]); // 16: three bytes
        bytes.extend([0x16, 80, 0x15, 26, 0]); // 4: index at 40, 5: of 13 bytes
        bytes
    }

    #[test]
    fn what_a_chunk_says_is_read() {
        let bytes = chunk();
        let read = Chunk::read(&bytes).unwrap();
        let column = Column {
            physical_type: Some(2),
            path: Some(vec![b"a", b"b"]),
            codec: Some(1),
            num_values: Some(10),
            uncompressed_size: Some(100),
            compressed_size: Some(50),
            data_page_offset: Some(9),
            dictionary_page_offset: Some(4),
            unencoded_bytes: Some(3),
        };
        let expected = Chunk {
            column: Some(column),
            offset_index_offset: Some(40),
            offset_index_length: Some(13),
            ..Chunk::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn every_cut_is_refused_and_no_changed_byte_panics() {
        let bytes = chunk();
        for place in 0..bytes.len() {
            assert!(Chunk::read(&bytes[..place]).is_err(), "cut at {place}");
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[place] = value;
                drop(Chunk::read(&changed));
            }
        }
    }
}
