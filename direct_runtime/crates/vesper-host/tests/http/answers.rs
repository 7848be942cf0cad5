//! Answers: decoded by the declared type, or a failure that tells where and why.

use std::sync::Arc;
use std::time::Duration;

use vesper_ir::types::Field;
use vesper_ir::{EnumType, MapType, RecordType, Type};

use crate::server::{Web, message, message_with, sends, sends_and_closes};
use crate::side::{Call, Side};

fn charge() -> Type {
    let status = EnumType::new(vec!["succeeded".into(), "pending".into()]).unwrap();
    let fields = [
        ("id", Type::Text),
        ("status", Type::Enum(Arc::new(status))),
        ("fee", Type::Optional(Type::Decimal.into())),
    ];
    let fields = fields.map(|(name, ty)| Field {
        name: name.into(),
        ty,
    });
    Type::Record(Arc::new(RecordType::new(fields.into()).unwrap()))
}

fn map(key: Type, value: Type) -> Type {
    Type::Map(Arc::new(MapType { key, value }))
}

#[test]
fn a_body_is_cast_to_the_declared_type() {
    let web = Web::start();
    let side = Side::new(&web.url());
    let performer = side.performer();
    let cases = [
        ("{\"b\":[1,1.50,null,true],\"a\":\"x\"}", Type::Json, "Json("),
        (
            "{\"id\":\"ch_1\",\"status\":\"pending\",\"more\":1}",
            charge(),
            "Record([Text(\"ch_1\"), Member(Member(1)), Null])",
        ),
        ("12", Type::Integer, "Integer(12)"),
        ("\"12.50\"", Type::Decimal, "Decimal("),
        ("0.5", Type::Float, "Float(0.5)"),
        ("\"aGk=\"", Type::Bytes, "Bytes([104, 105])"),
        ("[3,1]", Type::Set(Type::Integer.into()), "Set(Integer([1, 3]))"),
        ("[[2,true],[1,false]]", map(Type::Integer, Type::Boolean), "Map("),
        ("null", Type::Optional(charge().into()), "Null"),
        ("", Type::Optional(charge().into()), "Null"),
        ("", Type::Json, "Json(Null)"),
        (" \r\n{\"a\": 1}\n", Type::Json, "Json("),
    ];
    for (body, ty, expected) in cases {
        web.on("/it", sends(&message(200, body)));
        let value = side
            .perform(&performer, &Call::new("GET", "/it").gives(ty))
            .unwrap();
        let found = format!("{value:?}");
        assert!(found.starts_with(expected), "{body}: {found}");
    }
    assert_eq!(web.connections(), 1);
}

#[test]
fn a_body_that_does_not_fit_is_located() {
    let web = Web::start();
    let side = Side::new(&web.url());
    let performer = side.performer();
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let digits = "1".repeat(5000);
    let sets = Type::Array(map(Type::Text, map(Type::Text, Type::Set(Type::Integer.into()))).into());
    let cases = [
        (
            "{\"id\":\"c\",\"status\":\"gone\"}",
            charge(),
            "does not fit: body.status is not_a_member, enum[succeeded, pending] is expected",
        ),
        (
            "{\"status\":\"pending\"}",
            charge(),
            "body.id is missing, string is expected",
        ),
        (
            "{\"id\":1,\"status\":\"pending\"}",
            charge(),
            "body.id is wrong_type, string is expected",
        ),
        (
            "{\"id\":\"c\",\"status\":\"pending\",\"fee\":\"x\"}",
            charge(),
            "body.fee is malformed, decimal is expected",
        ),
        (
            "[1,2,[3]]",
            Type::Array(Type::Integer.into()),
            "body[2] is wrong_type, integer is expected",
        ),
        (
            "[{\"a\":{\"k\":[0.5]}}]",
            sets,
            "body[0][\"a\"][\"k\"] is wrong_type, set<integer> is expected",
        ),
        (
            "[1,1]",
            Type::Set(Type::Integer.into()),
            "body is duplicate, set<integer> is expected",
        ),
        (
            "[[1,2],[1,3]]",
            map(Type::Integer, Type::Integer),
            "body is duplicate, map<integer, integer> is expected",
        ),
        (
            "[[1,2,3]]",
            map(Type::Integer, Type::Integer),
            "body is wrong_type",
        ),
        (
            "null",
            charge(),
            "body is wrong_type, {id: string, status: enum[succeeded, pending], fee: optional<decimal>} is",
        ),
        (
            "9223372036854775808",
            Type::Integer,
            "body is out_of_range, integer is expected",
        ),
        ("1e400", Type::Float, "body is out_of_range, float is expected"),
        ("", charge(), "has no body, and a value of type {id: string"),
        (
            "<html>no</html>",
            Type::Json,
            "(status 200) is no JSON (malformed): <html>no</html>",
        ),
        ("{\"a\":1,\"a\":2}", Type::Json, "is no JSON (malformed)"),
        ("NaN", Type::Json, "is no JSON (malformed)"),
        (&deep, Type::Json, "is no JSON (too_deep)"),
        ("\"\\ud800\"", Type::Text, "is no JSON (malformed)"),
        ("\u{feff}{}", Type::Json, "is no JSON (malformed)"),
        ("\x1b[31mred", Type::Json, "is no JSON (malformed): \\x1b[31mred"),
        (&digits, Type::Integer, "is no JSON (malformed)"),
    ];
    for (body, ty, problem) in cases {
        web.on("/it", sends(&message(200, body)));
        let failure = side.failure(&performer, &Call::new("GET", "/it").gives(ty));
        assert_eq!(
            (failure.code.name(), failure.may_have_happened),
            ("bad_response", true)
        );
        assert!(failure.message.contains(problem), "{}", failure.message);
    }
    web.on(
        "/it",
        sends(b"HTTP/1.1 200 -\r\nContent-Length: 3\r\n\r\n\"\xff\""),
    );
    let failure = side.failure(&performer, &Call::new("GET", "/it"));
    assert!(
        failure.message.contains("is not in UTF-8: byte 1 of its body"),
        "{}",
        failure.message
    );
}

