//! Blocks of frameless runs, with inputs written and outputs read column by column.
//!
//! The form and position of a column are checked once per column instead of once per value. A row that cannot run
//! this way is excluded and runs with a frame.

use std::slice::ChunksExactMut;
use std::sync::Arc;

use super::{Express, Form, Given, Shape, Word, Words, bits_below, write};

/// The memory passed to machine code for the rows of a block.
#[derive(Debug)]
pub struct RawRows<'w, 'a> {
    pub texts: &'w [&'a str],
    pub numbers: &'w [u64],
    rows: &'w mut [bool],
    words: ChunksExactMut<'w, u64>,
    results: ChunksExactMut<'w, u64>,
}

impl<'w> RawRows<'w, '_> {
    /// Returns each active row: its success flag, its words and its results.
    #[inline]
    pub fn rows(self) -> impl Iterator<Item = (&'w mut bool, &'w mut [u64], &'w mut [u64])> {
        let rows = self.rows.iter_mut().zip(self.words).zip(self.results);
        rows.map(|((row, words), results)| (row, words, results))
            .filter(|(row, ..)| **row)
    }
}

/// Inputs and outputs of many frameless runs.
#[derive(Debug)]
pub struct Block<'a> {
    /// The words of all rows; the offset is set before each run.
    words: Words<'a>,
    max_rows: usize,
    /// Per row: whether it can run, and after the run whether it has outputs.
    rows: Vec<bool>,
}

impl<'a> Block<'a> {
    /// Creates a block of at most `max_rows` rows. Returns `None` if an input is an array or there are no words.
    pub fn new(shape: &Arc<Shape>, max_rows: usize) -> Option<Self> {
        if shape.arrays > 0 || shape.words == 0 || shape.results == 0 {
            return None;
        }
        let mut words = Words::new(shape);
        words.inputs = vec![0; shape.words.checked_mul(max_rows)?];
        words.results = vec![0; shape.results.checked_mul(max_rows)?];
        Some(Self {
            words,
            max_rows,
            rows: Vec::with_capacity(max_rows),
        })
    }

