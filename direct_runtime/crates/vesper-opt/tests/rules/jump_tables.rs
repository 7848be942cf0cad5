//! Rule `jump_tables`.

use vesper_opt::Rule::{Constants, JumpTables};

use crate::node::{check, check_expression, load};

/// Returns a chain of choices with these conditions and the values 0, 1, ….
fn chain(conditions: &[&str]) -> String {
    let arms = conditions.iter().enumerate();
    let arms: Vec<String> = arms
        .map(|(number, condition)| format!("if {condition} then {number} else "))
        .collect();
    format!("{}99", arms.concat())
}

#[track_caller]
fn table(conditions: &[&str], expected: &str) {
    let given = chain(conditions);
    let listed = given.replace("<color>", "");
    check_expression(
        &[JumpTables],
        &given,
        &format!("[by table of {expected}] {listed}"),
    );
}

#[track_caller]
fn no_table(conditions: &[&str]) {
    let given = chain(conditions);
    check_expression(&[JumpTables], &given, &given.replace("<color>", ""));
}

#[test]
fn three_values_make_a_table() {
    table(
        &[
            "integer.equal(x, 7)",
            "integer.equal(x, 5)",
            "integer.equal(x, 6)",
        ],
        "x: 5 -> 1, 6 -> 2, 7 -> 0, else -> 3",
    );
    no_table(&["integer.equal(x, 7)", "integer.equal(x, 5)"]);
    no_table(&[
        "integer.equal(x, 7)",
        "integer.equal(x, 5)",
        "integer.equal(x, 5)",
    ]);
    table(
        &[
            "enum.equal<color>(k, white)",
            "enum.equal<color>(k, red)",
            "enum.equal<color>(k, blue)",
        ],
        "k: red -> 1, blue -> 2, white -> 0, else -> 3",
    );
}

#[test]
fn the_fixed_value_is_on_either_side() {
    table(
        &[
            "integer.equal(7, x)",
            "integer.equal(x, 5)",
            "integer.equal(6, x)",
        ],
        "x: 5 -> 1, 6 -> 2, 7 -> 0, else -> 3",
    );
    no_table(&[
        "integer.equal(x, y)",
        "integer.equal(x, 5)",
        "integer.equal(x, 6)",
    ]);
    no_table(&[
        "integer.equal(4, 4)",
        "integer.equal(x, 5)",
        "integer.equal(x, 6)",
    ]);
    no_table(&[
        "integer.equal(x, ten)",
        "integer.equal(x, 5)",
        "integer.equal(x, 6)",
    ]);
}

#[test]
fn only_equality_of_integers_and_enums_counts() {
    no_table(&["integer.less(x, 7)", "integer.less(x, 5)", "integer.less(x, 6)"]);
    no_table(&[
        "integer.not_equal(x, 7)",
        "integer.not_equal(x, 5)",
        "integer.not_equal(x, 6)",
    ]);
    no_table(&[
        "text.equal(s, \"a\")",
        "text.equal(s, \"b\")",
        "text.equal(s, \"c\")",
    ]);
    no_table(&["boolean.not(b)", "integer.equal(x, 5)", "integer.equal(x, 6)"]);
}

#[test]
fn the_first_of_equal_tests_counts() {
    table(
        &[
            "integer.equal(x, 5)",
            "integer.equal(x, 6)",
            "integer.equal(x, 5)",
            "integer.equal(x, 7)",
        ],
        "x: 5 -> 0, 6 -> 1, 7 -> 3, else -> 4",
    );
}

#[test]
fn tests_with_more_parts_are_not_decided() {
    table(
        &[
            "(integer.equal(x, 5) and b)",
            "integer.equal(x, 6)",
            "(integer.equal(x, 7) and c)",
        ],
        "x: 5 -> 0?, 6 -> 1, 7 -> 2?, else -> 3",
    );
    table(
        &[
            "((integer.equal(x, 5) and b) and c)",
            "integer.equal(x, 6)",
            "integer.equal(x, 7)",
        ],
        "x: 5 -> 0?, 6 -> 1, 7 -> 2, else -> 3",
    );
    no_table(&[
        "(b and integer.equal(x, 5))",
        "integer.equal(x, 6)",
        "integer.equal(x, 7)",
    ]);
}

