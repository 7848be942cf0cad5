//! Compiled code against the interpreter on the same programs and inputs: outcome, fuel and path agree.
//!
//! Each program also runs with every guard failing in turn.
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
#[path = "../../vesper-interp/tests/support/mod.rs"]
mod support;
#[path = "../../vesper-interp/tests/support/tree.rs"]
mod tree;

use compare::{Report, compare};
use draw::Random;
use flow::build;
use serde_json::{Value as Json, json};
use support::load;
use tree::{call, each_where, input, integer, local, returning};
use vesper_interp::native::run_on;
use vesper_interp::{Limits, Outcome, Program, Watch};
use vesper_ir::{Decimal, Value};
use vesper_jit::{Options, asm, clif, compile};

/// Compares both tiers and returns the report of an agreement.
fn same(program: &Program, seed: u64, count: usize, forced: usize) -> Report {
    compare(program, seed, count, forced).unwrap_or_else(|difference| panic!("{difference}"))
}

/// A type of drawn expressions.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Boolean,
    Integer,
    Float,
    Decimal,
}

const KINDS: [(Kind, &str); 4] = [
    (Kind::Boolean, "boolean"),
    (Kind::Integer, "integer"),
    (Kind::Float, "float"),
    (Kind::Decimal, "decimal"),
];

fn name(kind: Kind) -> &'static str {
    KINDS.iter().find(|(own, _)| *own == kind).unwrap().1
}

/// Draws an expression of this type over the inputs `x_integer`, `y_integer` and so on.
fn expression(kind: Kind, random: &mut Random, depth: u32) -> Json {
    if depth == 0 || random.below(8) == 0 {
        return leaf(kind, random);
    }
    let mut part = |kind| expression(kind, random, depth - 1);
    let binary = |op: &str, left: Json, right: Json| call(&format!("{}.{op}", name(kind)), &[left, right]);
    let choice = |part: &mut dyn FnMut(Kind) -> Json| json!({"if": {"condition": part(Kind::Boolean), "then": part(kind), "else": part(kind)}});
    match kind {
        Kind::Boolean => {
            let of = KINDS[1 + usize::try_from(depth % 3).unwrap()].0;
            let (left, right) = (part(of), part(of));
            let compared = |op: &str| call(&format!("{}.{op}", name(of)), &[left.clone(), right.clone()]);
            let (first, second) = (part(Kind::Boolean), part(Kind::Boolean));
            match random.below(9) {
                0 => compared("equal"),
                1 => compared("not_equal"),
                2 => compared("less"),
                3 => compared("less_or_equal"),
                4 => compared("greater"),
                5 => compared("greater_or_equal"),
                6 => json!({"and": [first, second]}),
                7 => json!({"or": [first, second]}),
                _ => call("boolean.not", &[first]),
            }
        }
        Kind::Integer => {
            let (left, right) = (part(kind), part(kind));
            let other = choice(&mut part);
            match random.below(15) {
                0 | 1 => binary("add", left, right),
                2 => binary("subtract", left, right),
                3 | 4 => binary("multiply", left, right),
                5 => binary("quot", left, right),
                6 => binary("rem", left, right),
                7 => binary("div_floor", left, right),
                8 => binary("mod", left, right),
                9 => binary("bit_and", left, right),
                10 => binary("bit_xor", left, right),
                11 => call("integer.negate", &[left]),
                12 => call("integer.abs", &[left]),
                13 => call("integer.bit_not", &[left]),
                _ => other,
            }
        }
        Kind::Float => {
            let (left, right) = (part(kind), part(kind));
            let whole = part(Kind::Integer);
            let other = choice(&mut part);
            match random.below(8) {
                0 => binary("add", left, right),
                1 => binary("subtract", left, right),
                2 => binary("multiply", left, right),
                3 => binary("divide", left, right),
                4 => binary(
                    "divide",
                    left,
                    json!({"literal": {"type": "float", "value": "-8.0"}}),
                ),
                5 => call("integer.to_float", &[whole]),
                _ => other,
            }
        }
        Kind::Decimal => {
            let (left, right) = (part(kind), part(kind));
            let whole = part(Kind::Integer);
            let other = choice(&mut part);
            match random.below(8) {
                0 | 1 => binary("add", left, right),
                2 => binary("subtract", left, right),
                3 => binary("multiply", left, right),
                4 => call("decimal.negate", &[left]),
                5 => call("decimal.from_integer", &[whole]),
                _ => other,
            }
        }
    }
}

