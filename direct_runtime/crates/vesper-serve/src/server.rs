//! The server: sockets, limits, native runs, and the queue of calls for Python.
//!
//! Each thread has a runtime of its own, and all accept connections of one listener; a connection stays on its thread.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::TcpListener as Listener;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::{Method, StatusCode};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_rustls::TlsAcceptor;
use vesper_interp::guard::{guarded, quiet_guarded_panics};

use crate::answer::{Refusal, RefusalKind};
use crate::exchange::{Call, Endpoint, Exchange};
use crate::trace::Trace;

mod connection;
mod limits;
mod meters;
mod native;
mod queue;
mod tls;
mod wire;

use connection::Connection;
use limits::{Clock, SWEEP_INTERVAL, Watched};
pub use limits::{Settings, TlsSettings};
use meters::{Meters, set_gauges};
use native::Ran;
pub use native::{Engine, NativeNode};
use queue::Queue;
pub use queue::{Parts, Pending};

/// Connections beyond the maximum, whose one request is refused; then no more are accepted.
const SURPLUS_CONNECTIONS: usize = 64;
/// Pause after a failed accept, which usually means that the process has too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Maximum time until the listener is closed, and interval of the look at it.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Rows that are kept until they are taken; later ones are dropped.
const MAX_ROWS: usize = 16_384;

/// The table and the programs of the nodes at one time.
#[derive(Debug)]
pub struct Epoch {
    pub number: u64,
    pub exchange: Exchange,
    /// The nodes that can run natively, by endpoint.
    pub nodes: Vec<Option<NativeNode>>,
    meters: Meters,
}

/// A server of one listener.
pub struct Server {
    shared: Arc<Shared>,
    listener: Mutex<Option<Listener>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Server")
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Phase {
    Serving,
    /// No connection is accepted, and each ends after its request.
    Draining,
    Closed,
}

/// A request for a span: a native run whose trace is sampled.
#[derive(Clone, Debug)]
pub struct SpanRow {
    pub node: String,
    pub trace: Trace,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// A request for the access log, without its path and its inputs.
#[derive(Clone, Debug)]
pub struct AccessRow {
    pub method: Method,
    pub template: Option<String>,
    pub node: Option<String>,
    pub status: StatusCode,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub trace_id: Option<[u8; 16]>,
}

/// Numbers for `/status`.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub connections: usize,
    pub queued: usize,
    pub native_runs: usize,
    pub buffered_bytes: usize,
    pub requests: u64,
    pub native_requests: u64,
    pub epoch: u64,
    /// The first epoch that a request belongs to, also one whose body has not arrived; else the current one.
    pub oldest_epoch: u64,
}

struct Shared {
    settings: Settings,
    clock: Clock,
    /// Set before the first connection is accepted.
    epoch: RwLock<Option<Arc<Epoch>>>,
    /// Former epochs, of which requests may be left.
    former: Mutex<Vec<(u64, Weak<Epoch>)>>,
    tls: RwLock<Option<Arc<ServerConfig>>>,
    queue: Queue,
    /// The phase for the requests, which read it without a lock, and for the threads that accept connections.
    current_phase: AtomicU8,
    phase: watch::Sender<Phase>,
    /// Threads that accept connections.
    accepting: AtomicUsize,
    connections: AtomicUsize,
    has_room: Notify,
    watched: Mutex<HashMap<u64, Arc<Watched>>>,
    next_id: AtomicU64,
    native_runs: AtomicUsize,
    buffered_bytes: AtomicUsize,
    requests: AtomicU64,
    native_requests: AtomicU64,
    logs: Rows<String>,
    spans: Rows<SpanRow>,
    access: Rows<AccessRow>,
}

/// Rows for Python, in order. Its length is bounded.
struct Rows<T>(Mutex<VecDeque<T>>);

impl<T> Rows<T> {
    fn add(&self, row: T) {
        let mut rows = lock(&self.0);
        if rows.len() < MAX_ROWS {
            rows.push_back(row);
        }
    }

