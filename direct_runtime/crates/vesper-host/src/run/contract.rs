//! The contract between the run loop and its callers: engines, plans, performers and those who watch a run.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use vesper_interp::{Completion, Request};
use vesper_ir::budget::Budget;
use vesper_ir::{Effect, EffectClass, FailureCode, Type, Value};

pub use crate::effect::Broken;
use crate::effect::{ChunkSink, Failure, Performer, Secrets};
use crate::journal::{Entry, JournalError};
use crate::model::Catalog;
use crate::run::outcome::Outcome;

pub use crate::run::budgets::AmbientBudget;

/// State of an execution after it was advanced.
#[derive(Debug)]
pub enum Step {
    /// The requests of one wave, in written order.
    Blocked(Vec<Request>),
    Done(Ended),
}

/// Outcome of an execution, in the form that the journal needs. `payload` is the outcome in the form of its engine.
#[derive(Debug)]
pub struct Ended {
    /// The kind of the outcome: `returned`, `declared_error`, `failed`, `limit_hit` and so on.
    pub kind: &'static str,
    /// Members of the END's body besides `outcome`, each with its typed JSON: `value`; `code` and `at`; `phase`, `index`
    /// and `values`; `limit`; `message`.
    pub record: Vec<(&'static str, String)>,
    /// The code of a failure, and whether it has a place; None for other outcomes.
    pub failed: Option<(FailureCode, bool)>,
    pub payload: Box<dyn Any + Send>,
}

/// Reason why an execution cannot be advanced any more.
#[derive(Debug)]
pub enum Halted {
    /// The engine raised an exception.
    Broken(Broken),
    /// The engine that should continue would not have made a request that was performed. Nothing more may be performed.
    Parted {
        performed: Box<Request>,
        /// The request that it makes instead; None where it ends.
        asked: Option<Box<Request>>,
    },
}

/// An execution of any engine.
pub trait Execution: Send {
    /// Continues with the completions of the last wave, in written order; none at the start.
    fn advance(&mut self, completions: Vec<(u64, Completion)>) -> Result<Step, Halted>;

    /// Receives the id of the run before the first advance.
    fn begin(&mut self, _execution: &str) {}

    /// Returns the body of a HANDOFF, once, where another engine continues since the last advance.
    fn handed_over(&mut self) -> Option<String> {
        None
    }

    /// Learns that it is not advanced any more, though it has not ended: with the outcome that the run loop gave it, if
    /// it gave one. A future of the loop that is dropped does not call it: its caller does.
    fn stop(&mut self, _outcome: Option<&Outcome>) {}
}

/// Setting of a policy, as the IR holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    Integer(i64),
    Text(Arc<str>),
    Texts(Vec<Arc<str>>),
    Budgets(Vec<Budget>),
}

/// A request of a node, known before it is made.
#[derive(Clone, Debug)]
pub struct Plan {
    pub node_id: Arc<str>,
    pub effect: Effect,
    pub target: Arc<str>,
    pub class: EffectClass,
    /// The type of the completion's value.
    pub result: Type,
    pub arguments: Vec<(Arc<str>, Type)>,
    pub fixed: Vec<(Arc<str>, Arc<str>)>,
    pub capabilities: Vec<Arc<str>>,
    /// True inside an error handler: it is tried even where the time is up.
    pub in_handler: bool,
    /// Time of one attempt.
    pub timeout: Option<Duration>,
    /// True where arguments, key or answer hold sensitive data.
    pub is_sensitive: bool,
    /// The policies of the step, over those of its node.
    pub policy: Arc<HashMap<Arc<str>, Setting>>,
    /// The name under which limits that runs share are counted.
    pub limits_name: Arc<str>,
}

/// The requests of a node by path without iterations, with what the node says of its runs.
#[derive(Debug, Default)]
pub struct Plans {
    pub requests: HashMap<Arc<str>, Plan>,
    /// Time of a run in all; policy `total_timeout_us`.
    pub total_timeout: Option<Duration>,
    /// Bytes of values that may enter a run; policy `memory_limit_mb`.
    pub memory: Option<u64>,
    /// Time after which a run is called slow; policy `expected_latency_ms`.
    pub expected: Option<Duration>,
}

impl Plans {
    /// Returns the plan of a request by its path: `pay[1]/charge[2]` is the step `charge` of the node that the step
    /// `pay` calls.
    pub fn of(&self, path: &str) -> Option<&Plan> {
        if let Some(found) = self.requests.get(path) {
            return Some(found);
        }
        let mut plain = String::with_capacity(path.len());
        let mut is_iteration = false;
        for character in path.chars() {
            match character {
                '[' => is_iteration = true,
                ']' => is_iteration = false,
                _ if is_iteration => {}
                other => plain.push(other),
            }
        }
        self.requests.get(&*plain)
    }
}

/// Performers of effects, by effect and target.
pub trait Performers: Send + Sync {
    /// Returns the performer of an effect; the failure tells what is not configured. The operator learns of it here,
    /// once.
    fn performer(&self, plan: &Plan) -> Result<Arc<dyn Performer>, Failure>;

    /// Returns the time for which the other side remembers a key; None is for ever.
    fn key_ttl(&self, plan: &Plan) -> Option<Duration>;

    /// Returns the text without any secret that was read here.
    fn redact(&self, text: String) -> String;

    fn secrets(&self) -> &dyn Secrets;

    /// Returns the listener to the answers of a run while they are under way; None where nothing listens.
    fn sink(&self, _execution: &str) -> Option<Arc<dyn ChunkSink>> {
        None
    }

    /// Returns the configured models, for what a request can cost.
    fn models(&self) -> Option<&Catalog> {
        None
    }
}

/// Completion of a request that is copied from a trace.
#[derive(Clone, Debug)]
pub struct Copied {
    pub result: Result<Value, Failure>,
    /// The id of the trace.
    pub replayed: Arc<str>,
}

/// Report about a budget of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetNotice<'a> {
    /// `warned` or `alerted`.
    pub kind: &'static str,
    pub path: &'a str,
    pub budget: &'a str,
    pub text: String,
}

/// Watcher of a run.
pub trait Watcher: Send + Sync {
    /// Learns of a request that changed something, once it is settled: for the audit.
    fn settled(&self, _request: &Request, _entry: &Entry<'_>) {}

    /// Returns a known completion for a request, which is then not performed: for replays. An exception ends the run:
    /// nothing is performed in place of an answer that cannot be read.
    fn answer(&self, _request: &Request) -> Result<Option<Copied>, Broken> {
        Ok(None)
    }

    /// Returns the key under which a request is performed in place of its own: for replays.
    fn rename(&self, _request: &Request) -> Result<Option<Arc<str>>, Broken> {
        Ok(None)
    }

    /// Writes lines of the audit, before the commit that ends the run.
    fn ending(&self, _outcome: &Outcome) -> Result<(), JournalError> {
        Ok(())
    }

    /// Learns that a request did not fit a budget, or that a share of one is used.
    fn budget(&self, _notice: &BudgetNotice<'_>) {}

    /// Learns of an unexpected event, for the log.
    fn warn(&self, _message: &str) {}
}
