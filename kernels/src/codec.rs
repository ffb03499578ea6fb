//! Codecs: page bodies decompressed into memory that is used again.

use std::cell::RefCell;

use crate::error::{Refusal, Result, corrupt};
use crate::snappy;

/// What a page may become whatever its stored bytes: the most that a small input can ask for.
const ALWAYS_GRANTED: usize = 64 << 20;
/// Memory that a thread keeps for its next page.
const KEPT: usize = 16 << 20;

/// How the bytes of a chunk are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    Uncompressed,
    Snappy,
    Gzip,
    Brotli,
    /// Blocks with Hadoop's frames, or without them.
    Lz4,
    Zstd,
    Lz4Raw,
}

impl Codec {
    /// The codec of this number in the file's metadata.
    pub fn of(id: i32) -> Result<Codec> {
        Ok(match id {
            0 => Codec::Uncompressed,
            1 => Codec::Snappy,
            2 => Codec::Gzip,
            4 => Codec::Brotli,
            5 => Codec::Lz4,
            6 => Codec::Zstd,
            7 => Codec::Lz4Raw,
            _ => return Err(Refusal::NotMine("an unknown codec")),
        })
    }

    /// By how much these formats can make bytes fewer at most.
    fn most_growth(self) -> Option<usize> {
        match self {
            Codec::Uncompressed => Some(1),
            Codec::Snappy => Some(24),
            Codec::Gzip => Some(1032),
            Codec::Lz4 | Codec::Lz4Raw => Some(256),
            Codec::Brotli | Codec::Zstd => None,
        }
    }

    /// Refuse a size that so many stored bytes cannot become, before memory is asked for.
    fn require_possible(self, stored: usize, size: usize) -> Result<()> {
        match self.most_growth() {
            Some(growth) if size > stored.saturating_mul(growth) => {
                corrupt("a page that claims to become more than its codec allows")
            }
            None if size > ALWAYS_GRANTED => Err(Refusal::NotMine("a page above 64 MB")),
            _ => Ok(()),
        }
    }
}

/// Contexts of the codecs of one thread.
#[derive(Default)]
pub struct Contexts {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    gzip: libdeflater::Decompressor,
}

thread_local! {
    static THREAD: RefCell<(Contexts, Vec<u8>)> = RefCell::default();
}

/// The contexts of this thread and memory for a page, for as long as a column is decoded.
pub struct Decompressor {
    contexts: Contexts,
    memory: Vec<u8>,
}

impl Decompressor {
    pub fn of_thread() -> Self {
        let (contexts, memory) = THREAD.take();
        Decompressor { contexts, memory }
    }

    /// These bytes, which become exactly so many; those of the call before are gone.
    pub fn decompress<'a>(
        &'a mut self,
        codec: Codec,
        stored: &'a [u8],
        size: usize,
    ) -> Result<&'a [u8]> {
        if codec == Codec::Uncompressed {
            return match stored.len() == size {
                true => Ok(stored),
                false => corrupt("an uncompressed page of another size than its header tells"),
            };
        }
        codec.require_possible(stored.len(), size)?;
        self.make_room(size + snappy::SLACK);
        self.contexts
            .decompress(codec, stored, size, &mut self.memory)?;
        Ok(&self.memory[..size])
    }
}

impl Decompressor {
    /// The first of what these bytes become, if the codec can stop early.
    pub fn decompress_first<'a>(
        &'a mut self,
        codec: Codec,
        stored: &[u8],
        size: usize,
        needed: usize,
    ) -> Option<&'a [u8]> {
        codec.require_possible(stored.len(), size).ok()?;
        if codec != Codec::Snappy || needed > size {
            return None;
        }
        self.make_room(needed + snappy::SLACK);
        snappy::decompress(stored, size, needed, &mut self.memory)?;
        self.memory.get(..needed)
    }

    /// Only what is new is zeroed, and once.
    fn make_room(&mut self, size: usize) {
        if self.memory.len() < size {
            self.memory.resize(size, 0);
        }
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        if self.memory.len() > KEPT {
            self.memory = Vec::new();
        }
        let kept = (
            std::mem::take(&mut self.contexts),
            std::mem::take(&mut self.memory),
        );
        THREAD.set(kept);
    }
}

impl Contexts {
    /// Fill exactly so many bytes of the memory, behind which is some slack.
    fn decompress(
        &mut self,
        codec: Codec,
        stored: &[u8],
        size: usize,
        memory: &mut [u8],
    ) -> Result<()> {
        if size == 0 {
            return Ok(()); // a page of nulls may have no bytes at all
        }
        if codec == Codec::Snappy {
            return match snappy::decompress(stored, size, size, memory) {
                Some(()) => Ok(()),
                None => corrupt("a page that cannot be decompressed to what its header tells"),
            };
        }
        let output = &mut memory[..size];
        let written = match codec {
            Codec::Uncompressed | Codec::Snappy => Some(0),
            Codec::Gzip => self.inflate(stored, output)?,
            Codec::Brotli => brotli(stored, output),
            Codec::Zstd => self.zstd(stored, output),
            Codec::Lz4 => framed_lz4(stored, output)
                .or_else(|| lz4_flex::block::decompress_into(stored, output).ok()),
            Codec::Lz4Raw => lz4_flex::block::decompress_into(stored, output).ok(),
        };
        match written {
            Some(written) if written == output.len() => Ok(()),
            Some(_) => corrupt("a page that becomes fewer bytes than its header tells"),
            None => corrupt("a page that cannot be decompressed to what its header tells"),
        }
    }

