//! The border to Python and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList};

use crate::chunk;
use crate::codec::Codec;
use crate::column::{self, Claim, Part, Segment};
use crate::error::{self, Refusal};
use crate::footer;
use crate::index;
use crate::levels::{Layer, Validity};
use crate::orc::border::{OrcLeaf, decode_orc};
use crate::pages;
use crate::raw::shared::{Buffer, View};
use crate::value_set::{Cuts, NAN_KEY, Order, ValueSet};
use crate::values::{Form, Physical, Target, Unit, Values};

/// Both sides must speak the same protocol; fretsaw leaves other kernels alone.
const PROTOCOL: u32 = 3;

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

/// A set of values that rows must have.
#[pyclass(frozen, module = "fretsaw_kernels")]
struct Search {
    search: column::Search,
}

#[pymethods]
impl Search {
    #[new]
    #[pyo3(signature = (order, cuts, begins_inside, *, keeps_values=true))]
    fn new(
        order: &str,
        cuts: Vec<Bound<'_, PyAny>>,
        begins_inside: bool,
        keeps_values: bool,
    ) -> PyResult<Self> {
        let order = parse_order(order)?;
        let search = column::Search {
            set: parse_set(order, &cuts, begins_inside)?,
            keeps_values,
        };
        Ok(Search { search })
    }
}

/// What is claimed of the pages of a part: the first row of each, its lowest and highest key.
#[pyclass(frozen, module = "fretsaw_kernels")]
pub struct Claims {
    claims: Vec<Claim>,
}

impl Claims {
    /// What the first page may hold.
    pub fn first(&self) -> Option<ValueSet> {
        self.claims.first().map(|claim| claim.values.clone())
    }
}

#[pymethods]
impl Claims {
    #[new]
    fn new(
        order: &str,
        rows: Vec<u64>,
        lower: Vec<Bound<'_, PyAny>>,
        upper: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let order = parse_order(order)?;
        if lower.len() != rows.len() || upper.len() != rows.len() || !rows.is_sorted() {
            return Err(PyValueError::new_err("claims that do not fit together"));
        }
        let bounds = lower.into_iter().zip(upper);
        let claims = rows.into_iter().zip(bounds).map(|(row, bounds)| {
            let mut values = parse_set(order, &[bounds.0, bounds.1], false)?;
            close(&mut values);
            Ok(Claim { row, values })
        });
        Ok(Claims {
            claims: claims.collect::<PyResult<_>>()?,
        })
    }
}

/// Make a set of bounds one of all keys from the lower to the upper one; NaN has no bounds.
fn close(bounds: &mut ValueSet) {
    match &mut bounds.cuts {
        Cuts::Bytes(cuts) => cuts.iter_mut().skip(1).for_each(|upper| upper.push(0)),
        Cuts::Numbers(cuts) => {
            cuts.iter_mut()
                .skip(1)
                .for_each(|upper| *upper = upper.saturating_add(1));
            if bounds.order == Order::Float {
                cuts.extend([NAN_KEY, NAN_KEY + 1]);
            }
        }
    }
}

fn parse_order(order: &str) -> PyResult<Order> {
    Ok(match order {
        "signed" => Order::Signed,
        "unsigned" => Order::Unsigned,
        "float" => Order::Float,
        "bytes" => Order::Bytes,
        _ => return Err(PyValueError::new_err(format!("no order {order:?}"))),
    })
}

