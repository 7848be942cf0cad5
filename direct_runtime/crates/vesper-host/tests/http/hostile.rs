//! Servers that mean harm or are broken: each costs a bounded time, and the failure names what it did.

use std::net::TcpListener;
use std::time::Duration;

use vesper_ir::EffectClass;

use crate::server::{
    Script, Web, closes, hangs, message, message_with, says, sends, sends_and_closes, sends_for_ever,
};
use crate::side::{Call, Side};

const CHUNKED: &str = "HTTP/1.1 200 -\r\nTransfer-Encoding: chunked\r\n\r\n";
const MEGABYTE: usize = 1 << 20;

fn trickle(start: &str, piece: &str) -> Script {
    sends_for_ever(start.as_bytes(), piece.as_bytes(), Duration::from_millis(20))
}

fn flood(start: &str, piece: &str) -> Script {
    sends_for_ever(start.as_bytes(), piece.as_bytes(), Duration::ZERO)
}

fn cut(data: &str) -> Script {
    sends_and_closes(data.as_bytes())
}

fn timeouts() -> Vec<(&'static str, Script)> {
    vec![
        ("hangs", hangs()),
        ("status line", trickle("HTTP/1.1 200 -\r\nX: ", "x")),
        ("headers", trickle("HTTP/1.1 200 -\r\n", "X: y\r\n")),
        (
            "body",
            trickle("HTTP/1.1 200 -\r\nContent-Length: 99999\r\n\r\n", " "),
        ),
        ("chunks", trickle(CHUNKED, "1\r\n \r\n")),
        ("chunk", trickle(&format!("{CHUNKED}ffff\r\n"), " ")),
        ("100 for ever", trickle("", "HTTP/1.1 100 -\r\n\r\n")),
    ]
}

fn endings() -> Vec<(&'static str, Script)> {
    vec![
        ("at once", closes()),
        ("in the status", cut("HTTP/1.1 2")),
        ("in the headers", cut("HTTP/1.1 200 -\r\nX:")),
        (
            "in the body",
            cut("HTTP/1.1 200 -\r\nContent-Length: 9\r\n\r\n{\"a\""),
        ),
        ("in a chunk", cut(&format!("{CHUNKED}9\r\n{{}}"))),
        ("before the last chunk", cut(&format!("{CHUNKED}2\r\n{{}}\r\n"))),
    ]
}

