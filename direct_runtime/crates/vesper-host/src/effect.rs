//! The contract between the run loop and the performers of effects.
//!
//! A performer checks no capability, retries nothing and writes no journal: the run loop does. Any number of threads
//! may call one at once. docs/spec/effects.md defines what a repeat means for each class.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use vesper_interp::{Argument, Request};
use vesper_ir::{EffectClass, FailureCode, Value};
use zeroize::Zeroizing;

use crate::policy::Limiter;
use crate::policy::budget::Budget;

/// Failure of an effect. The message is for people and holds no secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// A code that the effect declares.
    pub code: FailureCode,
    pub message: String,
    /// Time that the other side asked us to wait.
    pub retry_after: Option<Duration>,
    /// True where the other side may have acted all the same: a request that was sent, and no answer.
    pub may_have_happened: bool,
}

impl Failure {
    /// Creates the failure of an effect that certainly did not happen.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: FailureCode::new(code),
            message: message.into(),
            retry_after: None,
            may_have_happened: false,
        }
    }
}

/// Source of secrets for one execution.
pub trait Secrets: Send + Sync {
    /// Returns the text of a secret that the execution may use; fails for others.
    fn text(&self, name: &str) -> Result<Zeroizing<String>, Failure>;
}

/// W3C trace context that an attempt carries to the other side.
#[derive(Clone, Copy, Debug)]
pub struct TraceHeaders<'a> {
    pub traceparent: &'a str,
    pub tracestate: Option<&'a str>,
}

/// Part of an answer that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// Path of the request.
    pub path: &'a str,
    /// `start` of an attempt, which voids the parts before it; `text`, `thinking`, `tool_start` with the name of the
    /// tool, `tool_arguments`, `usage` with its JSON, or `end` with the reason.
    pub kind: &'static str,
    pub text: &'a str,
    /// Id of the call of a tool.
    pub call: Option<&'a str>,
}

/// Listener to answers that are under way. Parts are delivered before anything of them is durable.
pub trait ChunkSink: Send + Sync {
    /// Takes a part. The provider is not read while it does.
    fn put(&self, chunk: Chunk<'_>);
}

/// Limits that runs share, for a performer with limits of its own.
#[derive(Clone, Copy, Debug)]
pub struct SharedLimits<'a> {
    pub limiter: &'a Limiter,
    /// End of the execution's time, by the clock of the limiter.
    pub deadline_us: Option<i64>,
}

impl SharedLimits<'_> {
    /// Returns the time that the execution has left; None without a limit.
    pub fn left(&self) -> Option<Duration> {
        self.deadline_us
            .map(|deadline_us| self.limiter.time_until(deadline_us))
    }
}

/// One attempt at one effect.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub execution: &'a str,
    pub request: &'a Request,
    /// Time of this attempt in all; a longer one fails with `timeout`.
    pub timeout: Option<Duration>,
    /// True where it may have been performed before: by an earlier attempt, or before a crash.
    pub is_repeat: bool,
    /// Number of the attempt, from 1.
    pub attempt: i64,
    /// True where arguments, key or answer hold sensitive data: logs must not repeat them.
    pub is_sensitive: bool,
    pub secrets: &'a dyn Secrets,
    /// References that `secret` steps of this execution gave, with the names of their secrets. Another text that
    /// resembles a reference is a text: its sender must not select the secret that replaces it.
    pub references: &'a HashMap<Arc<str>, Arc<str>>,
    pub trace: Option<TraceHeaders<'a>>,
    /// Listener to the answer while it is under way.
    pub sink: Option<&'a dyn ChunkSink>,
    /// None where no limits hold: in tests, and outside of runs.
    pub limits: Option<SharedLimits<'a>>,
    /// Budgets around a request that reads one, outermost first.
    pub budgets: &'a [Budget],
}

impl fmt::Debug for Ask<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments may be sensitive.
        write!(formatter, "Ask({}, {})", self.execution, self.request.path)
    }
}

impl<'a> Ask<'a> {
    /// Returns a text that the node fixes, as `schemas/effects.toml` names it; empty where it is missing.
    pub fn fixed(&self, name: &str) -> &'a str {
        let found = self.request.fixed.iter().find(|(each, _)| &**each == name);
        found.map_or("", |(_, text)| text)
    }

    /// Returns an argument of the request.
    pub fn argument(&self, name: &str) -> Option<&'a Argument> {
        self.request.arguments.iter().find(|each| &*each.name == name)
    }

    /// Returns the name of this effect among all that were ever asked for: of its key, or else of its place.
    pub fn receipt(&self) -> String {
        match &self.request.key {
            Some(key) if self.request.class == EffectClass::Keyed => format!("key:{key}"),
            _ => format!("run:{}/{}", self.execution, self.request.path),
        }
    }
}

/// Exception of an engine, of a performer of the application, or of the caller; the binding keeps it.
#[derive(Debug)]
pub struct Broken(pub Box<dyn Any + Send>);

/// Error of an attempt: a failure that the node sees, or an exception that ends its run.
#[derive(Debug)]
pub enum AttemptError {
    Failed(Failure),
    Broken(Broken),
}

impl From<Failure> for AttemptError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A result that is computed while the caller may wait for something else.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, AttemptError>> + Send + 'a>>;

/// Performer of one or several effects.
pub trait Performer: Send + Sync {
    /// Performs an effect; gives a value of the request's result type.
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value>;

    /// Finds out what became of an effect of class `probe`: its value, or None where it did not happen. Fails where
    /// that cannot be known.
    fn probe<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Option<Value>>;

    /// Closes connections. The performer stays usable.
    fn close(&self);
}
