//! Streams that report what went over them: whether a byte left decides what a failure means.

use std::io::{self, IoSlice};
use std::net::{Shutdown, TcpStream as StdTcpStream};
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::messages::reason;

const READ_SIZE: usize = 16_384;

/// Events of a connection, for its user.
#[derive(Debug, Default)]
pub(super) struct Events {
    written: AtomicU64,
    /// True while the system takes no more bytes.
    is_stalled: AtomicBool,
    is_write_broken: AtomicBool,
    has_ended: AtomicBool,
    read_error: Mutex<Option<String>>,
}

impl Events {
    pub(super) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.is_stalled.load(Relaxed)
    }

    pub(super) fn is_write_broken(&self) -> bool {
        self.is_write_broken.load(Relaxed)
    }

    /// Returns true after the other side ended its direction.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }

    pub(super) fn read_error(&self) -> Option<String> {
        let error = self.read_error.lock();
        error.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_read(&self, result: &io::Result<()>, length: usize) {
        match result {
            Ok(()) if length == 0 => self.has_ended.store(true, Relaxed),
            Ok(()) => {}
            Err(error) => {
                let mut place = self.read_error.lock().unwrap_or_else(PoisonError::into_inner);
                *place = Some(reason(error));
            }
        }
    }

    /// Notes the result of a write and hides its failure: the server may have refused the request in the middle and
    /// have answered why, so its answer is read all the same.
    fn note_write(&self, written: Poll<io::Result<usize>>, length: usize) -> Poll<io::Result<usize>> {
        self.is_stalled.store(written.is_pending(), Relaxed);
        let Ok(count) = ready!(written) else {
            self.is_write_broken.store(true, Relaxed);
            return Poll::Ready(Ok(length));
        };
        self.written
            .fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Relaxed);
        Poll::Ready(Ok(count))
    }
}

/// TCP stream that counts what it writes.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    events: Arc<Events>,
}

impl Counted {
    pub(super) fn new(stream: TcpStream, events: Arc<Events>) -> Self {
        Self { stream, events }
    }

    /// Returns a second handle of the connection, to look at it without the stream.
    pub(super) fn watch(&self) -> io::Result<Watch> {
        let handle = self.stream.as_fd().try_clone_to_owned()?;
        Ok(Watch(StdTcpStream::from(handle)))
    }
}

/// Handle of a connection that only looks whether bytes wait.
#[derive(Debug)]
pub(super) struct Watch(StdTcpStream);

impl Watch {
    /// Returns true where an idle connection has ended, or has bytes that no request asked for.
    pub(super) fn is_stale(&self) -> bool {
        // The socket does not block: without bytes and without an end this is an error of its own kind.
        match self.0.peek(&mut [0]) {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}

#[cfg(test)]
impl Watch {
    pub(super) fn end_writing(&self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
impl Events {
    pub(super) fn note_broken(&self) {
        self.is_write_broken.store(true, Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // A forked child has copies of the connection, so closing this one would not end it. It may have ended already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.events.is_write_broken() {
            return Poll::Ready(Ok(data.len()));
        }
        let written = Pin::new(&mut this.stream).poll_write(cx, data);
        this.events.note_write(written, data.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let length = parts.iter().map(|part| part.len()).sum();
        if this.events.is_write_broken() {
            return Poll::Ready(Ok(length));
        }
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.events.note_write(written, length)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// Stream below HTTP.
#[derive(Debug)]
enum Stream {
    Plain(Counted),
    Secured(Box<TlsStream<Counted>>),
}

/// Connection as hyper uses it.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    events: Arc<Events>,
    buffer: Box<[u8]>,
}

impl Wire {
    pub(super) fn plain(stream: Counted, events: Arc<Events>) -> Self {
        Self::new(Stream::Plain(stream), events)
    }

    pub(super) fn secured(stream: TlsStream<Counted>, events: Arc<Events>) -> Self {
        Self::new(Stream::Secured(Box::new(stream)), events)
    }

    fn new(stream: Stream, events: Arc<Events>) -> Self {
        let buffer = vec![0; READ_SIZE].into_boxed_slice();
        Self {
            stream,
            events,
            buffer,
        }
    }

    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        Pin::new(match &mut self.stream {
            Stream::Plain(stream) => stream,
            Stream::Secured(stream) => stream,
        })
    }
}

impl Read for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let size = cursor.remaining().min(this.buffer.len());
        let Some(room) = this.buffer.get_mut(..size).filter(|room| !room.is_empty()) else {
            return Poll::Ready(Ok(()));
        };
        let mut buffer = ReadBuf::new(room);
        let result = ready!(match &mut this.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Stream::Secured(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        });
        this.events.note_read(&result, buffer.filled().len());
        cursor.put_slice(buffer.filled());
        Poll::Ready(result)
    }
}

impl Write for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().writer().poll_write(cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().writer().poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Secured(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().writer().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().writer().poll_shutdown(cx)
    }
}
