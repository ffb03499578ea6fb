//! Times: seconds since a base, and nanoseconds without the zeros that end them.

use crate::error::{Refusal, Result, corrupt};
use crate::levels::grow;
use crate::orc::int_rle::Integers;
use crate::orc::leaf::{Decoder, Kind, fixed, integers_are_at, mark_integers};
use crate::orc::marks::Place;
use crate::values::Values;

/// Nanoseconds from which on seconds before 1970 count from the one below.
const MOST_OF_OLD: i64 = 999_999;

/// Times that become numbers of one unit since 1970.
pub struct Times<'a> {
    pub seconds: Integers<'a>,
    pub nanoseconds: Integers<'a>,
    /// The second of 1970 from which on the stripe counts.
    pub base: i64,
    pub in_nanoseconds: bool,
    pub scratch: (Vec<i64>, Vec<i64>),
}

fn nanoseconds(stored: i64) -> Result<i64> {
    let (digits, zeros) = (stored >> 3, (stored & 7) as u32);
    let value = match zeros {
        0 => Some(digits),
        _ => digits.checked_mul(10i64.pow(zeros + 1)),
    };
    match value {
        // Some writers count back from the second above.
        Some(value) if value.unsigned_abs() < 1_000_000_000 => Ok(value),
        _ => Err(Refusal::NotMine("more nanoseconds than a second has")),
    }
}

impl Times<'_> {
    fn time(&self, seconds: i64, stored: i64) -> Result<i64> {
        let nanoseconds = nanoseconds(stored)?;
        let Some(mut seconds) = seconds.checked_add(self.base) else {
            return corrupt("a time that is none");
        };
        if seconds < 0 && nanoseconds > MOST_OF_OLD {
            seconds -= 1; // as written: they count from the second below
        }
        let (per_second, rest) = match self.in_nanoseconds {
            true => (1_000_000_000, nanoseconds),
            false => (1_000_000, nanoseconds.div_euclid(1_000)),
        };
        // Near the first nanosecond that there is, the product alone may be too small.
        let time = i128::from(seconds) * per_second + i128::from(rest);
        match i64::try_from(time) {
            Ok(time) => Ok(time),
            Err(_) => Err(Refusal::OutOfRange("times that do not fit")),
        }
    }
}

impl Decoder for Times<'_> {
    fn skip(&mut self, count: u64) -> Result<()> {
        self.seconds.skip(count)?;
        self.nanoseconds.skip(count)
    }

    fn read(&mut self, count: usize, output: &mut Values) -> Result<()> {
        let (mut seconds, mut rest) = std::mem::take(&mut self.scratch);
        seconds.clear();
        rest.clear();
        self.seconds.read(count, &mut seconds)?;
        self.nanoseconds.read(count, &mut rest)?;
        let bytes = fixed(output)?;
        grow(bytes, count.saturating_mul(8))?;
        for (seconds, rest) in seconds.iter().zip(&rest) {
            bytes.extend_from_slice(&self.time(*seconds, *rest)?.to_le_bytes());
        }
        self.scratch = (seconds, rest);
        Ok(())
    }

    fn mark(&mut self, begins: bool) {
        mark_integers(&mut self.seconds, begins);
        mark_integers(&mut self.nanoseconds, begins);
    }

    fn is_at(&mut self, kind: Kind, place: Option<Place>) -> Result<bool> {
        match kind {
            Kind::Data => integers_are_at(&mut self.seconds, place),
            _ => integers_are_at(&mut self.nanoseconds, place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_that_end_nanoseconds_come_back() {
        for (digits, zeros, expected) in [
            (0, 0, 0),
            (123, 0, 123),
            (5, 7, 500_000_000),
            (12, 1, 1_200),
        ] {
            assert_eq!(nanoseconds(digits << 3 | zeros), Ok(expected));
        }
        assert!(nanoseconds(11 << 3 | 7).is_err());
        assert_eq!(nanoseconds(-8), Ok(-1));
        assert!(nanoseconds(i64::MIN).is_err());
    }
}
