//! Requests of a run that was taken over: what the journal says of them, and what their class says of the rest.

use std::collections::HashMap;
use std::sync::Arc;

use vesper_interp::{Completion, Request};
use vesper_ir::{EffectClass, FailureCode, Value};

use crate::effect::{AttemptError, Failure};
use crate::journal::{Entry, JournalError, Kind, Stored};
use crate::run::bodies::shortest;
use crate::run::contract::Plan;
use crate::run::outcome::RunError;
use crate::run::running::{Interruption, Running};
use crate::run::settling::Admitted;
use crate::typed_json::{member, read_value, request_texts, text_member};

/// What a journal says of one request: indexes of its entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recorded {
    pub(super) intent: Option<usize>,
    settled: Option<usize>,
    is_in_doubt: bool,
}

/// Returns the recorded requests by path.
pub(super) fn by_path(entries: &[Stored]) -> HashMap<String, Recorded> {
    let mut found: HashMap<String, Recorded> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = || entry.path.clone();
        match entry.kind {
            Kind::Intent => found.entry(path()).or_default().intent = Some(index),
            // As if it had never been requested: it is performed, under a new INTENT.
            Kind::Resolved if says_not_done(entry) => {
                found.remove(&entry.path);
            }
            Kind::Result | Kind::Failed | Kind::Resolved => {
                found.entry(path()).or_default().settled = Some(index);
            }
            Kind::InDoubt => found.entry(path()).or_default().is_in_doubt = true,
            _ => {}
        }
    }
    found
}

/// Returns true where a person said that a request that was in doubt did certainly not happen.
fn says_not_done(entry: &Stored) -> bool {
    entry.kind == Kind::Resolved && member(&entry.body, "not_done") == Some("true")
}

impl Running {
    /// Returns the completion of a request that the journal has; None where it has none.
    pub(super) fn look_up(
        &mut self,
        request: &Request,
        digest: &str,
        recorded: Recorded,
    ) -> Result<Option<Completion>, Interruption> {
        let run = Arc::clone(&self.control.run);
        let entries = run.recorded();
        let entry = |index: Option<usize>| index.and_then(|index| entries.get(index));
        let settled = entry(recorded.settled);
        if let Some(known) = settled.or_else(|| entry(recorded.intent))
            && known.kind != Kind::Resolved
            && self.is_other(request, digest, known)?
        {
            self.append_divergence(request, digest, &known.digest)?;
            let why = String::from("the request is not the one that the journal has: it was not sent");
            return Err(self.doubt(request, why)?.into());
        }
        match settled {
            Some(known) => self.take_recorded(request, known).map(Some),
            None if recorded.is_in_doubt => {
                let why = String::from("nobody has said yet what came of it");
                Err(self.in_doubt(request, why).into())
            }
            None => Ok(None),
        }
    }

    /// Returns true where the journal has another request at this path.
    fn is_other(&self, request: &Request, digest: &str, known: &Stored) -> Result<bool, JournalError> {
        if known.digest.is_empty() {
            // The entry of a read has the request itself.
            let (fixed, arguments) = request_texts(request)?;
            let is_same = request.effect.name() == known.effect
                && member(&known.body, "fixed") == Some(&fixed)
                && member(&known.body, "arguments") == Some(&arguments);
            return Ok(!is_same);
        }
        if digest.is_empty() {
            return Ok(known.digest != self.digest(request)?);
        }
        Ok(known.digest != digest)
    }

    /// Returns the completion that the journal has.
    fn take_recorded(&mut self, request: &Request, known: &Stored) -> Result<Completion, Interruption> {
        if request.class != EffectClass::Read {
            // The audit of a run is written when it ends: of everything that it did.
            self.watcher.settled(request, &entry_of(known));
        }
        if let Some(code) = text_member(&known.body, "code") {
            self.take_value(None)?;
            let code = FailureCode::new(&code);
            let message = text_member(&known.body, "message").unwrap_or_default();
            self.last_failure = Some((code.clone(), message));
            return Ok(Completion::Failed(code));
        }
        let text = member(&known.body, "value").unwrap_or("null");
        let value = read_value(text, &request.result).map_err(|problem| {
            let path = &request.path;
            RunError::Fault(format!(
                "{path}: the value in the journal is not of the type of the step: {problem}"
            ))
        })?;
        self.take_value(Some((&request.result, &value)))?;
        self.remember(request, &value);
        Ok(Completion::Value(value))
    }

    /// Finds out what became of a request that was about to be performed, as its class says: its value, or None where it
    /// is to be performed (again).
    pub(super) async fn recover(
        &self,
        request: &Request,
        admitted: Admitted<'_>,
        sent_us: i64,
    ) -> Result<Option<Value>, Interruption> {
        match request.class {
            EffectClass::Keyed => {
                let Some(why) = self.expired(admitted.plan(), sent_us) else {
                    return Ok(None);
                };
                Err(self.doubt(request, why)?.into())
            }
            EffectClass::Probe => match self.probe(request, admitted).await {
                Ok(found) => Ok(found),
                Err(AttemptError::Failed(Failure { message, .. })) => {
                    let why = format!("whether it happened could not be found out: {message}");
                    Err(self.doubt(request, why)?.into())
                }
                Err(AttemptError::Broken(broken)) => Err(broken.into()),
            },
            EffectClass::Unsafe => {
                let why = String::from("it may have been performed, and it must not be performed twice");
                Err(self.doubt(request, why)?.into())
            }
            EffectClass::Read | EffectClass::Txn | EffectClass::Wait => Ok(None),
        }
    }

    /// Returns the reason why a key that was sent at this time is not to be sent again.
    fn expired(&self, plan: &Plan, sent_us: i64) -> Option<String> {
        let ttl = self.services.performers.key_ttl(plan)?.as_secs_f64();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a time since 1970 in microseconds is below 2^53"
        )]
        let age = (self.services.sources.now_us() - sent_us) as f64 / 1_000_000.0;
        let good = shortest(ttl);
        (age > ttl).then(|| format!("its key is good for {good} s, and it was sent {age:.0} s ago"))
    }
}

fn entry_of(stored: &Stored) -> Entry<'_> {
    Entry {
        kind: stored.kind,
        path: &stored.path,
        effect: &stored.effect,
        class: &stored.class,
        key: stored.key.as_deref(),
        digest: &stored.digest,
        at_us: stored.at_us,
        body: &stored.body,
    }
}
