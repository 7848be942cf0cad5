//! Loop state: the collection, the position in it, and the result built so far.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use vesper_ir::limits::ITEMS;
use vesper_ir::prices::Price;
use vesper_ir::value::first_of_equals;
use vesper_ir::{ErrorCode, KeyKind, Map, OwnedKey, Set, SortOrder, Value};
use vesper_kernels::range_length;

use crate::run::Fault;
use crate::run::meter::{Exhausted, Meter};

/// The state of one loop slot. The next loop in the slot reuses its allocations.
#[derive(Clone, Debug)]
pub(crate) struct LoopState {
    pub(crate) over: Value,
    /// The position of the next item.
    pub(crate) next: usize,
    /// The remaining integers of a loop over a range, which is never materialised; `over` is null then.
    pub(crate) range: Option<Range>,
    items: Vec<Value>,
    /// The key of each item, or empty if items have none.
    keys: Vec<Value>,
    entries: BTreeMap<OwnedKey, Value>,
    groups: BTreeMap<OwnedKey, Vec<Value>>,
    pub(crate) memory: LoopMemory,
}

/// The memory of a loop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoopMemory {
    /// Bytes in use without those of the current round.
    kept: u64,
    /// The price of the state when it was last counted.
    counted: u64,
}

/// Bytes that rounds take before the state is counted again, at least.
const RECOUNT_BYTES: u64 = 1024 * 1024;

impl LoopMemory {
    pub(crate) fn begin(&mut self, meter: &Meter) {
        self.kept = meter.memory();
        self.counted = 0;
    }

    pub(crate) fn restore(&self, meter: &mut Meter) {
        meter.restore_memory(self.kept);
    }

    /// Counts memory that was taken already as that of values which the loop keeps.
    pub(crate) fn hold(&mut self, bytes: u64) {
        self.kept += bytes;
    }

    /// Takes memory for a value that the loop keeps. Without it, nothing changes.
    #[inline]
    pub(crate) fn keep(&mut self, bytes: u64, meter: &mut Meter) -> Result<(), Exhausted> {
        meter.take_memory(bytes)?;
        self.kept += bytes;
        Ok(())
    }

    /// Counts the state anew, once the rounds have taken a quarter more.
    #[inline]
    pub(crate) fn recount(
        &mut self,
        meter: &mut Meter,
        price: impl FnOnce() -> Result<u64, Fault>,
    ) -> Result<Result<(), Exhausted>, Fault> {
        let taken = meter.memory().saturating_sub(self.kept);
        if taken <= self.counted + RECOUNT_BYTES.max(self.counted / 4) {
            return Ok(Ok(()));
        }
        let price = price()?;
        let before = meter.memory();
        meter.restore_memory(self.kept);
        if let Err(limit) = meter.take_memory(price) {
            meter.restore_memory(before);
            return Ok(Err(limit));
        }
        self.counted = price;
        Ok(Ok(()))
    }
}

/// Returns the price of a value that a loop keeps.
#[inline]
pub(crate) fn price_at(prices: &[(u64, Price)], place: u32, value: &Value) -> u64 {
    match prices.get(place as usize) {
        Some((fixed, Price::Fixed(_))) => *fixed,
        Some((fixed, price)) => fixed + price.of(value),
        None => 0,
    }
}

/// The item capacity that a slot keeps between runs.
const RETAINED_ITEMS: usize = 64;

/// The remaining integers of a range.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub next: i64,
    pub step: i64,
    pub left: u64,
}

impl Range {
    /// Takes the next integer.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        let item = self.next;
        // The value after the last one may overflow; it is never taken.
        self.next = item.wrapping_add(self.step);
        Some(item)
    }
}

/// Fails if a collection of this length is full.
fn check_room(length: usize) -> Result<(), ErrorCode> {
    if length >= ITEMS {
        return Err(ErrorCode::TooLarge);
    }
    Ok(())
}

impl LoopState {
    pub(crate) fn new() -> Self {
        Self {
            over: Value::Null,
            next: 0,
            range: None,
            items: Vec::new(),
            keys: Vec::new(),
            entries: BTreeMap::new(),
            groups: BTreeMap::new(),
            memory: LoopMemory::default(),
        }
    }

