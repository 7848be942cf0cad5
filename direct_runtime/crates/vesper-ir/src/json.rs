//! JSON values of docs/spec/collections.md: exact numbers, objects with unique keys in order.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::decimal::Decimal;

mod parse;

pub use parse::{Build, ParseJsonError, build, parse};

/// Maximum depth of a value: a scalar has depth 0, `[]` has depth 1.
pub const MAX_DEPTH: usize = 128;

/// JSON value. Parts are shared, so that extracting a part copies nothing.
///
/// INVARIANT: at most [`MAX_DEPTH`] levels, which bounds the stack of recursive functions.
#[derive(Clone, Debug)]
pub enum Json {
    Null,
    Boolean(bool),
    /// Number with the scale of its text.
    Number(Decimal),
    Text(Arc<str>),
    Array(Arc<[Json]>),
    Object(Object),
}

/// Entries of an object. INVARIANT: in code-point order of their keys, without duplicates.
#[derive(Clone, Debug)]
pub struct Object(Arc<[(Arc<str>, Json)]>);

impl Object {
    /// Creates an object and sorts its entries. Returns `None` where a key is repeated.
    pub fn new(mut entries: Vec<(Arc<str>, Json)>) -> Option<Self> {
        let is_before = |left: &(Arc<str>, Json), right: &(Arc<str>, Json)| left.0 < right.0;
        if !entries.is_sorted_by(is_before) {
            // UTF-8 byte order is code-point order.
            entries.sort_by(|(left, _), (right, _)| left.cmp(right));
            if !entries.is_sorted_by(is_before) {
                return None;
            }
        }
        Some(Self(Arc::from(entries)))
    }

    /// Returns the entries, in code-point order of their keys.
    pub fn entries(&self) -> &[(Arc<str>, Json)] {
        &self.0
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let place = self.0.binary_search_by(|(own, _)| own.as_ref().cmp(key)).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }
}

impl Json {
    /// Returns the depth of the value. Each shared part is visited once: a value doubled forty times has few parts, but
    /// 2^40 paths to them.
    pub fn depth(&self) -> usize {
        self.depth_with(&mut HashMap::new())
    }

    fn depth_with(&self, known: &mut HashMap<*const u8, usize>) -> usize {
        let (place, is_shared) = match self {
            Self::Array(items) => (Arc::as_ptr(items).cast::<u8>(), Arc::strong_count(items) > 1),
            Self::Object(object) => (
                Arc::as_ptr(&object.0).cast::<u8>(),
                Arc::strong_count(&object.0) > 1,
            ),
            _ => return 0,
        };
        if let Some(depth) = known.get(&place).filter(|_| is_shared) {
            return *depth;
        }
        let inner = match self {
            Self::Array(items) => items.iter().map(|item| item.depth_with(known)).max(),
            Self::Object(object) => object.0.iter().map(|(_, value)| value.depth_with(known)).max(),
            _ => None,
        };
        let depth = 1 + inner.unwrap_or(0);
        if is_shared {
            known.insert(place, depth);
        }
        depth
    }

    /// Returns true for equal values of the language: the same kind, numbers by value.
    pub fn is_equal(&self, other: &Self) -> bool {
        self.arrange(other).is_eq()
    }

    /// Returns true when engines may not distinguish the values. Numbers are compared by text.
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

    /// Compares any two JSON values so that exactly the equal ones compare as equal. The order is not visible in the
    /// language.
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

    /// Returns the rank of the value's kind.
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

    /// Formats the value as canonical JSON.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, &|number| number.normalize().to_string());
        out
    }

    /// Formats the value as canonical JSON, or returns `None` above this number of code points. A small value with
    /// shared parts may have a text that exceeds memory, so its length is measured before it is written.
    pub fn text_within(&self, most: usize) -> Option<String> {
        let mut left = most;
        self.measure(&mut left).map(|()| self.text())
    }

    /// Subtracts the length of the text from `left`. Returns `None` where `left` is too small.
    fn measure(&self, left: &mut usize) -> Option<()> {
        let mut take = |length: usize| {
            *left = left.checked_sub(length)?;
            Some(())
        };
        let quoted = |text: &str| {
            let mut out = String::new();
            quote(text, &mut out);
            out.chars().count()
        };
        match self {
            Self::Null | Self::Boolean(true) => take(4),
            Self::Boolean(false) => take(5),
            Self::Number(number) => take(number.normalize().to_string().len()),
            Self::Text(text) => take(quoted(text)),
            Self::Array(items) => {
                // Brackets, and a comma between two items.
                take(items.len().saturating_sub(1) + 2)?;
                items.iter().try_for_each(|item| item.measure(left))
            }
            Self::Object(object) => {
                take(object.0.len().saturating_sub(1) + 2)?;
                for (key, value) in object.0.iter() {
                    *left = left.checked_sub(quoted(key) + 1)?;
                    value.measure(left)?;
                }
                Some(())
            }
        }
    }

    /// Formats a literal of the IR: canonical JSON whose numbers keep their scale.
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

/// Appends a string as canonical JSON.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    // Fast path for text without escapes, the test of which is vectorised. Bytes of non-ASCII characters are above this
    // range.
    if !text.bytes().fold(false, |found, byte| {
        found | matches!(byte, 0..=0x1f | b'"' | b'\\')
    }) {
        out.push_str(text);
        out.push('"');
        return;
    }
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
