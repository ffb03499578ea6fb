//! Floats, as they are.

use crate::error::Result;
use crate::orc::chunks::Stream;
use crate::orc::leaf::{Decoder, Kind, fixed};
use crate::orc::marks::Place;
use crate::values::Values;

/// Values of so many bytes each.
pub struct Floats<'a> {
    pub stream: Stream<'a>,
    pub width: u64,
}

impl Decoder for Floats<'_> {
    fn skip(&mut self, count: u64) -> Result<()> {
        self.stream.skip(count.saturating_mul(self.width))
    }

    fn read(&mut self, count: usize, output: &mut Values) -> Result<()> {
        self.stream
            .read((count as u64).saturating_mul(self.width), fixed(output)?)
    }

    fn mark(&mut self, _: bool) {}

    fn is_at(&mut self, _: Kind, place: Option<Place>) -> Result<bool> {
        bytes_are_at(&mut self.stream, place)
    }
}

/// Whether a place, or the end, is where the reader of plain bytes is.
pub fn bytes_are_at(stream: &mut Stream, place: Option<Place>) -> Result<bool> {
    match place {
        Some(place) => Ok(stream.place(place.chunk, place.inside) == Some(stream.position())),
        None => Ok(stream.fill(1)?.is_empty()),
    }
}
