//! The writer of the journal over a file.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Folder, beginning, entry, journal, rows};
use vesper_host::journal::batch::Batch;
use vesper_host::journal::store::{Cell, Store, Transaction, Work};
use vesper_host::journal::{ErrorKind, JournalError, Kind, Run, Status};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn a_commit_is_one_row_of_lines_and_hashes() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    let run = journal.begin(&beginning("run-1"))?;
    run.commit(Status::Running, None)?;
    run.append(&entry(Kind::Intent, "charge", r#"{"arguments":{},"fixed":{}}"#))?;
    run.append(&entry(Kind::Result, "charge", r#"{"value":"é"}"#))?;
    run.commit(Status::Running, None)?;
    run.append(&entry(Kind::End, "", r#"{"kind":"returned"}"#))?;
    run.commit(Status::Ended, Some("returned"))?;
    let places: Vec<_> = rows(
        &journal,
        "SELECT place & 2147483647, length(hashes) FROM vesper_commits",
    )?;
    let expected =
        [(1, 32), (2, 64), (4, 32)].map(|(place, size)| vec![Cell::Integer(place), Cell::Integer(size)]);
    assert_eq!(places, expected);
    let row = rows(
        &journal,
        "SELECT status, outcome, lease_until_us, head_seq FROM vesper_executions",
    )?;
    let texts = ["ended", "returned"].map(|text| Cell::Text(text.to_owned()));
    assert_eq!(
        row,
        [[&texts[..], &[Cell::Integer(0), Cell::Integer(4)]].concat()]
    );
    let refused = run.append(&entry(Kind::Value, "late", "{}"));
    assert_eq!(
        refused.map_err(|error| error.message),
        Err("execution run-1 has ended: nothing can be appended to it".to_owned())
    );
    Ok(())
}

#[test]
fn a_run_that_was_taken_over_is_fenced() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    let run = journal.begin(&beginning("run-1"))?;
    run.commit(Status::Running, None)?;
    vesper_host::journal::store::write(&*journal.store, |transaction| {
        transaction.run("UPDATE vesper_executions SET fence = 2", &[])
    })?;
    run.append(&entry(Kind::Value, "step", "{}"))?;
    for status in [Status::Running, Status::Ended] {
        let refused = run.commit(status, None).map_err(|error| error.kind);
        assert_eq!(refused, Err(ErrorKind::Fenced));
    }
    assert_eq!(run.renew().map_err(|error| error.kind), Err(ErrorKind::Fenced));
    let count = rows(&journal, "SELECT COUNT(*) FROM vesper_commits")?;
    assert_eq!(count, [[Cell::Integer(1)]]);
    Ok(())
}

#[test]
fn an_id_is_used_once() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    journal
        .begin(&beginning("run-1"))?
        .commit(Status::Running, None)?;
    let refused = journal.begin(&beginning("run-1"))?.commit(Status::Running, None);
    let message = "the journal has an execution run-1 already: its id must be new";
    assert_eq!(refused.map_err(|error| error.message), Err(message.to_owned()));
    Ok(())
}

#[test]
fn threads_share_transactions_and_lose_nothing() -> Outcome {
    const THREADS: i64 = 16;
    const COMMITS: i64 = 20;
    let folder = Folder::new()?;
    let journal = Arc::new(journal(&folder.path)?);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let journal = journal.clone();
                scope.spawn(move || -> Result<(), JournalError> {
                    let run = journal.begin(&beginning(&format!("run-{thread}")))?;
                    for _ in 0..COMMITS {
                        run.append(&entry(Kind::Value, "step", "{}"))?;
                        run.commit(Status::Running, None)?;
                    }
                    Ok(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    let found = rows(
        &journal,
        "SELECT COUNT(*), SUM(length(hashes)) / 32 FROM vesper_commits",
    )?;
    let (commits, lines) = (THREADS * COMMITS, THREADS * (COMMITS + 1));
    assert_eq!(found, [[Cell::Integer(commits), Cell::Integer(lines)]]);
    Ok(())
}

/// A store that loses the answer to its next commit, which was written or not.
struct Losing {
    store: Arc<dyn Store>,
    is_answer_lost: AtomicBool,
    is_written: bool,
}

impl Store for Losing {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn submit(&self, batch: Batch) -> Result<i64, JournalError> {
        if !self.is_answer_lost.swap(false, Ordering::Relaxed) {
            return self.store.submit(batch);
        }
        if self.is_written {
            self.store.submit(batch)?;
        }
        Err(JournalError::new(ErrorKind::Journal, "the connection was lost"))
    }

    fn reading(&self, work: &mut Work<'_>) -> Result<(), JournalError> {
        self.store.reading(work)
    }

    fn writing(&self, work: &mut Work<'_>) -> Result<(), JournalError> {
        self.store.writing(work)
    }

    fn scrub(&self) -> Result<(), JournalError> {
        self.store.scrub()
    }

    fn lock_for_prune(&self, transaction: &mut dyn Transaction) -> Result<(), JournalError> {
        self.store.lock_for_prune(transaction)
    }

    fn close(&self) {
        self.store.close();
    }
}

#[test]
fn a_commit_with_an_unknown_result_is_written_once() -> Outcome {
    for (is_written, is_first) in [(false, false), (false, true), (true, false), (true, true)] {
        let folder = Folder::new()?;
        let mut journal = journal(&folder.path)?;
        let losing = Arc::new(Losing {
            store: journal.store.clone(),
            is_answer_lost: AtomicBool::new(is_first),
            is_written,
        });
        journal.store = losing.clone();
        let run = journal.begin(&beginning("run-1"))?;
        run.audit(r#"{"action":"first","seq":0}"#)?;
        assert_eq!(run.commit(Status::Running, None).is_err(), is_first);
        losing.is_answer_lost.store(!is_first, Ordering::Relaxed);
        run.append(&entry(Kind::Value, "step", "{}"))?;
        run.audit(r#"{"action":"second","seq":0}"#)?;
        assert_eq!(run.commit(Status::Running, None).is_err(), !is_first);
        run.append(&entry(Kind::End, "", "{}"))?;
        run.commit(Status::Ended, Some("returned"))?;
        let lines = rows(&journal, "SELECT SUM(length(hashes)) / 32 FROM vesper_commits")?;
        assert_eq!(lines, [[Cell::Integer(3)]], "{is_written} {is_first}");
        let audit = rows(
            &journal,
            "SELECT CAST(line AS TEXT) FROM vesper_audit ORDER BY seq",
        )?;
        let expected = [r#"{"action":"first","seq":1}"#, r#"{"action":"second","seq":2}"#];
        assert_eq!(audit, expected.map(|line| [Cell::Text(line.to_owned())]));
    }
    Ok(())
}

#[test]
fn a_file_that_was_replaced_is_refused() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    journal
        .begin(&beginning("run-1"))?
        .commit(Status::Running, None)?;
    let path = folder.path.join("journal.db");
    std::fs::rename(&path, folder.path.join("other.db"))?;
    let refused = journal.begin(&beginning("run-2"))?.commit(Status::Running, None);
    let message = format!(
        "{}: somebody deleted or replaced the journal while it was in use",
        path.display()
    );
    assert_eq!(refused.map_err(|error| error.message), Err(message));
    Ok(())
}

#[test]
fn a_file_that_another_connection_holds_is_named() -> Outcome {
    let folder = Folder::new()?;
    let held = journal(&folder.path)?;
    held.begin(&beginning("run-1"))?.commit(Status::Running, None)?;
    let other = journal(&folder.path)?;
    let refused = vesper_host::journal::store::write(&*held.store, |_| {
        Ok(other.begin(&beginning("run-2"))?.commit(Status::Running, None))
    })?;
    let message = format!(
        "{}: another process has had the journal locked for more than 5 s; nothing was written \
         (SQLite: database is locked)",
        folder.path.join("journal.db").display()
    );
    assert_eq!(refused.map_err(|error| error.message), Err(message));
    Ok(())
}

#[test]
fn a_file_that_is_no_journal_is_refused() -> Outcome {
    let folder = Folder::new()?;
    let path = folder.path.join("journal.db");
    std::fs::write(
        &path,
        "not a database, and longer than the header of one. ".repeat(40),
    )?;
    let refused = journal(&folder.path)?
        .begin(&beginning("run-1"))?
        .commit(Status::Running, None);
    let message = format!(
        "{}: this is no journal: the file is not a SQLite database. Name another file, or move this one away \
         (SQLite: file is not a database)",
        path.display()
    );
    assert_eq!(refused.map_err(|error| error.message), Err(message));
    Ok(())
}

#[test]
fn tables_of_a_newer_vesper_are_refused() -> Outcome {
    let folder = Folder::new()?;
    let first = journal(&folder.path)?;
    vesper_host::journal::store::write(&*first.store, |transaction| {
        transaction.run("INSERT INTO vesper_migrations VALUES (9, 0)", &[])
    })?;
    let refused = journal(&folder.path)?
        .begin(&beginning("run-1"))?
        .commit(Status::Running, None);
    let message = format!(
        "{}: the journal has the format 9, and this Vesper knows {}: a newer one made it; use that one, or another \
         journal",
        folder.path.join("journal.db").display(),
        vesper_host::journal::schema::VERSION
    );
    assert_eq!(refused.map_err(|error| error.message), Err(message));
    Ok(())
}

#[test]
fn a_new_file_is_for_its_owner_alone() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    journal
        .begin(&beginning("run-1"))?
        .commit(Status::Running, None)?;
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let mode = std::fs::metadata(folder.path.join(name))?.permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    Ok(())
}
