//! One part of a table: its rows in blocks by the way without a frame where there is one, and one by one in the ordinary
//! way where there is none, where a row does not go that way, and where it gave up.

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
use crate::column_reader::{Column, Remembered, Texts};
use crate::column_writer::Writer;
use crate::part::{Ended, Failed, IsOver, Part};
use crate::plan::{Form, From, Plan};

/// How many rows make a block: what they take and give stays near the processor, and what is done once for a block is
/// little for a row.
const BLOCK: usize = 128;
/// For how many rows is asked at a time how they are to be run: what is asked and told then is written by all threads.
const ASKED: usize = 16 * BLOCK;

/// The inputs of a part, for the ordinary way.
enum Source<'a> {
    Columns(Vec<Column<'a>>),
    Json(Texts<'a>, &'a ArrayRef),
}

/// What came of a part.
pub(crate) struct Ran {
    columns: Vec<ArrayRef>,
    errors: Vec<(usize, Ended)>,
}

impl Ran {
    pub(crate) fn with(self, given: RecordBatch, (began, clock): (SystemTime, Instant)) -> Part {
        Part {
            given,
            columns: self.columns,
            errors: self.errors,
            began,
            took: clock.elapsed(),
        }
    }
}

/// A part of a table on its way through the node.
pub(crate) struct Pass<'a, 'p> {
    program: &'a Program,
    plan: &'a Plan,
    given: &'a RecordBatch,
    rows: &'a mut Rows<'p>,
    /// Made when the first row needs it: in most parts none does.
    source: Option<Source<'a>>,
    remembered: Option<&'a mut [Remembered]>,
    is_over: IsOver<'a>,
    guards_rows: bool,
    writers: Vec<Writer>,
    errors: Vec<(usize, Ended)>,
}

/// How rows without a frame ended.
#[derive(Default)]
struct Tally {
    outputs: u32,
    missed: u32,
}

/// What the way without a frame needs for a part.
struct Swift<'a> {
    fillers: Fillers<'a>,
    block: Block<'a>,
    scratch: Scratch,
}

impl<'a> Swift<'a> {
    fn new(
        program: &'a Program,
        plan: &'a Plan,
        given: &'a RecordBatch,
        express: &dyn Express,
    ) -> Option<Self> {
        Some(Self {
            fillers: Fillers::new(program, plan, given)?,
            block: Block::new(express.shape(), BLOCK)?,
            scratch: Scratch::default(),
        })
    }
}

impl<'a, 'p> Pass<'a, 'p> {
    pub(crate) fn new(
        program: &'a Program,
        plan: &'a Plan,
        given: &'a RecordBatch,
        rows: &'a mut Rows<'p>,
        remembered: &'a mut [Remembered],
        is_over: IsOver<'a>,
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
            remembered: Some(remembered),
            is_over,
            guards_rows,
            writers: declared
                .map(|(output, scale)| Writer::new(&output.ty, *scale, length))
                .collect(),
            errors: Vec::new(),
        }
    }

    /// Runs all rows, by the way without a frame where there is one; each may spend so much fuel on it.
    pub(crate) fn all(&mut self, fuel: u64) -> Result<(), Failed> {
        let length = self.given.num_rows();
        let mut swift: Option<Swift<'a>> = None;
        let mut row = 0;
        while row < length {
            let count = u32::try_from((length - row).min(ASKED)).unwrap_or(u32::MAX);
            let (express, count) = match self.program.express_rows(count) {
                Ok(found) => found,
                Err(count) => {
                    let end = length.min(row.saturating_add(count as usize));
                    self.ordinary(row..end)?;
                    row = end;
                    continue;
                }
            };
            if swift.is_none() {
                swift = Swift::new(self.program, self.plan, self.given, express);
            }
            let Some(swift) = &mut swift else {
                // A column is read cell by cell, or an input has parts.
                return self.ordinary(row..length);
            };
            let scaled = self
                .program
                .express_scaled(express, swift.fillers.scales(), count);
            let express = scaled.unwrap_or(express);
            let end = length.min(row.saturating_add(count as usize));
            let mut tally = Tally::default();
            while row < end {
                self.go_on()?;
                let block = row..length.min(row + BLOCK);
                row = block.end;
                self.block(swift, express, &block, fuel, &mut tally)?;
                if tally.missed > tally.outputs {
                    break; // that is told before more of them give up
                }
            }
            self.program.expressed_rows(tally.outputs, tally.missed);
        }
        Ok(())
    }

    fn go_on(&self) -> Result<(), Failed> {
        if (self.is_over)() {
            return Err(Failed::Over);
        }
        Ok(())
    }

    /// Runs a block of rows without a frame, and in the ordinary way those that have no outputs then.
    fn block(
        &mut self,
        swift: &mut Swift<'a>,
        express: &dyn Express,
        rows: &Range<usize>,
        fuel: u64,
        tally: &mut Tally,
    ) -> Result<(), Failed> {
        let Swift {
            fillers,
            block,
            scratch,
        } = swift;
        block.begin(rows.len());
        if !fillers.fill(block, rows) {
            return self.ordinary(rows.clone());
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
                        return Err(Failed::Engine(
                            "an output is of another form than its column".to_owned(),
                        ));
                    }
                }
            } else {
                let start = rows.start;
                self.ordinary(start + at..start + end)?;
            }
            at = end;
        }
        Ok(())
    }

    /// Runs these rows one by one in the ordinary way.
    pub(crate) fn ordinary(&mut self, rows: Range<usize>) -> Result<(), Failed> {
        let mut source = match (self.source.take(), self.remembered.take()) {
            (Some(source), _) => source,
            (None, remembered) => source(
                self.program,
                self.plan,
                self.given,
                remembered.unwrap_or_default(),
            )?,
        };
        for row in rows {
            self.go_on()?;
            self.row(&mut source, row);
        }
        self.source = Some(source);
        Ok(())
    }

    fn row(&mut self, source: &mut Source<'a>, row: usize) {
        let outcome = match read(self.program, self.plan, source, self.rows, row) {
            Err(problems) => Err(Ended::Refused(problems)),
            Ok(()) if self.guards_rows => guarded(|| self.rows.run()).map_err(Ended::Panicked),
            Ok(()) => Ok(self.rows.run()),
        };
        let ended = match outcome {
            Ok(Outcome::Returned(values)) => {
                let mut pairs = self.writers.iter().zip(&values);
                if let Some(place) = pairs.position(|(of, value)| !of.fits(value)) {
                    Ended::Misfit(place, values.into_iter().nth(place).unwrap_or(Value::Null))
                } else {
                    for (writer, value) in self.writers.iter_mut().zip(&values) {
                        writer.append(value);
                    }
                    return;
                }
            }
            Ok(outcome) => Ended::Otherwise(outcome),
            Err(ended) => ended,
        };
        self.errors.push((row, ended));
        for writer in &mut self.writers {
            writer.append_null();
        }
    }

    /// The kept columns and the outputs.
    pub(crate) fn finish(mut self) -> Result<Ran, Failed> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.plan.kept.len() + self.writers.len() + 1);
        for place in &self.plan.kept {
            columns.extend(self.given.columns().get(*place).cloned());
        }
        for writer in &mut self.writers {
            columns.push(writer.finish()?);
        }
        Ok(Ran {
            columns,
            errors: self.errors,
        })
    }
}

