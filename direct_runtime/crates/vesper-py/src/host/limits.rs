//! The limits that the runs of a Host share, in memory or in Redis.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use vesper_host::model::Strategy;
use vesper_host::policy::gate::{Decision, Rule};
use vesper_host::policy::memory_state::{MAX_NAMES, MemoryState};
use vesper_host::policy::redis_state::{OutageLog, RedisOptions, RedisState};
use vesper_host::policy::settings::PolicyError;
use vesper_host::policy::state::{Demand, PolicyState, Token};
use vesper_host::resp::Address;
use vesper_host::runtime::{NoRuntime, block_on};
use vesper_host::sources::SystemSources;

use crate::host::http::models::ModelCatalog;
use crate::host::plans::settings;

static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
const TIMEOUT: Duration = Duration::from_millis(500);
/// Time after a failure of Redis for which it is not asked.
const PAUSE: Duration = Duration::from_secs(1);

/// Breakers, rate limits and limits of concurrency, by name.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct SharedLimits {
    pub(crate) state: Arc<PolicyState>,
}

/// A decision: the name of its record, the policy that made it, its moment, and the time to wait.
type Answer = (&'static str, &'static str, i64, i64);

/// The claim of an attempt on limits that it shares with others.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct LimitToken(Token);

#[pymethods]
impl LimitToken {
    /// Returns the moment at which the store let the attempt out, by its own clock.
    #[getter]
    fn admitted_us(&self) -> i64 {
        self.0.admitted_us()
    }
}

#[pymethods]
impl SharedLimits {
    /// Opens the limits of `memory:` or of an address of Redis. `is_local` keeps them in each process in an outage.
    ///
    /// Tests replace the rest: the number of names in memory, the times of Redis, and its clock.
    #[new]
    #[pyo3(signature = (url, prefix, is_local, /, *, max_names = MAX_NAMES, timeout = TIMEOUT, pause = PAUSE, clock = None))]
    fn new(
        url: &str,
        prefix: String,
        is_local: bool,
        max_names: usize,
        timeout: Duration,
        pause: Duration,
        clock: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let state = if url == "memory:" {
            PolicyState::Memory(MemoryState::new(max_names, SystemSources::shared()))
        } else {
            // Without the address: it may have a password.
            let invalid = |_| PyValueError::new_err("this is no address of Redis");
            let address = Address::parse(url).map_err(invalid)?;
            let options = RedisOptions {
                prefix,
                is_local,
                timeout,
                pause,
                clock: clock.map(|clock| Box::new(move || read_clock(&clock)) as _),
                log: Box::new(PythonLog),
            };
            PolicyState::Redis(Box::new(RedisState::new(address, options)))
        };
        Ok(Self {
            state: Arc::new(state),
        })
    }

    /// Decides whether an attempt may go out; returns the decision, and the token unless it is rejected.
    #[pyo3(signature = (name, policy, now_us, deadline_us = None, waiting = None, /, *, tokens = 0, patience_us = None))]
    #[expect(clippy::too_many_arguments, reason = "Python names the last two")]
    fn acquire(
        &self,
        py: Python<'_>,
        name: &str,
        policy: &Bound<'_, PyAny>,
        now_us: i64,
        deadline_us: Option<i64>,
        waiting: Option<&LimitToken>,
        tokens: i64,
        patience_us: Option<i64>,
    ) -> PyResult<(Answer, Option<LimitToken>)> {
        let rule = Rule::new(&settings(policy)?).map_err(policy_error)?;
        let name: Arc<str> = Arc::from(name);
        let waiting = waiting.map(|token| &token.0);
        let demand = Demand {
            most_tokens: tokens,
            patience_us,
        };
        let acquired = self
            .state
            .acquire(&name, &rule, demand, now_us, deadline_us, waiting);
        let admission = wait(py, acquired)?;
        let admission = admission.map_err(policy_error)?;
        let answer = match admission.decision {
            Decision::Admitted { at_us, wait_us } => ("admitted", "", at_us, wait_us),
            Decision::Waiting {
                by,
                until_us,
                wait_us,
            } => ("waiting", by.name(), until_us, wait_us),
            Decision::Rejected {
                by,
                retry_at_us,
                wait_us,
            } => ("rejected", by.name(), retry_at_us, wait_us),
        };
        Ok((answer, admission.token.map(LimitToken)))
    }

    /// Reports the end of an attempt, with its code unless it succeeded; returns the change of the breaker.
    #[pyo3(signature = (token, failure_code, now_us, /, *, tokens = None))]
    fn release(
        &self,
        py: Python<'_>,
        token: &LimitToken,
        failure_code: Option<&str>,
        now_us: i64,
        tokens: Option<i64>,
    ) -> PyResult<&'static str> {
        let released = self.state.release(&token.0, failure_code, tokens, now_us);
        let released = wait(py, released)?;
        Ok(released.name())
    }

    /// Gives back the token of an attempt that was not made.
    #[pyo3(signature = (token, now_us, /))]
    fn abandon(&self, py: Python<'_>, token: &LimitToken, now_us: i64) -> PyResult<()> {
        wait(py, self.state.abandon(&token.0, now_us))
    }

    /// Returns the time in microseconds that a request of a model would wait for its limits; zero where it would not, or
    /// where the strategy of the model is not `backpressure`.
    #[pyo3(signature = (models, model, now_us = None, /))]
    fn pressure_us(
        &self,
        py: Python<'_>,
        models: &ModelCatalog,
        model: &str,
        now_us: Option<i64>,
    ) -> PyResult<i64> {
        let limits = models.inner.get(model).and_then(|model| model.limits.as_ref());
        let Some(limits) = limits.filter(|limits| limits.strategy == Strategy::Backpressure) else {
            return Ok(0);
        };
        let now_us = now_us.unwrap_or_else(|| SystemSources::shared().monotonic_us());
        wait(py, self.state.pressure_us(&limits.name, &limits.rule, now_us))
    }

    /// Closes connections. The limits stay usable.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.state.close());
    }
}

/// Waits for a future without the lock of Python. The timeout of Redis bounds it.
fn wait<T: Send>(py: Python<'_>, future: impl Future<Output = T> + Send) -> PyResult<T> {
    py.detach(|| block_on(future, || Ok::<(), NoRuntime>(())))
        .map_err(|NoRuntime(message)| PyRuntimeError::new_err(message))
}

pub(crate) fn policy_error(error: PolicyError) -> PyErr {
    match error {
        PolicyError::Invalid(message) => PyValueError::new_err(message),
        PolicyError::TooManyNames(message) => PyOverflowError::new_err(message),
    }
}

/// Reads the clock of a test; one that raises stands at the start of time.
fn read_clock(clock: &Py<PyAny>) -> i64 {
    Python::attach(|py| clock.call0(py).and_then(|now| now.extract(py)).unwrap_or(0))
}

/// The logger `vesper.policies`.
struct PythonLog;

impl PythonLog {
    fn log(method: &str, message: &str) {
        Python::attach(|py| {
            let log = || -> PyResult<()> {
                let logger = LOGGER
                    .import(py, "logging", "getLogger")?
                    .call1(("vesper.policies",))?;
                logger.call_method1(method, (intern!(py, "%s"), message))?;
                Ok(())
            };
            log().unwrap_or_else(|error| error.write_unraisable(py, None));
        });
    }
}

impl OutageLog for PythonLog {
    fn warn(&self, message: &str) {
        Self::log("warning", message);
    }

    fn info(&self, message: &str) {
        Self::log("info", message);
    }
}
