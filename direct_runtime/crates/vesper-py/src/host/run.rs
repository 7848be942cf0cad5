//! The run loop for Python: a node that a Host has prepared, and its runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};
use vesper_host::journal::Run;
use vesper_host::run::contract::{AmbientBudget, Execution, Plans};
use vesper_host::run::grants::{Grants, Mint};
use vesper_host::run::outcome::{Outcome, RunError, Waiting};
use vesper_host::run::running::{self, Control, Pace, Prepared, Services};
use vesper_host::run::trace::{EffectSpan, RunTrace};
use vesper_host::runtime::{self, NoRuntime};

use crate::host::budgets::{BudgetRow, SharedBudgets, ambient_budget};
use crate::host::context::attached;
use crate::host::errors::journal_exception;
use crate::host::execution::{ended, execution_of};
use crate::host::journal::run as journal_run;
use crate::host::limits::SharedLimits;
use crate::host::native_performer::exception_of;
use crate::host::outcome::outcome_object;
use crate::host::performer::HostPerformers;
use crate::host::plans::RequestPlans;
use crate::host::sources::sources_of;
use crate::host::watcher::RunWatcher;
use crate::watch::check_signals;

static IN_DOUBT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static WAITS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A node with everything that its runs need.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct PreparedNode {
    services: Arc<Services>,
    prepared: Arc<Prepared>,
    plans: Arc<RequestPlans>,
    /// `vesper.host.performers.Performers`.
    performers: Py<PyAny>,
}

#[pymethods]
impl PreparedNode {
    /// Prepares a node from its documents, its plans, its policy, and the capabilities that it has and has not.
    #[new]
    #[pyo3(signature = (
        ir, callees, requests, policy, granted, refused, performers, secret, limits, budgets, pace, sources, is_joined, /
    ))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes new lists")]
    #[allow(clippy::too_many_arguments, reason = "one for each part of a prepared node")]
    fn new(
        py: Python<'_>,
        ir: &Bound<'_, PyBytes>,
        callees: Vec<Bound<'_, PyBytes>>,
        requests: &Bound<'_, PyDict>,
        policy: &Bound<'_, PyDict>,
        granted: Vec<String>,
        refused: Vec<(String, String)>,
        performers: Py<PyAny>,
        secret: Py<PyAny>,
        limits: &SharedLimits,
        budgets: &SharedBudgets,
        pace: &str,
        sources: Option<&Bound<'_, PyAny>>,
        is_joined: bool,
    ) -> PyResult<Self> {
        let (converted, requests) = RequestPlans::new(py, ir, &callees, requests)?;
        let number = |name: &str| {
            policy
                .get_item(name)?
                .map(|value| value.extract::<u64>())
                .transpose()
        };
        let mint = Mint::default();
        let mut grants = Grants::default();
        let names = granted.iter().cloned().collect();
        for capability in granted {
            let capability: Arc<str> = Arc::from(capability);
            grants
                .handles
                .insert(Arc::clone(&capability), mint.handle(capability));
        }
        grants.refused = refused
            .into_iter()
            .map(|(capability, why)| (Arc::from(capability), why))
            .collect();
        let plans = Plans {
            requests,
            total_timeout: number("total_timeout_us")?.map(Duration::from_micros),
            memory: number("memory_limit_mb")?.map(|mebibytes| mebibytes << 20),
            expected: number("expected_latency_ms")?.map(Duration::from_millis),
        };
        let converted = Arc::new(converted);
        let parts = performers.clone_ref(py);
        let performers =
            HostPerformers::new(py, Arc::clone(&converted), performers, secret, names, is_joined)?;
        let performers = Arc::new(performers);
        let services = Services {
            mint,
            performers,
            sources: sources_of(sources)?,
            policies: Arc::clone(&limits.state),
            budgets: Arc::clone(&budgets.state),
            pace: read_pace(pace)?,
        };
        Ok(Self {
            services: Arc::new(services),
            prepared: Arc::new(Prepared {
                node: Arc::clone(&converted.node_id),
                plans,
                grants,
                is_joined,
            }),
            plans: converted,
            performers: parts,
        })
    }

    /// Begins a run. `auditing` writes its audit, `replay` has known answers; each may be None.
    #[expect(clippy::too_many_arguments, reason = "one for each part of a run in Python")]
    #[pyo3(signature = (run, inputs, auditing, is_detailed, replay, thread, /))]
    fn begin(
        &self,
        py: Python<'_>,
        run: &Bound<'_, journal_run::Run>,
        inputs: Py<PyAny>,
        auditing: Option<Py<PyAny>>,
        is_detailed: bool,
        replay: Option<Py<PyAny>>,
        thread: u64,
    ) -> Running {
        let run: Arc<dyn Run> = run.get().native();
        let execution = run.execution().to_owned();
        let watcher = Arc::new(RunWatcher {
            plans: Arc::clone(&self.plans),
            auditing,
            is_detailed,
            inputs,
            execution: execution.clone(),
            performers: self.performers.clone_ref(py),
            replay,
            raised: Mutex::default(),
        });
        let (services, prepared) = (Arc::clone(&self.services), Arc::clone(&self.prepared));
        let running = running::Running::new(services, prepared, run, Arc::clone(&watcher) as _);
        Running {
            control: Arc::clone(running.control()),
            inner: Mutex::new(Some(running)),
            plans: Arc::clone(&self.plans),
            watcher,
            execution,
            thread,
        }
    }
}

