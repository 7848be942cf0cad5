//! Policies: records, messages, and names that a state forgets. `make proof-policies` compares decisions with a
//! reference.

use std::collections::HashMap;
use std::sync::Arc;

use vesper_host::policy::breaker::Change;
use vesper_host::policy::gate::{By, Decision, Rule, released_record};
use vesper_host::policy::memory_state::MemoryState;
use vesper_host::policy::retry::{self, Retry};
use vesper_host::policy::settings::{Policy, PolicyError, Setting};
use vesper_host::policy::state::Demand;
use vesper_host::sources::SystemSources;

fn policy(settings: &[(&str, i64)]) -> Policy {
    let settings = settings
        .iter()
        .map(|(name, value)| (Arc::from(*name), Setting::Integer(*value)));
    settings.collect::<HashMap<_, _>>()
}

#[test]
fn decisions_have_records_in_typed_json() -> Result<(), PolicyError> {
    let admitted = Decision::Admitted { at_us: 7, wait_us: 2 };
    assert_eq!(
        admitted.to_record(),
        r#"{"at_us":7,"decision":"admitted","wait_us":2}"#
    );
    let rejected = Decision::Rejected {
        by: By::RateLimit,
        retry_at_us: 9,
        wait_us: 4,
    };
    assert_eq!(
        rejected.to_record(),
        r#"{"by":"rate_limit","decision":"rejected","retry_at_us":9,"wait_us":4}"#
    );
    assert_eq!(
        released_record(Change::Opened),
        r#"{"breaker":"opened","decision":"released"}"#
    );
    let mut settings = policy(&[("attempts", 2), ("backoff_us", 100)]);
    settings.insert(Arc::from("jitter"), Setting::Text(Arc::from("full")));
    let mut retry = Retry::new(retry::Rule::new(&settings, true)?, None);
    let decided = [
        retry.failed("timeout", 1 << 31, None, 0),
        retry.failed("timeout", 0, None, 0),
    ];
    assert_eq!(
        decided.map(|decision| decision.to_record()),
        [
            r#"{"attempt":2,"code":"timeout","decision":"retry","delay_us":50,"jitter":2147483648}"#,
            r#"{"attempts":2,"code":"timeout","decision":"give_up","reason":"attempts"}"#,
        ]
    );
    Ok(())
}

#[test]
fn a_policy_that_cannot_be_applied_is_refused() {
    let refusal = |settings: &Policy| Rule::new(settings).map_err(|error| error.to_string());
    assert_eq!(
        refusal(&policy(&[("concurrency", 0)])),
        Err("policy: `concurrency` must be a whole number from 1 to 10,000, not 0".to_owned())
    );
    assert_eq!(
        refusal(&policy(&[("rate_limit", 1)])),
        Err("policy: `rate_limit` is of no use without `rate_per_us`, which is missing".to_owned())
    );
    let mut settings = policy(&[]);
    settings.insert(Arc::from("concurrency"), Setting::Texts(vec![Arc::from("any")]));
    assert_eq!(
        refusal(&settings),
        Err("policy: `concurrency` must be a whole number from 1 to 10,000, not ('any',)".to_owned())
    );
}

#[test]
fn a_state_forgets_idle_names_only() -> Result<(), PolicyError> {
    let state = MemoryState::new(3, SystemSources::shared());
    let rule = Rule::new(&policy(&[("concurrency", 1)]))?;
    let held: Arc<str> = Arc::from("held");
    state.acquire(&held, &rule, Demand::default(), 0, None, None)?;
    for number in 0..50 {
        let name: Arc<str> = Arc::from(format!("n{number}"));
        let admission = state.acquire(&name, &rule, Demand::default(), number, None, None)?;
        if let Some(token) = &admission.token {
            state.release(token, None, None, number);
        }
        assert!(state.count_names() <= 3);
    }
    let again = state.acquire(&held, &rule, Demand::default(), 50, None, None)?;
    assert!(matches!(again.decision, Decision::Waiting { .. }));
    Ok(())
}
