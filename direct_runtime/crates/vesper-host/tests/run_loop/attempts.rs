//! Attempts: retries, limits that runs share, and their decisions in the journal.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vesper_host::effect::Failure;
use vesper_host::run::contract::Setting;
use vesper_host::run::outcome::Outcome;
use vesper_host::run::running::Pace;
use vesper_interp::Request;
use vesper_ir::EffectClass;

use crate::world::{Answer, Bench, Script, failed, request};

fn bench(class: EffectClass, settings: &[(&str, i64)]) -> (Bench, Vec<Request>) {
    let requests = vec![request(0, "charge", class)];
    let mut bench = Bench::knowing(&requests);
    for (name, number) in settings {
        bench.set("charge", name, Setting::Integer(*number));
    }
    (bench, requests)
}

fn away() -> Answer {
    Answer::Fails(Failure::new("unavailable", "away"))
}

#[test]
fn a_failed_attempt_is_repeated_as_the_policy_says() {
    let (mut bench, requests) = bench(EffectClass::Keyed, &[("attempts", 3), ("backoff_us", 3000)]);
    bench.answer("charge", &[away(), away(), Answer::Value(9)]);
    let mut script = Script::new(requests);
    let began = Instant::now();
    bench.go(&mut script).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(9), "it waits 3 and 6 ms");
    assert_eq!(script.completions[0].1, "9");
    let repeats: Vec<bool> = bench
        .world
        .seen
        .lock()
        .unwrap()
        .iter()
        .map(|each| each.is_repeat)
        .collect();
    assert_eq!(repeats, [false, true, true]);
    assert_eq!(
        bench.lines()[1..4],
        [
            r#"VALUE charge#1 {"attempt":2,"code":"unavailable","decision":"retry","delay_us":3000}"#,
            r#"VALUE charge#2 {"attempt":3,"code":"unavailable","decision":"retry","delay_us":6000}"#,
            r#"RESULT charge {"value":9}"#,
        ]
    );
}

#[test]
fn the_last_failure_stands_and_may_have_happened_in_any_attempt() {
    let (mut bench, requests) = bench(EffectClass::Keyed, &[("attempts", 2)]);
    let mut sent = Failure::new("timeout", "no answer");
    sent.may_have_happened = true;
    bench.answer("charge", &[Answer::Fails(sent), away()]);
    let mut script = Script::new(requests);
    script.end = Some(failed("unavailable"));
    let Outcome::Ended { why, .. } = bench.go(&mut script).unwrap() else {
        panic!()
    };
    assert_eq!(why.as_deref(), Some("away"));
    assert_eq!(
        bench.lines()[2..4],
        [
            r#"VALUE charge#2 {"attempts":2,"code":"unavailable","decision":"give_up","reason":"attempts"}"#,
            r#"FAILED charge {"code":"unavailable","may_have_happened":true,"message":"away"}"#,
        ]
    );
}

