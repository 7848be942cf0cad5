//! Ledgers in one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::ledger::{Event, Ledger, Outcome, Standing, step};
use super::limits::Budget;
use crate::per_process::PerProcess;

/// Budgets that are counted in each process; a forked child starts with nothing used.
#[derive(Debug, Default)]
pub struct MemoryBudgets(PerProcess<Mutex<HashMap<Arc<str>, Ledger>>>);

impl MemoryBudgets {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<Arc<str>, Ledger>) -> T) -> T {
        // A panic leaves ledgers as they were before the step, or after it.
        work(&mut self.0.get().lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn apply(&self, budgets: &[Budget], asker: &Arc<str>, event: Event, now_us: i64) -> Outcome {
        self.with(|found| {
            let taken = budgets
                .iter()
                .map(|each| found.remove(&each.key).unwrap_or_default());
            let mut ledgers: Vec<Ledger> = taken.collect();
            let outcome = step(budgets, &mut ledgers, asker, event, now_us);
            let keys = budgets.iter().map(|each| Arc::clone(&each.key));
            found.extend(keys.zip(ledgers));
            outcome
        })
    }

    pub fn read(&self, keys: &[Arc<str>], now_us: i64) -> Vec<Standing> {
        self.with(|found| {
            let of = |key| found.get(key).map(|ledger: &Ledger| ledger.standing(now_us));
            keys.iter().map(|key| of(key).unwrap_or_default()).collect()
        })
    }

    pub fn forget(&self, keys: &[Arc<str>]) {
        self.with(|found| keys.iter().for_each(|key| drop(found.remove(key))));
    }
}
