//! What only the store in a file has: levels of syncing, commits that share a transaction, forks, a full disk.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::journal::batch::{Batch, Birth, Definition, Row};
use crate::journal::sqlite::connections::Connections;
use crate::journal::sqlite::{SqliteStore, create_private};
use crate::journal::store::{Cell, Store, read, write};
use crate::journal::{ErrorKind, JournalError};
use crate::sources::SystemSources;

static FILES: AtomicU32 = AtomicU32::new(0);

/// A store in a file that is removed at the end.
struct File {
    store: Arc<SqliteStore>,
    path: PathBuf,
}

impl File {
    fn new() -> Self {
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("vesper-sqlite-{}-{number}.db", process::id()));
        let store = SqliteStore::new(
            path.clone(),
            None,
            SystemSources::shared(),
            Arc::new(create_private),
        );
        Self {
            store: Arc::new(store),
            path,
        }
    }

    /// Returns the key of a new run.
    fn begin(&self, execution: &str) -> Result<i64, JournalError> {
        let mut batch = batch(execution, 0, 1, true);
        batch.is_prolonged = true;
        batch.birth = Some(Arc::new(birth()));
        self.store.submit(batch)
    }

    /// Returns 2 for FULL, 1 for NORMAL.
    fn level(&self) -> Result<i64, Box<dyn std::error::Error>> {
        let here = self.store.connections.here();
        let _turn = here.writing.hold();
        let writer = here.writer();
        let connection = writer.connection.as_ref().ok_or("the writer is closed")?;
        Ok(connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?)
    }

    /// Returns the number of transactions in the log.
    fn transactions(&self) -> std::io::Result<usize> {
        const HEADER: usize = 32;
        const FRAME: usize = 24 + 4096;
        let log = fs::read(self.path.with_extension("db-wal"))?;
        let frames = log.get(HEADER..).unwrap_or_default().chunks(FRAME);
        // Bytes 4 to 8 of the last frame of a transaction are the size of the file, of others 0.
        let is_last = |frame: &&[u8]| frame.get(4..8).is_some_and(|size| size != [0; 4]);
        Ok(frames.filter(is_last).count())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.store.close();
        for ending in ["db", "db-wal", "db-shm"] {
            let _ = fs::remove_file(self.path.with_extension(ending));
        }
    }
}

fn birth() -> Birth {
    Birth {
        definition: Arc::new(Definition {
            semantic_hash: "ab".repeat(32),
            node_id: "pay".to_owned(),
            path: "pay.vsp".to_owned(),
            source: String::new(),
            ir: Vec::new(),
            callees: Vec::new(),
        }),
        owner: "owner".to_owned(),
        engine: "interp".to_owned(),
        started_us: 1,
        is_joined: false,
        is_sensitive: false,
        is_synced: true,
        key: None,
        run_key: None,
    }
}

