//! Typed JSON of the values of a node's inputs, for tests and tools.

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use vesper_host::typed_json;
use vesper_interp::problems::Path;
use vesper_ir::Value;

use crate::calls::program::Program;
use crate::inputs::checked_inputs::Conversion;
use crate::inputs::shapes::Shape;
use crate::inputs::values::to_python;

/// Returns the typed JSON of an object that an input accepts.
#[pyfunction]
#[pyo3(signature = (program, name, value, /))]
pub fn typed_json_of(program: &Bound<'_, Program>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let shape = input_shape(program.get(), name)?;
    let mut conversion = Conversion::default();
    let mut found = Value::Null;
    if !conversion.value(shape, value, &Path::Input(name), &mut found)? {
        return Err(PyValueError::new_err("the input does not accept this value"));
    }
    let mut text = String::new();
    typed_json::write_value(&mut text, &shape.ty, &found)
        .map_err(|error| PyValueError::new_err(error.message))?;
    Ok(text)
}

/// Returns the value of an input from its typed JSON.
#[pyfunction]
#[pyo3(signature = (program, name, text, /))]
pub fn value_of_typed_json<'py>(
    program: &Bound<'py, Program>,
    name: &str,
    text: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let shape = input_shape(program.get(), name)?;
    let value = typed_json::read_value(text, &shape.ty).map_err(PyValueError::new_err)?;
    to_python(program.py(), shape, &value)
}

fn input_shape<'a>(program: &'a Program, name: &str) -> PyResult<&'a Shape> {
    program
        .input_shape(name)
        .ok_or_else(|| PyKeyError::new_err(name.to_owned()))
}
