//! Requests as they are sent: method, target, headers and body of an [`Ask`] and the settings of its provider.
//!
//! Nothing here connects. A request that must not be sent is refused here as a whole, before any name is looked up.

use bytes::Bytes;
use vesper_ir::{EffectClass, Type, Value, base64};
use zeroize::Zeroizing;

use super::headers::{check_name, check_value, key_text};
use super::secrets::SecretTexts;
use super::settings::{Auth, BodyFormat, HttpSettings};
use super::text::{prefix, quote};
use super::url::{Url, join};
use super::values::{form_body, json_body, not_sent, query_pairs};
use crate::effect::{Ask, Failure};
use crate::messages::grouped;

const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const MAX_HEADERS: usize = 65536;

/// Headers by name, in the order in which they are sent.
pub(super) type Headers = Vec<(String, Zeroizing<String>)>;

/// Request without the headers that depend on its connection.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) method: String,
    pub(super) url: Url,
    /// Names in lower case.
    pub(super) headers: Headers,
    /// Overwritten when the last copy is dropped.
    pub(super) body: Option<Bytes>,
}

impl Outgoing {
    pub(super) fn is_simple(&self) -> bool {
        self.is_read() && self.body.is_none()
    }

    pub(super) fn is_read(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    /// Returns the request without all that another host must not learn.
    pub(super) fn without_credentials(mut self, url: Url) -> Self {
        self.headers
            .retain(|(name, _)| matches!(name.as_str(), "user-agent" | "accept"));
        Self {
            url,
            body: None,
            ..self
        }
    }

    pub(super) fn into_get(mut self, url: Url) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        if self.method != "HEAD" {
            "GET".clone_into(&mut self.method);
        }
        Self {
            url,
            body: None,
            ..self
        }
    }
}

/// Returns the request of an effect.
pub(super) fn request_of(
    ask: &Ask<'_>,
    settings: &HttpSettings,
    secrets: &SecretTexts<'_>,
) -> Result<Outgoing, Failure> {
    let method = ask.fixed("method");
    if !METHODS.contains(&method) {
        let method = prefix(method, 32);
        return Err(not_sent(format!(
            "the method `{method}` is none of {}",
            METHODS.join(", ")
        )));
    }
    let url = url_of(ask, settings, secrets)?;
    let mut headers = node_headers(ask, settings, secrets)?;
    let mut body = None;
    if let Some(argument) = ask.argument("body") {
        let Value::Json(json) = &argument.value else {
            return Err(not_sent("the body is no JSON: wrong_type"));
        };
        let (text, content_type) = match settings.body {
            BodyFormat::Json => (json_body(json, secrets)?, "application/json"),
            BodyFormat::Form => (
                form_body(json, &settings.name, secrets)?,
                "application/x-www-form-urlencoded",
            ),
        };
        if find(&headers, "content-type").is_none() {
            set(&mut headers, "content-type", content_type.to_owned().into());
        }
        body = Some(text);
    }
    add_key(&mut headers, ask, settings)?;
    for (name, value) in provider_headers(settings, secrets)? {
        set(&mut headers, &name, value);
    }
    carry_trace(&mut headers, ask);
    check_size(&headers).map_err(not_sent)?;
    Ok(Outgoing {
        method: method.to_owned(),
        url,
        headers: with_own(headers),
        body,
    })
}

/// Returns a request of another effect than `http_request`: a JSON body for a path below the base.
pub(super) fn post_of(
    ask: &Ask<'_>,
    settings: &HttpSettings,
    secrets: &SecretTexts<'_>,
    endpoint: &str,
    own: &[(&str, &str)],
    body: String,
) -> Result<Outgoing, Failure> {
    let mut headers: Headers = vec![("content-type".to_owned(), "application/json".to_owned().into())];
    for (name, value) in own {
        set(&mut headers, name, (*value).to_owned().into());
    }
    for (name, value) in provider_headers(settings, secrets)? {
        set(&mut headers, &name, value);
    }
    carry_trace(&mut headers, ask);
    check_size(&headers).map_err(not_sent)?;
    Ok(Outgoing {
        method: "POST".to_owned(),
        url: join(&settings.base, endpoint, &[]).map_err(not_sent)?,
        headers: with_own(headers),
        body: Some(Bytes::from(body)),
    })
}

