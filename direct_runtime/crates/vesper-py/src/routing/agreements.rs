//! What was seen since it was last asked for: agreements by path, times, and what came to nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vesper_interp::Path;

/// Fingerprints that wait. Those beyond are let go, which only understates.
const MAX_PENDING_FINGERPRINTS: usize = 200_000;
const MAX_PATHS: usize = 10_000;
const MAX_TIMES: usize = 2_000;
/// So many executions of a path that is new are looked at closely.
const MAX_INSPECTED_PER_PATH: u32 = 64;
/// Of so many executions of a path the fingerprints are the smallest: those are kept for the next definition.
const MAX_KEPT_PER_PATH: usize = 256;

/// For what is hashed already, and for paths, of which there are few.
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

/// What Python had and the direct engine took, in nanoseconds.
pub(crate) type Times = Vec<(Option<u64>, Option<u64>)>;

/// What was seen, path by path, and what else there is to tell.
#[derive(Default)]
pub(crate) struct Agreements {
    paths: HashMap<Path, PathRecord, PathHashing>,
    /// Of how many paths Python wants some.
    wanted: usize,
    pending: usize,
    pub(crate) findings: Findings,
}

/// What is known of one path. One place for both, since every agreement is looked up.
#[derive(Default)]
struct PathRecord {
    agreed: PathAgreements,
    /// Nothing where there are too many paths.
    wanted: Option<WantedExecutions>,
}

/// What is taken every time that somebody asks.
#[derive(Default)]
pub(crate) struct Findings {
    /// Empty until it is taken.
    pub(crate) agreed: Vec<(Path, PathAgreements)>,
    pub(crate) times: Times,
    /// Comparisons that were admitted and came to nothing.
    pub(crate) lost: u64,
    /// About how many were followed, and what that cost in nanoseconds.
    pub(crate) followed: u64,
    pub(crate) spent: u64,
}

/// Which agreements Python wants to have itself: it runs them again with all that is on the way, and keeps some.
#[derive(Default)]
struct WantedExecutions {
    given: u32,
    /// The smallest fingerprints so far.
    smallest: BTreeSet<u64>,
}

/// Whether Python may have an agreement.
#[derive(Clone, Copy)]
pub(crate) enum Demand {
    /// No: it has enough of them already.
    None,
    /// Where it wants this one. `keeps` is false for nodes of which nothing is kept.
    Wanted { keeps: bool },
}

impl Agreements {
    /// Counts an agreement, unless Python wants it: then this is false.
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
                // One that was counted before was not wanted then, and is not now: the largest of the smallest never grows.
                // (Whoever asks for none does so until everything is taken, and nothing is counted then.)
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

    /// What following cost, for so many.
    pub(crate) fn cost(&mut self, nanoseconds: u64, count: u64) {
        self.findings.followed += count;
        self.findings.spent += count * nanoseconds;
    }

    /// Takes what was seen since the last time; what Python wants of a path stays as it is.
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

/// Nothing that is held while a lock of this crate is can panic half-way.
#[inline]
pub(crate) fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
