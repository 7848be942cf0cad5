//! The fast path of the router: common calls of a node between the two engines.
//!
//! It serves calls that succeed and leaves all others to Python (`vesper/migration/router/fast_entry.py`), so that no
//! decision is made in two places.
//!
//! INVARIANT: every call starts and ends with the global lock held, and so does every change of the data it reads.
//! Counters and random numbers are therefore plain numbers, no lock of this module has contention, and none is held
//! while Python code may run. Native calls of the HTTP server do not hold it: they use `NativeView` alone.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use vesper_interp::{FingerprintKey, Limits, Path};
use vesper_ir::Type;

use crate::calls::frame_pool::GilCell;
use crate::calls::program::{Program, fingerprint_key};
use crate::inputs::values::to_python;
use crate::metrics::CallMetrics;
use crate::routing::agreements::PathHashing;
use crate::routing::follower::{self, Drained, Follower, HandedRun};
use crate::routing::inflight_counters::Flight;
use crate::watch::WATCH;

mod native_view;
#[allow(unsafe_code, reason = "defines and calls C functions without PyO3")]
mod serve;
mod shadow_run;

pub(crate) use native_view::NativeRoute;
use native_view::NativeView;

/// One in this many calls is timed.
const TIMING_INTERVAL: u64 = 16;

const PYTHON_ONLY: u8 = 0;
const SHADOW_DIRECT: u8 = 1;
const DUAL_VERIFY: u8 = 3;
const DIRECT_ONLY: u8 = 4;
const MODES: usize = 5;

/// The decision on a call before it is passed to Python.
#[derive(Clone, Copy)]
enum Plan {
    /// Python decides.
    Open,
    /// The direct engine serves trusted paths.
    Direct,
    /// Python leads, and the direct engine follows.
    Followed,
    /// Python runs alone.
    Python,
}

/// A node without effects, served according to its mode. Safe to call from any thread.
#[pyclass(frozen, weakref, module = "vesper._direct")]
pub(crate) struct Route {
    program: Py<Program>,
    /// The generated function.
    reference: Py<PyAny>,
    /// Name of the keyword argument for the start time.
    now_named: Py<PyTuple>,
    /// True if exceptions of the function are passed on to the caller.
    is_bare: bool,
    /// Serves a planned call from its start.
    slow: Py<PyAny>,
    /// Receives an execution that Python has to inspect.
    hand_over: Py<PyAny>,
    /// Requests a drain; the follower thread calls it. It must not refer to the route.
    hurry: Py<PyAny>,
    /// Counters of the threads of callers, and of the follower thread.
    flight: Py<Flight>,
    thread_flight: Py<Flight>,
    deadline: Duration,
    most_bytes: usize,
    keeps: bool,

    mode: AtomicU8,
    /// Random numbers below these are in the sample, and are admitted.
    sample: AtomicU64,
    admission: AtomicU64,
    /// The fingerprint key, in two halves.
    key: [AtomicU64; 2],
    /// The decision for native calls, with the trusted paths of all.
    native: NativeView,
    /// Cache of trusted paths of one word. `recent_bits` marks the used slots.
    recent_paths: [AtomicU64; 8],
    recent_bits: AtomicU8,
    /// State of the random number generator.
    random_state: AtomicU64,

    /// Series of calls that Python and the direct engine answered.
    metrics: [CallMetrics; 2],
    served: [[AtomicU64; 2]; MODES],
    /// Number of calls for which admission was decided.
    admission_draws: AtomicU64,
    /// Made with the first followed call.
    follower: GilCell<Option<Arc<Follower>>>,
    /// Process that owns these counters.
    process: AtomicU32,
}

/// The paths that may be served without comparison.
enum TrustedPaths {
    All,
    /// The words of paths of executions that returned.
    These(HashSet<Box<[u64]>, PathHashing>),
}

impl TrustedPaths {
    #[inline]
    fn trusts(&self, path: &Path) -> bool {
        match self {
            Self::All => true,
            Self::These(paths) => paths.contains(path.words()),
        }
    }
}

/// Increments a counter under the global lock, which serialises all writers.
#[inline]
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

fn take_count(counter: &AtomicU64) -> u64 {
    counter.swap(0, Ordering::Relaxed)
}

