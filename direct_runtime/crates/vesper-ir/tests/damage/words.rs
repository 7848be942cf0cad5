//! Words, names and numbers of a document, each with its spellings.

use serde_json::json;

use crate::base::{accepts, base, path_of, refuses, rejection};

const BODY: &str = "/semantics/body";

#[test]
fn names_are_lower_case_words() {
    for path in ["/semantics/node_id", "/source/locals/0"] {
        for name in ["a", "_", "_a", "a_1", "z9", "a0", &"a".repeat(128)] {
            accepts(path, json!(name));
        }
        for name in ["", "1a", "A", "aB", "a-b", "a b", "é", "a\n", "0"] {
            refuses(path, json!(name), "is not a name");
        }
        refuses(path, json!("a".repeat(129)), "a string of more than 128 bytes");
    }
    for (path, value) in [
        ("/source/steps", json!([1, 1, 1, 1])),
        ("/taint/steps", json!({"from": "1"})),
        ("/taint/steps/made/fields", json!({"from": "2"})),
        ("/semantics/declassified", json!("a reason")),
        ("/semantics/body/11/request/fixed", json!("x")),
    ] {
        refuses(path, json!({"1a": value}), "`1a` is not a name");
    }
    refuses(
        "/semantics/declassified",
        json!({"error.1a": "a reason"}),
        "is not a name",
    );
}

#[test]
fn closed_lists_of_words() {
    let types = [
        "function",
        "data_transform",
        "http_handler",
        "event_handler",
        "scheduled_job",
        "workflow",
        "state_machine",
    ];
    for word in types {
        accepts("/semantics/type", json!(word));
    }
    refuses(
        "/semantics/type",
        json!("job"),
        "the type of a node is function or data_transform or",
    );
    for word in ["none", "basic", "detailed"] {
        accepts("/semantics/audit", json!(word));
    }
    refuses(
        "/semantics/audit",
        json!("full"),
        "`audit` is none or basic or detailed, not `full`",
    );
    let jitter = format!("{BODY}/11/request/policy/jitter");
    for word in ["none", "full"] {
        accepts(&jitter, json!(word));
    }
    refuses(&jitter, json!("basic"), "`jitter` is none or full, not `basic`");
}

#[test]
fn kinds_of_types_statements_and_expressions() {
    let constant = "/semantics/constants/2";
    for (ty, value) in [
        ("boolean", json!(true)),
        ("integer", json!(1)),
        ("decimal", json!("1.5")),
        ("float", json!("1.5")),
        ("string", json!("a")),
        ("bytes", json!("AP8=")),
        ("timestamp", json!("2024-02-29T23:59:59.999999Z")),
        ("date", json!("2024-02-29")),
        ("duration", json!("P1D")),
        ("json", json!("null")),
    ] {
        accepts(constant, json!({"name": "table", "type": ty, "value": value}));
        refuses(
            constant,
            json!({"name": "table", "type": ty, "value": {}}),
            "is not the form of",
        );
    }
    refuses(
        constant,
        json!({"name": "table", "type": "text", "value": 1}),
        "`text` is not a type",
    );
    let typed = |ty| json!({"name": "table", "type": ty, "value": 1});
    refuses(
        constant,
        typed(json!({"list": "integer"})),
        "`list` is not a kind of type",
    );
    refuses(constant, typed(json!({"enum": []})), "an enum has no members");
    refuses(
        constant,
        typed(json!({"enum": [""]})),
        "a member of an enum is empty",
    );
    refuses(
        constant,
        typed(json!({"enum": ["a", "b", "a"]})),
        "an enum has the member `a` twice",
    );
    refuses(constant, typed(json!({"map": ["string"]})), "not 1 types");
    refuses(
        constant,
        typed(json!({"map": ["string", "string", "string"]})),
        "not 3 types",
    );
    refuses(constant, typed(json!({"record": []})), "a record has no fields");
    refuses(
        constant,
        typed(json!({"set": "decimal"})),
        "a set holds string, integer",
    );
    refuses(
        constant,
        typed(json!({"map": ["float", "string"]})),
        "the key of a map is string",
    );
    refuses(
        constant,
        typed(json!({"optional": {"optional": "string"}})),
        "which is an optional itself",
    );
    refuses(
        "/semantics/expressions/0",
        json!({"value": 1}),
        "`value` is not a kind of expression",
    );
    refuses(
        &format!("{BODY}/0"),
        json!({"stop": {}}),
        "`stop` is not a kind of statement",
    );
    refuses(
        &format!("{}/for/kind", path_of("for", 0)),
        json!("each"),
        "`each` is not a kind of `for`",
    );
    refuses(
        &format!("{}/local", path_of("local", 0)),
        json!(-1),
        "-1 is not the number of a local",
    );
}

