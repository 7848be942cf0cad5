//! Parts of messages that several performers use.

use std::fmt::{Display, Write as _};
use std::io;
use std::time::Duration;

/// Number of characters of a text from outside that a message repeats.
const SHOWN: usize = 80;

/// Returns an integer with a comma between groups of three digits.
pub fn grouped(number: impl Display) -> String {
    let text = number.to_string();
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |digits| ("-", digits));
    let mut out = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a time in seconds with six digits, as `%g` formats it.
pub fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let exponential = format!("{seconds:.5e}");
    let exponent = exponential
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    let exponent = exponent.unwrap_or(0);
    let trimmed = |digits: &str| {
        if !digits.contains('.') {
            return digits.to_owned();
        }
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match usize::try_from(5 - exponent) {
        Ok(places) if exponent >= -4 => trimmed(&format!("{seconds:.places$}")),
        _ => {
            let digits = exponential.split_once('e').map_or("", |(digits, _)| digits);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
        }
    }
}

/// Returns the start of a text from outside in backticks, with escapes for everything that is not printable ASCII.
pub fn shown(text: &str) -> String {
    let mut out = String::from("`");
    for character in text.chars().take(SHOWN) {
        // Writing to a string cannot fail.
        let _ = match character {
            '\\' => write!(out, "\\\\"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            ' '..='~' => write!(out, "{character}"),
            '\0'..='\u{ff}' => write!(out, "\\x{:02x}", u32::from(character)),
            '\u{100}'..='\u{ffff}' => write!(out, "\\u{:04x}", u32::from(character)),
            _ => write!(out, "\\U{:08x}", u32::from(character)),
        };
    }
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out.push('`');
    out
}

/// Returns the words of the operating system for an error, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error")
        .map_or(text.as_str(), |(words, _)| words)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups() {
        let found = [0, 999, 1000, 65_536, -10_000_000].map(grouped);
        assert_eq!(found, ["0", "999", "1,000", "65,536", "-10,000,000"]);
    }

    #[test]
    fn times_are_formatted_as_percent_g() {
        for (milliseconds, expected) in [
            (30_000, "30"),
            (500, "0.5"),
            (1_234, "1.234"),
            (1, "0.001"),
            (1_234_567_890, "1.23457e+06"),
            (0, "0"),
        ] {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), expected);
        }
        assert_eq!(seconds(Duration::from_micros(10)), "1e-05");
    }

    #[test]
    fn texts_are_escaped_and_cut() {
        assert_eq!(
            shown("a\\b\n\u{7f}é…😀"),
            "`a\\\\b\\n\\x7f\\xe9\\u2026\\U0001f600`"
        );
        assert_eq!(shown(&"x".repeat(81)), format!("`{}…`", "x".repeat(80)));
    }
}
