//! All code that the compiler cannot check: gathering and decompressing without a test for each
//! value, and memory that is shared with Python.

#![allow(unsafe_code)]

use std::ops::Range;

pub mod snappy;

use crate::bit_packing::Word;
use crate::error::{Refusal, Result, corrupt};
use crate::levels::grow;
use crate::output::{Bits, ByteArrays};

/// Append the entries at these indices, each of so many bytes.
pub fn gather(entries: &[u8], width: usize, indices: &[u32], output: &mut Vec<u8>) -> Result<()> {
    match width {
        1 => gather_fixed::<1>(entries, indices, output),
        2 => gather_fixed::<2>(entries, indices, output),
        4 => gather_fixed::<4>(entries, indices, output),
        8 => gather_fixed::<8>(entries, indices, output),
        16 => gather_fixed::<16>(entries, indices, output),
        _ => {
            grow(output, indices.len().saturating_mul(width))?;
            for &index in indices {
                match entries.get(index as usize * width..(index as usize + 1) * width) {
                    Some(entry) => output.extend_from_slice(entry),
                    None => return no_entry(),
                }
            }
            Ok(())
        }
    }
}

/// The highest index, or 0; many at a time.
fn highest(indices: &[u32]) -> usize {
    indices.iter().fold(0, |most, &index| most.max(index)) as usize
}

fn no_entry<T>() -> Result<T> {
    corrupt("an index behind the last entry of the dictionary")
}

fn gather_fixed<const WIDTH: usize>(
    entries: &[u8],
    indices: &[u32],
    output: &mut Vec<u8>,
) -> Result<()> {
    if indices.is_empty() {
        return Ok(());
    }
    if highest(indices) >= entries.len() / WIDTH {
        return no_entry();
    }
    let begin = output.len();
    let size = indices.len() * WIDTH;
    grow(output, size)?;
    let from = entries.as_ptr().cast::<[u8; WIDTH]>();
    let to = output
        .spare_capacity_mut()
        .as_mut_ptr()
        .cast::<[u8; WIDTH]>();
    for (place, &index) in indices.iter().enumerate() {
        // SAFETY: no index is above the highest, whose entry lies inside `entries`; there is room
        // for all of them behind the output, and arrays of bytes need no alignment.
        unsafe { to.add(place).write(from.add(index as usize).read()) };
    }
    // SAFETY: the loop wrote so many bytes.
    unsafe { output.set_len(begin + size) };
    Ok(())
}

/// Append the entries at these indices to the slots of a range that are not null, and zeros to
/// those that are; there are as many indices as slots that are not null, the range begins with a
/// word of the slots, and entries have 4 or 8 bytes.
pub fn gather_slots(
    entries: &[u8],
    width: usize,
    indices: &mut Vec<u32>,
    slots: &Bits,
    range: Range<usize>,
    output: &mut Vec<u8>,
) -> Result<()> {
    if indices.is_empty() {
        grow(output, range.len() * width)?;
        output.resize(output.len() + range.len() * width, 0);
        return Ok(());
    }
    if highest(indices) >= entries.len() / width {
        return no_entry();
    }
    // Nulls behind the last value look at an entry too.
    indices.push(0);
    match width {
        4 => gather_words::<u32>(entries, indices, slots, range, output),
        _ => gather_words::<u64>(entries, indices, slots, range, output),
    }
}

/// As above, where every index has an entry and one more follows the last.
fn gather_words<W: Word>(
    entries: &[u8],
    indices: &[u32],
    slots: &Bits,
    range: Range<usize>,
    output: &mut Vec<u8>,
) -> Result<()> {
    let (begin, size) = (output.len(), range.len() * size_of::<W>());
    grow(output, size)?;
    let from = entries.as_ptr().cast::<W>();
    let to = output.spare_capacity_mut().as_mut_ptr().cast::<W>();
    let mut indices = indices;
    for first in range.clone().step_by(64) {
        let count = 64.min(range.end - first);
        let word = slots.word(first) & u64::MAX >> (64 - count);
        let Some((_, behind)) = indices.split_at_checked(word.count_ones() as usize) else {
            return corrupt("fewer values than levels");
        };
        if behind.is_empty() {
            return corrupt("fewer values than levels");
        }
        let mut next = 0;
        for place in 0..count {
            let there = word >> place & 1;
            let mask = W::cut(there.wrapping_neg());
            // SAFETY: `next` is at most the number of bits in the word, behind which there is one
            // more index; every index has an entry, and there is room for all slots of the range.
            unsafe {
                let index = *indices.get_unchecked(next) as usize;
                let entry = from.add(index).read_unaligned();
                let slot = to.add(first - range.start + place);
                slot.write_unaligned(entry & mask);
            }
            next += there as usize;
        }
        indices = behind;
    }
    // SAFETY: the loops wrote so many bytes.
    unsafe { output.set_len(begin + size) };
    Ok(())
}

/// Bytes that are copied at once; most strings are shorter.
const CHUNK: usize = 16;

