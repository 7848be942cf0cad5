//! The answer of a batch, made as it is asked for: by threads ahead of who reads it, or by who asks.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use vesper_arrow::{
    Array, ArrayRef, ArrowError, Part, PartError, Plan, ProgramHolder, RecordBatch, RecordBatchReader,
    RowEnd, RowError, RunTerms, SchemaRef, Table, ThreadPool, error_column, inputs_of_row, json_text,
    run_part,
};
use vesper_interp::Outcome;
use vesper_interp::guard::guarded;
use vesper_ir::Value;

use super::cells::row_object;
use crate::calls::outcome::{bad_input, fault};
use crate::calls::program::Program;
use crate::global_lock::{with_lock, without_lock};

/// How many parts for each thread are run ahead of who reads the answer: enough that no thread waits for him, and few
/// enough that a stream of any length needs little memory.
const PARTS_PER_THREAD: usize = 4;
/// How often is looked whether somebody wants to stop, for which the lock is needed.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);
/// Of so many rows, or blocks of them, that are run by who asks, one is asked after the clock.
const CLOCK_INTERVAL: u32 = 16;

/// The program, for as long as threads run it.
struct ProgramHandle(Py<Program>);

impl ProgramHolder for ProgramHandle {
    fn program(&self) -> &vesper_interp::Program {
        self.0.get().compiled()
    }
}

/// The answer, made as it is asked for.
pub(super) struct Reader {
    program: Arc<ProgramHandle>,
    table: Table,
    plan: Arc<Plan>,
    terms: RunTerms,
    explain: Py<PyAny>,
    /// Made for the first two parts: a table of one is run by who asks.
    pool: Option<ThreadPool>,
    /// What the stream ended with, after all that they have.
    failed: Option<ArrowError>,
    /// When was last looked whether somebody wants to stop.
    last_check: Instant,
    /// What was said of failures that say the same in every row.
    explanations: HashMap<String, RowError>,
    /// The column of errors of a part without any, which the next part of the same length shares.
    no_errors: Option<ArrayRef>,
    inspector: Option<RowInspector>,
    raised: Arc<Mutex<Option<PyErr>>>,
    is_over: bool,
}

/// The reader in the hands of another library.
pub(super) struct SharedReader {
    schema: SchemaRef,
    /// Nobody may read from two threads at once. Who does so all the same is told.
    reader: Mutex<Option<Reader>>,
}

impl SharedReader {
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            schema: Arc::clone(reader.plan.schema()),
            reader: Mutex::new(Some(reader)),
        }
    }
}

impl RecordBatchReader for SharedReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for SharedReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.reader.try_lock() {
            Ok(mut reader) => reader.as_mut()?.next(),
            Err(_) => Some(Err(stream_error(
                "two threads read the answer of a batch at once; one does",
            ))),
        }
    }
}

impl Drop for SharedReader {
    fn drop(&mut self) {
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut reader) = reader.take() else {
            return;
        };
        reader.stop_threads();
        let mut reader = Some(reader);
        if with_lock(|_| drop(reader.take())).is_none() {
            // Python is at its end, and so is all that it had.
            std::mem::forget(reader);
        }
    }
}

impl Reader {
    pub(super) fn new(
        program: Py<Program>,
        table: Table,
        plan: Plan,
        terms: RunTerms,
        explain: Py<PyAny>,
        raised: Arc<Mutex<Option<PyErr>>>,
    ) -> Self {
        Self {
            program: Arc::new(ProgramHandle(program)),
            table,
            plan: Arc::new(plan),
            terms,
            explain,
            pool: None,
            failed: None,
            last_check: Instant::now(),
            explanations: HashMap::new(),
            no_errors: None,
            inspector: None,
            raised,
            is_over: false,
        }
    }

