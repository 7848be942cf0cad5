//! Budgets: how much money, tokens, calls and time the requests to models may take (docs/spec/budgets.md).
//!
//! A request is inside any number of budgets. `reserve` sets its worst case aside in all of them or in none; `settle`
//! replaces that by what it took, `release` gives it back where nothing was charged. A claim that is not settled within
//! its lease, because its process died, is settled at its worst case. `step` is the machine, without clock, thread or
//! randomness; `state` keeps ledgers in memory, in Redis, or in the database of the journal.

mod amounts;
mod journal_state;
mod ledger;
mod limits;
mod memory_state;
mod read;
mod redis_state;
mod state;

pub use amounts::{Amounts, MAX_AMOUNT, MAX_USD, Resource};
pub use journal_state::JournalBudgets;
pub use ledger::{Event, Ledger, MIN_TIME_US, Notice, NoticeKind, Outcome, Refusal, Standing, step};
pub use limits::{Budget, Limit};
pub use memory_state::MemoryBudgets;
pub use read::BudgetReader;
pub use redis_state::RedisBudgets;
pub use state::{BudgetState, StoreError};
pub use vesper_ir::budget::OnExceeded;
