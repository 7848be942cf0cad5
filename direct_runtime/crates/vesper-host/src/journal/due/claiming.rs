//! Claims of rows that are due: one process has each, for the time of its lease.

use crate::journal::JournalError;
use crate::journal::begin::StoreJournal;
use crate::journal::cells::{integer, text};
use crate::journal::due::{COLUMNS, Due, NewDue, QUEUED, TABLES, marks, postpone, skip_locked};
use crate::journal::owner::is_dead;
use crate::journal::store::{Cell, Transaction, read, write};
use crate::policy::rate_limit::Rule;
use crate::sources::kill_point;

/// Which rows are claimed.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    pub kinds: Vec<String>,
    pub limit: usize,
    pub lease_us: i64,
    /// Queue of queued runs; None claims of all.
    pub queue: Option<String>,
    /// Rows of one lane of the queue that may be leased at the same time.
    pub lane_limit: Option<usize>,
    /// Rows of the queue that may be leased at the same time.
    pub queue_limit: Option<usize>,
    /// Starts of one lane of the queue.
    pub lane_rate: Option<Rule>,
    /// Starts of the queue.
    pub queue_rate: Option<Rule>,
    /// Time within which claimed rows start where a rate lets none start at once.
    pub ahead_us: i64,
    /// The lane of the last claim: this one goes round from the next.
    pub after_lane: Option<String>,
}

impl Claim {
    /// Returns whether rows may be left to later claims.
    fn is_limited(&self) -> bool {
        let has_limit = self.lane_limit.is_some() || self.queue_limit.is_some();
        has_limit || self.lane_rate.is_some() || self.queue_rate.is_some()
    }

    /// Returns the condition of rows of these kinds, in words that select an index, and its values.
    fn of_kinds(kinds: &[String]) -> (String, Vec<Cell>) {
        let index = if kinds.iter().any(|kind| kind == QUEUED) {
            ""
        } else {
            "d.kind <> 'queued' AND "
        };
        let values = kinds.iter().cloned().map(Cell::Text).collect();
        (format!("{index}d.kind IN ({})", marks(kinds.len())), values)
    }
}

impl StoreJournal {
    /// Claims rows that are due and that no living process has: by priority, then by time.
    pub fn claim(&self, claim: &Claim) -> Result<Vec<Due>, JournalError> {
        let claimed = write(&*self.store, |transaction| self.claim_rows(transaction, claim))?;
        kill_point("claim.committed");
        Ok(claimed)
    }

    pub(super) fn claim_rows(
        &self,
        transaction: &mut dyn Transaction,
        claim: &Claim,
    ) -> Result<Vec<Due>, JournalError> {
        if claim.kinds.is_empty() || claim.limit == 0 {
            return Ok(Vec::new());
        }
        if let Some(queue) = claim.queue.as_ref().filter(|_| claim.is_limited()) {
            transaction.exclude(&format!("queue\n{queue}"))?;
        }
        let now = transaction.now_us()?;
        if claim.queue.is_some() {
            free_dead(transaction, now)?; // before its limits count leases
        }
        let mut found = self.claimable(transaction, claim, now)?;
        if claim.queue.is_none() && found.len() < claim.limit && free_dead(transaction, now)? {
            found = self.claimable(transaction, claim, now)?;
        }
        for due in found.iter().filter(|due| !due.is_readable) {
            postpone(transaction, due.id, now)?;
        }
        found.retain(|due| due.is_readable);
        let owner = self.owner();
        let ids: Vec<String> = found.iter().map(|due| due.id.to_string()).collect();
        if !ids.is_empty() {
            let sql = format!(
                "UPDATE vesper_due SET owner = ?, fence = fence + 1, lease_until_us = ? WHERE id IN {}",
                transaction.listed()
            );
            let values = [
                Cell::Text(owner.clone()),
                Cell::Integer(now + claim.lease_us),
                Cell::Text(format!("[{}]", ids.join(","))),
            ];
            transaction.run(&sql, &values)?;
        }
        for due in &mut found {
            due.owner.clone_from(&owner);
            due.fence += 1;
            due.lease_until_us = now + claim.lease_us;
        }
        Ok(found)
    }

    fn claimable(
        &self,
        transaction: &mut dyn Transaction,
        claim: &Claim,
        now: i64,
    ) -> Result<Vec<Due>, JournalError> {
        if let Some(queue) = &claim.queue {
            return self.startable(transaction, claim, queue, now);
        }
        let (condition, mut values) = Claim::of_kinds(&claim.kinds);
        let limit = Cell::Integer(i64::try_from(claim.limit).unwrap_or(i64::MAX));
        values.extend([Cell::Integer(now), Cell::Integer(now), limit]);
        let order = if claim.kinds.iter().any(|kind| kind == QUEUED) {
            "d.priority DESC, d.due_us, d.id"
        } else {
            "d.due_us, d.id"
        };
        let locking = skip_locked(transaction, " OF d");
        let sql = format!(
            "SELECT {COLUMNS} FROM {TABLES} WHERE {condition} AND d.due_us <= ? AND d.lease_until_us <= ? \
             ORDER BY {order} LIMIT ?{locking}"
        );
        let rows = transaction.rows(&sql, &values)?;
        rows.iter().map(|row| self.read_due(transaction, row)).collect()
    }

