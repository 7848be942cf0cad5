//! The rules of docs/spec/ir.md about statements, each violated once: the reader rejects with reason and location.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "../../vesper-interp/tests/support/document.rs"]
mod document;
#[path = "../../vesper-interp/tests/support/flow.rs"]
mod flow;
#[path = "support/rules.rs"]
mod rules;
#[path = "../../vesper-interp/tests/support/tree.rs"]
mod tree;

use document::document;
use flow::{build, gives, raises, returns, step, with_handlers};
use rules::{accepts, arm, branch, codes, is_small, node, of, refuses, refuses_with, text};
use serde_json::{Value as Json, json};
use tree::{call, input, integer, local};

#[test]
fn steps_are_seen_below_and_inside_and_nowhere_else() {
    accepts(json!([
        step("a", integer(1)),
        branch(
            json!([arm(json!([step("c", of("a"))]), Some(of("c")))]),
            json!({"otherwise": of("a")})
        ),
        returns(of("b")),
    ]));
    let unseen = "cannot be referred to here";
    refuses(
        json!([
            branch(json!([arm(json!([step("c", integer(1))]), None)]), json!({})),
            returns(of("c"))
        ]),
        unseen,
    );
    refuses(
        json!([
            branch(
                json!([arm(json!([step("c", integer(1))]), None)]),
                json!({"else": [step("d", of("c"))]})
            ),
            returns(integer(1))
        ]),
        unseen,
    );
    refuses(
        json!([branch(json!([arm(json!([]), None)]), json!({})), returns(of("b"))]),
        unseen,
    );
    refuses(json!([step("a", of("a")), returns(integer(1))]), unseen);
    refuses(
        json!([
            with_handlers(&step("a", integer(1)), json!([gives("any", of("a"))])),
            returns(integer(1))
        ]),
        unseen,
    );
    let in_handler = json!([{"codes": ["any"], "body": [step("h", integer(1))], "value": of("h")}]);
    accepts(json!([
        with_handlers(&step("a", integer(1)), in_handler.clone()),
        returns(of("a"))
    ]));
    refuses(
        json!([
            with_handlers(&step("a", integer(1)), in_handler),
            returns(of("h"))
        ]),
        unseen,
    );
    let body = json!([step("a", integer(1)), returns(of("a"))]);
    refuses_with(
        body.clone(),
        json!({"postconditions": [{"holds": call("integer.less", &[of("a"), integer(2)])}]}),
        unseen,
    );
    refuses_with(
        body,
        json!({"invariants": [{"holds": call("integer.less", &[of("a"), integer(2)])}]}),
        unseen,
    );
}

#[test]
fn names_are_one_namespace_in_all_blocks() {
    let twice = "two of the inputs, constants and steps are named";
    refuses(
        json!([
            branch(json!([arm(json!([step("x", integer(1))]), None)]), json!({})),
            returns(integer(1))
        ]),
        twice,
    );
    refuses(
        json!([
            branch(
                json!([arm(json!([step("c", integer(1))]), None)]),
                json!({"else": [step("c", integer(1))]})
            ),
            returns(integer(1))
        ]),
        twice,
    );
    refuses(
        json!([
            step("b", integer(1)),
            branch(json!([arm(json!([]), None)]), json!({})),
            returns(integer(1))
        ]),
        twice,
    );
}

#[test]
fn blocks_leave_where_they_must_and_nothing_stands_after() {
    refuses(json!([]), "does not end with a return or a raise");
    refuses(
        json!([branch(
            json!([arm(json!([returns(integer(1))]), None)]),
            json!({})
        )]),
        "does not end",
    );
    accepts(json!([branch(
        json!([arm(json!([returns(integer(1))]), None)]),
        json!({"else": [raises(&codes(), "late")]})
    )]));
    let both = branch(
        json!([arm(json!([returns(integer(1))]), None)]),
        json!({"else": [returns(integer(2))]}),
    );
    refuses(
        json!([both.clone(), returns(integer(1))]),
        "statement 1 follows one that leaves",
    );
    refuses(
        json!([returns(integer(1)), returns(integer(2))]),
        "statement 1 follows one that leaves",
    );
    let compensates = json!([{"codes": ["any"], "body": []}]);
    refuses(json!([with_handlers(&both, compensates)]), "does not end");
    accepts(json!([with_handlers(
        &both,
        json!([{"codes": ["any"], "body": [raises(&codes(), "late")]}])
    )]));
}