#[test]
fn alternatives_of_one_value_are_one_test() {
    table(
        &["((integer.equal(x, 5) or integer.equal(9, x)) or integer.equal(x, 1))"],
        "x: 1 -> 0, 5 -> 0, 9 -> 0, else -> 1",
    );
    let rest = [
        "integer.equal(x, 6)",
        "integer.equal(x, 7)",
        "integer.equal(x, 8)",
    ];
    for other in [
        "(integer.equal(x, 5) or integer.equal(y, 1))",
        "(integer.equal(x, 5) or (integer.equal(x, 1) and b))",
        "((integer.equal(x, 1) and b) or integer.equal(x, 5))",
        "(integer.equal(x, 5) or b)",
        "(b or integer.equal(x, 5))",
    ] {
        no_table(&[other, rest[0], rest[1]]);
        // A later test of this kind ends the table.
        table(
            &[rest[0], rest[1], rest[2], other, "integer.equal(x, 4)"],
            "x: 6 -> 0, 7 -> 1, 8 -> 2, else -> 3",
        );
    }
}

#[test]
fn a_test_of_another_value_ends_the_table() {
    table(
        &[
            "integer.equal(x, 5)",
            "integer.equal(x, 6)",
            "integer.equal(x, 7)",
            "integer.equal(y, 8)",
            "integer.equal(x, 9)",
        ],
        "x: 5 -> 0, 6 -> 1, 7 -> 2, else -> 3",
    );
    no_table(&[
        "integer.equal(x, 5)",
        "integer.equal(x, 6)",
        "integer.equal(y, 7)",
        "integer.equal(x, 8)",
    ]);
    no_table(&[
        "enum.equal<color>(k, red)",
        "enum.equal<color>(k, blue)",
        "enum.equal<color>(l, white)",
    ]);
}

#[test]
fn values_are_at_most_255_apart() {
    table(
        &[
            "integer.equal(x, 0)",
            "integer.equal(x, 5)",
            "integer.equal(x, 255)",
        ],
        "x: 0 -> 0, 5 -> 1, 255 -> 2, else -> 3",
    );
    no_table(&[
        "integer.equal(x, 0)",
        "integer.equal(x, 5)",
        "integer.equal(x, 256)",
    ]);
    no_table(&[
        "integer.equal(x, -9223372036854775808)",
        "integer.equal(x, 5)",
        "integer.equal(x, 9223372036854775807)",
    ]);
}

#[test]
fn the_compared_value_is_a_reference() {
    for (value, wraps) in [
        ("$0", true),
        ("p.n", false),
        ("integer.add(x, 1)", false),
        ("ten", false),
    ] {
        let tests = ["5", "6", "7"].map(|number| format!("integer.equal({value}, {number})"));
        let given = chain(&tests.each_ref().map(String::as_str));
        let table = format!("[by table of {value}: 5 -> 0, 6 -> 1, 7 -> 2, else -> 3] {given}");
        if wraps {
            check_expression(
                &[JumpTables],
                &format!("(let $0 = x in {given})"),
                &format!("(let $0 = x in {table})"),
            );
        } else {
            check_expression(&[JumpTables], &given, &given);
        }
    }
    check(
        &[JumpTables],
        "
        a = x
        v = y
        postcondition integer.less(if integer.equal(output.result, 1) then 3 else if integer.equal(output.result, 2) then 4 else if integer.equal(output.result, 3) then 5 else 6, 3)
        q = if integer.equal(a, 1) then 3 else if integer.equal(a, 2) then 4 else if integer.equal(a, 3) then 5 else 6
        u = if integer.equal(a, 1) then 3 else if integer.equal(v, 2) then 4 else if integer.equal(a, 3) then 5 else 6
        return result: q
        ",
        "
        a = x
        v = y
        q = [by table of a: 1 -> 0, 2 -> 1, 3 -> 2, else -> 3] if integer.equal(a, 1) then 3 else if integer.equal(a, 2) then 4 else if integer.equal(a, 3) then 5 else 6
        u = if integer.equal(a, 1) then 3 else if integer.equal(v, 2) then 4 else if integer.equal(a, 3) then 5 else 6
        return result: q
        postcondition 0: integer.less([by table of output.result: 1 -> 0, 2 -> 1, 3 -> 2, else -> 3] if integer.equal(output.result, 1) then 3 else if integer.equal(output.result, 2) then 4 else if integer.equal(output.result, 3) then 5 else 6, 3)
        ",
    );
}

#[test]
fn a_decided_test_ends_the_chain() {
    check_expression(
        &[JumpTables],
        "if integer.equal(x, 1) then 1 else if integer.equal(x, 2) then 2 else \
            if false then 3 else if integer.equal(x, 3) then 4 else 5",
        "[by table of x: 1 -> 0, 2 -> 1, 3 -> 2, else -> 3] if integer.equal(x, 1) then 1 else \
            if integer.equal(x, 2) then 2 else if integer.equal(x, 3) then 4 else 5",
    );
    check_expression(
        &[Constants, JumpTables],
        "if integer.equal(x, 1) then 1 else if integer.equal(x, 2) then 2 else \
            if integer.equal(3, 3) then 3 else if integer.equal(x, 3) then 4 else 5",
        "if integer.equal(x, 1) then 1 else if integer.equal(x, 2) then 2 else 3",
    );
}

