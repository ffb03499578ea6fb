//! Thrift's compact protocol: fields are met in the order of their bytes, unknown ones are skipped.
//!
//! Nothing is allocated, and every step consumes bytes, so that no input takes long.

use crate::error::{Result, corrupt};

/// How deep structs may lie in each other; Parquet's own are far below.
const DEEPEST: u32 = 32;

/// The type of a field or of the elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    True,
    False,
    Byte,
    Short,
    Integer,
    Long,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl Kind {
    fn of(code: u8) -> Result<Kind> {
        Ok(match code {
            1 => Kind::True,
            2 => Kind::False,
            3 => Kind::Byte,
            4 => Kind::Short,
            5 => Kind::Integer,
            6 => Kind::Long,
            7 => Kind::Double,
            8 => Kind::Binary,
            9 | 10 => Kind::List,
            11 => Kind::Map,
            12 => Kind::Struct,
            _ => return corrupt("metadata of an unknown type"),
        })
    }
}

/// The number and type of a field of a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub id: i16,
    pub kind: Kind,
}

/// Reads metadata from its first byte on.
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, position: 0 }
    }

    /// How many bytes were read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The next field of a struct whose previous field was `last` (0 at first); None at its end.
    pub fn field(&mut self, last: &mut i16) -> Result<Option<Field>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let kind = Kind::of(head & 15)?;
        let id = match head >> 4 {
            0 => self.zigzag()? as i16,
            delta => last.wrapping_add(i16::from(delta)),
        };
        *last = id;
        Ok(Some(Field { id, kind }))
    }

    /// The value of a field that is an integer of 32 bits; of others it is damage, as for Arrow.
    pub fn integer(&mut self, field: Field) -> Result<i64> {
        match field.kind {
            Kind::Integer => self.zigzag(),
            _ => corrupt("metadata with another type than an integer"),
        }
    }

    /// The value of a field that is a boolean: its type says it.
    pub fn boolean(&mut self, field: Field) -> Result<bool> {
        match field.kind {
            Kind::True => Ok(true),
            Kind::False => Ok(false),
            _ => corrupt("metadata with another type than a boolean"),
        }
    }

    /// The value of a field of bytes or text.
    pub fn binary(&mut self, field: Field) -> Result<&'a [u8]> {
        match field.kind {
            Kind::Binary => self.bytes_of_length(),
            _ => corrupt("metadata with another type than bytes"),
        }
    }

    /// Enter a field that is a struct: its fields come next.
    pub fn enter(&mut self, field: Field) -> Result<()> {
        match field.kind {
            Kind::Struct => Ok(()),
            _ => corrupt("metadata with another type than a struct"),
        }
    }

    /// Enter a field that is a list: so many elements of this type come next.
    ///
    /// There are never more than bytes left.
    pub fn list(&mut self, field: Field) -> Result<(usize, Kind)> {
        match field.kind {
            Kind::List => self.list_header(),
            _ => corrupt("metadata with another type than a list"),
        }
    }

    /// An element of a list of integers.
    pub fn element(&mut self) -> Result<i64> {
        self.zigzag()
    }

    /// An element of a list of booleans.
    pub fn boolean_element(&mut self) -> Result<bool> {
        Ok(self.byte()? == 1)
    }

    /// An element of a list of bytes or text.
    pub fn binary_element(&mut self) -> Result<&'a [u8]> {
        self.bytes_of_length()
    }

    /// Pass over the value of a field.
    pub fn skip(&mut self, field: Field) -> Result<()> {
        match field.kind {
            Kind::True | Kind::False => Ok(()),
            kind => self.skip_value(kind, 0),
        }
    }

    /// Pass over an element of a list.
    pub fn skip_element(&mut self, kind: Kind) -> Result<()> {
        self.skip_value(kind, 0)
    }

    fn skip_value(&mut self, kind: Kind, depth: u32) -> Result<()> {
        if depth > DEEPEST {
            return corrupt("metadata that lie too deep in each other");
        }
        match kind {
            Kind::True | Kind::False | Kind::Byte => self.advance(1),
            Kind::Short | Kind::Integer | Kind::Long => self.varint().map(drop),
            Kind::Double => self.advance(8),
            Kind::Binary => self.bytes_of_length().map(drop),
            Kind::List => {
                let (count, kind) = self.list_header()?;
                (0..count).try_for_each(|_| self.skip_value(kind, depth + 1))
            }
            Kind::Map => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Kind::of(kinds >> 4)?, Kind::of(kinds & 15)?);
                for _ in 0..count {
                    self.skip_value(key, depth + 1)?;
                    self.skip_value(value, depth + 1)?;
                }
                Ok(())
            }
            Kind::Struct => {
                let mut last = 0;
                while let Some(field) = self.field(&mut last)? {
                    match field.kind {
                        Kind::True | Kind::False => {}
                        kind => self.skip_value(kind, depth + 1)?,
                    }
                }
                Ok(())
            }
        }
    }

    fn list_header(&mut self) -> Result<(usize, Kind)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        let left = self.bytes.len() - self.position;
        match usize::try_from(count) {
            Ok(0) => Ok((0, Kind::Byte)),
            Ok(count) if count <= left => Ok((count, Kind::of(head & 15)?)),
            _ => corrupt("metadata with a list that is too long"),
        }
    }

    fn bytes_of_length(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        let start = self.position;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.advance(length)?;
        Ok(&self.bytes[start..self.position])
    }

    fn advance(&mut self, count: usize) -> Result<()> {
        if count > self.bytes.len() - self.position {
            return corrupt("metadata that end too early");
        }
        self.position += count;
        Ok(())
    }

    #[inline]
    fn byte(&mut self) -> Result<u8> {
        let Some(&byte) = self.bytes.get(self.position) else {
            return corrupt("metadata that end too early");
        };
        self.position += 1;
        Ok(byte)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        corrupt("metadata with an endless number")
    }

    #[inline]
    fn zigzag(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_kinds_are_read_or_skipped() {
        // 1: i32 150, 2: true, 5: binary "ab", 6: list of i32 [1, -1], 7: struct {1: i64 3}, 9: double
        let bytes = [
            0x15, 0xAC, 0x02, 0x11, 0x38, 2, b'a', b'b', 0x19, 0x25, 2, 1, 0x1C, 0x16, 6, 0, 0x27,
            0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let mut reader = Reader::new(&bytes);
        let mut last = 0;
        let mut ids = vec![];
        while let Some(field) = reader.field(&mut last).unwrap() {
            ids.push(field.id);
            reader.skip(field).unwrap();
        }
        assert_eq!(ids, [1, 2, 5, 6, 7, 9]);
        assert_eq!(reader.position(), bytes.len());

        let mut reader = Reader::new(&bytes);
        let mut last = 0;
        let field = reader.field(&mut last).unwrap().unwrap();
        assert_eq!(reader.integer(field), Ok(150));
        let field = reader.field(&mut last).unwrap().unwrap();
        assert_eq!(reader.boolean(field), Ok(true));
        let field = reader.field(&mut last).unwrap().unwrap();
        assert_eq!(reader.binary(field), Ok(&b"ab"[..]));
        let field = reader.field(&mut last).unwrap().unwrap();
        assert_eq!(reader.list(field), Ok((2, Kind::Integer)));
        assert_eq!(
            [reader.element().unwrap(), reader.element().unwrap()],
            [1, -1]
        );
    }

    #[test]
    fn every_cut_is_damage_and_never_a_panic() {
        let bytes = [0x15, 0xAC, 0x02, 0x18, 2, b'a', b'b', 0x1C, 0x16, 6, 0, 0];
        for end in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..end]);
            let mut last = 0;
            let result = loop {
                match reader.field(&mut last) {
                    Ok(Some(field)) => {
                        if let Err(refusal) = reader.skip(field) {
                            break Err(refusal);
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(refusal) => break Err(refusal),
                }
            };
            assert!(result.is_err(), "cut at {end}");
        }
    }

    #[test]
    fn structs_in_structs_have_an_end() {
        let bytes = [0x1C; 1000];
        let mut reader = Reader::new(&bytes);
        let field = reader.field(&mut 0).unwrap().unwrap();
        assert!(reader.skip(field).is_err());
    }
}
