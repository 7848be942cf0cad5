//! Following: the direct engine runs what Python has answered, and the two are compared.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vesper_interp::guard::guarded;
use vesper_interp::{FingerprintKey, Outcome, Path};
use vesper_ir::Value;

use super::serve::{Asked, Raised};
use super::{IS_CHECKED, LOOKED_AT, MOST_HANDED, Plan, Route, SHORT, TIMED, WATCHFUL, limits};
use crate::calls::program::as_dict;
use crate::routing::agreements::{Asks, lock};
use crate::routing::follower::{Follower, Handed, Job, nanoseconds};
use crate::routing::inflight_counters::Flight;
use crate::routing::output_comparison::{are_outputs, are_words, exact_outputs};
use crate::watch::watched_within;

/// What the generated function came to, for a request that is followed.
pub(super) struct Led<'py> {
    pub(super) outputs: Bound<'py, PyAny>,
    /// Its nanoseconds, where they were measured.
    python: Option<u64>,
    /// What was drawn for this request.
    chance: u64,
}

/// A request was followed to its end: the two agree, and that is counted.
pub(super) struct Counted;

/// How far a request was followed without a frame that is not counted yet.
pub(super) enum Beside {
    /// They agree, and Python is to have it.
    Wanted,
    /// The run is over, and has to be looked at closer.
    Ran(Compared),
    /// Not at all: there is no machine code for that, or it gave up. With when that began, where it is measured.
    Open(Option<Instant>),
    /// It panicked, with this.
    Broke(String),
}

/// What a run of the direct engine came to.
pub(super) struct Compared {
    path: Path,
    fingerprint: u64,
    is_same: bool,
    /// When it began and what it took until it was compared, where that is measured.
    took: Option<(Instant, u64)>,
}

impl Led<'_> {
    /// Whether the times of this one are kept.
    #[inline]
    fn is_timed(&self) -> bool {
        self.chance.is_multiple_of(TIMED)
    }

    /// Whether this one is looked at closely if it agrees. By other bits than those that the times are drawn by.
    #[inline]
    fn is_chosen(&self) -> bool {
        (self.chance >> 8).is_multiple_of(LOOKED_AT)
    }
}

impl Compared {
    /// Whether it is run again.
    #[inline]
    fn is_checked(&self) -> bool {
        self.fingerprint.is_multiple_of(IS_CHECKED)
    }
}

/// A direct execution is under way while this lives, also where it panics.
struct Flying<'a>(&'a Flight);

impl<'a> Flying<'a> {
    #[inline]
    fn new(flight: &'a Flight) -> Self {
        flight.enter();
        Self(flight)
    }
}

