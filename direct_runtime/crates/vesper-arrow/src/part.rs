//! Runs of a node over one part of a table.

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

/// Maximum number of rows of a part.
pub const MAX_PART_ROWS: usize = 16_384;

/// End of a row without outputs.
#[derive(Debug)]
pub enum RowEnd {
    /// The inputs have problems.
    Refused(Problems),
    Otherwise(Outcome),
    /// The row returned, but the column of this output cannot hold this value without rounding.
    Misfit(usize, Value),
    /// The engine panicked with this message.
    Panicked(String),
}

/// A part of a table after its run.
#[derive(Debug)]
pub struct Part {
    /// The input columns.
    pub given: RecordBatch,
    /// The kept columns and the outputs.
    pub columns: Vec<ArrayRef>,
    /// The rows without outputs, in order.
    pub errors: Vec<(usize, RowEnd)>,
    /// Start and duration of the run.
    pub began: SystemTime,
    pub took: Duration,
}

/// Start time, limits of each row and number of threads of a batch.
#[derive(Clone, Debug)]
pub struct RunTerms {
    pub now: Option<Value>,
    pub limits: Limits,
    pub threads: NonZeroUsize,
}

/// Reason why a part could not be run.
#[derive(Debug)]
pub enum PartError {
    Arrow(ArrowError),
    Engine(String),
    /// The batch was cancelled.
    Cancelled,
}

impl std::convert::From<ArrowError> for PartError {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// Returns true if the batch is cancelled; called before each row or block.
pub type IsCancelled<'a> = &'a dyn Fn() -> bool;

/// Runs a part in the current thread.
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

/// State of one thread, kept from part to part.
pub(crate) struct Thread<'a> {
    program: &'a Program,
    plan: &'a Plan,
    is_cancelled: IsCancelled<'a>,
    rows: Rows<'a>,
    text_caches: Vec<TextCache>,
    /// Fuel of a frameless run. It is 0 if time is limited, because frameless runs read no clock.
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
            // A row made the engine panic. Rows are deterministic, so all run again, each with a guard of its own,
            // which finds that row.
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
        // Only a run by rows can guard each of them.
        if guards_rows {
            run.run_rows(0..given.num_rows())?;
        } else {
            run.run_all(self.fuel)?;
        }
        run.finish()
    }
}

/// Returns the JSON text of a row.
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
