//! Runs without a frame for callers of Python: a dict straight into words, and words straight into a dict.
//!
//! Nothing is refused here and nothing is decided, as in `swift`. Where an object is not of the very type that most
//! callers give, or machine code gives up, nothing has happened, and the call begins again in the ordinary way.
//!
//! Texts are borrowed from the strings of the caller. So no code of Python may run from the first input that is read to
//! the last output that is made: it could let go of them. Only inputs and outputs are taken of which that is known, and
//! the dict of the outputs is made before anything is read, since to make one may collect garbage.
//!
//! A run over many rows lets others run meanwhile (`long`): it has texts of its own before the lock is let go, and from
//! then on nothing of the caller's is looked at any more.

use std::sync::OnceLock;

use pyo3::Borrowed;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyString};
use vesper_interp::json::Worded;
use vesper_interp::words::{Ended, Express, Given, Pace, Word, Words};
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

/// Units of fuel that a run over few rows may spend: it neither lets other threads run nor notices signals. Longer ones
/// are for the ordinary way.
const MAX_FUEL: u64 = 65_536;
/// What had room for more rows, or for a longer answer, does not wait for the next run.
const MAX_POOLED_ROWS: usize = 1_000;
const MAX_POOLED_ANSWER_BYTES: usize = 1 << 16;

/// What a program keeps for its runs without a frame.
pub(crate) struct FramelessCalls {
    pool: FramePool<PooledWords<'static>>,
    /// The same for the form that says which way a run went.
    pathed: FramePool<PooledWords<'static>>,
    /// True where no code of Python runs while inputs are read and outputs are made.
    is_plain: bool,
    /// The outputs, each None. A copy of it has the table of their names at once.
    outputs: Py<PyDict>,
    /// Where the entries of dicts stand, if that is known.
    layout: Option<Layout>,
    /// Looked up when the node is loaded: a run would ask whether it was, and have an error at hand that there never is.
    decimals: &'static Decimals,
    /// How inputs and outputs stand in JSON; made when that is first asked for.
    json: OnceLock<Worded>,
    /// How long runs over many rows take,
    pace: Pace,
    /// and in the form that says which way they went.
    pace_pathed: Pace,
}

/// What waits for the next run: room, which is clear.
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
            // Without the global lock another thread may change what is borrowed.
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

    /// What outputs of Python are read by where no code of Python may run.
    #[inline]
    pub(crate) fn readers(&self) -> Option<(Layout, &'static Decimals)> {
        Some((self.layout?, self.decimals))
    }
}

