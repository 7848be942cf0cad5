//! Rows of a queue that may start: fair among its lanes, within the limits of the queue and of each lane.
//!
//! A lane has the rows of one key. A claim goes round the lanes from the one behind `Claim::after_lane`, so that a long
//! lane keeps no other waiting; within a lane rows start by priority, then by time. Leased rows count as running. The
//! state of a rate is a row of the kind `rate` whose time is the theoretical arrival time of the next start.
//! All of it happens in the transaction of the claim, which excludes others of the same queue: limits are exact.

use std::collections::{BTreeMap, HashMap};

use crate::journal::JournalError;
use crate::journal::begin::StoreJournal;
use crate::journal::cells::{integer, text};
use crate::journal::due::claiming::Claim;
use crate::journal::due::{COLUMNS, Due, skip_locked};
use crate::journal::store::{Cell, Transaction, read};
use crate::policy::rate_limit::{Moment, RateLimit, Rule};

/// Lanes that one claim visits; the next claim continues behind them.
const MAX_VISITED: usize = 4096;
/// Lanes that one statement lists.
const PAGE: usize = 256;
/// Time within which any process may have let rows start.
const LEAST_AHEAD_US: i64 = 60_000_000;
const READY: &str = "kind = 'queued' AND queue = ? AND due_us <= ? AND lease_until_us <= ?";
const RATES: &str = "kind <> 'queued' AND kind = 'rate' AND run IS NULL AND name >= ? AND name < ?";

/// Number of rows of a queue, or of one of its lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depth {
    pub queue: String,
    /// Empty where all lanes are counted together.
    pub lane: String,
    /// All rows.
    pub count: i64,
    /// Rows that are due and wait for a worker.
    pub waiting: i64,
    /// Rows that are not due yet.
    pub delayed: i64,
    pub running: i64,
    /// Time since which the oldest row is due and waits.
    pub oldest_us: Option<i64>,
}

/// Room that the limits leave.
struct Room {
    left: usize,
    lane_limit: usize,
    leased: HashMap<String, usize>,
    queue_rule: Option<Rule>,
    queue_rate: Option<RateLimit>,
    lane_rule: Option<Rule>,
    lane_rates: HashMap<String, RateLimit>,
    /// Names of rates that changed.
    changed: BTreeMap<String, i64>,
    now: i64,
    before: i64,
}

impl Room {
    /// Reads the leases and rates of a queue.
    fn read(
        transaction: &mut dyn Transaction,
        claim: &Claim,
        queue: &str,
        now: i64,
    ) -> Result<Self, JournalError> {
        let mut room = Self {
            left: claim.limit,
            lane_limit: claim.lane_limit.unwrap_or(usize::MAX),
            leased: HashMap::new(),
            queue_rule: claim.queue_rate,
            queue_rate: claim.queue_rate.map(RateLimit::new),
            lane_rule: claim.lane_rate,
            lane_rates: HashMap::new(),
            changed: BTreeMap::new(),
            now,
            before: now.saturating_add(claim.ahead_us.max(0)).saturating_add(1),
        };
        if claim.lane_limit.is_some() || claim.queue_limit.is_some() {
            let sql = "SELECT lane, COUNT(*) FROM vesper_due WHERE owner <> '' AND kind = 'queued' AND queue = ? \
                 AND lease_until_us > ? GROUP BY lane";
            let mut running = 0;
            for row in transaction.rows(sql, &[Cell::Text(queue.to_owned()), Cell::Integer(now)])? {
                let count = usize::try_from(integer(row.get(1))?).unwrap_or_default();
                running += count;
                room.leased.insert(text(row.first())?.to_owned(), count);
            }
            let limit = claim.queue_limit.unwrap_or(usize::MAX);
            room.left = room.left.min(limit.saturating_sub(running));
        }
        if claim.queue_rate.is_some() || claim.lane_rate.is_some() {
            room.read_rates(transaction, queue)?;
        }
        Ok(room)
    }

    fn read_rates(&mut self, transaction: &mut dyn Transaction, queue: &str) -> Result<(), JournalError> {
        let names = [
            Cell::Text(rate_name(queue, "")),
            Cell::Text(format!("{queue}\u{b}")),
        ];
        let sql = format!("SELECT name, due_us FROM vesper_due WHERE {RATES}");
        let mut has_idle = false;
        for row in transaction.rows(&sql, &names)? {
            let (name, arrival_us) = (text(row.first())?, integer(row.get(1))?);
            has_idle |= arrival_us <= self.now;
            let lane = name.get(queue.len() + 1..).unwrap_or_default();
            let is_of_queue = lane.is_empty() && self.queue_rate.is_some();
            let rule = if is_of_queue {
                self.queue_rule
            } else {
                self.lane_rule
            };
            let Some(rule) = rule else { continue };
            let furthest_us = self.furthest_us(&rule);
            if arrival_us > furthest_us {
                self.changed.insert(name.to_owned(), furthest_us);
            }
            let rate = RateLimit::new(rule).resumed(arrival_us.min(furthest_us));
            if is_of_queue {
                self.queue_rate = Some(rate);
            } else {
                self.lane_rates.insert(lane.to_owned(), rate);
            }
        }
        if has_idle {
            let sql = format!("DELETE FROM vesper_due WHERE {RATES} AND due_us <= ?");
            transaction.run(&sql, &[&names[..], &[Cell::Integer(self.now)]].concat())?;
        }
        Ok(())
    }

