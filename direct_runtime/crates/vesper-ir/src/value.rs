//! Values as every engine crate passes them around: 32 bytes at most, cheap to clone, no heap for the small ones.

use std::sync::Arc;

use crate::decimal::Decimal;
use crate::types::Type;

/// A value of some type. Which enum a member belongs to is known from the type, never from the value.
#[derive(Clone, Debug)]
pub enum Value {
    Boolean(bool),
    Integer(i64),
    Decimal(Decimal),
    Text(Arc<str>),
    Member(Member),
    Set(Arc<Set>),
}

/// A member of an enum, by its place in the declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member(pub u32);

/// A constant set. INVARIANT: in the order of docs/spec/values.md, without repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Set {
    Boolean(Vec<bool>),
    Integer(Vec<i64>),
    Text(Vec<Arc<str>>),
    Member(Vec<Member>),
}

/// A value that may be looked up in a set, borrowed for the length of one operation.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a> {
    Boolean(bool),
    Integer(i64),
    Text(&'a str),
    Member(Member),
}

impl Set {
    /// The set of these values, put in order; nothing where one is not of the type the set holds.
    pub fn from_values(of: &Type, values: &[Value]) -> Option<Self> {
        fn sorted<T: Ord>(values: &[Value], read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
            let mut members = values.iter().map(read).collect::<Option<Vec<T>>>()?;
            members.sort();
            members.dedup();
            Some(members)
        }
        match of {
            Type::Boolean => sorted(values, |value| {
                if let Value::Boolean(it) = value {
                    Some(*it)
                } else {
                    None
                }
            })
            .map(Set::Boolean),
            Type::Integer => sorted(values, |value| {
                if let Value::Integer(it) = value {
                    Some(*it)
                } else {
                    None
                }
            })
            .map(Set::Integer),
            Type::Text => sorted(values, |value| {
                if let Value::Text(it) = value {
                    Some(Arc::clone(it))
                } else {
                    None
                }
            })
            .map(Set::Text),
            Type::Enum(_) => sorted(values, |value| {
                if let Value::Member(it) = value {
                    Some(*it)
                } else {
                    None
                }
            })
            .map(Set::Member),
            Type::Decimal | Type::Set(_) => None,
        }
    }

    /// The members as values, in order.
    pub fn to_values(&self) -> Vec<Value> {
        match self {
            Self::Boolean(members) => members.iter().copied().map(Value::Boolean).collect(),
            Self::Integer(members) => members.iter().copied().map(Value::Integer).collect(),
            Self::Text(members) => members.iter().cloned().map(Value::Text).collect(),
            Self::Member(members) => members.iter().copied().map(Value::Member).collect(),
        }
    }
}

impl Value {
    /// The value as a set's member, unless it is of a type that sets do not hold.
    pub fn as_key(&self) -> Option<Key<'_>> {
        match self {
            Self::Boolean(value) => Some(Key::Boolean(*value)),
            Self::Integer(value) => Some(Key::Integer(*value)),
            Self::Text(value) => Some(Key::Text(value)),
            Self::Member(value) => Some(Key::Member(*value)),
            Self::Decimal(_) | Self::Set(_) => None,
        }
    }

    /// True when engines may not tell the two apart: decimals by text, everything else by equality.
    pub fn is_identical(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => left == right,
            (Self::Integer(left), Self::Integer(right)) => left == right,
            (Self::Decimal(left), Self::Decimal(right)) => left.is_identical(right),
            (Self::Text(left), Self::Text(right)) => left == right,
            (Self::Member(left), Self::Member(right)) => left == right,
            (Self::Set(left), Self::Set(right)) => left == right,
            _ => false,
        }
    }
}
