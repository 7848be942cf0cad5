//! A journal in memory, and the death of a process at any of its operations.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use vesper_host::journal::due::{Moment, Wait, Waited};
use vesper_host::journal::{Entry, ErrorKind, JournalError, Kind, Run, Status, Stored};

/// The death of the process.
pub(crate) struct Death;

/// Counts what a process does, and kills it at one of these events.
#[derive(Default)]
pub(crate) struct Life {
    passed: AtomicUsize,
    dies_at: Option<usize>,
}

impl Life {
    pub(crate) fn ending_at(event: usize) -> Self {
        Self {
            passed: AtomicUsize::new(0),
            dies_at: Some(event),
        }
    }

    pub(crate) fn pass(&self) {
        if Some(self.passed.fetch_add(1, Ordering::Relaxed)) == self.dies_at {
            panic_any(Death);
        }
    }
}

/// Returns None where the process died.
pub(crate) fn survive<T>(function: impl FnOnce() -> T) -> Option<T> {
    std::panic::set_hook(Box::new(|info| {
        if !info.payload().is::<Death>() {
            eprintln!("{info}");
        }
    }));
    match catch_unwind(AssertUnwindSafe(function)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Death>() => None,
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

/// Everything that is durable of one run.
#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) entries: Vec<Stored>,
    pub(crate) status: Option<Status>,
    pub(crate) outcome: Option<String>,
    pub(crate) commits: usize,
    /// A signal that was kept: typed JSON.
    pub(crate) kept: Option<String>,
    pub(crate) wait: Option<Wait>,
}

impl Disk {
    /// Settles the wait, as a journal does that wakes a run.
    pub(crate) fn wake(&mut self, kind: Kind, body: &str) {
        let wait = self.wait.take().unwrap();
        let mut entry = stored(kind, &wait.due.path, body);
        entry.effect = wait.effect.to_owned();
        entry.class = "wait".to_owned();
        entry.digest = wait.digest;
        self.entries.push(entry);
        self.status = Some(Status::Running);
    }
}

/// A run whose entries are kept in memory.
pub(crate) struct MemoryRun {
    pub(crate) disk: Arc<Mutex<Disk>>,
    pub(crate) life: Arc<Life>,
    pub(crate) max_body: usize,
    /// Number of commits after which the journal cannot be written.
    pub(crate) fails_after: usize,
    recorded: Vec<Stored>,
    pending: Mutex<Vec<Stored>>,
}

impl MemoryRun {
    /// Begins a run, or takes over the one on the disk.
    pub(crate) fn open(disk: &Arc<Mutex<Disk>>, life: &Arc<Life>) -> Self {
        let recorded = disk.lock().unwrap().entries.clone();
        let run = Self {
            disk: Arc::clone(disk),
            life: Arc::clone(life),
            max_body: 1 << 20,
            fails_after: usize::MAX,
            pending: Mutex::default(),
            recorded,
        };
        if run.recorded.is_empty() {
            let start = stored(Kind::Start, "", "{}");
            run.pending.lock().unwrap().push(start);
        }
        run
    }
}

pub(crate) fn stored(kind: Kind, path: &str, body: &str) -> Stored {
    Stored {
        kind,
        path: path.to_owned(),
        effect: String::new(),
        class: String::new(),
        key: None,
        digest: String::new(),
        at_us: 0,
        body: body.to_owned(),
        seq: 0,
        branch: String::from("main"),
        hash: [0; 32],
        is_erased: false,
    }
}

impl Run for MemoryRun {
    fn execution(&self) -> &'static str {
        "run-1"
    }

    fn fence(&self) -> i64 {
        1
    }

    fn recorded(&self) -> &[Stored] {
        &self.recorded
    }

    fn append(&self, entry: &Entry<'_>) -> Result<(), JournalError> {
        if entry.body.len() > self.max_body {
            let message = format!("{}: a body is too large", entry.path);
            return Err(JournalError::new(ErrorKind::TooLarge, message));
        }
        let mut found = stored(entry.kind, entry.path, entry.body);
        found.effect = entry.effect.to_owned();
        found.class = entry.class.to_owned();
        found.key = entry.key.map(str::to_owned);
        found.digest = entry.digest.to_owned();
        found.at_us = entry.at_us;
        self.pending.lock().unwrap().push(found);
        self.life.pass();
        Ok(())
    }

    fn digest(&self, text: &str) -> String {
        format!("digest of {text}")
    }

    fn audit(&self, _event: &str) -> Result<(), JournalError> {
        Ok(())
    }

    fn commit(&self, status: Status, outcome: Option<&str>) -> Result<(), JournalError> {
        self.life.pass();
        let mut disk = self.disk.lock().unwrap();
        if disk.commits >= self.fails_after {
            return Err(JournalError::new(ErrorKind::Journal, "the disk is full"));
        }
        disk.commits += 1;
        disk.entries.append(&mut self.pending.lock().unwrap());
        disk.status = Some(status);
        disk.outcome = outcome.map(str::to_owned);
        drop(disk);
        self.life.pass();
        Ok(())
    }

    fn wait(&self, wait: Wait) -> Result<Waited, JournalError> {
        let kept = self
            .disk
            .lock()
            .unwrap()
            .kept
            .take()
            .filter(|kept| (wait.fits)(kept));
        if let Some(kept) = kept {
            let body = format!("{{\"value\":{kept}}}");
            let mut result = stored(Kind::Result, &wait.due.path, &body);
            result.digest = wait.digest;
            self.pending.lock().unwrap().push(result);
            self.commit(Status::Running, None)?;
            return Ok(Waited::Taken(body));
        }
        let due_us = match wait.due.moment {
            Moment::At(at) | Moment::After(at) => Some(at),
            Moment::Never => None,
        };
        self.disk.lock().unwrap().wait = Some(wait);
        self.commit(Status::Waiting, None)?;
        Ok(Waited::Until(due_us))
    }

    fn renew(&self) -> Result<(), JournalError> {
        self.disk.lock().unwrap().commits += 1000;
        Ok(())
    }
}