/// Returns the request that finds out whether another one happened, and the status that means so.
pub(super) fn probe_of(
    ask: &Ask<'_>,
    settings: &HttpSettings,
    secrets: &SecretTexts<'_>,
) -> Result<(Outgoing, u16), Failure> {
    let Some(probe) = &settings.probe else {
        return Err(Failure::new(
            "unavailable",
            format!("nothing was sent: {}", no_probe(settings)),
        ));
    };
    let endpoint = probe.endpoint.replace("{key}", &quote(&name_of(ask), b""));
    let mut headers = provider_headers(settings, secrets)?;
    carry_trace(&mut headers, ask);
    let outgoing = Outgoing {
        method: probe.method.clone(),
        url: join(&settings.base, &endpoint, &[]).map_err(not_sent)?,
        headers: with_own(headers),
        body: None,
    };
    Ok((outgoing, probe.found_status))
}

fn no_probe(settings: &HttpSettings) -> String {
    let name = &settings.name;
    format!(
        "the step is of class `probe`, and nobody could ask `{name}` whether it happened: `[providers.{name}.probe]` \
         is not configured"
    )
}

/// Returns the name under which the other side knows the request.
fn name_of(ask: &Ask<'_>) -> String {
    ask.request
        .key
        .as_ref()
        .map_or_else(|| ask.receipt(), ToString::to_string)
}

fn url_of(ask: &Ask<'_>, settings: &HttpSettings, secrets: &SecretTexts<'_>) -> Result<Url, Failure> {
    let Some(Value::Text(endpoint)) = ask.argument("endpoint").map(|argument| &argument.value) else {
        return Err(not_sent("the endpoint is no text"));
    };
    let query = match ask.argument("query") {
        Some(argument) => query_pairs(&argument.ty, &argument.value).map_err(not_sent)?,
        None => Vec::new(),
    };
    let mut texts = query.iter().flat_map(|(name, value)| [name, value]);
    if secrets.is_named_in(endpoint) || texts.any(|text| secrets.is_named_in(text)) {
        return Err(not_sent(
            "a secret stands in the endpoint or the query, where logs would keep it: put it into a header",
        ));
    }
    join(&settings.base, endpoint, &query).map_err(not_sent)
}

// -- headers --------------------------------------------------------------------------------------

fn find<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(each, _)| each == name)
        .map(|(_, value)| value.as_str())
}

pub(super) fn set(headers: &mut Headers, name: &str, value: Zeroizing<String>) {
    match headers.iter_mut().find(|(each, _)| each == name) {
        Some((_, place)) => *place = value,
        None => headers.push((name.to_owned(), value)),
    }
}

/// Returns the headers that the node sets.
fn node_headers(
    ask: &Ask<'_>,
    settings: &HttpSettings,
    secrets: &SecretTexts<'_>,
) -> Result<Headers, Failure> {
    let mut found = Headers::new();
    let Some(argument) = ask.argument("headers") else {
        return Ok(found);
    };
    let (Type::Record(of), Value::Record(values)) = (&argument.ty, &argument.value) else {
        return Ok(found);
    };
    for (field, value) in of.fields().iter().zip(values.iter()) {
        // The checker makes `X-Reason` a field, `x_reason`: well configured servers do not distinguish them.
        let name = field.name.replace('_', "-");
        check_name(&name).map_err(not_sent)?;
        let name = name.to_ascii_lowercase();
        if settings.is_reserved(&name) {
            return Err(not_sent(format!(
                "the header `{name}` is configured for `{}`, so a node cannot set it",
                settings.name
            )));
        }
        if find(&found, &name).is_some() {
            return Err(not_sent(format!("the header `{name}` is there twice")));
        }
        let Value::Text(text) = value else {
            return Err(not_sent(format!("the header `{name}` is no text")));
        };
        let text = secrets.for_node(text)?;
        check_value(&name, &text).map_err(not_sent)?;
        found.push((name, text.into_secret()));
    }
    Ok(found)
}