    /// Prolongs claims; returns how many are still this process's.
    pub fn renew_due(&self, claims: &[(i64, i64)], lease_us: i64) -> Result<u64, JournalError> {
        self.change_claims(claims, "UPDATE vesper_due SET lease_until_us = ?", |now| {
            vec![Cell::Integer(now + lease_us)]
        })
    }

    /// Gives a row back, due at another time or never; into another queue where one is named.
    pub fn release(
        &self,
        claim: (i64, i64),
        due_us: Option<i64>,
        attempts: i64,
        queue: Option<&str>,
    ) -> Result<bool, JournalError> {
        let moved = if queue.is_some() { ", queue = ?" } else { "" };
        let sql =
            format!("UPDATE vesper_due SET owner = '', lease_until_us = 0, due_us = ?, attempts = ?{moved}");
        let mut values = vec![due_us.map_or(Cell::Null, Cell::Integer), Cell::Integer(attempts)];
        values.extend(queue.map(|queue| Cell::Text(queue.to_owned())));
        Ok(self.change_claims(&[claim], &sql, |_| values.clone())? > 0)
    }

    /// Deletes rows that did not change since they were read or claimed; returns how many.
    pub fn remove_due(&self, claims: &[(i64, i64)]) -> Result<u64, JournalError> {
        self.change_claims(claims, "DELETE FROM vesper_due", |_| Vec::new())
    }

    /// Changes rows of these ids and fences.
    fn change_claims(
        &self,
        claims: &[(i64, i64)],
        sql: &str,
        values: impl Fn(i64) -> Vec<Cell>,
    ) -> Result<u64, JournalError> {
        let sql = format!("{sql} WHERE id = ? AND fence = ?");
        write(&*self.store, |transaction| {
            let now = transaction.now_us()?;
            let mut changed = 0;
            for (id, fence) in claims {
                let ours = [Cell::Integer(*id), Cell::Integer(*fence)];
                changed += transaction.run(&sql, &[values(now), ours.to_vec()].concat())?;
            }
            Ok(changed)
        })
    }

    /// Returns the time of the store's clock.
    pub fn now_us(&self) -> Result<i64, JournalError> {
        read(&*self.store, |transaction| transaction.now_us())
    }

    /// Returns the time at which the next row of these kinds is due that no process has and that was not postponed.
    pub fn next_due(&self, kinds: &[String]) -> Result<Option<i64>, JournalError> {
        let (condition, mut values) = Claim::of_kinds(kinds);
        let sql = format!(
            "SELECT d.due_us FROM vesper_due d WHERE {condition} AND d.due_us IS NOT NULL AND d.owner = '' \
             AND d.lease_until_us <= ? ORDER BY d.due_us LIMIT 1"
        );
        let rows = read(&*self.store, |transaction| {
            values.push(Cell::Integer(transaction.now_us()?));
            transaction.rows(&sql, &values)
        })?;
        rows.first().map(|row| integer(row.first())).transpose()
    }

    /// Puts a row without a run: a new one, or in place of the one that is due at `expected_us` and that no process has.
    ///
    /// Returns false where there is one already, or another one.
    pub fn put_due(&self, due: &NewDue, expected_us: Option<i64>) -> Result<bool, JournalError> {
        let time = due
            .moment
            .at(self.sources.now_us())
            .map_or(Cell::Null, Cell::Integer);
        let text = |text: &str| Cell::Text(text.to_owned());
        let body = Cell::Bytes(due.body.as_bytes().to_vec());
        let place = [text(&due.queue), text(&due.lane), body];
        let named = [text(&due.kind), text(&due.name)];
        let (sql, values) = match expected_us {
            None => (
                "INSERT INTO vesper_due (due_us, queue, lane, body, kind, name, run, path, priority, attempts, owner, \
                 fence, lease_until_us) VALUES (?, ?, ?, ?, ?, ?, NULL, '', 0, 0, '', 0, 0) ON CONFLICT DO NOTHING",
                [&[time], &place[..], &named[..]].concat(),
            ),
            Some(expected) => (
                "UPDATE vesper_due SET due_us = ?, queue = ?, lane = ?, body = ?, owner = '', lease_until_us = 0, \
                 fence = fence + 1 WHERE kind = ? AND name = ? AND due_us = ? AND owner = '' \
                 AND run IS NULL",
                [&[time], &place[..], &named[..], &[Cell::Integer(expected)]].concat(),
            ),
        };
        write(&*self.store, |transaction| Ok(transaction.run(sql, &values)? > 0))
    }
}

/// Ends the leases of processes that are gone; returns whether there were any.
fn free_dead(transaction: &mut dyn Transaction, now: i64) -> Result<bool, JournalError> {
    // In one order for all: processes that free the same rows do not wait for each other in a circle.
    let sql = "SELECT DISTINCT owner FROM vesper_due WHERE owner <> '' AND lease_until_us > ? ORDER BY owner";
    let mut has_freed = false;
    for row in transaction.rows(sql, &[Cell::Integer(now)])? {
        let owner = text(row.first())?;
        if is_dead(owner) {
            let sql = "UPDATE vesper_due SET lease_until_us = 0 WHERE owner <> '' AND owner = ?";
            has_freed |= transaction.run(sql, &[Cell::Text(owner.to_owned())])? > 0;
        }
    }
    Ok(has_freed)
}
