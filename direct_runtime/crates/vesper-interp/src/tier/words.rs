//! Runs without a frame: inputs and outputs as words of 64 bits, for machine code that neither makes values nor drops any.
//!
//! Whoever has inputs (a dict, a line of JSON, a row of a batch) writes them into `Words`; machine code of the whole node
//! (`Express`) computes the outputs out of them, or gives up: where a clause is broken, a number does not fit, a text is
//! made, fuel runs out. Then nothing has happened, and the caller runs the node in the ordinary way, from the start and on
//! the same inputs: only a node without effects is run so. Everything that fails, fails there, in the one way.
//!
//! A text is the place of a borrowed `str` among those of its run, so that no machine code ever reads an address that it
//! was given: a place that does not exist is found out.

use std::fmt::Debug;
use std::sync::Arc;

use vesper_ir::value::Member;
use vesper_ir::{Node, Type, Value};

use crate::bytecode::Code;
use crate::observe::path::Path;

mod block;
mod pace;

pub use block::{Block, RawRows};
pub use pace::Pace;

/// Machine code of a node that takes words and gives words.
pub trait Express: Debug + Send + Sync {
    /// How it takes its inputs and gives its outputs.
    fn shape(&self) -> &Arc<Shape>;

    /// Computes the outputs, which are then in the words, or gives up. So many units of fuel may be spent.
    /// The words of the inputs are left as they are: what was read is hashed afterwards.
    fn run(&self, words: &mut Words<'_>, fuel: u64) -> Ended;

    /// The same for every row of a block that was not left out; each may spend so much.
    fn run_rows(&self, block: &mut Block<'_>, fuel: u64) {
        block.run_each(|words| self.run(words, fuel) == Ended::Done);
    }

    /// How many bytes of machine code it holds by itself; of one that stands beside another, none.
    fn size(&self) -> usize {
        0
    }
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The outputs are in the words.
    Done,
    /// Something was not as it mostly is.
    GaveUp,
    /// It would spend more than it may, which was known before anything was spent.
    TooLong,
}

/// As what a value stands in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    Boolean,
    Integer,
    Float,
    /// A coefficient of 64 bits, and the scale.
    Decimal,
    Timestamp,
    Date,
    Duration,
    Member,
    /// A place among the texts of the run, or with `CONSTANT` among the constants of the code.
    Text,
}

/// A text that is no input: the rest of the word is its place among the constants.
pub const CONSTANT: u64 = 1 << 63;

/// Nodes of more inputs, and records of more fields, are not run so: each has a bit that says whether it was given.
const MAX_PLACES: usize = 64;

impl Form {
    /// As what values of a type stand; nothing where they have parts, or may be missing.
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

    /// How many words it takes.
    #[inline]
    pub fn width(self) -> usize {
        match self {
            Self::Decimal => 2,
            _ => 1,
        }
    }
}

/// A value on its way into words or out of them.
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
    /// The form of a value; nothing where it has parts, or is a long decimal.
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

/// Where an input stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Value {
        form: Form,
        at: usize,
    },
    /// An array of records, one row each: in the words, the address of the first row and how many there are.
    Rows(RowShape),
}

/// How the records of an array stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowShape {
    /// Where the two words of the array stand.
    pub at: usize,
    /// All fields in declared order: as what each stands, and where in a row.
    pub fields: Vec<(Form, usize)>,
    /// Words a row.
    pub width: usize,
    /// Which of the arrays of the inputs it is.
    pub array: usize,
}

/// Where the path of a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathShape {
    /// The register of its first word.
    pub first: usize,
    pub words: usize,
    /// Where it begins, empty, among the words of the inputs.
    pub from: usize,
    /// Where it is left among the results.
    pub to: usize,
}

/// How a node takes its inputs and gives its outputs.
#[derive(Debug)]
pub struct Shape {
    /// In declared order.
    pub inputs: Vec<Given>,
    /// Words of all inputs.
    pub words: usize,
    /// In declared order: as what each stands, and where among the results.
    pub outputs: Vec<(Form, usize)>,
    /// Words of all outputs.
    pub results: usize,
    /// The words of the path, of a form that says which way a run went.
    pub path: Option<PathShape>,
    arrays: usize,
    /// The constants of the code, for texts.
    constants: Vec<Value>,
}

/// Of each input the scale that all its decimals have, where it is known before any of them is seen.
pub type Scales = [Option<u16>];

