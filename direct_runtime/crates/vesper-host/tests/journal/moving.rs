//! Runs that move between owners, and what is read of them.

use std::sync::{Arc, Mutex};

use crate::support::{Folder, beginning, entry, journal};
use vesper_host::journal::batch::Batch;
use vesper_host::journal::overview::Query;
use vesper_host::journal::run::StoreRun;
use vesper_host::journal::store::{Store, Transaction, Work, write};
use vesper_host::journal::{ErrorKind, JournalError, Kind, Run, Status};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A store before whose next transaction that writes the owner of a run goes on.
struct Late {
    store: Arc<dyn Store>,
    owner: Mutex<Option<StoreRun>>,
}

impl Store for Late {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn submit(&self, batch: Batch) -> Result<i64, JournalError> {
        self.store.submit(batch)
    }

    fn reading(&self, work: &mut Work<'_>) -> Result<(), JournalError> {
        self.store.reading(work)
    }

    fn writing(&self, work: &mut Work<'_>) -> Result<(), JournalError> {
        let owner = self.owner.lock().map_or(None, |mut owner| owner.take());
        if let Some(run) = owner {
            run.append(&entry(Kind::Result, "late", "{}"))?;
            run.commit(Status::Running, None)?;
        }
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

fn paths(run: &StoreRun) -> Vec<&str> {
    run.recorded().iter().map(|stored| stored.path.as_str()).collect()
}

#[test]
fn a_run_that_grows_while_it_is_taken_over_is_read_to_its_end() -> Outcome {
    let folder = Folder::new()?;
    let mut journal = journal(&folder.path)?;
    let run = journal.begin(&beginning("run-1"))?;
    run.commit(Status::Running, None)?;
    journal.store = Arc::new(Late {
        store: journal.store.clone(),
        owner: Mutex::new(Some(run)),
    });
    let taken = journal.take_over("run-1", "python")?;
    assert_eq!(paths(&taken), ["", "late"]);
    taken.append(&entry(Kind::End, "", "{}"))?;
    taken.commit(Status::Ended, Some("returned"))?;
    let recorded = journal.read("run-1")?;
    let kinds: Vec<Kind> = recorded.entries.iter().map(|stored| stored.kind).collect();
    assert_eq!(kinds, [Kind::Start, Kind::Result, Kind::Handoff, Kind::End]);
    assert_eq!(
        recorded.entries.get(2).map(|stored| stored.body.clone()),
        Some(format!(
            "{{\"engine\":\"python\",\"fence\":2,\"from\":\"{0}\",\"to\":\"{0}\"}}",
            journal.owner()
        ))
    );
    Ok(())
}

#[test]
fn the_earlier_owner_is_fenced() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    let run = journal.begin(&beginning("run-1"))?;
    run.commit(Status::Running, None)?;
    journal.take_over("run-1", "python")?;
    run.append(&entry(Kind::Result, "stale", "{}"))?;
    let refused = run.commit(Status::Running, None).map_err(|error| error.kind);
    assert_eq!(refused, Err(ErrorKind::Fenced));
    Ok(())
}

#[test]
fn a_run_in_doubt_is_resolved_request_by_request() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    let run = journal.begin(&beginning("run-1"))?;
    for path in ["a", "b"] {
        run.append(&entry(Kind::InDoubt, path, "{}"))?;
    }
    run.commit(Status::InDoubt, None)?;
    let kind = |result: Result<_, JournalError>| result.map(drop).map_err(|error| error.kind);
    assert_eq!(
        kind(journal.take_over("run-1", "python").map(drop)),
        Err(ErrorKind::NotTaken)
    );
    let missing = journal.resolve("run-1", "c", "{}").map_err(|error| error.message);
    assert_eq!(
        missing,
        Err("execution run-1 has no request in doubt at `c`; in doubt: `a`, `b`".to_owned())
    );
    let body = r#"{"by":"ada","value":1,"why":"looked"}"#;
    journal.resolve("run-1", "a", body)?;
    let status = || {
        journal
            .find(&Query::default(), 1)
            .map(|found| found.first().map(|each| each.status))
    };
    assert_eq!(status()?, Some(Status::InDoubt));
    journal.resolve("run-1", "b", body)?;
    assert_eq!(status()?, Some(Status::Running));
    let taken = journal.take_over("run-1", "python")?;
    assert_eq!(paths(&taken), ["", "a", "b", "a", "b"]);
    assert_eq!(journal.verify("run-1")?.1, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_row_that_contradicts_its_entries_is_named() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    journal
        .begin(&beginning("run-1"))?
        .commit(Status::Running, None)?;
    write(&*journal.store, |transaction| {
        transaction.run("UPDATE vesper_executions SET engine = 'it''s', fence = 7", &[])
    })?;
    let (_, problems) = journal.verify("run-1")?;
    let name = journal.store.name();
    let expected = [
        format!("{name}: the row of execution run-1 says fence 7, and its entries 1"),
        format!("{name}: the row of execution run-1 says engine \"it's\", and its entries 'interp'"),
    ];
    assert_eq!(problems, expected);
    Ok(())
}
