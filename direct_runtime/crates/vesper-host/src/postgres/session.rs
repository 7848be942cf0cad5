//! A session with a Postgres server: connects, prepares statements once, and runs them.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt::Write as _;
use std::future::Future;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Connection, Row, Statement};

use crate::postgres::dsn::{Server, SessionKind, Target, TlsMode};
use crate::postgres::socket::{Socket, Stream};
use crate::postgres::tls::{Connector, Encrypted, Tls};

/// What went wrong with a session.
#[derive(Debug)]
pub enum Problem {
    /// The server refused a statement: its code, and its report.
    Refused(SqlState, String),
    /// The server cannot be reached, or ended the session.
    Lost(String),
    /// The report of the driver about an answer that it does not understand.
    Driver(String),
}

impl Problem {
    /// Returns the report of the server or the driver, on one line.
    pub fn report(&self) -> String {
        let (Self::Refused(_, text) | Self::Lost(text) | Self::Driver(text)) = self;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl From<tokio_postgres::Error> for Problem {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(report) = error.as_db_error() {
            let mut text = report.message().to_owned();
            for (name, part) in [("DETAIL", report.detail()), ("HINT", report.hint())] {
                if let Some(part) = part {
                    let _ = write!(text, " {name}: {part}"); // Writing to a string cannot fail.
                }
            }
            return Self::Refused(report.code().clone(), text);
        }
        let cause = error.source().map(ToString::to_string);
        let text = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        let is_of_network =
            error.is_closed() || matches!(error.source(), Some(cause) if cause.is::<io::Error>());
        if is_of_network {
            Self::Lost(text)
        } else {
            Self::Driver(text)
        }
    }
}

/// A session. One thread at a time uses it.
pub struct Session {
    /// None while the session is dropped.
    client: Option<Client>,
    /// None once it has ended.
    connection: Option<Connection<Socket, Encrypted>>,
    socket: Socket,
    statements: HashMap<String, Statement>,
    /// Why the connection ended, where it reported that.
    end: Option<Problem>,
    is_in_transaction: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Session")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Connects to the first server that takes the session.
    pub fn open(
        target: &Target,
        connect_timeout: Duration,
        answer_timeout: Duration,
    ) -> Result<Self, Problem> {
        let timeout = target.connect_timeout.unwrap_or(connect_timeout);
        let mut reports = Vec::new();
        for server in &target.servers {
            for mode in ways(target.tls, server) {
                match Self::connect(target, server, *mode, timeout, answer_timeout) {
                    Ok(mut session) => match session.check_kind(target.session) {
                        Ok(()) => return Ok(session),
                        Err(problem) => reports.push(problem),
                    },
                    Err(problem) => reports.push(problem),
                }
            }
        }
        let texts: Vec<String> = reports.iter().map(Problem::report).collect();
        Err(Problem::Lost(texts.join("; ")))
    }

