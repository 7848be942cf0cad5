//! The text format of Prometheus.

use std::fmt::{Display, Write as _};

use vesper_kernel::counts::Durations;

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A declared metric, with its name in Prometheus; samples of a counter have the suffix `_total`.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) doc: &'static str,
}

/// The samples of one scrape.
#[derive(Default)]
pub(super) struct Page(pub(super) String);

impl Page {
    /// Adds a counter or gauge: its values, each with the values of its labels. Writing to a string cannot fail.
    pub(super) fn add<'a, V: Display>(
        &mut self,
        family: &Family,
        labels: &[&str],
        samples: impl IntoIterator<Item = (Vec<&'a str>, V)>,
    ) {
        let suffix = if family.kind == "counter" { "_total" } else { "" };
        self.head(family, suffix);
        for (values, value) in samples {
            let braced = braced(labels.iter().copied().zip(values));
            let _ = writeln!(self.0, "{}{suffix}{braced} {value}", family.name);
        }
    }

    /// Adds a histogram of durations, in seconds.
    pub(super) fn add_durations<'a>(
        &mut self,
        family: &Family,
        label: Option<&str>,
        samples: impl IntoIterator<Item = (&'a str, &'a Durations)>,
    ) {
        self.head(family, "");
        for (value, durations) in samples {
            let own = || label.map(|label| (label, value));
            let count = durations.count();
            for (bound_us, below) in durations.cumulated() {
                let bound = seconds(bound_us);
                let braced = braced(own().into_iter().chain([("le", bound.as_str())]));
                let _ = writeln!(self.0, "{}_bucket{braced} {below}", family.name);
            }
            let last = braced(own().into_iter().chain([("le", "+Inf")]));
            let braced = braced(own());
            let sum = seconds(durations.sum_us());
            let name = family.name;
            let _ = writeln!(
                self.0,
                "{name}_bucket{last} {count}\n{name}_sum{braced} {sum}\n{name}_count{braced} {count}"
            );
        }
    }

    fn head(&mut self, family: &Family, suffix: &str) {
        let Family { name, kind, doc } = family;
        let _ = writeln!(
            self.0,
            "# HELP {name}{suffix} {doc}\n# TYPE {name}{suffix} {kind}"
        );
    }
}

/// Returns labels in braces, or nothing. Their values are names of this program, which need no escape.
fn braced<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let rows: Vec<String> = labels
        .into_iter()
        .map(|(name, value)| format!("{name}=\"{value}\""))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("{{{}}}", rows.join(","))
}

fn seconds(length_us: u64) -> String {
    let text = format!("{}.{:06}", length_us / 1_000_000, length_us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_exact_seconds() {
        assert_eq!(seconds(0), "0");
        assert_eq!(seconds(250), "0.00025");
        assert_eq!(seconds(10_000_000), "10");
    }
}
