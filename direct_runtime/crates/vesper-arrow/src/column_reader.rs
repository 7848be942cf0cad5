//! Readers of columns into inputs, one for each input and part of a table.
//!
//! Common column types are read directly into the frame. For any other content a reader returns false, and the row is
//! read by cells, which finds its problems.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Date32Type, Decimal128Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, BooleanArray, PrimitiveArray, StringViewArray};
use arrow_schema::{DataType, TimeUnit};
use vesper_interp::inputs::is_too_long;
use vesper_ir::{EnumType, Type, Value, time};

use crate::cell::{Cell, cell};
use crate::cell_conversion::{Conversion, parse_text, scalar};
use vesper_interp::problems::Path;

/// Maximum length of a cached text, in bytes. Codes and names repeat; prose does not.
const MAX_CACHED_BYTES: usize = 24;
/// Number of texts that a reader caches.
const CACHE_SIZE: usize = 256;

/// Cache of short texts, which shares a repeated text instead of copying it. Each input and thread has its own, so
/// that reference counts cause no traffic between processors.
#[derive(Debug)]
pub(crate) struct TextCache(Vec<Option<Arc<str>>>);

impl TextCache {
    pub(crate) fn new() -> Self {
        Self(vec![None; CACHE_SIZE])
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if text.len() > MAX_CACHED_BYTES {
            return Arc::from(text);
        }
        // The quality of the hash is unimportant: two texts in one slot only evict each other.
        let hash = text.bytes().fold(text.len(), |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        let Some(place) = self.0.get_mut(hash % CACHE_SIZE) else {
            return Arc::from(text);
        };
        match place {
            Some(known) if **known == *text => Arc::clone(known),
            place => Arc::clone(place.insert(Arc::from(text))),
        }
    }
}

/// The texts of a column in one of the Arrow forms.
#[derive(Debug)]
pub(crate) enum Texts<'a> {
    Short(&'a arrow_array::StringArray),
    Long(&'a arrow_array::LargeStringArray),
    View(&'a StringViewArray),
}

impl<'a> Texts<'a> {
    pub(crate) fn of(array: &'a dyn Array) -> Option<Self> {
        match array.data_type() {
            DataType::Utf8 => Some(Self::Short(array.as_string())),
            DataType::LargeUtf8 => Some(Self::Long(array.as_string())),
            DataType::Utf8View => Some(Self::View(array.as_string_view())),
            _ => None,
        }
    }

    /// Returns the text of a row, which must be in the column.
    #[inline]
    pub(crate) fn value(&self, row: usize) -> &'a str {
        match self {
            Self::Short(texts) => texts.value(row),
            Self::Long(texts) => texts.value(row),
            Self::View(texts) => texts.value(row),
        }
    }
}

/// Reader of the rows of an input.
#[derive(Debug)]
pub(crate) enum Reader<'a> {
    /// No column; every row has the same value.
    Same(Value),
    Boolean(&'a BooleanArray),
    Integer(&'a PrimitiveArray<Int64Type>),
    Integer32(&'a PrimitiveArray<Int32Type>),
    Decimal(&'a PrimitiveArray<Decimal128Type>, u16),
    Float(&'a PrimitiveArray<Float64Type>),
    Date(&'a PrimitiveArray<Date32Type>),
    Timestamp(&'a PrimitiveArray<TimestampMicrosecondType>),
    Text(Texts<'a>, &'a mut TextCache),
    /// With the members found so far, because columns repeat few members.
    Member(Texts<'a>, &'a EnumType, Vec<(&'a str, Value)>),
    /// Values by dictionary key; `None` for a value with a problem.
    Dictionary(Vec<Option<Value>>, Vec<u32>),
    /// Every row is read as a cell.
    Any,
}

/// Key that represents null.
const NO_KEY: u32 = u32::MAX;

/// The rows of one input.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    pub(crate) array: Option<&'a dyn Array>,
    pub(crate) nulls: Option<&'a arrow_buffer::NullBuffer>,
    pub(crate) takes_null: bool,
    pub(crate) reader: Reader<'a>,
}

fn keys<K: ArrowDictionaryKeyType>(array: &dyn Array) -> Vec<u32> {
    let dictionary = array.as_dictionary::<K>();
    let rows = 0..dictionary.len();
    rows.map(|row| {
        let key = dictionary.key(row).and_then(|key| u32::try_from(key).ok());
        key.unwrap_or(NO_KEY)
    })
    .collect()
}

fn dictionary<'a>(ty: &Type, array: &'a dyn Array, key: &DataType) -> Option<Reader<'a>> {
    let values = array.as_any_dictionary_opt()?.values();
    // A dictionary much larger than the number of rows costs more than it saves.
    if values.len() > array.len().saturating_mul(2) {
        return None;
    }
    let of = if let Type::Optional(of) = ty { of } else { ty };
    let read = |place| match cell(values, place) {
        Cell::Null => None,
        found => scalar(of, &found).ok(),
    };
    let values = (0..values.len()).map(read).collect();
    let keys = match key {
        DataType::Int8 => keys::<Int8Type>(array),
        DataType::Int16 => keys::<Int16Type>(array),
        DataType::Int32 => keys::<Int32Type>(array),
        DataType::Int64 => keys::<Int64Type>(array),
        DataType::UInt8 => keys::<UInt8Type>(array),
        DataType::UInt16 => keys::<UInt16Type>(array),
        DataType::UInt32 => keys::<UInt32Type>(array),
        _ => keys::<UInt64Type>(array),
    };
    Some(Reader::Dictionary(values, keys))
}

impl<'a> Column<'a> {
    /// Makes the rows of an input without a column.
    pub(crate) fn constant(value: Value) -> Self {
        Self {
            array: None,
            nulls: None,
            takes_null: true,
            reader: Reader::Same(value),
        }
    }

    /// Makes the rows of a column for an input of this type.
    pub(crate) fn new(ty: &'a Type, array: &'a dyn Array, cache: &'a mut TextCache) -> Self {
        let (of, takes_null) = match ty {
            Type::Optional(of) => (&**of, true),
            ty => (ty, false),
        };
        let reader = match (of, array.data_type()) {
            (Type::Boolean, DataType::Boolean) => Reader::Boolean(array.as_boolean()),
            (Type::Integer, DataType::Int64) => Reader::Integer(array.as_primitive()),
            (Type::Integer, DataType::Int32) => Reader::Integer32(array.as_primitive()),
            (Type::Decimal, DataType::Decimal128(_, scale)) => match u16::try_from(*scale) {
                Ok(scale) => Reader::Decimal(array.as_primitive(), scale),
                Err(_) => Reader::Any,
            },
            (Type::Float, DataType::Float64) => Reader::Float(array.as_primitive()),
            (Type::Date, DataType::Date32) => Reader::Date(array.as_primitive()),
            (Type::Timestamp, DataType::Timestamp(TimeUnit::Microsecond, Some(_))) => {
                Reader::Timestamp(array.as_primitive())
            }
            (Type::Text, _) if let Some(texts) = Texts::of(array) => Reader::Text(texts, cache),
            (Type::Enum(members), _) if let Some(texts) = Texts::of(array) => {
                Reader::Member(texts, members, Vec::new())
            }
            (
                Type::Boolean
                | Type::Integer
                | Type::Decimal
                | Type::Float
                | Type::Text
                | Type::Bytes
                | Type::Timestamp
                | Type::Date
                | Type::Duration
                | Type::TimeOfDay
                | Type::Period
                | Type::Enum(_),
                DataType::Dictionary(key, _),
            ) => dictionary(ty, array, key).unwrap_or(Reader::Any),
            _ => Reader::Any,
        };
        Self {
            array: Some(array),
            nulls: array.nulls(),
            takes_null,
            reader,
        }
    }

    /// Makes the rows of a column of texts that denote values of any type. A CSV file has such columns.
    pub(crate) fn spelled(array: &'a dyn Array) -> Self {
        Self {
            array: Some(array),
            nulls: array.nulls(),
            takes_null: false,
            reader: Reader::Any,
        }
    }

    /// Writes the value of a row. Returns false if the row has to be read by cells.
    #[inline]
    pub(crate) fn read(&mut self, row: usize, out: &mut Value) -> bool {
        if let Some(nulls) = self.nulls
            && nulls.is_null(row)
        {
            *out = Value::Null;
            return self.takes_null;
        }
        match &mut self.reader {
            Reader::Same(value) => out.set(value),
            Reader::Boolean(array) => out.set_boolean(array.value(row)),
            Reader::Integer(array) => out.set_integer(array.value(row)),
            Reader::Integer32(array) => out.set_integer(array.value(row).into()),
            Reader::Decimal(array, scale) => out.set_small_decimal(array.value(row), *scale),
            Reader::Float(array) => out.set_float(array.value(row)),
            Reader::Date(array) => match time::date(array.value(row).into()) {
                Ok(date) => *out = Value::Date(date),
                Err(_) => return false,
            },
            Reader::Timestamp(array) => match time::timestamp(array.value(row).into()) {
                Ok(moment) => *out = Value::Timestamp(moment),
                Err(_) => return false,
            },
            Reader::Text(texts, cache) => {
                let text = texts.value(row);
                if is_too_long(text) {
                    return false;
                }
                match out {
                    // The previous row often has the same text, which is still in place.
                    Value::Text(known) if **known == *text => {}
                    out => *out = Value::Text(cache.text(text)),
                }
            }
            Reader::Member(texts, members, known) => {
                let text = texts.value(row);
                let found = known.iter().find(|(name, _)| *name == text);
                if let Some((_, member)) = found {
                    *out = member.clone();
                    return true;
                }
                let Some(member) = members.member_of_text(text) else {
                    return false;
                };
                known.push((text, Value::Member(member)));
                *out = Value::Member(member);
            }
            Reader::Dictionary(values, keys) => {
                let key = keys.get(row).copied().unwrap_or(NO_KEY);
                return match values.get(key as usize) {
                    Some(Some(value)) => {
                        out.set(value);
                        true
                    }
                    _ => false,
                };
            }
            Reader::Any => return false,
        }
        true
    }

    /// Returns true where the row has no cell, or a null one.
    pub(crate) fn is_empty(&self, row: usize) -> bool {
        self.array.is_none_or(|array| array.is_null(row))
    }

    /// Returns the value of a row of any content, or adds its problems.
    pub(crate) fn read_cell(
        &self,
        ty: &Type,
        default: Option<&Value>,
        row: usize,
        is_spelled: bool,
        name: &str,
        conversion: &mut Conversion,
    ) -> Option<Value> {
        let path = Path::Input(name);
        let Some(array) = self.array else {
            return match &self.reader {
                Reader::Same(value) => Some(value.clone()),
                _ => conversion.value_or_default(ty, default, None, &path),
            };
        };
        let found = cell(array, row);
        if !is_spelled {
            return conversion.value_or_default(ty, default, Some(&found), &path);
        }
        match found {
            // An empty cell is an absent input.
            Cell::Null => conversion.value_or_default(ty, default, None, &path),
            Cell::Text(text) => match parse_text(ty, text) {
                Ok(value) => Some(value),
                Err(kind) => {
                    conversion.problems.add(&path, kind);
                    None
                }
            },
            found => conversion.value_or_default(ty, default, Some(&found), &path),
        }
    }
}