fn leaf(kind: Kind, random: &mut Random) -> Json {
    let given = |letter: &str| input(&format!("{letter}_{}", name(kind)));
    let literals: &[Json] = &match kind {
        Kind::Boolean => [json!(true), json!(false), json!(true)],
        Kind::Integer => [json!(0), json!(-1), json!(9_223_372_036_854_775_807_i64)],
        Kind::Float => [json!("0.5"), json!("NaN"), json!("-0.0")],
        Kind::Decimal => [json!("0"), json!("100"), json!("0.029")],
    };
    match random.below(5) {
        0 | 1 => given("x"),
        2 | 3 => given("y"),
        _ => {
            let literal = &literals[usize::try_from(random.below(3)).unwrap()];
            json!({"literal": {"type": name(kind), "value": literal}})
        }
    }
}

fn inputs() -> Json {
    let of = |letter: &str| KINDS.map(|(_, name)| json!({"name": format!("{letter}_{name}"), "type": name}));
    Json::Array([of("x"), of("y")].concat())
}

/// Draws a program of any kind.
fn drawn(seed: u64) -> Program {
    let mut random = Random(seed * 7_919 + 1);
    let (kind, ty) = KINDS[usize::try_from(seed % 4).unwrap()];
    load(&returning(
        &inputs(),
        &json!(ty),
        &expression(kind, &mut random, 4),
    ))
}

#[test]
fn drawn_expressions_come_to_the_same() {
    let (mut whole, mut without_frame, mut scaled) = (0, 0, 0);
    for seed in 0..60 {
        let mut random = Random(seed * 7_919 + 1);
        let (kind, ty) = KINDS[usize::try_from(seed % 4).unwrap()];
        let program = load(&returning(
            &inputs(),
            &json!(ty),
            &expression(kind, &mut random, 4),
        ));
        let report = same(&program, seed, 48, 4);
        whole += report.whole;
        without_frame += report.without_frame;
        scaled += report.scaled;
    }
    assert!(
        without_frame > 60 * 10,
        "only {without_frame} runs were done without a frame"
    );
    assert!(
        scaled > 60,
        "only {scaled} runs were done by code that knows the scales of its inputs"
    );
    // Most inputs are ordinary and run without the interpreter.
    assert!(
        whole > 60 * 48,
        "only {whole} runs were done by compiled code alone"
    );
}

/// A loop over a range with integers, floats and choices in its rounds.
fn rounds(body: Json, start: Json) -> Program {
    load(&build(&json!({
        "inputs": [{"name": "n", "type": "integer"}, {"name": "seed", "type": "integer"}],
        "outputs": {"success": [{"name": "result", "type": "integer"}]},
        "body": [
            {"loop": {
                "name": "run", "locals": [0],
                "over": call("array.range", &[integer(0), input("n"), integer(1)]),
                "state": [{"local": 1, "name": "sum", "value": start}],
                "max": 100_000, "next": [{"local": 1, "value": body}],
            }},
            {"return": {"success": [{"name": "result", "value": json!({"field": {"of": {"step": "run"}, "name": "sum"}})}]}},
        ],
    })))
}

#[test]
fn items_of_arrays_sets_and_choices_in_loops() {
    let of_integers = json!([{"name": "xs", "type": {"array": "integer"}}]);
    let is_small = call("integer.less", &[local(0), integer(10)]);
    let doubled = call("integer.multiply", &[local(0), integer(2)]);
    for kind in ["sum", "min", "max", "count"] {
        let program = load(&returning(
            &of_integers,
            &json!("integer"),
            &each_where(kind, is_small.clone(), doubled.clone()),
        ));
        same(&program, 3, 48, 6);
    }
    let program = load(&returning(
        &of_integers,
        &json!({"array": "integer"}),
        &each_where("array", is_small, doubled),
    ));
    same(&program, 4, 48, 6);
}

/// Sums over the fields of records.
fn of_records() -> Vec<Program> {
    let line = json!({"record": [
        {"name": "price", "type": "decimal"}, {"name": "count", "type": "integer"}, {"name": "name", "type": "string"},
    ]});
    let field = |name: &str| json!({"field": {"of": local(0), "name": name}});
    let worth = call(
        "decimal.multiply",
        &[call("decimal.from_integer", &[field("count")]), field("price")],
    );
    let is_counted = call("integer.greater", &[field("count"), integer(2)]);
    let toy = json!({"literal": {"type": "string", "value": "toy"}});
    let is_named = call("text.equal", &[field("name"), toy]);
    let inputs = json!([{"name": "xs", "type": {"array": line}}]);
    let programs = [is_counted, is_named].map(|filter| {
        load(&returning(
            &inputs,
            &json!("decimal"),
            &each_where("sum", filter, worth.clone()),
        ))
    });
    programs.into()
}

