//! The meaning of the kinds of `for` that sort, choose, group and fold: results, first failure and marks.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "support/mod.rs"]
mod support;
#[path = "support/tree.rs"]
mod tree;
#[path = "support/values.rs"]
mod values;

use serde_json::{Value as Json, json};
use support::{load, run};
use tree::{call, each, each_where, input, integer, local, order, returning, sort_by};
use values::{decimals, integers, map_of, outcome, set_of, texts};
use vesper_ir::{Member, Value};

/// `acc` is local 1.
fn fold(with: Json, value: Json) -> Json {
    json!({"for": {"kind": "fold", "locals": [0, 1], "over": input("xs"), "with": with, "value": value}})
}

fn length() -> Json {
    call("text.length", &[local(0)])
}

fn is_positive() -> Json {
    call("integer.greater", &[local(0), integer(0)])
}

/// Overflows for the largest integer and gives `x + 1` for the rest.
fn next() -> Json {
    call("integer.add", &[local(0), integer(1)])
}

fn next_is_positive() -> Json {
    call("integer.greater", &[next(), integer(0)])
}

fn of_texts(ty: Json, expression: Json, items: &[&str]) -> String {
    outcome(&json!({"array": "string"}), &ty, &expression, texts(items))
}

fn of_integers(ty: Json, expression: Json, items: &[i64]) -> String {
    outcome(&json!({"array": "integer"}), &ty, &expression, integers(items))
}

#[test]
fn items_are_sorted_by_keys_and_stay_in_their_order() {
    let ty = json!({"array": "string"});
    let items = ["bb", "a", "cc", "", "d"];
    assert_eq!(
        of_texts(ty.clone(), sort_by(order("ascending"), length()), &items),
        r#"["","a","d","bb","cc"]"#
    );
    assert_eq!(
        of_texts(ty.clone(), sort_by(order("descending"), length()), &items),
        r#"["bb","cc","a","d",""]"#,
        "stable: not the ascending order turned round"
    );
    assert_eq!(of_texts(ty, sort_by(order("ascending"), length()), &[]), "[]");
    // Every key is computed before sorting, and the order before the first key.
    let ty = json!({"array": "integer"});
    assert_eq!(
        of_integers(ty.clone(), sort_by(order("ascending"), next()), &[3, i64::MAX, 1]),
        "failed integer_overflow at 4"
    );
    let chosen = json!({"if": {
        "condition": call("integer.greater", &[call("integer.quot", &[integer(1), integer(0)]), integer(0)]),
        "then": order("ascending"), "else": order("descending"),
    }});
    assert_eq!(
        of_integers(ty.clone(), sort_by(chosen, next()), &[i64::MAX]),
        "failed division_by_zero at 3"
    );
    let descends = json!({"if": {
        "condition": call("integer.greater", &[integer(1), integer(0)]),
        "then": order("descending"), "else": order("ascending"),
    }});
    assert_eq!(of_integers(ty, sort_by(descends, next()), &[1, 3, 2]), "[3,2,1]");
    // Decimals are equal by value; booleans and enums are ordered too.
    let xs = json!({"array": "decimal"});
    let own = sort_by(order("ascending"), local(0));
    assert_eq!(
        outcome(&xs, &xs, &own, decimals(&["1.00", "2", "1.0", "-1"])),
        "[-1,1.00,1.0,2]"
    );
    assert_eq!(
        of_integers(
            json!({"array": "integer"}),
            sort_by(order("descending"), is_positive()),
            &[-1, 1, -2, 2]
        ),
        "[1,2,-1,-2]"
    );
    let colors = json!({"array": {"enum": ["red", "blue"]}});
    let members = Value::Array([1, 0, 1].map(|place| Value::Member(Member(place))).into());
    assert_eq!(outcome(&colors, &colors, &own, members), "[red,blue,blue]");
}

