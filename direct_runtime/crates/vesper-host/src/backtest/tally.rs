//! What a backtest counted. Tallies of parts of the runs merge to that of all.

use std::collections::{BTreeMap, HashMap};

use crate::backtest::measure::{ExactSum, Measured};
use crate::backtest::reading::Why;

/// Kinds of change, and segments, that are counted one by one; further ones share `OTHERS`.
const MAX_KEYS: usize = 10_000;
const OTHERS: &str = "others";
/// Names of runs that are kept for each reason of exclusion.
const MAX_NAMES: usize = 3;

/// A sum before and after, and the runs without a value on each side.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub before: ExactSum,
    pub after: ExactSum,
    pub without_before: u64,
    pub without_after: u64,
}

/// Compared runs: all of them, or those of one segment.
#[derive(Clone, Debug, Default)]
pub struct Group {
    pub runs: u64,
    pub changed: u64,
    pub sums: Vec<Sums>,
}

impl Group {
    fn new(sums: usize) -> Self {
        Self {
            sums: vec![Sums::default(); sums],
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, is_changed: bool, measured: &[(Measured, Measured)]) {
        self.runs += 1;
        self.changed += u64::from(is_changed);
        for (sums, (before, after)) in self.sums.iter_mut().zip(measured) {
            sums.without_before += u64::from(!add(&mut sums.before, before));
            sums.without_after += u64::from(!add(&mut sums.after, after));
        }
    }

    fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.changed += other.changed;
        for (mine, theirs) in self.sums.iter_mut().zip(other.sums) {
            mine.before.merge(theirs.before);
            mine.after.merge(theirs.after);
            mine.without_before += theirs.without_before;
            mine.without_after += theirs.without_after;
        }
    }
}

fn add(sum: &mut ExactSum, measured: &Measured) -> bool {
    match measured {
        Measured::Value(_, value) => sum.add(value),
        Measured::NoOutput | Measured::Failed => false,
    }
}

/// A run of a kind of change; the smallest is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Example {
    pub size: u64,
    pub name: String,
}

/// The counts. Each run is counted by exactly one of the first seven.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Compared: both versions ended, and the first reproduced its record.
    pub total: Group,
    /// Compared, though the version before does not reproduce what was recorded.
    pub apart: Group,
    /// Runs, and the names of some, by reason.
    pub excluded: BTreeMap<Why, (u64, Vec<String>)>,
    pub not_selected: u64,
    /// Runs for which the condition fails or has no value.
    pub not_decided: u64,
    /// Runs that one version ended with a limit or a fault, by the ending.
    pub not_compared: HashMap<String, u64>,
    /// Runs in which the version before asks what the record does not have, by step.
    pub unanswered_before: HashMap<String, u64>,

    pub apart_other_definition: u64,
    pub unanswered_after: HashMap<String, u64>,
    pub kinds: HashMap<String, (u64, Option<Example>)>,
    /// For each segmentation the groups by the typed JSON of the value.
    pub groups: Vec<HashMap<String, Group>>,
    sums: usize,
}

impl Tally {
    pub(super) fn new(sums: usize, segmentations: usize) -> Self {
        Self {
            total: Group::new(sums),
            apart: Group::new(sums),
            groups: vec![HashMap::new(); segmentations],
            sums,
            ..Self::default()
        }
    }

    pub(super) fn exclude(&mut self, why: Why, name: &str) {
        let (runs, names) = self.excluded.entry(why).or_default();
        *runs += 1;
        add_names(names, [name.to_owned()]);
    }

    pub(super) fn add_kind(&mut self, kind: String, runs: u64, example: Example) {
        let key = key_within(&self.kinds, kind);
        let (count, found) = self.kinds.entry(key).or_default();
        *count += runs;
        if found.as_ref().is_none_or(|found| example < *found) {
            *found = Some(example);
        }
    }

    pub(super) fn group(&mut self, number: usize, label: String) -> Option<&mut Group> {
        let sums = self.sums;
        let groups = self.groups.get_mut(number)?;
        let key = key_within(groups, label);
        Some(groups.entry(key).or_insert_with(|| Group::new(sums)))
    }

    /// Returns how many runs were seen.
    pub fn seen(&self) -> u64 {
        let excluded: u64 = self.excluded.values().map(|(runs, _)| runs).sum();
        let others: u64 = self
            .not_compared
            .values()
            .chain(self.unanswered_before.values())
            .sum();
        self.total.runs + self.apart.runs + excluded + self.not_selected + self.not_decided + others
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.total.merge(other.total);
        self.apart.merge(other.apart);
        for (why, (runs, names)) in other.excluded {
            let mine = self.excluded.entry(why).or_default();
            mine.0 += runs;
            add_names(&mut mine.1, names);
        }
        self.not_selected += other.not_selected;
        self.not_decided += other.not_decided;
        self.apart_other_definition += other.apart_other_definition;
        for (mine, theirs) in [
            (&mut self.not_compared, other.not_compared),
            (&mut self.unanswered_before, other.unanswered_before),
            (&mut self.unanswered_after, other.unanswered_after),
        ] {
            for (name, runs) in theirs {
                *mine.entry(name).or_default() += runs;
            }
        }
        for (kind, (runs, example)) in other.kinds {
            if let Some(example) = example {
                self.add_kind(kind, runs, example);
            }
        }
        for (number, groups) in other.groups.into_iter().enumerate() {
            for (label, group) in groups {
                if let Some(mine) = self.group(number, label) {
                    mine.merge(group);
                }
            }
        }
    }
}

fn add_names(names: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    names.extend(more);
    names.sort_unstable();
    names.dedup();
    names.truncate(MAX_NAMES);
}

/// Returns the key, or that of the others where there are many already.
fn key_within<T>(map: &HashMap<String, T>, key: String) -> String {
    if map.len() < MAX_KEYS || map.contains_key(&key) {
        key
    } else {
        String::from(OTHERS)
    }
}
