//! One connection, in the hands of one attempt at a time. hyper knows the grammar of HTTP, and nothing else.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::http::HeaderValue;
use hyper::{Request, Response};
use tokio::time::{Instant, timeout_at};
use zeroize::Zeroizing;

use super::request::Outgoing;
use super::response::{Headers, bad_response, is_good};
use super::url::Origin;
use super::wire::{Events, Watch, Wire};
use crate::effect::Failure;
use crate::messages::grouped;

/// Bytes of the headers of an answer.
const MAX_HEAD: usize = 102_400;
/// Headers of an answer; hyper takes only 100 by default.
const MAX_HEADERS: usize = 1024;
/// Bytes that are read of the body of an answer that only a message shows.
const MAX_ERROR_BODY: usize = 65_536;
/// Each piece of a body costs some time, however small it is: after so many, their average size must be `MIN_PIECE`.
const FREE_PIECES: usize = 10_000;
const MIN_PIECE: usize = 64;
const PACKINGS: [&str; 6] = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress"];

/// End of an exchange without a usable answer.
pub(super) enum Interrupted {
    /// No time was left, with the activity that it was left for.
    TimedOut(&'static str),
    /// The connection ended or broke.
    Gone(String),
    /// The other side does not speak HTTP. The text is hyper's: it holds nothing that the other side sent.
    NotHttp(String),
    Unusable(Failure),
}

/// Limits of an exchange.
pub(super) struct Limits<'a> {
    pub(super) provider: &'a str,
    pub(super) max_response: usize,
    pub(super) until: Instant,
}

/// Answer whose body is not read yet.
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Headers,
    body: Incoming,
    /// Pieces and bytes of the body that were read.
    count: usize,
    length: usize,
}

type Driver = http1::Connection<Wire, Full<Bytes>>;

/// Connection and the future that drives it, which is polled together with each request.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) origin: Origin,
    pub(super) idle_since: Instant,
    pub(super) is_reused: bool,
    pub(super) generation: u64,
    events: Arc<Events>,
    watch: Watch,
    sender: SendRequest<Full<Bytes>>,
    driver: Option<Driver>,
    /// Error that ended the driver.
    problem: Option<String>,
}

impl Connection {
    pub(super) async fn open(
        wire: Wire,
        events: Arc<Events>,
        watch: Watch,
        origin: Origin,
    ) -> Result<Self, String> {
        let handshake = http1::Builder::new()
            .title_case_headers(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD)
            .handshake(wire);
        let (sender, driver) = handshake.await.map_err(|error| error.to_string())?;
        Ok(Self {
            origin,
            idle_since: Instant::now(),
            is_reused: false,
            generation: 0,
            events,
            watch,
            sender,
            driver: Some(driver),
            problem: None,
        })
    }

    /// Returns the number of bytes that left so far.
    pub(super) fn written(&self) -> u64 {
        self.events.written()
    }

    /// Returns true where another request may be sent: the last request was sent and its answer read to their ends,
    /// and nothing came behind the answer, which would be read as the next one.
    pub(super) async fn is_idle(&mut self) -> bool {
        if self.events.is_write_broken() {
            return false;
        }
        let is_ready = poll_fn(|cx| {
            self.drive(cx);
            let is_ready = matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(())));
            Poll::Ready(is_ready)
        });
        is_ready.await && self.driver.is_some()
    }

    /// Returns true where an idle connection has ended, or has bytes that no request asked for.
    pub(super) async fn is_stale(&mut self) -> bool {
        self.watch.is_stale() || !self.is_idle().await
    }

    /// Sends a request and reads the head of its answer.
    pub(super) async fn begin(
        &mut self,
        outgoing: &Outgoing,
        limits: &Limits<'_>,
    ) -> Result<Head, Interrupted> {
        let request = wire_request(outgoing).map_err(Interrupted::NotHttp)?;
        let head = timeout_at(limits.until, self.send(request)).await;
        let response = head.map_err(|_| self.timed_out())??;
        let (parts, body) = response.into_parts();
        let headers = Headers::of(&parts.headers);
        let status = parts.status.as_u16();
        check_framing(status, &headers).map_err(Interrupted::NotHttp)?;
        if is_good(status) && outgoing.method != "HEAD" {
            check_headers(&headers, limits).map_err(Interrupted::Unusable)?;
        }
        Ok(Head {
            status,
            headers,
            body,
            count: 0,
            length: 0,
        })
    }

    /// Reads the rest of an answer; of another status than 2xx its beginning.
    pub(super) async fn read(
        &mut self,
        head: &mut Head,
        limits: &Limits<'_>,
    ) -> Result<Vec<u8>, Interrupted> {
        if !is_good(head.status) {
            return Ok(self
                .read_error_body(&head.headers, &mut head.body, limits.until)
                .await);
        }
        let mut found = Vec::new();
        while let Some(piece) = self.next(head, limits).await? {
            found.extend_from_slice(&piece);
        }
        Ok(found)
    }

    /// Returns the next piece of a body within its limits; `None` at its end.
    pub(super) async fn next(
        &mut self,
        head: &mut Head,
        limits: &Limits<'_>,
    ) -> Result<Option<Bytes>, Interrupted> {
        let piece = timeout_at(limits.until, self.next_piece(&mut head.body)).await;
        let Some(piece) = piece.map_err(|_| self.timed_out())?? else {
            return Ok(None);
        };
        head.length += piece.len();
        if head.length > limits.max_response {
            return Err(Interrupted::Unusable(too_long(limits)));
        }
        if head.count > FREE_PIECES + head.length / MIN_PIECE {
            return Err(Interrupted::Unusable(bad_response(format!(
                "the answer of `{}` comes in {} pieces, of less than {MIN_PIECE} bytes on the average",
                limits.provider,
                grouped(head.count)
            ))));
        }
        head.count += 1;
        Ok(Some(piece))
    }

    /// Sends a request and waits for the head of its answer.
    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Interrupted> {
        let is_ready = poll_fn(|cx| {
            self.drive(cx);
            self.sender.poll_ready(cx)
        });
        if let Err(error) = is_ready.await {
            return Err(self.interrupted(&error));
        }
        let mut response = pin!(self.sender.send_request(request));
        let response = poll_fn(|cx| {
            drive(&mut self.driver, &mut self.problem, cx);
            response.as_mut().poll(cx)
        });
        let result = response.await;
        result.map_err(|error| self.interrupted(&error))
    }

    /// Reads the beginning of a body. However it ends, the status is known and decides.
    async fn read_error_body(&mut self, headers: &Headers, body: &mut Incoming, until: Instant) -> Vec<u8> {
        let mut found = Vec::new();
        while found.len() <= MAX_ERROR_BODY {
            match timeout_at(until, self.next_piece(body)).await {
                Ok(Ok(Some(piece))) => found.extend_from_slice(&piece),
                Ok(Ok(None)) => break,
                Ok(Err(_)) | Err(_) => return found,
            }
        }
        if headers.get("content-encoding").is_some() {
            return Vec::new();
        }
        found.truncate(MAX_ERROR_BODY);
        found
    }

    /// Returns the next piece of a body; `None` at its end.
    async fn next_piece(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, Interrupted> {
        loop {
            let frame = poll_fn(|cx| {
                self.drive(cx);
                Pin::new(&mut *body).poll_frame(cx)
            });
            match frame.await {
                None => return Ok(None),
                // Trailers are no data.
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Ok(Some(piece));
                    }
                }
                Some(Err(error)) => return Err(self.interrupted(&error)),
            }
        }
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.driver, &mut self.problem, cx);
    }

    fn timed_out(&self) -> Interrupted {
        Interrupted::TimedOut(if self.events.is_stalled() {
            "while sending the request"
        } else {
            "while waiting for the answer"
        })
    }

    fn interrupted(&self, error: &hyper::Error) -> Interrupted {
        if let Some(reason) = self.events.read_error() {
            return Interrupted::Gone(format!("the connection broke: {reason}"));
        }
        if self.events.has_ended() {
            return Interrupted::Gone("the connection was closed before the answer was complete".to_owned());
        }
        let problem = self.problem.clone();
        Interrupted::NotHttp(problem.unwrap_or_else(|| error.to_string()))
    }
}

