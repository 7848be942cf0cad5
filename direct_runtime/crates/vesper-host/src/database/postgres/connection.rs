//! A connection to Postgres that does not wait for ever.
//!
//! The protocol runs on the task of the caller: the connection is polled together with each request, and an idle one
//! only to see whether the server has ended it.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::time::{timeout, timeout_at};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Connection as Protocol, Error, Statement};

use super::stream::Stream;
use crate::postgres::dsn::{Server, SessionKind, Target};
use crate::postgres::session::{Problem as Report, ways};
use crate::postgres::tls::{Connector, Encrypted, Tls};

/// Settings of a session that its server reports whenever they change.
const REPORTED: [&str; 6] = [
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "client_encoding",
    "standard_conforming_strings",
    "default_transaction_read_only",
];
/// Prepared statements that a connection keeps; beyond this number all are prepared anew.
const MAX_STATEMENTS: usize = 100;

/// Failure of a request.
#[derive(Debug)]
pub(super) enum Problem {
    Driver(Error),
    /// The server has ended the connection, with its report.
    Ended(String),
    /// The server was silent for longer than the attempt may take; the connection is of no more use.
    Silent,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

/// A connection, used by one request at a time.
pub(super) struct Connection {
    client: Client,
    protocol: Protocol<Stream, Encrypted<Stream>>,
    statements: HashMap<(String, Vec<u32>), Statement>,
    /// The reported settings when the session began.
    reported: [Option<String>; 6],
    /// The `statement_timeout` of the session for queries, in milliseconds.
    pub(super) limit: u128,
    /// The moment at which a request is given up.
    pub(super) cut_at: Instant,
    /// Why the connection has ended.
    end: Option<String>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connection")
    }
}

impl Connection {
    /// Connects to the first server that accepts; the error is for people.
    pub(super) async fn open(
        target: &Target,
        password: Option<&str>,
        patience: Duration,
    ) -> Result<Self, String> {
        let mut reports = Vec::new();
        for server in &target.servers {
            for mode in ways(target.tls, server) {
                let opened = timeout(patience, Self::connect(target, server, *mode, password)).await;
                match opened {
                    Ok(Ok(connection)) => return Ok(connection),
                    Ok(Err(report)) => reports.push(report),
                    Err(_) => reports.push("connection timeout expired".to_owned()),
                }
            }
        }
        Err(reports.join("; "))
    }

    async fn connect(
        target: &Target,
        server: &Server,
        mode: SslMode,
        password: Option<&str>,
    ) -> Result<Self, String> {
        let place = format!(
            "connection to server at \"{}\", port {} failed",
            server.host, server.port
        );
        let stream = Stream::connect(target, server)
            .await
            .map_err(|error| format!("{place}: {error}"))?;
        let tls = match mode {
            SslMode::Disable => None,
            _ => Some(Tls::new(target, server).map_err(|error| format!("{place}: {error}"))?),
        };
        let mut config = Config::new();
        config.user(&target.user).dbname(&target.database).ssl_mode(mode);
        if let Some(password) = password.map(str::to_owned).or_else(|| target.password(server)) {
            config.password(password);
        }
        config.options(target.options.as_deref().unwrap_or_default());
        config.application_name(target.application_name.as_deref().unwrap_or("vesper"));
        let connected = config.connect_raw(stream, Connector(tls)).await;
        let (client, protocol) =
            connected.map_err(|error| format!("{place}: {}", Report::from(error).report()))?;
        let mut connection = Self {
            client,
            protocol,
            statements: HashMap::new(),
            reported: Default::default(),
            limit: 0,
            cut_at: Instant::now() + Duration::from_mins(1),
            end: None,
        };
        let is_standby = connection.protocol.parameter("in_hot_standby") == Some("on");
        if target.session == SessionKind::ReadWrite && is_standby {
            return Err(format!("{place}: session is read-only"));
        }
        // The server reports its settings before it is ready; the driver keeps those that come later, too.
        connection.reported = connection.reports();
        Ok(connection)
    }

