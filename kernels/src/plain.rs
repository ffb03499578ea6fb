//! Values as they are: of fixed width, behind their lengths, or one bit each.

use crate::error::{Result, corrupt};
use crate::output::{Bits, ByteArrays, Decoder, Run};

/// Values of a width that is known to the compiler: 4, 8 or 12 bytes.
#[derive(Debug, Clone)]
pub struct Fixed<'a, const WIDTH: usize> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a, const WIDTH: usize> Fixed<'a, WIDTH> {
    pub fn new(bytes: &'a [u8], num_values: usize) -> Result<Self> {
        Ok(Fixed {
            bytes: cut(bytes, WIDTH, num_values)?,
            position: 0,
        })
    }
}

impl<const WIDTH: usize> Decoder for Fixed<'_, WIDTH> {
    type Output = Vec<u8>;

    fn position(&self) -> usize {
        self.position
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        take(self.bytes, WIDTH, &mut self.position, count)?;
        Ok(())
    }

    fn read(&mut self, count: usize, output: &mut Vec<u8>) -> Result<()> {
        output.extend_from_slice(take(self.bytes, WIDTH, &mut self.position, count)?);
        Ok(())
    }

    fn pick(&mut self, runs: &[Run], output: &mut Vec<u8>) -> Result<()> {
        output.reserve(runs.iter().map(Run::count).sum::<usize>() * WIDTH);
        for run in runs {
            self.position = run.start as usize;
            let values = take(self.bytes, WIDTH, &mut self.position, run.count())?;
            match <&[u8; WIDTH]>::try_from(values) {
                Ok(value) => output.extend_from_slice(value),
                Err(_) => output.extend_from_slice(values),
            }
        }
        Ok(())
    }
}

/// Values of any one width.
#[derive(Debug, Clone)]
pub struct FixedBytes<'a> {
    bytes: &'a [u8],
    width: usize,
    position: usize,
}

impl<'a> FixedBytes<'a> {
    pub fn new(bytes: &'a [u8], width: usize, num_values: usize) -> Result<Self> {
        Ok(FixedBytes {
            bytes: cut(bytes, width, num_values)?,
            width,
            position: 0,
        })
    }
}

impl Decoder for FixedBytes<'_> {
    type Output = Vec<u8>;

    fn position(&self) -> usize {
        self.position
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        take(self.bytes, self.width, &mut self.position, count)?;
        Ok(())
    }

    fn read(&mut self, count: usize, output: &mut Vec<u8>) -> Result<()> {
        output.extend_from_slice(take(self.bytes, self.width, &mut self.position, count)?);
        Ok(())
    }
}

/// The bytes of all values.
fn cut(bytes: &[u8], width: usize, num_values: usize) -> Result<&[u8]> {
    let size = num_values.checked_mul(width);
    match size.and_then(|size| bytes.get(..size)) {
        Some(values) => Ok(values),
        None => corrupt("a page ends before its values"),
    }
}

/// The bytes of the next values, which are left behind.
#[inline]
fn take<'a>(bytes: &'a [u8], width: usize, position: &mut usize, count: usize) -> Result<&'a [u8]> {
    let end = position.saturating_add(count);
    match bytes.get(*position * width..end.saturating_mul(width)) {
        Some(values) => {
            *position = end;
            Ok(values)
        }
        None => corrupt("fewer values than are asked for"),
    }
}

/// Byte arrays, each behind four bytes with its length.
#[derive(Debug, Clone)]
pub struct Bytes<'a> {
    bytes: &'a [u8],
    /// Where the next value's length begins.
    offset: usize,
    position: usize,
    num_values: usize,
}

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8], num_values: usize) -> Result<Self> {
        if num_values > bytes.len() / 4 {
            return corrupt("a page ends before its values");
        }
        Ok(Bytes {
            bytes,
            offset: 0,
            position: 0,
            num_values,
        })
    }

    /// Whether all values that were passed over lie in the page.
    pub fn is_inside(&self) -> bool {
        self.offset <= self.bytes.len()
    }

    /// The next values one by one, without a copy.
    pub fn visit(&mut self, count: usize, mut visitor: impl FnMut(&'a [u8])) -> Result<()> {
        self.walk(count, |bytes, begin, end| {
            match bytes.get(begin..end) {
                Some(value) => visitor(value),
                None => return corrupt("a value ends behind its page"),
            }
            Ok(())
        })
    }

    #[inline(always)]
    fn walk(
        &mut self,
        count: usize,
        mut step: impl FnMut(&'a [u8], usize, usize) -> Result<()>,
    ) -> Result<()> {
        if count > self.num_values - self.position {
            return corrupt("fewer values than are asked for");
        }
        let mut offset = self.offset;
        for _ in 0..count {
            let Some(length) = self.bytes.get(offset..offset + 4) else {
                return corrupt("a page ends before its values");
            };
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
            let begin = offset + 4;
            offset = begin + length as usize;
            step(self.bytes, begin, offset)?;
        }
        self.offset = offset;
        self.position += count;
        Ok(())
    }
}

impl Decoder for Bytes<'_> {
    type Output = ByteArrays;

    fn position(&self) -> usize {
        self.position
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        // A length that leads out of the page is seen at the next value.
        self.walk(count, |_, _, _| Ok(()))
    }

    fn read(&mut self, count: usize, output: &mut ByteArrays) -> Result<()> {
        output.offsets.reserve(count.min(self.num_values));
        self.walk(count, |bytes, begin, end| {
            if end > bytes.len() {
                return corrupt("a value ends behind its page");
            }
            output.push_part(bytes, begin, end)
        })
    }
}

/// Booleans of one bit each.
#[derive(Debug, Clone)]
pub struct Booleans<'a> {
    bytes: &'a [u8],
    position: usize,
    num_values: usize,
}

impl<'a> Booleans<'a> {
    pub fn new(bytes: &'a [u8], num_values: usize) -> Result<Self> {
        if num_values > bytes.len().saturating_mul(8) {
            return corrupt("a page ends before its values");
        }
        Ok(Booleans {
            bytes,
            position: 0,
            num_values,
        })
    }
}

impl Decoder for Booleans<'_> {
    type Output = Bits;

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

    fn read(&mut self, count: usize, output: &mut Bits) -> Result<()> {
        let first = self.position;
        self.skip(count)?;
        output.extend(self.bytes, first, count);
        Ok(())
    }
}
