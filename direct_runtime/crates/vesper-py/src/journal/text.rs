//! The text of a journal value, for the common kinds of values.
//!
//! `vesper/journal/typed_json.py` defines the text. This module writes the same text for strings, integers, floats,
//! booleans, null, decimals, and lists and dicts of these, and calls it for every other value. It leaves a value as a
//! whole to it for keys that are not plain strings, integers beyond 64 bits, lone surrogates, great depth or great
//! length.

use std::fmt::Write as _;

use pyo3::exceptions::{PyOverflowError, PyRecursionError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyStringMethods, PyTuple, PyType,
};
use vesper_ir::json::quote;

const MAX_DEPTH: usize = 100;
const MAX_BYTES: usize = 1 << 20;

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static EXACT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ENCODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns the text of a value, or None if `typed_json` has to write it. `other(value)` writes a part of it.
#[pyfunction]
#[pyo3(signature = (value, other, /))]
pub fn journal_text(value: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let mut writer = Writer::new(value.py(), other, MAX_BYTES)?;
    Ok(writer.value(value, 0)?.then_some(writer.text))
}

/// Returns the typed JSON of an object. Raises `JournalError` for an object that is no value.
pub fn typed_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    let other = EXACT.import(py, "vesper.journal.typed_json", "EXACT_IN_PYTHON")?;
    let mut writer = Writer::new(py, other, MAX_BYTES)?;
    match writer.value(value, 0) {
        Ok(true) => return Ok(writer.text),
        Ok(false) => {}
        Err(error)
            if error.is_instance_of::<PyRecursionError>(py)
                || error.is_instance_of::<PyOverflowError>(py) => {}
        Err(error) => return Err(error),
    }
    let bytes = ENCODE
        .import(py, "vesper.journal.typed_json", "encode")?
        .call1((value,))?;
    Ok(String::from_utf8(bytes.cast::<PyBytes>()?.as_bytes().to_vec())?)
}

pub struct Writer<'a, 'py> {
    pub text: String,
    /// True if `other` wrote a json, or a text that resembles one.
    pub has_json: bool,
    /// Approximate number of bytes after which the writer gives up.
    most: usize,
    decimal: &'a Bound<'py, PyType>,
    other: &'a Bound<'py, PyAny>,
}

impl<'a, 'py> Writer<'a, 'py> {
    pub fn new(py: Python<'py>, other: &'a Bound<'py, PyAny>, most: usize) -> PyResult<Self> {
        Ok(Self {
            text: String::with_capacity(256),
            has_json: false,
            most: most.min(MAX_BYTES),
            decimal: DECIMAL.import(py, "decimal", "Decimal")?,
            other,
        })
    }
}

impl Writer<'_, '_> {
    /// Writes a value; returns false if `typed_json` has to write the whole value.
    pub fn value(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
        if depth > MAX_DEPTH || self.text.len() > self.most {
            return Ok(false);
        }
        if let Ok(text) = value.cast_exact::<PyString>() {
            let Ok(text) = text.to_str() else {
                return Ok(false);
            };
            quote(text, &mut self.text);
        } else if value.is_none() {
            self.text.push_str("null");
        } else if let Ok(truth) = value.cast_exact::<PyBool>() {
            self.text.push_str(if truth.is_true() { "true" } else { "false" });
        } else if let Ok(number) = value.cast_exact::<PyInt>() {
            let Ok(number) = number.extract::<i64>() else {
                return Ok(false);
            };
            // Writing to a string cannot fail.
            let _ = write!(self.text, "{number}");
        } else if let Ok(dict) = value.cast_exact::<PyDict>() {
            return self.dict(dict, depth);
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            return self.items(list.iter(), depth);
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            return self.items(tuple.iter(), depth);
        } else if value.get_type().is(self.decimal) {
            self.text.push_str("{\"$decimal\":\"");
            self.text.push_str(value.str()?.to_str()?);
            self.text.push_str("\"}");
        } else if let Ok(number) = value.cast_exact::<PyFloat>() {
            if !number.value().is_finite() {
                return Ok(false);
            }
            self.text.push_str(number.repr()?.to_str()?);
        } else {
            let text = self.other.call1((value,))?;
            let Ok(text) = text.cast::<PyString>()?.to_str() else {
                return Ok(false);
            };
            self.has_json |= text.contains("{\"$json\":");
            self.text.push_str(text);
        }
        Ok(true)
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<bool> {
        let mut entries = Vec::with_capacity(dict.len());
        for (key, item) in dict.iter() {
            let Ok(key) = key.cast_into_exact::<PyString>() else {
                return Ok(false);
            };
            entries.push((key, item));
        }
        let mut named = Vec::with_capacity(entries.len());
        for (key, item) in &entries {
            match key.to_str() {
                Ok(name) if !name.starts_with('$') => named.push((name, item)),
                _ => return Ok(false),
            }
        }
        // The order of UTF-8 is the order of code points.
        named.sort_unstable_by_key(|(name, _)| *name);
        self.text.push('{');
        for (position, (name, item)) in named.into_iter().enumerate() {
            if position > 0 {
                self.text.push(',');
            }
            quote(name, &mut self.text);
            self.text.push(':');
            if !self.value(item, depth + 1)? {
                return Ok(false);
            }
        }
        self.text.push('}');
        Ok(true)
    }

    fn items<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> PyResult<bool> {
        self.text.push('[');
        for (position, item) in items.enumerate() {
            if position > 0 {
                self.text.push(',');
            }
            if !self.value(&item, depth + 1)? {
                return Ok(false);
            }
        }
        self.text.push(']');
        Ok(true)
    }
}