#[cfg(test)]
impl Connection {
    /// Ends our own direction of the connection: the next write fails, and nothing else shows it.
    pub(super) fn break_sending(&self) {
        self.watch.end_writing();
    }

    pub(super) fn note_broken(&self) {
        self.events.note_broken();
    }
}

/// Polls the future that drives a connection, and keeps the error that ends it.
fn drive(driver: &mut Option<Driver>, problem: &mut Option<String>, cx: &mut Context<'_>) {
    let Some(running) = driver else {
        return;
    };
    if let Poll::Ready(result) = Pin::new(running).poll(cx) {
        *problem = result.err().map(|error| error.to_string());
        *driver = None;
    }
}

/// Returns a request with the headers that depend on its connection.
fn wire_request(outgoing: &Outgoing) -> Result<Request<Full<Bytes>>, String> {
    let mut request = Request::builder()
        .method(outgoing.method.as_str())
        .uri(outgoing.url.target())
        .header("host", outgoing.url.origin.authority());
    for (name, value) in &outgoing.headers {
        let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(Zeroizing::clone(value)))
            .map_err(|error| error.to_string())?;
        value.set_sensitive(true);
        request = request.header(name.as_str(), value);
    }
    request = request.header("accept-encoding", "identity");
    let body = outgoing.body.clone();
    if body.is_some() || matches!(outgoing.method.as_str(), "POST" | "PUT" | "PATCH") {
        let length = body.as_ref().map_or(0, Bytes::len);
        request = request.header("content-length", length);
    }
    request
        .body(Full::new(body.unwrap_or_default()))
        .map_err(|error| error.to_string())
}

/// Checks what hyper leaves to its user: another coding than `chunked`, and a change of the protocol.
fn check_framing(status: u16, headers: &Headers) -> Result<(), String> {
    if status < 200 {
        return Err("the protocol is switched".to_owned());
    }
    let is_plain = match headers.get("transfer-encoding") {
        None => true,
        Some(coding) => headers.count("transfer-encoding") == 1 && coding.eq_ignore_ascii_case("chunked"),
    };
    if !is_plain {
        return Err("only the transfer encoding `chunked` is supported".to_owned());
    }
    Ok(())
}

/// Refuses bodies that are packed, or announced as too long, before they are read.
fn check_headers(headers: &Headers, limits: &Limits<'_>) -> Result<(), Failure> {
    let packed = headers
        .get("content-encoding")
        .unwrap_or("identity")
        .to_lowercase();
    if !matches!(packed.as_str(), "" | "identity") {
        let how = if PACKINGS.contains(&packed.as_str()) {
            format!(" (`{packed}`)")
        } else {
            String::new()
        };
        return Err(bad_response(format!(
            "the answer of `{}` is compressed{how}, though it was asked for as it is",
            limits.provider
        )));
    }
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse::<u64>().ok());
    let max_response = u64::try_from(limits.max_response).unwrap_or(u64::MAX);
    if length.is_some_and(|length| length > max_response) {
        return Err(too_long(limits));
    }
    Ok(())
}

fn too_long(limits: &Limits<'_>) -> Failure {
    bad_response(format!(
        "the answer of `{}` is longer than {} bytes, the limit `max_response`",
        limits.provider,
        grouped(limits.max_response)
    ))
}
