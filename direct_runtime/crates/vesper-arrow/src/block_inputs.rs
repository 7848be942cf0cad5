//! Conversion of columns to words: the inputs of many rows for frameless machine code (`vesper_interp::words`).
//!
//! Each column has one filler per part of a table. The filler tests the column type when it is made, so that a block
//! of rows is one loop over the buffer. A cell that has no word, or is null, leaves its row to the conversion by
//! cells, which finds its problems.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type,
    Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, GenericStringArray, OffsetSizeTrait, RecordBatch};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use vesper_interp::Program;
use vesper_interp::inputs::is_too_long;
use vesper_interp::words::{Block, Scales, Word, number_of_text};
use vesper_ir::decimal::MAX_SCALE;
use vesper_ir::limits::TEXT_LENGTH;
use vesper_ir::{EnumType, Member, Type, Value, time};

use crate::cell::{Cell, cell, microseconds};
use crate::cell_conversion::scalar;
use crate::column_reader::Texts;
use crate::plan::{Form, InputSource, Plan};

/// Writes one input of these rows into a block; returns false if it cannot.
type Fill<'a> = Box<dyn FnMut(&mut Block<'a>, Range<usize>) -> bool + 'a>;

/// Writer of one input.
struct Filler<'a> {
    fill: Fill<'a>,
    nulls: Option<&'a NullBuffer>,
    /// The scale of all decimals of the column, if it is constant.
    scale: Option<u16>,
}

/// Writers of all inputs of a part.
pub(crate) struct Fillers<'a> {
    all: Vec<Filler<'a>>,
    scales: Vec<Option<u16>>,
}

impl<'a> Fillers<'a> {
    /// Makes the fillers of a part. Returns `None` if a column has to be read by cells.
    pub(crate) fn new(program: &'a Program, plan: &'a Plan, given: &'a RecordBatch) -> Option<Self> {
        if plan.form != Form::Typed {
            return None;
        }
        let declared = program.node().inputs.iter().zip(&plan.inputs).enumerate();
        let fillers = declared.map(|(input, (declared, from))| match from {
            InputSource::Same(value) => constant_filler(input, value),
            InputSource::Column(place) => {
                column_filler(input, &declared.ty, given.columns().get(*place)?.as_ref())
            }
        });
        let all = fillers.collect::<Option<Vec<_>>>()?;
        let scales = all.iter().map(|filler| filler.scale).collect();
        Some(Self { all, scales })
    }

    /// Returns the constant scale of the decimals of each input, if it has one.
    pub(crate) fn scales(&self) -> &Scales {
        &self.scales
    }

    /// Writes the inputs of these rows into the block; returns false if it cannot.
    pub(crate) fn fill(&mut self, block: &mut Block<'a>, rows: &Range<usize>) -> bool {
        for filler in &mut self.all {
            if !(filler.fill)(block, rows.clone()) {
                return false;
            }
            if let Some(nulls) = filler.nulls {
                // The value below a null is undefined.
                let absent = rows.clone().filter(|row| nulls.is_null(*row));
                absent.for_each(|row| {
                    block.leave(row - rows.start);
                });
            }
        }
        true
    }
}

fn constant_filler(input: usize, value: &Value) -> Option<Filler<'_>> {
    let word = Word::of(value)?;
    Some(Filler {
        fill: Box::new(move |block, rows| block.put(input, rows.map(|_| Some(word)))),
        nulls: None,
        scale: match word {
            Word::Decimal(_, scale) => Some(scale),
            _ => None,
        },
    })
}

/// Fills words from a column of numbers.
fn numbers<'a, T: ArrowPrimitiveType>(
    input: usize,
    array: &'a dyn Array,
    word: impl Fn(T::Native) -> Option<Word<'a>> + 'a,
) -> Option<Fill<'a>> {
    let values: &[T::Native] = array.as_primitive_opt::<T>()?.values();
    Some(Box::new(move |block, rows| {
        values
            .get(rows)
            .is_some_and(|values| block.put(input, values.iter().map(|value| word(*value))))
    }))
}

