//! Rule `intervals`.

use vesper_opt::Rule::Intervals;

use crate::node::check_under;

const MAX: &str = "9223372036854775807";
const MIN: &str = "-9223372036854775808";

#[track_caller]
fn lists(preconditions: &[&str], expression: &str, expected: &str) {
    check_under(&[Intervals], preconditions, expression, expected);
}

#[track_caller]
fn unknown(preconditions: &[&str], expression: &str) {
    lists(preconditions, expression, expression);
}

/// Bounds of `x`, `LOW <= x` and `x <= HIGH`.
fn between(low: &str, high: &str) -> [String; 2] {
    [
        format!("integer.less_or_equal({low}, x)"),
        format!("integer.less_or_equal(x, {high})"),
    ]
}

/// Checks the smallest and the largest value that the rule knows of an integer expression.
#[track_caller]
fn bounded(preconditions: &[&str], expression: &str, listed: &str, low: i64, high: i64) {
    let test = |op: &str, bound: i64| format!("integer.{op}({expression}, {bound})");
    lists(preconditions, &test("greater_or_equal", low), "true");
    lists(preconditions, &test("less_or_equal", high), "true");
    let open = |op: &str, bound: i64| format!("integer.{op}({listed}, {bound})");
    if low < high {
        lists(preconditions, &test("greater", low), &open("greater", low));
        lists(preconditions, &test("less", high), &open("less", high));
    }
}

/// Each relation between `x` and a number, in both orders, and the bounds that it gives.
#[test]
fn conditions_bound_their_operands() {
    let (min, max) = (i64::MIN, i64::MAX);
    for (condition, low, high) in [
        ("integer.less(x, 5)", min, 4),
        ("integer.less_or_equal(x, 5)", min, 5),
        ("integer.greater(x, 5)", 6, max),
        ("integer.greater_or_equal(x, 5)", 5, max),
        ("integer.less(5, x)", 6, max),
        ("integer.less_or_equal(5, x)", 5, max),
        ("integer.greater(5, x)", min, 4),
        ("integer.greater_or_equal(5, x)", min, 5),
        ("integer.equal(x, 5)", 5, 5),
        ("integer.equal(5, x)", 5, 5),
        ("boolean.not(integer.less(x, 5))", 5, max),
        ("boolean.not(integer.less_or_equal(x, 5))", 6, max),
        ("boolean.not(integer.greater(x, 5))", min, 5),
        ("boolean.not(integer.greater_or_equal(x, 5))", min, 4),
        ("boolean.not(integer.less(5, x))", min, 5),
        ("boolean.not(integer.not_equal(x, 5))", 5, 5),
        ("boolean.not(integer.not_equal(5, x))", 5, 5),
        ("boolean.not(boolean.not(integer.less(x, 5)))", min, 4),
        ("(integer.less(2, x) and integer.less(x, 5))", 3, 4),
        ("boolean.not((integer.less(x, 2) or integer.less(5, x)))", 2, 5),
        ("integer.less(x, ten)", min, 9),
    ] {
        bounded(&[condition], "x", "x", low, high);
    }
}

#[test]
fn other_conditions_bound_nothing() {
    for condition in [
        "integer.not_equal(x, 5)",
        "integer.not_equal(5, x)",
        "boolean.not(integer.equal(x, 5))",
        "(integer.less(x, 5) or b)",
        "boolean.not((integer.less(x, 5) and b))",
        "integer.less(y, 5)",
    ] {
        for test in [
            "integer.less(x, 6)",
            "integer.less(6, x)",
            "integer.less(x, 5)",
            "integer.greater(x, 5)",
            "integer.equal(x, 5)",
        ] {
            unknown(&[condition], test);
        }
    }
}

