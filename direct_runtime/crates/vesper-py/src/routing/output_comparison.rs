//! Comparison of outputs of generated Python with values of the direct engine.
//!
//! It is stricter than the conversion of inputs, which accepts an integer for a decimal and a tuple for an array: an
//! output of another type is a difference. Python (`vesper.values.model.same`) compares the forms that are missing
//! here, so a missing form costs time but never changes a result.

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyString,
    PyTzInfo, PyTzInfoAccess,
};
use vesper_interp::problems::Path;
use vesper_interp::words::{Word, Words};
use vesper_ir::{Type, Value};

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

/// Returns true if the outputs of generated Python are these values.
///
/// Combines `read_exact_outputs` and `are_same` without copying common values.
pub(crate) fn are_outputs(
    named: &NamedShapes,
    values: &[Value],
    object: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let Some(dict) = exact_dict(object) else {
        return Ok(false);
    };
    if dict.len() != named.names.len() || values.len() != named.names.len() {
        return Ok(false);
    }
    // Only the interned names in declared order match; Python compares other dicts.
    for (((key, object), name), (shape, value)) in
        (dict.iter().zip(&named.names)).zip(named.shapes.iter().zip(values))
    {
        if !name.is(&key) || !is_object(shape, value, &object)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares the outputs of a frameless run; returns `None` for forms that it does not compare. Runs no Python code,
/// because the texts of the words are borrowed.
pub(crate) fn are_words(
    named: &NamedShapes,
    (layout, decimals): (Layout, &Decimals),
    words: &Words<'_>,
    object: &Bound<'_, PyAny>,
) -> Option<bool> {
    let dict = object.cast_exact::<PyDict>().ok()?;
    let entries = layout.entries(dict.as_borrowed())?;
    let outputs = &words.shape().outputs;
    if entries.len() != named.names.len() || entries.len() != outputs.len() {
        return None;
    }
    let each = entries.iter().zip(&named.names).zip(&named.shapes).zip(outputs);
    for (((entry, name), shape), (form, at)) in each {
        let object = entry.value_under(name.bind(object.py()))?;
        if !is_word(shape, words.result(*form, *at)?, &object, decimals)? {
            return Some(false);
        }
    }
    Some(true)
}

#[inline]
fn is_word(shape: &Shape, word: Word<'_>, object: &Bound<'_, PyAny>, decimals: &Decimals) -> Option<bool> {
    let is_text = |expected: &str| text(object.as_borrowed()).is_some_and(|given| given == expected);
    Some(match (word, &shape.parts) {
        (Word::Decimal(coefficient, scale), _) => match decimals.read_short(object) {
            // The coefficient does not contain the sign of a zero.
            Some((0, _)) if !decimals.is_plain(object) => false,
            given => given? == (coefficient, scale),
        },
        (Word::Member(member), Parts::Enum(names)) => {
            let name = names.get(member.0 as usize)?;
            name.is(object) || is_text(name.bind(object.py()).to_str().ok()?)
        }
        (Word::Boolean(value), _) => {
            object.is_exact_instance_of::<PyBool>()
                && object
                    .cast::<PyBool>()
                    .is_ok_and(|given| given.is_true() == value)
        }
        (Word::Integer(value), _) => integer(object.as_borrowed())? == value,
        (Word::Float(value), _) => {
            object.is_exact_instance_of::<PyFloat>()
                && object.cast::<PyFloat>().is_ok_and(|given| {
                    let given = given.value();
                    given.to_bits() == value.to_bits() || (given.is_nan() && value.is_nan())
                })
        }
        (Word::Text(value), Parts::None) => is_text(value),
        _ => return None,
    })
}

/// Returns true if an object is exactly this value. The depth of recursion is that of the type, which is limited.
fn is_object(shape: &Shape, value: &Value, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(match (&shape.parts, value) {
        (Parts::Optional(_), Value::Null) => object.is_none(),
        (Parts::Optional(of), _) => return is_object(of, value, object),
        (Parts::Enum(names), Value::Member(member)) => {
            let name = names.get(member.0 as usize);
            object.is_exact_instance_of::<PyString>()
                && match name {
                    Some(name) if name.is(object) => true,
                    Some(name) => name.bind(object.py()).to_str()? == object.cast::<PyString>()?.to_str()?,
                    None => false,
                }
        }
        (_, Value::Boolean(value)) => {
            object.is_exact_instance_of::<PyBool>() && object.cast::<PyBool>()?.is_true() == *value
        }
        (_, Value::Integer(value)) => {
            object.is_exact_instance_of::<PyInt>()
                && object.extract::<i64>().is_ok_and(|given| given == *value)
        }
        (_, Value::Decimal(value)) if value.as_small().is_some() => {
            let decimals = decimals(object.py())?;
            decimals.is_plain(object) && decimals.read_small(object) == value.as_small()
        }
        (_, Value::Float(value)) => {
            object.is_exact_instance_of::<PyFloat>() && {
                let given = object.cast::<PyFloat>()?.value();
                given.to_bits() == value.to_bits() || (given.is_nan() && value.is_nan())
            }
        }
        (_, Value::Text(value)) => {
            object.is_exact_instance_of::<PyString>()
                && object
                    .cast::<PyString>()?
                    .to_str()
                    .is_ok_and(|given| *given == **value)
        }
        (Parts::Array(of), Value::Array(items)) => {
            if !object.is_exact_instance_of::<PyList>() {
                return Ok(false);
            }
            let list = object.cast::<PyList>()?;
            if list.len() != items.len() {
                return Ok(false);
            }
            for (item, value) in list.iter().zip(items.iter()) {
                if !is_object(of, value, &item)? {
                    return Ok(false);
                }
            }
            true
        }
        // Rare types are converted to a value first.
        _ => {
            let mut given = Value::Null;
            is_exact(shape, object)?
                && Conversion::default().value(shape, object, &Path::Input(""), &mut given)?
                && is_same(&given, value)
        }
    })
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
        | (Value::Duration(left), Value::Duration(right)) => left == right,
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
        (Value::Date(left), Value::Date(right)) => left == right,
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
