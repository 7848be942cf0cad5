//! One connection: requests one after the other, each with one read and one write in the usual case.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf as _, Bytes, BytesMut};
use http::Method;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::mpsc;
use vesper_interp::guard::guarded;

use super::limits::Watched;
use super::native::Ran;
use super::queue::{Awaited, Pending, Replied};
use super::wire::{Chunks, Flaw, Framing, Reply, Request, write_head};
use super::{Buffered, Epoch, Finished, Shared};
use crate::answer::{Answer, Refusal, RefusalKind};
use crate::exchange::{Call, Endpoint, Head, Peer, Routed};

/// Bytes to read at least, and the usual capacity of a buffer.
const MIN_READ_BYTES: usize = 1_024;
const READ_BYTES: usize = 4_096;
/// Growth of the buffer of a body.
const BODY_STEP_BYTES: usize = 64 << 10;
/// Bodies up to this length are not counted in the buffered bytes of the server.
const FREE_BODY_BYTES: usize = 64 << 10;
/// Longer bodies of answers are not copied behind their head.
const MAX_COPIED_BYTES: usize = 16 << 10;
/// Time that a drain grants connections without a request.
const FRESH_DRAIN_TIME: Duration = Duration::from_secs(1);
/// Time after a deadline in which the run itself should answer.
const DEADLINE_SLACK: Duration = Duration::from_secs(1);
/// Input that is read and dropped after the last answer, so that the client sees the answer and not a reset.
const LINGER_TIME: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1 << 20;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent fact of the connection"
)]
pub(super) struct Connection<'a, S> {
    shared: &'a Arc<Shared>,
    watched: &'a Watched,
    stream: S,
    /// Subject of the client's certificate.
    subject: Option<String>,
    /// True beyond the maximum number of connections: its one request is refused.
    is_surplus: bool,
    buffer: BytesMut,
    out: Vec<u8>,
    request: Request,
    has_served: bool,
    is_at_end: bool,
    /// True if the buffer grew for a body; then its memory is given back with the next request.
    is_large: bool,
}

/// The reason why there is no body.
enum NoBody {
    /// The client closed the connection.
    Gone,
    Refused(Refusal),
}

/// The state of the connection after an answer.
enum Next {
    Request,
    /// The connection ends. With `is_unread` the client may still be sending a body.
    End {
        is_unread: bool,
    },
}

/// The beginning of a call.
enum Begun {
    Answered(Answer),
    Native(Answer),
    Waiting(Awaited),
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Connection<'a, S> {
    pub(super) fn new(
        shared: &'a Arc<Shared>,
        watched: &'a Watched,
        stream: S,
        subject: Option<String>,
        is_surplus: bool,
    ) -> Self {
        Self {
            shared,
            watched,
            stream,
            subject,
            is_surplus,
            buffer: BytesMut::new(),
            out: Vec::new(),
            request: Request::new(),
            has_served: false,
            is_at_end: false,
            is_large: false,
        }
    }