#[test]
fn comparisons_with_a_certain_result_are_decided() {
    for (test, expected) in [
        ("integer.less(x, 3)", Some("true")),
        ("integer.less(x, 2)", None),
        ("integer.less(x, 1)", None),
        ("integer.less(x, 0)", Some("false")),
        ("integer.less_or_equal(x, 2)", Some("true")),
        ("integer.less_or_equal(x, 1)", None),
        ("integer.less_or_equal(x, 0)", None),
        ("integer.less_or_equal(x, -1)", Some("false")),
        ("integer.greater(x, -1)", Some("true")),
        ("integer.greater(x, 0)", None),
        ("integer.greater(x, 1)", None),
        ("integer.greater(x, 2)", Some("false")),
        ("integer.greater_or_equal(x, 0)", Some("true")),
        ("integer.greater_or_equal(x, 1)", None),
        ("integer.greater_or_equal(x, 2)", None),
        ("integer.greater_or_equal(x, 3)", Some("false")),
        ("integer.equal(x, -1)", Some("false")),
        ("integer.equal(x, 0)", None),
        ("integer.equal(x, 2)", None),
        ("integer.equal(x, 3)", Some("false")),
        ("integer.equal(3, x)", Some("false")),
        ("integer.not_equal(x, -1)", Some("true")),
        ("integer.not_equal(x, 0)", None),
        ("integer.not_equal(x, 2)", None),
        ("integer.not_equal(x, 3)", Some("true")),
        ("integer.not_equal(-1, x)", Some("true")),
        ("integer.less(-1, x)", Some("true")),
        ("integer.less(0, x)", None),
        ("integer.less(2, x)", Some("false")),
    ] {
        let [low, high] = between("0", "2");
        lists(&[&low, &high], test, expected.unwrap_or(test));
    }
    // A single value is equal only by its number, which another rule decides.
    unknown(&["integer.equal(x, 5)"], "integer.equal(x, 5)");
}

#[test]
fn integer_bounds_only_become_narrower() {
    bounded(
        &[
            "integer.less(x, 3)",
            "integer.less(x, 9)",
            "integer.less(0, x)",
            "integer.less(-9, x)",
        ],
        "x",
        "x",
        1,
        2,
    );
    bounded(
        &[
            "integer.less(x, 9)",
            "integer.less(x, 3)",
            "integer.less(-9, x)",
            "integer.less(0, x)",
        ],
        "x",
        "x",
        1,
        2,
    );
    // Two names bound each other.
    bounded(
        &["integer.less(x, 9)", "integer.less(y, x)"],
        "y",
        "y",
        i64::MIN,
        7,
    );
    bounded(
        &["integer.less(9, y)", "integer.less(y, x)"],
        "x",
        "x",
        11,
        i64::MAX,
    );
}

#[test]
fn sums_that_fit_are_proven() {
    let bounds = between("-5", "10");
    let bounds = bounds.each_ref().map(String::as_str);
    for (sum, is_proven) in [
        (format!("integer.add(x, {})", i64::MAX - 10), true),
        (format!("integer.add(x, {})", i64::MAX - 9), false),
        (format!("integer.add({}, x)", i64::MIN + 5), true),
        (format!("integer.add({}, x)", i64::MIN + 4), false),
        (format!("integer.subtract(x, {})", i64::MAX), false),
        (format!("integer.subtract(x, {})", i64::MAX - 4), true),
        (format!("integer.subtract(x, {})", i64::MAX - 3), false),
        (format!("integer.subtract({}, x)", i64::MAX - 5), true),
        (format!("integer.subtract({}, x)", i64::MAX - 4), false),
        (format!("integer.subtract({}, x)", i64::MIN + 10), true),
        (format!("integer.subtract({}, x)", i64::MIN + 9), false),
        (format!("integer.multiply(x, {})", i64::MAX / 10), true),
        (format!("integer.multiply(x, {})", i64::MAX / 10 + 1), false),
        (format!("integer.multiply({}, x)", i64::MIN / 10), true),
        (format!("integer.multiply({}, x)", i64::MIN / 10 - 1), false),
        ("integer.multiply(x, x)".to_owned(), true),
        ("integer.negate(x)".to_owned(), true),
        ("integer.abs(x)".to_owned(), true),
        ("integer.negate(y)".to_owned(), false),
        ("integer.abs(y)".to_owned(), false),
        ("integer.add(y, 1)".to_owned(), false),
        ("integer.quot(x, 1)".to_owned(), false),
    ] {
        let expected = if is_proven {
            sum.replacen('(', "!(", 1)
        } else {
            sum.clone()
        };
        lists(&bounds, &sum, &expected);
    }
    lists(
        &[&format!("integer.greater(y, {MIN})")],
        "integer.negate(y)",
        "integer.negate!(y)",
    );
    lists(
        &[&format!("integer.greater(y, {MIN})")],
        "integer.abs(y)",
        "integer.abs!(y)",
    );
    lists(
        &[&format!("integer.less(y, {MAX})")],
        "integer.add(y, 1)",
        "integer.add!(y, 1)",
    );
    lists(&[], "decimal.add(d, 1d)", "decimal.add(d, 1d)");
}

