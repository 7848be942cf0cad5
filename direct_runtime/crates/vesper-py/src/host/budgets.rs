//! The count of budgets that the runs of a Host share: in memory, in Redis, or in the database of the journal.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use vesper_host::model::Usd;
use vesper_host::policy::budget::{
    Amounts, Budget, BudgetReader, BudgetState, Event, JournalBudgets, Limit, MemoryBudgets, OnExceeded,
    Outcome, RedisBudgets, Resource, StoreError,
};
use vesper_host::resp::Address;
use vesper_host::run::contract::AmbientBudget;
use vesper_host::runtime::{NoRuntime, block_on};
use vesper_host::sources::{Sources, SystemSources};

use crate::host::journal::Journal;
use crate::host::native_performer::NativePerformer;

const TIMEOUT: Duration = Duration::from_secs(5);

/// Budgets by key.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct SharedBudgets {
    pub(crate) state: Arc<BudgetState>,
    sources: Arc<dyn Sources>,
    clock: Option<Py<PyAny>>,
}

/// A budget: name, key, USD, tokens, calls, microseconds, `block`, `warn` or `allow`, percent of an alert, and the
/// microseconds for which it is kept.
pub(crate) type BudgetRow = (
    String,
    String,
    Option<String>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    String,
    Option<u8>,
    Option<i64>,
);
/// USD, tokens, calls and microseconds.
type AmountRow = (String, u64, u64, u64);
/// Place of a budget, kind or resource, and the rest of a refusal.
type Told = (usize, &'static str, String);

#[pymethods]
impl SharedBudgets {
    /// Opens the budgets of `memory:`, of an address of Redis, or of a journal, which then is not None. Tests replace
    /// the clock, in microseconds.
    #[new]
    #[pyo3(signature = (url, prefix, journal = None, /, *, timeout = TIMEOUT, clock = None))]
    fn new(
        url: &str,
        prefix: String,
        journal: Option<&Bound<'_, Journal>>,
        timeout: Duration,
        clock: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let state = match journal {
            Some(journal) => BudgetState::Journal(JournalBudgets::new(journal.get().store())),
            None if url == "memory:" => BudgetState::Memory(MemoryBudgets::default()),
            None => {
                // Without the address: it may have a password.
                let invalid = |_| PyValueError::new_err("this is no address of Redis");
                let address = Address::parse(url).map_err(invalid)?;
                let own = clock
                    .as_ref()
                    .map(|clock| Python::attach(|py| clock.clone_ref(py)));
                let own = own.map(|clock| Box::new(move || read_clock(&clock)) as _);
                BudgetState::Redis(Box::new(RedisBudgets::new(address, prefix, timeout, own)))
            }
        };
        Ok(Self {
            state: Arc::new(state),
            sources: SystemSources::shared(),
            clock,
        })
    }

    /// Sets a worst case aside in all budgets, or in none: USD, tokens, calls and microseconds, of which None is no
    /// bound. Returns the refusal (place, resource, what is left), the microseconds that it may take, and notices
    /// (place, kind, resource).
    #[pyo3(signature = (budgets, asker, worst, lease_us, /))]
    #[allow(clippy::type_complexity, reason = "a tuple of Python")]
    fn reserve(
        &self,
        py: Python<'_>,
        budgets: Vec<BudgetRow>,
        asker: &str,
        worst: (String, u64, u64, Option<u64>),
        lease_us: i64,
    ) -> PyResult<(Option<Told>, Option<u64>, Vec<Told>)> {
        let (usd, tokens, calls, time_us) = worst;
        let event = Event::Reserve {
            worst: amounts((usd, tokens, calls, time_us.unwrap_or_default()))?,
            is_timed: time_us.is_some(),
            lease_us,
        };
        let outcome = self.apply(py, budgets, asker, event)?;
        let refusal = outcome.refusal.map(|refusal| {
            let left = match refusal.resource {
                Resource::Usd => Usd(refusal.left).to_string(),
                _ => refusal.left.to_string(),
            };
            (refusal.place, refusal.resource.name(), left)
        });
        let time_us = outcome.time_us.and_then(|time| u64::try_from(time).ok());
        Ok((refusal, time_us, told(&outcome)))
    }

    /// Replaces what was set aside by what the request took; returns notices.
    #[pyo3(signature = (budgets, asker, actual, /))]
    fn settle(
        &self,
        py: Python<'_>,
        budgets: Vec<BudgetRow>,
        asker: &str,
        actual: AmountRow,
    ) -> PyResult<Vec<Told>> {
        let event = Event::Settle(amounts(actual)?);
        Ok(told(&self.apply(py, budgets, asker, event)?))
    }

    /// Gives back what was set aside; returns notices.
    #[pyo3(signature = (budgets, asker, /))]
    fn release(&self, py: Python<'_>, budgets: Vec<BudgetRow>, asker: &str) -> PyResult<Vec<Told>> {
        Ok(told(&self.apply(py, budgets, asker, Event::Release)?))
    }

    /// Returns of each key what is used and what is set aside.
    #[pyo3(signature = (keys, /))]
    fn read(&self, py: Python<'_>, keys: Vec<String>) -> PyResult<Vec<(AmountRow, AmountRow)>> {
        let keys: Vec<Arc<str>> = keys.into_iter().map(Arc::from).collect();
        let now_us = self.now_us();
        let found = wait(py, self.state.read(&keys, now_us))?;
        let row = |each: &Amounts| {
            let number = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
            (
                Usd(each.usd).to_string(),
                number(each.tokens),
                number(each.calls),
                number(each.time_us),
            )
        };
        Ok(found
            .iter()
            .map(|each| (row(&each.used), row(&each.reserved)))
            .collect())
    }

    /// Deletes the counts of these keys.
    #[pyo3(signature = (keys, /))]
    fn forget(&self, py: Python<'_>, keys: Vec<String>) -> PyResult<()> {
        let keys: Vec<Arc<str>> = keys.into_iter().map(Arc::from).collect();
        wait(py, self.state.forget(&keys))
    }

    /// Deletes counts whose time is over, where the store does not on its own.
    fn prune(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.state.prune()).map_err(unusable)
    }

    /// Returns the performer of `budget_read`.
    fn performer(&self) -> NativePerformer {
        NativePerformer {
            performer: Arc::new(BudgetReader::new(Arc::clone(&self.state))),
        }
    }

    /// Closes connections. The budgets stay usable.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.state.close());
    }
}

