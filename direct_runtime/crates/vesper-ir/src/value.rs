//! Values of the language: at most 32 bytes, cheap to clone.
//!
//! Small values use no heap memory.

use std::sync::Arc;

use crate::decimal::Decimal;
use crate::float;
use crate::json::Json;
use crate::pattern::Pattern;
use crate::table::Table;
use crate::types::Type;

mod order;
mod sets;

pub use order::first_of_equals;

/// Value of the language. Its type, not the value, holds the enum of a member and the field names of a record.
#[derive(Clone, Debug)]
pub enum Value {
    Boolean(bool),
    Integer(i64),
    Decimal(Decimal),
    Float(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    /// Microseconds since 1970-01-01 in UTC, within the years 1 to 9999.
    Timestamp(i64),
    /// Days since 1970-01-01, within the years 1 to 9999.
    Date(i32),
    /// Microseconds, at most 3,652,059 days.
    Duration(i64),
    /// Microseconds since midnight, less than a day.
    TimeOfDay(i64),
    /// Months, at most 9,999 years.
    Period(i32),
    Json(Arc<Json>),
    Member(Member),
    Set(Arc<Set>),
    Array(Arc<[Value]>),
    Map(Arc<Map>),
    /// Fields in declared order.
    Record(Arc<[Value]>),
    /// Optional without a value. A present optional is the value itself, since optionals do not nest.
    Null,
    /// Type argument of a kernel (`Signature::typed`); not a value of the language.
    Type(Type),
    /// Pattern argument of a kernel (`Signature::literals`); not a value of the language.
    Pattern(Arc<Pattern>),
    /// Table argument of a kernel (`Signature::literals`); not a value of the language.
    Table(Arc<Table>),
}

/// Member of an enum, as an index into its declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member(pub u32);

/// Number of texts up to which a linear scan is faster than a binary search.
const MAX_LINEAR_SEARCH: usize = 8;

/// Members of a set, or keys of a map. INVARIANT: in the order of docs/spec/values.md, without duplicates.
///
/// An empty set may have any kind, because its creator may not know the type. Code therefore checks for emptiness
/// first.
#[derive(Clone, Debug)]
pub enum Set {
    Boolean(Vec<bool>),
    Integer(Vec<i64>),
    Text(Vec<Arc<str>>),
    Bytes(Vec<Arc<[u8]>>),
    Timestamp(Vec<i64>),
    Date(Vec<i32>),
    Member(Vec<Member>),
}

/// Map from keys to values. INVARIANT: `values` has one value for each key, at the same index.
#[derive(Clone, Debug)]
pub struct Map {
    keys: Set,
    values: Vec<Value>,
}

/// Kind of the values that sets and map keys hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Boolean,
    Integer,
    Text,
    Bytes,
    Timestamp,
    Date,
    Member,
}

/// Borrowed key for a lookup in a set or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key<'a> {
    Boolean(bool),
    Integer(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Timestamp(i64),
    Date(i32),
    Member(Member),
}

/// Owned key. Within one type the derived order is that of docs/spec/values.md: Rust orders `str` by UTF-8 bytes, which
/// is the order of code points, and bytes as unsigned numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnedKey {
    Boolean(bool),
    Integer(i64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    Timestamp(i64),
    Date(i32),
    Member(Member),
}

impl Key<'_> {
    /// Returns the kind of the key.
    pub fn kind(self) -> KeyKind {
        match self {
            Self::Boolean(_) => KeyKind::Boolean,
            Self::Integer(_) => KeyKind::Integer,
            Self::Text(_) => KeyKind::Text,
            Self::Bytes(_) => KeyKind::Bytes,
            Self::Timestamp(_) => KeyKind::Timestamp,
            Self::Date(_) => KeyKind::Date,
            Self::Member(_) => KeyKind::Member,
        }
    }
}

impl OwnedKey {
    /// Returns the kind of the key.
    pub fn kind(&self) -> KeyKind {
        match self {
            Self::Boolean(_) => KeyKind::Boolean,
            Self::Integer(_) => KeyKind::Integer,
            Self::Text(_) => KeyKind::Text,
            Self::Bytes(_) => KeyKind::Bytes,
            Self::Timestamp(_) => KeyKind::Timestamp,
            Self::Date(_) => KeyKind::Date,
            Self::Member(_) => KeyKind::Member,
        }
    }
}

/// In-place writes. The destination mostly holds a value of the same type already; building a value and moving it there
/// stalls on partial writes to memory.
impl Value {
    #[inline]
    pub fn set_boolean(&mut self, value: bool) {
        match self {
            Self::Boolean(place) => *place = value,
            place => *place = Self::Boolean(value),
        }
    }

