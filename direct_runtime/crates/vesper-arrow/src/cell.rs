//! Cells of a table of any column type, as a caller would pass them.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::{DataType, TimeUnit};
use vesper_ir::Decimal;
use vesper_ir::decimal::{MAX_SCALE, ParseDecimalError};

/// The content of a cell.
#[derive(Debug)]
pub enum Cell<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// An integer outside 64 bits.
    Wide(Decimal),
    Decimal(Result<Decimal, ParseDecimalError>),
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// Microseconds since the start of 1970 in UTC.
    Moment(i128),
    /// Microseconds since the start of 1970 in an unknown time zone.
    NaiveMoment(i128),
    /// Days since 1970-01-01.
    Day(i64),
    /// Microseconds.
    Length(i128),
    /// Microseconds since midnight.
    Clock(i128),
    /// A moment or a length with fractions of a microsecond, which no value can have.
    Finer,
    List(Vec<Cell<'a>>),
    Fields(Vec<(&'a str, Cell<'a>)>),
    Entries(Vec<(Cell<'a>, Cell<'a>)>),
    /// An Arrow type without an equivalent in the language.
    Other(&'a DataType),
}

/// Converts a count of units to microseconds; returns `None` for a fraction.
pub(crate) fn microseconds(unit: TimeUnit, count: i64) -> Option<i128> {
    let count = i128::from(count);
    match unit {
        TimeUnit::Second => Some(count * 1_000_000),
        TimeUnit::Millisecond => Some(count * 1_000),
        TimeUnit::Microsecond => Some(count),
        TimeUnit::Nanosecond => (count % 1_000 == 0).then_some(count / 1_000),
    }
}

/// Makes a decimal of a coefficient and a scale, which in Arrow may be negative.
pub(crate) fn decimal(coefficient: i128, scale: i8) -> Result<Decimal, ParseDecimalError> {
    let over = |_| ParseDecimalError::OutOfRange;
    if let Ok(scale) = u16::try_from(scale) {
        return Decimal::new(coefficient, scale).map_err(over);
    }
    // A negative scale appends zeros.
    let zeros = usize::from(scale.unsigned_abs());
    Decimal::parse(&format!("{coefficient}{}", "0".repeat(zeros)))
}

fn list(items: &ArrayRef, from: usize, to: usize) -> Cell<'_> {
    Cell::List((from..to).map(|row| cell(items, row)).collect())
}

fn list_of<O: OffsetSizeTrait>(array: &dyn Array, row: usize) -> Cell<'_> {
    let lists = array.as_list::<O>();
    let offsets = lists.value_offsets();
    let at = |place: usize| offsets.get(place).map_or(0, |offset| offset.as_usize());
    list(lists.values(), at(row), at(row + 1))
}

fn of_dictionary<K: ArrowDictionaryKeyType>(array: &dyn Array, row: usize) -> Cell<'_> {
    let dictionary = array.as_dictionary::<K>();
    match dictionary.key(row) {
        Some(key) => cell(dictionary.values(), key),
        None => Cell::Null,
    }
}

