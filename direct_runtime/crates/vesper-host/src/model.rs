//! The performer of `model_call`: asks a configured model, and those that stand in for it where it fails.
//!
//! `conversation` reads the request of a node, `wire` with one module for each provider's form writes and reads what is
//! sent, `lines` splits streams, `failures` classifies errors, `catalog` has the prices, and `limits` the requests and
//! tokens of a period. This module joins them over the transport of `http`: connections, credentials and limits are those of any provider.

mod answer;
mod anthropic;
mod catalog;
mod conversation;
mod custom;
mod failures;
mod limits;
mod lines;
mod members;
mod ollama;
mod openai;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vesper_interp::Request;
use vesper_ir::json::parse;
use vesper_ir::{FailureCode, Json, Type, Value};

use answer::{Answer, Parts, usage_json};
use catalog::json_of;
pub use catalog::{Api, Bound, Catalog, Model, Prices, PromptCache, Spent, Usage, Usd, spent};
use conversation::Conversation;
pub use custom::{CustomAnswer, CustomModels};
use failures::{failure_in_stream, failure_of};
pub use limits::{Limits, Strategy};
use lines::Splitter;
use members::{number, object, string, text};
use wire::{Progress, malformed};

use crate::effect::{Ask, Failure, Pending, Performer};
use crate::http::settings::HttpSettings;
use crate::http::{BadSettings, Exchange, HttpPerformer, Open, Surroundings, bad_response, is_good};

/// Time for the end of a stream whose answer is complete; then its connection is closed instead of kept.
const GRACE: Duration = Duration::from_millis(20);

/// Performer of `model_call` for the configured models.
pub struct ModelPerformer {
    catalog: Arc<Catalog>,
    http: HttpPerformer,
    custom: Option<Arc<dyn CustomModels>>,
}

impl fmt::Debug for ModelPerformer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ModelPerformer({:?})", self.catalog)
    }
}

/// Model that failed before another one answered.
struct Failed {
    model: Arc<str>,
    code: FailureCode,
    /// The most that it may have cost.
    tokens: u64,
    cost: Usd,
}

/// Returns what a request asks, as JSON.
pub(crate) fn question_text(request: &Request) -> Result<String, Failure> {
    Ok(json_of(request)?.literal_text())
}

impl ModelPerformer {
    /// Creates a performer. `custom` has the models of the application.
    pub fn new(
        catalog: Arc<Catalog>,
        surroundings: Surroundings,
        custom: Option<Arc<dyn CustomModels>>,
    ) -> Result<Self, BadSettings> {
        let settings: Vec<HttpSettings> = catalog.settings().cloned().collect();
        Ok(Self {
            http: HttpPerformer::new(settings, surroundings)?,
            catalog,
            custom,
        })
    }

    async fn ask(&self, ask: Ask<'_>) -> Result<Value, Failure> {
        let json = json_of(ask.request)?;
        let conversation = Conversation::read(json)?;
        let began = Instant::now();
        let mut waited = Duration::ZERO;
        let mut failed: Vec<Failed> = Vec::new();
        let mut models = self.catalog.chain(ask.fixed("model"))?.into_iter().peekable();
        while let Some(model) = models.next() {
            let held = limits::admit(model, &ask, &conversation).await;
            if let Ok(held) = &held {
                waited += held.waited;
            }
            let asked_at = Instant::now();
            let left = time_left(&ask, began.elapsed().saturating_sub(waited));
            let one = Ask {
                timeout: own_time(model, left),
                ..ask
            };
            let result = match held {
                Ok(held) => {
                    let result = self.ask_one(model, one, &conversation).await;
                    held.release(&result).await;
                    result
                }
                Err(failure) => Err(failure),
            };
            match result {
                Ok(answer) => {
                    let times = (asked_at.elapsed(), waited);
                    return Ok(value_of(model, &answer, &ask, &conversation, &failed, times));
                }
                Err(failure) => {
                    let falls_back = model.fallback_on.iter().any(|code| code == failure.code.name());
                    let used = began.elapsed().saturating_sub(waited);
                    let is_in_time = time_left(&ask, used).is_none_or(|left| !left.is_zero());
                    if models.peek().is_none() || !falls_back || !is_in_time {
                        return Err(summed(failure, &failed));
                    }
                    let (tokens, cost) = if failure.may_have_happened {
                        Catalog::worst(model, json, &conversation)
                    } else {
                        (0, Usd::default())
                    };
                    failed.push(Failed {
                        model: Arc::clone(&model.name),
                        code: failure.code,
                        tokens,
                        cost,
                    });
                }
            }
        }
        Err(Failure::new(
            "unavailable",
            "nothing was sent: no model is configured",
        ))
    }

