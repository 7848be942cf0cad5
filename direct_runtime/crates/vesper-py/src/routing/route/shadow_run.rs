//! Shadow runs: the direct engine follows an execution of Python, and both are compared.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vesper_interp::guard::guarded;
use vesper_interp::{FingerprintKey, Outcome, Path};
use vesper_ir::Value;

use super::serve::{Invocation, Raised};
use super::{
    INSPECTION_INTERVAL, MAX_HANDED, MAX_INLINE_NANOSECONDS, Plan, RECHECK_INTERVAL, Route, TIMED_AFTER_SLOW,
    TIMING_INTERVAL, limits,
};
use crate::calls::program::as_dict;
use crate::routing::agreements::{Demand, lock};
use crate::routing::follower::{Follower, HandedRun, Job, nanoseconds};
use crate::routing::inflight_counters::Flight;
use crate::routing::output_comparison::{are_outputs, are_words, read_exact_outputs};
use crate::watch::run_watched_within;

/// An execution of the generated function that is followed.
pub(super) struct LeaderRun<'py> {
    pub(super) outputs: Bound<'py, PyAny>,
    /// Its nanoseconds, if measured.
    python: Option<u64>,
    /// The random number of this call.
    chance: u64,
}

/// Proof that an agreement was counted.
pub(super) struct Counted;

/// State of a frameless shadow run that was not counted.
pub(super) enum FollowUp {
    /// The engines agree, and Python wants the execution.
    Wanted,
    /// The run ended and needs further checks.
    Ran(Comparison),
    /// There was no run: machine code is missing or gave up. With the start time, if measured.
    Open(Option<Instant>),
    /// The run panicked with this message.
    Fault(String),
}

/// The result of a run of the direct engine.
pub(super) struct Comparison {
    path: Path,
    fingerprint: u64,
    is_same: bool,
    /// Start time and duration up to the comparison, if measured.
    took: Option<(Instant, u64)>,
}

impl LeaderRun<'_> {
    /// Returns true if the times of this call are recorded.
    #[inline]
    fn is_timed(&self) -> bool {
        self.chance.is_multiple_of(TIMING_INTERVAL)
    }

    /// Returns true if an agreement is selected for inspection. Uses other bits than the selection for timing.
    #[inline]
    fn is_chosen(&self) -> bool {
        (self.chance >> 8).is_multiple_of(INSPECTION_INTERVAL)
    }
}

impl Comparison {
    /// Returns true if the execution is run again.
    #[inline]
    fn is_checked(&self) -> bool {
        self.fingerprint.is_multiple_of(RECHECK_INTERVAL)
    }
}

/// Counts a direct execution as in flight until dropped, also on a panic.
struct InFlight<'a>(&'a Flight);

impl<'a> InFlight<'a> {
    #[inline]
    fn new(flight: &'a Flight) -> Self {
        flight.enter();
        Self(flight)
    }
}

impl Drop for InFlight<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Route {
    /// Runs Python as the leader and the direct engine as its follower.
    pub(super) fn lead_and_follow<'py>(
        &self,
        py: Python<'py>,
        mode: u8,
        call: Invocation<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(leader) = self.lead_timed(py, mode, call) else {
            return self.handle_exception(py, call, Plan::Followed);
        };
        match self.follow_frameless(py, call, &leader) {
            Ok(Counted) => Ok(leader.outputs),
            Err(follow_up) => self.finish_following(py, call, leader, *follow_up),
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
        let chance = self.draw();
        // Reading the clock costs up to a tenth of a short node, so only some calls are timed unless one was slow
        // recently.
        let timings_left = self.timings_left.load(Ordering::Relaxed);
        let begun = (timings_left > 0 || chance.is_multiple_of(TIMING_INTERVAL)).then(Instant::now);
        let outputs = self.lead(py, call)?;
        let python = begun.map(|begun| self.record_python_time(timings_left, begun));
        self.count_served(mode, false);
        Ok(LeaderRun {
            outputs,
            python,
            chance,
        })
    }

    #[inline(never)]
    fn record_python_time(&self, timings_left: u64, begun: Instant) -> u64 {
        let python = nanoseconds(begun);
        // A single slow call says more about the machine than about the node.
        let left = match timings_left {
            0 if python >= MAX_INLINE_NANOSECONDS => TIMING_INTERVAL,
            _ if python >= MAX_INLINE_NANOSECONDS => TIMED_AFTER_SLOW,
            timings_left => timings_left.saturating_sub(1),
        };
        self.timings_left.store(left, Ordering::Relaxed);
        python
    }