    /// Returns the latest arrival that a claim can have left; a later one is of a clock that was wrong.
    fn furthest_us(&self, rule: &Rule) -> i64 {
        let interval_us = rule.burst.saturating_mul(rule.per_us) / rule.limit.max(1) + 1;
        let ahead_us = (self.before - self.now).max(LEAST_AHEAD_US);
        self.now.saturating_add(ahead_us).saturating_add(interval_us)
    }

    /// Returns the number of rows of a lane that its limit of concurrency lets start.
    fn of_lane(&self, lane: &str) -> usize {
        let running = self.leased.get(lane).copied().unwrap_or_default();
        self.left.min(self.lane_limit.saturating_sub(running))
    }

    /// Takes a place for a row; returns the moment at which it starts, None where a limit is reached.
    fn take(&mut self, queue: &str, lane: &str) -> Option<i64> {
        if self.of_lane(lane) == 0 {
            return None;
        }
        let mut start = self.now;
        let own = self.lane_rule.map(|rule| {
            self.lane_rates
                .get(lane)
                .copied()
                .unwrap_or_else(|| RateLimit::new(rule))
        });
        if let Some(rate) = own {
            start = granted(&rate, self.before, start)?.0;
        }
        if let Some(rate) = self.queue_rate {
            let (at, after) = granted(&rate, self.before, start)?;
            start = at;
            self.queue_rate = Some(after);
            self.changed.insert(rate_name(queue, ""), after.arrival_us());
        }
        if let Some(rate) = own {
            let (_, after) = granted(&rate, self.before, start)?;
            self.lane_rates.insert(lane.to_owned(), after);
            self.changed.insert(rate_name(queue, lane), after.arrival_us());
        }
        self.left -= 1;
        *self.leased.entry(lane.to_owned()).or_default() += 1;
        Some(start)
    }

    fn write_rates(&self, transaction: &mut dyn Transaction) -> Result<(), JournalError> {
        let sql = "INSERT INTO vesper_due (due_us, kind, run, path, name, queue, lane, priority, attempts, owner, fence, \
            lease_until_us, body) VALUES (?, 'rate', NULL, '', ?, '', '', 0, 0, '', 0, 0, ?) \
            ON CONFLICT (kind, name) WHERE run IS NULL DO UPDATE SET due_us = excluded.due_us";
        for (name, arrival_us) in &self.changed {
            let values = [
                Cell::Integer(*arrival_us),
                Cell::Text(name.clone()),
                Cell::Bytes(Vec::new()),
            ];
            transaction.run(sql, &values)?;
        }
        Ok(())
    }
}

fn granted(rate: &RateLimit, before: i64, now: i64) -> Option<(i64, RateLimit)> {
    match rate.ask(before, now) {
        Moment::Granted { at_us, after } => Some((at_us, after)),
        Moment::Refused(_) => None,
    }
}

/// Returns the name of a rate: that of a queue has no lane.
fn rate_name(queue: &str, lane: &str) -> String {
    format!("{queue}\n{lane}")
}

impl StoreJournal {
    /// Returns the rows of a queue that start now or within `ahead_us`; the time of each is that of its start.
    pub(super) fn startable(
        &self,
        transaction: &mut dyn Transaction,
        claim: &Claim,
        queue: &str,
        now: i64,
    ) -> Result<Vec<Due>, JournalError> {
        if is_paused(transaction, queue)? {
            return Ok(Vec::new());
        }
        let mut room = Room::read(transaction, claim, queue, now)?;
        let mut found = Vec::new();
        let (mut after, mut is_wrapped, mut visited) = (claim.after_lane.clone(), false, 0);
        while room.left > 0 && visited < MAX_VISITED {
            let lanes = lanes(transaction, queue, now, after.as_deref())?;
            let is_last = lanes.len() < PAGE;
            visited += lanes.len();
            after = lanes.last().cloned().or(after);
            let end = claim.after_lane.as_ref().filter(|_| is_wrapped);
            let round: Vec<String> = lanes
                .into_iter()
                .filter(|lane| end.is_none_or(|end| lane <= end) && room.of_lane(lane) > 0)
                .collect();
            self.go_round(transaction, queue, &round, &mut room, &mut found)?;
            if is_last && (is_wrapped || claim.after_lane.is_none()) {
                break;
            }
            if is_last {
                (after, is_wrapped) = (None, true);
            }
        }
        room.write_rates(transaction)?;
        Ok(found)
    }

