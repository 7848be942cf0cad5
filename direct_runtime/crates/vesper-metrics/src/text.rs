//! Samples as text: the Prometheus format and `OpenMetrics`.

use std::fmt::Write as _;

use crate::sum::{Exemplar, Sample, Value};
use crate::{BOUNDS_NS, Kind, Metric};

pub const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns true if an `Accept` header prefers `OpenMetrics` to plain text.
pub fn is_openmetrics_preferred(accept: &str) -> bool {
    let quality = |names: &[&str]| {
        let ranges = accept.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next()?;
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            let is_named = names.iter().any(|each| name.eq_ignore_ascii_case(each));
            is_named.then(|| quality.map_or(1.0, |text| text.parse().unwrap_or(0.0)))
        });
        ranges.fold(0.0_f64, f64::max)
    };
    let wanted = quality(&["application/openmetrics-text"]);
    wanted > 0.0 && wanted >= quality(&["text/plain"])
}

/// Returns samples as text. They are sorted by metric.
pub fn render(samples: &[Sample], is_openmetrics: bool) -> String {
    let mut text = String::new();
    for family in samples.chunk_by(|one, next| one.metric == next.metric) {
        if let Some(first) = family.first() {
            write_head(&mut text, first.metric, is_openmetrics);
        }
        for sample in family {
            write_sample(&mut text, sample, is_openmetrics);
        }
    }
    if is_openmetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn write_head(text: &mut String, metric: Metric, is_openmetrics: bool) {
    let spec = metric.spec();
    let kind = match spec.kind {
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
        _ => "gauge",
    };
    // In `OpenMetrics` the suffix of a counter belongs to its samples, not to its family.
    let suffix = if spec.kind == Kind::Counter && !is_openmetrics {
        "_total"
    } else {
        ""
    };
    let name = spec.prometheus;
    let doc = spec.doc.replace('\\', "\\\\").replace('\n', "\\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name}{suffix} {doc}\n# TYPE {name}{suffix} {kind}");
    if is_openmetrics && spec.is_time {
        let _ = writeln!(text, "# UNIT {name} seconds");
    }
}

fn write_sample(text: &mut String, sample: &Sample, is_openmetrics: bool) {
    let spec = sample.metric.spec();
    let name = spec.prometheus;
    let labels: Vec<String> = (spec.labels.iter().zip(&sample.labels))
        .map(|(label, value)| format!("{label}=\"{}\"", escape(value)))
        .collect();
    let labels = labels.join(",");
    let braced = if labels.is_empty() {
        String::new()
    } else {
        format!("{{{labels}}}")
    };
    let _ = match &sample.value {
        Value::Counter(count) => writeln!(text, "{name}_total{braced} {count}"),
        Value::Gauge(value) => {
            let value = if spec.is_time { value / 1e3 } else { *value };
            writeln!(text, "{name}{braced} {value}")
        }
        Value::Histogram {
            buckets,
            sum_ns,
            exemplar,
        } => {
            let comma = if labels.is_empty() { "" } else { "," };
            let mut count = 0;
            let exemplar = exemplar.filter(|_| is_openmetrics);
            let at = exemplar.map(|each| BOUNDS_NS.partition_point(|bound| *bound < each.value_ns));
            for (place, bucket) in buckets.iter().enumerate() {
                count += bucket;
                let bound = BOUNDS_NS
                    .get(place)
                    .map_or("+Inf".to_owned(), |bound| seconds(*bound));
                let _ = write!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}");
                match exemplar {
                    Some(exemplar) if at == Some(place) => write_exemplar(text, exemplar),
                    _ => text.push('\n'),
                }
            }
            let sum = seconds(*sum_ns);
            writeln!(text, "{name}_sum{braced} {sum}\n{name}_count{braced} {count}")
        }
    };
}

fn write_exemplar(text: &mut String, exemplar: Exemplar) {
    let Exemplar {
        trace,
        value_ns,
        time_ns,
    } = exemplar;
    let (value, time) = (seconds(value_ns), seconds(time_ns));
    let _ = writeln!(text, " # {{trace_id=\"{trace:032x}\"}} {value} {time}");
}

/// Returns nanoseconds as seconds, exactly, with at least one digit after the point.
fn seconds(nanoseconds: u64) -> String {
    let (whole, part) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let digits = format!("{part:09}");
    let digits = digits.trim_end_matches('0');
    format!("{whole}.{}", if digits.is_empty() { "0" } else { digits })
}

fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
