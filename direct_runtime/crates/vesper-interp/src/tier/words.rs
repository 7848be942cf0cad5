//! Frameless runs: inputs and outputs as 64-bit words, for machine code that creates no values.
//!
//! The caller writes inputs (from a dict, a line of JSON or a row of a batch) to `Words`. Machine code of the whole
//! node (`Express`) computes the outputs, or gives up on a broken clause, an overflow, a new text or exhausted fuel.
//! Giving up has no effect: the caller runs the node again with a frame, which reports every failure. Only nodes
//! without effects run this way.
//!
//! SAFETY: a text is an index into the borrowed texts of the run, so machine code never reads an address that it was
//! given, and an invalid index is detected.

use std::fmt::Debug;
use std::sync::Arc;

use vesper_ir::value::Member;
use vesper_ir::{Node, Type, Value};

use crate::bytecode::Code;
use crate::observe::path::Path;

mod block;
mod owned;
mod pace;

pub use block::{Block, RawRows};
pub use owned::OwnedWords;
pub use pace::Pace;

/// Machine code of a node that reads and writes words.
pub trait Express: Debug + Send + Sync {
    /// Returns the layout of inputs and outputs.
    fn shape(&self) -> &Arc<Shape>;

    /// Computes the outputs within this fuel, or gives up. Leaves the input words unchanged, because the fingerprint
    /// hashes them afterwards.
    fn run(&self, words: &mut Words<'_>, fuel: u64) -> Ended;

    /// Runs every active row of a block, each within this fuel.
    fn run_rows(&self, block: &mut Block<'_>, fuel: u64) {
        block.run_each(|words| self.run(words, fuel) == Ended::Done);
    }

    /// Returns the bytes of machine code, or zero if they belong to another function.
    fn size(&self) -> usize {
        0
    }
}

/// How a frameless run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The outputs are in the words.
    Done,
    /// The run met a case that machine code does not handle.
    GaveUp,
    /// The run would exceed its fuel; nothing was spent.
    TooLong,
}

/// The representation of a value in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    Boolean,
    Integer,
    Float,
    /// A 64-bit coefficient and a scale.
    Decimal,
    Timestamp,
    Date,
    Duration,
    Member,
    /// An index into the texts of the run, or with `CONSTANT` into the constants.
    Text,
}

/// Marks a constant text: the other bits are its index among the constants.
pub const CONSTANT: u64 = 1 << 63;

/// The maximum inputs of a node or fields of a record. A 64-bit mask records which were given.
const MAX_PLACES: usize = 64;

impl Form {
    /// Returns the form of a type, or `None` for optional and composite types.
    pub fn of(ty: &Type) -> Option<Self> {
        match ty {
            Type::Boolean => Some(Self::Boolean),
            Type::Integer => Some(Self::Integer),
            Type::Float => Some(Self::Float),
            Type::Decimal => Some(Self::Decimal),
            Type::Timestamp => Some(Self::Timestamp),
            Type::Date => Some(Self::Date),
            Type::Duration => Some(Self::Duration),
            Type::Enum(_) => Some(Self::Member),
            Type::Text => Some(Self::Text),
            _ => None,
        }
    }

    /// Returns the number of words.
    #[inline]
    pub fn width(self) -> usize {
        match self {
            Self::Decimal => 2,
            _ => 1,
        }
    }
}

/// A value to write to words or read from them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word<'a> {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Decimal(i64, u16),
    Timestamp(i64),
    Date(i32),
    Duration(i64),
    Member(Member),
    Text(&'a str),
}

impl<'a> Word<'a> {
    /// Converts a value, or returns `None` for composite values and large decimals.
    pub fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Boolean(value) => Some(Self::Boolean(*value)),
            Value::Integer(value) => Some(Self::Integer(*value)),
            Value::Float(value) => Some(Self::Float(*value)),
            Value::Decimal(value) => {
                let (coefficient, scale) = value.as_small()?;
                Some(Self::Decimal(i64::try_from(coefficient).ok()?, scale))
            }
            Value::Timestamp(value) => Some(Self::Timestamp(*value)),
            Value::Date(value) => Some(Self::Date(*value)),
            Value::Duration(value) => Some(Self::Duration(*value)),
            Value::Member(value) => Some(Self::Member(*value)),
            Value::Text(value) => Some(Self::Text(value)),
            _ => None,
        }
    }
}

