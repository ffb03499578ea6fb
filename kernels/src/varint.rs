//! Integers of seven bits per byte; each comes with the bytes that follow it.

use crate::error::{Result, corrupt};

pub fn parse_u32(bytes: &[u8]) -> Result<(u32, &[u8])> {
    let (value, rest) = parse_varint(bytes)?;
    match u32::try_from(value) {
        Ok(value) => Ok((value, rest)),
        Err(_) => corrupt("a count that is too large"),
    }
}

pub fn parse_zigzag(bytes: &[u8]) -> Result<(i64, &[u8])> {
    let (value, rest) = parse_varint(bytes)?;
    Ok(((value >> 1) as i64 ^ -((value & 1) as i64), rest))
}

fn parse_varint(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let mut value = 0;
    for (place, byte) in bytes.iter().take(10).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if place == 9 && bits > 1 {
            return corrupt("an integer of more than 64 bits");
        }
        value |= bits << (7 * place);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[place + 1..]));
        }
    }
    corrupt("an integer ends before its last byte")
}
