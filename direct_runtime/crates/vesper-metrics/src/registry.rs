//! The region of this process and the places of its series.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::directory::Directory;
use crate::layout::{self, append, key_of, other_key, records, reserved_cells, value_cells};
use crate::region::Region;
use crate::{Counter, Gauge, Histogram, Metric};

/// Maximum number of series of a metric; others count in one series with the label values `other`.
pub(crate) const MAX_SERIES: usize = 1_000;

/// The registry of the first process.
static FIRST: OnceLock<Registry> = OnceLock::new();

#[derive(Debug)]
pub(crate) struct Registry {
    region: Region,
    state: RwLock<State>,
    /// The registry of a forked child. The locks of its parent may be held by threads that the child does not have.
    child: OnceLock<Box<Registry>>,
}

#[derive(Debug, Default)]
struct State {
    /// Place of the values of each series, by metric and key.
    places: HashMap<(u16, Vec<u8>), usize>,
    /// Number of series of each metric.
    sizes: HashMap<u16, usize>,
    home: Option<Home>,
}

/// The file that the region is mapped to.
#[derive(Debug)]
struct Home {
    directory: PathBuf,
    /// Holds the lock that shows that the process lives.
    _file: File,
}

/// Returns the handle of a counter's series.
pub fn counter(metric: Metric, labels: &[&str]) -> Counter {
    let [cell, ..] = cells(metric, labels) else {
        return Counter(&LOST);
    };
    Counter(cell)
}

/// Returns the handle of a gauge's series.
pub fn gauge(metric: Metric, labels: &[&str]) -> Gauge {
    let [value, changed_at, ..] = cells(metric, labels) else {
        return Gauge {
            value: &LOST,
            changed_at: &LOST,
        };
    };
    Gauge { value, changed_at }
}

/// Returns the handle of a histogram's series.
pub fn histogram(metric: Metric, labels: &[&str]) -> Histogram {
    Histogram(cells(metric, labels))
}

/// Receives the counts of a process without memory for a region.
static LOST: AtomicU64 = AtomicU64::new(0);

fn cells(metric: Metric, labels: &[&str]) -> &'static [AtomicU64] {
    let Ok(registry) = Registry::current() else {
        return &[];
    };
    let place = registry.place(metric.0, labels);
    let end = place + value_cells(metric.0);
    registry.cells().get(place..end).unwrap_or_default()
}

/// Moves the counts of this process to a file of the directory. Call it before threads count.
pub fn use_directory(directory: &Path) -> io::Result<()> {
    let registry = Registry::current()?;
    let mut state = registry.state.write().unwrap_or_else(PoisonError::into_inner);
    match &state.home {
        Some(home) if home.directory == directory => Ok(()),
        Some(home) => Err(io::Error::other(format!(
            "this process counts in {} already",
            home.directory.display()
        ))),
        None => {
            state.home = Some(Home::new(registry.region, directory, false)?);
            Ok(())
        }
    }
}

/// Gives a forked child counts of its own, from zero. Handles stay valid.
pub fn after_fork_in_child() -> io::Result<()> {
    let Some(parent) = Registry::existing() else {
        return Ok(());
    };
    // No other thread of the child can hold the lock; one of the parent may have.
    let home = parent.state.try_read().ok().and_then(|state| {
        let home = state.home.as_ref();
        home.map(|home| home.directory.clone())
    });
    // Without a directory, or if it takes no file, the child counts in memory.
    let moved = match home {
        Some(directory) => Home::new(parent.region, &directory, true).map(Some),
        None => Ok(None),
    };
    if !matches!(moved, Ok(Some(_))) {
        forget_values(parent.region)?;
    }
    let child = Registry::of(parent.region);
    let result = moved.map(|home| {
        child.state.write().unwrap_or_else(PoisonError::into_inner).home = home;
    });
    // A new child has one thread, so the place is free.
    let _ = parent.child.set(Box::new(child));
    result
}

/// Moves a region to memory of this process, with the same series and values of zero.
fn forget_values(region: Region) -> io::Result<()> {
    let copied = copy_cells(region.cells(), true);
    region.move_to_memory()?;
    for (place, cell) in copied.chunks_exact(8).enumerate() {
        let bytes = cell.try_into().unwrap_or_default();
        layout::store(region.cells(), place, u64::from_le_bytes(bytes));
    }
    Ok(())
}

impl Home {
    /// Copies the region to a new file and maps it there.
    fn new(region: Region, directory: &Path, is_forked: bool) -> io::Result<Self> {
        let copied = || copy_cells(region.cells(), is_forked);
        let file = Directory::open(directory)?.add_process(copied)?;
        region.move_to_file(&file)?;
        Ok(Self {
            directory: directory.to_owned(),
            _file: file,
        })
    }
}

impl Registry {
    /// Returns the registry of this process, made at first use.
    pub(crate) fn current() -> io::Result<&'static Self> {
        if let Some(found) = Self::existing() {
            return Ok(found);
        }
        let region = Region::new()?;
        layout::begin(region.cells());
        // Another thread may have been first.
        let _ = FIRST.set(Self::of(region));
        Self::existing().ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    fn existing() -> Option<&'static Self> {
        let mut found = FIRST.get()?;
        while let Some(child) = found.child.get() {
            found = child;
        }
        Some(found)
    }

    /// Makes a registry of the series that a region has.
    fn of(region: Region) -> Self {
        let mut state = State::default();
        for record in records(region.cells()) {
            state.insert(record.metric, record.key, record.values.start);
        }
        Self {
            region,
            state: RwLock::new(state),
            child: OnceLock::new(),
        }
    }

    pub(crate) fn cells(&self) -> &'static [AtomicU64] {
        self.region.cells()
    }

    pub(crate) fn directory(&self) -> Option<PathBuf> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.home.as_ref().map(|home| home.directory.clone())
    }

    /// Returns the place of a series' values, which is appended at its first use.
    fn place(&self, metric: u16, labels: &[&str]) -> usize {
        let key = (metric, key_of(metric, labels));
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = state.places.get(&key) {
            return *place;
        }
        drop(state);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = state.places.get(&key) {
            return *place;
        }
        let other = (metric, other_key(metric));
        let is_full = state.sizes.get(&metric).is_some_and(|size| *size >= MAX_SERIES);
        let appended = if is_full || key == other {
            None
        } else {
            append(self.cells(), metric, &key.1, reserved_cells())
        };
        if let Some(place) = appended {
            state.insert(metric, key.1, place);
            return place;
        }
        if let Some(place) = state.places.get(&other) {
            return *place;
        }
        // The reserve has room for this series of every metric.
        let place = append(self.cells(), metric, &other.1, 0).unwrap_or(usize::MAX / 2);
        state.insert(metric, other.1, place);
        place
    }
}

impl State {
    fn insert(&mut self, metric: u16, key: Vec<u8>, place: usize) {
        self.places.insert((metric, key), place);
        *self.sizes.entry(metric).or_default() += 1;
    }
}

/// Returns the used cells as bytes of a file; after a fork with values of zero.
fn copy_cells(cells: &[AtomicU64], is_forked: bool) -> Vec<u8> {
    let mut copied: Vec<u64> = (0..layout::used(cells).min(cells.len()))
        .map(|place| layout::load(cells, place))
        .collect();
    if is_forked {
        for record in records(cells) {
            copied.get_mut(record.values).unwrap_or_default().fill(0);
        }
    }
    copied.iter().flat_map(|cell| cell.to_le_bytes()).collect()
}