/// The position of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Value {
        form: Form,
        at: usize,
    },
    /// An array of records, one row each: the address of the first row and the row count.
    Rows(RowShape),
}

/// The layout of the records of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowShape {
    /// The position of the two words of the array.
    pub at: usize,
    /// The form and offset of each field, in declared order.
    pub fields: Vec<(Form, usize)>,
    /// Words per row.
    pub width: usize,
    /// The index among the arrays of the inputs.
    pub array: usize,
}

/// The position of the path of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathShape {
    /// The register of its first word.
    pub first: usize,
    pub words: usize,
    /// Its position among the input words, where it starts empty.
    pub from: usize,
    /// Its position among the results.
    pub to: usize,
}

/// The layout of the inputs and outputs of a node.
#[derive(Debug)]
pub struct Shape {
    /// In declared order.
    pub inputs: Vec<Given>,
    /// The number of input words.
    pub words: usize,
    /// The form and position of each output, in declared order.
    pub outputs: Vec<(Form, usize)>,
    /// The number of result words.
    pub results: usize,
    /// The position of the path; only in the pathed form.
    pub path: Option<PathShape>,
    arrays: usize,
    /// The constants of the code, for texts.
    constants: Vec<Value>,
}

/// The scale of all decimals of each input, if known before the run.
pub type Scales = [Option<u16>];

impl Shape {
    /// Returns the layout of a node. Returns `None` if an input or output has no form in words.
    pub(crate) fn of(node: &Node, code: &Code) -> Option<Self> {
        if node.inputs.len() > MAX_PLACES || code.returns.len() != node.outputs.len() {
            return None;
        }
        let mut shape = Self {
            inputs: Vec::with_capacity(node.inputs.len()),
            words: 0,
            outputs: Vec::with_capacity(node.outputs.len()),
            results: 0,
            path: None,
            arrays: 0,
            constants: code.constants.clone(),
        };
        for input in &node.inputs {
            let at = shape.words;
            let given = if let Some(form) = Form::of(&input.ty) {
                shape.words += form.width();
                Given::Value { form, at }
            } else {
                let rows = shape.rows(&input.ty)?;
                shape.words += 2;
                shape.arrays += 1;
                Given::Rows(rows)
            };
            shape.inputs.push(given);
        }
        for output in &node.outputs {
            let form = Form::of(&output.ty)?;
            shape.outputs.push((form, shape.results));
            shape.results += form.width();
        }
        shape.path = code.path.as_ref().map(|path| PathShape {
            first: path.first.0 as usize,
            words: path.words,
            from: shape.words,
            to: shape.results,
        });
        if let Some(path) = shape.path {
            shape.words += path.words;
            shape.results += path.words;
        }
        Some(shape)
    }

    fn rows(&self, ty: &Type) -> Option<RowShape> {
        let Type::Array(of) = ty else {
            return None;
        };
        let Type::Record(record) = &**of else {
            return None;
        };
        let mut rows = RowShape {
            at: self.words,
            fields: Vec::with_capacity(record.fields().len()),
            width: 0,
            array: self.arrays,
        };
        if record.fields().len() > MAX_PLACES {
            return None;
        }
        for field in record.fields() {
            let form = Form::of(&field.ty)?;
            rows.fields.push((form, rows.width));
            rows.width += form.width();
        }
        Some(rows)
    }
}

/// The inputs of one frameless run, then its outputs.
#[derive(Debug)]
pub struct Words<'a> {
    shape: Arc<Shape>,
    given: u64,
    inputs: Vec<u64>,
    /// The record count and the rows of each array.
    arrays: Vec<(usize, Vec<u64>)>,
    texts: Vec<&'a str>,
    /// The numbers of the texts (`number_of_text`), followed by a zero.
    numbers: Vec<u64>,
    results: Vec<u64>,
    /// The offsets of this run in words and results. A `Block` shares both between runs.
    at: (usize, usize),
}

