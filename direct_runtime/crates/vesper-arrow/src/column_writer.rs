//! Writers of output values into columns.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, DurationMicrosecondBuilder,
    Float64Builder, Int64Builder, StringBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, TimeUnit};
use vesper_ir::{Decimal, Type, Value, time};

use crate::buffer_pool;
use crate::enum_column::EnumColumn;

/// Maximum number of digits of a decimal column.
pub(crate) const PRECISION: u8 = 38;
/// The smallest magnitude with more digits than that.
const BOUND: i128 = 10_i128.pow(38);

/// Time zone of timestamps.
const UTC: &str = "UTC";

/// Returns the type of the column of an output. Decimals without a scale are texts.
pub(crate) fn column_type(ty: &Type, scale: Option<u8>) -> DataType {
    match ty {
        Type::Boolean => DataType::Boolean,
        Type::Integer => DataType::Int64,
        Type::Decimal => match scale.and_then(|scale| i8::try_from(scale).ok()) {
            Some(scale) => DataType::Decimal128(PRECISION, scale),
            None => DataType::Utf8,
        },
        Type::Float => DataType::Float64,
        Type::Text | Type::Json | Type::Period | Type::Enum(_) => DataType::Utf8,
        Type::Bytes => DataType::Binary,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        Type::Date => DataType::Date32,
        Type::Duration => DataType::Duration(TimeUnit::Microsecond),
        Type::TimeOfDay => DataType::Time64(TimeUnit::Microsecond),
        Type::Optional(of) => column_type(of, scale),
        Type::Array(of) | Type::Set(of) => DataType::List(item_field(of, scale)),
        Type::Map(of) => {
            let key = Field::new("key", column_type(&of.key, scale), false);
            let value = Field::new("value", column_type(&of.value, scale), is_optional(&of.value));
            let entries = DataType::Struct(Fields::from(vec![key, value]));
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
        }
        Type::Record(of) => DataType::Struct(
            of.fields()
                .iter()
                .enumerate()
                // Nullable, because some libraries read the fields of a record that is null.
                .map(|(place, field)| Field::new(of.key(place), column_type(&field.ty, scale), true))
                .collect(),
        ),
    }
}

fn is_optional(ty: &Type) -> bool {
    matches!(ty, Type::Optional(_))
}

fn item_field(of: &Type, scale: Option<u8>) -> Arc<Field> {
    Arc::new(Field::new("item", column_type(of, scale), is_optional(of)))
}

/// A column under construction.
#[derive(Debug)]
pub(crate) enum Writer {
    Boolean(BooleanBuilder),
    Integer(Int64Builder),
    Decimal(Decimal128Builder, u16),
    /// A decimal or JSON as text.
    Spelled(StringBuilder),
    Float(Float64Builder),
    Text(StringBuilder),
    Member(EnumColumn),
    Bytes(BinaryBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Date(Date32Builder),
    Duration(DurationMicrosecondBuilder),
    TimeOfDay(Time64MicrosecondBuilder),
    List(Box<Writer>, Lengths, Arc<Field>),
    Map(Box<Writer>, Box<Writer>, Lengths, Arc<Field>),
    Record(Vec<Writer>, NullBufferBuilder, Fields),
}

/// The lengths of lists as offsets, and which lists are null.
#[derive(Debug)]
pub(crate) struct Lengths {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Lengths {
    fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            offsets,
            nulls: NullBufferBuilder::new(rows),
        }
    }

    fn add(&mut self, length: usize) {
        let last = self.offsets.last().copied().unwrap_or(0);
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        self.offsets.push(last.saturating_add(length));
        self.nulls.append_non_null();
    }

    fn add_null(&mut self) {
        self.offsets.push(self.offsets.last().copied().unwrap_or(0));
        self.nulls.append_null();
    }

    fn finish(&mut self) -> (OffsetBuffer<i32>, Option<arrow_buffer::NullBuffer>) {
        let offsets = std::mem::take(&mut self.offsets);
        (
            OffsetBuffer::new(ScalarBuffer::from(offsets)),
            self.nulls.finish(),
        )
    }
}

