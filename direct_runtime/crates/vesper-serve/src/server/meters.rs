//! Metrics of requests. The handles of an endpoint are resolved once, so that a request takes no lock.

use std::sync::OnceLock;
use std::time::Duration;

use http::{Method, StatusCode};
use vesper_metrics::{
    CONNECTIONS, Counter, Histogram, QUEUE_DEPTH, REQUEST_DURATION, REQUESTS_TOTAL, counter, gauge, histogram,
};

use crate::exchange::{Endpoint, Exchange};

/// The metrics of one endpoint: the counter of its successes with status 200, and its durations.
#[derive(Debug, Default)]
pub(super) struct EndpointMeter {
    successes: OnceLock<Counter>,
    durations: OnceLock<Histogram>,
}

/// The metrics of the endpoints of an epoch.
#[derive(Debug)]
pub(super) struct Meters(Vec<EndpointMeter>);

impl Meters {
    pub(super) fn new(endpoints: usize) -> Self {
        Self((0..endpoints).map(|_| EndpointMeter::default()).collect())
    }

    /// Counts a request. One without an endpoint, such as an unknown path, has an empty node.
    pub(super) fn count(
        &self,
        exchange: &Exchange,
        endpoint: Option<Endpoint>,
        method: &Method,
        status: StatusCode,
        duration: Duration,
        trace: Option<u128>,
    ) {
        let (node, own) = match endpoint {
            Some(Endpoint::Node(index)) => (exchange.node(index), self.0.get(index)),
            Some(Endpoint::Builtin(builtin)) => (builtin.path(), None),
            None => ("", None),
        };
        let method = label(method);
        let find_counter = || counter(REQUESTS_TOTAL, &[node, method, status.as_str()]);
        // HEAD shares the endpoint of GET, and its handles are looked up.
        let own = own.filter(|_| method != "HEAD");
        match own.filter(|_| status == StatusCode::OK) {
            Some(own) => own.successes.get_or_init(find_counter).add(1),
            None => find_counter().add(1),
        }
        let find_histogram = || histogram(REQUEST_DURATION, &[node, method]);
        let durations = match own {
            Some(own) => *own.durations.get_or_init(find_histogram),
            None => find_histogram(),
        };
        match trace {
            Some(trace) => durations.observe_traced(duration, trace),
            None => durations.observe(duration),
        }
    }
}

/// Sets the gauges of the process.
pub(super) fn set_gauges(connections: usize, queued: usize) {
    #[expect(clippy::cast_precision_loss, reason = "both are far below 2^52")]
    let [connections, queued] = [connections, queued].map(|number| number as f64);
    gauge(CONNECTIONS, &[]).set(connections);
    gauge(QUEUE_DEPTH, &[]).set(queued);
}

/// Returns the label of a method; a client cannot make up new ones.
fn label(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS") => known,
        _ => "other",
    }
}
