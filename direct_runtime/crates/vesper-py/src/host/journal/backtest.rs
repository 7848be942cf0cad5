//! Backtests on a journal for Python (`vesper/changes/backtest/native.py`). Python's lock is released during a step.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use vesper_host::backtest::measure::{ExactSum, Given, Measure, Side};
use vesper_host::backtest::reading::{Query, Why};
use vesper_host::backtest::tally::{Group, Tally};
use vesper_host::backtest::{Backtest, FieldMode, OutputField, Plan};
use vesper_host::typed_json::read_value;
use vesper_interp::Program;
use vesper_interp::guard::guarded;

use crate::IrRejected;
use crate::host::errors::journal_exception;
use crate::host::journal::Journal;

/// IR of a node, and that of the nodes that it calls.
type Documents<'py> = (Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>);
/// A function, and where each of its inputs comes from: a kind, and a name or typed JSON.
type GivenSide<'py> = (Documents<'py>, Vec<(String, String)>);
type GivenMeasure<'py> = (Option<GivenSide<'py>>, Option<GivenSide<'py>>);

/// A backtest of two versions on the runs of a journal.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct JournalBacktest {
    inner: Mutex<Backtest>,
}

#[pymethods]
impl JournalBacktest {
    /// Prepares a backtest; nothing is read before the first step.
    #[new]
    #[pyo3(signature = (
        journal, before, after, semantic_hash, *, outputs, errors, hides_codes, by, sums, selection, nodes, since_us,
        until_us, limit, threads
    ))]
    #[allow(clippy::too_many_arguments, reason = "one for each part of a backtest")]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes new lists")]
    fn new(
        journal: &Bound<'_, Journal>,
        before: Documents<'_>,
        after: Documents<'_>,
        semantic_hash: String,
        outputs: Vec<(String, String)>,
        errors: Vec<String>,
        hides_codes: bool,
        by: Vec<GivenMeasure<'_>>,
        sums: Vec<GivenMeasure<'_>>,
        selection: Option<GivenMeasure<'_>>,
        nodes: Vec<String>,
        since_us: Option<i64>,
        until_us: Option<i64>,
        limit: Option<usize>,
        threads: usize,
    ) -> PyResult<Self> {
        let (before, after) = (program(&before)?, program(&after)?);
        let measure = |given: &GivenMeasure<'_>| -> PyResult<Measure> {
            let (own, other) = given;
            Ok(Measure {
                before: own.as_ref().map(|given| side(&before, given)).transpose()?,
                after: other.as_ref().map(|given| side(&after, given)).transpose()?,
            })
        };
        let outputs = outputs.into_iter().map(|(name, mode)| {
            Ok(OutputField {
                name,
                mode: mode_of(&mode)?,
            })
        });
        let plan = Plan {
            outputs: outputs.collect::<PyResult<_>>()?,
            errors,
            hides_codes,
            by: by.iter().map(measure).collect::<PyResult<_>>()?,
            sums: sums.iter().map(measure).collect::<PyResult<_>>()?,
            selection: selection.as_ref().map(measure).transpose()?,
            semantic_hash,
            before,
            after,
        };
        let query = Query {
            nodes,
            since_us,
            until_us,
            limit,
        };
        let threads = NonZeroUsize::new(threads)
            .ok_or_else(|| PyValueError::new_err("a backtest has at least one thread"))?;
        let journal = journal.get().native();
        Ok(Self {
            inner: Mutex::new(Backtest::new(journal, plan, query, threads)),
        })
    }

    /// Returns how many runs are selected.
    fn total(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.locked().total())
            .map_err(|error| journal_exception(py, &error))
    }

    /// Counts one page of runs; returns False where there is none left.
    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.locked().step())
            .map_err(|error| journal_exception(py, &error))
    }

    /// Returns how many runs were seen, and how many of them change.
    fn progress(&self) -> (u64, u64) {
        let inner = self.locked();
        let tally = &inner.tally;
        (tally.seen(), tally.total.changed + tally.apart.changed)
    }

    /// Returns the counts so far.
    fn tally<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tally_dict(py, &self.locked().tally)
    }
}

