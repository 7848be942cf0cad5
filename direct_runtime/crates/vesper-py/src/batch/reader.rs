//! The answer of a batch, made as it is asked for: by threads ahead of who reads it, or by who asks.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use vesper_arrow::{
    Array, ArrayRef, ArrowError, Crew, Ended, Failed, Holder, Part, Plan, RecordBatch, RecordBatchReader,
    SchemaRef, Table, Terms, Told, error_column, inputs_of_row, json_text, run_part,
};
use vesper_interp::Outcome;
use vesper_interp::guard::guarded;
use vesper_ir::Value;

use super::cells::row_object;
use crate::calls::outcome::{bad_input, fault};
use crate::calls::program::Program;
use crate::global_lock::{locked, unlocked};

/// How many parts for each thread are run ahead of who reads the answer: enough that no thread waits for him, and few
/// enough that a stream of any length needs little memory.
const PARTS_A_THREAD: usize = 4;
/// How often is looked whether somebody wants to stop, for which the lock is needed.
const PATIENCE: Duration = Duration::from_millis(100);
/// Of so many rows, or blocks of them, that are run by who asks, one is asked after the clock.
const A_LOOK: u32 = 16;

/// The program, for as long as threads run it.
struct Held(Py<Program>);

impl Holder for Held {
    fn program(&self) -> &vesper_interp::Program {
        self.0.get().compiled()
    }
}

/// The answer, made as it is asked for.
pub(super) struct Reader {
    program: Arc<Held>,
    table: Table,
    plan: Arc<Plan>,
    terms: Terms,
    explain: Py<PyAny>,
    /// Made for the first two parts: a table of one is run by who asks.
    crew: Option<Crew>,
    /// What the stream ended with, after all that they have.
    failed: Option<ArrowError>,
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

/// The reader in the hands of another library.
pub(super) struct Read {
    schema: SchemaRef,
    /// Nobody may read from two threads at once. Who does so all the same is told.
    reader: Mutex<Option<Reader>>,
}

impl Read {
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            schema: Arc::clone(reader.plan.schema()),
            reader: Mutex::new(Some(reader)),
        }
    }
}

impl RecordBatchReader for Read {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for Read {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.reader.try_lock() {
            Ok(mut reader) => reader.as_mut()?.next(),
            Err(_) => Some(Err(foreign(
                "two threads read the answer of a batch at once; one does",
            ))),
        }
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut reader) = reader.take() else {
            return;
        };
        reader.leave();
        let mut reader = Some(reader);
        if locked(|_| drop(reader.take())).is_none() {
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
        terms: Terms,
        explain: Py<PyAny>,
        raised: Arc<Mutex<Option<PyErr>>>,
    ) -> Self {
        Self {
            program: Arc::new(Held(program)),
            table,
            plan: Arc::new(plan),
            terms,
            explain,
            crew: None,
            failed: None,
            looked: Instant::now(),
            told: HashMap::new(),
            no_errors: None,
            look: None,
            raised,
            is_over: false,
        }
    }

    /// From now on.
    pub(super) fn look(&mut self, look: Look) {
        self.look = Some(look);
    }

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
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

    /// Ends the threads. They are waited for without the lock: nobody else should.
    fn leave(&mut self) {
        let mut crew = self.crew.take();
        if crew.is_some() {
            unlocked(|| drop(crew.take()));
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
                self.looked = Instant::now();
                with_python(&self.raised, signals)?;
            }
            match ran {
                Next::Part(part) => break *part,
                Next::Waits => {}
                Next::Over => return Ok(None),
            }
        };
        if let Some(look) = &self.look {
            with_python(&self.raised, |py| {
                look.at(py, self.program.0.get(), &self.plan, &part)
            })?;
        }
        let told = if part.errors.is_empty() {
            Vec::new()
        } else {
            let raised = Arc::clone(&self.raised);
            with_python(&raised, |py| self.told_of(py, &part))?
        };
        let mut columns = part.columns;
        columns.push(self.errors(part.given.num_rows(), &told)?);
        RecordBatch::try_new(Arc::clone(self.plan.schema()), columns).map(Some)
    }

    /// Runs the next part, or waits a while for those who do.
    fn run(&mut self) -> Result<Next, Failed> {
        let threads = self.terms.threads;
        let ahead = threads.get() * PARTS_A_THREAD;
        if self.crew.is_none() {
            let parts = self.table.parts(if threads.get() > 1 { ahead } else { 1 })?;
            if let Some(threads) = NonZeroUsize::new(threads.get().min(parts.len()))
                && threads.get() > 1
            {
                self.crew = Crew::new(&self.program, &self.plan, &self.terms, threads);
            }
            let Some(crew) = &self.crew else {
                return self.run_here(parts);
            };
            for part in parts {
                crew.give(part);
            }
        }
        let Some(crew) = &self.crew else {
            return Ok(Next::Over);
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
                .map_or(Ok(Next::Over), |error| Err(error.into()));
        }
        match crew.take(PATIENCE) {
            Some(ran) => Ok(Next::Part(Box::new(ran?))),
            None => Ok(Next::Waits),
        }
    }

    /// Runs the first of these parts by who asks; the others, which there are where the system has no threads, come next.
    fn run_here(&mut self, parts: Vec<RecordBatch>) -> Result<Next, Failed> {
        let mut parts = parts.into_iter();
        let Some(part) = parts.next() else {
            return Ok(Next::Over);
        };
        self.table.give_back(parts.collect());
        let (looked, asked) = (Cell::new(self.looked), Cell::new(0_u32));
        let interrupted = RefCell::new(None);
        let is_over = || {
            asked.set(asked.get().wrapping_add(1));
            if asked.get() % A_LOOK != 0 || looked.get().elapsed() < PATIENCE {
                return false;
            }
            looked.set(Instant::now());
            let signals = with_python(&self.raised, signals);
            let is_over = signals.is_err();
            interrupted.replace(signals.err());
            is_over
        };
        let ran = run_part(self.program.program(), &self.plan, part, &self.terms, &is_over);
        self.looked = looked.get();
        match interrupted.take() {
            Some(error) => Err(error.into()),
            None => ran.map(|part| Next::Part(Box::new(part))),
        }
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
pub(super) struct Look {
    pub(super) choose: Py<PyAny>,
    pub(super) tell: Py<PyAny>,
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
            // A clock that is set before 1970 says nothing of when that was.
            let began = part.began.duration_since(UNIX_EPOCH).unwrap_or_default();
            self.tell
                .bind(py)
                .call1((told, rows, began.as_nanos(), part.took.as_nanos()))?;
        }
        Ok(())
    }
}

/// What there is of the next part.
enum Next {
    Part(Box<Part>),
    /// It runs.
    Waits,
    /// There is none.
    Over,
}

/// Whether somebody wants to stop.
fn signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// What Python does, and raises: the interface of Arrow has room for the text of that alone.
fn with_python<T>(
    raised: &Mutex<Option<PyErr>>,
    does: impl FnOnce(Python<'_>) -> PyResult<T>,
) -> Result<T, ArrowError> {
    let done = locked(|py| {
        does(py).map_err(|error| {
            let told = foreign(&error.value(py).to_string());
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            told
        })
    });
    done.unwrap_or_else(|| Err(foreign("Python is at its end")))
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
