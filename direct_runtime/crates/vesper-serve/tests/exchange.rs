//! Requests to calls and answers.
#![allow(
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests: a panic fails them, cases are lists"
)]

mod support;

use serde_json::{Value, json};
use support::{
    Outcome, Random, answer, call, endpoint, exchange, header, input, problem, route, table, text,
};
use vesper_serve::{Endpoint, Exchange, RefusalKind, Routed};

const JSON: (&str, &str) = ("content-type", "application/json");

fn orders() -> Value {
    table(&[
        endpoint(
            "decide",
            "POST",
            "/nodes/decide",
            &json!([input("amount", "body", "json")]),
            "object",
        ),
        endpoint(
            "order",
            "GET",
            "/orders/{id}",
            &json!([
                input("id", "path", "text"),
                input("limit", "query", "bare"),
                input("tags", "query", "array_text"),
                input("x-region", "header", "text"),
            ]),
            "none",
        ),
        endpoint(
            "change",
            "PUT",
            "/orders/{id}",
            &json!([input("id", "path", "bare"), input("note", "body", "json")]),
            "object",
        ),
        endpoint("recent", "POST", "/orders/recent", &json!([]), "none"),
        endpoint(
            "whole",
            "POST",
            "/whole/{id}",
            &json!([input("id", "path", "text")]),
            "document",
        ),
    ])
}

