//! Frames of RESP2: commands as bytes, and replies from bytes that may be hostile.

use std::fmt::Write as _;

use super::{RespError, Word};

/// Bytes of one reply at most; the scripts of policies reply with a few.
const MAX_REPLY: usize = 1 << 20;
/// Depth of arrays in a reply.
const MAX_DEPTH: usize = 8;

/// Reply of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Null,
    Status(String),
    /// The words with which the server refuses a command.
    Refused(String),
    Integer(i64),
    Bytes(Vec<u8>),
    Array(Vec<Reply>),
}

impl Reply {
    /// Returns the text of a status or of bytes in UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Status(text) => Some(text),
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// Returns the class of a refusal, as the client of Python names it.
pub fn refusal_class(words: &str) -> &'static str {
    let first = words.split(' ').next().unwrap_or_default();
    match first {
        "NOSCRIPT" => "NoScriptError",
        "NOAUTH" | "WRONGPASS" => "AuthenticationError",
        "NOPERM" => "NoPermissionError",
        "LOADING" => "BusyLoadingError",
        "READONLY" => "ReadOnlyError",
        "OOM" => "OutOfMemoryError",
        _ if words.starts_with("ERR max number of clients") => "MaxClientsError",
        _ if words.starts_with("ERR AUTH") || words.starts_with("ERR invalid password") => {
            "AuthenticationError"
        }
        _ => "ResponseError",
    }
}

/// Appends a command.
pub(super) fn push_command(out: &mut Vec<u8>, words: &[Word<'_>]) {
    push_length(out, '*', words.len());
    let mut number = String::new();
    for word in words {
        let bytes = match word {
            Word::Text(text) => text.as_bytes(),
            Word::Number(value) => {
                number.clear();
                // Writing to a string cannot fail.
                let _ = write!(number, "{value}");
                number.as_bytes()
            }
        };
        push_length(out, '$', bytes.len());
        out.extend_from_slice(bytes);
        out.extend_from_slice(b"\r\n");
    }
}

fn push_length(out: &mut Vec<u8>, kind: char, length: usize) {
    out.extend_from_slice(format!("{kind}{length}\r\n").as_bytes());
}

/// An array whose items are not all read yet.
struct Open {
    left: usize,
    items: Vec<Reply>,
}

/// Parser of one reply at the start of a buffer. It continues where the last call ended, so that bytes that arrive one
/// by one cost no more than those that arrive at once.
#[derive(Default)]
pub(super) struct Parser {
    at: usize,
    open: Vec<Open>,
}

impl Parser {
    /// Returns the reply and its length; None where the buffer does not hold all of it.
    pub(super) fn parse(&mut self, buffer: &[u8]) -> Result<Option<(Reply, usize)>, RespError> {
        loop {
            let Some((mut reply, at)) = self.next(buffer)? else {
                if buffer.len() > MAX_REPLY {
                    return Err(malformed("a reply is too long"));
                }
                return Ok(None);
            };
            self.at = at;
            // Adds the reply to the innermost open array, which this may complete.
            loop {
                match reply {
                    Item::Open(left) if left > 0 => {
                        if self.open.len() >= MAX_DEPTH {
                            return Err(malformed("a reply is nested too deeply"));
                        }
                        self.open.push(Open {
                            left,
                            items: Vec::new(),
                        });
                        break;
                    }
                    Item::Open(_) => reply = Item::Whole(Reply::Array(Vec::new())),
                    Item::Whole(whole) => {
                        let Some(mut open) = self.open.pop() else {
                            return Ok(Some((whole, self.at)));
                        };
                        open.items.push(whole);
                        open.left -= 1;
                        if open.left > 0 {
                            self.open.push(open);
                            break;
                        }
                        reply = Item::Whole(Reply::Array(open.items));
                    }
                }
            }
        }
    }

    /// Reads the next item; returns it and its end.
    fn next(&self, buffer: &[u8]) -> Result<Option<(Item, usize)>, RespError> {
        let rest = buffer.get(self.at..).unwrap_or(&[]);
        let Some(length) = rest.windows(2).position(|pair| pair == b"\r\n") else {
            return Ok(None);
        };
        let (line, end) = (rest.get(..length).unwrap_or(&[]), self.at + length + 2);
        let (kind, text) = line.split_first().ok_or_else(|| malformed("a line is empty"))?;
        let text = std::str::from_utf8(text).map_err(|_| malformed("a line is no text"))?;
        let number = || text.parse::<i64>().map_err(|_| malformed("a number is none"));
        let item = match kind {
            b'+' => Item::Whole(Reply::Status(text.to_owned())),
            b'-' => Item::Whole(Reply::Refused(text.to_owned())),
            b':' => Item::Whole(Reply::Integer(number()?)),
            b'$' | b'*' if number()? == -1 => Item::Whole(Reply::Null),
            b'$' | b'*' => {
                let length = usize::try_from(number()?).map_err(|_| malformed("a length is negative"))?;
                if length > MAX_REPLY {
                    return Err(malformed("a reply is too long"));
                }
                if *kind == b'*' {
                    return Ok(Some((Item::Open(length), end)));
                }
                let Some(bytes) = buffer.get(end..end + length + 2) else {
                    return Ok(None);
                };
                let Some(bytes) = bytes.strip_suffix(b"\r\n") else {
                    return Err(malformed("bytes do not end where they should"));
                };
                let whole = Item::Whole(Reply::Bytes(bytes.to_vec()));
                return Ok(Some((whole, end + length + 2)));
            }
            _ => return Err(malformed("a reply begins with an unknown byte")),
        };
        Ok(Some((item, end)))
    }
}

enum Item {
    Whole(Reply),
    /// The start of an array with this number of items.
    Open(usize),
}

fn malformed(what: &str) -> RespError {
    RespError {
        class: "InvalidResponse",
        message: format!("Protocol Error: {what}"),
    }
}
