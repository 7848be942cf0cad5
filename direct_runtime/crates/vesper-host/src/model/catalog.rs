//! The configured models: what they cost, what they admit, and the bounds of a request before it is sent.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use vesper_interp::Request;
use vesper_ir::{Json, Value};

use super::conversation::{Conversation, Message, Part};
use super::limits::Limits;
use super::members::{count, list, member, text};
use crate::effect::Failure;
use crate::http::settings::HttpSettings;

/// Prices are per token, in units of 10^-12 US dollars: a price of one dollar for a million tokens is a million.
const UNITS_PER_MICRO: u128 = 1_000_000;
/// Tokens that a provider may add to a request of its own: the instructions for tools and for structured answers.
const OWN_TOKENS: u64 = 1024;
/// Tokens that a provider may add to each message and each tool: roles, separators, names of fields.
const TOKENS_PER_PART: u64 = 64;
/// Most tokens of one image; a small file may show a large image.
const TOKENS_PER_IMAGE: u64 = 8192;

/// Amount of money in units of 10^-12 US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(pub u128);

impl Usd {
    /// Returns the amount in millionths of a dollar, rounded up.
    pub fn micros_up(self) -> u128 {
        self.0.div_ceil(UNITS_PER_MICRO)
    }

    /// Reads an exact decimal such as `0.00042`; `None` for other texts and for more than 12 places.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, places) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || places.len() > 12 || !is_digits(whole) || !is_digits(places) {
            return None;
        }
        format!("{whole}{places:0<12}").parse().ok().map(Self)
    }
}

impl fmt::Display for Usd {
    /// Formats the exact decimal without trailing zeros.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:013}", self.0);
        let (whole, places) = text
            .split_at_checked(text.len().saturating_sub(12))
            .unwrap_or((&text, ""));
        match places.trim_end_matches('0') {
            "" => write!(formatter, "{whole}"),
            places => write!(formatter, "{whole}.{places}"),
        }
    }
}

/// Prices of tokens, each in units of [`Usd`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    pub input: u64,
    pub output: u64,
    pub cached_input: u64,
    pub cache_write: u64,
}

/// Tokens of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All tokens of the request, with the cached ones.
    pub input: u64,
    pub output: u64,
    /// Tokens that were read from the provider's cache.
    pub cached_input: u64,
    /// Tokens that were written to the provider's cache.
    pub cache_write: u64,
}

/// Provider's interface of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Anthropic,
    OpenAi,
    Ollama,
    Azure,
    Vertex,
    Bedrock,
    /// A function of the application.
    Custom,
}

/// Time for which a provider keeps the beginning of a conversation in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptCache {
    Off,
    FiveMinutes,
    OneHour,
}

/// Configured model, `[models.NAME]`.
#[derive(Clone, Debug)]
pub struct Model {
    pub name: Arc<str>,
    pub api: Api,
    /// The name that the provider knows it by.
    pub model: String,
    /// Most tokens of an answer.
    pub max_output: Option<u64>,
    /// Tokens of a conversation with its answer.
    pub context: Option<u64>,
    pub prices: Prices,
    /// Prices of requests with more input tokens than this.
    pub long: Option<(u64, Prices)>,
    pub prompt_cache: PromptCache,
    /// True where the model decides on its own how long it reasons.
    pub is_adaptive: bool,
    /// Names of the models that are asked where this one fails with a code of `fallback_on`.
    pub fallback: Vec<Arc<str>>,
    pub fallback_on: Vec<String>,
    /// None for a model of the application.
    pub http: Option<HttpSettings>,
    pub limits: Option<Limits>,
}

impl Model {
    /// Returns the cost of an answer.
    pub fn cost(&self, usage: Usage) -> Usd {
        let prices = match &self.long {
            Some((above, prices)) if usage.input > *above => prices,
            _ => &self.prices,
        };
        let plain = usage.input.saturating_sub(usage.cached_input + usage.cache_write);
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        Usd(of(plain, prices.input)
            + of(usage.cached_input, prices.cached_input)
            + of(usage.cache_write, prices.cache_write)
            + of(usage.output, prices.output))
    }

    /// Returns the most that so many tokens cost, however the provider caches them.
    fn most(&self, input: u64, output: u64) -> Usd {
        let dearest = |prices: &Prices| {
            let input_price = prices.input.max(prices.cache_write).max(prices.cached_input);
            u128::from(input) * u128::from(input_price) + u128::from(output) * u128::from(prices.output)
        };
        let long = self.long.as_ref().map_or(0, |(_, prices)| dearest(prices));
        Usd(dearest(&self.prices).max(long))
    }

    /// Refuses a request that the limits of the model exclude.
    pub(super) fn check(&self, conversation: &Conversation<'_>) -> Result<(), Failure> {
        let asked = conversation.max_tokens;
        let name = &self.name;
        if let Some(most) = self.max_output.filter(|most| asked > *most) {
            let problem = format!(
                "nothing was sent: `max_tokens` is {asked}, and an answer of `{name}` has at most {most} tokens (`max_output`)"
            );
            return Err(Failure::new("invalid_request", problem));
        }
        if let Some(context) = self.context.filter(|context| asked >= *context) {
            let problem = format!(
                "nothing was sent: `max_tokens` is {asked}, and the context of `{name}` has {context} tokens in all"
            );
            return Err(Failure::new("too_long", problem));
        }
        Ok(())
    }
}

/// Most that one attempt can use, with all its fallback models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost: Usd,
    /// Models that may be asked.
    pub calls: u64,
    /// The time of all of them; None where one has no limit of its own.
    pub time: Option<Duration>,
}

