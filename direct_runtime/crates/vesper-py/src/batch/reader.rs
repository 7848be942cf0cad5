//! The result stream of a batch. Threads compute it ahead, or the reading thread does on demand.

use std::cell::{Cell, RefCell};
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
use vesper_interp::guard::guarded;
use vesper_ir::Value;

use super::cells::row_object;
use super::row_messages::RowMessages;
use crate::calls::outcome::{bad_input, fault};
use crate::calls::program::Program;
use crate::global_lock::{with_lock, without_lock};

/// Number of parts per thread that run ahead of the reading thread. They keep threads busy and bound the memory for
/// streams of any length.
const PARTS_PER_THREAD: usize = 4;
/// Interval between checks for signals, which need the lock.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);
/// Number of rows, or blocks of rows, after which the reading thread reads the clock.
const CLOCK_INTERVAL: u32 = 16;

/// A reference to the program for threads that run it.
struct ProgramHandle(Py<Program>);

impl ProgramHolder for ProgramHandle {
    fn program(&self) -> &vesper_interp::Program {
        self.0.get().compiled()
    }
}

/// The result of a batch, computed on demand.
pub(super) struct Reader {
    program: Arc<ProgramHandle>,
    table: Table,
    plan: Arc<Plan>,
    terms: RunTerms,
    explain: Py<PyAny>,
    /// Created for the first two parts; the reading thread runs a table of one part itself.
    pool: Option<ThreadPool>,
    /// The error that ended the stream, reported after all parts read before it.
    failed: Option<ArrowError>,
    /// Time of the last check for signals.
    last_check: Instant,
    messages: RowMessages,
    /// The error column of a part without errors, shared by parts of the same length.
    no_errors: Option<ArrayRef>,
    inspector: Option<RowInspector>,
    raised: Arc<Mutex<Option<PyErr>>>,
    is_over: bool,
}

