//! The inputs that a run has read, derived from its path.
//!
//! The compiler knows for each region of code under which points it runs and which inputs it reads. The reads of a
//! run thus follow from its path, its end and the failures it took, and a run records none itself. Undetermined reads
//! count as read: the right operand of a short-circuited AND, and in a loop that a failure ended, the code after the
//! failure.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, OnceLock, RwLock, TryLockError, TryLockResult};

use crate::observe::fingerprint::HashPlan;
use crate::observe::path::Path;

/// A region of code. It runs if its parent runs and all of these conditions hold.
#[derive(Clone, Debug, Default)]
struct Region {
    /// INVARIANT: an earlier region, like every region referred to here. The first has no parent.
    around: Option<usize>,
    /// One of these conditions holds, if there are any.
    any_of: Vec<EntryCondition>,
    /// For each of these points that was passed, the end of this region was reached; `None` if it has no end.
    after: Vec<(u32, Option<usize>)>,
    /// The first point of a loop that had at least one round.
    round_of: Option<u32>,
}

/// A condition under which a region is entered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntryCondition {
    /// The point was passed.
    Point(u32),
    /// The end of another region was reached.
    After(usize),
}

/// A value from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Input(u32),
    /// The start time.
    Now,
}

#[derive(Clone, Copy, Debug)]
struct Read {
    region: usize,
    /// The reading instruction, or an earlier one of the same expression.
    at: usize,
    source: Source,
}

/// The values that a run has read: each once, in order.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) list: Box<[Source]>,
    /// The hash plans for inputs in words; `None` if an input has no form in words.
    hashed: OnceLock<Option<Box<[HashPlan]>>>,
}

impl Sources {
    /// Returns the hash plans for inputs in words. Calls `found` once; it must be deterministic.
    #[inline]
    pub(crate) fn hash_plans(
        &self,
        found: impl FnOnce(&[Source]) -> Option<Box<[HashPlan]>>,
    ) -> Option<&[HashPlan]> {
        self.hashed.get_or_init(|| found(&self.list)).as_deref()
    }
}

impl From<Vec<Source>> for Sources {
    fn from(list: Vec<Source>) -> Self {
        Self {
            list: list.into(),
            hashed: OnceLock::new(),
        }
    }
}

/// The end of a run, as far as it determines the reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) path: &'a Path,
    /// One past the last executed instruction.
    pub(crate) at: usize,
    /// The ranges of instructions that failures skipped.
    pub(crate) skipped: &'a [(usize, usize)],
    /// True if a declared error replaced the outputs; postconditions are not evaluated then.
    pub(crate) is_error: bool,
}

/// The reads of a node's code.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    regions: Vec<Region>,
    current: usize,
    list: Vec<Read>,
    /// The instruction range of each loop.
    loops: Vec<(usize, usize)>,
    /// The instruction range of the postconditions.
    postconditions: (usize, usize),
    known: EndingCache,
}

/// The reads by ending. Most runs of a node end in one of a few ways.
#[derive(Debug)]
struct EndingCache {
    /// The first ending of each hash place. It is never replaced, so readers need no lock.
    first: Box<[OnceLock<Box<KnownEnding>>]>,
    all: RwLock<HashMap<u64, Vec<KnownEnding>, BuildHasherDefault<PathHasher>>>,
}

impl Default for EndingCache {
    fn default() -> Self {
        Self {
            first: (0..1_usize << PLACES).map(|_| OnceLock::new()).collect(),
            all: RwLock::default(),
        }
    }
}

/// A fast hasher for path words, which no attacker chooses. Every compared run looks one up.
#[derive(Default)]
struct PathHasher(u64);

impl Hasher for PathHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[derive(Debug)]
struct KnownEnding {
    path: Path,
    at: usize,
    skipped: Vec<(usize, usize)>,
    is_error: bool,
    sources: Arc<Sources>,
}

/// The bits of the hash place.
const PLACES: u32 = 6;
/// The maximum endings in the map, because a node may have very many.
const MAX_KNOWN: usize = 1_024;
/// The maximum endings with the same first path word.
const MAX_SAME: usize = 8;

impl Ending<'_> {
    /// Returns the map key: the first path word, in which most paths differ.
    #[inline]
    fn first_word(&self) -> u64 {
        self.path.words().first().copied().unwrap_or_default()
    }

    #[inline]
    fn is(&self, found: &KnownEnding) -> bool {
        found.at == self.at
            && found.is_error == self.is_error
            && found.path == *self.path
            && found.skipped == self.skipped
    }
}

impl Reads {
    pub(crate) fn new() -> Self {
        Self {
            regions: vec![Region::default()],
            ..Self::default()
        }
    }

    /// Enters a region that runs if one of these conditions holds. Returns the argument for `leave`.
    pub(crate) fn enter(&mut self, any_of: Vec<EntryCondition>) -> usize {
        self.begin(Region {
            any_of,
            ..Region::default()
        })
    }

    /// Enters a region that runs in a round of the loop with this first point.
    pub(crate) fn enter_round(&mut self, of: u32) -> usize {
        self.begin(Region {
            round_of: Some(of),
            ..Region::default()
        })
    }

    /// Enters a region after these handlers, up to the end of the enclosing region.
    pub(crate) fn continue_after(&mut self, handlers: Vec<(u32, Option<usize>)>) {
        self.begin(Region {
            after: handlers,
            ..Region::default()
        });
    }

    fn begin(&mut self, mut region: Region) -> usize {
        let outer = self.current;
        region.around = Some(outer);
        self.current = self.regions.len();
        self.regions.push(region);
        outer
    }

