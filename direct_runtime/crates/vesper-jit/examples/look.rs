//! Shows a compiled node, or compares it with the interpreter: `look ir|clif|asm FILE`, `look compare SEED FILE...`,
//! `look time ROUNDS FILE INPUT...`. Files are what `vesper compile --emit ir` writes.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a tool for those who work on the compiler"
)]

#[path = "../tests/support/compare.rs"]
mod compare;
#[path = "../tests/support/draw.rs"]
mod draw;

use std::time::Instant;

use vesper_interp::native::run_on;
use vesper_interp::{Limits, Program};
use vesper_jit::{Options, asm, clif, compile};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ir", file] => {
            for (at, instruction) in load(file).plain_code().instructions.iter().enumerate() {
                println!("{at:4} {instruction:?}");
            }
        }
        ["clif", file] => println!("{}", clif(load(file).plain_code()).unwrap()),
        ["asm", file] => println!("{}", asm(load(file).plain_code()).unwrap()),
        ["compare", seed, rest @ ..] => {
            let seed: u64 = seed.parse().expect("a seed is a number");
            for file in rest {
                // One that calls others is not whole without them.
                let Ok(program) = Program::load(&std::fs::read(file).expect("a file of IR")) else {
                    continue;
                };
                if program.asks() || program.nodes().len() > 1 {
                    continue;
                }
                match compare::compare(&program, seed, 200, 12) {
                    Ok(report) => println!("{file}: {report}"),
                    Err(difference) => println!("{file}: DIFFERENT {difference}"),
                }
            }
        }
        ["time", rounds, file] => time(&load(file), rounds.parse().expect("rounds are a number")),
        _ => println!("look ir|clif|asm FILE; look compare SEED FILE...; look time ROUNDS FILE"),
    }
}

fn load(file: &str) -> Program {
    let bytes = std::fs::read(file).expect("a file of IR");
    Program::load(&bytes).unwrap_or_else(|why| panic!("{file}: {why}"))
}

/// The best of many short rounds of each, in turn.
fn time(program: &Program, rounds: usize) {
    let code = program.plain_code();
    let before = Instant::now();
    let native = compile(code, None, &Options::default()).expect("a node that compiles");
    println!(
        "compiled in {:?}, {} bytes, {} guards",
        before.elapsed(),
        native.size(),
        native.guards()
    );
    let inputs = draw::usual(program);
    // Short enough not to be interrupted much.
    let before = Instant::now();
    run_on(program, code, None, inputs.clone(), None, Limits::default());
    let calls = (200e-6 / before.elapsed().as_secs_f64())
        .clamp(1.0, 200.0)
        .round();
    #[expect(clippy::cast_possible_truncation, reason = "at most 200")]
    let calls = calls as i32;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..rounds {
        for (best, native) in best.iter_mut().zip([None, Some(&*native)]) {
            let before = Instant::now();
            for _ in 0..calls {
                std::hint::black_box(run_on(
                    program,
                    code,
                    native,
                    inputs.clone(),
                    None,
                    Limits::default(),
                ));
            }
            *best = best.min(before.elapsed().as_secs_f64() / f64::from(calls) * 1e9);
        }
    }
    let end = run_on(program, code, Some(&*native), inputs, None, Limits::default());
    println!(
        "interpreter {:.0} ns, compiled {:.0} ns, ratio {:.3}",
        best[0],
        best[1],
        best[1] / best[0]
    );
    println!(
        "left at {} of {}: {:?}",
        end.left_at,
        code.instructions.len(),
        end.outcome
    );
}