/// Fills words from a column of integers of any width.
fn integers<'a>(input: usize, array: &'a dyn Array, word: impl Fn(i64) -> Word<'a> + 'a) -> Option<Fill<'a>> {
    match array.data_type() {
        DataType::Int8 => numbers::<Int8Type>(input, array, move |value| Some(word(value.into()))),
        DataType::Int16 => numbers::<Int16Type>(input, array, move |value| Some(word(value.into()))),
        DataType::Int32 => numbers::<Int32Type>(input, array, move |value| Some(word(value.into()))),
        DataType::Int64 => numbers::<Int64Type>(input, array, move |value| Some(word(value))),
        DataType::UInt8 => numbers::<UInt8Type>(input, array, move |value| Some(word(value.into()))),
        DataType::UInt16 => numbers::<UInt16Type>(input, array, move |value| Some(word(value.into()))),
        DataType::UInt32 => numbers::<UInt32Type>(input, array, move |value| Some(word(value.into()))),
        DataType::UInt64 => {
            numbers::<UInt64Type>(input, array, move |value| i64::try_from(value).ok().map(&word))
        }
        _ => None,
    }
}

fn decimals(input: usize, array: &dyn Array, scale: i8) -> Option<Fill<'_>> {
    let scale = u16::try_from(scale).ok().filter(|scale| *scale <= MAX_SCALE)?;
    match array.data_type() {
        DataType::Decimal32(..) => numbers::<Decimal32Type>(input, array, move |value| {
            Some(Word::Decimal(value.into(), scale))
        }),
        DataType::Decimal64(..) => {
            numbers::<Decimal64Type>(input, array, move |value| Some(Word::Decimal(value, scale)))
        }
        _ => numbers::<Decimal128Type>(input, array, move |value| {
            // The conversion by cells handles longer coefficients.
            let coefficient = i64::try_from(value);
            coefficient
                .ok()
                .map(|coefficient| Word::Decimal(coefficient, scale))
        }),
    }
}

fn timestamps(input: usize, array: &dyn Array, unit: TimeUnit) -> Option<Fill<'_>> {
    let word = move |count| {
        let moment = microseconds(unit, count)?;
        time::timestamp(moment).ok().map(Word::Timestamp)
    };
    match unit {
        TimeUnit::Second => numbers::<TimestampSecondType>(input, array, word),
        TimeUnit::Millisecond => numbers::<TimestampMillisecondType>(input, array, word),
        TimeUnit::Microsecond => numbers::<TimestampMicrosecondType>(input, array, word),
        TimeUnit::Nanosecond => numbers::<TimestampNanosecondType>(input, array, word),
    }
}

fn durations(input: usize, array: &dyn Array, unit: TimeUnit) -> Option<Fill<'_>> {
    let word = move |count| {
        let length = microseconds(unit, count)?;
        time::duration(length).ok().map(Word::Duration)
    };
    match unit {
        TimeUnit::Second => numbers::<DurationSecondType>(input, array, word),
        TimeUnit::Millisecond => numbers::<DurationMillisecondType>(input, array, word),
        TimeUnit::Microsecond => numbers::<DurationMicrosecondType>(input, array, word),
        TimeUnit::Nanosecond => numbers::<DurationNanosecondType>(input, array, word),
    }
}

/// Fills words from a column of texts, with one loop for each Arrow form of texts.
fn texts<'a>(
    input: usize,
    array: &'a dyn Array,
    mut word: impl FnMut(&'a str) -> Option<Word<'a>> + 'a,
) -> Option<Fill<'a>> {
    let length = array.len();
    Some(match Texts::of(array)? {
        Texts::Short(texts) => Box::new(move |block, rows| {
            rows.end <= length && block.put(input, rows.map(|row| word(texts.value(row))))
        }),
        Texts::Long(texts) => Box::new(move |block, rows| {
            rows.end <= length && block.put(input, rows.map(|row| word(texts.value(row))))
        }),
        Texts::View(texts) => Box::new(move |block, rows| {
            // The view below a null is undefined and may point outside every buffer.
            let text = |row| texts.is_valid(row).then(|| texts.value(row));
            rows.end <= length && block.put(input, rows.map(|row| text(row).and_then(&mut word)))
        }),
    })
}

