//! Limits of a run: time, memory, cancellation.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vesper_host::effect::Failure;
use vesper_host::journal::Kind;
use vesper_host::run::outcome::Outcome;
use vesper_host::run::sizes::{size_of, size_of_members};
use vesper_ir::types::Field;
use vesper_ir::{EffectClass, EnumType, Json, MapType, Member, OwnedKey, RecordType, Set, Type, Value};

use crate::journal::stored;
use crate::world::{Answer, Bench, Script, failed, request};

#[test]
fn an_attempt_has_its_own_time_and_at_most_that_of_the_run() {
    let requests = vec![
        request(0, "first", EffectClass::Read),
        request(1, "second", EffectClass::Read),
        request(2, "handler", EffectClass::Read),
        request(3, "plain", EffectClass::Read),
    ];
    let mut bench = Bench::knowing(&requests);
    bench.plans.total_timeout = Some(Duration::from_secs(10));
    bench.plan("first").timeout = Some(Duration::from_secs(8));
    bench.plan("second").timeout = Some(Duration::from_secs(8));
    bench.plan("handler").timeout = Some(Duration::from_secs(8));
    bench.plan("handler").in_handler = true;
    bench.answer("first", &[Answer::After(Duration::from_secs(5), 1)]);
    bench.go(&mut Script::new(requests)).unwrap();
    let seen = bench.world.seen.lock().unwrap();
    let times: Vec<_> = seen.iter().map(|each| each.timeout.unwrap().as_secs()).collect();
    assert_eq!(times, [8, 5, 8, 5]);
}

#[test]
fn after_its_time_only_handlers_are_tried() {
    let requests = vec![
        request(0, "charge", EffectClass::Keyed),
        request(1, "late", EffectClass::Keyed),
        request(2, "look", EffectClass::Read),
        request(3, "undo", EffectClass::Keyed),
    ];
    let mut bench = Bench::knowing(&requests);
    bench.plans.total_timeout = Some(Duration::from_secs(1));
    bench.plan("undo").in_handler = true;
    bench.answer("charge", &[Answer::After(Duration::from_secs(1), 1)]);
    let mut script = Script::new(requests);
    script.end = Some(failed("timeout"));
    let outcome = bench.go(&mut script).unwrap();
    assert!(matches!(outcome, Outcome::LimitHit("timeout_seconds")));
    assert_eq!(bench.paths_seen(), ["charge", "undo"]);
    let expected = r#"{"arguments":{"amount":5},"code":"timeout","fixed":{"name":"charge"},"may_have_happened":false,"message":"the execution's time was up before this was tried"}"#;
    assert_eq!(bench.lines()[2], format!("FAILED late {expected}"));
    assert_eq!(bench.lines()[3], format!("FAILED look {expected}"));
    assert_eq!(
        bench.lines().last().unwrap(),
        r#"END {"duration_us":1000000,"limit":"timeout_seconds","outcome":"limit_hit"}"#
    );
}

#[test]
fn the_shorter_time_of_node_and_caller_is_the_limit() {
    for (left, limit) in [(2, "deadline"), (20, "timeout_seconds")] {
        let requests = vec![
            request(0, "charge", EffectClass::Keyed),
            request(1, "late", EffectClass::Keyed),
        ];
        let mut bench = Bench::knowing(&requests);
        bench.plans.total_timeout = Some(Duration::from_secs(10));
        bench.left = Some(Duration::from_secs(left));
        bench.answer("charge", &[Answer::After(Duration::from_secs(10), 1)]);
        let mut script = Script::new(requests);
        script.end = Some(failed("timeout"));
        let outcome = bench.go(&mut script).unwrap();
        assert!(matches!(outcome, Outcome::LimitHit(name) if name == limit));
        assert_eq!(bench.paths_seen(), ["charge"]);
        let seen = bench.world.seen.lock().unwrap();
        assert_eq!(seen[0].timeout, Some(Duration::from_secs(left.min(10))));
    }
}