/// Returns the coefficient of a number at this scale, or `None` if it would need rounding.
#[inline]
pub(crate) fn coefficient(number: &Decimal, scale: u16) -> Option<i128> {
    let (coefficient, own) = number.as_small()?;
    let scaled = match scale.checked_sub(own) {
        Some(0) => coefficient,
        Some(more) => coefficient.checked_mul(10_i128.checked_pow(more.into())?)?,
        None => {
            let divisor = 10_i128.checked_pow(u32::from(own - scale))?;
            if coefficient % divisor != 0 {
                return None;
            }
            coefficient / divisor
        }
    };
    (-BOUND < scaled && scaled < BOUND).then_some(scaled)
}

impl Writer {
    pub(crate) fn new(ty: &Type, scale: Option<u8>, rows: usize) -> Self {
        match ty {
            Type::Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            Type::Integer => Self::Integer(buffer_pool::number_builder(rows)),
            Type::Decimal => match scale {
                Some(scale) => {
                    let ty = column_type(ty, Some(scale));
                    let builder: Decimal128Builder = buffer_pool::number_builder(rows);
                    Self::Decimal(builder.with_data_type(ty), scale.into())
                }
                None => Self::Spelled(StringBuilder::with_capacity(rows, rows * 8)),
            },
            Type::Json => Self::Spelled(StringBuilder::new()),
            Type::Float => Self::Float(buffer_pool::number_builder(rows)),
            Type::Text | Type::Period => Self::Text(StringBuilder::with_capacity(rows, rows * 8)),
            Type::Enum(of) => Self::Member(EnumColumn::new(of, rows)),
            Type::Bytes => Self::Bytes(BinaryBuilder::new()),
            Type::Timestamp => {
                let builder: TimestampMicrosecondBuilder = buffer_pool::number_builder(rows);
                Self::Timestamp(builder.with_data_type(column_type(ty, None)))
            }
            Type::Date => Self::Date(buffer_pool::number_builder(rows)),
            Type::Duration => Self::Duration(buffer_pool::number_builder(rows)),
            Type::TimeOfDay => Self::TimeOfDay(buffer_pool::number_builder(rows)),
            Type::Optional(of) => Self::new(of, scale, rows),
            Type::Array(of) | Type::Set(of) => Self::List(
                Box::new(Self::new(of, scale, rows)),
                Lengths::new(rows),
                item_field(of, scale),
            ),
            Type::Map(of) => {
                let entries = match column_type(ty, scale) {
                    DataType::Map(entries, _) => entries,
                    other => Arc::new(Field::new("entries", other, false)),
                };
                Self::Map(
                    Box::new(Self::new(&of.key, scale, rows)),
                    Box::new(Self::new(&of.value, scale, rows)),
                    Lengths::new(rows),
                    entries,
                )
            }
            Type::Record(of) => {
                let fields = match column_type(ty, scale) {
                    DataType::Struct(fields) => fields,
                    _ => Fields::empty(),
                };
                let writers = of.fields().iter().map(|field| Self::new(&field.ty, scale, rows));
                Self::Record(writers.collect(), NullBufferBuilder::new(rows), fields)
            }
        }
    }

