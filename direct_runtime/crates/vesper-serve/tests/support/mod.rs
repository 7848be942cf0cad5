//! Requests to an exchange without a server.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use vesper_serve::{Answer, Call, Exchange, Head, Peer, Routed};

pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Seconds since 1970 of every request.
pub const NOW_SECONDS: u64 = 1_800_000_000;

pub fn endpoint(node: &str, method: &str, path: &str, inputs: &Value, body: &str) -> Value {
    json!({
        "node": node, "method": method, "path": path, "inputs": inputs, "body": body, "success_status": 200,
        "statuses": {}, "response_headers": {}, "is_pure": true, "has_now": false, "scopes": [],
    })
}

pub fn input(name: &str, from: &str, form: &str) -> Value {
    json!({"name": name, "from": from, "key": name, "form": form})
}

pub fn table(endpoints: &[Value]) -> Value {
    json!({
        "version": 1, "decimals": "text", "cors": null, "auth": null, "endpoints": endpoints,
        "builtins": ["/openapi.json", "/docs", "/metrics", "/readyz", "/status"],
    })
}

pub fn exchange(table: &Value) -> Result<Exchange, Box<dyn std::error::Error>> {
    Ok(Exchange::new(table.to_string().as_bytes())?)
}

pub fn route(
    exchange: &Exchange,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> Result<Routed, String> {
    route_from(exchange, method, target, headers, None)
}

pub fn route_from(
    exchange: &Exchange,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    subject: Option<&str>,
) -> Result<Routed, String> {
    let method = Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
    let mut found = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
        found.append(
            name,
            HeaderValue::from_bytes(value.as_bytes()).map_err(|error| error.to_string())?,
        );
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW_SECONDS);
    let peer = Peer { subject };
    Ok(exchange.route(&Head {
        method: &method,
        target,
        headers: &found,
        peer,
        now,
    }))
}

pub fn call(
    exchange: &Exchange,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> Result<Box<Call>, String> {
    match route(exchange, method, target, headers)? {
        Routed::Call(call) => Ok(call),
        Routed::Answer(answer) => Err(format!("answered {}: {}", answer.status, text(&answer))),
    }
}

pub fn answer(
    exchange: &Exchange,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> Result<Answer, String> {
    match route(exchange, method, target, headers)? {
        Routed::Call(call) => Err(format!("{call:?}")),
        Routed::Answer(answer) => Ok(answer),
    }
}

pub fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

pub fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer
        .headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("")
}

/// Returns the end of a problem's `type`.
pub fn problem(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    body.get("type")
        .and_then(Value::as_str)
        .map_or_else(String::new, |each| each.replace("urn:vesper:problem:", ""))
}

/// A small generator with a seed.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }

    /// Returns a text of up to `most` pieces.
    pub fn text(&mut self, pieces: &[&str], most: usize) -> String {
        (0..self.below(most + 1))
            .map(|_| pieces.get(self.below(pieces.len())).copied().unwrap_or(""))
            .collect()
    }
}