    fn take(&self) -> Vec<T> {
        lock(&self.0).drain(..).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Makes a server that accepts no connection before its first `load`. The listener is closed by a drain.
    pub fn new(listener: Listener, settings: Settings) -> Result<Self, String> {
        quiet_guarded_panics();
        listener
            .set_nonblocking(true)
            .map_err(|error| format!("the listener cannot be used: {error}"))?;
        let tls = settings.tls.as_ref().map(tls::load).transpose()?;
        let shared = Shared {
            clock: Clock::new(),
            epoch: RwLock::new(None),
            former: Mutex::default(),
            tls: RwLock::new(tls),
            queue: Queue::new(settings.queue),
            current_phase: AtomicU8::new(Phase::Serving as u8),
            phase: watch::channel(Phase::Serving).0,
            accepting: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            has_room: Notify::new(),
            watched: Mutex::default(),
            next_id: AtomicU64::new(0),
            native_runs: AtomicUsize::new(0),
            buffered_bytes: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            native_requests: AtomicU64::new(0),
            logs: Rows(Mutex::default()),
            spans: Rows(Mutex::default()),
            access: Rows(Mutex::default()),
            settings,
        };
        Ok(Self {
            shared: Arc::new(shared),
            listener: Mutex::new(Some(listener)),
            threads: Mutex::default(),
        })
    }

    /// Serves later requests by this table and these programs, and reads the certificates again. Keeps the last ones
    /// on an error.
    pub fn load(&self, exchange: Exchange, nodes: Vec<Option<NativeNode>>) -> Result<(), String> {
        let tls = self.shared.settings.tls.as_ref().map(tls::load).transpose()?;
        *self.shared.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
        let mut epoch = self.shared.epoch.write().unwrap_or_else(PoisonError::into_inner);
        let number = epoch.as_ref().map_or(0, |last| last.number) + 1;
        let meters = Meters::new(nodes.len());
        let last = epoch.replace(Arc::new(Epoch {
            number,
            exchange,
            nodes,
            meters,
        }));
        if let Some(last) = &last {
            lock(&self.shared.former).push((last.number, Arc::downgrade(last)));
        }
        drop(epoch);
        drop(last);
        self.start()
    }

    /// Starts the threads, once.
    fn start(&self) -> Result<(), String> {
        let Some(listener) = lock(&self.listener).take() else {
            return Ok(());
        };
        let failed = |error: io::Error| format!("a thread of the server cannot be started: {error}");
        for number in 0..self.shared.settings.threads {
            let listener = listener.try_clone().map_err(failed)?;
            let shared = Arc::clone(&self.shared);
            shared.accepting.fetch_add(1, Ordering::Relaxed);
            let thread = std::thread::Builder::new()
                .name(format!("vesper-serve-{number}"))
                .spawn(move || run_thread(&shared, listener))
                .map_err(failed)?;
            lock(&self.threads).push(thread);
        }
        Ok(())
    }

    /// Takes the next call for Python; with `is_for_pages` only a page of the server. Returns `None` after `limit`, or
    /// when the server is drained or closed.
    pub fn next(&self, limit: Duration, is_for_pages: bool) -> Option<Pending> {
        self.shared.queue.next(limit, is_for_pages)
    }

    /// Accepts the connections that the kernel has established, then closes the listener.
    pub fn stop_accepting(&self) {
        drop(lock(&self.listener).take());
        self.shared.enter(Phase::Draining);
        let end = Instant::now() + CLOSE_LIMIT;
        while self.shared.accepting.load(Ordering::Acquire) > 0 && Instant::now() < end {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Finishes the requests of all connections. Returns false if some are left after `limit`.
    pub fn drain(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit.min(Duration::from_secs(1 << 20));
        self.stop_accepting();
        loop {
            let is_drained =
                self.shared.connections.load(Ordering::Acquire) == 0 && self.shared.queue.len() == 0;
            if is_drained {
                self.shared.queue.close();
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Ends all connections and threads. Native runs that have not ended are left alone.
    pub fn close(&self) {
        drop(lock(&self.listener).take());
        self.shared.queue.close();
        self.shared.enter(Phase::Closed);
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // A thread catches its panics.
            drop(thread.join());
        }
        set_gauges(0, 0);
    }

    pub fn facts(&self) -> Facts {
        let shared = &self.shared;
        let epoch = shared.epoch().map_or(0, |epoch| epoch.number);
        let mut former = lock(&shared.former);
        former.retain(|(_, epoch)| epoch.strong_count() > 0);
        let oldest_epoch = former.first().map_or(epoch, |(number, _)| *number);
        drop(former);
        Facts {
            connections: shared.connections.load(Ordering::Relaxed),
            queued: shared.queue.len(),
            native_runs: shared.native_runs.load(Ordering::Relaxed),
            buffered_bytes: shared.buffered_bytes.load(Ordering::Relaxed),
            requests: shared.requests.load(Ordering::Relaxed),
            native_requests: shared.native_requests.load(Ordering::Relaxed),
            epoch,
            oldest_epoch,
        }
    }

    pub fn take_logs(&self) -> Vec<String> {
        self.shared.logs.take()
    }

    pub fn take_spans(&self) -> Vec<SpanRow> {
        self.shared.spans.take()
    }

    pub fn take_access(&self) -> Vec<AccessRow> {
        self.shared.access.take()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// Serves connections until the server is closed. A panic ends the connections of this thread, which starts again.
fn run_thread(shared: &Arc<Shared>, listener: Listener) {
    let mut listener = Some(listener);
    while !shared.is_closed() {
        let ran = guarded(|| {
            let runtime = Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .max_blocking_threads(shared.settings.native_threads)
                .thread_name("vesper-native")
                .build()?;
            let served = runtime.block_on(accept_all(shared, &mut listener));
            runtime.shutdown_background();
            served
        });
        match ran {
            Ok(Ok(())) => break,
            Ok(Err(error)) => shared.log(format!("a thread of the server failed and starts again: {error}")),
            Err(message) => shared.log(format!(
                "a thread of the server panicked and starts again: {message}"
            )),
        }
        std::thread::sleep(ACCEPT_PAUSE);
    }
}

/// Accepts connections, and looks at the deadlines of all, until the server is closed.
///
/// A drain takes the listener away, so that a thread which starts again does not accept.
async fn accept_all(shared: &Arc<Shared>, kept: &mut Option<Listener>) -> io::Result<()> {
    let own = kept.as_ref().map(Listener::try_clone).transpose()?;
    let mut listener = own.map(TcpListener::from_std).transpose()?;
    let mut phase = shared.phase.subscribe();
    let mut ticks = interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let current = *phase.borrow_and_update();
        if current >= Phase::Draining
            && let Some(listener) = listener.take()
        {
            *kept = None;
            accept_backlog(shared, &listener.into_std()?)?;
            shared.accepting.fetch_sub(1, Ordering::Release);
        }
        if current == Phase::Closed {
            return Ok(());
        }
        let has_room = shared.connections.load(Ordering::Relaxed)
            < shared.settings.max_connections + SURPLUS_CONNECTIONS;
        tokio::select! {
            accepted = accept(listener.as_ref()), if listener.is_some() && has_room => match accepted {
                Ok(stream) => shared.connect(stream),
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    shared.log(format!("a connection could not be accepted: {error}"));
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            () = shared.has_room.notified(), if !has_room => {}
            _ = ticks.tick() => shared.sweep(),
            _ = phase.changed() => {}
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

/// Accepts the connections that the kernel has established.
fn accept_backlog(shared: &Arc<Shared>, listener: &Listener) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                shared.connect(TcpStream::from_std(stream)?);
            }
            Err(error) if is_of_connection(&error) => {}
            Err(_) => return Ok(()),
        }
    }
}

/// Returns true for an error of one connection, after which the next can be accepted.
fn is_of_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// The place of a connection among all, given back when it is dropped.
struct Slot {
    shared: Arc<Shared>,
    id: u64,
    watched: Arc<Watched>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.shared.watched).remove(&self.id);
        self.shared.connections.fetch_sub(1, Ordering::Release);
        self.shared.has_room.notify_one();
    }
}

/// Bytes of a body in the memory of the server.
struct Buffered<'a> {
    shared: &'a Shared,
    bytes: usize,
}

impl<'a> Buffered<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self { shared, bytes: 0 }
    }

    /// Counts up to this many bytes; returns false if the server holds too many.
    fn grow(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let before = self.shared.buffered_bytes.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        before + more <= self.shared.settings.max_buffered_bytes
    }
}

impl Drop for Buffered<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.shared
                .buffered_bytes
                .fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// The facts of a request that outlive its call.
#[derive(Default)]
struct Finished {
    call: Option<(Endpoint, Trace)>,
    is_native: bool,
}

impl Finished {
    fn of_call(&mut self, call: &Call) {
        self.call = Some((call.endpoint(), *call.trace()));
    }
}

impl Shared {
    fn epoch(&self) -> Option<Arc<Epoch>> {
        self.epoch.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_draining(&self) -> bool {
        self.current_phase.load(Ordering::Acquire) >= Phase::Draining as u8
    }

    fn is_closed(&self) -> bool {
        self.current_phase.load(Ordering::Acquire) == Phase::Closed as u8
    }

    fn enter(&self, phase: Phase) {
        self.current_phase.fetch_max(phase as u8, Ordering::Release);
        self.phase.send_if_modified(|current| {
            let is_later = phase > *current;
            *current = phase.max(*current);
            is_later
        });
        self.each_watched(Watched::wake);
    }

    fn each_watched(&self, does: impl Fn(&Watched)) {
        // Waking may run code of the runtime, so it happens without the lock.
        let all: Vec<Arc<Watched>> = lock(&self.watched).values().map(Arc::clone).collect();
        for each in &all {
            does(each);
        }
    }

    fn sweep(&self) {
        let now = self.clock.at(Instant::now());
        lock(&self.watched).values().for_each(|each| each.sweep(now));
        set_gauges(self.connections.load(Ordering::Relaxed), self.queue.len());
    }

    fn log(&self, line: String) {
        self.logs.add(line);
    }

    /// Starts the task of a connection.
    fn connect(self: &Arc<Self>, stream: TcpStream) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let watched = Arc::new(Watched::new());
        lock(&self.watched).insert(id, Arc::clone(&watched));
        let is_surplus = self.connections.fetch_add(1, Ordering::Relaxed) >= self.settings.max_connections;
        let slot = Slot {
            shared: Arc::clone(self),
            id,
            watched,
        };
        // Answers are written whole, so nothing is gained by waiting for more.
        drop(stream.set_nodelay(true));
        let tls = self.tls.read().unwrap_or_else(PoisonError::into_inner).clone();
        tokio::spawn(async move {
            let Slot { shared, watched, .. } = &slot;
            poll_fn(|context| {
                watched.set_task(context.waker());
                Poll::Ready(())
            })
            .await;
            match tls {
                None => {
                    Connection::new(shared, watched, stream, None, is_surplus)
                        .serve()
                        .await;
                }
                Some(config) => Box::pin(serve_tls(shared, watched, stream, config, is_surplus)).await,
            }
        });
    }