    /// From now on.
    pub(super) fn set_inspector(&mut self, inspector: RowInspector) {
        self.inspector = Some(inspector);
    }

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        if self.is_over {
            return None;
        }
        let batch = self.next_batch();
        // After an error there is nothing more.
        self.is_over = !matches!(batch, Ok(Some(_)));
        if self.is_over {
            self.stop_threads();
        }
        batch.transpose()
    }

    /// Ends the threads. They are waited for without the lock: nobody else should.
    fn stop_threads(&mut self) {
        let mut pool = self.pool.take();
        if pool.is_some() {
            without_lock(|| drop(pool.take()));
        }
    }

    /// The next part of the answer.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let part = loop {
            // Whoever asks may hold the global lock or not, on any thread. It is not taken where nothing needs it: who waits
            // for it waits for milliseconds where other threads compute.
            let ran = without_lock(|| self.run()).map_err(|failed| match failed {
                PartError::Arrow(error) => error,
                PartError::Engine(message) => {
                    stream_error(&format!("engine fault: {message}; this is a bug in Vesper"))
                }
                PartError::Cancelled => stream_error("the batch was left"),
            })?;
            if self.last_check.elapsed() >= SIGNAL_INTERVAL {
                self.last_check = Instant::now();
                with_python(&self.raised, check_signals)?;
            }
            match ran {
                Next::Part(part) => break *part,
                Next::Running => {}
                Next::End => return Ok(None),
            }
        };
        if let Some(inspector) = &self.inspector {
            with_python(&self.raised, |py| {
                inspector.inspect(py, self.program.0.get(), &self.plan, &part)
            })?;
        }
        let explained = if part.errors.is_empty() {
            Vec::new()
        } else {
            let raised = Arc::clone(&self.raised);
            with_python(&raised, |py| self.explain_rows(py, &part))?
        };
        let mut columns = part.columns;
        columns.push(self.errors(part.given.num_rows(), &explained)?);
        RecordBatch::try_new(Arc::clone(self.plan.schema()), columns).map(Some)
    }

    /// Runs the next part, or waits a while for those who do.
    fn run(&mut self) -> Result<Next, PartError> {
        let threads = self.terms.threads;
        let ahead = threads.get() * PARTS_PER_THREAD;
        if self.pool.is_none() {
            let parts = self.table.parts(if threads.get() > 1 { ahead } else { 1 })?;
            if let Some(threads) = NonZeroUsize::new(threads.get().min(parts.len()))
                && threads.get() > 1
            {
                self.pool = ThreadPool::new(&self.program, &self.plan, &self.terms, threads);
            }
            let Some(pool) = &self.pool else {
                return self.run_inline(parts);
            };
            for part in parts {
                pool.push(part);
            }
        }
        let Some(pool) = &self.pool else {
            return Ok(Next::End);
        };
        if !pool.is_own_process() {
            return Err(PartError::Arrow(stream_error(
                "the process was forked after the batch was begun; read its answer where it was begun, or begin another",
            )));
        }
        while self.failed.is_none() && pool.pending() < ahead {
            match self.table.parts(1) {
                Ok(parts) if parts.is_empty() => break,
                Ok(parts) => parts.into_iter().for_each(|part| pool.push(part)),
                Err(error) => self.failed = Some(error),
            }
        }
        if pool.pending() == 0 {
            return self
                .failed
                .take()
                .map_or(Ok(Next::End), |error| Err(error.into()));
        }
        match pool.take(SIGNAL_INTERVAL) {
            Some(ran) => Ok(Next::Part(Box::new(ran?))),
            None => Ok(Next::Running),
        }
    }

    /// Runs the first of these parts by who asks; the others, which there are where the system has no threads, come next.
    fn run_inline(&mut self, parts: Vec<RecordBatch>) -> Result<Next, PartError> {
        let mut parts = parts.into_iter();
        let Some(part) = parts.next() else {
            return Ok(Next::End);
        };
        self.table.return_parts(parts.collect());
        let (last_check, asked) = (Cell::new(self.last_check), Cell::new(0_u32));
        let interrupted = RefCell::new(None);
        let is_over = || {
            asked.set(asked.get().wrapping_add(1));
            if asked.get() % CLOCK_INTERVAL != 0 || last_check.get().elapsed() < SIGNAL_INTERVAL {
                return false;
            }
            last_check.set(Instant::now());
            let signals = with_python(&self.raised, check_signals);
            let is_over = signals.is_err();
            interrupted.replace(signals.err());
            is_over
        };
        let ran = run_part(self.program.program(), &self.plan, part, &self.terms, &is_over);
        self.last_check = last_check.get();
        match interrupted.take() {
            Some(error) => Err(error.into()),
            None => ran.map(|part| Next::Part(Box::new(part))),
        }
    }

    /// What there is to say of the rows that have an error.
    fn explain_rows(&mut self, py: Python<'_>, part: &Part) -> PyResult<Vec<(usize, RowError)>> {
        let rows = part.errors.iter();
        rows.map(|(row, ended)| Ok((*row, self.explain_row(py, &part.given, *row, ended)?)))
            .collect()
    }

    fn errors(&mut self, length: usize, explained: &[(usize, RowError)]) -> Result<ArrayRef, ArrowError> {
        if !explained.is_empty() {
            return error_column(length, explained);
        }
        if let Some(known) = self.no_errors.as_ref().filter(|known| known.len() == length) {
            return Ok(Arc::clone(known));
        }
        let made = error_column(length, explained)?;
        self.no_errors = Some(Arc::clone(&made));
        Ok(made)
    }

    fn explain_row(
        &mut self,
        py: Python<'_>,
        given: &RecordBatch,
        row: usize,
        ended: &RowEnd,
    ) -> PyResult<RowError> {
        let presenter = self.program.0.get().presenter();
        let (raw, inputs, same) = match ended {
            RowEnd::Misfit(place, value) => return Ok(misfit_error(self.program.0.get(), *place, value)),
            RowEnd::Panicked(message) => (fault(py, message)?, None, None),
            RowEnd::Refused(problems) => {
                let inputs = match json_text(&self.plan, given, row) {
                    Some(text) => PyString::new(py, text).into_any(),
                    None => row_object(py, given, row)?.into_any(),
                };
                (bad_input(py, problems)?, Some(inputs), None)
            }
            RowEnd::Otherwise(outcome) => {
                let same = match outcome {
                    Outcome::Failed { code, expression } => Some(format!("{} {expression}", code.name())),
                    Outcome::LimitHit(limit) => Some(format!("limit {limit}")),
                    _ => None,
                };
                if let Some(explained) = same.as_ref().and_then(|same| self.explanations.get(same)) {
                    return Ok(explained.clone());
                }
                (presenter.outcome(py, outcome)?, None, same)
            }
        };
        let (kind, code, place, message) = self.explain.bind(py).call1((raw, inputs))?.extract()?;
        let explained = RowError {
            kind,
            code,
            place,
            message,
        };
        if let Some(same) = same {
            self.explanations.insert(same, explained.clone());
        }
        Ok(explained)
    }
}