/// Returns the headers that the configuration sets, with credentials.
fn provider_headers(settings: &HttpSettings, secrets: &SecretTexts<'_>) -> Result<Headers, Failure> {
    let mut found = Headers::new();
    let secret = |name: &str| secrets.for_provider(name);
    for (name, template) in &settings.headers {
        let value = template.fill(secret)?;
        check_value(name, &value).map_err(not_sent)?;
        set(&mut found, &name.to_ascii_lowercase(), value);
    }
    match &settings.auth {
        // Added when the request is sent.
        None | Some(Auth::OAuth2(_) | Auth::AwsSigV4(_)) => {}
        Some(Auth::Header { name, value }) => {
            let value = value.fill(secret)?;
            check_value(name, &value).map_err(not_sent)?;
            set(&mut found, &name.to_ascii_lowercase(), value);
        }
        Some(Auth::Basic { user, password }) => {
            let (user, password) = (user.fill(secret)?, password.fill(secret)?);
            if user.contains(':') {
                return Err(not_sent("the user name of basic authentication has a `:`"));
            }
            let pair = Zeroizing::new(format!("{}:{}", user.as_str(), password.as_str()));
            let text = Zeroizing::new(base64::text(pair.as_bytes()));
            secrets.add(&text, "secret:(user and password)".to_owned());
            let value = Zeroizing::new(format!("Basic {}", text.as_str()));
            check_value("Authorization", &value).map_err(not_sent)?;
            set(&mut found, "authorization", value);
        }
    }
    Ok(found)
}

/// Adds the key by which the other side recognises a repeat; of class `probe` the name that a probe asks for.
fn add_key(headers: &mut Headers, ask: &Ask<'_>, settings: &HttpSettings) -> Result<(), Failure> {
    let key = match (ask.request.class, &ask.request.key) {
        (EffectClass::Probe, _) if settings.probe.is_none() => return Err(not_sent(no_probe(settings))),
        (EffectClass::Probe, _) => name_of(ask),
        (EffectClass::Keyed, None) => {
            return Err(not_sent("the step is of class `keyed`, and has no key"));
        }
        (EffectClass::Keyed, Some(key)) => key.to_string(),
        _ => return Ok(()),
    };
    let name = settings.key_header.to_ascii_lowercase();
    if name.is_empty() {
        return Err(not_sent(format!(
            "`{}` recognises no repeated request (its `key_header` is empty), so a step of class `keyed` or `probe` \
             could happen twice: choose another class",
            settings.name
        )));
    }
    let text = key_text(&key).map_err(not_sent)?;
    if find(headers, &name).is_some_and(|given| given != text) {
        return Err(not_sent(format!(
            "the node sets the header `{}` to something else than the key of its step",
            settings.key_header
        )));
    }
    set(headers, &name, text.into());
    Ok(())
}

/// Adds the trace context of the attempt, unless the node or the provider's settings have one.
fn carry_trace(headers: &mut Headers, ask: &Ask<'_>) {
    let Some(trace) = &ask.trace else { return };
    if find(headers, "traceparent").is_none() {
        set(headers, "traceparent", trace.traceparent.to_owned().into());
        if let Some(state) = trace.tracestate {
            set(headers, "tracestate", state.to_owned().into());
        }
    }
}

fn check_size(headers: &Headers) -> Result<(), String> {
    let size: usize = headers
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    if size > MAX_HEADERS {
        return Err(format!(
            "the headers have {} bytes in all, more than {}",
            grouped(size),
            grouped(MAX_HEADERS)
        ));
    }
    Ok(())
}

/// Returns the headers after those that every request has.
fn with_own(headers: Headers) -> Headers {
    let mut all: Headers = vec![
        ("user-agent".to_owned(), "vesper".to_owned().into()),
        ("accept".to_owned(), "application/json".to_owned().into()),
    ];
    for (name, value) in headers {
        set(&mut all, &name, value);
    }
    all
}
