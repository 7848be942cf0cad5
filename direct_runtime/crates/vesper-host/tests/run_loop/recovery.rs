//! Runs that were taken over: recorded requests, DIVERGENCE, `IN_DOUBT`, and the rules of the classes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vesper_host::effect::Failure;
use vesper_host::journal::{Kind, Status, Stored};
use vesper_host::run::outcome::RunError;
use vesper_interp::Request;
use vesper_ir::{Effect, EffectClass, Type, Value};

use crate::journal::stored;
use crate::world::{Answer, Bench, Script, request};

/// Returns the entry of a request with its digest.
fn entry(kind: Kind, asked: &Request, body: &str) -> Stored {
    let mut found = stored(kind, &asked.path, body);
    found.effect = asked.effect.name().to_owned();
    found.class = asked.class.name().to_owned();
    let key = asked
        .key
        .as_ref()
        .map_or("null".to_owned(), |key| format!("\"{key}\""));
    let class = asked.class.name();
    found.digest = format!(r#"digest of ["custom","{class}",{{"name":"charge"}},{{"amount":5}},{key}]"#);
    found
}

/// Returns a run that was taken over with these entries.
fn taken(asked: &Request, entries: Vec<Stored>) -> Bench {
    let bench = Bench::knowing(std::slice::from_ref(asked));
    let mut all = vec![stored(Kind::Start, "", "{}")];
    all.extend(entries);
    bench.disk.lock().unwrap().entries = all;
    bench
}

fn doubt(bench: &mut Bench, asked: Request) -> String {
    match bench.go(&mut Script::new(vec![asked])) {
        Err(error @ RunError::InDoubt { .. }) => error.to_string(),
        other => panic!("not in doubt: {other:?}"),
    }
}

fn intent(asked: &Request) -> Stored {
    entry(
        Kind::Intent,
        asked,
        r#"{"arguments":{"amount":5},"fixed":{"name":"charge"}}"#,
    )
}

#[test]
fn a_recorded_result_is_not_performed_again() {
    let asked = request(0, "charge", EffectClass::Keyed);
    let mut bench = taken(
        &asked,
        vec![intent(&asked), entry(Kind::Result, &asked, r#"{"value":41}"#)],
    );
    let mut script = Script::new(vec![asked]);
    bench.go(&mut script).unwrap();
    assert_eq!(script.completions[0].1, "41");
    assert!(bench.paths_seen().is_empty());
    assert_eq!(
        *bench.notes.settled.lock().unwrap(),
        [r#"charge RESULT {"value":41}"#]
    );
}

#[test]
fn a_recorded_failure_gives_its_code_and_why() {
    let asked = request(0, "charge", EffectClass::Keyed);
    let told = r#"{"code":"http_402","may_have_happened":false,"message":"no \"funds\""}"#;
    let mut bench = taken(&asked, vec![intent(&asked), entry(Kind::Failed, &asked, told)]);
    let mut script = Script::new(vec![asked]);
    script.end = Some(crate::world::failed("http_402"));
    let outcome = bench.go(&mut script).unwrap();
    assert_eq!(script.completions[0].1, "http_402");
    let vesper_host::run::outcome::Outcome::Ended { why, .. } = outcome else {
        panic!()
    };
    assert_eq!(why.as_deref(), Some(r#"no "funds""#));
}

#[test]
fn a_recorded_read_is_found_by_its_request() {
    let asked = request(0, "look", EffectClass::Read);
    let mut known = stored(
        Kind::Result,
        "look",
        r#"{"arguments":{"amount":5},"fixed":{"name":"charge"},"value":3}"#,
    );
    known.effect = "custom".to_owned();
    let mut bench = taken(&asked, vec![known.clone()]);
    let mut script = Script::new(vec![asked.clone()]);
    bench.go(&mut script).unwrap();
    assert_eq!(script.completions[0].1, "3");

    let mut other = asked.clone();
    other.arguments[0].value = Value::Integer(6);
    let mut bench = taken(&asked, vec![known]);
    let text = doubt(&mut bench, other);
    assert_eq!(
        text,
        "look: the request is not the one that the journal has: it was not sent (execution run-1)"
    );
    assert_eq!(
        bench.lines()[1],
        r#"DIVERGENCE look {"asked":"","effect":"custom","recorded":""}"#
    );
}

#[test]
fn another_request_at_the_path_is_a_divergence() {
    let asked = request(0, "charge", EffectClass::Keyed);
    let mut other = asked.clone();
    other.key = Some(Arc::from("another key"));
    for settled in [None, Some(entry(Kind::Result, &asked, r#"{"value":41}"#))] {
        let entries = [Some(intent(&asked)), settled].into_iter().flatten().collect();
        let mut bench = taken(&asked, entries);
        doubt(&mut bench, other.clone());
        let lines = bench.lines();
        let [.., divergence, in_doubt] = &lines[..] else {
            panic!()
        };
        assert!(divergence.starts_with(r#"DIVERGENCE charge {"asked":"digest of"#));
        assert_eq!(
            in_doubt,
            r#"IN_DOUBT charge {"why":"the request is not the one that the journal has: it was not sent"}"#
        );
        assert_eq!(bench.disk.lock().unwrap().status, Some(Status::InDoubt));
        assert!(bench.paths_seen().is_empty());
    }
}

#[test]
fn a_request_in_doubt_waits_for_a_person() {
    let asked = request(0, "send", EffectClass::Unsafe);
    let why = stored(Kind::InDoubt, "send", r#"{"why":"…"}"#);
    let mut bench = taken(&asked, vec![intent(&asked), why]);
    assert_eq!(
        doubt(&mut bench, asked),
        "send: nobody has said yet what came of it (execution run-1)"
    );
    assert_eq!(bench.lines().len(), 2, "it is said once");
}

#[test]
fn a_person_says_what_came_of_it() {
    let asked = request(0, "send", EffectClass::Unsafe);
    let doubted = || vec![intent(&asked), stored(Kind::InDoubt, "send", "{}")];
    let resolved = |body: &str| {
        let mut entries = doubted();
        entries.push(stored(Kind::Resolved, "send", body));
        taken(&asked, entries)
    };
    let mut script = Script::new(vec![asked.clone()]);
    resolved(r#"{"by":"anna","value":9,"why":"asked"}"#)
        .go(&mut script)
        .unwrap();
    assert_eq!(script.completions[0].1, "9");

    let mut script = Script::new(vec![asked.clone()]);
    resolved(r#"{"by":"anna","code":"unavailable","why":"asked"}"#)
        .go(&mut script)
        .unwrap();
    assert_eq!(script.completions[0].1, "unavailable");

    let mut bench = resolved(r#"{"by":"anna","not_done":true,"why":"asked"}"#);
    let mut script = Script::new(vec![asked.clone()]);
    bench.go(&mut script).unwrap();
    assert_eq!(script.completions[0].1, "7");
    assert_eq!(bench.paths_seen(), ["send"], "it is performed under a new INTENT");
    assert_eq!(
        bench
            .lines()
            .iter()
            .filter(|each| each.starts_with("INTENT"))
            .count(),
        2
    );

    let error =
        resolved(r#"{"by":"anna","value":"nine","why":"asked"}"#).go(&mut Script::new(vec![asked.clone()]));
    let Err(RunError::Fault(text)) = error else {
        panic!()
    };
    assert!(
        text.starts_with("send: the value in the journal is not of the type of the step: "),
        "{text}"
    );
}

#[test]
fn the_classes_decide_after_a_crash() {
    let asked = |class| request(0, "charge", class);
    for class in [EffectClass::Keyed, EffectClass::Txn] {
        let mut bench = taken(&asked(class), vec![intent(&asked(class))]);
        bench.go(&mut Script::new(vec![asked(class)])).unwrap();
        assert!(bench.world.seen.lock().unwrap()[0].is_repeat);
        assert_eq!(
            bench
                .lines()
                .iter()
                .filter(|each| each.starts_with("INTENT"))
                .count(),
            1
        );
    }
    let mut bench = taken(
        &asked(EffectClass::Unsafe),
        vec![intent(&asked(EffectClass::Unsafe))],
    );
    assert_eq!(
        doubt(&mut bench, asked(EffectClass::Unsafe)),
        "charge: it may have been performed, and it must not be performed twice (execution run-1)"
    );
    assert!(bench.paths_seen().is_empty());
}

#[test]
fn a_probe_finds_out() {
    let asked = request(0, "charge", EffectClass::Probe);
    let done = taken(&asked, vec![intent(&asked)]);
    done.world
        .done
        .lock()
        .unwrap()
        .insert("run:run-1/charge".to_owned(), 1);
    let not_done = taken(&asked, vec![intent(&asked)]);
    let unknown = taken(&asked, vec![intent(&asked)]);
    *unknown.world.probe_fails.lock().unwrap() = Some(Failure::new("unavailable", "hunter2 is away"));
    let [mut done, mut not_done, mut unknown] = [done, not_done, unknown];

    done.go(&mut Script::new(vec![asked.clone()])).unwrap();
    assert!(done.paths_seen().is_empty());
    assert_eq!(done.lines()[1], r#"RESULT charge {"value":7}"#);

    not_done.go(&mut Script::new(vec![asked.clone()])).unwrap();
    assert_eq!(not_done.paths_seen(), ["charge"]);

    assert_eq!(
        doubt(&mut unknown, asked),
        "charge: whether it happened could not be found out: *** is away (execution run-1)"
    );
}

#[test]
fn a_key_that_the_other_side_forgot_is_in_doubt() {
    let asked = request(0, "charge", EffectClass::Keyed);
    for (ttl, age, good) in [
        (0.5, 2, "0.5"),
        (86_400.0, 100_000, "86400"),
        (1e6, 2_000_000, "1e+06"),
    ] {
        let mut bench = taken(&asked, vec![intent(&asked)]);
        *bench.world.key_ttl.lock().unwrap() = Some(Duration::from_secs_f64(ttl));
        bench.world.clock.now_us.store(age * 1_000_000, Ordering::Relaxed);
        assert_eq!(
            doubt(&mut bench, asked.clone()),
            format!("charge: its key is good for {good} s, and it was sent {age} s ago (execution run-1)")
        );
        assert!(bench.paths_seen().is_empty());
    }
    let mut bench = taken(&asked, vec![intent(&asked)]);
    *bench.world.key_ttl.lock().unwrap() = Some(Duration::from_mins(1));
    bench.go(&mut Script::new(vec![asked])).unwrap();
    assert_eq!(bench.paths_seen(), ["charge"]);
}

#[test]
fn a_repeat_without_an_answer_may_have_happened() {
    let asked = request(0, "charge", EffectClass::Keyed);
    for (code, may) in [("unavailable", true), ("timeout", true), ("http_402", false)] {
        let mut bench = taken(&asked, vec![intent(&asked)]);
        bench.answer("charge", &[Answer::Fails(Failure::new(code, "no"))]);
        bench.go(&mut Script::new(vec![asked.clone()])).unwrap();
        let expected =
            format!(r#"FAILED charge {{"code":"{code}","may_have_happened":{may},"message":"no"}}"#);
        assert_eq!(bench.lines()[1], expected);
    }
}

#[test]
fn a_recorded_reference_is_known_to_later_requests() {
    let mut read = request(0, "token", EffectClass::Read);
    read.effect = Effect::SecretRead;
    read.fixed = vec![(Arc::from("name"), Arc::from("stripe"))];
    read.arguments.clear();
    read.result = Type::Text;
    let charge = request(1, "charge", EffectClass::Keyed);
    let mut bench = Bench::knowing(&[read.clone(), charge.clone()]);
    let body = r#"{"arguments":{},"fixed":{"name":"stripe"},"value":"ref-1"}"#;
    let mut known = stored(Kind::Result, "token", body);
    known.effect = "secret_read".to_owned();
    bench.disk.lock().unwrap().entries = vec![stored(Kind::Start, "", "{}"), known];
    bench.go(&mut Script::new(vec![read, charge])).unwrap();
    let seen = bench.world.seen.lock().unwrap();
    assert_eq!(seen[0].references, [("ref-1".to_owned(), "stripe".to_owned())]);
}

#[test]
fn a_run_that_changed_something_is_taken_over_without_a_grant() {
    let charge = request(0, "charge", EffectClass::Keyed);
    let mut refund = request(1, "refund", EffectClass::Keyed);
    refund.fixed = vec![(Arc::from("name"), Arc::from("refund"))];
    let mut bench = taken(
        &charge,
        vec![intent(&charge), entry(Kind::Result, &charge, r#"{"value":1}"#)],
    );
    let mut plan = bench.plan("charge").clone();
    plan.capabilities = vec![Arc::from("custom.call.refund")];
    bench.plans.requests.insert(Arc::from("refund"), plan);
    bench.refused = vec![(
        Arc::from("custom.call.refund"),
        "nothing in the configuration grants it".to_owned(),
    )];
    let mut script = Script::new(vec![charge.clone(), refund]);
    let outcome = bench.go(&mut script).unwrap();
    assert_eq!(outcome.kind(), "denied");
    assert_eq!(
        script.completions.len(),
        1,
        "the step that it has a grant for is completed"
    );
    assert_eq!(script.stopped, Some(Some("denied")));

    // The request may have been performed: its grant is gone, so it cannot be repeated.
    let mut bench = taken(&charge, vec![intent(&charge)]);
    bench.refused = vec![(
        Arc::from("custom.call.charge"),
        "[[grants]] 2 denies `custom`".to_owned(),
    )];
    assert_eq!(
        doubt(&mut bench, charge),
        "charge: it may have been performed, and `custom.call.charge` was taken away since: [[grants]] 2 denies \
         `custom` (execution run-1)"
    );
}
