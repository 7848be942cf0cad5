//! Database effects on SQLite and Postgres: queries, writes with receipts, and state machines.
//!
//! A `Backend` begins a `Session`, which is one transaction. Receipts, state machines and the rules of values are
//! written once, for every kind of session. Statements of nodes are read by the checker of SQL (`SqlReader`), which
//! the language has, once for each text.

mod deadline;
mod forms;
mod performer;
mod pool;
mod postgres;
mod receipts;
mod roles;
mod rows;
mod session;
mod settings;
mod sqlite;
mod statement;
mod states;
mod values;

pub use deadline::Deadline;
pub use performer::{Act, Databases, finish};
pub use postgres::{LOCK_TABLES, PostgresBackend, ServerReport, check_texts};
pub use receipts::{RECEIPTS, receipt_name};
pub use session::{Answer, Backend, Joiner, Kind, Purpose, Rows, Session, SessionError, Table};
pub use settings::DatabaseSettings;
pub use sqlite::{Library, SqliteBackend, SqliteError, affinity, failure as sqlite_failure};
pub use statement::{Facts, Limits, Piece, Place, PureNames, SqlReader, Statement, Target};
pub use states::{HISTORY, Machines, STATES, StateMachines};
pub use values::{Cell, Column, ExactDecimal, RowReader, Values};