#[pymethods]
impl Route {
    #[new]
    #[pyo3(signature = (program, reference, slow, hand_over, hurry, flights, /, *, is_bare, deadline, most_bytes, keeps))]
    #[expect(clippy::too_many_arguments, reason = "most are keyword arguments in Python")]
    fn new(
        py: Python<'_>,
        program: Py<Program>,
        reference: Py<PyAny>,
        slow: Py<PyAny>,
        hand_over: Py<PyAny>,
        hurry: Py<PyAny>,
        flights: (Py<Flight>, Py<Flight>),
        is_bare: bool,
        deadline: f64,
        most_bytes: usize,
        keeps: bool,
    ) -> PyResult<Self> {
        program.get().refuse_effects()?;
        let deadline = Duration::try_from_secs_f64(deadline)
            .map_err(|_| PyValueError::new_err("the deadline is a number of seconds that is not negative"))?;
        let node = &program.get().compiled().node().node_id;
        let metrics = ["python", "direct"].map(|path| CallMetrics::new(node, path));
        Ok(Self {
            program,
            reference,
            now_named: PyTuple::new(py, ["now"])?.unbind(),
            is_bare,
            slow,
            hand_over,
            hurry,
            flight: flights.0,
            thread_flight: flights.1,
            deadline,
            most_bytes,
            keeps,
            mode: AtomicU8::new(PYTHON_ONLY),
            sample: AtomicU64::new(u64::MAX),
            admission: AtomicU64::new(u64::MAX),
            key: Default::default(),
            native: NativeView::new(seed(py)?),
            recent_paths: Default::default(),
            recent_bits: AtomicU8::new(0),
            random_state: AtomicU64::new(seed(py)?),
            metrics,
            served: Default::default(),
            admission_draws: AtomicU64::new(0),
            follower: GilCell::new(py)?,
            process: AtomicU32::new(std::process::id()),
        })
    }

    /// Returns the C function that serves a call; it raises for an outcome without outputs.
    #[getter]
    fn call<'py>(route: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        serve::CALL.bind(route.as_any())
    }

    /// Serves a call of a node that uses its start time.
    #[pyo3(signature = (inputs, /, *, now))]
    fn call_at<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        now: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.serve(
            py,
            serve::Invocation {
                inputs,
                now: Some(now),
            },
        )
    }

    /// Sets the mode by number, the trusted paths, the fingerprint key and the sample share.
    ///
    /// `trusted` is None if all paths are trusted. Without a key of 16 bytes Python runs alone.
    #[pyo3(signature = (mode, trusted, key, sample, /))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new list")]
    fn set(&self, mode: u8, trusted: Option<Vec<Vec<u8>>>, key: &[u8], sample: f64) -> PyResult<()> {
        if usize::from(mode) >= MODES {
            return Err(PyValueError::new_err("there is no mode of this number"));
        }
        let words = |path: &Vec<u8>| path.chunks_exact(8).map(word).collect::<Box<[u64]>>();
        let known = trusted.map_or(TrustedPaths::All, |paths| {
            TrustedPaths::These(paths.iter().map(words).collect())
        });
        let mode = if key.is_empty() { PYTHON_ONLY } else { mode };
        let key = if key.is_empty() {
            [0; 16]
        } else {
            fingerprint_key(key)?
        };
        let (low, high) = key.split_at(8);
        for (half, bytes) in self.key.iter().zip([low, high]) {
            half.store(word(bytes), Ordering::Relaxed);
        }
        self.native.set(mode, known, draw_limit(sample));
        self.recent_bits.store(0, Ordering::Relaxed);
        self.sample.store(draw_limit(sample), Ordering::Relaxed);
        self.mode.store(mode, Ordering::Relaxed);
        Ok(())
    }

    /// Sets the probability with which a call is followed.
    #[pyo3(signature = (chance, /))]
    fn admit(&self, chance: f64) {
        self.admission.store(draw_limit(chance), Ordering::Relaxed);
    }

    /// Takes the findings since the last drain.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.process.load(Ordering::Relaxed) != std::process::id() {
            self.after_fork(py)?;
        }
        let follower = self.follower.with(py, |follower| follower.clone());
        let Drained {
            findings,
            handed,
            abandoned,
        } = follower.as_ref().map(|each| each.drain()).unwrap_or_default();
        let mut served: Vec<Vec<u64>> = (self.served.iter())
            .map(|engines| engines.iter().map(take_count).collect())
            .collect();
        if let Some([_, direct]) = served.get_mut(usize::from(DIRECT_ONLY)).map(Vec::as_mut_slice) {
            *direct += self.native.take_served();
        }
        let agreed = PyList::empty(py);
        let times = PyList::empty(py);
        for (path, found) in &findings.agreed {
            let fingerprints = PyList::new(py, &found.fingerprints)?;
            agreed.append((PyBytes::new(py, &path.bytes()), fingerprints, found.compared))?;
        }
        for (python, direct) in &findings.times {
            times.append((python, direct))?;
        }
        let shown = PyList::empty(py);
        for each in handed {
            if let Err(why) = self.handed_object(py, &each).and_then(|item| shown.append(item)) {
                // Memory was exhausted. The execution may be a divergence, so it stays for the next drain.
                why.write_unraisable(py, None);
                self.with_follower(py, |follower| follower.hand_back(each));
            }
        }
        (
            agreed,
            times,
            served,
            findings.lost,
            take_count(&self.admission_draws),
            findings.followed,
            findings.spent,
            abandoned,
            shown,
        )
            .into_pyobject(py)
    }

    /// Waits until queued executions are followed; returns false after `seconds`.
    #[pyo3(signature = (seconds, /))]
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let follower = self.follower.with(py, |follower| follower.clone());
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| follower.is_none_or(|follower| follower.wait(limit)))
    }

    /// Stops the follower thread; queued and later executions count as lost.
    fn close(&self, py: Python<'_>) {
        if let Some(follower) = self.follower.with(py, |follower| follower.clone()) {
            follower.close();
        }
    }

    /// Resets the counters in the child of a fork, which has no findings and no threads.
    fn after_fork(&self, py: Python<'_>) -> PyResult<()> {
        self.process.store(std::process::id(), Ordering::Relaxed);
        self.random_state.store(seed(py)?, Ordering::Relaxed);
        follower::after_fork();
        take_count(&self.admission_draws);
        self.native.take_served();
        self.served.iter().flatten().for_each(|each| {
            take_count(each);
        });
        // The thread may have held a lock when the process forked, so the follower is leaked.
        std::mem::forget(self.follower.with(py, Option::take));
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.program)?;
        visit.call(&self.reference)?;
        visit.call(&self.slow)?;
        visit.call(&self.hand_over)?;
        visit.call(&self.hurry)?;
        visit.call(&self.flight)?;
        visit.call(&self.thread_flight)
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        if self.process.load(Ordering::Relaxed) == std::process::id()
            && let Some(follower) = self.follower.get_mut()
        {
            follower.close();
        }
    }
}

