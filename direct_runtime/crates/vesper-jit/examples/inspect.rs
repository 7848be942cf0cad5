//! Shows a compiled node or compares it with the interpreter.
//!
//! `inspect ir|clif|asm FILE`, `inspect compare SEED FILE...`, `inspect time ROUNDS FILE` and `inspect make ROUNDS
//! FILE` read files written by `vesper compile --emit ir`. `inspect pathed …` uses the pathed form, which live
//! traffic runs.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a tool for work on the compiler"
)]

#[path = "../tests/support/compare.rs"]
mod compare;
#[path = "../tests/support/draw.rs"]
mod draw;

use std::sync::Arc;
use std::time::Instant;

use vesper_interp::code::Code;
use vesper_interp::native::{Native, run_on};
use vesper_interp::tier::{Compiler, Tiering};
use vesper_interp::words::Shape;
use vesper_interp::{Limits, Program, Rules};
use vesper_jit::{Options, asm, clif, compile};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (is_pathed, words) = match words.as_slice() {
        ["pathed", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    match words {
        ["ir", file] => {
            for (at, instruction) in code(&load(file), is_pathed).instructions.iter().enumerate() {
                println!("{at:4} {instruction:?}");
            }
        }
        ["clif", file] => println!("{}", clif(code(&load(file), is_pathed)).unwrap()),
        ["asm", file] => println!("{}", asm(code(&load(file), is_pathed)).unwrap()),
        ["compare", seed, rest @ ..] => {
            let seed: u64 = seed.parse().expect("a seed is a number");
            for file in rest {
                // A node with callees cannot be loaded alone.
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
        ["time", rounds, file] => {
            let program = load(file);
            time(
                &program,
                code(&program, is_pathed),
                rounds.parse().expect("rounds are a number"),
            );
        }
        ["make", rounds, file] => {
            let program = load(file);
            let rounds = rounds.parse().expect("rounds are a number");
            make(code(&program, is_pathed), rounds);
        }
        _ => println!(
            "look [pathed] ir|clif|asm FILE; look compare SEED FILE...; look [pathed] time|make ROUNDS FILE"
        ),
    }
}

/// Loads a node with a compiler, so that rules for the interpreter alone do not apply.
fn load(file: &str) -> Program {
    let bytes = std::fs::read(file).expect("a file of IR");
    let tiering = Arc::new(Tiering {
        compiler: Box::new(NoCompiler),
        is_eager: false,
        calls: u32::MAX,
        operations: u64::MAX,
        max_bytes: 0,
        clock: || 0,
    });
    Program::load_tiered(&bytes, &[], Rules::ALL, &[], Some(tiering))
        .unwrap_or_else(|why| panic!("{file}: {why}"))
}

/// A compiler that refuses, because this tool compiles by itself.
#[derive(Debug)]
struct NoCompiler;

impl Compiler for NoCompiler {
    fn compile(&self, _: &Code, _: Option<Arc<Shape>>) -> Result<Box<dyn Native>, String> {
        Err("nothing is compiled in the background here".to_owned())
    }
}

fn code(program: &Program, is_pathed: bool) -> &Code {
    if is_pathed {
        program.pathed_code().expect("a pathed form")
    } else {
        program.plain_code()
    }
}

/// Compiles repeatedly and prints the best and the median time, for use under callgrind.
fn make(code: &Code, rounds: usize) {
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let before = Instant::now();
        let native = compile(code, None, &Options::default()).expect("a node that compiles");
        times.push(before.elapsed());
        std::hint::black_box(native);
    }
    times.sort();
    println!(
        "{rounds} times: best {:?}, median {:?}",
        times[0],
        times[rounds / 2]
    );
}

/// Times short rounds of each tier in turn and prints the best.
fn time(program: &Program, code: &Code, rounds: usize) {
    let before = Instant::now();
    let native = compile(code, None, &Options::default()).expect("a node that compiles");
    println!(
        "compiled in {:?}, {} bytes, {} guards",
        before.elapsed(),
        native.size(),
        native.guards()
    );
    let inputs = draw::usual(program);
    // Short enough to be rarely interrupted.
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
