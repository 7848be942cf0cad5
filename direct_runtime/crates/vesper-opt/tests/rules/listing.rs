//! Names of rules, and the listing of every kind of statement and expression.

use vesper_opt::{Rule, Rules};

use crate::node::{check, check_expression};

#[test]
fn rules_have_names() {
    let names: Vec<&str> = Rule::names().collect();
    let expected = [
        "constants",
        "intervals",
        "guards",
        "dead_steps",
        "jump_tables",
        "invariants",
        "common",
        "selects",
    ];
    assert_eq!(names, expected);
    for (name, rule) in names.iter().zip([
        Rule::Constants,
        Rule::Intervals,
        Rule::Guards,
        Rule::DeadSteps,
        Rule::JumpTables,
        Rule::Invariants,
        Rule::Common,
        Rule::Selects,
    ]) {
        assert_eq!(Rule::from_name(name), Some(rule));
        assert!(Rules::ALL.has(rule));
        assert!(!Rules::NONE.has(rule));
        assert!(!Rules::ALL.without(rule).has(rule));
        let one = Rules::NONE.with(rule);
        let others = names.iter().filter_map(|name| Rule::from_name(name));
        assert_eq!(others.filter(|other| one.has(*other)).collect::<Vec<_>>(), [rule]);
        assert_eq!(one.without(rule), Rules::NONE);
        assert_eq!(Rules::ALL.without(rule).with(rule), Rules::ALL);
    }
    assert_eq!(Rule::from_name("folding"), None);
}

#[test]
fn expressions_are_listed() {
    for text in [
        "now",
        "x",
        "ten",
        "-3",
        "1.50d",
        "1.5",
        "\"a\"",
        "red",
        "true",
        "null",
        "p.n",
        "[x, 1]",
        "if b then x else y",
        "(b and c)",
        "(b or c)",
        "(let $0 = x in $0)",
        "(array $0 in xs where integer.less($0, 3) : integer.add($0, 1))",
        "(fold $0 in xs with 0 : $0)",
    ] {
        let given = text.replace("(fold $0", "(fold $0 $1");
        check_expression(&[], &given, text);
    }
    check_expression(
        &[],
        "(map $0 $1 in m key $0 : integer.add($1, 1))",
        "(map $0 in m key $0 : integer.add($1, 1))",
    );
    check_expression(&[], "{n: x, r: d}", "{x, d}");
}

#[test]
fn statements_are_listed() {
    check(
        &[],
        "
        constraint x: integer.less(0, x)
        precondition b
        postcondition integer.less(output.result, 3)
        invariant optional.is_null<code>(error.error_code)
        require c
        a = loop $0 over xs max 9 with $1 n: 0; $2 m: 1
          where b
          while c
          inner = $0
          collect inner
          next $1 = $2
          next $2 = $1
          stop when b
        on any
          raise closed
        r = request \"k\"; s
        w = call x: x
        v = branch
        when b
          early = request
          = x
        when c
          = y
        else
          after = x
          = after
        on http_404
          = 3
        return result: v
        ",
        "
        constraint 0: integer.less(0, x)
        precondition 0: b
        require: c
        a = loop over xs with n: 0, m: 1
          where b
          while c
          inner = $0
          collect inner
          next n = $2
          next m = $1
          stop when b
        on any
          raise error_code: closed
        r = request http_request key \"k\" endpoint: s
        w = call double_v1 x: x
        v = branch
        when b
          early = request custom
          = x
        when c
          = y
        else
          after = x
          = after
        on http_404
          = 3
        return result: v
        postcondition 0: integer.less(output.result, 3)
        invariant 0: optional.is_null(error.error_code)
        ",
    );
}
