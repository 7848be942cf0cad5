//! Which inputs a run has read, as far as its path tells.
//!
//! The compiler knows for every piece of code under which points it is run, and which inputs it reads there. So what a
//! run has read follows from its path, from where it ended, and from where failures sent it on: nothing is written
//! down while it runs. What is left open counts as read: the right operand of an AND whose left one decided, and in a
//! loop that a failure ended the code behind the failure.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, OnceLock, RwLock, TryLockError, TryLockResult};

use crate::observe::fingerprint::HashPlan;
use crate::observe::path::Path;

/// A piece of code that is run where the one around it is, and where all of this holds.
#[derive(Clone, Debug, Default)]
struct Region {
    /// INVARIANT: an earlier one, as all that are named here. The first has none.
    around: Option<usize>,
    /// It was come to in one of these ways, if there are any.
    any_of: Vec<EntryCondition>,
    /// Where one of these points was passed, the end of this piece of code was come to; nothing for one without an end.
    after: Vec<(u32, Option<usize>)>,
    /// This loop, if there is one, had more than no rounds: the number of its first point.
    round_of: Option<u32>,
}

/// How a piece of code is come to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntryCondition {
    /// By passing a point,
    Point(u32),
    /// or behind another piece of code.
    After(usize),
}

/// Something that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Input(u32),
    /// The time of the start.
    Now,
}

#[derive(Clone, Copy, Debug)]
struct Read {
    region: usize,
    /// The instruction that reads, or one of the same expression before it.
    at: usize,
    source: Source,
}

/// What a run has read: each once, in order.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) list: Box<[Source]>,
    /// How they are hashed where they stand in words; nothing where one does not.
    hashed: OnceLock<Option<Box<[HashPlan]>>>,
}

impl Sources {
    /// How they are hashed where they stand in words: `found` is asked once, and says the same each time.
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

/// How a run ended, as far as it shows what was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) path: &'a Path,
    /// The instruction behind the last one.
    pub(crate) at: usize,
    /// The instructions that failures jumped over: from the first to the one behind.
    pub(crate) skipped: &'a [(usize, usize)],
    /// True where a declared error took the place of the outputs: there are no postconditions then.
    pub(crate) is_error: bool,
}

/// What the code of a node reads, and where.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    regions: Vec<Region>,
    current: usize,
    list: Vec<Read>,
    /// From the first instruction of a loop to the one behind it.
    loops: Vec<(usize, usize)>,
    /// The instructions of postconditions, likewise.
    postconditions: (usize, usize),
    known: EndingCache,
}

/// What was found for endings: most runs of a node end in one of a few ways.
#[derive(Debug)]
struct EndingCache {
    /// The first of those that share a place, which stay there: nobody waits to visit at them, nor holds on to them.
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

/// For words of paths, which nobody aims: every run that is compared looks one up.
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

/// Bits of the place of one that is looked for first.
const PLACES: u32 = 6;
/// No more endings are remembered: a node may have very many.
const MAX_KNOWN: usize = 1_024;
/// Nor more with the same first word.
const MAX_SAME: usize = 8;

impl Ending<'_> {
    /// Under what it is remembered: the paths that most differ in.
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

    /// What follows is run where it is come to in one of these ways. Gives what `leave` needs.
    pub(crate) fn enter(&mut self, any_of: Vec<EntryCondition>) -> usize {
        self.begin(Region {
            any_of,
            ..Region::default()
        })
    }

    /// What follows is run in a round of the loop with this first point.
    pub(crate) fn enter_round(&mut self, of: u32) -> usize {
        self.begin(Region {
            round_of: Some(of),
            ..Region::default()
        })
    }

    /// What follows, until the piece of code around it ends, comes behind these handlers where they ran.
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

    /// Shows what a run that ended so has read.
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

    /// The same from among all that are known, which it is of from now on. Nobody waits for the lock: in the child of a
    /// fork, who held it may be gone. It is found again then.
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
        // Where another has the place it is among all of them.
        let Err(found) = first.set(Box::new(found)) else {
            return sources;
        };
        if let Some(mut known) = lock_if_free(self.known.all.try_write())
            && known.len() < MAX_KNOWN
        {
            let same_word = known.entry(ending.first_word()).or_default();
            // Two threads may have found the same at a time.
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
        // Code goes forward but for loops: behind where it stopped, nothing was run.
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

    /// The instruction behind the outermost loop around this one; without a loop, behind the instruction.
    pub(crate) fn end_of_loops(&self, at: usize) -> usize {
        let around = self
            .loops
            .iter()
            .filter(|(start, end)| (*start..*end).contains(&at));
        around.map(|(_, end)| *end).max().unwrap_or(at + 1)
    }
}

/// What a lock holds that nobody has.
fn lock_if_free<T>(tried: TryLockResult<T>) -> Option<T> {
    match tried {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Region {
    /// `earlier` says of the regions before this one whether they were run.
    fn is_run(&self, path: &Path, earlier: &[bool]) -> bool {
        let was_run = |region: usize| earlier.get(region).copied().unwrap_or(true);
        let is_passed = |way: &EntryCondition| match way {
            EntryCondition::Point(point) => path.has(*point),
            EntryCondition::After(region) => was_run(*region),
        };
        // A loop that was left by a failure or a return has no class, and is taken to have had rounds.
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

    /// In the child of a fork: the thread that held the lock is not there.
    #[test]
    fn nobody_waits_for_a_lock_that_is_never_let_go_of() {
        let reads = Reads::default();
        // Another ending has the place, so that this one is looked for among all.
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