    /// Runs a call on a thread for native runs. The run keeps its place until it ends, also if its client has gone.
    fn run_long(self: &Arc<Self>, pending: Pending) {
        let place = NativePlace::new(self);
        let max_runs = self.settings.native_threads + self.settings.native_queue;
        if place.running > max_runs {
            let retry_after = Some(Duration::from_secs(1));
            pending.refuse(&Refusal {
                retry_after,
                ..Refusal::from(RefusalKind::Overloaded)
            });
            return;
        }
        tokio::task::spawn_blocking(move || {
            let shared = Arc::clone(&place.shared);
            let node = match pending.call.endpoint() {
                Endpoint::Node(index) => pending.epoch.nodes.get(index).and_then(Option::as_ref),
                Endpoint::Builtin(_) => None,
            };
            if pending.is_abandoned() {
                return;
            }
            let time = pending
                .deadline
                .map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match node.map(|node| node.run_long(&pending.inputs, time)) {
                Some(Ran::Returned(outcome)) => {
                    pending.answer(|call| call.answer(&outcome, None));
                }
                Some(Ran::Fault(message)) => {
                    shared.log(format!("a native run panicked: {message}"));
                    shared.queue.push(pending);
                }
                _ => shared.queue.push(pending),
            }
            drop(place);
        });
    }

