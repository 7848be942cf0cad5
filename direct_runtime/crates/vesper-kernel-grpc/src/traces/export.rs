//! The task that sends spans to a receiver by OTLP/HTTP, and keeps those of steps under way.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{StatusCode, Uri, header};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use prost::Message as _;
use prost::bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::now_ns;
use super::otlp::{
    ExportTraceServiceRequest, InstrumentationScope, Resource, ResourceSpans, ScopeSpans, Span, Status, text,
};

const BATCH: usize = 512;
const DELAY: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Steps under way whose spans are kept, and how long.
const MAX_OPEN: usize = 10_000;
const MAX_OPEN_NS: u64 = 86_400_000_000_000;
const PATH: &str = "/v1/traces";

/// Where spans are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    uri: Uri,
    host: String,
    port: u16,
}

impl Endpoint {
    /// Reads the base URL of a receiver.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let base: Uri = text.parse().ok()?;
        let is_base = base.scheme_str() == Some("http") && base.query().is_none();
        let (host, port) = (base.host()?, base.port_u16().unwrap_or(80));
        let has_user = base.authority()?.as_str().contains('@');
        if !is_base || has_user || host.is_empty() {
            return None;
        }
        let uri = format!("{}{PATH}", base.path().trim_end_matches('/'));
        Some(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            uri: uri.parse().ok()?,
        })
    }

    async fn post(&self, body: Vec<u8>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let request = http::Request::post(self.uri.clone())
            .header(header::HOST, format!("{}:{}", self.host, self.port))
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .body(Full::new(Bytes::from(body)))?;
        let answered = sender.send_request(request).await;
        connection.abort();
        match answered?.status() {
            status if status.is_success() => Ok(()),
            status => Err(Refused(status).into()),
        }
    }
}

#[derive(Debug)]
struct Refused(StatusCode);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the receiver answered {}", self.0)
    }
}

impl std::error::Error for Refused {}

/// Spans that were sent, and those that were not.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    pub(crate) exported: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

impl SpanCounts {
    pub(super) fn drop_some(&self, count: usize) {
        self.dropped
            .fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Names a step under way: the stream or process that has it, and which one it is there.
pub(super) type Place = (String, String);

#[derive(Debug)]
pub(super) enum Event {
    Ended(Span),
    Begun(Place, Span),
    Completed(Place, Option<Status>, u64),
    /// The stream of a worker has ended; the steps that it had are given out again.
    Gone(String),
}

pub(super) struct Exporter {
    pub(super) endpoint: Endpoint,
    pub(super) counts: Arc<SpanCounts>,
    pub(super) events: mpsc::Receiver<Event>,
    pub(super) open: HashMap<Place, Span>,
    pub(super) ended: Vec<Span>,
}

impl Exporter {
    /// Sends spans until the server stops, then the last ones.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut ticks = interval(DELAY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.take(event),
                    None => break,
                },
                _ = ticks.tick() => {
                    self.forget_old();
                    self.send().await;
                }
                _ = &mut stop => break,
            }
            if self.ended.len() >= BATCH {
                self.send().await;
            }
        }
        while let Ok(event) = self.events.try_recv() {
            self.take(event);
        }
        self.send().await;
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ended(span) => self.ended.push(span),
            Event::Begun(place, span) => {
                if self.open.len() >= MAX_OPEN {
                    self.counts.drop_some(1);
                } else if let Some(lost) = self.open.insert(place, span) {
                    self.end(
                        lost,
                        Some(Status::error("The step was given out again.")),
                        now_ns(),
                    );
                }
            }
            Event::Completed(place, status, at_ns) => {
                if let Some(span) = self.open.remove(&place) {
                    self.end(span, status, at_ns);
                }
            }
            Event::Gone(stream) => {
                let gone: Vec<Span> = self
                    .open
                    .extract_if(|(owner, _), _| *owner == stream)
                    .map(|(_, span)| span)
                    .collect();
                for span in gone {
                    self.end(span, Some(Status::error("The worker has gone.")), now_ns());
                }
            }
        }
    }

    fn end(&mut self, mut span: Span, status: Option<Status>, at_ns: u64) {
        span.status = status;
        span.end_time_unix_nano = at_ns.max(span.start_time_unix_nano);
        self.ended.push(span);
    }

    /// Drops the spans of steps that nobody has reported.
    fn forget_old(&mut self) {
        let (now_ns, before) = (now_ns(), self.open.len());
        self.open
            .retain(|_, span| now_ns.saturating_sub(span.start_time_unix_nano) < MAX_OPEN_NS);
        self.counts.drop_some(before - self.open.len());
    }

    async fn send(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.ended);
        let count = spans.len();
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource {
                    attributes: vec![
                        text("service.name", "vesper-kernel"),
                        text("service.instance.id", &std::process::id().to_string()),
                    ],
                }),
                scope_spans: vec![ScopeSpans {
                    scope: Some(InstrumentationScope {
                        name: "vesper-kernel".to_owned(),
                        version: env!("CARGO_PKG_VERSION").to_owned(),
                    }),
                    spans,
                }],
            }],
        };
        let posted = timeout(TIMEOUT, self.endpoint.post(request.encode_to_vec())).await;
        if matches!(posted, Ok(Ok(()))) {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            self.counts.exported.fetch_add(count, Ordering::Relaxed);
        } else {
            self.counts.drop_some(count);
        }
    }
}
