//! Fuzz target for documents: decode, verify, link, compile and execute.
//!
//! The first line of an input is the document, the others are documents of nodes that it may call. Inputs have the
//! declared types. A document that is not well formed is rejected. One that loads must execute without a panic or
//! engine fault, and have the same kind of outcome traced and untraced.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_crossover, fuzz_mutator, fuzz_target, fuzzer_mutate};
use vesper_fuzz::{Random, mutation, sample::sample};
use vesper_interp::{Advanced, Completion, Limits, Outcome, Program, Request};
use vesper_ir::{FailureCode, Value};

/// Fuel limit, small so that a long loop ends early.
const FUEL: u64 = 2_000;
const ROUNDS: usize = 3;
const REQUESTS: usize = 20;

fuzz_target!(|data: &[u8]| -> Corpus {
    let mut lines = data.split(|byte| *byte == b'\n');
    let Some(document) = lines.next() else {
        return Corpus::Keep;
    };
    let others: Vec<&[u8]> = lines.take(32).collect();
    let Ok(program) = Program::load_with(document, &others) else {
        return Corpus::Keep;
    };
    let mut random = Random::of(data);
    for _ in 0..ROUNDS {
        let seed = random.next();
        let traced = outcome_kind(&program, seed, true);
        let plain = outcome_kind(&program, seed, false);
        assert_eq!(traced, plain, "a trace changes how an execution ends");
    }
    if !program.asks() {
        let now = program.uses_now().then_some(Value::Timestamp(0));
        let shown = program.run_json(b"{}", now, limits());
        assert!(!shown.contains("engine_fault"), "{shown}");
    }
    Corpus::Keep
});

fn limits() -> Limits {
    Limits {
        fuel: FUEL,
        ..Limits::default()
    }
}

/// Executes a program on inputs drawn from the seed. Returns the kind of its outcome and the number of its requests.
fn outcome_kind(program: &Program, seed: u64, is_traced: bool) -> (String, usize) {
    let mut random = Random::new(seed);
    let inputs: Vec<Value> = program
        .node()
        .inputs
        .iter()
        .map(|input| sample(&input.ty, &mut random))
        .collect();
    let now = Some(Value::Timestamp(1_700_000_000_000_000));
    let mut execution = program
        .start_within(inputs, now, is_traced, limits())
        .expect("inputs and a time are given");
    let mut advanced = execution.advance([]).expect("it begins");
    let mut requests = 0;
    loop {
        let wave = match advanced {
            Advanced::Done(outcome, _) => return (outcome_word(&outcome), requests),
            Advanced::Blocked(_) if requests >= REQUESTS => return ("left waiting".to_owned(), requests),
            Advanced::Blocked(wave) => wave,
        };
        requests += wave.len();
        let completions: Vec<_> = wave
            .iter()
            .map(|request| (request.id, completion(request, &mut random)))
            .collect();
        advanced = execution.advance(completions).expect("it waits for these");
    }
}

fn completion(request: &Request, random: &mut Random) -> Completion {
    match random.below(8) {
        0 => Completion::Failed(FailureCode::new("timeout")),
        1 => Completion::Failed(FailureCode::new("http_404")),
        2 => Completion::Denied("network".into()),
        _ => Completion::Value(sample(&request.result, random)),
    }
}

fn outcome_word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Returned(_) => "returned".to_owned(),
        Outcome::DeclaredError(_) => "declared error".to_owned(),
        Outcome::Failed { code, expression } => format!("{} at {expression:?}", code.name()),
        Outcome::ContractBroken { phase, clause, .. } => format!("{phase:?} {clause}"),
        Outcome::Denied(what) => format!("denied {what}"),
        Outcome::LimitHit(what) => format!("limit {what}"),
        Outcome::Fault(what) => panic!("a fault of the engine: {what}"),
    }
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutation::mutate(data, size, max_size, seed, fuzzer_mutate)
});

fuzz_crossover!(|data1: &[u8], data2: &[u8], out: &mut [u8], seed: u32| {
    let text = mutation::cross(data1, data2, &mut Random::new(u64::from(seed)));
    let size = text.len().min(out.len());
    out[..size].copy_from_slice(&text[..size]);
    size
});
