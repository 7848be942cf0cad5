//! A budget as the IR holds it: limits on money, tokens, requests and time of the requests around which it stands.

use std::sync::Arc;

/// Whose account a budget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One request with its retries and fallbacks.
    Call,
    /// A part of a flow, named by its step.
    Run,
    /// One execution of a node.
    Agent,
    Session,
    Tenant,
    Named,
}

impl Scope {
    pub const ALL: [Self; 6] = [
        Self::Call,
        Self::Run,
        Self::Agent,
        Self::Session,
        Self::Tenant,
        Self::Named,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Run => "run",
            Self::Agent => "agent",
            Self::Session => "session",
            Self::Tenant => "tenant",
            Self::Named => "named",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.name() == name)
    }
}

/// What happens to a request for which nothing is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnExceeded {
    #[default]
    Block,
    Warn,
    Allow,
}

impl OnExceeded {
    pub const ALL: [Self; 3] = [Self::Block, Self::Warn, Self::Allow];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Warn => "warn",
            Self::Allow => "allow",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.name() == name)
    }
}

/// Limits of one account. A limit that is None does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    pub scope: Scope,
    /// The node of scope `agent`, the step of scopes `call` and `run`, else the name of the setting.
    pub name: Arc<str>,
    /// An exact decimal.
    pub usd: Option<Arc<str>>,
    /// Of input and output.
    pub tokens: Option<i64>,
    pub calls: Option<i64>,
    pub time_us: Option<i64>,
    pub on_exceeded: OnExceeded,
    pub alert_percent: Option<i64>,
    /// Number of calls around the node that declares it: the account is that of the first `depth` parts of a
    /// request's path, so each execution of the node has its own. Set in plans; the IR of a node does not have it.
    pub depth: usize,
}
