//! Frameless loops over ranges: outcomes, paths and fuel.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "support/compare.rs"]
mod compare;
#[path = "support/draw.rs"]
mod draw;
#[path = "../../vesper-interp/tests/support/flow.rs"]
mod flow;
#[path = "support/loops.rs"]
mod loops;
#[path = "../../vesper-interp/tests/support/mod.rs"]
mod support;
#[path = "../../vesper-interp/tests/support/tree.rs"]
mod tree;

use compare::compare;
use flow::build;
use loops::between;
use serde_json::{Value as Json, json};
use support::load;
use tree::{call, input, integer, local};
use vesper_interp::code::Code;
use vesper_interp::native::{Native, run_on};
use vesper_interp::words::{Ended, Word, Words};
use vesper_interp::{Limits, Outcome, Program};
use vesper_ir::Value;
use vesper_jit::{Options, compile};

/// A program with the machine code of both forms.
struct Made {
    program: Program,
    plain: Box<dyn Native>,
    pathed: Box<dyn Native>,
}

fn made(program: Program) -> Made {
    let made = |code: &Code, shape| compile(code, shape, &Options::default()).unwrap();
    Made {
        plain: made(program.plain_code(), program.shape()),
        pathed: made(program.pathed_code().unwrap(), program.pathed_shape()),
        program,
    }
}

impl Made {
    /// Runs without a frame and on the interpreter, and requires equal outputs if the frameless run is done.
    fn run(&self, is_pathed: bool, given: &[i64], fuel: u64) -> (Ended, Outcome) {
        let (code, native) = if is_pathed {
            (self.program.pathed_code().unwrap(), &self.pathed)
        } else {
            (self.program.plain_code(), &self.plain)
        };
        let express = native.express().expect("it has a form without a frame");
        let given: Vec<Value> = given.iter().map(|value| Value::Integer(*value)).collect();
        let mut words = Words::new(express.shape());
        for (place, value) in given.iter().enumerate() {
            assert!(words.put(place, Word::of(value).unwrap()));
        }
        let ended = express.run(&mut words, fuel);
        let limits = Limits {
            fuel,
            ..Limits::default()
        };
        let shown = run_on(&self.program, code, None, given.clone(), None, limits);
        if ended == Ended::Done {
            let Outcome::Returned(values) = &shown.outcome else {
                panic!("{given:?}: {:?}, and without a frame it returned", shown.outcome);
            };
            for (place, value) in values.iter().enumerate() {
                let (expected, got) = (Word::of(value), words.output(place));
                assert_eq!(format!("{got:?}"), format!("{expected:?}"), "{given:?}");
            }
            assert_eq!(words.path(), shown.path.unwrap_or_default(), "{given:?}");
        }
        (ended, shown.outcome)
    }

    /// Runs both forms, which must agree.
    fn both(&self, given: &[i64], fuel: u64) -> (Ended, Outcome) {
        let (plain, outcome) = self.run(false, given, fuel);
        let (pathed, _) = self.run(true, given, fuel);
        assert_eq!(plain, pathed, "{given:?} with {fuel} units");
        (plain, outcome)
    }
}

fn node(inputs: &[&str], body: Json) -> Made {
    let inputs: Vec<Json> = inputs
        .iter()
        .map(|name| json!({"name": name, "type": "integer"}))
        .collect();
    made(load(&build(&json!({
        "inputs": inputs,
        "outputs": {"success": [{"name": "result", "type": "integer"}]},
        "body": body,
    }))))
}

fn returned(value: Json) -> Json {
    json!({"return": {"success": [{"name": "result", "value": value}]}})
}

fn range(bounds: [Json; 3]) -> Json {
    call("array.range", &bounds)
}

fn over(kind: &str, item: u32, over: Json, value: Json) -> Json {
    json!({"for": {"kind": kind, "locals": [item], "over": over, "value": value}})
}

/// Returns the item count, and the items as the digits of a number, which may overflow.
fn digits(step: Json) -> Made {
    let digit = call(
        "integer.add",
        &[call("integer.multiply", &[local(1), integer(1_000)]), local(0)],
    );
    let of_run = |name: &str| json!({"field": {"of": {"step": "run"}, "name": name}});
    let sum = call(
        "integer.add",
        &[
            of_run("digits"),
            call("integer.multiply", &[of_run("count"), integer(7)]),
        ],
    );
    node(
        &["start", "end", "step"],
        json!([
            {"loop": {
                "name": "run", "locals": [0], "over": range([input("start"), input("end"), step]), "max": 100_000,
                "state": [
                    {"local": 1, "name": "digits", "value": integer(0)}, {"local": 2, "name": "count", "value": integer(0)},
                ],
                "next": [
                    {"local": 1, "value": digit},
                    {"local": 2, "value": call("integer.add", &[local(2), integer(1)])},
                ],
            }},
            returned(sum),
        ]),
    )
}

