//! Rule `constants`.

use vesper_opt::Rule::{Common, Constants, Guards, Intervals};

use crate::node::{check, check_expression, check_under, optimised, rules};

#[track_caller]
fn folds(expression: &str, expected: &str) {
    check_expression(&[Constants], expression, expected);
}

#[track_caller]
fn keeps(expression: &str) {
    folds(expression, expression);
}

/// Checks the start of a call whose operands have long listings.
#[track_caller]
fn stays_a_call(expression: &str, start: &str) {
    let found = optimised(
        rules(&[Constants]),
        &format!("step = {expression}\nreturn result: 0"),
    );
    assert!(found.starts_with(&format!("step = {start}")), "{found}");
}

#[test]
fn kernels_compute_calls_of_known_values() {
    folds("integer.add(1, 2)", "3");
    folds("integer.multiply(integer.add(ten, 1), -2)", "-22");
    folds("decimal.multiply(rate, 1.5d)", "0.150d");
    folds("text.concat(\"a\", \"b\")", "\"ab\"");
    folds("boolean.not(integer.less(3, 3))", "true");
    folds("value.clamp<integer>(5, 1, 3)", "3");
    folds("integer.add(integer.add(1, 2), x)", "integer.add(3, x)");
    keeps("ten");
    keeps("integer.add(x, 1)");
    keeps("integer.add(1, x)");
}

#[test]
fn calls_that_fail_stay_at_their_place() {
    keeps("integer.quot(1, 0)");
    keeps("integer.add(9223372036854775807, 1)");
    folds("integer.add(9223372036854775806, 1)", "9223372036854775807");
    keeps("integer.add(integer.quot(1, 0), 1)");
}

#[test]
fn calls_that_get_more_than_values_stay() {
    folds("enum.text<color>(red)", "enum.text(red)");
    folds(
        "json.cast<integer>(json.parse(\"1\"))",
        "json.cast(json.parse(\"1\"))",
    );
    stays_a_call("regex.matches(\"a\", \"a\")", "regex.matches(");
}

#[test]
fn large_values_are_neither_read_nor_stored() {
    folds("text.length(long_64)", "64");
    keeps("text.length(long_65)");
    folds("text.length(text.concat(long_64, \"\"))", "64");
    keeps("text.concat(long_64, \"a\")");
    folds(
        "bytes.length(bytes.concat(bytes.utf8(long_64), bytes.utf8(\"\")))",
        "64",
    );
    stays_a_call(
        "bytes.length(bytes.concat(bytes.utf8(long_64), bytes.utf8(\"a\")))",
        "bytes.length(bytes.concat(",
    );
    folds("array.length<integer>(items_64)", "64");
    folds("array.length<integer>(items_65)", "array.length(items_65)");
    folds("array.length<string>(texts)", "array.length(texts)");
    folds("set.length<integer>(primes)", "3");
    folds("set.length<integer>(many)", "set.length(many)");
    folds("map.length<string, integer>(prices)", "2");
    folds("map.length<string, integer>(map_64)", "64");
    folds("map.length<string, integer>(map_65)", "map.length(map_65)");
    folds("map.length<string, string>(notes)", "map.length(notes)");
    keeps("json.parse(\"1\")");
}

#[test]
fn fields_of_known_records_are_read() {
    folds("origin.n", "3");
    folds("decimal.add(origin.r, 1.0d)", "2.5d");
    keeps("p.n");
}

#[test]
fn steps_and_locals_carry_known_values() {
    check(
        &[Constants],
        "
        a = integer.add(1, 2)
        v = integer.add(a, 1)
        return result: integer.add(v, a)
        ",
        "
        a = 3
        v = 4
        return result: 7
        ",
    );
    folds(
        "(let $0 = 2 in integer.add($0, x))",
        "(let $0 = 2 in integer.add($0, x))",
    );
    folds("(let $0 = 2 in (let $1 = $0 in integer.add($1, 1)))", "3");
    folds("(let $0 = x in 5)", "5");
    keeps("(let $0 = x in $0)");
    keeps("(let $0 = integer.add(x, 1) in 5)");
    keeps("(let $0 = integer.quot(1, 0) in 5)");
}