    /// Follows a short execution without a frame, compares the engines and counts an agreement.
    ///
    /// Runs no Python code, releases no Python object and catches every panic. Uncommon results are boxed, so that
    /// the caller tests a single word.
    #[inline]
    pub(super) fn follow_frameless(
        &self,
        py: Python<'_>,
        call: Invocation<'_, '_>,
        leader: &LeaderRun<'_>,
    ) -> Result<Counted, Box<FollowUp>> {
        if leader
            .python
            .is_some_and(|python| python >= MAX_INLINE_NANOSECONDS)
        {
            return Err(Box::new(FollowUp::Open(None)));
        }
        let begun = leader.is_timed().then(Instant::now);
        guarded(|| match self.compare_frameless(py, call, leader, begun) {
            Some(comparison) if !comparison.is_same || comparison.is_checked() => {
                Err(Box::new(FollowUp::Ran(comparison)))
            }
            Some(comparison) if self.try_count(py, &comparison, leader) => Ok(Counted),
            Some(_) => Err(Box::new(FollowUp::Wanted)),
            None => Err(Box::new(FollowUp::Open(begun))),
        })
        .unwrap_or_else(|what| Err(Box::new(FollowUp::Fault(what))))
    }

    /// Counts an agreement; returns false, without counting, if Python wants it.
    #[inline]
    fn try_count(&self, py: Python<'_>, comparison: &Comparison, leader: &LeaderRun<'_>) -> bool {
        self.findings.with(py, |own| {
            let demand = if own.handed.len() >= MAX_HANDED {
                Demand::None
            } else if leader.is_chosen() {
                return false;
            } else {
                Demand::Wanted { keeps: self.keeps }
            };
            if !own
                .agreements
                .agree(&comparison.path, comparison.fingerprint, demand)
            {
                return false;
            }
            if let Some((begun, took)) = comparison.took {
                own.agreements.time(leader.python, Some(took));
                own.agreements.cost(nanoseconds(begun), TIMING_INTERVAL);
            }
            true
        })
    }

