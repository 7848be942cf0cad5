//! The `map` family.

use vesper_ir::{ErrorCode, Key, Map, MapKernels, Value};

use crate::{Native, count};

impl MapKernels for Native {
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
}
