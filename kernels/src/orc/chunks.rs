//! The bytes of a stream, decompressed chunk by chunk as far as somebody looks.

use std::cell::RefCell;

use crate::error::{Refusal, Result, corrupt};
use crate::levels::grow;

/// Bytes before each chunk: its length, and whether it is stored as it is.
const HEADER: usize = 3;
/// The largest chunk that a header can tell of.
const LARGEST: usize = 1 << 23;

/// How the chunks of a file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    Zlib,
    Snappy,
    Lz4,
    Zstd,
}

/// How the streams of a file are stored: in chunks that become so many bytes at most, or as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    codec: Option<Codec>,
    block_size: usize,
}

impl Packing {
    /// The codec of this number in the file's postscript.
    pub fn of(id: i32, block_size: usize) -> Result<Packing> {
        let codec = match id {
            0 => None,
            1 => Some(Codec::Zlib),
            2 => Some(Codec::Snappy),
            4 => Some(Codec::Lz4),
            5 => Some(Codec::Zstd),
            _ => return Err(Refusal::NotMine("an unknown codec")),
        };
        if block_size > LARGEST {
            return corrupt("compression blocks of more than 8 MB");
        }
        Ok(Packing { codec, block_size })
    }
}

/// Contexts of the codecs of one thread.
#[derive(Default)]
struct Contexts {
    snappy: snap::raw::Decoder,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    deflate: libdeflater::Decompressor,
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
}

impl Contexts {
    /// Fill the beginning of the output; returns how many bytes that are.
    fn decompress(&mut self, codec: Codec, stored: &[u8], output: &mut [u8]) -> Option<usize> {
        match codec {
            Codec::Zlib => self.deflate.deflate_decompress(stored, output).ok(),
            Codec::Snappy => match snap::raw::decompress_len(stored) {
                Ok(size) if size <= output.len() => self.snappy.decompress(stored, output).ok(),
                _ => None,
            },
            Codec::Lz4 => lz4_flex::block::decompress_into(stored, output).ok(),
            Codec::Zstd => {
                if self.zstd.is_none() {
                    self.zstd = zstd::bulk::Decompressor::new().ok();
                }
                let context = self.zstd.as_mut()?;
                context.decompress_to_buffer(stored, output).ok()
            }
        }
    }
}

/// What a chunk becomes, where its first bytes tell.
fn told_size(codec: Codec, stored: &[u8]) -> Option<usize> {
    match codec {
        Codec::Snappy => snap::raw::decompress_len(stored).ok(),
        Codec::Zstd => {
            let size = zstd::zstd_safe::get_frame_content_size(stored).ok()??;
            usize::try_from(size).ok()
        }
        Codec::Zlib | Codec::Lz4 => None,
    }
}

/// A stream, from a chunk on.
pub struct Stream<'a> {
    packing: Packing,
    stored: &'a [u8],
    /// Up to where the stored bytes are decompressed or passed.
    from: usize,
    /// Chunks that were met: where they begin as they are stored, and in the stream.
    begins: Vec<(usize, u64)>,
    memory: Vec<u8>,
    /// Where the reader is in the memory, or in the stored bytes if there are no chunks.
    at: usize,
    /// Up to where the memory is filled.
    end: usize,
    /// Bytes of the stream before those in memory.
    before: u64,
}

/// A chunk as it is stored.
struct Chunk<'a> {
    body: &'a [u8],
    is_original: bool,
    end: usize,
}

impl<'a> Stream<'a> {
    pub fn new(packing: Packing, stored: &'a [u8]) -> Self {
        Stream {
            packing,
            stored,
            from: 0,
            begins: Vec::new(),
            memory: Vec::new(),
            at: 0,
            end: 0,
            before: 0,
        }
    }

