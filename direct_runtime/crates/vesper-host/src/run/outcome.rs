//! Outcomes of runs, and errors that leave a run without one.

use std::fmt;
use std::sync::Arc;

use vesper_ir::{ErrorCode, FailureCode};

use crate::effect::Broken;
use crate::journal::JournalError;
use crate::run::bodies::{body_of, quoted};
use crate::run::contract::Ended;

/// Outcome of a run: that of its execution, or one that the run loop gave it.
#[derive(Debug)]
pub enum Outcome {
    Ended {
        ended: Ended,
        /// The message of the request that failed with the code of the outcome.
        why: Option<String>,
    },
    /// A capability that was not granted, with the rule that denies it.
    Denied { capability: Arc<str>, why: String },
    /// A limit of the run: `timeout_seconds`, `deadline`, `memory_limit_mb`, `cancelled` or `max_body`.
    LimitHit(&'static str),
}

impl Outcome {
    /// Returns the name of the kind in the journal.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ended { ended, .. } => ended.kind,
            Self::Denied { .. } => "denied",
            Self::LimitHit(_) => "limit_hit",
        }
    }

    /// Returns true where the inputs were rejected: nothing happened that a journal should contain.
    pub fn never_began(&self) -> bool {
        let bad_input = FailureCode::Known(ErrorCode::BadInput);
        matches!(self, Self::Ended { ended, .. } if ended.failed == Some((bad_input, false)))
    }

    /// Returns the body of the END of a run that took this time.
    pub(super) fn record(&self, duration_us: i64, is_slow: bool) -> String {
        let mut members = match self {
            Self::Ended { ended, .. } => ended.record.clone(),
            Self::Denied { capability, why } => {
                vec![("capability", quoted(capability)), ("why", quoted(why))]
            }
            Self::LimitHit(limit) => vec![("limit", quoted(limit))],
        };
        members.push(("outcome", quoted(self.kind())));
        members.push(("duration_us", duration_us.to_string()));
        if is_slow {
            members.push(("slow", String::from("true")));
        }
        body_of(members)
    }

    /// Returns the body of the CONTRACT, where a clause was broken.
    pub(super) fn broken_clause(&self) -> Option<String> {
        match self {
            Self::Ended { ended, .. } if ended.kind == "contract_broken" => {
                Some(body_of(ended.record.clone()))
            }
            _ => None,
        }
    }
}

/// A run that waits.
#[derive(Debug)]
pub struct Waiting {
    pub execution: String,
    pub node_id: String,
    pub path: String,
    /// `sleep`, `signal` or `interrupt`.
    pub kind: &'static str,
    /// The signal, or the kind of the interrupt.
    pub name: String,
    /// Microseconds since 1970; None waits without an end.
    pub due_us: Option<i64>,
}

/// Error that leaves a run without an outcome.
#[derive(Debug)]
pub enum RunError {
    /// The journal cannot be written; the run is left to recovery.
    Journal(JournalError),
    /// It is unknown whether the request at this path was performed.
    InDoubt {
        path: String,
        why: String,
        execution: String,
    },
    /// The run waits: it is no error, and it is finished when it is woken.
    Waiting(Box<Waiting>),
    /// An exception of the engine or of the application.
    Broken(Broken),
    /// A request was made without the handles of its capabilities: a bug.
    NoHandle(String),
    /// The engine broke the protocol of executions, or a recorded value does not fit: the run ends with a fault.
    Fault(String),
}

impl From<JournalError> for RunError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<Broken> for RunError {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(error) => error.fmt(formatter),
            Self::InDoubt { path, why, execution } => {
                write!(formatter, "{path}: {why} (execution {execution})")
            }
            Self::Waiting(wait) => write!(formatter, "execution {} waits at {}", wait.execution, wait.path),
            Self::Broken(_) => formatter.write_str("an exception ended the run"),
            Self::NoHandle(text) | Self::Fault(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for RunError {}