    pub(crate) fn current(&self) -> usize {
        self.current
    }

    pub(crate) fn leave(&mut self, outer: usize) {
        self.current = outer;
    }

    pub(crate) fn add(&mut self, at: usize, source: Source) {
        self.list.push(Read {
            region: self.current,
            at,
            source,
        });
    }

    pub(crate) fn add_loop(&mut self, start: usize, end: usize) {
        self.loops.push((start, end));
    }

    pub(crate) fn set_postconditions(&mut self, start: usize, end: usize) {
        self.postconditions = (start, end);
    }

    /// Passes the reads of a run with this ending to `visit`.
    #[inline]
    pub(crate) fn of<T>(&self, ending: Ending<'_>, visit: impl FnOnce(&Sources) -> T) -> T {
        let place = ending.first_word().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES);
        let place = usize::try_from(place).ok();
        match place.and_then(|place| self.known.first.get(place)) {
            Some(first) => match first.get() {
                Some(found) if ending.is(found) => visit(&found.sources),
                _ => visit(&self.find_cached(&ending, first)),
            },
            None => visit(&self.find_sources(&ending).into()),
        }
    }

    /// Finds the ending in the cache or adds it. Does not wait for the lock, because in a forked child its owner may
    /// not exist; the reads are then computed again.
    #[cold]
    fn find_cached(&self, ending: &Ending<'_>, first: &OnceLock<Box<KnownEnding>>) -> Arc<Sources> {
        if let Some(known) = lock_if_free(self.known.all.try_read()) {
            let mut same_word = known.get(&ending.first_word()).into_iter().flatten();
            if let Some(found) = same_word.find(|found| ending.is(found)) {
                return Arc::clone(&found.sources);
            }
        }
        let found = KnownEnding {
            path: ending.path.clone(),
            at: ending.at,
            skipped: ending.skipped.to_vec(),
            is_error: ending.is_error,
            sources: Arc::new(self.find_sources(ending).into()),
        };
        let sources = Arc::clone(&found.sources);
        // If the place is taken, the ending goes to the map.
        let Err(found) = first.set(Box::new(found)) else {
            return sources;
        };
        if let Some(mut known) = lock_if_free(self.known.all.try_write())
            && known.len() < MAX_KNOWN
        {
            let same_word = known.entry(ending.first_word()).or_default();
            // Another thread may have added the same ending.
            if same_word.len() < MAX_SAME && !same_word.iter().any(|found| ending.is(found)) {
                same_word.push(*found);
            }
        }
        sources
    }

    fn find_sources(&self, ending: &Ending<'_>) -> Vec<Source> {
        let mut is_run: Vec<bool> = Vec::with_capacity(self.regions.len());
        for region in &self.regions {
            let holds = region.is_run(ending.path, &is_run);
            is_run.push(holds);
        }
        // Code runs forward except for loops, so nothing after the end was executed.
        let end = match ending.at.checked_sub(1) {
            Some(last) => self.end_of_loops(last),
            None => 0,
        };
        let postconditions = ending.is_error.then_some(&self.postconditions);
        let skipped: Vec<&(usize, usize)> = ending.skipped.iter().chain(postconditions).collect();
        let is_read = |read: &&Read| {
            is_run.get(read.region).copied().unwrap_or(true)
                && read.at < end
                && !skipped.iter().any(|(from, to)| (*from..*to).contains(&read.at))
        };
        let mut found: Vec<Source> = self.list.iter().filter(is_read).map(|read| read.source).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns one past the outermost loop around this instruction, or one past the instruction itself.
    pub(crate) fn end_of_loops(&self, at: usize) -> usize {
        let around = self
            .loops
            .iter()
            .filter(|(start, end)| (*start..*end).contains(&at));
        around.map(|(_, end)| *end).max().unwrap_or(at + 1)
    }
}

/// Returns the guard of a lock that was free.
fn lock_if_free<T>(tried: TryLockResult<T>) -> Option<T> {
    match tried {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Region {
    /// Returns whether the region was run; `earlier` holds this for all earlier regions.
    fn is_run(&self, path: &Path, earlier: &[bool]) -> bool {
        let was_run = |region: usize| earlier.get(region).copied().unwrap_or(true);
        let is_passed = |way: &EntryCondition| match way {
            EntryCondition::Point(point) => path.has(*point),
            EntryCondition::After(region) => was_run(*region),
        };
        // A loop left by a failure or return has no class and counts as having rounds.
        let had_rounds = self
            .round_of
            .is_none_or(|first| path.has(first + 1) || path.has(first + 2) || !path.has(first));
        had_rounds
            && self.around.is_none_or(was_run)
            && (self.any_of.is_empty() || self.any_of.iter().any(is_passed))
            && self
                .after
                .iter()
                .all(|(point, end)| !path.has(*point) || end.is_some_and(was_run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in a forked child, in which the owner of the lock does not exist.
    #[test]
    fn a_lock_that_is_never_released_blocks_no_reader() {
        let reads = Reads::default();
        // Another ending has the place, so this one goes to the map.
        let path = Path::default();
        let [first, other] = [0, 1].map(|at| Ending {
            path: &path,
            at,
            skipped: &[],
            is_error: false,
        });
        reads.of(first, |_| ());
        let held = reads.known.all.write();
        assert_eq!(reads.of(other, |sources| sources.list.len()), 0);
        drop(held);
        reads.of(other, |_| ());
        let known = lock_if_free(reads.known.all.try_read()).map(|known| known.len());
        assert_eq!(known, Some(1));
    }
}