    /// Asks one model.
    async fn ask_one(
        &self,
        model: &Model,
        ask: Ask<'_>,
        conversation: &Conversation<'_>,
    ) -> Result<Answer, Failure> {
        model.check(conversation)?;
        let nothing = |text: &str| text.to_owned();
        let mut parts = Parts {
            path: &ask.request.path,
            sink: ask.sink,
            redact: &nothing,
        };
        parts.put("start", "", None);
        if model.api == Api::Custom {
            let answer = custom::ask(self.custom.as_deref(), model, &ask, conversation);
            return answer.inspect(|answer| {
                answer.deliver(&mut parts);
                finish(&mut parts, answer);
            });
        }
        let Some(mut exchange) = self.http.exchange_with(&model.name, ask) else {
            let problem = format!("nothing was sent: `{}` has no provider", model.name);
            return Err(Failure::new("unavailable", problem));
        };
        let is_streamed = ask.sink.is_some() && model.api.can_stream();
        let body = model.api.encode(model, conversation, is_streamed)?.literal_text();
        let endpoint = model.api.endpoint(model, is_streamed);
        let headers = model.api.headers(is_streamed);
        let opened = exchange.post(&endpoint, &headers, body).await;
        let open = opened.map_err(|failure| exchange.redacted(coded(failure)))?;
        let exchange = &exchange;
        let redact = |text: &str| exchange.secrets().redact(text);
        parts.redact = &redact;
        let received = receive(model, exchange, open, conversation, is_streamed, &mut parts).await;
        let answer = received.map_err(|failure| exchange.redacted(coded(failure)))?;
        let raw = Value::Json(Arc::new(answer.raw.clone()));
        if exchange.secrets().occur_in(&Type::Json, &raw) {
            return Err(bad_response(format!(
                "the answer of `{}` has a secret in it that was sent there",
                model.name
            )));
        }
        finish(&mut parts, &answer);
        Ok(answer)
    }
}

/// Reads an answer, delivering its parts where it comes as a stream.
async fn receive(
    model: &Model,
    exchange: &Exchange<'_>,
    open: Open<'_>,
    conversation: &Conversation<'_>,
    is_streamed: bool,
    parts: &mut Parts<'_>,
) -> Result<Answer, Failure> {
    let is_sensitive = exchange.is_sensitive();
    if !is_good(open.status()) {
        let answer = open.read().await?;
        return Err(failure_of(&answer, exchange, is_sensitive));
    }
    if !is_streamed {
        let answer = open.read().await?;
        let raw = parse(text_of(&answer.body)?).map_err(|_| malformed("it is no JSON"))?;
        let answer = model.api.decode(&raw, conversation)?;
        answer.deliver(parts);
        return Ok(answer);
    }
    let raw = receive_stream(model, exchange, open, conversation, parts).await?;
    model.api.decode(&raw, conversation)
}

async fn receive_stream(
    model: &Model,
    exchange: &Exchange<'_>,
    mut open: Open<'_>,
    conversation: &Conversation<'_>,
    parts: &mut Parts<'_>,
) -> Result<Json, Failure> {
    let mut assembler = model.api.assembler(conversation);
    let mut splitter = Splitter::new(model.api.framing());
    let mut events = Vec::new();
    let mut is_open = true;
    while is_open {
        if let Some(piece) = open.next().await? {
            splitter.push(&piece, &mut events);
        } else {
            is_open = false;
            splitter.finish(&mut events);
        }
        for event in events.drain(..) {
            if event == b"[DONE]" {
                return end_stream(assembler, open).await;
            }
            let json = parse(text_of(&event)?).map_err(|_| malformed("an event is no JSON"))?;
            match assembler.add(&json, parts)? {
                Progress::More => {}
                Progress::Done => return end_stream(assembler, open).await,
                Progress::Failed => return Err(failure_in_stream(&json, exchange, exchange.is_sensitive())),
            }
        }
    }
    Err(bad_response("the stream ended before the answer was complete"))
}

