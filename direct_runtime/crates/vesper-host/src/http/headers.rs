//! Headers: names that are tokens, values on one line, and none that decides how a message ends.
//!
//! A header with a line break is two headers, and perhaps a second request. Names and values are therefore checked one
//! by one, whatever their source, before any of them is sent.

use super::text::{quote, shown};
use crate::messages::grouped;

pub(super) const MAX_VALUE: usize = 8192;
/// Characters of a key: the limit of the providers that document one.
const MAX_KEY: usize = 255;
const MAX_NAME: usize = 128;
/// Characters that stand in a key as they are. All others, and `%`, are percent-encoded, so that two keys stay two.
const PLAIN_IN_KEY: &[u8] = b" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~";
/// Headers that decide where a message goes, where it ends and how it is packed.
const OWN: [&str; 13] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
    "content-encoding",
    "proxy-authorization",
    "proxy-connection",
];

/// Checks a name that a node or a configuration sets.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte);
    let label = shown(name, 64);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_token) {
        return Err(format!(
            "`{label}` is no name of a header: letters, digits and hyphens are expected"
        ));
    }
    if OWN.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the header `{label}` is set by Vesper alone"));
    }
    Ok(())
}

/// Checks that a value is one line of visible ASCII. The message does not show it: it may be a secret.
pub fn check_value(name: &str, value: &str) -> Result<(), String> {
    let label = shown(name, 64);
    let length = value.chars().count();
    if length > MAX_VALUE {
        return Err(format!(
            "the header `{label}` has {} characters, more than {}",
            grouped(length),
            grouped(MAX_VALUE)
        ));
    }
    let is_visible = |char: char| matches!(char, ' '..='~' | '\t');
    let is_blank = |char: char| matches!(char, ' ' | '\t');
    let problem = match value.chars().find(|char| !is_visible(*char)) {
        Some(odd) => format!("has the character U+{:04X}", u32::from(odd)),
        None if value.starts_with(is_blank) || value.ends_with(is_blank) => {
            "begins or ends with a space".to_owned()
        }
        None => return Ok(()),
    };
    Err(format!(
        "the header `{label}` {problem}: a header is one line of visible ASCII characters"
    ))
}

/// Returns a key as a header has it.
pub(super) fn key_text(key: &str) -> Result<String, String> {
    if key.is_empty() {
        return Err("the key of the request is empty".to_owned());
    }
    let text = quote(key, PLAIN_IN_KEY);
    // A space at an end is no part of a header's value, so it would be lost.
    let inner = text.trim_matches(' ');
    let start = if inner.is_empty() {
        text.len()
    } else {
        text.len() - text.trim_start_matches(' ').len()
    };
    let end = text.len() - start - inner.len();
    let text = format!("{}{inner}{}", "%20".repeat(start), "%20".repeat(end));
    if text.len() > MAX_KEY {
        return Err(format!(
            "the key of the request has {} characters as a header, more than {MAX_KEY}",
            grouped(text.len())
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens_and_not_our_own() {
        assert_eq!(check_name("X-Reason"), Ok(()));
        for name in ["", "a b", "a:b", "a\r\nb", "\u{fc}", &"a".repeat(129)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert_eq!(
            check_name("Content-Length"),
            Err("the header `Content-Length` is set by Vesper alone".to_owned())
        );
    }

    #[test]
    fn values_are_one_line_of_visible_ascii() {
        for value in ["", "a", "a\tb c"] {
            assert_eq!(check_value("x", value), Ok(()), "{value}");
        }
        let cases = [
            ("a\r\nX: 1", "has the character U+000D"),
            ("a\u{0}", "has the character U+0000"),
            ("schl\u{fc}ssel", "has the character U+00FC"),
            (" a", "begins or ends with a space"),
            ("a\t", "begins or ends with a space"),
        ];
        for (value, problem) in cases {
            let expected =
                format!("the header `x` {problem}: a header is one line of visible ASCII characters");
            assert_eq!(check_value("x", value), Err(expected));
        }
        assert!(check_value("x", &"a".repeat(8193)).is_err());
    }

    #[test]
    fn keys_stay_apart() {
        let cases = [
            ("order-1", "order-1"),
            ("refund ch_3", "refund ch_3"),
            (" a ", "%20a%20"),
            ("  ", "%20%20"),
            ("100%", "100%25"),
            ("%20a", "%2520a"),
            ("Zo\u{eb}\r\n", "Zo%C3%AB%0D%0A"),
        ];
        for (key, text) in cases {
            assert_eq!(key_text(key).as_deref(), Ok(text));
        }
        for key in [String::new(), "k".repeat(256), "\u{fc}".repeat(64)] {
            assert!(key_text(&key).is_err(), "{key}");
        }
    }
}
