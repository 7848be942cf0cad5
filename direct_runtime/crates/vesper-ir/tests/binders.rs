//! Tests that break each rule of docs/spec/ir.md about sorting, choosing, grouping and folding.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use serde_json::{Value, json};

/// Builds a node that returns the last of these expressions over one input, `xs`.
fn document(xs: &Value, expressions: &Value, ty: &Value, locals: usize) -> Vec<u8> {
    let count = expressions.as_array().unwrap().len();
    let semantics = json!({
        "node_id": "small_v1", "type": "function", "audit": "none", "sensitive": [], "policy": {}, "machines": [], "calls": [],
        "capabilities": {"denied": [], "required": []}, "invariants": [], "inputs": [{"name": "xs", "type": xs}],
        "outputs": {"error": [], "success": [{"name": "result", "type": ty}]}, "constants": [],
        "expressions": expressions, "constraints": [], "preconditions": [], "postconditions": [],
        "body": [{"return": {"success": [{"name": "result", "value": count - 1}]}}],
    });
    let source = json!({
        "path": "x.vsp", "sha256": "0".repeat(64), "intent": "a test", "spans": vec![[1, 1, 1, 2]; count],
        "steps": {}, "clauses": {}, "locals": vec!["it"; locals],
    });
    json!({"ir_version": 2, "semantics": semantics, "source": source})
        .to_string()
        .into_bytes()
}

/// Returns the type of the node's result, or the message of its rejection.
fn found(xs: Value, expressions: Value, ty: Value) -> String {
    let introduced = |expression: &Value| expression["for"]["locals"].as_array().map_or(0, Vec::len);
    let locals = expressions.as_array().unwrap().iter().map(introduced).sum();
    match vesper_ir::load(&document(&xs, &expressions, &ty, locals)) {
        Ok(node) => node.expressions.last().unwrap().ty.to_string(),
        Err(rejected) => rejected.to_string(),
    }
}

fn order() -> Value {
    json!({"literal": {"type": {"enum": ["ascending", "descending"]}, "value": "ascending"}})
}

fn integer() -> Value {
    json!({"literal": {"type": "integer", "value": 1}})
}

/// Builds `kind` over `xs` with the item as its value.
fn of_items(kind: &str) -> Value {
    json!([{"input": "xs"}, {"local": 0}, {"for": {"kind": kind, "locals": [0], "over": 0, "value": 1}}])
}

fn sort_by(with: Value) -> Value {
    json!([
        {"input": "xs"}, with, {"local": 0},
        {"for": {"kind": "sort_by", "locals": [0], "over": 0, "value": 2, "with": 1}},
    ])
}

fn fold(locals: Value, with: Value, value: Value) -> Value {
    json!([
        {"input": "xs"}, with, value,
        {"for": {"kind": "fold", "locals": locals, "over": 0, "value": 2, "with": 1}},
    ])
}

