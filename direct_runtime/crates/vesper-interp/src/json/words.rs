//! JSON text directly to and from the words of a frameless run.
//!
//! Like `fast_reader` it rejects nothing: on an unusual text it gives up, and the caller starts again with the
//! general reader. Constant spellings are prepared once: quoted names, enum members, and the text between two
//! outputs.

use vesper_ir::json::quote;
use vesper_ir::limits::ITEMS;
use vesper_ir::node::Input;
use vesper_ir::{Member, Node, Type, Value};

use super::fast_reader::Reader;
use super::reader::number;
use super::writer::{canonical, order_of_outputs, plain};
use crate::inputs::{Given as GivenText, convert, is_too_long};
use crate::tier::words::{Form, Given, Row, Shape, Word, Words};

/// The JSON spelling of a node's inputs and outputs, for frameless runs.
#[derive(Debug)]
pub struct Worded {
    inputs: Vec<Key>,
    /// The values of absent inputs.
    defaults: Vec<Option<Value>>,
    /// In name order.
    outputs: Vec<Output>,
    /// The text after the last output.
    end: &'static [u8],
}

/// A key and the layout of its value.
#[derive(Debug)]
struct Key {
    name: Box<str>,
    /// With quotes and colon, as usually spelled.
    spelled: Box<[u8]>,
    ty: Type,
    of: KeyContent,
}

#[derive(Debug)]
enum KeyContent {
    Value(Form),
    Rows(Vec<Key>),
}

#[derive(Debug)]
struct Output {
    place: usize,
    ty: Type,
    /// The text from the previous output to this one, including its name.
    before: Box<[u8]>,
    /// With quotes.
    members: Vec<Box<[u8]>>,
}

impl Key {
    fn new(name: &str, ty: &Type, of: KeyContent) -> Self {
        Self {
            name: name.into(),
            spelled: [&*quote_bytes(name), b":"].concat().into(),
            ty: ty.clone(),
            of,
        }
    }

    fn of_input(key: &str, input: &Input, given: &Given) -> Self {
        let of = match (given, &input.ty) {
            (Given::Value { form, .. }, _) => KeyContent::Value(*form),
            (Given::Rows(rows), Type::Array(of)) => KeyContent::Rows(match &**of {
                Type::Record(record) => (record.fields().iter().zip(&rows.fields).enumerate())
                    .map(|(place, (field, (form, _)))| {
                        Self::new(record.key(place), &field.ty, KeyContent::Value(*form))
                    })
                    .collect(),
                _ => Vec::new(),
            }),
            (Given::Rows(_), _) => KeyContent::Rows(Vec::new()),
        };
        Self::new(key, &input.ty, of)
    }
}

/// The inputs of a run, or one row of an array of records.
trait Sink<'a> {
    fn put(&mut self, place: usize, word: Word<'a>) -> bool;
}

impl<'a> Sink<'a> for Words<'a> {
    #[inline]
    fn put(&mut self, place: usize, word: Word<'a>) -> bool {
        Words::put(self, place, word)
    }
}

impl<'a> Sink<'a> for Row<'_, 'a> {
    #[inline]
    fn put(&mut self, place: usize, word: Word<'a>) -> bool {
        Row::put(self, place, word)
    }
}

impl Worded {
    pub fn new(node: &Node, shape: &Shape) -> Self {
        let order = order_of_outputs(node);
        let mut outputs = Vec::with_capacity(order.len());
        for place in &*order {
            let Some(output) = node.outputs.get(*place) else {
                continue;
            };
            let before = if outputs.is_empty() {
                "{\"kind\":\"returned\",\"value\":{"
            } else {
                ","
            };
            let members = match &output.ty {
                Type::Enum(of) => of.texts().iter().map(|text| quote_bytes(text)).collect(),
                _ => Vec::new(),
            };
            outputs.push(Output {
                place: *place,
                ty: output.ty.clone(),
                before: [before.as_bytes(), &*quote_bytes(node.output_key(*place)), b":"]
                    .concat()
                    .into(),
                members,
            });
        }
        Self {
            inputs: (node.inputs.iter().zip(&shape.inputs).enumerate())
                .map(|(place, (input, given))| Key::of_input(node.input_key(place), input, given))
                .collect(),
            defaults: node.inputs.iter().map(|input| input.default.clone()).collect(),
            end: if outputs.is_empty() {
                b"{\"kind\":\"returned\",\"value\":{}}"
            } else {
                b"}}"
            },
            outputs,
        }
    }

