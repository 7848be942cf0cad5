//! Backtests: two versions of a node on the recorded runs of a journal, run by run, without any effect.
//!
//! `reading` fetches pages of runs, `case` decodes one, `version` replays one version on it, `kind` compares the
//! endings, `measure` evaluates segments and sums, and `tally` counts. Each page is counted by several threads while
//! the next one is read. The texts of kinds, endings and segments are those of `vesper/changes/backtest`.

mod case;
mod kind;
pub mod measure;
pub mod reading;
pub mod tally;
mod version;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use vesper_interp::Program;

use crate::backtest::case::Case;
use crate::backtest::kind::{Compared, compare};
use crate::backtest::measure::{Measure, Measured};
use crate::backtest::reading::{Cursor, Query, RawRun, Why};
use crate::backtest::tally::{Example, Group, Tally};
use crate::backtest::version::{Ended, Replay, ending_text, reproduces};
use crate::journal::JournalError;
use crate::journal::begin::StoreJournal;

pub use kind::{FieldMode, OutputField};

/// Runs that are read at a time.
const PAGE: usize = 4096;

/// Two versions and what is measured of them.
#[derive(Debug)]
pub struct Plan {
    pub before: Arc<Program>,
    pub after: Arc<Program>,
    /// Outputs that are compared, in the order of their texts.
    pub outputs: Vec<OutputField>,
    /// Fields of declared errors that are compared.
    pub errors: Vec<String>,
    /// True where codes of declared errors are sensitive.
    pub hides_codes: bool,
    pub by: Vec<Measure>,
    pub sums: Vec<Measure>,
    pub selection: Option<Measure>,
    /// Semantic hash of the version before, as runs are pinned to it.
    pub semantic_hash: String,
}

/// A backtest on a journal, advanced page by page.
pub struct Backtest {
    journal: Arc<StoreJournal>,
    plan: Plan,
    query: Query,
    threads: NonZeroUsize,
    cursor: Cursor,
    /// The page that was read during the last step.
    next: Option<Vec<RawRun>>,
    pub tally: Tally,
}

impl std::fmt::Debug for Backtest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Backtest({})", self.journal.store.name())
    }
}

impl Backtest {
    pub fn new(journal: Arc<StoreJournal>, plan: Plan, query: Query, threads: NonZeroUsize) -> Self {
        let sums = plan.sums.len();
        let segments = plan.by.len();
        Self {
            cursor: Cursor::new(query.limit),
            journal,
            plan,
            query,
            threads,
            next: None,
            tally: Tally::new(sums, segments),
        }
    }

    /// Returns how many runs the query selects.
    pub fn total(&self) -> Result<u64, JournalError> {
        self.query.count(&self.journal)
    }

    /// Counts one page and reads the next; returns false where there was none.
    pub fn step(&mut self) -> Result<bool, JournalError> {
        let page = match self.next.take() {
            Some(page) => page,
            None => self.cursor.page(&self.journal, &self.query, PAGE)?,
        };
        if page.is_empty() {
            return Ok(false);
        }
        let (plan, store) = (&self.plan, self.journal.store.name());
        let size = page.len().div_ceil(self.threads.get()).max(1);
        let mut parts: Vec<Vec<RawRun>> = Vec::with_capacity(self.threads.get());
        let mut runs = page.into_iter().peekable();
        while runs.peek().is_some() {
            parts.push(runs.by_ref().take(size).collect());
        }
        let (cursor, journal, query) = (&mut self.cursor, &self.journal, &self.query);
        let (tallies, next) = thread::scope(|scope| {
            let handles: Vec<_> = parts
                .into_iter()
                .map(|part| scope.spawn(move || count(plan, part, store)))
                .collect();
            let next = cursor.page(journal, query, PAGE);
            let tallies: Vec<_> = handles.into_iter().map(thread::ScopedJoinHandle::join).collect();
            (tallies, next)
        });
        for tally in tallies {
            let tally = tally.map_err(|_| broken())?;
            self.tally.merge(tally);
        }
        self.next = Some(next?);
        Ok(true)
    }
}

fn broken() -> JournalError {
    JournalError::new(
        crate::journal::ErrorKind::Journal,
        "a thread of the backtest ended with a fault",
    )
}

/// Counts runs.
fn count(plan: &Plan, runs: Vec<RawRun>, store: &str) -> Tally {
    let mut tally = Tally::new(plan.sums.len(), plan.by.len());
    for run in runs {
        let name = run.execution().to_owned();
        let hash = run.semantic_hash().to_owned();
        match run.entries(store) {
            Err(why) => tally.exclude(why, &name),
            Ok(entries) => match Case::of(&entries) {
                None => tally.exclude(Why::NoInputs, &name),
                Some(case) => count_case(plan, &mut tally, &case, &name, &hash),
            },
        }
    }
    tally
}

fn count_case(plan: &Plan, tally: &mut Tally, case: &Case<'_>, name: &str, hash: &str) {
    let before = Replay::of(&plan.before, case);
    if let Some(selection) = &plan.selection {
        match selection.before(&before, case) {
            Measured::Value(_, vesper_ir::Value::Boolean(true)) => {}
            Measured::Value(_, vesper_ir::Value::Boolean(false)) => {
                tally.not_selected += 1;
                return;
            }
            _ => {
                tally.not_decided += 1;
                return;
            }
        }
    }
    if let Ended::Unanswered(step) = &before.ended {
        *tally.unanswered_before.entry(step.clone()).or_default() += 1;
        return;
    }
    let after = Replay::of(&plan.after, case);
    let kind = match compare(plan, &before, &after) {
        Compared::Same => None,
        Compared::Changed(kind) => Some(kind),
        Compared::Not(ending) => {
            *tally.not_compared.entry(ending).or_default() += 1;
            return;
        }
    };
    let is_reproduced = reproduces(plan, &before, case);
    let sums: Vec<_> = plan
        .sums
        .iter()
        .map(|each| (each.before(&before, case), each.after(&after, case)))
        .collect();
    let add = |group: &mut Group| group.add(kind.is_some(), &sums);
    if is_reproduced {
        add(&mut tally.total);
        for (number, measure) in plan.by.iter().enumerate() {
            let label = match measure.before(&before, case) {
                Measured::Value(ty, value) => measure::text_of(&ty, &value),
                Measured::NoOutput => format!("({})", ending_text(&plan.before, &before.ended, false)),
                Measured::Failed => String::from(measure::FAILED),
            };
            if let Some(group) = tally.group(number, label) {
                add(group);
            }
        }
    } else {
        add(&mut tally.apart);
        tally.apart_other_definition += u64::from(hash != plan.semantic_hash);
    }
    let Some(kind) = kind else { return };
    tally.add_kind(
        kind,
        1,
        Example {
            size: case.size,
            name: name.to_owned(),
        },
    );
    if let Ended::Unanswered(step) = after.ended {
        *tally.unanswered_after.entry(step).or_default() += 1;
    }
}