#[test]
fn fields_of_records_in_loops() {
    for program in of_records() {
        let report = same(&program, 5, 64, 8);
        assert!(report.whole > 10 && report.without_frame > 10, "only {report}");
    }
}

/// One program per case that drawn expressions rarely reach.
fn edges() -> Vec<Program> {
    let literal = |ty: &str, value: Json| json!({"literal": {"type": ty, "value": value}});
    let (x, y) = (input("x_integer"), input("y_decimal"));
    let most = integer(i64::MAX);
    let chosen = json!({"if": {
        "condition": input("x_boolean"), "then": call("integer.add", &[x.clone(), most]), "else": integer(1),
    }});
    let of_integers = json!([{"name": "xs", "type": {"array": "integer"}}]);
    let all = call("integer.greater_or_equal", &[local(0), integer(0)]);
    let counted = load(&build(&json!({
        "inputs": [{"name": "x", "type": "integer"}],
        "outputs": {"success": [{"name": "result", "type": "integer"}]},
        "body": [
            {"loop": {
                "name": "l", "max": 3, "state": [{"local": 0, "name": "n", "value": input("x")}],
                "while": call("integer.less", &[local(0), integer(10)]),
                "next": [{"local": 0, "value": call("integer.add", &[local(0), integer(3)])}],
            }},
            {"return": {"success": [{"name": "result", "value": json!({"field": {"name": "n", "of": {"step": "l"}}})}]}},
        ],
    })));
    let mut programs = vec![
        counted,
        load(&returning(
            &of_integers,
            &json!("integer"),
            &each_where("sum", all, local(0)),
        )),
    ];
    programs.extend(
        [
            (
                "float",
                call(
                    "float.divide",
                    &[input("x_float"), literal("float", json!("3.0"))],
                ),
            ),
            (
                "boolean",
                call("decimal.less", &[literal("decimal", json!("0")), y]),
            ),
            ("boolean", call("integer.greater_or_equal", &[x.clone(), x])),
            ("integer", chosen),
        ]
        .map(|(ty, tree)| load(&returning(&inputs(), &json!(ty), &tree))),
    );
    programs
}

#[test]
fn what_is_seldom_drawn_comes_to_the_same() {
    for program in edges() {
        same(&program, 21, 64, 8);
    }
}

fn returned(program: &Program, given: &[Value]) -> String {
    let code = program.plain_code();
    let native = compile(code, None, &Options::default()).unwrap();
    let shown = run_on(
        program,
        code,
        Some(&*native),
        given.to_vec(),
        None,
        Limits::default(),
    );
    assert_eq!(
        shown.left_at,
        code.instructions.len(),
        "compiled code did not do it alone"
    );
    format!("{:?}", shown.outcome)
}

#[test]
fn a_decimal_keeps_its_scale_and_what_is_long_is_left_to_the_interpreter() {
    let inputs = json!([{"name": "x", "type": "decimal"}, {"name": "y", "type": "decimal"}]);
    let sum = call("decimal.add", &[input("x"), input("y")]);
    let program = load(&returning(&inputs, &json!("decimal"), &sum));
    let decimal = |coefficient: i128, scale: u16| Value::Decimal(Decimal::new(coefficient, scale).unwrap());
    assert_eq!(
        returned(&program, &[decimal(100, 2), decimal(5, 1)]),
        "Returned([Decimal(Decimal(1.50))])"
    );
    let code = program.plain_code();
    let native = compile(code, None, &Options::default()).unwrap();
    let long = [decimal(i128::from(i64::MAX) + 1, 0), decimal(1, 0)];
    let edge = [decimal(i128::from(i64::MAX), 0), decimal(1, 0)];
    let apart = [decimal(1, 0), decimal(1, 19)];
    for given in [long, edge, apart] {
        let shown = run_on(
            &program,
            code,
            Some(&*native),
            given.to_vec(),
            None,
            Limits::default(),
        );
        let expected = run_on(&program, code, None, given.to_vec(), None, Limits::default());
        assert_eq!(shown.left_at, 0, "{given:?} is not small");
        assert_eq!(format!("{:?}", shown.outcome), format!("{:?}", expected.outcome));
    }
}