impl SharedBudgets {
    fn now_us(&self) -> i64 {
        let clock = self.clock.as_ref();
        clock.map_or_else(|| self.sources.monotonic_us(), read_clock)
    }

    fn apply(&self, py: Python<'_>, budgets: Vec<BudgetRow>, asker: &str, event: Event) -> PyResult<Outcome> {
        let budgets: Vec<Budget> = budgets.into_iter().map(budget).collect::<PyResult<_>>()?;
        let (asker, now_us) = (Arc::from(asker), self.now_us());
        wait(py, self.state.apply(&budgets, &asker, event, now_us))
    }
}

pub(crate) fn ambient_budget((row, is_of_session): (BudgetRow, bool)) -> PyResult<AmbientBudget> {
    Ok(AmbientBudget {
        budget: budget(row)?,
        is_of_session,
    })
}

fn budget(row: BudgetRow) -> PyResult<Budget> {
    let (name, key, usd, tokens, calls, time_us, on_exceeded, alert_percent, kept_us) = row;
    let on_exceeded = OnExceeded::from_name(&on_exceeded)
        .ok_or_else(|| PyValueError::new_err("`on_exceeded` is block, warn or allow"))?;
    Ok(Budget {
        name: Arc::from(name),
        key: Arc::from(key),
        limit: Limit {
            usd: usd.map(|usd| money(&usd)).transpose()?,
            tokens: tokens.map(u128::from),
            calls: calls.map(u128::from),
            time_us: time_us.map(u128::from),
            on_exceeded,
            alert_percent,
        },
        kept_us,
    })
}

fn amounts((usd, tokens, calls, time_us): AmountRow) -> PyResult<Amounts> {
    let usd = money(&usd)?;
    Ok(Amounts::each(|resource| match resource {
        Resource::Usd => usd,
        Resource::Tokens => u128::from(tokens),
        Resource::Calls => u128::from(calls),
        Resource::Time => u128::from(time_us),
    }))
}

fn money(text: &str) -> PyResult<u128> {
    let found = Usd::parse(text);
    let found =
        found.ok_or_else(|| PyValueError::new_err("an amount of money has at most 12 decimal places"))?;
    Ok(found.0)
}

fn told(outcome: &Outcome) -> Vec<Told> {
    let notices = outcome.notices.iter();
    notices
        .map(|each| (each.place, each.kind.name(), each.resource.name().to_owned()))
        .collect()
}

/// Waits for a future without the lock of Python. The limits of the store bound it.
fn wait<T: Send>(py: Python<'_>, future: impl Future<Output = Result<T, StoreError>> + Send) -> PyResult<T> {
    let done = py.detach(|| block_on(future, || Ok::<(), NoRuntime>(())));
    done.map_err(|NoRuntime(message)| PyRuntimeError::new_err(message))?
        .map_err(unusable)
}

#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unusable(error: StoreError) -> PyErr {
    PyRuntimeError::new_err(error.0)
}

/// Reads the clock of a test; one that raises stands at the start of time.
fn read_clock(clock: &Py<PyAny>) -> i64 {
    Python::attach(|py| clock.call0(py).and_then(|now| now.extract(py)).unwrap_or(0))
}
