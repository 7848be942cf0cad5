//! Prices of values in bytes, and the charge of large calls (docs/spec/limits.md). Equal on every engine.

use crate::Op;
use crate::json::Json;
use crate::limits::{
    FREE_SIZE, SIZE_OF_ITEM, WORK_OF_ITEM, WORK_OF_JSON, WORK_OF_PATTERN, WORK_OF_SLOW_ITEM, WORK_PER_UNIT,
};
use crate::types::{Type, TypePattern};
use crate::value::{Set, Value};

/// The place of an item in an array.
pub const SLOT_BYTES: u64 = 24;
/// A member of a set.
pub const MEMBER_BYTES: u64 = 64;
/// An entry of a map.
pub const ENTRY_BYTES: u64 = 104;
/// An array without its items.
pub const ARRAY_BYTES: u64 = 56;
const SET_BYTES: u64 = 216;
const MAP_BYTES: u64 = 64;
const RECORD_BYTES: u64 = 184;
const FIELD_BYTES: u64 = 24;
const DECIMAL_BYTES: u64 = 104;

/// The parts of a value that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The value existed before.
    Kept,
    /// Every part is new.
    Fresh,
    /// The value is new, and these are the plans of its parts.
    Parts(Vec<Plan>),
}

impl Plan {
    /// Returns the plan of a part.
    pub fn part(&self, place: usize) -> &Self {
        match self {
            Self::Parts(parts) => parts.get(place).unwrap_or(&Self::Kept),
            whole => whole,
        }
    }

    /// Returns the plan of a value that is one of two.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Kept, plan) | (plan, Self::Kept) => plan,
            (Self::Fresh, _) | (_, Self::Fresh) => Self::Fresh,
            (Self::Parts(left), Self::Parts(right)) => Self::Parts(
                left.into_iter()
                    .zip(right)
                    .map(|(left, right)| left.join(right))
                    .collect(),
            ),
        }
    }

    /// Returns the plan of an operation's result, with this plan for parts whose type is a parameter.
    pub fn of_result(declared: &TypePattern, of_parameter: &Self) -> Self {
        match declared {
            TypePattern::Parameter(_) => of_parameter.clone(),
            TypePattern::OptionalOf(inner) => Self::of_result(inner, of_parameter),
            TypePattern::ArrayOf(item) | TypePattern::SetOf(item) => {
                Self::Parts(vec![Self::of_result(item, of_parameter)])
            }
            TypePattern::MapOf(key, value) => Self::Parts(vec![
                Self::of_result(key, of_parameter),
                Self::of_result(value, of_parameter),
            ]),
            TypePattern::RecordOf(fields) => {
                let fields = fields.iter();
                Self::Parts(
                    fields
                        .map(|(_, field)| Self::of_result(field, of_parameter))
                        .collect(),
                )
            }
            _ => Self::Fresh,
        }
    }
}

/// The price of the values of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Price {
    Fixed(u64),
    Text,
    Bytes,
    Json,
    /// Nothing for null.
    Present(Box<Price>),
    /// The whole, the place of an item, and its price.
    Items(u64, u64, Box<Price>),
    Entries(Box<Price>, Box<Price>),
    /// The price without some fields, and these.
    Record(u64, Vec<(usize, Price)>),
}

impl Price {
    pub fn of_type(ty: &Type, plan: &Plan) -> Self {
        if *plan == Plan::Kept {
            return Self::Fixed(0);
        }
        match ty {
            Type::Boolean | Type::Enum(_) => Self::Fixed(0),
            Type::Integer | Type::Date => Self::Fixed(32),
            Type::Float => Self::Fixed(24),
            Type::Decimal => Self::Fixed(DECIMAL_BYTES),
            Type::Timestamp => Self::Fixed(48),
            Type::Duration | Type::TimeOfDay | Type::Period => Self::Fixed(40),
            Type::Text => Self::Text,
            Type::Bytes => Self::Bytes,
            Type::Json => Self::Json,
            Type::Optional(inner) => Self::of_type(inner, plan).or_null(),
            Type::Array(item) => {
                let item = Self::of_type(item, plan.part(0));
                Self::Items(ARRAY_BYTES, SLOT_BYTES, Box::new(item))
            }
            Type::Set(member) => {
                let member = Self::of_type(member, plan.part(0));
                Self::Items(SET_BYTES, MEMBER_BYTES, Box::new(member))
            }
            Type::Map(of) => Self::Entries(
                Box::new(Self::of_type(&of.key, plan.part(0))),
                Box::new(Self::of_type(&of.value, plan.part(1))),
            ),
            Type::Record(of) => {
                let fields = of.fields().iter().enumerate();
                Self::of_fields(
                    fields
                        .map(|(place, field)| Self::of_type(&field.ty, plan.part(place)))
                        .collect(),
                )
            }
        }
    }