    #[inline]
    pub fn set_integer(&mut self, value: i64) {
        match self {
            Self::Integer(place) => *place = value,
            place => *place = Self::Integer(value),
        }
    }

    #[inline]
    pub fn set_float(&mut self, value: f64) {
        match self {
            Self::Float(place) => *place = value,
            place => *place = Self::Float(value),
        }
    }

    /// Writes a decimal in place.
    ///
    /// INVARIANT: the scale is valid for a decimal; it comes from a result of `Decimal`.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "passing the coefficient to a call would store it in two halves"
    )]
    pub fn set_small_decimal(&mut self, coefficient: i128, scale: u16) {
        match self {
            Self::Decimal(place) => place.set_small(coefficient, scale),
            place => *place = Self::Decimal(Decimal::small(coefficient, scale)),
        }
    }

    /// Returns true where the value owns or shares heap memory.
    #[inline]
    pub fn holds_memory(&self) -> bool {
        match self {
            Self::Boolean(_)
            | Self::Integer(_)
            | Self::Float(_)
            | Self::Timestamp(_)
            | Self::Date(_)
            | Self::Duration(_)
            | Self::TimeOfDay(_)
            | Self::Period(_)
            | Self::Member(_)
            | Self::Null => false,
            Self::Decimal(value) => value.as_small().is_none(),
            _ => true,
        }
    }

    /// Overwrites a destination without dropping it. A destination that holds heap memory would leak it.
    #[inline]
    pub fn put(&mut self, value: Self) {
        debug_assert!(!self.holds_memory(), "the overwritten value would leak");
        std::mem::forget(std::mem::replace(self, value));
    }

    /// Overwrites a destination with a decimal, without dropping it.
    ///
    /// INVARIANT: the scale is valid for a decimal.
    #[inline]
    pub fn put_small_decimal(&mut self, coefficient: i128, scale: u16) {
        self.put(Self::Decimal(Decimal::small(coefficient, scale)));
    }

    /// Resets the value to that of an empty register.
    #[inline]
    pub fn clear(&mut self) {
        if self.holds_memory() {
            *self = Self::Boolean(false);
        } else {
            self.put(Self::Boolean(false));
        }
    }

    /// Copies another value into this one.
    #[inline]
    pub fn set(&mut self, from: &Self) {
        match from {
            Self::Boolean(value) => self.set_boolean(*value),
            Self::Integer(value) => self.set_integer(*value),
            Self::Float(value) => self.set_float(*value),
            Self::Decimal(value) => match value.as_small() {
                Some((coefficient, scale)) => self.set_small_decimal(coefficient, scale),
                None => *self = from.clone(),
            },
            Self::Text(value) => *self = Self::Text(Arc::clone(value)),
            Self::Array(value) => *self = Self::Array(Arc::clone(value)),
            Self::Record(value) => *self = Self::Record(Arc::clone(value)),
            _ => *self = from.clone(),
        }
    }
}

impl From<OwnedKey> for Value {
    fn from(key: OwnedKey) -> Self {
        match key {
            OwnedKey::Boolean(value) => Self::Boolean(value),
            OwnedKey::Integer(value) => Self::Integer(value),
            OwnedKey::Text(value) => Self::Text(value),
            OwnedKey::Bytes(value) => Self::Bytes(value),
            OwnedKey::Timestamp(value) => Self::Timestamp(value),
            OwnedKey::Date(value) => Self::Date(value),
            OwnedKey::Member(value) => Self::Member(value),
        }
    }
}

impl Set {
    /// Creates a sorted set without duplicates. Returns `None` where a key has another kind.
    pub fn from_keys(kind: KeyKind, keys: impl Iterator<Item = OwnedKey>) -> Option<Self> {
        fn sort_unique<T: Ord>(members: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
            let mut members: Vec<T> = members.collect::<Option<_>>()?;
            members.sort();
            members.dedup();
            Some(members)
        }
        macro_rules! of_kind {
            ($kind:ident) => {
                sort_unique(keys.map(|key| {
                    if let OwnedKey::$kind(it) = key {
                        Some(it)
                    } else {
                        None
                    }
                }))
                .map(Self::$kind)
            };
        }
        match kind {
            KeyKind::Boolean => of_kind!(Boolean),
            KeyKind::Integer => of_kind!(Integer),
            KeyKind::Text => of_kind!(Text),
            KeyKind::Bytes => of_kind!(Bytes),
            KeyKind::Timestamp => of_kind!(Timestamp),
            KeyKind::Date => of_kind!(Date),
            KeyKind::Member => of_kind!(Member),
        }
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        match self {
            Self::Boolean(members) => members.len(),
            Self::Integer(members) | Self::Timestamp(members) => members.len(),
            Self::Text(members) => members.len(),
            Self::Bytes(members) => members.len(),
            Self::Date(members) => members.len(),
            Self::Member(members) => members.len(),
        }
    }