    /// gzip or, as Arrow takes it too, zlib.
    fn inflate(&mut self, stored: &[u8], output: &mut [u8]) -> Result<Option<usize>> {
        if !stored.starts_with(&[0x1F, 0x8B]) {
            return Ok(self.gzip.zlib_decompress(stored, output).ok());
        }
        // A stream ends with its size. Other bytes behind it, or another stream, are Arrow's.
        let size = (output.len() as u32).to_le_bytes();
        if !stored.ends_with(&size) {
            return Err(Refusal::NotMine("gzip in several members"));
        }
        let written = self.gzip.gzip_decompress(stored, output).ok();
        match written {
            Some(written) if written < output.len() => {
                Err(Refusal::NotMine("gzip in several members"))
            }
            _ => Ok(written),
        }
    }

    fn zstd(&mut self, stored: &[u8], output: &mut [u8]) -> Option<usize> {
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Decompressor::new().ok();
        }
        let context = self.zstd.as_mut()?;
        context.decompress_to_buffer(stored, output).ok()
    }
}

fn brotli(stored: &[u8], output: &mut [u8]) -> Option<usize> {
    let info = brotli_decompressor::brotli_decode(stored, output);
    matches!(
        info.result,
        brotli_decompressor::BrotliResult::ResultSuccess
    )
    .then_some(info.decoded_size)
}

/// Hadoop's frames: sizes before and after as big-endian numbers, then a block, and so on.
fn framed_lz4(mut stored: &[u8], output: &mut [u8]) -> Option<usize> {
    let mut written = 0;
    while !stored.is_empty() {
        let (size, rest) = stored.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let size = u32::from_be_bytes(*size) as usize;
        let length = u32::from_be_bytes(*length) as usize;
        let (block, behind) = rest.split_at_checked(length)?;
        let place = output.get_mut(written..)?.get_mut(..size)?;
        if lz4_flex::block::decompress_into(block, place).ok()? != size {
            return None;
        }
        written += size;
        stored = behind;
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        (0..5000u32).flat_map(|i| (i / 7).to_le_bytes()).collect()
    }

    fn compressed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
        match codec {
            Codec::Snappy => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            Codec::Zstd => zstd::bulk::compress(bytes, 1).unwrap(),
            Codec::Lz4Raw => lz4_flex::block::compress(bytes),
            Codec::Lz4 => bytes
                .chunks(7001)
                .flat_map(|chunk| {
                    let block = lz4_flex::block::compress(chunk);
                    let sizes = [chunk.len() as u32, block.len() as u32].map(u32::to_be_bytes);
                    [sizes.concat(), block].concat()
                })
                .collect(),
            Codec::Gzip => {
                let mut output = vec![0; bytes.len() + 100];
                let written = libdeflater::Compressor::default()
                    .gzip_compress(bytes, &mut output)
                    .unwrap();
                output[..written].to_vec()
            }
            Codec::Uncompressed | Codec::Brotli => bytes.to_vec(),
        }
    }

    const CODECS: [Codec; 6] = [
        Codec::Uncompressed,
        Codec::Snappy,
        Codec::Gzip,
        Codec::Zstd,
        Codec::Lz4,
        Codec::Lz4Raw,
    ];

    #[test]
    fn bytes_come_back_from_every_codec() {
        let text = text();
        let mut decompressor = Decompressor::of_thread();
        for codec in CODECS {
            let stored = compressed(codec, &text);
            let found = decompressor.decompress(codec, &stored, text.len());
            assert_eq!(found, Ok(&text[..]), "{codec:?}");
        }
        let raw = compressed(Codec::Lz4Raw, &text);
        let found = decompressor.decompress(Codec::Lz4, &raw, text.len());
        assert_eq!(found, Ok(&text[..]));
    }

    #[test]
    fn another_size_than_told_is_damage() {
        let text = text();
        let mut decompressor = Decompressor::of_thread();
        for codec in CODECS {
            let stored = compressed(codec, &text);
            for size in [text.len() - 1, text.len() + 1, usize::MAX / 2] {
                let found = decompressor.decompress(codec, &stored, size);
                assert!(found.is_err(), "{codec:?} {size}");
            }
        }
    }

    #[test]
    fn every_cut_and_flip_is_an_error_or_the_same_size() {
        let text = text();
        let mut decompressor = Decompressor::of_thread();
        for codec in CODECS {
            let stored = compressed(codec, &text);
            for at in (0..stored.len()).step_by(stored.len() / 50 + 1) {
                let found = decompressor.decompress(codec, &stored[..at], text.len());
                assert!(found.is_err(), "{codec:?} cut at {at}");
                let mut flipped = stored.clone();
                flipped[at] ^= 0x55;
                if let Ok(found) = decompressor.decompress(codec, &flipped, text.len()) {
                    assert_eq!(found.len(), text.len());
                }
            }
        }
    }

    #[test]
    fn memory_above_the_limit_is_given_back() {
        let big = vec![1; KEPT + 1];
        let stored = compressed(Codec::Snappy, &big);
        let mut decompressor = Decompressor::of_thread();
        assert!(
            decompressor
                .decompress(Codec::Snappy, &stored, big.len())
                .is_ok()
        );
        drop(decompressor);
        assert!(Decompressor::of_thread().memory.is_empty());
    }
}