/// What an answer used, with fallback models that failed before it: those at their worst case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost: Usd,
    pub calls: u64,
}

/// The configured models by name.
#[derive(Debug, Default)]
pub struct Catalog(HashMap<Arc<str>, Arc<Model>>);

impl Catalog {
    pub fn new(models: impl IntoIterator<Item = Model>) -> Self {
        let models = models
            .into_iter()
            .map(|model| (Arc::clone(&model.name), Arc::new(model)));
        Self(models.collect())
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Model>> {
        self.0.get(name)
    }

    /// Returns the settings of the providers.
    pub(super) fn settings(&self) -> impl Iterator<Item = &HttpSettings> {
        self.0.values().filter_map(|model| model.http.as_ref())
    }

    /// Returns a model and its fallback models, in the order in which they are asked.
    pub(super) fn chain(&self, name: &str) -> Result<Vec<&Arc<Model>>, Failure> {
        let Some(first) = self.get(name) else {
            let problem = format!("nothing was sent: no model `{name}` is configured: add `[models.{name}]`");
            return Err(Failure::new("unavailable", problem));
        };
        let fallback = first.fallback.iter().filter_map(|name| self.get(name));
        Ok(std::iter::once(first).chain(fallback).collect())
    }

    /// Returns the most that an attempt at this request can use. Fails where the request cannot be sent.
    pub fn bound(&self, request: &Request) -> Result<Bound, Failure> {
        let name = request.fixed.iter().find(|(name, _)| &**name == "model");
        let chain = self.chain(name.map_or("", |(_, name)| name))?;
        let json = json_of(request)?;
        let conversation = Conversation::read(json)?;
        let input = input_tokens(json, &conversation);
        let output = conversation.max_tokens;
        let mut bound = Bound {
            time: Some(Duration::ZERO),
            ..Bound::default()
        };
        for model in chain {
            let own = model.http.as_ref().map(|settings| settings.timeout);
            bound.time = bound.time.zip(own).map(|(sum, own)| sum.saturating_add(own));
            bound.input_tokens += input;
            bound.output_tokens += output;
            bound.cost.0 += model.most(input, output).0;
            bound.calls += 1;
        }
        Ok(bound)
    }

    /// Returns the most that one model can use for a request.
    pub(super) fn worst(model: &Model, json: &Json, conversation: &Conversation<'_>) -> (u64, Usd) {
        let input = input_tokens(json, conversation);
        let output = conversation.max_tokens;
        (input + output, model.most(input, output))
    }
}

/// Returns the argument of a request.
pub(super) fn json_of(request: &Request) -> Result<&Json, Failure> {
    match request.arguments.iter().find(|each| &*each.name == "request") {
        Some(argument) => match &argument.value {
            Value::Json(json) => Ok(json),
            _ => Err(Failure::new(
                "invalid_request",
                "nothing was sent: the request is no JSON",
            )),
        },
        None => Err(Failure::new(
            "invalid_request",
            "nothing was sent: the request is missing",
        )),
    }
}

/// Returns an upper limit of the tokens of a request: a token has at least one byte.
fn input_tokens(json: &Json, conversation: &Conversation<'_>) -> u64 {
    let bytes = |json: &Json| json.literal_text().len();
    let mut total = bytes(json);
    // A message is sent in one of its two forms.
    let twice: usize = list(json, "messages")
        .iter()
        .filter_map(|message| {
            let raw = bytes(member(message, "raw")?);
            Some(raw.min(bytes(message).saturating_sub(raw)))
        })
        .sum();
    total = total.saturating_sub(twice);
    // A provider may repeat the schema of a structured answer in its own instructions.
    total += conversation
        .output
        .as_ref()
        .map_or(0, |output| bytes(output.schema));
    let images = |message: &Message<'_>| match message {
        Message::User(parts) => parts
            .iter()
            .filter(|part| matches!(part, Part::Image { .. }))
            .count(),
        _ => 0,
    };
    let images: usize = conversation.messages.iter().map(images).sum();
    let parts = conversation.messages.len() + conversation.tools.len() + images;
    let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    wide(total) + OWN_TOKENS + TOKENS_PER_PART * wide(parts) + TOKENS_PER_IMAGE * wide(images)
}

/// Returns what an answer used; `None` where it does not tell.
pub fn spent(answer: &Value) -> Option<Spent> {
    let Value::Json(answer) = answer else {
        return None;
    };
    let usage = member(answer, "usage")?;
    let mut spent = Spent {
        input_tokens: count(usage, "input_tokens")?,
        output_tokens: count(usage, "output_tokens")?,
        cost: Usd::parse(text(answer, "cost_usd")?)?,
        calls: 1,
    };
    for failed in list(answer, "failed") {
        spent.calls += 1;
        spent.input_tokens += count(failed, "worst_tokens").unwrap_or_default();
        spent.cost.0 += text(failed, "worst_cost_usd")
            .and_then(Usd::parse)
            .unwrap_or_default()
            .0;
    }
    Some(spent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_exact() {
        let shown = |units: u128| Usd(units).to_string();
        assert_eq!(shown(0), "0");
        assert_eq!(shown(1), "0.000000000001");
        assert_eq!(shown(420_000_000), "0.00042");
        assert_eq!(shown(75_000_000_000_000), "75");
        assert_eq!(Usd::parse("0.00042"), Some(Usd(420_000_000)));
        assert_eq!(Usd::parse("75"), Some(Usd(75_000_000_000_000)));
        assert_eq!(Usd::parse(".5"), None);
        assert_eq!(Usd(1).micros_up(), 1);
        assert_eq!(Usd(2_000_000).micros_up(), 2);
    }
}