/// Fills words from texts. If all texts together are short, no length has to be checked.
fn plain_texts(input: usize, array: &dyn Array) -> Option<Fill<'_>> {
    fn short<'a, O: OffsetSizeTrait>(input: usize, array: &'a GenericStringArray<O>) -> Option<Fill<'a>> {
        let (ends, data) = (array.value_offsets(), array.value_data());
        let bytes = ends.last()?.as_usize() - ends.first()?.as_usize();
        (bytes <= TEXT_LENGTH).then(|| -> Fill<'a> {
            Box::new(move |block, rows| {
                let Some(ends) = ends.get(rows.start..=rows.end) else {
                    return false;
                };
                let texts = ends.windows(2).zip(rows);
                block.put_texts(
                    input,
                    texts.map(|(ends, row)| (array.value(row), text_number(data, ends))),
                )
            })
        })
    }
    let short = match Texts::of(array)? {
        Texts::Short(array) => short(input, array),
        Texts::Long(array) => short(input, array),
        Texts::View(_) => None,
    };
    short.or_else(|| texts(input, array, text))
}

fn text(text: &str) -> Option<Word<'_>> {
    (text.len() <= TEXT_LENGTH || !is_too_long(text)).then_some(Word::Text(text))
}

/// Packs a text of up to 16 bytes into numbers that identify it.
#[inline]
fn pack(text: &str) -> Option<(usize, u64, u64)> {
    let bytes = text.as_bytes();
    let length = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        // The two overlap and together cover the whole text.
        return (length <= 16).then(|| (length, u64::from_le_bytes(*first), u64::from_le_bytes(*last)));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return Some((length, first.into(), last.into()));
    }
    Some(match bytes {
        [one] => (1, u64::from(*one), 0),
        [one, two] => (2, u64::from(u16::from_le_bytes([*one, *two])), 0),
        [one, two, three] => (3, u64::from(u32::from_le_bytes([*one, *two, *three, 0])), 0),
        _ => (0, 0, 0),
    })
}

/// Place of no member, larger than that of any enum.
const NO_MEMBER: u32 = u32::MAX;
/// Maximum number of remembered members. Columns have few members, and more are found faster in the type.
const MAX_REMEMBERED: usize = 8;

/// Returns a function that finds members by name. It remembers the packed names of the first ones.
fn member_finder<'a>(of: &'a EnumType) -> impl FnMut(&str) -> Option<Word<'a>> + 'a {
    let mut known: Vec<((usize, u64, u64), Member)> = Vec::with_capacity(MAX_REMEMBERED);
    move |name| {
        let name_packed = pack(name);
        if let Some(name) = name_packed
            && let Some((_, member)) = known.iter().find(|(known, _)| *known == name)
        {
            return Some(Word::Member(*member));
        }
        let member = of.member_of_text(name)?;
        if let Some(name) = name_packed
            && known.len() < MAX_REMEMBERED
        {
            known.push((name, member));
        }
        Some(Word::Member(member))
    }
}

/// Number of slots in the table of short names, which has no collisions.
const PLACES: usize = 16;

/// Perfect hash table of the names of a small enum, each packed into one number.
struct ShortNames {
    /// The packed name and the member of each slot.
    table: [(u64, u32); PLACES],
    /// Multiplier that separates the names in the upper bits of the product.
    factor: u64,
}

