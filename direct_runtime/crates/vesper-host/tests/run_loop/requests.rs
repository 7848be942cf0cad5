//! Requests of a new run: entries, commits, failures, references.

use std::sync::Arc;

use vesper_host::effect::Failure;
use vesper_host::run::contract::Copied;
use vesper_host::run::outcome::{Outcome, RunError};
use vesper_interp::Argument;
use vesper_ir::{Effect, EffectClass, Type, Value};

use crate::world::{Answer, Bench, Script, request};

const ASKED: &str = r#""arguments":{"amount":5},"#;

#[test]
fn changes_are_committed_before_they_are_performed_and_reads_are_not() {
    let requests = vec![
        request(0, "look", EffectClass::Read),
        request(1, "charge", EffectClass::Keyed),
        request(2, "send", EffectClass::Unsafe),
    ];
    let mut bench = Bench::knowing(&requests);
    let mut script = Script::new(requests);
    let outcome = bench.go(&mut script).unwrap();
    assert_eq!(outcome.kind(), "returned");
    assert_eq!(
        script.completions,
        [(0, "7".to_owned()), (1, "7".to_owned()), (2, "7".to_owned())]
    );
    assert_eq!(
        bench.lines(),
        [
            r#"RESULT look {"arguments":{"amount":5},"fixed":{"name":"charge"},"value":7}"#,
            r#"INTENT charge {"arguments":{"amount":5},"fixed":{"name":"charge"}}"#,
            r#"RESULT charge {"value":7}"#,
            r#"INTENT send {"arguments":{"amount":5},"fixed":{"name":"charge"}}"#,
            r#"RESULT send {"value":7}"#,
            r#"END {"duration_us":0,"outcome":"returned","value":{"total":1}}"#,
        ]
    );
    // Two INTENTs, the RESULT of the unsafe one, the END.
    assert_eq!(bench.commits(), 4);
    let disk = bench.disk.lock().unwrap();
    let intent = disk.entries.iter().find(|each| each.path == "charge").unwrap();
    assert_eq!(
        intent.digest,
        r#"digest of ["custom","keyed",{"name":"charge"},{"amount":5},"key of charge"]"#
    );
    assert_eq!(intent.key.as_deref(), Some("key of charge"));
    assert_eq!((&*intent.effect, &*intent.class), ("custom", "keyed"));
    assert_eq!(
        disk.entries
            .iter()
            .find(|each| each.path == "look")
            .unwrap()
            .digest,
        ""
    );
}

#[test]
fn a_failure_is_written_with_its_message_and_gives_its_code() {
    let requests = vec![
        request(0, "charge", EffectClass::Keyed),
        request(1, "look", EffectClass::Read),
    ];
    let mut bench = Bench::knowing(&requests);
    let mut failure = Failure::new("effect_failed", format!("no hunter2: {}", "ä".repeat(3000)));
    failure.may_have_happened = true;
    bench.answer("charge", &[Answer::Fails(failure)]);
    bench.answer("look", &[Answer::Fails(Failure::new("unavailable", "away"))]);
    let mut script = Script::new(requests);
    bench.go(&mut script).unwrap();
    assert_eq!(script.completions[0].1, "effect_failed");
    let kept = "ä".repeat(2000 - "no ***: ".len());
    assert_eq!(
        bench.lines()[1],
        format!(
            r#"FAILED charge {{"code":"effect_failed","may_have_happened":true,"message":"no ***: {kept}"}}"#
        )
    );
    assert_eq!(
        bench.lines()[2],
        format!(
            r#"FAILED look {{{ASKED}"code":"unavailable","fixed":{{"name":"charge"}},"may_have_happened":false,"message":"away"}}"#
        )
    );
}

#[test]
fn an_unconfigured_effect_fails_and_the_run_goes_on() {
    let requests = vec![request(0, "look", EffectClass::Read)];
    let mut bench = Bench::knowing(&requests);
    *bench.world.is_unconfigured.lock().unwrap() = true;
    let mut script = Script::new(requests);
    bench.go(&mut script).unwrap();
    assert_eq!(script.completions[0].1, "unavailable");
    assert!(bench.lines()[0].contains("nothing is configured that performs `custom`"));
}

