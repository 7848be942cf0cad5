//! The clock of one attempt, and the bytes that it has sent.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::effect::Failure;

/// Longest time of an attempt; the clock cannot represent every duration.
const MAX_TIME: Duration = Duration::from_hours(365 * 24);

/// One clock runs over lookup, connection, TLS handshake, writing and every read: a server that sends one byte now and
/// then gains nothing by it.
pub(super) struct Attempt {
    pub(super) until: Instant,
    /// Bytes handed to connections: from the first one on, the other side may have acted.
    sent: AtomicU64,
}

impl Attempt {
    pub(super) fn new(time: Duration) -> Self {
        Self::until(Instant::now() + time.min(MAX_TIME))
    }

    /// Returns another attempt within the same time, which has sent nothing yet.
    pub(super) fn until(until: Instant) -> Self {
        Self {
            until,
            sent: AtomicU64::new(0),
        }
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn add_sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn timed_out(&self, doing: &str) -> Failure {
        Failure {
            may_have_happened: self.sent() > 0,
            ..Failure::new("timeout", format!("no time was left {doing}"))
        }
    }

    pub(super) fn unavailable(&self, problem: impl Into<String>) -> Failure {
        Failure {
            may_have_happened: self.sent() > 0,
            ..Failure::new("unavailable", problem)
        }
    }

    /// Fails where no time is left until this moment.
    pub(super) fn check(&self, doing: &str, until: Instant) -> Result<(), Failure> {
        if until.min(self.until) <= Instant::now() {
            return Err(self.timed_out(doing));
        }
        Ok(())
    }

    /// Waits for a result until this moment, or the end of the attempt.
    pub(super) async fn within<T>(
        &self,
        doing: &str,
        until: Instant,
        future: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        self.check(doing, until)?;
        let result = timeout_at(until.min(self.until), future).await;
        result.map_err(|_| self.timed_out(doing))
    }
}