#[test]
fn policies_of_nodes_and_requests() {
    let every = [
        "attempts",
        "backoff_factor",
        "backoff_max_us",
        "backoff_us",
        "breaker_failures",
        "breaker_open_us",
        "breaker_within_us",
        "concurrency",
        "expected_latency_ms",
        "memory_limit_mb",
        "rate_limit",
        "rate_per_us",
        "timeout_us",
        "total_timeout_us",
    ];
    let of_node = ["expected_latency_ms", "memory_limit_mb", "total_timeout_us"];
    let (node, request) = ("/semantics/policy", format!("{BODY}/11/request/policy"));
    for field in every {
        accepts(node, json!({field: 0}));
        refuses(node, json!({field: -1}), &format!("`{field}` of a policy is -1"));
        if of_node.contains(&field) {
            refuses(&request, json!({field: 0}), "unknown, repeated or misplaced");
        } else {
            accepts(&request, json!({field: 0}));
        }
    }
    refuses(&request, json!({"retry_on": [""]}), "a code is empty");
}

#[test]
fn hashes_are_64_hexadecimal_digits() {
    for (path, of) in [
        ("/source/sha256", "source"),
        ("/semantics/calls/0/hash", "semantic"),
    ] {
        accepts(path, json!("0123456789abcdef".repeat(4)));
        let message = format!("the {of} hash is not 64 lower-case hexadecimal digits");
        for text in [
            "0".repeat(63),
            "0".repeat(65),
            "A".repeat(64),
            "g".repeat(64),
            String::new(),
        ] {
            refuses(path, json!(text), &message);
        }
    }
}

#[test]
fn clauses_are_numbered() {
    for key in ["0", "7", "4294967295"] {
        accepts("/source/clauses", json!({key: ""}));
    }
    for key in ["", "00", "07", "-1", "+1", "1.0", "x", "4294967296"] {
        refuses(
            "/source/clauses",
            json!({key: ""}),
            "is not the index of a clause",
        );
    }
}

#[test]
fn operands_and_parts_are_as_many_as_they_are() {
    let either = format!("{}/or", path_of("or", 0));
    let both = format!("{}/and", path_of("and", 0));
    for (path, message) in [
        (
            "/semantics/machines/0/transitions/0",
            "a transition has two states",
        ),
        (either.as_str(), "take two operands, not 1"),
        (both.as_str(), "take two operands, not 1"),
    ] {
        let mut whole = base();
        let list = whole.pointer_mut(path).unwrap().as_array_mut().unwrap();
        list.pop();
        let found = rejection(&whole).unwrap();
        assert!(found.contains(message), "{path}: {found}");
    }
    let three = json!([0, 1, 2]);
    refuses(either.as_str(), three.clone(), "take two operands, not 3");
    refuses(both.as_str(), three, "take two operands, not 3");
    refuses(
        "/semantics/machines/0/transitions/0",
        json!(["open", "shut", "open"]),
        "more than 2 items",
    );
}

#[test]
fn sources_of_flows_are_declared() {
    // There are four sources: the bits 1, 2, 4 and 8.
    for bits in ["1", "8", "a", "f"] {
        accepts("/taint/outputs/result", json!({"from": bits}));
    }
    for bits in ["10", "1f", "80"] {
        refuses(
            "/taint/outputs/result",
            json!({"from": bits}),
            "a source beyond the 4 declared ones",
        );
    }
    let five = json!(["x", "fetched", "s", "called", "p"]);
    let mut whole = base();
    whole["taint"]["sources"] = five;
    whole["taint"]["outputs"]["result"] = json!({"from": "1a"});
    assert_eq!(rejection(&whole), None);
    whole["taint"]["outputs"]["result"] = json!({"from": "2a"});
    assert!(
        rejection(&whole)
            .unwrap()
            .contains("a source beyond the 5 declared ones")
    );
    // A field has no source of its record, at any depth.
    for (outer, inner, is_repeated) in [
        ("1", "2", false),
        ("1", "3", true),
        ("8", "8", true),
        ("5", "a", false),
    ] {
        let flow = json!({"from": outer, "fields": {"n": {"from": inner}}});
        if is_repeated {
            refuses(
                "/taint/steps/made",
                flow,
                "the field `n` repeats a source of its record",
            );
        } else {
            accepts("/taint/steps/made", flow);
        }
    }
    let last = base()["semantics"]["expressions"].as_array().unwrap().len() - 1;
    for list in ["/taint/values", "/taint/failures"] {
        accepts(list, json!([{"at": last, "flow": {"from": "1"}}]));
        let after = json!([{"at": last + 1, "flow": {"from": "1"}}]);
        refuses(
            list,
            after,
            &format!("taint: there is no expression {}", last + 1),
        );
    }
    for source in ["x", "fetched", "called", "inside", "inner", "other"] {
        accepts("/taint/sources", json!([source, "s", "p", "rates"]));
    }
    for source in ["made", "last", "rounds", "result", "yes", "nobody"] {
        refuses(
            "/taint/sources",
            json!([source, "s", "p", "rates"]),
            &format!("`{source}` is no input, request or call"),
        );
    }
}
