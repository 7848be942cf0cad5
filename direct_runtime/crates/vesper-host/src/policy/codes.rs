//! Lists of failure codes, and the codes that report an unavailable system.

/// Returns true where the list names the code, its class (`http_5xx`), every status (`http_error`), or `any`: as the
/// handlers of `on_error` do (docs/spec/flow.md).
pub fn matches_code<T: AsRef<str>>(codes: &[T], code: &str) -> bool {
    let status = status_class(code);
    codes.iter().map(AsRef::as_ref).any(|each| {
        each == code
            || each == "any"
            || status.is_some_and(|class| each == "http_error" || each.strip_suffix("xx") == Some(class))
    })
}

/// Returns `http_5` for a code like `http_503`.
fn status_class(code: &str) -> Option<&str> {
    let digits = code.strip_prefix("http_")?.as_bytes();
    let is_status = matches!(digits, [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9']);
    code.get(..6).filter(|_| is_status)
}

/// Returns true for failures of the other side as a whole: no answer, or one that reports that it cannot answer.
///
/// Any other code is a response of a reachable system. So are `http_429` and `rate_limit`: they are about the rate of
/// requests.
pub fn is_trouble(code: &str) -> bool {
    matches_code(&["timeout", "unavailable", "overloaded", "http_5xx"], code)
}