impl JournalBacktest {
    fn locked(&self) -> std::sync::MutexGuard<'_, Backtest> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn program((ir, others): &Documents<'_>) -> PyResult<Arc<Program>> {
    let bytes = ir.as_bytes();
    let others: Vec<&[u8]> = others.iter().map(PyBytesMethods::as_bytes).collect();
    guarded(|| Program::load_with(bytes, &others))
        .map_err(|message| PyRuntimeError::new_err(format!("engine fault while loading: {message}")))?
        .map(Arc::new)
        .map_err(|rejected| IrRejected::new_err(rejected.to_string()))
}

fn side(of: &Arc<Program>, (documents, given): &GivenSide<'_>) -> PyResult<Side> {
    let function = program(documents)?;
    let inputs = function.node().inputs.iter();
    let given = given.iter().zip(inputs).map(|((kind, text), input)| {
        Ok(match kind.as_str() {
            "input" => Given::Input(text.clone()),
            "output" => Given::Output(text.clone()),
            "constant" => Given::Constant(read_value(text, &input.ty).map_err(PyValueError::new_err)?),
            "now" => Given::Now,
            other => return Err(PyValueError::new_err(format!("no name is a `{other}`"))),
        })
    });
    let given = given.collect::<PyResult<_>>()?;
    Ok(Side {
        of: Arc::clone(of),
        function,
        given,
    })
}

fn mode_of(name: &str) -> PyResult<FieldMode> {
    match name {
        "quoted" => Ok(FieldMode::Quoted),
        "plain" => Ok(FieldMode::Plain),
        "hidden" => Ok(FieldMode::Hidden),
        other => Err(PyValueError::new_err(format!("no mode is called `{other}`"))),
    }
}

fn tally_dict<'py>(py: Python<'py>, tally: &Tally) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("total", group(&tally.total))?;
    found.set_item("apart", group(&tally.apart))?;
    let excluded = tally.excluded.iter().map(|(why, (runs, names))| {
        let (reason, status) = match why {
            Why::NotEnded(status) => ("not_ended", *status),
            Why::Unreadable => ("unreadable", ""),
            Why::Erased => ("erased", ""),
            Why::NoInputs => ("no_inputs", ""),
        };
        (reason, status, *runs, names.clone())
    });
    found.set_item("excluded", excluded.collect::<Vec<_>>())?;
    found.set_item("not_selected", tally.not_selected)?;
    found.set_item("not_decided", tally.not_decided)?;
    found.set_item("not_compared", &tally.not_compared)?;
    found.set_item("unanswered_before", &tally.unanswered_before)?;
    found.set_item("unanswered_after", &tally.unanswered_after)?;
    found.set_item("apart_other_definition", tally.apart_other_definition)?;
    let kinds = tally.kinds.iter().map(|(kind, (runs, example))| {
        let example = example
            .as_ref()
            .map(|example| (example.size, example.name.as_str()));
        (kind.as_str(), *runs, example)
    });
    found.set_item("kinds", kinds.collect::<Vec<_>>())?;
    let groups = PyList::empty(py);
    for each in &tally.groups {
        let segments = PyDict::new(py);
        for (label, of) in each {
            segments.set_item(label, group(of))?;
        }
        groups.append(segments)?;
    }
    found.set_item("groups", groups)?;
    Ok(found)
}

/// Coefficients of a sum as texts, with their scales.
type Parts = Vec<(String, u16)>;
/// Parts before and after, and the runs without a value on each side.
type SumsOf = (Parts, Parts, u64, u64);

fn group(of: &Group) -> (u64, u64, Vec<SumsOf>) {
    let parts = |sum: &ExactSum| sum.parts();
    let sums = of.sums.iter().map(|sums| {
        (
            parts(&sums.before),
            parts(&sums.after),
            sums.without_before,
            sums.without_after,
        )
    });
    (of.runs, of.changed, sums.collect())
}
