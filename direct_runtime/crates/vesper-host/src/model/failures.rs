//! Errors of providers in the classes of the language.

use std::time::Duration;

use vesper_ir::Json;
use vesper_ir::json::parse;

use super::members::{member, text};
use crate::effect::Failure;
use crate::http::{Answer, Exchange, excerpt, wait_of};

/// Words of messages that tell of a conversation beyond the context.
const TOO_LONG: [&str; 7] = [
    "prompt is too long",
    "input is too long",
    "context length",
    "context limit",
    "context window",
    "maximum context",
    "exceeds the context",
];

/// Returns the failure of an answer with another status than 2xx.
pub(super) fn failure_of(answer: &Answer, exchange: &Exchange<'_>, is_sensitive: bool) -> Failure {
    let settings = exchange.settings();
    let body = std::str::from_utf8(&answer.body).unwrap_or_default();
    let json = parse(body).unwrap_or(Json::Null);
    let mut message = format!("`{}` answered with status {}", settings.name, answer.status);
    if !is_sensitive && !body.is_empty() {
        message = format!("{message}: {}", excerpt(&exchange.secrets().redact(body)));
    }
    let millis = answer
        .headers
        .get("retry-after-ms")
        .and_then(|text| text.parse().ok());
    let wait = millis
        .map(Duration::from_millis)
        .or_else(|| wait_of(answer.headers.get("retry-after")?));
    Failure {
        retry_after: wait.map(|wait| wait.min(settings.retry_after_max)),
        // A provider that broke down may have charged for the request.
        may_have_happened: matches!(answer.status, 500 | 502 | 504),
        ..Failure::new(class_of(answer.status, &json), message)
    }
}

/// Returns the failure of an error within a stream, whose request was accepted.
pub(super) fn failure_in_stream(json: &Json, exchange: &Exchange<'_>, is_sensitive: bool) -> Failure {
    let mut message = format!(
        "`{}` broke off its answer with an error",
        exchange.settings().name
    );
    if !is_sensitive {
        let shown = exchange.secrets().redact(&json.literal_text());
        message = format!("{message}: {}", excerpt(&shown));
    }
    Failure {
        may_have_happened: true,
        ..Failure::new(class_of(200, json), message)
    }
}

/// Returns the class of an error by its code, its status and its type, in this order.
fn class_of(status: u16, body: &Json) -> &'static str {
    let error = member(body, "error").unwrap_or(body);
    let words = [text(error, "code"), text(error, "type"), text(error, "status")];
    let message = text(error, "message").or(match error {
        Json::Text(text) => Some(text),
        _ => None,
    });
    let is_too_long = || {
        let message = message.unwrap_or_default().to_ascii_lowercase();
        TOO_LONG.iter().any(|words| message.contains(words))
    };
    for word in words.into_iter().flatten() {
        match word {
            "insufficient_quota" | "billing_error" => return "auth",
            "context_length_exceeded" | "request_too_large" => return "too_long",
            "content_filter" | "content_policy_violation" | "ResponsibleAIPolicyViolation" => {
                return "refused";
            }
            "overloaded_error" => return "overloaded",
            "rate_limit_error" | "rate_limit_exceeded" => return "rate_limit",
            _ => {}
        }
    }
    match status {
        401..=403 => "auth",
        408 | 504 => "timeout",
        413 => "too_long",
        429 => "rate_limit",
        503 | 529 => "overloaded",
        300..=499 if is_too_long() => "too_long",
        300..=499 => "invalid_request",
        500..=599 => "unavailable",
        _ => match words.into_iter().flatten().next_back() {
            Some("authentication_error" | "permission_error") => "auth",
            Some("timeout_error") => "timeout",
            Some("invalid_request_error" | "not_found_error") if is_too_long() => "too_long",
            Some("invalid_request_error" | "not_found_error") => "invalid_request",
            _ => "unavailable",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(status: u16, body: &str) -> &'static str {
        class_of(status, &parse(body).unwrap_or(Json::Null))
    }

    #[test]
    fn errors_have_classes() {
        let anthropic =
            |kind: &str| format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"m"}}}}"#);
        assert_eq!(class(529, &anthropic("overloaded_error")), "overloaded");
        assert_eq!(class(200, &anthropic("overloaded_error")), "overloaded");
        assert_eq!(class(200, &anthropic("api_error")), "unavailable");
        assert_eq!(class(500, &anthropic("api_error")), "unavailable");
        assert_eq!(class(401, &anthropic("authentication_error")), "auth");
        assert_eq!(class(413, "<html>"), "too_long");
        assert_eq!(class(503, ""), "overloaded");
        assert_eq!(class(408, ""), "timeout");
        let openai = |status: u16, code: &str| {
            let body =
                format!(r#"{{"error":{{"type":"invalid_request_error","code":"{code}","message":"m"}}}}"#);
            class(status, &body)
        };
        assert_eq!(openai(400, "context_length_exceeded"), "too_long");
        assert_eq!(openai(400, "content_filter"), "refused");
        assert_eq!(openai(401, "invalid_api_key"), "auth");
        assert_eq!(openai(400, "other"), "invalid_request");
        assert_eq!(openai(429, "rate_limit_exceeded"), "rate_limit");
        assert_eq!(openai(429, "insufficient_quota"), "auth");
        let long = r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#;
        assert_eq!(class(400, long), "too_long");
        assert_eq!(class(500, r#"{"error":"out of memory"}"#), "unavailable");
    }
}