/// Append the entries at these indices.
pub fn gather_arrays(entries: &ByteArrays, indices: &[u32], output: &mut ByteArrays) -> Result<()> {
    let count = entries.offsets.len() - 1;
    if indices.is_empty() {
        return Ok(());
    }
    if highest(indices) >= count {
        return no_entry();
    }
    let bounds = &entries.offsets[..];
    if count <= indices.len() / 4 {
        if let Some(table) = short_entries(entries) {
            return gather_short(&table, indices, output);
        }
    }
    let mut size = 0;
    for &index in indices {
        size += (bounds[index as usize + 1] - bounds[index as usize]) as usize;
    }
    let mut end = output.data.len();
    if end + size > i32::MAX as usize {
        return Err(Refusal::NotMine("more than 2 GiB of strings"));
    }
    grow(&mut output.data, size + CHUNK)?;
    grow(&mut output.offsets, indices.len())?;
    let base = output.data.as_mut_ptr();
    for &index in indices {
        let (from, to) = (
            bounds[index as usize] as usize,
            bounds[index as usize + 1] as usize,
        );
        let entry = &entries.data[from..to];
        if entry.len() <= CHUNK && from + CHUNK <= entries.data.len() {
            // SAFETY: a whole chunk lies inside of the entries, as was just tested, and behind the
            // output there is room for all values and a chunk.
            unsafe { std::ptr::copy_nonoverlapping(entry.as_ptr(), base.add(end), CHUNK) };
        } else {
            // SAFETY: there is room for the lengths of all values.
            unsafe { std::ptr::copy_nonoverlapping(entry.as_ptr(), base.add(end), entry.len()) };
        }
        end += entry.len();
        output.offsets.push(end as i32);
    }
    // SAFETY: all bytes up to the end of the last value were written.
    unsafe { output.data.set_len(end) };
    Ok(())
}

/// A short entry, behind which its chunk is filled with zeros.
type Short = ([u8; CHUNK], u32);

/// All entries, if none is longer than a chunk.
fn short_entries(entries: &ByteArrays) -> Option<Vec<Short>> {
    let edges = entries.offsets.windows(2);
    let short = edges.map(|edges| {
        let entry = entries.data.get(edges[0] as usize..edges[1] as usize)?;
        let mut chunk = [0; CHUNK];
        chunk.get_mut(..entry.len())?.copy_from_slice(entry);
        Some((chunk, entry.len() as u32))
    });
    short.collect()
}

/// Append the entries at these indices, each of which has one.
fn gather_short(table: &[Short], indices: &[u32], output: &mut ByteArrays) -> Result<()> {
    let mut end = output.data.len();
    let most = indices.len().saturating_mul(CHUNK);
    if end.saturating_add(most) > i32::MAX as usize {
        return Err(Refusal::NotMine("more than 2 GiB of strings"));
    }
    grow(&mut output.data, most)?;
    grow(&mut output.offsets, indices.len())?;
    let base = output.data.as_mut_ptr();
    let count = output.offsets.len();
    let offsets = output.offsets.spare_capacity_mut();
    for (&index, offset) in indices.iter().zip(offsets) {
        let (chunk, length) = &table[index as usize];
        // SAFETY: there is room for a whole chunk for each index.
        unsafe { base.add(end).cast::<[u8; CHUNK]>().write(*chunk) };
        end += *length as usize;
        offset.write(end as i32);
    }
    // SAFETY: all bytes up to the end of the last value were written, and as many offsets as there
    // are indices, for which there is room.
    unsafe {
        output.data.set_len(end);
        output.offsets.set_len(count + indices.len());
    }
    Ok(())
}

/// Memory that Python and these kernels share.
#[cfg(feature = "python")]
pub mod shared {
    use std::os::raw::{c_int, c_void};

    use pyo3::ffi;
    use pyo3::prelude::*;

    /// The bytes of a Python object, which stay where they are until this is dropped.
    pub struct View {
        view: Box<ffi::Py_buffer>,
    }

    // SAFETY: the memory belongs to the exporter, which keeps it until the view is released; it is
    // only read here, and released with the interpreter's lock held.
    unsafe impl Send for View {}
    // SAFETY: as above.
    unsafe impl Sync for View {}

    impl View {
        pub fn bytes(&self) -> &[u8] {
            if self.view.len <= 0 {
                return &[];
            }
            // SAFETY: a simple view is contiguous: so many bytes from this address on.
            unsafe { std::slice::from_raw_parts(self.view.buf.cast(), self.view.len as usize) }
        }
    }

    impl<'py> FromPyObject<'_, 'py> for View {
        type Error = PyErr;

        fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
            let mut view = Box::new(ffi::Py_buffer::new());
            // SAFETY: the object is alive, and the view is released when this is dropped, which is
            // only made where Python filled it.
            let code =
                unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, ffi::PyBUF_SIMPLE) };
            match code {
                0 => Ok(View { view }),
                _ => Err(PyErr::fetch(object.py())),
            }
        }
    }

    impl Drop for View {
        fn drop(&mut self) {
            // SAFETY: Python filled the view, and it is released once, with the lock held.
            Python::attach(|_| unsafe { ffi::PyBuffer_Release(&mut *self.view) });
        }
    }

    enum Memory {
        Bytes(Vec<u8>),
        Offsets(Vec<i32>),
        LargeOffsets(Vec<i64>),
    }

    /// Memory that was filled here; `pyarrow.py_buffer` takes it without a copy.
    #[pyclass(frozen, module = "fretsaw_kernels")]
    pub struct Buffer {
        memory: Memory,
    }

    impl Buffer {
        /// Where the memory begins, and how many bytes it has.
        fn extent(&self) -> (*const u8, usize) {
            match &self.memory {
                Memory::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
                Memory::Offsets(offsets) => (offsets.as_ptr().cast(), offsets.len() * 4),
                Memory::LargeOffsets(offsets) => (offsets.as_ptr().cast(), offsets.len() * 8),
            }
        }
    }

    impl From<Vec<u8>> for Buffer {
        fn from(bytes: Vec<u8>) -> Self {
            let memory = Memory::Bytes(bytes);
            Buffer { memory }
        }
    }

    impl From<Vec<i32>> for Buffer {
        fn from(offsets: Vec<i32>) -> Self {
            let memory = Memory::Offsets(offsets);
            Buffer { memory }
        }
    }

    impl From<Vec<i64>> for Buffer {
        fn from(offsets: Vec<i64>) -> Self {
            let memory = Memory::LargeOffsets(offsets);
            Buffer { memory }
        }
    }

    #[pymethods]
    impl Buffer {
        fn __len__(&self) -> usize {
            self.extent().1
        }

        /// # Safety
        /// Python calls this with a view to fill.
        unsafe fn __getbuffer__(
            slf: Bound<'_, Self>,
            view: *mut ffi::Py_buffer,
            flags: c_int,
        ) -> PyResult<()> {
            let (start, len) = slf.get().extent();
            // SAFETY: the memory is never changed or moved, and the view keeps this object alive.
            let code = unsafe {
                ffi::PyBuffer_FillInfo(
                    view,
                    slf.as_ptr(),
                    start.cast_mut().cast::<c_void>(),
                    len as isize,
                    1,
                    flags,
                )
            };
            match code {
                0 => Ok(()),
                _ => Err(PyErr::fetch(slf.py())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_to_the_slots_that_are_not_null() {
        let entries: Vec<u8> = (0..80).collect();
        for count in [1, 63, 64, 65, 200] {
            for nulls in [1, 2, 3, 70] {
                let mut slots = Bits::default();
                (0..300).for_each(|slot| slots.push(slot % nulls != 1));
                for begin in [0, 64] {
                    let range = begin..begin + count;
                    let there: Vec<bool> = range.clone().map(|slot| slots.get(slot)).collect();
                    let present = there.iter().filter(|there| **there).count();
                    for width in [4, 8] {
                        let mut indices: Vec<u32> = (0..present as u32).map(|i| i % 7).collect();
                        let mut expected = vec![9];
                        let mut next = indices.iter().map(|&index| index as usize);
                        for &there in &there {
                            match there {
                                true => {
                                    let index = next.next().unwrap();
                                    expected.extend(&entries[index * width..(index + 1) * width]);
                                }
                                false => expected.extend(vec![0; width]),
                            }
                        }
                        let mut output = vec![9];
                        gather_slots(
                            &entries,
                            width,
                            &mut indices,
                            &slots,
                            range.clone(),
                            &mut output,
                        )
                        .unwrap();
                        assert_eq!(output, expected);
                    }
                }
            }
        }
    }

    #[test]
    fn strings_of_small_dictionaries_are_those_of_large_ones() {
        for longest in [CHUNK, CHUNK + 1] {
            let mut entries = ByteArrays::default();
            for length in 0..=longest {
                entries.push(&vec![b'a' + length as u8; length]).unwrap();
            }
            let indices: Vec<u32> = (0..500).map(|i| i * i % (longest as u32 + 1)).collect();
            let mut output = ByteArrays::default();
            output.push(b"before").unwrap();
            let mut expected = output.clone();
            for &index in &indices {
                let edges = &entries.offsets[index as usize..index as usize + 2];
                let entry = &entries.data[edges[0] as usize..edges[1] as usize];
                expected.push(entry).unwrap();
            }
            gather_arrays(&entries, &indices, &mut output).unwrap();
            assert_eq!(output, expected);
            let last = entries.offsets.len() as u32 - 1;
            assert!(gather_arrays(&entries, &[last; 500], &mut output).is_err());
        }
    }

    #[test]
    fn indices_without_an_entry_and_too_few_of_them_are_damage() {
        let mut slots = Bits::default();
        slots.push_run(true, 70);
        slots.push(false);
        for indices in [vec![0; 69], vec![5; 70]] {
            let found = gather_slots(
                &[1; 20],
                4,
                &mut indices.clone(),
                &slots,
                0..71,
                &mut vec![],
            );
            assert!(found.is_err());
        }
    }
}