    /// Handles a followed call that `follow_frameless` did not count.
    #[cold]
    pub(super) fn finish_following<'py>(
        &self,
        py: Python<'py>,
        call: Invocation<'_, 'py>,
        leader: LeaderRun<'py>,
        follow_up: FollowUp,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A panic outside the engine counts as an engine fault too; the caller gets the outputs of Python.
        let seen = guarded(|| match leader.python {
            Some(python) if python >= MAX_INLINE_NANOSECONDS => {
                self.queue_for_thread(call, &leader.outputs, python)
            }
            _ => self.follow(py, call, &leader, follow_up),
        });
        let LeaderRun { outputs, python, .. } = leader;
        match seen.unwrap_or_else(|what| Ok(handed_with_fault(what))) {
            Ok(Followed::Done) => {}
            Ok(Followed::HandedOver { is_chosen, fault }) => {
                let handed = (call.inputs, &outputs, python, is_chosen, fault, call.now);
                self.hand_over.bind(py).call1(handed)?;
            }
            Err(error) if error.is_instance_of::<PyException>(py) => {
                let handed = (call.inputs, &outputs, python, false, py.None(), call.now);
                self.hand_over.bind(py).call1(handed)?;
            }
            Err(error) => {
                self.findings.with(py, |own| own.agreements.findings.lost += 1);
                return Err(error);
            }
        }
        Ok(outputs)
    }

    /// Continues a short execution where `follow_frameless` stopped.
    fn follow(
        &self,
        py: Python<'_>,
        call: Invocation<'_, '_>,
        leader: &LeaderRun<'_>,
        follow_up: FollowUp,
    ) -> PyResult<Followed> {
        let key = self.key();
        let named = self.program.get().outputs();
        let outputs = &leader.outputs;
        let comparison = match follow_up {
            FollowUp::Wanted => return self.keep_for_python(call, leader),
            FollowUp::Ran(comparison) => comparison,
            FollowUp::Open(begun) => match self.run(py, call, &key)? {
                DirectRun::Returned(values, path, fingerprint) => Comparison {
                    path,
                    fingerprint,
                    is_same: are_outputs(named, &values, outputs)?,
                    took: begun.map(|begun| (begun, nanoseconds(begun))),
                },
                DirectRun::Otherwise => return Ok(HAND_OVER),
                DirectRun::Fault(what) => return Ok(handed_with_fault(what)),
            },
            FollowUp::Fault(what) => return Ok(handed_with_fault(what)),
        };
        if !comparison.is_same {
            return Ok(HAND_OVER);
        }
        // The second run takes another tier, so it also checks that the tiers agree.
        if comparison.is_checked() {
            match self.run(py, call, &key)? {
                DirectRun::Returned(values, again, its)
                    if again == comparison.path
                        && its == comparison.fingerprint
                        && are_outputs(named, &values, outputs)? => {}
                _ => return Ok(HAND_OVER),
            }
        }
        if self.try_count(py, &comparison, leader) {
            Ok(Followed::Done)
        } else {
            self.keep_for_python(call, leader)
        }
    }

    /// Keeps an agreement until the next drain, so that the caller does not wait for Python.
    fn keep_for_python(&self, call: Invocation<'_, '_>, leader: &LeaderRun<'_>) -> PyResult<Followed> {
        let job = match self.copy_job(call, &leader.outputs, leader.python)? {
            Ok(job) => job,
            Err(seen) => return Ok(seen),
        };
        let handed = HandedRun {
            job,
            is_chosen: leader.is_chosen(),
            fault: None,
        };
        self.findings
            .with(leader.outputs.py(), |own| own.handed.push(handed));
        Ok(Followed::Done)
    }

    /// Runs without a frame, if possible, and compares the outputs with those of Python.
    #[inline]
    fn compare_frameless(
        &self,
        py: Python<'_>,
        call: Invocation<'_, '_>,
        leader: &LeaderRun<'_>,
        begun: Option<Instant>,
    ) -> Option<Comparison> {
        let program = self.program.get();
        let readers = program.frameless_calls().readers()?;
        let key = self.key();
        let in_flight = InFlight::new(self.flight.get());
        let (path, fingerprint, is_same) =
            program.inspect_frameless(py, call.inputs.as_borrowed(), |form, words| {
                let path = words.path();
                let fingerprint = form.fingerprint_of(words, &path, &key)?;
                let is_same = are_words(program.outputs(), readers, words, &leader.outputs)?;
                Some((path, fingerprint, is_same))
            })?;
        drop(in_flight);
        Some(Comparison {
            path,
            fingerprint,
            is_same,
            took: begun.map(|begun| (begun, nanoseconds(begun))),
        })
    }

    fn run(&self, py: Python<'_>, call: Invocation<'_, '_>, key: &FingerprintKey) -> PyResult<DirectRun> {
        let program = self.program.get();
        let now = program.now(call.now)?;
        let inputs: &Bound<'_, PyDict> = as_dict(call.inputs)?;
        let flight = self.flight.get();
        flight.enter();
        let ran = match program.convert_pathed(inputs) {
            Ok(Ok(Ok(frame))) => {
                let run = || guarded(|| program.compiled().run_pathed(frame, now, limits(), key));
                run_watched_within(py, Some(self.deadline), run).map(|ran| ran.map(Some))
            }
            Ok(Ok(Err(_))) => Ok(Ok(None)),
            Ok(Err(error)) => Err(error),
            Err(message) => Ok(Err(message)),
        };
        flight.leave();
        Ok(match ran? {
            Ok(Some(ran)) => match ran.outcome {
                Outcome::Returned(values) => DirectRun::Returned(values, ran.path, ran.fingerprint),
                Outcome::Fault(what) => DirectRun::Fault(what.to_owned()),
                _ => DirectRun::Otherwise,
            },
            Ok(None) => DirectRun::Otherwise,
            Err(message) => DirectRun::Fault(message),
        })
    }

    /// Queues a copy of an execution for the follower thread.
    fn queue_for_thread(
        &self,
        call: Invocation<'_, '_>,
        outputs: &Bound<'_, PyAny>,
        python: u64,
    ) -> PyResult<Followed> {
        match self.copy_job(call, outputs, Some(python))? {
            Ok(job) => {
                self.follower_thread(outputs.py())?.put(job);
                Ok(Followed::Done)
            }
            Err(seen) => Ok(seen),
        }
    }

    /// Copies the inputs and outputs of an execution. Forms that cannot be copied are handed to Python.
    fn copy_job(
        &self,
        call: Invocation<'_, '_>,
        outputs: &Bound<'_, PyAny>,
        python: Option<u64>,
    ) -> PyResult<Result<Job, Followed>> {
        let program = self.program.get();
        let now = program.now(call.now)?;
        let inputs = match program.convert_pathed(as_dict(call.inputs)?) {
            Ok(Ok(Ok(frame))) => frame,
            Ok(Ok(Err(_))) => return Ok(Err(HAND_OVER)),
            Ok(Err(error)) => return Err(error),
            Err(what) => return Ok(Err(handed_with_fault(what))),
        };
        let Some(outputs) = read_exact_outputs(program.outputs(), outputs)? else {
            return Ok(Err(HAND_OVER));
        };
        Ok(Ok(Job::new(inputs, now, outputs, python, self.key())))
    }

    fn follower_thread(&self, py: Python<'_>) -> PyResult<Arc<Follower>> {
        let mut follower = lock(&self.follower);
        if let Some(found) = &*follower {
            return Ok(Arc::clone(found));
        }
        let program = self.program.clone_ref(py);
        let made = Follower::start(
            program,
            self.thread_flight.clone_ref(py),
            self.deadline,
            self.most_bytes,
            self.keeps,
        )?;
        Ok(Arc::clone(follower.insert(made)))
    }
}

/// Result of following a call.
enum Followed {
    /// The agreement is counted, or will be.
    Done,
    /// Python has to inspect the execution.
    HandedOver { is_chosen: bool, fault: Option<String> },
}

const HAND_OVER: Followed = Followed::HandedOver {
    is_chosen: false,
    fault: None,
};

enum DirectRun {
    Returned(Vec<Value>, Path, u64),
    Otherwise,
    Fault(String),
}

fn handed_with_fault(what: String) -> Followed {
    Followed::HandedOver {
        is_chosen: false,
        fault: Some(what),
    }
}
