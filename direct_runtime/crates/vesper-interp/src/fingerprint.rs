//! Fingerprints of what a run has read: a keyed hash over a form of values in which no two look alike.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use vesper_ir::planted;
use vesper_ir::{Decimal, Json, Key, Member, Set, Value};

use crate::execution::Completion;
use crate::parts::Parts;
use crate::problems::Problems;

mod worded;

/// The key of fingerprints. Nobody who does not know it can aim at two inputs with the same one.
pub type FingerprintKey = [u8; 16];

/// What came back during a run, as far as it is; the inputs are added at the end.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint {
    hasher: SipHasher24,
    /// What is not yet hashed: values are short, and to hash each by itself costs more than to copy it.
    pending: [u8; PENDING],
    used: usize,
}

/// So many bytes are held back at most.
const PENDING: usize = 256;

impl Fingerprint {
    pub(crate) fn new(key: &FingerprintKey) -> Self {
        Self {
            hasher: SipHasher24::new_with_key(key),
            pending: [0; PENDING],
            used: 0,
        }
    }

    /// What came of the request with this path.
    pub(crate) fn add_completion(&mut self, path: &str, completion: &Completion) {
        self.tag(b'c');
        self.text(path);
        match completion {
            Completion::Value(value) => planted!(
                "paths.responses_do_not_count",
                self.value(value, &Parts::Whole),
                drop(value.clone())
            ),
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
        self.bytes(&place.to_le_bytes());
        self.value(value, parts);
    }

    pub(crate) fn add_now(&mut self, now: &Value) {
        self.tag(b'n');
        self.value(now, &Parts::Whole);
    }

    /// Once, at the end. By reference: all that is held back would be copied otherwise.
    pub(crate) fn finish(&mut self) -> u64 {
        self.flush();
        self.hasher.finish()
    }

    fn flush(&mut self) {
        self.hasher
            .write(self.pending.get(..self.used).unwrap_or_default());
        self.used = 0;
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        if let Some(place) = self.pending.get_mut(self.used..self.used + bytes.len()) {
            place.copy_from_slice(bytes);
            self.used += bytes.len();
        } else {
            self.long_bytes(bytes);
        }
    }

    #[cold]
    fn long_bytes(&mut self, bytes: &[u8]) {
        self.flush();
        match self.pending.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.used = bytes.len();
            }
            None => self.hasher.write(bytes),
        }
    }

    fn tag(&mut self, tag: u8) {
        self.bytes(&[tag]);
    }

    fn length(&mut self, length: usize) {
        self.bytes(&(length as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes(text.as_bytes());
    }

    /// A tag and a number.
    fn number(&mut self, tag: u8, number: i64) {
        self.tagged::<9>(tag, &number.to_le_bytes());
    }

    fn member(&mut self, member: Member) {
        self.tagged::<5>(b'm', &member.0.to_le_bytes());
    }

    /// A tag and what is one byte shorter than `N`, at once.
    #[inline]
    fn tagged<const N: usize>(&mut self, tag: u8, number: &[u8]) {
        let mut bytes = [tag; N];
        for (place, byte) in bytes.iter_mut().skip(1).zip(number) {
            *place = *byte;
        }
        self.bytes(&bytes);
    }

    fn decimal(&mut self, value: &Decimal) {
        let scale = value.scale().to_le_bytes();
        match value
            .as_small()
            .map(|(coefficient, _)| (coefficient, i64::try_from(coefficient)))
        {
            Some((_, Ok(coefficient))) => self.number(b'd', coefficient),
            Some((coefficient, Err(_))) => {
                self.tag(b'e');
                self.bytes(&coefficient.to_le_bytes());
            }
            // Rare, and its text has all its digits.
            None => {
                self.tag(b'D');
                self.text(&value.to_string());
            }
        }
        self.bytes(&scale);
    }

    /// Values nest as deep as their types, which are limited.
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
            // Which fields these are is the same in all runs of a node.
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
            (Value::Boolean(value), _) => self.bytes(&[b'b', u8::from(*value)]),
            (Value::Integer(value), _) => self.number(b'i', *value),
            (Value::Decimal(value), _) => self.decimal(value),
            (Value::Float(value), _) => {
                let value = if value.is_nan() { f64::NAN } else { *value };
                self.number(b'f', value.to_bits().cast_signed());
            }
            (Value::Text(value), _) => {
                self.tag(b't');
                self.text(value);
            }
            (Value::Bytes(value), _) => {
                self.tag(b'y');
                self.length(value.len());
                self.bytes(value);
            }
            (Value::Timestamp(value), _) => self.number(b's', *value),
            (Value::Date(value), _) => self.number(b'a', i64::from(*value)),
            (Value::Duration(value), _) => self.number(b'u', *value),
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
            // No values of the language: no input and no response holds one.
            (Value::Type(_) | Value::Pattern(_), _) => self.tag(b'?'),
        }
    }

    fn keys(&mut self, keys: &Set) {
        self.length(keys.len());
        for key in keys.keys() {
            match key {
                Key::Boolean(key) => self.bytes(&[b'b', u8::from(key)]),
                Key::Integer(key) => self.number(b'i', key),
                Key::Text(key) => {
                    self.tag(b't');
                    self.text(key);
                }
                Key::Bytes(key) => {
                    self.tag(b'y');
                    self.length(key.len());
                    self.bytes(key);
                }
                Key::Timestamp(key) => self.number(b's', key),
                Key::Date(key) => self.number(b'a', i64::from(key)),
                Key::Member(key) => self.member(key),
            }
        }
    }

    /// JSON nests no deeper than the limit on it.
    fn json(&mut self, value: &Json) {
        match value {
            Json::Null => self.tag(b'0'),
            Json::Boolean(value) => self.bytes(&[b'b', u8::from(*value)]),
            Json::Number(value) => self.decimal(value),
            Json::Text(value) => {
                self.tag(b't');
                self.text(value);
            }
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

/// The fingerprint of inputs that could not be converted: that of what is wrong with them, in order.
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
