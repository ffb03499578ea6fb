//! The first bytes of all values, then all second bytes, and so on.

use crate::error::{Refusal, Result, corrupt};
use crate::output::Decoder;

/// Values of any one width.
#[derive(Debug, Clone)]
pub struct Split<'a> {
    bytes: &'a [u8],
    width: usize,
    position: usize,
    num_values: usize,
}

impl<'a> Split<'a> {
    pub fn new(bytes: &'a [u8], width: usize, num_values: usize) -> Result<Self> {
        if width == 0 || bytes.len() % width != 0 || bytes.len() / width < num_values {
            return corrupt("a page ends before its values");
        }
        if bytes.len() / width > num_values {
            return Err(Refusal::NotMine("more split values than the page has"));
        }
        Ok(Split {
            bytes,
            width,
            position: 0,
            num_values,
        })
    }

    /// These bytes of values from the position on.
    fn stream(&self, place: usize, count: usize) -> &'a [u8] {
        let begin = place * self.num_values + self.position;
        &self.bytes[begin..begin + count]
    }
}

impl Decoder for Split<'_> {
    type Output = Vec<u8>;

    fn position(&self) -> usize {
        self.position
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        if count > self.num_values - self.position {
            return corrupt("fewer values than are asked for");
        }
        self.position += count;
        Ok(())
    }

    fn read(&mut self, count: usize, output: &mut Vec<u8>) -> Result<()> {
        if count > self.num_values - self.position {
            return corrupt("fewer values than are asked for");
        }
        let begin = output.len();
        output.resize(begin + count * self.width, 0);
        let output = &mut output[begin..];
        match self.width {
            4 => {
                let streams: [&[u8]; 4] = std::array::from_fn(|place| self.stream(place, count));
                for (index, value) in output.chunks_exact_mut(4).enumerate() {
                    let word = streams.map(|stream| stream[index]);
                    value.copy_from_slice(&word);
                }
            }
            8 => {
                let streams: [&[u8]; 8] = std::array::from_fn(|place| self.stream(place, count));
                for (index, value) in output.chunks_exact_mut(8).enumerate() {
                    let word = streams.map(|stream| stream[index]);
                    value.copy_from_slice(&word);
                }
            }
            width => {
                for place in 0..width {
                    let values = output.iter_mut().skip(place).step_by(width);
                    for (value, byte) in values.zip(self.stream(place, count)) {
                        *value = *byte;
                    }
                }
            }
        }
        self.position += count;
        Ok(())
    }
}
