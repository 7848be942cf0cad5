//! Many runs without a frame, one after the other: the inputs of all of them are written column by column, and the outputs
//! read so.
//!
//! What is the same for all rows of a column (its form, where it stands in a row) is looked at once for a column and not
//! once for a value. A row that cannot be run so is left out: it is then run in the ordinary way.

use std::sync::Arc;

use vesper_ir::planted;

use super::{Express, Form, Given, Shape, Word, Words, all, write};

/// Room for the inputs and outputs of many runs.
#[derive(Debug)]
pub struct Block<'a> {
    /// Those of all rows; where one begins is set before it is run.
    words: Words<'a>,
    most: usize,
    /// For each row, before it is run: whether it can be; and after it was: whether it has outputs.
    rows: Vec<bool>,
}

impl<'a> Block<'a> {
    /// Room for so many runs of this shape at a time; nothing where an input is an array.
    pub fn new(shape: &Arc<Shape>, most: usize) -> Option<Self> {
        if shape.arrays > 0 {
            return None;
        }
        let mut words = Words::new(shape);
        words.words = vec![0; shape.words.checked_mul(most)?];
        words.results = vec![0; shape.results.checked_mul(most)?];
        Some(Self {
            words,
            most,
            rows: Vec::with_capacity(most),
        })
    }

    /// Forgets what was there, and begins so many rows, of which nothing is written yet.
    pub fn begin(&mut self, rows: usize) {
        self.words.clear();
        self.rows.clear();
        self.rows.resize(rows.min(self.most), true);
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes an input of every row; a row for which there is nothing, or something of another form, is left out. False
    /// where there is no such input, or there are fewer than rows: then none is run.
    #[inline]
    pub fn put(&mut self, input: usize, given: impl Iterator<Item = Option<Word<'a>>>) -> bool {
        let Words {
            shape, words, texts, ..
        } = &mut self.words;
        let Some(Given::Value { form, at }) = shape.inputs.get(input) else {
            return false;
        };
        let (form, at) = (*form, *at);
        let mut count = 0;
        let places = words.chunks_exact_mut(shape.words.max(1));
        for ((place, row), word) in places.zip(&mut self.rows).zip(given) {
            let is_written = match (word, place.get_mut(at..)) {
                (Some(word), Some(place)) => write(form, place, texts, word),
                _ => false,
            };
            *row &= is_written;
            count += 1;
        }
        if count < self.rows.len() {
            return false;
        }
        self.words.given |= 1 << (input % super::MOST);
        true
    }

    /// Leaves a row out: it has no outputs here.
    #[inline]
    pub fn leave(&mut self, row: usize) {
        if let Some(row) = self.rows.get_mut(row) {
            *row = false;
        }
    }

    /// Runs every row that was not left out; each may spend so many units of fuel. How many have outputs now, and how
    /// many gave up.
    pub fn run(&mut self, express: &dyn Express, fuel: u64) -> (u32, u32) {
        let shape = Arc::clone(&self.words.shape);
        let (mut outputs, mut missed) = (0, 0);
        if self.words.given != all(shape.inputs.len()) {
            self.rows.fill(false);
            return (0, 0);
        }
        for (number, row) in self.rows.iter_mut().enumerate() {
            if !planted!("express.rows_that_are_left_out_are_run", *row, true) {
                continue;
            }
            let results = planted!(
                "express.results_stand_one_row_before",
                number,
                number.saturating_sub(1)
            );
            self.words.at = (number * shape.words, results * shape.results);
            *row = express.run(&mut self.words, fuel);
            if *row {
                outputs += 1;
            } else {
                missed += 1;
            }
        }
        self.words.at = (0, 0);
        (outputs, missed)
    }

    /// Of every row, whether it has outputs.
    pub fn has_outputs(&self) -> &[bool] {
        &self.rows
    }

    /// As what an output stands.
    pub fn form(&self, output: usize) -> Option<Form> {
        self.words.shape.outputs.get(output).map(|(form, _)| *form)
    }

    /// The words of an output in the rows from one on: of a decimal the coefficient and the scale, of anything else one,
    /// and a second that says nothing. Those of rows without outputs say nothing at all.
    #[inline]
    pub fn output(&self, output: usize, from: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let shape = &self.words.shape;
        let (form, at) = shape
            .outputs
            .get(output)
            .copied()
            .unwrap_or((Form::Boolean, usize::MAX));
        let last = form.width() - 1;
        let rows = self.words.results.chunks_exact(shape.results.max(1)).skip(from);
        rows.map(move |row| match row.get(at..) {
            Some([first, ..]) => (*first, row.get(at + last).copied().unwrap_or(0)),
            _ => (0, 0),
        })
    }

    /// The text that a word of an output stands for.
    #[inline]
    pub fn text(&self, word: u64) -> Option<&str> {
        self.words.text(word)
    }
}

#[cfg(test)]
mod tests;