fn read_pace(name: &str) -> PyResult<Pace> {
    Ok(match name {
        "policies" => Pace::Policies,
        "once" => Pace::Once,
        "immediate" => Pace::Immediate,
        other => return Err(PyValueError::new_err(format!("no pace is called `{other}`"))),
    })
}

type EffectRow = (
    String,
    &'static str,
    &'static str,
    u64,
    i64,
    i64,
    u32,
    Option<String>,
    Option<UsageRow>,
);

/// Model, input and output tokens, and the cost of a request to a model.
type UsageRow = (String, u64, u64, String);

/// One run of a node.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Running {
    control: Arc<Control>,
    /// None while a thread drives it.
    inner: Mutex<Option<running::Running>>,
    plans: Arc<RequestPlans>,
    watcher: Arc<RunWatcher>,
    /// The id under which the journal has it.
    #[pyo3(get)]
    execution: String,
    /// The thread that drives it.
    #[pyo3(get)]
    thread: u64,
}

#[pymethods]
impl Running {
    /// True where the journal has the run.
    #[getter]
    fn has_committed(&self) -> bool {
        self.control.has_committed()
    }

    /// Ends the run unless it has changed something: a request that only reads is dropped, no further one is performed.
    fn cancel(&self) {
        self.control.cancel();
    }

    /// Ends the run now, whatever it has changed: a request that only reads is dropped, and no further one is performed.
    fn stop(&self) {
        self.control.stop();
    }

    /// Ends the time of the run when that of its caller ends, `seconds` from now.
    #[pyo3(signature = (seconds, /))]
    fn limit(&self, seconds: f64) -> PyResult<()> {
        let left =
            Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut running = self.take()?;
        running.limit(left);
        self.put_back(running);
        Ok(())
    }

    /// Gives the run the budgets of its caller and of the configuration, each with whether the session completes its
    /// key, and the tenant that budgets of tenants are counted for.
    #[pyo3(signature = (budgets, tenant, /))]
    fn set_budgets(&self, budgets: Vec<(BudgetRow, bool)>, tenant: Option<String>) -> PyResult<()> {
        let ambient: PyResult<Vec<AmbientBudget>> = budgets.into_iter().map(ambient_budget).collect();
        let ambient = ambient?;
        let mut running = self.take()?;
        running.set_budgets(ambient, tenant.map(Arc::from));
        self.put_back(running);
        Ok(())
    }

    /// Prolongs the lease of a run that the journal has.
    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        let renewed = py.detach(|| self.control.renew());
        renewed.map_err(|error| journal_exception(py, &error))
    }

    /// Runs to the end and writes the outcome; returns it. An exception of an engine is raised, and `end` is due.
    #[pyo3(signature = (execution, input_size, /))]
    fn go<'py>(
        &self,
        py: Python<'py>,
        execution: &Bound<'py, PyAny>,
        input_size: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Before the run is taken: `end` needs it after an exception.
        let mut execution = execution_of(execution, &self.plans)?;
        let mut running = self.take()?;
        let outcome = py.detach(|| {
            let outcome = drive(&mut running, &mut *execution, input_size)?;
            self.ended(&mut running, outcome).map_err(Stop::Failed)
        });
        self.put_back(running);
        self.result(py, outcome)
    }

    /// Gives the run a trace context before it is driven: the `traceparent` of its span, the `tracestate`, and whether
    /// its effects have spans.
    #[pyo3(signature = (traceparent, tracestate, is_recorded, /))]
    fn set_trace(&self, traceparent: String, tracestate: Option<String>, is_recorded: bool) -> PyResult<()> {
        let no_context = || PyValueError::new_err("a `traceparent` is VERSION-TRACE-PARENT-FLAGS");
        let trace = RunTrace::new(traceparent, tracestate, is_recorded).ok_or_else(no_context)?;
        let mut running = self.take()?;
        running.set_trace(trace);
        self.put_back(running);
        Ok(())
    }

    /// Returns the spans of effects that have ended: path, effect, class, span id, start and end in nanoseconds since
    /// 1970, attempts, the code of a failure, and the usage of a model.
    fn take_spans(&self) -> Vec<EffectRow> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let trace = inner.as_mut().and_then(running::Running::trace);
        let ended = trace.map(RunTrace::take).unwrap_or_default().into_iter();
        let row = |each: EffectSpan| {
            let EffectSpan {
                path,
                effect,
                class,
                id,
                start_ns,
                end_ns,
                attempts,
                failure,
                usage,
            } = each;
            let usage = usage.map(|(model, used)| {
                (
                    model,
                    used.input_tokens,
                    used.output_tokens,
                    used.cost.to_string(),
                )
            });
            (
                path, effect, class, id, start_ns, end_ns, attempts, failure, usage,
            )
        };
        ended.map(row).collect()
    }

    /// Writes an outcome that the Host gives the run.
    #[pyo3(signature = (outcome, /))]
    fn end<'py>(&self, py: Python<'py>, outcome: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let outcome = Outcome::Ended {
            ended: ended(outcome)?,
            why: None,
        };
        let mut running = self.take()?;
        let outcome = py.detach(|| running.end(outcome).map_err(Stop::Failed));
        self.put_back(running);
        self.result(py, outcome)
    }
}