    /// Serves requests until the connection ends.
    pub(super) async fn serve(mut self) {
        loop {
            match self.read_head().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(flaw) => return self.refuse(flaw).await,
            }
            match self.serve_request().await {
                Ok(Next::Request) => self.has_served = true,
                Ok(Next::End { is_unread }) => return self.end(is_unread).await,
                Err(_) => return,
            }
        }
    }

    /// Refuses a request whose head cannot be read, and ends the connection.
    async fn refuse(&mut self, flaw: Flaw) {
        let (begun, now) = (Instant::now(), SystemTime::now());
        let answer = flaw.refusal().answer();
        if let Some(epoch) = self.shared.epoch() {
            // Logs show a method that is not known as `-`.
            let unknown = Method::from_bytes(b"-").unwrap_or_default();
            self.shared.finish(
                &Finished::default(),
                &epoch,
                &unknown,
                answer.status,
                (now, begun),
            );
        }
        let reply = Reply {
            is_head: false,
            keeps_alive: false,
            has_length: true,
            now,
        };
        if self.write(&answer, reply).await.is_ok() {
            self.end(true).await;
        }
    }

    fn deadline_in(&self, time: Duration) -> u64 {
        self.shared.clock.at(Instant::now() + time)
    }

    /// Reads the next head. Returns false at the end of the connection.
    async fn read_head(&mut self) -> Result<bool, Flaw> {
        let shared = self.shared;
        let settings = &shared.settings;
        let mut is_started = false;
        if std::mem::take(&mut self.is_large) {
            self.buffer = BytesMut::from(&self.buffer[..]);
            self.out = Vec::new();
        }
        let idle = if self.has_served {
            settings.idle
        } else {
            settings.head
        };
        self.watched.set(self.deadline_in(idle));
        loop {
            if !self.buffer.is_empty() {
                if self
                    .request
                    .read(&mut self.buffer, settings.max_head_bytes, settings.max_headers)?
                {
                    return Ok(true);
                }
                if !is_started {
                    is_started = true;
                    self.watched.set(self.deadline_in(settings.head));
                }
            }
            if self.is_at_end {
                return Ok(false);
            }
            // A drain ends the connection here, unless its first request may be on its way.
            let is_ended = self.fill(READ_BYTES, !is_started).await.is_err();
            if is_ended || self.is_at_end {
                return Ok(false);
            }
        }
    }

    /// Reads bytes into the buffer. The error is an expired deadline, a drain or a broken connection.
    async fn fill(&mut self, step: usize, is_idle: bool) -> io::Result<usize> {
        if self.buffer.capacity() - self.buffer.len() < MIN_READ_BYTES.min(step) {
            self.buffer.reserve(step);
        }
        let Self {
            shared,
            watched,
            stream,
            buffer,
            has_served,
            ..
        } = self;
        let mut is_shortened = false;
        let read = poll_fn(|context| {
            if let Poll::Ready(read) = pin!(stream.read_buf(buffer)).poll(context) {
                return Poll::Ready(read);
            }
            let is_drained = is_idle && shared.is_draining();
            if is_drained && !*has_served && !is_shortened {
                is_shortened = true;
                watched.set(shared.clock.at(Instant::now() + FRESH_DRAIN_TIME));
            }
            if watched.is_expired() || shared.is_closed() || (is_drained && *has_served) {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
            Poll::Pending
        });
        let read = read.await?;
        self.is_at_end = read == 0;
        Ok(read)
    }

    /// Serves the request whose head was read.
    async fn serve_request(&mut self) -> io::Result<Next> {
        let (begun, now) = (Instant::now(), SystemTime::now());
        let shared = self.shared;
        let Some(epoch) = shared.epoch() else {
            return Err(ErrorKind::NotConnected.into());
        };
        let is_head = self.request.method == Method::HEAD;
        let mut finished = Finished::default();
        let head = Head {
            method: &self.request.method,
            target: &self.request.target,
            headers: &self.request.headers,
            peer: Peer {
                subject: self.subject.as_deref(),
            },
            now,
        };
        let routed = guarded(|| epoch.exchange.route(&head)).unwrap_or_else(|message| {
            shared.log(format!("the routing of a request panicked: {message}"));
            Routed::Answer(Refusal::from(RefusalKind::Internal).answer())
        });
        let (mut is_unread, mut parts) = (false, None);
        let answer = match routed {
            Routed::Answer(answer) => {
                is_unread = !self.skip_body();
                answer
            }
            Routed::Call(call) => {
                finished.of_call(&call);
                let mut buffered = Buffered::new(shared);
                match self.read_body(&mut buffered).await {
                    Ok(body) => match self.begin(&epoch, call, &body, begun) {
                        Begun::Answered(answer) => answer,
                        Begun::Native(answer) => {
                            finished.is_native = true;
                            answer
                        }
                        Begun::Waiting(awaited) => {
                            drop(body);
                            let replied = self.wait(awaited).await?;
                            parts = replied.parts;
                            replied.answer
                        }
                    },
                    Err(NoBody::Gone) => return Err(ErrorKind::UnexpectedEof.into()),
                    Err(NoBody::Refused(refusal)) => {
                        is_unread = true;
                        call.refuse(&refusal)
                    }
                }
            }
        };
        let is_last = self.is_surplus || self.is_at_end || shared.is_draining();
        // The end of the connection ends a body in parts.
        let keeps_alive = self.request.keeps_alive && !is_unread && !is_last && parts.is_none();
        // Before the write: a client that has its answer finds it counted.
        shared.finish(
            &finished,
            &epoch,
            &self.request.method,
            answer.status,
            (now, begun),
        );
        self.write(
            &answer,
            Reply {
                is_head,
                keeps_alive,
                has_length: parts.is_none(),
                now,
            },
        )
        .await?;
        if let Some(parts) = parts.filter(|_| !is_head) {
            self.write_parts(parts).await?;
        }
        Ok(if keeps_alive {
            Next::Request
        } else {
            Next::End { is_unread }
        })
    }

    /// Drops a body that was not requested. Returns false if it has not arrived.
    fn skip_body(&mut self) -> bool {
        match self.request.framing {
            Framing::Length(length) if length <= self.buffer.len() as u64 => {
                self.buffer.advance(usize::try_from(length).unwrap_or(0));
                true
            }
            _ => false,
        }
    }

    /// Reads the body, within the limits.
    async fn read_body(&mut self, buffered: &mut Buffered<'_>) -> Result<BytesMut, NoBody> {
        if self.is_surplus {
            return Err(NoBody::Refused(overloaded("the server has too many connections")));
        }
        let settings = &self.shared.settings;
        let max_bytes = settings.max_body_bytes;
        let flawed = |flaw: Flaw| NoBody::Refused(flaw.refusal());
        let mut chunks = match self.request.framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > max_bytes {
                    return Err(flawed(Flaw::BodyTooLarge));
                }
                if length <= self.buffer.len() {
                    return Ok(self.buffer.split_to(length));
                }
                Err(length)
            }
            Framing::Chunked => Ok(Chunks::default()),
        };
        if self.request.expects_continue && self.buffer.is_empty() && self.send(CONTINUE, &[]).await.is_err()
        {
            return Err(NoBody::Gone);
        }
        self.is_large = true;
        let (begun, mut received) = (Instant::now(), 0_u64);
        loop {
            let (length, left) = match &mut chunks {
                Ok(chunks) => {
                    if chunks.read(&mut self.buffer, max_bytes).map_err(flawed)? {
                        return Ok(BytesMut::from(bytes::Bytes::from(std::mem::take(
                            &mut chunks.body,
                        ))));
                    }
                    (chunks.body.len(), READ_BYTES)
                }
                Err(length) if self.buffer.len() >= *length => return Ok(self.buffer.split_to(*length)),
                Err(length) => (*length, *length - self.buffer.len()),
            };
            if length > FREE_BODY_BYTES && !buffered.grow(length) {
                return Err(NoBody::Refused(overloaded(
                    "the server holds too many large bodies",
                )));
            }
            let earned =
                Duration::from_millis(received.saturating_mul(1_000) / settings.min_bytes_per_second);
            self.watched
                .set(self.shared.clock.at(begun + settings.body + earned));
            match self.fill(left.clamp(1, BODY_STEP_BYTES), false).await {
                Ok(0) => return Err(NoBody::Gone),
                Ok(read) => received += read as u64,
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    return Err(NoBody::Refused(RefusalKind::SlowBody.into()));
                }
                Err(_) => return Err(NoBody::Gone),
            }
        }
    }

    /// Runs a call natively, or passes it to another thread. A panic is an internal error.
    fn begin(&self, epoch: &Arc<Epoch>, call: Box<Call>, body: &[u8], begun: Instant) -> Begun {
        let shared = self.shared;
        let ran = guarded(|| {
            let inputs = match call.inputs(body) {
                Ok(inputs) => inputs,
                Err(answer) => return ControlFlow::Break(Begun::Answered(answer)),
            };
            let node = match call.endpoint() {
                Endpoint::Node(index) => epoch.nodes.get(index).and_then(Option::as_ref),
                Endpoint::Builtin(_) => None,
            };
            let is_long = match node.map(|node| node.run_inline(&inputs)) {
                Some(Ran::Returned(outcome)) => {
                    return ControlFlow::Break(Begun::Native(call.answer(&outcome, None)));
                }
                Some(Ran::Fault(message)) => {
                    shared.log(format!("a native run panicked: {message}"));
                    false
                }
                Some(Ran::Long) => true,
                Some(Ran::Declined) | None => false,
            };
            ControlFlow::Continue((inputs.into_owned(), is_long))
        });
        match ran {
            Ok(ControlFlow::Break(begun)) => begun,
            Ok(ControlFlow::Continue((inputs, is_long))) => {
                let deadline = call.timeout().map(|time| begun + time);
                let (pending, awaited) = Pending::new(Arc::from(call), Arc::clone(epoch), inputs, deadline);
                if is_long {
                    shared.run_long(pending);
                } else {
                    shared.queue.push(pending);
                }
                Begun::Waiting(awaited)
            }
            Err(message) => {
                shared.log(format!("a request panicked: {message}"));
                Begun::Answered(call.refuse(&RefusalKind::Internal.into()))
            }
        }
    }

    /// Waits for the answer of another thread. Notes a client that resets the connection, and reads no more than a
    /// head of its next requests.
    async fn wait(&mut self, mut awaited: Awaited) -> io::Result<Replied> {
        match awaited.deadline {
            Some(deadline) => self.watched.set(self.shared.clock.at(deadline + DEADLINE_SLACK)),
            None => self.watched.clear(),
        }
        let Self {
            shared,
            watched,
            stream,
            buffer,
            is_at_end,
            ..
        } = self;
        let refuse = |awaited: &Awaited, kind: RefusalKind| Replied {
            answer: awaited.call.refuse(&kind.into()),
            parts: None,
        };
        poll_fn(|context| {
            match Pin::new(&mut awaited.answer).poll(context) {
                Poll::Ready(Ok(replied)) => return Poll::Ready(Ok(replied)),
                // The call was dropped: because its client has gone, or by a bug.
                Poll::Ready(Err(_)) if awaited.is_abandoned.load(Ordering::Relaxed) => {
                    return Poll::Ready(Err(ErrorKind::ConnectionAborted.into()));
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Ok(refuse(&awaited, RefusalKind::Internal))),
                Poll::Pending => {}
            }
            while !*is_at_end && buffer.len() < READ_BYTES {
                if buffer.capacity() == buffer.len() {
                    buffer.reserve(READ_BYTES);
                }
                match pin!(stream.read_buf(buffer)).poll(context) {
                    // A client that sends no more may still read its answer.
                    Poll::Ready(Ok(0)) => *is_at_end = true,
                    Poll::Ready(Err(_)) => {
                        *is_at_end = true;
                        awaited.is_abandoned.store(true, Ordering::Relaxed);
                    }
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => break,
                }
            }
            if shared.is_closed() {
                return Poll::Ready(Ok(refuse(&awaited, RefusalKind::Closing)));
            }
            if watched.is_expired() {
                return Poll::Ready(Ok(refuse(&awaited, RefusalKind::Deadline)));
            }
            Poll::Pending
        })
        .await
    }

    async fn write(&mut self, answer: &Answer, reply: Reply) -> io::Result<()> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        write_head(&mut out, answer, reply);
        let mut body: &[u8] = if reply.is_head { &[] } else { &answer.body };
        if body.len() <= MAX_COPIED_BYTES {
            out.extend_from_slice(body);
            body = &[];
        }
        let sent = self.send(&out, body).await;
        self.out = out;
        sent
    }

    /// Writes the parts of a body as they come, until their sender or the client ends it, or the connection breaks. A
    /// client that has closed its connection and one that only sends no more look alike; both have gone.
    async fn write_parts(&mut self, mut parts: mpsc::Receiver<Bytes>) -> io::Result<()> {
        loop {
            self.watched.clear();
            let Self {
                shared,
                stream,
                buffer,
                is_at_end,
                ..
            } = self;
            let part = poll_fn(|context| {
                if let Poll::Ready(part) = parts.poll_recv(context) {
                    return Poll::Ready(Ok(part));
                }
                while !*is_at_end {
                    buffer.clear();
                    buffer.reserve(MIN_READ_BYTES);
                    match pin!(stream.read_buf(buffer)).poll(context) {
                        Poll::Ready(Ok(read)) => *is_at_end = read == 0,
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => break,
                    }
                }
                if *is_at_end || shared.is_closed() {
                    return Poll::Ready(Ok(None));
                }
                Poll::Pending
            });
            match part.await? {
                Some(part) => self.send(&part, &[]).await?,
                None => return Ok(()),
            }
        }
    }

    /// Sends two parts, within the time for answers.
    async fn send(&mut self, first: &[u8], second: &[u8]) -> io::Result<()> {
        let Self {
            shared,
            watched,
            stream,
            ..
        } = self;
        let settings = &shared.settings;
        let (mut sent, mut begun) = (0, None);
        let total = first.len() + second.len();
        poll_fn(|context| {
            while sent < total {
                let head = first.get(sent..).unwrap_or_default();
                let body = second.get(sent.saturating_sub(first.len())..).unwrap_or_default();
                let written = if body.is_empty() {
                    Pin::new(&mut *stream).poll_write(context, head)
                } else {
                    let parts = [IoSlice::new(head), IoSlice::new(body)];
                    Pin::new(&mut *stream).poll_write_vectored(context, &parts)
                };
                match written {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(written)) => sent += written,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => break,
                }
            }
            if sent == total
                && let Poll::Ready(flushed) = Pin::new(&mut *stream).poll_flush(context)
            {
                return Poll::Ready(flushed);
            }
            if begun.is_some() && watched.is_expired() || shared.is_closed() {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
            let begun = *begun.get_or_insert_with(Instant::now);
            let earned = Duration::from_millis(sent as u64 * 1_000 / settings.min_bytes_per_second);
            watched.set(shared.clock.at(begun + settings.write + earned));
            Poll::Pending
        })
        .await
    }

    /// Ends the connection after its last answer. Drops unread input first, because closing would reset the connection
    /// before the client has read the answer.
    async fn end(&mut self, is_unread: bool) {
        self.watched.set(self.deadline_in(LINGER_TIME));
        let Self {
            shared,
            watched,
            stream,
            ..
        } = self;
        let is_shut = poll_fn(|context| match Pin::new(&mut *stream).poll_shutdown(context) {
            Poll::Pending if watched.is_expired() || shared.is_closed() => Poll::Ready(false),
            polled => polled.map(|shut| shut.is_ok()),
        });
        if !is_shut.await || !is_unread {
            return;
        }
        let mut dropped = 0;
        while !self.is_at_end && dropped < LINGER_BYTES {
            self.buffer.clear();
            match self.fill(READ_BYTES, false).await {
                Ok(read) => dropped += read,
                Err(_) => return,
            }
        }
    }
}

fn overloaded(detail: &str) -> Refusal {
    Refusal {
        detail: Some(detail.to_owned()),
        retry_after: Some(Duration::from_secs(1)),
        ..Refusal::from(RefusalKind::Overloaded)
    }
}

impl Flaw {
    fn refusal(self) -> Refusal {
        let (kind, detail) = match self {
            Self::Malformed(detail) => (RefusalKind::Malformed, Some(detail.to_owned())),
            Self::HeadTooLarge => (RefusalKind::HeadTooLarge, None),
            Self::BodyTooLarge => (RefusalKind::TooLarge, None),
        };
        Refusal {
            detail,
            ..Refusal::from(kind)
        }
    }
}
