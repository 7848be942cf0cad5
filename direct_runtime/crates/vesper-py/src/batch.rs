//! Batches: a node over an Arrow table, with an Arrow stream as its result (docs/spec/batches.md).
//!
//! Rows run without the global lock. It is acquired for rows that end with an error, because Python writes the
//! messages, each once for equal failures.

use std::ffi::{CStr, c_void};
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString};
use vesper_arrow::{ArrowError, Decimals, ExportedStream, Form, Options, Plan, Refusal, RunTerms, Table};

use crate::calls::program::{Program, limits};

mod cells;
mod reader;
mod row_messages;

use reader::{Reader, RowInspector, SharedReader};

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// The rows of a table, which run when the stream is read.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Batches {
    reader: Mutex<Option<Reader>>,
    /// The exception that Python raised while rows ran; an Arrow stream transports only its text.
    raised: Arc<Mutex<Option<PyErr>>>,
    names: Vec<String>,
}

#[pymethods]
impl Batches {
    #[new]
    #[pyo3(signature = (program, table, explain, /, *, form, decimals, keep, error_column, threads, now, fuel, seconds, memory))]
    #[allow(clippy::too_many_arguments, reason = "all are keyword arguments in Python")]
    fn new(
        py: Python<'_>,
        program: Py<Program>,
        table: &Bound<'_, PyAny>,
        explain: Py<PyAny>,
        form: &str,
        decimals: &Bound<'_, PyAny>,
        keep: Vec<String>,
        error_column: String,
        threads: usize,
        now: Option<&Bound<'_, PyAny>>,
        fuel: Option<u64>,
        seconds: Option<f64>,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let own = program.get();
        own.refuse_effects()?;
        let mut limits = limits(fuel, seconds, memory)?;
        // The watch releases the lock of the calling thread, but rows run on other threads.
        limits.watch = None;
        let terms = RunTerms {
            now: own.now(now)?,
            limits,
            threads: NonZeroUsize::new(threads)
                .ok_or_else(|| PyValueError::new_err("a batch needs at least one thread"))?,
        };
        let options = Options {
            form: match form {
                "typed" => Form::Typed,
                "spelled" => Form::Spelled,
                "json" => Form::Json,
                _ => return Err(PyValueError::new_err("a table is typed, spelled or json")),
            },
            decimals: read_decimals(decimals)?,
            keep,
            error_column,
        };
        let table = import_table(table)?;
        let plan = Plan::new(own.compiled(), &table.schema(), &options)
            .map_err(|refusal| refusal_error(py, &refusal))?;
        let names = plan.schema().fields().iter().map(|field| field.name().clone());
        let names = names.collect();
        let raised = Arc::default();
        let reader = Reader::new(program, table, plan, terms, explain, Arc::clone(&raised));
        Ok(Self {
            reader: Mutex::new(Some(reader)),
            raised,
            names,
        })
    }

    /// Returns the names of the result columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Registers callbacks that inspect some of the rows after they have run.
    ///
    /// `choose` receives a number of rows and returns positions, counted from 0. `tell` receives pairs of position
    /// and inputs of the rows that ran, the number of rows, their start (nanoseconds since 1970) and their total
    /// nanoseconds.
    #[pyo3(signature = (choose, tell, /))]
    fn look(&self, choose: Py<PyAny>, tell: Py<PyAny>) -> PyResult<()> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = reader
            .as_mut()
            .ok_or_else(|| PyValueError::new_err("the answer of this batch is already being read"))?;
        reader.set_inspector(RowInspector { choose, report: tell });
        Ok(())
    }

    /// Returns the result as an Arrow stream, which can be read once.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a stream of another schema than requested; the reader may cast it.
        let _ = requested_schema;
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = reader.take().ok_or_else(|| {
            PyValueError::new_err("the answer of a batch can be read once, and it is already being read")
        })?;
        let stream = ExportedStream::new(Box::new(SharedReader::new(reader))).into_inner();
        PyCapsule::new_with_value(py, stream, STREAM)
    }

    /// Returns the exception that Python raised while rows ran, if any.
    fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn read_decimals(decimals: &Bound<'_, PyAny>) -> PyResult<Decimals> {
    if decimals.is_none() {
        return Ok(Decimals::Inferred);
    }
    if decimals.is_instance_of::<PyString>() {
        return Ok(Decimals::Text);
    }
    Ok(Decimals::Scales(decimals.extract()?))
}

/// Returns the parts of a `ValueError`, from which Python makes a message with similar names.
fn refusal_error(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let names: Vec<String> = match refusal {
        Refusal::NoInput(names) | Refusal::NoColumn(names) => names.clone(),
        Refusal::NothingToKeep(name) => vec![name.clone()],
        _ => Vec::new(),
    };
    let kind = match refusal {
        Refusal::NoInput(_) => "no_input",
        Refusal::NoColumn(_) => "no_column",
        Refusal::NothingToKeep(_) => "nothing_to_keep",
        _ => "other",
    };
    match (refusal.to_string(), kind, names).into_pyobject(py) {
        Ok(told) => PyValueError::new_err(told.unbind()),
        Err(error) => error,
    }
}

fn pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<c_void>> {
    capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))
}

fn arrow_error(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("the table cannot be read: {error}"))
}

/// Imports a table through its Arrow interface.
fn import_table(table: &Bound<'_, PyAny>) -> PyResult<Table> {
    let py = table.py();
    if table.hasattr(intern!(py, "__arrow_c_stream__"))? {
        let capsule = table.call_method0(intern!(py, "__arrow_c_stream__"))?;
        let stream = pointer(&capsule, STREAM)?;
        // SAFETY: a capsule of this name holds such a stream, and is held here until the stream is imported.
        return unsafe { Table::of_stream(stream) }.map_err(|error| arrow_error(&error));
    }
    if table.hasattr(intern!(py, "__arrow_c_array__"))? {
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
            table.call_method0(intern!(py, "__arrow_c_array__"))?.extract()?;
        let (schema, array) = (pointer(&schema, SCHEMA)?, pointer(&array, ARRAY)?);
        // SAFETY: capsules of these names from one call hold the structures of one array, and are held here.
        return unsafe { Table::of_array(schema, array) }.map_err(|error| arrow_error(&error));
    }
    Err(PyTypeError::new_err(
        "a table has a method __arrow_c_stream__ or __arrow_c_array__",
    ))
}