/// The memory passed to machine code.
#[derive(Debug)]
pub struct Raw<'w, 'a> {
    pub words: &'w mut [u64],
    pub results: &'w mut [u64],
    pub texts: &'w [&'a str],
    pub numbers: &'w [u64],
}

/// Encodes a text of one to seven bytes as a unique number. Any other text is zero. `eight` starts with its bytes;
/// the rest is ignored.
#[inline]
pub fn number_of_text(eight: [u8; 8], length: usize) -> u64 {
    let Some(bits) = u32::try_from(length).ok().filter(|length| *length < 8) else {
        return 0;
    };
    let own = u64::from_le_bytes(eight) & ((1_u64 << (bits * 8)) - 1);
    own | u64::from(bits) << 56
}

/// One row of an array, complete once every field is written.
#[derive(Debug)]
pub struct Row<'w, 'a> {
    shape: &'w RowShape,
    bits: &'w mut [u64],
    texts: &'w mut Vec<&'a str>,
    given: u64,
}

/// A read-only view of the records of an array.
#[derive(Debug)]
pub(crate) struct RowsView<'w> {
    shape: &'w RowShape,
    bits: &'w [u64],
    count: usize,
}

impl<'w> RowsView<'w> {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of fields per record.
    pub(crate) fn fields(&self) -> usize {
        self.shape.fields.len()
    }

    /// Returns the form of a field and the words from its first one on.
    pub(crate) fn field(&self, number: usize, field: usize) -> Option<(Form, &'w [u64])> {
        let (form, at) = *self.shape.fields.get(field)?;
        let start = number.checked_mul(self.shape.width)? + at;
        Some((form, self.bits.get(start..)?))
    }
}

/// Returns a mask of the lowest `count` bits.
#[inline]
fn bits_below(count: usize) -> u64 {
    u64::MAX
        .checked_shr(u32::try_from(64 - count.min(64)).unwrap_or(64))
        .unwrap_or(0)
}

/// Writes a value to its words. Returns false if the form differs.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "callers pass a known variant, so inlining leaves one comparison"
)]
fn write<'a>(form: Form, place: &mut [u64], texts: &mut Vec<&'a str>, word: Word<'a>) -> bool {
    let bits = match (form, word) {
        (Form::Boolean, Word::Boolean(value)) => u64::from(value),
        (Form::Integer, Word::Integer(value))
        | (Form::Timestamp, Word::Timestamp(value))
        | (Form::Duration, Word::Duration(value)) => value.cast_unsigned(),
        (Form::Float, Word::Float(value)) => value.to_bits(),
        (Form::Date, Word::Date(value)) => i64::from(value).cast_unsigned(),
        (Form::Member, Word::Member(Member(place))) => u64::from(place),
        (Form::Text, Word::Text(text)) => {
            texts.push(text);
            texts.len() as u64 - 1
        }
        (Form::Decimal, Word::Decimal(coefficient, scale)) => {
            let Some([first, second]) = place
                .get_mut(..2)
                .and_then(|two| <&mut [u64; 2]>::try_from(two).ok())
            else {
                return false;
            };
            *first = coefficient.cast_unsigned();
            *second = u64::from(scale);
            return true;
        }
        _ => return false,
    };
    match place.first_mut() {
        Some(place) => {
            *place = bits;
            true
        }
        None => false,
    }
}

