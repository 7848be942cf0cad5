//! Conversion of Python objects to the words of a frameless run. Runs no Python code.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString};
use pyo3::{Borrowed, PyTypeInfo};
use vesper_interp::inputs::is_too_long;
use vesper_interp::words::{Form, Pace, Row, RowShape, Word, Words};
use vesper_ir::limits::ITEMS;
use vesper_ir::{Member, Type};

use crate::inputs::fast_inputs::{all_bits, integer, visit_entries};
use crate::inputs::shapes::{Fields, Parts, Shape};
use crate::layout::decimals::Decimals;
use crate::layout::dicts::{Entry, Layout};

use super::long_runs::is_long;

/// Destination of words: the inputs of a run, or a row of an array of records.
pub(super) trait Sink<'a> {
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

/// Reader of plain shapes that accepts objects of exact types only.
pub(super) struct Reader<'r> {
    pub(super) decimals: &'r Decimals,
    pub(super) layout: Option<Layout>,
    pub(super) pace: &'r Pace,
    /// Number of rows of the longest list.
    pub(super) rows: usize,
    /// True if there are more rows than a frameless run may take.
    pub(super) is_too_long: bool,
}

impl Reader<'_> {
    /// Writes a value into its place; returns false if it gives up.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is in two hot loops, and a call costs as much as a value"
    )]
    pub(super) fn scalar<'a>(
        &self,
        form: Form,
        shape: impl FnOnce() -> Option<&'a Shape>,
        object: Borrowed<'a, '_, PyAny>,
        place: usize,
        sink: &mut impl Sink<'a>,
    ) -> bool {
        match form {
            Form::Decimal => match self.decimals.read_short(&object) {
                Some((coefficient, scale)) => sink.put(place, Word::Decimal(coefficient, scale)),
                None => integer(object).is_some_and(|value| sink.put(place, Word::Decimal(value, 0))),
            },
            Form::Integer => integer(object).is_some_and(|value| sink.put(place, Word::Integer(value))),
            Form::Boolean => match object.cast_exact::<PyBool>() {
                Ok(value) => sink.put(place, Word::Boolean(value.is_true())),
                Err(_) => false,
            },
            Form::Text => match text(object) {
                Some(text) if !is_too_long(text) => sink.put(place, Word::Text(text)),
                _ => false,
            },
            Form::Member => shape()
                .and_then(|shape| member(shape, object))
                .is_some_and(|member| sink.put(place, Word::Member(Member(member)))),
            Form::Float => match object.cast_exact::<PyFloat>() {
                Ok(value) => sink.put(place, Word::Float(value.value())),
                Err(_) => false,
            },
            Form::Timestamp | Form::Date | Form::Duration => false,
        }
    }

    /// Writes a list of records into the rows of an input.
    #[inline(never)]
    pub(super) fn rows<'a>(
        &mut self,
        forms: &RowShape,
        shape: &'a Shape,
        object: Borrowed<'a, '_, PyAny>,
        input: usize,
        words: &mut Words<'a>,
    ) -> bool {
        let Some(fields) = fields_of(shape) else {
            return false;
        };
        let Ok(list) = object.cast_exact::<PyList>() else {
            return false;
        };
        let length = list.len();
        self.rows = self.rows.max(length);
        if is_long(length) && !self.pace.allows(length) {
            self.is_too_long = true;
            return false;
        }
        // SEMANTICS: the checked conversion reports longer lists as out of range.
        if length > ITEMS || !words.begin_rows(input, length) {
            return false;
        }
        for (number, place) in (0..length).zip(0..) {
            // SAFETY: the list is alive and holds its items. Its length is unchanged, because this loop runs no
            // Python code.
            let item: Option<Borrowed<'a, '_, PyAny>> =
                unsafe { Borrowed::from_ptr_or_opt(object.py(), ffi::PyList_GET_ITEM(list.as_ptr(), place)) };
            let Some(Ok(record)) = item.map(Borrowed::cast::<PyDict>) else {
                return false;
            };
            let Some(mut row) = words.row(input, number) else {
                return false;
            };
            let entries = self.layout.and_then(|layout| layout.entries(record));
            let read = match entries {
                Some(entries) if entries.len() == fields.names.len() => {
                    self.record_in_order(record.py(), entries, forms, fields, &mut row)
                }
                _ => InOrder::Otherwise,
            };
            let is_read = match read {
                InOrder::Read => true,
                InOrder::GivesUp => false,
                InOrder::Otherwise => self.record(record, forms, fields, &mut row),
            };
            if !is_read {
                return false;
            }
        }
        true
    }

    /// Writes a record whose keys are the interned names in declared order.
    #[inline]
    fn record_in_order<'a>(
        &self,
        py: Python<'_>,
        entries: &'a [Entry],
        forms: &RowShape,
        fields: &'a Fields,
        row: &mut Row<'_, 'a>,
    ) -> InOrder {
        let entries = entries.iter().zip(&fields.names).zip(&forms.fields).enumerate();
        for (place, ((entry, name), (form, _))) in entries {
            let Some(object) = entry.value_under(name.bind(py)) else {
                return InOrder::Otherwise;
            };
            let shape = || fields.shapes.get(place).map(|shape| &**shape);
            if !self.scalar(*form, shape, object, place, row) {
                return InOrder::GivesUp;
            }
        }
        InOrder::Read
    }

    /// Writes a record with keys in any order, and overwrites what `record_in_order` wrote. No field may be absent,
    /// because an optional field has no form.
    #[inline(never)]
    fn record<'a>(
        &self,
        record: Borrowed<'a, '_, PyDict>,
        forms: &RowShape,
        fields: &'a Fields,
        row: &mut Row<'_, 'a>,
    ) -> bool {
        let given = visit_entries(
            self.layout,
            record,
            &fields.names,
            |name| fields.of.place(name),
            |place, object| match forms.fields.get(place) {
                Some((form, _)) => {
                    let shape = || fields.shapes.get(place).map(|shape| &**shape);
                    self.scalar(*form, shape, object, place, row)
                }
                None => false,
            },
        );
        given == Some(all_bits(fields.names.len()))
    }
}