/// The reader as exported to another library.
pub(super) struct SharedReader {
    schema: SchemaRef,
    /// Rejects reads from two threads at once.
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
                "two threads read the answer of a batch at once; read it in one thread",
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
            // Python has ended, and its objects no longer exist.
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
            messages: RowMessages::default(),
            no_errors: None,
            inspector: None,
            raised,
            is_over: false,
        }
    }

    /// Registers the inspector of later rows.
    pub(super) fn set_inspector(&mut self, inspector: RowInspector) {
        self.inspector = Some(inspector);
    }

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        if self.is_over {
            return None;
        }
        let batch = self.next_batch();
        // An error ends the stream.
        self.is_over = !matches!(batch, Ok(Some(_)));
        if self.is_over {
            self.stop_threads();
        }
        batch.transpose()
    }

    /// Ends the threads and waits for them without the lock, so that other threads can run.
    fn stop_threads(&mut self) {
        let mut pool = self.pool.take();
        if pool.is_some() {
            without_lock(|| drop(pool.take()));
        }
    }

    /// Computes the next part of the result.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let part = loop {
            // The reading thread may or may not hold the global lock. It is acquired only if needed, because
            // acquiring it takes milliseconds while other threads compute.
            let ran = without_lock(|| self.run()).map_err(|failed| match failed {
                PartError::Arrow(error) => error,
                PartError::Engine(message) => {
                    stream_error(&format!("engine fault: {message}; this is a bug in Vesper"))
                }
                PartError::Cancelled => stream_error("the batch was cancelled"),
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
        let explained = self.explain_rows(&part)?;
        let mut columns = part.columns;
        columns.push(self.errors(part.given.num_rows(), &explained)?);
        RecordBatch::try_new(Arc::clone(self.plan.schema()), columns).map(Some)
    }

    /// Runs the next part, or waits a limited time for the threads.
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
                "the process was forked after the batch was begun; read the answer in the process that began it",
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

    /// Runs the first part in the reading thread. Further parts, which exist only if no thread could be started, are
    /// returned to the table.
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

    /// Explains the rows that have an error. The lock is acquired at the first one that Python has to explain.
    fn explain_rows(&mut self, part: &Part) -> Result<Vec<(usize, RowError)>, ArrowError> {
        let mut explained = Vec::with_capacity(part.errors.len());
        let mut rows = part.errors.iter();
        let program = Arc::clone(&self.program);
        let node = program.program().node();
        while let Some((row, ended)) = rows.next() {
            match self.messages.explain(node, &self.plan, &part.given, *row, ended) {
                Ok(error) => explained.push((*row, error)),
                Err(unexplained) => {
                    let raised = Arc::clone(&self.raised);
                    with_python(&raised, |py| {
                        let mut next = Some((*row, ended, unexplained));
                        while let Some((row, ended, unexplained)) = next.take() {
                            let error = self.explain_row(py, &part.given, row, ended)?;
                            self.messages.learn(node, ended, unexplained, &error);
                            explained.push((row, error));
                            for (row, ended) in rows.by_ref() {
                                match self.messages.explain(node, &self.plan, &part.given, *row, ended) {
                                    Ok(error) => explained.push((*row, error)),
                                    Err(unexplained) => {
                                        next = Some((*row, ended, unexplained));
                                        break;
                                    }
                                }
                            }
                        }
                        Ok(())
                    })?;
                }
            }
        }
        Ok(explained)
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
        &self,
        py: Python<'_>,
        given: &RecordBatch,
        row: usize,
        ended: &RowEnd,
    ) -> PyResult<RowError> {
        let presenter = self.program.0.get().presenter();
        let (raw, inputs) = match ended {
            RowEnd::Misfit(place, value) => return Ok(misfit_error(self.program.0.get(), *place, value)),
            RowEnd::Panicked(message) => (fault(py, message)?, None),
            RowEnd::Refused(problems) => {
                let inputs = match json_text(&self.plan, given, row) {
                    Some(text) => PyString::new(py, text).into_any(),
                    None => row_object(py, given, row)?.into_any(),
                };
                (bad_input(py, problems)?, Some(inputs))
            }
            RowEnd::Otherwise(outcome) => (presenter.outcome(py, outcome)?, None),
        };
        let (kind, code, place, message): (String, String, Option<String>, String) =
            self.explain.bind(py).call1((raw, inputs))?.extract()?;
        Ok(RowError {
            kind: kind.into(),
            code: code.into(),
            place: place.map(Arc::from),
            message,
        })
    }
}

/// Callbacks that inspect some of the rows.
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
            // A clock before 1970 gives no usable start.
            let began = part.began.duration_since(UNIX_EPOCH).unwrap_or_default();
            self.report
                .bind(py)
                .call1((explained, rows, began.as_nanos(), part.took.as_nanos()))?;
        }
        Ok(())
    }
}

/// State of the next part.
enum Next {
    Part(Box<Part>),
    /// The part is still running.
    Running,
    /// There is no next part.
    End,
}

/// Returns the exception of a pending signal.
fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Calls Python and stores its exception, because an Arrow stream transports only its text.
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
    done.unwrap_or_else(|| Err(stream_error("Python is shutting down")))
}

/// Makes a stream error without zero bytes, which end C strings.
fn stream_error(message: &str) -> ArrowError {
    ArrowError::ComputeError(message.replace('\0', "\u{fffd}"))
}

/// Describes a number that its column cannot hold.
fn misfit_error(program: &Program, place: usize, value: &Value) -> RowError {
    let name = program.compiled().node().output_key(place);
    let what = match value {
        Value::Decimal(number) => format!("is {number}, which"),
        _ => "holds a decimal that".to_owned(),
    };
    RowError {
        kind: Arc::from("failed"),
        code: Arc::from("does_not_fit"),
        place: None,
        message: format!(
            "`{name}` {what} its column cannot hold without rounding it; ask for texts (decimals=\"text\") or for \
             another number of digits after the point (decimals={{\"{name}\": N}})"
        ),
    }
}
