//! The machine of budgets: one decision over the ledgers of all budgets around a request.

use std::fmt::Write as _;
use std::sync::Arc;

use vesper_ir::budget::OnExceeded;

use super::amounts::{Amounts, Resource};
use super::limits::Budget;

/// Least time that a request is sent with.
pub const MIN_TIME_US: u128 = 1000;

/// Set-aside worst case of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    asker: Arc<str>,
    worst: Amounts,
    /// End of its lease.
    until_us: i64,
}

/// Count of one budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    used: Amounts,
    claims: Vec<Claim>,
    has_alerted: bool,
}

/// What of a budget is used, and what requests under way may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub used: Amounts,
    pub reserved: Amounts,
}

/// Event of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Its worst case for at most `lease_us`. Without `is_timed` its time has no bound.
    Reserve {
        worst: Amounts,
        is_timed: bool,
        lease_us: i64,
    },
    /// It took this.
    Settle(Amounts),
    /// Nothing was charged.
    Release,
}

/// Report about a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// A request did not fit and was sent all the same.
    Warned,
    /// A share of the limit is used.
    Alerted,
}

impl NoticeKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Warned => "warned",
            Self::Alerted => "alerted",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Warned, Self::Alerted]
            .into_iter()
            .find(|each| each.name() == name)
    }
}

/// Report about the budget at `place` of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub place: usize,
    pub kind: NoticeKind,
    pub resource: Resource,
}

/// Budget that a request does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub place: usize,
    pub resource: Resource,
    pub left: u128,
}

/// Result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// None where the request may be sent.
    pub refusal: Option<Refusal>,
    /// Time that the request may take; None where no budget and no timeout bounds it.
    pub time_us: Option<u128>,
    pub notices: Vec<Notice>,
}

impl Ledger {
    /// Returns the count at a moment.
    pub fn standing(&self, now_us: i64) -> Standing {
        let mut found = Standing {
            used: self.used,
            ..Standing::default()
        };
        for claim in &self.claims {
            let sum = if claim.until_us > now_us {
                &mut found.reserved
            } else {
                &mut found.used
            };
            *sum = sum.plus(&claim.worst);
        }
        found
    }

    /// Settles claims whose lease is over, at their worst case.
    fn lapse(&mut self, now_us: i64) {
        let used = &mut self.used;
        self.claims.retain(|claim| {
            let is_held = claim.until_us > now_us;
            if !is_held {
                *used = used.plus(&claim.worst);
            }
            is_held
        });
    }

    /// Removes the claim of a request; returns true where it had one.
    fn remove(&mut self, asker: &str) -> bool {
        let before = self.claims.len();
        self.claims.retain(|claim| &*claim.asker != asker);
        self.claims.len() < before
    }

    /// Returns the first resource whose share is used, once.
    fn alert(&mut self, budget: &Budget) -> Option<Resource> {
        let is_reached = |resource: &Resource| {
            let at = budget.limit.alert_at(*resource);
            at.is_some_and(|at| self.used.of(*resource) >= at)
        };
        let found = Resource::ALL.into_iter().find(is_reached);
        let is_new = found.is_some() && !self.has_alerted;
        self.has_alerted |= found.is_some();
        found.filter(|_| is_new)
    }

    /// Returns the text that a store keeps.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::with_capacity(48 + 64 * self.claims.len());
        write_amounts(&mut text, &self.used);
        // Writing to a string cannot fail.
        let _ = write!(text, " {}", u8::from(self.has_alerted));
        for claim in &self.claims {
            let _ = write!(text, "\n{} {} ", claim.asker, claim.until_us);
            write_amounts(&mut text, &claim.worst);
        }
        text
    }

    /// Reads the text of a store; None for another text.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut words = lines.next()?.split(' ');
        let used = read_amounts(&mut words)?;
        let has_alerted = words.next()? == "1";
        let claims = lines.map(|line| {
            let mut words = line.split(' ');
            Some(Claim {
                asker: Arc::from(words.next()?),
                until_us: words.next()?.parse().ok()?,
                worst: read_amounts(&mut words)?,
            })
        });
        Some(Self {
            used,
            has_alerted,
            claims: claims.collect::<Option<_>>()?,
        })
    }
}