fn unusable() -> Vec<(&'static str, Script)> {
    let megabyte = "x".repeat(MEGABYTE);
    let limit = "is longer than 1,048,576 bytes, the limit `max_response`";
    let not_http = "`shop` does not speak HTTP as it should: ";
    let binary: Vec<u8> = (0..=255).cycle().take(128_000).collect();
    vec![
        (limit, flood("HTTP/1.1 200 -\r\nContent-Length: 20000000\r\n\r\n", &megabyte)),
        (limit, flood("HTTP/1.1 200 -\r\n\r\n", &megabyte)),
        (limit, flood(CHUNKED, &format!("100000\r\n{megabyte}\r\n"))),
        (
            "pieces, of less than 64 bytes on the average",
            flood(CHUNKED, &"1\r\nx\r\n".repeat(10_000)),
        ),
        (not_http, cut(&format!("{CHUNKED}zz\r\n{{}}\r\n"))),
        (not_http, sends(format!("{CHUNKED}1\r\n{{}}\r\n0\r\n\r\n").as_bytes())),
        (not_http, sends(format!("{CHUNKED}{}", "f".repeat(200_000)).as_bytes())),
        (not_http, sends(format!("{CHUNKED}1;{}", "x".repeat(200_000)).as_bytes())),
        (not_http, flood(&format!("{CHUNKED}0\r\n"), &"X-Y: z\r\n".repeat(10_000))),
        (
            not_http,
            sends(format!("HTTP/1.1 200 -\r\nX: {}\r\n\r\n", "x".repeat(300_000)).as_bytes()),
        ),
        (not_http, flood("HTTP/1.1 200 -\r\n", &"X-Y: z\r\n".repeat(10_000))),
        (
            not_http,
            sends(b"HTTP/1.1 200 -\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
        ),
        (not_http, sends(b"HTTP/1.1 200 -\r\nContent-Length: -1\r\n\r\n{}")),
        (not_http, sends(b"HTTP/1.1 200 -\r\nContent-Length: +2\r\n\r\n{}")),
        (not_http, sends(b"HTTP/1.1 200 -\r\nContent-Length : 2\r\n\r\n{}")),
        (not_http, sends(b"HTTP/1.1 200 -\r\nTransfer-Encoding: gzip, chunked\r\n\r\n")),
        (
            not_http,
            sends(b"HTTP/1.1 200 -\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ),
        (not_http, sends(b"HTTP/1.0 200 -\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
        (not_http, sends(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")),
        (not_http, sends(&binary)),
        (
            not_http,
            sends(b"HTTP/1.1 101 -\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"),
        ),
        ("is compressed (`gzip`)", sends(&message_with(200, "x", "Content-Encoding: gzip\r\n"))),
        ("is compressed,", sends(&message_with(200, "x", "Content-Encoding: zip\r\n"))),
    ]
}

fn check(name: &str, script: Script, code: &str, problem: &str, milliseconds: u64) {
    let web = Web::start();
    web.on("/it", script);
    let side = Side::new(&web.url());
    let call = Call::new("POST", "/it")
        .class(EffectClass::Unsafe, None)
        .within(milliseconds);
    let failure = side.failure(&side.performer(), &call);
    assert_eq!(failure.code.name(), code, "{name}: {}", failure.message);
    assert!(failure.message.contains(problem), "{name}: {}", failure.message);
    assert!(failure.may_have_happened, "{name}");
    assert_eq!((web.connections(), web.got().len()), (1, 1), "{name}");
}

#[test]
fn time_runs_out_however_slowly_bytes_come() {
    for (name, script) in timeouts() {
        let doing = "no time was left while waiting for the answer";
        check(name, script, "timeout", doing, 300);
    }
}

#[test]
fn an_end_in_the_middle_is_no_answer() {
    let problem = "the connection was closed before the answer was complete";
    for (name, script) in endings() {
        check(name, script, "unavailable", problem, 20_000);
    }
}

#[test]
fn unusable_answers_are_named() {
    for (place, (problem, script)) in unusable().into_iter().enumerate() {
        check(&place.to_string(), script, "bad_response", problem, 20_000);
    }
}

#[test]
fn an_answer_that_is_cut_at_any_byte_is_no_answer() {
    for whole in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\": 12}".to_owned(),
        format!("{CHUNKED}4\r\n{{\"a\"\r\n5;x=y\r\n: 12}}\r\n0\r\nTrailer: x\r\n\r\n"),
    ] {
        let web = Web::start();
        let side = Side::new(&web.url());
        let performer = side.performer();
        let call = Call::new("POST", "/it").class(EffectClass::Unsafe, None);
        for length in 0..whole.len() {
            web.on("/it", cut(&whole[..length]));
            let failure = side.failure(&performer, &call);
            assert_eq!(
                failure.code.name(),
                "unavailable",
                "{length}: {}",
                failure.message
            );
            assert!(failure.may_have_happened);
        }
        web.on("/it", cut(&whole));
        assert_eq!(side.json(&performer, &call), "{\"a\":12}");
        assert_eq!(web.got().len(), whole.len() + 1);
    }
}

#[test]
fn bytes_behind_an_answer_are_not_read_as_the_next_one() {
    let web = Web::start();
    let side = Side::new(&web.url());
    let performer = side.performer();
    let two = [message(200, "1"), message(200, "\"smuggled\"")].concat();
    web.on("/it", sends(&two));
    web.on(
        "/late",
        std::sync::Arc::new(|_, stream| {
            stream.write_all(&message(200, "2")).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            stream.write_all(&message(200, "\"smuggled\"")).is_ok()
        }),
    );
    web.on("/next", says("\"mine\""));
    assert_eq!(side.json(&performer, &Call::new("GET", "/it")), "1");
    assert_eq!(side.json(&performer, &Call::new("GET", "/next")), "\"mine\"");
    assert_eq!(web.connections(), 2);
    assert_eq!(side.json(&performer, &Call::new("GET", "/late")), "2");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(side.json(&performer, &Call::new("GET", "/next")), "\"mine\"");
    assert_eq!(web.connections(), 3);
}

#[test]
fn an_endless_error_is_still_an_error() {
    let web = Web::start();
    let side = Side::new(&web.url());
    let megabyte = "x".repeat(MEGABYTE);
    web.on("/it", flood("HTTP/1.1 500 -\r\n\r\n", &megabyte));
    let failure = side.failure(&side.performer(), &Call::new("GET", "/it"));
    assert_eq!(failure.code.name(), "http_500");
    web.on(
        "/it",
        trickle("HTTP/1.1 503 -\r\nContent-Length: 9999\r\n\r\n", "slow "),
    );
    let failure = side.failure(&side.performer(), &Call::new("GET", "/it").within(500));
    assert_eq!(failure.code.name(), "http_503");
    assert!(failure.message.contains("slow slow"), "{}", failure.message);
    web.on("/it", cut("HTTP/1.1 502 -\r\nContent-Length: 9999\r\n\r\ncut"));
    let failure = side.failure(&side.performer(), &Call::new("GET", "/it"));
    assert_eq!(failure.message, "`shop` answered with status 502: cut");
    assert!(failure.may_have_happened);
}

#[test]
fn a_server_that_does_not_read_stops_the_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let side = Side::new(&format!("http://{}", listener.local_addr().unwrap()));
    let body = format!("\"{}\"", "x".repeat(9_000_000));
    let failure = side.failure(
        &side.performer(),
        &Call::new("POST", "/it").body(&body).within(5000),
    );
    assert_eq!(failure.code.name(), "timeout");
    assert_eq!(failure.message, "no time was left while sending the request");
    assert!(failure.may_have_happened);
}

#[test]
fn a_refusal_in_the_middle_of_the_request_is_an_answer() {
    use std::io::{Read as _, Write as _};
    for is_abrupt in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let side = Side::new(&format!("http://{}", listener.local_addr().unwrap()));
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 1 << 20];
            let _ = stream.read(&mut buffer[..1000]).unwrap();
            stream.write_all(&message(413, "too much")).unwrap();
            if is_abrupt {
                std::thread::sleep(Duration::from_millis(200));
            } else {
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                while stream.read(&mut buffer).is_ok_and(|length| length > 0) {}
            }
        });
        let body = format!("\"{}\"", "x".repeat(3_000_000));
        let failure = side.failure(&side.performer(), &Call::new("POST", "/it").body(&body));
        assert_eq!(failure.code.name(), "http_413", "{}", failure.message);
        drop(side);
        thread.join().unwrap();
    }
}
