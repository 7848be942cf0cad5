//! Requests as they arrive, those that are refused, and the secrets in them.

use std::sync::Arc;

use vesper_host::effect::TraceHeaders;
use vesper_host::http::settings::{Auth, BodyFormat, Probe, Redirects};
use vesper_ir::{Decimal, EffectClass, EnumType, KeyKind, Member, OwnedKey, Set, Type, Value};

use crate::server::{Web, message, redirects, says};
use crate::side::{API_KEY, Call, OTHER, Side, Vault, plain, template};

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

#[test]
fn a_request_as_it_arrives() {
    let web = Web::start();
    web.on("/base/v1/orders/a%2Fb", says("{\"ok\": true}"));
    let side = Side::new(&format!("{}/base", web.url()));
    let ids = Set::from_keys(KeyKind::Integer, [2, 1].map(OwnedKey::Integer).into_iter()).unwrap();
    let colours = Arc::new(EnumType::new(vec!["red".into(), "blue".into()]).unwrap());
    let chosen = Set::from_keys(
        KeyKind::Member,
        [0, 1].map(|place| OwnedKey::Member(Member(place))).into_iter(),
    );
    let query = vec![
        ("q", Type::Text, text("a b&c=d/\u{fc}")),
        (
            "n",
            Type::Decimal,
            Value::Decimal(Decimal::parse("1.50").unwrap()),
        ),
        ("is", Type::Boolean, Value::Boolean(true)),
        ("on", Type::Date, Value::Date(20_455)),
        ("none", Type::Optional(Type::Text.into()), Value::Null),
        (
            "tags",
            Type::Array(Type::Text.into()),
            Value::Array([text("x"), text("y z")].into()),
        ),
        ("ids", Type::Set(Type::Integer.into()), Value::Set(ids.into())),
        (
            "c",
            Type::Set(Type::Enum(colours).into()),
            Value::Set(chosen.unwrap().into()),
        ),
    ];
    let call = Call::new("PUT", "/v1/orders/a%2Fb")
        .record("query", query)
        .headers(&[("x_reason", "because of it")])
        .body("{\"name\": \"Zo\u{eb} \\n\\u0001\", \"amount\": 9.90, \"items\": [1, null, true]}")
        .class(EffectClass::Unsafe, Some("k"));
    assert_eq!(side.json(&side.performer(), &call), "{\"ok\":true}");
    let got = &web.got()[0];
    assert_eq!(got.method, "PUT");
    assert_eq!(
        got.target,
        "/base/v1/orders/a%2Fb?q=a%20b%26c%3Dd%2F%C3%BC&n=1.50&is=true&on=2026-01-02&tags=x&tags=y%20z&ids=1&ids=2\
         &c=blue&c=red"
    );
    let body = "{\"amount\":9.90,\"items\":[1,null,true],\"name\":\"Zo\u{eb} \\n\\u0001\"}";
    assert_eq!(std::str::from_utf8(&got.body), Ok(body));
    let expected = [
        ("Host", format!("127.0.0.1:{}", web.port)),
        ("User-Agent", "vesper".to_owned()),
        ("Accept", "application/json".to_owned()),
        ("X-Reason", "because of it".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("Accept-Encoding", "identity".to_owned()),
        ("Content-Length", body.len().to_string()),
    ];
    let expected: Vec<_> = expected.map(|(name, value)| (name.to_owned(), value)).into();
    assert_eq!(got.headers, expected);
}

#[test]
fn no_body_and_a_null_body_are_two_things() {
    let web = Web::start();
    web.on("/it", says("1"));
    let side = Side::new(&web.url());
    let performer = side.performer();
    for call in [
        Call::new("POST", "/it"),
        Call::new("POST", "/it").body("null"),
        Call::new("DELETE", "/it"),
        Call::new("GET", "/it"),
    ] {
        side.json(&performer, &call);
    }
    let found: Vec<_> = web
        .got()
        .iter()
        .map(|got| (got.body.clone(), got.header("content-length").map(str::to_owned)))
        .collect();
    let expected = [("", Some("0")), ("null", Some("4")), ("", None), ("", None)];
    let expected = expected.map(|(body, length)| (body.as_bytes().to_vec(), length.map(str::to_owned)));
    assert_eq!(found, expected);
}

#[test]
fn a_form_has_paths_for_names() {
    let web = Web::start();
    web.on("/it", says("1"));
    let mut side = Side::new(&web.url());
    side.settings.body = BodyFormat::Form;
    let performer = side.performer();
    let body = "{\"amount\": 990, \"items\": [{\"id\": \"a\"}, {\"id\": \"b\"}], \"metadata\": {\"none\": null, \
                \"order id\": \"o&1\"}, \"rate\": 1.50, \"token\": \"secret:api_key\", \"yes\": true}";
    side.json(&performer, &Call::new("POST", "/it").body(body));
    let got = &web.got()[0];
    assert_eq!(
        got.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(
        String::from_utf8(got.body.clone()).unwrap(),
        format!(
            "amount=990&items%5B0%5D%5Bid%5D=a&items%5B1%5D%5Bid%5D=b&metadata%5Border+id%5D=o%261&rate=1.50\
             &token={API_KEY}&yes=true"
        )
    );
    let long = format!("{{\"a\": [1{}]}}", ",1".repeat(10_000));
    for body in ["\"text\"", "[1]", "null", "{\"a[b]\": 1}", "{\"\": 1}", &long] {
        let failure = side.failure(&performer, &Call::new("POST", "/it").body(body));
        assert_eq!(failure.code.name(), "invalid_argument");
        assert!(
            failure.message.starts_with("nothing was sent: "),
            "{}",
            failure.message
        );
    }
    assert_eq!(web.got().len(), 1);
}

#[test]
fn keys_are_headers() {
    let web = Web::start();
    web.on("/it", says("1"));
    let side = Side::new(&web.url());
    let performer = side.performer();
    let keyed = |key| Call::new("POST", "/it").class(EffectClass::Keyed, key);
    side.json(&performer, &keyed(Some(" a\u{eb} ")));
    side.json(&performer, &keyed(Some("k")).headers(&[("idempotency_key", "k")]));
    let other = keyed(Some("k")).headers(&[("idempotency_key", "l")]);
    assert!(
        side.failure(&performer, &other)
            .message
            .contains("something else than the key")
    );
    assert!(
        side.failure(&performer, &keyed(None))
            .message
            .contains("has no key")
    );
    let probe = Call::new("POST", "/it").class(EffectClass::Probe, None);
    let failure = side.failure(&performer, &probe);
    assert!(
        failure
            .message
            .ends_with("`[providers.shop.probe]` is not configured"),
        "{}",
        failure.message
    );
    let found = web.got();
    let keys: Vec<_> = found.iter().map(|got| got.header("idempotency-key")).collect();
    assert_eq!(keys, [Some("%20a%C3%AB%20"), Some("k")]);
}

#[test]
fn a_probe_finds_what_happened() {
    use vesper_host::effect::Performer as _;
    let web = Web::start();
    let mut side = Side::new(&web.url());
    side.settings.probe = Some(Probe {
        method: "GET".to_owned(),
        endpoint: "/made_under/{key}".to_owned(),
        found_status: 200,
    });
    let performer = side.performer();
    let call = Call::new("POST", "/it").class(EffectClass::Probe, None);
    let probe = || plain(side.runtime.block_on(performer.probe(call.ask())));
    assert!(matches!(probe(), Ok(None)));
    web.on("/made_under/run%3Arun_1%2Fcharge%5B2%5D", says("7"));
    assert!(matches!(probe(), Ok(Some(Value::Json(json))) if json.text() == "7"));
    web.on(
        "/made_under/run%3Arun_1%2Fcharge%5B2%5D",
        crate::server::sends(&message(401, "")),
    );
    assert_eq!(probe().unwrap_err().code.name(), "http_401");
    side.failure(&performer, &call);
    let sent = web.got();
    assert_eq!(sent[3].header("idempotency-key"), Some("run:run_1/charge[2]"));
}

#[test]
fn refused_requests_leave_no_connection() {
    let web = Web::start();
    let mut side = Side::new(&web.url());
    side.settings.headers = vec![("X-Static".to_owned(), template("a ", "api_key"))];
    let performer = side.performer();
    let get = || Call::new("GET", "/it");
    let nested = Type::Array(Type::Array(Type::Integer.into()).into());
    let long = "a".repeat(9000);
    let cases = [
        (Call::new("GET", "/../x"), "has a segment `.` or `..`"),
        (Call::new("GET", "/a\r\nX-Evil: 1"), "must be percent-encoded"),
        (
            Call::new("GET", "/a/secret:api_key"),
            "a secret stands in the endpoint or the query",
        ),
        (
            Call::new("GET", "/a/secret%3Aapi_key"),
            "a secret stands in the endpoint or the query",
        ),
        (Call::new("get", "/it"), "the method `get` is none of GET, HEAD,"),
        (
            get().headers(&[("x_a", "b\r\nX-Evil: 1")]),
            "has the character U+000D",
        ),
        (
            get().headers(&[("host", "evil.example")]),
            "is set by Vesper alone",
        ),
        (get().headers(&[("x_static", "b")]), "is configured for `shop`"),
        (get().headers(&[("x_a", "b"), ("x-a", "c")]), "is there twice"),
        (
            get().record(
                "query",
                vec![("a", nested, Value::Array([Value::Array([].into())].into()))],
            ),
            "`a` of the query",
        ),
        (
            get().record("query", vec![("q", Type::Text, text("secret:api_key"))]),
            "a secret stands in",
        ),
        (
            get().record("query", vec![("q", Type::Text, text(&long))]),
            "more than 8,192",
        ),
        (get().body("\"secret:unknown\""), "there is no secret `unknown`"),
        (
            get().headers(&[("x_a", "secret:unknown")]),
            "there is no secret `unknown`",
        ),
    ];
    for (call, problem) in cases {
        let failure = side.failure(&performer, &call);
        assert_eq!(failure.code.name(), "invalid_argument", "{}", failure.message);
        assert!(
            failure.message.starts_with("nothing was sent: "),
            "{}",
            failure.message
        );
        assert!(failure.message.contains(problem), "{}", failure.message);
        assert!(!failure.may_have_happened);
    }
    assert_eq!(web.connections(), 0);
}

// -- secrets --------------------------------------------------------------------------------------

#[test]
fn references_are_replaced_in_headers_and_bodies() {
    let web = Web::start();
    web.on("/it", says("1"));
    let side = Side::new(&web.url());
    let body = "{\"deep\": [{\"text\": \"key=secret:other, and secret:another\"}], \"secret:api_key\": 1, \
                \"token\": \"secret:api_key\"}";
    let call = Call::new("POST", "/it")
        .headers(&[("authorization", "Bearer secret:api_key")])
        .body(body);
    side.json(&side.performer(), &call);
    let got = &web.got()[0];
    assert_eq!(
        got.header("authorization"),
        Some(format!("Bearer {API_KEY}").as_str())
    );
    let expected = format!(
        "{{\"deep\":[{{\"text\":\"key={OTHER}, and secret:another\"}}],\"secret:api_key\":1,\"token\":\"{API_KEY}\"}}"
    );
    assert_eq!(String::from_utf8(got.body.clone()).unwrap(), expected);
}

#[test]
fn a_secret_is_not_searched_for_references() {
    let web = Web::start();
    web.on("/it", says("1"));
    let side = Side::new(&web.url());
    let mut call = Call::new("POST", "/it").body("\"secret:mine\"");
    call.secrets = Vault(vec![("mine", "secret:api_key".to_owned())]);
    side.json(&side.performer(), &call);
    assert_eq!(web.got()[0].body, b"\"secret:api_key\"");
}

#[test]
fn the_credentials_of_the_provider() {
    let web = Web::start();
    web.on("/it", says("1"));
    let mut side = Side::new(&web.url());
    let plain = |text: &str| vesper_host::http::Template {
        texts: vec![text.to_owned()],
        names: Vec::new(),
    };
    for auth in [
        Auth::Header {
            name: "X-Key".to_owned(),
            value: template("", "api_key"),
        },
        Auth::Basic {
            user: plain("me"),
            password: template("", "other"),
        },
    ] {
        side.settings.auth = Some(auth);
        side.json(&side.performer(), &Call::new("GET", "/it"));
    }
    let got = web.got();
    assert_eq!(got[0].header("x-key"), Some(API_KEY));
    let basic = vesper_ir::base64::text(format!("me:{OTHER}").as_bytes());
    assert_eq!(
        got[1].header("authorization"),
        Some(format!("Basic {basic}").as_str())
    );
    side.settings.auth = Some(Auth::Header {
        name: "X-Key".to_owned(),
        value: template("", "absent"),
    });
    let failure = side.failure(&side.performer(), &Call::new("GET", "/it"));
    assert_eq!(failure.message, "nothing was sent: there is no secret `absent`");
}

#[test]
fn no_form_of_a_secret_comes_back() {
    let web = Web::start();
    let answers = [
        "HTTP/1.1 400 -\r\n\r\n{}",
        "HTTP/1.1 302 -\r\nLocation: /{}\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 -\r\nLocation: https://{}.example/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 -\r\nContent-Type: {}\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 200 -\r\nContent-Type: x; charset={}\r\nContent-Length: 2\r\n\r\n[]",
        "HTTP/1.1 200 -\r\nContent-Encoding: {}\r\nContent-Length: 2\r\n\r\n[]",
        "HTTP/1.1 200 -\r\n\r\n\"{}\"",
        "HTTP/1.1 200 -\r\n\r\nyou sent {}",
        "HTTP/1.1 200 - \r\n{}\r\n\r\n",
        "{} HTTP\r\n\r\n",
        "HTTP/1.1 500 {}\r\nContent-Length: 0\r\n\r\n",
    ];
    for redirects in [Redirects::None, Redirects::SameHost] {
        let mut side = Side::new(&web.url());
        side.settings.redirects = redirects;
        for answer in answers {
            for before in [0, 25, 50, 90, 190] {
                web.on(
                    "/it",
                    Arc::new(move |got, stream| {
                        let shown = format!("{}{}", "x".repeat(before), got.header("x-key").unwrap());
                        let _ = stream.write_all(answer.replace("{}", &shown).as_bytes());
                        false
                    }),
                );
                let call = Call::new("GET", "/it").headers(&[("x_key", "secret:api_key")]);
                let failure = side.failure(&side.performer(), &call);
                assert!(!failure.message.contains("sk_"), "{answer}: {}", failure.message);
            }
        }
    }
}

// -- redirects ------------------------------------------------------------------------------------

#[test]
fn redirects_to_the_same_host_are_followed_where_the_settings_allow_it() {
    let web = Web::start();
    let mut side = Side::new(&web.url());
    web.on("/there", says("\"there\""));
    web.on("/it", redirects(302, "/there"));
    let failure = side.failure(&side.performer(), &Call::new("GET", "/it"));
    assert_eq!(
        failure.message,
        "`shop` answered with status 302: redirects of this provider are not followed (`redirects`): `/there`"
    );
    side.settings.redirects = Redirects::SameHost;
    side.settings.auth = Some(Auth::Header {
        name: "Authorization".to_owned(),
        value: template("Bearer ", "api_key"),
    });
    let performer = side.performer();
    let post = || {
        Call::new("POST", "/it")
            .body("{\"a\":1}")
            .class(EffectClass::Keyed, Some("k"))
    };
    for status in [301, 302, 303, 307, 308] {
        web.on("/it", redirects(status, "/there"));
        assert_eq!(side.json(&performer, &Call::new("GET", "/it")), "\"there\"");
        if status < 303 {
            let failure = side.failure(&performer, &post());
            assert!(
                failure.message.ends_with("only by 303, 307 or 308"),
                "{}",
                failure.message
            );
            assert!(failure.may_have_happened);
            continue;
        }
        assert_eq!(side.json(&performer, &post()), "\"there\"");
        let got = web.got().pop().unwrap();
        assert_eq!(
            got.header("authorization"),
            Some(format!("Bearer {API_KEY}").as_str())
        );
        assert_eq!(got.header("idempotency-key"), Some("k"));
        let (method, body) = if status == 303 {
            ("GET", "")
        } else {
            ("POST", "{\"a\":1}")
        };
        assert_eq!(
            (got.method.as_str(), got.body.as_slice()),
            (method, body.as_bytes())
        );
        assert_eq!(got.header("content-type").is_some(), status != 303);
    }
    web.on("/it", redirects(302, "/it"));
    let failure = side.failure(&performer, &Call::new("GET", "/it"));
    assert_eq!(
        failure.message,
        "`shop` answered with status 302: more than 5 redirects"
    );
}

#[test]
fn redirects_cannot_lead_elsewhere() {
    let web = Web::start();
    let other = Web::start();
    let mut side = Side::new(&web.url());
    let long = format!("/{}", "a".repeat(9000));
    let own = format!("{}/there", other.url());
    for how in [Redirects::SameHost, Redirects::AllowedHosts] {
        side.settings.redirects = how;
        for location in [
            "http://169.254.169.254/latest/",
            "http://2130706433/",
            "//evil.example/there",
            "///evil.example/there",
            "https://evil.example/there",
            "http://127.0.0.1@evil.example/",
            "http://127.0.0.1\\@evil.example/",
            "/\\evil.example/there",
            "javascript:alert(1)",
            "there",
            "?x",
            "",
            "/a/../there",
            "/%2e%2e/there",
            "http://127.0.0.1:1/there",
            &long,
            &own,
        ] {
            web.on("/it", redirects(302, location));
            let failure = side.failure(&side.performer(), &Call::new("GET", "/it"));
            assert_eq!(failure.code.name(), "http_302");
            assert!(
                failure.message.starts_with("`shop` answered with status 302: "),
                "{}",
                failure.message
            );
        }
    }
    assert_eq!(other.connections(), 0);
}

#[test]
fn another_host_gets_no_credentials() {
    let web = Web::start();
    let other = Web::start();
    other.on("/there", says("\"there\""));
    web.on("/it", redirects(307, &format!("{}/there", other.url())));
    let mut side = Side::new(&web.url());
    side.settings.redirects = Redirects::AllowedHosts;
    side.settings.auth = Some(Auth::Header {
        name: "Authorization".to_owned(),
        value: template("Bearer ", "api_key"),
    });
    side.settings
        .allowed
        .push(Side::new(&other.url()).settings.base.origin);
    let performer = side.performer();
    let call = Call::new("GET", "/it").headers(&[("x_token", "secret:api_key"), ("cookie", "a=b")]);
    assert_eq!(side.json(&performer, &call), "\"there\"");
    let got = &other.got()[0];
    let names: Vec<&str> = got.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Host", "User-Agent", "Accept", "Accept-Encoding"]);
    let failure = side.failure(&performer, &Call::new("POST", "/it").body("{}"));
    assert!(
        failure.message.contains("a POST is not sent to another host"),
        "{}",
        failure.message
    );
    assert_eq!((web.got()[0].connection, other.connections()), (1, 1));
}

#[test]
fn a_request_carries_the_trace_of_its_attempt() {
    let web = Web::start();
    web.on("/it", says("1"));
    let side = Side::new(&web.url());
    let trace = TraceHeaders {
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        tracestate: Some("shop=1"),
    };
    let calls = [
        Call::new("GET", "/it"),
        Call::new("GET", "/it").headers(&[("traceparent", "own")]),
    ];
    for mut call in calls {
        call.trace = Some(trace);
        assert_eq!(side.json(&side.performer(), &call), "1");
    }
    let got = web.got();
    let header = |place: usize, name: &str| {
        let found = got[place]
            .headers
            .iter()
            .find(|(each, _)| each.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(header(0, "traceparent"), Some(trace.traceparent));
    assert_eq!(header(0, "tracestate"), trace.tracestate);
    assert_eq!(
        (header(1, "traceparent"), header(1, "tracestate")),
        (Some("own"), None)
    );
}
