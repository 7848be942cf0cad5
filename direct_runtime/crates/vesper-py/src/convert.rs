//! Python objects to values of types without parts, and values of any type to Python, as docs/spec/values.md has it.
//!
//! An object of a subclass counts as its base value, and no method it overrides is called: types are told apart by
//! their layout (`PyLong_Check` and the like) and, for `Decimal`, by the real type; values are read through the C API
//! or through functions taken from the base type.

use std::borrow::Cow;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    IntoPyDict, PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMemoryView,
    PyString, PyType,
};
use vesper_interp::inputs::{Given, ProblemKind, convert};
use vesper_ir::{Decimal, Type, Value};

use crate::json::json_object;
use crate::names::Names;
use crate::times::{date_object, duration_object, length_given, moment_given, timestamp_object};

/// An integer of more bits has more than 1,000 digits: 10^1000 has 3,322.
const DECIMAL_BITS: u64 = 3_322;

/// What is needed of Python's `decimal`, looked up once.
struct DecimalType {
    class: Py<PyType>,
    /// `Decimal.__str__`, from the base type.
    to_text: Py<PyAny>,
}

fn decimal_type(py: Python<'_>) -> PyResult<&'static DecimalType> {
    static DECIMAL: PyOnceLock<DecimalType> = PyOnceLock::new();
    DECIMAL.get_or_try_init(py, || {
        let class = py.import("decimal")?.getattr("Decimal")?.cast_into::<PyType>()?;
        let to_text = class.getattr("__str__")?.unbind();
        Ok(DecimalType {
            class: class.unbind(),
            to_text,
        })
    })
}

/// The value of a type without parts, or the kind of the problem with it; the outer error is Python's own, such as a lack of memory.
pub(crate) fn to_scalar(ty: &Type, object: &Bound<'_, PyAny>) -> PyResult<Result<Value, ProblemKind>> {
    // Asked first, because a cast that fails makes an error to say so.
    if object.is_instance_of::<PyBool>() {
        return Ok(convert(ty, Given::Boolean(object.cast::<PyBool>()?.is_true())));
    }
    if object.is_instance_of::<PyInt>() {
        let is_wide = matches!(ty, Type::Decimal | Type::Float);
        return Ok(convert(ty, integer_given(object.cast::<PyInt>()?, is_wide)?));
    }
    if object.is_instance_of::<PyString>() {
        // Fails only for lone surrogates, which have no UTF-8 form.
        let text = object.cast::<PyString>()?;
        return Ok(convert(ty, text.to_str().map_or(Given::BrokenText, Given::Text)));
    }
    let given = match ty {
        Type::Decimal => match decimal_text(object)? {
            Some(text) => return Ok(convert(ty, Given::DecimalText(text.to_str()?))),
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
        Type::Timestamp | Type::Date => moment_given(object)?.unwrap_or(Given::Other),
        Type::Duration => length_given(object).unwrap_or(Given::Other),
        _ => Given::Other,
    };
    Ok(convert(ty, given))
}

/// The text of a `Decimal`; nothing for other objects.
pub(crate) fn decimal_text<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
    let decimal = decimal_type(object.py())?;
    let class = object.get_type();
    // Not `isinstance`: an object may claim any `__class__`.
    if !class.is(&decimal.class) && !class.is_subclass(decimal.class.bind(object.py()))? {
        return Ok(None);
    }
    let text = decimal.to_text.bind(object.py()).call1((object,))?;
    Ok(Some(text.cast_into::<PyString>()?))
}

/// A `Decimal` of this number.
pub(crate) fn decimal_object<'py>(py: Python<'py>, number: &Decimal) -> PyResult<Bound<'py, PyAny>> {
    decimal_type(py)?.class.bind(py).call1((number.to_string(),))
}

/// The bytes of a `bytes`, `bytearray` or `memoryview`; nothing for other objects.
fn bytes_of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Cow<'a, [u8]>>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(Cow::Borrowed(bytes.as_bytes())));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Some(Cow::Owned(bytes.to_vec())));
    }
    if object.is_instance_of::<PyMemoryView>() {
        // A view may skip bytes and have several dimensions; Python puts it in a row.
        let row = object.call_method0(intern!(object.py(), "tobytes"))?;
        return Ok(Some(Cow::Owned(row.cast::<PyBytes>()?.as_bytes().to_vec())));
    }
    Ok(None)
}

/// An integer; one outside 64 bits with its digits only where they are wanted.
pub(crate) fn integer_given(integer: &Bound<'_, PyInt>, is_wide: bool) -> PyResult<Given<'static>> {
    // Reads the digits of the object itself: `__index__` is called only on objects that are no integers.
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

/// The Python form of a value. Goes as deep as the type does, which is limited.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    names: &Names,
    ty: &Type,
    value: &Value,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match (ty, value) {
        (Type::Optional(of), value) if value.as_optional().is_some() => to_python(py, names, of, value)?,
        (_, Value::Boolean(value)) => PyBool::new(py, *value).to_owned().into_any(),
        (_, Value::Integer(value)) => value.into_pyobject(py)?.into_any(),
        (_, Value::Decimal(value)) => decimal_object(py, value)?,
        // There is one NaN, whatever bits an operation left in it.
        (_, Value::Float(value)) if value.is_nan() => PyFloat::new(py, f64::NAN).into_any(),
        (_, Value::Float(value)) => PyFloat::new(py, *value).into_any(),
        (_, Value::Text(value)) => PyString::new(py, value).into_any(),
        (_, Value::Bytes(value)) => PyBytes::new(py, value).into_any(),
        (_, Value::Timestamp(value)) => timestamp_object(py, *value)?,
        (_, Value::Date(value)) => date_object(py, *value)?,
        (_, Value::Duration(value)) => duration_object(py, *value)?,
        (_, Value::Json(value)) => json_object(py, value)?,
        (ty, Value::Member(member)) => match names.of(ty).get(member.0 as usize) {
            Some(name) => name.bind(py).clone().into_any(),
            None => return Err(mistyped()),
        },
        (Type::Set(of), Value::Set(members)) => {
            let members = members.iter().map(|member| to_python(py, names, of, &member));
            PyFrozenSet::new(py, members.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        (Type::Array(of), Value::Array(items)) => {
            let items = items.iter().map(|item| to_python(py, names, of, item));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        (Type::Map(of), Value::Map(map)) => {
            let dict = PyDict::new(py);
            for (key, value) in map.keys().iter().zip(map.values()) {
                dict.set_item(
                    to_python(py, names, &of.key, &key)?,
                    to_python(py, names, &of.value, value)?,
                )?;
            }
            dict.into_any()
        }
        (Type::Record(of), Value::Record(fields)) => {
            let dict = PyDict::new(py);
            for ((name, field), value) in names.of(ty).iter().zip(of.fields()).zip(fields.iter()) {
                dict.set_item(name, to_python(py, names, &field.ty, value)?)?;
            }
            dict.into_any()
        }
        (Type::Optional(_), Value::Null) => py.None().into_bound(py),
        _ => return Err(mistyped()),
    })
}

/// The verifier lets no value through that is not of its type.
#[cold]
fn mistyped() -> PyErr {
    PyRuntimeError::new_err("engine fault: a value is not of its type")
}