    /// How many bytes were read or passed.
    pub fn position(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Bytes that are at hand.
    #[inline]
    pub fn at_hand(&self) -> &[u8] {
        match self.packing.codec {
            None => &self.stored[self.at..],
            Some(_) => &self.memory[self.at..self.end],
        }
    }

    /// At least so many bytes, unless the stream ends before.
    #[inline]
    pub fn fill(&mut self, needed: usize) -> Result<&[u8]> {
        if self.packing.codec.is_some() && self.end - self.at < needed {
            self.fill_memory(needed)?;
        }
        Ok(self.at_hand())
    }

    /// Exactly so many bytes, which then are passed by `pass`.
    #[inline]
    pub fn need(&mut self, needed: usize) -> Result<&[u8]> {
        match self.fill(needed)?.get(..needed) {
            Some(_) => Ok(&self.at_hand()[..needed]),
            None => corrupt("a stream ends before its values"),
        }
    }

    /// Leave bytes behind that are at hand.
    #[inline]
    pub fn pass(&mut self, count: usize) {
        self.at += count;
    }

    fn fill_memory(&mut self, needed: usize) -> Result<()> {
        let Some(codec) = self.packing.codec else {
            return Ok(());
        };
        while self.end - self.at < needed {
            let Some(chunk) = self.next_chunk()? else {
                return Ok(());
            };
            self.make_room(chunk.body.len())?;
            let room = &mut self.memory[self.end..];
            let written = if chunk.is_original {
                match room.get_mut(..chunk.body.len()) {
                    Some(room) => room.copy_from_slice(chunk.body),
                    None => return corrupt("a chunk that is larger than it may be"),
                }
                chunk.body.len()
            } else {
                let room = &mut room[..self.packing.block_size];
                let written =
                    CONTEXTS.with_borrow_mut(|all| all.decompress(codec, chunk.body, room));
                match written {
                    Some(written) => written,
                    None => return corrupt("a chunk cannot be decompressed"),
                }
            };
            self.end += written;
            self.from = chunk.end;
        }
        Ok(())
    }

    /// The chunk that comes next, whose place is noted.
    fn next_chunk(&mut self) -> Result<Option<Chunk<'a>>> {
        if self.from == self.stored.len() {
            return Ok(None);
        }
        let Some(&[low, middle, high]) = self.stored[self.from..].first_chunk::<HEADER>() else {
            return corrupt("a chunk ends before its header");
        };
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let begin = self.from + HEADER;
        let end = begin + (header >> 1) as usize;
        let Some(body) = self.stored.get(begin..end) else {
            return corrupt("a chunk ends behind its stream");
        };
        self.begins.push((self.from, self.before + self.end as u64));
        Ok(Some(Chunk {
            body,
            is_original: header & 1 == 1,
            end,
        }))
    }

    /// Room for one more chunk; what was read makes place.
    fn make_room(&mut self, stored: usize) -> Result<()> {
        if self.at > 0 {
            self.memory.copy_within(self.at..self.end, 0);
            self.before += self.at as u64;
            self.end -= self.at;
            self.at = 0;
        }
        let size = self.end + self.packing.block_size.max(stored);
        if self.memory.len() < size {
            let more = size - self.memory.len();
            grow(&mut self.memory, more)?;
            self.memory.resize(size, 0);
        }
        Ok(())
    }