impl Route {
    /// Returns the next random number (`SplitMix64`). The global lock serialises all callers.
    #[inline]
    fn draw(&self) -> u64 {
        let state = self
            .random_state
            .load(Ordering::Relaxed)
            .wrapping_add(RANDOM_STEP);
        self.random_state.store(state, Ordering::Relaxed);
        mix(state)
    }

    /// Returns true if an outcome on this path may be returned without comparison.
    #[inline]
    fn trusts(&self, path: &Path) -> bool {
        let &[word] = path.words() else {
            return self.native.trusts(path);
        };
        let place = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize;
        let (held, bit) = (self.recent_bits.load(Ordering::Relaxed), 1 << place);
        let Some(recent_paths) = self.recent_paths.get(place) else {
            return false;
        };
        if held & bit != 0 && recent_paths.load(Ordering::Relaxed) == word {
            return true;
        }
        let is_trusted = self.native.trusts(path);
        if is_trusted {
            recent_paths.store(word, Ordering::Relaxed);
            self.recent_bits.store(held | bit, Ordering::Relaxed);
        }
        is_trusted
    }

    /// Returns an execution in the form that `fast_entry.py` expects.
    fn handed_object<'py>(&self, py: Python<'py>, handed: &HandedRun) -> PyResult<Bound<'py, PyTuple>> {
        let HandedRun {
            job,
            is_chosen,
            fault,
        } = handed;
        let program = self.program.get();
        let inputs = job
            .values(program.compiled())
            .ok_or_else(|| PyRuntimeError::new_err("engine fault: the words of the inputs are no values"))?;
        let inputs = program.inputs_object(py, &inputs)?;
        let outputs = program.presenter().outputs_dict(py, &job.outputs)?;
        let now = match &job.now {
            Some(now) => Some(to_python(py, &program.shapes().of(py, &Type::Timestamp), now)?),
            None => None,
        };
        (inputs, outputs, job.python, is_chosen, fault.as_deref(), now).into_pyobject(py)
    }

    fn key(&self) -> FingerprintKey {
        let [low, high] = &self.key;
        let whole = u128::from(high.load(Ordering::Relaxed)) << 64 | u128::from(low.load(Ordering::Relaxed));
        whole.to_le_bytes()
    }

    #[inline]
    fn count_served(&self, mode: u8, is_direct: bool) {
        if let Some(metrics) = self.metrics.get(usize::from(is_direct)) {
            metrics.count(None);
        }
        let engines = self.served.get(usize::from(mode));
        if let Some(counter) = engines.and_then(|engines| engines.get(usize::from(is_direct))) {
            count(counter);
        }
    }
}

/// Difference of two states of the random number generator.
const RANDOM_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the random number of a state (`SplitMix64`).
#[inline]
fn mix(state: u64) -> u64 {
    let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Returns a random seed from the operating system, different for each process.
fn seed(py: Python<'_>) -> PyResult<u64> {
    let bytes = py.import("os")?.call_method1("urandom", (8,))?;
    Ok(word(bytes.cast::<PyBytes>()?.as_bytes()))
}

/// Returns the number below which this share of all numbers lies; 1 excludes only the largest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares are between 0 and 1, and a cast of more saturates"
)]
fn draw_limit(share: f64) -> u64 {
    (share * 18_446_744_073_709_551_616.0) as u64
}

/// Returns limits without a time, because the watch measures the time of long runs.
#[inline]
fn limits() -> Limits {
    Limits {
        watch: Some(WATCH),
        ..Limits::default()
    }
}
