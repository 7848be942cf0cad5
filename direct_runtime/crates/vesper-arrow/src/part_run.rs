//! The run of one part of a table, in frameless blocks or row by row.
//!
//! Single rows of a block run again row by row if they have no words or machine code gives up.

use std::ops::Range;
use std::time::{Instant, SystemTime};

use arrow_array::{Array, ArrayRef, RecordBatch};
use vesper_interp::guard::guarded;
use vesper_interp::problems::Problems;
use vesper_interp::words::{Block, Express};
use vesper_interp::{Outcome, Program, Rows};
use vesper_ir::Value;

use crate::block_inputs::Fillers;
use crate::block_outputs::Scratch;
use crate::cell_conversion::Conversion;
use crate::column_reader::{Column, TextCache, Texts};
use crate::column_writer::Writer;
use crate::part::{IsCancelled, Part, PartError, RowEnd};
use crate::plan::{Form, InputSource, Plan, flag_of_texts};

/// Number of rows of a block. It is small enough for the processor cache and large enough to amortise the cost of a
/// block.
const BLOCK_ROWS: usize = 128;
/// Number of rows per query for machine code. Queries and reports write to counters that all threads share.
const ROWS_PER_QUERY: usize = 16 * BLOCK_ROWS;

/// The inputs of a part for runs row by row.
enum RowSource<'a> {
    Columns(Vec<Column<'a>>),
    Json(Texts<'a>, &'a ArrayRef),
}

/// The result columns and errors of a part.
pub(crate) struct PartColumns {
    columns: Vec<ArrayRef>,
    errors: Vec<(usize, RowEnd)>,
}

impl PartColumns {
    pub(crate) fn into_part(self, given: RecordBatch, (began, clock): (SystemTime, Instant)) -> Part {
        Part {
            given,
            columns: self.columns,
            errors: self.errors,
            began,
            took: clock.elapsed(),
        }
    }
}

/// A run over one part of a table.
pub(crate) struct PartRun<'a, 'p> {
    program: &'a Program,
    plan: &'a Plan,
    given: &'a RecordBatch,
    rows: &'a mut Rows<'p>,
    /// Made for the first row that needs it; most parts have none.
    source: Option<RowSource<'a>>,
    text_caches: Option<&'a mut [TextCache]>,
    is_cancelled: IsCancelled<'a>,
    guards_rows: bool,
    writers: Vec<Writer>,
    errors: Vec<(usize, RowEnd)>,
}

/// Counts of frameless rows with and without outputs.
#[derive(Default)]
struct Tally {
    outputs: u32,
    missed: u32,
}

/// State of the frameless blocks of a part.
struct FramelessBlocks<'a> {
    fillers: Fillers<'a>,
    block: Block<'a>,
    scratch: Scratch,
}

impl<'a> FramelessBlocks<'a> {
    fn new(
        program: &'a Program,
        plan: &'a Plan,
        given: &'a RecordBatch,
        express: &dyn Express,
    ) -> Option<Self> {
        Some(Self {
            fillers: Fillers::new(program, plan, given)?,
            block: Block::new(express.shape(), BLOCK_ROWS)?,
            scratch: Scratch::default(),
        })
    }
}

impl<'a, 'p> PartRun<'a, 'p> {
    pub(crate) fn new(
        program: &'a Program,
        plan: &'a Plan,
        given: &'a RecordBatch,
        rows: &'a mut Rows<'p>,
        text_caches: &'a mut [TextCache],
        is_cancelled: IsCancelled<'a>,
        guards_rows: bool,
    ) -> Self {
        let declared = program.node().outputs.iter().zip(&plan.scales);
        let length = given.num_rows();
        Self {
            program,
            plan,
            given,
            rows,
            source: None,
            text_caches: Some(text_caches),
            is_cancelled,
            guards_rows,
            writers: declared
                .map(|(output, scale)| Writer::new(&output.ty, *scale, length))
                .collect(),
            errors: Vec::new(),
        }
    }