#[test]
fn an_unsafe_request_is_never_repeated() {
    let (mut bench, requests) = bench(EffectClass::Unsafe, &[("attempts", 3)]);
    bench.answer("charge", &[away()]);
    bench.go(&mut Script::new(requests)).unwrap();
    assert_eq!(bench.paths_seen().len(), 1);
    assert!(bench.lines()[1].contains(r#""reason":"unsafe""#));
}

#[test]
fn the_other_side_may_ask_for_a_longer_wait_than_the_run_has() {
    let (mut bench, requests) = bench(EffectClass::Keyed, &[("attempts", 3)]);
    bench.plans.total_timeout = Some(Duration::from_secs(5));
    let mut failure = Failure::new("unavailable", "busy");
    failure.retry_after = Some(Duration::from_mins(1));
    bench.answer("charge", &[Answer::Fails(failure)]);
    bench.go(&mut Script::new(requests)).unwrap();
    assert_eq!(bench.paths_seen().len(), 1);
    assert!(bench.lines()[1].contains(r#""reason":"retry_after""#));
}

#[test]
fn an_open_breaker_holds_requests_back() {
    let settings = [
        ("breaker_failures", 1),
        ("breaker_within_us", 60_000_000),
        ("breaker_open_us", 30_000_000),
    ];
    let requests = vec![
        request(0, "charge[0]", EffectClass::Keyed),
        request(1, "charge[1]", EffectClass::Keyed),
    ];
    let mut bench = Bench::knowing(&requests);
    for (name, number) in settings {
        bench.set("charge", name, Setting::Integer(number));
    }
    bench.answer("charge[0]", &[away()]);
    let mut script = Script::new(requests);
    bench.go(&mut script).unwrap();
    assert_eq!(bench.paths_seen(), ["charge[0]"], "the second one is not sent");
    let lines = bench.lines();
    assert_eq!(
        lines[1],
        r#"VALUE charge[0]#1 {"breaker":"opened","decision":"released"}"#
    );
    assert!(
        lines[5].starts_with(r#"VALUE charge[1]#1 {"by":"circuit_breaker","decision":"rejected","#),
        "{lines:?}"
    );
    assert!(lines[7].contains(r#""message":"held back by its circuit breaker: it was not sent""#));
}

#[test]
fn a_rate_limit_makes_requests_wait() {
    let requests = vec![
        request(0, "charge[0]", EffectClass::Keyed),
        request(1, "charge[1]", EffectClass::Keyed),
    ];
    let mut bench = Bench::knowing(&requests);
    for (name, number) in [("rate_limit", 1), ("rate_per_us", 20_000), ("rate_burst", 1)] {
        bench.set("charge", name, Setting::Integer(number));
    }
    let began = Instant::now();
    bench.go(&mut Script::new(requests)).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(20));
    let waits: Vec<String> = bench
        .lines()
        .into_iter()
        .filter(|each| each.starts_with("VALUE"))
        .collect();
    assert_eq!(
        waits,
        [r#"VALUE charge[1]#1 {"at_us":20000,"decision":"admitted","wait_us":20000}"#]
    );
}

#[test]
fn a_place_is_given_back_after_each_attempt() {
    let (mut bench, requests) = bench(EffectClass::Keyed, &[("concurrency", 1), ("attempts", 3)]);
    bench.answer("charge", &[away(), away()]);
    bench.go(&mut Script::new(requests)).unwrap();
    assert_eq!(bench.paths_seen().len(), 3);
    assert!(
        bench
            .lines()
            .iter()
            .all(|each| !each.contains("waiting") && !each.contains("rejected"))
    );
}

#[test]
fn a_policy_that_no_machine_can_work_with_is_a_fault() {
    let (mut bench, requests) = bench(EffectClass::Keyed, &[("attempts", 0)]);
    let error = bench.go(&mut Script::new(requests)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "policy: `attempts` must be a whole number from 1 to 100, not 0"
    );
}

#[test]
fn tests_make_one_attempt_or_do_not_wait() {
    for (pace, seen) in [(Pace::Once, 1), (Pace::Immediate, 3)] {
        let settings = [("attempts", 3), ("backoff_us", 60_000_000), ("concurrency", 1)];
        let (mut bench, requests) = bench(EffectClass::Keyed, &settings);
        bench.pace = pace;
        bench.plans.total_timeout = Some(Duration::from_secs(9));
        bench.plan("charge").timeout = Some(Duration::from_secs(30));
        bench.answer("charge", &[away(), away(), away()]);
        bench.go(&mut Script::new(requests)).unwrap();
        let attempts = bench.world.seen.lock().unwrap();
        assert_eq!(attempts.len(), seen);
        assert_eq!(
            attempts[0].timeout,
            Some(Duration::from_secs(30)),
            "the time of the run does not count"
        );
        let notes = bench
            .lines()
            .iter()
            .filter(|each| each.starts_with("VALUE"))
            .count();
        assert_eq!(notes, if pace == Pace::Once { 0 } else { 3 });
    }
}

#[test]
fn a_setting_that_is_no_policy_of_attempts_costs_no_decision() {
    let (mut bench, requests) = bench(EffectClass::Keyed, &[("timeout_us", 5)]);
    bench.set("charge", "jitter", Setting::Text(Arc::from("full")));
    bench.answer("charge", &[away()]);
    bench.go(&mut Script::new(requests)).unwrap();
    assert!(bench.lines().iter().all(|each| !each.starts_with("VALUE")));
}

#[test]
fn an_interrupted_run_gives_its_place_back() {
    let (mut bench, requests) = bench(EffectClass::Keyed, &[("concurrency", 1)]);
    bench.answer("charge", &[Answer::Never]);
    bench.is_interrupted = true;
    let (services, grants) = bench.services();
    let error = bench.go_with(&mut Script::new(requests.clone()), Arc::clone(&services), grants);
    assert_eq!(error.unwrap_err().to_string(), "interrupted");

    bench.is_interrupted = false;
    bench.answer("charge", &[Answer::Value(1)]);
    bench.disk = Arc::default();
    let (_, grants) = bench.services();
    let mut own = vesper_host::run::grants::Grants::default();
    for capability in grants.handles.into_keys() {
        let handle = services.mint.handle(Arc::clone(&capability));
        own.handles.insert(capability, handle);
    }
    bench.go_with(&mut Script::new(requests), services, own).unwrap();
    assert_eq!(
        bench.lines()[1],
        r#"RESULT charge {"value":1}"#,
        "it did not wait for the place"
    );
}
