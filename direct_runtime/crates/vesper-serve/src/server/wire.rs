//! HTTP/1.1 without sockets: the head and body of a request, the bytes of an answer.
//!
//! Requests that two servers could read differently are refused: repeated or contradictory lengths, other transfer
//! codings than one `chunked`, bare line feeds, folded headers, and chunks with anything but hexadecimal sizes.

use std::cell::RefCell;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Buf as _, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::answer::Answer;

/// Headers that one head can have, whatever the settings allow.
pub(super) const MAX_HEADERS: usize = 500;
/// Maximum length of a line with the size of a chunk.
const MAX_SIZE_LINE_BYTES: usize = 256;
/// Maximum length of all trailers of a body.
const MAX_TRAILER_BYTES: usize = 8_192;

/// The reason to refuse a request before it is routed. The connection closes after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    Malformed(&'static str),
    HeadTooLarge,
    BodyTooLarge,
}

/// The delimitation of the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
}

/// The head of a request. It is reused by the requests of a connection.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    /// Path and query, also where the client sent an absolute URL.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    pub(super) keeps_alive: bool,
    pub(super) expects_continue: bool,
    /// Bytes of a partial head that have no end of a head.
    searched: usize,
}

impl Request {
    pub(super) fn new() -> Self {
        Self {
            method: Method::GET,
            target: String::new(),
            headers: HeaderMap::new(),
            framing: Framing::Length(0),
            keeps_alive: true,
            expects_continue: false,
            searched: 0,
        }
    }

    /// Reads a head from the start of the buffer and removes it. Returns false if it is not complete.
    pub(super) fn read(
        &mut self,
        buffer: &mut BytesMut,
        max_bytes: usize,
        max_headers: usize,
    ) -> Result<bool, Flaw> {
        // A head that came in parts is parsed once, when its end is there, not with each part.
        if self.searched > 0 && !has_end(buffer.get(self.searched.saturating_sub(3)..).unwrap_or_default()) {
            self.searched = buffer.len();
            return if buffer.len() >= max_bytes {
                Err(Flaw::HeadTooLarge)
            } else {
                Ok(false)
            };
        }
        let mut list = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let list = list.get_mut(..max_headers).unwrap_or_default();
        let mut parsed = httparse::Request::new(&mut []);
        let length = match parsed.parse_with_uninit_headers(buffer, list) {
            Ok(httparse::Status::Complete(length)) if length <= max_bytes => length,
            Ok(httparse::Status::Partial) if buffer.len() < max_bytes => {
                self.searched = buffer.len();
                return Ok(false);
            }
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Flaw::HeadTooLarge),
            Err(_) => return Err(Flaw::Malformed("the head of the request is not HTTP/1.1")),
        };
        let is_bare = |pair: &[u8]| matches!(pair, [before, b'\n'] if *before != b'\r');
        let head = buffer.get(..length).unwrap_or_default();
        if head.first() == Some(&b'\n') || head.windows(2).any(is_bare) {
            return Err(Flaw::Malformed(
                "a line of the head ends without a carriage return",
            ));
        }
        self.searched = 0;
        self.take(&parsed)?;
        buffer.advance(length);
        Ok(true)
    }

    fn take(&mut self, parsed: &httparse::Request<'_, '_>) -> Result<(), Flaw> {
        let is_current = parsed.version == Some(1);
        self.method = Method::from_bytes(parsed.method.unwrap_or_default().as_bytes())
            .map_err(|_| Flaw::Malformed("the method of the request is not a token"))?;
        self.headers.clear();
        self.keeps_alive = is_current;
        self.expects_continue = false;
        let (mut length, mut is_chunked, mut hosts) = (None, false, 0_u8);
        for header in parsed.headers.iter() {
            let name = HeaderName::from_bytes(header.name.as_bytes())
                .map_err(|_| Flaw::Malformed("the name of a header is not a token"))?;
            let value = HeaderValue::from_bytes(header.value)
                .map_err(|_| Flaw::Malformed("the value of a header has a control character"))?;
            match name.as_str() {
                "content-length" if length.is_some() => {
                    return Err(Flaw::Malformed("the request has two content lengths"));
                }
                "content-length" => length = Some(content_length(header.value)?),
                "transfer-encoding" if is_chunked || !header.value.eq_ignore_ascii_case(b"chunked") => {
                    return Err(Flaw::Malformed("the only transfer encoding is chunked, and once"));
                }
                "transfer-encoding" if !is_current => {
                    return Err(Flaw::Malformed("HTTP/1.0 has no transfer encoding"));
                }
                "transfer-encoding" => is_chunked = true,
                "host" => hosts = hosts.saturating_add(1),
                "connection" if has_token(header.value, b"close") => self.keeps_alive = false,
                "expect" if header.value.eq_ignore_ascii_case(b"100-continue") => {
                    self.expects_continue = is_current;
                }
                "expect" => return Err(Flaw::Malformed("the only expectation is 100-continue")),
                _ => {}
            }
            self.headers.append(name, value);
        }
        if hosts > 1 || (hosts == 0 && is_current) {
            return Err(Flaw::Malformed("the request has not one Host"));
        }
        self.framing = match (length, is_chunked) {
            (Some(_), true) => {
                return Err(Flaw::Malformed(
                    "the request has a content length and a transfer encoding",
                ));
            }
            (None, true) => Framing::Chunked,
            (length, false) => Framing::Length(length.unwrap_or(0)),
        };
        let target = parsed.path.unwrap_or_default();
        self.target.clear();
        self.target.push_str(origin_form(target, &self.method)?);
        Ok(())
    }
}

