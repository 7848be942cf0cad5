//! Exchanges with one provider, over connections that are kept for the next one.
//!
//! A kept connection belongs to no attempt. One that takes it out of the pool has it alone, and checks only then whether
//! it is still alive.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::attempt::Attempt;
use super::connect::{Connector, Unanswered};
use super::connection::{Connection, Head, Interrupted, Limits};
use super::request::Outgoing;
use super::response::{Answer, bad_response};
use super::settings::HttpSettings;
use super::url::Origin;
use crate::effect::Failure;
use crate::per_process::PerProcess;

/// Time for which an idle connection is kept: less than most servers do, so that they seldom close it first.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Connections to one provider. A forked child makes its own: its parent uses those from before.
pub(super) struct Transport {
    pub(super) settings: Arc<HttpSettings>,
    connector: Connector,
    pool: PerProcess<OnceLock<Pool>>,
}

struct Pool {
    /// Connections that may still be in use at once.
    free: Semaphore,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The last one was used last.
    connections: Vec<Connection>,
    /// Number of times that the transport was closed: connections of earlier generations are not kept.
    generation: u64,
}

/// Answer that is being read. Dropped before its end, it closes its connection.
pub(crate) struct Open<'a> {
    transport: &'a Transport,
    connection: Connection,
    head: Head,
    until: Instant,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Open<'_> {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    /// Returns the next piece of the body; `None` at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let limits = self.transport.limits(self.until);
        let piece = self.connection.next(&mut self.head, &limits).await;
        piece.map_err(|interrupted| self.failure(interrupted))
    }

    /// Reads the rest of the answer, and keeps the connection.
    pub(crate) async fn read(mut self) -> Result<Answer, Failure> {
        let limits = self.transport.limits(self.until);
        let body = self.connection.read(&mut self.head, &limits).await;
        let body = body.map_err(|interrupted| self.failure(interrupted))?;
        let Self {
            transport,
            connection,
            head,
            ..
        } = self;
        transport.put_back(connection).await;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    fn failure(&self, interrupted: Interrupted) -> Failure {
        // The head of the answer came, so the request was sent.
        let attempt = Attempt::until(self.until);
        attempt.add_sent(1);
        self.transport.failure(interrupted, &attempt)
    }
}

impl Transport {
    pub(super) fn new(connector: Connector) -> Self {
        let settings = Arc::clone(&connector.settings);
        Self {
            settings,
            connector,
            pool: PerProcess::default(),
        }
    }

    fn pool(&self) -> &Pool {
        self.pool.get().get_or_init(|| Pool {
            free: Semaphore::new(self.settings.max_connections),
            idle: Mutex::default(),
        })
    }

    /// Sends a request and reads the answer.
    pub(super) async fn exchange(
        &self,
        outgoing: &Outgoing,
        attempt: &Attempt,
    ) -> Result<Answer, Unanswered> {
        Ok(self.open(outgoing, attempt).await?.read().await?)
    }

