//! Conversion of Python objects to scalar values, and of all values to Python (docs/spec/values.md).
//!
//! An object of a subclass counts as its base value, and no method that it overrides is called. Types are tested by
//! their layout (`PyLong_Check` and similar), `Decimal` by its real type. Values are read through the C API or
//! through functions of the base type.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    IntoPyDict, PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMemoryView,
    PyString,
};
use vesper_interp::inputs::{Given, ProblemKind, convert, is_too_long};
use vesper_ir::{Decimal, Member, Type, Value};

use crate::inputs::json_values::json_object;
use crate::inputs::shapes::{Parts, Shape};
use crate::inputs::times::{
    date_object, duration_object, period_object, read_duration, read_moment, read_period, read_time,
    time_object, timestamp_object,
};
use crate::layout::decimals::decimals;

/// Maximum number of bits of an integer with at most 1,000 digits: 10^1000 has 3,322.
const DECIMAL_BITS: u64 = 3_322;

/// Writes the value of a scalar type, or returns the kind of its problem. The outer error is an exception of Python,
/// such as a lack of memory.
#[inline]
pub(crate) fn to_scalar(
    shape: &Shape,
    object: &Bound<'_, PyAny>,
    out: &mut Value,
) -> PyResult<Result<(), ProblemKind>> {
    // The common types first, without testing for others.
    match (&shape.ty, &shape.parts) {
        (Type::Decimal, _) => {
            if let Some((coefficient, scale)) = decimals(object.py())?.read_small(object) {
                out.set_small_decimal(coefficient, scale);
                return Ok(Ok(()));
            }
        }
        (Type::Integer, _) => {
            if object.is_exact_instance_of::<PyInt>()
                && let Given::Integer(value) = read_integer(object.cast::<PyInt>()?, false)?
            {
                out.set_integer(value);
                return Ok(Ok(()));
            }
        }
        (Type::Boolean, _) if object.is_exact_instance_of::<PyBool>() => {
            out.set_boolean(object.cast::<PyBool>()?.is_true());
            return Ok(Ok(()));
        }
        (Type::Text, _) => {
            if object.is_exact_instance_of::<PyString>()
                && let Ok(text) = object.cast::<PyString>()?.to_str()
                && !is_too_long(text)
            {
                *out = Value::Text(Arc::from(text));
                return Ok(Ok(()));
            }
        }
        (_, Parts::Enum(names)) => {
            if let Some(place) = names.iter().position(|name| name.is(object))
                && let Ok(place) = u32::try_from(place)
            {
                *out = Value::Member(Member(place));
                return Ok(Ok(()));
            }
        }
        _ => {}
    }
    Ok(any_scalar(&shape.ty, object)?.map(|value| *out = value))
}

/// Converts any object to a value of a scalar type.
pub(crate) fn any_scalar(ty: &Type, object: &Bound<'_, PyAny>) -> PyResult<Result<Value, ProblemKind>> {
    // Tests with `is_instance_of`, because a failed cast creates an error object.
    if object.is_instance_of::<PyBool>() {
        return Ok(convert(ty, Given::Boolean(object.cast::<PyBool>()?.is_true())));
    }
    if object.is_instance_of::<PyInt>() {
        let is_wide = matches!(ty, Type::Decimal | Type::Float);
        return Ok(convert(ty, read_integer(object.cast::<PyInt>()?, is_wide)?));
    }
    if object.is_instance_of::<PyString>() {
        // Fails only for lone surrogates, which have no UTF-8 form.
        let text = object.cast::<PyString>()?;
        return Ok(convert(ty, text.to_str().map_or(Given::BrokenText, Given::Text)));
    }
    let given = match ty {
        Type::Decimal => match decimals(object.py())?.read(object)? {
            Some(number) => Given::Decimal(number),
            None => Given::Other,
        },
        Type::Float => match object.cast::<PyFloat>() {
            Ok(number) => Given::Float(number.value()),
            Err(_) => Given::Other,
        },
        Type::Bytes => match bytes_of(object)? {
            Some(bytes) => return Ok(convert(ty, Given::Bytes(&bytes))),
            None => Given::Other,
        },
        Type::Timestamp | Type::Date => read_moment(object)?.unwrap_or(Given::Other),
        Type::Duration => read_duration(object).unwrap_or(Given::Other),
        Type::TimeOfDay => read_time(object).unwrap_or(Given::Other),
        Type::Period => read_period(object)?.unwrap_or(Given::Other),
        _ => Given::Other,
    };
    Ok(convert(ty, given))
}