fn batch(execution: &str, run: i64, first: u64, is_synced: bool) -> Batch {
    let row = Row {
        first,
        lines: vec![b'x'; 200],
        hashes: vec![0; 32],
    };
    Batch::new(execution.into(), run, 1, vec![row], is_synced)
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn the_level_of_syncing_is_that_of_the_batch() -> Outcome {
    let file = File::new();
    let run = file.begin("run")?;
    for (number, is_synced) in (2..).zip([true, false, true, false, false, true]) {
        file.store.submit(batch("run", run, number, is_synced))?;
        assert_eq!(file.level()?, if is_synced { 2 } else { 1 });
    }
    file.store.submit(batch("run", run, 9, false))?;
    file.store
        .submit(Batch::of_audit(vec!["{\"action\":\"x\",\"seq\":0}".to_owned()]))?;
    assert_eq!(file.level()?, 2);
    Ok(())
}

/// Submits all batches while the turn of writing is held, so that all are queued at once.
fn submit_together(file: &File, batches: Vec<Batch>) -> Vec<Result<i64, JournalError>> {
    let here = file.store.connections.here();
    let count = batches.len();
    thread::scope(|scope| {
        let turn = here.writing.hold();
        let threads: Vec<_> = batches
            .into_iter()
            .map(|batch| scope.spawn(|| file.store.submit(batch)))
            .collect();
        while here.queue.lock().map_or(count, |queue| queue.len()) < count {
            thread::yield_now();
        }
        drop(turn);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join();
        let panicked = |_| Err(JournalError::new(ErrorKind::Journal, "a thread panicked"));
        threads
            .into_iter()
            .map(|thread| join(thread).unwrap_or_else(panicked))
            .collect()
    })
}

#[test]
fn queued_commits_share_a_transaction_and_only_refused_ones_fail() -> Outcome {
    let file = File::new();
    let runs: Vec<i64> = (0..5)
        .map(|number| file.begin(&format!("run-{number}")))
        .collect::<Result<_, _>>()?;
    let mut batches: Vec<Batch> = runs.iter().map(|run| batch("run", *run, 2, true)).collect();
    for (number, batch) in batches.iter_mut().enumerate() {
        batch.audit = vec![format!("{{\"action\":\"{number}\"")];
    }
    let mut stale = batch("stale", 1, 3, true);
    stale.fence = 7;
    stale.audit = vec!["{\"action\":\"stale\"".to_owned()];
    let mut twice = batch("run-0", 0, 1, true);
    twice.is_prolonged = true;
    twice.birth = Some(Arc::new(birth()));
    batches.extend([stale, twice]);
    let before = file.transactions()?;
    let ends = submit_together(&file, batches);
    assert_eq!(file.transactions()?, before + 1);
    let kinds: Vec<_> = ends
        .into_iter()
        .map(|end| end.map_err(|error| error.kind))
        .collect();
    let mut expected: Vec<_> = runs.into_iter().map(Ok).collect();
    expected.extend([Err(ErrorKind::Fenced), Err(ErrorKind::Journal)]);
    assert_eq!(kinds, expected);
    let audit = read(&*file.store, |transaction| {
        transaction.rows("SELECT COUNT(*), MAX(seq) FROM vesper_audit", &[])
    })?;
    assert_eq!(audit, [[Cell::Integer(5), Cell::Integer(5)]]);
    Ok(())
}

#[test]
fn a_full_disk_fails_all_of_a_transaction_and_each_can_be_repeated() -> Outcome {
    let file = File::new();
    let runs: Vec<i64> = (0..3)
        .map(|number| file.begin(&format!("run-{number}")))
        .collect::<Result<_, _>>()?;
    let limit = |pages: u32| {
        write(&*file.store, |transaction| {
            transaction.rows(&format!("PRAGMA max_page_count = {pages}"), &[])
        })
    };
    limit(1)?; // as many as there are
    let large = |run: &i64| {
        let mut batch = batch("run", *run, 2, true);
        for row in &mut batch.rows {
            row.lines = vec![b'x'; 100_000];
        }
        batch
    };
    for end in submit_together(&file, runs.iter().map(large).collect()) {
        let message = end.map_err(|error| error.message).err().unwrap_or_default();
        let text =
            "the disk is full, or the journal has reached its largest size; nothing was written. Make room";
        assert!(message.contains(text), "{message}");
    }
    limit(1_000_000)?;
    for end in submit_together(&file, runs.iter().map(large).collect()) {
        end?;
    }
    Ok(())
}

#[test]
fn a_reader_does_not_wait_for_a_writer_and_sees_one_state() -> Outcome {
    let file = File::new();
    let run = file.begin("run")?;
    let count = "SELECT COUNT(*) FROM vesper_commits";
    let (before, after) = read(&*file.store, |transaction| {
        let before = transaction.rows(count, &[])?;
        file.store.submit(batch("run", run, 2, true))?;
        Ok((before, transaction.rows(count, &[])?))
    })?;
    assert_eq!(before, after);
    let here = file.store.connections.here();
    let turn = here.writing.hold();
    assert_eq!(
        read(&*file.store, |transaction| transaction.rows(count, &[]))?,
        [[Cell::Integer(2)]]
    );
    drop(turn);
    let refused = read(&*file.store, |transaction| {
        transaction.run("DELETE FROM vesper_commits", &[])
    });
    assert!(refused.is_err_and(|error| error.message.contains("attempt to write a readonly database")));
    Ok(())
}

#[test]
fn a_fork_finds_nothing_open_and_frees_only_its_own_turns() -> Outcome {
    let file = File::new();
    file.begin("run")?;
    let hold = file.store.hold_for_fork();
    assert!(hold.has_writer && hold.has_reader);
    let here = file.store.connections.here();
    assert!(here.writer().connection.is_none() && here.reader().is_none());
    // Another thread that forks meanwhile gets no turn, and so frees none.
    for turn in [&here.writing, &here.reading] {
        assert!(!turn.take_within(Duration::from_millis(1)));
    }
    file.store
        .release_after_fork(crate::journal::store::ForkHold::default());
    assert!(!here.writing.take_within(Duration::from_millis(1)));
    file.store.release_after_fork(hold);
    file.begin("other")?;
    Ok(())
}

#[test]
fn a_child_of_a_process_with_an_open_connection_cannot_use_it() {
    for is_open in [false, true] {
        let parent = Connections::of(1, false);
        if is_open {
            parent.opened();
        }
        assert_eq!(parent.here().is_torn, is_open);
        assert!(std::ptr::eq(parent.here(), parent.here()));
    }
}
