//! Rule `invariants`, and the part of `guards` that moves conditions.

use vesper_opt::Rule::{Guards, Intervals, Invariants};

use crate::node::{check, check_expression, optimised, rules};

#[track_caller]
fn lists(expression: &str, expected: &str) {
    check_expression(&[Invariants], expression, expected);
}

#[test]
fn unchanged_expressions_are_computed_before_the_rounds() {
    lists(
        "(sum $0 in xs : integer.bit_and($0, integer.bit_or(x, y)))",
        "(sum $0 in xs before (%0 = integer.bit_or(x, y)) : integer.bit_and($0, %0))",
    );
    lists(
        "(sum $0 in xs where integer.less($0, integer.bit_or(x, y)) : $0)",
        "(sum $0 in xs before (%0 = integer.bit_or(x, y)) where integer.less($0, %0) : $0)",
    );
    lists(
        "(map $0 $1 in m key if b then s else t : $1)",
        "(map $0 in m before (%0 = if b then s else t) key %0 : $1)",
    );
    // The largest unchanged part, once.
    lists(
        "(sum $0 in xs : integer.bit_and($0, integer.bit_or(integer.bit_xor(x, 1), y)))",
        "(sum $0 in xs before (%0 = integer.bit_or(integer.bit_xor(x, 1), y)) : integer.bit_and($0, %0))",
    );
    lists(
        "(sum $0 in xs : integer.bit_and(integer.bit_or(x, 1), integer.bit_or($0, integer.bit_or(y, 2))))",
        "(sum $0 in xs before (%0 = integer.bit_or(x, 1)) before (%1 = integer.bit_or(y, 2)) : \
            integer.bit_and(%0, integer.bit_or($0, %1)))",
    );
}

#[test]
fn changing_expressions_stay() {
    for text in [
        "(sum $0 in xs : integer.bit_or($0, x))",
        "(sum $0 in xs : $0)",
        "(sum $0 in xs : x)",
        "(sum $1 in xs : (let $0 = $1 in integer.bit_or($0, x)))",
        "(sum $0 in xs where integer.less(x, 3) : $0)",
    ] {
        lists(text, text);
    }
    lists(
        "(fold $0 $1 in xs with 0 : integer.bit_or($1, x))",
        "(fold $0 in xs with 0 : integer.bit_or($1, x))",
    );
    lists(
        "(map $0 $1 in m key $0 : integer.bit_or($1, x))",
        "(map $0 in m key $0 : integer.bit_or($1, x))",
    );
}

#[test]
fn expressions_that_may_fail_or_cost_fuel_stay() {
    for text in [
        "(sum $0 in xs : integer.bit_or($0, integer.add(x, 1)))",
        "(sum $0 in xs : integer.bit_or($0, integer.quot(x, y)))",
        "(array $0 in xs : text.concat(s, t))",
        "(array $0 in xs : [x])",
        "(array $0 in xs : (sum $1 in ys : x))",
    ] {
        // Numbers of locals are in the order of the table.
        let listed = text.replace(
            "(array $0 in xs : (sum $1 in ys : x))",
            "(array $1 in xs : (sum $0 in ys : x))",
        );
        lists(&listed, &listed);
    }
    check_expression(
        &[Invariants, Intervals],
        "(sum $0 in xs : integer.bit_or($0, integer.add(array.length<integer>(xs), 1)))",
        "(sum $0 in xs before (%0 = integer.add!(array.length(xs), 1)) : integer.bit_or($0, %0))",
    );
}

#[test]
fn large_values_and_lets_stay() {
    for (text, listed) in [
        ("(array $0 in xs : {n: x, r: d})", "(array $0 in xs : {x, d})"),
        (
            "(array $0 in xs : if b then xs else ys)",
            "(array $0 in xs : if b then xs else ys)",
        ),
        (
            "(array $0 in xs : if b then primes else primes)",
            "(array $0 in xs : if b then primes else primes)",
        ),
        (
            "(array $0 in xs : if b then m else m)",
            "(array $0 in xs : if b then m else m)",
        ),
        (
            "(array $0 in xs : if b then p else p)",
            "(array $0 in xs : if b then p else p)",
        ),
        (
            "(array $1 in xs : (let $0 = x in $0))",
            "(array $1 in xs : (let $0 = x in $0))",
        ),
    ] {
        lists(text, listed);
    }
}

