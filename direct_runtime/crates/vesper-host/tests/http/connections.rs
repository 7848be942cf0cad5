//! Connections: which are kept, which are replaced, and how long any of them is waited for.

use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use vesper_host::effect::Performer as _;
use vesper_ir::{EffectClass, Value};

use crate::server::{Web, closes, hangs, message, says};
use crate::side::{Call, Side, plain};

#[test]
fn one_connection_carries_many_requests() {
    let web = Web::start();
    web.on("/it", says("1"));
    web.on("/gone", crate::server::sends(&message(410, "{}")));
    let side = Side::new(&web.url());
    let performer = side.performer();
    for _ in 0..25 {
        assert_eq!(side.json(&performer, &Call::new("GET", "/it")), "1");
        let failure = side.failure(&performer, &Call::new("POST", "/gone").body("{\"a\":1}"));
        assert_eq!(failure.code.name(), "http_410");
    }
    assert_eq!((web.connections(), web.got().len()), (1, 50));
}

#[test]
fn a_connection_that_the_server_closed_is_replaced() {
    let web = Web::start();
    web.on("/it", says("1"));
    let side = Side::new(&web.url());
    let performer = side.performer();
    let call = Call::new("POST", "/it").class(EffectClass::Unsafe, None);
    for round in 1..4 {
        assert_eq!(side.json(&performer, &call), "1");
        assert_eq!(web.connections(), round);
        web.drop_idle();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(web.got().len(), 3);
}

#[test]
fn an_end_under_the_request_is_not_repeated() {
    let web = Web::start();
    web.on("/it", says("1"));
    web.on("/bad", closes());
    let side = Side::new(&web.url());
    let performer = side.performer();
    assert_eq!(side.json(&performer, &Call::new("GET", "/it")), "1");
    let failure = side.failure(&performer, &Call::new("POST", "/bad").body("{}"));
    assert_eq!(
        (failure.code.name(), failure.may_have_happened),
        ("unavailable", true)
    );
    assert_eq!((web.connections(), web.got().len()), (1, 2));
}

#[test]
fn a_connection_is_not_kept_after_the_server_said_so() {
    let web = Web::start();
    web.on(
        "/it",
        crate::server::sends(b"HTTP/1.1 200 -\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1"),
    );
    web.on(
        "/old",
        crate::server::sends(b"HTTP/1.0 200 -\r\nContent-Length: 1\r\n\r\n1"),
    );
    let side = Side::new(&web.url());
    let performer = side.performer();
    for path in ["/it", "/it", "/old", "/old"] {
        assert_eq!(side.json(&performer, &Call::new("GET", path)), "1");
    }
    assert_eq!(web.connections(), 4);
}

#[test]
fn many_attempts_share_the_connections() {
    let web = Web::start();
    web.on(
        "/it",
        Arc::new(|got, stream| {
            stream
                .write_all(&message(200, std::str::from_utf8(&got.body).unwrap()))
                .is_ok()
        }),
    );
    let mut side = Side::new(&web.url());
    side.settings.max_connections = 4;
    let performer = side.performer();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (performer, runtime) = (&performer, &runtime);
            scope.spawn(move || {
                for number in 0..20 {
                    let text = (100 * thread + number).to_string();
                    let call = Call::new("POST", "/it").body(&text);
                    let value = runtime.block_on(performer.perform(call.ask())).unwrap();
                    assert!(matches!(value, Value::Json(json) if json.text() == text));
                }
            });
        }
    });
    assert!(web.connections() <= 4, "{}", web.connections());
    assert_eq!(web.got().len(), 160);
}

#[test]
fn an_attempt_waits_for_a_connection_no_longer_than_it_may() {
    let web = Web::start();
    web.on("/slow", hangs());
    web.on("/it", says("1"));
    let mut side = Side::new(&web.url());
    side.settings.max_connections = 1;
    let performer = side.performer();
    let (slow, fast) = (
        Call::new("GET", "/slow").within(800),
        Call::new("GET", "/it").within(200),
    );
    let (slow, fast) = side.runtime.block_on(async {
        let mut slow = performer.perform(slow.ask());
        let mut fast = performer.perform(fast.ask());
        let mut results = (None, None);
        std::future::poll_fn(|cx| {
            if results.0.is_none()
                && let std::task::Poll::Ready(result) = slow.as_mut().poll(cx)
            {
                results.0 = Some(result);
            }
            if results.1.is_none()
                && let std::task::Poll::Ready(result) = fast.as_mut().poll(cx)
            {
                results.1 = Some(result);
            }
            if results.0.is_some() && results.1.is_some() {
                return std::task::Poll::Ready(());
            }
            std::task::Poll::Pending
        })
        .await;
        (
            plain(results.0.unwrap()).unwrap_err(),
            plain(results.1.unwrap()).unwrap_err(),
        )
    });
    assert_eq!(slow.code.name(), "timeout");
    assert_eq!((fast.code.name(), fast.may_have_happened), ("timeout", false));
    let expected = "no time was left because all 1 connections to `shop` were in use (`max_connections`)";
    assert_eq!(fast.message, expected);
    assert_eq!(side.json(&performer, &Call::new("GET", "/it")), "1");
}

