//! Bodies of the entries that the run loop writes, in typed JSON.

use crate::typed_json::write_text;

/// Writer of the body of an entry. INVARIANT: members are added in code-point order of their names.
#[derive(Debug)]
pub(super) struct Body(String);

impl Body {
    pub(super) fn new() -> Self {
        Self(String::from("{"))
    }

    /// Adds a member whose typed JSON is known.
    pub(super) fn raw(mut self, name: &str, text: &str) -> Self {
        self.name(name);
        self.0.push_str(text);
        self
    }

    pub(super) fn text(mut self, name: &str, text: &str) -> Self {
        self.name(name);
        write_text(&mut self.0, text);
        self
    }

    pub(super) fn boolean(self, name: &str, is_true: bool) -> Self {
        self.raw(name, if is_true { "true" } else { "false" })
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        write_text(&mut self.0, name);
        self.0.push(':');
    }
}

/// Returns a body of members in any order.
pub(super) fn body_of(mut members: Vec<(&str, String)>) -> String {
    members.sort_unstable_by_key(|(name, _)| *name);
    let body = members
        .iter()
        .fold(Body::new(), |body, (name, text)| body.raw(name, text));
    body.finish()
}

/// Returns the typed JSON of a text.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_text(&mut out, text);
    out
}

/// Returns a number as C's `%g` writes it: six significant digits, without trailing zeros.
pub(super) fn shortest(number: f64) -> String {
    const DIGITS: i32 = 6;
    let scientific = format!("{number:.5e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific; // not finite
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trimmed = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..DIGITS).contains(&exponent) {
        let places = usize::try_from(DIGITS - 1 - exponent).unwrap_or_default();
        return trimmed(&format!("{number:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}