#[test]
fn conditions_belong_to_the_guards() {
    let text = "(count $0 in xs where boolean.not(b) : integer.bit_or(x, 1))";
    check_expression(
        &[Guards],
        text,
        "(count $0 in xs before (%0 = boolean.not(b)) where %0 : integer.bit_or(x, 1))",
    );
    check_expression(
        &[Invariants],
        text,
        "(count $0 in xs before (%0 = integer.bit_or(x, 1)) where boolean.not(b) : %0)",
    );
    check_expression(
        &[Guards, Invariants],
        text,
        "(count $0 in xs before (%0 = boolean.not(b)) before (%1 = integer.bit_or(x, 1)) where %0 : %1)",
    );
    for text in [
        "(count $0 in xs where (b and integer.less($0, 3)) : $0)",
        "(count $0 in xs where (integer.less($0, 3) and b) : $0)",
        "(count $0 in xs where (b or integer.less($0, 3)) : $0)",
        "(count $0 in xs where (integer.less($0, 3) or b) : $0)",
        "(count $0 in xs where if b then c else integer.less($0, 3) : $0)",
    ] {
        check_expression(&[Guards, Invariants], text, text);
    }
    // A jump evaluates a numeric comparison by itself.
    let comparison = "(count $0 in xs where integer.less(x, 3) : $0)";
    check_expression(&[Guards, Invariants], comparison, comparison);
    check_expression(
        &[Guards],
        "(count $0 in xs where (b and c) : $0)",
        "(count $0 in xs before (%0 = (b and c)) where %0 : $0)",
    );
}

#[test]
fn inner_loops_keep_what_only_they_leave_unchanged() {
    lists(
        "(sum $1 in xs : (sum $0 in ys : integer.bit_or(integer.bit_or($0, integer.bit_or($1, x)), integer.bit_or(x, y))))",
        "(sum $1 in xs before (%0 = integer.bit_or(x, y)) : (sum $0 in ys before (%1 = integer.bit_or($1, x)) : \
            integer.bit_or(integer.bit_or($0, %1), %0)))",
    );
    lists(
        "(sum $1 in xs : (sum $0 in array.range(integer.bit_or(x, y), 3, 1) : $0))",
        "(sum $1 in xs before (%0 = integer.bit_or(x, y)) : (sum $0 in array.range(%0, 3, 1) : $0))",
    );
    lists(
        "integer.bit_or((sum $0 in xs : integer.bit_or($0, integer.bit_or(x, y))), (sum $1 in ys : integer.bit_or($1, integer.bit_or(x, y))))",
        "integer.bit_or((sum $0 in xs before (%0 = integer.bit_or(x, y)) : integer.bit_or($0, %0)), \
            (sum $1 in ys before (%1 = integer.bit_or(x, y)) : integer.bit_or($1, %1)))",
    );
}

#[test]
fn clauses_have_loops_too() {
    let holds = "(forall $0 in xs : integer.less($0, integer.bit_or(x, y)))";
    let text = format!(
        "
        constraint xs: (forall $0 in xs : integer.less($0, integer.bit_or(1, 2)))
        precondition {}
        return result: 0
        postcondition {}
        invariant {}
        ",
        holds.replace("$0", "$1"),
        holds.replace("$0", "$2"),
        holds.replace("$0", "$3"),
    );
    check(
        &[Invariants],
        &text,
        "
        constraint 0: (forall $0 in xs before (%0 = integer.bit_or(1, 2)) : integer.less($0, %0))
        precondition 0: (forall $1 in xs before (%1 = integer.bit_or(x, y)) : integer.less($1, %1))
        return result: 0
        postcondition 0: (forall $2 in xs before (%2 = integer.bit_or(x, y)) : integer.less($2, %2))
        invariant 0: (forall $3 in xs before (%3 = integer.bit_or(x, y)) : integer.less($3, %3))
        ",
    );
}

