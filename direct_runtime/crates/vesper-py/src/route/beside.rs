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
use crate::exact::{are_outputs, are_words, exact_outputs};
use crate::follower::{Follower, Handed, Job, nanoseconds};
use crate::gathered::lock;
use crate::program::as_dict;
use crate::watch::watched_within;

impl Route {
    /// Python leads.
    #[inline]
    pub(super) fn followed<'py>(
        &self,
        py: Python<'py>,
        mode: u8,
        asked: Asked<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let chance = self.draw();
        // Reading the clock costs as much as a tenth of a short node: while none was long lately, some are timed.
        let watchful = self.watchful.load(Ordering::Relaxed);
        let begun = (watchful > 0 || chance.is_multiple_of(TIMED)).then(Instant::now);
        let Ok(outputs) = self.lead(py, asked).map_err(|Raised| ()) else {
            return self.raised(py, asked, Plan::Followed);
        };
        let python = begun.map(nanoseconds);
        if let Some(python) = python {
            // One alone says more about the machine than about the node.
            let left = match watchful {
                0 if python >= SHORT => TIMED,
                _ if python >= SHORT => WATCHFUL,
                watchful => watchful.saturating_sub(1),
            };
            self.watchful.store(left, Ordering::Relaxed);
        }
        self.served(mode, false);
        // A panic beside the engine itself is the engine's too: the caller has the answer of Python.
        let seen = guarded(|| match python {
            Some(python) if python >= SHORT => self.put_aside(asked, &outputs, python),
            python => self.follow(py, asked, &outputs, python, chance),
        });
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
                lock(&self.own).gathered.lost += 1;
                return Err(error);
            }
        }
        Ok(outputs)
    }

    /// Runs the direct engine beside a short execution that returned, and compares.
    fn follow(
        &self,
        py: Python<'_>,
        asked: Asked<'_, '_>,
        outputs: &Bound<'_, PyAny>,
        python: Option<u64>,
        chance: u64,
    ) -> PyResult<Seen> {
        let begun = chance.is_multiple_of(TIMED).then(Instant::now);
        let key = self.key();
        let named = self.program.get().outputs();
        let (path, fingerprint, is_same) = match self.run_shortly(py, asked, outputs, &key) {
            Ok(Some(ran)) => ran,
            Ok(None) => match self.run(py, asked, &key)? {
                Ran::Returned(values, path, fingerprint) => {
                    (path, fingerprint, are_outputs(named, &values, outputs)?)
                }
                Ran::Otherwise => return Ok(HANDED),
                Ran::Broke(what) => return Ok(broke(what)),
            },
            Err(what) => return Ok(broke(what)),
        };
        let took = begun.map(nanoseconds);
        if !is_same {
            return Ok(HANDED);
        }
        // Not only that it says the same again: the ways to run it say the same.
        if fingerprint.is_multiple_of(IS_CHECKED) {
            match self.run(py, asked, &key)? {
                Ran::Returned(values, again, its)
                    if again == path && its == fingerprint && are_outputs(named, &values, outputs)? => {}
                _ => return Ok(HANDED),
            }
        }
        // Other bits than those that the times are drawn by.
        let is_chosen = (chance >> 8).is_multiple_of(LOOKED_AT);
        let mut own = lock(&self.own);
        let is_wanted =
            own.handed.len() < MOST_HANDED && (is_chosen || own.wanted.wants(&path, fingerprint, self.keeps));
        if is_wanted {
            drop(own);
            return self.put_by(asked, outputs, python, is_chosen);
        }
        own.gathered.agree(&path, fingerprint);
        if let (Some(took), Some(begun)) = (took, begun) {
            own.gathered.time(python, Some(took));
            own.gathered.cost(nanoseconds(begun), TIMED);
        }
        Ok(Seen::Done)
    }

    /// Keeps an agreement for Python, which comes round for it: the caller does not wait for that.
    fn put_by(
        &self,
        asked: Asked<'_, '_>,
        outputs: &Bound<'_, PyAny>,
        python: Option<u64>,
        is_chosen: bool,
    ) -> PyResult<Seen> {
        let job = match self.job(asked, outputs, python)? {
            Ok(job) => job,
            Err(seen) => return Ok(seen),
        };
        lock(&self.own).handed.push(Handed {
            job,
            is_chosen,
            broke: None,
        });
        Ok(Seen::Done)
    }

    /// A run without a frame, where there is machine code for it: which way it went, what it read, and whether it came to
    /// these outputs. The error is what it panicked with.
    #[inline]
    fn run_shortly(
        &self,
        py: Python<'_>,
        asked: Asked<'_, '_>,
        outputs: &Bound<'_, PyAny>,
        key: &FingerprintKey,
    ) -> Result<Option<(Path, u64, bool)>, String> {
        let program = self.program.get();
        let Some(layout) = program.expressway().layout() else {
            return Ok(None);
        };
        let flight = self.flight.get();
        flight.enter();
        let ran = guarded(|| {
            program.looked_at_expressly(py, asked.inputs.as_borrowed(), |words| {
                let path = words.path();
                let fingerprint = program.compiled().fingerprint_of(words, &path, key)?;
                let is_same = are_words(program.outputs(), layout, words, outputs)?;
                Some((path, fingerprint, is_same))
            })
        });
        flight.leave();
        ran
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
