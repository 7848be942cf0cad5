//! Comparison of outputs of generated Python with values of the direct engine.
//!
//! It is stricter than the conversion of inputs, which accepts an integer for a decimal and a tuple for an array: an
//! output of another type is a difference. Python (`vesper.values.model.same`) compares the forms that are missing
//! here, so a missing form costs time but never changes a result.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyString,
    PyTime, PyTzInfo, PyTzInfoAccess,
};
use vesper_interp::problems::Path;
use vesper_interp::words::{Word, Words};
use vesper_ir::{Member, Type, Value};

use crate::calls::frameless_call::text;
use crate::calls::outcome::NamedShapes;
use crate::inputs::checked_inputs::Conversion;
use crate::inputs::dict_fields::gather;
use crate::inputs::fast_inputs::integer;
use crate::inputs::shapes::{Parts, Shape};
use crate::layout::decimals::{Decimals, decimals};
use crate::layout::dicts::Layout;

/// Reads the outputs in declared order; returns `None` unless they have exactly the declared form.
pub(crate) fn read_exact_outputs(
    named: &NamedShapes,
    object: &Bound<'_, PyAny>,
) -> PyResult<Option<Vec<Value>>> {
    let Some(dict) = exact_dict(object) else {
        return Ok(None);
    };
    if dict.len() != named.names.len() {
        return Ok(None);
    }
    let mut conversion = Conversion::default();
    // Only the interned name strings match; Python compares outputs with other strings.
    let known = gather(dict, &named.names, |_| None, &mut conversion.held)?;
    if known.is_none_or(|unknown| !unknown.is_empty()) {
        return Ok(None);
    }
    let mut values = Vec::with_capacity(named.names.len());
    for (place, shape) in named.shapes.iter().enumerate() {
        let Some(given) = conversion.held.get_mut(place).and_then(Option::take) else {
            return Ok(None);
        };
        if !is_exact(shape, &given)? {
            return Ok(None);
        }
        let mut value = Value::Null;
        if !conversion.value(shape, &given, &Path::Input(""), &mut value)? {
            return Ok(None);
        }
        values.push(value);
    }
    Ok(Some(values))
}

/// Reads outputs of forms that stand in words into `values`. Returns false for any other form or type, which
/// `read_exact_outputs` decides on. Runs no Python code.
#[inline]
pub(crate) fn read_plain_outputs(
    named: &NamedShapes,
    (layout, decimals): (Layout, &Decimals),
    object: &Bound<'_, PyAny>,
    values: &mut Vec<Value>,
) -> bool {
    values.clear();
    let entries = (object.cast_exact::<PyDict>().ok()).and_then(|dict| layout.entries(dict.as_borrowed()));
    let Some(entries) = entries.filter(|entries| entries.len() == named.names.len()) else {
        return false;
    };
    for ((entry, name), shape) in entries.iter().zip(&named.names).zip(&named.shapes) {
        let object = entry.value_under(name.bind(object.py()));
        let Some(value) = object.and_then(|object| read_plain(shape, &object, decimals)) else {
            return false;
        };
        values.push(value);
    }
    true
}

#[inline]
fn read_plain(shape: &Shape, object: &Bound<'_, PyAny>, decimals: &Decimals) -> Option<Value> {
    Some(match (&shape.ty, &shape.parts) {
        (Type::Decimal, Parts::None) => {
            let (coefficient, scale) = decimals.read_short(object)?;
            // The coefficient does not contain the sign of a zero.
            if coefficient == 0 && !decimals.is_plain(object) {
                return None;
            }
            let mut value = Value::Null;
            value.put_small_decimal(i128::from(coefficient), scale);
            value
        }
        (Type::Integer, Parts::None) => Value::Integer(integer(object.as_borrowed())?),
        (Type::Boolean, Parts::None) => Value::Boolean(object.cast_exact::<PyBool>().ok()?.is_true()),
        (Type::Float, Parts::None) => Value::Float(object.cast_exact::<PyFloat>().ok()?.value()),
        (Type::Text, Parts::None) => Value::Text(Arc::from(text(object.as_borrowed())?)),
        (Type::Enum(of), Parts::Enum(names)) => match names.iter().position(|name| name.is(object)) {
            Some(place) => Value::Member(Member(u32::try_from(place).ok()?)),
            None => Value::Member(of.member(text(object.as_borrowed())?)?),
        },
        _ => return None,
    })
}

/// Returns true if the outputs of a frameless run are these values, or `None` if its words are no values.
pub(crate) fn are_words(words: &Words<'_>, values: &[Value]) -> Option<bool> {
    if words.shape().outputs.len() != values.len() {
        return Some(false);
    }
    for (place, value) in values.iter().enumerate() {
        if !is_word(words.output(place)?, value) {
            return Some(false);
        }
    }
    Some(true)
}

fn is_word(word: Word<'_>, value: &Value) -> bool {
    match (word, value) {
        (Word::Boolean(word), Value::Boolean(value)) => word == *value,
        (Word::Integer(word), Value::Integer(value))
        | (Word::Timestamp(word), Value::Timestamp(value))
        | (Word::Duration(word), Value::Duration(value)) => word == *value,
        (Word::Float(word), Value::Float(value)) => {
            word.to_bits() == value.to_bits() || (word.is_nan() && value.is_nan())
        }
        (Word::Decimal(coefficient, scale), Value::Decimal(value)) => {
            value.as_small() == Some((i128::from(coefficient), scale))
        }
        (Word::Date(word), Value::Date(value)) => word == *value,
        (Word::Member(word), Value::Member(value)) => word == *value,
        (Word::Text(word), Value::Text(value)) => *word == **value,
        _ => false,
    }
}