#[test]
fn a_failure_with_the_code_timeout_in_time_is_a_failure() {
    let requests = vec![request(0, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    bench.plans.total_timeout = Some(Duration::from_secs(1));
    bench.answer(
        "charge",
        &[Answer::Fails(Failure::new("timeout", "no answer in 3 s"))],
    );
    let mut script = Script::new(requests);
    script.end = Some(failed("timeout"));
    let Outcome::Ended { why, .. } = bench.go(&mut script).unwrap() else {
        panic!()
    };
    assert_eq!(why.as_deref(), Some("no answer in 3 s"));
}

#[test]
fn a_failure_of_the_node_itself_has_no_message_of_a_request() {
    let requests = vec![request(0, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    bench.answer("charge", &[Answer::Fails(Failure::new("timeout", "no answer"))]);
    let mut script = Script::new(requests);
    script.end = Some(failed("division_by_zero"));
    let Outcome::Ended { why, .. } = bench.go(&mut script).unwrap() else {
        panic!()
    };
    assert_eq!(why, None);
}

#[test]
fn a_caller_who_has_gone_cancels_until_something_was_changed() {
    let requests = vec![request(0, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    bench.is_cancelled = true;
    let mut script = Script::new(requests.clone());
    assert!(matches!(
        bench.go(&mut script).unwrap(),
        Outcome::LimitHit("cancelled")
    ));
    assert!(bench.paths_seen().is_empty());

    let mut bench = Bench::knowing(&requests);
    bench.is_cancelled = true;
    let intent = stored(Kind::Intent, "before", "{}");
    bench.disk.lock().unwrap().entries = vec![stored(Kind::Start, "", "{}"), intent];
    assert_eq!(bench.go(&mut Script::new(requests)).unwrap().kind(), "returned");
    assert_eq!(bench.paths_seen(), ["charge"]);
}

#[test]
fn values_that_enter_a_run_take_room() {
    // Inputs of 100 bytes, and 32 for each integer.
    for (memory, limit) in [(99, true), (100, true), (163, true), (164, false)] {
        let requests = vec![
            request(0, "look", EffectClass::Read),
            request(1, "charge", EffectClass::Keyed),
        ];
        let mut bench = Bench::knowing(&requests);
        bench.input_size = 100;
        bench.plans.memory = Some(memory);
        let mut script = Script::new(requests);
        let outcome = bench.go(&mut script).unwrap();
        assert_eq!(outcome.kind() == "limit_hit", limit, "{memory}");
        let performed = if memory < 100 {
            0
        } else if memory < 132 {
            1
        } else {
            2
        };
        assert_eq!(bench.paths_seen().len(), performed);
        let results = bench
            .lines()
            .iter()
            .filter(|each| each.starts_with("RESULT"))
            .count();
        assert_eq!(results, performed, "what happened is written");
    }
}

#[test]
fn a_size_is_that_of_the_python_form() {
    let text = |text: &str| Value::Text(Arc::from(text));
    assert_eq!(size_of(&Type::Text, &text("äb")), 34);
    assert_eq!(size_of(&Type::Bytes, &Value::Bytes(Arc::from(*b"abc"))), 35);
    assert_eq!(size_of(&Type::Optional(Arc::new(Type::Text)), &Value::Null), 32);
    let colours = Type::Enum(Arc::new(
        EnumType::new(vec![Arc::from("red"), Arc::from("green")]).unwrap(),
    ));
    assert_eq!(size_of(&colours, &Value::Member(Member(1))), 37);
    let record = RecordType::new(vec![
        Field {
            name: Arc::from("id"),
            ty: Type::Integer,
        },
        Field {
            name: Arc::from("note"),
            ty: Type::Optional(Arc::new(Type::Text)),
        },
    ]);
    let record = Type::Record(Arc::new(record.unwrap()));
    let value = Value::Record(Arc::from([Value::Integer(1), text("x")]));
    // The dict, two keys of 2 and 4 characters, two values.
    assert_eq!(size_of(&record, &value), 32 + 34 + 32 + 36 + 33);
    let list = Type::Array(Arc::new(record));
    assert_eq!(
        size_of(&list, &Value::Array(Arc::from([value.clone(), value]))),
        32 + 2 * 167
    );
    let set = Value::Set(Arc::new(Set::Text(vec![Arc::from("a"), Arc::from("bc")])));
    assert_eq!(size_of(&Type::Set(Arc::new(Type::Text)), &set), 32 + 33 + 34);
    let empty = Value::Set(Arc::new(Set::Integer(Vec::new())));
    assert_eq!(size_of(&Type::Set(Arc::new(colours.clone())), &empty), 32);
    let map_type = Type::Map(Arc::new(MapType {
        key: colours,
        value: Type::Integer,
    }));
    let map = vesper_ir::Map::of_entries(vec![(OwnedKey::Member(Member(0)), Value::Integer(1))]).unwrap();
    assert_eq!(size_of(&map_type, &Value::Map(Arc::new(map))), 32 + 35 + 32);
    let json = vesper_ir::json::parse(r#"{"a":[1,null,"xy"]}"#).unwrap();
    assert_eq!(
        size_of(&Type::Json, &Value::Json(Arc::new(json))),
        32 + 33 + 32 + 32 + 32 + 34
    );
    assert_eq!(size_of(&Type::Json, &Value::Json(Arc::new(Json::Null))), 32);
    let inputs = [("amount", &Type::Integer, &Value::Integer(5))];
    assert_eq!(size_of_members(inputs), 32 + 38 + 32);
}

#[test]
fn a_run_that_takes_longer_than_expected_is_slow() {
    let requests = vec![request(0, "look", EffectClass::Read)];
    let mut bench = Bench::knowing(&requests);
    bench.plans.expected = Some(Duration::from_millis(5));
    bench.answer("look", &[Answer::After(Duration::from_millis(6), 1)]);
    bench.world.clock.monotonic_us.store(77, Ordering::Relaxed);
    bench.go(&mut Script::new(requests)).unwrap();
    assert_eq!(
        bench.lines().last().unwrap(),
        r#"END {"duration_us":6000,"outcome":"returned","slow":true,"value":{"total":1}}"#
    );
}
