//! The border to Python and nothing else.

use pyo3::prelude::*;

/// Both sides must speak the same protocol; fretsaw leaves other kernels alone.
const PROTOCOL: u32 = 1;

#[pymodule]
fn fretsaw_kernels(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("PROTOCOL", PROTOCOL)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
