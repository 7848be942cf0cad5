//! The watcher of a run: passes reports of the run loop on to Python.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use vesper_host::effect::{Broken, Failure};
use vesper_host::journal::{Entry, ErrorKind, JournalError, Kind};
use vesper_host::run::contract::{BudgetNotice, Copied, Watcher};
use vesper_host::run::outcome::Outcome;
use vesper_host::typed_json::text_member;
use vesper_interp::Request;

use crate::host::context::attached;
use crate::host::errors::journal_error;
use crate::host::execution::request_object;
use crate::host::outcome::outcome_object;
use crate::host::plans::RequestPlans;

static LOG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Calls the audit and the replay of a run.
pub(crate) struct RunWatcher {
    pub(crate) plans: Arc<RequestPlans>,
    /// `vesper.host.audit.auditing.Auditing`; None where the node has no audit.
    pub(crate) auditing: Option<Py<PyAny>>,
    /// True where the audit contains each effect.
    pub(crate) is_detailed: bool,
    pub(crate) inputs: Py<PyAny>,
    pub(crate) execution: String,
    /// `vesper.host.performers.Performers`, which learns of budgets.
    pub(crate) performers: Py<PyAny>,
    /// The known answers of a replay, with the methods `answer` and `rename`.
    pub(crate) replay: Option<Py<PyAny>>,
    /// The first exception that a call raised.
    pub(crate) raised: Mutex<Option<PyErr>>,
}

impl RunWatcher {
    /// Keeps an exception for the caller of the run.
    fn keep(&self, error: PyErr) {
        self.raised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
    }

    /// Returns the exception that a call raised.
    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn copied(&self, replay: &Bound<'_, PyAny>, request: &Request) -> PyResult<Option<Copied>> {
        let py = replay.py();
        let asked = request_object(py, &self.plans, request)?;
        let known = replay.call_method1(intern!(py, "answer"), (asked,))?;
        if known.is_none() {
            return Ok(None);
        }
        let (value, code, message, replayed): (Bound<'_, PyAny>, Option<String>, String, String) =
            known.extract()?;
        let planned = self.plans.of(&request.path);
        let result = match (code, planned) {
            (Some(code), _) => Err(Failure::new(&code, message)),
            (None, Some(planned)) => planned.value(&value)?.ok_or_else(|| {
                Failure::new(
                    "bad_response",
                    "the recorded value is not of the type of the step",
                )
            }),
            (None, None) => Err(Failure::new("bad_response", "the node has no such request")),
        };
        Ok(Some(Copied {
            result,
            replayed: Arc::from(replayed),
        }))
    }
}

impl Watcher for RunWatcher {
    fn settled(&self, request: &Request, entry: &Entry<'_>) {
        let Some(auditing) = self.auditing.as_ref().filter(|_| self.is_detailed) else {
            return;
        };
        attached(|py| {
            let tell = || -> PyResult<()> {
                let request = request_object(py, &self.plans, request)?;
                // A result has neither, and may be large.
                let text = |name| {
                    (entry.kind != Kind::Result)
                        .then(|| text_member(entry.body, name))
                        .flatten()
                };
                let said_by = (entry.kind == Kind::Resolved).then(|| text("by").unwrap_or_default());
                let arguments = (request, entry.at_us, text("code"), said_by);
                auditing.call_method1(py, intern!(py, "effect"), arguments)?;
                Ok(())
            };
            tell().unwrap_or_else(|error| self.keep(error));
        });
    }

    fn answer(&self, request: &Request) -> Result<Option<Copied>, Broken> {
        let Some(replay) = &self.replay else {
            return Ok(None);
        };
        attached(|py| self.copied(replay.bind(py), request)).map_err(|error| Broken(Box::new(error)))
    }

    fn rename(&self, request: &Request) -> Result<Option<Arc<str>>, Broken> {
        let Some(replay) = &self.replay else {
            return Ok(None);
        };
        let key: PyResult<Option<String>> = attached(|py| {
            let asked = request_object(py, &self.plans, request)?;
            replay
                .bind(py)
                .call_method1(intern!(py, "rename"), (asked,))?
                .extract()
        });
        key.map(|key| key.map(Arc::from))
            .map_err(|error| Broken(Box::new(error)))
    }

    fn ending(&self, outcome: &Outcome) -> Result<(), JournalError> {
        let Some(auditing) = &self.auditing else {
            return Ok(());
        };
        attached(|py| {
            let write = || -> PyResult<()> {
                let outcome = outcome_object(py, outcome)?;
                auditing.call_method1(py, intern!(py, "end"), (&self.inputs, outcome))?;
                Ok(())
            };
            write().map_err(|error| {
                journal_error(py, &error).unwrap_or_else(|| {
                    let message = error.to_string();
                    self.keep(error);
                    JournalError::new(ErrorKind::Journal, message)
                })
            })
        })
    }

    fn budget(&self, notice: &BudgetNotice<'_>) {
        attached(|py| {
            let text = &notice.text;
            let arguments = (&self.execution, notice.kind, notice.path, notice.budget, text);
            let told = self
                .performers
                .call_method1(py, intern!(py, "report_budget"), arguments);
            told.map_or_else(|error| error.write_unraisable(py, None), drop);
        });
    }

    fn warn(&self, message: &str) {
        attached(|py| {
            let log = || -> PyResult<()> {
                let logger = LOG.import(py, "logging", "getLogger")?.call1(("vesper.host",))?;
                logger.call_method1(intern!(py, "warning"), ("%s", message))?;
                Ok(())
            };
            log().unwrap_or_else(|error| error.write_unraisable(py, None));
        });
    }
}