#[test]
fn a_return_and_a_raise_give_all_that_is_declared() {
    refuses(
        json!([{"return": {"success": []}}]),
        "the return has 0 values for 1 outputs",
    );
    refuses(
        json!([returns(input("s"))]),
        "the return has string for output `result`, which is integer",
    );
    refuses(
        json!([{"raise": {"error": []}}]),
        "the raise has 0 values for 2 error fields",
    );
    let mut swapped = raises(&codes(), "late");
    swapped["raise"]["error"].as_array_mut().unwrap().reverse();
    refuses(json!([swapped]), "where error field `error_code` is next");
    refuses(
        json!([raises(&json!({"enum": ["late", "closed"]}), "late")]),
        "for error field `error_code`",
    );
    let none = json!({"outputs": {"success": [{"name": "result", "type": "integer"}], "error": []}});
    refuses_with(
        json!([{"raise": {"error": []}}]),
        none,
        "the node declares no errors",
    );
    let errors = |fields: Json| json!({"outputs": {"success": [{"name": "result", "type": "integer"}], "error": fields}});
    let first = "the first error field is `error_code`, an enum";
    refuses_with(
        json!([returns(integer(1))]),
        errors(json!([{"name": "message", "type": "string"}])),
        first,
    );
    refuses_with(
        json!([returns(integer(1))]),
        errors(json!([{"name": "error_code", "type": "string"}])),
        first,
    );
    let twice = json!([{"name": "error_code", "type": codes()}, {"name": "error_code", "type": codes()}]);
    refuses_with(
        json!([returns(integer(1))]),
        errors(twice),
        "two error fields are named `error_code`",
    );
}

#[test]
fn the_arms_of_a_branch_agree() {
    let end = returns(integer(1));
    let with = |arms: Json, rest: Json| json!([branch(arms, rest), end]);
    accepts(with(json!([]), json!({})));
    let not_boolean = json!([{"when": input("x"), "body": []}]);
    refuses(
        with(not_boolean, json!({})),
        "a condition of branch `b` is boolean, not integer",
    );
    let valued = json!([arm(json!([]), Some(integer(1)))]);
    refuses(
        with(valued.clone(), json!({})),
        "an arm has a value, another none",
    );
    refuses(
        with(valued, json!({"otherwise": text("a")})),
        "an arm has a value of integer, another one of string",
    );
    refuses(
        with(json!([arm(json!([]), None)]), json!({"otherwise": text("a")})),
        "an arm has a value, another none",
    );
    refuses(
        with(
            json!([arm(json!([returns(integer(1))]), Some(integer(1)))]),
            json!({"otherwise": integer(1)}),
        ),
        "an arm that leaves has a value",
    );
}

#[test]
fn handlers_fit_their_statement() {
    let with = |handlers: Json| json!([with_handlers(&step("a", integer(1)), handlers), returns(of("a"))]);
    refuses(
        with(json!([gives("any", text("a"))])),
        "a handler of `a`: its value is string, not integer",
    );
    refuses(
        with(json!([gives("any", integer(1)), gives("any", integer(2))])),
        "the code `any` is given twice",
    );
    refuses(
        with(json!([{"codes": ["timeout", "timeout"], "body": []}])),
        "the code `timeout` is given twice",
    );
    refuses(with(json!([{"codes": [], "body": []}])), "it has no codes");
    refuses(with(json!([{"codes": [""], "body": []}])), "a code is empty");
    refuses(
        with(json!([{"codes": ["any"], "body": [returns(integer(1))], "value": integer(1)}])),
        "its body leaves, but it has a value",
    );
    let valueless = branch(
        json!([arm(json!([]), None)]),
        json!({"handlers": [gives("any", integer(1))]}),
    );
    refuses(json!([valueless, returns(integer(1))]), "the statement has none");
}