const ENDS: [i64; 13] = [
    i64::MIN,
    i64::MIN + 1,
    i64::MIN + 5,
    -4,
    -1,
    0,
    1,
    2,
    5,
    6,
    i64::MAX - 5,
    i64::MAX - 1,
    i64::MAX,
];

#[test]
fn ranges_have_the_items_that_they_have_on_the_interpreter() {
    let mut done = 0;
    for step in [1, -1, 3, -3, 0, i64::MAX, i64::MIN, 1 << 62] {
        let (known, given) = (digits(integer(step)), digits(input("step")));
        for start in ENDS {
            for end in ENDS {
                for program in [&known, &given] {
                    let (ended, outcome) = program.both(&[start, end, step], 1_000);
                    let is_returned = matches!(outcome, Outcome::Returned(_));
                    assert_eq!(
                        ended == Ended::Done,
                        is_returned,
                        "{start} to {end} by {step}: {outcome:?}"
                    );
                    done += usize::from(is_returned);
                }
            }
        }
    }
    assert!(done > 1_000, "only {done} runs returned");
}

#[test]
fn what_may_be_spent_is_spent_and_no_more() {
    let program = made(between(input("seed"), integer(0)));
    for rounds in [0, 1, 2, 31, 32, 33, 34, 128, 129, 200, 3_000] {
        for seed in [-600, -4, 4, 1_000] {
            let fuel = u64::try_from(rounds).unwrap();
            assert_eq!(program.both(&[rounds, seed], fuel).0, Ended::Done);
            assert_eq!(program.both(&[rounds, seed], fuel + 1).0, Ended::Done);
            let Some(less) = fuel.checked_sub(1) else {
                continue;
            };
            let (ended, outcome) = program.both(&[rounds, seed], less);
            assert_eq!(ended, Ended::TooLong);
            assert!(matches!(outcome, Outcome::LimitHit(_)));
        }
    }
}

#[test]
fn no_run_spends_more_than_a_millisecond_is_long_whatever_it_is_given() {
    // Frameless runs cannot be interrupted.
    let program = made(between(input("seed"), integer(0)));
    assert_eq!(program.run(false, &[10_000, 4], u64::MAX).0, Ended::Done);
    assert_eq!(program.run(true, &[10_000, 4], u64::MAX).0, Ended::Done);
    let (ended, outcome) = program.both(&[90_000, 4], 100_000);
    assert_eq!(ended, Ended::TooLong);
    assert!(matches!(outcome, Outcome::Returned(_)));
    // Longer rounds have a lower limit.
    let long = (0..100).fold(local(0), |sum, number| {
        call(
            "integer.bit_xor",
            &[sum, call("integer.bit_and", &[local(0), integer(number)])],
        )
    });
    let program = node(
        &["n"],
        json!([returned(over(
            "sum",
            0,
            range([integer(0), input("n"), integer(1)]),
            long
        ))]),
    );
    assert_eq!(program.both(&[4_000], 100_000).0, Ended::Done);
    assert_eq!(program.both(&[10_000], 100_000).0, Ended::TooLong);
}

#[test]
fn a_loop_after_another_gives_up_what_was_done() {
    let first = over("sum", 0, range([integer(0), input("n"), integer(1)]), local(0));
    let second = over("sum", 1, range([integer(0), input("m"), integer(1)]), local(1));
    let program = node(
        &["n", "m"],
        json!([returned(call("integer.add", &[first, second]))]),
    );
    assert_eq!(program.both(&[20, 30], 50).0, Ended::Done);
    // Some fuel was spent before the run gave up.
    assert_eq!(program.both(&[20, 30], 49).0, Ended::GaveUp);
    assert_eq!(program.both(&[0, 30], 29).0, Ended::TooLong);
    assert_eq!(program.both(&[20, 30], 19).0, Ended::TooLong);
}

