//! The W3C trace context of a span.

use std::fmt;

use ring::rand::{SecureRandom as _, SystemRandom};

/// Name of the context in the metadata of a request and of an envelope.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// A sampled span: its trace and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
}

/// What a caller says about its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    Sampled(Context),
    Unsampled,
    /// There is no valid context.
    None,
}

impl Context {
    /// Begins a trace; `None` where the system has no random bytes.
    pub(super) fn root() -> Option<Self> {
        Some(Self {
            trace: random()?,
            span: random()?,
        })
    }

    pub(super) fn child(self) -> Option<Self> {
        Some(Self {
            trace: self.trace,
            span: random()?,
        })
    }
}

impl Caller {
    /// Reads `VERSION-TRACE-SPAN-FLAGS`; a later version may have more fields.
    pub(super) fn read(text: Option<&str>) -> Self {
        let read = |text: &str| {
            let mut parts = text.split('-');
            let [version] = hex::<1>(parts.next()?)?;
            let (trace, span) = (hex::<16>(parts.next()?)?, hex::<8>(parts.next()?)?);
            let [flags] = hex::<1>(parts.next()?)?;
            let is_whole = version > 0 || parts.next().is_none();
            let is_valid = version != 0xff && is_whole && trace != [0; 16] && span != [0; 8];
            is_valid.then_some((Context { trace, span }, flags & 1 == 1))
        };
        match text.and_then(read) {
            Some((context, true)) => Self::Sampled(context),
            Some((_, false)) => Self::Unsampled,
            None => Self::None,
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (u128::from_be_bytes(self.trace), u64::from_be_bytes(self.span));
        write!(formatter, "00-{trace:032x}-{span:016x}-01")
    }
}

fn hex<const LENGTH: usize>(digits: &str) -> Option<[u8; LENGTH]> {
    let is_lower = |each: u8| each.is_ascii_digit() || (b'a'..=b'f').contains(&each);
    if digits.len() != 2 * LENGTH || !digits.bytes().all(is_lower) {
        return None;
    }
    let mut found = [0; LENGTH];
    for (byte, pair) in found.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(found)
}

fn random<const LENGTH: usize>() -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns whether a trace that begins here is recorded, for a share of them.
pub(super) fn is_chosen(share: f64) -> bool {
    share >= 1.0
        || random().is_some_and(|bytes| f64::from(u32::from_be_bytes(bytes)) < share * f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_read_as_it_is_written() {
        let context = Context {
            trace: [0xa7; 16],
            span: [0x0b; 8],
        };
        assert_eq!(Caller::read(Some(&context.to_string())), Caller::Sampled(context));
        let text = context.to_string();
        assert_eq!(Caller::read(Some(&text.replace("-01", "-00"))), Caller::Unsampled);
        let zeros = "0".repeat(32);
        for wrong in [
            String::new(),
            text.to_uppercase().replace("00-", "0A-"),
            format!("{text}-00"),
            format!("ff{}", text.get(2..).unwrap_or_default()),
            format!("00-{zeros}-0000000000000001-01"),
            format!("00-{zeros}é-0000000000000001-01"),
        ] {
            assert_eq!(Caller::read(Some(&wrong)), Caller::None, "{wrong}");
        }
    }
}