/// Result of reading entries in declared order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InOrder {
    Read,
    /// A value is not of its exact type.
    GivesUp,
    /// The keys have another order, or are other strings.
    Otherwise,
}

/// Returns the fields of the records of an array.
#[inline]
fn fields_of(shape: &Shape) -> Option<&Fields> {
    match &shape.parts {
        Parts::Array(of) => match &of.parts {
            Parts::Record(fields) => Some(fields),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the place of the enum member that an object names.
#[inline]
fn member(shape: &Shape, object: Borrowed<'_, '_, PyAny>) -> Option<u32> {
    let Parts::Enum(names) = &shape.parts else {
        return None;
    };
    // Members written in a source are interned, like these names.
    let place = match names.iter().position(|name| name.as_ptr() == object.as_ptr()) {
        Some(place) => u32::try_from(place).ok()?,
        None => match &shape.ty {
            Type::Enum(of) => of.member(text(object)?)?.0,
            _ => return None,
        },
    };
    Some(place)
}

/// Returns the text of an exact string, unless it contains a lone surrogate.
///
/// INVARIANT: no Python code runs while the text is borrowed.
#[inline]
pub(crate) fn text<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<&'a str> {
    if object.get_type_ptr() != PyString::type_object_raw(object.py()) {
        return None;
    }
    let mut length: ffi::Py_ssize_t = 0;
    // SAFETY: the object is an exact string and alive. ASCII bytes are inside it; the UTF-8 of other texts is created
    // and cached inside it, which runs no Python code. The bytes live as long as the string, never change, and are
    // UTF-8.
    unsafe {
        let bytes = ffi::PyUnicode_AsUTF8AndSize(object.as_ptr(), &raw mut length);
        if bytes.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), length.unsigned_abs());
        Some(std::str::from_utf8_unchecked(bytes))
    }
}