fn write_amounts(text: &mut String, amounts: &Amounts) {
    let Amounts {
        usd,
        tokens,
        calls,
        time_us,
    } = amounts;
    // Writing to a string cannot fail.
    let _ = write!(text, "{usd} {tokens} {calls} {time_us}");
}

fn read_amounts<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Amounts> {
    let mut next = || words.next()?.parse().ok();
    Some(Amounts {
        usd: next()?,
        tokens: next()?,
        calls: next()?,
        time_us: next()?,
    })
}

/// Decides about one request and the ledgers of its budgets, outermost first. A question that was sent twice takes once;
/// an end that comes twice, or after its lease, changes nothing.
pub fn step(
    budgets: &[Budget],
    ledgers: &mut [Ledger],
    asker: &Arc<str>,
    event: Event,
    now_us: i64,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut removed = Vec::with_capacity(ledgers.len());
    for ledger in ledgers.iter_mut() {
        ledger.lapse(now_us);
        removed.push(ledger.remove(asker));
    }
    match event {
        Event::Reserve {
            worst,
            is_timed,
            lease_us,
        } => {
            admit(budgets, ledgers, &worst, is_timed, now_us, &mut outcome);
            if outcome.refusal.is_none() {
                let time_us = outcome.time_us.unwrap_or_default();
                for ledger in ledgers.iter_mut() {
                    ledger.claims.push(Claim {
                        asker: Arc::clone(asker),
                        worst: Amounts { time_us, ..worst },
                        until_us: now_us.saturating_add(lease_us),
                    });
                }
            }
        }
        Event::Settle(actual) => {
            for (ledger, _) in ledgers.iter_mut().zip(removed).filter(|(_, removed)| *removed) {
                ledger.used = ledger.used.plus(&actual);
            }
        }
        Event::Release => {}
    }
    for (place, (ledger, budget)) in ledgers.iter_mut().zip(budgets).enumerate() {
        if let Some(resource) = ledger.alert(budget) {
            outcome.notices.push(Notice {
                place,
                kind: NoticeKind::Alerted,
                resource,
            });
        }
    }
    outcome
}

/// Finds the budget that a request does not fit, and the time that it may take.
fn admit(
    budgets: &[Budget],
    ledgers: &[Ledger],
    worst: &Amounts,
    is_timed: bool,
    now_us: i64,
    outcome: &mut Outcome,
) {
    outcome.time_us = is_timed.then_some(worst.time_us);
    for (place, (ledger, budget)) in ledgers.iter().zip(budgets).enumerate() {
        let is_blocking = budget.limit.on_exceeded == OnExceeded::Block;
        if budget.limit.on_exceeded == OnExceeded::Allow {
            continue;
        }
        let standing = ledger.standing(now_us);
        let taken = standing.used.plus(&standing.reserved);
        for resource in Resource::ALL {
            let Some(limit) = budget.limit.of(resource) else {
                continue;
            };
            let left = limit.saturating_sub(taken.of(resource));
            let is_over = if resource != Resource::Time {
                worst.of(resource) > left
            } else if is_blocking {
                // A request is given the time that is left.
                outcome.time_us = Some(outcome.time_us.unwrap_or(left).min(left));
                left < MIN_TIME_US
            } else {
                is_timed && worst.time_us > left
            };
            if is_over && is_blocking {
                outcome.time_us = None;
                outcome.notices.clear();
                outcome.refusal = Some(Refusal {
                    place,
                    resource,
                    left,
                });
                return;
            }
            if is_over {
                outcome.notices.push(Notice {
                    place,
                    kind: NoticeKind::Warned,
                    resource,
                });
                break;
            }
        }
    }
}