fn parse_set(order: Order, cuts: &[Bound<'_, PyAny>], begins_inside: bool) -> PyResult<ValueSet> {
    let cuts = match order {
        Order::Bytes => Cuts::Bytes(
            cuts.iter()
                .map(|cut| cut.extract())
                .collect::<PyResult<_>>()?,
        ),
        _ => Cuts::Numbers(cuts.iter().map(parse_number).collect::<PyResult<_>>()?),
    };
    Ok(ValueSet {
        order,
        cuts,
        begins_inside,
    })
}

/// A key; one that no stored value can reach stays so.
fn parse_number(key: &Bound<'_, PyAny>) -> PyResult<i128> {
    let key = key.cast::<PyInt>()?;
    match key.extract() {
        Ok(number) => Ok(number),
        Err(_) if key.lt(0)? => Ok(i128::MIN),
        Err(_) => Ok(i128::MAX),
    }
}

/// Slots of a layer: length, null count, validity, offsets.
type LayerSlots = (usize, usize, Option<Py<Buffer>>, Option<Py<Buffer>>);

/// The wanted rows of a leaf.
#[pyclass(frozen, get_all, module = "fretsaw_kernels")]
pub struct Column {
    layers: Vec<LayerSlots>,
    length: usize,
    null_count: usize,
    buffers: Vec<Option<Py<Buffer>>>,
    pages: usize,
    matches: Option<(Py<Buffer>, Py<Buffer>)>,
}

/// Why there are no rows of a leaf.
#[pyclass(frozen, get_all, module = "fretsaw_kernels")]
pub struct Refused {
    kind: &'static str,
    reason: String,
    part: usize,
    claim: Option<usize>,
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
        let claim = match refusal {
            Refusal::Outside(claim) => Some(claim),
            _ => None,
        };
        let (kind, reason) = match refusal {
            Refusal::Outside(_) => ("outside", "a value outside of its bounds".to_owned()),
            Refusal::NotMine(reason) => ("not_mine", reason.to_owned()),
            Refusal::Corrupt(reason) => ("corrupt", reason),
            Refusal::OutOfRange(reason) => ("out_of_range", reason.to_owned()),
        };
        Refused {
            kind,
            reason,
            part,
            claim,
        }
    }
}

/// A part of a leaf as Python hands it over: codec, dictionary, segments, and wanted rows.
type PartViews = (i32, Option<View>, Vec<(View, u64, u64)>, View, View);

/// For each leaf the rows that are wanted of its parts, or why there are none.
///
/// Leaves may have a search, and their parts may have claims.
#[pyfunction]
#[pyo3(signature = (leaves, *, searches=vec![], claims=vec![]))]
fn decode<'py>(
    py: Python<'py>,
    leaves: Vec<(Py<Leaf>, Vec<PartViews>)>,
    searches: Vec<Option<Py<Search>>>,
    claims: Vec<Vec<Option<Py<Claims>>>>,
) -> PyResult<Bound<'py, PyList>> {
    let columns: Vec<_> = py.detach(|| {
        let each = leaves.iter().enumerate().map(|(place, (leaf, parts))| {
            let search = searches.get(place).and_then(Option::as_ref);
            let search = search.map(|search| &search.get().search);
            let claims = claims.get(place).map_or(&[][..], Vec::as_slice);
            let leaf = leaf.get();
            catch_unwind(AssertUnwindSafe(|| {
                decode_leaf(leaf, search, parts, claims)
            }))
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

fn decode_leaf(
    leaf: &Leaf,
    search: Option<&column::Search>,
    parts: &[PartViews],
    claims: &[Option<Py<Claims>>],
) -> Result<column::Column, (usize, Refusal)> {
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
            claims: match claims.get(place) {
                Some(Some(claims)) => claims.get().claims.clone(),
                _ => Vec::new(),
            },
        })
    });
    column::decode(leaf, search, &parts.collect::<Result<Vec<_>, _>>()?)
}

/// 64-bit integers in the order of this machine's bytes.
pub fn integers(view: &View) -> Vec<i64> {
    let chunks = view.bytes().chunks_exact(8);
    chunks
        .map(|chunk| chunk.try_into().map_or(0, i64::from_ne_bytes))
        .collect()
}

pub fn describe(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the decoder panicked: {}", words.unwrap_or("no words"))
}

pub fn hand_over(py: Python<'_>, column: column::Column, is_large: bool) -> PyResult<Py<Column>> {
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
    let matches = match column.matches {
        Some(matches) => Some((
            Py::new(py, Buffer::from(matches.starts))?,
            Py::new(py, Buffer::from(matches.ends))?,
        )),
        None => None,
    };
    Py::new(
        py,
        Column {
            layers,
            length,
            null_count,
            buffers,
            pages: column.pages,
            matches,
        },
    )
}

