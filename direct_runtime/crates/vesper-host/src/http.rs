//! The performer of `http_request`: a request to a configured provider, and the body of its answer.
//!
//! `request` makes the request and refuses those that must not be sent, `transport` sends it, `response` reads the
//! answer. This module joins them: the clock of the attempt, redirects, and messages without secrets.

mod addresses;
mod attempt;
pub mod aws;
mod connect;
mod connection;
mod dates;
pub mod headers;
mod misfit;
mod oauth2;
mod request;
mod response;
mod secrets;
pub mod settings;
pub(crate) mod text;
mod tls;
mod transport;
pub mod url;
mod values;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use vesper_ir::Value;
use zeroize::Zeroizing;

pub use addresses::normal_host;
use attempt::Attempt;
use connect::{Connector, Lookups, Unanswered};
pub use connect::{Resolve, look_up};
use headers::check_value;
use oauth2::Tokens;
use request::{Outgoing, post_of, probe_of, request_of, set};
pub(crate) use response::Answer;
pub(crate) use response::{bad_response, is_good, wait_of};
use response::{failure_of, rule_of, value_of};
pub(crate) use secrets::SecretTexts;
pub use secrets::Template;
use settings::{Auth, AwsSigV4, HttpSettings, OAuth2, Redirects};
pub(crate) use text::{excerpt, quote};
use text::{prefix, unquote_text};
use tls::Authorities;
pub(crate) use transport::Open;
use transport::Transport;
use url::{Origin, redirected, shown_url};
use values::not_sent;

use crate::effect::{Ask, Failure, Pending, Performer, Secrets};

const MAX_HOPS: usize = 5;

/// Function that learns the path and the status of each answer to a request.
pub type OnAnswer = dyn Fn(&str, u16) + Send + Sync;

/// Environment of the performer, which tests replace.
pub struct Surroundings {
    /// Source of the secrets that the configuration names.
    pub secrets: Arc<dyn Secrets>,
    /// File with the certificates of public authorities, in PEM form.
    pub public_authorities: String,
    pub resolve: Arc<Resolve>,
    pub on_answer: Option<Arc<OnAnswer>>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Surroundings({})", self.public_authorities)
    }
}

/// Settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSettings {
    pub provider: String,
    /// The setting below the provider.
    pub setting: &'static str,
    pub problem: String,
}

/// Performer of `http_request` for the configured providers.
pub struct HttpPerformer {
    transports: HashMap<String, Transport>,
    tokens: HashMap<String, Tokens>,
    secrets: Arc<dyn Secrets>,
    on_answer: Option<Arc<OnAnswer>>,
}

impl fmt::Debug for HttpPerformer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HttpPerformer({} providers)", self.transports.len())
    }
}

impl HttpPerformer {
    /// Creates a performer. Connections are made when they are needed.
    pub fn new(
        providers: impl IntoIterator<Item = HttpSettings>,
        surroundings: Surroundings,
    ) -> Result<Self, BadSettings> {
        let public = Arc::new(Authorities::new(&surroundings.public_authorities));
        let lookups = Arc::new(Lookups::default());
        let mut transports = HashMap::new();
        let mut tokens = HashMap::new();
        for settings in providers {
            let authorities = match &settings.ca_file {
                None => Arc::clone(&public),
                Some(file) => {
                    let own = Authorities::new(file);
                    own.config().map_err(|problem| BadSettings {
                        provider: settings.name.clone(),
                        setting: "ca_file",
                        problem,
                    })?;
                    Arc::new(own)
                }
            };
            let name = settings.name.clone();
            tokens.insert(name.clone(), Tokens::default());
            let connector = Connector {
                settings: Arc::new(settings),
                authorities,
                resolve: Arc::clone(&surroundings.resolve),
                lookups: Arc::clone(&lookups),
            };
            transports.insert(name, Transport::new(connector));
        }
        Ok(Self {
            transports,
            tokens,
            secrets: surroundings.secrets,
            on_answer: surroundings.on_answer,
        })
    }

