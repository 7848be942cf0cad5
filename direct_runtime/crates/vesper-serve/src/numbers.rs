//! Decimals of an outcome as JSON numbers, by the types of its members.

use std::collections::BTreeMap;

use serde_json::Value;

use vesper_auth::TableError;

/// Places of decimals in canonical JSON of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Without decimals.
    Other,
    /// A decimal, or null.
    Number,
    Items(Box<Shape>),
    /// An object with these members; further ones have no decimals.
    Members(BTreeMap<String, Shape>),
    /// An object whose values are alike.
    Values(Box<Shape>),
    /// An array of pairs.
    Pairs(Box<Shape>, Box<Shape>),
}

impl Shape {
    pub(crate) fn read(value: &Value) -> Result<Self, TableError> {
        let error = || TableError(format!("`{value}` is no shape of a type"));
        let members = match value {
            Value::Null => return Ok(Self::Other),
            Value::String(text) if text == "number" => return Ok(Self::Number),
            Value::Object(members) => members,
            _ => return Err(error()),
        };
        match members.iter().next() {
            Some((kind, of)) if members.len() == 1 => match (kind.as_str(), of) {
                ("array", of) => Ok(Self::Items(Box::new(Self::read(of)?))),
                ("values", of) => Ok(Self::Values(Box::new(Self::read(of)?))),
                ("fields", Value::Object(fields)) => {
                    let read = |(name, each): (&String, &Value)| Ok((name.clone(), Self::read(each)?));
                    Ok(Self::Members(fields.iter().map(read).collect::<Result<_, _>>()?))
                }
                ("pairs", Value::Array(pair)) => match pair.as_slice() {
                    [key, of] => Ok(Self::Pairs(Box::new(Self::read(key)?), Box::new(Self::read(of)?))),
                    _ => Err(error()),
                },
                _ => Err(error()),
            },
            _ => Err(error()),
        }
    }
}

/// Rewrites canonical JSON with decimals as numbers. Returns `None` for a text that is not of the shape.
pub(crate) fn with_numbers(text: &str, shape: &Shape) -> Option<String> {
    let mut writer = Writer {
        rest: text,
        out: String::with_capacity(text.len()),
    };
    writer.value(shape)?;
    writer.rest.is_empty().then_some(writer.out)
}

struct Writer<'a> {
    rest: &'a str,
    out: String,
}

impl<'a> Writer<'a> {
    fn value(&mut self, shape: &Shape) -> Option<()> {
        match shape {
            Shape::Number if self.rest.starts_with('"') => {
                let text = self.string()?;
                self.out.push_str(text.get(1..text.len() - 1)?);
                Some(())
            }
            _ if self.rest.starts_with("null") => self.copy(4),
            Shape::Other | Shape::Number => self.other(),
            Shape::Items(item) => self.list('[', ']', |writer, _| writer.value(item)),
            Shape::Values(each) => self.list('{', '}', |writer, _| {
                writer.key()?;
                writer.value(each)
            }),
            Shape::Members(members) => self.list('{', '}', |writer, _| {
                let key = writer.key()?;
                match serde_json::from_str::<String>(key)
                    .ok()
                    .and_then(|key| members.get(&key))
                {
                    Some(shape) => writer.value(shape),
                    None => writer.other(),
                }
            }),
            Shape::Pairs(key, of) => self.list('[', ']', |writer, _| {
                writer.list('[', ']', |writer, index| {
                    writer.value(if index == 0 { key } else { of })
                })
            }),
        }
    }

    /// Copies brackets and commas; `each` rewrites an entry.
    fn list(&mut self, open: char, close: char, each: impl Fn(&mut Self, usize) -> Option<()>) -> Option<()> {
        self.take(open)?;
        let mut count = 0;
        while !self.rest.starts_with(close) {
            if count > 0 {
                self.take(',')?;
            }
            each(self, count)?;
            count += 1;
        }
        self.take(close)
    }

    fn take(&mut self, sign: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(sign)?;
        self.out.push(sign);
        Some(())
    }

    /// Copies a key and its colon; returns the quoted key.
    fn key(&mut self) -> Option<&'a str> {
        let key = self.string()?;
        self.out.push_str(key);
        self.take(':')?;
        Some(key)
    }

    /// Skips a string and returns it with its quotes.
    fn string(&mut self) -> Option<&'a str> {
        let length = string_length(self.rest)?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text)
    }

    fn copy(&mut self, length: usize) -> Option<()> {
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.out.push_str(text);
        self.rest = rest;
        Some(())
    }

    /// Copies a value unchanged.
    fn other(&mut self) -> Option<()> {
        let bytes = self.rest.as_bytes();
        let (mut position, mut depth) = (0, 0_usize);
        loop {
            match *bytes.get(position)? {
                b'"' => position += string_length(self.rest.get(position..)?)?,
                b'[' | b'{' => {
                    depth += 1;
                    position += 1;
                    continue;
                }
                b']' | b'}' => {
                    depth = depth.checked_sub(1)?;
                    position += 1;
                }
                b',' | b':' => {
                    position += 1;
                    continue;
                }
                _ => {
                    let rest = bytes.get(position..)?;
                    position += rest
                        .iter()
                        .position(|each| b",:]}".contains(each))
                        .unwrap_or(rest.len());
                }
            }
            if depth == 0 {
                return self.copy(position);
            }
        }
    }
}

fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut position = 1;
    loop {
        match bytes.get(position)? {
            b'"' => return Some(position + 1),
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
}
