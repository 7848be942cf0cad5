//! Refusals as statuses, and the deadlines of callers.

use std::time::Duration;

use tonic::metadata::MetadataMap;
use tonic::{Code as Grpc, Status};
use vesper_kernel::refusal::{Code, Refusal};
use vesper_kernel::settings::SECOND_US;

/// How long a request waits that names no deadline.
const DEFAULT_WAIT_US: i64 = 30 * SECOND_US;

pub(crate) fn status(refusal: Refusal) -> Status {
    let code = match refusal.code {
        Code::InvalidArgument => Grpc::InvalidArgument,
        Code::NotFound => Grpc::NotFound,
        Code::AlreadyExists => Grpc::AlreadyExists,
        Code::FailedPrecondition => Grpc::FailedPrecondition,
        Code::ResourceExhausted => Grpc::ResourceExhausted,
        Code::Aborted => Grpc::Aborted,
        Code::OutOfRange => Grpc::OutOfRange,
        Code::Unavailable => Grpc::Unavailable,
        Code::DeadlineExceeded => Grpc::DeadlineExceeded,
    };
    Status::new(code, refusal.message)
}

/// Returns how long the caller waits, from `grpc-timeout`.
pub(crate) fn patience_us(metadata: &MetadataMap) -> i64 {
    let text = metadata
        .get("grpc-timeout")
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let read = || {
        let unit = text.chars().last()?;
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        let length = match unit {
            'H' => Duration::from_secs(count.checked_mul(3_600)?),
            'M' => Duration::from_secs(count.checked_mul(60)?),
            'S' => Duration::from_secs(count),
            'm' => Duration::from_millis(count),
            'u' => Duration::from_micros(count),
            'n' => Duration::from_nanos(count),
            _ => return None,
        };
        i64::try_from(length.as_micros()).ok()
    };
    read().unwrap_or(DEFAULT_WAIT_US)
}