    /// Sends a request and reads the head of the answer.
    pub(super) async fn open<'a>(
        &'a self,
        outgoing: &Outgoing,
        attempt: &Attempt,
    ) -> Result<Open<'a>, Unanswered> {
        loop {
            attempt.check("before anything was sent", attempt.until)?;
            let name = &self.settings.name;
            let busy = || {
                let most = self.settings.max_connections;
                format!("because all {most} connections to `{name}` were in use (`max_connections`)")
            };
            let permit = tokio::time::timeout_at(attempt.until, self.pool().free.acquire()).await;
            let permit = permit.map_err(|_| attempt.timed_out(&busy()))?;
            let mut connection = match self.take(&outgoing.url.origin).await {
                Some(connection) => connection,
                None => self.connect(&outgoing.url.origin, attempt).await?,
            };
            let before = connection.written();
            let result = connection.begin(outgoing, &self.limits(attempt.until)).await;
            let sent = connection.written() - before;
            attempt.add_sent(sent);
            match result {
                Ok(head) => {
                    return Ok(Open {
                        transport: self,
                        connection,
                        head,
                        until: attempt.until,
                        _permit: permit.ok(),
                    });
                }
                // A kept connection that ended before a byte went out is replaced. Each round ends one connection, so
                // that the rounds end.
                Err(Interrupted::Gone(_) | Interrupted::NotHttp(_)) if connection.is_reused && sent == 0 => {}
                Err(interrupted) => return Err(self.failure(interrupted, attempt).into()),
            }
        }
    }

    fn limits(&self, until: Instant) -> Limits<'_> {
        Limits {
            provider: &self.settings.name,
            max_response: self.settings.max_response,
            until,
        }
    }

    fn failure(&self, interrupted: Interrupted, attempt: &Attempt) -> Failure {
        match interrupted {
            Interrupted::TimedOut(doing) => attempt.timed_out(doing),
            Interrupted::Gone(problem) => attempt.unavailable(problem),
            Interrupted::NotHttp(problem) => {
                let name = &self.settings.name;
                bad_response(format!("`{name}` does not speak HTTP as it should: {problem}"))
            }
            Interrupted::Unusable(failure) => failure,
        }
    }

    async fn connect(&self, origin: &Origin, attempt: &Attempt) -> Result<Connection, Unanswered> {
        let generation = self.lock().generation;
        let mut connection = self.connector.connect(origin, attempt).await?;
        connection.generation = generation;
        Ok(connection)
    }

    /// Returns the kept connection that was used last: it is the least likely to have ended.
    async fn take(&self, origin: &Origin) -> Option<Connection> {
        loop {
            let mut found = {
                let connections = &mut self.lock().connections;
                let place = connections.iter().rposition(|each| each.origin == *origin)?;
                connections.remove(place)
            };
            if found.idle_since.elapsed() < KEEP_ALIVE && !found.is_stale().await {
                found.is_reused = true;
                return Some(found);
            }
        }
    }

    async fn put_back(&self, mut connection: Connection) {
        if !connection.is_idle().await {
            return;
        }
        connection.idle_since = Instant::now();
        let mut idle = self.lock();
        if connection.generation != idle.generation {
            return;
        }
        idle.connections.push(connection);
        let surplus = idle
            .connections
            .len()
            .saturating_sub(self.settings.max_connections);
        idle.connections.drain(..surplus);
    }

    /// Closes the kept connections.
    pub(super) fn close(&self) {
        let mut idle = self.lock();
        idle.generation += 1;
        idle.connections.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.pool().idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::http::connect::{Lookups, look_up};
    use crate::http::settings::{BodyFormat, Redirects};
    use crate::http::tls::Authorities;
    use crate::http::url::read_url;

    /// Starts a server that answers every request with `1`; returns its URL and the number of its connections.
    fn serve() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut lines = BufReader::new(stream.unwrap());
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
                    if line == "\r\n" {
                        let answer = b"HTTP/1.1 200 -\r\nContent-Length: 1\r\n\r\n1";
                        lines.get_mut().write_all(answer).unwrap();
                    }
                    line.clear();
                }
            }
        });
        (url, connections)
    }

    fn transport(url: &str) -> Transport {
        let base = read_url(url).unwrap();
        Transport::new(Connector {
            settings: Arc::new(HttpSettings {
                table: "providers",
                name: "shop".to_owned(),
                pack: None,
                allowed: vec![base.origin.clone()],
                base,
                auth: None,
                headers: Vec::new(),
                key_header: String::new(),
                body: BodyFormat::Json,
                timeout: Duration::from_secs(20),
                connect_timeout: Duration::from_secs(20),
                max_response: 1024,
                redirects: Redirects::None,
                allow_private_addresses: true,
                ca_file: None,
                max_connections: 4,
                probe: None,
                retry_after_max: Duration::ZERO,
                failures: Vec::new(),
            }),
            authorities: Arc::new(Authorities::new("")),
            resolve: Arc::new(look_up),
            lookups: Arc::new(Lookups::default()),
        })
    }

    /// The end of a kept connection is noticed only when it is written to: not one byte has left.
    #[test]
    fn a_request_of_which_no_byte_left_goes_over_a_new_connection() {
        let (url, connections) = serve();
        let transport = transport(&url);
        let outgoing = Outgoing {
            method: "POST".to_owned(),
            url: read_url(&format!("{url}/it")).unwrap(),
            headers: Vec::new(),
            body: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let exchange = |attempt: &Attempt| runtime.block_on(transport.exchange(&outgoing, attempt));
        assert!(exchange(&Attempt::new(transport.settings.timeout)).is_ok());
        for connection in &transport.lock().connections {
            connection.break_sending();
        }
        let attempt = Attempt::new(transport.settings.timeout);
        assert!(exchange(&attempt).is_ok_and(|answer| answer.body == b"1"));
        assert!(attempt.sent() > 0);
        assert_eq!(connections.load(Ordering::SeqCst), 2);
    }

    /// A connection that broke while it was written to is not kept, though its answer came.
    #[test]
    fn a_connection_that_broke_is_not_kept() {
        let (url, _) = serve();
        let transport = transport(&url);
        let origin = read_url(&url).unwrap().origin;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let attempt = Attempt::new(transport.settings.timeout);
            let connected = transport.connect(&origin, &attempt).await;
            let connection = connected.map_err(|_| "the server listens").unwrap();
            transport.put_back(connection).await;
            assert_eq!(transport.lock().connections.len(), 1);
            let mut connection = transport.take(&origin).await.unwrap();
            connection.note_broken();
            assert!(!connection.is_idle().await);
            transport.put_back(connection).await;
            assert!(transport.lock().connections.is_empty());
        });
    }
}