#[test]
fn of_items_with_equal_keys_the_first_stays() {
    let ty = json!({"array": "string"});
    let items = ["bb", "a", "cc", "", "d"];
    assert_eq!(
        of_texts(ty, each("distinct_by", length()), &items),
        r#"["bb","a",""]"#
    );
    let ty = json!({"array": "integer"});
    assert_eq!(of_integers(ty.clone(), each("distinct_by", next()), &[]), "[]");
    assert_eq!(
        of_integers(ty.clone(), each("distinct_by", next()), &[1, 1, i64::MAX]),
        "failed integer_overflow at 3"
    );
    // Any type can be a key: records compare by equality.
    let key = json!({"record": {"fields": [
        {"name": "sign", "value": call("integer.sign", &[local(0)])},
        {"name": "none", "value": {"literal": {"type": {"optional": "string"}, "value": null}}},
    ]}});
    assert_eq!(
        of_integers(ty, each("distinct_by", key), &[-5, 2, -1, 0, 7]),
        "[-5,2,0]"
    );
    let xs = json!({"array": "decimal"});
    assert_eq!(
        outcome(
            &xs,
            &xs,
            &each("distinct_by", local(0)),
            decimals(&["1.0", "2", "1.00"])
        ),
        "[1.0,2]"
    );
}

