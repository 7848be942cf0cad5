//! JSON values from Python objects and back.

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

/// The JSON value that an object is, or the kind of the problem with it; the outer error is Python's own.
pub(crate) fn to_json(object: &Bound<'_, PyAny>) -> PyResult<Result<Json, ProblemKind>> {
    let mut reading = Reading {
        problem: None,
        around: Vec::new(),
    };
    let value = reading.value(object)?;
    // Nothing is left out without a problem.
    Ok(match (reading.problem, value) {
        (None, Some(value)) => Ok(value),
        (problem, _) => Err(problem.unwrap_or(ProblemKind::WrongType)),
    })
}

/// One value, all of whose problems are problems of the whole: the first kind counts, wherever it was found.
struct Reading {
    problem: Option<ProblemKind>,
    /// The addresses of the lists and dicts that are being read, each inside the one before.
    around: Vec<usize>,
}

impl Reading {
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
            // SEMANTICS: the number that its shortest text spells. NaN and the infinities spell none.
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

    /// Reads what is in a list or dict, unless it is too long, too deep, or inside itself.
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
        // Keys of subclasses may be different in the dict and yet have the same base value.
        Ok(match Object::new(entries) {
            Some(object) => Some(Json::Object(object)),
            None => self.refuse(ProblemKind::Duplicate),
        })
    }
}

/// The Python form of a JSON value, whose depth is limited.
pub(crate) fn json_object<'py>(py: Python<'py>, json: &Json) -> PyResult<Bound<'py, PyAny>> {
    Ok(match json {
        Json::Null => py.None().into_bound(py),
        Json::Boolean(value) => PyBool::new(py, *value).to_owned().into_any(),
        Json::Number(number) if number.scale() == 0 => {
            let text = number.to_string();
            match text.parse::<i64>() {
                Ok(value) => value.into_pyobject(py)?.into_any(),
                // At most 1,000 digits, which Python reads.
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
