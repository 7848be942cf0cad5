//! Requests of class `wait`: one commit suspends the run, and a run that was woken finds the outcome of its wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use vesper_host::journal::due::Moment;
use vesper_host::journal::{Kind, Status};
use vesper_host::run::outcome::{Outcome, RunError};
use vesper_host::run::running::Pace;
use vesper_interp::{Argument, Request};
use vesper_ir::time::LAST_TIMESTAMP;
use vesper_ir::{Effect, EffectClass, Type, Value};

use crate::journal::{Life, survive};
use crate::world::{Bench, Script, request};

const HOUR_US: i64 = 3_600_000_000;

fn wait(path: &str, effect: Effect, argument: &str, ty: Type, value: Value) -> Request {
    let mut asked = request(1, path, EffectClass::Wait);
    asked.effect = effect;
    asked.arguments = vec![Argument {
        name: Arc::from(argument),
        ty,
        value,
    }];
    match effect {
        Effect::Sleep => {
            asked.fixed.clear();
            asked.result = Type::Timestamp;
        }
        _ => asked.fixed = vec![(Arc::from("signal"), Arc::from("settled"))],
    }
    asked
}

fn sleep(after_us: i64) -> Request {
    wait(
        "pause",
        Effect::Sleep,
        "duration",
        Type::Duration,
        Value::Duration(after_us),
    )
}

fn signal() -> Request {
    wait(
        "settled",
        Effect::SignalWait,
        "match",
        Type::Text,
        Value::Text(Arc::from("order-1")),
    )
}

fn suspended(bench: &mut Bench, requests: &[Request]) -> (String, &'static str, Option<i64>) {
    let mut script = Script::new(requests.to_vec());
    match bench.go(&mut script) {
        Err(RunError::Waiting(wait)) => {
            assert_eq!(script.stopped, None, "the execution is not given up");
            (wait.path, wait.kind, wait.due_us)
        }
        other => panic!("it does not wait: {other:?}"),
    }
}

fn outcome(bench: &mut Bench, requests: &[Request]) -> (Outcome, Vec<String>) {
    let mut script = Script::new(requests.to_vec());
    let outcome = bench.go(&mut script).unwrap();
    (
        outcome,
        script.completions.into_iter().map(|(_, shown)| shown).collect(),
    )
}

#[test]
fn a_wait_is_one_commit_with_everything_before_it() {
    let requests = [request(0, "look", EffectClass::Read), sleep(HOUR_US)];
    let mut bench = Bench::knowing(&requests);
    assert_eq!(
        suspended(&mut bench, &requests),
        (String::from("pause"), "sleep", Some(HOUR_US))
    );
    assert_eq!(bench.commits(), 1);
    let disk = bench.disk.lock().unwrap();
    assert_eq!(disk.status, Some(Status::Waiting));
    let wait = disk.wait.as_ref().unwrap();
    assert_eq!(wait.due.moment, Moment::After(HOUR_US));
    assert_eq!(
        wait.due.body,
        r#"{"arguments":{"duration":{"$duration":3600000000}},"fixed":{}}"#
    );
    drop(disk);
    assert!(bench.control.unwrap().has_committed());
}