    /// Returns true when there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the member at an index.
    pub fn get(&self, place: usize) -> Option<Value> {
        match self {
            Self::Boolean(members) => members.get(place).copied().map(Value::Boolean),
            Self::Integer(members) => members.get(place).copied().map(Value::Integer),
            Self::Text(members) => members.get(place).cloned().map(Value::Text),
            Self::Bytes(members) => members.get(place).cloned().map(Value::Bytes),
            Self::Timestamp(members) => members.get(place).copied().map(Value::Timestamp),
            Self::Date(members) => members.get(place).copied().map(Value::Date),
            Self::Member(members) => members.get(place).copied().map(Value::Member),
        }
    }

    /// Returns the member at an index as a key.
    pub fn key(&self, place: usize) -> Option<Key<'_>> {
        match self {
            Self::Boolean(members) => members.get(place).copied().map(Key::Boolean),
            Self::Integer(members) => members.get(place).copied().map(Key::Integer),
            Self::Text(members) => members.get(place).map(|member| Key::Text(member)),
            Self::Bytes(members) => members.get(place).map(|member| Key::Bytes(member)),
            Self::Timestamp(members) => members.get(place).copied().map(Key::Timestamp),
            Self::Date(members) => members.get(place).copied().map(Key::Date),
            Self::Member(members) => members.get(place).copied().map(Key::Member),
        }
    }

    /// Iterates over the members as values, in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> {
        (0..self.len()).map_while(|place| self.get(place))
    }

    /// Returns the index of a member.
    pub fn find(&self, key: Key<'_>) -> Option<usize> {
        match (key, self) {
            (Key::Boolean(key), Self::Boolean(members)) => members.binary_search(&key).ok(),
            (Key::Integer(key), Self::Integer(members)) | (Key::Timestamp(key), Self::Timestamp(members)) => {
                members.binary_search(&key).ok()
            }
            // Equality of texts compares the lengths first.
            (Key::Text(key), Self::Text(members)) if members.len() <= MAX_LINEAR_SEARCH => {
                members.iter().position(|member| member.as_ref() == key)
            }
            (Key::Text(key), Self::Text(members)) => {
                members.binary_search_by(|member| member.as_ref().cmp(key)).ok()
            }
            (Key::Bytes(key), Self::Bytes(members)) => {
                members.binary_search_by(|member| member.as_ref().cmp(key)).ok()
            }
            (Key::Date(key), Self::Date(members)) => members.binary_search(&key).ok(),
            (Key::Member(key), Self::Member(members)) => members.binary_search(&key).ok(),
            _ => None,
        }
    }
}

impl Map {
    /// Creates a map. Returns `None` where a key is repeated or has another kind.
    pub fn from_entries(kind: KeyKind, mut entries: Vec<(OwnedKey, Value)>) -> Option<Self> {
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        let (keys, values): (Vec<OwnedKey>, Vec<Value>) = entries.into_iter().unzip();
        let keys = Set::from_keys(kind, keys.into_iter())?;
        (keys.len() == values.len()).then_some(Self { keys, values })
    }

    /// Creates a map of the kind of its first key. Returns `None` where a key is repeated or has another kind.
    pub fn of_entries(entries: Vec<(OwnedKey, Value)>) -> Option<Self> {
        let kind = entries.first().map(|(key, _)| key.kind());
        // An empty map may have any kind.
        Self::from_entries(kind.unwrap_or(KeyKind::Boolean), entries)
    }

    /// Returns the keys, in order.
    pub fn keys(&self) -> &Set {
        &self.keys
    }

    /// Returns the values, in the order of their keys.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns the value of a key.
    pub fn get(&self, key: Key<'_>) -> Option<&Value> {
        self.values.get(self.keys.find(key)?)
    }
}

/// Definition of equality for decimals, floats and JSON.
struct Agreement {
    decimals: fn(&Decimal, &Decimal) -> bool,
    floats: fn(f64, f64) -> bool,
    json: fn(&Json, &Json) -> bool,
}

const EQUAL: Agreement = Agreement {
    decimals: |left, right| left.compare(right).is_eq(),
    // SEMANTICS: IEEE 754 equality; NaN equals no value.
    floats: |left, right| left.partial_cmp(&right).is_some_and(std::cmp::Ordering::is_eq),
    json: Json::is_equal,
};