/// Nested loops, loops that are left early, and loops with conditions.
fn others() -> Vec<(&'static str, Made)> {
    let n = || range([integer(0), input("n"), integer(1)]);
    let both = || call("integer.multiply", &[local(0), local(1)]);
    let inner = |end: Json| over("sum", 1, range([integer(-2), end, integer(2)]), both());
    let is_m = || call("integer.equal", &[local(0), input("m")]);
    let chosen = |condition: Json| {
        let turned = |bit| call("integer.bit_xor", &[input("n"), integer(bit)]);
        json!({"if": {"condition": condition, "then": turned(1), "else": turned(2)}})
    };
    let state = |more: Json| {
        let mut fields = json!({
            "name": "run", "locals": [0], "over": n(), "max": 40,
            "state": [{"local": 1, "name": "sum", "value": input("m")}],
            "next": [{"local": 1, "value": call("integer.add", &[local(1), local(0)])}],
        });
        for (name, value) in more.as_object().unwrap() {
            fields[name] = value.clone();
        }
        let sum = json!({"field": {"of": {"step": "run"}, "name": "sum"}});
        node(&["n", "m"], json!([{"loop": fields}, returned(sum)]))
    };
    let is_over = || call("integer.greater", &[local(1), integer(60)]);
    let halves = json!({"loop": {
        "name": "halves", "locals": [2], "over": range([integer(0), local(0), integer(1)]), "max": 50,
        "state": [{"local": 3, "name": "half", "value": local(1)}],
        "next": [{"local": 3, "value": call("integer.subtract", &[local(3), local(2)])}],
    }});
    let half = json!({"field": {"of": {"step": "halves"}, "name": "half"}});
    vec![
        (
            "nested",
            node(
                &["n", "m"],
                json!([returned(over("sum", 0, n(), inner(input("m"))))]),
            ),
        ),
        (
            "nested by the item",
            node(
                &["n", "m"],
                json!([returned(over("sum", 0, n(), inner(local(0))))]),
            ),
        ),
        (
            "one that is found",
            node(
                &["n", "m"],
                json!([returned(chosen(over("exists", 0, n(), is_m())))]),
            ),
        ),
        ("all of them", {
            let less = call("integer.less", &[local(0), input("m")]);
            node(
                &["n", "m"],
                json!([returned(chosen(over("forall", 0, n(), less)))]),
            )
        }),
        ("counted by a condition", {
            let odd = call(
                "integer.equal",
                &[call("integer.bit_and", &[local(0), integer(1)]), integer(1)],
            );
            let counted = json!({"for": {"kind": "count", "locals": [0], "over": n(), "where": odd, "value": local(0)}});
            node(
                &["n", "m"],
                json!([returned(call("integer.add", &[counted, input("m")]))]),
            )
        }),
        ("with state and a limit", state(json!({}))),
        ("stopped", state(json!({"stop_when": is_over()}))),
        (
            "while",
            state(json!({"while": call("integer.less", &[local(1), integer(60)])})),
        ),
        (
            "state in state",
            state(json!({"body": [halves], "next": [{"local": 1, "value": half}]})),
        ),
        ("returned from", {
            let leaves = json!({"branch": {"name": "leaves", "arms": [{"when": is_over(), "body": [returned(local(0))]}], "else": []}});
            state(json!({"body": [leaves]}))
        }),
    ]
}

#[test]
fn loops_in_loops_and_loops_that_are_left_come_to_the_same() {
    for (name, program) in others() {
        let mut done = 0;
        for n in [-1, 0, 1, 2, 5, 39, 40, 41] {
            for m in [i64::MIN, -3, 0, 1, 4, 50, 70, i64::MAX] {
                for fuel in [0, 1, 2, 5, 30, 41, 10_000] {
                    let (ended, outcome) = program.both(&[n, m], fuel);
                    let is_returned = matches!(outcome, Outcome::Returned(_));
                    assert!(is_returned || ended != Ended::Done, "{name} {n} {m}");
                    done += usize::from(ended == Ended::Done);
                    if is_returned && fuel == 10_000 && m.unsigned_abs() < 100 {
                        assert_eq!(ended, Ended::Done, "{name} {n} {m}: {outcome:?}");
                    }
                }
            }
        }
        assert!(done > 50, "{name}: only {done} runs were done without a frame");
        compare(&program.program, 5, 24, 4).unwrap_or_else(|difference| panic!("{name}: {difference}"));
    }
}

/// Decimals in the rounds of a loop and after it; known scales have their own code.
fn of_decimals() -> Program {
    let more = call(
        "decimal.add",
        &[local(1), call("decimal.multiply", &[input("price"), local(2)])],
    );
    let rate = call(
        "decimal.add",
        &[local(2), json!({"literal": {"type": "decimal", "value": "0.05"}})],
    );
    let of_run = |name: &str| json!({"field": {"of": {"step": "run"}, "name": name}});
    let body = json!([
        {"loop": {
            "name": "run", "locals": [0], "over": range([integer(0), input("n"), integer(1)]), "max": 100,
            "state": [
                {"local": 1, "name": "sum", "value": input("price")}, {"local": 2, "name": "rate", "value": input("rate")},
            ],
            "next": [{"local": 1, "value": more}, {"local": 2, "value": rate}],
        }},
        {"return": {"success": [
            {"name": "sum", "value": of_run("sum")},
            {"name": "both", "value": call("decimal.subtract", &[of_run("rate"), of_run("sum")])},
        ]}},
    ]);
    load(&build(&json!({
        "inputs": [
            {"name": "n", "type": "integer"}, {"name": "price", "type": "decimal"}, {"name": "rate", "type": "decimal"},
        ],
        "outputs": {"success": [{"name": "sum", "type": "decimal"}, {"name": "both", "type": "decimal"}]},
        "body": body,
    })))
}

#[test]
fn decimals_in_loops_come_to_the_same_with_known_scales_too() {
    let report = compare(&of_decimals(), 11, 400, 4).unwrap();
    assert!(report.without_frame > 50, "{report}");
    assert!(report.scaled > 5, "{report}");
}