impl ShortNames {
    /// Returns `None` if names are too many or too long, or no multiplier separates them.
    fn new(of: &EnumType) -> Option<Self> {
        let members = of.texts();
        if members.len() > MAX_REMEMBERED {
            return None;
        }
        let packed = members.iter().zip(0..).map(|(name, place)| {
            let mut bytes = [0; 8];
            bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
            let number = number_of_text(bytes, name.len());
            (number != 0).then_some((number, place))
        });
        let packed = packed.collect::<Option<Vec<(u64, u32)>>>()?;
        (1_u64..=256).find_map(|turn| Self::by(&packed, turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }

    fn by(names: &[(u64, u32)], factor: u64) -> Option<Self> {
        // No text has this number, because the uppermost bits hold the length.
        let mut names_at = Self {
            table: [(u64::MAX, NO_MEMBER); PLACES],
            factor,
        };
        for (name, member) in names {
            let at = names_at.at(*name);
            match names_at.table.get_mut(at) {
                Some(free) if free.1 == NO_MEMBER => *free = (*name, *member),
                _ => return None,
            }
        }
        Some(names_at)
    }

    #[inline]
    fn at(&self, name: u64) -> usize {
        (name.wrapping_mul(self.factor) >> 60) as usize % PLACES
    }

    /// Returns the member of this name, or `NO_MEMBER`.
    #[inline]
    fn find(&self, name: u64) -> u32 {
        let found = self.table.get(self.at(name)).filter(|known| known.0 == name);
        found.map_or(NO_MEMBER, |(_, member)| *member)
    }
}

/// Returns the number of a text in a buffer (`number_of_text`). It is 0 near the end of the buffer.
///
/// Reads eight bytes at once, including bytes of later texts.
#[inline]
fn text_number<O: OffsetSizeTrait>(data: &[u8], ends: &[O]) -> u64 {
    let [start, end] = ends else {
        return 0;
    };
    let eight = data.get(start.as_usize()..).and_then(<[u8]>::first_chunk::<8>);
    let length = end.as_usize().wrapping_sub(start.as_usize());
    eight.map_or(0, |eight| number_of_text(*eight, length))
}

/// Fills enum members from contiguous texts, comparing each short name with one candidate.
fn short_members<'a, O: OffsetSizeTrait>(
    input: usize,
    array: &'a GenericStringArray<O>,
    of: &'a EnumType,
) -> Option<Fill<'a>> {
    let names = ShortNames::new(of)?;
    let (ends, data) = (array.value_offsets(), array.value_data());
    let member = move |ends: &[O]| {
        // The number 0 of other texts is in no slot.
        match names.find(text_number(data, ends)) {
            NO_MEMBER => find_member(data, ends, of),
            found => Some(found),
        }
    };
    Some(Box::new(move |block, rows| {
        ends.get(rows.start..=rows.end)
            .is_some_and(|ends| block.put_members(input, ends.windows(2).map(&member)))
    }))
}

#[cold]
fn find_member<O: OffsetSizeTrait>(data: &[u8], ends: &[O], of: &EnumType) -> Option<u32> {
    let [start, end] = ends else {
        return None;
    };
    let name = std::str::from_utf8(data.get(start.as_usize()..end.as_usize())?).ok()?;
    of.member_of_text(name).map(|Member(member)| member)
}

fn enum_members<'a>(input: usize, array: &'a dyn Array, of: &'a EnumType) -> Option<Fill<'a>> {
    let short = match Texts::of(array)? {
        Texts::Short(array) => short_members(input, array, of),
        Texts::Long(array) => short_members(input, array, of),
        Texts::View(_) => None,
    };
    short.or_else(|| texts(input, array, member_finder(of)))
}

/// Converts a dictionary value to a word.
fn dictionary_word<'a>(ty: &Type, found: &Cell<'a>) -> Option<Word<'a>> {
    if let (Type::Text, Cell::Text(found)) = (ty, found) {
        return text(found);
    }
    let value = match found {
        Cell::Null => return None,
        found => scalar(ty, found).ok()?,
    };
    Some(match Word::of(&value)? {
        Word::Boolean(value) => Word::Boolean(value),
        Word::Integer(value) => Word::Integer(value),
        Word::Float(value) => Word::Float(value),
        Word::Decimal(coefficient, scale) => Word::Decimal(coefficient, scale),
        Word::Timestamp(value) => Word::Timestamp(value),
        Word::Date(value) => Word::Date(value),
        Word::Duration(value) => Word::Duration(value),
        Word::Member(value) => Word::Member(value),
        // The text does not outlive the value.
        Word::Text(_) => return None,
    })
}

