//! Runs a node over parts of a table, on as many threads as there should be.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use vesper_interp::guard::guarded;
use vesper_interp::problems::Problems;
use vesper_interp::{Limits, Outcome, Program, Rows};
use vesper_ir::{Value, planted};

use crate::pass::{Pass, Ran};
use crate::plan::{Form, Plan};
use crate::read::Remembered;

/// How many rows one thread takes at a time.
pub const ROWS: usize = 16_384;

/// How a row ended that has no outputs.
#[derive(Debug)]
pub enum Ended {
    /// Its inputs do not fit.
    Refused(Problems),
    Otherwise(Outcome),
    /// It returned, and the column of this output cannot hold this value as it is.
    Misfit(usize, Value),
    /// The engine is at fault.
    Panicked(String),
}

/// A part of a table, run.
#[derive(Debug)]
pub struct Part {
    /// What it was run on.
    pub given: RecordBatch,
    /// The kept columns and the outputs.
    pub columns: Vec<ArrayRef>,
    /// The rows without outputs, in order.
    pub errors: Vec<(usize, Ended)>,
}

/// When the rows of a table begin, and what each may use up.
#[derive(Clone, Debug)]
pub struct Terms {
    pub now: Option<Value>,
    pub limits: Limits,
    pub threads: NonZeroUsize,
}

/// Why a part of a table could not be run at all.
#[derive(Debug)]
pub enum Failed {
    Arrow(ArrowError),
    Engine(String),
}

impl std::convert::From<ArrowError> for Failed {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// Runs these parts, in order or at the same time; what comes back is in their order.
pub fn run_parts(
    program: &Program,
    plan: &Plan,
    parts: Vec<RecordBatch>,
    terms: &Terms,
) -> Result<Vec<Part>, Failed> {
    let threads = terms.threads.get().min(parts.len());
    if threads <= 1 {
        let mut thread = Thread::new(program, plan, terms)?;
        return parts.into_iter().map(|part| thread.part(part)).collect();
    }
    let next = AtomicUsize::new(0);
    let waiting: Vec<Mutex<Option<RecordBatch>>> =
        parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    let done: Vec<Mutex<Option<Result<Part, Failed>>>> = waiting.iter().map(|_| Mutex::new(None)).collect();
    let work = || -> Result<(), Failed> {
        let mut thread = Thread::new(program, plan, terms)?;
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let (Some(waiting), Some(done)) = (waiting.get(place), done.get(place)) else {
                return Ok(());
            };
            let Some(part) = waiting.lock().ok().and_then(|mut part| part.take()) else {
                continue;
            };
            let ran = thread.part(part);
            if let Ok(mut done) = done.lock() {
                *done = Some(ran);
            }
        }
    };
    std::thread::scope(|scope| {
        // This thread is one of them.
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut ended = work();
        for other in others {
            let other = other
                .join()
                .unwrap_or_else(|_| Err(Failed::Engine("a thread of a batch panicked".to_owned())));
            ended = ended.and(other);
        }
        ended
    })?;
    let lost = || Failed::Engine("a part of a batch was not run".to_owned());
    done.into_iter()
        .map(|done| done.into_inner().ok().flatten().unwrap_or_else(|| Err(lost())))
        .collect()
}

/// What one thread keeps from part to part.
struct Thread<'a> {
    program: &'a Program,
    plan: &'a Plan,
    rows: Rows<'a>,
    remembered: Vec<Remembered>,
    /// What a run without a frame may spend. It does not look at the clock: where time is limited, nothing.
    fuel: u64,
}

impl<'a> Thread<'a> {
    fn new(program: &'a Program, plan: &'a Plan, terms: &Terms) -> Result<Self, Failed> {
        let limits = Limits {
            fuel: planted!("batch.fuel_is_without_limit", terms.limits.fuel, u64::MAX),
            time: planted!("batch.time_is_without_limit", terms.limits.time, None),
            ..terms.limits
        };
        let rows = program
            .rows(terms.now.clone(), limits)
            .map_err(|misuse| Failed::Engine(misuse.0))?;
        Ok(Self {
            program,
            plan,
            rows,
            fuel: if limits.time.is_some() { 0 } else { limits.fuel },
            remembered: plan.inputs.iter().map(|_| Remembered::new()).collect(),
        })
    }

    fn part(&mut self, given: RecordBatch) -> Result<Part, Failed> {
        match guarded(|| self.run(&given, false)) {
            Ok(ran) => ran.map(|ran| ran.with(given)),
            // A row brings the engine down. It is a function of its inputs, so that all are run again, each under a
            // guard of its own, and that one says so.
            Err(_) => match guarded(|| self.run(&given, true)) {
                Ok(ran) => ran.map(|ran| ran.with(given)),
                Err(message) => Err(Failed::Engine(message)),
            },
        }
    }

    fn run(&mut self, given: &RecordBatch, guards_rows: bool) -> Result<Ran, Failed> {
        let mut pass = Pass::new(
            self.program,
            self.plan,
            given,
            &mut self.rows,
            &mut self.remembered,
            guards_rows,
        );
        // A row that brings the engine down is told from the others in the ordinary way alone.
        if guards_rows {
            pass.ordinary(0..given.num_rows())?;
        } else {
            pass.all(self.fuel)?;
        }
        pass.finish()
    }
}

/// The JSON text of a row.
pub fn json_text<'a>(plan: &Plan, given: &'a RecordBatch, row: usize) -> Option<&'a str> {
    let texts = given.columns().get(plan.texts)?;
    if plan.form != Form::Json || texts.is_null(row) {
        return None;
    }
    match texts.data_type() {
        arrow_schema::DataType::Utf8 => Some(texts.as_string::<i32>().value(row)),
        arrow_schema::DataType::LargeUtf8 => Some(texts.as_string::<i64>().value(row)),
        _ => Some(texts.as_string_view().value(row)),
    }
}
