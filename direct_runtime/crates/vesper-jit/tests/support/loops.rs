//! Programs with loops whose rounds choose between floats.

use serde_json::{Value as Json, json};
use vesper_interp::Program;

use crate::flow::build;
use crate::support::load;
use crate::tree::{call, input, integer, local};

fn float(text: &str) -> Json {
    json!({"literal": {"type": "float", "value": text}})
}

fn when(condition: Json, then: Json, otherwise: Json) -> Json {
    json!({"if": {"condition": condition, "then": then, "else": otherwise}})
}

/// A loop of `n` rounds with a changing number, a sum of floats and a count, and its results.
fn build_loop(number: [Json; 2], sum: Json, count: [Json; 2]) -> Program {
    let [first, number] = number;
    let [none, count] = count;
    let of_run = |name: &str| json!({"field": {"of": {"step": "run"}, "name": name}});
    load(&build(&json!({
        "inputs": [{"name": "n", "type": "integer"}, {"name": "seed", "type": "integer"}],
        "outputs": {"success": [
            {"name": "sum", "type": "float"}, {"name": "count", "type": "integer"},
            {"name": "number", "type": "integer"},
        ]},
        "body": [
            {"loop": {
                "name": "run", "locals": [0],
                "over": call("array.range", &[integer(0), input("n"), integer(1)]),
                "state": [
                    {"local": 1, "name": "number", "value": first},
                    {"local": 2, "name": "sum", "value": float("0.0")},
                    {"local": 3, "name": "count", "value": none},
                ],
                "max": 100_000,
                "next": [
                    {"local": 1, "value": number}, {"local": 2, "value": sum}, {"local": 3, "value": count},
                ],
            }},
            {"return": {"success": [
                {"name": "sum", "value": of_run("sum")}, {"name": "count", "value": of_run("count")},
                {"name": "number", "value": of_run("number")},
            ]}},
        ],
    })))
}

fn number() -> Json {
    call("integer.to_float", &[local(1)])
}

fn is_more() -> Json {
    call("float.greater", &[number(), float("0.25")])
}

/// A loop whose number rises by one and whose choice is by its sign, so the choice flips midway. Nothing can leave
/// between the two choices.
pub(crate) fn between(first: Json, none: Json) -> Program {
    let sum = when(
        is_more(),
        call("float.add", &[local(2), number()]),
        call(
            "float.subtract",
            &[local(2), call("float.multiply", &[number(), float("0.5")])],
        ),
    );
    let turned = call("integer.bit_xor", &[local(3), integer(1)]);
    let next = call(
        "integer.bit_xor",
        &[local(1), call("integer.bit_and", &[local(0), integer(-2)])],
    );
    build_loop([first, next], sum, [none, when(is_more(), turned, local(3))])
}

/// Returns all programs with a description of each.
#[allow(clippy::too_many_lines, reason = "one entry a program")]
pub(crate) fn all() -> Vec<(&'static str, Program)> {
    let seed = || input("seed");
    let half = || call("float.multiply", &[number(), float("0.5")]);
    let added = || call("float.add", &[local(2), number()]);
    let chosen = || when(is_more(), added(), call("float.subtract", &[local(2), half()]));
    let next = || call("integer.bit_xor", &[local(1), local(0)]);
    let more = || call("integer.add", &[local(3), integer(1)]);
    let tripled = || call("integer.multiply", &[local(3), integer(3)]);
    let is_less = || call("float.less", &[number(), float("9.0")]);
    vec![
        ("nothing leaves", between(seed(), integer(0))),
        (
            "the second choice may leave",
            build_loop(
                [seed(), next()],
                chosen(),
                [integer(0), when(is_more(), more(), local(3))],
            ),
        ),
        (
            "the second choice does leave",
            build_loop(
                [seed(), next()],
                chosen(),
                [seed(), when(is_more(), tripled(), local(3))],
            ),
        ),
        (
            "what is between may leave",
            build_loop(
                [seed(), call("integer.add", &[local(1), local(1)])],
                chosen(),
                [integer(0), when(is_less(), more(), tripled())],
            ),
        ),
        (
            "a choice within a choice",
            build_loop(
                [seed(), next()],
                when(
                    is_more(),
                    when(is_less(), added(), half()),
                    call("float.subtract", &[local(2), half()]),
                ),
                [
                    integer(0),
                    when(is_less(), when(is_more(), more(), local(3)), integer(7)),
                ],
            ),
        ),
        (
            "floats that are no numbers",
            build_loop(
                [seed(), next()],
                when(
                    call(
                        "float.greater",
                        &[
                            call("float.multiply", &[local(2), float("1e+300")]),
                            float("-1.0"),
                        ],
                    ),
                    call(
                        "float.subtract",
                        &[call("float.multiply", &[added(), float("1e+300")]), half()],
                    ),
                    added(),
                ),
                [integer(0), when(is_more(), more(), integer(2))],
            ),
        ),
        (
            "products of powers of two",
            build_loop(
                [seed(), next()],
                when(
                    call(
                        "float.greater",
                        &[call("float.multiply", &[half(), float("0.25")]), float("3.0")],
                    ),
                    call(
                        "float.add",
                        &[local(2), call("float.multiply", &[half(), float("8.0")])],
                    ),
                    call(
                        "float.subtract",
                        &[local(2), call("float.multiply", &[half(), float("-4.0")])],
                    ),
                ),
                [integer(0), more()],
            ),
        ),
        (
            "a condition of integers",
            build_loop(
                [seed(), next()],
                when(call("integer.less", &[local(1), integer(3)]), added(), local(2)),
                [
                    integer(0),
                    when(
                        call("integer.less", &[local(1), integer(3)]),
                        integer(1),
                        integer(4),
                    ),
                ],
            ),
        ),
    ]
}
