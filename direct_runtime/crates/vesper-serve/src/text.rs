//! Texts of HTTP: percent escapes, JSON strings and numbers, quality values.

use std::borrow::Cow;

/// Decodes percent escapes; `None` where one is malformed or the result is not UTF-8.
pub(crate) fn percent_decode(text: &str, is_query: bool) -> Option<Cow<'_, str>> {
    if !text
        .bytes()
        .any(|each| each == b'%' || (is_query && each == b'+'))
    {
        return Some(Cow::Borrowed(text));
    }
    let mut found = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        found.push(match byte {
            b'%' => hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?,
            b'+' if is_query => b' ',
            other => other,
        });
    }
    String::from_utf8(found).ok().map(Cow::Owned)
}

pub(crate) fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Writes two lower-case digits for each byte.
pub(crate) fn write_hex(bytes: &[u8], out: &mut String) {
    let digit = |value: u8| {
        char::from(if value < 10 {
            b'0' + value
        } else {
            b'a' + value - 10
        })
    };
    for byte in bytes {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 15));
    }
}

/// Escapes all but unreserved characters, so that a value is one segment of a path.
pub(crate) fn percent_encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            let mut digits = String::new();
            write_hex(&[byte], &mut digits);
            out.push_str(&digits.to_ascii_uppercase());
        }
    }
}

/// Writes a JSON string.
pub(crate) fn write_quoted(text: &str, out: &mut String) {
    vesper_ir::json::quote(text, out);
}

/// Returns whether the text is a JSON number, `true` or `false`.
pub(crate) fn is_bare(text: &str) -> bool {
    if matches!(text, "true" | "false") {
        return true;
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_digits = |each: &str| !each.is_empty() && each.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(|each| is_digits(each.strip_prefix(['+', '-']).unwrap_or(each)))
}

/// Returns whether `Accept-Encoding` allows gzip.
pub(crate) fn accepts_gzip(accepted: &str) -> bool {
    let mut any = false;
    for each in accepted.split(',') {
        let (coding, parameters) = each.split_once(';').unwrap_or((each, ""));
        let quality = parameters
            .trim()
            .strip_prefix("q=")
            .or_else(|| parameters.trim().strip_prefix("Q="));
        let is_allowed =
            quality.is_none_or(|quality| quality.trim().bytes().any(|byte| matches!(byte, b'1'..=b'9')));
        match coding.trim() {
            coding if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") => {
                return is_allowed;
            }
            "*" => any = is_allowed,
            _ => {}
        }
    }
    any
}

/// Returns whether a `Content-Type` is JSON in UTF-8.
pub(crate) fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';');
    let kind = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"));
    is_json
        && parts.all(|each| match each.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                let value = value.trim().trim_matches('"');
                value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8")
            }
            _ => true,
        })
}
