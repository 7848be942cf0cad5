//! The server over real sockets: framing, limits, slow clients, native runs, the queue, drains.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use vesper_interp::{Path, Program};
use vesper_serve::{Engine, Exchange, NativeNode, Pending, Server, Settings};

const PAYMENT: &[u8] = include_bytes!("../../../fixtures/payment_decision_v1.json");
const BODY: &str =
    r#"{"amount":"12.50","balance":"100.00","currency":"EUR","country":"DE","user_age_days":400}"#;
/// Longer than any step of a test takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

fn endpoint(method: &str, path: &str, body: &str) -> String {
    format!(
        r#"{{"node":"{path}","method":"{method}","path":"{path}","inputs":[],"body":"{body}","success_status":200,
        "statuses":{{}},"response_headers":{{}},"is_pure":false,"has_now":false,"scopes":[],"outputs":null,"errors":null}}"#
    )
}

fn exchange() -> Exchange {
    let endpoints = [
        endpoint("POST", "/pay", "object"),
        endpoint("POST", "/call", "object"),
        endpoint("GET", "/item", "none"),
    ];
    let table = format!(
        r#"{{"version":1,"decimals":"text","cors":null,"auth":null,"endpoints":[{}],"builtins":["/readyz"]}}"#,
        endpoints.join(",")
    );
    Exchange::new(table.as_bytes()).unwrap()
}

/// A program whose calls are admitted and trusted as a test says.
struct Gate {
    program: Program,
    is_admitting: AtomicBool,
    is_trusting: AtomicBool,
    has_paths: bool,
    panics: AtomicBool,
    served: AtomicUsize,
}

struct Gated(Arc<Gate>);

impl Engine for Gated {
    fn program(&self) -> &Program {
        &self.0.program
    }

    fn admits(&self) -> bool {
        assert!(!self.0.panics.load(Ordering::Relaxed), "planted");
        self.0.is_admitting.load(Ordering::Relaxed)
    }

    fn has_paths(&self) -> bool {
        self.0.has_paths
    }

    fn trusts(&self, _path: &Path) -> bool {
        self.0.is_trusting.load(Ordering::Relaxed)
    }

    fn count_served(&self) {
        self.0.served.fetch_add(1, Ordering::Relaxed);
    }
}

struct Fixture {
    server: Arc<Server>,
    address: SocketAddr,
    gate: Arc<Gate>,
    python: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Fixture {
    /// Starts a server whose calls are answered with their inputs, except those that say `hold`.
    fn new(settings: &str) -> Self {
        Self::with_python(settings, |pending| {
            if !pending.inputs.windows(4).any(|four| four == b"hold") {
                let value = format!(
                    r#"{{"kind":"returned","value":{}}}"#,
                    String::from_utf8_lossy(&pending.inputs)
                );
                pending.answer(|call| call.answer(value.as_bytes(), None));
            }
            Some(pending).filter(|pending| pending.inputs.windows(4).any(|four| four == b"hold"))
        })
    }

    /// `serve` returns a call to hold it until the server closes.
    fn with_python(settings: &str, serve: impl Fn(Pending) -> Option<Pending> + Send + 'static) -> Self {
        let mut this = Self::bare(settings);
        let (server, is_over) = (Arc::clone(&this.server), Arc::clone(&this.is_over));
        this.python = Some(std::thread::spawn(move || {
            let mut held = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                held.extend(server.next(Duration::from_millis(20), false).and_then(&serve));
            }
        }));
        this
    }

    /// Starts a server whose queue no thread reads.
    fn bare(settings: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server =
            Arc::new(Server::new(listener, Settings::of_json(settings.as_bytes()).unwrap()).unwrap());
        let gate = Arc::new(Gate {
            program: Program::load(PAYMENT).unwrap(),
            is_admitting: AtomicBool::new(true),
            is_trusting: AtomicBool::new(true),
            has_paths: true,
            panics: AtomicBool::new(false),
            served: AtomicUsize::new(0),
        });
        let native = NativeNode::new(Box::new(Gated(Arc::clone(&gate))));
        server.load(exchange(), vec![Some(native), None, None]).unwrap();
        Self {
            server,
            address,
            gate,
            python: None,
            is_over: Arc::default(),
        }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client {
            stream,
            rest: Vec::new(),
        }
    }

    /// Sends bytes on a connection of its own and returns the first answer.
    fn ask(&self, bytes: &str) -> Answer {
        let mut client = self.connect();
        client.send(bytes);
        client.answer().unwrap()
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&Server) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so(&self.server) {
            assert!(Instant::now() < end, "{what}: {:?}", self.server.facts());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.server.close();
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(python) = self.python.take() {
            drop(python.join());
        }
    }
}

