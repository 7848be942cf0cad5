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

/// One attempt at one effect.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub execution: &'a str,
    pub request: &'a Request,
    /// Time of this attempt in all; a longer one fails with `timeout`.
    pub timeout: Option<Duration>,
    /// True where it may have been performed before: by an earlier attempt, or before a crash.
    pub is_repeat: bool,
    /// True where arguments, key or answer hold sensitive data: logs must not repeat them.
    pub is_sensitive: bool,
    pub secrets: &'a dyn Secrets,
    /// References that `secret` steps of this execution gave, with the names of their secrets. Another text that
    /// resembles a reference is a text: its sender must not select the secret that replaces it.
    pub references: &'a HashMap<Arc<str>, Arc<str>>,
    pub trace: Option<TraceHeaders<'a>>,
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