/// Each sum at another place of a statement or an expression.
#[test]
fn every_part_is_walked() {
    let text = "
        constraint x: integer.less(x, integer.add(0, 1))
        precondition integer.less(x, integer.add(0, 2))
        require integer.less(x, integer.add(0, 3))
        v = branch
        when integer.less(x, integer.add(0, 4))
          arm = integer.add(0, 5)
          = integer.add(x, integer.add(0, 6))
        else
          rest = integer.add(0, 7)
          = integer.add(x, integer.add(0, 8))
        on overflow
          handled = integer.add(0, 9)
          = integer.add(0, 10)
        rounds = loop $0 over array.range(x, integer.add(0, 11), 1) with $1 n: integer.add(0, 12)
          where integer.less($0, integer.add(0, 13))
          while integer.less($1, integer.add(0, 14))
          inner = integer.add(0, 15)
          collect integer.add(0, 16)
          next $1 = integer.add(0, 17)
          stop when integer.less($1, integer.add(0, 18))
        asked = request integer.text(integer.add(0, 19)); text.concat(s, integer.text(integer.add(0, 20)))
        called = call x: integer.add(0, 21)
        leaves = branch
        when b
          raise if integer.less(x, integer.add(0, 22)) then closed else late
        else
        choice = if integer.less(x, integer.add(0, 23)) then integer.add(0, 24) else integer.add(0, 25)
        joint = (integer.less(x, integer.add(0, 26)) and integer.less(y, integer.add(0, 27)))
        either = (integer.less(x, integer.add(0, 28)) or integer.less(y, integer.add(0, 29)))
        bound = (let $2 = integer.add(x, integer.add(0, 30)) in integer.add($2, integer.add(0, 31)))
        items = (fold $3 $4 in array.range(x, integer.add(0, 32), 1) with integer.add(0, 33) where integer.less($3, integer.add(0, 34)) : integer.add($4, integer.add(0, 35)))
        entries = (map $5 $6 in m key integer.text(integer.add(0, 36)) : integer.add(0, 37))
        composed = {n: integer.add(0, 38), r: [integer.add(0, 39)]}
        field = {n: integer.add(0, 40), r: d}.n
        return result: integer.add(0, 41)
        postcondition integer.less(output.result, integer.add(0, 42))
        invariant integer.less(x, integer.add(0, 43))
        ";
    let found = optimised(rules(&[Constants]), text);
    assert!(!found.contains("integer.add(0"), "{found}");
}

#[test]
fn a_step_with_handlers_has_no_known_value() {
    check(
        &[Constants],
        "
        a = integer.add(1, 2)
        on overflow
          = x
        return result: integer.add(a, 1)
        ",
        "
        a = 3
        on overflow
          = x
        return result: integer.add(a, 1)
        ",
    );
}

#[test]
fn a_side_decides_where_the_other_cannot_fail() {
    folds("(b and false)", "false");
    folds("(b or true)", "true");
    folds("(b and true)", "b");
    folds("(b or false)", "b");
    folds("(false and b)", "false");
    folds("(true or b)", "true");
    folds("(true and b)", "b");
    folds("(false or b)", "b");
    keeps("(b and c)");
    keeps("(b or c)");
    keeps("(integer.equal(integer.quot(x, y), 1) and false)");
    keeps("(integer.equal(integer.quot(x, y), 1) or true)");
    folds(
        "(integer.equal(integer.quot(x, y), 1) and true)",
        "integer.equal(integer.quot(x, y), 1)",
    );
    folds(
        "(integer.equal(integer.quot(x, y), 1) or false)",
        "integer.equal(integer.quot(x, y), 1)",
    );
    folds("boolean.not((integer.less(x, 1) and false))", "true");
    folds("boolean.not((integer.less(x, 1) or true))", "false");
}

#[test]
fn decided_choices_forward_to_the_chosen_operand() {
    folds("if integer.less(1, 2) then x else y", "x");
    folds("if integer.less(2, 2) then x else y", "y");
    folds("integer.add(if true then 1 else x, 2)", "3");
    folds("integer.add(if false then x else 1, 2)", "3");
    folds("(let $0 = if true then 4 else x in integer.add($0, 1))", "5");
    keeps("if b then 1 else 1");
}

#[test]
fn results_of_other_rules_are_folded_again() {
    let text = "boolean.not(integer.less(x, 3))";
    let under = ["integer.less(x, 3)"];
    check_under(&[Guards], &under, text, "boolean.not(true)");
    check_under(&[Constants], &under, text, text);
    check_under(&[Constants, Guards], &under, text, "false");
    check_under(&[Intervals], &under, text, "boolean.not(true)");
    check_under(&[Constants, Intervals], &under, text, "false");
    check_under(
        &[Common],
        &[],
        "boolean.not(integer.less(x, x))",
        "boolean.not(false)",
    );
    // The rule `common` alone decides too late for a second folding.
    check_under(
        &[Constants, Common],
        &[],
        "boolean.not(integer.less(x, x))",
        "boolean.not(false)",
    );
}

#[test]
fn a_nesting_of_128_is_optimised() {
    let nested = |depth: usize| format!("{}1{}", "integer.negate(".repeat(depth), ")".repeat(depth));
    folds(&nested(128), "1");
    keeps(&nested(129));
    // The deepest operand counts, in whatever position.
    let right = |depth: usize| format!("{}1{}", "integer.add(0, ".repeat(depth), ")".repeat(depth));
    folds(&right(128), "1");
    keeps(&right(129));
    let left = |depth: usize| format!("{}1{}", "integer.add(".repeat(depth), ", 0)".repeat(depth));
    folds(&left(128), "1");
    keeps(&left(129));
}