struct Client {
    stream: TcpStream,
    rest: Vec<u8>,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line.eq_ignore_ascii_case(header))
    }
}

impl Client {
    fn send(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).unwrap();
    }

    fn read_until(&mut self, is_done: impl Fn(&[u8]) -> bool) -> Option<()> {
        let mut part = [0; 16_384];
        while !is_done(&self.rest) {
            match self.stream.read(&mut part) {
                Ok(0) => return None,
                Ok(read) => self.rest.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&self.rest)),
            }
        }
        Some(())
    }

    /// Reads an answer with a body, or `None` at the end of the connection.
    fn answer(&mut self) -> Option<Answer> {
        self.answer_to(true)
    }

    fn answer_to(&mut self, has_body: bool) -> Option<Answer> {
        let end = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\r\n\r\n");
        self.read_until(|bytes| end(bytes).is_some())?;
        let end = end(&self.rest).unwrap();
        let head = String::from_utf8(self.rest.drain(..end + 4).collect()).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        let length = if has_body { length } else { 0 };
        self.read_until(|bytes| bytes.len() >= length)?;
        let body = String::from_utf8(self.rest.drain(..length).collect()).unwrap();
        let status = head[9..12].parse().unwrap();
        Some(Answer { status, head, body })
    }

    fn is_closed(&mut self) -> bool {
        self.read_until(|_| false).is_none()
    }
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn chunked(path: &str, chunks: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"
    )
}

