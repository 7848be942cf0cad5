//! Rule `intervals` along statements: branches, outputs, items and states of loops.

use vesper_opt::Rule::Intervals;

use crate::node::{check, check_under};

#[track_caller]
fn lists(preconditions: &[&str], expression: &str, expected: &str) {
    check_under(&[Intervals], preconditions, expression, expected);
}

#[track_caller]
fn unknown(preconditions: &[&str], expression: &str) {
    lists(preconditions, expression, expression);
}

#[test]
fn a_result_that_did_not_overflow_fits() {
    // After the addition `x` may be anything, but the sum is an integer.
    check(
        &[Intervals],
        "
        a = integer.add(x, 5)
        v = integer.less_or_equal(a, 9223372036854775807)
        w = integer.subtract(a, 1)
        return result: w
        ",
        "
        a = integer.add(x, 5)
        v = true
        w = integer.subtract!(a, 1)
        return result: w
        ",
    );
}

#[test]
fn comparisons_of_what_may_fail_stay() {
    let bounds = ["integer.less_or_equal(0, x)"];
    unknown(&bounds, "integer.greater(integer.add(x, 1), -5)");
    lists(
        &["integer.less_or_equal(0, x)", "integer.less(x, 9)"],
        "integer.greater(integer.add(x, 1), -5)",
        "true",
    );
}

#[test]
fn branches_bound_their_arms_and_what_follows() {
    check(
        &[Intervals],
        "
        output result boolean
        v = branch
        when integer.less(x, 3)
          one = integer.less(x, 4)
          = one
        when integer.less(x, 7)
          two = integer.less(x, 3)
          = integer.less(x, 7)
        else
          three = integer.less(x, 7)
          = integer.less(x, 8)
        return result: integer.less(x, 4)
        ",
        "
        v = branch
        when integer.less(x, 3)
          one = true
          = one
        when integer.less(x, 7)
          two = false
          = true
        else
          three = false
          = integer.less(x, 8)
        return result: integer.less(x, 4)
        ",
    );
    check(
        &[Intervals],
        "
        output result boolean
        v = branch
        when integer.less(x, 3)
          return result: true
        else
        return result: integer.less(x, 3)
        ",
        "
        v = branch
        when integer.less(x, 3)
          return result: true
        else
        return result: false
        ",
    );
    lists(
        &[],
        "if integer.less(x, 3) then integer.less(x, 4) else integer.less(x, 3)",
        "if integer.less(x, 3) then true else false",
    );
    lists(
        &[],
        "(integer.less(x, 3) and integer.less(x, 4))",
        "integer.less(x, 3)",
    );
    lists(
        &[],
        "(integer.less(x, 3) or integer.less(2, x))",
        "(integer.less(x, 3) or true)",
    );
}

#[test]
fn outputs_have_the_hull_of_all_returns() {
    check(
        &[Intervals],
        "
        v = branch
        when b
          return result: 3
        when c
          return result: 1
        else
        return result: 2
        postcondition integer.greater_or_equal(output.result, 1)
        postcondition integer.less_or_equal(output.result, 3)
        postcondition integer.greater(output.result, 1)
        postcondition integer.less(output.result, 3)
        invariant integer.greater_or_equal(output.result, 1)
        ",
        "
        v = branch
        when b
          return result: 3
        when c
          return result: 1
        else
        return result: 2
        postcondition 0: holds
        postcondition 1: holds
        postcondition 2: integer.greater(output.result, 1)
        postcondition 3: integer.less(output.result, 3)
        invariant 0: holds
        ",
    );
    check(
        &[Intervals],
        "
        v = branch
        when b
          raise closed
        else
        return result: 2
        postcondition integer.equal(output.result, 3)
        invariant (optional.is_null<integer>(output.result) or b)
        ",
        "
        v = branch
        when b
          raise error_code: closed
        else
        return result: 2
        postcondition 0: false
        invariant 0: (optional.is_null(output.result) or b)
        ",
    );
}

#[test]
fn what_is_never_reached_bounds_nothing() {
    check(
        &[Intervals],
        "
        v = branch
        when integer.less(1, 0)
          return result: 100
        else
        return result: 2
        postcondition integer.less(output.result, 50)
        ",
        "
        v = branch
        when false
          return result: 100
        else
        return result: 2
        postcondition 0: holds
        ",
    );
    lists(
        &[],
        "integer.less(if integer.less(1, 0) then x else 3, 4)",
        "true",
    );
    lists(
        &[],
        "integer.less(if integer.less(0, 1) then 3 else x, 4)",
        "true",
    );
}

#[test]
fn items_of_a_range_lie_between_its_ends() {
    let over = "array.range(x, 9, 1)";
    let (low, high) = ("integer.less_or_equal(2, x)", "integer.less_or_equal(x, 5)");
    lists(
        &[low, high],
        &format!("(array $0 in {over} : if integer.less($0, 10) then integer.less($0, 2) else b)"),
        &format!("(array $0 in {over} : false)"),
    );
    lists(
        &[low, high],
        &format!("(array $0 in {over} : if integer.less($0, 9) then integer.less(2, $0) else b)"),
        &format!("(array $0 in {over} : if integer.less($0, 9) then integer.less(2, $0) else b)"),
    );
    // A range may run down.
    lists(
        &[],
        "(array $0 in array.range(9, 2, -1) : if integer.less($0, 2) then b else integer.less(9, $0))",
        "(array $0 in array.range(9, 2, -1) : false)",
    );
    unknown(&[], "(array $0 in xs : integer.less($0, 2))");
    check(
        &[Intervals],
        "
        v = loop $0 over array.range(0, 9, 1) with $1 n: 0
          next $1 = if integer.less($0, 10) then 1 else 2
        return result: v.n
        ",
        "
        v = loop over array.range(0, 9, 1) with n: 0
          next n = 1
        return result: v.n
        ",
    );
}

#[test]
fn steps_with_handlers_are_unbounded() {
    check(
        &[Intervals],
        "
        a = 3
        on overflow
          = x
        v = integer.less(a, 4)
        u = 3
        w = integer.less(u, 4)
        return result: a
        ",
        "
        a = 3
        on overflow
          = x
        v = integer.less(a, 4)
        u = 3
        w = true
        return result: a
        ",
    );
}

#[test]
fn clauses_that_hold_are_decided() {
    check(
        &[Intervals],
        "
        constraint x: integer.less_or_equal(0, x)
        constraint x: integer.less_or_equal(-1, x)
        precondition integer.less(x, 9)
        precondition integer.less(x, 10)
        require integer.less(x, 9)
        require integer.less(x, 8)
        return result: x
        postcondition integer.less_or_equal(0, output.result)
        postcondition integer.less(output.result, 8)
        postcondition integer.less(output.result, 7)
        ",
        "
        constraint 0: integer.less_or_equal(0, x)
        constraint 1: holds
        precondition 0: integer.less(x, 9)
        precondition 1: holds
        require: holds
        require: integer.less(x, 8)
        return result: x
        postcondition 0: holds
        postcondition 1: holds
        postcondition 2: integer.less(output.result, 7)
        ",
    );
}