#[test]
fn statements_of_a_loop_are_searched() {
    check(
        &[Invariants, Guards],
        "
        v = loop $0 over array.range(integer.bit_or(x, 1), 9, 1) max 9 with $1 n: integer.bit_or(x, 2); $2 m: 0
          where integer.less(integer.bit_or(x, 3), $0)
          while integer.less(integer.bit_or(x, 4), $1)
          inner = integer.bit_or(x, 5)
          depends = integer.bit_or(inner, 5)
          on_state = integer.bit_or($1, 5)
          on_item = integer.bit_or($0, 5)
          require boolean.not(b)
          chosen = branch
          when integer.less(integer.bit_or(x, 6), 3)
            arm = integer.bit_or(x, 7)
            = integer.bit_or(x, 8)
          else
            rest = integer.bit_or(x, 9)
            = integer.bit_or(x, 10)
          on overflow
            handled = integer.bit_or(x, 11)
            = integer.bit_or(x, 12)
          asked = request if b then s else t; if c then s else t
          called = call x: integer.bit_or(x, 13)
          nested = loop $3 over array.range(integer.bit_or(x, 14), 9, 1) max 4 with $4 k: integer.bit_or(x, 15)
            deep = integer.bit_or(x, 16)
            with_item = integer.bit_or($3, integer.bit_or($0, 16))
            next $4 = integer.bit_or($1, $2)
          collect integer.bit_or(x, 17)
          next $1 = integer.bit_or(x, 18)
          next $2 = integer.bit_or(chosen, asked)
          stop when integer.less(integer.bit_or(x, 19), 3)
        on overflow
          raise if boolean.not(b) then closed else late
        return result: integer.bit_or(x, 20)
        ",
        "
        v = loop over array.range(integer.bit_or(x, 1), 9, 1) with n: integer.bit_or(x, 2), m: 0
          before (%0 = integer.bit_or(x, 3))
          before (%1 = integer.bit_or(x, 4))
          before (%2 = integer.bit_or(x, 5))
          before (%3 = boolean.not(b))
          before (%4 = integer.bit_or(x, 6))
          before (%5 = integer.bit_or(x, 7))
          before (%6 = integer.bit_or(x, 8))
          before (%7 = integer.bit_or(x, 9))
          before (%8 = integer.bit_or(x, 10))
          before (%9 = integer.bit_or(x, 11))
          before (%10 = integer.bit_or(x, 12))
          before (%11 = if b then s else t)
          before (%12 = if c then s else t)
          before (%13 = integer.bit_or(x, 13))
          before (%14 = integer.bit_or(x, 14))
          before (%15 = integer.bit_or(x, 15))
          before (%16 = integer.bit_or(x, 16))
          before (%17 = integer.bit_or(x, 17))
          before (%18 = integer.bit_or(x, 18))
          before (%19 = integer.bit_or(x, 19))
          where integer.less(%0, $0)
          while integer.less(%1, $1)
          inner = %2
          depends = integer.bit_or(inner, 5)
          on_state = integer.bit_or($1, 5)
          on_item = integer.bit_or($0, 5)
          require: %3
          chosen = branch
          when integer.less(%4, 3)
            arm = %5
            = %6
          else
            rest = %7
            = %8
          on overflow
            handled = %9
            = %10
          asked = request http_request key %11 endpoint: %12
          called = call double_v1 x: %13
          nested = loop over array.range(%14, 9, 1) with k: %15
            before (%20 = integer.bit_or($0, 16))
            before (%21 = integer.bit_or($1, $2))
            deep = %16
            with_item = integer.bit_or($3, %20)
            next k = %21
          collect %17
          next n = %18
          next m = integer.bit_or(chosen, asked)
          stop when integer.less(%19, 3)
        on overflow
          raise error_code: if boolean.not(b) then closed else late
        return result: integer.bit_or(x, 20)
        ",
    );
}