/// Returns the answer, and keeps the connection of a stream that has ended.
async fn end_stream(assembler: Box<dyn wire::Assembler>, open: Open<'_>) -> Result<Json, Failure> {
    let raw = assembler.finish()?;
    // The answer is complete: what the rest of the stream comes to decides about the connection alone.
    let _ = tokio::time::timeout(GRACE, open.read()).await;
    Ok(raw)
}

fn text_of(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|_| malformed("it is not in UTF-8"))
}

/// Delivers the end of an answer.
fn finish(parts: &mut Parts<'_>, answer: &Answer) {
    parts.put("usage", &usage_json(answer.usage).literal_text(), None);
    parts.put("end", answer.stop, None);
}

/// Returns the time that an attempt has left after it `used` so much: waits for the limits of models do not count, but
/// are within the time of the execution.
fn time_left(ask: &Ask<'_>, used: Duration) -> Option<Duration> {
    let own = ask.timeout.map(|time| time.saturating_sub(used));
    let of_run = ask.limits.and_then(|limits| limits.left());
    own.map(|own| of_run.map_or(own, |left| own.min(left))).or(of_run)
}

/// Returns the time of one model: its own, and at most what the attempt has left.
fn own_time(model: &Model, left: Option<Duration>) -> Option<Duration> {
    let own = model.http.as_ref().map(|settings| settings.timeout);
    match (own, left) {
        (Some(own), Some(left)) => Some(own.min(left)),
        (own, left) => left.or(own),
    }
}

/// Returns a failure of the transport under a code of this effect.
fn coded(failure: Failure) -> Failure {
    match failure.code.name() {
        "invalid_argument" => Failure {
            code: FailureCode::new("auth"),
            ..failure
        },
        _ => failure,
    }
}

/// Returns the failure of the last model with the names of those that failed before it.
fn summed(mut failure: Failure, failed: &[Failed]) -> Failure {
    for each in failed.iter().rev() {
        failure.message = format!(
            "`{}` failed with `{}`; {}",
            each.model,
            each.code.name(),
            failure.message
        );
        failure.may_have_happened |= each.cost != Usd::default() || each.tokens > 0;
    }
    failure
}

fn value_of(
    model: &Model,
    answer: &Answer,
    ask: &Ask<'_>,
    conversation: &Conversation<'_>,
    failed: &[Failed],
    (latency, waited): (Duration, Duration),
) -> Value {
    let whole = |count: u128| number(u64::try_from(count).unwrap_or(u64::MAX));
    let earlier = usize::try_from(ask.attempt.saturating_sub(1)).unwrap_or_default();
    let mut members = answer.members(conversation);
    if text(&object(members.clone()), "model") == Some("") {
        members.push(("model", string(&model.model)));
    }
    members.push(("cost_usd", string(&model.cost(answer.usage).to_string())));
    members.push(("retries", whole((earlier + failed.len()) as u128)));
    members.push(("latency_ms", whole(latency.as_millis())));
    if waited >= Duration::from_millis(1) {
        members.push(("waited_ms", whole(waited.as_millis())));
    }
    if !failed.is_empty() {
        let failed = failed.iter().map(|each| {
            object([
                ("model", string(&each.model)),
                ("code", string(each.code.name())),
                ("worst_tokens", number(each.tokens)),
                ("worst_cost_usd", string(&each.cost.to_string())),
            ])
        });
        members.push(("failed", members::array(failed)));
    }
    Value::Json(Arc::new(object(members)))
}

impl Performer for ModelPerformer {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        Box::pin(async move { Ok(self.ask(ask).await?) })
    }

    fn probe<'a>(&'a self, _: Ask<'a>) -> Pending<'a, Option<Value>> {
        Box::pin(async move {
            let problem = "no model can be asked what became of a request";
            Err(Failure::new("unavailable", problem).into())
        })
    }

    fn close(&self) {
        self.http.close();
    }
}
