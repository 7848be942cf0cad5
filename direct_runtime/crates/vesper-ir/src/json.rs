//! JSON values, as docs/spec/collections.md has them: exact numbers, objects whose keys are unique and in order.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::decimal::Decimal;

mod parse;

pub use parse::{Build, ParseJsonError, build, parse};

/// The most levels of a value: a scalar has none, `[]` has one.
pub const MAX_DEPTH: usize = 128;

/// A JSON value. Parts are shared: what is taken out of a large value costs nothing.
///
/// INVARIANT: at most [`MAX_DEPTH`] levels, so that walking one takes little stack.
#[derive(Clone, Debug)]
pub enum Json {
    Null,
    Boolean(bool),
    /// With the scale that it was written with.
    Number(Decimal),
    Text(Arc<str>),
    Array(Arc<[Json]>),
    Object(Object),
}

/// The entries of an object. INVARIANT: in code-point order of their keys, each once.
#[derive(Clone, Debug)]
pub struct Object(Arc<[(Arc<str>, Json)]>);

impl Object {
    /// The object of these entries, put in order; nothing where a key comes twice.
    pub fn new(mut entries: Vec<(Arc<str>, Json)>) -> Option<Self> {
        let is_before = |left: &(Arc<str>, Json), right: &(Arc<str>, Json)| left.0 < right.0;
        if !entries.is_sorted_by(is_before) {
            // By UTF-8 bytes, which is by code points.
            entries.sort_by(|(left, _), (right, _)| left.cmp(right));
            if !entries.is_sorted_by(is_before) {
                return None;
            }
        }
        Some(Self(Arc::from(entries)))
    }

    /// The entries, in code-point order of their keys.
    pub fn entries(&self) -> &[(Arc<str>, Json)] {
        &self.0
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let place = self.0.binary_search_by(|(own, _)| own.as_ref().cmp(key)).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }
}

impl Json {
    /// How many levels it has.
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(object) => 1 + object.0.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Equality as the language has it: of one kind, numbers by value.
    pub fn is_equal(&self, other: &Self) -> bool {
        self.arrange(other).is_eq()
    }

    /// True when engines may not tell the two apart: numbers by text.
    pub fn is_identical(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(left), Self::Number(right)) => left.is_identical(right),
            (Self::Array(left), Self::Array(right)) => {
                left.len() == right.len() && left.iter().zip(right.iter()).all(|(a, b)| a.is_identical(b))
            }
            (Self::Object(left), Self::Object(right)) => {
                let mut pairs = left.0.iter().zip(right.0.iter());
                left.0.len() == right.0.len()
                    && pairs.all(|((a, left), (b, right))| a == b && left.is_identical(right))
            }
            _ => self.is_equal(other),
        }
    }

    /// An order of all JSON values in which exactly the equal ones are equal. It shows nowhere in the language.
    pub fn arrange(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => left.cmp(right),
            (Self::Number(left), Self::Number(right)) => left.compare(right),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Array(left), Self::Array(right)) if Arc::ptr_eq(left, right) => Ordering::Equal,
            (Self::Array(left), Self::Array(right)) => {
                let pairs = left.iter().zip(right.iter());
                let items = || first_difference(pairs.map(|(left, right)| left.arrange(right)));
                left.len().cmp(&right.len()).then_with(items)
            }
            (Self::Object(left), Self::Object(right)) if Arc::ptr_eq(&left.0, &right.0) => Ordering::Equal,
            (Self::Object(left), Self::Object(right)) => {
                let pairs = left.0.iter().zip(right.0.iter());
                let entries = || {
                    first_difference(
                        pairs.map(|((a, left), (b, right))| a.cmp(b).then_with(|| left.arrange(right))),
                    )
                };
                left.0.len().cmp(&right.0.len()).then_with(entries)
            }
            _ => self.kind().cmp(&other.kind()),
        }
    }

    /// The place of its kind among the kinds.
    fn kind(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Boolean(_) => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }

    /// Canonical JSON.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, &|number| number.normalize().to_string());
        out
    }

    /// The text of a literal in the IR: canonical, but with the places that numbers have.
    pub fn literal_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, &Decimal::to_string);
        out
    }

    fn write(&self, out: &mut String, number_text: &dyn Fn(&Decimal) -> String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) => out.push_str(&number_text(number)),
            Self::Text(text) => quote(text, out),
            Self::Array(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    out.push_str(if place > 0 { "," } else { "" });
                    item.write(out, number_text);
                }
                out.push(']');
            }
            Self::Object(object) => {
                out.push('{');
                for (place, (key, value)) in object.0.iter().enumerate() {
                    out.push_str(if place > 0 { "," } else { "" });
                    quote(key, out);
                    out.push(':');
                    value.write(out, number_text);
                }
                out.push('}');
            }
        }
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Writes a string as canonical JSON does.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}
