//! Settings of the machines.

use crate::proto::v1::Quota;

pub const SECOND_US: i64 = 1_000_000;
pub const MINUTE_US: i64 = 60 * SECOND_US;
pub const HOUR_US: i64 = 60 * MINUTE_US;

/// Requests of one user. An absent limit is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// Within any second.
    pub burst: Option<u32>,
    pub per_minute: Option<u32>,
    pub per_hour: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The quota of a process that is created without one.
    pub default_quota: Quota,
    pub rate_limit: RateLimit,
    /// How long an ended process and an envelope without a session can be read.
    pub retention_us: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_quota: Quota::default(),
            rate_limit: RateLimit::default(),
            retention_us: 24 * HOUR_US,
        }
    }
}
