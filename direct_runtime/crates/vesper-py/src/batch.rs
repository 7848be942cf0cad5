//! Batches: a table of any library that speaks Arrow in, a stream of Arrow out (docs/spec/batches.md).
//!
//! The global lock is let go while rows run. It is taken for the rows that end with an error: what an error says is
//! written by Python, once for those that say the same.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, c_void};
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyCapsule, PyDict, PyFloat, PyList, PyString, PyTuple};
use vesper_arrow::{
    Array, ArrayRef, ArrowError, Cell, Crew, Decimals, Ended, Exported, Failed, Form, Holder, Options, Part,
    Plan, RecordBatch, RecordBatchReader, Refusal, SchemaRef, Table, Terms, Told, cell, error_column,
    inputs_of_row, json_text, run_parts,
};
use vesper_interp::Outcome;
use vesper_interp::guard::guarded;
use vesper_ir::Value;

use crate::decimals::decimals;
use crate::outcome::{bad_input, fault};
use crate::program::{Program, limits};
use crate::times::{date_object, duration_object, timestamp_object};

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// How many parts for each thread are run ahead of who reads the answer: enough that no thread waits for him, and few
/// enough that a stream of any length needs little memory.
const PARTS_A_THREAD: usize = 4;
/// How often is looked whether somebody wants to stop, for which the lock is needed.
const PATIENCE: Duration = Duration::from_millis(100);

/// The rows of a table, run when somebody asks for them.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Batches {
    reader: Mutex<Option<Reader>>,
    /// What Python raised while rows ran: the interface of Arrow has room for its text alone.
    raised: Arc<Mutex<Option<PyErr>>>,
    names: Vec<String>,
}

#[pymethods]
impl Batches {
    #[new]
    #[pyo3(signature = (program, table, explain, /, *, form, decimals, keep, error_column, threads, now, fuel, seconds))]
    #[allow(clippy::too_many_arguments, reason = "each is a word of the caller's")]
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
    ) -> PyResult<Self> {
        let own = program.get();
        own.refuse_effects()?;
        let mut limits = limits(fuel, seconds)?;
        // It looks after the lock of the thread that called, and these run on others.
        limits.watch = None;
        let terms = Terms {
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
            decimals: said(decimals)?,
            keep,
            error_column,
        };
        let table = taken(table)?;
        let plan =
            Plan::new(own.compiled(), &table.schema(), &options).map_err(|refusal| refused(py, &refusal))?;
        let names = plan.schema().fields().iter().map(|field| field.name().clone());
        let names = names.collect();
        let raised = Arc::default();
        let reader = Reader {
            program: Arc::new(Held(program)),
            table,
            plan: Arc::new(plan),
            terms,
            explain,
            crew: None,
            failed: None,
            ready: VecDeque::new(),
            looked: Instant::now(),
            told: HashMap::new(),
            no_errors: None,
            look: None,
            raised: Arc::clone(&raised),
            is_over: false,
        };
        Ok(Self {
            reader: Mutex::new(Some(reader)),
            raised,
            names,
        })
    }

    /// The names of the columns of the answer.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Some of the rows are looked at when they have run: `choose` is asked which of so many, counted from 0, and `tell` is
    /// told of those that were run, as pairs of the place and a dict of inputs, how many rows there were, and how
    /// many nanoseconds all of them took.
    #[pyo3(signature = (choose, tell, /))]
    fn look(&self, choose: Py<PyAny>, tell: Py<PyAny>) -> PyResult<()> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = reader
            .as_mut()
            .ok_or_else(|| PyValueError::new_err("somebody reads the answer of this batch already"))?;
        reader.look = Some(Look { choose, tell });
        Ok(())
    }

    /// The answer as a stream, for any library that speaks Arrow. There is one, and it is read once.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Whoever asks for another schema may cast what comes: the interface allows that it is not followed.
        let _ = requested_schema;
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = reader.take().ok_or_else(|| {
            PyValueError::new_err("the answer of a batch is read once, and somebody reads it already")
        })?;
        let stream = Exported::new(Box::new(reader)).into_inner();
        PyCapsule::new_with_value(py, stream, STREAM)
    }

    /// What Python raised while rows ran; nothing where nothing was.
    fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn said(decimals: &Bound<'_, PyAny>) -> PyResult<Decimals> {
    if decimals.is_none() {
        return Ok(Decimals::Found);
    }
    if decimals.is_instance_of::<PyString>() {
        return Ok(Decimals::Text);
    }
    Ok(Decimals::Said(decimals.extract()?))
}

