//! Shadow runs: copies of executions of Python for the follower thread.
//!
//! The thread of the caller copies inputs and outputs and never runs the direct engine.

use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use vesper_interp::guard::guarded;
use vesper_interp::words::OwnedWords;

use super::serve::{Invocation, Raised};
use super::{Plan, Route, TIMING_INTERVAL};
use crate::calls::program::as_dict;
use crate::routing::follower::{Follower, Job, JobInputs, nanoseconds};
use crate::routing::output_comparison::{read_exact_outputs, read_plain_outputs};

/// An execution of the generated function that is followed.
pub(super) struct LeaderRun<'py> {
    pub(super) outputs: Bound<'py, PyAny>,
    /// Its nanoseconds, if measured.
    python: Option<u64>,
}

/// Proof that a copy was queued for the follower thread.
pub(super) struct Queued;

/// Reason why an execution is not queued.
enum NotQueued {
    /// Python compares it, because of a form that is not copied.
    Uncommon,
    Fault(String),
}

impl Route {
    /// Runs Python as the leader and queues the execution for its follower.
    pub(super) fn lead_and_follow<'py>(
        &self,
        py: Python<'py>,
        mode: u8,
        call: Invocation<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(leader) = self.lead_timed(py, mode, call) else {
            return self.handle_exception(py, call, Plan::Followed);
        };
        match self.queue_words(py, call, &leader) {
            Some(Queued) => Ok(leader.outputs),
            None => self.queue_values(py, call, leader),
        }
    }

    /// Runs the generated function for a call that is followed.
    #[inline]
    pub(super) fn lead_timed<'py>(
        &self,
        py: Python<'py>,
        mode: u8,
        call: Invocation<'_, 'py>,
    ) -> Result<LeaderRun<'py>, Raised> {
        // Reading the clock costs up to a tenth of a short node, so only some calls are timed.
        let begun = self.draw().is_multiple_of(TIMING_INTERVAL).then(Instant::now);
        let outputs = self.lead(py, call)?;
        let python = begun.map(nanoseconds);
        self.count_served(mode, false);
        Ok(LeaderRun { outputs, python })
    }

    /// Queues a copy in words. Returns `None`, without an effect, if the inputs or outputs are not of a common form.
    ///
    /// Runs no Python code, releases no Python object and catches every panic.
    #[inline]
    pub(super) fn queue_words(
        &self,
        py: Python<'_>,
        call: Invocation<'_, '_>,
        leader: &LeaderRun<'_>,
    ) -> Option<Queued> {
        let copied = || {
            let program = self.program.get();
            let readers = program.frameless_calls().readers()?;
            let shape = program.compiled().pathed_shape()?;
            self.follower.with(py, |follower| {
                let follower = follower.get_or_insert_with(|| self.new_follower(py));
                let mut job = follower.take_spare().unwrap_or_else(|| {
                    let words = JobInputs::Words(OwnedWords::new(&shape));
                    Arc::new(self.new_job(words, Vec::new(), leader.python))
                });
                let Job {
                    inputs: JobInputs::Words(words),
                    outputs,
                    python,
                    key,
                    ..
                } = Arc::get_mut(&mut job)?
                else {
                    return None;
                };
                let is_copied = program.copy_words(py, call.inputs.as_borrowed(), &shape, words)
                    && read_plain_outputs(program.outputs(), readers, &leader.outputs, outputs);
                if !is_copied {
                    return None;
                }
                *python = leader.python;
                *key = self.key();
                follower.put(job);
                Some(Queued)
            })
        };
        if call.now.is_some() {
            return None;
        }
        // A panic recurs in `queue_values`, which reports it.
        guarded(copied).ok().flatten()
    }

    /// Queues a copy of any form, or hands the execution to Python.
    #[cold]
    pub(super) fn queue_values<'py>(
        &self,
        py: Python<'py>,
        call: Invocation<'_, 'py>,
        leader: LeaderRun<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A panic outside the engine counts as an engine fault too; the caller gets the outputs of Python.
        let copied =
            guarded(|| self.copy_job(call, &leader)).unwrap_or_else(|what| Ok(Err(NotQueued::Fault(what))));
        let fault = match copied {
            Ok(Ok(job)) => {
                self.with_follower(py, |follower| follower.put(Arc::new(job)));
                return Ok(leader.outputs);
            }
            Ok(Err(NotQueued::Uncommon)) => None,
            Ok(Err(NotQueued::Fault(what))) => Some(what),
            Err(error) if error.is_instance_of::<PyException>(py) => None,
            Err(error) => {
                self.with_follower(py, |follower| follower.lose(1));
                return Err(error);
            }
        };
        let handed = (
            call.inputs,
            &leader.outputs,
            leader.python,
            false,
            fault,
            call.now,
        );
        self.hand_over.bind(py).call1(handed)?;
        Ok(leader.outputs)
    }

    fn copy_job(&self, call: Invocation<'_, '_>, leader: &LeaderRun<'_>) -> PyResult<Result<Job, NotQueued>> {
        let program = self.program.get();
        let now = program.now(call.now)?;
        let inputs = match program.convert_pathed(as_dict(call.inputs)?) {
            Ok(Ok(Ok(inputs))) => inputs,
            Ok(Ok(Err(_))) => return Ok(Err(NotQueued::Uncommon)),
            Ok(Err(error)) => return Err(error),
            Err(what) => return Ok(Err(NotQueued::Fault(what))),
        };
        let Some(outputs) = read_exact_outputs(program.outputs(), &leader.outputs)? else {
            return Ok(Err(NotQueued::Uncommon));
        };
        let job = self.new_job(JobInputs::Values(inputs), outputs, leader.python);
        Ok(Ok(Job { now, ..job }))
    }

    fn new_job(&self, inputs: JobInputs, outputs: Vec<vesper_ir::Value>, python: Option<u64>) -> Job {
        Job {
            inputs,
            now: None,
            outputs,
            python,
            key: self.key(),
        }
    }

    /// Calls `does` with the follower, whose thread starts with the first job.
    pub(super) fn with_follower<T>(&self, py: Python<'_>, does: impl FnOnce(&Arc<Follower>) -> T) -> T {
        self.follower.with(py, |follower| {
            does(follower.get_or_insert_with(|| self.new_follower(py)))
        })
    }

    #[cold]
    fn new_follower(&self, py: Python<'_>) -> Arc<Follower> {
        Arc::new(Follower::new(
            self.program.clone_ref(py),
            self.thread_flight.clone_ref(py),
            self.hurry.clone_ref(py),
            self.deadline,
            self.most_bytes,
            self.keeps,
        ))
    }
}