    /// Starts a loop over a collection. Shares its allocation and copies no item.
    pub(crate) fn start(&mut self, over: &Value) {
        self.over = over.clone();
        self.next = 0;
        self.range = None;
        self.clear();
    }

    /// Starts a loop over a range.
    pub(crate) fn start_range(&mut self, start: i64, end: i64, step: i64) -> Result<(), ErrorCode> {
        let length = range_length(start, end, step)?;
        self.over = Value::Null;
        self.range = Some(Range {
            next: start,
            step,
            left: length as u64,
        });
        self.clear();
        Ok(())
    }

    /// Drops all values. Keeps the capacity that a short loop needs.
    pub(crate) fn release(&mut self) {
        self.over = Value::Null;
        self.next = 0;
        self.range = None;
        for list in [&mut self.items, &mut self.keys] {
            list.clear();
            list.shrink_to(RETAINED_ITEMS);
        }
        if !self.entries.is_empty() {
            self.entries.clear();
        }
        if !self.groups.is_empty() {
            self.groups.clear();
        }
    }

    /// Drops the result of the previous loop in this slot.
    fn clear(&mut self) {
        self.items.clear();
        self.keys.clear();
        self.entries.clear();
        self.groups.clear();
    }

    /// Writes the next item, or the next key of a map, to `place`. Returns false after the last one.
    #[inline]
    pub(crate) fn next_item(&mut self, place: &mut Value) -> bool {
        if let Value::Array(items) = &self.over {
            let Some(item) = items.get(self.next) else {
                return false;
            };
            place.set(item);
        } else if let Some(range) = &mut self.range {
            let Some(item) = range.take() else {
                return false;
            };
            place.set_integer(item);
            return true;
        } else {
            let item = match &self.over {
                Value::Set(members) => members.get(self.next),
                Value::Map(entries) => entries.keys().get(self.next),
                _ => None,
            };
            let Some(item) = item else {
                return false;
            };
            *place = item;
        }
        self.next += 1;
        true
    }

    /// Returns the number of remaining items.
    pub(crate) fn left(&self) -> u64 {
        let length = match (&self.over, self.range) {
            (_, Some(range)) => return range.left,
            (Value::Array(items), None) => items.len(),
            (Value::Set(members), None) => members.len(),
            (Value::Map(entries), None) => entries.keys().len(),
            _ => 0,
        };
        length.saturating_sub(self.next) as u64
    }

