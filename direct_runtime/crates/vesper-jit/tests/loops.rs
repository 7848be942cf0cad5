//! Compiled loops that choose between floats in each round: by masks, and counted for the path.
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
use loops::{all, between};
use tree::{input, integer};
use vesper_interp::native::run_on;
use vesper_interp::{Limits, Program};
use vesper_ir::Value;
use vesper_jit::{Options, asm, asm_without_frame, compile};

#[test]
fn choices_in_loops_come_to_the_same() {
    for (name, program) in all() {
        let report = compare(&program, 31, 64, 8);
        let report = report.unwrap_or_else(|difference| panic!("{name}: {difference}"));
        assert!(report.whole > 5, "{name}: only {report}");
        assert!(report.without_frame > 5, "{name}: only {report}");
    }
}

fn run(program: &Program, is_compiled: bool, given: [i64; 2], fuel: u64) -> String {
    let code = program.pathed_code().unwrap();
    let native = compile(code, None, &Options::default()).unwrap();
    let native = is_compiled.then_some(&*native);
    let limits = Limits {
        fuel,
        ..Limits::default()
    };
    let given = given.map(Value::Integer).to_vec();
    let shown = run_on(program, code, native, given, None, limits);
    format!("{:?} {:?} {}", shown.outcome, shown.path, shown.fuel)
}

#[test]
fn the_path_knows_both_ways_of_every_choice_wherever_a_loop_is_left() {
    // No round, all rounds one way, the other way, and both; with fuel for some of them.
    let program = between(input("seed"), integer(0));
    let few = [(0, 5), (1, 5), (1, -5), (4, 100), (4, -100), (9, -4), (9, 4)];
    // Enough rounds to check the path, which is complete before, during, or never.
    let many = [
        (32, 4),
        (33, 4),
        (33, 1_000),
        (34, -4),
        (128, 4),
        (200, 1_000),
        (200, -1_000),
        (3_000, -600),
    ];
    for (rounds, seed) in few.into_iter().chain(many) {
        for fuel in [
            0, 1, 3, 4, 8, 9, 10, 31, 32, 33, 34, 127, 128, 129, 199, 200, 1_000, 10_000,
        ] {
            let expected = run(&program, false, [rounds, seed], fuel);
            assert_eq!(
                run(&program, true, [rounds, seed], fuel),
                expected,
                "{rounds} rounds from {seed}, {fuel} units"
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_round_writes_no_memory_and_has_one_jump() {
    let program = between(input("seed"), integer(0));
    let (code, shape) = (program.pathed_code().unwrap(), program.pathed_shape().unwrap());
    two_rounds(&asm(code).unwrap());
    two_rounds(&asm_without_frame(code, &shape).unwrap());
}

#[cfg(target_arch = "x86_64")]
fn two_rounds(shown: &str) {
    let blocks: Vec<&str> = shown.split("\nblock").collect();
    let mut rounds: Vec<&&str> = blocks.iter().filter(|block| block.contains("cvtsi2sd")).collect();
    rounds.sort_by_key(|round| std::cmp::Reverse(round.lines().count()));
    // One loop with notes, and one copy without.
    let [first, second] = rounds.as_slice() else {
        panic!("there are two blocks that convert an integer\n{shown}");
    };
    for round in [first, second] {
        assert!(!round.contains("jmp"), "{round}");
        assert_eq!(round.matches("cmpltpd").count(), 1, "{round}");
    }
    // A counter may have no register, because counting ends soon.
    let written = second.lines().find(|line| line.ends_with(')'));
    assert_eq!(written, None, "{second}");
    let counted = |round: &str| round.matches("subq").count();
    assert!(counted(first) > counted(second), "{first}\n{second}");
}
