//! The server: listens, serves until a shutdown is requested, drains and writes a snapshot.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::server::NamedService as _;
use tonic::service::Routes;
use tonic::transport::server::{Router, ServerTlsConfig, TcpIncoming};
use tonic::transport::{Certificate, Identity, Server};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use vesper_kernel::log::{Log, MemoryLog, PostgresLog, SqliteLog};
use vesper_kernel::proto::DESCRIPTORS;
use vesper_kernel::writer::{Writer, WriterThread};

use crate::metrics::{Metrics, Rpcs};
use crate::services::{
    Calls, CommBusService, EngineService, InterruptService, KernelService, OrchestrationService,
    RegistryService,
};
use crate::settings::{ServerSettings, Store};
use crate::traces::{Export, Traces};

/// Requests of one connection at the same time.
const MAX_REQUESTS: u32 = 10_000;
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// The most that a caller takes for TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why a server does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeError(pub String);

impl fmt::Display for ServeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

/// A server that accepts connections.
#[derive(Debug)]
pub struct Running {
    pub address: SocketAddr,
    /// The address of the metrics.
    pub metrics: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    served: tokio::task::JoinHandle<Result<(), tonic::transport::Error>>,
    writer: Writer,
    thread: WriterThread,
    drain: Duration,
    export: Option<Export>,
}

/// Rebuilds the state and starts to listen.
pub async fn serve(settings: ServerSettings) -> Result<Running, ServeError> {
    let fail = |error: &dyn fmt::Display| ServeError(error.to_string());
    let (listener, address) = listen(&settings.listen, &settings).await?;
    let metrics = match &settings.metrics {
        Some(place) => Some(listen(place, &settings).await?),
        None => None,
    };
    let log: Box<dyn Log> = match &settings.store {
        Store::Memory => Box::new(MemoryLog),
        Store::Postgres(dsn) => Box::new(PostgresLog::new(dsn.clone())),
        Store::Sqlite(path) => Box::new(SqliteLog::open(path).map_err(|error| fail(&error))?),
    };
    let kernel = settings.kernel.clone();
    let started = tokio::task::spawn_blocking(move || Writer::start(kernel, log)).await;
    let (writer, thread) = started
        .map_err(|error| fail(&error))?
        .map_err(|error| fail(&error))?;
    let rpcs = metrics.is_some().then(|| Arc::new(counted_rpcs()));
    let (traces, export) = settings.traces.as_ref().map(Traces::start).unzip();
    let spans = traces.as_ref().map(Traces::counts);
    let router = router(&settings, &writer, rpcs.clone(), traces)?;
    settings.credentials.refresh();
    let (stop, stopped) = watch::channel(false);
    let of_metrics = metrics.as_ref().map(|(_, address)| *address);
    let scraped = match metrics.zip(rpcs) {
        None => None,
        Some(((listener, _), rpcs)) => {
            let metrics = Metrics {
                writer: writer.clone(),
                credentials: settings.credentials.clone(),
                rpcs,
                spans,
            };
            let page = Routes::from(metrics.routes());
            let server = server(&settings)?.accept_http1(true).add_routes(page);
            Some(server.serve_with_incoming_shutdown(TcpIncoming::from(listener), ended(stopped.clone())))
        }
    };
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let answered = router.serve_with_incoming_shutdown(incoming, ended(stopped));
    let served = tokio::spawn(async move {
        let scraped = async {
            match scraped {
                Some(scraped) => scraped.await,
                None => Ok(()),
            }
        };
        tokio::try_join!(answered, scraped).map(drop)
    });
    Ok(Running {
        address,
        metrics: of_metrics,
        stop,
        served,
        writer,
        thread,
        drain: settings.drain,
        export,
    })
}

/// Listens where callers of other machines authenticate.
async fn listen(place: &str, settings: &ServerSettings) -> Result<(TcpListener, SocketAddr), ServeError> {
    let fail = |error: std::io::Error| ServeError(format!("The kernel cannot listen on {place}: {error}"));
    let listener = TcpListener::bind(place).await.map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    if !address.ip().is_loopback() && settings.credentials.is_empty() {
        return Err(ServeError(format!(
            "The kernel would listen on {address} without authentication: set VESPER_KERNEL_TOKENS, _KEYS, _JWT or _TLS_CLIENT_CA, or listen on 127.0.0.1."
        )));
    }
    Ok((listener, address))
}

