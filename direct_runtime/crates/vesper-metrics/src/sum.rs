//! Sums of the regions of several processes.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::directory::Directory;
use crate::layout::{
    BUCKETS, EXEMPLAR, FOLDED, Record, SUM, append, begin, load, other_key, push_text, records, store,
    texts_of, used, value_cells,
};
use crate::registry::{MAX_SERIES, Registry};
use crate::{Kind, METRICS, Metric};

/// A series and its value over all processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub metric: Metric,
    pub labels: Vec<String>,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram {
        /// Number of observations in each bucket, not cumulative; the last one has no bound.
        buckets: Vec<u64>,
        sum_ns: u64,
        exemplar: Option<Exemplar>,
    },
}

/// An observation with the trace that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exemplar {
    pub trace: u128,
    pub value_ns: u64,
    /// Time since the epoch of Unix.
    pub time_ns: u64,
}

/// Returns all series, sorted by metric and labels: of this process, or of all processes of its directory.
pub fn snapshot(is_own: bool) -> io::Result<Vec<Sample>> {
    let registry = Registry::current()?;
    if let Some(path) = registry.directory().filter(|_| !is_own) {
        return Ok(Directory::open(&path)?.sum_all()?.samples());
    }
    let mut own = Sums::default();
    own.add(registry.cells());
    Ok(own.samples())
}

/// The cells of each series, by metric and key.
#[derive(Debug, Default)]
pub(crate) struct Sums(BTreeMap<(u16, Vec<u8>), Vec<u64>>);

impl Sums {
    /// Adds the series of a region.
    pub(crate) fn add(&mut self, cells: &[AtomicU64]) {
        for Record { metric, key, values } in records(cells) {
            if metric != FOLDED {
                let cells = cells.get(values).unwrap_or_default();
                self.merge(metric, key, &read(metric, cells));
            }
        }
    }

    fn merge(&mut self, metric: u16, key: Vec<u8>, new: &[u64]) {
        let own = self.0.entry((metric, key)).or_insert_with(|| vec![0; new.len()]);
        match (kind(metric), own.as_mut_slice(), new) {
            (Kind::Counter, ..) => add_all(own, new),
            (Kind::Histogram, ..) => {
                let (counts, exemplar) = own.split_at_mut(EXEMPLAR.min(new.len()));
                add_all(counts, new);
                let new = new.get(EXEMPLAR..).unwrap_or_default();
                if new.last() > exemplar.last() {
                    exemplar.copy_from_slice(new);
                }
            }
            (kind, [value, changed_at], [new, new_changed_at]) if *new_changed_at > 0 => {
                let (last, next) = (f64::from_bits(*value), f64::from_bits(*new));
                *value = match kind {
                    _ if *changed_at == 0 => *new,
                    Kind::SumGauge => (last + next).to_bits(),
                    Kind::MaxGauge => last.max(next).to_bits(),
                    _ if new_changed_at < changed_at => *value,
                    _ => *new,
                };
                *changed_at = (*changed_at).max(*new_changed_at);
            }
            // A gauge that was not set.
            _ => {}
        }
    }

    /// Drops what only holds for living processes, and series beyond the limit of a metric.
    pub(crate) fn forget_processes(&mut self) {
        let mut sizes: HashMap<u16, usize> = HashMap::new();
        for ((metric, key), values) in std::mem::take(&mut self.0) {
            if !matches!(kind(metric), Kind::Counter | Kind::Histogram) {
                continue;
            }
            let size = sizes.entry(metric).or_default();
            *size += 1;
            let key = if *size > MAX_SERIES {
                other_key(metric)
            } else {
                key
            };
            self.merge(metric, key, &values);
        }
    }

    /// Returns a region of these series that names folded files, as bytes.
    pub(crate) fn encode(&self, folded: &[&str]) -> Vec<u8> {
        let mut names = Vec::new();
        for name in folded {
            push_text(&mut names, name);
        }
        // The length of a key has 16 bits.
        let names: Vec<&[u8]> = chunk_names(&names);
        let length = self
            .0
            .iter()
            .map(|((_, key), values)| 2 + key.len() / 8 + values.len());
        let length = 8 + length
            .chain(names.iter().map(|key| 2 + key.len() / 8))
            .sum::<usize>();
        let cells: Vec<AtomicU64> = (0..length).map(|_| AtomicU64::new(0)).collect();
        begin(&cells);
        for ((metric, key), values) in &self.0 {
            if let Some(place) = append(&cells, *metric, key, 0) {
                (place..)
                    .zip(values)
                    .for_each(|(place, value)| store(&cells, place, *value));
            }
        }
        for key in names {
            append(&cells, FOLDED, key, 0);
        }
        (0..used(&cells))
            .flat_map(|place| load(&cells, place).to_le_bytes())
            .collect()
    }

    fn samples(self) -> Vec<Sample> {
        let samples = self.0.into_iter().filter_map(|((metric, key), cells)| {
            let value = match kind(metric) {
                Kind::Counter => Value::Counter(*cells.first()?),
                Kind::Histogram => Value::Histogram {
                    buckets: cells.get(..BUCKETS)?.to_vec(),
                    sum_ns: *cells.get(SUM)?,
                    exemplar: exemplar(cells.get(EXEMPLAR..)?),
                },
                _ if cells.last() == Some(&0) => return None,
                _ => Value::Gauge(f64::from_bits(*cells.first()?)),
            };
            Some(Sample {
                metric: Metric(metric),
                labels: texts_of(&key),
                value,
            })
        });
        samples.collect()
    }
}

/// Splits the key of file names into keys of at most 64 KiB, each of whole names.
fn chunk_names(mut names: &[u8]) -> Vec<&[u8]> {
    const MAX_KEY_BYTES: usize = 60_000;
    let mut chunks = Vec::new();
    while !names.is_empty() {
        let mut end = 0;
        while let Some(length) = names.get(end).filter(|_| end < MAX_KEY_BYTES) {
            end += 1 + usize::from(*length);
        }
        let (chunk, rest) = names.split_at(end.min(names.len()));
        chunks.push(chunk);
        names = rest;
    }
    chunks
}

/// Reads the values of a series. An exemplar that is being written is left out.
fn read(metric: u16, cells: &[AtomicU64]) -> Vec<u64> {
    let all = || -> Vec<u64> { (0..value_cells(metric)).map(|place| load(cells, place)).collect() };
    if kind(metric) != Kind::Histogram {
        return all();
    }
    let sequence = || cells.get(EXEMPLAR).map_or(0, |cell| cell.load(Ordering::Acquire));
    let before = sequence();
    let mut found = all();
    fence(Ordering::Acquire);
    if !before.is_multiple_of(2) || before != sequence() {
        found.get_mut(EXEMPLAR..).unwrap_or_default().fill(0);
    }
    found
}

fn exemplar(cells: &[u64]) -> Option<Exemplar> {
    let &[_, high, low, value_ns, time_ns] = cells else {
        return None;
    };
    (time_ns > 0).then(|| Exemplar {
        trace: u128::from(high) << 64 | u128::from(low),
        value_ns,
        time_ns,
    })
}

fn add_all(own: &mut [u64], new: &[u64]) {
    for (own, new) in own.iter_mut().zip(new) {
        *own = own.wrapping_add(*new);
    }
}

fn kind(metric: u16) -> Kind {
    METRICS
        .get(usize::from(metric))
        .map_or(Kind::Counter, |spec| spec.kind)
}
