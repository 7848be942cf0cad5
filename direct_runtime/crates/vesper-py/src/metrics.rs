//! Metrics from Python. `vesper/observe/metrics.py` is the interface; metrics are their places in the table.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use vesper_metrics::{self as metrics, Kind, Metric, Value};

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
