//! Amounts of money, tokens, calls and time.

use crate::model::Usd;

/// Largest amount of tokens, calls and microseconds: Redis counts exactly up to 2^53.
pub const MAX_AMOUNT: u128 = (1 << 53) - 1;
/// Largest amount of money: a thousand million dollars.
pub const MAX_USD: u128 = 1_000_000_000 * USD;
const USD: u128 = 1_000_000_000_000;

/// Thing that a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Usd,
    Tokens,
    Calls,
    Time,
}

impl Resource {
    pub const ALL: [Self; 4] = [Self::Usd, Self::Tokens, Self::Calls, Self::Time];

    pub fn name(self) -> &'static str {
        match self {
            Self::Usd => "usd",
            Self::Tokens => "tokens",
            Self::Calls => "calls",
            Self::Time => "time",
        }
    }

    /// Returns the resource with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.name() == name)
    }

    /// Returns the largest amount of it.
    pub fn most(self) -> u128 {
        if self == Self::Usd { MAX_USD } else { MAX_AMOUNT }
    }

    /// Formats an amount with its unit.
    pub fn shown(self, amount: u128) -> String {
        match self {
            Self::Usd => format!("{} USD", Usd(amount)),
            Self::Tokens => format!("{amount} tokens"),
            Self::Calls => format!("{amount} calls"),
            Self::Time => format!("{} ms", amount / 1000),
        }
    }
}

/// Amounts of all four resources; money in units of [`Usd`], time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    pub usd: u128,
    pub tokens: u128,
    pub calls: u128,
    pub time_us: u128,
}

impl Amounts {
    pub fn of(&self, resource: Resource) -> u128 {
        match resource {
            Resource::Usd => self.usd,
            Resource::Tokens => self.tokens,
            Resource::Calls => self.calls,
            Resource::Time => self.time_us,
        }
    }

    /// Returns what `amount` gives for each resource, at most the largest amount of it.
    pub fn each(amount: impl Fn(Resource) -> u128) -> Self {
        let bounded = |resource: Resource| amount(resource).min(resource.most());
        Self {
            usd: bounded(Resource::Usd),
            tokens: bounded(Resource::Tokens),
            calls: bounded(Resource::Calls),
            time_us: bounded(Resource::Time),
        }
    }

    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self::each(|resource| self.of(resource).saturating_add(other.of(resource)))
    }

    /// Returns the difference, at least zero.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self::each(|resource| self.of(resource).saturating_sub(other.of(resource)))
    }
}