impl Shape {
    /// The shape of a node; nothing where an input or an output has no form in words.
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

/// The inputs of one run, and then its outputs.
#[derive(Debug)]
pub struct Words<'a> {
    shape: Arc<Shape>,
    given: u64,
    inputs: Vec<u64>,
    /// How many records each array has, and their rows.
    arrays: Vec<(usize, Vec<u64>)>,
    texts: Vec<&'a str>,
    /// By their places the numbers of the first of them (`number_of_text`), and behind those zero, which is none.
    numbers: Vec<u64>,
    results: Vec<u64>,
    /// Where the words and the results of this run begin: behind those of others where there is room for many (`Block`).
    at: (usize, usize),
}

/// What machine code is called with.
#[derive(Debug)]
pub struct Raw<'w, 'a> {
    pub words: &'w mut [u64],
    pub results: &'w mut [u64],
    pub texts: &'w [&'a str],
    pub numbers: &'w [u64],
}

/// A text of one to seven bytes as a number that no other text has; zero for any other text. `eight` begins with its
/// bytes, whatever stands behind them.
#[inline]
pub fn number_of_text(eight: [u8; 8], length: usize) -> u64 {
    let Some(bits) = u32::try_from(length).ok().filter(|length| *length < 8) else {
        return 0;
    };
    let own = u64::from_le_bytes(eight) & ((1_u64 << (bits * 8)) - 1);
    own | u64::from(bits) << 56
}

/// One row of an array; whole once every field was put.
#[derive(Debug)]
pub struct Row<'w, 'a> {
    shape: &'w RowShape,
    bits: &'w mut [u64],
    texts: &'w mut Vec<&'a str>,
    given: u64,
}

/// The records of an array.
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

    /// How many fields each has.
    pub(crate) fn fields(&self) -> usize {
        self.shape.fields.len()
    }

    /// As what a field stands, and the words that begin with it.
    pub(crate) fn field(&self, number: usize, field: usize) -> Option<(Form, &'w [u64])> {
        let (form, at) = *self.shape.fields.get(field)?;
        let start = number.checked_mul(self.shape.width)? + at;
        Some((form, self.bits.get(start..)?))
    }
}

/// All places up to this number.
#[inline]
fn bits_below(count: usize) -> u64 {
    u64::MAX
        .checked_shr(u32::try_from(64 - count.min(64)).unwrap_or(64))
        .unwrap_or(0)
}

/// Writes a value into its words; false where it is of another form.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "who calls it knows which value it is: one comparison is left of this"
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
    /// Room for runs of this shape.
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

    /// The same room for another run, whose texts live elsewhere.
    #[inline]
    pub fn again<'b>(mut self) -> Words<'b> {
        self.clear();
        Words {
            shape: self.shape,
            given: 0,
            inputs: self.inputs,
            arrays: self.arrays,
            // In place: there is none to be mapped.
            texts: self.texts.into_iter().map(|_| "").collect(),
            numbers: self.numbers,
            results: self.results,
            at: self.at,
        }
    }

    /// The same with copies of its texts: whoever lent them may take them back.
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

    /// Forgets the inputs of the run before, in the same place.
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

    /// Writes an input; false where it is of another form.
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

    /// Begins an array of so many records.
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

    /// One of the rows of an array that was begun.
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

    /// One more row of an array that was begun, for who does not know how many there will be.
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

    /// True where every input was given.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.given == bits_below(self.shape.inputs.len())
    }

    /// What machine code of this very shape is called with; nothing where an input was not given.
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

    /// An output of the run that was last; nothing where its words are no value, which machine code never leaves there.
    #[inline]
    pub fn output(&self, place: usize) -> Option<Word<'_>> {
        let (form, at) = *self.shape.outputs.get(place)?;
        self.result(form, at)
    }

    /// The same of an output that has this form and stands here among the results, as the shape says.
    #[inline]
    pub fn result(&self, form: Form, at: usize) -> Option<Word<'_>> {
        self.word(form, self.results.get(self.at.1 + at..)?)
    }

    /// The words of the inputs as they were put there: a run leaves them as they are.
    #[inline]
    pub(crate) fn input_words(&self) -> &[u64] {
        self.inputs.get(self.at.0..).unwrap_or_default()
    }

    /// The records of an input, likewise; nothing where it has none.
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

    /// The value of this form that these words begin with.
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

    /// The points that the run passed; of a form that does not say, none.
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

    /// The text that a word names.
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
    /// Writes a field; false where it is of another form.
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

    /// As what a field stands.
    #[inline]
    pub fn form(&self, field: usize) -> Option<Form> {
        self.shape.fields.get(field).map(|(form, _)| *form)
    }

    /// True where every field was given.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.given == bits_below(self.shape.fields.len())
    }
}
