//! A budget: its limits, and what happens where a request does not fit.

use std::sync::Arc;

use vesper_ir::budget::{self as declared, OnExceeded};

use super::amounts::{MAX_USD, Resource};
use crate::model::Usd;

/// Decimal places of the unit of [`Usd`].
const MAX_PLACES: usize = 12;

/// Limits of a budget; None where it does not limit a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub usd: Option<u128>,
    pub tokens: Option<u128>,
    pub calls: Option<u128>,
    pub time_us: Option<u128>,
    pub on_exceeded: OnExceeded,
    /// Share of a limit at which an alert is given.
    pub alert_percent: Option<u8>,
}

impl Limit {
    /// Returns the limits that a node declares.
    pub fn declared(budget: &declared::Budget) -> Self {
        let amount = |number: Option<i64>| number.and_then(|number| u128::try_from(number).ok());
        Self {
            usd: budget.usd.as_deref().map(money),
            tokens: amount(budget.tokens),
            calls: amount(budget.calls),
            time_us: amount(budget.time_us),
            on_exceeded: budget.on_exceeded,
            alert_percent: budget
                .alert_percent
                .and_then(|percent| u8::try_from(percent).ok()),
        }
    }

    pub fn of(&self, resource: Resource) -> Option<u128> {
        match resource {
            Resource::Usd => self.usd,
            Resource::Tokens => self.tokens,
            Resource::Calls => self.calls,
            Resource::Time => self.time_us,
        }
    }

    /// Returns the amount at which an alert is given.
    pub fn alert_at(&self, resource: Resource) -> Option<u128> {
        let percent = u128::from(self.alert_percent?);
        Some((self.of(resource)? * percent).div_ceil(100))
    }
}

/// A budget around a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The name for messages and for `budget_read`.
    pub name: Arc<str>,
    /// The name under which it is counted.
    pub key: Arc<str>,
    pub limit: Limit,
    /// Time for which the count is kept after its last change; None is for ever.
    pub kept_us: Option<i64>,
}

/// Reads an exact decimal; places below the unit of [`Usd`] are cut off, and more than the largest amount is that.
fn money(text: &str) -> u128 {
    let places = text.find('.').map_or(text.len(), |point| point + 1 + MAX_PLACES);
    let text = text.get(..places).unwrap_or(text);
    Usd::parse(text).map_or(MAX_USD, |usd| usd.0.min(MAX_USD))
}
