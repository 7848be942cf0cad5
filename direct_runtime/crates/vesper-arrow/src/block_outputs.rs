//! Conversion of words to columns: the outputs of many rows at once.

use std::ops::Range;

use vesper_interp::words::{Block, Form};
use vesper_ir::{Decimal, Member};

use crate::column_writer::{Writer, coefficient};

/// All powers of ten within 64 bits.
const POWERS: [i64; 19] = {
    let mut powers = [1; 19];
    let mut place = 1;
    while place < 19 {
        #[allow(
            clippy::indexing_slicing,
            reason = "evaluated by the compiler, where a panic is an error"
        )]
        {
            powers[place] = powers[place - 1] * 10;
        }
        place += 1;
    }
    powers
};

/// Buffers reused from block to block.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The scaled numbers of each output that is a decimal column.
    scaled: Vec<Vec<i128>>,
    longs: Vec<i64>,
    days: Vec<i32>,
    floats: Vec<f64>,
    flags: Vec<bool>,
}

/// Returns the factor, at most 10^18, from a scale to that of a column.
///
/// Such a factor keeps every 64-bit number within the precision of a column.
fn factor(own: u64, scale: u16) -> Option<i64> {
    let more = u64::from(scale).checked_sub(own)?;
    POWERS.get(usize::try_from(more).ok()?).copied()
}

/// Returns the coefficient at the scale of the column, or `None` if it would need rounding.
#[cold]
fn scale_number(number: i64, own: u64, scale: u16) -> Option<i128> {
    match factor(own, scale) {
        Some(factor) => Some(i128::from(number) * i128::from(factor)),
        None => coefficient(
            &Decimal::new(number.into(), u16::try_from(own).ok()?).ok()?,
            scale,
        ),
    }
}

impl Scratch {
    /// Scales the numbers of decimal columns. Drops rows that do not fit; they are run again by rows, which reports
    /// the misfit.
    pub(crate) fn scale(&mut self, block: &mut Block<'_>, writers: &[Writer]) {
        self.scaled.resize_with(writers.len(), Vec::new);
        let rows = block.len();
        for (output, (numbers, writer)) in self.scaled.iter_mut().zip(writers).enumerate() {
            numbers.clear();
            let (Writer::Decimal(_, scale), Some(Form::Decimal)) = (writer, block.form(output)) else {
                continue;
            };
            let scale = *scale;
            let mut misfits = Vec::new();
            // Most rows of a column have the same scale, so its factor is computed once.
            let usual = block.output(output, 0).next().map_or(0, |(_, own)| own);
            let power = factor(usual, scale);
            let words = block.output(output, 0).take(rows).enumerate();
            numbers.extend(words.map(|(row, (first, own))| {
                let number = first.cast_signed();
                match power {
                    Some(power) if own == usual => i128::from(number) * i128::from(power),
                    _ => scale_number(number, own, scale).unwrap_or_else(|| {
                        misfits.push(row);
                        0
                    }),
                }
            }));
            for row in misfits {
                block.leave(row);
            }
        }
    }

    /// Writes an output of these rows, which all have outputs. Returns false if the column has another form.
    pub(crate) fn append(
        &mut self,
        writer: &mut Writer,
        block: &Block<'_>,
        output: usize,
        rows: &Range<usize>,
    ) -> bool {
        let words = || block.output(output, rows.start).take(rows.len());
        let longs = |into: &mut Vec<i64>| {
            into.clear();
            into.extend(words().map(|(first, _)| first.cast_signed()));
        };
        match (writer, block.form(output)) {
            (Writer::Decimal(column, _), Some(Form::Decimal)) => {
                let numbers = self.scaled.get(output).and_then(|of| of.get(rows.clone()));
                let Some(numbers) = numbers else {
                    return false;
                };
                column.append_slice(numbers);
            }
            (Writer::Spelled(column), Some(Form::Decimal)) => {
                for (first, scale) in words() {
                    let scale = u16::try_from(scale).unwrap_or(u16::MAX);
                    match Decimal::new(first.cast_signed().into(), scale) {
                        Ok(number) => column.append_value(number.to_string()),
                        Err(_) => column.append_null(),
                    }
                }
            }
            (Writer::Member(names), Some(Form::Member)) => {
                names.append_all(words().map(|(first, _)| Member(u32::try_from(first).unwrap_or(u32::MAX))));
            }
            (Writer::Text(column), Some(Form::Text)) => {
                for (first, _) in words() {
                    column.append_option(block.text(first));
                }
            }
            (Writer::Integer(column), Some(Form::Integer)) => {
                longs(&mut self.longs);
                column.append_slice(&self.longs);
            }
            (Writer::Timestamp(column), Some(Form::Timestamp)) => {
                longs(&mut self.longs);
                column.append_slice(&self.longs);
            }
            (Writer::Duration(column), Some(Form::Duration)) => {
                longs(&mut self.longs);
                column.append_slice(&self.longs);
            }
            (Writer::Date(column), Some(Form::Date)) => {
                self.days.clear();
                let days = words().map(|(first, _)| i32::try_from(first.cast_signed()).unwrap_or(i32::MAX));
                self.days.extend(days);
                column.append_slice(&self.days);
            }
            (Writer::Float(column), Some(Form::Float)) => {
                self.floats.clear();
                self.floats
                    .extend(words().map(|(first, _)| f64::from_bits(first)));
                column.append_slice(&self.floats);
            }
            (Writer::Boolean(column), Some(Form::Boolean)) => {
                self.flags.clear();
                self.flags.extend(words().map(|(first, _)| first != 0));
                column.append_slice(&self.flags);
            }
            _ => return false,
        }
        true
    }
}