    /// Returns true if the column can hold every number of the value without rounding.
    pub(crate) fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Decimal(_, scale), Value::Decimal(number)) => coefficient(number, *scale).is_some(),
            (Self::List(of, ..), Value::Array(items)) => items.iter().all(|item| of.fits(item)),
            (Self::Map(_, of, ..), Value::Map(map)) => map.values().iter().all(|value| of.fits(value)),
            (Self::Record(of, ..), Value::Record(values)) => {
                of.iter().zip(values.iter()).all(|(of, value)| of.fits(value))
            }
            _ => true,
        }
    }

    /// Writes a value that fits. A value of another type, which the verifier rules out, becomes null.
    #[inline]
    pub(crate) fn append(&mut self, value: &Value) {
        match (self, value) {
            (Self::Boolean(column), Value::Boolean(value)) => column.append_value(*value),
            (Self::Integer(column), Value::Integer(value)) => column.append_value(*value),
            (Self::Decimal(column, scale), Value::Decimal(number)) => {
                column.append_option(coefficient(number, *scale));
            }
            (Self::Spelled(column), Value::Decimal(number)) => column.append_value(number.to_string()),
            (Self::Spelled(column), Value::Json(json)) => column.append_value(json.text()),
            (Self::Float(column), Value::Float(value)) => column.append_value(*value),
            (Self::Text(column), Value::Text(text)) => column.append_value(text),
            (Self::Member(column), Value::Member(member)) => column.append(*member),
            (Self::Bytes(column), Value::Bytes(bytes)) => column.append_value(bytes),
            (Self::Timestamp(column), Value::Timestamp(moment)) => column.append_value(*moment),
            (Self::Date(column), Value::Date(date)) => column.append_value(*date),
            (Self::Duration(column), Value::Duration(length)) => column.append_value(*length),
            (Self::Text(column), Value::Period(months)) => column.append_value(time::period_text(*months)),
            (Self::TimeOfDay(column), Value::TimeOfDay(time)) => column.append_value(*time),
            (Self::List(of, lengths, _), Value::Array(items)) => {
                for item in items.iter() {
                    of.append(item);
                }
                lengths.add(items.len());
            }
            (Self::List(of, lengths, _), Value::Set(members)) => {
                for member in members.iter() {
                    of.append(&member);
                }
                lengths.add(members.len());
            }
            (Self::Map(of_key, of_value, lengths, _), Value::Map(map)) => {
                for (key, value) in map.keys().iter().zip(map.values()) {
                    of_key.append(&key);
                    of_value.append(value);
                }
                lengths.add(map.values().len());
            }
            (Self::Record(of, nulls, _), Value::Record(values)) => {
                for (of, value) in of.iter_mut().zip(values.iter()) {
                    of.append(value);
                }
                nulls.append_non_null();
            }
            (column, _) => column.append_null(),
        }
    }

    /// Writes a row without a value.
    pub(crate) fn append_null(&mut self) {
        match self {
            Self::Boolean(column) => column.append_null(),
            Self::Integer(column) => column.append_null(),
            Self::Decimal(column, _) => column.append_null(),
            Self::Float(column) => column.append_null(),
            Self::Spelled(column) | Self::Text(column) => column.append_null(),
            Self::Member(column) => column.append_null(),
            Self::Bytes(column) => column.append_null(),
            Self::Timestamp(column) => column.append_null(),
            Self::Date(column) => column.append_null(),
            Self::Duration(column) => column.append_null(),
            Self::TimeOfDay(column) => column.append_null(),
            Self::List(_, lengths, _) | Self::Map(_, _, lengths, _) => lengths.add_null(),
            Self::Record(of, nulls, _) => {
                for column in of {
                    column.append_null();
                }
                nulls.append_null();
            }
        }
    }

    /// Returns the finished column.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Boolean(column) => Arc::new(column.finish()),
            Self::Integer(column) => Arc::new(buffer_pool::finish_pooled(column)?),
            Self::Decimal(column, _) => Arc::new(buffer_pool::finish_pooled(column)?),
            Self::Float(column) => Arc::new(buffer_pool::finish_pooled(column)?),
            Self::Spelled(column) | Self::Text(column) => Arc::new(column.finish()),
            Self::Member(column) => Arc::new(column.finish()?),
            Self::Bytes(column) => Arc::new(column.finish()),
            Self::Timestamp(column) => Arc::new(buffer_pool::finish_pooled(column)?),
            Self::Date(column) => Arc::new(buffer_pool::finish_pooled(column)?),
            Self::Duration(column) => Arc::new(buffer_pool::finish_pooled(column)?),
            Self::TimeOfDay(column) => Arc::new(buffer_pool::finish_pooled(column)?),
            Self::List(of, lengths, field) => {
                let (offsets, nulls) = lengths.finish();
                Arc::new(ListArray::try_new(
                    Arc::clone(field),
                    offsets,
                    of.finish()?,
                    nulls,
                )?)
            }
            Self::Map(of_key, of_value, lengths, entries) => {
                let (offsets, nulls) = lengths.finish();
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(ArrowError::SchemaError("a map has no entries".to_owned()));
                };
                let columns = vec![of_key.finish()?, of_value.finish()?];
                let pairs = StructArray::try_new(fields.clone(), columns, None)?;
                Arc::new(MapArray::try_new(
                    Arc::clone(entries),
                    offsets,
                    pairs,
                    nulls,
                    false,
                )?)
            }
            Self::Record(of, nulls, fields) => {
                let length = nulls.len();
                let columns = of.iter_mut().map(Self::finish).collect::<Result<Vec<_>, _>>()?;
                let nulls = nulls.finish();
                Arc::new(StructArray::try_new_with_length(
                    fields.clone(),
                    columns,
                    nulls,
                    length,
                )?)
            }
        })
    }
}