/// A loop with some fields replaced, or removed if null.
fn looping(changes: Json) -> Json {
    let mut fields = json!({
        "name": "l", "locals": [0], "max": 5, "over": {"array": {"of": "integer", "items": [input("x")]}},
        "where": call("integer.less", &[local(0), integer(5)]),
        "state": [{"local": 1, "name": "n", "value": integer(0)}, {"local": 2, "name": "t", "value": input("s")}],
        "next": [{"local": 1, "value": local(0)}, {"local": 2, "value": text("a")}],
    });
    for (key, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.as_object_mut().unwrap().remove(key);
        } else {
            fields[key] = value.clone();
        }
    }
    json!([{"loop": fields}, returns(integer(1))])
}

#[test]
fn loops_are_well_formed() {
    accepts(looping(json!({})));
    accepts(looping(
        json!({"while": is_small(), "stop_when": is_small(), "collect": local(2)}),
    ));
    let state = json!([{"local": 0, "name": "n", "value": integer(0)}]);
    let nothing = json!({"over": null, "locals": [], "where": null, "next": [], "state": state});
    refuses(looping(nothing), "it has neither `over` nor `while`");
    let while_only = json!({"over": null, "locals": [], "while": is_small(), "next": [], "state": state});
    refuses(looping(while_only), "it has `where`, but no `over`");
    let with_locals = json!({"over": null, "where": null, "while": is_small(), "next": []});
    refuses(looping(with_locals), "it has locals, but no `over`");
    refuses(
        looping(json!({"over": input("x")})),
        "`over` is an array, a set or a map, not integer",
    );
    let two = json!({"locals": [0, 3]});
    refuses(looping(two), "there are not 2 locals");
    refuses(
        looping(json!({"where": input("x")})),
        "the `where` of loop `l` is boolean, not integer",
    );
    refuses(
        looping(json!({"while": input("x")})),
        "the `while` of loop `l` is boolean",
    );
    refuses(
        looping(json!({"stop_when": input("x")})),
        "the `stop_when` of loop `l` is boolean",
    );
    for max in [0, -1, 1_000_001] {
        refuses(
            looping(json!({"max": max})),
            "the `max` of a loop is 1 to 1000000",
        );
    }
    refuses(
        looping(json!({"next": [{"local": 1, "value": input("s")}]})),
        "`n` is integer, and its next value string",
    );
    let reversed = json!({"next": [{"local": 2, "value": text("a")}, {"local": 1, "value": integer(1)}]});
    refuses(looping(reversed), "`next` names local 1");
    let twice = json!({"next": [{"local": 1, "value": integer(1)}, {"local": 1, "value": integer(1)}]});
    refuses(looping(twice), "`next` names local 1");
    refuses(
        looping(json!({"next": [{"local": 0, "value": integer(1)}]})),
        "`next` names local 0",
    );
    refuses(
        looping(json!({"state": [], "next": []})),
        "it has neither state nor `collect`",
    );
    let collected = json!({"state": [{"local": 1, "name": "collected", "value": integer(0)}], "next": []});
    refuses(looping(collected), "named `collected`");
    let same = json!({"state": [{"local": 1, "name": "n", "value": integer(0)}, {"local": 2, "name": "n", "value": integer(0)}], "next": []});
    refuses(looping(same), "the field `n` twice");
    refuses(looping(json!({"body": [returns(integer(1))]})), "its body leaves");
    refuses(
        looping(
            json!({"body": [step("inside", integer(1))], "where": {"literal": {"type": "boolean", "value": true}}, "while": call("integer.less", &[of("inside"), integer(1)])}),
        ),
        "cannot be referred to here",
    );
}

