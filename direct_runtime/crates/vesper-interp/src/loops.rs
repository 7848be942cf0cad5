//! The state of a loop while a run is in it: what it goes through, how far it is, and what it has built.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use vesper_ir::{KeyKind, Map, OwnedKey, Set, Value};

/// One slot of a run. A slot is used again by the next loop that starts there, and keeps what it has allocated.
#[derive(Clone, Debug)]
pub(crate) struct LoopState {
    over: Value,
    /// The place of the item that comes next.
    next: usize,
    items: Vec<Value>,
    entries: BTreeMap<OwnedKey, Value>,
}

impl LoopState {
    pub(crate) fn new() -> Self {
        Self {
            over: Value::Null,
            next: 0,
            items: Vec::new(),
            entries: BTreeMap::new(),
        }
    }

    /// Takes hold of a collection: of its one allocation, not of its items.
    pub(crate) fn start(&mut self, over: &Value) {
        self.over = over.clone();
        self.next = 0;
        self.items.clear();
        self.entries.clear();
    }

    /// The next item of an array or a set, or the next key of a map.
    #[inline]
    pub(crate) fn next_item(&mut self) -> Option<Value> {
        let item = match &self.over {
            Value::Array(items) => items.get(self.next).cloned(),
            Value::Set(members) => members.get(self.next),
            Value::Map(entries) => entries.keys().get(self.next),
            _ => None,
        }?;
        self.next += 1;
        Some(item)
    }

    /// The next key and value of a map.
    #[inline]
    pub(crate) fn next_entry(&mut self) -> Option<(Value, Value)> {
        let Value::Map(entries) = &self.over else {
            return None;
        };
        let entry = entries
            .keys()
            .get(self.next)
            .zip(entries.values().get(self.next).cloned())?;
        self.next += 1;
        Some(entry)
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Value) {
        self.items.push(value);
    }

    /// Adds an entry; false where the key is there already.
    #[inline]
    pub(crate) fn put(&mut self, key: OwnedKey, value: Value) -> bool {
        self.entries.insert(key, value).is_none()
    }

    pub(crate) fn finish_array(&mut self) -> Value {
        Value::Array(self.items.drain(..).collect())
    }

    /// Nothing where an item is not of this kind.
    pub(crate) fn finish_set(&mut self, kind: KeyKind) -> Option<Value> {
        let count = self.items.len();
        // One that is no key is left out here and missed below.
        let mut kept = 0;
        let keys = self.items.drain(..).filter_map(|item| item.to_key());
        let set = Set::from_keys(kind, keys.inspect(|_| kept += 1))?;
        (kept == count).then(|| Value::Set(Arc::new(set)))
    }

    /// Nothing where a key is not of this kind.
    pub(crate) fn finish_map(&mut self, kind: KeyKind) -> Option<Value> {
        let entries = std::mem::take(&mut self.entries).into_iter().collect();
        Map::from_entries(kind, entries).map(|map| Value::Map(Arc::new(map)))
    }
}

/// The order that `min` and `max` go by; nothing for values that have none.
#[inline]
pub(crate) fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
        (Value::Decimal(left), Value::Decimal(right)) => Some(left.compare(right)),
        // By UTF-8 bytes, which is by code points.
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
