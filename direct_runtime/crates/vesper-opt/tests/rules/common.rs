//! Rule `common`.

use vesper_opt::Rule::{Common, Invariants};

use crate::node::{check, check_expression, check_under};

#[track_caller]
fn shares(expression: &str, expected: &str) {
    check_expression(&[Common], expression, expected);
}

#[test]
fn a_computed_value_is_read_again() {
    shares(
        "integer.multiply(integer.add(x, 1), integer.add(x, 1))",
        "integer.multiply((%0 = integer.add(x, 1)), %0)",
    );
    shares(
        "[integer.quot(x, y), integer.quot(x, y), integer.quot(x, z), integer.quot(x, z), integer.quot(x, y)]",
        "[(%0 = integer.quot(x, y)), %0, (%1 = integer.quot(x, z)), %1, %0]",
    );
    shares("integer.add(p.n, p.n)", "integer.add((%0 = p.n), %0)");
    shares(
        "integer.add(if b then x else y, if b then x else y)",
        "integer.add((%0 = if b then x else y), %0)",
    );
    shares(
        "integer.add({n: x, r: d}.n, {n: x, r: d}.n)",
        "integer.add((%0 = {x, d}.n), %0)",
    );
    shares("array.equal<integer>([x], [x])", "array.equal((%0 = [x]), %0)");
    shares("array.equal<integer>([], [])", "array.equal([], [])");
}

#[test]
fn different_values_are_computed() {
    for text in [
        "integer.multiply(integer.add(x, 1), integer.add(x, 2))",
        "integer.multiply(integer.add(x, y), integer.add(y, x))",
        "integer.multiply(integer.add(x, 1), integer.subtract(x, 1))",
        "integer.add(if b then x else y, if c then x else y)",
        "decimal.add(decimal.abs(1.5d), decimal.abs(1.50d))",
    ] {
        shares(text, text);
    }
}

#[test]
fn comparisons_are_left_to_jumps() {
    for family in ["integer", "decimal", "float"] {
        let (left, right) = match family {
            "integer" => ("x", "y"),
            "decimal" => ("d", "e"),
            _ => ("f", "g"),
        };
        for op in [
            "equal",
            "not_equal",
            "less",
            "less_or_equal",
            "greater",
            "greater_or_equal",
        ] {
            let comparison = format!("{family}.{op}({left}, {right})");
            let text = format!("[if {comparison} then x else y, if {comparison} then y else x]");
            shares(&text, &text);
        }
    }
    for op in ["equal", "not_equal"] {
        let comparison = format!("enum.{op}<color>(k, l)");
        let text = format!("[if {comparison} then x else y, if {comparison} then y else x]");
        shares(&text, &text.replace("<color>", ""));
    }
    shares("boolean.equal(boolean.not(b), boolean.not(b))", "true");
    shares(
        "[if boolean.not(b) then x else y, if boolean.not(b) then y else x]",
        "[if (%0 = boolean.not(b)) then x else y, if %0 then y else x]",
    );
    shares(
        "[if (b and c) then x else y, if (b and c) then y else x]",
        "[if (b and c) then x else y, if (b and c) then y else x]",
    );
}

#[test]
fn values_with_work_are_computed_again() {
    for text in [
        "text.equal(text.concat(s, t), text.concat(s, t))",
        "integer.add(text.length(text.concat(s, t)), text.length(text.concat(s, t)))",
        "[(sum $0 in xs : $0), (sum $1 in xs : $1)]",
    ] {
        shares(text, text);
    }
}

