//! Why a request is not performed.

use std::fmt;

/// The kind of a refusal. Each has the gRPC status code of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidArgument,
    NotFound,
    AlreadyExists,
    FailedPrecondition,
    ResourceExhausted,
    Aborted,
    OutOfRange,
    Unavailable,
    DeadlineExceeded,
}

/// A refused request. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

macro_rules! constructors {
    ($($name:ident: $code:ident),*) => {
        impl Refusal {
            $(pub fn $name(message: impl Into<String>) -> Self {
                Self { code: Code::$code, message: message.into() }
            })*
        }
    };
}

constructors!(
    invalid: InvalidArgument,
    not_found: NotFound,
    exists: AlreadyExists,
    precondition: FailedPrecondition,
    exhausted: ResourceExhausted,
    aborted: Aborted,
    out_of_range: OutOfRange,
    unavailable: Unavailable,
    too_late: DeadlineExceeded
);