fn inputs(
    exchange: &Exchange,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<String, String> {
    let call = call(exchange, method, target, headers)?;
    match call.inputs(body.as_bytes()) {
        Ok(inputs) => Ok(String::from_utf8_lossy(&inputs).into_owned()),
        Err(answer) => Err(format!("{} {}", answer.status.as_u16(), problem(&answer))),
    }
}

#[test]
fn literals_come_before_parameters_and_hide_no_method() -> Outcome {
    let exchange = exchange(&orders())?;
    assert_eq!(
        call(&exchange, "POST", "/orders/recent", &[])?.endpoint(),
        Endpoint::Node(3)
    );
    assert_eq!(
        call(&exchange, "GET", "/orders/recent", &[])?.endpoint(),
        Endpoint::Node(1)
    );
    assert_eq!(
        call(&exchange, "HEAD", "/orders/7", &[])?.endpoint(),
        Endpoint::Node(1)
    );
    let refused = answer(&exchange, "DELETE", "/orders/recent", &[])?;
    assert_eq!(
        (refused.status.as_u16(), header(&refused, "allow")),
        (405, "GET, HEAD, OPTIONS, POST, PUT")
    );
    assert_eq!(
        header(&answer(&exchange, "OPTIONS", "/orders/7", &[])?, "allow"),
        "GET, HEAD, OPTIONS, PUT"
    );
    for path in [
        "/orders/",
        "/orders",
        "/orders/7/",
        "//orders/7",
        "",
        "orders/7",
        "/nodes",
        "/nodes/decide/",
    ] {
        assert_eq!(
            answer(&exchange, "GET", path, &[])?.status.as_u16(),
            404,
            "{path}"
        );
    }
    assert_eq!(answer(&exchange, "GET", "/orders/%ff", &[])?.status.as_u16(), 400);
    assert_eq!(
        answer(&exchange, "GET", &format!("/{}", "a/".repeat(5_000)), &[])?
            .status
            .as_u16(),
        414
    );
    assert_eq!(
        text(&answer(&exchange, "GET", "/livez", &[])?),
        "{\"status\":\"live\"}"
    );
    Ok(())
}

#[test]
fn inputs_come_from_path_query_header_and_body() -> Outcome {
    let exchange = exchange(&orders())?;
    let get = |target: &str| inputs(&exchange, "GET", target, &[("x-region", " eu ")], "");
    assert_eq!(
        get("/orders/a%2Fb%20c?limit=10&tags=x&tags=y+z")?,
        r#"{"id":"a/b c","limit":10,"tags":["x","y z"],"x-region":"eu"}"#
    );
    assert_eq!(
        get("/orders/a?limit=1&limit=2")?,
        r#"{"id":"a","limit":[1,2],"x-region":"eu"}"#
    );
    assert_eq!(
        get("/orders/%22?limit=01&tags=")?,
        r#"{"id":"\"","limit":"01","tags":[""],"x-region":"eu"}"#
    );
    assert_eq!(
        get("/orders/a?id=b&typo=1&typo=2")?,
        r#"{"id":"a","x-region":"eu","?id":"","?typo":""}"#
    );
    assert!(get("/orders/a?limit=%zz").is_err());
    let decide = |body: &str| {
        inputs(
            &exchange,
            "POST",
            "/nodes/decide",
            &[JSON, ("content-length", "9")],
            body,
        )
    };
    assert_eq!(decide("{\"amount\": 1} ")?, "{\"amount\": 1} ");
    assert_eq!(decide("no JSON")?, "no JSON");
    assert_eq!(decide(" ")?, "{}");
    let put = |body: &str| {
        inputs(
            &exchange,
            "PUT",
            "/orders/7",
            &[JSON, ("content-length", "9")],
            body,
        )
    };
    assert_eq!(put("{\"note\": \"}\" }\n")?, r#"{"note": "}" ,"id":7}"#);
    assert_eq!(put("{ }")?, r#"{ "id":7}"#);
    assert_eq!(put("")?, r#"{"id":7}"#);
    assert_eq!(put("[1]")?, "[1]");
    let recent = |body: &str| inputs(&exchange, "POST", "/orders/recent", &[], body);
    assert_eq!((recent("")?, recent("{ }")?), ("{}".to_owned(), "{}".to_owned()));
    assert_eq!(recent("[]"), Err("422 bad_input".to_owned()));
    let whole = |body: &str| {
        inputs(
            &exchange,
            "POST",
            "/whole/x",
            &[JSON, ("content-length", "9")],
            body,
        )
    };
    assert_eq!(whole("[1, 2]")?, r#"{"id":"x","document":[1, 2]}"#);
    assert_eq!(whole("1,\"id\":\"other\""), Err("400 bad_json".to_owned()));
    Ok(())
}

#[test]
fn members_join_a_body_without_making_json_of_other_text() -> Outcome {
    let exchange = exchange(&orders())?;
    let mut random = Random(7);
    let pieces = [
        "{", "}", "\"", "\\", ",", ":", "[", "]", "1", "a", "\"a\"", " ", "\"id\"",
    ];
    let is_object = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|each| each.is_object());
    for _ in 0..20_000 {
        let body = format!("{{{}}}", random.text(&pieces, 8));
        let call = call(&exchange, "PUT", "/orders/%22%7D%2C%22", &[])?;
        let joined = call.inputs(body.as_bytes()).map_err(|answer| text(&answer))?;
        let joined = String::from_utf8_lossy(&joined);
        assert_eq!(is_object(&body), is_object(&joined), "{body} {joined}");
        if is_object(&joined) {
            let found: Value = serde_json::from_str(&joined)?;
            assert_eq!(found.get("id"), Some(&Value::from("\"},\"")), "{joined}");
        }
    }
    Ok(())
}

#[test]
fn heads_are_checked_before_a_body_is_read() -> Outcome {
    let mut table = orders();
    table["max_body_bytes"] = json!(100);
    let exchange = exchange(&table)?;
    let status = |headers: &[(&str, &str)]| match route(&exchange, "POST", "/nodes/decide", headers) {
        Ok(Routed::Answer(answer)) => answer.status.as_u16(),
        _ => 0,
    };
    let length = ("content-length", "9");
    assert_eq!(status(&[JSON, length]), 0);
    assert_eq!(
        status(&[
            ("content-type", "Application/problem+json; Charset=\"UTF-8\""),
            length
        ]),
        0
    );
    assert_eq!(
        status(&[("content-type", "application/json; charset=latin1"), length]),
        415
    );
    assert_eq!(status(&[("content-type", "text/plain"), length]), 415);
    assert_eq!(status(&[length]), 415);
    assert_eq!(status(&[("transfer-encoding", "chunked")]), 415);
    assert_eq!(status(&[]), 0);
    assert_eq!(status(&[JSON, length, ("content-encoding", "gzip")]), 415);
    assert_eq!(status(&[JSON, ("content-length", "101")]), 413);
    assert_eq!(status(&[("idempotency-key", "")]), 400);
    assert_eq!(status(&[("idempotency-key", &"k".repeat(256))]), 400);
    assert_eq!(status(&[("idempotency-key", "a"), ("idempotency-key", "b")]), 400);
    for timeout in ["-1", "1e3", "inf", "NaN", "1s", "", "86401", ".5", "1.2.3"] {
        assert_eq!(status(&[("vesper-timeout", timeout)]), 400, "{timeout}");
    }
    let found = call(
        &exchange,
        "POST",
        "/nodes/decide",
        &[("vesper-timeout", "2.5"), ("idempotency-key", "order 7")],
    )?;
    assert_eq!(
        (found.timeout().map(|each| each.as_millis()), found.key()),
        (Some(2_500), Some("order 7"))
    );
    Ok(())
}

#[test]
fn traces_are_continued_or_begun() -> Outcome {
    let exchange = exchange(&orders())?;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let state = ("tracestate", "a=b");
    let found = call(&exchange, "GET", "/orders/7", &[("traceparent", parent), state])?;
    assert_eq!(
        (found.traceparent().as_str(), found.tracestate()),
        (parent, Some("a=b"))
    );
    let answered = found.answer(br#"{"kind":"returned","value":{}}"#, None);
    assert!(header(&answered, "traceparent").starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
    assert_ne!(header(&answered, "traceparent"), parent);
    for wrong in ["", "a=\tb", &"a".repeat(513)] {
        let found = call(
            &exchange,
            "GET",
            "/orders/7",
            &[("traceparent", parent), ("tracestate", wrong)],
        )?;
        assert_eq!(
            (found.traceparent().as_str(), found.tracestate()),
            (parent, None),
            "{wrong}"
        );
    }
    for wrong in [
        "",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-00",
    ] {
        let found = call(&exchange, "GET", "/orders/7", &[("traceparent", wrong), state])?;
        assert_eq!(
            (found.trace().parent_id, found.tracestate()),
            (None, None),
            "{wrong}"
        );
        assert_ne!(found.trace().trace_id, [0; 16]);
    }
    Ok(())
}

#[test]
fn a_broken_clause_shows_no_file_of_the_server_and_no_value_that_a_step_has_read() -> Outcome {
    let exchange = exchange(&orders())?;
    for (phase, shown) in [
        ("constraint", "constraint `a < 5` does not hold: a is 7"),
        ("validation", "validation `a < 5` does not hold"),
    ] {
        let outcome = json!({"kind": "contract_broken", "phase": phase, "index": 0, "values": {"a": 7},
            "message": format!("/srv/n.vsp:6:4: {phase} `a < 5` does not hold: a is 7"), "where": "/srv/n.vsp:6:4"});
        let answered =
            call(&exchange, "POST", "/nodes/decide", &[])?.answer(outcome.to_string().as_bytes(), None);
        let found: Value = serde_json::from_str(&text(&answered))?;
        assert_eq!(found["detail"], shown);
    }
    Ok(())
}

#[test]
fn outcomes_have_statuses() -> Outcome {
    let mut table = orders();
    table["endpoints"][0]["statuses"] = json!({"insufficient_funds": 402});
    let exchange = exchange(&table)?;
    let failed = |code: &str, message: &str| json!({"at": 3, "code": code, "kind": "failed", "message": message, "problems": []});
    let contract = |phase: &str| json!({"kind": "contract_broken", "phase": phase, "index": 0, "values": {}});
    let limit = |limit: &str| json!({"kind": "limit_hit", "limit": limit});
    let refused =
        |problems: Value| json!({"at": null, "code": "bad_input", "kind": "failed", "problems": problems});
    let declared = |code: &str| json!({"kind": "declared_error", "value": {"error_code": code}});
    for (outcome, status, name) in [
        (declared("insufficient_funds"), 402, "declared_error"),
        (declared("other"), 422, "declared_error"),
        (
            refused(json!([{"kind": "malformed", "path": ""}])),
            400,
            "bad_json",
        ),
        (
            refused(json!([{"kind": "wrong_type", "path": ""}])),
            422,
            "bad_input",
        ),
        (
            refused(json!([{"kind": "missing", "path": "a"}, {"kind": "malformed", "path": "b"}])),
            422,
            "bad_input",
        ),
        (contract("precondition"), 422, "precondition"),
        (contract("constraint"), 422, "precondition"),
        (contract("validation"), 422, "precondition"),
        (contract("postcondition"), 500, "contract"),
        (limit("time"), 504, "limit"),
        (limit("timeout_seconds"), 504, "limit"),
        (limit("fuel"), 500, "limit"),
        (failed("timeout", ""), 504, "effect_failed"),
        (failed("unavailable", "x: refused"), 502, "effect_failed"),
        (failed("bad_response", ""), 502, "effect_failed"),
        (failed("http_503", ""), 502, "effect_failed"),
        (failed("http_429", ""), 429, "effect_failed"),
        (
            failed("unavailable", "x: held back by its rate limit: it was not sent"),
            429,
            "effect_failed",
        ),
        (
            failed(
                "unavailable",
                "x: held back by its circuit breaker: it was not sent",
            ),
            503,
            "effect_failed",
        ),
        (failed("division_by_zero", ""), 500, "failed"),
        (json!({"kind": "denied", "capability": "secret"}), 500, "denied"),
        (
            json!({"kind": "engine_fault", "message": "secret"}),
            500,
            "engine_fault",
        ),
        (json!([1]), 500, "engine_fault"),
    ] {
        let answered =
            call(&exchange, "POST", "/nodes/decide", &[])?.answer(outcome.to_string().as_bytes(), Some("e1"));
        assert_eq!(
            (answered.status.as_u16(), problem(&answered).as_str()),
            (status, name),
            "{outcome}"
        );
        assert_eq!(header(&answered, "content-type"), "application/problem+json");
        assert_eq!(
            header(&answered, "retry-after") == "1",
            matches!(status, 429 | 503),
            "{outcome}"
        );
        let body: Value = serde_json::from_slice(&answered.body)?;
        assert_eq!(
            (body["status"].as_u64(), body["execution"].as_str()),
            (Some(status.into()), Some("e1"))
        );
        assert!(!text(&answered).contains("secret"));
        assert_eq!(body["trace_id"].as_str().map(str::len), Some(32));
    }
    Ok(())
}

#[test]
fn refusals_have_statuses_and_say_when_to_retry() -> Outcome {
    let exchange = exchange(&orders())?;
    for (name, status) in [
        ("overloaded", 503),
        ("closing", 503),
        ("journal", 503),
        ("deadline", 504),
        ("key_reused", 422),
        ("key_running", 409),
        ("in_doubt", 500),
        ("internal", 500),
        ("malformed", 400),
        ("slow_body", 408),
        ("too_large", 413),
        ("head_too_large", 431),
    ] {
        let kind = RefusalKind::of_name(name).ok_or(name)?;
        let mut refusal: vesper_serve::Refusal = kind.into();
        refusal.retry_after = (status == 503).then(|| std::time::Duration::from_millis(2_100));
        for answered in [
            refusal.answer(),
            call(&exchange, "POST", "/nodes/decide", &[])?.refuse(&refusal),
        ] {
            assert_eq!(
                (answered.status.as_u16(), problem(&answered).as_str()),
                (status, name)
            );
            let retry = match status {
                503 => "3",
                409 => "1",
                _ => "",
            };
            assert_eq!(header(&answered, "retry-after"), retry);
        }
    }
    Ok(())
}

#[test]
fn problems_name_the_source_of_an_input() -> Outcome {
    let exchange = exchange(&orders())?;
    let problems = json!([
        {"kind": "wrong_type", "path": "limit", "line": 1, "column": 9, "message": "expected integer (line 1, column 9)"},
        {"kind": "wrong_type", "path": "note", "line": 2, "column": 1, "message": "expected string (line 2, column 1)"},
        {"kind": "unknown", "path": "?typo", "line": 1, "column": 9, "message": "no such input (line 1, column 9)"},
        {"kind": "unknown", "path": "limits", "message": "no such input"},
    ]);
    let outcome = json!({"at": null, "code": "bad_input", "kind": "failed", "problems": problems, "message": "no fit:\n x"});
    let answered = call(&exchange, "GET", "/orders/7", &[])?.answer(outcome.to_string().as_bytes(), None);
    let body: Value = serde_json::from_slice(&answered.body)?;
    assert_eq!(body["detail"], "no fit");
    assert_eq!(
        body["problems"],
        json!([
            {"in": "query", "kind": "wrong_type", "path": "limit", "message": "expected integer"},
            {"in": "body", "kind": "wrong_type", "path": "note", "line": 2, "column": 1, "message": "expected string (line 2, column 1)"},
            {"in": "query", "kind": "unknown", "path": "?typo", "message": "no such input"},
            {"in": "body", "kind": "unknown", "path": "limits", "message": "no such input"},
        ])
    );
    Ok(())
}

#[test]
fn answers_have_headers_tags_and_compression() -> Outcome {
    let mut table = orders();
    table["endpoints"][1]["response_headers"] =
        json!({"Location": "/orders/{id}/{count}", "X-None": "{none}"});
    let exchange = exchange(&table)?;
    let outcome = json!({"kind": "returned", "value": {"id": "a/b\r\nX: y", "count": 3, "none": null, "text": "x".repeat(2_000)}});
    let outcome = outcome.to_string();
    let get = |headers: &[(&str, &str)], method: &str| {
        call(&exchange, method, "/orders/7", headers).map(|call| call.answer(outcome.as_bytes(), Some("e1")))
    };
    let plain = get(&[], "GET")?;
    assert_eq!(header(&plain, "location"), "/orders/a%2Fb%0D%0AX%3A%20y/3");
    assert_eq!(
        (header(&plain, "x-none"), header(&plain, "vesper-execution")),
        ("", "e1")
    );
    assert_eq!(header(&plain, "vary"), "accept-encoding");
    let packed = get(&[("accept-encoding", "br, gzip;q=0.5")], "GET")?;
    assert_eq!(header(&packed, "content-encoding"), "gzip");
    assert_eq!(packed.headers.get_all("vary").iter().count(), 1);
    assert!(packed.body.len() < 200);
    assert_ne!(header(&packed, "etag"), header(&plain, "etag"));
    for refused in ["gzip;q=0", "br", "*;q=0", "identity, gzip;q=0.0"] {
        assert_eq!(
            header(&get(&[("accept-encoding", refused)], "GET")?, "content-encoding"),
            "",
            "{refused}"
        );
    }
    let tag = header(&plain, "etag").to_owned();
    let same = get(&[("if-none-match", &format!("\"other\", W/{tag}"))], "GET")?;
    assert_eq!(
        (same.status.as_u16(), same.body.len(), header(&same, "etag")),
        (304, 0, tag.as_str())
    );
    assert_eq!(
        get(&[("if-none-match", "\"other\"")], "GET")?.status.as_u16(),
        200
    );
    let head = get(&[], "HEAD")?;
    assert_eq!(
        (head.body.len(), header(&head, "content-length")),
        (0, plain.body.len().to_string().as_str())
    );
    let posted = call(&exchange, "POST", "/nodes/decide", &[])?
        .answer(br#"{"kind":"returned","value":{"fee":"1.50"}}"#, None);
    assert_eq!(
        (text(&posted).as_str(), header(&posted, "etag")),
        (r#"{"fee":"1.50"}"#, "")
    );
    Ok(())
}

#[test]
fn decimals_become_numbers_where_types_say_so() -> Outcome {
    let mut table = orders();
    table["decimals"] = json!("number");
    table["endpoints"][0]["outputs"] = json!({"fields": {
        "fee": "number", "lines": {"array": {"fields": {"price": "number"}}}, "rates": {"values": "number"},
        "pairs": {"pairs": ["number", null]},
    }});
    table["endpoints"][0]["errors"] = json!({"fields": {"missing": "number"}});
    let exchange = exchange(&table)?;
    let found = call(&exchange, "POST", "/nodes/decide", &[])?;
    let value = r#"{"code":"1.5","fee":"1.50","lines":[{"name":"2","price":"0.1"},{"price":null}],"other":{"fee":["1"]},"pairs":[["1.0","2"]],"rates":{"a\"":"3"}}"#;
    let answered = found.answer(
        format!("{{\"kind\":\"returned\",\"value\":{value}}}").as_bytes(),
        None,
    );
    assert_eq!(
        text(&answered),
        r#"{"code":"1.5","fee":1.50,"lines":[{"name":"2","price":0.1},{"price":null}],"other":{"fee":["1"]},"pairs":[[1.0,"2"]],"rates":{"a\"":3}}"#
    );
    let error = found.answer(
        br#"{"kind":"declared_error","value":{"error_code":"x","missing":"9.90"}}"#,
        None,
    );
    assert!(text(&error).contains(r#""error":{"error_code":"x","missing":9.90}"#));
    Ok(())
}

#[test]
fn origins_are_answered_by_configuration() -> Outcome {
    let mut table = orders();
    table["cors"] = json!({"origins": ["https://shop.example"], "headers": ["x-region"], "has_credentials": true, "max_age": 60});
    table["auth"] = json!({"keys": [], "jwt": [], "mtls": false, "is_required": true});
    let exchange = exchange(&table)?;
    let asked = ("access-control-request-method", "PUT");
    let allowed = answer(
        &exchange,
        "OPTIONS",
        "/orders/7",
        &[("origin", "https://shop.example"), asked],
    )?;
    assert_eq!(
        (
            allowed.status.as_u16(),
            header(&allowed, "access-control-max-age")
        ),
        (204, "60")
    );
    assert_eq!(
        header(&allowed, "access-control-allow-origin"),
        "https://shop.example"
    );
    assert_eq!(
        header(&allowed, "access-control-allow-methods"),
        "GET, HEAD, OPTIONS, PUT"
    );
    assert!(header(&allowed, "access-control-allow-headers").contains("x-region"));
    let other = answer(
        &exchange,
        "OPTIONS",
        "/orders/7",
        &[("origin", "https://other.example"), asked],
    )?;
    assert_eq!(
        (
            header(&other, "access-control-allow-origin"),
            header(&other, "vary")
        ),
        ("", "origin")
    );
    let refused = answer(
        &exchange,
        "GET",
        "/orders/7",
        &[("origin", "https://shop.example")],
    )?;
    assert_eq!(
        (
            refused.status.as_u16(),
            header(&refused, "access-control-allow-credentials")
        ),
        (401, "true")
    );
    table["cors"] = json!({"origins": ["*"], "has_credentials": true});
    assert!(Exchange::new(table.to_string().as_bytes()).is_err());
    Ok(())
}

#[test]
fn tables_are_checked() {
    for (place, value) in [
        ("version", json!(2)),
        ("decimals", json!("float")),
        ("typo", json!(1)),
        ("builtins", json!(["/x"])),
        ("endpoints", json!([{}])),
        ("cors", json!({"origins": "x"})),
        ("auth", json!({"keys": [{"name": "a", "sha256": "00"}]})),
    ] {
        let mut table = orders();
        table[place] = value;
        assert!(Exchange::new(table.to_string().as_bytes()).is_err(), "{place}");
    }
    for (place, value) in [
        ("path", json!("/orders/{id")),
        ("path", json!("/nodes/decide")),
        ("path", json!("/livez")),
        ("method", json!("G T")),
        ("success_status", json!(99)),
        ("statuses", json!({"a": 1000})),
        ("typo", json!(1)),
        ("body", json!(null)),
        ("response_headers", json!({"X": "{a"})),
        ("inputs", json!([input("a", "path", "text")])),
        ("inputs", json!([input("?a", "query", "text")])),
        ("inputs", json!([input("a", "query", "json")])),
    ] {
        let mut table = orders();
        table["endpoints"][1][place] = value;
        if place == "path" {
            table["endpoints"][1]["inputs"] = json!([]);
            table["endpoints"][1]["method"] = json!(if table["endpoints"][1][place] == "/livez" {
                "GET"
            } else {
                "POST"
            });
        }
        assert!(Exchange::new(table.to_string().as_bytes()).is_err(), "{place}");
    }
}

#[test]
fn any_head_is_decided() -> Outcome {
    let mut table = orders();
    table["cors"] = json!({"origins": ["https://a"]});
    table["auth"] = json!({"keys": [], "jwt": [{"issuer": "i", "audience": "a", "keys": [], "algorithms": ["RS256"]}], "mtls": true, "is_required": false});
    let exchange = exchange(&table)?;
    let mut random = Random(42);
    let paths = [
        "/",
        "orders",
        "%",
        "%2f",
        "%ff",
        "7",
        "?",
        "&",
        "=",
        "+",
        "limit",
        "tags",
        ";",
        "nodes/decide",
        "{id}",
        "é",
        "..",
        "#",
        "recent",
    ];
    let words = [
        "Bearer ",
        ".",
        "e30",
        "eyJ",
        "gzip",
        ";q=",
        "0",
        "1",
        ",",
        "*",
        "-",
        "00",
        "application/json",
        "=",
        "\"",
        "charset",
        "W/",
        "\u{e9}",
        "https://a",
    ];
    let names = [
        "authorization",
        "x-api-key",
        "accept-encoding",
        "content-type",
        "content-length",
        "traceparent",
        "tracestate",
        "idempotency-key",
        "vesper-timeout",
        "if-none-match",
        "origin",
        "x-region",
        "access-control-request-method",
    ];
    let methods = ["GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "BREW"];
    let mut calls = 0;
    for _ in 0..20_000 {
        let prefix = ["/", "/orders/", "/orders/7?", "/nodes/decide"]
            .get(random.below(4))
            .copied()
            .unwrap_or("/");
        let target = format!("{prefix}{}", random.text(&paths, 8));
        let values: Vec<(&str, String)> = (0..random.below(5))
            .map(|_| {
                (
                    names.get(random.below(names.len())).copied().unwrap_or(""),
                    random.text(&words, 6),
                )
            })
            .collect();
        let headers: Vec<(&str, &str)> = values
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let method = methods.get(random.below(methods.len())).copied().unwrap_or("GET");
        match route(&exchange, method, &target, &headers)? {
            Routed::Answer(answer) => assert!(answer.status.as_u16() < 500 && !answer.headers.is_empty()),
            Routed::Call(call) => {
                calls += 1;
                let body = random.text(&["{", "}", "\"a\":1", ",", "\u{0}"], 4);
                if let Ok(inputs) = call.inputs(body.as_bytes()) {
                    call.answer(&inputs, None);
                }
            }
        }
    }
    assert!(calls > 500, "{calls}");
    Ok(())
}
