//! Streaming reader of canonical JSON that rejects every other spelling.
//!
//! There is no tree: the decoder requests each token that must follow. Canonical form fixes the order of an object's
//! fields, so reading them in that order detects missing, unknown, repeated and misplaced fields. Memory is allocated
//! only for content within the limits, also for a hostile document.

use std::borrow::Cow;

use crate::Rejected;
use crate::limits::NAME_BYTES;

/// Position in canonical JSON text.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// True between an opening bracket and the first member. Nested values reset it to false when they close, which is
    /// the value that the enclosing one needs; the reader therefore keeps no stack.
    is_first: bool,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of the text.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            is_first: true,
        }
    }

    /// Returns the offset of the next byte.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Creates a rejection with the current position.
    pub fn refuse(&self, what: impl std::fmt::Display) -> Rejected {
        Rejected(format!("byte {}: {what}", self.at))
    }

    /// Returns the next byte without consuming it.
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), Rejected> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.refuse(format_args!("expected {what}{}", self.found())))
    }

    fn found(&self) -> String {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            None => ", found the end of the document".to_owned(),
            Some(' ' | '\n' | '\r' | '\t') => {
                ", found white space, which canonical JSON does not have".to_owned()
            }
            Some(found) => format!(", found `{}`", found.escape_debug()),
        }
    }

    /// Rejects any byte after the value.
    pub fn end(&self) -> Result<(), Rejected> {
        if self.at == self.text.len() {
            return Ok(());
        }
        Err(self.refuse(format_args!("expected the end{}", self.found())))
    }

    /// Opens an object; fields follow.
    pub fn open_object(&mut self) -> Result<(), Rejected> {
        self.expect(b'{', "an object")?;
        self.is_first = true;
        Ok(())
    }

    /// Closes an object. A remaining field is unknown, repeated or misplaced.
    pub fn close_object(&mut self) -> Result<(), Rejected> {
        if self.peek() == Some(b',') || (self.is_first && self.peek() == Some(b'"')) {
            let key = self.key()?;
            return Err(self.refuse(format_args!("unknown, repeated or misplaced field `{key}`")));
        }
        self.expect(b'}', "the end of the object")?;
        self.is_first = false;
        Ok(())
    }

    fn separator(&mut self) -> Result<(), Rejected> {
        if self.is_first {
            self.is_first = false;
            return Ok(());
        }
        self.expect(b',', "a comma or the end")
    }

    /// Reads the next key, without a condition on its text.
    pub fn key(&mut self) -> Result<Cow<'a, str>, Rejected> {
        self.separator()?;
        let key = self.string(NAME_BYTES)?;
        self.expect(b':', "a colon")?;
        Ok(key)
    }

    /// Reads the value of the field that must come next.
    pub fn field<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> Result<T, Rejected>,
    ) -> Result<T, Rejected> {
        if self.peek() == Some(b'}') {
            return Err(self.refuse(format_args!("field `{name}` is missing")));
        }
        let start = self.at;
        let key = self.key()?;
        if key == name {
            return read(self);
        }
        self.at = start;
        Err(self.refuse(format_args!(
            "expected field `{name}`, found `{key}`, which is unknown, repeated or misplaced"
        )))
    }

    /// Reads the value of a field if that field comes next.
    pub fn optional_field<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> Result<T, Rejected>,
    ) -> Result<Option<T>, Rejected> {
        if self.peek() == Some(b'}') {
            return Ok(None);
        }
        let (start, is_first) = (self.at, self.is_first);
        if self.key()? == name {
            return read(self).map(Some);
        }
        (self.at, self.is_first) = (start, is_first);
        Ok(None)
    }

    /// Reads the entries of an object with arbitrary keys, in code-point order.
    pub fn map<T>(
        &mut self,
        limit: usize,
        mut read: impl FnMut(&mut Self, &str) -> Result<T, Rejected>,
    ) -> Result<Vec<(String, T)>, Rejected> {
        self.open_object()?;
        let mut entries: Vec<(String, T)> = Vec::new();
        while self.peek() != Some(b'}') {
            if entries.len() == limit {
                return Err(self.refuse(format_args!("more than {limit} entries")));
            }
            let key = self.key()?.into_owned();
            if entries.last().is_some_and(|(last, _)| *last >= key) {
                return Err(self.refuse(format_args!("key `{key}` is repeated or out of order")));
            }
            let value = read(self, &key)?;
            entries.push((key, value));
        }
        self.close_object()?;
        Ok(entries)
    }

    /// Reads the items of an array.
    pub fn list<T>(
        &mut self,
        limit: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, Rejected>,
    ) -> Result<Vec<T>, Rejected> {
        self.expect(b'[', "an array")?;
        self.is_first = true;
        let mut items = Vec::new();
        while self.peek() != Some(b']') {
            if items.len() == limit {
                return Err(self.refuse(format_args!("more than {limit} items")));
            }
            self.separator()?;
            items.push(read(self)?);
        }
        self.at += 1;
        self.is_first = false;
        Ok(items)
    }

    /// Reads `null`.
    pub fn null(&mut self) -> Result<(), Rejected> {
        let rest = self.text.get(self.at..).unwrap_or("");
        if rest.starts_with("null") {
            self.at += "null".len();
            return Ok(());
        }
        Err(self.refuse(format_args!("expected null{}", self.found())))
    }

    /// Reads `true` or `false`.
    pub fn boolean(&mut self) -> Result<bool, Rejected> {
        for (word, value) in [("true", true), ("false", false)] {
            if self
                .text
                .get(self.at..)
                .is_some_and(|rest| rest.starts_with(word))
            {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.refuse(format_args!("expected true or false{}", self.found())))
    }

    /// Reads a 64-bit integer in its one spelling.
    pub fn integer(&mut self) -> Result<i64, Rejected> {
        let rest = self.text.get(self.at..).unwrap_or("");
        let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        // Any 64-bit integer fits in 20 bytes; the 21st byte detects a longer number.
        let length = rest.bytes().take(21).take_while(is_part).count();
        let spelled = rest.get(..length).unwrap_or("");
        match spelled.parse::<i64>() {
            Ok(value) if value.to_string() == spelled => {
                self.at += length;
                Ok(value)
            }
            _ if spelled.is_empty() => Err(self.refuse(format_args!("expected an integer{}", self.found()))),
            _ => Err(self.refuse(format_args!(
                "`{spelled}` is not an integer within 64 bits in its shortest spelling"
            ))),
        }
    }

    /// Reads a string of at most `limit` bytes, counted after unescaping.
    pub fn string(&mut self, limit: usize) -> Result<Cow<'a, str>, Rejected> {
        self.expect(b'"', "a string")?;
        let mut escaped: Option<String> = None;
        loop {
            let rest = self.text.get(self.at..).unwrap_or("");
            let plain = rest
                .bytes()
                .take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f))
                .count();
            let piece = rest.get(..plain).unwrap_or("");
            if escaped.as_ref().map_or(0, String::len).saturating_add(plain) > limit {
                return Err(self.refuse(format_args!("a string of more than {limit} bytes")));
            }
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(match escaped {
                        None => Cow::Borrowed(piece),
                        Some(text) => Cow::Owned(text + piece),
                    });
                }
                Some(b'\\') => {
                    let text = escaped.get_or_insert_default();
                    text.push_str(piece);
                    text.push(self.escape()?);
                }
                Some(_) => return Err(self.refuse("a control character in a string is not escaped")),
                None => return Err(self.refuse("the document ends within a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Rejected> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
        let (length, found) = match rest {
            [b'\\', b'"', ..] => (2, '"'),
            [b'\\', b'\\', ..] => (2, '\\'),
            [b'\\', b'b', ..] => (2, '\u{8}'),
            [b'\\', b't', ..] => (2, '\t'),
            [b'\\', b'n', ..] => (2, '\n'),
            [b'\\', b'f', ..] => (2, '\u{c}'),
            [b'\\', b'r', ..] => (2, '\r'),
            [
                b'\\',
                b'u',
                b'0',
                b'0',
                high @ (b'0' | b'1'),
                low @ (b'0'..=b'9' | b'a'..=b'f'),
                ..,
            ] => {
                let low = if low.is_ascii_digit() {
                    low - b'0'
                } else {
                    low - b'a' + 10
                };
                (6, char::from((high - b'0') * 16 + low))
            }
            _ => return Err(self.refuse("an escape that canonical JSON does not have")),
        };
        if length == 6 && matches!(found, '\u{8}' | '\t' | '\n' | '\u{c}' | '\r') {
            return Err(self.refuse("a control character that has a short escape is written as \\u"));
        }
        self.at += length;
        Ok(found)
    }
}