    /// Moves to the next item of an array. Returns false after the last one.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        let has_next = matches!(&self.over, Value::Array(items) if self.next < items.len());
        self.next += usize::from(has_next);
        has_next
    }

    /// Returns a field of the current item.
    #[inline]
    pub(crate) fn field(&self, place: usize) -> Option<&Value> {
        let Value::Array(items) = &self.over else {
            return None;
        };
        match items.get(self.next.checked_sub(1)?) {
            Some(Value::Record(fields)) => fields.get(place),
            _ => None,
        }
    }

    /// Returns the next key and value of a map.
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

    /// Returns true if the array has room for an item.
    pub(crate) fn has_room(&self) -> bool {
        self.items.len() < ITEMS
    }

    /// Adds an item to the array.
    #[inline]
    pub(crate) fn push(&mut self, value: Value) -> Result<(), ErrorCode> {
        check_room(self.items.len())?;
        self.items.push(value);
        Ok(())
    }

    /// Adds an item and its key.
    #[inline]
    pub(crate) fn push_keyed(&mut self, key: Value, item: Value) -> Result<(), ErrorCode> {
        self.push(item)?;
        self.keys.push(key);
        Ok(())
    }

    /// Adds a member of a set. Duplicates are removed when the set is finished.
    #[inline]
    pub(crate) fn push_member(&mut self, value: Value) {
        self.items.push(value);
    }

    /// Adds an entry, or fails if the key exists.
    #[inline]
    pub(crate) fn put(&mut self, key: OwnedKey, value: Value) -> Result<(), ErrorCode> {
        let length = self.entries.len();
        if self.entries.insert(key, value).is_some() {
            return Err(ErrorCode::DuplicateKey);
        }
        check_room(length)
    }

    /// Returns true if the key is new and the map has room.
    pub(crate) fn can_put(&self, key: &OwnedKey) -> bool {
        self.entries.len() < ITEMS && !self.entries.contains_key(key)
    }

    /// Returns the number of items built so far.
    pub(crate) fn built_count(&self) -> usize {
        self.items.len()
    }

    /// Increments the count of a key.
    #[inline]
    pub(crate) fn count(&mut self, key: OwnedKey) -> Result<(), ErrorCode> {
        if let Some(Value::Integer(count)) = self.entries.get_mut(&key) {
            // The count never exceeds the number of items.
            *count = count.saturating_add(1);
            return Ok(());
        }
        check_room(self.entries.len())?;
        self.entries.insert(key, Value::Integer(1));
        Ok(())
    }

    /// Adds an item to the group of its key.
    #[inline]
    pub(crate) fn group(&mut self, key: OwnedKey, item: Value) -> Result<(), ErrorCode> {
        if let Some(group) = self.groups.get_mut(&key) {
            check_room(group.len())?;
            group.push(item);
            return Ok(());
        }
        check_room(self.groups.len())?;
        self.groups.insert(key, vec![item]);
        Ok(())
    }

    pub(crate) fn finish_array(&mut self) -> Value {
        Value::Array(self.items.drain(..).collect())
    }

    /// Returns the items sorted by key. Both directions are stable.
    pub(crate) fn finish_sorted(&mut self, order: SortOrder) -> Value {
        let mut keyed: Vec<(Value, Value)> = self.keys.drain(..).zip(self.items.drain(..)).collect();
        // INVARIANT: the verifier admits only keys of one ordered type.
        let compare = |left: &Value, right: &Value| left.compare(right).unwrap_or(Ordering::Equal);
        // SEMANTICS: reversing an ascending sort would also reverse equal items.
        match order {
            SortOrder::Ascending => keyed.sort_by(|(left, _), (right, _)| compare(left, right)),
            SortOrder::Descending => keyed.sort_by(|(left, _), (right, _)| compare(right, left)),
        }
        Value::Array(keyed.into_iter().map(|(_, item)| item).collect())
    }

    /// Returns the items whose key equals no earlier key.
    pub(crate) fn finish_distinct(&mut self) -> Value {
        let kept = first_of_equals(&self.keys).into_iter();
        let items = kept.filter_map(|place| self.items.get(place).cloned()).collect();
        self.keys.clear();
        self.items.clear();
        Value::Array(items)
    }

    /// Returns the set, or `None` if an item is not of this kind.
    pub(crate) fn finish_set(&mut self, kind: KeyKind) -> Option<Result<Value, ErrorCode>> {
        let count = self.items.len();
        // An item that is no key is dropped here and detected by the count below.
        let mut kept = 0;
        let keys = self.items.drain(..).filter_map(|item| item.to_key());
        let set = Set::from_keys(kind, keys.inspect(|_| kept += 1))?;
        if kept != count {
            return None;
        }
        if set.len() > ITEMS {
            return Some(Err(ErrorCode::TooLarge));
        }
        Some(Ok(Value::Set(Arc::new(set))))
    }

    /// Returns the map, or `None` if a key is not of this kind.
    pub(crate) fn finish_map(&mut self, kind: KeyKind) -> Option<Value> {
        let entries = std::mem::take(&mut self.entries).into_iter().collect();
        Map::from_entries(kind, entries).map(|map| Value::Map(Arc::new(map)))
    }

    /// Returns the groups as arrays by key. Returns `None` if a key is not of this kind.
    pub(crate) fn finish_groups(&mut self, kind: KeyKind) -> Option<Value> {
        let groups = std::mem::take(&mut self.groups).into_iter();
        let entries = groups.map(|(key, group)| (key, Value::Array(group.into())));
        Map::from_entries(kind, entries.collect()).map(|map| Value::Map(Arc::new(map)))
    }
}
