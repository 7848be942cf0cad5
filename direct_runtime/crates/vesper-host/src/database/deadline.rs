//! The moment by which an attempt must have ended.

use std::time::{Duration, Instant};

use crate::effect::Failure;
use crate::messages::seconds;

/// Time of one attempt.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    pub at: Instant,
    /// The whole time of the attempt, for messages.
    pub whole: Duration,
}

impl Deadline {
    pub fn new(whole: Duration) -> Self {
        let now = Instant::now();
        // Beyond the range of the clock nothing ever times out.
        let at = now
            .checked_add(whole)
            .unwrap_or_else(|| now + Duration::from_secs(1 << 30));
        Self { at, whole }
    }

    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    pub fn has_passed(&self) -> bool {
        self.left().is_zero()
    }

    /// Returns the failure of an attempt that took too long.
    pub fn failure(&self, doing: &str) -> Failure {
        Failure::new(
            "timeout",
            format!("{doing} took longer than {} s", seconds(self.whole)),
        )
    }
}
