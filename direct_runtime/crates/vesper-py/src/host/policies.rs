//! The machines of policies, stepped by Python: for tests and proofs.

use std::sync::Arc;

use pyo3::prelude::*;
use vesper_host::policy::gate::{Ending, Gate, Rule, released_record};
use vesper_host::policy::retry::{Retry, Rule as RetryRule};

use crate::host::limits::policy_error;
use crate::host::plans::settings;

/// One gate, stepped by a caller: for tests and proofs.
#[pyclass(module = "vesper._direct")]
#[derive(Default)]
pub(crate) struct PolicyGate(Gate);

#[pymethods]
impl PolicyGate {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Asks for an attempt that uses at most `tokens`.
    #[pyo3(signature = (policy, asker, lease_us, before_us, now_us, tokens = 0, /))]
    fn ask(
        &mut self,
        policy: &Bound<'_, PyAny>,
        asker: &str,
        lease_us: i64,
        before_us: i64,
        now_us: i64,
        tokens: i64,
    ) -> PyResult<String> {
        let rule = Rule::new(&settings(policy)?).map_err(policy_error)?;
        let asker = Arc::from(asker);
        let decision = self.0.ask(&rule, &asker, tokens, lease_us, before_us, now_us);
        Ok(decision.to_record())
    }

    /// Ends an attempt that was admitted at `admitted_us` and used `tokens`, or abandons it where `is_failure` is None.
    #[pyo3(signature = (policy, asker, admitted_us, is_failure, now_us, tokens = None, /))]
    fn leave(
        &mut self,
        policy: &Bound<'_, PyAny>,
        asker: &str,
        admitted_us: i64,
        is_failure: Option<bool>,
        now_us: i64,
        tokens: Option<i64>,
    ) -> PyResult<String> {
        let rule = Rule::new(&settings(policy)?).map_err(policy_error)?;
        let ending = is_failure.map_or(Ending::Abandoned, |is_failure| Ending::Ended {
            admitted_us,
            is_failure,
            tokens,
        });
        let change = self.0.leave(&rule, &Arc::from(asker), ending, now_us);
        Ok(released_record(change))
    }

    #[pyo3(signature = (now_us, /))]
    fn is_idle(&self, now_us: i64) -> bool {
        self.0.is_idle(now_us)
    }
}

/// The attempts at one effect, stepped by a caller: for tests and proofs.
#[pyclass(module = "vesper._direct")]
pub(crate) struct RetryMachine(Retry);

#[pymethods]
impl RetryMachine {
    #[new]
    #[pyo3(signature = (policy, effect_class, deadline_us = None, /))]
    fn new(policy: &Bound<'_, PyAny>, effect_class: &str, deadline_us: Option<i64>) -> PyResult<Self> {
        let rule = RetryRule::new(&settings(policy)?, effect_class != "unsafe").map_err(policy_error)?;
        Ok(Self(Retry::new(rule, deadline_us)))
    }

    /// Decides after a failed attempt; returns the record of the decision.
    #[pyo3(signature = (code, draw, retry_after_us, now_us, /))]
    fn failed(&mut self, code: &str, draw: u32, retry_after_us: Option<i64>, now_us: i64) -> String {
        self.0.failed(code, draw, retry_after_us, now_us).to_record()
    }
}