#[test]
fn only_values_on_every_path_are_read() {
    let sum = "integer.add(x, 1)";
    for text in [
        format!("[if b then {sum} else 0, {sum}]"),
        format!("[if b then 0 else {sum}, {sum}]"),
        format!("if b then {sum} else {sum}"),
        format!("[if (b and integer.less({sum}, 3)) then 0 else 1, {sum}]"),
        format!("[if (b or integer.less({sum}, 3)) then 0 else 1, {sum}]"),
        format!("[(count $0 in xs : {sum}), {sum}]"),
        format!("[(count $0 in xs where integer.less({sum}, 3) : $0), {sum}]"),
    ] {
        shares(&text, &text);
    }
    let (first, later) = (format!("(%0 = {sum})"), "%0");
    for pattern in [
        "[if integer.less(A, 1) then B else B, B]",
        "[A, if b then B else 0]",
        "[A, if b then 0 else B]",
        "[if (integer.less(A, 3) and integer.less(B, 4)) then 0 else 1, B]",
        "[if (integer.less(A, 3) or integer.less(B, 4)) then 0 else 1, B]",
        "[A, (sum $0 in xs : B)]",
        "[A, (sum $0 in xs where integer.less(B, 4) : $0)]",
        "[(let $0 = A in B), B]",
        "[(let $0 = x in integer.add(A, 2)), B]",
        "[(sum $0 in array.range(A, 3, 1) : B), B]",
    ] {
        let given = pattern.replace(['A', 'B'], sum);
        let expected = pattern.replace('A', &first).replace('B', later);
        shares(&given, &expected);
    }
}

#[test]
fn values_of_a_round_are_computed_in_each_place() {
    for text in [
        "(sum $0 in xs : integer.multiply(integer.add($0, 1), integer.add($0, 1)))",
        "(sum $0 in xs : integer.multiply(integer.add(x, 1), integer.add(x, 1)))",
        "(sum $1 in xs : (sum $0 in ys : integer.multiply(integer.add(x, 1), integer.add(x, 1))))",
        "(sum $0 in xs : if b then integer.multiply(integer.add(x, 1), integer.add(x, 1)) else 0)",
    ] {
        shares(text, text);
    }
}

#[test]
fn results_that_depend_on_types_are_computed_again() {
    let text = "text.equal(enum.text<color>(k), enum.text<color>(k))";
    shares(text, &text.replace("<color>", ""));
}

#[test]
fn a_let_is_its_body() {
    shares(
        "[(let $0 = x in integer.bit_or($0, 1)), integer.bit_or(x, 1)]",
        "[(let $0 = x in (%0 = integer.bit_or($0, 1))), %0]",
    );
}

#[test]
fn values_before_the_rounds_are_shared() {
    check_expression(
        &[Invariants, Common],
        "[(sum $0 in xs : integer.bit_and($0, integer.bit_or(x, y))), integer.bit_or(x, y)]",
        "[(sum $0 in xs before (%0 = integer.bit_or(x, y)) : integer.bit_and($0, %0)), %0]",
    );
}

#[test]
fn values_after_a_loop_are_shared() {
    shares(
        "[(sum $0 in xs : $0), integer.add(x, 1), integer.add(x, 1)]",
        "[(sum $0 in xs : $0), (%0 = integer.add(x, 1)), %0]",
    );
    shares(
        "[if b then (sum $0 in xs : $0) else 0, integer.add(x, 1), integer.add(x, 1)]",
        "[if b then (sum $0 in xs : $0) else 0, (%0 = integer.add(x, 1)), %0]",
    );
}

#[test]
fn statements_share_along_every_path() {
    check(
        &[Common],
        "
        a = integer.add(x, 1)
        v = branch
        when integer.less(integer.add(x, 2), 3)
          one = integer.add(x, 3)
          = integer.add(x, 1)
        when integer.less(integer.add(x, 4), 3)
          two = integer.add(x, 2)
          = integer.add(x, 3)
        else
          three = integer.add(x, 4)
          = integer.add(x, 2)
        u = integer.add(x, 2)
        w = integer.add(x, 4)
        q = integer.add(x, 3)
        return result: integer.add(x, 1)
        ",
        "
        a = (%0 = integer.add(x, 1))
        v = branch
        when integer.less((%1 = integer.add(x, 2)), 3)
          one = integer.add(x, 3)
          = %0
        when integer.less((%2 = integer.add(x, 4)), 3)
          two = %1
          = integer.add(x, 3)
        else
          three = %2
          = %1
        u = %1
        w = integer.add(x, 4)
        q = integer.add(x, 3)
        return result: %0
        ",
    );
}

