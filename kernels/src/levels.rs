//! Levels: which values of a page are there, and the lists and structs that they lie in.
//!
//! A chain of layers leads from the row down to the leaf. What lies between two lists has the same
//! slots: one for each item of the list above, or for each row. Levels tell for each slot of each
//! layer whether it is null, and for lists how many slots below belong to it.

use crate::error::{Refusal, Result, corrupt};
use crate::output::{Bits, Decoder, Run};
use crate::rle::{EncodedRun, Indices};
use crate::select::{count_ones, push_run};

/// A layer above a leaf that needs levels: structs that are required need none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// An optional struct, which is there from this definition level on.
    Struct { definition: u8 },
    /// A list, which is there from this definition level on, and has an item from that one on.
    List {
        definition: u8,
        item: u8,
        repetition: u8,
    },
}

/// How many bits a level has.
fn width(most: u8) -> usize {
    (u8::BITS - most.leading_zeros()) as usize
}

/// Whether all levels are the highest, as far as long runs tell; then they need not be read.
pub fn all_highest(bytes: &[u8], most: u8, count: usize) -> Result<bool> {
    let mut runs = Indices::new(bytes, width(most), count)?;
    while runs.position() < count {
        match runs.next_run(count)? {
            EncodedRun::Repeated { value, .. } if value == u32::from(most) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The first level.
pub fn first(bytes: &[u8], most: u8) -> Result<u32> {
    match Indices::new(bytes, width(most), 1)?.next_run(1)? {
        EncodedRun::Repeated { value, .. } => Ok(value),
        EncodedRun::Packed(run) => Ok(run.get(0)),
    }
}

/// The levels of a page that are 0 or 1.
pub fn read_bits(bytes: &[u8], count: usize, bits: &mut Bits) -> Result<()> {
    bits.bytes.clear();
    bits.len = 0;
    let mut runs = Indices::new(bytes, 1, count)?;
    while runs.position() < count {
        match runs.next_run(count)? {
            EncodedRun::Repeated { value, count } => match value {
                0 | 1 => bits.push_run(value == 1, count),
                _ => return corrupt("a level above the highest"),
            },
            EncodedRun::Packed(run) => {
                let (packed, first) = run.bits();
                bits.extend(packed, first, run.count);
            }
        }
    }
    Ok(())
}

/// The levels of a page.
pub fn read_levels(bytes: &[u8], most: u8, count: usize, levels: &mut Vec<u8>) -> Result<()> {
    levels.clear();
    grow(levels, count)?;
    let mut runs = Indices::new(bytes, width(most), count)?;
    let mut unpacked = [0; 1024];
    while levels.len() < count {
        match runs.next_run(unpacked.len().min(count - levels.len()))? {
            EncodedRun::Repeated { value, count } => {
                if value > u32::from(most) {
                    return corrupt("a level above the highest");
                }
                levels.resize(levels.len() + count, value as u8);
            }
            EncodedRun::Packed(run) => {
                let unpacked = &mut unpacked[..run.count];
                run.unpack(unpacked);
                levels.extend(unpacked.iter().map(|&level| level as u8));
            }
        }
    }
    match levels.iter().max() {
        Some(&highest) if highest > most => corrupt("a level above the highest"),
        _ => Ok(()),
    }
}

/// Which levels of a page are the highest; `levels` is memory for others.
pub fn read_present(
    bytes: &[u8],
    most: u8,
    count: usize,
    levels: &mut Vec<u8>,
    present: &mut Bits,
) -> Result<()> {
    if most == 1 {
        return read_bits(bytes, count, present);
    }
    read_levels(bytes, most, count, levels)?;
    present.bytes.clear();
    present.len = 0;
    let mut writer = BitWriter::new(present);
    for &level in &*levels {
        writer.push_if(true, level == most);
    }
    writer.flush();
    Ok(())
}

/// Room for so many more elements, or a refusal where there is none.
pub fn grow<T>(vector: &mut Vec<T>, count: usize) -> Result<()> {
    vector
        .try_reserve(count)
        .map_err(|_| Refusal::NotMine("more than fits into memory"))
}

/// Which slots hold a value: kept as bits once there is a null.
#[derive(Debug, Default)]
pub struct Validity {
    bits: Bits,
    len: usize,
    nulls: usize,
}

impl Validity {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn null_count(&self) -> usize {
        self.nulls
    }

    pub fn extend_valid(&mut self, count: usize) {
        if self.nulls > 0 {
            self.bits.push_run(true, count);
        }
        self.len += count;
    }

    pub fn extend(&mut self, slots: &Bits) {
        let nulls = slots.len - count_ones(&slots.bytes, 0, slots.len);
        if nulls == 0 {
            return self.extend_valid(slots.len);
        }
        if self.nulls == 0 {
            self.bits.push_run(true, self.len);
        }
        self.bits.extend(&slots.bytes, 0, slots.len);
        self.nulls += nulls;
        self.len += slots.len;
    }

    /// The bits, where there are nulls.
    pub fn into_bits(self) -> Option<Bits> {
        (self.nulls > 0).then_some(self.bits)
    }
}

/// Where the slots of a layer or leaf are among the levels.
#[derive(Debug, Clone, Copy, Default)]
struct Slots {
    /// The lowest definition level of a slot: below it a list above is null or has no item.
    definition: u8,
    /// The highest repetition level that begins a slot.
    repetition: u8,
}

impl Slots {
    #[inline(always)]
    fn has(self, definition: u8, repetition: u8) -> bool {
        (definition >= self.definition) & (repetition <= self.repetition)
    }
}

/// The slots of a layer, as they are appended page by page.
#[derive(Debug)]
pub struct LayerColumn {
    layer: Layer,
    nullable: bool,
    slots: Slots,
    pub validity: Validity,
    /// Of a list: where each of its slots begins among the slots below.
    offsets: Vec<i32>,
    below: usize,
}

impl LayerColumn {
    /// Append the slots that begin in these levels.
    fn append(&mut self, definition: &[u8], repetition: &[u8], bits: &mut Bits) -> Result<()> {
        let least = match self.layer {
            Layer::Struct { definition } | Layer::List { definition, .. } => definition,
        };
        if definition.is_empty() {
            return Ok(());
        }
        let before = self.validity.len;
        let slots = self.slots;
        if self.nullable {
            bits.bytes.clear();
            bits.len = 0;
            let mut writer = BitWriter::new(bits);
            for (&definition, &repetition) in definition.iter().zip(repetition) {
                writer.push_if(slots.has(definition, repetition), definition >= least);
            }
            writer.flush();
            self.validity.extend(bits);
        } else {
            let levels = definition.iter().zip(repetition);
            let count = levels.filter(|(d, r)| slots.has(**d, **r)).count();
            self.validity.extend_valid(count);
        }
        let Layer::List {
            item,
            repetition: own,
            ..
        } = self.layer
        else {
            return Ok(());
        };
        let items = Slots {
            definition: item,
            repetition: own,
        };
        if self.below + definition.len() > i32::MAX as usize {
            return Err(Refusal::NotMine("more than 2^31 items"));
        }
        // Every level writes an offset, but only slots keep theirs.
        grow(&mut self.offsets, definition.len() + 1)?;
        self.offsets.resize(before + definition.len(), 0);
        let places = &mut self.offsets[before..];
        let mut place = 0;
        let mut below = self.below as i32;
        for (&definition, &repetition) in definition.iter().zip(repetition) {
            places[place.min(places.len() - 1)] = below;
            place += usize::from(slots.has(definition, repetition));
            below += i32::from(items.has(definition, repetition));
        }
        self.offsets.truncate(before + place);
        self.below = below as usize;
        Ok(())
    }

    /// The offsets of a list, with the end of the last one.
    pub fn take_offsets(&mut self) -> Option<Vec<i32>> {
        match self.layer {
            Layer::Struct { .. } => None,
            Layer::List { .. } => {
                let mut offsets = std::mem::take(&mut self.offsets);
                offsets.push(self.below as i32);
                Some(offsets)
            }
        }
    }
}

/// The layers above a leaf and what is known of the leaf's own slots.
#[derive(Debug)]
pub struct Chain {
    pub layers: Vec<LayerColumn>,
    slots: Slots,
    pub max_definition: u8,
    pub max_repetition: u8,
    /// For each repetition level, the definition level that an item of its list has at least.
    items: Vec<u8>,
    /// The repetition levels of a leaf without any.
    zeros: Vec<u8>,
    bits: Bits,
}

impl Chain {
    /// The chain with these layers, from the row down to the leaf.
    pub fn new(layers: &[Layer], max_definition: u8, max_repetition: u8) -> Result<Self> {
        let mut slots = Slots::default();
        let mut reached = 0;
        let mut items = vec![0];
        let mut columns = Vec::with_capacity(layers.len());
        for &layer in layers {
            let nullable = match layer {
                Layer::Struct { definition } | Layer::List { definition, .. } => {
                    let nullable = definition > reached;
                    reached = reached.max(definition);
                    nullable
                }
            };
            columns.push(LayerColumn {
                layer,
                nullable,
                slots,
                validity: Validity::default(),
                offsets: Vec::new(),
                below: 0,
            });
            if let Layer::List {
                item, repetition, ..
            } = layer
            {
                if item <= reached || usize::from(repetition) != items.len() {
                    return Err(Refusal::NotMine("levels of a list that do not ascend"));
                }
                reached = item;
                items.push(item);
                slots = Slots {
                    definition: item,
                    repetition,
                };
            }
        }
        let depth = usize::from(max_definition.wrapping_sub(reached));
        if depth > 1 || usize::from(max_repetition) + 1 != items.len() {
            return Err(Refusal::NotMine("levels that do not lead to the leaf"));
        }
        Ok(Chain {
            layers: columns,
            slots,
            max_definition,
            max_repetition,
            items,
            zeros: Vec::new(),
            bits: Bits::default(),
        })
    }

    /// Whether the leaf itself may be null.
    pub fn leaf_is_optional(&self) -> bool {
        let reached = self.layers.iter().fold(0, |reached, column| {
            reached.max(match column.layer {
                Layer::Struct { definition } => definition,
                Layer::List { item, .. } => item,
            })
        });
        self.max_definition > reached
    }

    /// Append so many rows without a null to the structs above a leaf that is not repeated.
    pub fn extend_valid(&mut self, count: usize) {
        for layer in &mut self.layers {
            layer.validity.extend_valid(count);
        }
    }

    /// Append rows of which these bits tell whether they are there: there is but one level.
    pub fn extend_present(&mut self, slots: &Bits) {
        for layer in &mut self.layers {
            layer.validity.extend(slots);
        }
    }

    /// Append what these ranges of levels say; the leaf's slots and values are told.
    ///
    /// `repetition` is empty for a leaf that is not repeated: there every level is a slot.
    pub fn append(
        &mut self,
        definition: &[u8],
        repetition: &[u8],
        ranges: &[Run],
        slots: &mut Bits,
        values: &mut Vec<Run>,
    ) -> Result<()> {
        if repetition.is_empty() && self.zeros.len() < definition.len() {
            grow(&mut self.zeros, definition.len())?;
            self.zeros.resize(definition.len(), 0);
        }
        let repetition = match repetition.is_empty() {
            true => &self.zeros[..],
            false => repetition,
        };
        for range in ranges {
            let range = range.start as usize..range.end as usize;
            let (definition, repetition) = (&definition[range.clone()], &repetition[range]);
            for layer in &mut self.layers {
                layer.append(definition, repetition, &mut self.bits)?;
            }
        }
        let (own, highest) = (self.slots, self.max_definition);
        let mut position = 0;
        let mut rank = 0;
        let mut writer = BitWriter::new(slots);
        for range in ranges {
            let (start, end) = (range.start as usize, range.end as usize);
            let first = rank + count_level(&definition[position..start], highest);
            rank = first + count_level(&definition[start..end], highest);
            push_run(values, first, rank);
            for (&definition, &repetition) in
                definition[start..end].iter().zip(&repetition[start..end])
            {
                writer.push_if(own.has(definition, repetition), definition == highest);
            }
            position = end;
        }
        writer.flush();
        Ok(())
    }

    /// Refuse levels that go on with a list which has no item, or of which they are none.
    pub fn require_sound(&self, definition: &[u8], repetition: &[u8]) -> Result<()> {
        let mut sound = true;
        if let [_, item] = self.items[..] {
            for (pair, &repetition) in definition.windows(2).zip(&repetition[1..]) {
                sound &= repetition * item <= pair[0].min(pair[1]);
            }
        } else {
            for (pair, &repetition) in definition.windows(2).zip(&repetition[1..]) {
                sound &= self.items[usize::from(repetition)] <= pair[0].min(pair[1]);
            }
        }
        match sound {
            true => Ok(()),
            false => corrupt("levels that contradict each other"),
        }
    }
}

/// How many of these levels are this one.
pub fn count_level(levels: &[u8], level: u8) -> usize {
    // Chunks whose count fits into a byte are added many at a time.
    levels
        .chunks(255)
        .map(|chunk| chunk.iter().map(|&l| u8::from(l == level)).sum::<u8>() as usize)
        .sum()
}

/// Appends single bits, 64 at a time.
struct BitWriter<'a> {
    bits: &'a mut Bits,
    word: u64,
    filled: u32,
}

impl<'a> BitWriter<'a> {
    fn new(bits: &'a mut Bits) -> Self {
        BitWriter {
            bits,
            word: 0,
            filled: 0,
        }
    }

    #[inline(always)]
    fn push_if(&mut self, wanted: bool, bit: bool) {
        self.word |= u64::from(bit & wanted) << self.filled;
        self.filled += u32::from(wanted);
        if self.filled == u64::BITS {
            self.bits.extend(&self.word.to_le_bytes(), 0, 64);
            self.word = 0;
            self.filled = 0;
        }
    }

    fn flush(self) {
        self.bits
            .extend(&self.word.to_le_bytes(), 0, self.filled as usize);
    }
}