#[test]
fn the_item_with_the_least_or_greatest_key() {
    let ty = json!({"optional": "string"});
    let of = |kind: &str, items: &[&str]| of_texts(ty.clone(), each(kind, length()), items);
    assert_eq!(of("min_by", &["bb", "a", "c"]), r#""a""#);
    assert_eq!(of("max_by", &["bb", "a", "cc"]), r#""bb""#);
    assert_eq!(of("min_by", &[]), "null");
    assert_eq!(of("max_by", &[]), "null");
    let some = json!({"optional": "integer"});
    assert_eq!(
        of_integers(
            some.clone(),
            each_where("max_by", is_positive(), local(0)),
            &[-1, -2]
        ),
        "null"
    );
    assert_eq!(
        of_integers(some, each("max_by", next()), &[1, i64::MAX]),
        "failed integer_overflow at 3"
    );
    // An optional of an optional is one optional, and a null item may be the minimum.
    let xs = json!({"array": {"optional": "integer"}});
    let is_null = json!({"call": {"op": "optional.is_null", "args": [local(0)], "of": ["integer"]}});
    let items = Value::Array([Value::Integer(1), Value::Null].into());
    let chosen = |kind: &str| {
        outcome(
            &xs,
            &json!({"optional": "integer"}),
            &each(kind, is_null.clone()),
            items.clone(),
        )
    };
    assert_eq!(chosen("max_by"), "null");
    assert_eq!(chosen("min_by"), "1");
    // The best key is stored apart from its item, in nested loops too.
    let inner = json!({"for": {"kind": "max_by", "locals": [1], "over": input("xs"), "value": local(1)}});
    let least = json!({"call": {"op": "optional.unwrap", "args": [inner], "of": ["integer"]}});
    let outer = each("min_by", call("integer.subtract", &[least, local(0)]));
    assert_eq!(
        of_integers(json!({"optional": "integer"}), outer, &[3, 9, 4]),
        "9"
    );
}

#[test]
fn smallest_and_largest_of_every_ordered_type() {
    let of = |kind: &str, element: Json, items: Value| {
        outcome(&json!({"array": element}), &element, &each(kind, local(0)), items)
    };
    let booleans = || Value::Array([true, false, true].map(Value::Boolean).into());
    assert_eq!(of("min", json!("boolean"), booleans()), "false");
    assert_eq!(of("max", json!("boolean"), booleans()), "true");
    let color = json!({"enum": ["red", "blue", "green"]});
    let members = || Value::Array([1, 2, 1].map(|place| Value::Member(Member(place))).into());
    assert_eq!(of("min", color.clone(), members()), "blue");
    assert_eq!(of("max", color, members()), "green", "as declared, not by name");
    assert_eq!(
        of("max", json!("boolean"), Value::Array([].into())),
        "failed empty_collection at 2"
    );
}

#[test]
fn averages_are_exact() {
    let ty = json!("decimal");
    let of = |items: &[i64]| of_integers(ty.clone(), each("avg", local(0)), items);
    assert_eq!(of(&[1, 2]), "1.5");
    assert_eq!(
        of(&[i64::MAX, i64::MAX]),
        i64::MAX.to_string(),
        "the sum is no integer"
    );
    assert_eq!(of(&[1, 1, 2]), "1.333333333333333333333333333333333");
    assert_eq!(of(&[]), "failed empty_collection at 2");
    assert_eq!(
        of_integers(ty.clone(), each_where("avg", is_positive(), local(0)), &[-1]),
        "failed empty_collection at 5"
    );
    let xs = json!({"array": "decimal"});
    let of = |items: &[&str]| outcome(&xs, &ty, &each("avg", local(0)), decimals(items));
    assert_eq!(of(&["1.00", "2.00"]), "1.50");
    assert_eq!(of(&["9E+999", "9E+999"]), "failed decimal_overflow at 2");
    assert_eq!(
        of(&["9E+999", "9E+999", "-9E+999"]),
        "failed decimal_overflow at 2",
        "every partial sum is within the limits"
    );
    assert_eq!(of(&[]), "failed empty_collection at 2");
    // All values are computed before the sum.
    let one = call("decimal.divide", &[local(0), local(0)]);
    let sum = call("decimal.multiply", &[local(0), one]);
    assert_eq!(
        outcome(&xs, &ty, &each("avg", sum), decimals(&["9E+999", "9E+999", "0"])),
        "failed division_by_zero at 4"
    );
}

#[test]
fn items_are_grouped_counted_and_found_by_keys() {
    let items = ["bb", "a", "cc", "d", "bb"];
    let groups = json!({"map": ["integer", {"array": "string"}]});
    assert_eq!(
        of_texts(groups.clone(), each("group_by", length()), &items),
        r#"{1:["a","d"],2:["bb","cc","bb"]}"#
    );
    assert_eq!(of_texts(groups, each("group_by", length()), &[]), "{}");
    let counts = json!({"map": ["integer", "integer"]});
    assert_eq!(
        of_texts(counts.clone(), each("count_by", length()), &items),
        "{1:2,2:3}"
    );
    assert_eq!(of_texts(counts, each("count_by", length()), &[]), "{}");
    let index = json!({"map": ["integer", "string"]});
    assert_eq!(
        of_texts(index.clone(), each("index_by", length()), &["bb", "a"]),
        r#"{1:"a",2:"bb"}"#
    );
    assert_eq!(
        of_texts(index.clone(), each("index_by", length()), &["bb", "a", "cc"]),
        "failed duplicate_key at 3"
    );
    assert_eq!(of_texts(index, each("index_by", length()), &[]), "{}");
    // The first failure is reported, whatever its kind.
    let by_next = json!({"map": ["integer", "integer"]});
    assert_eq!(
        of_integers(by_next.clone(), each("index_by", next()), &[1, 1, i64::MAX]),
        "failed duplicate_key at 4"
    );
    assert_eq!(
        of_integers(by_next, each("count_by", next()), &[1, 1, i64::MAX]),
        "failed integer_overflow at 3"
    );
    let signs = json!({"map": ["boolean", {"array": "integer"}]});
    assert_eq!(
        of_integers(signs, each("group_by", is_positive()), &[1, -1, 2]),
        "{false:[-1],true:[1,2]}"
    );
}

#[test]
fn groups_of_one_loop_are_not_those_of_the_next() {
    // For each x, the number of items up to it by sign.
    let inner = json!({"for": {
        "kind": "group_by", "locals": [1], "over": input("xs"),
        "where": call("integer.less_or_equal", &[local(1), local(0)]),
        "value": call("integer.greater", &[local(1), integer(0)]),
    }});
    let ty = json!({"array": {"map": ["boolean", {"array": "integer"}]}});
    assert_eq!(
        of_integers(ty, each("array", inner), &[-1, 2, 1]),
        "[{false:[-1]},{false:[-1],true:[2,1]},{false:[-1],true:[1]}]"
    );
}

#[test]
fn a_condition_takes_or_drops_the_first_items() {
    let ty = json!({"array": "integer"});
    let of = |kind: &str, value: Json, items: &[i64]| of_integers(ty.clone(), each(kind, value), items);
    assert_eq!(of("take_while", is_positive(), &[1, 2, -1, 3]), "[1,2]");
    assert_eq!(of("take_while", is_positive(), &[]), "[]");
    assert_eq!(of("take_while", is_positive(), &[1, 2]), "[1,2]");
    assert_eq!(of("drop_while", is_positive(), &[1, 2, -1, 3]), "[-1,3]");
    assert_eq!(of("drop_while", is_positive(), &[]), "[]");
    assert_eq!(of("drop_while", is_positive(), &[1, 2]), "[]");
    // Both stop as early as they can.
    assert_eq!(of("take_while", next_is_positive(), &[1, -5, i64::MAX]), "[1]");
    assert_eq!(
        of("drop_while", next_is_positive(), &[1, -5, i64::MAX]),
        format!("[-5,{}]", i64::MAX)
    );
    assert_eq!(
        of("take_while", next_is_positive(), &[1, i64::MAX]),
        "failed integer_overflow at 3"
    );
    assert_eq!(
        of("drop_while", next_is_positive(), &[1, i64::MAX]),
        "failed integer_overflow at 3"
    );
    // Filtered items decide nothing.
    let small = call("integer.less", &[local(0), integer(10)]);
    assert_eq!(
        of_integers(
            ty.clone(),
            each_where("take_while", small.clone(), is_positive()),
            &[1, 20, 2, -1, 3]
        ),
        "[1,2]"
    );
    assert_eq!(
        of_integers(
            ty.clone(),
            each_where("drop_while", small, is_positive()),
            &[1, 20, -1, 30, 3]
        ),
        "[-1,3]"
    );
    // An inner loop drops items again each time it starts.
    let inner = json!({"for": {
        "kind": "drop_while", "locals": [1], "over": input("xs"), "value": call("integer.less", &[local(1), local(0)]),
    }});
    assert_eq!(
        of_integers(
            json!({"array": {"array": "integer"}}),
            each("array", inner),
            &[1, 3, 2]
        ),
        "[[1,3,2],[3,2],[3,2]]"
    );
}

#[test]
fn a_fold_goes_on_with_what_it_has() {
    let ten_times = call("integer.multiply", &[local(1), integer(10)]);
    let digits = fold(integer(0), call("integer.add", &[ten_times, local(0)]));
    let ty = json!("integer");
    assert_eq!(of_integers(ty.clone(), digits.clone(), &[1, 2, 3]), "123");
    assert_eq!(of_integers(ty.clone(), digits.clone(), &[]), "0");
    assert_eq!(
        of_integers(ty.clone(), digits, &[i64::MAX, 1]),
        "failed integer_overflow at 4"
    );
    // The value may be the accumulator or the item, and conditions may use both.
    assert_eq!(of_integers(ty.clone(), fold(integer(7), local(1)), &[1, 2]), "7");
    assert_eq!(of_integers(ty.clone(), fold(integer(7), local(0)), &[1, 2]), "2");
    let largest = json!({"if": {
        "condition": call("integer.greater", &[local(0), local(1)]), "then": local(0), "else": local(1),
    }});
    assert_eq!(
        of_integers(ty.clone(), fold(integer(2), largest), &[1, 5, 3]),
        "5"
    );
    let all = fold(
        json!({"literal": {"type": "boolean", "value": true}}),
        json!({"and": [is_positive(), local(1)]}),
    );
    assert_eq!(of_integers(json!("boolean"), all.clone(), &[1, 2]), "true");
    assert_eq!(of_integers(json!("boolean"), all.clone(), &[1, -2, 3]), "false");
    // As the right operand of `and`, which computes to the same register.
    let both = json!({"and": [{"literal": {"type": "boolean", "value": true}}, all]});
    assert_eq!(of_integers(json!("boolean"), both, &[-1, 2]), "false");
    // `with` is evaluated once, after `over` and before the first item, even without items.
    let by_zero = call("integer.quot", &[integer(1), integer(0)]);
    assert_eq!(
        of_integers(ty.clone(), fold(by_zero, next()), &[]),
        "failed division_by_zero at 3"
    );
    // A fold of folds: [x, y in xs: acc * 2 + y] for each x, starting with the last one.
    let double = call(
        "integer.add",
        &[call("integer.multiply", &[local(3), integer(2)]), local(2)],
    );
    let inner = json!({"for": {"kind": "fold", "locals": [2, 3], "over": input("xs"), "with": local(1), "value": double}});
    assert_eq!(of_integers(ty, fold(integer(1), inner), &[1, 0]), "26");
    // A collection that a loop builds is a value like any other.
    let appended = json!({"call": {"op": "array.append", "args": [local(1), local(0)], "of": ["integer"]}});
    let nothing = json!({"array": {"items": [], "of": "integer"}});
    assert_eq!(
        of_integers(json!({"array": "integer"}), fold(nothing, appended), &[3, 1]),
        "[3,1]"
    );
}

#[test]
fn folds_go_over_maps_with_two_or_three_locals() {
    let map = json!({"map": ["string", "integer"]});
    let entries = || map_of(&[("b", 2), ("a", 1), ("c", 3)]);
    let empty = json!({"literal": {"type": "string", "value": ""}});
    let keys = fold(empty, call("text.concat", &[local(1), local(0)]));
    assert_eq!(outcome(&map, &json!("string"), &keys, entries()), r#""abc""#);
    let ten_times = call("integer.multiply", &[local(2), integer(10)]);
    let values = json!({"for": {
        "kind": "fold", "locals": [0, 1, 2], "over": input("xs"), "with": integer(0),
        "value": call("integer.add", &[ten_times, local(1)]),
    }});
    assert_eq!(outcome(&map, &json!("integer"), &values, entries()), "123");
}

#[test]
fn sets_and_maps_have_their_members_and_keys_as_items() {
    let out = json!({"array": "string"});
    let by_length = sort_by(order("descending"), length());
    assert_eq!(
        outcome(
            &json!({"set": "string"}),
            &out,
            &by_length,
            set_of(&["b", "cc", "a"])
        ),
        r#"["cc","a","b"]"#
    );
    let map = json!({"map": ["string", "integer"]});
    let entries = || map_of(&[("b", 2), ("aa", 1)]);
    assert_eq!(outcome(&map, &out, &by_length, entries()), r#"["aa","b"]"#);
    assert_eq!(
        outcome(
            &map,
            &json!({"map": ["integer", "string"]}),
            &each("index_by", length()),
            entries()
        ),
        r#"{1:"b",2:"aa"}"#
    );
    assert_eq!(
        outcome(
            &map,
            &json!({"optional": "string"}),
            &each("max_by", length()),
            entries()
        ),
        r#""aa""#
    );
    let is_short = call("integer.less", &[length(), integer(2)]);
    assert_eq!(
        outcome(&map, &out, &each("drop_while", is_short), entries()),
        r#"["aa","b"]"#
    );
}

#[test]
fn only_the_filter_is_marked_and_each_time() {
    let inputs = json!([{"name": "xs", "type": {"array": "integer"}}]);
    let marks = |expression: Json, ty: Json, items: &[i64]| {
        let program = load(&returning(&inputs, &ty, &expression));
        run(&program, &[integers(items)]).0
    };
    let small = call("integer.less", &[local(0), integer(10)]);
    let array = json!({"array": "integer"});
    // xs, x, 10, x < 10, then the value: after the first kept item the filter is still evaluated, the value is not.
    assert_eq!(
        marks(
            each_where("drop_while", small.clone(), is_positive()),
            array.clone(),
            &[1, -1, 20, 5]
        ),
        ["3:true", "3:true", "3:false", "3:true"]
    );
    assert_eq!(
        marks(
            each_where("take_while", small.clone(), is_positive()),
            array,
            &[1, -1, 20]
        ),
        ["3:true", "3:true"]
    );
    // xs, 0, x, 10, x < 10, …: `with` of `fold` comes before its filter.
    let mut total = fold(integer(0), call("integer.add", &[local(1), local(0)]));
    total["for"]["where"] = small;
    assert_eq!(marks(total, json!("integer"), &[1, 20]), ["4:true", "4:false"]);
}