    /// Clears the block and starts this many empty rows.
    pub fn begin(&mut self, rows: usize) {
        self.words.clear();
        self.rows.clear();
        self.rows.resize(rows.min(self.max_rows), true);
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes an input of every row. Excludes rows without a value of the right form. Returns false, and no row runs,
    /// if the input does not exist or has too few values.
    #[inline]
    pub fn put(&mut self, input: usize, given: impl Iterator<Item = Option<Word<'a>>>) -> bool {
        let Words {
            shape,
            inputs: words,
            texts,
            ..
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
        self.finish_put(input, count)
    }

    /// Writes a text input of every row, with its number (`number_of_text`). Machine code recognises short texts by
    /// it.
    #[inline]
    pub fn put_texts(&mut self, input: usize, given: impl Iterator<Item = (&'a str, u64)>) -> bool {
        let Words {
            shape,
            inputs: words,
            texts,
            numbers,
            ..
        } = &mut self.words;
        let Some(Given::Value { form: Form::Text, at }) = shape.inputs.get(input) else {
            return false;
        };
        let first = texts.len();
        // Texts written one by one have no number.
        numbers.resize(first, 0);
        numbers.reserve(self.rows.len() + 1);
        texts.extend(given.take(self.rows.len()).map(|(text, number)| {
            numbers.push(number);
            text
        }));
        numbers.push(0);
        let places = words.get_mut(*at..).unwrap_or_default();
        let places = places.iter_mut().step_by(shape.words.max(1));
        let count = texts.len() - first;
        for (place, number) in places.zip(first..texts.len()) {
            *place = number as u64;
        }
        self.finish_put(input, count)
    }

    /// Writes an enum input of every row. Excludes rows without a member.
    #[inline]
    pub fn put_members(&mut self, input: usize, given: impl Iterator<Item = Option<u32>>) -> bool {
        let shape = &self.words.shape;
        let Some(Given::Value {
            form: Form::Member,
            at,
        }) = shape.inputs.get(input)
        else {
            return false;
        };
        let places = self.words.inputs.get_mut(*at..).unwrap_or_default();
        let places = places.iter_mut().step_by(shape.words.max(1));
        let mut count = 0;
        for ((place, row), member) in places.zip(&mut self.rows).zip(given) {
            *row &= member.is_some();
            *place = member.unwrap_or_default().into();
            count += 1;
        }
        self.finish_put(input, count)
    }

    fn finish_put(&mut self, input: usize, count: usize) -> bool {
        if count < self.rows.len() {
            return false;
        }
        self.words.given |= 1 << (input % super::MAX_PLACES);
        true
    }

    /// Excludes a row, which then has no outputs here.
    #[inline]
    pub fn leave(&mut self, row: usize) {
        if let Some(row) = self.rows.get_mut(row) {
            *row = false;
        }
    }

    /// Runs every active row within this fuel each. Returns how many produced outputs and how many gave up.
    pub fn run(&mut self, express: &dyn Express, fuel: u64) -> (u32, u32) {
        let count = |rows: &[bool]| rows.iter().map(|row| u32::from(*row)).sum::<u32>();
        if self.words.given != bits_below(self.words.shape.inputs.len()) {
            self.rows.fill(false);
        }
        let tried = count(&self.rows);
        express.run_rows(self, fuel);
        let outputs = count(&self.rows);
        (outputs, tried.saturating_sub(outputs))
    }

    /// Runs every active row with the given function.
    pub fn run_each(&mut self, mut run: impl FnMut(&mut Words<'a>) -> bool) {
        let (words, results) = (self.words.shape.words, self.words.shape.results);
        for (number, row) in self.rows.iter_mut().enumerate() {
            if *row {
                self.words.at = (number * words, number * results);
                *row = run(&mut self.words);
            }
        }
        self.words.at = (0, 0);
    }

    /// Returns the memory for machine code of exactly this shape. Returns `None`, and no row has outputs, if the
    /// shape differs or an input is missing.
    #[inline]
    pub fn raw(&mut self, shape: &Arc<Shape>) -> Option<RawRows<'_, 'a>> {
        if !Arc::ptr_eq(shape, &self.words.shape) || !self.words.is_whole() {
            self.rows.fill(false);
            return None;
        }
        Some(RawRows {
            texts: &self.words.texts,
            numbers: &self.words.numbers,
            rows: &mut self.rows,
            words: self.words.inputs.chunks_exact_mut(shape.words.max(1)),
            results: self.words.results.chunks_exact_mut(shape.results.max(1)),
        })
    }

    /// Returns for each row whether it has outputs.
    pub fn has_outputs(&self) -> &[bool] {
        &self.rows
    }

    /// Returns the form of an output.
    pub fn form(&self, output: usize) -> Option<Form> {
        self.words.shape.outputs.get(output).map(|(form, _)| *form)
    }

    /// Returns the words of an output from row `from` on: coefficient and scale of a decimal, otherwise the value and
    /// an unused word. Rows without outputs have arbitrary words.
    #[inline]
    pub fn output(&self, output: usize, from: usize) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        let shape = &self.words.shape;
        let (form, at) = shape
            .outputs
            .get(output)
            .copied()
            .unwrap_or((Form::Boolean, usize::MAX));
        let rows = self.words.results.chunks_exact(shape.results.max(1)).skip(from);
        // A form of one word yields it twice; the second is unused.
        let second = at.saturating_add(form.width() - 1);
        rows.map(move |row| match (row.get(at), row.get(second)) {
            (Some(first), Some(second)) => (*first, *second),
            _ => (0, 0),
        })
    }

    /// Returns the text that an output word refers to.
    #[inline]
    pub fn text(&self, word: u64) -> Option<&str> {
        self.words.text(word)
    }
}

#[cfg(test)]
mod tests;
