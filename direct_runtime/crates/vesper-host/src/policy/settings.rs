//! A policy as the IR holds it (docs/spec/ir.md), and the settings that a machine reads of it.

use crate::messages::grouped;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use vesper_ir::budget::Budget;

pub use crate::run::contract::Setting;

/// Settings of the policies of one effect, by name.
pub type Policy = HashMap<Arc<str>, Setting>;

pub const MAX_COUNT: i64 = 1_000_000_000;
/// About 31 years. Sums of a few of these and the time since 1970 stay below 2^53, where every store counts exactly.
pub const MAX_US: i64 = 1_000_000_000_000_000;

/// Error of a policy, or of the state that policies share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// A machine cannot work with the policy; the message names the setting.
    Invalid(String),
    /// More names have limits in use at once than the state has room for.
    TooManyNames(String),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(message) | Self::TooManyNames(message) => formatter.write_str(message),
        }
    }
}

impl std::error::Error for PolicyError {}

/// Returns a whole number of the policy, from 1 to `most`; None where it has none.
pub fn number(policy: &Policy, key: &str, most: i64) -> Result<Option<i64>, PolicyError> {
    match policy.get(key) {
        None => Ok(None),
        Some(Setting::Integer(value)) if (1..=most).contains(value) => Ok(Some(*value)),
        Some(other) => Err(PolicyError::Invalid(format!(
            "policy: `{key}` must be a whole number from 1 to {}, not {}",
            grouped(most),
            shown(other)
        ))),
    }
}

/// Returns numbers that have a meaning only together; None where the policy has none of them.
pub fn numbers<const N: usize>(
    policy: &Policy,
    bounds: [(&str, i64); N],
) -> Result<Option<[i64; N]>, PolicyError> {
    let mut values = [0; N];
    let mut present = None;
    let mut missing = None;
    for ((key, most), value) in bounds.into_iter().zip(&mut values) {
        match number(policy, key, most)? {
            Some(found) => {
                *value = found;
                present = present.or(Some(key));
            }
            None => missing = missing.or(Some(key)),
        }
    }
    match (present, missing) {
        (Some(present), Some(missing)) => Err(PolicyError::Invalid(format!(
            "policy: `{present}` is of no use without `{missing}`, which is missing"
        ))),
        (None, _) => Ok(None),
        (Some(_), None) => Ok(Some(values)),
    }
}

/// Returns a word of the policy; None where it has none.
pub fn word<'a>(policy: &'a Policy, key: &str, among: &[&str]) -> Result<Option<&'a str>, PolicyError> {
    match policy.get(key) {
        None => Ok(None),
        Some(Setting::Text(word)) if among.contains(&&**word) => Ok(Some(word)),
        Some(other) => Err(PolicyError::Invalid(format!(
            "policy: `{key}` must be one of {}, not {}",
            among.join(", "),
            shown(other)
        ))),
    }
}

/// Returns a list of words of the policy; None where it has none.
pub fn words<'a>(policy: &'a Policy, key: &str) -> Result<Option<&'a [Arc<str>]>, PolicyError> {
    match policy.get(key) {
        None => Ok(None),
        Some(Setting::Texts(words)) => Ok(Some(words)),
        Some(other) => Err(PolicyError::Invalid(format!(
            "policy: `{key}` must be a list of codes, not {}",
            shown(other)
        ))),
    }
}

/// Returns the budgets of the policy, outermost first.
pub fn budgets(policy: &Policy) -> &[Budget] {
    match policy.get("budgets") {
        Some(Setting::Budgets(budgets)) => budgets,
        _ => &[],
    }
}

/// Formats a setting for a message.
fn shown(setting: &Setting) -> String {
    match setting {
        Setting::Integer(value) => value.to_string(),
        Setting::Text(text) => format!("'{text}'"),
        Setting::Texts(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| format!("'{text}'")).collect();
            let comma = if texts.len() == 1 { "," } else { "" };
            format!("({}{comma})", texts.join(", "))
        }
        Setting::Budgets(budgets) => format!("{} budgets", budgets.len()),
    }
}
