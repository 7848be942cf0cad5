//! Metrics from Python. `vesper/observe/metrics.py` is the interface; metrics are their places in the table.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3::{Borrowed, ffi};
use vesper_metrics::{self as metrics, Counter, Histogram, Kind, Metric, Value};

use crate::calls::fast_entry::Definition;

/// One in this many calls without effects is timed.
const TIMING_INTERVAL: u64 = 64;

/// The series of the calls of a node without effects, on one path.
pub(crate) struct CallMetrics {
    node: Arc<str>,
    executions: Counter,
    duration: Histogram,
}

impl CallMetrics {
    pub(crate) fn new(node: &str, path: &str) -> Self {
        Self {
            node: Arc::from(node),
            executions: metrics::counter(metrics::EXECUTIONS_TOTAL, &[node, path]),
            duration: metrics::histogram(metrics::EXECUTION_DURATION, &[node, path]),
        }
    }

    /// Returns the start of a call that is timed.
    #[inline]
    pub(crate) fn timer(&self) -> Option<Instant> {
        (self.executions.get().is_multiple_of(TIMING_INTERVAL)).then(Instant::now)
    }

    /// Counts a call.
    #[inline]
    pub(crate) fn count(&self, timer: Option<Instant>) {
        self.executions.add(1);
        if let Some(began) = timer {
            self.duration.observe(began.elapsed());
        }
    }

    /// Counts the end of a call without outputs, by the code of a failure or else its kind.
    #[cold]
    pub(crate) fn count_error(&self, error: &str) {
        metrics::count(metrics::EXECUTIONS_ERRORS, &[&*self.node, error], 1);
    }

    /// Counts an outcome in canonical JSON. Its code and kind precede every text of a caller.
    #[cold]
    pub(crate) fn count_json(&self, outcome: &str) {
        let member = |name: &str| {
            let (_, rest) = outcome.split_once(name)?;
            rest.split_once('"').map(|(text, _)| text)
        };
        let kind = member("\"kind\":\"").unwrap_or("engine_fault");
        let code = if kind == "failed" {
            member("\"code\":\"")
        } else {
            None
        };
        self.count_error(code.unwrap_or(kind));
    }

    /// Counts an exception of generated Python.
    #[cold]
    pub(crate) fn count_exception(&self, py: Python<'_>, error: &PyErr) -> PyResult<()> {
        let labels = py.import("vesper.observe.error_labels")?;
        let label: String = labels
            .call_method1("error_label", (error.value(py),))?
            .extract()?;
        self.count_error(&label);
        Ok(())
    }
}

/// A Python function whose calls are counted.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct CountedCall {
    function: Py<PyAny>,
    metrics: CallMetrics,
}

#[pymethods]
impl CountedCall {
    #[new]
    #[pyo3(signature = (function, node, path, /))]
    fn new(function: Py<PyAny>, node: &str, path: &str) -> Self {
        Self {
            function,
            metrics: CallMetrics::new(node, path),
        }
    }

    /// Returns the C function that calls and counts.
    #[getter]
    fn call<'py>(counted: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        COUNTED.bind(counted.as_any())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)
    }
}

static COUNTED: Definition = Definition::new(ffi::PyMethodDef {
    ml_name: c"call".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer {
        PyCFunctionFastWithKeywords: counted,
    },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"Return the outputs for a dict of inputs; raise for any other outcome.".as_ptr(),
});

/// Calls the function with the arguments as they are. The wrapper of PyO3 would be a large part of the cost.
unsafe extern "C" fn counted(
    own: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with the lock held, and holds all objects until it returns. `CountedCall::call` made
    // the function with a `CountedCall`. The result is a new object, or null and an error.
    let (py, own, answer, timer) = unsafe {
        let py = Python::assume_attached();
        let own = Borrowed::from_ptr(py, own).cast_unchecked::<CountedCall>();
        let timer = own.get().metrics.timer();
        let function = own.get().function.as_ptr();
        let answer = ffi::PyObject_Vectorcall(function, arguments, count.unsigned_abs(), names);
        (py, own, answer, timer)
    };
    own.get().metrics.count(timer);
    if answer.is_null() {
        Python::attach(|_| {
            let error = PyErr::fetch(py);
            if let Err(other) = own.get().metrics.count_exception(py, &error) {
                other.write_unraisable(py, None);
            }
            error.restore(py);
        });
    }
    answer
}

/// Environment variable that names the directory of a process' counts.
const DIRECTORY: &str = "VESPER_METRICS_DIR";

fn series(place: u16, labels: &[String], is_kind: impl Fn(Kind) -> bool) -> PyResult<(Metric, Vec<&str>)> {
    let metric =
        Metric::at(place).ok_or_else(|| PyValueError::new_err("there is no metric at this place"))?;
    let spec = metric.spec();
    if !is_kind(spec.kind) || spec.labels.len() != labels.len() {
        let (name, expected) = (spec.name, spec.labels.join(", "));
        let message = format!("{name} is a {:?} with the labels ({expected})", spec.kind);
        return Err(PyValueError::new_err(message));
    }
    Ok((metric, labels.iter().map(String::as_str).collect()))
}