#[test]
fn the_locals_of_a_loop_are_seen_in_its_rounds() {
    let outside = "is not introduced around it";
    refuses(
        looping(
            json!({"state": [{"local": 1, "name": "n", "value": local(0)}, {"local": 2, "name": "t", "value": input("s")}]}),
        ),
        outside,
    );
    refuses(
        looping(json!({"over": {"array": {"of": "integer", "items": [local(1)]}}})),
        outside,
    );
    let value =
        json!({"record": {"fields": [{"name": "n", "value": local(1)}, {"name": "t", "value": input("s")}]}});
    refuses(looping(json!({"handlers": [gives("any", value)]})), outside);
    let mut after = looping(json!({}));
    after[1] = returns(local(1));
    refuses(after, outside);
    refuses(
        looping(json!({"locals": [1]})),
        "loop `l`: local 1 is introduced twice",
    );
    refuses(looping(json!({"locals": [9]})), "local 9 is not one of them");
}

fn nest_blocks(depth: usize) -> Json {
    let mut body = json!([returns(integer(1))]);
    for level in 1..depth {
        body = json!([
            {"branch": {"name": format!("b{level}"), "arms": [{"when": is_small(), "body": body}]}},
            returns(integer(2)),
        ]);
    }
    body
}

#[test]
fn blocks_nest_16_deep_and_there_are_1000_statements() {
    accepts(nest_blocks(16));
    refuses(nest_blocks(17), "blocks nest more than 16 deep");
    let many = |count: usize| {
        let mut body: Vec<Json> = (1..count)
            .map(|number| step(&format!("s{number}"), integer(1)))
            .collect();
        body.push(returns(integer(1)));
        json!(body)
    };
    accepts(many(1000));
    refuses(many(1001), "more than 1000 items");
    let renamed = |prefix: &str| {
        let mut body: Vec<Json> = (1..600)
            .map(|number| step(&format!("{prefix}{number}"), integer(1)))
            .collect();
        body.push(returns(integer(1)));
        json!(body)
    };
    refuses(
        json!([branch(
            json!([arm(renamed("p"), None)]),
            json!({"else": renamed("q")})
        )]),
        "more than 1000 statements",
    );
    // Unclosed brackets use no stack.
    let mut deep = document(&build(&node(nest_blocks(16), json!({}))));
    let place = deep.windows(8).position(|piece| piece == b"\"body\":[").unwrap() + 8;
    let opening = br#"{"branch":{"arms":[{"body":["#;
    deep.splice(
        place..place,
        opening.iter().copied().cycle().take(opening.len() * 100_000),
    );
    let refused = vesper_ir::load(&deep).expect_err("accepted").to_string();
    assert!(refused.contains("blocks nest more than 16 deep"), "{refused}");
}

#[test]
fn the_table_is_in_the_order_of_the_statements() {
    let well = build(&node(
        looping(json!({"stop_when": is_small(), "collect": local(2)})),
        json!({}),
    ));
    vesper_ir::load(&document(&well)).unwrap();
    for (left, right) in [
        ("/over", "/collect"),
        ("/where", "/stop_when"),
        ("/next/0/value", "/next/1/value"),
    ] {
        let mut swapped = well.clone();
        let at = |path: &str| format!("/body/0/loop{path}");
        let (first, second) = (
            swapped.pointer(&at(left)).unwrap().clone(),
            swapped.pointer(&at(right)).unwrap().clone(),
        );
        *swapped.pointer_mut(&at(left)).unwrap() = second;
        *swapped.pointer_mut(&at(right)).unwrap() = first;
        let refused = vesper_ir::load(&document(&swapped))
            .expect_err("accepted")
            .to_string();
        assert!(refused.contains("is not in program order"), "{refused}");
    }
}