    /// Pass so many bytes; chunks that tell their size are not decompressed for it.
    pub fn skip(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            let held = self.at_hand().len();
            if held > 0 {
                let passed = count.min(held as u64);
                self.at += passed as usize;
                count -= passed;
                continue;
            }
            let Some(codec) = self.packing.codec else {
                return corrupt("a stream ends before its values");
            };
            let Some(chunk) = self.next_chunk()? else {
                return corrupt("a stream ends before its values");
            };
            let size = match chunk.is_original {
                true => Some(chunk.body.len()),
                false => told_size(codec, chunk.body),
            };
            match size {
                Some(size) if size as u64 <= count && size <= self.packing.block_size => {
                    self.before += (self.end + size) as u64;
                    (self.at, self.end) = (0, 0);
                    self.from = chunk.end;
                    count -= size as u64;
                }
                _ => {
                    self.begins.pop();
                    if self.fill(1)?.is_empty() {
                        return corrupt("a stream ends before its values");
                    }
                }
            }
        }
        Ok(())
    }

    /// Append so many bytes.
    pub fn read(&mut self, mut count: u64, output: &mut Vec<u8>) -> Result<()> {
        while count > 0 {
            let held = self.fill(1)?;
            if held.is_empty() {
                return corrupt("a stream ends before its values");
            }
            let taken = count.min(held.len() as u64) as usize;
            grow(output, taken)?;
            output.extend_from_slice(&self.at_hand()[..taken]);
            self.at += taken;
            count -= taken as u64;
        }
        Ok(())
    }

    /// Where a place in a chunk is in the stream, if that chunk was met.
    pub fn place(&self, chunk: u64, inside: u64) -> Option<u64> {
        if self.packing.codec.is_none() {
            return chunk.checked_add(inside);
        }
        let chunk = usize::try_from(chunk).ok()?;
        if chunk == self.from && !self.begins.iter().any(|(begin, _)| *begin == chunk) {
            return (self.before + self.end as u64).checked_add(inside);
        }
        let known = self
            .begins
            .binary_search_by_key(&chunk, |(begin, _)| *begin);
        self.begins[known.ok()?].1.checked_add(inside)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const PACKINGS: [Packing; 5] = [
        Packing {
            codec: None,
            block_size: 0,
        },
        of(Codec::Zlib),
        of(Codec::Snappy),
        of(Codec::Lz4),
        of(Codec::Zstd),
    ];

    const fn of(codec: Codec) -> Packing {
        Packing {
            codec: Some(codec),
            block_size: 100,
        }
    }

    /// Bytes in chunks, every third of which is stored as it is.
    pub fn packed(packing: Packing, bytes: &[u8]) -> Vec<u8> {
        let Some(codec) = packing.codec else {
            return bytes.to_vec();
        };
        let mut stored = Vec::new();
        for (place, chunk) in bytes.chunks(packing.block_size).enumerate() {
            let original = place % 3 == 2;
            let body = match codec {
                _ if original => chunk.to_vec(),
                Codec::Zlib => {
                    let mut output = vec![0; chunk.len() + 100];
                    let written = libdeflater::Compressor::default()
                        .deflate_compress(chunk, &mut output)
                        .unwrap();
                    output[..written].to_vec()
                }
                Codec::Snappy => snap::raw::Encoder::new().compress_vec(chunk).unwrap(),
                Codec::Lz4 => lz4_flex::block::compress(chunk),
                Codec::Zstd => zstd::bulk::compress(chunk, 1).unwrap(),
            };
            let header = (body.len() << 1 | usize::from(original)) as u32;
            stored.extend_from_slice(&header.to_le_bytes()[..HEADER]);
            stored.extend_from_slice(&body);
        }
        stored
    }

    fn text() -> Vec<u8> {
        (0..1_000u32).map(|i| (i / 3 % 251) as u8).collect()
    }

    #[test]
    fn bytes_are_read_and_skipped_across_chunks() {
        let text = text();
        for packing in PACKINGS {
            let stored = packed(packing, &text);
            for (skip, read) in [
                (0, 1000),
                (99, 2),
                (100, 100),
                (350, 1),
                (999, 1),
                (1000, 0),
            ] {
                let mut stream = Stream::new(packing, &stored);
                let mut output = vec![];
                stream.skip(skip as u64).unwrap();
                stream.read(read as u64, &mut output).unwrap();
                assert_eq!(output, text[skip..skip + read]);
                assert_eq!(stream.position(), (skip + read) as u64);
                assert!(stream.read(1001, &mut output).is_err());
            }
            let mut stream = Stream::new(packing, &stored);
            assert!(stream.skip(1001).is_err());
        }
    }

    #[test]
    fn runs_that_go_on_in_the_next_chunk_lie_together() {
        let text = text();
        for packing in PACKINGS {
            let stored = packed(packing, &text);
            let mut stream = Stream::new(packing, &stored);
            for begin in (0..900).step_by(90) {
                assert_eq!(stream.need(95).unwrap(), &text[begin..begin + 95]);
                stream.pass(90);
            }
            assert!(stream.need(101).is_err());
        }
    }

    #[test]
    fn places_are_those_of_chunks_that_were_met() {
        let text = text();
        for packing in &PACKINGS[1..] {
            let stored = packed(*packing, &text);
            let mut stream = Stream::new(*packing, &stored);
            stream.skip(250).unwrap();
            let begins = stream.begins.clone();
            assert!(begins.len() >= 2);
            for (chunk, logical) in begins {
                assert_eq!(stream.place(chunk as u64, 7), Some(logical + 7));
                assert_eq!(stream.place(chunk as u64 + 1, 7), None);
            }
            let mut output = vec![];
            stream.read(750, &mut output).unwrap();
            assert_eq!(stream.place(stored.len() as u64, 0), Some(1000));
        }
    }

    #[test]
    fn damage_is_an_error_or_other_bytes() {
        let text = text();
        for packing in &PACKINGS[1..] {
            let stored = packed(*packing, &text);
            for at in 0..stored.len() {
                let mut flipped = stored.clone();
                flipped[at] ^= 0x55;
                let mut output = vec![];
                let mut stream = Stream::new(*packing, &flipped);
                let _ = stream.read(1000, &mut output);
                let mut stream = Stream::new(*packing, &stored[..at]);
                assert!(stream.read(1000, &mut output).is_err());
            }
        }
    }
}