#[test]
fn native_and_queued_calls_share_a_connection() {
    let served = Fixture::new("{}");
    let mut client = served.connect();
    for _ in 0..3 {
        client.send(&post("/pay", BODY));
        let answer = client.answer().unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body.starts_with(r#"{"decision":""#), "{answer:?}");
        client.send(&post("/call", r#"{"a":1}"#));
        assert_eq!(client.answer().unwrap().body, r#"{"a":1}"#);
    }
    let facts = served.server.facts();
    assert_eq!(
        (facts.requests, facts.native_requests, facts.connections),
        (6, 3, 1)
    );
    assert_eq!(served.gate.served.load(Ordering::Relaxed), 3);
}

#[test]
fn a_call_that_is_not_admitted_or_not_trusted_goes_to_python() {
    let served = Fixture::new("{}");
    served.gate.is_trusting.store(false, Ordering::Relaxed);
    assert_eq!(served.ask(&post("/pay", BODY)).body, BODY);
    served.gate.is_trusting.store(true, Ordering::Relaxed);
    served.gate.is_admitting.store(false, Ordering::Relaxed);
    assert_eq!(served.ask(&post("/pay", BODY)).body, BODY);
    served.gate.is_admitting.store(true, Ordering::Relaxed);
    // Problems of inputs are explained by Python.
    assert_eq!(served.ask(&post("/pay", "{}")).body, "{}");
    assert_eq!(served.gate.served.load(Ordering::Relaxed), 0);
    assert!(served.ask(&post("/pay", BODY)).body.contains("decision"));
    assert_eq!(served.gate.served.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panic_is_a_500_and_a_line_and_the_thread_goes_on() {
    let served = Fixture::new("{}");
    served.gate.panics.store(true, Ordering::Relaxed);
    assert_eq!(served.ask(&post("/pay", BODY)).status, 500);
    served.gate.panics.store(false, Ordering::Relaxed);
    assert_eq!(served.ask(&post("/pay", BODY)).status, 200);
    assert!(
        served
            .server
            .take_logs()
            .iter()
            .any(|line| line.contains("planted"))
    );
}

#[test]
fn large_inputs_run_on_a_native_thread() {
    let served = Fixture::new("{}");
    let spaces = " ".repeat(100_000);
    let answer = served.ask(&post("/pay", &format!("{spaces}{BODY}")));
    assert!(answer.body.contains("decision"), "{answer:?}");
    served.wait_until("the run has ended", |server| server.facts().native_runs == 0);
    assert_eq!(served.gate.served.load(Ordering::Relaxed), 1);
    assert_eq!(served.server.facts().buffered_bytes, 0);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let served = Fixture::new("{}");
    let mut client = served.connect();
    let all: String = (0..20)
        .map(|number| post("/call", &format!(r#"{{"n":{number}}}"#)))
        .collect();
    client.send(&all);
    for number in 0..20 {
        assert_eq!(client.answer().unwrap().body, format!(r#"{{"n":{number}}}"#));
    }
}

#[test]
fn ambiguous_requests_are_refused_and_their_rest_is_no_request() {
    let served = Fixture::new("{}");
    let smuggled = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    for head in [
        "Content-Length: 4\r\nContent-Length: 4\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Content-Length: 0x4\r\n",
        "Transfer-Encoding:\tchunked\x0b\r\n",
        "Host: b\r\n",
        "Content-Length : 4\r\n",
        "X: a\n",
    ] {
        let mut client = served.connect();
        client.send(&format!("POST /call HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{head}\r\n0\r\n\r\n{smuggled}"));
        let answer = client.answer().unwrap();
        assert_eq!(answer.status, 400, "{head}: {answer:?}");
        assert!(
            answer.has("connection: close") && answer.head.contains("application/problem+json"),
            "{answer:?}"
        );
        assert!(client.answer().is_none(), "{head}");
    }
    for chunks in [
        "4 \r\nabcd\r\n0\r\n\r\n",
        "1\r\n{}\r\n0\r\n\r\n",
        "2\n{}\r\n0\r\n\r\n",
    ] {
        let mut client = served.connect();
        client.send(&chunked("/call", chunks));
        assert_eq!(client.answer().unwrap().status, 400, "{chunks}");
        assert!(client.answer().is_none(), "{chunks}");
    }
}

#[test]
fn chunked_bodies_in_parts_and_trailers() {
    let served = Fixture::new("{}");
    let mut client = served.connect();
    for part in chunked("/call", "3;x=y\r\n{\"a\r\n4\r\n\":1}\r\n0\r\nX: y\r\n\r\n")
        .as_bytes()
        .chunks(7)
    {
        client.stream.write_all(part).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(client.answer().unwrap().body, r#"{"a":1}"#);
    client.send(&post("/call", "{}"));
    assert_eq!(client.answer().unwrap().status, 200);
}

#[test]
fn oversized_heads_and_bodies_are_refused() {
    let served = Fixture::new(r#"{"max_body_bytes": 1000, "max_head_bytes": 1024, "max_headers": 10}"#);
    let long = "x".repeat(2_000);
    assert_eq!(
        served
            .ask(&format!("GET /livez HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"))
            .status,
        431
    );
    assert_eq!(
        served
            .ask(&format!(
                "GET /livez HTTP/1.1\r\nHost: a\r\n{}\r\n",
                "X: y\r\n".repeat(10)
            ))
            .status,
        431
    );
    assert_eq!(served.ask(&post("/call", &format!("\"{long}\""))).status, 413);
    assert_eq!(
        served
            .ask(&chunked("/call", &format!("7d0\r\n{long}\r\n0\r\n\r\n")))
            .status,
        413
    );
    // The answer does not wait for the body that is not read.
    let answer = served.ask("POST /call HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n");
    assert_eq!(answer.status, 413);
    assert_eq!(served.server.facts().requests, 5, "refused ones count too");
}

#[test]
fn all_bodies_together_are_bounded() {
    let served = Fixture::new(r#"{"max_buffered_bytes": 150000}"#);
    let mut first = served.connect();
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(100_000));
    let whole = post("/call", &large);
    first.send(&whole[..80_000]);
    served.wait_until("the first body is counted", |server| {
        server.facts().buffered_bytes > 0
    });
    let refused = served.ask(&whole[..500]);
    assert_eq!(refused.status, 503);
    assert!(refused.has("retry-after: 1"), "{refused:?}");
    first.send(&whole[80_000..]);
    assert_eq!(first.answer().unwrap().body, large);
    served.wait_until("the bytes are free", |server| server.facts().buffered_bytes == 0);
}

#[test]
fn a_client_that_expects_100_continue_gets_it_only_for_a_wanted_body() {
    let served = Fixture::new("{}");
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
    };
    let mut client = served.connect();
    client.send(&head("/call"));
    assert_eq!(client.answer().unwrap().status, 100);
    client.send("{}");
    assert_eq!(client.answer().unwrap().body, "{}");
    client.send(&head("/nothing"));
    let answer = client.answer().unwrap();
    assert_eq!(answer.status, 404);
    assert!(answer.has("connection: close"));
    assert!(client.is_closed());
}

#[test]
fn heads_keep_alive_and_versions() {
    let served = Fixture::new("{}");
    let mut client = served.connect();
    client.send("HEAD /livez HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer_to(false).unwrap().status, 200);
    client.send("GET http://a/livez HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = client.answer().unwrap();
    assert_eq!(answer.status, 200);
    assert!(
        answer.head.contains("\r\ndate: ") && !answer.has("connection: close"),
        "{answer:?}"
    );
    client.send("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive, Close\r\n\r\n");
    assert!(client.answer().unwrap().has("connection: close"));
    assert!(client.is_closed());
    let mut old = served.connect();
    old.send("GET /livez HTTP/1.0\r\n\r\n");
    assert!(old.answer().unwrap().has("connection: close"));
    assert!(old.is_closed());
}

#[test]
fn slow_and_silent_clients_are_ended_and_others_served() {
    let settings =
        r#"{"head_seconds": 0.3, "body_seconds": 0.3, "idle_seconds": 0.3, "min_bytes_per_second": 1000000}"#;
    let served = Fixture::new(settings);
    let mut silent = served.connect();
    let mut slow_head = served.connect();
    slow_head.send("GET /livez HT");
    let mut slow_body = served.connect();
    slow_body.send(&post("/call", "{}").replace("Length: 2", "Length: 9"));
    let mut idle = served.connect();
    idle.send(&post("/call", "{}"));
    assert_eq!(idle.answer().unwrap().status, 200);
    assert_eq!(served.ask(&post("/pay", BODY)).status, 200);
    assert!(silent.is_closed() && slow_head.is_closed() && idle.is_closed());
    assert_eq!(slow_body.answer().unwrap().status, 408);
    assert!(slow_body.is_closed());
    served.wait_until("all connections have ended", |server| {
        server.facts().connections == 0
    });
}

#[test]
fn a_client_that_does_not_read_is_ended() {
    let settings = r#"{"write_seconds": 0.3, "min_bytes_per_second": 100000000, "max_body_bytes": 10000000}"#;
    let served = Fixture::new(settings);
    let mut client = served.connect();
    // More than the kernel buffers of both ends hold.
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(8_000_000));
    client.send(&post("/call", &large));
    served.wait_until("the connection has ended", |server| {
        server.facts().connections == 0 && server.facts().requests == 1
    });
}

#[test]
fn connections_beyond_the_maximum_are_refused_and_then_wait() {
    let served = Fixture::new(r#"{"max_connections": 2}"#);
    let held: Vec<Client> = (0..2).map(|_| served.connect()).collect();
    served.wait_until("both are accepted", |server| server.facts().connections == 2);
    let mut surplus = served.connect();
    surplus.send(&post("/pay", BODY));
    let answer = surplus.answer().unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.has("retry-after: 1") && answer.has("connection: close"));
    let waiting: Vec<Client> = (0..80).map(|_| served.connect()).collect();
    served.wait_until("no more are accepted", |server| server.facts().connections == 66);
    drop((held, waiting, surplus));
    served.wait_until("all have ended", |server| server.facts().connections == 0);
    assert_eq!(served.ask(&post("/pay", BODY)).status, 200);
}

#[test]
fn a_full_queue_refuses_and_pages_have_their_own() {
    let served = Fixture::bare(r#"{"queue": 2}"#);
    let mut waiting: Vec<Client> = (0..2).map(|_| served.connect()).collect();
    for each in &mut waiting {
        each.send(&post("/call", "{}"));
    }
    served.wait_until("both wait", |server| server.facts().queued == 2);
    let answer = served.ask(&post("/call", "{}"));
    assert_eq!(answer.status, 503);
    assert!(answer.has("retry-after: 1"), "{answer:?}");
    let mut page = served.connect();
    page.send("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
    let pending = served.server.next(PATIENCE, true).unwrap();
    assert!(pending.answer(|call| call.page(200, &[], b"ready".to_vec())));
    assert!(
        !pending.answer(|call| call.page(500, &[], Vec::new())),
        "a second answer"
    );
    assert_eq!(page.answer().unwrap().body, "ready");
    // A client that goes frees its place, and a dropped call is an internal error.
    drop(waiting.remove(0));
    let left = served.server.next(PATIENCE, false).unwrap();
    let is_gone = left.is_abandoned();
    drop(left);
    if is_gone {
        drop(served.server.next(PATIENCE, false).unwrap());
    }
    drop(served.server.next(Duration::from_millis(100), false));
    assert_eq!(waiting.remove(0).answer().unwrap().status, 500);
}

#[test]
fn a_client_that_only_stops_sending_gets_the_answer_of_its_queued_call() {
    let served = Fixture::bare("{}");
    let mut client = served.connect();
    client.send(&post("/call", r#"{"a":1}"#));
    served.wait_until("it waits", |server| server.facts().queued == 1);
    client.stream.shutdown(Shutdown::Write).unwrap();
    // The server reads the end before the call is taken.
    std::thread::sleep(Duration::from_millis(100));
    let pending = served.server.next(Duration::from_secs(1), false).unwrap();
    assert!(!pending.is_abandoned());
    let outcome = br#"{"kind":"returned","value":{"a":1}}"#;
    assert!(pending.answer(|call| call.answer(outcome, None)));
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"a":1}"#));
    assert!(client.is_closed());
}

#[test]
fn a_deadline_ends_a_waiting_call() {
    let served = Fixture::bare("{}");
    let mut client = served.connect();
    client.send(&post("/call", "{}").replace("Host: a", "Host: a\r\nVesper-Timeout: 0.05"));
    served.wait_until("it waits", |server| server.facts().queued == 1);
    std::thread::sleep(Duration::from_millis(60));
    assert!(served.server.next(Duration::from_millis(10), false).is_none());
    assert_eq!(client.answer().unwrap().status, 504);
    // A run that ignores its deadline does not hold its client.
    let held = Fixture::new("{}");
    let answer =
        held.ask(&post("/call", r#"{"hold":1}"#).replace("Host: a", "Host: a\r\nVesper-Timeout: 0.05"));
    assert_eq!(answer.status, 504);
}

#[test]
fn a_drain_serves_the_backlog_and_open_requests_and_then_no_more() {
    let served = Fixture::with_python("{}", |pending| {
        std::thread::sleep(Duration::from_millis(20));
        pending.answer(|call| call.answer(br#"{"kind":"returned","value":{}}"#, None));
        None
    });
    let mut idle = served.connect();
    idle.send(&post("/pay", BODY));
    assert_eq!(idle.answer().unwrap().status, 200);
    let mut clients: Vec<Client> = (0..20).map(|_| served.connect()).collect();
    for client in &mut clients {
        client.send(&post("/call", "{}"));
    }
    let drained = Arc::clone(&served.server);
    let drain = std::thread::spawn(move || drained.drain(PATIENCE));
    for client in &mut clients {
        let answer = client.answer().unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(client.is_closed());
    }
    assert!(idle.is_closed());
    assert!(drain.join().unwrap());
    assert!(TcpStream::connect(served.address).is_err());
    assert!(served.server.next(PATIENCE, false).is_none());
}

#[test]
fn a_drain_that_takes_too_long_says_so_and_close_ends_it() {
    let served = Fixture::new("{}");
    let mut client = served.connect();
    client.send(&post("/call", r#"{"hold":1}"#));
    served.wait_until("it runs", |server| {
        server.facts().connections == 1 && server.facts().queued == 0
    });
    assert!(!served.server.drain(Duration::from_millis(50)));
    served.server.close();
    assert!(client.answer().is_none_or(|answer| answer.status == 503));
}

#[test]
fn a_new_epoch_serves_new_requests_of_old_connections() {
    let served = Fixture::new(r#"{"is_access_logged": true, "span_sample": 1.0}"#);
    let mut client = served.connect();
    client.send(&post("/pay", BODY));
    assert_eq!(client.answer().unwrap().status, 200);
    let table = format!(
        r#"{{"version":1,"decimals":"text","cors":null,"auth":null,"endpoints":[{}],"builtins":[]}}"#,
        endpoint("POST", "/other", "object")
    );
    served
        .server
        .load(Exchange::new(table.as_bytes()).unwrap(), vec![None])
        .unwrap();
    client.send(&post("/pay", BODY));
    assert_eq!(client.answer().unwrap().status, 404);
    client.send(&post("/other", r#"{"b":2}"#));
    assert_eq!(client.answer().unwrap().body, r#"{"b":2}"#);
    let access: Vec<_> = served
        .server
        .take_access()
        .iter()
        .map(|row| (row.status.as_u16(), row.template.clone()))
        .collect();
    let other = Some("/other".to_owned());
    assert_eq!(
        access,
        [(200, Some("/pay".to_owned())), (404, None), (200, other)]
    );
    let spans = served.server.take_spans();
    assert!(
        spans.len() == 1 && spans[0].node == "/pay" && spans[0].end_ns >= spans[0].start_ns,
        "{spans:?}"
    );
}

#[test]
fn an_epoch_is_in_use_until_the_bodies_of_its_requests_have_arrived() {
    let served = Fixture::new("{}");
    let mut client = served.connect();
    client.send(
        &post("/call", "{}")
            .replace("Host: a", "Host: a\r\nExpect: 100-continue")
            .replace("{}", ""),
    );
    assert_eq!(client.answer().unwrap().status, 100);
    served.server.load(exchange(), vec![None, None, None]).unwrap();
    let epochs = |server: &Server| (server.facts().oldest_epoch, server.facts().epoch);
    assert_eq!(epochs(&served.server), (1, 2));
    client.send("{}");
    assert_eq!(client.answer().unwrap().status, 200);
    served.wait_until("the first is over", |server| epochs(server) == (2, 2));
}