#[test]
fn requests_calls_and_raises_share() {
    check(
        &[Common],
        "
        a = text.code_point(\"a\")
        v = request if b then s else t; if b then s else t
        w = call x: integer.add(x, 1)
        u = call x: integer.add(x, 1)
        rounds = loop $0 over [integer.add(x, 1), 2] with $1 n: integer.add(x, 1); $2 m: integer.add(x, 2)
          where integer.less(integer.add(x, 2), 3)
          next $1 = integer.add(x, 3)
          next $2 = integer.add(x, 3)
          stop when integer.less(integer.add(x, 3), 1)
        return result: integer.add(x, 3)
        ",
        "
        a = text.code_point(\"a\")
        v = request http_request key (%0 = if b then s else t) endpoint: %0
        w = call double_v1 x: (%1 = integer.add(x, 1))
        u = call double_v1 x: %1
        rounds = loop over [%1, 2] with n: %1, m: (%2 = integer.add(x, 2))
          where integer.less(%2, 3)
          next n = integer.add(x, 3)
          next m = integer.add(x, 3)
          stop when integer.less(integer.add(x, 3), 1)
        return result: integer.add(x, 3)
        ",
    );
}

#[test]
fn handled_statements_share_nothing_with_the_rest() {
    check(
        &[Common],
        "
        a = integer.multiply(integer.add(x, 1), integer.add(x, 1))
        on overflow
          inner = integer.add(x, 2)
          = integer.add(x, 1)
        v = integer.add(x, 1)
        w = integer.add(x, 2)
        return result: integer.add(x, 2)
        ",
        "
        a = integer.multiply((%0 = integer.add(x, 1)), %0)
        on overflow
          inner = integer.add(x, 2)
          = integer.add(x, 1)
        v = integer.add(x, 1)
        w = (%1 = integer.add(x, 2))
        return result: %1
        ",
    );
}

#[test]
fn clauses_share_with_what_follows() {
    check(
        &[Common],
        "
        constraint x: integer.less(integer.add(x, 1), 3)
        precondition integer.less(integer.add(x, 1), 4)
        precondition integer.less(integer.add(x, 2), 4)
        a = integer.add(x, 2)
        v = integer.add(x, 3)
        return result: integer.add(x, 4)
        postcondition integer.less(integer.add(x, 3), output.result)
        postcondition integer.less(integer.add(x, 5), output.result)
        postcondition integer.less(integer.add(x, 5), 9)
        invariant integer.less(integer.add(x, 4), 9)
        invariant integer.less(integer.add(x, 5), 9)
        invariant integer.less(integer.add(x, 6), 9)
        invariant integer.less(integer.add(x, 6), 8)
        ",
        "
        constraint 0: integer.less((%0 = integer.add(x, 1)), 3)
        precondition 0: integer.less(%0, 4)
        precondition 1: integer.less((%1 = integer.add(x, 2)), 4)
        a = %1
        v = (%2 = integer.add(x, 3))
        return result: (%4 = integer.add(x, 4))
        postcondition 0: integer.less(%2, output.result)
        postcondition 1: integer.less((%3 = integer.add(x, 5)), output.result)
        postcondition 2: integer.less(%3, 9)
        invariant 0: integer.less(%4, 9)
        invariant 1: integer.less(integer.add(x, 5), 9)
        invariant 2: integer.less((%5 = integer.add(x, 6)), 9)
        invariant 3: integer.less(%5, 8)
        ",
    );
}

/// Early returns on both sides of a conditional: a postcondition computes again what only one path computed.
#[test]
fn postconditions_after_early_returns_compute_again() {
    check(
        &[Common],
        "
        v = branch
        when b
          one = integer.add(x, 1)
          return result: one
        else
          two = integer.add(x, 2)
          return result: two
        postcondition integer.less(integer.add(x, 1), 9)
        postcondition integer.less(integer.add(x, 2), 9)
        invariant integer.less(integer.add(x, 1), 9)
        ",
        "
        v = branch
        when b
          one = integer.add(x, 1)
          return result: one
        else
          two = integer.add(x, 2)
          return result: two
        postcondition 0: integer.less(integer.add(x, 1), 9)
        postcondition 1: integer.less(integer.add(x, 2), 9)
        invariant 0: integer.less(integer.add(x, 1), 9)
        ",
    );
    check(
        &[Common],
        "
        v = branch
        when b
          return result: 1
        else
        a = integer.add(x, 1)
        return result: a
        postcondition integer.equal(integer.add(x, 1), output.result)
        ",
        "
        v = branch
        when b
          return result: 1
        else
        a = integer.add(x, 1)
        return result: a
        postcondition 0: integer.equal(integer.add(x, 1), output.result)
        ",
    );
    check(
        &[Common],
        "
        v = branch
        when b
          raise closed
        else
        a = integer.add(x, 1)
        return result: a
        postcondition integer.equal(integer.add(x, 1), output.result)
        invariant integer.less(integer.add(x, 1), 9)
        ",
        "
        v = branch
        when b
          raise error_code: closed
        else
        a = integer.add(x, 1)
        return result: a
        postcondition 0: holds
        invariant 0: integer.less(integer.add(x, 1), 9)
        ",
    );
}

#[test]
fn a_comparison_of_a_value_with_itself_is_decided() {
    for (family, value) in [
        ("integer", "x"),
        ("decimal", "d"),
        ("integer", "integer.bit_and(x, 3)"),
    ] {
        for (op, expected) in [
            ("equal", "true"),
            ("not_equal", "false"),
            ("less", "false"),
            ("less_or_equal", "true"),
            ("greater", "false"),
            ("greater_or_equal", "true"),
        ] {
            shares(&format!("{family}.{op}({value}, {value})"), expected);
        }
    }
    shares("text.equal(s, s)", "true");
    shares("text.not_equal(s, s)", "false");
    shares("enum.equal<color>(k, k)", "true");
    shares("enum.not_equal<color>(k, k)", "false");
    shares("boolean.equal(b, b)", "true");
    shares("boolean.not_equal(b, b)", "false");
    for op in [
        "equal",
        "not_equal",
        "less",
        "less_or_equal",
        "greater",
        "greater_or_equal",
    ] {
        shares(&format!("float.{op}(f, f)"), &format!("float.{op}(f, f)"));
    }
    shares("integer.equal(x, y)", "integer.equal(x, y)");
    shares("text.less(s, s)", "text.less(s, s)");
}

#[test]
fn operands_that_may_fail_are_evaluated_once() {
    let quot = "integer.quot(x, y)";
    shares(
        &format!("integer.equal({quot}, {quot})"),
        &format!("integer.equal((%0 = {quot}), %0)"),
    );
    check_under(
        &[Common],
        &[&format!("integer.less({quot}, 3)")],
        &format!("integer.equal({quot}, {quot})"),
        "true",
    );
    // One path only has computed it.
    check_under(
        &[Common],
        &[&format!("(b and integer.less({quot}, 3))")],
        &format!("integer.equal({quot}, {quot})"),
        &format!("integer.equal((%0 = {quot}), %0)"),
    );
    check_under(
        &[Common],
        &[&format!("(b or integer.less({quot}, 3))")],
        &format!("integer.equal({quot}, {quot})"),
        &format!("integer.equal((%0 = {quot}), %0)"),
    );
    // Texts cost fuel by their length.
    check_under(
        &[Common],
        &["text.less(text.concat(s, t), s)"],
        "text.equal(text.concat(s, t), text.concat(s, t))",
        "text.equal(text.concat(s, t), text.concat(s, t))",
    );
}

#[test]
fn a_postcondition_that_repeats_the_computation_holds() {
    check(
        &[Common],
        "
        a = integer.add(x, 1)
        return result: a
        postcondition integer.equal(output.result, integer.add(x, 1))
        postcondition integer.equal(output.result, integer.add(x, 2))
        invariant integer.equal(output.result, integer.add(x, 1))
        ",
        "
        a = integer.add(x, 1)
        return result: a
        postcondition 0: holds
        postcondition 1: integer.equal(output.result, integer.add(x, 2))
        invariant 0: holds
        ",
    );
}