#[test]
fn a_request_that_is_too_large_is_not_sent() {
    let requests = vec![request(0, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    bench.max_body = 150;
    let mut script = Script::new(requests);
    script.waves[0][0].arguments.push(Argument {
        name: Arc::from("note"),
        ty: Type::Text,
        value: Value::Text(Arc::from("x".repeat(200))),
    });
    bench.go(&mut script).unwrap();
    // The effect `custom` has no code `invalid_argument`.
    assert_eq!(script.completions[0].1, "unavailable");
    assert!(bench.paths_seen().is_empty());
    assert_eq!(bench.lines().len(), 2);
    assert!(
        bench.lines()[0].starts_with(r#"FAILED charge {"code":"unavailable","may_have_happened":false,"#)
    );
    assert!(bench.lines()[0].contains("nothing was sent: charge: a body is too large"));
    assert_eq!(bench.commits(), 1);
}

#[test]
fn an_answer_that_is_too_large_is_a_bad_response() {
    let requests = vec![
        request(0, "charge", EffectClass::Keyed),
        request(1, "look", EffectClass::Read),
    ];
    let mut bench = Bench::knowing(&requests);
    for each in ["charge", "look"] {
        bench.answer(each, &[Answer::Value(i64::MAX)]);
    }
    // A failure without its request fits, a result with it does not.
    bench.max_body =
        r#"{"code":"bad_response","may_have_happened":false,"message":"look: a body is too large"}"#.len();
    let mut script = Script::new(requests);
    script.waves[1][0].arguments[0].value = Value::Integer(i64::MAX);
    bench.go(&mut script).unwrap();
    let lines = bench.lines();
    assert_eq!(lines[1], r#"RESULT charge {"value":9223372036854775807}"#);
    assert_eq!(
        lines[2],
        r#"FAILED look {"code":"bad_response","may_have_happened":false,"message":"look: a body is too large"}"#
    );
    let disk = bench.disk.lock().unwrap();
    let failed = disk.entries.iter().find(|each| each.path == "look").unwrap();
    assert!(
        failed.digest.starts_with("digest of [\"custom\",\"read\""),
        "its digest stands for the request"
    );
}

#[test]
fn a_change_whose_answer_is_too_large_happened() {
    let mut asked = request(0, "charge", EffectClass::Keyed);
    asked.result = Type::Text;
    let mut bench = Bench::knowing(std::slice::from_ref(&asked));
    bench.max_body = 150;
    bench.answer("charge", &[Answer::Text(200)]);
    let mut script = Script::new(vec![asked]);
    bench.go(&mut script).unwrap();
    assert_eq!(script.completions[0].1, "bad_response");
    assert_eq!(
        bench.lines()[1],
        r#"FAILED charge {"code":"bad_response","may_have_happened":true,"message":"charge: a body is too large"}"#
    );
    assert_eq!(bench.world.done.lock().unwrap().len(), 1);
}

#[test]
fn the_reference_of_a_secret_is_known_to_later_requests() {
    let mut read = request(0, "token", EffectClass::Read);
    read.effect = Effect::SecretRead;
    read.fixed = vec![(Arc::from("name"), Arc::from("stripe"))];
    read.result = Type::Text;
    let requests = vec![read, request(1, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    bench.plan("token").capabilities = vec![Arc::from("secrets.read.stripe")];
    let mut script = Script::new(requests);
    bench.go(&mut script).unwrap();
    let seen = bench.world.seen.lock().unwrap();
    let references = [("reference to stripe of 7".to_owned(), "stripe".to_owned())];
    assert_eq!(seen[1].references, references);
}

#[test]
fn a_transition_writes_the_move_of_its_entity() {
    let mut moving = request(0, "ship", EffectClass::Txn);
    moving.effect = Effect::StateTransition;
    moving.fixed = vec![
        (Arc::from("machine"), Arc::from("order")),
        (Arc::from("from"), Arc::from("paid")),
        (Arc::from("to"), Arc::from("shipped")),
    ];
    moving.arguments[0].name = Arc::from("entity");
    let mut bench = Bench::knowing(std::slice::from_ref(&moving));
    bench.go(&mut Script::new(vec![moving])).unwrap();
    assert_eq!(bench.lines()[1], r#"RESULT ship {"value":7}"#);
    assert_eq!(
        bench.lines()[2],
        r#"STATE ship {"before":7,"entity":5,"from":"paid","machine":"order","to":"shipped"}"#
    );
}

#[test]
fn a_wave_is_completed_in_written_order() {
    let requests = vec![
        request(4, "left", EffectClass::Read),
        request(5, "right", EffectClass::Keyed),
    ];
    let mut bench = Bench::knowing(&requests);
    bench.answer("left", &[Answer::Value(1)]);
    bench.answer("right", &[Answer::Value(2)]);
    let mut script = Script::new(Vec::new());
    script.waves = vec![requests];
    bench.go(&mut script).unwrap();
    assert_eq!(script.completions, [(4, "1".to_owned()), (5, "2".to_owned())]);
}

#[test]
fn an_exception_of_the_application_leaves_the_run() {
    let requests = vec![request(0, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    bench.answer("charge", &[Answer::Breaks]);
    let mut script = Script::new(requests);
    let Err(RunError::Broken(broken)) = bench.go(&mut script) else {
        panic!("the exception is lost")
    };
    assert_eq!(broken.0.downcast_ref::<&str>(), Some(&"the application broke"));
    assert_eq!(script.stopped, Some(None));
}

#[test]
fn the_watcher_learns_of_requests_that_change_something() {
    let requests = vec![
        request(0, "look", EffectClass::Read),
        request(1, "charge", EffectClass::Keyed),
    ];
    let mut bench = Bench::knowing(&requests);
    bench.go(&mut Script::new(requests)).unwrap();
    assert_eq!(
        *bench.notes.settled.lock().unwrap(),
        [r#"charge RESULT {"value":7}"#]
    );
    assert_eq!(*bench.notes.endings.lock().unwrap(), ["returned"]);
}

#[test]
fn a_replay_copies_known_completions_and_renames_keys() {
    let requests = vec![
        request(0, "look", EffectClass::Read),
        request(1, "charge", EffectClass::Keyed),
        request(2, "again", EffectClass::Keyed),
    ];
    let mut bench = Bench::knowing(&requests);
    let copied = |result| Copied {
        result,
        replayed: Arc::from("trace-1"),
    };
    {
        let mut known = bench.notes.known.lock().unwrap();
        known.insert("look".to_owned(), copied(Ok(Value::Integer(3))));
        known.insert(
            "charge".to_owned(),
            copied(Err(Failure::new("http_402", "no funds"))),
        );
    }
    *bench.notes.prefix.lock().unwrap() = Some(String::from("replay run-1 "));
    let mut script = Script::new(requests);
    bench.go(&mut script).unwrap();
    assert_eq!(script.completions[0].1, "3");
    assert_eq!(script.completions[1].1, "http_402");
    assert_eq!(bench.paths_seen(), ["again"]);
    let lines = bench.lines();
    assert_eq!(
        lines[0],
        r#"RESULT look {"arguments":{"amount":5},"fixed":{"name":"charge"},"replayed":"trace-1","value":3}"#
    );
    assert_eq!(
        lines[1],
        r#"FAILED charge {"arguments":{"amount":5},"code":"http_402","fixed":{"name":"charge"},"may_have_happened":false,"message":"no funds","replayed":"trace-1"}"#
    );
    let disk = bench.disk.lock().unwrap();
    let intent = disk.entries.iter().find(|each| each.path == "again").unwrap();
    assert_eq!(intent.key.as_deref(), Some("replay run-1 key of again"));
}

#[test]
fn a_journal_that_cannot_be_written_ends_the_run_with_advice() {
    let requests = vec![
        request(0, "charge", EffectClass::Keyed),
        request(1, "send", EffectClass::Unsafe),
    ];
    let mut bench = Bench::knowing(&requests);
    bench.fails_after = 1;
    let error = bench.go(&mut Script::new(requests)).unwrap_err();
    assert_eq!(error.to_string(), "the disk is full");
    assert_eq!(
        bench.paths_seen(),
        ["charge"],
        "without its INTENT nothing is sent"
    );
    let control = bench.control.clone().unwrap();
    assert_eq!(
        control.advice("pay_v1").unwrap(),
        "execution run-1 of pay_v1 has begun, and is finished by recovery once its lease is over: do not begin it \
         anew before `vesper journal show` says that it has ended"
    );
}

#[test]
fn a_run_that_the_journal_does_not_have_needs_no_lease() {
    let mut bench = Bench::default();
    bench.fails_after = 0;
    bench.go(&mut Script::new(Vec::new())).unwrap_err();
    let control = bench.control.clone().unwrap();
    control.renew().unwrap();
    assert_eq!(bench.commits(), 0);
    assert_eq!(control.advice("pay_v1"), None);
    assert!(matches!(
        bench_outcome(&mut Bench::default()),
        Outcome::Ended { .. }
    ));
}

fn bench_outcome(bench: &mut Bench) -> Outcome {
    bench.go(&mut Script::new(Vec::new())).unwrap()
}