    /// Runs all rows, in frameless blocks where possible, each row with at most this fuel.
    pub(crate) fn run_all(&mut self, fuel: u64) -> Result<(), PartError> {
        let length = self.given.num_rows();
        let mut frameless: Option<FramelessBlocks<'a>> = None;
        let mut row = 0;
        while row < length {
            let count = u32::try_from((length - row).min(ROWS_PER_QUERY)).unwrap_or(u32::MAX);
            let (express, count) = match self.program.express_rows(count) {
                Ok(found) => found,
                Err(count) => {
                    let end = length.min(row.saturating_add(count as usize));
                    self.run_rows(row..end)?;
                    row = end;
                    continue;
                }
            };
            if frameless.is_none() {
                frameless = FramelessBlocks::new(self.program, self.plan, self.given, express);
            }
            let Some(frameless) = &mut frameless else {
                // A column has to be read by cells, or an input has parts.
                return self.run_rows(row..length);
            };
            let scaled = self
                .program
                .express_scaled(express, frameless.fillers.scales(), count);
            let express = scaled.unwrap_or(express);
            let end = length.min(row.saturating_add(count as usize));
            let mut tally = Tally::default();
            while row < end {
                self.check_cancelled()?;
                let block = row..length.min(row + BLOCK_ROWS);
                row = block.end;
                self.run_block(frameless, express, &block, fuel, &mut tally)?;
                if tally.missed > tally.outputs {
                    break; // report before more rows give up
                }
            }
            self.program.expressed_rows(tally.outputs, tally.missed);
        }
        Ok(())
    }

    fn check_cancelled(&self) -> Result<(), PartError> {
        if (self.is_cancelled)() {
            return Err(PartError::Cancelled);
        }
        Ok(())
    }

    /// Runs a block without a frame, then its rows without outputs row by row.
    fn run_block(
        &mut self,
        frameless: &mut FramelessBlocks<'a>,
        express: &dyn Express,
        rows: &Range<usize>,
        fuel: u64,
        tally: &mut Tally,
    ) -> Result<(), PartError> {
        let FramelessBlocks {
            fillers,
            block,
            scratch,
        } = frameless;
        block.begin(rows.len());
        if !fillers.fill(block, rows) {
            return self.run_rows(rows.clone());
        }
        let (outputs, missed) = block.run(express, fuel);
        tally.outputs = tally.outputs.saturating_add(outputs);
        tally.missed = tally.missed.saturating_add(missed);
        scratch.scale(block, &self.writers);
        let mut at = 0;
        while let Some(rest) = block.has_outputs().get(at..)
            && let Some(are_there) = rest.first()
        {
            let end = at + rest.iter().take_while(|row| *row == are_there).count();
            if *are_there {
                for (output, writer) in self.writers.iter_mut().enumerate() {
                    if !scratch.append(writer, block, output, &(at..end)) {
                        return Err(PartError::Engine(
                            "an output is of another form than its column".to_owned(),
                        ));
                    }
                }
            } else {
                let start = rows.start;
                self.run_rows(start + at..start + end)?;
            }
            at = end;
        }
        Ok(())
    }

    /// Runs these rows one by one.
    pub(crate) fn run_rows(&mut self, rows: Range<usize>) -> Result<(), PartError> {
        let mut source = match (self.source.take(), self.text_caches.take()) {
            (Some(source), _) => source,
            (None, text_caches) => row_source(
                self.program,
                self.plan,
                self.given,
                text_caches.unwrap_or_default(),
            )?,
        };
        for row in rows {
            self.check_cancelled()?;
            self.run_row(&mut source, row);
        }
        self.source = Some(source);
        Ok(())
    }