#[test]
fn the_content_type_counts() {
    let web = Web::start();
    let side = Side::new(&web.url());
    let performer = side.performer();
    let call = Call::new("GET", "/it");
    web.on(
        "/it",
        sends(&message_with(
            200,
            "<p>",
            "Content-Type: text/html; charset=utf-8\r\n",
        )),
    );
    let shown = "it is of type `text/html; charset=utf-8`: <p>";
    assert!(side.failure(&performer, &call).message.contains(shown));
    web.on(
        "/it",
        sends(&message_with(200, "1", "Content-Type: x; charset=ISO-8859-1\r\n")),
    );
    assert!(
        side.failure(&performer, &call)
            .message
            .contains("`ISO-8859-1`, and JSON is in UTF-8")
    );
    web.on(
        "/it",
        sends(&message_with(
            200,
            "1",
            "Content-Type: text/plain; charset=\"UTF-8\"\r\n",
        )),
    );
    assert_eq!(side.json(&performer, &call), "1");
}

#[test]
fn a_status_is_a_code() {
    let web = Web::start();
    let side = Side::new(&web.url());
    let performer = side.performer();
    for status in [200, 201, 202, 204, 299] {
        web.on(
            "/it",
            sends_and_closes(format!("HTTP/1.1 {status} -\r\n\r\n").as_bytes()),
        );
        assert_eq!(side.json(&performer, &Call::new("GET", "/it")), "null");
    }
    for status in [300, 304, 400, 402, 404, 409, 418, 429, 500, 502, 503, 504, 599] {
        let body = if status == 304 {
            ""
        } else {
            "{\"error\":\n \"no\"}"
        };
        web.on("/it", sends(&message(status, body)));
        let failure = side.failure(&performer, &Call::new("POST", "/it"));
        assert_eq!(failure.code.name(), format!("http_{status}"));
        let end = if status == 304 {
            ""
        } else {
            ": {\"error\": \"no\"}"
        };
        assert_eq!(
            failure.message,
            format!("`shop` answered with status {status}{end}")
        );
        assert_eq!(failure.may_have_happened, matches!(status, 502 | 504));
    }
}

#[test]
fn the_provider_may_demand_a_wait() {
    let web = Web::start();
    let side = Side::new(&web.url());
    let performer = side.performer();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let cases = [
        ("0", seconds(0)),
        ("7", seconds(7)),
        ("3600", seconds(300)),
        ("999999999999999999", seconds(300)),
        ("Wed, 21 Oct 2015 07:28:00 GMT", seconds(0)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", seconds(300)),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
    ];
    for (text, wait) in cases {
        web.on(
            "/it",
            sends(&message_with(429, "", &format!("Retry-After: {text}\r\n"))),
        );
        assert_eq!(
            side.failure(&performer, &Call::new("GET", "/it")).retry_after,
            wait,
            "{text}"
        );
    }
}

#[test]
fn a_head_has_no_body_and_its_connection_is_kept() {
    let web = Web::start();
    web.on(
        "/it",
        sends(b"HTTP/1.1 200 -\r\nContent-Length: 99999999\r\n\r\n"),
    );
    let side = Side::new(&web.url());
    let performer = side.performer();
    for _ in 0..3 {
        assert_eq!(side.json(&performer, &Call::new("HEAD", "/it")), "null");
    }
    assert_eq!(web.connections(), 1);
}
