//! Where runs begin: how a place that an index tells is held against how far a decoder came.

use crate::orc::chunks::Stream;

/// A place in a stream, as a row index tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Where its chunk begins, from the first byte at hand on.
    pub chunk: u64,
    /// Bytes to skip in the chunk.
    pub inside: u64,
    /// Values to skip in runs.
    pub values: u64,
    /// Bits to skip in a byte.
    pub bits: u64,
}

/// The runs that a decoder met, as far as somebody wants to know.
#[derive(Debug, Default)]
pub struct Marks {
    /// Where each begins in the stream, and how many values come before.
    runs: Option<Vec<(u64, u64)>>,
}

impl Marks {
    pub fn begin(&mut self) {
        self.runs = Some(Vec::new());
    }

    pub fn end(&mut self) {
        self.runs = None;
    }

    /// Note a run that begins here, behind so many values.
    #[inline]
    pub fn note(&mut self, position: u64, values: u64) {
        if let Some(runs) = &mut self.runs {
            runs.push((position, values));
        }
    }

    /// How many values come before a place, if a run begins there.
    ///
    /// The next run, which nobody met, begins at the stream's position behind `next` values.
    pub fn values_before(&self, stream: &Stream, place: Place, next: Option<u64>) -> Option<u64> {
        let position = stream.place(place.chunk, place.inside)?;
        let before = match next {
            Some(values) if position == stream.position() => values,
            _ => {
                let runs = self.runs.as_ref()?;
                let run = runs.binary_search_by_key(&position, |(begin, _)| *begin);
                runs[run.ok()?].1
            }
        };
        before.checked_add(place.values)
    }
}
