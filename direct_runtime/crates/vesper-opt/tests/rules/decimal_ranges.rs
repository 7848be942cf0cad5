//! Rule `intervals` on decimals, whose bounds may be open.

use vesper_opt::Rule::Intervals;

use crate::node::{check, check_under, optimised, rules};

#[track_caller]
fn lists(preconditions: &[&str], expression: &str, expected: &str) {
    check_under(&[Intervals], preconditions, expression, expected);
}

#[track_caller]
fn unknown(preconditions: &[&str], expression: &str) {
    lists(preconditions, expression, expression);
}

#[test]
fn decimals_are_bounded_alike() {
    let bounds = ["decimal.less_or_equal(0d, d)", "decimal.less_or_equal(d, 1.5d)"];
    for (test, expected) in [
        ("decimal.less(d, 1.51d)", Some("true")),
        ("decimal.less(d, 1.50d)", None),
        ("decimal.less(d, 0.00d)", Some("false")),
        ("decimal.less_or_equal(d, 1.50d)", Some("true")),
        ("decimal.less_or_equal(d, 1.49d)", None),
        ("decimal.less_or_equal(d, 0d)", None),
        ("decimal.less_or_equal(d, -0.1d)", Some("false")),
        ("decimal.greater(d, -0.01d)", Some("true")),
        ("decimal.greater(d, 0d)", None),
        ("decimal.greater(d, 1.5d)", Some("false")),
        ("decimal.greater_or_equal(d, 0d)", Some("true")),
        ("decimal.greater_or_equal(d, 1.5d)", None),
        ("decimal.greater_or_equal(d, 1.6d)", Some("false")),
        ("decimal.equal(d, 1.6d)", Some("false")),
        ("decimal.equal(d, 1.5d)", None),
        ("decimal.not_equal(d, 1.6d)", Some("true")),
        ("decimal.not_equal(d, 0d)", None),
    ] {
        lists(&bounds, test, expected.unwrap_or(test));
    }
    // A strict bound excludes no neighbour: decimals have no next one.
    lists(&["decimal.less(d, 1d)"], "decimal.less(d, 1.1d)", "true");
    unknown(&["decimal.less(d, 1d)"], "decimal.less(d, 1d)");
    unknown(&["decimal.less(d, 1d)"], "decimal.less(d, 0.9d)");
    unknown(&["decimal.less(d, 1d)"], "decimal.greater(d, 0d)");
    lists(&["decimal.greater(d, 1d)"], "decimal.greater(d, 0.9d)", "true");
    unknown(&["decimal.greater(d, 1d)"], "decimal.less(d, 2d)");
    // The narrower of two bounds counts.
    lists(
        &["decimal.less(d, 1d)", "decimal.less(d, 2d)"],
        "decimal.less(d, 1.1d)",
        "true",
    );
    lists(
        &["decimal.less(d, 2d)", "decimal.less(d, 1d)"],
        "decimal.less(d, 1.1d)",
        "true",
    );
    lists(
        &["decimal.greater(d, 1d)", "decimal.greater(d, 2d)"],
        "decimal.greater(d, 1.9d)",
        "true",
    );
    lists(
        &["decimal.greater(d, 2d)", "decimal.greater(d, 1d)"],
        "decimal.greater(d, 1.9d)",
        "true",
    );
    unknown(&["float.less(f, 1.0)"], "float.less(f, 2.0)");
}

#[test]
fn decimals_carry_bounds_through_arithmetic() {
    let bounds = [
        "decimal.less_or_equal(-2d, d)",
        "decimal.less_or_equal(d, 5d)",
        "decimal.less_or_equal(3d, e)",
        "decimal.less_or_equal(e, 4d)",
    ];
    for (expression, low, high) in [
        ("decimal.negate(d)", "-5", "2"),
        ("decimal.abs(d)", "0", "5"),
        ("decimal.abs(decimal.negate(e))", "0", "4"),
        ("if b then d else e", "-2", "5"),
        ("if b then e else 9d", "3", "9"),
    ] {
        lists(
            &bounds,
            &format!("decimal.greater_or_equal({expression}, {low}d)"),
            "true",
        );
        lists(
            &bounds,
            &format!("decimal.less_or_equal({expression}, {high}d)"),
            "true",
        );
        unknown(&bounds, &format!("decimal.greater({expression}, {low}d)"));
        unknown(&bounds, &format!("decimal.less({expression}, {high}d)"));
    }
}

