//! New connections: lookup of the name, the addresses that may be reached, TLS.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::addresses::refusal;
use super::attempt::Attempt;
use super::connection::Connection;
use super::settings::HttpSettings;
use super::text::prefix;
use super::tls::{self, Authorities};
use super::url::Origin;
use super::wire::{Counted, Events, Wire};
use crate::effect::Failure;
use crate::messages::reason;
use crate::per_process::PerProcess;

/// Lookups under way, waited for or not: a lookup cannot be ended, only abandoned.
const MAX_LOOKUPS: usize = 64;
/// Addresses that a message names.
const MAX_SHOWN: usize = 3;

/// Function from a name and a port to addresses, on a thread of its own.
pub type Resolve = dyn Fn(&str, u16) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Returns the addresses that the system's resolver finds.
pub fn look_up(host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
    Ok((host, port)
        .to_socket_addrs()?
        .map(|address| address.ip())
        .collect())
}

/// Number of further lookups that may begin. A forked child has none of the threads that hold some.
#[derive(Default)]
pub(super) struct Lookups(PerProcess<OnceLock<Arc<Semaphore>>>);

impl Lookups {
    fn free(&self) -> Arc<Semaphore> {
        let made = || Arc::new(Semaphore::new(MAX_LOOKUPS));
        Arc::clone(self.0.get().get_or_init(made))
    }
}

/// Failure of an exchange.
pub(super) enum Unanswered {
    Failed(Failure),
    /// The name leads to addresses that no connection may go to.
    Refused(String),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Maker of the connections of one provider.
pub(super) struct Connector {
    pub(super) settings: Arc<HttpSettings>,
    pub(super) authorities: Arc<Authorities>,
    pub(super) resolve: Arc<Resolve>,
    pub(super) lookups: Arc<Lookups>,
}

impl Connector {
    pub(super) async fn connect(&self, origin: &Origin, attempt: &Attempt) -> Result<Connection, Unanswered> {
        // The clock cannot represent every duration.
        let until = Instant::now().checked_add(self.settings.connect_timeout);
        let until = until.map_or(attempt.until, |until| until.min(attempt.until));
        let events = Arc::new(Events::default());
        let stream = self.reach(origin, attempt, until).await?;
        let stream = Counted::new(stream, Arc::clone(&events));
        let broken =
            |error: &io::Error| attempt.unavailable(format!("the connection broke: {}", reason(error)));
        let watch = stream.watch().map_err(|error| broken(&error))?;
        let wire = if origin.is_secure {
            let name = &origin.host;
            let config = self.authorities.config().map_err(|problem| {
                attempt.unavailable(format!("no TLS connection with `{name}`: {problem}"))
            })?;
            let server = ServerName::try_from(name.clone()).map_err(|_| {
                attempt.unavailable(format!(
                    "no TLS connection with `{name}`: it is no name of a server"
                ))
            })?;
            let doing = format!("during the TLS handshake with {name}");
            let handshake = TlsConnector::from(config).connect(server, stream);
            let secured = attempt.within(&doing, until, handshake).await?;
            // An end that the other side did not announce is an error of this stream: otherwise a third party could
            // cut an answer short.
            let secured = secured.map_err(|error| attempt.unavailable(tls::problem(name, &error)))?;
            Wire::secured(secured, Arc::clone(&events))
        } else {
            Wire::plain(stream, Arc::clone(&events))
        };
        let connection = Connection::open(wire, events, watch, origin.clone()).await;
        Ok(connection.map_err(|problem| attempt.unavailable(problem))?)
    }

    /// Connects to the first address that may be reached and answers.
    async fn reach(
        &self,
        origin: &Origin,
        attempt: &Attempt,
        until: Instant,
    ) -> Result<TcpStream, Unanswered> {
        let host = &origin.host;
        let doing = format!("while connecting to {host}");
        let addresses = self.addresses(origin, attempt, until).await?;
        let mut problems = Vec::new();
        let mut refused = Vec::new();
        for (position, address) in addresses.iter().copied().enumerate() {
            if let Some(kind) = refusal(address, self.settings.allow_private_addresses) {
                refused.push(format!("{address} ({kind})"));
                continue;
            }
            attempt.check(&doing, until)?;
            // Each gets its share of the time: an address that swallows everything must not hide the next one.
            let rest = u32::try_from(addresses.len() - position).unwrap_or(u32::MAX);
            let share = (until - Instant::now()) / rest.max(1);
            match reach_address(SocketAddr::new(address, origin.port), share).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => problems.push(format!("{address}: {}", reason(&error))),
                Err(_) => problems.push(format!("{address} did not answer")),
            }
        }
        if !refused.is_empty() && problems.is_empty() {
            let can_open = addresses.iter().any(|address| refusal(*address, true).is_none());
            let hint = if can_open {
                let (table, name) = (self.settings.table, &self.settings.name);
                format!("; `allow_private_addresses = true` under [{table}.{name}] lets them")
            } else {
                String::new()
            };
            refused.truncate(MAX_SHOWN);
            return Err(Unanswered::Refused(format!(
                "`{host}` is at {}, where no request may go{hint}",
                refused.join(", ")
            )));
        }
        attempt.check(&doing, until)?;
        problems.truncate(MAX_SHOWN);
        let problem = format!("`{host}` cannot be reached: {}", problems.join("; "));
        Err(attempt.unavailable(problem).into())
    }

    async fn addresses(
        &self,
        origin: &Origin,
        attempt: &Attempt,
        until: Instant,
    ) -> Result<Vec<IpAddr>, Failure> {
        let host = &origin.host;
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let doing = format!("while looking up {host}");
        let permit = self.lookups.free().acquire_owned();
        let permit = attempt.within(&doing, until, permit).await?;
        let (sender, receiver) = oneshot::channel();
        let (resolve, name, port) = (Arc::clone(&self.resolve), host.clone(), origin.port);
        let thread = std::thread::Builder::new().name(format!("vesper-look-up-{}", prefix(host, 32)));
        let started = thread.spawn(move || {
            let found = resolve(&name, port);
            drop(permit);
            // The attempt may have stopped waiting.
            let _ = sender.send(found);
        });
        if started.is_err() {
            return Err(
                attempt.unavailable(format!("`{host}` cannot be looked up: no thread can be started"))
            );
        }
        let found = attempt.within(&doing, until, receiver).await?;
        let nothing = "it has no address".to_owned();
        let problem = match found {
            Ok(Ok(found)) if !found.is_empty() => return Ok(found),
            Ok(Err(error)) => lookup_reason(&error),
            _ => nothing,
        };
        Err(attempt.unavailable(format!("`{host}` cannot be found: {problem}")))
    }
}

async fn reach_address(
    address: SocketAddr,
    share: Duration,
) -> Result<io::Result<TcpStream>, tokio::time::error::Elapsed> {
    let connected = timeout(share, TcpStream::connect(address)).await?;
    Ok(connected.and_then(|stream| stream.set_nodelay(true).map(|()| stream)))
}

fn lookup_reason(error: &io::Error) -> String {
    let reason = reason(error);
    reason
        .strip_prefix("failed to lookup address information: ")
        .unwrap_or(&reason)
        .to_owned()
}