    fn exchange<'a>(&'a self, ask: Ask<'a>) -> Result<Exchange<'a>, Failure> {
        let provider = ask.fixed("provider");
        self.exchange_with(provider, ask).ok_or_else(|| {
            let name = prefix(provider, 64);
            Failure::new(
                "unavailable",
                format!("nothing was sent: no provider `{name}` is configured: add `[providers.{name}]`"),
            )
        })
    }

    /// Returns an exchange with a provider; None where it is not configured.
    pub(crate) fn exchange_with<'a>(&'a self, provider: &str, ask: Ask<'a>) -> Option<Exchange<'a>> {
        let found = self.transports.get(provider).zip(self.tokens.get(provider));
        let (transport, tokens) = found?;
        let time = ask.timeout.unwrap_or(transport.settings.timeout);
        Some(Exchange {
            ask,
            transport,
            tokens,
            secrets: SecretTexts::new(ask.secrets, &*self.secrets, ask.references),
            attempt: Attempt::new(time),
            has_acted: false,
        })
    }
}

impl Performer for HttpPerformer {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        Box::pin(async move {
            let mut exchange = self.exchange(ask)?;
            let result = exchange.perform(self.on_answer.as_deref()).await;
            Ok(result.map_err(|failure| exchange.redacted(failure))?)
        })
    }

    fn probe<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Option<Value>> {
        Box::pin(async move {
            let mut exchange = self.exchange(ask)?;
            let result = exchange.probe().await;
            Ok(result.map_err(|failure| exchange.redacted(failure))?)
        })
    }

    fn close(&self) {
        self.transports.values().for_each(Transport::close);
    }
}

/// One attempt at one request: its clock, its secrets, and the redirects that it follows.
pub(crate) struct Exchange<'a> {
    ask: Ask<'a>,
    transport: &'a Transport,
    tokens: &'a Tokens,
    secrets: SecretTexts<'a>,
    attempt: Attempt,
    /// True where a redirect showed it: after a POST, 303 and often 301 and 302 mean that it is done.
    has_acted: bool,
}

impl<'a> Exchange<'a> {
    /// Posts a JSON body to a path below the base, and returns the answer before it is read.
    pub(crate) async fn post(
        &mut self,
        endpoint: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Open<'a>, Failure> {
        let outgoing = post_of(
            &self.ask,
            &self.transport.settings,
            &self.secrets,
            endpoint,
            headers,
            body,
        )?;
        self.send(&outgoing).await.map_err(|unanswered| match unanswered {
            Unanswered::Failed(failure) => failure,
            Unanswered::Refused(problem) => {
                Failure::new("unavailable", format!("nothing was sent: {problem}"))
            }
        })
    }

    pub(crate) fn settings(&self) -> &HttpSettings {
        &self.transport.settings
    }

    /// Returns true where messages must not repeat what is exchanged.
    pub(crate) fn is_sensitive(&self) -> bool {
        self.ask.is_sensitive
    }