#[test]
fn branches_anywhere_become_tables() {
    let branch = |name: &str, input: &str, depth: usize| {
        let margin = " ".repeat(depth);
        let lines = [
            format!("{name} = branch"),
            format!("when integer.equal({input}, 1)"),
            "  = 1".to_owned(),
            format!("when integer.equal({input}, 2)"),
            "  = 2".to_owned(),
            format!("when integer.equal({input}, 3)"),
            "  = 3".to_owned(),
            "else".to_owned(),
            "  = 4".to_owned(),
        ];
        lines.map(|line| format!("{margin}{line}\n")).concat()
    };
    let text = [
        branch("first", "x", 0).as_str(),
        "outer = branch\nwhen b\n",
        &branch("in_arm", "y", 2),
        "  = in_arm\nelse\n",
        &branch("in_else", "z", 2),
        "  = in_else\non overflow\n",
        &branch("in_handler", "y", 2),
        "  = in_handler\nrounds = loop $0 over xs with $1 n: 0\n",
        &branch("in_loop", "$0", 2),
        "  next $1 = in_loop\n",
        "two = branch\nwhen integer.equal(x, 1)\n  = 1\nwhen integer.equal(x, 2)\n  = 2\nelse\n  = 3\n",
        "return result: 0",
    ]
    .concat();
    check(
        &[JumpTables],
        &text,
        "
        first = branch by table of x: 1 -> 0, 2 -> 1, 3 -> 2, else -> 3
        when integer.equal(x, 1)
          = 1
        when integer.equal(x, 2)
          = 2
        when integer.equal(x, 3)
          = 3
        else
          = 4
        outer = branch
        when b
          in_arm = branch by table of y: 1 -> 0, 2 -> 1, 3 -> 2, else -> 3
          when integer.equal(y, 1)
            = 1
          when integer.equal(y, 2)
            = 2
          when integer.equal(y, 3)
            = 3
          else
            = 4
          = in_arm
        else
          in_else = branch by table of z: 1 -> 0, 2 -> 1, 3 -> 2, else -> 3
          when integer.equal(z, 1)
            = 1
          when integer.equal(z, 2)
            = 2
          when integer.equal(z, 3)
            = 3
          else
            = 4
          = in_else
        on overflow
          in_handler = branch by table of y: 1 -> 0, 2 -> 1, 3 -> 2, else -> 3
          when integer.equal(y, 1)
            = 1
          when integer.equal(y, 2)
            = 2
          when integer.equal(y, 3)
            = 3
          else
            = 4
          = in_handler
        rounds = loop over xs with n: 0
          in_loop = branch by table of $0: 1 -> 0, 2 -> 1, 3 -> 2, else -> 3
          when integer.equal($0, 1)
            = 1
          when integer.equal($0, 2)
            = 2
          when integer.equal($0, 3)
            = 3
          else
            = 4
          next n = in_loop
        two = branch
        when integer.equal(x, 1)
          = 1
        when integer.equal(x, 2)
          = 2
        else
          = 3
        return result: 0
        ",
    );
}

#[test]
fn inner_choices_of_operands_have_their_own_tables() {
    let inner = chain(&[
        "integer.equal(y, 1)",
        "integer.equal(y, 2)",
        "integer.equal(y, 3)",
    ]);
    let outer = format!("if integer.equal(x, 1) then integer.add({inner}, 1) else 2");
    let table = "[by table of y: 1 -> 0, 2 -> 1, 3 -> 2, else -> 3] ";
    check_expression(
        &[JumpTables],
        &outer,
        &format!("if integer.equal(x, 1) then integer.add({table}{inner}, 1) else 2"),
    );
}

#[test]
fn a_chain_has_at_most_the_wanted_arms() {
    let tests = ["integer.equal(x, 1)", "integer.less(x, 2)", "b"];
    let node = load(&format!("step = {}\nreturn result: step", chain(&tests)));
    let root = u32::try_from(node.expressions.len()).unwrap() - 2;
    let counts = |most: usize| {
        let (arms, default, inner) = vesper_opt::chain(&node, root, most);
        (arms.len(), inner.len(), root - default)
    };
    assert_eq!(counts(0), (0, 0, 0));
    assert_eq!(counts(1), (1, 0, 1));
    assert_eq!(counts(2), (2, 1, 2));
    assert_eq!(counts(3), (3, 2, 3));
    assert_eq!(counts(usize::MAX), (3, 2, 3));
}
