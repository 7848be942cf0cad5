//! The state of policies in one process.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::breaker::Change;
use super::gate::{Decision, Ending, Gate, Rule};
use super::is_trouble;
use super::settings::PolicyError;
use super::state::{Admission, CLOCK_STEP_US, Demand, Question, Store, Token, open_to_all};
use crate::messages::grouped;
use crate::per_process::PerProcess;
use crate::sources::{Sources, SystemSources};

pub const MAX_NAMES: usize = 10_000;

/// Limits that hold in each process; a forked child starts with an empty state.
pub struct MemoryState {
    max_names: usize,
    sources: Arc<dyn Sources>,
    names: PerProcess<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    entries: HashMap<Arc<str>, Entry>,
    /// Number of the last use of any name.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    gate: Gate,
    last_us: i64,
    last_use: u64,
    /// Askers of attempts that run.
    running: HashSet<Arc<str>>,
    /// Moment at which the last of them must have ended, whether it reported or not.
    busy_until_us: i64,
}

impl Entry {
    fn new(now_us: i64) -> Self {
        Self {
            gate: Gate::default(),
            last_us: now_us,
            last_use: 0,
            running: HashSet::new(),
            busy_until_us: 0,
        }
    }

    fn is_idle(&self, now_us: i64) -> bool {
        self.gate.is_idle(now_us) && (self.running.is_empty() || self.busy_until_us <= now_us)
    }
}

impl fmt::Debug for MemoryState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryState").finish_non_exhaustive()
    }
}

impl Default for MemoryState {
    fn default() -> Self {
        Self::new(MAX_NAMES, SystemSources::shared())
    }
}

impl MemoryState {
    pub fn new(max_names: usize, sources: Arc<dyn Sources>) -> Self {
        Self {
            max_names,
            sources,
            names: PerProcess::default(),
        }
    }

    pub fn acquire(
        &self,
        name: &Arc<str>,
        rule: &Rule,
        demand: Demand,
        now_us: i64,
        deadline_us: Option<i64>,
        waiting: Option<&Token>,
    ) -> Result<Admission, PolicyError> {
        if rule.is_open_to_all() {
            return Ok(open_to_all(now_us));
        }
        let question = Question::new(&*self.sources, rule, demand, now_us, deadline_us, waiting);
        // A panic leaves an entry as it was before the step, or after it.
        let mut names = self.names.get().lock().unwrap_or_else(PoisonError::into_inner);
        let entry = names.entry(name, now_us, self.max_names)?;
        let now_us = entry.last_us;
        let asker = &question.asker;
        let before_us = now_us + question.left_us;
        let (most_tokens, lease_us) = (question.most_tokens, question.lease_us);
        let decision = entry
            .gate
            .ask(rule, asker, most_tokens, lease_us, before_us, now_us);
        match decision {
            Decision::Rejected { .. } => {
                return Ok(Admission {
                    decision,
                    token: None,
                });
            }
            Decision::Admitted { at_us, .. } => {
                if entry.busy_until_us <= now_us {
                    entry.running.clear();
                }
                entry.running.insert(Arc::clone(asker));
                entry.busy_until_us = entry.busy_until_us.max(at_us + question.lease_us);
            }
            Decision::Waiting { .. } => {}
        }
        let token = Token {
            name: Arc::clone(name),
            asker: question.asker,
            rule: *rule,
            admitted_us: now_us,
            store: Store::Memory,
            asked_us: question.asked_us,
        };
        Ok(Admission {
            decision,
            token: Some(token),
        })
    }

    pub fn release(
        &self,
        token: &Token,
        failure_code: Option<&str>,
        tokens: Option<i64>,
        now_us: i64,
    ) -> Change {
        let ending = Ending::Ended {
            admitted_us: token.admitted_us,
            is_failure: failure_code.is_some_and(is_trouble),
            tokens,
        };
        self.leave(token, ending, now_us)
    }

    pub fn abandon(&self, token: &Token, now_us: i64) {
        self.leave(token, Ending::Abandoned, now_us);
    }

    /// Returns the time that another attempt would wait for rate and tokens now.
    pub fn pressure_us(&self, name: &str, rule: &Rule, now_us: i64) -> i64 {
        let mut names = self.names.get().lock().unwrap_or_else(PoisonError::into_inner);
        let entry = names.known(name, now_us);
        entry.map_or(0, |entry| entry.gate.pressure_us(rule, entry.last_us))
    }

    /// Returns the number of names that are kept.
    pub fn count_names(&self) -> usize {
        let names = self.names.get().lock().unwrap_or_else(PoisonError::into_inner);
        names.entries.len()
    }

    fn leave(&self, token: &Token, ending: Ending, now_us: i64) -> Change {
        if token.store != Store::Memory {
            return Change::None;
        }
        let mut names = self.names.get().lock().unwrap_or_else(PoisonError::into_inner);
        // A token from before a fork, or from before the clock was set, has no entry.
        let Some(entry) = names.known(&token.name, now_us) else {
            return Change::None;
        };
        entry.running.remove(&token.asker);
        entry.gate.leave(&token.rule, &token.asker, ending, entry.last_us)
    }
}

impl Names {
    /// Returns the entry of a name at this moment; a new one where there is none.
    fn entry(&mut self, name: &Arc<str>, now_us: i64, max_names: usize) -> Result<&mut Entry, PolicyError> {
        if !self.entries.contains_key(name) && self.entries.len() >= max_names {
            self.drop_idle(now_us, max_names)?;
        }
        self.uses += 1;
        let entry = self.entries.entry(Arc::clone(name));
        let entry = entry.or_insert_with(|| Entry::new(now_us));
        entry.move_to(now_us);
        entry.last_use = self.uses;
        Ok(entry)
    }

    fn known(&mut self, name: &str, now_us: i64) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(name)?;
        self.uses += 1;
        entry.move_to(now_us);
        entry.last_use = self.uses;
        Some(entry)
    }

    /// Drops a tenth of the names, the least recently used of those that would decide like new ones.
    fn drop_idle(&mut self, now_us: i64, max_names: usize) -> Result<(), PolicyError> {
        let idle = self.entries.iter().filter(|(_, entry)| entry.is_idle(now_us));
        let mut idle: Vec<(u64, Arc<str>)> = idle
            .map(|(name, entry)| (entry.last_use, Arc::clone(name)))
            .collect();
        idle.sort_unstable();
        for (_, name) in idle.iter().take(max_names / 10 + 1) {
            self.entries.remove(name);
        }
        if self.entries.len() < max_names {
            return Ok(());
        }
        Err(PolicyError::TooManyNames(format!(
            "{} names of policies are in use at once, and there is no room for more. A name is meant to be a node or a \
             provider: does yours hold a value that changes from run to run?",
            grouped(i64::try_from(max_names).unwrap_or(i64::MAX))
        )))
    }
}

impl Entry {
    /// Moves the clock, which does not go back; a larger step back is another clock, and starts anew.
    fn move_to(&mut self, now_us: i64) {
        if now_us < self.last_us - CLOCK_STEP_US {
            *self = Self::new(now_us);
        } else {
            self.last_us = self.last_us.max(now_us);
        }
    }
}
