//! Cells of tables as Python objects, for messages about rows with an error.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};
use vesper_arrow::{Cell, RecordBatch, cell};

use crate::inputs::times::{date_object, duration_object, time_object, timestamp_object};
use crate::layout::decimals::decimals;

/// Returns a row as a dict of inputs.
pub(super) fn row_object<'py>(
    py: Python<'py>,
    given: &RecordBatch,
    row: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let schema = given.schema();
    for (field, column) in schema.fields().iter().zip(given.columns()) {
        dict.set_item(field.name(), cell_object(py, &cell(column, row))?)?;
    }
    Ok(dict)
}

fn cell_object<'py>(py: Python<'py>, cell: &Cell<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match cell {
        Cell::Null => py.None().into_bound(py),
        Cell::Boolean(value) => PyBool::new(py, *value).to_owned().into_any(),
        Cell::Integer(value) => value.into_pyobject(py)?.into_any(),
        Cell::Wide(value) => py
            .import(intern!(py, "builtins"))?
            .getattr(intern!(py, "int"))?
            .call1((value.to_string(),))?,
        Cell::Decimal(Ok(value)) => decimals(py)?.object(py, value)?,
        Cell::Float(value) => PyFloat::new(py, *value).into_any(),
        Cell::Text(text) => PyString::new(py, text).into_any(),
        Cell::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Cell::Moment(moment) => match in_range(*moment, vesper_ir::time::timestamp) {
            Some(moment) => timestamp_object(py, moment)?,
            None => placeholder(py, "a timestamp outside the years 1 to 9999"),
        },
        Cell::NaiveMoment(moment) => match in_range(*moment, vesper_ir::time::timestamp) {
            Some(moment) => {
                let replaced = PyDict::new(py);
                replaced.set_item(intern!(py, "tzinfo"), py.None())?;
                timestamp_object(py, moment)?.call_method(intern!(py, "replace"), (), Some(&replaced))?
            }
            None => placeholder(py, "a timestamp outside the years 1 to 9999"),
        },
        Cell::Day(day) => match vesper_ir::time::date(*day) {
            Ok(day) => date_object(py, day)?,
            Err(_) => placeholder(py, "a date outside the years 1 to 9999"),
        },
        Cell::Length(length) => match in_range(*length, vesper_ir::time::duration) {
            Some(length) => duration_object(py, length)?,
            None => placeholder(py, "a duration that is too long"),
        },
        Cell::Clock(time) => match in_range(*time, vesper_ir::time::time_of_day) {
            Some(time) => time_object(py, time)?,
            None => placeholder(py, "a time outside of a day"),
        },
        Cell::List(items) => {
            let items = items.iter().map(|item| cell_object(py, item));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Cell::Fields(fields) => {
            let dict = PyDict::new(py);
            for (name, value) in fields {
                dict.set_item(name, cell_object(py, value)?)?;
            }
            dict.into_any()
        }
        Cell::Entries(entries) => entries_object(py, entries)?,
        Cell::Decimal(Err(_)) => placeholder(py, "a decimal that is too long"),
        Cell::Finer => placeholder(py, "a time finer than a microsecond"),
        Cell::Other(ty) => placeholder(py, &format!("a value of Arrow's {ty}")),
    })
}

/// Returns the entries of a map as a dict, or as pairs where a key repeats or has no hash.
fn entries_object<'py>(py: Python<'py>, entries: &[(Cell<'_>, Cell<'_>)]) -> PyResult<Bound<'py, PyAny>> {
    let dict = PyDict::new(py);
    let mut pairs = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let (key, value) = (cell_object(py, key)?, cell_object(py, value)?);
        if key.hash().is_ok() {
            dict.set_item(&key, &value)?;
        }
        pairs.push(PyTuple::new(py, [key, value])?);
    }
    if dict.len() == entries.len() {
        Ok(dict.into_any())
    } else {
        Ok(PyList::new(py, pairs)?.into_any())
    }
}

fn in_range<E>(given: i128, within: impl Fn(i128) -> Result<i64, E>) -> Option<i64> {
    within(given).ok()
}

/// Returns the text that represents a cell without a Python object in a message.
fn placeholder<'py>(py: Python<'py>, what: &str) -> Bound<'py, PyAny> {
    PyString::new(py, what).into_any()
}