fn exact_dict<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyDict>> {
    object
        .is_exact_instance_of::<PyDict>()
        .then(|| object.cast().ok())?
}

/// Returns true if an object and all its parts have the types that generated Python returns. The depth of recursion
/// is that of the type, which is limited.
fn is_exact(shape: &Shape, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(match &shape.parts {
        Parts::None => return is_exact_scalar(&shape.ty, object),
        Parts::Enum(_) => object.is_exact_instance_of::<PyString>(),
        Parts::Optional(of) => object.is_none() || is_exact(of, object)?,
        Parts::Array(of) => {
            if !object.is_exact_instance_of::<PyList>() {
                return Ok(false);
            }
            for item in object.cast::<PyList>()? {
                if !is_exact(of, &item)? {
                    return Ok(false);
                }
            }
            true
        }
        Parts::Set(of) => {
            if !object.is_exact_instance_of::<PyFrozenSet>() {
                return Ok(false);
            }
            for member in object.cast::<PyFrozenSet>()? {
                if !is_exact(of, &member)? {
                    return Ok(false);
                }
            }
            true
        }
        Parts::Map(_, of) => {
            let Some(dict) = exact_dict(object) else {
                return Ok(false);
            };
            // The keys of a map must be in order; the conversion would sort them. Strings are ordered by code point,
            // like their UTF-8; Python compares maps with other keys.
            let mut last: Option<Bound<'_, PyString>> = None;
            for (key, value) in dict {
                if !key.is_exact_instance_of::<PyString>() || !is_exact(of, &value)? {
                    return Ok(false);
                }
                let key = key.cast_into::<PyString>()?;
                if let Some(last) = &last
                    && last.to_str()? >= key.to_str()?
                {
                    return Ok(false);
                }
                last = Some(key);
            }
            true
        }
        Parts::Record(fields) => {
            let Some(dict) = exact_dict(object) else {
                return Ok(false);
            };
            if dict.len() != fields.names.len() {
                return Ok(false);
            }
            for (name, shape) in fields.names.iter().zip(&fields.shapes) {
                match dict.get_item(name.bind(object.py()))? {
                    Some(value) if is_exact(shape, &value)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
    })
}

fn is_exact_scalar(ty: &Type, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(match ty {
        Type::Boolean => object.is_exact_instance_of::<PyBool>(),
        Type::Integer => object.is_exact_instance_of::<PyInt>(),
        Type::Decimal => decimals(object.py())?.is_plain(object),
        Type::Float => object.is_exact_instance_of::<PyFloat>(),
        Type::Text => object.is_exact_instance_of::<PyString>(),
        Type::Bytes => object.is_exact_instance_of::<PyBytes>(),
        Type::Date => object.is_exact_instance_of::<PyDate>(),
        Type::Duration => object.is_exact_instance_of::<PyDelta>(),
        Type::TimeOfDay => object.is_exact_instance_of::<PyTime>(),
        Type::Timestamp => {
            if !object.is_exact_instance_of::<PyDateTime>() {
                return Ok(false);
            }
            let zone = object.cast::<PyDateTime>()?.get_tzinfo();
            let utc = PyTzInfo::utc(object.py())?;
            zone.is_some_and(|zone| zone.is(utc))
        }
        // Python compares json by its text.
        _ => false,
    })
}

/// Returns true if the values are indistinguishable, like `vesper.values.model.same`.
///
/// Does not use the operations of the engine, because a comparison must not share the defects of the engine.
pub(crate) fn are_same(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
}

fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Boolean(left), Value::Boolean(right)) => left == right,
        (Value::Integer(left), Value::Integer(right))
        | (Value::Timestamp(left), Value::Timestamp(right))
        | (Value::Duration(left), Value::Duration(right))
        | (Value::TimeOfDay(left), Value::TimeOfDay(right)) => left == right,
        (Value::Decimal(left), Value::Decimal(right)) => match (left.as_small(), right.as_small()) {
            (Some(left), Some(right)) => left == right,
            // At least one number is long.
            _ => left.to_string() == right.to_string(),
        },
        // There is one NaN, and there are two zeros.
        (Value::Float(left), Value::Float(right)) => {
            left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
        }
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Date(left), Value::Date(right)) | (Value::Period(left), Value::Period(right)) => {
            left == right
        }
        (Value::Member(left), Value::Member(right)) => left == right,
        (Value::Array(left), Value::Array(right)) | (Value::Record(left), Value::Record(right)) => {
            are_same(left, right)
        }
        (Value::Set(left), Value::Set(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right.iter())
                    .all(|(left, right)| is_same(&left, &right))
        }
        (Value::Map(left), Value::Map(right)) => {
            let keys = (left.keys().iter()).zip(right.keys().iter());
            left.keys().len() == right.keys().len()
                && keys.into_iter().all(|(left, right)| is_same(&left, &right))
                && are_same(left.values(), right.values())
        }
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}

/// Returns the approximate size of values in bytes.
pub(crate) fn bytes_of(values: &[Value]) -> usize {
    let parts = values.iter().map(|value| match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(items) | Value::Record(items) => bytes_of(items),
        Value::Set(members) => members.len() * 32,
        Value::Map(map) => map.keys().len() * 32 + bytes_of(map.values()),
        Value::Json(json) => json.text().len(),
        _ => 0,
    });
    size_of_val(values) + parts.sum::<usize>()
}