    fn reports(&self) -> [Option<String>; 6] {
        REPORTED.map(|name| self.protocol.parameter(name).map(str::to_owned))
    }

    /// Returns whether the server reports every setting, as Postgres does from version 14.
    pub(super) fn is_known(&self) -> bool {
        self.reported.iter().all(Option::is_some)
    }

    /// Returns whether the settings are those of the beginning: a function of the database may have changed one, and
    /// the next user of the connection would read something else.
    pub(super) fn is_unchanged(&self) -> bool {
        self.reports() == self.reported
    }

    /// Returns whether the server has ended the connection, as far as this side knows.
    pub(super) fn has_ended(&mut self) -> bool {
        pump(
            &mut self.protocol,
            &mut self.end,
            &mut Context::from_waker(Waker::noop()),
        );
        self.end.is_some() || self.client.is_closed()
    }

    /// Executes statements without parameters.
    pub(super) async fn batch(&mut self, sql: &str) -> Result<(), Problem> {
        self.drive(async |client| client.batch_execute(sql).await).await
    }

    /// Prepares a statement once.
    pub(super) async fn prepared(&mut self, sql: &str, types: &[Type]) -> Result<Statement, Problem> {
        let key = (sql.to_owned(), types.iter().map(Type::oid).collect());
        if let Some(found) = self.statements.get(&key) {
            return Ok(found.clone());
        }
        let statement = self
            .drive(async |client| client.prepare_typed(sql, types).await)
            .await?;
        if self.statements.len() >= MAX_STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(key, statement.clone());
        Ok(statement)
    }

    /// Forgets all prepared statements where a result shows that they no longer fit the tables.
    pub(super) fn forget_stale<T>(&mut self, result: &Result<T, Problem>) {
        if let Err(Problem::Driver(error)) = result
            && matches!(
                error.code(),
                Some(&SqlState::FEATURE_NOT_SUPPORTED | &SqlState::INVALID_SQL_STATEMENT_NAME)
            )
        {
            self.statements.clear();
        }
    }

    /// Runs a request to its end, while the protocol runs beside it.
    pub(super) async fn drive<T>(
        &mut self,
        request: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, Problem> {
        let Self {
            client,
            protocol,
            cut_at,
            end,
            ..
        } = self;
        let mut request = pin!(request(client));
        let driven = poll_fn(|context| {
            // The request sends; the protocol writes, and reads answers; the request takes them.
            if let Poll::Ready(done) = request.as_mut().poll(context) {
                return Poll::Ready(done.map_err(Problem::from));
            }
            pump(protocol, end, context);
            match (request.as_mut().poll(context), &end) {
                (Poll::Ready(Err(error)), Some(why)) if error.is_closed() => {
                    Poll::Ready(Err(Problem::Ended(why.clone())))
                }
                (Poll::Ready(done), _) => Poll::Ready(done.map_err(Problem::from)),
                // The driver wakes no request whose connection has ended.
                (Poll::Pending, Some(why)) => Poll::Ready(Err(Problem::Ended(why.clone()))),
                (Poll::Pending, None) => Poll::Pending,
            }
        });
        timeout_at((*cut_at).into(), driven).await.unwrap_or_else(|_| {
            *end = Some("no answer in time".to_owned());
            Err(Problem::Silent)
        })
    }
}

/// Lets the protocol read and write as much as it can; notices of the server are dropped.
fn pump(
    protocol: &mut Protocol<Stream, Encrypted<Stream>>,
    end: &mut Option<String>,
    context: &mut Context<'_>,
) {
    while end.is_none() {
        match protocol.poll_message(context) {
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => *end = Some(Report::from(error).report()),
            Poll::Ready(None) => *end = Some("server closed the connection".to_owned()),
            Poll::Pending => return,
        }
    }
}
