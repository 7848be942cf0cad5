//! The id of an execution: a UUID of version 7 (RFC 9562), so that ids sort as the executions started.

use crate::sources::{NoRandomness, Sources};

const FRACTIONS: u128 = 4096;
const MILLISECOND_NS: u128 = 1_000_000;

/// Returns a new id for this time, in nanoseconds since 1970.
///
/// 48 bits of milliseconds, 12 bits of their fraction (method 3 of the RFC), 62 random bits from the operating system,
/// so that two processes that were forked from one do not make the same.
pub fn trace_id(at_ns: i64, sources: &dyn Sources) -> Result<String, NoRandomness> {
    let mut random = [0; 8];
    sources.fill(&mut random)?;
    let random = u128::from(u64::from_be_bytes(random)) & ((1 << 62) - 1);
    let at = u128::from(at_ns.unsigned_abs());
    let (milliseconds, rest) = (at / MILLISECOND_NS, at % MILLISECOND_NS);
    let fraction = rest * FRACTIONS / MILLISECOND_NS;
    let bits = (milliseconds & ((1 << 48) - 1)) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random;
    let text = format!("{bits:032x}");
    let mut id = String::with_capacity(36);
    for (at, digit) in text.chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            id.push('-');
        }
        id.push(digit);
    }
    Ok(id)
}
