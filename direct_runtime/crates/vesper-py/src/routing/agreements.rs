//! Findings of a route since the last drain: agreements by path, times and lost comparisons.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vesper_interp::Path;

/// Maximum number of fingerprints until the next drain. More are dropped, which only understates the evidence.
const MAX_PENDING_FINGERPRINTS: usize = 200_000;
const MAX_PATHS: usize = 10_000;
const MAX_TIMES: usize = 2_000;
/// Number of executions of a new path that Python inspects.
const MAX_INSPECTED_PER_PATH: u32 = 64;
/// Number of executions of a path that are kept for the next definition. They have the smallest fingerprints.
const MAX_KEPT_PER_PATH: usize = 256;

/// Hasher for fingerprints, which are hashes already, and for the few paths of a node.
#[derive(Default)]
pub(crate) struct PathHasher(u64);

impl Hasher for PathHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

pub(crate) type PathHashing = BuildHasherDefault<PathHasher>;

/// Agreements on one path.
#[derive(Default)]
pub(crate) struct PathAgreements {
    pub(crate) fingerprints: HashSet<u64, PathHashing>,
    pub(crate) compared: u64,
}

/// Nanoseconds of Python and of the direct engine.
pub(crate) type Times = Vec<(Option<u64>, Option<u64>)>;

/// Agreements by path, with all other findings.
#[derive(Default)]
pub(crate) struct Agreements {
    paths: HashMap<Path, PathRecord, PathHashing>,
    /// Number of paths with wanted executions.
    wanted: usize,
    pending: usize,
    pub(crate) findings: Findings,
}

/// State of one path. Both parts share an entry, because every agreement looks it up.
#[derive(Default)]
struct PathRecord {
    agreed: PathAgreements,
    /// None if there are too many paths.
    wanted: Option<WantedExecutions>,
}

/// The findings that one drain takes.
#[derive(Default)]
pub(crate) struct Findings {
    /// Filled when the findings are taken.
    pub(crate) agreed: Vec<(Path, PathAgreements)>,
    pub(crate) times: Times,
    /// Number of admitted comparisons without a result.
    pub(crate) lost: u64,
    /// Estimated number of followed calls, and their cost in nanoseconds.
    pub(crate) followed: u64,
    pub(crate) spent: u64,
}

/// The executions of a path that Python wants. It runs them again with marks, and keeps some.
#[derive(Default)]
struct WantedExecutions {
    given: u32,
    /// The smallest fingerprints so far.
    smallest: BTreeSet<u64>,
}

/// Whether Python takes agreements.
#[derive(Clone, Copy)]
pub(crate) enum Demand {
    /// Python has enough for now.
    None,
    /// Python takes the agreement if it wants it. `keeps` is false for a node whose executions are not kept.
    Wanted { keeps: bool },
}

impl Agreements {
    /// Counts an agreement; returns false, without counting, if Python wants it.
    #[inline]
    pub(crate) fn agree(&mut self, path: &Path, fingerprint: u64, demand: Demand) -> bool {
        let seen = match self.paths.get_mut(path) {
            Some(seen) => seen,
            None => self.paths.entry(path.clone()).or_default(),
        };
        if let Demand::Wanted { keeps } = demand {
            if seen.wanted.is_none() && self.wanted < MAX_PATHS {
                self.wanted += 1;
                seen.wanted = Some(WantedExecutions::default());
            }
            if let Some(wanted) = &mut seen.wanted {
                // A counted execution was not wanted, and never will be, because the largest kept fingerprint never
                // grows. (After `Demand::None` the caller asks for none until the next drain, which clears the
                // counts.)
                if wanted.given >= MAX_INSPECTED_PER_PATH && seen.agreed.fingerprints.contains(&fingerprint) {
                    seen.agreed.compared += 1;
                    return true;
                }
                if wanted.wants(fingerprint, keeps) {
                    return false;
                }
            }
        }
        seen.agreed.compared += 1;
        if self.pending < MAX_PENDING_FINGERPRINTS && seen.agreed.fingerprints.insert(fingerprint) {
            self.pending += 1;
        }
        true
    }

    pub(crate) fn time(&mut self, python: Option<u64>, direct: Option<u64>) {
        if self.findings.times.len() < MAX_TIMES {
            self.findings.times.push((python, direct));
        }
    }

    /// Adds the cost of following `count` calls.
    pub(crate) fn cost(&mut self, nanoseconds: u64, count: u64) {
        self.findings.followed += count;
        self.findings.spent += count * nanoseconds;
    }

    /// Takes the findings since the last drain. The wanted executions of each path remain.
    pub(crate) fn take(&mut self) -> Findings {
        self.pending = 0;
        let mut findings = std::mem::take(&mut self.findings);
        self.paths.retain(|path, seen| {
            let agreed = std::mem::take(&mut seen.agreed);
            if agreed.compared > 0 {
                findings.agreed.push((path.clone(), agreed));
            }
            seen.wanted.is_some()
        });
        self.paths.shrink_to(MAX_PATHS);
        findings
    }
}

impl WantedExecutions {
    fn wants(&mut self, fingerprint: u64, keeps: bool) -> bool {
        let mut is_wanted = self.given < MAX_INSPECTED_PER_PATH;
        if keeps {
            let is_full = self.smallest.len() >= MAX_KEPT_PER_PATH;
            let fits = !is_full || self.smallest.last().is_some_and(|most| fingerprint < *most);
            if fits && self.smallest.insert(fingerprint) {
                is_wanted = true;
                if is_full {
                    self.smallest.pop_last();
                }
            }
        }
        if is_wanted {
            self.given = self.given.saturating_add(1);
        }
        is_wanted
    }
}

/// Locks a mutex, ignoring poison. No code panics halfway through a change under a lock of this crate.
#[inline]
pub(crate) fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