/// A `KeyError`-like refusal is made by Python, which knows what names are near.
fn refused(py: Python<'_>, refusal: &Refusal) -> PyErr {
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

/// Takes over what a table gives of itself.
fn taken(table: &Bound<'_, PyAny>) -> PyResult<Table> {
    let py = table.py();
    if table.hasattr(intern!(py, "__arrow_c_stream__"))? {
        let capsule = table.call_method0(intern!(py, "__arrow_c_stream__"))?;
        let stream = pointer(&capsule, STREAM)?;
        // SAFETY: a capsule of this name holds such a stream, and it is held here until the stream is taken over.
        return unsafe { Table::of_stream(stream) }.map_err(|error| arrow_error(&error));
    }
    if table.hasattr(intern!(py, "__arrow_c_array__"))? {
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
            table.call_method0(intern!(py, "__arrow_c_array__"))?.extract()?;
        let (schema, array) = (pointer(&schema, SCHEMA)?, pointer(&array, ARRAY)?);
        // SAFETY: capsules of these names, which came together and are held here, hold such structures of one array.
        return unsafe { Table::of_array(schema, array) }.map_err(|error| arrow_error(&error));
    }
    Err(PyTypeError::new_err(
        "a table has a method __arrow_c_stream__ or __arrow_c_array__",
    ))
}

/// The program, for as long as threads run it.
struct Held(Py<Program>);

impl Holder for Held {
    fn program(&self) -> &vesper_interp::Program {
        self.0.get().compiled()
    }
}

/// The answer, made as it is asked for.
struct Reader {
    program: Arc<Held>,
    table: Table,
    plan: Arc<Plan>,
    terms: Terms,
    explain: Py<PyAny>,
    /// Made for the first two parts: a table of one is run by who asks.
    crew: Option<Crew>,
    /// What the stream ended with, after all that they have.
    failed: Option<ArrowError>,
    /// The parts that were run by who asks, and not given away yet.
    ready: VecDeque<Part>,
    /// When was last looked whether somebody wants to stop.
    looked: Instant,
    /// What was said of failures that say the same in every row.
    told: HashMap<String, Told>,
    /// The column of errors of a part without any, which the next part of the same length shares.
    no_errors: Option<ArrayRef>,
    look: Option<Look>,
    raised: Arc<Mutex<Option<PyErr>>>,
    is_over: bool,
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.plan.schema())
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let batch = self.go_on();
        // After an error there is nothing more.
        self.is_over = !matches!(batch, Ok(Some(_)));
        if self.is_over {
            self.leave();
        }
        batch.transpose()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Reader {
    /// Ends the threads. They are waited for without the lock: what they drop may need it.
    fn leave(&mut self) {
        if let Some(crew) = self.crew.take() {
            unlocked(|| drop(crew));
        }
    }

    /// The next part of the answer.
    fn go_on(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let part = loop {
            // Whoever asks may hold the global lock or not, on any thread. It is not taken where nothing needs it: who waits
            // for it waits for milliseconds where other threads compute.
            let ran = unlocked(|| self.run()).map_err(|failed| match failed {
                Failed::Arrow(error) => error,
                Failed::Engine(message) => {
                    foreign(&format!("engine fault: {message}; this is a bug in Vesper"))
                }
                Failed::Over => foreign("the batch was left"),
            })?;
            if self.looked.elapsed() >= PATIENCE {
                Python::attach(|py| py.check_signals().map_err(|error| self.keep(py, error)))?;
                self.looked = Instant::now();
            }
            match ran {
                Ran::Part(part) => break *part,
                Ran::Waits => {}
                Ran::Over => return Ok(None),
            }
        };
        if let Some(look) = &self.look {
            Python::attach(|py| {
                look.at(py, self.program.0.get(), &self.plan, &part)
                    .map_err(|error| self.keep(py, error))
            })?;
        }
        let told = if part.errors.is_empty() {
            Vec::new()
        } else {
            Python::attach(|py| self.told_of(py, &part).map_err(|error| self.keep(py, error)))?
        };
        let mut columns = part.columns;
        columns.push(self.errors(part.given.num_rows(), &told)?);
        RecordBatch::try_new(Arc::clone(self.plan.schema()), columns).map(Some)
    }

    /// Runs the next part, or waits a while for those who do.
    fn run(&mut self) -> Result<Ran, Failed> {
        let ahead = self.terms.threads.get() * PARTS_A_THREAD;
        if self.crew.is_none() {
            if let Some(part) = self.ready.pop_front() {
                return Ok(Ran::Part(Box::new(part)));
            }
            let parts = self.table.parts(ahead)?;
            let wanted = NonZeroUsize::new(self.terms.threads.get().min(parts.len()));
            let Some(threads) = wanted else {
                return Ok(Ran::Over);
            };
            if threads.get() > 1 {
                self.crew = Crew::new(&self.program, &self.plan, &self.terms, threads);
            }
            let Some(crew) = &self.crew else {
                let program = self.program.program();
                self.ready = run_parts(program, &self.plan, parts, &self.terms)?.into();
                return Ok(self
                    .ready
                    .pop_front()
                    .map_or(Ran::Over, |part| Ran::Part(Box::new(part))));
            };
            for part in parts {
                crew.give(part);
            }
        }
        let Some(crew) = &self.crew else {
            return Ok(Ran::Over);
        };
        if !crew.is_here() {
            return Err(Failed::Arrow(foreign(
                "the process was forked after the batch was begun; read its answer where it was begun, or begin another",
            )));
        }
        while self.failed.is_none() && crew.given() < ahead {
            match self.table.parts(1) {
                Ok(parts) if parts.is_empty() => break,
                Ok(parts) => parts.into_iter().for_each(|part| crew.give(part)),
                Err(error) => self.failed = Some(error),
            }
        }
        if crew.given() == 0 {
            return self
                .failed
                .take()
                .map_or(Ok(Ran::Over), |error| Err(error.into()));
        }
        match crew.take(PATIENCE) {
            Some(ran) => Ok(Ran::Part(Box::new(ran?))),
            None => Ok(Ran::Waits),
        }
    }

    fn keep(&self, py: Python<'_>, error: PyErr) -> ArrowError {
        let told = foreign(&error.value(py).to_string());
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        *raised = Some(error);
        told
    }

    /// What there is to say of the rows that have an error.
    fn told_of(&mut self, py: Python<'_>, part: &Part) -> PyResult<Vec<(usize, Told)>> {
        let rows = part.errors.iter();
        rows.map(|(row, ended)| Ok((*row, self.told(py, &part.given, *row, ended)?)))
            .collect()
    }

    fn errors(&mut self, length: usize, told: &[(usize, Told)]) -> Result<ArrayRef, ArrowError> {
        if !told.is_empty() {
            return error_column(length, told);
        }
        if let Some(known) = self.no_errors.as_ref().filter(|known| known.len() == length) {
            return Ok(Arc::clone(known));
        }
        let made = error_column(length, told)?;
        self.no_errors = Some(Arc::clone(&made));
        Ok(made)
    }

    fn told(&mut self, py: Python<'_>, given: &RecordBatch, row: usize, ended: &Ended) -> PyResult<Told> {
        let shown = self.program.0.get().shown();
        let (raw, inputs, same) = match ended {
            Ended::Misfit(place, value) => return Ok(misfit(self.program.0.get(), *place, value)),
            Ended::Panicked(message) => (fault(py, message)?, None, None),
            Ended::Refused(problems) => {
                let inputs = match json_text(&self.plan, given, row) {
                    Some(text) => PyString::new(py, text).into_any(),
                    None => row_object(py, given, row)?.into_any(),
                };
                (bad_input(py, problems)?, Some(inputs), None)
            }
            Ended::Otherwise(outcome) => {
                let same = match outcome {
                    Outcome::Failed { code, expression } => Some(format!("{} {expression}", code.name())),
                    Outcome::LimitHit(limit) => Some(format!("limit {limit}")),
                    _ => None,
                };
                if let Some(told) = same.as_ref().and_then(|same| self.told.get(same)) {
                    return Ok(told.clone());
                }
                (shown.outcome(py, outcome)?, None, same)
            }
        };
        let (kind, code, place, message) = self.explain.bind(py).call1((raw, inputs))?.extract()?;
        let told = Told {
            kind,
            code,
            place,
            message,
        };
        if let Some(same) = same {
            self.told.insert(same, told.clone());
        }
        Ok(told)
    }
}

/// Somebody who looks at some of the rows.
struct Look {
    choose: Py<PyAny>,
    tell: Py<PyAny>,
}

impl Look {
    fn at(&self, py: Python<'_>, program: &Program, plan: &Plan, part: &Part) -> PyResult<()> {
        let rows = part.given.num_rows();
        let places: Vec<usize> = self.choose.bind(py).call1((rows,))?.extract()?;
        let told = PyList::empty(py);
        for place in places {
            let found = guarded(|| inputs_of_row(program.compiled(), plan, &part.given, place));
            if let Some(values) = found.ok().flatten() {
                told.append((place, program.shown_inputs(py, &values)?))?;
            }
        }
        if !told.is_empty() {
            let took = u64::try_from(part.took.as_nanos()).unwrap_or(u64::MAX);
            self.tell.bind(py).call1((told, rows, took))?;
        }
        Ok(())
    }
}

/// What there is of the next part.
enum Ran {
    Part(Box<Part>),
    /// It runs.
    Waits,
    /// There is none.
    Over,
}

/// Does this without the global lock, whether or not the caller holds it; who holds it has it again afterwards.
fn unlocked<T: Send>(does: impl FnOnce() -> T + Send) -> T {
    // SAFETY: it asks about this thread, and nothing else.
    if unsafe { ffi::PyGILState_Check() } == 0 {
        return does();
    }
    Python::attach(|py| py.detach(does))
}

/// An error of the interface, which ends texts with a zero.
fn foreign(message: &str) -> ArrowError {
    ArrowError::ComputeError(message.replace('\0', "\u{fffd}"))
}

/// A number that its column has no room for.
fn misfit(program: &Program, place: usize, value: &Value) -> Told {
    let output = program.compiled().node().outputs.get(place);
    let name = output.map_or("an output", |output| &output.name);
    let what = match value {
        Value::Decimal(number) => format!("is {number}, which"),
        _ => "holds a decimal that".to_owned(),
    };
    Told {
        kind: "failed".to_owned(),
        code: "does_not_fit".to_owned(),
        place: None,
        message: format!(
            "`{name}` {what} its column cannot hold without rounding it; ask for texts (decimals=\"text\") or for \
             another number of digits after the point (decimals={{\"{name}\": N}})"
        ),
    }
}

/// A row, as a dict of what a caller would have given.
fn row_object<'py>(py: Python<'py>, given: &RecordBatch, row: usize) -> PyResult<Bound<'py, PyDict>> {
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
            None => named(py, "a timestamp outside the years 1 to 9999"),
        },
        Cell::NaiveMoment(moment) => match in_range(*moment, vesper_ir::time::timestamp) {
            Some(moment) => {
                let replaced = PyDict::new(py);
                replaced.set_item(intern!(py, "tzinfo"), py.None())?;
                timestamp_object(py, moment)?.call_method(intern!(py, "replace"), (), Some(&replaced))?
            }
            None => named(py, "a timestamp outside the years 1 to 9999"),
        },
        Cell::Day(day) => match vesper_ir::time::date(*day) {
            Ok(day) => date_object(py, day)?,
            Err(_) => named(py, "a date outside the years 1 to 9999"),
        },
        Cell::Length(length) => match in_range(*length, vesper_ir::time::duration) {
            Some(length) => duration_object(py, length)?,
            None => named(py, "a duration that is too long"),
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
        Cell::Entries(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                PyTuple::new(py, [cell_object(py, key)?, cell_object(py, value)?]).map(Bound::into_any)
            });
            PyList::new(py, entries.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Cell::Decimal(Err(_)) => named(py, "a decimal that is too long"),
        Cell::Finer => named(py, "a time finer than a microsecond"),
        Cell::Other(ty) => named(py, &format!("a value of Arrow's {ty}")),
    })
}

fn in_range<E>(given: i128, within: impl Fn(i128) -> Result<i64, E>) -> Option<i64> {
    within(given).ok()
}

/// What stands in a message for a cell that Python has no object for.
fn named<'py>(py: Python<'py>, what: &str) -> Bound<'py, PyAny> {
    PyString::new(py, what).into_any()
}
