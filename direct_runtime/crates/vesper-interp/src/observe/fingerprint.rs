//! Fingerprints: a keyed hash of the values that a run has read, over an injective encoding.

use vesper_ir::{Decimal, Json, Key, Member, Set, Value};

use crate::inputs::parts::Parts;
use crate::inputs::problems::Problems;
use crate::run::execution::Completion;

mod siphash;
mod words;

use siphash::{Piece, Sip};
pub(crate) use words::HashPlan;

/// The key of fingerprints. Without it, collisions cannot be constructed.
pub type FingerprintKey = [u8; 16];

/// The hash of the completions so far; the inputs are added at the end.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint(Sip);

impl Fingerprint {
    #[inline]
    pub(crate) fn new(key: &FingerprintKey) -> Self {
        Self(Sip::new(key))
    }

    /// Adds the completion of the request with this path.
    pub(crate) fn add_completion(&mut self, path: &str, completion: &Completion) {
        self.tag(b'c');
        self.text(path);
        match completion {
            Completion::Value(value) => self.value(value, &Parts::Whole),
            Completion::Failed(failure) => {
                self.tag(b'f');
                self.text(failure.name());
            }
            Completion::Denied(capability) => {
                self.tag(b'p');
                self.text(capability);
            }
            Completion::LimitHit(limit) => {
                self.tag(b'l');
                self.text(limit);
            }
        }
    }

    pub(crate) fn add_input(&mut self, place: u32, value: &Value, parts: &Parts) {
        self.tag(b'i');
        self.put(u128::from(place), 4);
        self.value(value, parts);
    }

    pub(crate) fn add_now(&mut self, now: &Value) {
        self.tag(b'n');
        self.value(now, &Parts::Whole);
    }