/// Fills words from a dictionary column: each key selects a word made before.
fn by_keys<'a, K: ArrowDictionaryKeyType>(input: usize, ty: &Type, array: &'a dyn Array) -> Option<Fill<'a>> {
    let dictionary = array.as_dictionary_opt::<K>()?;
    let values = dictionary.values();
    // The dictionary may be far larger than this part of the table.
    if values.len() > array.len().saturating_mul(2) {
        return None;
    }
    let words: Vec<Option<Word<'a>>> = (0..values.len())
        .map(|place| dictionary_word(ty, &cell(values, place)))
        .collect();
    numbers::<K>(input, dictionary.keys(), move |key| {
        words.get(key.as_usize()).copied().flatten()
    })
}

fn dictionary<'a>(input: usize, ty: &Type, array: &'a dyn Array, key: &DataType) -> Option<Fill<'a>> {
    match key {
        DataType::Int8 => by_keys::<Int8Type>(input, ty, array),
        DataType::Int16 => by_keys::<Int16Type>(input, ty, array),
        DataType::Int32 => by_keys::<Int32Type>(input, ty, array),
        DataType::Int64 => by_keys::<Int64Type>(input, ty, array),
        DataType::UInt8 => by_keys::<UInt8Type>(input, ty, array),
        DataType::UInt16 => by_keys::<UInt16Type>(input, ty, array),
        DataType::UInt32 => by_keys::<UInt32Type>(input, ty, array),
        DataType::UInt64 => by_keys::<UInt64Type>(input, ty, array),
        _ => None,
    }
}

fn column_filler<'a>(input: usize, ty: &'a Type, array: &'a dyn Array) -> Option<Filler<'a>> {
    let fill = match (ty, array.data_type()) {
        (_, DataType::Dictionary(key, _)) => dictionary(input, ty, array, key),
        (Type::Boolean, DataType::Boolean) => {
            let values = array.as_boolean_opt()?.values();
            let fill: Fill<'a> = Box::new(move |block, rows| {
                let end = rows.end <= values.len();
                end && block.put(input, rows.map(|row| Some(Word::Boolean(values.value(row)))))
            });
            Some(fill)
        }
        (
            Type::Decimal,
            DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale),
        ) => decimals(input, array, *scale),
        (Type::Decimal, _) => integers(input, array, |value| Word::Decimal(value, 0)),
        (Type::Integer, _) => integers(input, array, Word::Integer),
        (Type::Float, DataType::Float64) => {
            numbers::<Float64Type>(input, array, |value| Some(Word::Float(value)))
        }
        (Type::Float, DataType::Float32) => {
            numbers::<Float32Type>(input, array, |value| Some(Word::Float(value.into())))
        }
        (Type::Date, DataType::Date32) => {
            numbers::<Date32Type>(input, array, |days| time::date(days.into()).ok().map(Word::Date))
        }
        (Type::Date, DataType::Date64) => numbers::<Date64Type>(input, array, |milliseconds| {
            let days = milliseconds.div_euclid(86_400_000);
            time::date(days).ok().map(Word::Date)
        }),
        (Type::Timestamp, DataType::Timestamp(unit, Some(_))) => timestamps(input, array, *unit),
        (Type::Duration, DataType::Duration(unit)) => durations(input, array, *unit),
        (Type::Text, _) => plain_texts(input, array),
        (Type::Enum(of), _) => enum_members(input, array, of),
        _ => None,
    };
    Some(Filler {
        fill: fill?,
        nulls: array.nulls().filter(|nulls| nulls.null_count() > 0),
        scale: match (ty, array.data_type()) {
            // Each dictionary value may have its own scale.
            (Type::Decimal, DataType::Dictionary(..)) => None,
            (
                Type::Decimal,
                DataType::Decimal32(_, scale)
                | DataType::Decimal64(_, scale)
                | DataType::Decimal128(_, scale),
            ) => u16::try_from(*scale).ok(),
            (Type::Decimal, _) => Some(0),
            _ => None,
        },
    })
}
