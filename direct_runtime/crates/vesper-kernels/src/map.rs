//! Kernels of the `map` family.

use std::sync::Arc;

use vesper_ir::{ErrorCode, Key, Map, MapKernels, Value};

use crate::{Native, count, pair, within_items};

impl MapKernels for Native {
    fn map_equal(&self, left: &Map, right: &Map) -> bool {
        left.is_equal(right)
    }

    fn map_not_equal(&self, left: &Map, right: &Map) -> bool {
        !left.is_equal(right)
    }

    #[inline]
    fn map_length(&self, entries: &Map) -> i64 {
        count(entries.keys().len())
    }

    #[inline]
    fn map_at(&self, entries: &Map, key: Key<'_>) -> Result<Value, ErrorCode> {
        entries.get(key).cloned().ok_or(ErrorCode::MissingKey)
    }

    #[inline]
    fn map_is_key(&self, key: Key<'_>, entries: &Map) -> bool {
        entries.keys().find(key).is_some()
    }

    #[inline]
    fn map_contains(&self, entries: &Map, key: Key<'_>) -> bool {
        self.map_is_key(key, entries)
    }

    #[inline]
    fn map_get(&self, entries: &Map, key: Key<'_>) -> Option<Value> {
        entries.get(key).cloned()
    }

    fn map_keys(&self, entries: &Map) -> Arc<[Value]> {
        entries.keys().iter().collect()
    }

    fn map_values(&self, entries: &Map) -> Arc<[Value]> {
        Arc::from(entries.values())
    }

    fn map_entries(&self, entries: &Map) -> Arc<[Value]> {
        let pairs = entries.keys().iter().zip(entries.values());
        pairs.map(|(key, value)| pair(key, value.clone())).collect()
    }

    fn map_from_entries(&self, entries: &[Value]) -> Result<Map, ErrorCode> {
        // INVARIANT: the verifier checked that every entry is a record of a key and a value.
        let entries = entries.iter().filter_map(|entry| match entry {
            Value::Record(fields) => match fields.as_ref() {
                [key, value] => Some((key.to_key()?, value.clone())),
                _ => None,
            },
            _ => None,
        });
        Map::of_entries(entries.collect()).ok_or(ErrorCode::DuplicateKey)
    }

    fn map_put(&self, entries: &Map, key: Key<'_>, value: &Value) -> Result<Map, ErrorCode> {
        if entries.get(key).is_none() {
            within_items(entries.keys().len().saturating_add(1))?;
        }
        Ok(entries.put(key, value.clone()))
    }

    fn map_remove(&self, entries: &Map, key: Key<'_>) -> Map {
        entries.remove(key)
    }

    fn map_merge(&self, left: &Map, right: &Map) -> Result<Map, ErrorCode> {
        // The result is at most as long as both operands, so it may be checked after it is built.
        let merged = left.merge(right);
        within_items(merged.keys().len())?;
        Ok(merged)
    }
}