    /// Returns the fingerprint of everything added so far.
    #[inline]
    pub(crate) fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }

    /// Adds the lowest `length` bytes of a number. INVARIANT: `length` is at most sixteen, and the number is zero
    /// above.
    fn put(&mut self, bytes: u128, length: u64) {
        self.0.put(Piece::new(bytes, length));
    }

    fn tag(&mut self, tag: u8) {
        self.put(u128::from(tag), 1);
    }

    fn length(&mut self, length: usize) {
        self.put(length as u128, 8);
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes(text.as_bytes());
    }

    /// Adds a tag and a number.
    fn number(&mut self, tag: u8, number: i64) {
        self.put(u128::from(tag) | u128::from(number.cast_unsigned()) << 8, 9);
    }

    fn member(&mut self, member: Member) {
        self.put(u128::from(b'm') | u128::from(member.0) << 8, 5);
    }

    fn boolean(&mut self, value: bool) {
        self.put(u128::from(b'b') | u128::from(value) << 8, 2);
    }

    /// Adds a tag, a length and the bytes.
    fn put_tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.put(u128::from(tag) | (bytes.len() as u128) << 8, 9);
        self.bytes(bytes);
    }

    fn decimal(&mut self, value: &Decimal) {
        let scale = value.scale();
        let small = value.as_small().map(|(coefficient, _)| coefficient);
        match small.map(|coefficient| (coefficient, i64::try_from(coefficient))) {
            Some((_, Ok(coefficient))) => {
                let number = u128::from(coefficient.cast_unsigned()) << 8 | u128::from(scale) << 72;
                self.put(u128::from(b'd') | number, 11);
                return;
            }
            Some((coefficient, Err(_))) => {
                self.tag(b'e');
                self.bytes(&coefficient.to_le_bytes());
            }
            // Rare; the text contains all digits.
            None => self.put_tagged(b'D', value.to_string().as_bytes()),
        }
        self.put(u128::from(scale), 2);
    }

    /// Adds a value. The recursion is bounded by the depth of its type.
    fn value(&mut self, value: &Value, parts: &Parts) {
        match (value, parts) {
            (Value::Null, _) => self.tag(b'0'),
            (Value::Array(items), Parts::Outside) => {
                self.tag(b'A');
                self.length(items.len());
            }
            (Value::Array(items), parts) => {
                self.tag(b'A');
                self.length(items.len());
                let of_each = match parts {
                    Parts::Items(of_each) => of_each,
                    _ => &Parts::Whole,
                };
                for item in items.iter() {
                    self.value(item, of_each);
                }
            }
            (_, Parts::Outside) => self.tag(b'1'),
            // The set of fields read is the same in all runs of a node.
            (Value::Record(fields), Parts::Fields(read)) => {
                self.tag(b'R');
                for (place, parts) in read {
                    if let Some(field) = fields.get(*place as usize) {
                        self.value(field, parts);
                    }
                }
            }
            (Value::Record(fields), _) => {
                self.tag(b'R');
                self.length(fields.len());
                for field in fields.iter() {
                    self.value(field, &Parts::Whole);
                }
            }
            (Value::Boolean(value), _) => self.boolean(*value),
            (Value::Integer(value), _) => self.number(b'i', *value),
            (Value::Decimal(value), _) => self.decimal(value),
            (Value::Float(value), _) => {
                let value = if value.is_nan() { f64::NAN } else { *value };
                self.number(b'f', value.to_bits().cast_signed());
            }
            (Value::Text(value), _) => self.put_tagged(b't', value.as_bytes()),
            (Value::Bytes(value), _) => self.put_tagged(b'y', value),
            (Value::Timestamp(value), _) => self.number(b's', *value),
            (Value::Date(value), _) => self.number(b'a', i64::from(*value)),
            (Value::Duration(value), _) => self.number(b'u', *value),
            (Value::TimeOfDay(value), _) => self.number(b'k', *value),
            (Value::Period(value), _) => self.number(b'q', i64::from(*value)),
            (Value::Member(value), _) => self.member(*value),
            (Value::Json(value), _) => self.json(value),
            (Value::Set(members), _) => {
                self.tag(b'S');
                self.keys(members);
            }
            (Value::Map(entries), _) => {
                self.tag(b'M');
                self.keys(entries.keys());
                for value in entries.values() {
                    self.value(value, &Parts::Whole);
                }
            }
            // INVARIANT: no input and no completion holds these internal values.
            (Value::Type(_) | Value::Pattern(_) | Value::Table(_), _) => self.tag(b'?'),
        }
    }

    fn keys(&mut self, keys: &Set) {
        self.length(keys.len());
        for key in keys.keys() {
            match key {
                Key::Boolean(key) => self.boolean(key),
                Key::Integer(key) => self.number(b'i', key),
                Key::Text(key) => self.put_tagged(b't', key.as_bytes()),
                Key::Bytes(key) => self.put_tagged(b'y', key),
                Key::Timestamp(key) => self.number(b's', key),
                Key::Date(key) => self.number(b'a', i64::from(key)),
                Key::Member(key) => self.member(key),
            }
        }
    }

    /// Adds a JSON value. The recursion is bounded by the limit on nesting.
    fn json(&mut self, value: &Json) {
        match value {
            Json::Null => self.tag(b'0'),
            Json::Boolean(value) => self.boolean(*value),
            Json::Number(value) => self.decimal(value),
            Json::Text(value) => self.put_tagged(b't', value.as_bytes()),
            Json::Array(items) => {
                self.tag(b'A');
                self.length(items.len());
                for item in items.iter() {
                    self.json(item);
                }
            }
            Json::Object(object) => {
                self.tag(b'O');
                self.length(object.entries().len());
                for (key, value) in object.entries() {
                    self.text(key);
                    self.json(value);
                }
            }
        }
    }
}

/// Returns the fingerprint of inputs that do not convert: that of their problems, in order.
pub fn fingerprint_of_problems(key: &FingerprintKey, problems: &Problems) -> u64 {
    let mut fingerprint = Fingerprint::new(key);
    for problem in problems.iter() {
        fingerprint.tag(b'x');
        fingerprint.length(problem.path.len());
        fingerprint.bytes(&problem.path);
        fingerprint.text(problem.kind.name());
    }
    fingerprint.finish()
}
