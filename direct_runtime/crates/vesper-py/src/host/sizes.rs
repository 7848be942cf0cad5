//! Sizes of Python values, for `memory_limit_mb`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyList, PyMapping, PySet, PyString, PyTuple};

/// Bytes of each value besides its text.
const OBJECT_BYTES: u64 = 32;

/// Returns about how many bytes a value takes: 32 for each value, and one for each byte or character in it.
///
/// It is the same on every machine, so that a node that runs here runs there.
#[pyfunction]
#[pyo3(signature = (value, /))]
pub(crate) fn size_of(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let mut total = 0;
    let mut waiting = vec![value.clone()];
    while let Some(each) = waiting.pop() {
        total += OBJECT_BYTES;
        if each.is_instance_of::<PyString>() || each.is_instance_of::<PyBytes>() {
            total += each.len()? as u64;
        } else if let Ok(dict) = each.cast::<PyDict>() {
            for (key, item) in dict.iter() {
                waiting.push(key);
                waiting.push(item);
            }
        } else if each.is_instance_of::<PyList>()
            || each.is_instance_of::<PyTuple>()
            || each.is_instance_of::<PySet>()
            || each.is_instance_of::<PyFrozenSet>()
        {
            for item in each.try_iter()? {
                waiting.push(item?);
            }
        } else if let Ok(mapping) = each.cast::<PyMapping>() {
            waiting.extend(mapping.keys()?.iter());
            waiting.extend(mapping.values()?.iter());
        }
    }
    Ok(total)
}
