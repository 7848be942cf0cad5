//! Executions of two engines: HANDOFF, and engines that part.

use vesper_host::journal::Status;
use vesper_host::run::contract::{Broken, Halted};
use vesper_host::run::outcome::RunError;
use vesper_ir::EffectClass;

use crate::world::{Bench, Script, request};

const HANDOFF: &str = r#"{"before":"jit","engine":"python","why":"it hung"}"#;

#[test]
fn a_handoff_is_durable_before_anything_is_changed_for_the_other_engine() {
    let requests = vec![
        request(0, "look", EffectClass::Read),
        request(1, "charge", EffectClass::Keyed),
    ];
    let mut bench = Bench::knowing(&requests);
    let mut script = Script::new(requests);
    script.handoffs = [None, Some(HANDOFF.to_owned())].into();
    bench.go(&mut script).unwrap();
    let lines = bench.lines();
    assert_eq!(lines[1], format!("HANDOFF {HANDOFF}"));
    assert!(lines[2].starts_with("INTENT charge"));
    assert_eq!(script.begun.as_deref(), Some("run-1"));
    assert_eq!(script.stopped, None, "it has ended");
}

#[test]
fn a_handoff_at_the_end_is_written_before_it() {
    let mut bench = Bench::default();
    let mut script = Script::new(Vec::new());
    script.handoffs = [Some(HANDOFF.to_owned())].into();
    bench.go(&mut script).unwrap();
    assert_eq!(bench.lines()[0], format!("HANDOFF {HANDOFF}"));
}

#[test]
fn engines_that_part_leave_the_run_in_doubt() {
    let performed = request(0, "charge", EffectClass::Keyed);
    let asked = request(1, "refund", EffectClass::Keyed);
    for (asked, why, digest) in [
        (
            Some(Box::new(asked)),
            "it was performed, and the engine that should go on asks for `refund` in another form or before it",
            r#"digest of [\"custom\",\"keyed\",{\"name\":\"charge\"},{\"amount\":5},\"key of refund\"]"#,
        ),
        (
            None,
            "it was performed, and the engine that should go on ends without it",
            "",
        ),
    ] {
        let mut bench = Bench::knowing(std::slice::from_ref(&performed));
        let mut script = Script::new(vec![performed.clone()]);
        script.handoffs = [None, Some(HANDOFF.to_owned())].into();
        script.halts = Some(Halted::Parted {
            performed: Box::new(performed.clone()),
            asked,
        });
        let Err(RunError::InDoubt { path, why: found, .. }) = bench.go(&mut script) else {
            panic!()
        };
        assert_eq!((&*path, &*found), ("charge", why));
        let lines = bench.lines();
        assert_eq!(lines[2], format!("HANDOFF {HANDOFF}"));
        assert!(lines[3].starts_with(&format!(
            r#"DIVERGENCE charge {{"asked":"{digest}","effect":"custom","recorded":"digest of"#
        )));
        assert_eq!(lines[4], format!(r#"IN_DOUBT charge {{"why":"{why}"}}"#));
        assert_eq!(bench.disk.lock().unwrap().status, Some(Status::InDoubt));
        assert_eq!(script.stopped, None, "it has reported that itself");
    }
}

#[test]
fn an_engine_that_breaks_is_stopped() {
    let mut bench = Bench::default();
    let mut script = Script::new(Vec::new());
    script.halts = Some(Halted::Broken(Broken(Box::new("a bug"))));
    assert!(matches!(bench.go(&mut script), Err(RunError::Broken(_))));
    assert_eq!(script.stopped, Some(None));
    assert_eq!(bench.commits(), 0);
}
