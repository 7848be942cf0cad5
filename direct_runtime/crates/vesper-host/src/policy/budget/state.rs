//! The place where budgets are counted.

use std::fmt;
use std::sync::Arc;

use super::journal_state::JournalBudgets;
use super::ledger::{Event, Outcome, Standing};
use super::limits::Budget;
use super::memory_state::MemoryBudgets;
use super::redis_state::RedisBudgets;
use crate::runtime::blocking;

/// Store of budgets that cannot be used, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError(pub String);

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}

/// The count of budgets.
#[derive(Debug)]
pub enum BudgetState {
    Memory(MemoryBudgets),
    Redis(Box<RedisBudgets>),
    Journal(JournalBudgets),
}

impl BudgetState {
    /// Applies an event of one request to all budgets around it, or to none. `now_us` is of a clock that does not go
    /// back, for ledgers in memory; other stores have their own.
    pub async fn apply(
        &self,
        budgets: &[Budget],
        asker: &Arc<str>,
        event: Event,
        now_us: i64,
    ) -> Result<Outcome, StoreError> {
        match self {
            Self::Memory(state) => Ok(state.apply(budgets, asker, event, now_us)),
            Self::Redis(state) => state.apply(budgets, asker, event).await,
            Self::Journal(state) => blocking(|| state.apply(budgets, asker, event)),
        }
    }

    /// Returns the counts of these keys.
    pub async fn read(&self, keys: &[Arc<str>], now_us: i64) -> Result<Vec<Standing>, StoreError> {
        match self {
            Self::Memory(state) => Ok(state.read(keys, now_us)),
            Self::Redis(state) => state.read(keys).await,
            Self::Journal(state) => blocking(|| state.read(keys)),
        }
    }

    /// Deletes counts that are not needed any more.
    pub async fn forget(&self, keys: &[Arc<str>]) -> Result<(), StoreError> {
        match self {
            Self::Memory(state) => {
                state.forget(keys);
                Ok(())
            }
            Self::Redis(state) => state.forget(keys).await,
            Self::Journal(state) => blocking(|| state.forget(keys)),
        }
    }

    /// Deletes counts whose time is over, where the store does not on its own.
    pub fn prune(&self) -> Result<(), StoreError> {
        match self {
            Self::Journal(state) => state.prune(),
            Self::Memory(_) | Self::Redis(_) => Ok(()),
        }
    }

    /// Closes connections. The state stays usable.
    pub fn close(&self) {
        if let Self::Redis(state) = self {
            state.close();
        }
    }
}
