//! Calls of machine code that needs no frame, from a dict to a dict.
//!
//! This module makes no decisions, like `fast_inputs`. If an object is not of the exact expected type, or machine
//! code gives up, nothing has happened, and the call restarts with a frame.
//!
//! Texts are borrowed from the strings of the caller. Python code could release them, so none may run from the first
//! input read to the last output made. Therefore only plain inputs and outputs are accepted, and the dict of outputs
//! is made first, because its allocation may start the garbage collector.
//!
//! A run over many rows releases the global lock (`long_runs`). Before that it copies its texts, and afterwards it
//! accesses no object of the caller.

use std::sync::{Arc, OnceLock};

use pyo3::Borrowed;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyString};
use vesper_interp::json::Worded;
use vesper_interp::words::{Ended, Express, Given, OwnedWords, Pace, Shape, Word, Words};
use vesper_interp::{Path, PathedForm};
use vesper_ir::Member;
use vesper_ir::limits::ITEMS;

use crate::calls::frame_pool::FramePool;
use crate::calls::outcome::NamedShapes;
use crate::calls::program::Program;
use crate::inputs::fast_inputs::{all_bits, visit_entries};
use crate::inputs::shapes::Parts;
use crate::layout::decimals::{Decimals, decimals};
use crate::layout::dicts::{Entry, Layout, Slots, layout};

mod input_words;
mod long_runs;

pub(crate) use input_words::text;
use input_words::{InOrder, Reader};
use long_runs::is_long;

/// Maximum fuel of a run over few rows, which neither releases the lock nor checks signals: about a millisecond. Longer
/// runs have a frame.
const MAX_FUEL: u64 = 32_768;
/// Maximum capacity of a pooled allocation, in rows and in bytes of an answer.
const MAX_POOLED_ROWS: usize = 1_000;
const MAX_POOLED_ANSWER_BYTES: usize = 1 << 16;

/// Data of a program for frameless calls.
pub(crate) struct FramelessCalls {
    pool: FramePool<PooledWords<'static>>,
    /// The pool of the form that records its path.
    pathed: FramePool<PooledWords<'static>>,
    /// True if reading inputs and making outputs runs no Python code.
    is_plain: bool,
    /// A dict of all outputs, each None. A copy already has a table of their names.
    outputs: Py<PyDict>,
    /// The layout of dicts, if known.
    layout: Option<Layout>,
    /// Looked up when the node is loaded, so that a run needs no check for initialisation.
    decimals: &'static Decimals,
    /// The JSON form of inputs and outputs, made on first use.
    json: OnceLock<Worded>,
    /// Run times over many rows.
    pace: Pace,
    /// Run times over many rows of the form that records its path.
    pace_pathed: Pace,
}

/// Cleared allocations for the next run.
struct PooledWords<'a> {
    words: Words<'a>,
    answer: Vec<u8>,
}

impl FramelessCalls {
    pub(crate) fn new(py: Python<'_>, inputs: &NamedShapes, outputs: &NamedShapes) -> PyResult<Self> {
        let pool = FramePool::new(py)?;
        let mut shapes = inputs.shapes.iter().chain(&outputs.shapes);
        let empty = PyDict::new(py);
        for name in &outputs.names {
            empty.set_item(name, py.None())?;
        }
        Ok(Self {
            // Without the global lock another thread could change borrowed objects.
            is_plain: pool.is_enabled() && shapes.all(|shape| shape.is_plain),
            pool,
            pathed: FramePool::new(py)?,
            outputs: empty.unbind(),
            layout: layout(py)?,
            decimals: decimals(py)?,
            json: OnceLock::new(),
            pace: Pace::default(),
            pace_pathed: Pace::default(),
        })
    }

    #[inline]
    pub(crate) fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// Returns the readers of Python outputs that run no Python code.
    #[inline]
    pub(crate) fn readers(&self) -> Option<(Layout, &'static Decimals)> {
        Some((self.layout?, self.decimals))
    }
}

#[inline]
fn take<'a>(
    pool: &FramePool<PooledWords<'static>>,
    py: Python<'_>,
    shape: &Arc<Shape>,
) -> Box<PooledWords<'a>> {
    match pool.take(py) {
        Some(pooled) => pooled,
        None => Box::new(PooledWords {
            words: Words::new(shape),
            answer: Vec::new(),
        }),
    }
}

