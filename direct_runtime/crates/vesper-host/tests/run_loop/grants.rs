//! Handles: without those of its capabilities a request is not performed.

use std::sync::Arc;

use vesper_host::policy::budget::{BudgetState, MemoryBudgets};
use vesper_host::policy::memory_state::MemoryState;
use vesper_host::policy::state::PolicyState;
use vesper_host::run::grants::{Grants, Mint};
use vesper_host::run::outcome::{Outcome, RunError};
use vesper_host::run::running::{Pace, Services};
use vesper_host::sources::Sources;
use vesper_ir::EffectClass;

use crate::world::{Bench, Script, WorldPerformers, request};

#[test]
fn a_refused_capability_denies_the_run_before_anything_is_done() {
    let requests = vec![request(0, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    bench.refused = vec![
        (
            Arc::from("custom.call.late"),
            "the node denies itself `custom`".to_owned(),
        ),
        (Arc::from("custom.call.charge"), "…".to_owned()),
    ];
    let mut script = Script::new(requests);
    let Ok(Outcome::Denied { capability, why }) = bench.go(&mut script) else {
        panic!()
    };
    assert_eq!(
        (&*capability, &*why),
        ("custom.call.late", "the node denies itself `custom`")
    );
    assert_eq!(script.at, 0, "the engine is not advanced");
    assert_eq!(script.begun.as_deref(), Some("run-1"));
    assert_eq!(script.stopped, Some(Some("denied")));
    assert_eq!(
        bench.lines(),
        [
            r#"END {"capability":"custom.call.late","duration_us":0,"outcome":"denied","why":"the node denies itself `custom`"}"#
        ]
    );
}

#[test]
fn a_request_without_a_handle_is_denied() {
    let requests = vec![request(0, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    bench.missing = vec!["custom.call.charge"];
    let outcome = bench.go(&mut Script::new(requests)).unwrap();
    assert_eq!(outcome.kind(), "denied");
    assert!(bench.paths_seen().is_empty());
}

#[test]
fn a_request_that_needs_no_capability_is_a_bug() {
    let requests = vec![request(0, "charge", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    bench.plan("charge").capabilities.clear();
    let Err(RunError::NoHandle(text)) = bench.go(&mut Script::new(requests)) else {
        panic!()
    };
    assert_eq!(text, "`custom` was asked for without handles");
    assert!(bench.paths_seen().is_empty());
}

#[test]
fn a_handle_of_another_mint_or_capability_opens_nothing() {
    let capability: Arc<str> = Arc::from("custom.call.charge");
    for (is_own, minted) in [(false, "custom.call.charge"), (true, "custom.call.other")] {
        let requests = vec![request(0, "charge", EffectClass::Keyed)];
        let mut bench = Bench::knowing(&requests);
        let own = Mint::default();
        let other = Mint::default();
        let handle = if is_own { &own } else { &other }.handle(Arc::from(minted));
        assert_eq!(&**handle.capability(), minted);
        let mut grants = Grants::default();
        grants.handles.insert(Arc::clone(&capability), handle);
        let services = Services {
            mint: own,
            performers: Arc::new(WorldPerformers(Arc::clone(&bench.world))),
            sources: Arc::clone(&bench.world.clock) as Arc<dyn Sources>,
            policies: Arc::new(PolicyState::Memory(MemoryState::default())),
            budgets: Arc::new(BudgetState::Memory(MemoryBudgets::default())),
            pace: Pace::Policies,
        };
        let result = bench.go_with(&mut Script::new(requests), Arc::new(services), grants);
        let Err(RunError::NoHandle(text)) = result else {
            panic!()
        };
        assert_eq!(
            text,
            "`custom` was asked for with something that is no handle for `custom.call.charge`"
        );
        assert!(bench.paths_seen().is_empty());
    }
}

#[test]
fn a_secret_needs_its_handle() {
    let mut read = request(0, "token", EffectClass::Read);
    read.effect = vesper_ir::Effect::SecretRead;
    read.fixed = vec![(Arc::from("name"), Arc::from("stripe"))];
    read.result = vesper_ir::Type::Text;
    let mut bench = Bench::knowing(std::slice::from_ref(&read));
    bench.plan("token").capabilities = vec![Arc::from("secrets.read.other")];
    let mut script = Script::new(vec![read]);
    bench.go(&mut script).unwrap();
    assert_eq!(script.completions[0].1, "not_found");
    assert!(bench.lines()[0].contains("the node has no handle for `secrets.read.stripe`"));
}

#[test]
fn a_path_in_loops_and_calls_has_its_plan() {
    let requests = vec![request(0, "charge[2]", EffectClass::Keyed)];
    let mut bench = Bench::knowing(&requests);
    let plan = bench.plan("charge").clone();
    bench.plans.requests.insert(Arc::from("pay/charge"), plan);
    let mut script = Script::new(vec![
        request(0, "charge[2]", EffectClass::Keyed),
        request(1, "pay[1]/charge[2][0]", EffectClass::Keyed),
    ]);
    bench.go(&mut script).unwrap();
    assert_eq!(bench.paths_seen(), ["charge[2]", "pay[1]/charge[2][0]"]);

    let unknown = Script::new(vec![request(0, "refund", EffectClass::Keyed)]);
    let Err(RunError::Fault(text)) = bench.go(&mut { unknown }) else {
        panic!()
    };
    assert_eq!(text, "the node has no request `refund`");
}
