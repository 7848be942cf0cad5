//! Strict JSON parser (RFC 8259) without recursion. A text may nest as deep as it is long.

use std::sync::Arc;

use super::{Json, MAX_DEPTH, Object};
use crate::decimal::Decimal;
use crate::limits::ITEMS;

/// Error for a text without a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseJsonError {
    Malformed,
    /// The text is JSON up to a collection that is deeper or longer than a value may be.
    TooLarge,
}

/// Constructor of the value that a text is parsed into.
pub trait Build: Sized {
    /// Maximum depth of a text.
    const MAX_DEPTH: usize;
    /// Maximum number of items or entries of a collection.
    const MAX_ITEMS: usize;

    fn null() -> Self;
    fn boolean(value: bool) -> Self;
    /// Creates a number from its JSON text. Returns `None` beyond the limits of a decimal.
    fn number(text: &str) -> Option<Self>;
    fn text(text: Arc<str>) -> Self;
    fn array(items: Vec<Self>) -> Self;
    /// Creates an object. Returns `None` where a key is repeated.
    fn object(entries: Vec<(Arc<str>, Self)>) -> Option<Self>;
}

impl Build for Json {
    const MAX_DEPTH: usize = MAX_DEPTH;
    const MAX_ITEMS: usize = ITEMS;

    fn null() -> Self {
        Self::Null
    }

    fn boolean(value: bool) -> Self {
        Self::Boolean(value)
    }

    fn number(text: &str) -> Option<Self> {
        Decimal::parse(text).ok().map(Self::Number)
    }

    fn text(text: Arc<str>) -> Self {
        Self::Text(text)
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(Arc::from(items))
    }

    fn object(entries: Vec<(Arc<str>, Self)>) -> Option<Self> {
        Object::new(entries).map(Self::Object)
    }
}

/// Array or object that is not closed yet.
enum Open<B> {
    Array(Vec<B>),
    Object(Vec<(Arc<str>, B)>, Arc<str>),
}

struct Parser<'a, B> {
    text: &'a str,
    at: usize,
    open: Vec<Open<B>>,
    /// True after a limit was exceeded. Parsing ends there.
    is_too_large: bool,
}

/// Parses the one JSON value of a text, with optional white space around it.
pub fn parse(text: &str) -> Result<Json, ParseJsonError> {
    build(text)
}

/// Parses the one JSON value of a text into another representation.
pub fn build<B: Build>(text: &str) -> Result<B, ParseJsonError> {
    let mut parser = Parser {
        text,
        at: 0,
        open: Vec::new(),
        is_too_large: false,
    };
    let value = parser.document();
    // SEMANTICS: the first problem of a text counts. A repeated name stands before the limit.
    value.ok_or_else(|| {
        if parser.is_too_large && !parser.open.iter().any(Open::has_repeats) {
            ParseJsonError::TooLarge
        } else {
            ParseJsonError::Malformed
        }
    })
}

impl<B> Open<B> {
    /// Returns true if two names of an object are equal, including that of the value being read.
    fn has_repeats(&self) -> bool {
        let Self::Object(entries, last) = self else {
            return false;
        };
        let mut names: Vec<&str> = entries.iter().map(|(name, _)| name.as_ref()).collect();
        names.push(last);
        names.sort_unstable();
        !names.is_sorted_by(|left, right| left < right)
    }
}

