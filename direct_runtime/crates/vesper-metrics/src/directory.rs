//! The directory of the processes of a service: a file for each living one, and the sum of the dead.
//!
//! A process holds a lock on its file. A file that can be locked belongs to a dead process and is folded: its counters
//! are added to `folded.metrics`, which names the file until it is deleted. So a crash between the two steps counts
//! nothing twice. All steps hold the lock of the directory.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FallocateFlags, fallocate};

use crate::layout::{FOLDED, is_current, records, texts_of};
use crate::region::{CELL_BYTES, MappedFile, REGION_BYTES};
use crate::sum::Sums;

const LOCK: &str = "lock";
const TOTAL: &str = "folded.metrics";
const TOTAL_DRAFT: &str = "folded.draft";
const SUFFIX: &str = "metrics";

/// An existing directory, locked until it is dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Makes the directory if necessary, and waits for its lock.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))?;
        lock.lock()?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Makes the locked file of this process with these cells, and folds the files of dead processes.
    pub(crate) fn add_process(&self, cells: impl FnOnce() -> Vec<u8>) -> io::Result<File> {
        self.sum_all()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{:x}.{SUFFIX}", std::process::id(), now.as_nanos());
        let path = self.path.join(name);
        let mut file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .open(&path)?;
        let filled = file.lock().and_then(|()| {
            // Reserves the pages: a write to a mapped page that a full disk has no room for would end the process.
            fallocate(&file, FallocateFlags::empty(), 0, REGION_BYTES as u64)?;
            file.write_all(&cells())
        });
        if let Err(error) = filled {
            // The first error is the one to report.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(file)
    }

    /// Folds the files of dead processes, and returns the sums of all.
    pub(crate) fn sum_all(&self) -> io::Result<Sums> {
        let mut total = Sums::default();
        let mut folded = HashSet::new();
        if let Some(mapped) = map(&self.path.join(TOTAL))? {
            for record in records(mapped.cells()) {
                if record.metric == FOLDED {
                    folded.extend(texts_of(&record.key));
                }
            }
            total.add(mapped.cells());
        }
        let (mut living, mut dead) = (Vec::new(), Vec::new());
        for name in self.process_files()? {
            let path = self.path.join(&name);
            if folded.contains(&name) {
                remove(&path)?;
            } else if is_dead(&path)? {
                dead.push((name, path));
            } else {
                living.extend(map(&path)?);
            }
        }
        if !dead.is_empty() {
            for (_, path) in &dead {
                if let Some(mapped) = map(path)? {
                    total.add(mapped.cells());
                }
            }
            total.forget_processes();
            let names: Vec<&str> = dead.iter().map(|(name, _)| name.as_str()).collect();
            self.replace_total(&total.encode(&names))?;
            dead.iter().try_for_each(|(_, path)| remove(path))?;
        }
        for mapped in &living {
            total.add(mapped.cells());
        }
        Ok(total)
    }

    fn process_files(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let has_suffix = Path::new(&name).extension().is_some_and(|found| found == SUFFIX);
            if has_suffix && name != TOTAL {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn replace_total(&self, bytes: &[u8]) -> io::Result<()> {
        let draft = self.path.join(TOTAL_DRAFT);
        let mut file = File::create(&draft)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(draft, self.path.join(TOTAL))
    }
}

/// Maps a file of this layout. None: there is no such file, it has no whole cell, or a version of Vesper with other
/// metrics wrote it.
fn map(path: &Path) -> io::Result<Option<MappedFile>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() < CELL_BYTES as u64 {
        return Ok(None);
    }
    Ok(Some(MappedFile::new(&file)?).filter(|mapped| is_current(mapped.cells())))
}

/// Returns true if no process holds the lock of a process' file.
fn is_dead(path: &Path) -> io::Result<bool> {
    match File::open(path)?.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
