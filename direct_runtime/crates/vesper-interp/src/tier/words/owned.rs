//! Words with their own texts: the inputs of a run on another thread.

use std::sync::Arc;

use vesper_ir::{Node, Value};

use super::{Given, Shape, Word, Words};

/// The inputs of one frameless run, which borrow nothing. Its memory can be used again.
#[derive(Debug)]
pub struct OwnedWords {
    shape: Arc<Shape>,
    given: u64,
    inputs: Vec<u64>,
    arrays: Vec<(usize, Vec<u64>)>,
    texts: String,
    /// The end of each text in `texts`.
    ends: Vec<usize>,
}

impl OwnedWords {
    pub fn new(shape: &Arc<Shape>) -> Self {
        Self {
            given: 0,
            inputs: vec![0; shape.words],
            arrays: vec![(0, Vec::new()); shape.arrays],
            texts: String::new(),
            ends: Vec::new(),
            shape: Arc::clone(shape),
        }
    }

    /// Copies the inputs of a run. Returns false for words of another node.
    #[inline]
    pub fn set(&mut self, words: &Words<'_>) -> bool {
        if !Arc::ptr_eq(&self.shape, &words.shape) {
            return false;
        }
        self.given = words.given;
        self.inputs.clone_from(&words.inputs);
        for ((count, rows), (from_count, from_rows)) in self.arrays.iter_mut().zip(&words.arrays) {
            *count = *from_count;
            rows.clone_from(from_rows);
        }
        self.texts.clear();
        self.ends.clear();
        for text in &words.texts {
            self.texts.push_str(text);
            self.ends.push(self.texts.len());
        }
        true
    }

    /// Returns the inputs for a run, in the memory of an earlier one.
    pub fn load<'a>(&'a self, room: Words<'_>) -> Words<'a> {
        let mut words = if Arc::ptr_eq(&self.shape, &room.shape) {
            room.again()
        } else {
            Words::new(&self.shape)
        };
        words.given = self.given;
        words.inputs.clone_from(&self.inputs);
        for ((count, rows), (from_count, from_rows)) in words.arrays.iter_mut().zip(&self.arrays) {
            *count = *from_count;
            rows.clone_from(from_rows);
        }
        let mut start = 0;
        for end in &self.ends {
            words.texts.push(self.texts.get(start..*end).unwrap_or_default());
            start = *end;
        }
        words
    }

    /// Returns the approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let rows: usize = self
            .arrays
            .iter()
            .map(|(_, rows)| size_of_val(rows.as_slice()))
            .sum();
        size_of_val(self.inputs.as_slice())
            + size_of_val(self.ends.as_slice())
            + self.texts.len()
            + rows
            + size_of::<Self>()
    }

    /// Adds the inputs as values to an empty frame. Returns `None` if an input is missing.
    pub fn values(&self, node: &Node, mut frame: Vec<Value>) -> Option<Vec<Value>> {
        let words = self.load(Words::new(&self.shape));
        if !words.is_whole() || self.shape.inputs.len() != node.inputs.len() {
            return None;
        }
        for (place, given) in self.shape.inputs.iter().enumerate() {
            let value = match given {
                Given::Value { form, at } => value_of(words.word(*form, words.inputs.get(*at..)?)?),
                Given::Rows(_) => {
                    let rows = words.rows_of(place)?;
                    let record = |number| {
                        let field = |field| {
                            let (form, bits) = rows.field(number, field)?;
                            Some(value_of(words.word(form, bits)?))
                        };
                        let fields: Option<Arc<[Value]>> = (0..rows.fields()).map(field).collect();
                        fields.map(Value::Record)
                    };
                    let records: Option<Arc<[Value]>> = (0..rows.count()).map(record).collect();
                    Value::Array(records?)
                }
            };
            frame.push(value);
        }
        Some(frame)
    }
}

fn value_of(word: Word<'_>) -> Value {
    match word {
        Word::Boolean(value) => Value::Boolean(value),
        Word::Integer(value) => Value::Integer(value),
        Word::Float(value) => Value::Float(value),
        Word::Decimal(coefficient, scale) => {
            let mut value = Value::Null;
            value.put_small_decimal(i128::from(coefficient), scale);
            value
        }
        Word::Timestamp(value) => Value::Timestamp(value),
        Word::Date(value) => Value::Date(value),
        Word::Duration(value) => Value::Duration(value),
        Word::Member(member) => Value::Member(member),
        Word::Text(text) => Value::Text(Arc::from(text)),
    }
}
