//! A journal in a folder of its own, and entries for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

use vesper_host::journal::batch::Definition;
use vesper_host::journal::begin::{Beginning, StoreJournal};
use vesper_host::journal::limits::Limits;
use vesper_host::journal::sealing::KeyRing;
use vesper_host::journal::sqlite::{SqliteStore, create_private};
use vesper_host::journal::store::{Cell, read};
use vesper_host::journal::{Entry, JournalError, Kind};
use vesper_host::sources::SystemSources;

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// A folder that is removed with its content.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> io::Result<Self> {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("vesper-journal-{}-{number}", process::id()));
        fs::create_dir(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn journal(folder: &std::path::Path) -> Result<StoreJournal, JournalError> {
    journal_under(folder, None)
}

/// Returns the journal of a folder, opened with a master key.
pub(crate) fn journal_under(
    folder: &std::path::Path,
    master: Option<&[u8]>,
) -> Result<StoreJournal, JournalError> {
    let sources = SystemSources::shared();
    let store = SqliteStore::new(
        folder.join("journal.db"),
        None,
        sources.clone(),
        Arc::new(create_private),
    );
    let keys = Arc::new(KeyRing::new(master, &[], None)?);
    StoreJournal::new(Arc::new(store), keys, Limits::default(), sources, None)
}

pub(crate) fn beginning(execution: &str) -> Beginning<'_> {
    let definition = Definition {
        semantic_hash: "ab".repeat(32),
        node_id: "pay".to_owned(),
        path: "nodes/pay.vsp".to_owned(),
        source: "id: pay\n".to_owned(),
        ir: b"{}".to_vec(),
        callees: Vec::new(),
    };
    Beginning {
        execution,
        definition: Arc::new(definition),
        inputs: "{}",
        now: r#"{"$time":"2026-11-15T12:00:00.500000Z"}"#,
        engine: "interp",
        is_sensitive: false,
        writes: true,
        is_joined: false,
        context: None,
    }
}

pub(crate) fn entry<'a>(kind: Kind, path: &'a str, body: &'a str) -> Entry<'a> {
    Entry {
        kind,
        path,
        effect: "",
        class: "",
        key: None,
        digest: "",
        at_us: 7,
        body,
    }
}

pub(crate) fn rows(journal: &StoreJournal, sql: &str) -> Result<Vec<Vec<Cell>>, JournalError> {
    read(&*journal.store, |transaction| transaction.rows(sql, &[]))
}
