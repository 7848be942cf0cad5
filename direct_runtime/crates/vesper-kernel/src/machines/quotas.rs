//! Quotas of processes: counters, time and what is left of them.

use crate::proto::v1::{Quota, RemainingBudget, Usage};
use crate::refusal::Refusal;

/// Largest limit and largest amount of one record, so that no sum overflows.
const MAX_AMOUNT: i64 = 1 << 53;

type Counter = (&'static str, fn(&Usage) -> i64, fn(&Quota) -> Option<i64>);

/// The counters by name.
const COUNTERS: [Counter; 6] = [
    ("llm_calls", |usage| usage.llm_calls, |quota| quota.max_llm_calls),
    (
        "tool_calls",
        |usage| usage.tool_calls,
        |quota| quota.max_tool_calls,
    ),
    (
        "agent_hops",
        |usage| usage.agent_hops,
        |quota| quota.max_agent_hops,
    ),
    (
        "iterations",
        |usage| usage.iterations,
        |quota| quota.max_iterations,
    ),
    ("tokens_in", |usage| usage.tokens_in, |quota| quota.max_tokens_in),
    (
        "tokens_out",
        |usage| usage.tokens_out,
        |quota| quota.max_tokens_out,
    ),
];

/// Checks a quota that a client sent.
pub fn check_quota(quota: &Quota) -> Result<(), Refusal> {
    let limits = COUNTERS.iter().map(|(name, _, limit)| (*name, limit(quota)));
    for (name, limit) in limits.chain([("time", quota.timeout_us)]) {
        if limit.is_some_and(|limit| !(0..=MAX_AMOUNT).contains(&limit)) {
            return Err(Refusal::invalid(format!(
                "The limit of {name} is not between 0 and 2^53."
            )));
        }
    }
    Ok(())
}

/// Checks an amount of usage that a client sent.
pub fn check_usage(usage: &Usage) -> Result<(), Refusal> {
    for (name, used, _) in COUNTERS {
        if !(0..=MAX_AMOUNT).contains(&used(usage)) {
            return Err(Refusal::invalid(format!(
                "The usage of {name} is not between 0 and 2^53."
            )));
        }
    }
    Ok(())
}

/// Adds what was used.
pub fn add(usage: &mut Usage, more: &Usage) {
    usage.llm_calls = usage.llm_calls.saturating_add(more.llm_calls);
    usage.tool_calls = usage.tool_calls.saturating_add(more.tool_calls);
    usage.agent_hops = usage.agent_hops.saturating_add(more.agent_hops);
    usage.iterations = usage.iterations.saturating_add(more.iterations);
    usage.tokens_in = usage.tokens_in.saturating_add(more.tokens_in);
    usage.tokens_out = usage.tokens_out.saturating_add(more.tokens_out);
}

/// Returns the names of the counters that are above their limit.
pub fn exceeded(quota: &Quota, usage: &Usage) -> Vec<&'static str> {
    let is_over = |(_, used, limit): &&Counter| limit(quota).is_some_and(|limit| used(usage) > limit);
    COUNTERS.iter().filter(is_over).map(|(name, ..)| *name).collect()
}

/// Returns when the time of a quota is over.
pub fn deadline_us(quota: &Quota, created_us: i64) -> Option<i64> {
    Some(created_us.saturating_add(quota.timeout_us?))
}

pub fn remaining(quota: &Quota, usage: &Usage, created_us: i64, now_us: i64) -> RemainingBudget {
    let left = |limit: Option<i64>, used: i64| limit.map(|limit| limit.saturating_sub(used).max(0));
    RemainingBudget {
        llm_calls_remaining: left(quota.max_llm_calls, usage.llm_calls),
        tool_calls_remaining: left(quota.max_tool_calls, usage.tool_calls),
        agent_hops_remaining: left(quota.max_agent_hops, usage.agent_hops),
        iterations_remaining: left(quota.max_iterations, usage.iterations),
        tokens_in_remaining: left(quota.max_tokens_in, usage.tokens_in),
        tokens_out_remaining: left(quota.max_tokens_out, usage.tokens_out),
        time_remaining_us: deadline_us(quota, created_us)
            .map(|until_us| until_us.saturating_sub(now_us).max(0)),
    }
}
