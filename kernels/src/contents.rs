//! What a data page holds: levels and values, decompressed.

use crate::codec::{Codec, Decompressor};
use crate::error::{Refusal, Result, corrupt};
use crate::pages::{Kind, Page};
use crate::values::Encoded;

const RLE: i64 = 3;
const FEW_LEVELS: usize = 16;

/// The parts of a data page.
#[derive(Debug, Clone, Copy)]
pub struct Contents<'a> {
    pub repetition: &'a [u8],
    pub definition: &'a [u8],
    pub values: &'a [u8],
}

impl<'a> Contents<'a> {
    /// Decompress a page of a leaf with these highest levels.
    ///
    /// Where pages are `always_compressed`, their header need not say so.
    pub fn read(
        page: &Page<'a>,
        codec: Codec,
        max_repetition: u8,
        max_definition: u8,
        always_compressed: bool,
        decompressor: &'a mut Decompressor,
    ) -> Result<Self> {
        match page.kind {
            Kind::Data {
                definition_encoding,
                repetition_encoding,
            } => {
                let body = decompressor.decompress(codec, page.body, page.size)?;
                let (repetition, rest) = split_levels(body, max_repetition, repetition_encoding)?;
                let (definition, values) = split_levels(rest, max_definition, definition_encoding)?;
                Ok(Contents {
                    repetition,
                    definition,
                    values,
                })
            }
            Kind::DataV2 {
                definition_length,
                repetition_length,
                is_compressed,
                ..
            } => {
                let (repetition, rest) = split(page.body, repetition_length)?;
                let (definition, stored) = split(rest, definition_length)?;
                let levels = repetition_length + definition_length;
                let Some(size) = page.size.checked_sub(levels) else {
                    return corrupt("a page header with impossible sizes");
                };
                let codec = match is_compressed || always_compressed {
                    true => codec,
                    false => Codec::Uncompressed,
                };
                Ok(Contents {
                    repetition,
                    definition,
                    values: decompressor.decompress(codec, stored, size)?,
                })
            }
            Kind::Dictionary => corrupt("a dictionary where a data page should be"),
        }
    }

    /// The beginning of a page of version 1 without lists: levels and so many bytes of values.
    pub fn read_first(
        page: &Page<'a>,
        codec: Codec,
        max_definition: u8,
        needed: usize,
        decompressor: &'a mut Decompressor,
    ) -> Option<Self> {
        let Kind::Data {
            definition_encoding,
            ..
        } = page.kind
        else {
            return None;
        };
        // Levels of a page without nulls take a few bytes.
        let needed = needed.checked_add(FEW_LEVELS)?;
        let body = decompressor.decompress_first(codec, page.body, page.size, needed)?;
        let (definition, values) = split_levels(body, max_definition, definition_encoding).ok()?;
        Some(Contents {
            repetition: &[],
            definition,
            values,
        })
    }

    /// The values, of which there are so many.
    pub fn encoded(&self, page: &Page, num_values: usize) -> Encoded<'a> {
        Encoded {
            encoding: page.encoding,
            bytes: self.values,
            num_values,
        }
    }
}

/// Levels of a page of version 1, if it has any, and what follows them.
fn split_levels(bytes: &[u8], highest: u8, encoding: i64) -> Result<(&[u8], &[u8])> {
    if highest == 0 {
        return Ok((&[], bytes));
    }
    if encoding != RLE {
        return Err(Refusal::NotMine("levels that are bit-packed"));
    }
    match bytes.split_first_chunk() {
        Some((length, rest)) => split(rest, u32::from_le_bytes(*length) as usize),
        None => corrupt("levels that go on behind their page"),
    }
}

fn split(bytes: &[u8], length: usize) -> Result<(&[u8], &[u8])> {
    match bytes.split_at_checked(length) {
        Some(parts) => Ok(parts),
        None => corrupt("levels that go on behind their page"),
    }
}