/// Somebody who looks at some of the rows.
pub(super) struct RowInspector {
    pub(super) choose: Py<PyAny>,
    pub(super) report: Py<PyAny>,
}

impl RowInspector {
    fn inspect(&self, py: Python<'_>, program: &Program, plan: &Plan, part: &Part) -> PyResult<()> {
        let rows = part.given.num_rows();
        let places: Vec<usize> = self.choose.bind(py).call1((rows,))?.extract()?;
        let explained = PyList::empty(py);
        for place in places {
            let found = guarded(|| inputs_of_row(program.compiled(), plan, &part.given, place));
            if let Some(values) = found.ok().flatten() {
                explained.append((place, program.inputs_object(py, &values)?))?;
            }
        }
        if !explained.is_empty() {
            // A clock that is set before 1970 says nothing of when that was.
            let began = part.began.duration_since(UNIX_EPOCH).unwrap_or_default();
            self.report
                .bind(py)
                .call1((explained, rows, began.as_nanos(), part.took.as_nanos()))?;
        }
        Ok(())
    }
}

/// What there is of the next part.
enum Next {
    Part(Box<Part>),
    /// It runs.
    Running,
    /// There is none.
    End,
}

/// Whether somebody wants to stop.
fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// What Python does, and raises: the interface of Arrow has room for the text of that alone.
fn with_python<T>(
    raised: &Mutex<Option<PyErr>>,
    does: impl FnOnce(Python<'_>) -> PyResult<T>,
) -> Result<T, ArrowError> {
    let done = with_lock(|py| {
        does(py).map_err(|error| {
            let explained = stream_error(&error.value(py).to_string());
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            explained
        })
    });
    done.unwrap_or_else(|| Err(stream_error("Python is at its end")))
}

/// An error of the interface, which ends texts with a zero.
fn stream_error(message: &str) -> ArrowError {
    ArrowError::ComputeError(message.replace('\0', "\u{fffd}"))
}

/// A number that its column has no room for.
fn misfit_error(program: &Program, place: usize, value: &Value) -> RowError {
    let output = program.compiled().node().outputs.get(place);
    let name = output.map_or("an output", |output| &output.name);
    let what = match value {
        Value::Decimal(number) => format!("is {number}, which"),
        _ => "holds a decimal that".to_owned(),
    };
    RowError {
        kind: "failed".to_owned(),
        code: "does_not_fit".to_owned(),
        place: None,
        message: format!(
            "`{name}` {what} its column cannot hold without rounding it; ask for texts (decimals=\"text\") or for \
             another number of digits after the point (decimals={{\"{name}\": N}})"
        ),
    }
}
