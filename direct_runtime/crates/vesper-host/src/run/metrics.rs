//! Counts of effects, retries and breakers.

use std::time::Duration;

use vesper_interp::Request;
use vesper_ir::Value;
use vesper_metrics::{
    BREAKER_STATE, BUDGETS_EVENTS, EFFECT_DURATION, EFFECTS_RETRIES, EFFECTS_TOTAL, Gauge, MODELS_COST,
    MODELS_TOKENS, count, gauge, observe,
};

use crate::effect::Failure;
use crate::model::Spent;
use crate::policy::breaker::Change;
use crate::policy::gate::{By, Decision};

const CLOSED: f64 = 0.0;
const HALF_OPEN: f64 = 1.0;
const OPEN: f64 = 2.0;
/// Units of `Usd` in a billionth of a dollar.
const UNITS_PER_BILLIONTH: u128 = 1000;

/// Counts an effect with all its attempts.
pub(super) fn count_effect(node: &str, request: &Request, result: &Result<Value, Failure>, took: Duration) {
    let effect = request.effect.name();
    let code = result.as_ref().err().map(|failure| failure.code.name());
    count(EFFECTS_TOTAL, &[node, effect, code.unwrap_or("ok")], 1);
    observe(EFFECT_DURATION, &[node, effect], took);
}

/// Counts the tokens of an attempt, and its cost in billionths of a dollar.
pub(super) fn count_usage(node: &str, request: &Request, used: &Spent) {
    let model = request.fixed.iter().find(|(name, _)| &**name == "model");
    let model = model.map_or("", |(_, name)| name);
    count(MODELS_TOKENS, &[node, model, "input"], used.input_tokens);
    count(MODELS_TOKENS, &[node, model, "output"], used.output_tokens);
    let cost = u64::try_from(used.cost.0 / UNITS_PER_BILLIONTH).unwrap_or(u64::MAX);
    count(MODELS_COST, &[node, model], cost);
}

/// Counts a request that a budget blocked, warned of, or that used its alert share.
pub(super) fn count_budget(name: &str, event: &str) {
    count(BUDGETS_EVENTS, &[name, event], 1);
}

pub(super) fn count_retry(node: &str, request: &Request) {
    count(EFFECTS_RETRIES, &[node, request.effect.name()], 1);
}

/// Returns the state of a breaker as this process knows it.
pub(super) fn breaker(node: &str, name: &str) -> BreakerState {
    BreakerState(gauge(BREAKER_STATE, &[node, name]))
}

pub(super) struct BreakerState(Gauge);

impl BreakerState {
    /// Notes a decision about an attempt: the first one that an open breaker admits is its probe.
    pub(super) fn decided(&self, decision: Decision) {
        match decision {
            Decision::Rejected {
                by: By::CircuitBreaker,
                ..
            } => self.0.set(OPEN),
            Decision::Admitted { .. } if self.0.get() >= OPEN => self.0.set(HALF_OPEN),
            _ => {}
        }
    }

    /// Notes the end of an attempt. Another process may have closed a shared breaker before this probe succeeded.
    pub(super) fn ended(&self, change: Change, code: Option<&str>) {
        match change {
            Change::Opened => self.0.set(OPEN),
            Change::Closed => self.0.set(CLOSED),
            Change::None if code.is_none() && self.0.get() < OPEN => self.0.set(CLOSED),
            Change::None => {}
        }
    }
}
