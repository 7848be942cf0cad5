//! Circuit breaker: stops requests to a system that does not answer, and probes it now and then.
//!
//! *Closed* lets every attempt through and counts failures; `failures` of them within `within` open it. *Open* lets none
//! through for `open_for`. Then it is *half open*: the first asker becomes the probe, and others are rejected until the
//! probe has ended. A probe that never reports, because its process died, is replaced when its lease ends.
//!
//! An attempt reports to the closed period that let it out, or to none.

use std::sync::Arc;

use super::settings::{MAX_US, Policy, PolicyError, numbers};

/// Largest number of failures, whose moments are kept.
pub const MAX_FAILURES: i64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub failures: i64,
    pub within_us: i64,
    pub open_us: i64,
}

impl Rule {
    /// Reads the rule of a policy; None where it has none.
    pub fn new(policy: &Policy) -> Result<Option<Self>, PolicyError> {
        let found = numbers(
            policy,
            [
                ("breaker_failures", MAX_FAILURES),
                ("breaker_within_us", MAX_US),
                ("breaker_open_us", MAX_US),
            ],
        )?;
        Ok(found.map(|[failures, within_us, open_us]| Self {
            failures,
            within_us,
            open_us,
        }))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Closed {
        since_us: i64,
        /// Moments and askers of failed attempts, oldest first: those within the window, and perhaps older ones.
        failures: Vec<(i64, Arc<str>)>,
    },
    Open {
        until_us: i64,
    },
    HalfOpen {
        /// None where the last probe was abandoned.
        probe: Option<Arc<str>>,
        /// End of the probe's lease.
        until_us: i64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    rule: Rule,
    phase: Phase,
}

/// Answer of the breaker to an asker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Through,
    /// Let through as the probe, once `begin_probe` is called.
    AsProbe,
    /// Rejected; before this moment another request is of no use.
    Stopped(i64),
}

/// Change of the breaker by the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Opened,
    Closed,
    None,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Closed => "closed",
            Self::None => "none",
        }
    }

    /// Returns the change with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Opened, Self::Closed, Self::None];
        all.into_iter().find(|each| each.name() == name)
    }
}

impl Breaker {
    pub fn new(rule: Rule) -> Self {
        let phase = Phase::Closed {
            since_us: 0,
            failures: Vec::new(),
        };
        Self { rule, phase }
    }

    /// Continues under another rule: a node was deployed anew while its failures were counted.
    pub fn set_rule(&mut self, rule: Rule) {
        self.rule = rule;
    }

    /// Returns whether an attempt may go out. Nothing changes.
    pub fn ask(&self, asker: &str, now_us: i64) -> Way {
        match &self.phase {
            Phase::Closed { .. } => Way::Through,
            Phase::Open { until_us } if now_us < *until_us => Way::Stopped(*until_us),
            Phase::HalfOpen {
                probe: Some(probe),
                until_us,
            } if **probe != *asker && now_us < *until_us => Way::Stopped(now_us),
            _ => Way::AsProbe,
        }
    }

    /// Makes an asker the probe, until its lease ends.
    pub fn begin_probe(&mut self, asker: &Arc<str>, until_us: i64) {
        self.phase = Phase::HalfOpen {
            probe: Some(Arc::clone(asker)),
            until_us,
        };
    }

    /// Counts the end of an attempt that was let through at `admitted_us`.
    pub fn end(&mut self, asker: &Arc<str>, admitted_us: i64, is_failure: bool, now_us: i64) -> Change {
        let rule = self.rule;
        match &mut self.phase {
            Phase::Closed { since_us, failures } if is_failure && admitted_us >= *since_us => {
                failures.retain(|(at_us, _)| *at_us > now_us - rule.within_us);
                // An attempt that reports twice has failed once.
                if failures.iter().all(|(_, each)| each != asker) {
                    failures.push((now_us, Arc::clone(asker)));
                }
                if i64::try_from(failures.len()).unwrap_or(i64::MAX) < rule.failures {
                    return Change::None;
                }
            }
            Phase::HalfOpen {
                probe: Some(probe), ..
            } if probe == asker => {
                if !is_failure {
                    self.phase = Phase::Closed {
                        since_us: now_us,
                        failures: Vec::new(),
                    };
                    return Change::Closed;
                }
            }
            _ => return Change::None,
        }
        self.phase = Phase::Open {
            until_us: now_us + rule.open_us,
        };
        Change::Opened
    }

    /// Learns that an attempt was not made, or that its result is unknown.
    pub fn abandon(&mut self, asker: &str) {
        if matches!(&self.phase, Phase::HalfOpen { probe: Some(probe), .. } if **probe == *asker) {
            self.phase = Phase::HalfOpen {
                probe: None,
                until_us: 0,
            };
        }
    }

    /// Returns true where a new breaker would decide alike from now on.
    pub fn is_idle(&self, now_us: i64) -> bool {
        match &self.phase {
            Phase::Closed { failures, .. } => {
                let begin_us = now_us - self.rule.within_us;
                failures.iter().all(|(at_us, _)| *at_us <= begin_us)
            }
            _ => false,
        }
    }
}
