//! Messages for errors of SQLite, with a remedy.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process;

use rusqlite::ffi;

use crate::journal::{ErrorKind, JournalError};

/// Returns the primary code of an error; 0 where it is none of SQLite's.
pub(super) fn code_of(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |error| error.extended_code & 0xff)
}

/// Returns the error of the journal: the file, the state, and SQLite's own text at the end.
pub(super) fn error_of(error: &rusqlite::Error, path: &Path, busy_seconds: f64) -> JournalError {
    let text = match code_of(error) {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => format!(
            "{} has had the journal locked for more than {busy_seconds} s; nothing was written",
            holder(path)
        ),
        ffi::SQLITE_FULL => {
            "the disk is full, or the journal has reached its largest size; nothing was written. Make room"
                .to_owned()
        }
        ffi::SQLITE_NOTADB => {
            "this is no journal: the file is not a SQLite database. Name another file, or move this one away"
                .to_owned()
        }
        ffi::SQLITE_CORRUPT => {
            "the journal is damaged. Nothing more is written to it. Keep the file and the two \
             beside it (-wal, -shm), and take the last backup, or what `sqlite3 FILE .recover` finds"
                .to_owned()
        }
        ffi::SQLITE_READONLY | ffi::SQLITE_PERM | ffi::SQLITE_AUTH => {
            "the journal cannot be written: the file or its folder is read-only for this user".to_owned()
        }
        ffi::SQLITE_CANTOPEN => {
            "the journal cannot be opened: the file or its folder is missing, or not for this user".to_owned()
        }
        ffi::SQLITE_IOERR => {
            "the disk failed while the journal was read or written; what was not reported as written \
             may be lost"
                .to_owned()
        }
        _ => "the journal cannot be used".to_owned(),
    };
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    };
    let text = format!("{}: {text} (SQLite: {message})", path.display());
    JournalError::new(ErrorKind::Journal, text)
}

/// Returns the process that holds a lock on the files of a journal, where the system lists it.
fn holder(path: &Path) -> String {
    let mut shared = path.as_os_str().to_owned();
    shared.push("-shm");
    let inodes: Vec<String> = [path, Path::new(&shared)]
        .iter()
        .filter_map(|name| fs::metadata(name).ok())
        .map(|status| format!(":{}", status.ino()))
        .collect();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let own = process::id().to_string();
    let mut pids = BTreeSet::new();
    for line in locks.lines().filter(|line| line.contains(" WRITE ")) {
        // … WRITE PID MAJOR:MINOR:INODE START END
        let mut fields = line.split_whitespace().rev().skip(2);
        let (Some(file), Some(pid)) = (fields.next(), fields.next()) else {
            continue;
        };
        if pid != own && inodes.iter().any(|inode| file.ends_with(inode)) {
            pids.insert(pid);
        }
    }
    if pids.is_empty() {
        return "another process".to_owned();
    }
    format!("process {}", Vec::from_iter(pids).join(", "))
}