fn validity(py: Python<'_>, validity: Validity) -> PyResult<Option<Py<Buffer>>> {
    match validity.into_bits() {
        Some(bits) => Ok(Some(Py::new(py, Buffer::from(bits.bytes))?)),
        None => Ok(None),
    }
}

/// What a row group says: columns, bytes, rows, offset, compressed bytes, start of its first chunk.
type RowGroup = (
    usize,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
);

type KeyValue = (Option<Py<PyBytes>>, Option<Py<PyBytes>>);

/// A footer, and where its schema elements and column chunks are.
#[pyclass(frozen, get_all, module = "fretsaw_kernels")]
struct Footer {
    length: usize,
    num_rows: Option<i64>,
    created_by: Option<String>,
    key_values: Vec<KeyValue>,
    names: Py<PyList>,
    types: Py<Buffer>,
    children: Py<Buffer>,
    elements: Py<Buffer>,
    row_groups: Vec<RowGroup>,
    chunks: Py<Buffer>,
    column_orders: Py<Buffer>,
}

/// What a footer says above its column chunks; None if it is unusual or damaged.
#[pyfunction]
fn parse_footer(py: Python<'_>, data: View) -> PyResult<Option<Footer>> {
    let Some(footer) = py.detach(|| read(|| footer::Footer::read(data.bytes()))) else {
        return Ok(None);
    };
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
    let key_values = footer.key_values.iter();
    let row_groups = footer.row_groups.iter().map(|group| {
        (
            group.num_columns,
            group.total_byte_size,
            group.num_rows,
            group.file_offset,
            group.total_compressed_size,
            group.start,
        )
    });
    Ok(Some(Footer {
        length: footer.length,
        num_rows: footer.num_rows,
        created_by: footer.created_by.map(str::to_owned),
        key_values: key_values
            .map(|(key, value)| (key.map(bytes), value.map(bytes)))
            .collect(),
        names: PyList::new(py, footer.elements.names)?.unbind(),
        types: Py::new(py, Buffer::from(footer.elements.types))?,
        children: Py::new(py, Buffer::from(footer.elements.children))?,
        elements: Py::new(py, Buffer::from(footer.elements.spans.into_flattened()))?,
        row_groups: row_groups.collect(),
        chunks: Py::new(py, Buffer::from(footer.chunks.into_flattened()))?,
        column_orders: Py::new(py, Buffer::from(footer.column_orders))?,
    }))
}

/// What a column chunk says, from its place in a footer on.
#[pyclass(frozen, get_all, module = "fretsaw_kernels")]
struct Chunk {
    file_path: Option<String>,
    is_encrypted: bool,
    offset_index_offset: Option<i64>,
    offset_index_length: Option<i64>,
    has_column: bool,
    physical_type: Option<i64>,
    path: Option<Vec<Py<PyBytes>>>,
    codec: Option<i64>,
    num_values: Option<i64>,
    uncompressed_size: Option<i64>,
    compressed_size: Option<i64>,
    data_page_offset: Option<i64>,
    dictionary_page_offset: Option<i64>,
    unencoded_bytes: Option<i64>,
}

/// The column chunk between two bytes of a footer; None as for footers.
#[pyfunction]
fn parse_chunk(py: Python<'_>, data: View, begin: usize, end: usize) -> Option<Chunk> {
    let chunk = read(|| match data.bytes().get(begin..end) {
        Some(bytes) => chunk::Chunk::read(bytes),
        None => error::corrupt("a chunk outside of its footer"),
    })?;
    let has_column = chunk.column.is_some();
    let column = chunk.column.unwrap_or_default();
    let path = column.path.map(|names| {
        let names = names.iter().map(|name| PyBytes::new(py, name).unbind());
        names.collect()
    });
    Some(Chunk {
        file_path: chunk.file_path.map(str::to_owned),
        is_encrypted: chunk.is_encrypted,
        offset_index_offset: chunk.offset_index_offset,
        offset_index_length: chunk.offset_index_length,
        has_column,
        physical_type: column.physical_type,
        path,
        codec: column.codec,
        num_values: column.num_values,
        uncompressed_size: column.uncompressed_size,
        compressed_size: column.compressed_size,
        data_page_offset: column.data_page_offset,
        dictionary_page_offset: column.dictionary_page_offset,
        unencoded_bytes: column.unencoded_bytes,
    })
}