/// Returns the content of a row; null for a row after the last one.
///
/// The depth of recursion is that of the column type, which Arrow limits when it reads the schema.
#[expect(clippy::too_many_lines, reason = "one arm for each Arrow type")]
pub fn cell(array: &dyn Array, row: usize) -> Cell<'_> {
    if row >= array.len() || array.is_null(row) {
        return Cell::Null;
    }
    macro_rules! primitive {
        ($ty:ty) => {
            array.as_primitive::<$ty>().value(row)
        };
    }
    let integer = |value: i64| Cell::Integer(value);
    match array.data_type() {
        DataType::Null => Cell::Null,
        DataType::Boolean => Cell::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => integer(primitive!(Int8Type).into()),
        DataType::Int16 => integer(primitive!(Int16Type).into()),
        DataType::Int32 => integer(primitive!(Int32Type).into()),
        DataType::Int64 => integer(primitive!(Int64Type)),
        DataType::UInt8 => integer(primitive!(UInt8Type).into()),
        DataType::UInt16 => integer(primitive!(UInt16Type).into()),
        DataType::UInt32 => integer(primitive!(UInt32Type).into()),
        DataType::UInt64 => {
            let value = primitive!(UInt64Type);
            i64::try_from(value).map_or_else(|_| Cell::Wide(Decimal::whole(value.into())), Cell::Integer)
        }
        DataType::Float16 => Cell::Float(primitive!(Float16Type).to_f64()),
        DataType::Float32 => Cell::Float(primitive!(Float32Type).into()),
        DataType::Float64 => Cell::Float(primitive!(Float64Type)),
        DataType::Decimal32(_, scale) => Cell::Decimal(decimal(primitive!(Decimal32Type).into(), *scale)),
        DataType::Decimal64(_, scale) => Cell::Decimal(decimal(primitive!(Decimal64Type).into(), *scale)),
        DataType::Decimal128(_, scale) => Cell::Decimal(decimal(primitive!(Decimal128Type), *scale)),
        DataType::Decimal256(_, scale) => {
            let digits = primitive!(Decimal256Type);
            Cell::Decimal(match digits.to_i128() {
                Some(coefficient) => decimal(coefficient, *scale),
                // An exponent moves the point without a limit on the digits before it.
                None => Decimal::parse(&format!("{digits}E{}", -i32::from(*scale))),
            })
        }
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row)),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Cell::Bytes(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => Cell::Bytes(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => Cell::Bytes(array.as_fixed_size_binary().value(row)),
        DataType::Date32 => Cell::Day(primitive!(Date32Type).into()),
        DataType::Date64 => Cell::Day(primitive!(Date64Type).div_euclid(86_400_000)),
        DataType::Timestamp(unit, zone) => {
            let count = match unit {
                TimeUnit::Second => primitive!(TimestampSecondType),
                TimeUnit::Millisecond => primitive!(TimestampMillisecondType),
                TimeUnit::Microsecond => primitive!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => primitive!(TimestampNanosecondType),
            };
            match (microseconds(*unit, count), zone) {
                (None, _) => Cell::Finer,
                (Some(moment), Some(_)) => Cell::Moment(moment),
                (Some(moment), None) => Cell::NaiveMoment(moment),
            }
        }
        DataType::Duration(unit) => {
            let count = match unit {
                TimeUnit::Second => primitive!(DurationSecondType),
                TimeUnit::Millisecond => primitive!(DurationMillisecondType),
                TimeUnit::Microsecond => primitive!(DurationMicrosecondType),
                TimeUnit::Nanosecond => primitive!(DurationNanosecondType),
            };
            microseconds(*unit, count).map_or(Cell::Finer, Cell::Length)
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let count = match unit {
                TimeUnit::Second => primitive!(Time32SecondType).into(),
                TimeUnit::Millisecond => primitive!(Time32MillisecondType).into(),
                TimeUnit::Microsecond => primitive!(Time64MicrosecondType),
                TimeUnit::Nanosecond => primitive!(Time64NanosecondType),
            };
            microseconds(*unit, count).map_or(Cell::Finer, Cell::Clock)
        }
        DataType::List(_) => list_of::<i32>(array, row),
        DataType::LargeList(_) => list_of::<i64>(array, row),
        DataType::FixedSizeList(_, length) => {
            let length = usize::try_from(*length).unwrap_or(0);
            list(
                array.as_fixed_size_list().values(),
                row * length,
                (row + 1) * length,
            )
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let named = fields.iter().zip(columns);
            Cell::Fields(
                named
                    .map(|(field, column)| (field.name().as_str(), cell(column, row)))
                    .collect(),
            )
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let offsets = map.value_offsets();
            let at = |place: usize| {
                offsets
                    .get(place)
                    .map_or(0, |offset| usize::try_from(*offset).unwrap_or(0))
            };
            let entries = at(row)..at(row + 1);
            Cell::Entries(
                entries
                    .map(|place| (cell(map.keys(), place), cell(map.values(), place)))
                    .collect(),
            )
        }
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => of_dictionary::<Int8Type>(array, row),
            DataType::Int16 => of_dictionary::<Int16Type>(array, row),
            DataType::Int32 => of_dictionary::<Int32Type>(array, row),
            DataType::Int64 => of_dictionary::<Int64Type>(array, row),
            DataType::UInt8 => of_dictionary::<UInt8Type>(array, row),
            DataType::UInt16 => of_dictionary::<UInt16Type>(array, row),
            DataType::UInt32 => of_dictionary::<UInt32Type>(array, row),
            _ => of_dictionary::<UInt64Type>(array, row),
        },
        other => Cell::Other(other),
    }
}

/// Returns the largest scale of values in a decimal column of this scale.
pub(crate) fn scale_of_column(scale: i8) -> u16 {
    u16::try_from(scale).unwrap_or(0).min(MAX_SCALE)
}
