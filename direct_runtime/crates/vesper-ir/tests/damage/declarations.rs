//! Rules about declarations: names once, machines, errors, locals and releases.

use serde_json::{Value as Json, json};

use crate::base::{accepts, base, place_of, refuses, rejection};

/// Checks the rejection of a document that gets another item in a list.
#[track_caller]
fn refuses_more(path: &str, item: Json, message: &str) {
    let mut whole = base();
    whole
        .pointer_mut(path)
        .unwrap()
        .as_array_mut()
        .unwrap()
        .push(item);
    let found = rejection(&whole).unwrap_or_else(|| panic!("{path} is accepted"));
    assert!(
        found.contains(message),
        "{path}: {found:?} does not say {message:?}"
    );
}

#[test]
fn names_are_declared_once() {
    let shared = "two of the inputs, constants and steps are named";
    for name in [
        "x", "p", "yes", "table", "made", "rounds", "inside", "inner", "other", "called",
    ] {
        refuses_more(
            "/semantics/inputs",
            json!({"name": name, "type": "integer"}),
            shared,
        );
        refuses_more(
            "/semantics/constants",
            json!({"name": name, "type": "integer", "value": 1}),
            shared,
        );
        if name != "made" {
            refuses("/semantics/body/0/step/name", json!(name), shared);
        }
    }
    let output = json!({"name": "result", "type": "string"});
    refuses_more(
        "/semantics/outputs/success",
        output,
        "two outputs are named `result`",
    );
    let code = json!({"name": "error_code", "type": "string"});
    refuses_more(
        "/semantics/outputs/error",
        code,
        "two error fields are named `error_code`",
    );
    let machine = base()["semantics"]["machines"][0].clone();
    refuses_more("/semantics/machines", machine, "two machines are named `door`");
    let called = base()["semantics"]["calls"][0].clone();
    refuses_more(
        "/semantics/calls",
        called,
        "`calls` has the node `other_v1` twice",
    );
}

#[test]
fn the_first_error_field_is_a_code() {
    let path = "/semantics/outputs/error/0";
    let message = "the first error field is `error_code`, an enum, not";
    refuses(
        path,
        json!({"name": "code", "type": {"enum": ["closed", "late"]}}),
        message,
    );
    refuses(path, json!({"name": "error_code", "type": "string"}), message);
}

#[test]
fn machines_have_the_states_they_name() {
    let machine = "/semantics/machines/0";
    accepts(&format!("{machine}/initial"), json!("shut"));
    accepts(&format!("{machine}/transitions"), json!([]));
    refuses(
        &format!("{machine}/initial"),
        json!("ajar"),
        "machine `door` has no state `ajar`",
    );
    refuses(
        &format!("{machine}/transitions/0/0"),
        json!("ajar"),
        "machine `door` has no state `ajar`",
    );
    refuses(
        &format!("{machine}/transitions/0/1"),
        json!("ajar"),
        "machine `door` has no state `ajar`",
    );
    refuses(
        &format!("{machine}/states"),
        json!(["open", "shut", "open"]),
        "has the state `open` twice",
    );
}

#[test]
fn constraints_are_about_inputs() {
    let path = "/semantics/constraints/0/input";
    accepts(path, json!("s"));
    for name in ["yes", "made", "result", "nobody"] {
        refuses(
            path,
            json!(name),
            &format!("constraint 0: no input is named `{name}`"),
        );
    }
}

#[test]
fn locals_are_numbered_without_gaps() {
    let count = base()["source"]["locals"].as_array().unwrap().len();
    assert_eq!(count, 8);
    refuses(
        "/source/locals",
        json!(vec!["x"; 9]),
        "the source names 9 locals, but 8 are introduced",
    );
    refuses(
        "/source/locals",
        json!(vec!["x"; 7]),
        "the source names 7 locals, and local 7 is not one of them",
    );
    let (bound, folded) = (place_of("let", 0), place_of("for", 0));
    let of_let = format!("/semantics/expressions/{bound}/let/local");
    let of_for = format!("/semantics/expressions/{folded}/for/locals/0");
    let (of_item, of_state) = (
        "/semantics/body/13/loop/locals/0",
        "/semantics/body/13/loop/state/0/local",
    );
    let places = [
        (of_let.as_str(), format!("expression {bound}")),
        (of_for.as_str(), format!("expression {folded}")),
        (of_item, "loop `rounds`".to_owned()),
        (of_state, "loop `rounds`".to_owned()),
    ];
    for (path, place) in places {
        let message = format!("{place}: the source names 8 locals, and local 8 is not one of them");
        refuses(path, json!(8), &message);
        refuses(path, json!(u32::MAX), "is not one of them");
    }
    for (path, number, place) in [
        (of_for.as_str(), 2, format!("expression {folded}")),
        (of_for.as_str(), 4, format!("expression {folded}")),
        (of_item, 2, "loop `rounds`".to_owned()),
        (of_state, 0, "loop `rounds`".to_owned()),
    ] {
        refuses(
            path,
            json!(number),
            &format!("{place}: local {number} is introduced twice"),
        );
    }
}

#[test]
fn locals_are_seen_in_their_scope() {
    let unseen = |number: u32| format!("local {number} is not introduced around it");
    let (bound, folded, mapped) = (place_of("let", 0), place_of("for", 0), place_of("for", 1));
    // The value of the `let`, the `over` and the `with` of the `for`, and what stands before and after them.
    for (place, number) in [
        (bound - 2, 2),
        (bound + 1, 2),
        (bound + 1, 3),
        (bound + 2, 3),
        (bound + 2, 5),
        (folded + 1, 6),
        (mapped + 1, 7),
        (0, 0),
        (0, 1),
    ] {
        let path = format!("/semantics/expressions/{place}");
        refuses(&path, json!({"local": number}), &unseen(number));
    }
}

#[test]
fn releases_name_what_the_node_has() {
    let path = "/semantics/declassified";
    for name in ["made", "result", "error.error_code", "inside", "last"] {
        accepts(path, json!({name: "a reason"}));
    }
    for name in ["x", "yes", "error_code", "error.result", "error.made", "nobody"] {
        refuses(
            path,
            json!({name: "a reason"}),
            &format!("no step, output or error field is named `{name}`"),
        );
    }
    for reason in ["", " ", "\t\n"] {
        refuses(
            path,
            json!({"made": reason}),
            "the release of `made` has no reason",
        );
    }
    // The value of a step that may be skipped has a `_` before its name.
    let mut whole = base();
    whole["semantics"]["body"][1]["step"]["name"] = json!("_field");
    whole["semantics"]["declassified"] = json!({"field": "a reason"});
    assert_eq!(rejection(&whole), None);
    // A flag of a step with a value; a branch without a value has none.
    refuses(
        "/taint/steps",
        json!({"x": {"from": "1"}}),
        "no step with a value is named `x`",
    );
    accepts("/taint/steps", json!({"last": {"from": "1"}}));
}