impl Drop for Flying<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Route {
    /// Python leads.
    pub(super) fn followed<'py>(
        &self,
        py: Python<'py>,
        mode: u8,
        asked: Asked<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(led) = self.led(py, mode, asked) else {
            return self.raised(py, asked, Plan::Followed);
        };
        match self.beside(py, asked, &led) {
            Ok(Counted) => Ok(led.outputs),
            Err(beside) => self.look_closer(py, asked, led, *beside),
        }
    }

    /// Runs the generated function for a request that is followed.
    #[inline]
    pub(super) fn led<'py>(
        &self,
        py: Python<'py>,
        mode: u8,
        asked: Asked<'_, 'py>,
    ) -> Result<Led<'py>, Raised> {
        let chance = self.draw();
        // Reading the clock costs as much as a tenth of a short node: while none was long lately, some are timed.
        let watchful = self.watchful.load(Ordering::Relaxed);
        let begun = (watchful > 0 || chance.is_multiple_of(TIMED)).then(Instant::now);
        let outputs = self.lead(py, asked)?;
        let python = begun.map(|begun| self.python_took(watchful, begun));
        self.served(mode, false);
        Ok(Led {
            outputs,
            python,
            chance,
        })
    }

    #[inline(never)]
    fn python_took(&self, watchful: u64, begun: Instant) -> u64 {
        let python = nanoseconds(begun);
        // One alone says more about the machine than about the node.
        let left = match watchful {
            0 if python >= SHORT => TIMED,
            _ if python >= SHORT => WATCHFUL,
            watchful => watchful.saturating_sub(1),
        };
        self.watchful.store(left, Ordering::Relaxed);
        python
    }

    /// Runs the direct engine beside a short execution that returned, where there is machine code without a frame, compares
    /// the two, and counts an agreement that nobody has to look at. No code of Python runs in here, no object of Python
    /// is let go, and no panic gets past this. What is rare is in a box: who calls this looks at one word.
    #[inline]
    pub(super) fn beside(
        &self,
        py: Python<'_>,
        asked: Asked<'_, '_>,
        led: &Led<'_>,
    ) -> Result<Counted, Box<Beside>> {
        if led.python.is_some_and(|python| python >= SHORT) {
            return Err(Box::new(Beside::Open(None)));
        }
        let begun = led.is_timed().then(Instant::now);
        guarded(|| match self.run_shortly(py, asked, led, begun) {
            Some(compared) if !compared.is_same || compared.is_checked() => {
                Err(Box::new(Beside::Ran(compared)))
            }
            Some(compared) if self.is_counted(py, &compared, led) => Ok(Counted),
            Some(_) => Err(Box::new(Beside::Wanted)),
            None => Err(Box::new(Beside::Open(begun))),
        })
        .unwrap_or_else(|what| Err(Box::new(Beside::Broke(what))))
    }

    /// Counts an agreement, unless Python is to have it.
    #[inline]
    fn is_counted(&self, py: Python<'_>, compared: &Compared, led: &Led<'_>) -> bool {
        self.own.with(py, |own| {
            let asks = if own.handed.len() >= MOST_HANDED {
                Asks::None
            } else if led.is_chosen() {
                return false;
            } else {
                Asks::Wanted { keeps: self.keeps }
            };
            if !own.gathered.agree(&compared.path, compared.fingerprint, asks) {
                return false;
            }
            if let Some((begun, took)) = compared.took {
                own.gathered.time(led.python, Some(took));
                own.gathered.cost(nanoseconds(begun), TIMED);
            }
            true
        })
    }

    /// Everything else that becomes of a request which is followed.
    #[cold]
    pub(super) fn look_closer<'py>(
        &self,
        py: Python<'py>,
        asked: Asked<'_, 'py>,
        led: Led<'py>,
        beside: Beside,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A panic beside the engine itself is the engine's too: the caller has the answer of Python.
        let seen = guarded(|| match led.python {
            Some(python) if python >= SHORT => self.put_aside(asked, &led.outputs, python),
            _ => self.follow(py, asked, &led, beside),
        });
        let Led { outputs, python, .. } = led;
        match seen.unwrap_or_else(|what| Ok(broke(what))) {
            Ok(Seen::Done) => {}
            Ok(Seen::Handed { is_chosen, broke }) => {
                let handed = (asked.inputs, &outputs, python, is_chosen, broke, asked.now);
                self.hand_over.bind(py).call1(handed)?;
            }
            Err(error) if error.is_instance_of::<PyException>(py) => {
                let handed = (asked.inputs, &outputs, python, false, py.None(), asked.now);
                self.hand_over.bind(py).call1(handed)?;
            }
            Err(error) => {
                self.own.with(py, |own| own.gathered.told.lost += 1);
                return Err(error);
            }
        }
        Ok(outputs)
    }

    /// Looks at a short execution from where `beside` left it.
    fn follow(&self, py: Python<'_>, asked: Asked<'_, '_>, led: &Led<'_>, beside: Beside) -> PyResult<Seen> {
        let key = self.key();
        let named = self.program.get().outputs();
        let outputs = &led.outputs;
        let compared = match beside {
            Beside::Wanted => return self.put_by(asked, led),
            Beside::Ran(compared) => compared,
            Beside::Open(begun) => match self.run(py, asked, &key)? {
                Ran::Returned(values, path, fingerprint) => Compared {
                    path,
                    fingerprint,
                    is_same: are_outputs(named, &values, outputs)?,
                    took: begun.map(|begun| (begun, nanoseconds(begun))),
                },
                Ran::Otherwise => return Ok(HANDED),
                Ran::Broke(what) => return Ok(broke(what)),
            },
            Beside::Broke(what) => return Ok(broke(what)),
        };
        if !compared.is_same {
            return Ok(HANDED);
        }
        // Not only that it says the same again: the ways to run it say the same.
        if compared.is_checked() {
            match self.run(py, asked, &key)? {
                Ran::Returned(values, again, its)
                    if again == compared.path
                        && its == compared.fingerprint
                        && are_outputs(named, &values, outputs)? => {}
                _ => return Ok(HANDED),
            }
        }
        if self.is_counted(py, &compared, led) {
            Ok(Seen::Done)
        } else {
            self.put_by(asked, led)
        }
    }

    /// Keeps an agreement for Python, which comes round for it: the caller does not wait for that.
    fn put_by(&self, asked: Asked<'_, '_>, led: &Led<'_>) -> PyResult<Seen> {
        let job = match self.job(asked, &led.outputs, led.python)? {
            Ok(job) => job,
            Err(seen) => return Ok(seen),
        };
        let handed = Handed {
            job,
            is_chosen: led.is_chosen(),
            broke: None,
        };
        self.own.with(led.outputs.py(), |own| own.handed.push(handed));
        Ok(Seen::Done)
    }

    /// A run without a frame, where there is machine code for it: which way it went, what it read, and whether it came to
    /// the outputs of Python.
    #[inline]
    fn run_shortly(
        &self,
        py: Python<'_>,
        asked: Asked<'_, '_>,
        led: &Led<'_>,
        begun: Option<Instant>,
    ) -> Option<Compared> {
        let program = self.program.get();
        let readers = program.expressway().readers()?;
        let key = self.key();
        let flying = Flying::new(self.flight.get());
        let (path, fingerprint, is_same) =
            program.looked_at_expressly(py, asked.inputs.as_borrowed(), |form, words| {
                let path = words.path();
                let fingerprint = form.fingerprint_of(words, &path, &key)?;
                let is_same = are_words(program.outputs(), readers, words, &led.outputs)?;
                Some((path, fingerprint, is_same))
            })?;
        drop(flying);
        Some(Compared {
            path,
            fingerprint,
            is_same,
            took: begun.map(|begun| (begun, nanoseconds(begun))),
        })
    }

    fn run(&self, py: Python<'_>, asked: Asked<'_, '_>, key: &FingerprintKey) -> PyResult<Ran> {
        let program = self.program.get();
        let now = program.now(asked.now)?;
        let inputs: &Bound<'_, PyDict> = as_dict(asked.inputs)?;
        let flight = self.flight.get();
        flight.enter();
        let ran = match program.converted_pathed(inputs) {
            Ok(Ok(Ok(frame))) => {
                let run = || guarded(|| program.compiled().run_pathed(frame, now, limits(), key));
                watched_within(py, Some(self.deadline), run).map(|ran| ran.map(Some))
            }
            Ok(Ok(Err(_))) => Ok(Ok(None)),
            Ok(Err(error)) => Err(error),
            Err(message) => Ok(Err(message)),
        };
        flight.leave();
        Ok(match ran? {
            Ok(Some(ran)) => match ran.outcome {
                Outcome::Returned(values) => Ran::Returned(values, ran.path, ran.fingerprint),
                Outcome::Fault(what) => Ran::Broke(what.to_owned()),
                _ => Ran::Otherwise,
            },
            Ok(None) => Ran::Otherwise,
            Err(message) => Ran::Broke(message),
        })
    }

    /// Copies what an execution had and came to, for the thread.
    fn put_aside(&self, asked: Asked<'_, '_>, outputs: &Bound<'_, PyAny>, python: u64) -> PyResult<Seen> {
        match self.job(asked, outputs, Some(python))? {
            Ok(job) => {
                self.thread(outputs.py())?.put(job);
                Ok(Seen::Done)
            }
            Err(seen) => Ok(seen),
        }
    }

    /// A copy of what an execution had and came to; what is otherwise is for Python to see.
    fn job(
        &self,
        asked: Asked<'_, '_>,
        outputs: &Bound<'_, PyAny>,
        python: Option<u64>,
    ) -> PyResult<Result<Job, Seen>> {
        let program = self.program.get();
        let now = program.now(asked.now)?;
        let inputs = match program.converted_pathed(as_dict(asked.inputs)?) {
            Ok(Ok(Ok(frame))) => frame,
            Ok(Ok(Err(_))) => return Ok(Err(HANDED)),
            Ok(Err(error)) => return Err(error),
            Err(what) => return Ok(Err(broke(what))),
        };
        let Some(outputs) = exact_outputs(program.outputs(), outputs)? else {
            return Ok(Err(HANDED));
        };
        Ok(Ok(Job::new(inputs, now, outputs, python, self.key())))
    }

    fn thread(&self, py: Python<'_>) -> PyResult<Arc<Follower>> {
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

/// What came of following.
enum Seen {
    /// It is counted, or will be.
    Done,
    /// Python should see it itself.
    Handed { is_chosen: bool, broke: Option<String> },
}

const HANDED: Seen = Seen::Handed {
    is_chosen: false,
    broke: None,
};

enum Ran {
    Returned(Vec<Value>, Path, u64),
    Otherwise,
    Broke(String),
}

fn broke(what: String) -> Seen {
    Seen::Handed {
        is_chosen: false,
        broke: Some(what),
    }
}
