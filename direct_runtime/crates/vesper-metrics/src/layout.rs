//! The form of a region: a head and records that are appended, one for each series.
//!
//! | cell | content |
//! |---|---|
//! | 0 | `MAGIC` |
//! | 1 | fingerprint of the declarations; a file with another one is not summed |
//! | 2 | number of used cells, written after the record that ends there |
//!
//! A record has a head (metric, bytes of the key, cells), its key in whole cells, and its values. The key is the text
//! of each label after its length in one byte.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{BOUNDS_NS, Kind, METRICS};

pub(crate) const HEAD_CELLS: usize = 3;
const USED: usize = 2;
const MAGIC: u64 = u64::from_le_bytes(*b"VSPMETR1");

pub(crate) const MAX_LABEL_BYTES: usize = 120;
/// Label values of the series that takes what no other series of a full metric has.
const OTHER: &str = "other";
/// The metric of a record whose key is the name of a folded file.
pub(crate) const FOLDED: u16 = u16::MAX;

pub(crate) const BUCKETS: usize = BOUNDS_NS.len() + 1;
/// Cells of a histogram after its buckets: sum, and sequence, two halves of the trace, value and time of the exemplar.
pub(crate) const SUM: usize = BUCKETS;
pub(crate) const EXEMPLAR: usize = BUCKETS + 1;
const HISTOGRAM_CELLS: usize = EXEMPLAR + 5;

/// A series of a region, with the place of its values.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) metric: u16,
    pub(crate) key: Vec<u8>,
    pub(crate) values: std::ops::Range<usize>,
}

/// Returns the number of cells of a series' values.
pub(crate) fn value_cells(metric: u16) -> usize {
    match METRICS.get(usize::from(metric)).map(|spec| spec.kind) {
        Some(Kind::Counter) => 1,
        Some(Kind::SumGauge | Kind::MaxGauge | Kind::LatestGauge) => 2,
        Some(Kind::Histogram) => HISTOGRAM_CELLS,
        None => 0,
    }
}

/// Returns the key of these label values. Long values are cut; missing ones are empty.
pub(crate) fn key_of(metric: u16, labels: &[&str]) -> Vec<u8> {
    let declared = METRICS
        .get(usize::from(metric))
        .map_or(0, |spec| spec.labels.len());
    let mut key = Vec::new();
    for place in 0..declared {
        let label = labels.get(place).copied().unwrap_or_default();
        push_text(&mut key, label);
    }
    key
}

/// Returns the key of the series that takes what a full metric cannot name.
pub(crate) fn other_key(metric: u16) -> Vec<u8> {
    key_of(metric, &[OTHER; 8])
}

pub(crate) fn push_text(key: &mut Vec<u8>, text: &str) {
    let text = text
        .get(..text.floor_char_boundary(MAX_LABEL_BYTES))
        .unwrap_or_default();
    key.push(u8::try_from(text.len()).unwrap_or_default());
    key.extend_from_slice(text.as_bytes());
}

/// Returns the texts of a key.
pub(crate) fn texts_of(mut key: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = key.split_first() {
        let (text, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        texts.push(String::from_utf8_lossy(text).into_owned());
        key = rest;
    }
    texts
}

fn record_cells(key: &[u8], values: usize) -> usize {
    1 + key.len().div_ceil(8) + values
}

/// Returns the cells that no series but the last one of each metric may take.
pub(crate) fn reserved_cells() -> usize {
    (0..METRICS.len())
        .filter_map(|place| u16::try_from(place).ok())
        .map(|metric| record_cells(&other_key(metric), value_cells(metric)))
        .sum()
}

/// Writes the head of an empty region.
pub(crate) fn begin(cells: &[AtomicU64]) {
    store(cells, 0, MAGIC);
    store(cells, 1, fingerprint());
    store(cells, USED, HEAD_CELLS as u64);
}

/// Appends a record with values of zero, and returns the place of its values. None: `spare` cells would not stay free.
pub(crate) fn append(cells: &[AtomicU64], metric: u16, key: &[u8], spare: usize) -> Option<usize> {
    let start = used(cells);
    let length = record_cells(key, value_cells(metric));
    let end = start.checked_add(length)?;
    if end.checked_add(spare)? > cells.len() {
        return None;
    }
    let head = u64::from(metric) | (key.len() as u64) << 16 | (length as u64) << 32;
    store(cells, start, head);
    for (place, chunk) in key.chunks(8).enumerate() {
        let mut bytes = [0; 8];
        for (byte, given) in bytes.iter_mut().zip(chunk) {
            *byte = *given;
        }
        store(cells, start + 1 + place, u64::from_le_bytes(bytes));
    }
    if let Some(cell) = cells.get(USED) {
        cell.store(end as u64, Ordering::Release);
    }
    Some(end - value_cells(metric))
}

/// Returns the records of a region. A region of another layout has none; a damaged one those before the damage.
pub(crate) fn records(cells: &[AtomicU64]) -> Vec<Record> {
    let mut found = Vec::new();
    if !is_current(cells) {
        return found;
    }
    let end = used(cells).min(cells.len());
    let mut start = HEAD_CELLS;
    while start < end {
        let head = load(cells, start);
        let metric = (head & 0xffff) as u16;
        let key_bytes = (head >> 16 & 0xffff) as usize;
        let length = (head >> 32) as usize;
        let values = value_cells(metric);
        if length != 1 + key_bytes.div_ceil(8) + values || length > end - start {
            break;
        }
        let key_cells = start + 1..start + length - values;
        let mut key: Vec<u8> = key_cells
            .flat_map(|place| load(cells, place).to_le_bytes())
            .collect();
        key.truncate(key_bytes);
        let values = start + length - values..start + length;
        found.push(Record { metric, key, values });
        start += length;
    }
    found
}

/// Returns true if the region has this layout and these declarations.
pub(crate) fn is_current(cells: &[AtomicU64]) -> bool {
    load(cells, 0) == MAGIC && load(cells, 1) == fingerprint()
}

pub(crate) fn used(cells: &[AtomicU64]) -> usize {
    let used = cells.get(USED).map_or(0, |cell| cell.load(Ordering::Acquire));
    usize::try_from(used).unwrap_or(usize::MAX)
}

pub(crate) fn load(cells: &[AtomicU64], place: usize) -> u64 {
    cells.get(place).map_or(0, |cell| cell.load(Ordering::Relaxed))
}

pub(crate) fn store(cells: &[AtomicU64], place: usize, value: u64) {
    if let Some(cell) = cells.get(place) {
        cell.store(value, Ordering::Relaxed);
    }
}

/// Returns a hash (FNV-1a) of all that the meaning of a record depends on.
fn fingerprint() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for spec in &METRICS {
        mix(spec.name.as_bytes());
        mix(&[spec.kind as u8]);
        spec.labels.iter().for_each(|label| mix(label.as_bytes()));
    }
    for bound in BOUNDS_NS {
        mix(&bound.to_le_bytes());
    }
    hash
}