#[test]
fn arithmetic_carries_bounds() {
    let [low, high] = between("-2", "5");
    let bounds: [&str; 4] = [
        &low,
        &high,
        "integer.less_or_equal(3, y)",
        "integer.less_or_equal(y, 4)",
    ];
    for (expression, low, high) in [
        ("integer.add(x, y)", 1, 9),
        ("integer.subtract(x, y)", -6, 2),
        ("integer.subtract(y, x)", -2, 6),
        ("integer.multiply(x, y)", -8, 20),
        ("integer.multiply(y, x)", -8, 20),
        ("integer.multiply(x, x)", -10, 25),
        ("integer.multiply(integer.negate(y), y)", -16, -9),
        ("integer.negate(x)", -5, 2),
        ("integer.abs(x)", 0, 5),
        ("integer.abs(integer.negate(y))", 0, 4),
    ] {
        let listed = expression.replace('(', "!(");
        bounded(&bounds, expression, &listed, low, high);
    }
    for (expression, low, high) in [
        ("integer.bit_and(x, y)", 0, 4),
        ("integer.bit_and(y, x)", 0, 4),
        ("integer.bit_and(y, 3)", 0, 3),
        ("integer.bit_and(3, y)", 0, 3),
        ("if b then x else y", -2, 5),
        ("if b then y else 9", 3, 9),
        ("if b then 9 else y", 3, 9),
    ] {
        bounded(&bounds, expression, expression, low, high);
    }
    bounded(&bounds, "(let $0 = x in $0)", "(let $0 = x in $0)", -2, 5);
    unknown(&bounds, "integer.less(integer.bit_or(x, y), 100)");
    unknown(&bounds, "integer.less(integer.bit_and(x, z), 100)");
}

#[test]
fn a_remainder_is_below_its_positive_divisor() {
    let by = ["integer.less_or_equal(1, y)", "integer.less_or_equal(y, 7)"];
    for (test, expected) in [
        ("integer.less(integer.mod(x, y), 7)", None),
        ("integer.less(integer.add(integer.mod(x, y), 1), 8)", None),
    ] {
        // The operation may fail in general, so that it is evaluated; its sum shows the range.
        lists(
            &by,
            test,
            expected.unwrap_or(&test.replace("integer.add(", "integer.add!(")),
        );
    }
    let sum = |of: &str, by: i64| format!("integer.add({of}, {by})");
    let proven = |of: &str, by: i64| format!("integer.add!({of}, {by})");
    for (of, low, high) in [("integer.mod(x, y)", 0, 6), ("integer.rem(x, y)", -6, 6)] {
        lists(&by, &sum(of, i64::MAX - high), &proven(of, i64::MAX - high));
        lists(&by, &sum(of, i64::MAX - high + 1), &sum(of, i64::MAX - high + 1));
        lists(&by, &sum(of, i64::MIN - low), &proven(of, i64::MIN - low));
        if low < 0 {
            lists(&by, &sum(of, i64::MIN - low - 1), &sum(of, i64::MIN - low - 1));
        }
        // A divisor that may be zero or negative bounds nothing.
        let zero = ["integer.less_or_equal(0, y)", "integer.less_or_equal(y, 7)"];
        lists(&zero, &sum(of, 1), &sum(of, 1));
    }
}

#[test]
fn lengths_are_bounded() {
    for length in [
        "array.length<integer>(xs)",
        "map.length<string, integer>(m)",
        "set.length<integer>(primes)",
    ] {
        let listed = length.split_once('<').unwrap().0.to_owned() + "(" + length.split_once('(').unwrap().1;
        lists(&[], &format!("integer.less({length}, 0)"), "false");
        lists(
            &[],
            &format!("integer.less({length}, 1)"),
            &format!("integer.less({listed}, 1)"),
        );
        lists(&[], &format!("integer.less_or_equal({length}, 1000000)"), "true");
        lists(
            &[],
            &format!("integer.less({length}, 1000000)"),
            &format!("integer.less({listed}, 1000000)"),
        );
    }
    for length in ["text.length(s)", "bytes.length(h)"] {
        lists(&[], &format!("integer.less({length}, 0)"), "false");
        unknown(&[], &format!("integer.less({length}, 1)"));
        unknown(&[], &format!("integer.less_or_equal({length}, 1000000)"));
    }
    lists(
        &[],
        "integer.add((count $0 in xs : $0), 1)",
        "integer.add!((count $0 in xs : $0), 1)",
    );
    lists(
        &[],
        &format!("integer.add((count $0 in xs : $0), {})", i64::MAX - 999_999),
        &format!("integer.add((count $0 in xs : $0), {})", i64::MAX - 999_999),
    );
    unknown(&[], "integer.add((sum $0 in xs : $0), 1)");
    unknown(&[], "integer.add((max $0 in xs : $0), 1)");
}