#[test]
fn loops_in_the_parts_of_a_loop_are_searched() {
    let sum = |number: usize| {
        format!("integer.less((sum ${number} in ys : integer.bit_or(${number}, integer.bit_or($6, x))), 3)")
    };
    let text = format!(
        "
        v = loop $6 over xs with $7 n: b
          where {}
          while {}
          inner = {}
          collect {}
          next $7 = {}
          stop when {}
        return result: 0
        ",
        sum(0),
        sum(1),
        sum(2),
        sum(3),
        sum(4),
        sum(5),
    );
    let found = optimised(rules(&[Invariants]), &text);
    assert_eq!(found.matches(" before (%").count(), 6, "{found}");
}

#[test]
fn loops_below_other_statements_are_searched() {
    let sum =
        |number: usize| format!("(sum ${number} in xs : integer.bit_or(${number}, integer.bit_or(x, y)))");
    let is_small = |number: usize| format!("integer.less({}, 3)", sum(number));
    let text = format!(
        "
        a = {}
        on overflow
          inner = {}
          = {}
        require {}
        v = branch
        when {}
          arm = {}
          = {}
        else
          rest = {}
          = {}
        asked = request if {} then s else t; if {} then s else t
        called = call x: {}
        early = branch
        when b
          raise if {} then closed else late
        else
        return result: {}
        ",
        sum(0),
        sum(1),
        sum(2),
        is_small(3),
        is_small(4),
        sum(5),
        sum(6),
        sum(7),
        sum(8),
        is_small(9),
        is_small(10),
        sum(11),
        is_small(12),
        sum(13),
    );
    check(
        &[Invariants],
        &text,
        "
        a = (sum $0 in xs before (%0 = integer.bit_or(x, y)) : integer.bit_or($0, %0))
        on overflow
          inner = (sum $1 in xs before (%1 = integer.bit_or(x, y)) : integer.bit_or($1, %1))
          = (sum $2 in xs before (%2 = integer.bit_or(x, y)) : integer.bit_or($2, %2))
        require: integer.less((sum $3 in xs before (%3 = integer.bit_or(x, y)) : integer.bit_or($3, %3)), 3)
        v = branch
        when integer.less((sum $4 in xs before (%4 = integer.bit_or(x, y)) : integer.bit_or($4, %4)), 3)
          arm = (sum $5 in xs before (%5 = integer.bit_or(x, y)) : integer.bit_or($5, %5))
          = (sum $6 in xs before (%6 = integer.bit_or(x, y)) : integer.bit_or($6, %6))
        else
          rest = (sum $7 in xs before (%7 = integer.bit_or(x, y)) : integer.bit_or($7, %7))
          = (sum $8 in xs before (%8 = integer.bit_or(x, y)) : integer.bit_or($8, %8))
        asked = request http_request key if integer.less((sum $9 in xs before (%9 = integer.bit_or(x, y)) : integer.bit_or($9, %9)), 3) then s else t endpoint: if integer.less((sum $10 in xs before (%10 = integer.bit_or(x, y)) : integer.bit_or($10, %10)), 3) then s else t
        called = call double_v1 x: (sum $11 in xs before (%11 = integer.bit_or(x, y)) : integer.bit_or($11, %11))
        early = branch
        when b
          raise error_code: if integer.less((sum $12 in xs before (%12 = integer.bit_or(x, y)) : integer.bit_or($12, %12)), 3) then closed else late
        else
        return result: (sum $13 in xs before (%13 = integer.bit_or(x, y)) : integer.bit_or($13, %13))
        ",
    );
}

#[test]
fn decided_choices_move_only_what_is_evaluated() {
    lists(
        "(sum $0 in xs : if true then integer.bit_or($0, integer.bit_or(x, y)) else integer.bit_or(x, 9))",
        "(sum $0 in xs before (%0 = integer.bit_or(x, y)) : integer.bit_or($0, %0))",
    );
    lists(
        "(sum $0 in xs : integer.bit_or(if true then x else $0, y))",
        "(sum $0 in xs before (%0 = integer.bit_or(x, y)) : %0)",
    );
}
