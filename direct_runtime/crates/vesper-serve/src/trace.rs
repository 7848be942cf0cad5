//! W3C trace context.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

use crate::text::{hex_digit, write_hex};

/// The W3C trace context of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    pub trace_id: [u8; 16],
    /// Span of the caller; `None` where the request brought no valid `traceparent`.
    pub parent_id: Option<[u8; 8]>,
    /// Span of this request, which the answer's `traceparent` names.
    pub span_id: [u8; 8],
    pub is_sampled: bool,
}

impl Trace {
    /// Continues the trace of a `traceparent`, or begins one.
    pub(crate) fn of_request(traceparent: Option<&[u8]>, now: SystemTime) -> Self {
        let found = traceparent.and_then(parse);
        let (trace_id, parent_id, is_sampled) = match found {
            Some((trace_id, parent_id, is_sampled)) => (trace_id, Some(parent_id), is_sampled),
            None => (
                (u128::from(random(now)) << 64 | u128::from(random(now))).to_be_bytes(),
                None,
                false,
            ),
        };
        let span_id = random(now).to_be_bytes();
        Self {
            trace_id,
            parent_id,
            span_id,
            is_sampled,
        }
    }

    /// Returns a `traceparent` with this span.
    pub(crate) fn parent_of(&self, span: [u8; 8]) -> String {
        let mut found = String::with_capacity(55);
        found.push_str("00-");
        write_hex(&self.trace_id, &mut found);
        found.push('-');
        write_hex(&span, &mut found);
        found.push_str(if self.is_sampled { "-01" } else { "-00" });
        found
    }

    pub(crate) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_maybe_shared(bytes::Bytes::from(self.parent_of(self.span_id))).ok()
    }

    pub(crate) fn id_text(&self) -> String {
        let mut found = String::with_capacity(32);
        write_hex(&self.trace_id, &mut found);
        found
    }
}

/// Returns trace, parent and sampling flag of `00-TRACE-PARENT-FLAGS`; a later version may have more fields.
fn parse(text: &[u8]) -> Option<([u8; 16], [u8; 8], bool)> {
    let mut parts = text.split(|byte| *byte == b'-');
    let [version] = hex::<1>(parts.next()?)?;
    let (trace, parent, [flags]) = (
        hex::<16>(parts.next()?)?,
        hex::<8>(parts.next()?)?,
        hex::<1>(parts.next()?)?,
    );
    let is_valid =
        version != 0xff && (version > 0 || parts.next().is_none()) && trace != [0; 16] && parent != [0; 8];
    is_valid.then_some((trace, parent, flags & 1 == 1))
}

fn hex<const LENGTH: usize>(digits: &[u8]) -> Option<[u8; LENGTH]> {
    let is_lower = digits.len() == 2 * LENGTH && !digits.iter().any(u8::is_ascii_uppercase);
    let mut found = [0; LENGTH];
    for (byte, pair) in found.iter_mut().zip(digits.chunks(2)) {
        *byte = hex_digit(*pair.first()?)? << 4 | hex_digit(*pair.get(1)?)?;
    }
    is_lower.then_some(found)
}

/// Returns a random number that is not zero. The time keeps processes apart that were forked with equal states.
fn random(now: SystemTime) -> u64 {
    thread_local!(static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0_u64)));
    let nanos = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::from(since.subsec_nanos()));
    let mixed = STATE.with(|state| {
        let next = state
            .get()
            .wrapping_add(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(nanos);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    });
    mixed.max(1)
}
