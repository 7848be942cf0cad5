//! RPCs by method and status code, with their durations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tonic::Code;
use vesper_kernel::counts::Durations;

use crate::services::{HttpAnswer, HttpResponse};

/// Names of status codes, by number.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Returns the number of the status of an answer.
fn code_of(response: &HttpResponse) -> usize {
    // An answer without a status in its head has one in its trailers: it is not refused.
    let code = response.headers().get("grpc-status");
    let number = code.and_then(|code| code.to_str().ok()?.parse().ok());
    number.unwrap_or(Code::Ok as usize)
}

/// Returns the name of the status of an answer.
pub(crate) fn code_name(response: &HttpResponse) -> &'static str {
    CODES.get(code_of(response)).copied().unwrap_or("UNKNOWN")
}

/// One RPC of the protos.
#[derive(Debug, Default)]
pub(super) struct Method {
    codes: [AtomicU64; CODES.len()],
    pub(super) durations: Durations,
}

impl Method {
    fn count(&self, code: usize, begun: Instant) {
        if let Some(count) = self.codes.get(code) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.durations.observe(begun.elapsed());
    }

    /// Returns the codes that were answered, with their numbers.
    pub(super) fn codes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.codes.iter().map(|count| count.load(Ordering::Relaxed));
        CODES.into_iter().zip(counts).filter(|(_, count)| *count > 0)
    }
}

/// All RPCs.
#[derive(Debug)]
pub(crate) struct Rpcs {
    methods: BTreeMap<String, Arc<Method>>,
}

impl Rpcs {
    /// `services` are names with the names of their methods.
    pub(crate) fn new(services: &[(&str, &[&str])]) -> Self {
        let paths = services.iter().flat_map(|(service, methods)| {
            methods
                .iter()
                .map(move |method| (format!("/{service}/{method}"), Arc::default()))
        });
        Self {
            methods: paths.collect(),
        }
    }

    /// Counts an RPC when it is answered. A path without a method is not counted.
    pub(crate) fn count(&self, path: &str, answer: HttpAnswer) -> HttpAnswer {
        let Some(method) = self.methods.get(path).cloned() else {
            return answer;
        };
        let mut open = OpenRpc {
            method,
            begun: Instant::now(),
            code: Code::Cancelled as usize,
        };
        Box::pin(async move {
            let Ok(response) = answer.await;
            open.end(code_of(&response));
            Ok(response)
        })
    }

    /// Returns the methods that were called, by `Service/Method`.
    pub(super) fn called(&self) -> impl Iterator<Item = (&str, &Method)> {
        self.methods
            .iter()
            .filter(|(_, method)| method.durations.count() > 0)
            .map(|(path, method)| (path.rsplit_once('.').map_or("", |(_, name)| name), &**method))
    }
}

/// An RPC that is counted when it ends, also where its caller goes.
struct OpenRpc {
    method: Arc<Method>,
    begun: Instant,
    code: usize,
}

impl OpenRpc {
    fn end(&mut self, code: usize) {
        self.code = code;
    }
}

impl Drop for OpenRpc {
    fn drop(&mut self) {
        self.method.count(self.code, self.begun);
    }
}
