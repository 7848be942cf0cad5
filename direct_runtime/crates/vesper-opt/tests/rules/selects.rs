//! Rule `selects`.

use vesper_opt::Rule::{Constants, JumpTables, Selects};

use crate::node::check_expression;

#[track_caller]
fn lists(expression: &str, expected: &str) {
    check_expression(&[Selects], expression, expected);
}

#[test]
fn choices_between_available_values_need_no_jump() {
    lists("if b then x else y", "select(b, x, y)");
    lists("if b then 1 else ten", "select(b, 1, ten)");
    lists(
        "if integer.less(x, y) then x else y",
        "select(integer.less(x, y), x, y)",
    );
    lists("if b then now else now", "select(b, now, now)");
    lists("if b then (true and c) else (false or b)", "select(b, c, b)");
    lists(
        "(let $0 = x in if b then $0 else y)",
        "(let $0 = x in select(b, $0, y))",
    );
}

#[test]
fn choices_that_compute_keep_their_jump() {
    lists(
        "if b then integer.add(x, 1) else y",
        "if b then integer.add(x, 1) else y",
    );
    lists(
        "if b then y else integer.add(x, 1)",
        "if b then y else integer.add(x, 1)",
    );
    lists("if b then p.n else x", "if b then p.n else x");
    lists(
        "if b then x else if c then y else z",
        "if b then x else select(c, y, z)",
    );
    lists("if b then [x] else xs", "if b then [x] else xs");
    lists("if b then (b and c) else c", "if b then (b and c) else c");
    lists("if b then (b or c) else c", "if b then (b or c) else c");
    lists("if b then {n: x, r: d} else p", "if b then {x, d} else p");
    lists(
        "if b then (let $0 = x in $0) else y",
        "if b then (let $0 = x in $0) else y",
    );
    lists(
        "if b then (sum $0 in xs : $0) else y",
        "if b then (sum $0 in xs : $0) else y",
    );
}

#[test]
fn choices_of_a_table_stay_in_it() {
    let chain = "if enum.equal<color>(k, red) then 1 else if enum.equal<color>(k, green) then 2 \
        else if enum.equal<color>(k, blue) then 3 else 4";
    let listed = chain.replace("<color>", "");
    let table = format!("[by table of k: red -> 0, green -> 1, blue -> 2, else -> 3] {listed}");
    check_expression(&[Selects, JumpTables], chain, &table);
    let last = "if enum.equal(k, red) then 1 else if enum.equal(k, green) then 2 \
        else select(enum.equal(k, blue), 3, 4)";
    check_expression(&[Selects], chain, last);
    check_expression(
        &[Constants, Selects],
        "if b then integer.add(1, 1) else x",
        "select(b, 2, x)",
    );
}
