//! The journal as the run loop and the commands know it (docs/spec/journal.md).

pub mod audit;
pub mod batch;
pub mod begin;
pub(crate) mod cells;
pub mod due;
pub mod execution_id;
mod keyed;
pub mod limits;
pub mod lines;
mod metrics;
mod moving;
pub mod overview;
pub mod owner;
pub mod postgres;
mod pruning;
pub mod reading;
pub mod run;
pub mod schema;
pub mod sealing;
pub mod sqlite;
pub mod store;
pub(crate) mod stored_line;
mod verifying;
pub mod writing;

use std::fmt;

use crate::journal::due::{Wait, Waited};

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Start,
    Intent,
    Result,
    Failed,
    InDoubt,
    Resolved,
    Value,
    State,
    Contract,
    Divergence,
    Handoff,
    End,
}

impl Kind {
    /// Returns the name of the kind in a line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "START",
            Self::Intent => "INTENT",
            Self::Result => "RESULT",
            Self::Failed => "FAILED",
            Self::InDoubt => "IN_DOUBT",
            Self::Resolved => "RESOLVED",
            Self::Value => "VALUE",
            Self::State => "STATE",
            Self::Contract => "CONTRACT",
            Self::Divergence => "DIVERGENCE",
            Self::Handoff => "HANDOFF",
            Self::End => "END",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "START" => Self::Start,
            "INTENT" => Self::Intent,
            "RESULT" => Self::Result,
            "FAILED" => Self::Failed,
            "IN_DOUBT" => Self::InDoubt,
            "RESOLVED" => Self::Resolved,
            "VALUE" => Self::Value,
            "STATE" => Self::State,
            "CONTRACT" => Self::Contract,
            "DIVERGENCE" => Self::Divergence,
            "HANDOFF" => Self::Handoff,
            "END" => Self::End,
            _ => return None,
        })
    }
}

/// Status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Running,
    InDoubt,
    Ended,
    /// A wait is committed: the run is nowhere but in the journal.
    Waiting,
    /// The run has not begun: a worker takes it over.
    Queued,
}

impl Status {
    /// Returns the name of the status in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::InDoubt => "in_doubt",
            Self::Ended => "ended",
            Self::Waiting => "waiting",
            Self::Queued => "queued",
        }
    }

    /// Returns the status with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        use Status::{Ended, InDoubt, Queued, Running, Waiting};
        [Running, InDoubt, Ended, Waiting, Queued]
            .into_iter()
            .find(|each| each.name() == name)
    }
}

/// An entry to be written. `body` is the typed JSON of a mapping, in its canonical spelling.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub kind: Kind,
    pub path: &'a str,
    pub effect: &'a str,
    pub class: &'a str,
    pub key: Option<&'a str>,
    /// Digest of the request; empty where there is none.
    pub digest: &'a str,
    /// Microseconds since 1970.
    pub at_us: i64,
    pub body: &'a str,
}

/// An entry that was read, with its place in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub kind: Kind,
    pub path: String,
    pub effect: String,
    pub class: String,
    pub key: Option<String>,
    pub digest: String,
    pub at_us: i64,
    /// Typed JSON of a mapping; `{}` where the body was erased.
    pub body: String,
    pub seq: u64,
    pub branch: String,
    pub hash: [u8; 32],
    /// True where the key of the body was deleted.
    pub is_erased: bool,
}

/// Class of a journal error; Python raises the exception of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The journal cannot be written or read.
    Journal,
    /// A body is larger than the journal takes.
    TooLarge,
    /// The run belongs to another process by now.
    Fenced,
    /// The run cannot be taken over.
    NotTaken,
    /// The journal has no such execution.
    UnknownExecution,
    /// A run waits whose type the sender of a signal has not checked.
    Unchecked,
    /// Another run has the key of this one: no error of the journal. The message is the id of that run.
    KeyTaken,
}

/// Error of the journal; the message is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalError {
    pub kind: ErrorKind,
    pub message: String,
}

impl JournalError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for JournalError {}

/// A run that this process owns. One thread at a time writes it; another may call `renew` meanwhile.
///
/// `append` only remembers. `commit` makes everything appended durable, or nothing of it, and blocks until then.
pub trait Run: Send + Sync {
    fn execution(&self) -> &str;
    fn fence(&self) -> i64;

    /// Returns the entries of a run that was taken over; none for a new run.
    fn recorded(&self) -> &[Stored];

    /// Remembers an entry. A body that is too large is an error, and nothing is remembered.
    fn append(&self, entry: &Entry<'_>) -> Result<(), JournalError>;

    /// Returns the digest of a request from its text: `[effect,class,fixed,arguments,key]` in typed JSON.
    fn digest(&self, text: &str) -> String;

    /// Remembers a line of the audit log: typed JSON with `seq` 0. It is written with the next commit, or not at all.
    fn audit(&self, event: &str) -> Result<(), JournalError>;

    /// Makes everything appended durable. Fails with `Fenced` where the run belongs to another process.
    fn commit(&self, status: Status, outcome: Option<&str>) -> Result<(), JournalError>;

    /// Commits a wait with everything appended: the run waits then, or goes on with a signal that was kept for it.
    fn wait(&self, wait: Wait) -> Result<Waited, JournalError>;

    /// Prolongs the lease, as commits do.
    fn renew(&self) -> Result<(), JournalError>;
}
