//! The border to Python and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::codec::Codec;
use crate::column::{self, Part, Segment};
use crate::error::Refusal;
use crate::levels::{Layer, Validity};
use crate::raw::shared::{Buffer, View};
use crate::values::{Form, Physical, Target, Unit, Values};

/// Both sides must speak the same protocol; fretsaw leaves other kernels alone.
const PROTOCOL: u32 = 1;

/// What all parts of a leaf have in common: its type, its layers, and what it becomes.
#[pyclass(frozen, module = "fretsaw_kernels")]
struct Leaf {
    leaf: Result<column::Leaf, Refusal>,
    /// Whether offsets of strings have 64 bits.
    is_large: bool,
}

#[pymethods]
impl Leaf {
    #[new]
    #[pyo3(signature = (
        physical_type, target, *, type_length=0, max_definition=0, max_repetition=0,
        layers=vec![], utf8=false, always_compressed=false, verify=false
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        physical_type: i32,
        target: &str,
        type_length: usize,
        max_definition: u32,
        max_repetition: u32,
        layers: Vec<Vec<u32>>,
        utf8: bool,
        always_compressed: bool,
        verify: bool,
    ) -> PyResult<Self> {
        let form = parse_target(target)?;
        let leaf = (|| {
            Ok(column::Leaf {
                form: Form::new(Physical::of(physical_type, type_length)?, form, utf8)?,
                max_definition: parse_level(max_definition)?,
                max_repetition: parse_level(max_repetition)?,
                layers: layers
                    .iter()
                    .map(|l| parse_layer(l))
                    .collect::<Result<_, _>>()?,
                always_compressed,
                verify,
            })
        })();
        Ok(Leaf {
            leaf,
            is_large: target == "large_bytes",
        })
    }
}

fn parse_target(target: &str) -> PyResult<Target> {
    Ok(match target {
        "copy" => Target::Copy,
        "int8" => Target::Narrow(1),
        "int16" => Target::Narrow(2),
        "bits" => Target::Bits,
        "bytes" | "large_bytes" => Target::Bytes,
        "decimal128" => Target::Decimal(16),
        "decimal256" => Target::Decimal(32),
        "timestamp[ns]" => Target::Timestamp(Unit::Nanoseconds),
        "timestamp[us]" => Target::Timestamp(Unit::Microseconds),
        "timestamp[ms]" => Target::Timestamp(Unit::Milliseconds),
        _ => return Err(PyValueError::new_err(format!("no target {target:?}"))),
    })
}

fn parse_level(level: u32) -> Result<u8, Refusal> {
    u8::try_from(level).map_err(|_| Refusal::NotMine("very deep nesting"))
}

fn parse_layer(levels: &[u32]) -> Result<Layer, Refusal> {
    match *levels {
        [definition] => Ok(Layer::Struct {
            definition: parse_level(definition)?,
        }),
        [definition, item, repetition] => Ok(Layer::List {
            definition: parse_level(definition)?,
            item: parse_level(item)?,
            repetition: parse_level(repetition)?,
        }),
        _ => Err(Refusal::NotMine("a layer of an unknown kind")),
    }
}

/// Slots of a layer: length, null count, validity, offsets.
type LayerSlots = (usize, usize, Option<Py<Buffer>>, Option<Py<Buffer>>);

/// The wanted rows of a leaf.
#[pyclass(frozen, get_all, module = "fretsaw_kernels")]
struct Column {
    layers: Vec<LayerSlots>,
    length: usize,
    null_count: usize,
    buffers: Vec<Option<Py<Buffer>>>,
    pages: usize,
}

/// Why there are no rows of a leaf.
#[pyclass(frozen, get_all, module = "fretsaw_kernels")]
struct Refused {
    kind: &'static str,
    reason: String,
    part: usize,
}

#[pymethods]
impl Refused {
    fn __repr__(&self) -> String {
        format!(
            "Refused({}: {}, part {})",
            self.kind, self.reason, self.part
        )
    }
}

impl From<(usize, Refusal)> for Refused {
    fn from((part, refusal): (usize, Refusal)) -> Self {
        let (kind, reason) = match refusal {
            Refusal::NotMine(reason) => ("not_mine", reason.to_owned()),
            Refusal::Corrupt(reason) => ("corrupt", reason),
            Refusal::OutOfRange(reason) => ("out_of_range", reason.to_owned()),
        };
        Refused { kind, reason, part }
    }
}