/// Sums and products of decimals may fail, so that a comparison with them is evaluated; a step shows their range.
#[test]
fn steps_carry_bounds() {
    for (value, low, high) in [
        ("decimal.add(d, e)", "1", "9"),
        ("decimal.subtract(d, e)", "-6", "2"),
        ("decimal.multiply(d, e)", "-8", "20"),
        ("decimal.multiply(e, d)", "-8", "20"),
        ("decimal.multiply(d, d)", "-10", "25"),
        ("decimal.multiply(decimal.negate(e), e)", "-16", "-9"),
        ("decimal.from_integer(x)", "-2", "5"),
    ] {
        let text = format!(
            "
            precondition decimal.less_or_equal(-2d, d)
            precondition decimal.less_or_equal(d, 5d)
            precondition decimal.less_or_equal(3d, e)
            precondition decimal.less_or_equal(e, 4d)
            precondition integer.less_or_equal(-2, x)
            precondition integer.less_or_equal(x, 5)
            value = {value}
            a = decimal.greater_or_equal(value, {low}d)
            v = decimal.less_or_equal(value, {high}d)
            u = decimal.greater(value, {low}d)
            w = decimal.less(value, {high}d)
            return result: 0
            "
        );
        let found = optimised(rules(&[Intervals]), &text);
        let expected = format!(
            "a = true\nv = true\nu = decimal.greater(value, {low}d)\nw = decimal.less(value, {high}d)\n"
        );
        assert!(found.contains(&expected), "{value}: {found}");
    }
}

/// Products of decimals with an open bound.
#[test]
fn open_decimals_have_open_products() {
    for (clauses, low, high) in [
        (
            vec!["decimal.less_or_equal(2d, d)", "decimal.less_or_equal(3d, e)"],
            Some("6"),
            None,
        ),
        (
            vec!["decimal.less_or_equal(0d, d)", "decimal.less_or_equal(0d, e)"],
            Some("0"),
            None,
        ),
        (
            vec!["decimal.less_or_equal(-1d, d)", "decimal.less_or_equal(3d, e)"],
            None,
            None,
        ),
        (
            vec!["decimal.less_or_equal(2d, d)", "decimal.less_or_equal(-1d, e)"],
            None,
            None,
        ),
        (
            vec!["decimal.less_or_equal(d, 2d)", "decimal.less_or_equal(e, 3d)"],
            None,
            None,
        ),
        (
            vec![
                "decimal.less_or_equal(2d, d)",
                "decimal.less_or_equal(d, 4d)",
                "decimal.less_or_equal(3d, e)",
            ],
            Some("6"),
            None,
        ),
    ] {
        let clauses: Vec<String> = clauses
            .iter()
            .map(|clause| format!("precondition {clause}\n"))
            .collect();
        let text = format!(
            "{}value = decimal.multiply(d, e)\na = decimal.greater_or_equal(value, {}d)\n\
            v = decimal.less_or_equal(value, {}d)\nw = decimal.greater(value, 6d)\nreturn result: 0",
            clauses.concat(),
            low.unwrap_or("-1000000"),
            high.unwrap_or("1000000"),
        );
        let found = optimised(rules(&[Intervals]), &text);
        assert_eq!(found.contains("a = true"), low.is_some(), "{found}");
        assert_eq!(found.contains("v = true"), high.is_some(), "{found}");
        assert!(found.contains("w = decimal.greater"), "{found}");
    }
}

/// A guess for the state of a loop is confirmed only if both of its bounds hold after a round.
#[test]
fn decimal_states_of_loops_are_bounded() {
    check(
        &[Intervals],
        "
        v = loop $0 over xs with $1 down: 5d; $2 up: 5d; $3 any: 5d
          next $1 = if b then 3d else 5d
          next $2 = if b then 5d else 7d
          next $3 = d
        a = decimal.greater_or_equal(v.down, 3d)
        low = decimal.greater_or_equal(v.down, 5d)
        high = decimal.less_or_equal(v.down, 5d)
        u = decimal.less_or_equal(v.up, 7d)
        upper = decimal.less_or_equal(v.up, 5d)
        lower = decimal.greater_or_equal(v.up, 5d)
        w = decimal.equal(v.any, 6d)
        return result: 0
        ",
        "
        v = loop over xs with down: 5d, up: 5d, any: 5d
          next down = if b then 3d else 5d
          next up = if b then 5d else 7d
          next any = d
        a = true
        low = decimal.greater_or_equal(v.down, 5d)
        high = true
        u = true
        upper = decimal.less_or_equal(v.up, 5d)
        lower = true
        w = decimal.equal(v.any, 6d)
        return result: 0
        ",
    );
    check(
        &[Intervals],
        "
        precondition decimal.less_or_equal(d, 5d)
        precondition decimal.greater_or_equal(e, 5d)
        v = loop $0 over xs with $1 n: 5d; $2 m: 5d
          next $1 = d
          next $2 = e
        a = decimal.less_or_equal(v.n, 5d)
        u = decimal.greater_or_equal(v.n, 5d)
        w = decimal.less_or_equal(v.m, 5d)
        q = decimal.greater_or_equal(v.m, 5d)
        return result: 0
        ",
        "
        precondition 0: decimal.less_or_equal(d, 5d)
        precondition 1: decimal.greater_or_equal(e, 5d)
        v = loop over xs with n: 5d, m: 5d
          next n = d
          next m = e
        a = true
        u = decimal.greater_or_equal(v.n, 5d)
        w = decimal.less_or_equal(v.m, 5d)
        q = true
        return result: 0
        ",
    );
}

#[test]
fn bounds_have_at_most_60_places() {
    let small = |places: usize| format!("decimal.less(d, 0.{}1d)", "0".repeat(places - 1));
    lists(&[&small(60)], "decimal.less(d, 1d)", "true");
    unknown(&[&small(61)], "decimal.less(d, 1d)");
}