    /// Returns the price of the new parts of an operation's result.
    fn of_result(declared: &TypePattern) -> Self {
        match declared {
            TypePattern::Parameter(_) | TypePattern::Boolean | TypePattern::EnumOf(_) => Self::Fixed(0),
            TypePattern::Integer => Self::of_type(&Type::Integer, &Plan::Fresh),
            TypePattern::Decimal => Self::of_type(&Type::Decimal, &Plan::Fresh),
            TypePattern::Float => Self::of_type(&Type::Float, &Plan::Fresh),
            TypePattern::Timestamp => Self::of_type(&Type::Timestamp, &Plan::Fresh),
            TypePattern::Date => Self::of_type(&Type::Date, &Plan::Fresh),
            TypePattern::Duration => Self::of_type(&Type::Duration, &Plan::Fresh),
            TypePattern::TimeOfDay => Self::of_type(&Type::TimeOfDay, &Plan::Fresh),
            TypePattern::Period => Self::of_type(&Type::Period, &Plan::Fresh),
            TypePattern::Text => Self::Text,
            TypePattern::Bytes => Self::Bytes,
            TypePattern::Json => Self::Json,
            TypePattern::OptionalOf(inner) => Self::of_result(inner).or_null(),
            TypePattern::ArrayOf(item) => {
                Self::Items(ARRAY_BYTES, SLOT_BYTES, Box::new(Self::of_result(item)))
            }
            TypePattern::SetOf(member) => {
                Self::Items(SET_BYTES, MEMBER_BYTES, Box::new(Self::of_result(member)))
            }
            TypePattern::MapOf(key, value) => {
                Self::Entries(Box::new(Self::of_result(key)), Box::new(Self::of_result(value)))
            }
            TypePattern::RecordOf(fields) => {
                Self::of_fields(fields.iter().map(|(_, field)| Self::of_result(field)).collect())
            }
        }
    }

    /// A fixed price is the price of null too.
    fn or_null(self) -> Self {
        match self {
            Self::Fixed(price) => Self::Fixed(price),
            price => Self::Present(Box::new(price)),
        }
    }

    fn of_fields(fields: Vec<Self>) -> Self {
        let mut fixed = RECORD_BYTES + FIELD_BYTES * fields.len() as u64;
        let mut varying = Vec::new();
        for (place, field) in fields.into_iter().enumerate() {
            match field {
                Self::Fixed(price) => fixed += price,
                price => varying.push((place, price)),
            }
        }
        if varying.is_empty() {
            return Self::Fixed(fixed);
        }
        Self::Record(fixed, varying)
    }

    /// Returns the price of a value.
    pub fn of(&self, value: &Value) -> u64 {
        match (self, value) {
            (Self::Fixed(price), _) => *price,
            (Self::Text, Value::Text(text)) => of_text(text),
            (Self::Bytes, Value::Bytes(bytes)) => of_bytes(bytes),
            (Self::Json, Value::Json(json)) => of_json(json),
            (Self::Present(_), Value::Null) => 0,
            (Self::Present(price), value) => price.of(value),
            (Self::Items(whole, slot, item), Value::Array(items)) => {
                let count = items.len() as u64;
                match &**item {
                    Self::Fixed(price) => whole + count * (slot + price),
                    price => whole + count * slot + items.iter().map(|item| price.of(item)).sum::<u64>(),
                }
            }
            (Self::Items(whole, slot, item), Value::Set(members)) => {
                whole + members.len() as u64 * slot + item.of_members(members)
            }
            (Self::Entries(key, value), Value::Map(map)) => {
                let count = map.keys().len() as u64;
                let values = match &**value {
                    Self::Fixed(price) => count * price,
                    price => map.values().iter().map(|value| price.of(value)).sum::<u64>(),
                };
                MAP_BYTES + count * ENTRY_BYTES + key.of_members(map.keys()) + values
            }
            (Self::Record(fixed, varying), Value::Record(fields)) => {
                let varying = varying.iter();
                fixed
                    + varying
                        .map(|(place, price)| fields.get(*place).map_or(0, |field| price.of(field)))
                        .sum::<u64>()
            }
            _ => 0,
        }
    }

    fn of_members(&self, members: &Set) -> u64 {
        match (self, members) {
            (Self::Fixed(price), members) => members.len() as u64 * price,
            (_, Set::Text(texts)) => texts.iter().map(|text| of_text(text)).sum(),
            (_, Set::Bytes(all)) => all.iter().map(|bytes| of_bytes(bytes)).sum(),
            _ => 0,
        }
    }
}

