//! The END of a run.

use vesper_host::journal::Status;
use vesper_host::run::contract::Ended;
use vesper_host::run::outcome::Outcome;
use vesper_ir::{ErrorCode, FailureCode};

use crate::world::{Bench, Script};

#[test]
fn an_outcome_that_is_too_large_is_a_limit() {
    let mut bench = Bench::default();
    bench.max_body = 80;
    let mut script = Script::new(Vec::new());
    script.end = Some(Ended {
        kind: "returned",
        record: vec![("value", format!("\"{}\"", "x".repeat(100)))],
        failed: None,
        payload: Box::new(()),
    });
    let outcome = bench.go(&mut script).unwrap();
    assert!(matches!(outcome, Outcome::LimitHit("max_body")));
    assert_eq!(
        bench.lines(),
        [r#"END {"duration_us":0,"limit":"max_body","outcome":"limit_hit"}"#]
    );
    assert_eq!(
        *bench.notes.endings.lock().unwrap(),
        ["limit_hit"],
        "the audit has the outcome that it ended with"
    );
    assert_eq!(
        *bench.notes.warnings.lock().unwrap(),
        ["run-1: its outcome cannot be journalled: : a body is too large"]
    );
    let disk = bench.disk.lock().unwrap();
    assert_eq!(disk.status, Some(Status::Ended));
    assert_eq!(disk.outcome.as_deref(), Some("limit_hit"));
}

#[test]
fn a_broken_clause_has_an_entry_of_its_own() {
    let mut bench = Bench::default();
    let mut script = Script::new(Vec::new());
    script.end = Some(Ended {
        kind: "contract_broken",
        record: vec![
            ("phase", "\"ensures\"".to_owned()),
            ("index", "0".to_owned()),
            ("values", "{\"total\":1}".to_owned()),
        ],
        failed: None,
        payload: Box::new(()),
    });
    bench.go(&mut script).unwrap();
    assert_eq!(
        bench.lines(),
        [
            r#"CONTRACT {"index":0,"phase":"ensures","values":{"total":1}}"#,
            r#"END {"duration_us":0,"index":0,"outcome":"contract_broken","phase":"ensures","values":{"total":1}}"#,
        ]
    );
}

#[test]
fn rejected_inputs_never_began() {
    let ended = |code, has_place| Outcome::Ended {
        ended: Ended {
            kind: "failed",
            record: Vec::new(),
            failed: Some((code, has_place)),
            payload: Box::new(()),
        },
        why: None,
    };
    let bad_input = || FailureCode::Known(ErrorCode::BadInput);
    assert!(ended(bad_input(), false).never_began());
    assert!(!ended(bad_input(), true).never_began());
    assert!(!ended(FailureCode::Known(ErrorCode::Timeout), false).never_began());
}
