//! Conversion between JSON values and Python objects.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use vesper_interp::inputs::{Given, ProblemKind, is_too_long};
use vesper_ir::decimal::ParseDecimalError;
use vesper_ir::json::{MAX_DEPTH, Object};
use vesper_ir::limits::ITEMS;
use vesper_ir::{Decimal, Json, float};

use crate::inputs::checked_inputs::Sequence;
use crate::inputs::values::read_integer;
use crate::layout::decimals::decimals;

/// Converts an object to a JSON value, or returns the kind of its problem. The outer error is an exception of Python.
pub(crate) fn to_json(object: &Bound<'_, PyAny>) -> PyResult<Result<Json, ProblemKind>> {
    let mut reading = JsonReader {
        problem: None,
        around: Vec::new(),
    };
    let value = reading.value(object)?;
    // A missing value always has a problem.
    Ok(match (reading.problem, value) {
        (None, Some(value)) => Ok(value),
        (problem, _) => Err(problem.unwrap_or(ProblemKind::WrongType)),
    })
}

/// State of one conversion, which reports a single problem for the whole value. The kind that is first in the table
/// of problems counts.
struct JsonReader {
    problem: Option<ProblemKind>,
    /// Addresses of the enclosing lists and dicts, outermost first.
    around: Vec<usize>,
}

impl JsonReader {
    fn refuse(&mut self, kind: ProblemKind) -> Option<Json> {
        self.problem = Some(self.problem.map_or(kind, |known| known.min(kind)));
        None
    }

    fn value(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Option<Json>> {
        if object.is_none() {
            return Ok(Some(Json::Null));
        }
        if let Ok(value) = object.cast::<PyBool>() {
            return Ok(Some(Json::Boolean(value.is_true())));
        }
        if let Ok(integer) = object.cast::<PyInt>() {
            return Ok(match read_integer(integer, true)? {
                Given::Integer(value) => Some(Json::Number(Decimal::from(value))),
                Given::WideInteger(Some(value)) => Some(Json::Number(value)),
                _ => self.refuse(ProblemKind::OutOfRange),
            });
        }
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(self.text(text).map(Json::Text));
        }
        if let Ok(number) = object.cast::<PyFloat>() {
            // SEMANTICS: a float is the number that its shortest text denotes. NaN and the infinities are malformed.
            let number = Decimal::parse(&float::text(number.value()));
            return Ok(match number {
                Ok(number) => Some(Json::Number(number)),
                Err(_) => self.refuse(ProblemKind::Malformed),
            });
        }
        if let Some(sequence) = Sequence::new(object) {
            return self.collection(object, sequence.len(), |reading| reading.array(&sequence));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            return self.collection(object, dict.len(), |reading| reading.object(dict));
        }
        if let Some(number) = decimals(object.py())?.read(object)? {
            return Ok(match number {
                Ok(number) => Some(Json::Number(number)),
                Err(ParseDecimalError::OutOfRange) => self.refuse(ProblemKind::OutOfRange),
                Err(ParseDecimalError::Malformed) => self.refuse(ProblemKind::Malformed),
            });
        }
        Ok(self.refuse(ProblemKind::WrongType))
    }

    fn text(&mut self, text: &Bound<'_, PyString>) -> Option<Arc<str>> {
        let kind = match text.to_str() {
            Ok(text) if is_too_long(text) => ProblemKind::OutOfRange,
            Ok(text) => return Some(Arc::from(text)),
            Err(_) => ProblemKind::Malformed,
        };
        self.refuse(kind);
        None
    }

    /// Reads a list or dict, unless it is too long, too deep or contains itself.
    fn collection(
        &mut self,
        object: &Bound<'_, PyAny>,
        length: usize,
        read: impl FnOnce(&mut Self) -> PyResult<Option<Json>>,
    ) -> PyResult<Option<Json>> {
        if length > ITEMS {
            return Ok(self.refuse(ProblemKind::OutOfRange));
        }
        let address = object.as_ptr().addr();
        if self.around.len() == MAX_DEPTH || self.around.contains(&address) {
            return Ok(self.refuse(ProblemKind::TooDeep));
        }
        self.around.push(address);
        let value = read(self);
        self.around.pop();
        value
    }

    fn array(&mut self, sequence: &Sequence<'_, '_>) -> PyResult<Option<Json>> {
        let length = sequence.len();
        let mut items = Vec::with_capacity(length);
        for place in 0..length {
            items.extend(self.value(&sequence.get(place)?)?);
        }
        Ok((items.len() == length).then(|| Json::Array(Arc::from(items))))
    }

    fn object(&mut self, dict: &Bound<'_, PyDict>) -> PyResult<Option<Json>> {
        let length = dict.len();
        let mut entries = Vec::with_capacity(length);
        for (key, value) in dict.iter() {
            let key = if let Ok(key) = key.cast::<PyString>() {
                self.text(key)
            } else {
                self.refuse(ProblemKind::WrongType);
                None
            };
            let value = self.value(&value)?;
            entries.extend(key.zip(value));
        }
        if entries.len() != length {
            return Ok(None);
        }
        // Keys of subclasses may differ in the dict and still have equal base values.
        Ok(match Object::new(entries) {
            Some(object) => Some(Json::Object(object)),
            None => self.refuse(ProblemKind::Duplicate),
        })
    }
}

/// Converts a JSON value to Python objects. The depth of the value is limited.
pub(crate) fn json_object<'py>(py: Python<'py>, json: &Json) -> PyResult<Bound<'py, PyAny>> {
    Ok(match json {
        Json::Null => py.None().into_bound(py),
        Json::Boolean(value) => PyBool::new(py, *value).to_owned().into_any(),
        Json::Number(number) if number.scale() == 0 => {
            let text = number.to_string();
            match text.parse::<i64>() {
                Ok(value) => value.into_pyobject(py)?.into_any(),
                // Python parses up to 1,000 digits, and the number has no more.
                Err(_) => py.get_type::<PyInt>().call1((text,))?,
            }
        }
        Json::Number(number) => decimals(py)?.object(py, number)?,
        Json::Text(text) => PyString::new(py, text).into_any(),
        Json::Array(items) => {
            let items = items.iter().map(|item| json_object(py, item));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Json::Object(object) => {
            let dict = PyDict::new(py);
            for (key, value) in object.entries() {
                dict.set_item(key.as_ref(), json_object(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