#[test]
fn each_kind_has_its_type() {
    let xs = || json!({"array": "integer"});
    let of = |kind: &str, ty: Value| found(xs(), of_items(kind), ty);
    assert_eq!(of("avg", json!("decimal")), "decimal");
    assert_eq!(of("distinct_by", xs()), "array<integer>");
    assert_eq!(of("min_by", json!({"optional": "integer"})), "optional<integer>");
    assert_eq!(of("max_by", json!({"optional": "integer"})), "optional<integer>");
    let groups = json!({"map": ["integer", {"array": "integer"}]});
    assert_eq!(of("group_by", groups), "map<integer, array<integer>>");
    let counts = json!({"map": ["integer", "integer"]});
    assert_eq!(of("count_by", counts.clone()), "map<integer, integer>");
    assert_eq!(of("index_by", counts), "map<integer, integer>");
    assert_eq!(found(xs(), sort_by(order()), xs()), "array<integer>");
    assert_eq!(
        found(
            xs(),
            fold(json!([0, 1]), integer(), json!({"local": 1})),
            json!("integer")
        ),
        "integer"
    );
    let booleans = || json!({"array": "boolean"});
    for kind in ["take_while", "drop_while"] {
        assert_eq!(found(booleans(), of_items(kind), booleans()), "array<boolean>");
    }
    for kind in ["min", "max"] {
        assert_eq!(found(booleans(), of_items(kind), json!("boolean")), "boolean");
        let color = json!({"enum": ["red", "blue"]});
        assert_eq!(
            found(json!({"array": color}), of_items(kind), color),
            "enum[red, blue]"
        );
    }
    // Sets yield their members, maps their keys.
    assert_eq!(
        found(json!({"set": "integer"}), sort_by(order()), xs()),
        "array<integer>"
    );
    let map = json!({"map": ["integer", "string"]});
    assert_eq!(found(map.clone(), sort_by(order()), xs()), "array<integer>");
    let locals = json!([0, 1, 2]);
    assert_eq!(
        found(
            map,
            fold(
                locals,
                json!({"literal": {"type": "string", "value": ""}}),
                json!({"local": 1})
            ),
            json!("string")
        ),
        "string"
    );
    // The optional of an optional is one optional.
    let optionals = json!({"array": {"optional": "integer"}});
    let by_null = json!([
        {"input": "xs"}, {"local": 0}, {"call": {"op": "optional.is_null", "args": [1], "of": ["integer"]}},
        {"for": {"kind": "min_by", "locals": [0], "over": 0, "value": 2}},
    ]);
    assert_eq!(
        found(optionals, by_null, json!({"optional": "integer"})),
        "optional<integer>"
    );
}

#[test]
fn values_have_the_type_of_the_kind() {
    let records = || json!({"array": {"record": [{"name": "a", "type": "integer"}]}});
    let ordered = "is string, integer, decimal, float, boolean, bytes, date, timestamp, duration, time_of_day, period, an enum, or an array or record of these, not record{a: json}";
    let unordered = || json!({"array": {"record": [{"name": "a", "type": "json"}]}});
    let key = "is string, integer, boolean, bytes, date, timestamp or an enum, not record{a: integer}";
    let boolean = "is boolean, not record{a: integer}";
    for (kind, wants) in [
        ("min", ordered),
        ("max", ordered),
        ("min_by", ordered),
        ("max_by", ordered),
        ("group_by", key),
        ("count_by", key),
        ("index_by", key),
        ("take_while", boolean),
        ("drop_while", boolean),
    ] {
        let message = format!("expression 2: the value of `{kind}` {wants}");
        let items = if wants == ordered { unordered() } else { records() };
        assert_eq!(found(items, of_items(kind), json!("integer")), message);
    }
    assert_eq!(
        found(records(), of_items("avg"), json!("integer")),
        "expression 2: the value of `avg` has no average: it is record{a: integer}"
    );
    assert_eq!(
        found(records(), of_items("sum"), json!("integer")),
        "expression 2: the value of `sum` cannot be added: it is record{a: integer}"
    );
    assert_eq!(
        found(unordered(), sort_by(order()), unordered()),
        format!("expression 3: the value of `sort_by` {ordered}")
    );
    assert_eq!(
        found(
            json!({"array": "decimal"}),
            of_items("group_by"),
            json!("integer")
        ),
        "expression 2: the value of `group_by` is string, integer, boolean, bytes, date, timestamp or an enum, not decimal"
    );
    // Items of any type can be compared.
    assert_eq!(
        found(records(), of_items("distinct_by"), records()),
        "array<record{a: integer}>"
    );
}