    /// Records a request that was answered.
    fn finish(
        &self,
        finished: &Finished,
        epoch: &Epoch,
        method: &Method,
        status: StatusCode,
        (start, begun): (SystemTime, Instant),
    ) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if finished.is_native {
            self.native_requests.fetch_add(1, Ordering::Relaxed);
        }
        let duration = begun.elapsed();
        let endpoint = finished.call.map(|(endpoint, _)| endpoint);
        let is_sampled = finished.call.is_some_and(|(_, trace)| self.samples(&trace));
        let trace = finished
            .call
            .filter(|_| is_sampled)
            .map(|(_, trace)| u128::from_be_bytes(trace.trace_id));
        epoch
            .meters
            .count(&epoch.exchange, endpoint, method, status, duration, trace);
        let is_span = is_sampled && finished.is_native;
        if !is_span && !self.settings.is_access_logged {
            return;
        }
        let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = nanoseconds(start.duration_since(UNIX_EPOCH).unwrap_or_default());
        let duration_ns = nanoseconds(duration);
        let node = match finished.call {
            Some((Endpoint::Node(index), _)) => Some(epoch.exchange.node(index).to_owned()),
            _ => None,
        };
        if is_span && let (Some((_, trace)), Some(node)) = (finished.call, node.clone()) {
            self.spans.add(SpanRow {
                node,
                trace,
                start_ns,
                end_ns: start_ns.saturating_add(duration_ns),
            });
        }
        if self.settings.is_access_logged {
            self.access.add(AccessRow {
                method: method.clone(),
                template: finished
                    .call
                    .map(|(endpoint, _)| epoch.exchange.template(endpoint).to_owned()),
                node,
                status,
                start_ns,
                duration_ns,
                trace_id: finished.call.map(|(_, trace)| trace.trace_id),
            });
        }
    }