#[test]
fn a_performer_stays_usable_after_close() {
    let web = Web::start();
    web.on("/it", says("1"));
    let side = Side::new(&web.url());
    let performer = side.performer();
    assert_eq!(side.json(&performer, &Call::new("GET", "/it")), "1");
    performer.close();
    performer.close();
    assert_eq!(side.json(&performer, &Call::new("GET", "/it")), "1");
    assert_eq!(web.connections(), 2);
}

#[test]
fn an_address_where_no_server_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let side = Side::new(&format!("http://{}", listener.local_addr().unwrap()));
    drop(listener);
    let failure = side.failure(&side.performer(), &Call::new("POST", "/it"));
    assert_eq!(
        (failure.code.name(), failure.may_have_happened),
        ("unavailable", false)
    );
    assert_eq!(
        failure.message,
        "`127.0.0.1` cannot be reached: 127.0.0.1: Connection refused"
    );
}

#[test]
fn names_that_lead_inside_are_refused_when_they_are_connected_to() {
    let web = Web::start();
    let mut side = Side::new(&format!("http://api.shop.example:{}", web.port));
    side.settings.allow_private_addresses = false;
    let cases = [
        ("10.0.0.1", true),
        ("169.254.169.254", false),
        ("127.0.0.1", true),
        ("0.0.0.0", false),
        ("::1", true),
        ("fe80::1", false),
        ("::ffff:127.0.0.1", true),
        ("64:ff9b::7f00:1", true),
        ("2002:7f00:1::", false),
    ];
    for (address, can_open) in cases {
        let address: IpAddr = address.parse().unwrap();
        side.names
            .lock()
            .unwrap()
            .insert("api.shop.example".to_owned(), vec![address]);
        let failure = side.failure(&side.performer(), &Call::new("GET", "/it"));
        assert_eq!(
            (failure.code.name(), failure.may_have_happened),
            ("unavailable", false)
        );
        assert!(
            failure
                .message
                .starts_with("nothing was sent: `api.shop.example` is at "),
            "{}",
            failure.message
        );
        assert_eq!(
            failure.message.contains("allow_private_addresses = true"),
            can_open,
            "{address}"
        );
    }
    assert_eq!(web.connections(), 0);
}

#[test]
fn each_connection_checks_the_address_anew() {
    let web = Web::start();
    let side = Side::new(&format!("http://shop.example:{}", web.port));
    let performer = side.performer();
    let lead = |addresses: &[&str]| {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        side.names
            .lock()
            .unwrap()
            .insert("shop.example".to_owned(), addresses);
    };
    lead(&["169.254.169.254", "0.0.0.0", "127.0.0.1"]);
    assert_eq!(
        side.failure(&performer, &Call::new("GET", "/it")).code.name(),
        "http_404"
    );
    performer.close();
    lead(&["169.254.169.254"]);
    assert!(
        side.failure(&performer, &Call::new("GET", "/it"))
            .message
            .contains("metadata")
    );
    assert_eq!(web.connections(), 1);
}

#[test]
fn no_time_at_all() {
    let web = Web::start();
    let side = Side::new(&web.url());
    let failure = side.failure(&side.performer(), &Call::new("GET", "/it").within(0));
    assert_eq!(
        (failure.code.name(), failure.may_have_happened),
        ("timeout", false)
    );
    assert_eq!(web.connections(), 0);
}

#[test]
fn the_resolver_of_the_system() {
    let web = Web::start();
    web.on("/it", says("1"));
    assert!(
        vesper_host::http::look_up("localhost", web.port)
            .unwrap()
            .iter()
            .all(IpAddr::is_loopback)
    );
    let error = vesper_host::http::look_up("no-such-host.invalid", 80);
    assert!(error.is_err());
}
