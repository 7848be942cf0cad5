//! Answers: from status, headers and body to the value of the completion, or to the code of a failure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vesper_ir::json::{ParseJsonError, parse};
use vesper_ir::{Json, Type, Value};

use super::secrets::SecretTexts;
use super::settings::{FailureRule, HttpSettings};
use super::text::excerpt;
use super::{dates, misfit};
use crate::effect::Failure;

/// An answer that was read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    /// Of another status than 2xx perhaps only its beginning.
    pub(crate) body: Vec<u8>,
}

/// Headers by name in lower case; of several with one name the last counts.
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(super) fn of(map: &hyper::HeaderMap) -> Self {
        // Each byte of a value is a character.
        let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect();
        Self(
            map.iter()
                .map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())))
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let last = self.0.iter().rev().find(|(each, _)| each == name);
        last.map(|(_, value)| value.as_str())
    }

    pub(super) fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|(each, _)| each == name).count()
    }
}

impl Answer {
    pub(crate) fn is_good(&self) -> bool {
        is_good(self.status)
    }
}

/// Returns true for 2xx.
pub(crate) fn is_good(status: u16) -> bool {
    (200..=299).contains(&status)
}

/// Creates the failure of an unusable answer. It was an answer, so the other side has probably acted.
pub(crate) fn bad_response(problem: impl Into<String>) -> Failure {
    Failure {
        may_have_happened: true,
        ..Failure::new("bad_response", problem)
    }
}

/// Returns the value of the body of a 2xx answer.
pub(super) fn value_of(
    answer: &Answer,
    ty: &Type,
    provider: &str,
    secrets: &SecretTexts<'_>,
) -> Result<Value, Failure> {
    let who = format!("the answer of `{provider}` (status {})", answer.status);
    if answer.body.is_empty() {
        return match ty {
            Type::Optional(_) => Ok(Value::Null),
            Type::Json => Ok(Value::Json(Json::Null.into())),
            ty => Err(bad_response(format!(
                "{who} has no body, and a value of type {} is expected",
                misfit::type_text(ty)
            ))),
        };
    }
    let shown = |text: &str| excerpt(&secrets.redact(text));
    let content_type = answer.headers.get("content-type").unwrap_or_default();
    if let Some(charset) = charset_of(content_type)
        && !["utf-8", "utf8", "us-ascii"].contains(&charset.to_lowercase().as_str())
    {
        return Err(bad_response(format!(
            "{who} is in the encoding `{}`, and JSON is in UTF-8",
            shown(charset)
        )));
    }
    let text = std::str::from_utf8(&answer.body).map_err(|error| {
        bad_response(format!(
            "{who} is not in UTF-8: byte {} of its body fits no character",
            crate::messages::grouped(error.valid_up_to())
        ))
    })?;
    let json = parse(text).map_err(|error| {
        let kind = match error {
            ParseJsonError::Malformed => "malformed",
            ParseJsonError::TooLarge => "too_deep",
        };
        let told = if content_type.is_empty() {
            String::new()
        } else {
            format!(", it is of type `{}`", shown(content_type))
        };
        bad_response(format!("{who} is no JSON ({kind}){told}: {}", shown(text)))
    })?;
    misfit::cast(ty, &json).ok_or_else(|| {
        let misfit = misfit::find(ty, &json);
        bad_response(format!(
            "{who} does not fit: {} is {}, {} is expected",
            shown(&misfit.path),
            misfit.kind.name(),
            misfit.expected
        ))
    })
}

/// Returns the encoding that a content type names.
fn charset_of(content_type: &str) -> Option<&str> {
    let lower = content_type.to_ascii_lowercase();
    let mut from = 0;
    loop {
        let place = from + lower.get(from..)?.find("charset")? + "charset".len();
        let value = content_type.get(place..)?.trim_start();
        if let Some(value) = value.strip_prefix('=') {
            let value = value.trim_start();
            let value = value.strip_prefix('"').unwrap_or(value);
            let end = value.find(|char: char| char.is_whitespace() || matches!(char, '"' | ';'));
            let name = value.get(..end.unwrap_or(value.len()))?;
            if !name.is_empty() {
                return Some(name);
            }
        }
        from = place;
    }
}

/// Returns the first rule that fits an answer.
pub(super) fn rule_of<'a>(answer: &Answer, rules: &'a [FailureRule]) -> Option<&'a FailureRule> {
    let mut rules = rules
        .iter()
        .filter(|rule| rule.status == answer.status)
        .peekable();
    rules.peek()?;
    let body = std::str::from_utf8(&answer.body)
        .ok()
        .and_then(|text| parse(text).ok());
    let has_header = |(name, value): &(String, String)| {
        let found = answer.headers.get(name);
        found.is_some_and(|found| value == "*" || found == value)
    };
    let has_member = |(path, value): &(Vec<String>, Json)| {
        let mut found = body.as_ref();
        for name in path {
            found = match found {
                Some(Json::Object(object)) => object.get(name),
                _ => None,
            };
        }
        found.is_some_and(|found| found.is_equal(value))
    };
    rules.find(|rule| rule.headers.iter().all(has_header) && rule.body.iter().all(has_member))
}

/// Returns the failure of an answer whose status is not 2xx, or that a rule makes one.
pub(super) fn failure_of(
    answer: &Answer,
    settings: &HttpSettings,
    secrets: &SecretTexts<'_>,
    rule: Option<&FailureRule>,
    note: Option<&str>,
) -> Failure {
    let (provider, status) = (&settings.name, answer.status);
    let mut message = format!("`{provider}` answered with status {status}");
    if let Some(rule) = rule {
        let by = settings.pack.as_ref();
        let by = by.map_or_else(|| "its `failures`".to_owned(), |pack| format!("the pack {pack}"));
        message = format!("{message}, `{}` by {by}", rule.code);
    }
    if let Some(note) = note {
        message = format!("{message}: {note}");
    } else if !answer.body.is_empty() {
        let body = String::from_utf8_lossy(&answer.body);
        message = format!("{message}: {}", excerpt(&secrets.redact(&body)));
    }
    let named = rule.and_then(|rule| answer.headers.get(rule.retry_at.as_ref()?));
    let retry_after = match answer.headers.get("retry-after") {
        Some(text) => wait_of(text),
        None => named.and_then(|text| Some(until_moment(text.parse().ok()?))),
    };
    let code = rule.map_or_else(|| format!("http_{status}"), |rule| rule.code.clone());
    Failure {
        retry_after: retry_after.map(|wait| wait.min(settings.retry_after_max)),
        // Gateways do not know either what became of the request.
        may_have_happened: matches!(status, 502 | 504) || rule.is_some_and(|rule| rule.may_have_happened),
        ..Failure::new(&code, message)
    }
}

/// Returns the wait that a number of seconds or a date demands.
pub(crate) fn wait_of(text: &str) -> Option<Duration> {
    if (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    Some(until_moment(
        u64::try_from(dates::parse(text)?).unwrap_or_default(),
    ))
}

/// Returns the time until a moment in seconds since 1970.
fn until_moment(moment: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(moment).saturating_sub(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_are_found() {
        assert_eq!(charset_of("text/html; charset=utf-8"), Some("utf-8"));
        assert_eq!(charset_of("x; Charset = \"ISO-8859-1\"; y"), Some("ISO-8859-1"));
        assert_eq!(charset_of("charset charset=a"), Some("a"));
        assert_eq!(charset_of("application/json"), None);
        assert_eq!(charset_of("x; charset="), None);
    }
}
