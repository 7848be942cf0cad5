//! Requests of class `wait`: committed as a row of due work, after which the run is nowhere but in the journal.

use std::sync::Arc;

use vesper_interp::{Completion, Request};
use vesper_ir::time::{FIRST_TIMESTAMP, LAST_TIMESTAMP};
use vesper_ir::{Effect, Value};

use crate::effect::Failure;
use crate::journal::Kind;
use crate::journal::due::{Moment, NewDue, SIGNAL, Wait, Waited};
use crate::run::outcome::{RunError, Waiting};
use crate::run::running::{Interruption, Running};
use crate::sources::kill_point;
use crate::typed_json::{member, read_value};

impl Running {
    /// Begins a wait. The run ends here with `RunError::Waiting`, unless a signal was kept for it.
    pub(super) fn suspend(&mut self, request: &Request) -> Result<Completion, Interruption> {
        let (kind, moment) = match self.moment_of(request) {
            Ok(found) => found,
            Err(failure) => {
                let digest = self.digest(request)?;
                return self.settle(request, &digest, Err(failure), true);
            }
        };
        let (digest, body) = match self.intend(request) {
            Ok(found) => found,
            Err(error) => return self.unjournalled(request, &error),
        };
        let result = request.result.clone();
        let wait = Wait {
            due: NewDue {
                kind: kind.to_owned(),
                moment,
                path: request.path.clone(),
                name: request
                    .fixed
                    .first()
                    .map_or_else(String::new, |(_, name)| name.to_string()),
                queue: String::new(),
                lane: match argument(request, "match") {
                    Some(Value::Text(lane)) => lane.to_string(),
                    _ => String::new(),
                },
                priority: 0,
                attempts: 0,
                body,
            },
            effect: request.effect.name(),
            digest: digest.clone(),
            at_us: self.services.sources.now_us(),
            fits: Arc::new(move |text| read_value(text, &result).is_ok()),
        };
        let name = wait.due.name.clone();
        match self.control.run.wait(wait)? {
            Waited::Until(due_us) => {
                self.committed();
                kill_point("waiting.committed");
                Err(RunError::Waiting(Box::new(Waiting {
                    execution: self.control.run.execution().to_owned(),
                    node_id: self.prepared.node.to_string(),
                    path: request.path.clone(),
                    kind,
                    name,
                    due_us,
                }))
                .into())
            }
            Waited::Taken(body) => {
                self.committed();
                let text = member(&body, "value").unwrap_or("null");
                let value = read_value(text, &request.result).map_err(|problem| {
                    RunError::Fault(format!("{}: a kept signal: {problem}", request.path))
                })?;
                self.watcher
                    .settled(request, &self.entry(Kind::Result, request, &digest, &body));
                self.take_value(Some((&request.result, &value)))?;
                Ok(Completion::Value(value))
            }
            Waited::Refused(why) => Err(RunError::Fault(format!("{}: {why}", request.path)).into()),
        }
    }

    /// Returns the kind of a wait and its end. A sleep without an end that a timestamp can name fails.
    fn moment_of(&self, request: &Request) -> Result<(&'static str, Moment), Failure> {
        let now = self.services.sources.now_us();
        let is_far = |after: i64| !(FIRST_TIMESTAMP..=LAST_TIMESTAMP).contains(&now.saturating_add(after));
        let limited = |name: &str| match argument(request, name) {
            Some(Value::Duration(after)) if !is_far(*after) => Moment::After(*after),
            _ => Moment::Never,
        };
        Ok(match request.effect {
            Effect::Sleep => match (argument(request, "until"), argument(request, "duration")) {
                (Some(Value::Timestamp(at)), _) => ("sleep", Moment::At(*at)),
                (_, Some(Value::Duration(after))) if !is_far(*after) => ("sleep", Moment::After(*after)),
                _ => {
                    let message = "the time at which it would end is none that a timestamp can name";
                    return Err(Failure::new("invalid_argument", message));
                }
            },
            Effect::SignalWait => (SIGNAL, limited("timeout")),
            _ => ("interrupt", limited("ttl")),
        })
    }
}

fn argument<'a>(request: &'a Request, name: &str) -> Option<&'a Value> {
    let found = request.arguments.iter().find(|each| &*each.name == name);
    found.map(|each| &each.value)
}