#[test]
fn with_is_present_where_required_and_typed() {
    let xs = || json!({"array": "integer"});
    let mut without = of_items("sort_by");
    assert_eq!(
        found(xs(), without.clone(), xs()),
        "expression 2: a `for` of kind `sort_by` has no `with`"
    );
    without[2]["for"]["kind"] = json!("fold");
    assert_eq!(
        found(xs(), without, json!("integer")),
        "expression 2: a `for` of kind `fold` has no `with`"
    );
    for kind in ["array", "map", "avg", "min_by", "take_while", "count_by"] {
        let mut changed = sort_by(order());
        changed[3]["for"]["kind"] = json!(kind);
        assert_eq!(
            found(xs(), changed, xs()),
            format!(
                "expression 3: a `for` of kind `{kind}` has a `with`, which only `sort_by` and `fold` have"
            )
        );
    }
    let wants = "expression 3: the `with` of `sort_by` is enum[ascending, descending], not";
    assert_eq!(found(xs(), sort_by(integer()), xs()), format!("{wants} integer"));
    for members in [
        json!(["ascending"]),
        json!(["descending", "ascending"]),
        json!(["ascending", "descending", "x"]),
    ] {
        let other = json!({"literal": {"type": {"enum": members}, "value": "ascending"}});
        assert!(found(xs(), sort_by(other), xs()).starts_with(&format!("{wants} enum[")));
    }
    assert_eq!(
        found(
            xs(),
            fold(json!([0, 1]), order(), json!({"local": 0})),
            json!("integer")
        ),
        "expression 3: the value of `fold` is integer, but its `with` is enum[ascending, descending]"
    );
    // `key` is permitted only in `map`.
    let mut keyed = of_items("group_by");
    keyed = json!([keyed[0], keyed[1], {"local": 0}, {"for": {"kind": "group_by", "key": 1, "locals": [0], "over": 0, "value": 2}}]);
    assert_eq!(
        found(xs(), keyed, json!("integer")),
        "expression 3: a `for` of kind `group_by` has a `key`, which only `map` has"
    );
}

#[test]
fn number_of_locals_follows_the_kind() {
    let xs = || json!({"array": "integer"});
    let map = || json!({"map": ["integer", "integer"]});
    let of = |over: Value, locals: Value| found(over, fold(locals, integer(), integer()), json!("integer"));
    assert_eq!(
        of(xs(), json!([0])),
        "expression 3: a `fold` has two or three locals, not 1"
    );
    assert_eq!(
        of(xs(), json!([])),
        "expression 3: a `fold` has two or three locals, not 0"
    );
    assert_eq!(
        of(map(), json!([0, 1, 2, 3])),
        "expression 3: a `fold` has two or three locals, not 4"
    );
    assert_eq!(
        of(xs(), json!([0, 1, 2])),
        "expression 3: a `for` has two locals only over a map, not over array<integer>"
    );
    assert_eq!(
        of(xs(), json!([0, 0])),
        "expression 3: local 0 is introduced twice"
    );
    assert_eq!(
        of(json!("integer"), json!([0, 1])),
        "expression 3: `over` is an array, a set or a map, not integer"
    );
    for kind in [
        "distinct_by",
        "min_by",
        "max_by",
        "group_by",
        "count_by",
        "index_by",
        "take_while",
        "drop_while",
    ] {
        let mut changed = of_items(kind);
        changed[2]["for"]["locals"] = json!([0, 1]);
        assert_eq!(
            found(map(), changed, json!("integer")),
            format!("expression 2: a `for` of kind `{kind}` has one local, the item, not 2")
        );
    }
    let mut sorted = sort_by(order());
    sorted[3]["for"]["locals"] = json!([0, 1]);
    assert_eq!(
        found(map(), sorted, json!("integer")),
        "expression 3: a `for` of kind `sort_by` has one local, the item, not 2"
    );
    // For the other kinds two locals are the key and the value of a map.
    let mut average = of_items("avg");
    average[2]["for"]["locals"] = json!([0, 1]);
    assert_eq!(found(map(), average, json!("decimal")), "decimal");
}

