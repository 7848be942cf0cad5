//! Texts for messages, and percent-encoding.

use std::fmt::Write as _;
use std::sync::OnceLock;

use vesper_ir::unicode::{Category, categories};

const MAX_EXCERPT: usize = 200;

/// Returns the first characters of a text.
pub(super) fn prefix(text: &str, characters: usize) -> &str {
    match text.char_indices().nth(characters) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// Returns the beginning of a text in ASCII, for a message: other characters are escaped, as Python's `ascii` does.
pub(super) fn shown(text: &str, characters: usize) -> String {
    let text = prefix(text, characters);
    let mut out = String::with_capacity(text.len());
    let escapes_quote = text.contains('\'') && text.contains('"');
    for char in text.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '\'' if escapes_quote => out.push_str("\\'"),
            ' '..='~' => out.push(char),
            _ => push_escaped(char, &mut out),
        }
    }
    out
}

/// Returns a text as Python's `repr` has it, without its quotes.
pub(crate) fn repr(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let escapes_quote = text.contains('\'') && text.contains('"');
    for char in text.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '\'' if escapes_quote => out.push_str("\\'"),
            _ if is_printable(char) => out.push(char),
            _ => push_escaped(char, &mut out),
        }
    }
    out
}

/// Returns the beginning of a text of the other side, on one line and without control characters.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown = String::new();
    let is_space = |char: char| char.is_whitespace() || matches!(char, '\x1c'..='\x1f');
    for word in prefix(text, 4 * MAX_EXCERPT)
        .split(is_space)
        .filter(|word| !word.is_empty())
    {
        if !shown.is_empty() {
            shown.push(' ');
        }
        for char in word.chars() {
            if is_printable(char) {
                shown.push(char);
            } else {
                push_escaped(char, &mut shown);
            }
        }
    }
    if shown.chars().count() <= MAX_EXCERPT {
        return shown;
    }
    format!("{}…", prefix(&shown, MAX_EXCERPT - 1))
}

fn push_escaped(char: char, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match (char, u32::from(char)) {
        ('\t', _) => write!(out, "\\t"),
        ('\n', _) => write!(out, "\\n"),
        ('\r', _) => write!(out, "\\r"),
        (_, code @ 0..=0xff) => write!(out, "\\x{code:02x}"),
        (_, code @ 0..=0xffff) => write!(out, "\\u{code:04x}"),
        (_, code) => write!(out, "\\U{code:08x}"),
    };
}

/// Ranges of characters that a terminal does not show as they are.
static HIDDEN: OnceLock<Vec<(u32, u32)>> = OnceLock::new();

/// Returns true where a terminal shows the character and does not act on it.
fn is_printable(char: char) -> bool {
    if char.is_ascii() {
        return matches!(char, ' '..='~');
    }
    let hidden = HIDDEN.get_or_init(|| {
        let is_hidden = |category: Category| category.name().starts_with(['C', 'Z']);
        categories()
            .filter_map(|(first, last, category)| is_hidden(category).then_some((first, last)))
            .collect()
    });
    let code = u32::from(char);
    let after = hidden.partition_point(|(first, _)| *first <= code);
    after
        .checked_sub(1)
        .and_then(|place| hidden.get(place))
        .is_none_or(|(_, last)| *last < code)
}

// -- percent-encoding ------------------------------------------------------------------------------

/// Returns the text percent-encoded, but for letters, digits, `_.-~` and the bytes of `safe`.
pub(crate) fn quote(text: &str, safe: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte) || safe.contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Returns the text percent-encoded as forms do, with `+` for a space.
pub(crate) fn quote_plus(text: &str) -> String {
    quote(text, b" ").replace(' ', "+")
}

/// Decodes every escape of two hexadecimal digits; other `%` stay.
pub(super) fn unquote(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'%', [high, low, ..]) => hex_digit(*high).zip(hex_digit(*low)),
            _ => None,
        };
        let (byte, length) = escaped.map_or((*first, 0), |(high, low)| (high << 4 | low, 2));
        out.push(byte);
        rest = after.get(length..).unwrap_or_default();
    }
    out
}

/// Decodes a text; bytes that are no UTF-8 become U+FFFD.
pub(super) fn unquote_text(text: &str) -> String {
    String::from_utf8_lossy(&unquote(text.as_bytes())).into_owned()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_what_python_shows() {
        assert_eq!(
            shown("a\tb\u{e9}\u{200b}\u{1f600}\\", 64),
            "a\\tb\\xe9\\u200b\\U0001f600\\\\"
        );
        assert_eq!(shown("it's \"x\"", 64), "it\\'s \"x\"");
        assert_eq!(shown("it's", 2), "it");
        assert_eq!(repr("Zo\u{eb} \u{200b}\u{a0}"), "Zo\u{eb} \\u200b\\xa0");
        assert_eq!(excerpt(" a \x1c\r\n b\x1b[31m\u{2028}c"), "a b\\x1b[31m c");
        assert_eq!(excerpt(&"x".repeat(300)), format!("{}…", "x".repeat(199)));
        assert_eq!(excerpt(&"x".repeat(200)), "x".repeat(200));
    }

    #[test]
    fn percent_encoding_has_two_directions() {
        assert_eq!(quote("a b/\u{fc}~", b""), "a%20b%2F%C3%BC~");
        assert_eq!(quote_plus("o r&+"), "o+r%26%2B");
        assert_eq!(unquote(b"%2e%2E%zz%2"), b"..%zz%2");
        assert_eq!(unquote_text("%c3%bc%ff"), "\u{fc}\u{fffd}");
    }
}