/// Returns the bytes of a `bytes`, `bytearray` or `memoryview`; `None` for other objects.
fn bytes_of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Cow<'a, [u8]>>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(Cow::Borrowed(bytes.as_bytes())));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Some(Cow::Owned(bytes.to_vec())));
    }
    if object.is_instance_of::<PyMemoryView>() {
        // A view may skip bytes and have several dimensions; `tobytes` makes them contiguous.
        let row = object.call_method0(intern!(object.py(), "tobytes"))?;
        return Ok(Some(Cow::Owned(row.cast::<PyBytes>()?.as_bytes().to_vec())));
    }
    Ok(None)
}

/// Reads an integer. Digits of one outside 64 bits are read only if `is_wide`.
pub(crate) fn read_integer(integer: &Bound<'_, PyInt>, is_wide: bool) -> PyResult<Given<'static>> {
    // Reads the digits of the object itself: `__index__` is called only on objects that are not integers.
    if let Ok(value) = integer.extract::<i64>() {
        return Ok(Given::Integer(value));
    }
    if !is_wide {
        return Ok(Given::WideInteger(None));
    }
    let py = integer.py();
    let class = py.get_type::<PyInt>();
    let bits: u64 = class
        .call_method1(intern!(py, "bit_length"), (integer,))?
        .extract()?;
    if bits > DECIMAL_BITS {
        return Ok(Given::WideInteger(None));
    }
    // One bit more than the magnitude, for the sign.
    let length = bits / 8 + 1;
    let signed = [("signed", true)].into_py_dict(py)?;
    let bytes = class.call_method(
        intern!(py, "to_bytes"),
        (integer, length, "little"),
        Some(&signed),
    )?;
    Ok(Given::WideInteger(
        Decimal::from_signed_bytes_le(bytes.cast::<PyBytes>()?.as_bytes()).ok(),
    ))
}

/// Converts a value to a Python object. The depth of recursion is that of the type, which is limited.
pub(crate) fn to_python<'py>(py: Python<'py>, shape: &Shape, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match (&shape.parts, value) {
        (Parts::Optional(_), Value::Null) => py.None().into_bound(py),
        (Parts::Optional(of), value) => to_python(py, of, value)?,
        (_, Value::Boolean(value)) => PyBool::new(py, *value).to_owned().into_any(),
        (_, Value::Integer(value)) => value.into_pyobject(py)?.into_any(),
        (_, Value::Decimal(value)) => decimals(py)?.object(py, value)?,
        // There is one NaN, whatever bits an operation left in it.
        (_, Value::Float(value)) if value.is_nan() => PyFloat::new(py, f64::NAN).into_any(),
        (_, Value::Float(value)) => PyFloat::new(py, *value).into_any(),
        (_, Value::Text(value)) => PyString::new(py, value).into_any(),
        (_, Value::Bytes(value)) => PyBytes::new(py, value).into_any(),
        (_, Value::Timestamp(value)) => timestamp_object(py, *value)?,
        (_, Value::Date(value)) => date_object(py, *value)?,
        (_, Value::Duration(value)) => duration_object(py, *value)?,
        (_, Value::TimeOfDay(value)) => time_object(py, *value)?,
        (_, Value::Period(value)) => period_object(py, *value)?,
        (_, Value::Json(value)) => json_object(py, value)?,
        (Parts::Enum(names), Value::Member(member)) => match names.get(member.0 as usize) {
            Some(name) => name.bind(py).clone().into_any(),
            None => return Err(type_fault()),
        },
        (Parts::Set(of), Value::Set(members)) => {
            let members = members.iter().map(|member| to_python(py, of, &member));
            PyFrozenSet::new(py, members.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        (Parts::Array(of), Value::Array(items)) => {
            let items = items.iter().map(|item| to_python(py, of, item));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        (Parts::Map(of_key, of_value), Value::Map(map)) => {
            let dict = PyDict::new(py);
            for (key, value) in map.keys().iter().zip(map.values()) {
                dict.set_item(to_python(py, of_key, &key)?, to_python(py, of_value, value)?)?;
            }
            dict.into_any()
        }
        (Parts::Record(fields), Value::Record(values)) => {
            to_dict(py, &fields.names, &fields.shapes, values)?.into_any()
        }
        _ => return Err(type_fault()),
    })
}

/// Returns a new dict of these values under these names.
pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    names: &[Py<PyString>],
    shapes: &[Arc<Shape>],
    values: &[Value],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for ((name, shape), value) in names.iter().zip(shapes).zip(values) {
        dict.set_item(name.bind(py), to_python(py, shape, value)?)?;
    }
    Ok(dict)
}

/// Reports a value of another type than declared, which the verifier rules out.
#[cold]
fn type_fault() -> PyErr {
    PyRuntimeError::new_err("engine fault: a value is not of its type")
}
