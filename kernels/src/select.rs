//! Wanted rows: which of them lie in a page, and which of its values these are.

use crate::error::{Result, corrupt};
use crate::output::{Bits, Run};

/// The wanted rows of a part, met from the first page to the last.
pub struct Selection<'a> {
    starts: &'a [i64],
    ends: &'a [i64],
}

impl<'a> Selection<'a> {
    /// Ascending runs of rows, none of them empty, in a part of so many rows.
    pub fn new(starts: &'a [i64], ends: &'a [i64], num_rows: u64) -> Result<Self> {
        let mut reached = 0;
        for (&start, &end) in starts.iter().zip(ends) {
            if start < reached || end <= start {
                return corrupt("wanted rows that do not ascend");
            }
            reached = end;
        }
        if starts.len() != ends.len() || reached as u64 > num_rows {
            return corrupt("wanted rows behind the last one");
        }
        Ok(Selection { starts, ends })
    }

    /// How many rows are still to come.
    pub fn count(&self) -> u64 {
        let runs = self.starts.iter().zip(self.ends);
        runs.map(|(start, end)| (end - start) as u64).sum()
    }

    /// Whether all wanted rows lie before this one.
    pub fn ends_before(&self, row: u64) -> bool {
        self.ends.last().is_none_or(|&end| end as u64 <= row)
    }

    /// Whether a wanted row lies between these two.
    pub fn has_rows(&self, first: u64, end: u64) -> bool {
        let behind = self
            .ends
            .partition_point(|&run_end| run_end as u64 <= first);
        let start = self.starts.get(behind);
        start.is_some_and(|&start| (start as u64) < end)
    }

    /// The wanted rows of the page with the rows from `first` up to `end`, counted from its first.
    ///
    /// Pages are asked for in their order, since runs that end before are left behind.
    pub fn rows_of_page(&mut self, first: u64, end: u64, rows: &mut Vec<Run>) {
        rows.clear();
        while let (Some(&run_start), Some(&run_end)) = (self.starts.first(), self.ends.first()) {
            let (run_start, run_end) = (run_start as u64, run_end as u64);
            if run_start >= end {
                break;
            }
            if run_end > first {
                rows.push(Run {
                    start: (run_start.max(first) - first) as u32,
                    end: (run_end.min(end) - first) as u32,
                });
            }
            if run_end > end {
                break;
            }
            self.starts = &self.starts[1..];
            self.ends = &self.ends[1..];
        }
    }
}

/// Which values of a page are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picks<'a> {
    /// All of so many.
    All(usize),
    Runs(&'a [Run]),
}

impl Picks<'_> {
    pub fn count(&self) -> usize {
        match self {
            Picks::All(count) => *count,
            Picks::Runs(runs) => runs.iter().map(Run::count).sum(),
        }
    }
}

/// Append a run of values, as part of the one before where they touch.
pub fn push_run(runs: &mut Vec<Run>, start: usize, end: usize) {
    if start == end {
        return;
    }
    let (start, end) = (start as u32, end as u32);
    match runs.last_mut() {
        Some(last) if last.end == start => last.end = end,
        _ => runs.push(Run { start, end }),
    }
}

/// The values that belong to wanted rows, where bits tell which rows have one.
///
/// Appends the bits of these rows to `slots`, and the runs of values to `values`.
pub fn pick_present(present: &Bits, rows: &[Run], slots: &mut Bits, values: &mut Vec<Run>) {
    let mut position = 0;
    let mut rank = 0;
    for row in rows {
        let (start, end) = (row.start as usize, row.end as usize);
        let first = rank + count_ones(&present.bytes, position, start);
        rank = first;
        if row.count() == 1 {
            let bit = present.get(start);
            slots.push(bit);
            rank += usize::from(bit);
        } else {
            slots.extend(&present.bytes, start, end - start);
            rank += count_ones(&present.bytes, start, end);
        }
        push_run(values, first, rank);
        position = end;
    }
}

/// How many bits between two places are set.
pub fn count_ones(bytes: &[u8], start: usize, end: usize) -> usize {
    if start >= end {
        return 0;
    }
    let (first, last) = (start / 8, (end - 1) / 8);
    let head = bytes[first] & (u8::MAX << (start % 8));
    let tail_mask = u8::MAX >> (7 - (end - 1) % 8);
    if first == last {
        return (head & tail_mask).count_ones() as usize;
    }
    let mut count = head.count_ones() + (bytes[last] & tail_mask).count_ones();
    let mut words = bytes[first + 1..last].chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        count += word.count_ones();
    }
    for byte in words.remainder() {
        count += byte.count_ones();
    }
    count as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(length: usize) -> Bits {
        let mut bits = Bits::default();
        for i in 0..length {
            bits.push(i % 3 == 0 || i % 7 == 2 || (64..140).contains(&i));
        }
        bits
    }

    #[test]
    fn ones_are_counted_between_any_two_places() {
        let bits = bits(300);
        for start in 0..300 {
            for end in start..=300 {
                let expected = (start..end).filter(|&i| bits.get(i)).count();
                assert_eq!(count_ones(&bits.bytes, start, end), expected);
            }
        }
    }

    #[test]
    fn rows_are_shared_out_to_pages() {
        let (starts, ends) = ([1, 5, 9, 30], [3, 8, 25, 31]);
        let mut selection = Selection::new(&starts, &ends, 31).unwrap();
        assert_eq!(selection.count(), 22);
        let mut rows = vec![];
        let mut found = vec![];
        for page in [0, 6, 10, 20, 26, 31].windows(2) {
            selection.rows_of_page(page[0], page[1], &mut rows);
            for run in &rows {
                found.extend(page[0] + u64::from(run.start)..page[0] + u64::from(run.end));
            }
        }
        let expected: Vec<u64> = [1..3, 5..8, 9..25, 30..31].into_iter().flatten().collect();
        assert_eq!(found, expected);
        assert!(selection.ends_before(31));
    }

    #[test]
    fn rows_that_cannot_be_are_refused() {
        for (starts, ends) in [
            ([3, 1], [4, 2]),
            ([0, 5], [2, 5]),
            ([-1, 2], [1, 3]),
            ([0, 8], [1, 11]),
        ] {
            assert!(Selection::new(&starts, &ends, 10).is_err());
        }
        assert!(Selection::new(&[0], &[], 10).is_err());
    }

    #[test]
    fn values_are_those_of_rows_that_have_one() {
        let present = bits(200);
        let rows: Vec<Run> = [(0, 1), (3, 4), (6, 20), (62, 150), (151, 152), (199, 200)]
            .map(|(start, end)| Run { start, end })
            .to_vec();
        let (mut slots, mut values) = (Bits::default(), vec![]);
        pick_present(&present, &rows, &mut slots, &mut values);
        let wanted: Vec<usize> = rows
            .iter()
            .flat_map(|r| r.start as usize..r.end as usize)
            .collect();
        let expected: Vec<bool> = wanted.iter().map(|&i| present.get(i)).collect();
        assert_eq!(
            (0..slots.len).map(|i| slots.get(i)).collect::<Vec<_>>(),
            expected
        );
        let ranks: Vec<u32> = wanted
            .iter()
            .filter(|&&i| present.get(i))
            .map(|&i| (0..i).filter(|&k| present.get(k)).count() as u32)
            .collect();
        let found: Vec<u32> = values.iter().flat_map(|run| run.start..run.end).collect();
        assert_eq!(found, ranks);
    }
}