impl Running {
    /// Runs as `go` does, without a thread of its own.
    pub(crate) async fn advance(&self, execution: Py<PyAny>, input_size: u64) -> PyResult<Option<Py<PyAny>>> {
        let mut execution = attached(|py| execution_of(execution.bind(py), &self.plans))?;
        let mut running = self.take()?;
        let outcome = running.go(&mut *execution, input_size).await;
        let outcome = outcome.and_then(|outcome| self.ended(&mut running, outcome));
        self.put_back(running);
        attached(|py| {
            let outcome = self.result(py, outcome.map_err(Stop::Failed))?;
            Ok(Some(outcome.unbind()))
        })
    }

    /// Writes the outcome of a run, unless nothing happened that a journal should contain.
    fn ended(&self, running: &mut running::Running, outcome: Outcome) -> Result<Outcome, RunError> {
        if outcome.never_began() && !self.control.has_committed() {
            return Ok(outcome);
        }
        running.end(outcome)
    }

    fn take(&self) -> PyResult<running::Running> {
        let running = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.ok_or_else(|| PyRuntimeError::new_err("another thread drives this run"))
    }

    fn put_back(&self, running: running::Running) {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    }

    fn result<'py>(&self, py: Python<'py>, outcome: Result<Outcome, Stop>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(raised) = self.watcher.take_raised() {
            return Err(raised);
        }
        match outcome {
            Ok(outcome) => outcome_object(py, &outcome),
            Err(Stop::Interrupted(raised)) => Err(raised),
            Err(Stop::Unable(NoRuntime(message))) => Err(PyRuntimeError::new_err(message)),
            Err(Stop::Failed(error)) => Err(exception(py, error)),
        }
    }
}

fn exception(py: Python<'_>, error: RunError) -> PyErr {
    match error {
        RunError::Journal(error) => journal_exception(py, &error),
        RunError::InDoubt { path, why, execution } => {
            let class = IN_DOUBT.import(py, "vesper.host.in_doubt", "InDoubt");
            let made = class.and_then(|class| class.call1((path, why, execution)));
            made.map_or_else(|error| error, PyErr::from_value)
        }
        RunError::Waiting(wait) => {
            let Waiting {
                execution,
                node_id,
                path,
                kind,
                name,
                due_us,
            } = *wait;
            let class = WAITS.import(py, "vesper.host.waiting", "RunWaits");
            let made = class.and_then(|class| class.call1((execution, node_id, path, kind, name, due_us)));
            made.map_or_else(|error| error, PyErr::from_value)
        }
        RunError::Broken(broken) => exception_of(broken),
        RunError::NoHandle(message) | RunError::Fault(message) => PyRuntimeError::new_err(message),
    }
}

/// Reason why a run came back without an outcome.
enum Stop {
    Interrupted(PyErr),
    Unable(NoRuntime),
    Failed(RunError),
}

impl From<NoRuntime> for Stop {
    fn from(error: NoRuntime) -> Self {
        Self::Unable(error)
    }
}

/// Runs to the end on this thread, which does not hold the lock.
fn drive(
    running: &mut running::Running,
    execution: &mut dyn Execution,
    input_size: u64,
) -> Result<Outcome, Stop> {
    let check = || check_signals().map_err(Stop::Interrupted);
    let driven = runtime::block_on(running.go(execution, input_size), check);
    if matches!(driven, Err(Stop::Interrupted(_))) {
        execution.stop(None);
    }
    driven?.map_err(Stop::Failed)
}