#[test]
fn with_uses_no_local_and_follows_over() {
    let xs = || json!({"array": "integer"});
    for local in [0, 1] {
        assert_eq!(
            found(
                xs(),
                fold(json!([0, 1]), json!({"local": local}), integer()),
                json!("integer")
            ),
            format!("expression 1: local {local} is not introduced around it")
        );
    }
    // The accumulator has the type of `with`, the item that of the collection.
    let text = || json!({"literal": {"type": "string", "value": ""}});
    assert_eq!(
        found(
            xs(),
            fold(json!([0, 1]), text(), json!({"local": 0})),
            json!("string")
        ),
        "expression 3: the value of `fold` is integer, but its `with` is string"
    );
    assert_eq!(
        found(
            xs(),
            fold(json!([0, 1]), text(), json!({"local": 1})),
            json!("string")
        ),
        "string"
    );
    // Before `over`, after the filter, twice, and past the end.
    let mut turned = json!([
        integer(), {"input": "xs"}, {"local": 1},
        {"for": {"kind": "fold", "locals": [0, 1], "over": 1, "value": 2, "with": 0}},
    ]);
    let outside = found(xs(), turned.clone(), json!("integer"));
    assert!(outside.contains("program order"), "{outside}");
    turned[3]["for"]["with"] = json!(1);
    let twice = found(xs(), turned.clone(), json!("integer"));
    assert!(twice.contains("expression 1 is used twice"), "{twice}");
    turned[3]["for"]["with"] = json!(9);
    let past = found(xs(), turned.clone(), json!("integer"));
    assert!(past.contains("does not precede it"), "{past}");
    turned[3]["for"]["with"] = json!("0");
    let text = found(xs(), turned, json!("integer"));
    assert!(text.starts_with("byte "), "{text}");
    let filtered = json!([
        {"input": "xs"}, {"literal": {"type": "boolean", "value": true}}, integer(), {"local": 1},
        {"for": {"kind": "fold", "locals": [0, 1], "over": 0, "value": 3, "where": 1, "with": 2}},
    ]);
    let late = found(xs(), filtered, json!("integer"));
    assert!(late.contains("program order"), "{late}");
}

#[test]
fn operations_make_records_that_are_types_like_any_other() {
    let pair =
        json!({"record": [{"name": "first", "type": "integer"}, {"name": "second", "type": "string"}]});
    let zip = |of: Value| {
        json!([
            {"input": "xs"}, {"literal": {"type": {"array": "string"}, "value": []}},
            {"call": {"op": "array.zip", "args": [0, 1], "of": of}},
        ])
    };
    let xs = || json!({"array": "integer"});
    assert_eq!(
        found(xs(), zip(json!(["integer", "string"])), json!({"array": pair})),
        "array<record{first: integer, second: string}>"
    );
    let wrong = found(xs(), zip(json!(["string", "string"])), json!({"array": pair}));
    assert!(
        wrong.contains("wants array<string> as its `left` argument"),
        "{wrong}"
    );
    let equal = |of: Value| {
        json!([
            {"input": "xs"}, {"input": "xs"}, {"call": {"op": "record.equal", "args": [0, 1], "of": [of]}},
        ])
    };
    assert_eq!(
        found(pair.clone(), equal(pair.clone()), json!("boolean")),
        "boolean"
    );
    let wrong = found(json!("integer"), equal(json!("integer")), json!("boolean"));
    assert!(
        wrong.contains("`record.equal` wants a record for `R`, got integer"),
        "{wrong}"
    );
    let turned =
        json!({"record": [{"name": "second", "type": "string"}, {"name": "first", "type": "integer"}]});
    let wrong = found(pair, equal(turned), json!("boolean"));
    assert!(
        wrong.contains("wants record{second: string, first: integer}"),
        "{wrong}"
    );
    // The result of an operation is subject to the nesting limit too.
    let nested = |depth: usize| (1..depth).fold(json!("integer"), |of, _| json!({"array": of}));
    let enumerate = |depth: usize| {
        let of = nested(depth - 1);
        found(
            nested(depth),
            json!([{"input": "xs"}, {"call": {"op": "array.enumerate", "args": [0], "of": [of]}}]),
            json!("integer"),
        )
    };
    assert!(enumerate(31).contains("the return has array<record{index: integer"));
    assert!(enumerate(32).contains("a type nests more than 32 deep"));
    let group = found(
        nested(32),
        json!([
            {"input": "xs"}, integer(), {"for": {"kind": "group_by", "locals": [0], "over": 0, "value": 1}},
        ]),
        json!("integer"),
    );
    assert!(group.contains("a type nests more than 32 deep"), "{group}");
}
