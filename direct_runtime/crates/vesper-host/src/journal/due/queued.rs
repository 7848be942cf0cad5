//! Queued runs: begun in one commit, and taken over by the worker that claims them, many in one transaction.

use std::collections::HashMap;

use crate::journal::begin::{Beginning, StoreJournal};
use crate::journal::cells::integer;
use crate::journal::due::{Claim, Due, Moment, NewDue, QUEUED, skip_locked};
use crate::journal::moving::{handoff_body, plain_entry};
use crate::journal::reading::{COLUMNS, ExecutionRow};
use crate::journal::run::{RunHead, StoreRun};
use crate::journal::schema::PLACES;
use crate::journal::sealing::RunKey;
use crate::journal::store::{Cell, Transaction, write};
use crate::journal::writing::place_of;
use crate::journal::{JournalError, Kind, Run as _, Status, Stored};
use crate::sources::kill_point;

/// Place of a run in a queue.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub queue: &'a str,
    /// Key of the limits; empty where there is none.
    pub lane: &'a str,
    pub priority: i64,
    /// Microseconds since 1970; None: at once.
    pub due_us: Option<i64>,
    pub attempts: i64,
    /// JSON of the queue.
    pub body: &'a str,
}

/// A claimed row, and its run where it could be taken over.
#[derive(Debug)]
pub struct Claimed {
    pub due: Due,
    pub run: Option<StoreRun>,
}

/// A run that is taken over.
struct Taken {
    row: ExecutionRow,
    key: Option<RunKey>,
    entries: Vec<Stored>,
    last: [u8; 32],
}

impl StoreJournal {
    /// Begins a run that a worker executes: START, its status and its place in one commit. Returns the execution.
    pub fn begin_queued(&self, beginning: &Beginning<'_>, place: &Place<'_>) -> Result<String, JournalError> {
        let run = self.begin_in(beginning, Some(place.queue))?;
        let due = NewDue {
            kind: QUEUED.to_owned(),
            moment: place.due_us.map_or(Moment::After(0), Moment::At),
            path: String::new(),
            name: String::new(),
            queue: place.queue.to_owned(),
            lane: place.lane.to_owned(),
            priority: place.priority,
            attempts: place.attempts,
            body: place.body.to_owned(),
        };
        run.commit_due(Status::Queued, due, |_| None)?;
        kill_point("queued.committed");
        Ok(run.execution().to_owned())
    }

    /// Claims rows of queued runs and takes their runs over, in one transaction. `engine` replaces that of each run.
    ///
    /// The HANDOFF of each is written with its next commit.
    pub fn claim_queued(&self, claim: &Claim, engine: Option<&str>) -> Result<Vec<Claimed>, JournalError> {
        let (claimed, mut taken) = write(&*self.store, |transaction| {
            let claimed = self.claim_rows(transaction, claim)?;
            let taken = self.take_claimed(transaction, &claimed, engine)?;
            let unnamed: Vec<i64> = claimed
                .iter()
                .filter(|due| due.queue.is_empty())
                .map(|due| due.id)
                .collect();
            if !unnamed.is_empty() {
                let sql = format!("DELETE FROM vesper_due WHERE id IN {}", transaction.listed());
                transaction.run(&sql, &[listed(&unnamed)])?;
            }
            Ok((claimed, taken))
        })?;
        kill_point("claim.committed");
        let mut found = Vec::with_capacity(claimed.len());
        for due in claimed {
            let taken = due.run.and_then(|run| taken.remove(&run));
            let run = taken.map(|taken| self.run_of(taken, engine)).transpose()?;
            found.push(Claimed { due, run });
        }
        Ok(found)
    }

    fn take_claimed(
        &self,
        transaction: &mut dyn Transaction,
        claimed: &[Due],
        engine: Option<&str>,
    ) -> Result<HashMap<i64, Taken>, JournalError> {
        let mut taken = HashMap::with_capacity(claimed.len());
        let runs: Vec<i64> = claimed.iter().filter_map(|due| due.run).collect();
        if runs.is_empty() {
            return Ok(taken);
        }
        let now = transaction.now_us()?;
        // The claimed rows are locked: waiting for a run that is being changed could be a deadlock.
        let locking = skip_locked(transaction, "");
        let sql = format!(
            "SELECT {COLUMNS} FROM vesper_executions WHERE id IN {}{locking}",
            transaction.listed()
        );
        let found = transaction.rows(&sql, &[listed(&runs)])?;
        let mut starts = starts_of(transaction, &runs)?;
        for cells in found {
            let row = ExecutionRow::read(&cells)?;
            let key = row.usable_key(transaction, &self.keys, &self.sources)?;
            if self.check_takable(&row, now).is_err() || row.summary.is_sensitive && key.is_none() {
                continue;
            }
            let start = starts
                .remove(&row.id)
                .filter(|_| row.summary.status == Status::Queued);
            let (entries, last) = match start {
                Some(start) => row.entries_in(transaction, &[start], key.as_ref(), self.store.name())?,
                None => row.entries(transaction, key.as_ref(), self.store.name())?,
            };
            taken.insert(
                row.id,
                Taken {
                    row,
                    key,
                    entries,
                    last,
                },
            );
        }
        let ids: Vec<i64> = taken.keys().copied().collect();
        if !ids.is_empty() {
            let sql = format!(
                "UPDATE vesper_executions SET status = 'running', owner = ?, engine = {}, fence = fence + 1, \
                 lease_until_us = ?, updated_us = ? WHERE id IN {}",
                if engine.is_some() { "?" } else { "engine" },
                transaction.listed()
            );
            let mut values = vec![Cell::Text(self.owner())];
            values.extend(engine.map(|engine| Cell::Text(engine.to_owned())));
            values.extend([
                Cell::Integer(now + self.limits.lease_us()),
                Cell::Integer(now),
                listed(&ids),
            ]);
            transaction.run(&sql, &values)?;
        }
        Ok(taken)
    }

    fn run_of(&self, taken: Taken, engine: Option<&str>) -> Result<StoreRun, JournalError> {
        let Taken {
            row,
            key,
            entries,
            last,
        } = taken;
        let fence = row.summary.fence + 1;
        let head = RunHead {
            execution: row.summary.execution.as_str().into(),
            fence,
            row: row.id,
            seq: entries.len() as u64,
            last_hash: last,
            is_synced: row.is_synced,
            is_queued: true,
        };
        let engine = engine.unwrap_or(&row.summary.engine);
        let body = handoff_body(engine, fence, &row.summary.owner, &self.owner());
        let run = StoreRun::new(self, head, key, None, entries);
        run.append(&plain_entry(Kind::Handoff, self.sources.now_us(), &body))?;
        Ok(run)
    }
}

/// Returns the first commits of runs by their ids; a queued run has no other.
fn starts_of(
    transaction: &mut dyn Transaction,
    runs: &[i64],
) -> Result<HashMap<i64, Vec<Cell>>, JournalError> {
    let places: Vec<i64> = runs.iter().map(|run| place_of(*run, 1)).collect();
    let sql = format!(
        "SELECT place, lines, hashes FROM vesper_commits WHERE place IN {}",
        transaction.listed()
    );
    let rows = transaction.rows(&sql, &[listed(&places)])?;
    rows.into_iter()
        .map(|row| Ok((integer(row.first())? / PLACES, row)))
        .collect()
}

fn listed(ids: &[i64]) -> Cell {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    Cell::Text(format!("[{}]", ids.join(",")))
}