/// The first rows of all pages and the last row, then offsets, then sizes; None as for footers.
///
/// The pages lie one after the other between two bytes, and have so many rows.
#[pyfunction]
fn parse_page_places(data: View, num_rows: i64, begin: i64, end: i64) -> Option<Buffer> {
    read(|| index::read_offset_index(data.bytes(), num_rows, begin..end)).map(Buffer::from)
}

/// What the headers of pages one behind the other say, seven numbers for each; None as for footers.
#[pyfunction]
fn parse_pages(data: View) -> Option<Buffer> {
    read(|| pages::outline(data.bytes())).map(Buffer::from)
}

/// What the pages of a chunk hold: null pages, bounds, and counts.
#[pyclass(frozen, get_all, module = "fretsaw_kernels")]
struct ColumnIndex {
    null_pages: Option<Py<Buffer>>,
    min_values: Option<Py<PyList>>,
    max_values: Option<Py<PyList>>,
    null_counts: Option<Py<Buffer>>,
    definition_level_histograms: Option<Py<Buffer>>,
    nan_counts: Option<Py<Buffer>>,
}

/// A column index; None as for footers.
#[pyfunction]
fn parse_column_index(py: Python<'_>, data: View) -> PyResult<Option<ColumnIndex>> {
    let Some(index) = read(|| index::ColumnIndex::read(data.bytes())) else {
        return Ok(None);
    };
    let bounds = |values: Option<Vec<&[u8]>>| -> PyResult<Option<Py<PyList>>> {
        values
            .map(|values| {
                let values = values.iter().map(|value| PyBytes::new(py, value));
                PyList::new(py, values.collect::<Vec<_>>()).map(Bound::unbind)
            })
            .transpose()
    };
    let counts = |counts: Option<Vec<i64>>| -> PyResult<Option<Py<Buffer>>> {
        counts
            .map(|counts| Py::new(py, Buffer::from(counts)))
            .transpose()
    };
    let flags = index
        .null_pages
        .map(|flags| Py::new(py, Buffer::from(flags)));
    Ok(Some(ColumnIndex {
        null_pages: flags.transpose()?,
        min_values: bounds(index.min_values)?,
        max_values: bounds(index.max_values)?,
        null_counts: counts(index.null_counts)?,
        definition_level_histograms: counts(index.definition_level_histograms)?,
        nan_counts: counts(index.nan_counts)?,
    }))
}

/// What is read, or None where it is refused or panics.
fn read<T>(read: impl FnOnce() -> error::Result<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).ok()?.ok()
}

#[pymodule]
fn fretsaw_kernels(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // A panic is told in words where it is caught; nothing is printed.
    std::panic::set_hook(Box::new(|_| {}));
    module.add("PROTOCOL", PROTOCOL)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Leaf>()?;
    module.add_class::<Search>()?;
    module.add_class::<Claims>()?;
    module.add_class::<Column>()?;
    module.add_class::<Refused>()?;
    module.add_class::<Buffer>()?;
    module.add_class::<Footer>()?;
    module.add_class::<Chunk>()?;
    module.add_class::<ColumnIndex>()?;
    module.add_function(wrap_pyfunction!(parse_footer, module)?)?;
    module.add_function(wrap_pyfunction!(parse_chunk, module)?)?;
    module.add_function(wrap_pyfunction!(parse_page_places, module)?)?;
    module.add_function(wrap_pyfunction!(parse_column_index, module)?)?;
    module.add_function(wrap_pyfunction!(parse_pages, module)?)?;
    module.add_class::<OrcLeaf>()?;
    module.add_function(wrap_pyfunction!(decode, module)?)?;
    module.add_function(wrap_pyfunction!(decode_orc, module)?)
}
