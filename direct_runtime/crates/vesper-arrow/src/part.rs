//! Runs a node over a part of a table.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant, SystemTime};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use vesper_interp::guard::guarded;
use vesper_interp::problems::Problems;
use vesper_interp::{Limits, Outcome, Program, Rows};
use vesper_ir::Value;

use crate::column_reader::TextCache;
use crate::part_run::{PartColumns, PartRun};
use crate::plan::{Form, Plan};

/// How many rows one thread takes at a time.
pub const MAX_PART_ROWS: usize = 16_384;

/// How a row ended that has no outputs.
#[derive(Debug)]
pub enum RowEnd {
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
    pub errors: Vec<(usize, RowEnd)>,
    /// When its rows began, and how long they took.
    pub began: SystemTime,
    pub took: Duration,
}

/// When the rows of a table begin, and what each may use up.
#[derive(Clone, Debug)]
pub struct RunTerms {
    pub now: Option<Value>,
    pub limits: Limits,
    pub threads: NonZeroUsize,
}

/// Why a part of a table could not be run at all.
#[derive(Debug)]
pub enum PartError {
    Arrow(ArrowError),
    Engine(String),
    /// Nobody waits for it any more.
    Cancelled,
}

impl std::convert::From<ArrowError> for PartError {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// Asked before each row, or some of them: whether nobody waits for them any more.
pub type IsCancelled<'a> = &'a dyn Fn() -> bool;

/// Runs a part here.
pub fn run_part(
    program: &Program,
    plan: &Plan,
    part: RecordBatch,
    terms: &RunTerms,
    is_cancelled: IsCancelled<'_>,
) -> Result<Part, PartError> {
    let mut thread = Thread::new(program, plan, terms, is_cancelled).map_err(PartError::Engine)?;
    thread.part(part)
}

/// What one thread keeps from part to part.
pub(crate) struct Thread<'a> {
    program: &'a Program,
    plan: &'a Plan,
    is_cancelled: IsCancelled<'a>,
    rows: Rows<'a>,
    text_caches: Vec<TextCache>,
    /// What a run without a frame may spend. It does not look at the clock: where time is limited, nothing.
    fuel: u64,
}

impl<'a> Thread<'a> {
    pub(crate) fn new(
        program: &'a Program,
        plan: &'a Plan,
        terms: &RunTerms,
        is_cancelled: IsCancelled<'a>,
    ) -> Result<Self, String> {
        let limits = Limits {
            fuel: terms.limits.fuel,
            time: terms.limits.time,
            ..terms.limits
        };
        let rows = program
            .rows(terms.now.clone(), limits)
            .map_err(|misuse| misuse.0)?;
        Ok(Self {
            program,
            plan,
            is_cancelled,
            rows,
            fuel: if limits.time.is_some() { 0 } else { limits.fuel },
            text_caches: plan.inputs.iter().map(|_| TextCache::new()).collect(),
        })
    }

    pub(crate) fn part(&mut self, given: RecordBatch) -> Result<Part, PartError> {
        let began = (SystemTime::now(), Instant::now());
        match guarded(|| self.run(&given, false)) {
            Ok(ran) => ran.map(|ran| ran.into_part(given, began)),
            // A row brings the engine down. It is a function of its inputs, so that all are run again, each under a
            // guard of its own, and that one says so.
            Err(_) => match guarded(|| self.run(&given, true)) {
                Ok(ran) => ran.map(|ran| ran.into_part(given, began)),
                Err(message) => Err(PartError::Engine(message)),
            },
        }
    }

    fn run(&mut self, given: &RecordBatch, guards_rows: bool) -> Result<PartColumns, PartError> {
        let mut run = PartRun::new(
            self.program,
            self.plan,
            given,
            &mut self.rows,
            &mut self.text_caches,
            self.is_cancelled,
            guards_rows,
        );
        // A row that brings the engine down is told from the others in the ordinary way alone.
        if guards_rows {
            run.run_ordinary(0..given.num_rows())?;
        } else {
            run.run_all(self.fuel)?;
        }
        run.finish()
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
