//! The forms in which a secret may occur in a text after a program encoded it.

use std::collections::HashSet;
use std::fmt::Write as _;

use vesper_ir::{base64, json};
use zeroize::{Zeroize, Zeroizing};

use crate::http::text::{quote, quote_plus, repr};

/// Shortest form that is looked for: shorter ones occur everywhere.
pub const MIN_FORM: usize = 4;

/// Returns all forms of a secret that are looked for.
pub fn forms_of(secret: &str) -> Vec<Zeroizing<String>> {
    let data = secret.as_bytes();
    let escaped = json_ascii(secret);
    let percent = [
        quote(secret, b""),
        quote(secret, b"/"),
        quote_plus(secret),
        quote(secret, b"!~*'()"),
    ];
    let mut hex = String::with_capacity(2 * data.len());
    for byte in data {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    let mut found = vec![
        secret.to_owned(),
        escaped.replace('/', "\\/"),
        escaped,
        json_text(secret),
        repr(secret),
        bytes_repr(data),
        html(secret),
        hex.to_uppercase(),
        hex,
    ];
    found.extend(percent.iter().map(|each| with_lower_hex(each)));
    found.extend(percent);
    let whole = base64::text(data);
    found.extend((0..3).map(|before| inside_base64(data, before)));
    found.push(whole.trim_end_matches('=').to_owned());
    found.push(whole);
    let inner = found.len() - 5;
    let safe: Vec<String> = found.iter().skip(inner).map(|text| url_safe(text)).collect();
    found.extend(safe);
    let mut seen = HashSet::new();
    let is_new: Vec<bool> = found
        .iter()
        .map(|form| form.chars().count() >= MIN_FORM && seen.insert(form.clone()))
        .collect();
    for mut form in seen.drain() {
        form.zeroize();
    }
    found
        .into_iter()
        .map(Zeroizing::new)
        .zip(is_new)
        .filter_map(|(form, is_new)| is_new.then_some(form))
        .collect()
}

/// Returns the inside of a JSON string.
fn json_text(text: &str) -> String {
    let mut out = String::new();
    json::quote(text, &mut out);
    inside(&out)
}

/// Returns the inside of a JSON string in ASCII.
fn json_ascii(text: &str) -> String {
    let mut out = String::new();
    let mut units = [0; 2];
    for char in json_text(text).chars() {
        if char.is_ascii() && char != '\x7f' {
            out.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut units) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

fn inside(quoted: &str) -> String {
    quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(quoted)
        .to_owned()
}

/// Returns bytes as Python's `repr` has them, without its quotes.
fn bytes_repr(data: &[u8]) -> String {
    let escapes_quote = data.contains(&b'\'') && data.contains(&b'"');
    let mut out = String::new();
    for byte in data {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\'' if escapes_quote => out.push_str("\\'"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#x27;")
}

fn url_safe(text: &str) -> String {
    text.replace('+', "-").replace('/', "_")
}

/// Returns the characters that are the same in the base64 of every text with `data` after this number of bytes, modulo
/// three.
fn inside_base64(data: &[u8], before: usize) -> String {
    let mut whole = vec![0; before];
    whole.extend_from_slice(data);
    let text = base64::text(&whole);
    // The first characters hold bits of the bytes before.
    let first = match before {
        0 => 0,
        1 => 2,
        _ => 3,
    };
    // One character more would hold bits of the bytes after.
    let end = 8 * whole.len() / 6;
    whole.zeroize();
    text.get(first..end).unwrap_or_default().to_owned()
}

fn with_lower_hex(percent: &str) -> String {
    let mut parts = percent.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push('%');
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        out.push_str(&digits.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(secret: &str, form: &str) -> bool {
        forms_of(secret).iter().any(|each| each.as_str() == form)
    }

    #[test]
    fn every_usual_encoding_is_a_form() {
        let secret = "very secret/text+\u{fc}\"<";
        let forms = [
            secret,
            "very%20secret%2Ftext%2B%C3%BC%22%3C",
            "very%20secret%2ftext%2b%c3%bc%22%3c",
            "very%20secret/text%2B%C3%BC%22%3C",
            "very+secret%2Ftext%2B%C3%BC%22%3C",
            "very secret/text+\\u00fc\\\"<",
            "very secret\\/text+\\u00fc\\\"<",
            "very secret/text+\u{fc}\\\"<",
            "very secret/text+\\xc3\\xbc\"<",
            "very secret/text+\u{fc}&quot;&lt;",
            "7665727920736563726574",
        ];
        for form in forms {
            let found = forms_of(secret);
            assert!(found.iter().any(|each| each.contains(form)), "{form}");
        }
    }

    #[test]
    fn base64_is_found_at_every_offset() {
        let secret = "sk_live_0123456789";
        for before in 0..6 {
            for after in 0..3 {
                let text = format!("{}{secret}{}", "x".repeat(before), "y".repeat(after));
                let encoded = base64::text(text.as_bytes());
                assert!(
                    forms_of(secret)
                        .iter()
                        .any(|form| encoded.contains(form.as_str())),
                    "{before} {after}"
                );
            }
        }
        assert!(has("??>>??>>", &url_safe(&base64::text(b"??>>??>>"))));
    }

    #[test]
    fn short_forms_are_left_out() {
        assert!(forms_of("ab").iter().all(|form| form.len() >= MIN_FORM));
        assert!(!has("abc", "abc"));
    }
}