fn of_text(text: &str) -> u64 {
    let bytes = text.len() as u64;
    if text.is_ascii() {
        56 + bytes
    } else {
        80 + 4 * text.chars().count() as u64
    }
}

fn of_bytes(bytes: &[u8]) -> u64 {
    40 + bytes.len() as u64
}

fn of_json(json: &Json) -> u64 {
    match json {
        Json::Null | Json::Boolean(_) => 0,
        Json::Number(_) => DECIMAL_BYTES,
        Json::Text(text) => of_text(text),
        // The depth of a json is limited.
        Json::Array(items) => ARRAY_BYTES + items.iter().map(|item| SLOT_BYTES + of_json(item)).sum::<u64>(),
        Json::Object(object) => {
            let entries = object.entries().iter();
            MAP_BYTES
                + entries
                    .map(|(key, value)| ENTRY_BYTES + of_text(key) + of_json(value))
                    .sum::<u64>()
        }
    }
}

/// The charge of a large call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    pub units: u64,
    pub bytes: u64,
}

/// Returns the charge of a call, or `None` if the call is not large.
#[inline]
pub fn charge_of(op: Op, args: &[&Value], result: &Value) -> Option<Charge> {
    let signature = op.signature();
    if signature.work.is_empty() && !signature.builds && !is_conversion(op) {
        return None;
    }
    let mut size = if signature.builds { most_size(result) } else { 0 };
    for place in signature.work {
        size += args.get(*place).map_or(0, |arg| most_size(arg));
    }
    if size <= FREE_SIZE && !is_conversion(op) {
        return None;
    }
    large_call(op, args, result)
}

/// Returns true for an operation whose large calls take memory.
pub fn takes_memory(op: Op) -> bool {
    let signature = op.signature();
    let has_work = signature.builds || !signature.work.is_empty();
    is_conversion(op) || (has_work && !matches!(Price::of_result(&signature.returns), Price::Fixed(_)))
}

/// Returns true for operations that count the price of their result instead of a size.
fn is_conversion(op: Op) -> bool {
    matches!(op, Op::JsonCast | Op::JsonFromValue | Op::JsonParse)
}

/// Returns the size of a value, or more: the bytes of a text are at least its code points.
#[inline]
fn most_size(value: &Value) -> u64 {
    let (length, each) = match value {
        Value::Text(text) => (text.len(), 1),
        Value::Bytes(bytes) => (bytes.len(), 1),
        Value::Array(items) => (items.len(), SIZE_OF_ITEM),
        Value::Set(members) => (members.len(), SIZE_OF_ITEM),
        Value::Map(map) => (map.keys().len(), SIZE_OF_ITEM),
        _ => (0, 0),
    };
    length as u64 * each
}

#[cold]
fn large_call(op: Op, args: &[&Value], result: &Value) -> Option<Charge> {
    let signature = op.signature();
    let of_character = if op.name().starts_with("regex.") {
        WORK_OF_PATTERN
    } else {
        1
    };
    let of_item = match op {
        Op::ArraySort
        | Op::ArrayDistinct
        | Op::ArrayZip
        | Op::ArrayEnumerate
        | Op::ArrayChunks
        | Op::MapEntries
        | Op::MapFromEntries
        | Op::MapMerge
        | Op::MapPut
        | Op::MapRemove => WORK_OF_SLOW_ITEM,
        _ => WORK_OF_ITEM,
    };
    let (mut size, mut work, mut bytes) = (0, 0, 0);
    let counted = signature
        .work
        .iter()
        .filter_map(|place| args.get(*place).copied());
    for value in counted.chain(signature.builds.then_some(result)) {
        if let Value::Text(text) = value {
            let length = text.chars().count() as u64;
            size += length;
            work += length * of_character;
        } else if let Value::Bytes(bytes) = value {
            size += bytes.len() as u64;
            work += bytes.len() as u64;
        } else {
            size += most_size(value);
            work += most_size(value) / SIZE_OF_ITEM * of_item;
        }
    }
    if size > FREE_SIZE {
        bytes = match Price::of_result(&signature.returns) {
            Price::Fixed(_) => 0,
            price => price.of(result),
        };
    } else {
        work = 0;
    }
    if is_conversion(op) {
        let price = match (op, args.get(1)) {
            (Op::JsonCast, Some(Value::Type(ty))) => match Price::of_type(ty, &Plan::Fresh) {
                Price::Fixed(_) => 0,
                price => price.of(result),
            },
            _ => Price::Json.of(result),
        };
        if price > FREE_SIZE {
            work += price * WORK_OF_JSON;
            bytes += price;
        }
    }
    (work > 0 || bytes > 0).then_some(Charge {
        units: work / WORK_PER_UNIT,
        bytes,
    })
}