    /// Takes rows of these lanes in turns, one of each.
    fn go_round(
        &self,
        transaction: &mut dyn Transaction,
        queue: &str,
        lanes: &[String],
        room: &mut Room,
        found: &mut Vec<Due>,
    ) -> Result<(), JournalError> {
        let share = room.left.div_ceil(lanes.len().max(1));
        let mut waiting = Vec::with_capacity(lanes.len());
        for lane in lanes.iter().take(room.left) {
            let count = room.of_lane(lane).min(share);
            waiting.push(
                self.rows_of_lane(transaction, queue, lane, room.now, count)?
                    .into_iter(),
            );
        }
        while !waiting.is_empty() && room.left > 0 {
            waiting.retain_mut(|rows| {
                let Some(mut due) = rows.next() else {
                    return false;
                };
                let start = room.take(queue, &due.lane);
                let is_taken = start.is_some();
                if let Some(start) = start {
                    due.due_us = Some(start);
                    due.start_in_us = start - room.now;
                    found.push(due);
                }
                is_taken
            });
        }
        Ok(())
    }

    fn rows_of_lane(
        &self,
        transaction: &mut dyn Transaction,
        queue: &str,
        lane: &str,
        now: i64,
        count: usize,
    ) -> Result<Vec<Due>, JournalError> {
        // Never waits for a lock: a run that ends or is cancelled is locked before its row.
        let locking = skip_locked(transaction, " OF d, e");
        let sql = format!(
            "SELECT {COLUMNS} FROM vesper_due d JOIN vesper_executions e ON e.id = d.run WHERE d.kind = 'queued' AND d.queue = ? AND d.lane = ? AND d.due_us <= ? \
             AND d.lease_until_us <= ? ORDER BY d.priority DESC, d.due_us, d.id LIMIT ?{locking}"
        );
        let values = [
            Cell::Text(queue.to_owned()),
            Cell::Text(lane.to_owned()),
            Cell::Integer(now),
            Cell::Integer(now),
            Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX)),
        ];
        let rows = transaction.rows(&sql, &values)?;
        rows.iter().map(|row| self.read_due(transaction, row)).collect()
    }

    /// Returns the number of rows of each queue; of each lane of one queue where it is named, the longest first.
    pub fn queue_depths(&self, queue: Option<&str>, limit: i64) -> Result<Vec<Depth>, JournalError> {
        let (lane, condition, group) = match queue {
            None => ("''", "", "queue"),
            Some(_) => ("lane", " AND queue = ?", "queue, lane"),
        };
        let sql = format!(
            "SELECT queue, {lane}, COUNT(*) AS size, SUM(CASE WHEN owner = '' AND due_us <= ? THEN 1 ELSE 0 END), \
             SUM(CASE WHEN owner = '' AND due_us > ? THEN 1 ELSE 0 END), SUM(CASE WHEN owner <> '' THEN 1 ELSE 0 END), \
             MIN(CASE WHEN owner = '' AND due_us <= ? THEN due_us END) \
             FROM vesper_due WHERE kind = 'queued'{condition} GROUP BY {group} ORDER BY size DESC, queue LIMIT ?"
        );
        let rows = read(&*self.store, |transaction| {
            let now = Cell::Integer(transaction.now_us()?);
            let mut values = vec![now.clone(), now.clone(), now];
            values.extend(queue.map(|queue| Cell::Text(queue.to_owned())));
            values.push(Cell::Integer(limit));
            transaction.rows(&sql, &values)
        })?;
        rows.iter()
            .map(|row| {
                Ok(Depth {
                    queue: text(row.first())?.to_owned(),
                    lane: text(row.get(1))?.to_owned(),
                    count: integer(row.get(2))?,
                    waiting: integer(row.get(3))?,
                    delayed: integer(row.get(4))?,
                    running: integer(row.get(5))?,
                    oldest_us: match row.get(6) {
                        Some(Cell::Null) => None,
                        cell => Some(integer(cell)?),
                    },
                })
            })
            .collect()
    }
}

fn is_paused(transaction: &mut dyn Transaction, queue: &str) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM vesper_due WHERE kind = 'pause' AND name = ? AND run IS NULL";
    Ok(!transaction.rows(sql, &[Cell::Text(queue.to_owned())])?.is_empty())
}

/// Returns lanes with rows that are due and free, in their order: a page of those behind another.
fn lanes(
    transaction: &mut dyn Transaction,
    queue: &str,
    now: i64,
    after: Option<&str>,
) -> Result<Vec<String>, JournalError> {
    // The index of queues finds the next lane without a look at the rows of this one.
    let first = if after.is_some() { " AND lane > ?" } else { "" };
    let sql = format!(
        "WITH RECURSIVE lanes (lane) AS (SELECT MIN(lane) FROM vesper_due WHERE {READY}{first} UNION ALL \
         SELECT (SELECT MIN(lane) FROM vesper_due WHERE {READY} AND lane > lanes.lane) FROM lanes \
         WHERE lanes.lane IS NOT NULL) SELECT lane FROM lanes WHERE lane IS NOT NULL LIMIT {PAGE}"
    );
    let ready = [
        Cell::Text(queue.to_owned()),
        Cell::Integer(now),
        Cell::Integer(now),
    ];
    let mut values = ready.to_vec();
    values.extend(after.map(|after| Cell::Text(after.to_owned())));
    values.extend(ready);
    let rows = transaction.rows(&sql, &values)?;
    rows.iter().map(|row| Ok(text(row.first())?.to_owned())).collect()
}