#[inline]
fn take<'a>(
    pool: &FramePool<PooledWords<'static>>,
    py: Python<'_>,
    express: &dyn Express,
) -> Box<PooledWords<'a>> {
    match pool.take(py) {
        Some(pooled) => pooled,
        None => Box::new(PooledWords {
            words: Words::new(express.shape()),
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
    // SAFETY: what a box just gave, of the same type but for the lifetime of the texts that it borrows, and that it has
    // none of any more: it was cleared.
    pool.put(py, unsafe { Box::from_raw(pooled) });
}

/// One of the two forms that are run so.
struct FramelessForm<'p> {
    express: &'p dyn Express,
    pool: &'p FramePool<PooledWords<'static>>,
    pace: &'p Pace,
}

/// What came of a run.
enum RunResult<T> {
    Done(T),
    /// Something was not as it mostly is.
    GaveUp,
    /// It would take too long for who cannot be stopped: nothing was tried.
    TooLong,
}

impl<T> RunResult<T> {
    /// Says it on: whoever gives up often is not asked for a while. What was too long says nothing about other inputs.
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
    /// The outputs for these inputs, where both and the run are as most are; otherwise nothing, and nothing was done.
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

    /// The same where the way that the run went is one to be trusted, which `trusts` says.
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

    /// Runs the form that says which way it goes, and shows it and its words to `look`, which runs no code of Python. Nothing where
    /// the run or `look` gives up.
    #[inline]
    pub(crate) fn inspect_frameless<T>(
        &self,
        py: Python<'_>,
        inputs: Borrowed<'_, '_, PyAny>,
        inspect: impl FnOnce(&PathedForm, &Words<'_>) -> Option<T>,
    ) -> Option<T> {
        let (form, run) = self.pathed_run()?;
        self.run_and_inspect(py, inputs, &run, |words| inspect(form, words))
            .report(|is_seen| form.expressed(is_seen))
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
        // May collect garbage, and so run code of Python: before anything is borrowed. In a long run others run before it
        // is filled, and do not find it: the collector does not look at a dict of strings and None.
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

    /// Runs a form on the inputs in a dict, and shows its words.
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
        let mut pooled = take(run.pool, py, run.express);
        let is_read = self.read(&mut reader, dict, run.express, &mut pooled.words);
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

    /// The same for JSON text to the canonical JSON of what is returned.
    #[inline]
    pub(crate) fn call_frameless_json<'py>(
        &self,
        py: Python<'py>,
        text: &[u8],
    ) -> Option<Bound<'py, PyBytes>> {
        let run = self.plain_run()?;
        let json = (self.frameless_calls().json)
            .get_or_init(|| Worded::new(self.compiled().node(), run.express.shape()));
        let mut pooled = take(run.pool, py, run.express);
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

    /// Writes the inputs into words; false where it gives up.
    #[inline]
    fn read<'a>(
        &'a self,
        reader: &mut Reader<'_>,
        dict: Borrowed<'a, '_, PyDict>,
        express: &dyn Express,
        words: &mut Words<'a>,
    ) -> bool {
        let names = self.inputs().names.len();
        // Names that are written in a source, in declared order, are the very strings that were interned here.
        let given = match reader.layout.and_then(|layout| layout.entries(dict)) {
            Some(entries) if entries.len() <= names => {
                match self.read_in_order(reader, dict.py(), entries, express, words) {
                    InOrder::Read => Some(all_bits(entries.len())),
                    InOrder::GivesUp => None,
                    InOrder::Otherwise => self.read_any(reader, dict, express, words),
                }
            }
            _ => self.read_any(reader, dict, express, words),
        };
        match given {
            Some(given) if given == all_bits(names) => true,
            Some(given) => self.put_defaults(given, words),
            None => false,
        }
    }

    /// Entries whose keys are the first of the names, in declared order.
    #[inline]
    fn read_in_order<'a>(
        &'a self,
        reader: &mut Reader<'_>,
        py: Python<'_>,
        entries: &'a [Entry],
        express: &dyn Express,
        words: &mut Words<'a>,
    ) -> InOrder {
        let NamedShapes { names, shapes } = self.inputs();
        let forms = &express.shape().inputs;
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

    /// The same for entries in any order; which were given, bit by bit.
    #[inline(never)]
    fn read_any<'a>(
        &'a self,
        reader: &mut Reader<'_>,
        dict: Borrowed<'a, '_, PyDict>,
        express: &dyn Express,
        words: &mut Words<'a>,
    ) -> Option<u64> {
        let NamedShapes { names, shapes } = self.inputs();
        let forms = &express.shape().inputs;
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

    /// Writes the defaults of what was not given; false where there is one that has none, or is an array.
    #[inline(never)]
    fn put_defaults<'a>(&'a self, given: u64, words: &mut Words<'a>) -> bool {
        let declared = &self.compiled().node().inputs;
        // Bit by bit: mostly there is one, and to ask each input whether it was given costs more than to put it.
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

    /// Puts the outputs into their dict. Runs no code of Python: every object is of a type of its own, and made here.
    #[inline]
    fn write_outputs(&self, py: Python<'_>, words: &Words<'_>, outputs: &Bound<'_, PyDict>) -> Option<()> {
        let NamedShapes { names, shapes } = self.outputs();
        let FramelessCalls { layout, decimals, .. } = self.frameless_calls();
        // Nobody else has the dict, and none of these objects is one that the collector of garbage looks at.
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
            // SAFETY: a dict that was just made, and two objects that are alive; it takes references of its own.
            if unsafe { ffi::PyDict_SetItem(outputs.as_ptr(), name.as_ptr(), object.as_ptr()) } != 0 {
                drop(PyErr::fetch(py));
                return None;
            }
        }
        Some(())
    }
}

/// Writes what a run gave as JSON, and says what came of it.
#[inline]
fn write_answer(json: &Worded, ended: Ended, words: &Words<'_>, answer: &mut Vec<u8>) -> RunResult<()> {
    match ended {
        Ended::Done if json.write(words, answer).is_some() => RunResult::Done(()),
        Ended::Done | Ended::GaveUp => RunResult::GaveUp,
        Ended::TooLong => RunResult::TooLong,
    }
}

/// A new dict of the same names.
#[inline]
fn copy_dict<'py>(py: Python<'py>, dict: &Py<PyDict>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: a dict that is alive. A new dict, or nothing and an error, which is the ordinary way's to meet again.
    unsafe {
        let made = ffi::PyDict_Copy(dict.as_ptr());
        if made.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(Bound::from_owned_ptr(py, made).cast_into_unchecked())
    }
}