impl<'a> Words<'a> {
    /// Creates words of this shape.
    pub fn new(shape: &Arc<Shape>) -> Self {
        Self {
            given: 0,
            inputs: vec![0; shape.words],
            arrays: vec![(0, Vec::new()); shape.arrays],
            texts: Vec::new(),
            numbers: vec![0],
            results: vec![0; shape.results],
            at: (0, 0),
            shape: Arc::clone(shape),
        }
    }

    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Reuses the memory for another run, whose texts have another lifetime.
    #[inline]
    pub fn again<'b>(mut self) -> Words<'b> {
        self.clear();
        Words {
            shape: self.shape,
            given: 0,
            inputs: self.inputs,
            arrays: self.arrays,
            // `collect` reuses the allocation; the list is empty.
            texts: self.texts.into_iter().map(|_| "").collect(),
            numbers: self.numbers,
            results: self.results,
            at: self.at,
        }
    }

    /// Replaces borrowed texts by copies, so that their lender can drop them.
    pub fn with_own_texts(self, copies: &mut String) -> Words<'_> {
        copies.clear();
        copies.reserve_exact(self.texts.iter().map(|text| text.len()).sum());
        self.texts.iter().for_each(|text| copies.push_str(text));
        let mut left = copies.as_str();
        let own = |text: &str| {
            let (own, behind) = left.split_at(text.len());
            left = behind;
            own
        };
        Words {
            shape: self.shape,
            given: self.given,
            inputs: self.inputs,
            arrays: self.arrays,
            texts: self.texts.into_iter().map(own).collect(),
            numbers: self.numbers,
            results: self.results,
            at: self.at,
        }
    }

    /// Clears the inputs of the previous run.
    #[inline]
    pub fn clear(&mut self) {
        self.given = 0;
        self.arrays.iter_mut().for_each(|(_, rows)| rows.clear());
        self.texts.clear();
        if self.numbers.len() > 1 {
            self.numbers.clear();
            self.numbers.push(0);
        }
    }

    /// Writes an input. Returns false if the form differs.
    #[inline]
    pub fn put(&mut self, input: usize, word: Word<'a>) -> bool {
        let Some(Given::Value { form, at }) = self.shape.inputs.get(input) else {
            return false;
        };
        let Some(place) = self.inputs.get_mut(*at..) else {
            return false;
        };
        self.given |= 1 << (input % MAX_PLACES);
        write(*form, place, &mut self.texts, word)
    }

    /// Starts an array of this many records.
    #[inline]
    pub fn begin_rows(&mut self, input: usize, count: usize) -> bool {
        let Some(Given::Rows(shape)) = self.shape.inputs.get(input) else {
            return false;
        };
        let Some((counted, rows)) = self.arrays.get_mut(shape.array) else {
            return false;
        };
        self.given |= 1 << (input % MAX_PLACES);
        *counted = count;
        rows.clear();
        rows.resize(count.saturating_mul(shape.width), 0);
        true
    }

    /// Returns one row of a started array.
    #[inline]
    pub fn row(&mut self, input: usize, number: usize) -> Option<Row<'_, 'a>> {
        let Some(Given::Rows(shape)) = self.shape.inputs.get(input) else {
            return None;
        };
        let start = number.checked_mul(shape.width)?;
        let row = self
            .arrays
            .get_mut(shape.array)?
            .1
            .get_mut(start..start + shape.width)?;
        Some(Row {
            shape,
            bits: row,
            texts: &mut self.texts,
            given: 0,
        })
    }

    /// Appends a row to a started array of unknown length.
    #[inline]
    pub fn add_row(&mut self, input: usize) -> Option<Row<'_, 'a>> {
        let Some(Given::Rows(shape)) = self.shape.inputs.get(input) else {
            return None;
        };
        let (counted, rows) = self.arrays.get_mut(shape.array)?;
        let start = rows.len();
        *counted += 1;
        rows.resize(start + shape.width, 0);
        Some(Row {
            shape,
            bits: rows.get_mut(start..)?,
            texts: &mut self.texts,
            given: 0,
        })
    }

    /// Returns true if every input was written.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.given == bits_below(self.shape.inputs.len())
    }

    /// Returns the memory for machine code of exactly this shape. Returns `None` if an input is missing.
    #[inline]
    pub fn raw(&mut self, shape: &Arc<Shape>) -> Option<Raw<'_, 'a>> {
        if !Arc::ptr_eq(shape, &self.shape) || !self.is_whole() {
            return None;
        }
        if !self.arrays.is_empty() {
            for given in &self.shape.inputs {
                if let Given::Rows(rows) = given {
                    let (count, first) = self.arrays.get(rows.array)?;
                    *self.inputs.get_mut(rows.at)? = first.as_ptr().addr() as u64;
                    *self.inputs.get_mut(rows.at + 1)? = *count as u64;
                }
            }
        }
        let (at, results_at) = self.at;
        Some(Raw {
            words: self.inputs.get_mut(at..at + shape.words)?,
            results: self.results.get_mut(results_at..results_at + shape.results)?,
            texts: &self.texts,
            numbers: &self.numbers,
        })
    }

    /// Returns an output of the last run, or `None` if its words are no value.
    #[inline]
    pub fn output(&self, place: usize) -> Option<Word<'_>> {
        let (form, at) = *self.shape.outputs.get(place)?;
        self.result(form, at)
    }

    /// Returns the output of this form at this position among the results.
    #[inline]
    pub fn result(&self, form: Form, at: usize) -> Option<Word<'_>> {
        self.word(form, self.results.get(self.at.1 + at..)?)
    }

    /// Returns the input words, which a run leaves unchanged.
    #[inline]
    pub(crate) fn input_words(&self) -> &[u64] {
        self.inputs.get(self.at.0..).unwrap_or_default()
    }

    /// Returns the records of an input, or `None` if it is no array.
    pub(crate) fn rows_of(&self, input: usize) -> Option<RowsView<'_>> {
        let Given::Rows(shape) = self.shape.inputs.get(input)? else {
            return None;
        };
        let (count, bits) = self.arrays.get(shape.array)?;
        Some(RowsView {
            shape,
            bits,
            count: *count,
        })
    }

    /// Decodes the value of this form at the start of these words.
    #[inline]
    fn word(&self, form: Form, words: &[u64]) -> Option<Word<'_>> {
        let first = *words.first()?;
        Some(match form {
            Form::Boolean => Word::Boolean(first != 0),
            Form::Integer => Word::Integer(first.cast_signed()),
            Form::Float => Word::Float(f64::from_bits(first)),
            Form::Decimal => Word::Decimal(first.cast_signed(), u16::try_from(*words.get(1)?).ok()?),
            Form::Timestamp => Word::Timestamp(first.cast_signed()),
            Form::Date => Word::Date(i32::try_from(first.cast_signed()).ok()?),
            Form::Duration => Word::Duration(first.cast_signed()),
            Form::Member => Word::Member(Member(u32::try_from(first).ok()?)),
            Form::Text => Word::Text(self.text(first)?),
        })
    }

    /// Returns the points that the run passed; none if the form records none.
    #[inline]
    pub fn path(&self) -> Path {
        let words = self
            .shape
            .path
            .and_then(|path| self.results.get(path.to..path.to + path.words));
        words
            .map(|words| Path::new(words.iter().copied()))
            .unwrap_or_default()
    }

    /// Returns the text that a word refers to.
    #[inline]
    pub(crate) fn text(&self, word: u64) -> Option<&str> {
        let place = usize::try_from(word & !CONSTANT).ok()?;
        if word & CONSTANT == 0 {
            return self.texts.get(place).copied();
        }
        match self.shape.constants.get(place)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'a> Row<'_, 'a> {
    /// Writes a field. Returns false if the form differs.
    #[inline]
    pub fn put(&mut self, field: usize, word: Word<'a>) -> bool {
        let Some((form, at)) = self.shape.fields.get(field) else {
            return false;
        };
        let Some(place) = self.bits.get_mut(*at..) else {
            return false;
        };
        self.given |= 1 << (field % MAX_PLACES);
        write(*form, place, self.texts, word)
    }

    /// Returns the form of a field.
    #[inline]
    pub fn form(&self, field: usize) -> Option<Form> {
        self.shape.fields.get(field).map(|(form, _)| *form)
    }

    /// Returns true if every field was written.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.given == bits_below(self.shape.fields.len())
    }
}