fn no_column() -> Failed {
    Failed::Engine("a part of a table has fewer columns than its schema".to_owned())
}

fn source<'a>(
    program: &'a Program,
    plan: &'a Plan,
    given: &'a RecordBatch,
    remembered: &'a mut [Remembered],
) -> Result<Source<'a>, Failed> {
    if plan.form == Form::Json {
        let texts = given.columns().get(plan.texts).ok_or_else(no_column)?;
        let of = Texts::of(texts.as_ref()).ok_or_else(no_column)?;
        return Ok(Source::Json(of, texts));
    }
    let mut columns = Vec::with_capacity(plan.inputs.len());
    let declared = program.node().inputs.iter();
    for ((input, from), remembered) in declared.zip(&plan.inputs).zip(remembered) {
        columns.push(match from {
            From::Same(value) => Column::absent(value.clone()),
            From::Column(place) => {
                let array = given.columns().get(*place).ok_or_else(no_column)?.as_ref();
                if plan.form == Form::Spelled {
                    Column::spelled(array)
                } else {
                    Column::new(&input.ty, array, remembered)
                }
            }
        });
    }
    Ok(Source::Columns(columns))
}

/// Writes the inputs of a row, or finds every problem with them.
#[inline]
fn read(
    program: &Program,
    plan: &Plan,
    source: &mut Source<'_>,
    rows: &mut Rows<'_>,
    row: usize,
) -> Result<(), Problems> {
    let columns = match source {
        Source::Columns(columns) => columns,
        Source::Json(texts, array) => {
            let text = if array.is_null(row) { "" } else { texts.value(row) };
            let values = program.inputs_of_json(text.as_bytes())?;
            for (place, value) in rows.inputs().iter_mut().zip(values) {
                *place = value;
            }
            return Ok(());
        }
    };
    let mut conversion: Option<Conversion> = None;
    let declared = program.node().inputs.iter();
    for ((column, place), input) in columns.iter_mut().zip(rows.inputs()).zip(declared) {
        if column.read(row, place) {
            continue;
        }
        let is_spelled = plan.form == Form::Spelled;
        let conversion = conversion.get_or_insert_with(Conversion::default);
        let default = input.default.as_ref();
        if let Some(value) = column.read_cell(&input.ty, default, row, is_spelled, &input.name, conversion) {
            *place = value;
        }
    }
    match conversion {
        Some(conversion) if !conversion.problems.is_empty() => Err(conversion.problems),
        _ => Ok(()),
    }
}