/// Adds to a counter.
#[pyfunction]
#[pyo3(signature = (metric, labels, by, /))]
#[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new list")]
pub(crate) fn count_metric(metric: u16, labels: Vec<String>, by: u64) -> PyResult<()> {
    let (metric, labels) = series(metric, &labels, |kind| kind == Kind::Counter)?;
    metrics::count(metric, &labels, by);
    Ok(())
}

/// Adds a duration in seconds to a histogram, with the id of its trace in hexadecimal.
#[pyfunction]
#[pyo3(signature = (metric, labels, seconds, trace_id, /))]
#[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new list")]
pub(crate) fn observe_metric(
    metric: u16,
    labels: Vec<String>,
    seconds: f64,
    trace_id: Option<&str>,
) -> PyResult<()> {
    let (metric, labels) = series(metric, &labels, |kind| kind == Kind::Histogram)?;
    let duration = Duration::try_from_secs_f64(seconds.max(0.0))
        .map_err(|_| PyValueError::new_err("a duration is a finite number of seconds"))?;
    let histogram = metrics::histogram(metric, &labels);
    match trace_id.map(|id| u128::from_str_radix(id, 16)) {
        None => histogram.observe(duration),
        Some(Ok(trace)) => histogram.observe_traced(duration, trace),
        Some(Err(_)) => return Err(PyValueError::new_err("a trace id has 32 hexadecimal digits")),
    }
    Ok(())
}

/// Sets a gauge.
#[pyfunction]
#[pyo3(signature = (metric, labels, value, /))]
#[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new list")]
pub(crate) fn set_metric(metric: u16, labels: Vec<String>, value: f64) -> PyResult<()> {
    let (metric, labels) = series(metric, &labels, |kind| {
        !matches!(kind, Kind::Counter | Kind::Histogram)
    })?;
    metrics::set(metric, &labels, value);
    Ok(())
}

/// Returns the content type and the text of all metrics, for an `Accept` header.
#[pyfunction]
#[pyo3(signature = (accept, /))]
pub(crate) fn render_metrics<'py>(
    py: Python<'py>,
    accept: &str,
) -> PyResult<(&'static str, Bound<'py, PyBytes>)> {
    let is_openmetrics = metrics::is_openmetrics_preferred(accept);
    let text = py.detach(|| -> std::io::Result<String> {
        Ok(metrics::render(&metrics::snapshot(false)?, is_openmetrics))
    })?;
    let kind = if is_openmetrics {
        metrics::OPENMETRICS
    } else {
        metrics::PROMETHEUS
    };
    Ok((kind, PyBytes::new(py, text.as_bytes())))
}

/// Returns (metric, labels, value) of every series; a histogram has (counts of buckets, sum in ms, exemplar).
#[pyfunction]
#[pyo3(signature = (is_own, /))]
pub(crate) fn snapshot_metrics(py: Python<'_>, is_own: bool) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let samples = py.detach(|| metrics::snapshot(is_own))?;
    let object = |sample: metrics::Sample| -> PyResult<Bound<'_, PyAny>> {
        let value = match sample.value {
            Value::Counter(count) => count.into_pyobject(py)?.into_any(),
            Value::Gauge(value) => value.into_pyobject(py)?.into_any(),
            Value::Histogram {
                buckets,
                sum_ns,
                exemplar,
            } => {
                let exemplar =
                    exemplar.map(|each| (format!("{:032x}", each.trace), ms(each.value_ns), each.time_ns));
                (buckets, ms(sum_ns), exemplar).into_pyobject(py)?.into_any()
            }
        };
        Ok((sample.metric.place(), sample.labels, value)
            .into_pyobject(py)?
            .into_any())
    };
    samples.into_iter().map(object).collect()
}

/// Returns the upper bounds of the buckets of histograms, in milliseconds.
#[pyfunction]
pub(crate) fn metric_bounds() -> Vec<f64> {
    metrics::BOUNDS_NS.iter().map(|bound| ms(*bound)).collect()
}

#[allow(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
fn ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// Moves the counts of this process to a directory.
#[pyfunction]
#[pyo3(signature = (directory, /))]
#[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new path")]
pub(crate) fn use_metrics_directory(py: Python<'_>, directory: PathBuf) -> PyResult<()> {
    py.detach(|| metrics::use_directory(&directory)).map_err(|error| {
        let directory = directory.display();
        let advice = "name a directory on a local disk that this process may write to";
        PyOSError::new_err(format!(
            "metrics cannot be kept in {directory}: {error}; {advice}"
        ))
    })
}

#[pyfunction]
fn metrics_after_fork(py: Python<'_>) -> PyResult<()> {
    Ok(py.detach(metrics::after_fork_in_child)?)
}

/// Uses the directory of the environment, and gives children counts of their own.
pub(crate) fn start(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    if let Some(directory) = std::env::var_os(DIRECTORY).filter(|each| !each.is_empty()) {
        use_metrics_directory(py, directory.into())?;
    }
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(metrics_after_fork, module)?)?;
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        register.call((), Some(&hooks))?;
    }
    Ok(())
}