impl<B: Build> Parser<'_, B> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Consumes this byte if it comes next.
    fn take(&mut self, byte: u8) -> Option<()> {
        if self.peek() != Some(byte) {
            return None;
        }
        self.at += 1;
        Some(())
    }

    fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn document(&mut self) -> Option<B> {
        loop {
            // Start of a value: opens brackets until a value is complete.
            self.skip_white_space();
            let mut value = match self.peek()? {
                b'[' => {
                    self.check_depth()?;
                    self.at += 1;
                    self.skip_white_space();
                    if self.take(b']').is_none() {
                        self.open.push(Open::Array(Vec::new()));
                        continue;
                    }
                    B::array(Vec::new())
                }
                b'{' => {
                    self.check_depth()?;
                    self.at += 1;
                    self.skip_white_space();
                    if self.take(b'}').is_none() {
                        let key = self.key()?;
                        self.open.push(Open::Object(Vec::new(), key));
                        continue;
                    }
                    B::object(Vec::new())?
                }
                _ => self.scalar()?,
            };
            // Adds the value to the innermost open collection, which this may complete.
            loop {
                self.skip_white_space();
                match self.open.pop() {
                    None if self.at == self.text.len() => return Some(value),
                    None => return None,
                    Some(Open::Array(mut items)) => {
                        items.push(value);
                        if self.take(b',').is_some() {
                            self.open.push(Open::Array(items));
                            break;
                        }
                        self.take(b']')?;
                        self.check_length(items.len())?;
                        value = B::array(items);
                    }
                    Some(Open::Object(mut entries, key)) => {
                        entries.push((key, value));
                        if self.take(b',').is_some() {
                            self.skip_white_space();
                            let key = self.key()?;
                            self.open.push(Open::Object(entries, key));
                            break;
                        }
                        self.take(b'}')?;
                        let length = entries.len();
                        value = B::object(entries)?;
                        self.check_length(length)?;
                    }
                }
            }
        }
    }

    /// Returns `None`, after recording it, if another collection is too deep here.
    fn check_depth(&mut self) -> Option<()> {
        // Each open collection encloses the next one.
        self.is_too_large = self.open.len() >= B::MAX_DEPTH;
        (!self.is_too_large).then_some(())
    }

    /// Returns `None`, after recording it, if a collection has too many items.
    fn check_length(&mut self, length: usize) -> Option<()> {
        self.is_too_large = length > B::MAX_ITEMS;
        (!self.is_too_large).then_some(())
    }

    fn key(&mut self) -> Option<Arc<str>> {
        let key = self.string()?;
        self.skip_white_space();
        self.take(b':')?;
        Some(key)
    }

    fn scalar(&mut self) -> Option<B> {
        let rest = self.text.get(self.at..)?;
        if self.peek()? == b'"' {
            return self.string().map(B::text);
        }
        for (word, value) in [("null", None), ("true", Some(true)), ("false", Some(false))] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Some(value.map_or_else(B::null, B::boolean));
            }
        }
        let length = number_length(rest.as_bytes())?;
        self.at += length;
        // A number beyond the limits of a decimal is malformed.
        B::number(rest.get(..length)?)
    }

    fn string(&mut self) -> Option<Arc<str>> {
        self.take(b'"')?;
        let mut found = String::new();
        loop {
            let rest = self.text.get(self.at..)?;
            let plain = rest
                .bytes()
                .take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f))
                .count();
            found.push_str(rest.get(..plain)?);
            self.at += plain;
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(Arc::from(found));
                }
                b'\\' => found.push(self.escape()?),
                // SEMANTICS: a control character must be escaped.
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        self.take(b'\\')?;
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.four_digits()?;
                if !(0xd800..0xdc00).contains(&unit) {
                    // `None` for an unpaired low surrogate.
                    return char::from_u32(unit);
                }
                self.take(b'\\')?;
                self.take(b'u')?;
                let second = self.four_digits()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return None;
                }
                char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (second - 0xdc00))?
            }
            _ => return None,
        })
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4)?;
        let mut unit = 0;
        for digit in digits {
            unit = unit * 16 + char::from(*digit).to_digit(16)?;
        }
        self.at += 4;
        Some(unit)
    }
}

/// Returns the length of the number at the start of the text: `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`.
fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or(&[]);
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = usize::from(text.first() == Some(&b'-'));
    at += match (text.get(at)?, digits(at)) {
        (b'0', _) => 1,
        (_, 0) => return None,
        (_, count) => count,
    };
    if text.get(at) == Some(&b'.') {
        let count = digits(at + 1);
        if count == 0 {
            return None;
        }
        at += 1 + count;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        let count = digits(at);
        if count == 0 {
            return None;
        }
        at += count;
    }
    Some(at)
}