    /// Reads the inputs of a text to words. Returns the longest array length, at most `max_rows`, or `None` to give
    /// up.
    pub fn read<'a>(&'a self, text: &'a [u8], words: &mut Words<'a>, max_rows: usize) -> Option<usize> {
        let mut reader = Reader { text, at: 0 };
        let mut longest = 0;
        reader.skip_white_space();
        let given = read_object(&mut reader, &self.inputs, |reader, place, key| match &key.of {
            KeyContent::Value(form) => read_value(reader, *form, &key.ty, place, words),
            KeyContent::Rows(fields) => {
                let rows = read_rows(reader, fields, place, words, max_rows.min(ITEMS))?;
                longest = longest.max(rows);
                Some(())
            }
        })?;
        reader.skip_white_space();
        if reader.at != text.len() {
            return None;
        }
        for (place, default) in self.defaults.iter().enumerate() {
            if given & 1 << place == 0 && !words.put(place, Word::of(default.as_ref()?)?) {
                return None;
            }
        }
        Some(longest)
    }

    /// Appends the outputs of a run, or returns `None` if one is no value.
    pub fn write(&self, words: &Words<'_>, out: &mut Vec<u8>) -> Option<()> {
        for output in &self.outputs {
            out.extend_from_slice(&output.before);
            match words.output(output.place)? {
                Word::Decimal(coefficient, scale) => {
                    out.push(b'"');
                    write_decimal(coefficient, scale, out);
                    out.push(b'"');
                }
                Word::Integer(value) => write_decimal(value, 0, out),
                Word::Member(Member(member)) => {
                    out.extend_from_slice(output.members.get(member as usize)?);
                }
                Word::Boolean(true) => out.extend_from_slice(b"true"),
                Word::Boolean(false) => out.extend_from_slice(b"false"),
                Word::Text(text) if text.bytes().all(|byte| !matches!(byte, 0..=0x1f | b'"' | b'\\')) => {
                    out.push(b'"');
                    out.extend_from_slice(text.as_bytes());
                    out.push(b'"');
                }
                Word::Text(text) => out.extend_from_slice(&quote_bytes(text)),
                Word::Float(value) => write_other(&output.ty, &Value::Float(value), out),
                Word::Timestamp(value) => write_other(&output.ty, &Value::Timestamp(value), out),
                Word::Date(value) => write_other(&output.ty, &Value::Date(value), out),
                Word::Duration(value) => write_other(&output.ty, &Value::Duration(value), out),
            }
        }
        out.extend_from_slice(self.end);
        Some(())
    }
}

fn quote_bytes(text: &str) -> Box<[u8]> {
    let mut out = String::new();
    quote(text, &mut out);
    out.into_bytes().into()
}

/// Writes an output of a rare type.
#[inline(never)]
fn write_other(ty: &Type, value: &Value, out: &mut Vec<u8>) {
    let mut text = String::new();
    canonical(ty, value, &mut text);
    out.extend_from_slice(text.as_bytes());
}

/// Calls `each` for every entry of an object with the index of its key. Returns a mask of the keys given.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "once for inputs and once for rows, each with its own `each`"
)]
fn read_object<'a, 'k>(
    reader: &mut Reader<'a>,
    keys: &'k [Key],
    mut each: impl FnMut(&mut Reader<'a>, usize, &'k Key) -> Option<()>,
) -> Option<u64> {
    // `Shape` allows no more.
    debug_assert!(keys.len() <= 64, "each has a bit");
    reader.take(b'{')?;
    reader.skip_white_space();
    let mut given = 0_u64;
    if reader.take(b'}').is_some() {
        return Some(given);
    }
    let mut next = 0;
    loop {
        let (place, key) = match keys.get(next) {
            // Keys usually come in declared order and without spaces.
            Some(key) if reader.word(&key.spelled).is_some() => (next, key),
            _ => read_other_key(reader, keys)?,
        };
        let bit = 1 << (place & 63);
        if given & bit != 0 {
            return None;
        }
        given |= bit;
        next = place + 1;
        reader.skip_white_space();
        each(reader, place, key)?;
        reader.skip_white_space();
        match reader.peek()? {
            b',' => reader.at += 1,
            b'}' => {
                reader.at += 1;
                return Some(given);
            }
            _ => return None,
        }
        reader.skip_white_space();
    }
}

/// Takes a key that is out of order or followed by spaces.
#[inline(never)]
fn read_other_key<'k>(reader: &mut Reader<'_>, keys: &'k [Key]) -> Option<(usize, &'k Key)> {
    let name = reader.take_quoted()?;
    let found = keys
        .iter()
        .enumerate()
        .find(|(_, key)| key.name.as_bytes() == name)?;
    reader.skip_white_space();
    reader.take(b':')?;
    Some(found)
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "once for inputs and once for rows, and a call costs as much as a value"
)]
fn read_value<'a>(
    reader: &mut Reader<'a>,
    form: Form,
    ty: &'a Type,
    place: usize,
    sink: &mut impl Sink<'a>,
) -> Option<()> {
    let is_put = match form {
        Form::Decimal => {
            let is_text = reader.take(b'"').is_some();
            let spelled = reader.digits()?;
            if is_text {
                reader.take(b'"')?;
            }
            let scale = spelled.scale;
            sink.put(place, Word::Decimal(spelled.coefficient, scale))
        }
        Form::Integer => {
            let spelled = reader.digits()?;
            spelled.is_whole && sink.put(place, Word::Integer(spelled.coefficient))
        }
        Form::Boolean => {
            let is_true = reader.word(b"true").is_some();
            if !is_true {
                reader.word(b"false")?;
            }
            sink.put(place, Word::Boolean(is_true))
        }
        Form::Text => {
            let text = reader.string()?;
            !is_too_long(text) && sink.put(place, Word::Text(text))
        }
        Form::Member => {
            let Type::Enum(of) = ty else {
                return None;
            };
            let name = reader.take_quoted()?;
            let member = of.texts().iter().position(|text| text.as_bytes() == name)?;
            sink.put(place, Word::Member(Member(u32::try_from(member).ok()?)))
        }
        Form::Float | Form::Timestamp | Form::Date | Form::Duration => {
            sink.put(place, read_rare(reader, form, ty)?)
        }
    };
    is_put.then_some(())
}