    /// Decides on the span of a request: as its caller did, or by the share of the settings.
    #[expect(clippy::cast_precision_loss, reason = "a share needs no exact number")]
    fn samples(&self, trace: &Trace) -> bool {
        match trace.parent_id {
            Some(_) => trace.is_sampled,
            // The id is random.
            None => {
                (u64::from_le_bytes(trace.span_id) as f64)
                    < self.settings.span_sample * 18_446_744_073_709_551_616.0
            }
        }
    }
}

/// The place of a native run among all that run or wait.
struct NativePlace {
    shared: Arc<Shared>,
    /// Runs with this one.
    running: usize,
}

impl NativePlace {
    fn new(shared: &Arc<Shared>) -> Self {
        let running = shared.native_runs.fetch_add(1, Ordering::Relaxed) + 1;
        Self {
            shared: Arc::clone(shared),
            running,
        }
    }
}

impl Drop for NativePlace {
    fn drop(&mut self) {
        self.shared.native_runs.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves a connection after its handshake.
async fn serve_tls(
    shared: &Arc<Shared>,
    watched: &Watched,
    stream: TcpStream,
    config: Arc<ServerConfig>,
    is_surplus: bool,
) {
    watched.set(shared.clock.at(Instant::now() + shared.settings.head));
    let mut handshake = pin!(TlsAcceptor::from(config).accept(stream));
    let stream = poll_fn(|context| match handshake.as_mut().poll(context) {
        Poll::Pending if watched.is_expired() || shared.is_closed() => Poll::Ready(None),
        polled => polled.map(Result::ok),
    });
    if let Some(stream) = stream.await {
        let certificates = stream.get_ref().1.peer_certificates();
        let subject = certificates.and_then(|chain| vesper_auth::subject(chain.first()?));
        Connection::new(shared, watched, stream, subject, is_surplus)
            .serve()
            .await;
    }
}