#[test]
fn decimals_of_the_quick_level_are_done_in_the_slots_or_left_before_the_operation() {
    let inputs = json!([{"name": "x", "type": "decimal"}, {"name": "y", "type": "decimal"}]);
    let constant = json!({"literal": {"type": "decimal", "value": "0.25"}});
    let options = Options {
        quick_from: 0,
        ..Options::default()
    };
    let decimal =
        |coefficient: i64, scale: u16| Value::Decimal(Decimal::new(i128::from(coefficient), scale).unwrap());
    let least = i64::MIN;
    for (op, long) in [
        ("add", (decimal(i64::MAX, 2), decimal(0, 0))),
        ("subtract", (decimal(least, 2), decimal(0, 0))),
        ("multiply", (decimal(least, 2), decimal(-1, 0))),
        ("multiply", (decimal(1, 600), decimal(1, 600))),
    ] {
        let op = format!("decimal.{op}");
        // The second operation receives the result of the first and a constant.
        let first = call(&op, &[input("x"), input("y")]);
        let both = call(&op, &[first, constant.clone()]);
        let program = load(&returning(&inputs, &json!("decimal"), &both));
        let code = program.plain_code();
        let native = compile(code, None, &options).unwrap();
        let end = code.instructions.len();
        let usual = [decimal(100, 2), decimal(5, 1)];
        for (given, is_whole) in [(usual, true), ([long.0, long.1], false)] {
            let run = |native| run_on(&program, code, native, given.to_vec(), None, Limits::default());
            let (shown, expected) = (run(Some(&*native)), run(None));
            assert_eq!(shown.left_at == end, is_whole, "{op} of {given:?}");
            assert_eq!(format!("{:?}", shown.outcome), format!("{:?}", expected.outcome));
        }
        same(&program, 17, 64, 8);
    }
}

#[test]
fn fuel_that_is_given_in_portions_does_not_end_compiled_code() {
    let sum = call("integer.bit_xor", &[local(1), local(0)]);
    let program = rounds(sum, input("seed"));
    let code = program.plain_code();
    let native = compile(code, None, &Options::default()).unwrap();
    let watch = Some(Watch(|| false));
    for fuel in [9_999, 10_000, 20_000] {
        let limits = Limits {
            fuel,
            watch,
            ..Limits::default()
        };
        let given = || vec![Value::Integer(10_000), Value::Integer(1)];
        let shown = run_on(&program, code, Some(&*native), given(), None, limits);
        let expected = run_on(&program, code, None, given(), None, limits);
        assert_eq!(
            (shown.fuel, format!("{:?}", shown.outcome)),
            (expected.fuel, format!("{:?}", expected.outcome))
        );
        assert_eq!(
            shown.left_at == code.instructions.len(),
            fuel >= 10_000,
            "{fuel}: left at {}",
            shown.left_at
        );
        assert_eq!(matches!(shown.outcome, Outcome::LimitHit(_)), fuel < 10_000);
    }
}

#[test]
fn rounds_that_overflow_in_the_middle_go_on_in_the_interpreter() {
    let step = call("integer.multiply", &[local(1), integer(3)]);
    let program = rounds(step, input("seed"));
    let report = same(&program, 11, 96, 12);
    assert!(report.whole > 40, "only {report}");
}

#[test]
fn code_that_is_too_long_is_not_compiled_and_says_why() {
    let sum = call("integer.add", &[input("x_integer"), input("y_integer")]);
    let program = load(&returning(&inputs(), &json!("integer"), &sum));
    let options = Options {
        max_instructions: 0,
        ..Options::default()
    };
    let why = compile(program.plain_code(), None, &options)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        why.contains("instructions, and code of more than 0 is not compiled"),
        "{why}"
    );
}

#[test]
fn people_may_look_at_it() {
    let sum = call("integer.add", &[input("x_integer"), input("y_integer")]);
    let program = load(&returning(&inputs(), &json!("integer"), &sum));
    let shown = clif(program.plain_code()).unwrap();
    assert!(shown.contains("sadd_overflow"), "{shown}");
    assert!(!asm(program.plain_code()).unwrap().is_empty());
    let native = compile(program.plain_code(), None, &Options::default()).unwrap();
    assert!(native.size() > 0 && native.guards() == 1);
}