/// Reads an input of a rare type.
#[inline(never)]
fn read_rare(reader: &mut Reader<'_>, form: Form, ty: &Type) -> Option<Word<'static>> {
    let value = if form == Form::Float && reader.peek()? != b'"' {
        let (text, _) = reader.number()?;
        number(ty, std::str::from_utf8(text).ok()?)?
    } else {
        convert(ty, GivenText::Text(reader.string()?)).ok()?
    };
    match value {
        Value::Float(value) => Some(Word::Float(value)),
        Value::Timestamp(value) => Some(Word::Timestamp(value)),
        Value::Date(value) => Some(Word::Date(value)),
        Value::Duration(value) => Some(Word::Duration(value)),
        _ => None,
    }
}

/// Reads an array of records to the rows of an input. Returns their number.
#[inline(never)]
fn read_rows<'a>(
    reader: &mut Reader<'a>,
    fields: &'a [Key],
    input: usize,
    words: &mut Words<'a>,
    max: usize,
) -> Option<usize> {
    if !words.begin_rows(input, 0) {
        return None;
    }
    reader.take(b'[')?;
    reader.skip_white_space();
    if reader.take(b']').is_some() {
        return Some(0);
    }
    for count in 1..=max {
        let mut row = words.add_row(input)?;
        read_object(reader, fields, |reader, place, key| match key.of {
            KeyContent::Value(form) => read_value(reader, form, &key.ty, place, &mut row),
            KeyContent::Rows(_) => None,
        })?;
        if !row.is_whole() {
            return None;
        }
        reader.skip_white_space();
        match reader.peek()? {
            b',' => reader.at += 1,
            b']' => {
                reader.at += 1;
                return Some(count);
            }
            _ => return None,
        }
        reader.skip_white_space();
    }
    None
}

/// The texts of all two-digit numbers.
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// The powers of ten that fit 64 bits.
#[rustfmt::skip]
const TENS: [u64; 20] = [
    1, 10, 100, 1_000, 10_000, 100_000, 1_000_000,
    10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000,
    1_000_000_000_000, 10_000_000_000_000, 100_000_000_000_000, 1_000_000_000_000_000,
    10_000_000_000_000_000, 100_000_000_000_000_000, 1_000_000_000_000_000_000, 10_000_000_000_000_000_000,
];

/// Writes a decimal in plain notation at this scale; the text equals that of `plain`.
#[inline]
fn write_decimal(coefficient: i64, scale: u16, out: &mut Vec<u8>) {
    let Some(unit) = TENS.get(usize::from(scale)) else {
        let mut text = String::new();
        plain(i128::from(coefficient), scale, &mut text);
        out.extend_from_slice(text.as_bytes());
        return;
    };
    // At most twenty digits, or a zero, a point and nineteen digits, and a sign.
    let mut room = [0; 24];
    let magnitude = coefficient.unsigned_abs();
    let mut at = room.len();
    if scale > 0 {
        at = write_digits(magnitude % unit, usize::from(scale), &mut room, at);
        at -= 1;
        if let Some(place) = room.get_mut(at) {
            *place = b'.';
        }
    }
    at = write_digits(
        if scale > 0 { magnitude / unit } else { magnitude },
        1,
        &mut room,
        at,
    );
    if coefficient < 0 {
        at -= 1;
        if let Some(place) = room.get_mut(at) {
            *place = b'-';
        }
    }
    out.extend_from_slice(room.get(at..).unwrap_or_default());
}

/// Writes a number to end at `end`, with at least `least` digits. Returns its start.
#[inline]
fn write_digits(mut rest: u64, least: usize, room: &mut [u8; 24], end: usize) -> usize {
    let mut at = end;
    while rest >= 10 {
        let pair = usize::try_from(rest % 100).unwrap_or(0) * 2;
        rest /= 100;
        at -= 2;
        if let (Some(place), Some(pair)) = (room.get_mut(at..at + 2), PAIRS.get(pair..pair + 2)) {
            place.copy_from_slice(pair);
        }
    }
    // The remaining digit, leading zeros up to `least`, or the zero of an empty number.
    while rest > 0 || end - at < least {
        at -= 1;
        if let Some(place) = room.get_mut(at) {
            *place = b'0' + u8::try_from(rest).unwrap_or(0);
        }
        rest = 0;
    }
    at
}
