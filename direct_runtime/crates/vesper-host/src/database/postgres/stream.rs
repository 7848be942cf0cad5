//! A socket to a server: of a machine or of a folder.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::process;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::postgres::dsn::{Server, Target};
use crate::postgres::session::{keep_alive, socket_path};

/// A connected socket.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    /// The process that connected it.
    process: u32,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) async fn connect(target: &Target, server: &Server) -> io::Result<Self> {
        if server.is_local() {
            let stream = UnixStream::connect(socket_path(server)).await?;
            return Ok(Self::new(Socket::Unix(stream)));
        }
        let host = if server.address.is_empty() {
            &server.host
        } else {
            &server.address
        };
        let stream = TcpStream::connect((host.as_str(), server.port)).await?;
        stream.set_nodelay(true)?;
        keep_alive(target, &SockRef::from(&stream))?;
        Ok(Self::new(Socket::Tcp(stream)))
    }

    fn new(socket: Socket) -> Self {
        let process = process::id();
        Self { socket, process }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.process != process::id() {
            return; // a forked child gives up its copy, and the parent goes on
        }
        let socket = match &self.socket {
            Socket::Tcp(stream) => SockRef::from(stream),
            Socket::Unix(stream) => SockRef::from(stream),
        };
        // A forked child has a copy of the socket, so closing this one would leave a transaction and its locks open.
        // The server may have ended the connection already.
        let _ = socket.shutdown(Shutdown::Both);
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, into),
            Socket::Unix(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Socket::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