    fn connect(
        target: &Target,
        server: &Server,
        mode: SslMode,
        timeout: Duration,
        answer_timeout: Duration,
    ) -> Result<Self, Problem> {
        let place = if server.is_local() {
            format!("on socket \"{}\"", socket_path(server))
        } else {
            format!("at \"{}\", port {}", server.host, server.port)
        };
        let failed = |report: String| Problem::Lost(format!("connection to server {place} failed: {report}"));
        let stream = connected(target, server, timeout).map_err(|error| failed(error.to_string()))?;
        let socket = Socket::new(stream, timeout).map_err(|error| failed(error.to_string()))?;
        let tls = if mode == SslMode::Disable {
            None
        } else {
            Some(Tls::new(target, server).map_err(failed)?)
        };
        let mut config = Config::new();
        config.user(&target.user).dbname(&target.database).ssl_mode(mode);
        if let Some(password) = target.password(server) {
            config.password(password);
        }
        if let Some(options) = &target.options {
            config.options(options);
        }
        if let Some(name) = &target.application_name {
            config.application_name(name);
        }
        let (client, connection) = socket
            .run(config.connect_raw(socket.clone(), Connector(tls)), |_| ())
            .map_err(|error| failed(Problem::from(error).report()))?;
        socket
            .set_timeout(answer_timeout)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            client: Some(client),
            connection: Some(connection),
            socket,
            statements: HashMap::new(),
            end: None,
            is_in_transaction: false,
        })
    }

    fn check_kind(&mut self, kind: SessionKind) -> Result<(), Problem> {
        if kind == SessionKind::Any {
            return Ok(());
        }
        let rows = self.rows("SHOW transaction_read_only", &[])?;
        let is_read_only = rows
            .first()
            .is_some_and(|row| row.try_get::<_, &str>(0).is_ok_and(|text| text == "on"));
        if is_read_only {
            return Err(Problem::Lost("session is read-only".to_owned()));
        }
        Ok(())
    }

    /// Returns the rows of a query.
    pub fn rows(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Problem> {
        let statement = self.statement(sql)?;
        self.run(|client| Box::pin(client.query(&statement, parameters)))
    }

    /// Executes a statement; returns the number of rows that it changed.
    pub fn execute(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64, Problem> {
        let statement = self.statement(sql)?;
        self.run(|client| Box::pin(client.execute(&statement, parameters)))
    }

    /// Executes statements without parameters or rows, in one journey.
    pub fn batch(&mut self, sql: &str) -> Result<(), Problem> {
        self.run(|client| Box::pin(client.batch_execute(sql)))
    }

    pub fn begin(&mut self, sql: &str) -> Result<(), Problem> {
        self.is_in_transaction = true;
        self.batch(sql)
    }

    pub fn commit(&mut self) -> Result<(), Problem> {
        self.batch("COMMIT")?;
        self.is_in_transaction = false;
        Ok(())
    }

    /// Ends a transaction that failed; a session where that is impossible is not used again.
    pub fn roll_back(&mut self) {
        if self.is_in_transaction && self.batch("ROLLBACK").is_ok() {
            self.is_in_transaction = false;
        }
    }

    /// Returns true where another statement can be sent.
    pub fn is_usable(&self) -> bool {
        !self.is_in_transaction && self.connection.is_some()
    }

    /// Returns true where the session is usable and the server did not end it meanwhile.
    pub fn is_alive(&self) -> bool {
        self.is_usable() && self.socket.is_quiet()
    }

    fn statement(&mut self, sql: &str) -> Result<Statement, Problem> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.run(|client| Box::pin(client.prepare(sql)))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn run<'a, T>(
        &'a mut self,
        start: impl FnOnce(&'a Client) -> Pin<Box<dyn Future<Output = Result<T, tokio_postgres::Error>> + 'a>>,
    ) -> Result<T, Problem> {
        let Self {
            client,
            connection,
            socket,
            end,
            ..
        } = self;
        let Some(client) = client else {
            return Err(Problem::Lost("the session has ended".to_owned()));
        };
        let done = socket.run(start(client), |context| {
            if let Some(running) = connection
                && let Poll::Ready(ended) = Pin::new(running).poll(context)
            {
                *end = ended.err().map(Problem::from);
                *connection = None;
            }
        });
        done.map_err(|error| match end.take() {
            // The connection knows why it ended, the statement only that it did.
            Some(problem) if error.is_closed() => match problem {
                Problem::Refused(_, text) => Problem::Lost(text),
                other => other,
            },
            _ => Problem::from(error),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Without its client the connection sends its last message, so that the server ends the session.
        self.client = None;
        if let Some(connection) = &mut self.connection {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = Pin::new(connection).poll(&mut context);
        }
    }
}

/// Returns the ways to connect, in the order in which they are tried.
pub(crate) fn ways(mode: TlsMode, server: &Server) -> &'static [SslMode] {
    match mode {
        _ if server.is_local() => &[SslMode::Disable],
        TlsMode::Disable => &[SslMode::Disable],
        TlsMode::Allow => &[SslMode::Disable, SslMode::Require],
        TlsMode::Prefer => &[SslMode::Prefer],
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => &[SslMode::Require],
    }
}

pub(crate) fn socket_path(server: &Server) -> String {
    format!("{}/.s.PGSQL.{}", server.host, server.port)
}

fn connected(target: &Target, server: &Server, timeout: Duration) -> io::Result<Stream> {
    if server.is_local() {
        return UnixStream::connect(socket_path(server)).map(Stream::Unix);
    }
    let host = if server.address.is_empty() {
        &server.host
    } else {
        &server.address
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host.as_str(), server.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                keep_alive(target, &SockRef::from(&stream))?;
                return Ok(Stream::Tcp(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

pub(crate) fn keep_alive(target: &Target, socket: &SockRef<'_>) -> io::Result<()> {
    if let Some(timeout) = target.user_timeout {
        socket.set_tcp_user_timeout(Some(timeout))?;
    }
    let settings = target.keepalive;
    if settings.is_off {
        return Ok(());
    }
    let mut probes = TcpKeepalive::new();
    if let Some(idle) = settings.idle {
        probes = probes.with_time(idle);
    }
    if let Some(interval) = settings.interval {
        probes = probes.with_interval(interval);
    }
    if let Some(count) = settings.count {
        probes = probes.with_retries(count);
    }
    socket.set_keepalive(true)?;
    socket.set_tcp_keepalive(&probes)
}
