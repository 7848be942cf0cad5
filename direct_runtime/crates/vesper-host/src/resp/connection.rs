//! One connection to a server.

use std::fmt;
use std::pin::Pin;
use std::task::Poll;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use super::address::{Address, Place};
use super::frames::{Parser, Reply, push_command, refusal_class};
use super::tls::client_config;
use super::{RespError, Word};

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(super) struct Connection {
    stream: Box<dyn Stream>,
    /// Bytes that were read and do not make a reply yet.
    buffer: Vec<u8>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connection")
    }
}

impl Connection {
    /// Connects, authenticates and selects the database.
    pub(super) async fn open(address: &Address) -> Result<Self, RespError> {
        let stream: Box<dyn Stream> = match &address.place {
            Place::File(path) => Box::new(UnixStream::connect(path).await.map_err(|error| broken(&error))?),
            Place::Network { host, port, tls } => {
                let stream = TcpStream::connect((host.as_str(), *port));
                let stream = stream.await.map_err(|error| broken(&error))?;
                stream.set_nodelay(true).map_err(|error| broken(&error))?;
                match tls {
                    None => Box::new(stream),
                    Some(files) => {
                        let name = ServerName::try_from(host.clone())
                            .map_err(|error| RespError::connection(error.to_string()))?;
                        let connector = TlsConnector::from(client_config(files)?);
                        let stream = connector.connect(name, stream);
                        Box::new(stream.await.map_err(|error| broken(&error))?)
                    }
                }
            }
        };
        let buffer = Vec::new();
        let mut connection = Self { stream, buffer };
        connection.greet(address).await?;
        Ok(connection)
    }

    async fn greet(&mut self, address: &Address) -> Result<(), RespError> {
        let password = address.password.as_ref().map_or("", |password| password.as_str());
        let mut commands: Vec<Vec<Word<'_>>> = Vec::new();
        match &address.username {
            Some(username) => commands.push(vec![
                Word::Text("AUTH"),
                Word::Text(username),
                Word::Text(password),
            ]),
            None if !password.is_empty() => commands.push(vec![Word::Text("AUTH"), Word::Text(password)]),
            None => {}
        }
        if address.database != 0 {
            commands.push(vec![
                Word::Text("SELECT"),
                Word::Number(i64::from(address.database)),
            ]);
        }
        if commands.is_empty() {
            return Ok(());
        }
        for reply in self.run(&commands).await? {
            if let Reply::Refused(words) = reply {
                return Err(RespError {
                    class: refusal_class(&words),
                    message: words,
                });
            }
        }
        Ok(())
    }

    /// Sends commands together and reads their replies.
    pub(super) async fn run(&mut self, commands: &[Vec<Word<'_>>]) -> Result<Vec<Reply>, RespError> {
        // The first commands of a connection hold its password.
        let mut bytes = Zeroizing::new(Vec::with_capacity(1024));
        for command in commands {
            push_command(&mut bytes, command);
        }
        self.stream
            .write_all(&bytes)
            .await
            .map_err(|error| broken(&error))?;
        self.stream.flush().await.map_err(|error| broken(&error))?;
        let mut replies = Vec::with_capacity(commands.len());
        for _ in commands {
            replies.push(self.reply().await?);
        }
        Ok(replies)
    }

    async fn reply(&mut self) -> Result<Reply, RespError> {
        let mut parser = Parser::default();
        loop {
            if let Some((reply, length)) = parser.parse(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(reply);
            }
            let read = self.stream.read_buf(&mut self.buffer);
            if read.await.map_err(|error| broken(&error))? == 0 {
                return Err(RespError::connection("Connection closed by server."));
            }
        }
    }

    /// Returns true where nothing has arrived since the last reply; the server closes idle connections.
    pub(super) async fn is_quiet(&mut self) -> bool {
        let mut byte = [0_u8];
        let stream = &mut self.stream;
        let is_silent = std::future::poll_fn(|context| {
            let mut space = ReadBuf::new(&mut byte);
            let read = Pin::new(&mut *stream).poll_read(context, &mut space);
            Poll::Ready(read.is_pending())
        });
        is_silent.await && self.buffer.is_empty()
    }
}

fn broken(error: &std::io::Error) -> RespError {
    RespError::connection(error.to_string())
}