#[inline]
fn put_back(
    pool: &FramePool<PooledWords<'static>>,
    py: Python<'_>,
    mut pooled: Box<PooledWords<'_>>,
    rows: usize,
) {
    if rows > MAX_POOLED_ROWS || pooled.answer.capacity() > MAX_POOLED_ANSWER_BYTES {
        return;
    }
    pooled.words.clear();
    pooled.answer.clear();
    let pooled = Box::into_raw(pooled).cast::<PooledWords<'static>>();
    // SAFETY: the pointer comes from a box of the same type, except for the lifetime of borrowed texts. It borrows
    // none any more, because it was cleared.
    pool.put(py, unsafe { Box::from_raw(pooled) });
}

/// One of the two frameless forms of a program.
struct FramelessForm<'p> {
    express: &'p dyn Express,
    pool: &'p FramePool<PooledWords<'static>>,
    pace: &'p Pace,
}

/// Result of a frameless run.
enum RunResult<T> {
    Done(T),
    /// An input or the run is not of the common form.
    GaveUp,
    /// The run would take too long without a check for signals; it was not started.
    TooLong,
}

impl<T> RunResult<T> {
    /// Reports success or failure to `tell`, which suspends a form that gives up often. A run that is too long says
    /// nothing about other inputs and is not reported.
    #[inline]
    fn report(self, tell: impl FnOnce(bool)) -> Option<T> {
        match self {
            Self::Done(seen) => {
                tell(true);
                Some(seen)
            }
            Self::GaveUp => {
                tell(false);
                None
            }
            Self::TooLong => None,
        }
    }
}

