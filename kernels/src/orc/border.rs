//! ORC at the border to Python.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::border::{Claims, Refused, describe, hand_over, integers};
use crate::column::Column;
use crate::error::Refusal;
use crate::orc::chunks::Packing;
use crate::orc::int_rle::Version;
use crate::orc::leaf::Claim;
use crate::orc::marks::Place;
use crate::orc::stripe::{self, Above, Encoding, Form, Located, Part, Piece, Segment};
use crate::raw::shared::View;

/// What all parts of a leaf have in common: the columns above it, its type, and what it becomes.
#[pyclass(frozen, module = "fretsaw_kernels")]
pub struct OrcLeaf {
    leaf: stripe::Leaf,
}

#[pymethods]
impl OrcLeaf {
    #[new]
    #[pyo3(signature = (above, form, *, scale=0, precision=0))]
    fn new(above: Vec<String>, form: &str, scale: i64, precision: i64) -> PyResult<Self> {
        let above = above.iter().map(|kind| match kind.as_str() {
            "STRUCT" => Ok(Above::Struct),
            "LIST" | "MAP" => Ok(Above::List),
            _ => Err(PyValueError::new_err(format!("nothing lies in a {kind}"))),
        });
        let form = match form {
            "bits" => Form::Boolean,
            "int8" => Form::Byte,
            "int16" => Form::Integer(2),
            "int32" => Form::Integer(4),
            "int64" => Form::Integer(8),
            "float" => Form::Float(4),
            "double" => Form::Float(8),
            "bytes" => Form::Bytes,
            "timestamp[ns]" => Form::Time {
                in_nanoseconds: true,
            },
            "timestamp[us]" => Form::Time {
                in_nanoseconds: false,
            },
            "decimal128" if (0..=38).contains(&scale) => Form::Decimal {
                scale,
                is_short: precision <= 18,
            },
            _ => return Err(PyValueError::new_err(format!("no form {form:?}"))),
        };
        let above = above.collect::<PyResult<_>>()?;
        Ok(OrcLeaf {
            leaf: stripe::Leaf { above, form },
        })
    }
}

/// A place in a stream: chunk, bytes, values and bits to skip.
type Skips = (u64, u64, u64, u64);
/// Column, kind, bytes, the first value, and where the next stride begins.
type StreamView = (usize, u32, View, Skips, Option<Skips>);
/// Rows, streams, and what is claimed of the first stride: its rows, values, total and bounds.
type SegmentViews = (
    u64,
    Vec<StreamView>,
    Option<(u64, u64, Option<u64>, Option<Py<Claims>>)>,
);
/// Version of run-length encoding, and how many entries a dictionary has.
type EncodingOf = (u32, Option<usize>);
/// Codec, block size, encodings, base of times, dictionaries, segments, and wanted rows.
type PartViews = (
    (i32, usize),
    Vec<EncodingOf>,
    i64,
    Vec<(usize, u32, View)>,
    Vec<SegmentViews>,
    View,
    View,
);

/// For each leaf the rows that are wanted of its parts, or why there are none.
#[pyfunction]
pub fn decode_orc<'py>(
    py: Python<'py>,
    leaves: Vec<(Py<OrcLeaf>, Vec<PartViews>)>,
) -> PyResult<Bound<'py, PyList>> {
    let columns: Vec<_> = py.detach(|| {
        let each = leaves.iter().map(|(leaf, parts)| {
            catch_unwind(AssertUnwindSafe(|| decode_leaf(&leaf.get().leaf, parts)))
                .unwrap_or_else(|panic| Err((0, Refusal::Corrupt(describe(&*panic)))))
        });
        each.collect()
    });
    let list = PyList::empty(py);
    for column in columns {
        match column {
            Ok(column) => list.append(hand_over(py, column, false)?)?,
            Err(refused) => list.append(Py::new(py, Refused::from(refused))?)?,
        }
    }
    Ok(list)
}

fn decode_leaf(leaf: &stripe::Leaf, parts: &[PartViews]) -> Result<Column, (usize, Refusal)> {
    let parts = parts.iter().enumerate().map(|(place, part)| {
        let ((codec, block_size), encodings, base, dictionaries, segments, starts, ends) = part;
        let dictionaries = dictionaries.iter().map(|(column, kind, view)| Located {
            column: *column,
            kind: *kind,
            piece: Piece {
                bytes: view.bytes(),
                begin: Place::default(),
                following: None,
            },
        });
        Ok(Part {
            packing: Packing::of(*codec, *block_size).map_err(|refusal| (place, refusal))?,
            encodings: encodings.iter().map(encoding).collect(),
            base: *base,
            dictionaries: dictionaries.collect(),
            segments: segments.iter().map(segment).collect(),
            starts: integers(starts),
            ends: integers(ends),
        })
    });
    stripe::decode(leaf, &parts.collect::<Result<Vec<_>, _>>()?)
}

fn encoding((version, dictionary): &EncodingOf) -> Encoding {
    Encoding {
        version: match version {
            1 => Version::One,
            _ => Version::Two,
        },
        dictionary: *dictionary,
    }
}

fn segment((rows, streams, claim): &SegmentViews) -> Segment<'_> {
    let streams = streams
        .iter()
        .map(|(column, kind, view, begin, following)| Located {
            column: *column,
            kind: *kind,
            piece: Piece {
                bytes: view.bytes(),
                begin: place(*begin),
                following: following.map(place),
            },
        });
    let claim = claim.as_ref().map(|(rows, count, total, bounds)| {
        let bounds = bounds.as_ref().and_then(|bounds| bounds.get().first());
        let claim = Claim {
            count: *count,
            total: *total,
            bounds,
        };
        (*rows, claim)
    });
    Segment {
        rows: *rows,
        streams: streams.collect(),
        claim,
    }
}

fn place((chunk, inside, values, bits): Skips) -> Place {
    Place {
        chunk,
        inside,
        values,
        bits,
    }
}