/// Completes when the server is to end; a sender that is gone ends it, too.
async fn ended(mut stopped: watch::Receiver<bool>) {
    drop(stopped.wait_for(|stop| *stop).await);
}

fn counted_rpcs() -> Rpcs {
    Rpcs::new(&[
        (KernelService::NAME, KernelService::METHODS),
        (EngineService::NAME, EngineService::METHODS),
        (OrchestrationService::NAME, OrchestrationService::METHODS),
        (CommBusService::NAME, CommBusService::METHODS),
        (InterruptService::NAME, InterruptService::METHODS),
        (RegistryService::NAME, RegistryService::METHODS),
    ])
}

fn server(settings: &ServerSettings) -> Result<Server, ServeError> {
    let fail = |error: &dyn fmt::Display| ServeError(error.to_string());
    let server = Server::builder()
        .max_concurrent_streams(MAX_REQUESTS)
        .http2_keepalive_interval(Some(KEEP_ALIVE));
    let Some(tls) = &settings.tls else {
        return Ok(server);
    };
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| fail(&format!("{}: {error}", path.display())))
    };
    let identity = Identity::from_pem(read(&tls.certificate)?, read(&tls.key)?);
    let mut config = ServerTlsConfig::new().identity(identity).timeout(HANDSHAKE);
    if let Some(path) = &tls.client_authorities {
        // Callers with another kind of credentials need no certificate.
        config = config
            .client_ca_root(Certificate::from_pem(read(path)?))
            .client_auth_optional(settings.credentials.has_metadata());
    }
    server
        .tls_config(config)
        .map_err(|error| fail(&format!("The certificates cannot be used: {}", causes(&error))))
}

/// Returns the texts of an error and its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(each) = cause {
        text = format!("{text}: {each}");
        cause = each.source();
    }
    text
}

fn router(
    settings: &ServerSettings,
    writer: &Writer,
    rpcs: Option<Arc<Rpcs>>,
    traces: Option<Traces>,
) -> Result<Router, ServeError> {
    let fail = |error: &dyn fmt::Display| ServeError(error.to_string());
    let mut server = server(settings)?;
    let calls = Calls {
        writer: writer.clone(),
        credentials: settings.credentials.clone(),
        max_message_bytes: settings.max_message_bytes,
        rpcs,
        traces,
    };
    let (health, health_service) = tonic_health::server::health_reporter();
    tokio::spawn(report_health(health, writer.serving()));
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let v1 = reflection().build_v1().map_err(|error| fail(&error))?;
    let v1alpha = reflection().build_v1alpha().map_err(|error| fail(&error))?;
    Ok(server
        .add_service(health_service)
        .add_service(v1)
        .add_service(v1alpha)
        .add_service(KernelService(calls.clone()))
        .add_service(EngineService(calls.clone()))
        .add_service(OrchestrationService(calls.clone()))
        .add_service(CommBusService(calls.clone()))
        .add_service(InterruptService(calls.clone()))
        .add_service(RegistryService(calls)))
}

/// Reports all services, and the server under the empty name, as serving while this kernel writes its log.
async fn report_health(health: HealthReporter, mut serving: watch::Receiver<bool>) {
    let names = [
        "",
        KernelService::NAME,
        EngineService::NAME,
        OrchestrationService::NAME,
        CommBusService::NAME,
        InterruptService::NAME,
        RegistryService::NAME,
    ];
    loop {
        let status = if *serving.borrow_and_update() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for name in names {
            health.set_service_status(name, status).await;
        }
        if serving.changed().await.is_err() {
            return;
        }
    }
}

impl Running {
    /// Serves until `stop` completes; then refuses commands, waits for what is under way and writes a snapshot.
    pub async fn until(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let mut served = self.served;
        let ended = tokio::select! {
            () = stop => None,
            ended = &mut served => Some(ended),
        };
        self.writer.drain();
        // The task of the server may have ended by itself.
        self.stop.send_replace(true);
        let ended = match ended {
            Some(ended) => Ok(ended),
            None => tokio::time::timeout(self.drain, &mut served).await,
        };
        served.abort();
        let thread = self.thread;
        // The thread ends by itself: it does not panic.
        drop(tokio::task::spawn_blocking(move || thread.stop()).await);
        if let Some(export) = self.export {
            export.end().await;
        }
        match ended {
            Ok(Ok(Err(error))) => Err(ServeError(format!("The server failed: {error}"))),
            _ => Ok(()),
        }
    }
}