/// A part of a leaf as Python hands it over: codec, dictionary, segments, and wanted rows.
type PartViews = (i32, Option<View>, Vec<(View, u64, u64)>, View, View);

/// For each leaf the rows that are wanted of its parts, or why there are none.
#[pyfunction]
fn decode<'py>(
    py: Python<'py>,
    leaves: Vec<(Py<Leaf>, Vec<PartViews>)>,
) -> PyResult<Bound<'py, PyList>> {
    let columns: Vec<_> = py.detach(|| {
        let each = leaves.iter().map(|(leaf, parts)| {
            catch_unwind(AssertUnwindSafe(|| decode_leaf(leaf.get(), parts)))
                .unwrap_or_else(|panic| Err((0, Refusal::Corrupt(describe(&*panic)))))
        });
        each.collect()
    });
    let list = PyList::empty(py);
    for (column, (leaf, _)) in columns.into_iter().zip(&leaves) {
        match column {
            Ok(column) => list.append(hand_over(py, column, leaf.get().is_large)?)?,
            Err(refused) => list.append(Py::new(py, Refused::from(refused))?)?,
        }
    }
    Ok(list)
}

fn decode_leaf(leaf: &Leaf, parts: &[PartViews]) -> Result<column::Column, (usize, Refusal)> {
    let leaf = leaf.leaf.as_ref().map_err(|refusal| (0, refusal.clone()))?;
    let parts = parts.iter().enumerate().map(|(place, part)| {
        let (codec, dictionary, segments, starts, ends) = part;
        let segments = segments.iter().map(|(view, num_values, num_rows)| Segment {
            bytes: view.bytes(),
            num_values: *num_values,
            num_rows: *num_rows,
        });
        Ok(Part {
            codec: Codec::of(*codec).map_err(|refusal| (place, refusal))?,
            dictionary: dictionary.as_ref().map(View::bytes),
            segments: segments.collect(),
            starts: integers(starts),
            ends: integers(ends),
        })
    });
    column::decode(leaf, &parts.collect::<Result<Vec<_>, _>>()?)
}

/// 64-bit integers in the order of this machine's bytes.
fn integers(view: &View) -> Vec<i64> {
    let chunks = view.bytes().chunks_exact(8);
    chunks
        .map(|chunk| chunk.try_into().map_or(0, i64::from_ne_bytes))
        .collect()
}

fn describe(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the decoder panicked: {}", words.unwrap_or("no words"))
}

fn hand_over(py: Python<'_>, column: column::Column, is_large: bool) -> PyResult<Py<Column>> {
    let mut layers = Vec::with_capacity(column.layers.len());
    for (slots, offsets) in column.layers {
        let (length, null_count) = (slots.len(), slots.null_count());
        let offsets = match offsets {
            Some(offsets) => Some(Py::new(py, Buffer::from(offsets))?),
            None => None,
        };
        layers.push((length, null_count, validity(py, slots)?, offsets));
    }
    let (length, null_count) = (column.validity.len(), column.validity.null_count());
    let mut buffers = vec![validity(py, column.validity)?];
    let mut push = |buffer: Buffer| -> PyResult<()> {
        buffers.push(Some(Py::new(py, buffer)?));
        Ok(())
    };
    match column.values {
        Values::Fixed { bytes, .. } => push(bytes.into())?,
        Values::Bits(bits) => push(bits.bytes.into())?,
        Values::Bytes(arrays) => {
            if is_large {
                let offsets = arrays.offsets.into_iter().map(i64::from);
                push(offsets.collect::<Vec<_>>().into())?;
            } else {
                push(arrays.offsets.into())?;
            }
            push(arrays.data.into())?;
        }
    }
    Py::new(
        py,
        Column {
            layers,
            length,
            null_count,
            buffers,
            pages: column.pages,
        },
    )
}

fn validity(py: Python<'_>, validity: Validity) -> PyResult<Option<Py<Buffer>>> {
    match validity.into_bits() {
        Some(bits) => Ok(Some(Py::new(py, Buffer::from(bits.bytes))?)),
        None => Ok(None),
    }
}

#[pymodule]
fn fretsaw_kernels(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // A panic is told in words where it is caught; nothing is printed.
    std::panic::set_hook(Box::new(|_| {}));
    module.add("PROTOCOL", PROTOCOL)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Leaf>()?;
    module.add_class::<Column>()?;
    module.add_class::<Refused>()?;
    module.add_class::<Buffer>()?;
    module.add_function(wrap_pyfunction!(decode, module)?)
}
