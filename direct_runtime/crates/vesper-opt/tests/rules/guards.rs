//! Rule `guards`.

use vesper_opt::Rule::Guards;

use crate::node::check_under;

#[track_caller]
fn known(preconditions: &[&str], expression: &str, expected: &str) {
    check_under(&[Guards], preconditions, expression, expected);
}

#[track_caller]
fn unknown(preconditions: &[&str], expression: &str) {
    known(
        preconditions,
        expression,
        &expression.replace("<color>", "").replace("<integer>", ""),
    );
}

#[test]
fn a_clause_holds_afterwards() {
    known(&["integer.less(x, 3)"], "integer.less(x, 3)", "true");
    unknown(&["integer.less(x, 3)"], "integer.less(x, 4)");
    unknown(&["integer.less(x, 3)"], "integer.less(y, 3)");
    unknown(&["integer.less(x, 3)"], "integer.less(3, x)");
    unknown(&["integer.less(x, 3)"], "integer.less_or_equal(x, 3)");
    known(&["text.starts_with(s, t)"], "text.starts_with(s, t)", "true");
    known(
        &["optional.equal<integer>(o, null)"],
        "optional.equal<integer>(o, null)",
        "true",
    );
}

#[test]
fn references_are_never_replaced() {
    unknown(&["b"], "b");
    known(&["b"], "boolean.not(b)", "boolean.not(b)");
    known(&["boolean.not(b)"], "boolean.not(b)", "true");
}

#[test]
fn opposites_are_known_too() {
    let pairs = [
        ("integer.equal(x, y)", "integer.not_equal(x, y)"),
        ("integer.less(x, y)", "integer.greater_or_equal(x, y)"),
        ("integer.greater(x, y)", "integer.less_or_equal(x, y)"),
        ("decimal.equal(d, e)", "decimal.not_equal(d, e)"),
        ("decimal.less(d, e)", "decimal.greater_or_equal(d, e)"),
        ("decimal.greater(d, e)", "decimal.less_or_equal(d, e)"),
        ("enum.equal<color>(k, red)", "enum.not_equal<color>(k, red)"),
        ("boolean.equal(b, c)", "boolean.not_equal(b, c)"),
        ("text.equal(s, t)", "text.not_equal(s, t)"),
        ("optional.is_null<integer>(o)", "optional.is_not_null<integer>(o)"),
    ];
    for (one, other) in pairs {
        for (given, asked) in [(one, other), (other, one)] {
            known(&[given], asked, "false");
            known(&[given], given, "true");
            known(&[&format!("boolean.not({given})")], asked, "true");
            known(&[&format!("boolean.not({given})")], given, "false");
        }
    }
}

#[test]
fn conditions_that_cost_fuel_stay() {
    unknown(
        &["array.contains<integer>(xs, x)"],
        "array.contains<integer>(xs, x)",
    );
    unknown(&["text.contains(s, t)"], "text.contains(s, t)");
    unknown(
        &["boolean.not(text.contains(s, t))"],
        "boolean.not(text.contains(s, t))",
    );
}

#[test]
fn floats_have_no_opposites() {
    unknown(&["float.less(f, g)"], "float.greater_or_equal(f, g)");
    unknown(&["boolean.not(float.less(f, g))"], "float.greater_or_equal(f, g)");
    known(&["float.less(f, g)"], "float.less(f, g)", "true");
    known(&["boolean.not(float.less(f, g))"], "float.less(f, g)", "false");
    unknown(&["float.equal(f, g)"], "float.not_equal(f, g)");
}

#[test]
fn parts_of_joint_conditions_are_known() {
    let (one, other) = ("integer.less(x, 3)", "integer.less(y, 4)");
    let joint = format!("({one} and {other})");
    known(&[&joint], one, "true");
    known(&[&joint], other, "true");
    known(&[&joint], &joint, "true");
    let either = format!("({one} or {other})");
    unknown(&[&either], one);
    unknown(&[&either], other);
    known(&[&format!("boolean.not({either})")], one, "false");
    known(&[&format!("boolean.not({either})")], other, "false");
    unknown(&[&format!("boolean.not({joint})")], one);
    unknown(&[&format!("boolean.not({joint})")], other);
    known(&[&format!("boolean.not({joint})")], &joint, "false");
}

#[test]
fn conditions_that_may_fail_stay() {
    let text = "integer.less(integer.quot(x, y), 3)";
    unknown(&[text], text);
}

#[test]
fn a_choice_knows_its_condition() {
    let test = "integer.less(x, 3)";
    known(
        &[],
        &format!("if {test} then {test} else {test}"),
        &format!("if {test} then true else false"),
    );
    known(
        &[],
        &format!("({test} and ({test} and b))"),
        &format!("({test} and b)"),
    );
    known(
        &[],
        &format!("({test} or ({test} or b))"),
        &format!("({test} or b)"),
    );
    // After the choice nothing is known.
    unknown(&[], &format!("boolean.equal(if {test} then b else c, {test})"));
    unknown(&[], &format!("boolean.equal((b and {test}), {test})"));
}

#[test]
fn items_know_the_condition_that_chose_them() {
    let test = "integer.less($0, 3)";
    known(
        &[],
        &format!("(array $0 in xs where {test} : {test})"),
        &format!("(array $0 in xs where {test} : true)"),
    );
    known(
        &[],
        "(map $0 $1 in m where integer.less($1, 3) key if integer.less($1, 3) then $0 else \"b\" : integer.less($1, 3))",
        "(map $0 in m where integer.less($1, 3) key $0 : true)",
    );
    known(
        &["integer.less(x, 3)"],
        "(array $0 in xs where integer.less(x, 3) : integer.less($0, 3))",
        "(array $0 in xs where true : integer.less($0, 3))",
    );
    unknown(
        &[],
        "((exists $0 in xs where integer.less(x, 3) : integer.less($0, 3)) and integer.less(x, 3))",
    );
}

#[test]
fn literals_of_equal_values_in_other_spellings_differ() {
    known(&["decimal.less(d, 1.50d)"], "decimal.less(d, 1.50d)", "true");
    unknown(&["decimal.less(d, 1.50d)"], "decimal.less(d, 1.5d)");
    unknown(&["float.less(f, 0.0)"], "float.less(f, -0.0)");
    known(&["float.less(f, 0.0)"], "float.less(f, 0.0)", "true");
    known(
        &["enum.equal<color>(k, red)"],
        "enum.equal<color>(k, red)",
        "true",
    );
    unknown(&["enum.equal<color>(k, red)"], "enum.equal<color>(k, blue)");
    known(&["integer.less(x, ten)"], "integer.less(x, ten)", "true");
    known(&["timestamp.less(now, now)"], "timestamp.less(now, now)", "true");
    known(&["integer.less(p.n, 3)"], "integer.less(p.n, 3)", "true");
}

#[test]
fn composed_conditions_are_compared_by_their_parts() {
    for text in [
        "boolean.not(boolean.equal((b and c), c))",
        "boolean.not(boolean.equal((b or c), c))",
        "boolean.not(if b then c else false)",
        "integer.less(if b then x else y, 3)",
    ] {
        known(&[text], text, "true");
    }
    unknown(
        &["integer.less(if b then x else y, 3)"],
        "integer.less(if b then y else x, 3)",
    );
    unknown(
        &["boolean.not(boolean.equal((b and c), c))"],
        "boolean.not(boolean.equal((c and b), c))",
    );
    unknown(
        &["boolean.not(boolean.equal((b and c), c))"],
        "boolean.not(boolean.equal((b or c), c))",
    );
}