fn has_end(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|four| four == b"\r\n\r\n") || bytes.windows(2).any(|two| two == b"\n\n")
}

fn content_length(value: &[u8]) -> Result<u64, Flaw> {
    let text = std::str::from_utf8(value)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok())
        .ok_or(Flaw::Malformed("the content length is not a number of bytes"))
}

/// Returns true if a list of tokens has this one.
fn has_token(value: &[u8], token: &[u8]) -> bool {
    value
        .split(|byte| *byte == b',')
        .any(|each| each.trim_ascii().eq_ignore_ascii_case(token))
}

/// Returns path and query of a target in origin or absolute form.
fn origin_form<'a>(target: &'a str, method: &Method) -> Result<&'a str, Flaw> {
    if target.starts_with('/') || (target == "*" && *method == Method::OPTIONS) {
        return Ok(target);
    }
    let scheme = target
        .split_once("://")
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"));
    match scheme {
        Some((_, rest)) => match rest.find(['/', '?']) {
            Some(at) if rest.as_bytes().get(at) == Some(&b'/') => Ok(rest.get(at..).unwrap_or("/")),
            Some(_) => Err(Flaw::Malformed("the target of the request has no path")),
            None => Ok("/"),
        },
        None => Err(Flaw::Malformed("the target of the request is not a path")),
    }
}

/// A body in chunks, read as its bytes arrive.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    state: ChunkState,
    pub(super) body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum ChunkState {
    #[default]
    Size,
    /// Bytes that the chunk still has.
    Data(usize),
    DataEnd,
    /// Bytes of trailers so far.
    Trailers(usize),
}

impl Chunks {
    /// Moves bytes from the buffer to the body. Returns true at its end.
    pub(super) fn read(&mut self, buffer: &mut BytesMut, max_bytes: usize) -> Result<bool, Flaw> {
        loop {
            match self.state {
                ChunkState::Data(0) => self.state = ChunkState::DataEnd,
                ChunkState::Data(left) => {
                    let taken = buffer.split_to(left.min(buffer.len()));
                    if taken.is_empty() {
                        return Ok(false);
                    }
                    self.body.extend_from_slice(&taken);
                    self.state = ChunkState::Data(left - taken.len());
                }
                ChunkState::DataEnd => match (buffer.first(), buffer.get(1)) {
                    (Some(b'\r'), Some(b'\n')) => {
                        buffer.advance(2);
                        self.state = ChunkState::Size;
                    }
                    (None, _) | (Some(b'\r'), None) => return Ok(false),
                    _ => return Err(Flaw::Malformed("a chunk does not end where its size says")),
                },
                ChunkState::Size => {
                    let Some(line) = take_line(buffer, MAX_SIZE_LINE_BYTES)? else {
                        return Ok(false);
                    };
                    let size = chunk_size(&line)?;
                    if size > max_bytes - self.body.len().min(max_bytes) {
                        return Err(Flaw::BodyTooLarge);
                    }
                    self.state = if size == 0 {
                        ChunkState::Trailers(0)
                    } else {
                        ChunkState::Data(size)
                    };
                }
                ChunkState::Trailers(so_far) => {
                    let Some(line) = take_line(buffer, MAX_TRAILER_BYTES - so_far)? else {
                        return Ok(false);
                    };
                    if line.is_empty() {
                        return Ok(true);
                    }
                    self.state = ChunkState::Trailers((so_far + line.len() + 2).min(MAX_TRAILER_BYTES));
                }
            }
        }
    }
}

/// Takes a line without its end, or `None` if it is not complete.
fn take_line(buffer: &mut BytesMut, max_bytes: usize) -> Result<Option<BytesMut>, Flaw> {
    let Some(at) = buffer.iter().take(max_bytes).position(|byte| *byte == b'\n') else {
        let is_long = buffer.len() >= max_bytes;
        return if is_long {
            Err(Flaw::Malformed("a line of the body is too long"))
        } else {
            Ok(None)
        };
    };
    let mut line = buffer.split_to(at + 1);
    line.truncate(at);
    if line.last() != Some(&b'\r') {
        return Err(Flaw::Malformed(
            "a line of the body ends without a carriage return",
        ));
    }
    line.truncate(at - 1);
    Ok(Some(line))
}

