//! Thrift's compact protocol: fields are met in the order of their bytes, unknown ones are skipped.
//!
//! Nothing is allocated, and every step consumes bytes, so that no input takes long.

use crate::error::{Result, corrupt};

/// How deep structs may lie in each other; Parquet's own are far below.
const DEEPEST: u32 = 32;

/// The type of a field or of the elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    True = 1,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Set,
    Map,
    Struct,
}

impl Kind {
    fn of(code: u8) -> Result<Kind> {
        Ok(match code {
            1 => Kind::True,
            2 => Kind::False,
            3 => Kind::Byte,
            4 => Kind::I16,
            5 => Kind::I32,
            6 => Kind::I64,
            7 => Kind::Double,
            8 => Kind::Binary,
            9 => Kind::List,
            10 => Kind::Set,
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
        Reader::at(bytes, 0)
    }

    fn at(bytes: &'a [u8], position: usize) -> Self {
        Reader { bytes, position }
    }

    /// How many bytes were read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The next field of a struct whose previous field was `last` (0 at first); None at its end.
    #[inline(always)]
    pub fn field(&mut self, last: &mut i16) -> Result<Option<Field>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let kind = Kind::of(head & 15)?;
        let id = match head >> 4 {
            0 => unfold(self.varint(I16)?) as i16,
            delta => match last.checked_add(i16::from(delta)) {
                Some(id) => id,
                None => return corrupt("metadata with too many fields"),
            },
        };
        *last = id;
        Ok(Some(Field { id, kind }))
    }

    /// The value of a field that is an integer of 32 bits; of others it is damage, as for Arrow.
    pub fn integer32(&mut self, field: Field) -> Result<i64> {
        match field.kind {
            Kind::I32 => self.integer(field),
            _ => corrupt("metadata with another type than an integer of 32 bits"),
        }
    }

    /// The value of a field that is an integer.
    pub fn integer(&mut self, field: Field) -> Result<i64> {
        match field.kind {
            Kind::I16 => Ok(unfold(self.varint(I16)?)),
            Kind::I32 => Ok(unfold(self.varint(I32)?)),
            Kind::I64 => self.element(),
            Kind::Byte => Ok(i64::from(self.byte()? as i8)),
            _ => corrupt("metadata with another type than an integer"),
        }
    }

    /// The value of a field that is an integer of 32 bits and nothing else.
    pub fn int32(&mut self, field: Field) -> Result<i64> {
        match field.kind {
            Kind::I32 => self.integer(field),
            _ => corrupt("metadata with another type than 32 bits"),
        }
    }

    /// The value of a field that is an integer of 64 bits and nothing else.
    pub fn int64(&mut self, field: Field) -> Result<i64> {
        match field.kind {
            Kind::I64 => self.element(),
            _ => corrupt("metadata with another type than 64 bits"),
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

    /// The value of a field of text.
    pub fn text(&mut self, field: Field) -> Result<&'a str> {
        match std::str::from_utf8(self.binary(field)?) {
            Ok(text) => Ok(text),
            Err(_) => corrupt("metadata with text that is not UTF-8"),
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

    /// Enter a field that is a list of elements of this type: so many come next.
    pub fn list_of(&mut self, field: Field, kind: Kind) -> Result<usize> {
        match self.list(field)? {
            (0, _) => Ok(0),
            (count, found) if found == kind => Ok(count),
            _ => corrupt("metadata with a list of another type"),
        }
    }

    /// An element of a list of 64-bit integers.
    pub fn element(&mut self) -> Result<i64> {
        Ok(unfold(self.varint(I64)?))
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
    #[inline(always)]
    pub fn skip(&mut self, field: Field) -> Result<()> {
        match field.kind {
            Kind::True | Kind::False => Ok(()),
            Kind::I32 => self.go_to(end_of_number(self.bytes, self.position, I32)),
            Kind::I64 => self.go_to(end_of_number(self.bytes, self.position, I64)),
            kind => self.skip_element(kind),
        }
    }

    /// Pass over an element of a list.
    #[inline(always)]
    pub fn skip_element(&mut self, kind: Kind) -> Result<()> {
        self.go_to(end_of(self.bytes, self.position, kind as u8, 0))
    }

    #[inline(always)]
    fn go_to(&mut self, end: Option<usize>) -> Result<()> {
        match end {
            Some(end) => {
                self.position = end;
                Ok(())
            }
            None => corrupt("metadata that end too early, or of an unknown type"),
        }
    }

    fn list_header(&mut self) -> Result<(usize, Kind)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint(I32)?,
            short => u64::from(short),
        };
        let left = self.bytes.len() - self.position;
        match usize::try_from(count) {
            Ok(0) if head & 15 <= 12 => Ok((0, Kind::Byte)),
            Ok(count) if count <= left => Ok((count, Kind::of(head & 15)?)),
            _ => corrupt("metadata with a list that is too long"),
        }
    }

    fn bytes_of_length(&mut self) -> Result<&'a [u8]> {
        let length = self.varint(I32)?;
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
    fn varint(&mut self, bits: u32) -> Result<u64> {
        let mut value = 0;
        for shift in (0..bits).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 127);
            if shift + 7 > bits && part >> (bits - shift) != 0 {
                break;
            }
            value |= part << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        corrupt("metadata with a number that is too large")
    }
}

/// How many bits numbers of these types have.
const I16: u32 = 16;
const I32: u32 = 32;
const I64: u32 = 64;

/// Where a value of this type that begins at a byte ends, if all of it is there.
///
/// There are many of them: nothing but positions is handed around.
fn end_of(bytes: &[u8], at: usize, code: u8, depth: u32) -> Option<usize> {
    if depth > DEEPEST {
        return None;
    }
    let end = match code {
        1..=3 => at + 1,
        4 => end_of_number(bytes, at, I16)?,
        5 => end_of_number(bytes, at, I32)?,
        6 => end_of_number(bytes, at, I64)?,
        7 => at + 8,
        8 => end_of_binary(bytes, at)?,
        9 | 10 => {
            let mut reader = Reader::at(bytes, at);
            let (count, kind) = reader.list_header().ok()?;
            let mut end = reader.position;
            for _ in 0..count {
                end = end_of(bytes, end, kind as u8, depth + 1)?;
            }
            end
        }
        11 => {
            let mut reader = Reader::at(bytes, at);
            let count = reader.varint(I32).ok()?;
            if count == 0 {
                return Some(reader.position);
            }
            let kinds = reader.byte().ok()?;
            let mut end = reader.position;
            for _ in 0..count {
                end = end_of(bytes, end, kinds >> 4, depth + 1)?;
                end = end_of(bytes, end, kinds & 15, depth + 1)?;
            }
            end
        }
        12 => {
            let mut end = at;
            loop {
                let head = *bytes.get(end)?;
                end += 1;
                if head == 0 {
                    break end;
                }
                if head >> 4 == 0 {
                    end = end_of_number(bytes, end, I16)?;
                }
                end = match head & 15 {
                    1 | 2 => end,
                    5 => end_of_number(bytes, end, I32)?,
                    6 => end_of_number(bytes, end, I64)?,
                    8 => end_of_binary(bytes, end)?,
                    code => end_of(bytes, end, code, depth + 1)?,
                }
            }
        }
        _ => return None,
    };
    (end <= bytes.len()).then_some(end)
}

/// Where bytes end that come behind their length, if they are not too many.
#[inline(always)]
fn end_of_binary(bytes: &[u8], at: usize) -> Option<usize> {
    match *bytes.get(at)? {
        length @ 0..128 => Some(at + 1 + usize::from(length)),
        _ => {
            let mut reader = Reader::at(bytes, at);
            reader.bytes_of_length().ok()?;
            Some(reader.position)
        }
    }
}

/// Where a number ends; most are short, of which no bit can be too much.
#[inline(always)]
fn end_of_number(bytes: &[u8], at: usize, bits: u32) -> Option<usize> {
    if let Some(&word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let last_bytes = !u64::from_le_bytes(word) & 0x8080_8080_8080_8080;
        let length = last_bytes.trailing_zeros() / 8 + 1;
        if length <= 8.min(bits / 7) {
            return Some(at + length as usize);
        }
    }
    let mut reader = Reader::at(bytes, at);
    reader.varint(bits).ok()?;
    Some(reader.position)
}

/// The number of which the lowest bit is the sign.
fn unfold(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
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
        assert_eq!(reader.list(field), Ok((2, Kind::I32)));
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
