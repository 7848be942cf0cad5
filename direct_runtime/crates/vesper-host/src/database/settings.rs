//! Settings of one database, as the configuration has them (docs/how-to/configure-databases.md).

use std::path::PathBuf;
use std::time::Duration;

/// Settings of one database.
#[derive(Clone, Debug)]
pub struct DatabaseSettings {
    pub name: String,
    /// For Postgres: as the configuration has it, and never with a password.
    pub dsn: String,
    /// The file of an SQLite database; None for Postgres.
    pub path: Option<PathBuf>,
    pub password_secret: Option<String>,
    /// Time of an attempt whose step has none.
    pub timeout: Duration,
    pub pool_size: usize,
    pub max_rows: usize,
    /// Length of the largest value that is read from one column of one row.
    pub max_value: usize,
    /// Length of all values of one result together.
    pub max_result: usize,
    pub read_only: bool,
    /// SQLite alone: Postgres always checks them.
    pub foreign_keys: bool,
    /// SQLite alone: a missing file is created.
    pub create: bool,
    /// SQLite alone: time to wait for another transaction.
    pub busy_timeout: Duration,
}