    fn run_row(&mut self, source: &mut RowSource<'a>, row: usize) {
        let outcome = match read_row(self.program, self.plan, source, self.rows, row) {
            Err(problems) => Err(RowEnd::Refused(problems)),
            Ok(()) if self.guards_rows => guarded(|| self.rows.run()).map_err(RowEnd::Panicked),
            Ok(()) => Ok(self.rows.run()),
        };
        let ended = match outcome {
            Ok(Outcome::Returned(values)) => {
                let mut pairs = self.writers.iter().zip(&values);
                if let Some(place) = pairs.position(|(of, value)| !of.fits(value)) {
                    RowEnd::Misfit(place, values.into_iter().nth(place).unwrap_or(Value::Null))
                } else {
                    for (writer, value) in self.writers.iter_mut().zip(&values) {
                        writer.append(value);
                    }
                    return;
                }
            }
            Ok(outcome) => RowEnd::Otherwise(outcome),
            Err(ended) => ended,
        };
        self.errors.push((row, ended));
        for writer in &mut self.writers {
            writer.append_null();
        }
    }

    /// Returns the kept columns and the outputs.
    pub(crate) fn finish(mut self) -> Result<PartColumns, PartError> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.plan.kept.len() + self.writers.len() + 1);
        for place in &self.plan.kept {
            columns.extend(self.given.columns().get(*place).cloned());
        }
        for writer in &mut self.writers {
            columns.push(writer.finish()?);
        }
        Ok(PartColumns {
            columns,
            errors: self.errors,
        })
    }
}

fn no_column() -> PartError {
    PartError::Engine("a part of a table has fewer columns than its schema".to_owned())
}

fn row_source<'a>(
    program: &'a Program,
    plan: &'a Plan,
    given: &'a RecordBatch,
    text_caches: &'a mut [TextCache],
) -> Result<RowSource<'a>, PartError> {
    if plan.form == Form::Json {
        let texts = given.columns().get(plan.texts).ok_or_else(no_column)?;
        let of = Texts::of(texts.as_ref()).ok_or_else(no_column)?;
        return Ok(RowSource::Json(of, texts));
    }
    let mut columns = Vec::with_capacity(plan.inputs.len());
    let declared = program.node().inputs.iter();
    for ((input, from), text_caches) in declared.zip(&plan.inputs).zip(text_caches) {
        columns.push(match from {
            InputSource::Same(value) => Column::constant(value.clone()),
            InputSource::Column(place) => {
                let array = given.columns().get(*place).ok_or_else(no_column)?.as_ref();
                if plan.form == Form::Spelled {
                    Column::spelled(array)
                } else {
                    Column::new(&input.ty, array, text_caches)
                }
            }
        });
    }
    Ok(RowSource::Columns(columns))
}

/// Writes the inputs of a row, or returns all problems with them.
#[inline]
fn read_row(
    program: &Program,
    plan: &Plan,
    source: &mut RowSource<'_>,
    rows: &mut Rows<'_>,
    row: usize,
) -> Result<(), Problems> {
    let columns = match source {
        RowSource::Columns(columns) => columns,
        RowSource::Json(texts, array) => {
            let text = if array.is_null(row) { "" } else { texts.value(row) };
            let values = program.inputs_of_json(text.as_bytes())?;
            for (place, value) in rows.inputs().iter_mut().zip(values) {
                *place = value;
            }
            return Ok(());
        }
    };
    let mut conversion: Option<Conversion> = None;
    let node = program.node();
    let declared = node.inputs.iter().enumerate();
    let is_empty: Vec<bool> = match &node.outside_inputs {
        Some(outside) if outside.is_sparse() => columns.iter().map(|column| column.is_empty(row)).collect(),
        _ => Vec::new(),
    };
    for ((column, place), (own, input)) in columns.iter_mut().zip(rows.inputs()).zip(declared) {
        let flag = flag_of_texts(node, plan.form, own, |place| is_empty.get(place) == Some(&true));
        if let (Some(flag), true) = (flag, column.is_empty(row)) {
            *place = flag;
            continue;
        }
        if column.read(row, place) {
            continue;
        }
        let is_spelled = plan.form == Form::Spelled;
        let conversion = conversion.get_or_insert_with(Conversion::default);
        let default = input.default.as_ref();
        let key = node.input_key(own);
        if let Some(value) = column.read_cell(&input.ty, default, row, is_spelled, key, conversion) {
            *place = value;
        }
    }
    match conversion {
        Some(conversion) if !conversion.problems.is_empty() => Err(conversion.problems),
        _ => Ok(()),
    }
}