    pub(crate) fn secrets(&self) -> &SecretTexts<'a> {
        &self.secrets
    }

    async fn perform(&mut self, on_answer: Option<&OnAnswer>) -> Result<Value, Failure> {
        let outgoing = request_of(&self.ask, &self.transport.settings, &self.secrets)?;
        let answer = self.answer(outgoing).await?;
        if let Some(on_answer) = on_answer {
            on_answer(&self.ask.request.path, answer.status);
        }
        let rule = rule_of(&answer, &self.transport.settings.failures);
        if rule.is_some() || !answer.is_good() {
            return Err(self.failure(&answer, None));
        }
        self.value(&answer)
    }

    async fn probe(&mut self) -> Result<Option<Value>, Failure> {
        let (outgoing, found_status) = probe_of(&self.ask, &self.transport.settings, &self.secrets)?;
        let answer = self.answer(outgoing).await?;
        if rule_of(&answer, &self.transport.settings.failures).is_some() {
            return Err(self.failure(&answer, None));
        }
        if answer.status == found_status {
            return self.value(&answer).map(Some);
        }
        if matches!(answer.status, 404 | 410) {
            return Ok(None);
        }
        Err(self.failure(&answer, None))
    }

    fn value(&self, answer: &Answer) -> Result<Value, Failure> {
        let (ty, name) = (&self.ask.request.result, &self.transport.settings.name);
        let found = value_of(answer, ty, name, &self.secrets)?;
        if self.secrets.occur_in(ty, &found) {
            // Kept, it would be in the journal, in the outputs, and wherever the node uses them.
            return Err(bad_response(format!(
                "the answer of `{name}` has a secret in it that was sent there"
            )));
        }
        Ok(found)
    }

    fn failure(&self, answer: &Answer, note: Option<&str>) -> Failure {
        let settings = &self.transport.settings;
        let rule = rule_of(answer, &settings.failures);
        failure_of(answer, settings, &self.secrets, rule, note)
    }

    pub(crate) fn redacted(&self, failure: Failure) -> Failure {
        Failure {
            message: self.secrets.redact(&failure.message),
            may_have_happened: failure.may_have_happened || self.has_acted,
            ..failure
        }
    }

    /// Returns the answer after the redirects that the settings allow.
    async fn answer(&mut self, mut outgoing: Outgoing) -> Result<Answer, Failure> {
        let first = self.exchange(&outgoing).await;
        let mut answer = first.map_err(|unanswered| match unanswered {
            Unanswered::Failed(failure) => failure,
            Unanswered::Refused(problem) => Failure::new("unavailable", not_sent(problem).message),
        })?;
        for _ in 0..MAX_HOPS {
            if !is_redirect(answer.status) {
                return Ok(answer);
            }
            self.has_acted |= matches!(answer.status, 301..=303) && !outgoing.is_read();
            outgoing = match self.follow(outgoing, &answer) {
                Ok(outgoing) => outgoing,
                Err(problem) => return Err(self.failure(&answer, Some(&problem))),
            };
            answer = match self.exchange(&outgoing).await {
                Ok(answer) => answer,
                Err(Unanswered::Failed(failure)) => return Err(failure),
                Err(Unanswered::Refused(problem)) => return Err(self.failure(&answer, Some(&problem))),
            };
        }
        if is_redirect(answer.status) {
            let note = format!("more than {MAX_HOPS} redirects");
            return Err(self.failure(&answer, Some(&note)));
        }
        Ok(answer)
    }

    async fn exchange(&mut self, outgoing: &Outgoing) -> Result<Answer, Unanswered> {
        Ok(self.send(outgoing).await?.read().await?)
    }

    /// Sends a request with the credentials that are made for each one anew.
    async fn send(&mut self, outgoing: &Outgoing) -> Result<Open<'a>, Unanswered> {
        let (transport, settings) = (self.transport, &self.transport.settings);
        let (base, there) = (&settings.base.origin, &outgoing.url.origin);
        match &settings.auth {
            Some(auth) if base == there || is_upgrade(base, there) => match auth {
                Auth::OAuth2(client) => self.send_with_token(outgoing, client).await,
                Auth::AwsSigV4(aws) => {
                    let signed = self.signed(outgoing, aws)?;
                    transport.open(&signed, &self.attempt).await
                }
                Auth::Header { .. } | Auth::Basic { .. } => transport.open(outgoing, &self.attempt).await,
            },
            _ => transport.open(outgoing, &self.attempt).await,
        }
    }

    /// Sends a request with an access token; after a 401, which is no attempt at the effect, once more with a new one.
    async fn send_with_token(
        &mut self,
        outgoing: &Outgoing,
        client: &OAuth2,
    ) -> Result<Open<'a>, Unanswered> {
        let transport = self.transport;
        let mut refused: Option<Zeroizing<String>> = None;
        loop {
            let until = self.attempt.until;
            let token = self
                .tokens
                .get(client, transport, &self.secrets, until, refused.as_deref());
            let token = token.await?;
            let mut authorized = outgoing.clone();
            let value = format!("Bearer {}", token.as_str());
            set(&mut authorized.headers, "authorization", value.into());
            if refused.is_some() {
                self.attempt = Attempt::until(until);
            }
            let answer = transport.open(&authorized, &self.attempt).await?;
            if answer.status() != 401 || refused.is_some() {
                return Ok(answer);
            }
            answer.read().await?;
            refused = Some(token);
        }
    }

    fn signed(&self, outgoing: &Outgoing, settings: &AwsSigV4) -> Result<Outgoing, Failure> {
        let secret = |name: &str| self.secrets.for_provider(name);
        let id = settings.access_key_id.fill(secret)?;
        let key = settings.secret_access_key.fill(secret)?;
        let token = settings
            .session_token
            .as_ref()
            .map(|token| token.fill(secret))
            .transpose()?;
        for text in [Some(&id), token.as_ref()].into_iter().flatten() {
            check_value("Authorization", text).map_err(not_sent)?;
        }
        let request = aws::AwsRequest {
            method: &outgoing.method,
            host: &outgoing.url.origin.authority(),
            path: &outgoing.url.path,
            query: &outgoing.url.query,
            headers: &outgoing.headers,
            body: outgoing.body.as_deref().unwrap_or_default(),
        };
        let key = aws::AwsKey {
            region: &settings.region,
            service: &settings.service,
            access_key_id: &id,
            secret_access_key: &key,
            session_token: token.as_ref().map(|token| token.as_str()),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        let mut signed = outgoing.clone();
        for (name, value) in aws::sign(&request, &key, now_us) {
            set(&mut signed.headers, &name, value);
        }
        Ok(signed)
    }

    fn follow(&self, outgoing: Outgoing, answer: &Answer) -> Result<Outgoing, String> {
        if self.names_secret(answer) {
            return Err("a redirect to a URL with a secret in it is not followed".to_owned());
        }
        follow(outgoing, answer, &self.transport.settings)
    }

    /// Returns true where the destination of a redirect holds a secret.
    fn names_secret(&self, answer: &Answer) -> bool {
        let location = answer.headers.get("location").unwrap_or_default();
        // Servers encode as much as they must: decoded, every mixture is the same.
        let texts = [
            location.to_owned(),
            unquote_text(location),
            unquote_text(&location.replace('+', " ")),
        ];
        texts.iter().any(|text| self.secrets.redact(text) != *text)
    }
}

fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Returns the request that a redirect demands, where the settings allow it.
fn follow(outgoing: Outgoing, answer: &Answer, settings: &HttpSettings) -> Result<Outgoing, String> {
    let Some(location) = answer.headers.get("location") else {
        return Err("a redirect without a `Location`".to_owned());
    };
    let shown = shown_url(location);
    if settings.redirects == Redirects::None {
        return Err(format!(
            "redirects of this provider are not followed (`redirects`): {shown}"
        ));
    }
    let url = redirected(&outgoing.url, location)?;
    let (here, there) = (&outgoing.url.origin, &url.origin);
    if here.is_secure && !there.is_secure {
        return Err(format!("a redirect from https to http is not followed: {shown}"));
    }
    let is_same = here == there || is_upgrade(here, there);
    if !is_same && settings.redirects == Redirects::SameHost {
        return Err(format!(
            "a redirect to another host is not followed (`redirects`): {there}"
        ));
    }
    let is_allowed = |each: &Origin| each.host == there.host && each.port == there.port;
    if !is_same && !settings.allowed.iter().any(is_allowed) {
        return Err(format!(
            "a redirect to {there} is not followed: it is none of `allowed_hosts`"
        ));
    }
    let method = &outgoing.method;
    if !is_same && !outgoing.is_simple() {
        return Err(format!("a {method} is not sent to another host: {there}"));
    }
    if !is_same {
        return Ok(outgoing.without_credentials(url));
    }
    match answer.status {
        303 => Ok(outgoing.into_get(url)),
        // Some clients send it again, some make a GET of it: which of the two is meant is unknown.
        status @ (301 | 302) if !outgoing.is_simple() => Err(format!(
            "a {method} is not redirected by a status {status}, only by 303, 307 or 308"
        )),
        _ => Ok(Outgoing { url, ..outgoing }),
    }
}

fn is_upgrade(here: &Origin, there: &Origin) -> bool {
    here.host == there.host && !here.is_secure && here.port == 80 && there.is_secure && there.port == 443
}