impl Program {
    /// Returns the outputs, or `None` if it gave up without an effect.
    #[inline]
    pub(crate) fn call_frameless<'py>(
        &self,
        py: Python<'py>,
        inputs: Borrowed<'_, 'py, PyAny>,
    ) -> Option<Bound<'py, PyDict>> {
        let run = self.plain_run()?;
        self.run_to_outputs(py, inputs, &run, |_| true)
            .report(|has_outputs| self.compiled().expressed(has_outputs))
    }

    /// Returns the outputs like `call_frameless`, if `trusts` accepts the path of the run.
    #[inline]
    pub(crate) fn call_frameless_trusted<'py>(
        &self,
        py: Python<'py>,
        inputs: Borrowed<'_, 'py, PyAny>,
        trusts: impl FnOnce(&Path) -> bool,
    ) -> Option<Bound<'py, PyDict>> {
        let (form, run) = self.pathed_run()?;
        self.run_to_outputs(py, inputs, &run, |words| trusts(&words.path()))
            .report(|has_outputs| form.expressed(has_outputs))
    }

    /// Copies the inputs of a dict for a run on another thread. Returns false if they are not of the common form.
    #[inline]
    pub(crate) fn copy_words(
        &self,
        py: Python<'_>,
        inputs: Borrowed<'_, '_, PyAny>,
        shape: &Arc<Shape>,
        copy: &mut OwnedWords,
    ) -> bool {
        let calls = self.frameless_calls();
        let Ok(dict) = inputs.cast::<PyDict>() else {
            return false;
        };
        if !calls.is_plain {
            return false;
        }
        let mut reader = Reader {
            decimals: calls.decimals,
            layout: calls.layout,
            pace: &calls.pace_pathed,
            rows: 0,
            is_too_long: false,
        };
        let mut pooled = take(&calls.pathed, py, shape);
        let is_copied = self.read(&mut reader, dict, shape, &mut pooled.words) && copy.set(&pooled.words);
        put_back(&calls.pathed, py, pooled, reader.rows);
        is_copied
    }

    #[inline]
    fn plain_run(&self) -> Option<FramelessForm<'_>> {
        let calls = self.frameless_calls();
        Some(FramelessForm {
            express: self.compiled().express()?,
            pool: &calls.pool,
            pace: &calls.pace,
        })
    }

    #[inline]
    fn pathed_run(&self) -> Option<(&PathedForm, FramelessForm<'_>)> {
        let calls = self.frameless_calls();
        let form = self.compiled().pathed_form()?;
        let run = FramelessForm {
            express: form.express()?,
            pool: &calls.pathed,
            pace: &calls.pace_pathed,
        };
        Some((form, run))
    }

    #[inline]
    fn run_to_outputs<'py>(
        &self,
        py: Python<'py>,
        inputs: Borrowed<'_, 'py, PyAny>,
        run: &FramelessForm<'_>,
        is_wanted: impl FnOnce(&Words<'_>) -> bool,
    ) -> RunResult<Bound<'py, PyDict>> {
        // Allocating may start the garbage collector and so run Python code; it comes before anything is borrowed.
        // During a long run other threads cannot reach the dict, because the collector does not track a dict of
        // strings and None.
        let Some(outputs) = copy_dict(py, &self.frameless_calls().outputs) else {
            return RunResult::GaveUp;
        };
        self.run_and_inspect(py, inputs, run, |words| {
            if is_wanted(words) {
                self.write_outputs(py, words, &outputs)?;
                Some(outputs)
            } else {
                None
            }
        })
    }

    /// Runs a form on a dict of inputs and passes its words to `inspect`.
    #[inline]
    fn run_and_inspect<T>(
        &self,
        py: Python<'_>,
        inputs: Borrowed<'_, '_, PyAny>,
        run: &FramelessForm<'_>,
        inspect: impl FnOnce(&Words<'_>) -> Option<T>,
    ) -> RunResult<T> {
        let calls = self.frameless_calls();
        let Ok(dict) = inputs.cast::<PyDict>() else {
            return RunResult::GaveUp;
        };
        if !calls.is_plain {
            return RunResult::GaveUp;
        }
        let mut reader = Reader {
            decimals: calls.decimals,
            layout: calls.layout,
            pace: run.pace,
            rows: 0,
            is_too_long: false,
        };
        let mut pooled = take(run.pool, py, run.express.shape());
        let is_read = self.read(&mut reader, dict, run.express.shape(), &mut pooled.words);
        if is_read && is_long(reader.rows) {
            let seen = run.run_long(py, pooled.words, reader.rows, inspect);
            return seen.map_or(RunResult::GaveUp, RunResult::Done);
        }
        let ended = if is_read {
            run.express.run(&mut pooled.words, MAX_FUEL)
        } else {
            Ended::GaveUp
        };
        let seen = (ended == Ended::Done).then(|| inspect(&pooled.words)).flatten();
        put_back(run.pool, py, pooled, reader.rows);
        match seen {
            Some(seen) => RunResult::Done(seen),
            None if reader.is_too_long || ended == Ended::TooLong => RunResult::TooLong,
            None => RunResult::GaveUp,
        }
    }

    /// Runs JSON text and returns the outputs as canonical JSON, or `None` like `call_frameless`.
    #[inline]
    pub(crate) fn call_frameless_json<'py>(
        &self,
        py: Python<'py>,
        text: &[u8],
    ) -> Option<Bound<'py, PyBytes>> {
        let run = self.plain_run()?;
        let json = (self.frameless_calls().json)
            .get_or_init(|| Worded::new(self.compiled().node(), run.express.shape()));
        let mut pooled = take(run.pool, py, run.express.shape());
        let PooledWords { words, answer } = &mut *pooled;
        let (rows, ran) = if text.len() > long_runs::MAX_SHORT_TEXT_BYTES {
            run.run_long_text(py, json, text, words, answer)
        } else {
            let rows = json.read(text, words, ITEMS);
            let ended = match rows {
                Some(_) => run.express.run(words, MAX_FUEL),
                None => Ended::GaveUp,
            };
            (rows, write_answer(json, ended, words, answer))
        };
        let ran = ran.report(|has_outputs| self.compiled().expressed(has_outputs));
        let answer = ran.map(|()| PyBytes::new(py, answer));
        put_back(run.pool, py, pooled, rows.unwrap_or_default());
        answer
    }

    /// Writes the inputs into words; returns false if it gives up.
    #[inline]
    fn read<'a>(
        &'a self,
        reader: &mut Reader<'_>,
        dict: Borrowed<'a, '_, PyDict>,
        shape: &Shape,
        words: &mut Words<'a>,
    ) -> bool {
        let names = self.inputs().names.len();
        // Names that a caller writes in its source, in declared order, are the strings interned here.
        let given = match reader.layout.and_then(|layout| layout.entries(dict)) {
            Some(entries) if entries.len() <= names => {
                match self.read_in_order(reader, dict.py(), entries, shape, words) {
                    InOrder::Read => Some(all_bits(entries.len())),
                    InOrder::GivesUp => None,
                    InOrder::Otherwise => self.read_any(reader, dict, shape, words),
                }
            }
            _ => self.read_any(reader, dict, shape, words),
        };
        match given {
            Some(given) if given == all_bits(names) => true,
            Some(given) => self.put_defaults(given, words),
            None => false,
        }
    }

    /// Reads entries whose keys are the first names, in declared order.
    #[inline]
    fn read_in_order<'a>(
        &'a self,
        reader: &mut Reader<'_>,
        py: Python<'_>,
        entries: &'a [Entry],
        shape: &Shape,
        words: &mut Words<'a>,
    ) -> InOrder {
        let NamedShapes { names, shapes } = self.inputs();
        let forms = &shape.inputs;
        let entries = entries.iter().zip(names).zip(forms).zip(shapes).enumerate();
        for (place, (((entry, name), form), shape)) in entries {
            let Some(object) = entry.value_under(name.bind(py)) else {
                return InOrder::Otherwise;
            };
            let is_read = match form {
                Given::Value { form, .. } => reader.scalar(*form, || Some(shape), object, place, words),
                Given::Rows(rows) => reader.rows(rows, shape, object, place, words),
            };
            if !is_read {
                return InOrder::GivesUp;
            }
        }
        InOrder::Read
    }

    /// Reads entries in any order; returns a bit set of their places.
    #[inline(never)]
    fn read_any<'a>(
        &'a self,
        reader: &mut Reader<'_>,
        dict: Borrowed<'a, '_, PyDict>,
        shape: &Shape,
        words: &mut Words<'a>,
    ) -> Option<u64> {
        let NamedShapes { names, shapes } = self.inputs();
        let forms = &shape.inputs;
        words.clear();
        visit_entries(
            reader.layout,
            dict,
            names,
            |name| self.place_of_input(name),
            |place, object| match (forms.get(place), shapes.get(place)) {
                (Some(Given::Value { form, .. }), Some(shape)) => {
                    reader.scalar(*form, || Some(shape), object, place, words)
                }
                (Some(Given::Rows(rows)), Some(shape)) => reader.rows(rows, shape, object, place, words),
                _ => false,
            },
        )
    }

    /// Writes the defaults of absent inputs; returns false if one has none or is an array.
    #[inline(never)]
    fn put_defaults<'a>(&'a self, given: u64, words: &mut Words<'a>) -> bool {
        let declared = &self.compiled().node().inputs;
        // Visits only absent inputs: there are few, and testing every input costs more than writing a default.
        let mut absent = all_bits(declared.len()) & !given;
        while absent != 0 {
            let place = absent.trailing_zeros() as usize;
            absent &= absent - 1;
            let default = declared.get(place).and_then(|input| input.default.as_ref());
            let default = default.and_then(Word::of);
            let is_put = default.is_some_and(|word| words.put(place, word));
            if !is_put {
                return false;
            }
        }
        true
    }

    /// Writes the outputs into their dict. Runs no Python code, because every object is new and of a built-in type.
    #[inline]
    fn write_outputs(&self, py: Python<'_>, words: &Words<'_>, outputs: &Bound<'_, PyDict>) -> Option<()> {
        let NamedShapes { names, shapes } = self.outputs();
        let FramelessCalls { layout, decimals, .. } = self.frameless_calls();
        // INVARIANT: the dict has no other owner, and the garbage collector tracks none of these objects.
        let mut slots = layout.map_or_else(Slots::none, |layout| layout.slots(outputs));
        for (place, (name, shape)) in names.iter().zip(shapes).enumerate() {
            let object = match words.output(place)? {
                Word::Decimal(coefficient, scale) => decimals.make_short(py, coefficient, scale)?,
                Word::Integer(value) => value.into_pyobject(py).ok()?.into_any(),
                Word::Member(Member(member)) => {
                    let Parts::Enum(members) = &shape.parts else {
                        return None;
                    };
                    members.get(member as usize)?.bind(py).clone().into_any()
                }
                Word::Boolean(value) => PyBool::new(py, value).to_owned().into_any(),
                Word::Text(text) => PyString::new(py, text).into_any(),
                // There is one NaN, whatever bits an operation left in it.
                Word::Float(value) if value.is_nan() => PyFloat::new(py, f64::NAN).into_any(),
                Word::Float(value) => PyFloat::new(py, value).into_any(),
                Word::Timestamp(_) | Word::Date(_) | Word::Duration(_) => return None,
            };
            let Err(object) = slots.put(place, name, object) else {
                continue;
            };
            // SAFETY: the dict is new and both objects are alive; the dict takes references of its own.
            if unsafe { ffi::PyDict_SetItem(outputs.as_ptr(), name.as_ptr(), object.as_ptr()) } != 0 {
                drop(PyErr::fetch(py));
                return None;
            }
        }
        Some(())
    }
}

/// Writes the outputs of a run as JSON.
#[inline]
fn write_answer(json: &Worded, ended: Ended, words: &Words<'_>, answer: &mut Vec<u8>) -> RunResult<()> {
    match ended {
        Ended::Done if json.write(words, answer).is_some() => RunResult::Done(()),
        Ended::Done | Ended::GaveUp => RunResult::GaveUp,
        Ended::TooLong => RunResult::TooLong,
    }
}

/// Returns a new dict with the same keys.
#[inline]
fn copy_dict<'py>(py: Python<'py>, dict: &Py<PyDict>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: the dict is alive. The result is a new dict, or null and an error, which recurs in the run with a frame.
    unsafe {
        let made = ffi::PyDict_Copy(dict.as_ptr());
        if made.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(Bound::from_owned_ptr(py, made).cast_into_unchecked())
    }
}
