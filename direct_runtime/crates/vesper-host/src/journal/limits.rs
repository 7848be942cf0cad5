//! The settings of a journal that are numbers.

use crate::journal::{ErrorKind, JournalError};
use crate::messages::grouped;

/// Most bytes that a body can have at all.
pub(crate) const MAX_TEXT: i64 = 64 << 20;

/// Lease and sizes of a journal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Time for which a run is ours without a sign of life.
    pub lease_seconds: f64,
    /// Bytes of a body that stands in its line; a larger one stands beside it, once for equal ones.
    pub max_inline: usize,
    /// Bytes of a body at most.
    pub max_body: usize,
}

impl Limits {
    /// Creates limits; refuses those that no journal can keep.
    pub fn new(lease_seconds: f64, max_inline: i64, max_body: i64) -> Result<Self, JournalError> {
        let problem = if !(0.01..=86_400.0).contains(&lease_seconds) {
            format!("a lease is between 10 ms and a day long, not {lease_seconds} s")
        } else if !(0..=1 << 20).contains(&max_inline) {
            let given = shown(max_inline);
            format!("bodies of up to 1 MiB can stand in their line, not of {given} bytes")
        } else if !(1..=MAX_TEXT).contains(&max_body) {
            let (most, given) = (shown(MAX_TEXT), shown(max_body));
            format!("a body may have up to {most} bytes, not {given}")
        } else {
            return Ok(Self {
                lease_seconds,
                max_inline: usize::try_from(max_inline).unwrap_or_default(),
                max_body: usize::try_from(max_body).unwrap_or_default(),
            });
        };
        Err(JournalError::new(ErrorKind::Journal, problem))
    }

    /// Returns the length of a lease in microseconds.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "at most a day, which `new` checks"
    )]
    pub fn lease_us(&self) -> i64 {
        (self.lease_seconds * 1_000_000.0) as i64
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lease_seconds: 30.0,
            max_inline: 16 << 10,
            max_body: 4 << 20,
        }
    }
}

fn shown(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let digits = grouped(number.unsigned_abs());
    format!("{sign}{digits}")
}
