//! Counters, gauges and histograms in memory that processes share.
//!
//! Every process counts in a region of its own (`region`), which is a mapped file if it has a directory: a killed
//! process leaves its counts behind. A handle (`Counter`, `Gauge`, `Histogram`) is the address of its cells and stays
//! valid for the life of the process, also after `use_directory` and after a fork. Reading sums the regions of all
//! processes of the directory (`directory`).

mod directory;
mod generated;
mod handle;
mod layout;
#[allow(unsafe_code, reason = "maps files and memory")]
mod region;
mod registry;
mod sum;
mod text;

pub use generated::*;
pub use handle::{BOUNDS_NS, Counter, Gauge, Histogram};
pub use registry::{after_fork_in_child, counter, gauge, histogram, use_directory};
pub use sum::{Exemplar, Sample, Value, snapshot};
pub use text::{OPENMETRICS, PROMETHEUS, is_openmetrics_preferred, render};

use std::time::Duration;

/// A declared metric: its place in `METRICS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric(pub(crate) u16);

/// Declaration of a metric in `schemas/metrics.toml`.
#[derive(Debug)]
pub struct Spec {
    pub name: &'static str,
    /// Name in Prometheus, in base units, without the suffix `_total` of counters.
    pub prometheus: &'static str,
    pub doc: &'static str,
    pub kind: Kind,
    /// True if the unit is a millisecond.
    pub is_time: bool,
    pub labels: &'static [&'static str],
}

/// Kind of a metric. The gauges differ in how values of several processes combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    SumGauge,
    MaxGauge,
    LatestGauge,
    Histogram,
}

impl Metric {
    /// Returns the metric at this place of `METRICS`.
    pub fn at(place: u16) -> Option<Self> {
        METRICS.get(usize::from(place)).map(|_| Self(place))
    }

    /// Returns its place in `METRICS`.
    pub fn place(self) -> u16 {
        self.0
    }

    /// Returns the declaration.
    pub fn spec(self) -> &'static Spec {
        // Every metric was made by `at` or is a generated constant.
        METRICS.get(usize::from(self.0)).unwrap_or(&FIRST)
    }
}

const FIRST: Spec = {
    let [first, ..] = METRICS;
    first
};

/// Adds to a counter. Hot paths hold the handle of `counter` instead.
pub fn count(metric: Metric, labels: &[&str], by: u64) {
    counter(metric, labels).add(by);
}

/// Adds a duration to a histogram.
pub fn observe(metric: Metric, labels: &[&str], duration: Duration) {
    histogram(metric, labels).observe(duration);
}

/// Sets a gauge.
pub fn set(metric: Metric, labels: &[&str], value: f64) {
    gauge(metric, labels).set(value);
}
