//! Ledgers in the database of the journal: a row for each budget, changed in one transaction.

use std::fmt;
use std::sync::Arc;

use super::ledger::{Event, Ledger, Outcome, Standing, step};
use super::limits::Budget;
use super::state::StoreError;
use crate::journal::store::{Cell, Store, Transaction, read, write};
use crate::journal::{ErrorKind, JournalError};

/// Budgets that all processes with the same journal share. Leases are judged by the clock of the store.
#[derive(Clone)]
pub struct JournalBudgets(Arc<dyn Store>);

impl fmt::Debug for JournalBudgets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "JournalBudgets({})", self.0.name())
    }
}

impl From<JournalError> for StoreError {
    fn from(error: JournalError) -> Self {
        Self(error.message)
    }
}

impl JournalBudgets {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    pub fn apply(&self, budgets: &[Budget], asker: &Arc<str>, event: Event) -> Result<Outcome, StoreError> {
        Ok(write(&*self.0, |transaction| {
            let now_us = transaction.now_us()?;
            let keys: Vec<Arc<str>> = budgets.iter().map(|each| Arc::clone(&each.key)).collect();
            // Rows are locked for three journeys to the server: all requests of a budget wait for each other here.
            if matches!(event, Event::Reserve { .. }) {
                insert_missing(transaction, &keys)?;
            }
            let locking = transaction.locking();
            let rows = rows_of(transaction, &keys, locking)?;
            let find = |key: &Arc<str>| rows.iter().find(|(name, _)| *name == **key);
            let ledger = |key| find(key).map(|(_, ledger)| ledger.clone()).unwrap_or_default();
            let mut ledgers: Vec<Ledger> = keys.iter().map(ledger).collect();
            let outcome = step(budgets, &mut ledgers, asker, event, now_us);
            update(transaction, budgets, &ledgers, now_us)?;
            Ok(outcome)
        })?)
    }

    pub fn read(&self, keys: &[Arc<str>]) -> Result<Vec<Standing>, StoreError> {
        Ok(read(&*self.0, |transaction| {
            let now_us = transaction.now_us()?;
            let rows = rows_of(transaction, keys, "")?;
            let of = |key: &Arc<str>| rows.iter().find(|(name, _)| *name == **key);
            let standing =
                |key: &Arc<str>| of(key).map_or_else(Standing::default, |row| row.1.standing(now_us));
            Ok(keys.iter().map(standing).collect())
        })?)
    }

    pub fn forget(&self, keys: &[Arc<str>]) -> Result<(), StoreError> {
        let marks = marks(keys.len());
        Ok(write(&*self.0, |transaction| {
            let sql = format!("DELETE FROM vesper_budgets WHERE name IN ({marks})");
            transaction.run(&sql, &names(keys)).map(drop)
        })?)
    }

    /// Deletes counts that are no longer kept.
    pub fn prune(&self) -> Result<(), StoreError> {
        Ok(write(&*self.0, |transaction| {
            let now_us = transaction.now_us()?;
            let sql = "DELETE FROM vesper_budgets WHERE kept_until_us < ?";
            transaction.run(sql, &[Cell::Integer(now_us)]).map(drop)
        })?)
    }
}

/// Adds a row for each name without one, in the order in which rows are locked: two transactions never wait for each
/// other.
fn insert_missing(transaction: &mut dyn Transaction, keys: &[Arc<str>]) -> Result<(), JournalError> {
    let mut keys: Vec<&Arc<str>> = keys.iter().collect();
    keys.sort();
    let rows = vec!["(?, ?, 0)"; keys.len()].join(", ");
    let empty = Ledger::default().to_text();
    let cells = keys
        .iter()
        .flat_map(|key| [Cell::Text(key.to_string()), Cell::Text(empty.clone())]);
    let cells: Vec<Cell> = cells.collect();
    let sql = format!(
        "INSERT INTO vesper_budgets (name, state, kept_until_us) VALUES {rows} ON CONFLICT (name) DO NOTHING"
    );
    transaction.run(&sql, &cells).map(drop)
}

/// Writes all ledgers in one statement.
fn update(
    transaction: &mut dyn Transaction,
    budgets: &[Budget],
    ledgers: &[Ledger],
    now_us: i64,
) -> Result<(), JournalError> {
    let name = |budget: &Budget| Cell::Text(budget.key.to_string());
    let mut cells = Vec::with_capacity(5 * budgets.len());
    for (budget, ledger) in budgets.iter().zip(ledgers) {
        cells.extend([name(budget), Cell::Text(ledger.to_text())]);
    }
    for budget in budgets {
        let kept_us = budget.kept_us.map(|kept_us| now_us.saturating_add(kept_us));
        cells.extend([name(budget), kept_us.map_or(Cell::Null, Cell::Integer)]);
    }
    cells.extend(budgets.iter().map(name));
    let cases = |case: &str| vec![case; budgets.len()].join(" ");
    let sql = format!(
        "UPDATE vesper_budgets SET state = CASE name {} END, kept_until_us = CASE name {} END WHERE name IN ({})",
        cases("WHEN ? THEN ?"),
        cases("WHEN ? THEN CAST(? AS BIGINT)"),
        marks(budgets.len()),
    );
    transaction.run(&sql, &cells).map(drop)
}

fn rows_of(
    transaction: &mut dyn Transaction,
    keys: &[Arc<str>],
    locking: &str,
) -> Result<Vec<(String, Ledger)>, JournalError> {
    let marks = marks(keys.len());
    let sql =
        format!("SELECT name, state FROM vesper_budgets WHERE name IN ({marks}) ORDER BY name{locking}");
    let rows = transaction.rows(&sql, &names(keys))?;
    let read = |row: Vec<Cell>| match row.as_slice() {
        [name, state] => {
            let ledger = Ledger::from_text(state.text()?).ok_or_else(changed)?;
            Ok((name.text()?.to_owned(), ledger))
        }
        _ => Err(changed()),
    };
    rows.into_iter().map(read).collect()
}

fn names(keys: &[Arc<str>]) -> Vec<Cell> {
    keys.iter().map(|key| Cell::Text(key.to_string())).collect()
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn changed() -> JournalError {
    JournalError::new(
        ErrorKind::Journal,
        "a row of `vesper_budgets` has another form: somebody changed it",
    )
}
