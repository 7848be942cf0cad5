//! A socket for tokio-postgres whose reads block the caller.
//!
//! A poll for data that has not arrived is pending. `run` then waits in a read of the socket and polls again: the
//! protocol stays tokio-postgres's, and no reactor is needed.

use std::future::Future;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::interrupts::is_interrupted;

const READ_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
        }
    }

    fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(is_nonblocking),
            Self::Unix(stream) => stream.set_nonblocking(is_nonblocking),
        }
    }
}

/// The stream and what arrived on it.
#[derive(Debug)]
struct Wire {
    stream: Stream,
    arrived: Vec<u8>,
    /// Bytes of `arrived` that were read.
    read: usize,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Closed,
    Failed(io::ErrorKind),
}

/// A socket; its clones share the stream.
#[derive(Clone, Debug)]
pub struct Socket {
    wire: Arc<Mutex<Wire>>,
}

impl Socket {
    /// Takes a connected stream; one read or write waits for `timeout` at most.
    pub fn new(stream: Stream, timeout: Duration) -> io::Result<Self> {
        stream.set_timeout(timeout)?;
        let wire = Wire {
            stream,
            arrived: Vec::new(),
            read: 0,
            end: None,
        };
        Ok(Self {
            wire: Arc::new(Mutex::new(wire)),
        })
    }

    /// Changes the longest wait of a read or write.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.wire().stream.set_timeout(timeout)
    }

    /// Returns true where the server sent nothing unasked: between statements it only reports the end of a session.
    pub fn is_quiet(&self) -> bool {
        let mut wire = self.wire();
        if wire.end.is_some() || wire.read < wire.arrived.len() || wire.stream.set_nonblocking(true).is_err()
        {
            return false;
        }
        let is_quiet =
            matches!(wire.stream.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        wire.stream.set_nonblocking(false).is_ok() && is_quiet
    }

    /// Completes a future of this socket on this thread.
    ///
    /// `beside` is polled with it until it ends: the connection of tokio-postgres, which moves the bytes.
    pub fn run<T>(&self, future: impl Future<Output = T>, mut beside: impl FnMut(&mut Context<'_>)) -> T {
        let signal = Arc::new(Signal(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&signal));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            signal.0.store(false, Ordering::Relaxed);
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            beside(&mut context);
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            // A part that another one woke goes on without new data.
            if !signal.0.load(Ordering::Relaxed) {
                self.wait();
            }
        }
    }

    /// Waits until data arrived, or the end.
    fn wait(&self) {
        let mut wire = self.wire();
        let wire = &mut *wire;
        wire.arrived.drain(..wire.read);
        wire.read = 0;
        let filled = wire.arrived.len();
        wire.arrived.resize(filled + READ_BYTES, 0);
        let buffer = wire.arrived.get_mut(filled..).unwrap_or_default();
        let count = loop {
            match wire.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted && !is_interrupted() => {}
                other => break other,
            }
        };
        wire.arrived
            .truncate(filled + count.as_ref().copied().unwrap_or(0));
        match count {
            Ok(0) => wire.end = Some(End::Closed),
            Ok(_) => {}
            Err(error) => wire.end = Some(End::Failed(error.kind())),
        }
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        // A panic in a read leaves the stream as it is.
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Signal(AtomicBool);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut wire = self.wire();
        let count = into.remaining().min(wire.arrived.len() - wire.read);
        if count > 0 {
            into.put_slice(wire.arrived.get(wire.read..wire.read + count).unwrap_or_default());
            wire.read += count;
            return Poll::Ready(Ok(()));
        }
        match wire.end {
            None => Poll::Pending,
            Some(End::Closed) => Poll::Ready(Ok(())),
            Some(End::Failed(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)) => Poll::Ready(Err(
                io::Error::new(io::ErrorKind::TimedOut, "the server did not answer in time"),
            )),
            Some(End::Failed(kind)) => Poll::Ready(Err(kind.into())),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut wire = self.wire();
        loop {
            match wire.stream.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
