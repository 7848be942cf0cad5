//! The death of the process at every append, commit and effect, and the recovery of what it left.

use std::sync::Arc;

use vesper_host::journal::Status;
use vesper_host::run::outcome::RunError;
use vesper_interp::Request;
use vesper_ir::EffectClass;

use crate::journal::{Life, survive};
use crate::world::{Bench, Script, request};

/// Number of events of a run that is longer than any here.
const MAX_EVENTS: usize = 100;

fn requests() -> Vec<Request> {
    vec![
        request(0, "look", EffectClass::Read),
        request(1, "keyed", EffectClass::Keyed),
        request(2, "txn[0]", EffectClass::Txn),
        request(3, "probe", EffectClass::Probe),
        request(4, "unsafe", EffectClass::Unsafe),
        request(5, "last", EffectClass::Keyed),
    ]
}

/// Lets the process die at one event, and recovers until it has ended or is in doubt. Returns false where it never died.
fn crash(first: usize, second: Option<usize>) -> bool {
    let requests = requests();
    let mut bench = Bench::knowing(&requests);
    bench.life = Arc::new(Life::ending_at(first));
    let mut result = survive(|| bench.go(&mut Script::new(requests.clone())));
    let has_died = result.is_none();
    let mut next = second;
    // A run that has ended is not taken over.
    while result.is_none() && bench.disk.lock().unwrap().status != Some(Status::Ended) {
        bench.life = next
            .take()
            .map_or_else(Arc::default, |event| Arc::new(Life::ending_at(event)));
        result = survive(|| bench.go(&mut Script::new(requests.clone())));
    }
    let done = bench.world.done.lock().unwrap();
    let times = |receipt: &str| done.get(receipt).copied().unwrap_or_default();
    let status = bench.disk.lock().unwrap().status;
    let is_in_doubt = match result.transpose() {
        Ok(outcome) => {
            assert!(outcome.is_none_or(|outcome| outcome.kind() == "returned"));
            assert_eq!(status, Some(Status::Ended));
            assert_eq!(times("run:run-1/unsafe"), 1);
            assert_eq!(times("key:key of last"), 1);
            false
        }
        Err(RunError::InDoubt { path, .. }) => {
            assert_eq!(path, "unsafe", "only an unsafe request is in doubt");
            assert_eq!(status, Some(Status::InDoubt));
            assert!(times("run:run-1/unsafe") <= 1, "it is performed at most once");
            assert_eq!(times("key:key of last"), 0, "nothing is done after it");
            true
        }
        Err(other) => panic!("{other}"),
    };
    for receipt in ["key:key of keyed", "run:run-1/txn[0]", "run:run-1/probe"] {
        assert_eq!(
            times(receipt),
            1,
            "{receipt} after a death at {first}, {second:?}"
        );
    }
    let ends = bench
        .lines()
        .iter()
        .filter(|each| each.starts_with("END"))
        .count();
    assert_eq!(ends, usize::from(!is_in_doubt));
    has_died
}

#[test]
fn a_death_at_any_event_loses_and_repeats_nothing() {
    let deaths = (0..MAX_EVENTS).take_while(|event| crash(*event, None)).count();
    // Appends, commits (before and after) and effects (before and after) of six requests and an END.
    assert_eq!(deaths, 38);
}

#[test]
fn a_recovery_that_dies_too_is_recovered() {
    for first in 0..38 {
        for second in 0..38 {
            crash(first, Some(second));
        }
    }
}