const IDENTICAL: Agreement = Agreement {
    decimals: Decimal::is_identical,
    floats: float::is_identical,
    json: Json::is_identical,
};

impl Value {
    /// Borrows the value as a key. Returns `None` where its type is not a key type.
    #[inline]
    pub fn as_key(&self) -> Option<Key<'_>> {
        match self {
            Self::Boolean(value) => Some(Key::Boolean(*value)),
            Self::Integer(value) => Some(Key::Integer(*value)),
            Self::Text(value) => Some(Key::Text(value)),
            Self::Bytes(value) => Some(Key::Bytes(value)),
            Self::Timestamp(value) => Some(Key::Timestamp(*value)),
            Self::Date(value) => Some(Key::Date(*value)),
            Self::Member(value) => Some(Key::Member(*value)),
            _ => None,
        }
    }

    /// Copies the value as a key. Returns `None` where its type is not a key type.
    #[inline]
    pub fn to_key(&self) -> Option<OwnedKey> {
        match self {
            Self::Boolean(value) => Some(OwnedKey::Boolean(*value)),
            Self::Integer(value) => Some(OwnedKey::Integer(*value)),
            Self::Text(value) => Some(OwnedKey::Text(Arc::clone(value))),
            Self::Bytes(value) => Some(OwnedKey::Bytes(Arc::clone(value))),
            Self::Timestamp(value) => Some(OwnedKey::Timestamp(*value)),
            Self::Date(value) => Some(OwnedKey::Date(*value)),
            Self::Member(value) => Some(OwnedKey::Member(*value)),
            _ => None,
        }
    }

    /// Returns the value of an optional.
    #[inline]
    pub fn as_optional(&self) -> Option<&Value> {
        match self {
            Self::Null => None,
            value => Some(value),
        }
    }

    /// Creates an optional.
    #[inline]
    pub fn from_optional(value: Option<Value>) -> Self {
        value.unwrap_or(Self::Null)
    }

    /// Returns true for equal values of the language. Numbers are compared by value, and NaN equals no value.
    pub fn is_equal(&self, other: &Self) -> bool {
        self.agrees(other, &EQUAL)
    }

    /// Returns true when engines may not distinguish the values. Numbers are compared by text, the rest by equality.
    pub fn is_identical(&self, other: &Self) -> bool {
        self.agrees(other, &IDENTICAL)
    }

    /// Compares recursively. The recursion is as deep as the type, which is limited.
    fn agrees(&self, other: &Self, by: &Agreement) -> bool {
        let all_agree = |left: &[Value], right: &[Value]| all_agree(left, right, by);
        match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => left == right,
            (Self::Integer(left), Self::Integer(right))
            | (Self::Timestamp(left), Self::Timestamp(right))
            | (Self::Duration(left), Self::Duration(right))
            | (Self::TimeOfDay(left), Self::TimeOfDay(right)) => left == right,
            (Self::Decimal(left), Self::Decimal(right)) => (by.decimals)(left, right),
            (Self::Float(left), Self::Float(right)) => (by.floats)(*left, *right),
            (Self::Json(left), Self::Json(right)) => (by.json)(left, right),
            (Self::Text(left), Self::Text(right)) => left == right,
            (Self::Bytes(left), Self::Bytes(right)) => left == right,
            (Self::Date(left), Self::Date(right)) | (Self::Period(left), Self::Period(right)) => {
                left == right
            }
            (Self::Member(left), Self::Member(right)) => left == right,
            (Self::Set(left), Self::Set(right)) => left == right,
            (Self::Array(left), Self::Array(right)) | (Self::Record(left), Self::Record(right)) => {
                all_agree(left, right)
            }
            (Self::Map(left), Self::Map(right)) => {
                left.keys == right.keys && all_agree(&left.values, &right.values)
            }
            (Self::Null, Self::Null) => true,
            _ => false,
        }
    }
}

/// Compares arrays or the fields of records: equal lengths and equal values at each index.
pub fn are_equal(left: &[Value], right: &[Value]) -> bool {
    all_agree(left, right, &EQUAL)
}

fn all_agree(left: &[Value], right: &[Value], by: &Agreement) -> bool {
    let mut pairs = left.iter().zip(right);
    left.len() == right.len() && pairs.all(|(left, right)| left.agrees(right, by))
}

impl Map {
    /// Returns true for maps with the same keys and equal values.
    pub fn is_equal(&self, other: &Self) -> bool {
        self.keys == other.keys && are_equal(&self.values, &other.values)
    }
}