fn chunk_size(line: &[u8]) -> Result<usize, Flaw> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let is_hexadecimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let has_control = line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t');
    let text = std::str::from_utf8(digits)
        .ok()
        .filter(|_| is_hexadecimal && !has_control);
    text.and_then(|text| usize::from_str_radix(text, 16).ok())
        .ok_or(Flaw::Malformed("the size of a chunk is not a hexadecimal number"))
}

/// The part of an answer that depends on its request and connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) is_head: bool,
    pub(super) keeps_alive: bool,
    /// False for a body in parts, which the end of the connection ends.
    pub(super) has_length: bool,
    pub(super) now: SystemTime,
}

/// Appends the head of an answer.
pub(super) fn write_head(out: &mut Vec<u8>, answer: &Answer, reply: Reply) {
    let status = answer.status;
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    for (name, value) in &answer.headers {
        // These belong to the connection, except the length of a body that HEAD does not send.
        match name.as_str() {
            "content-length" if reply.is_head => {}
            "connection" | "content-length" | "date" | "transfer-encoding" => continue,
            _ => {}
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
    }
    let has_length = reply.has_length
        && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        && !status.is_informational();
    if has_length && !(reply.is_head && answer.body.is_empty()) {
        // Writing to a vector cannot fail.
        drop(write!(out, "\r\ncontent-length: {}", answer.body.len()));
    }
    if !reply.keeps_alive {
        out.extend_from_slice(b"\r\nconnection: close");
    }
    out.extend_from_slice(b"\r\ndate: ");
    write_date(out, reply.now);
    out.extend_from_slice(b"\r\n\r\n");
}

fn write_date(out: &mut Vec<u8>, now: SystemTime) {
    thread_local! {
        /// The second of the last answer, and its text.
        static LAST: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    LAST.with_borrow_mut(|(last, text)| {
        if *last != second || text.is_empty() {
            *last = second;
            *text = httpdate::fmt_http_date(now);
        }
        out.extend_from_slice(text.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Option<Request>, Flaw> {
        let mut request = Request::new();
        let mut buffer = BytesMut::from(text);
        Ok(request.read(&mut buffer, 1_024, 8)?.then_some(request))
    }

    #[test]
    fn ambiguous_heads_are_refused() {
        for head in [
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n",
            "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            assert!(matches!(read(head.as_bytes()), Err(Flaw::Malformed(_))), "{head}");
        }
    }

    #[test]
    fn heads_in_parts_and_over_limits() {
        let head = b"GET http://host/a?b=c HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nrest";
        let mut request = Request::new();
        let mut buffer = BytesMut::new();
        for (place, byte) in head.iter().enumerate() {
            buffer.extend_from_slice(&[*byte]);
            let is_end = place + 1 == head.len() - 4;
            assert_eq!(request.read(&mut buffer, 1_024, 8), Ok(is_end), "{place}");
            if is_end {
                break;
            }
        }
        assert_eq!(
            (request.target.as_str(), request.headers.len(), buffer.len()),
            ("/a?b=c", 2, 0)
        );
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(1_024));
        assert_eq!(read(long.as_bytes()).err(), Some(Flaw::HeadTooLarge));
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: 1\r\n".repeat(8));
        assert_eq!(read(many.as_bytes()).err(), Some(Flaw::HeadTooLarge));
    }

    #[test]
    fn chunks_in_any_parts_and_flawed_ones() {
        let whole = b"4;a=b\r\nabcd\r\n0A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nnext";
        for step in 1..whole.len() {
            let (mut chunks, mut buffer, mut is_done) = (Chunks::default(), BytesMut::new(), false);
            for part in whole.chunks(step) {
                buffer.extend_from_slice(part);
                is_done = is_done || chunks.read(&mut buffer, 14) == Ok(true);
            }
            assert!(
                is_done && chunks.body == b"abcd0123456789" && &buffer[..] == b"next",
                "{step}"
            );
        }
        for flawed in [
            "4 \r\nabcd\r\n",
            "0x4\r\nabcd\r\n",
            "\r\n",
            "4\nabcd\r\n",
            "4\r\nabcdX\r\n",
            "-1\r\n",
            "4;\x01\r\n",
        ] {
            let read = Chunks::default().read(&mut BytesMut::from(flawed), 14);
            assert!(matches!(read, Err(Flaw::Malformed(_))), "{flawed}");
        }
        let read = |text: &str| Chunks::default().read(&mut BytesMut::from(text), 14);
        assert_eq!(read("f\r\n"), Err(Flaw::BodyTooLarge));
        assert_eq!(read("ffffffffffffffff\r\n"), Err(Flaw::BodyTooLarge));
    }
}