#[test]
fn a_woken_run_goes_on_with_the_outcome_of_its_wait() {
    let requests = [sleep(HOUR_US), request(2, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    suspended(&mut bench, &requests);
    let due = r#"{"value":{"$time":"2026-11-15T12:00:00.500000Z"},"woken":true}"#;
    bench.disk.lock().unwrap().wake(Kind::Result, due);
    let (found, completions) = outcome(&mut bench, &requests);
    assert_eq!(found.kind(), "returned");
    assert_eq!(completions[0], "Value(Timestamp(1794744000500000))");
    assert_eq!(bench.world.done.lock().unwrap().len(), 1);
}

#[test]
fn a_wait_that_fails_is_a_failure_of_its_step() {
    let requests = [signal()];
    let mut bench = Bench::knowing(&requests);
    assert_eq!(
        suspended(&mut bench, &requests),
        (String::from("settled"), "signal", None)
    );
    {
        let mut disk = bench.disk.lock().unwrap();
        let due = &disk.wait.as_ref().unwrap().due;
        assert_eq!((due.name.as_str(), due.lane.as_str()), ("settled", "order-1"));
        let body =
            r#"{"code":"timeout","may_have_happened":false,"message":"no signal came in time","woken":true}"#;
        disk.wake(Kind::Failed, body);
    }
    assert_eq!(outcome(&mut bench, &requests).1, ["timeout"]);
}

#[test]
fn a_kept_signal_is_taken_without_suspending_unless_it_does_not_fit() {
    for (kept, is_taken) in [("41", true), ("\"a text\"", false)] {
        let requests = [signal(), request(2, "charge", EffectClass::Keyed)];
        let mut bench = Bench::knowing(&requests);
        bench.disk.lock().unwrap().kept = Some(kept.to_owned());
        if is_taken {
            assert_eq!(outcome(&mut bench, &requests).1[0], "41");
            let settled = bench.notes.settled.lock().unwrap();
            assert_eq!(settled[0], r#"settled RESULT {"value":41}"#);
        } else {
            suspended(&mut bench, &requests);
        }
    }
}

#[test]
fn another_wait_than_the_recorded_one_is_in_doubt() {
    let requests = [sleep(HOUR_US)];
    let mut bench = Bench::knowing(&requests);
    suspended(&mut bench, &requests);
    bench
        .disk
        .lock()
        .unwrap()
        .wake(Kind::Result, r#"{"value":{"$time":"2026-11-15T12:00:00.5Z"}}"#);
    let found = bench.go(&mut Script::new(vec![sleep(HOUR_US + 1)]));
    assert!(matches!(found, Err(RunError::InDoubt { .. })), "{found:?}");
}

#[test]
fn a_time_that_no_timestamp_can_name_fails_a_sleep_and_ends_no_wait() {
    let requests = [sleep(LAST_TIMESTAMP)];
    let mut bench = Bench::knowing(&requests);
    bench.world.clock.now_us.store(1, Ordering::Relaxed);
    assert_eq!(outcome(&mut bench, &requests).1, ["invalid_argument"]);
    let ttl = Value::Duration(LAST_TIMESTAMP);
    let requests = [wait("ask", Effect::Interrupt, "ttl", Type::Duration, ttl)];
    let mut bench = Bench::knowing(&requests);
    bench.world.clock.now_us.store(1, Ordering::Relaxed);
    assert_eq!(
        suspended(&mut bench, &requests),
        (String::from("ask"), "interrupt", None)
    );
}

#[test]
fn a_host_for_tests_performs_waits() {
    let requests = [signal()];
    let mut bench = Bench::knowing(&requests);
    bench.pace = Pace::Once;
    assert_eq!(outcome(&mut bench, &requests).1, ["7"]);
}

#[test]
fn a_death_at_any_event_leaves_a_run_that_waits_once() {
    let requests = [
        request(0, "charge", EffectClass::Keyed),
        signal(),
        request(2, "last", EffectClass::Keyed),
    ];
    let mut deaths = 0;
    for event in 0..100 {
        let mut bench = Bench::knowing(&requests);
        bench.life = Arc::new(Life::ending_at(event));
        let found = survive(|| bench.go(&mut Script::new(requests.to_vec())));
        deaths += usize::from(found.is_none());
        bench.life = Arc::default();
        loop {
            let status = bench.disk.lock().unwrap().status;
            match status {
                Some(Status::Ended) => break,
                Some(Status::Waiting) => {
                    let mut disk = bench.disk.lock().unwrap();
                    disk.wake(Kind::Result, r#"{"value":5,"woken":true}"#);
                }
                _ => drop(bench.go(&mut Script::new(requests.to_vec()))),
            }
        }
        let waits = bench
            .lines()
            .iter()
            .filter(|each| each.starts_with("INTENT settled"))
            .count();
        assert_eq!(waits, 1, "after a death at {event}");
        assert_eq!(bench.world.done.lock().unwrap()["key:key of charge"], 1);
    }
    assert!(deaths > 8);
}
