//! Kernels of the `bytes` family. Decoders are strict: each accepts the output of its encoder, and hexadecimal digits
//! of either case.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use vesper_ir::limits::{BYTES_LENGTH, TEXT_LENGTH};
use vesper_ir::{BytesKernels, ErrorCode, base64};

use crate::{Native, count};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Fails above the limit. Callers check before they allocate.
fn within(length: usize, limit: usize) -> Result<(), ErrorCode> {
    if length > limit {
        return Err(ErrorCode::TooLarge);
    }
    Ok(())
}

fn half(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

impl BytesKernels for Native {
    #[inline]
    fn bytes_equal(&self, left: &[u8], right: &[u8]) -> bool {
        left == right
    }

    #[inline]
    fn bytes_not_equal(&self, left: &[u8], right: &[u8]) -> bool {
        left != right
    }

    #[inline]
    fn bytes_length(&self, value: &[u8]) -> i64 {
        count(value.len())
    }

    #[inline]
    fn bytes_at(&self, value: &[u8], index: i64) -> Result<i64, ErrorCode> {
        let byte = usize::try_from(index).ok().and_then(|index| value.get(index));
        byte.map(|byte| i64::from(*byte))
            .ok_or(ErrorCode::IndexOutOfRange)
    }

    fn bytes_slice(&self, value: &[u8], start: i64, end: i64) -> Result<Arc<[u8]>, ErrorCode> {
        if start < 0 || end < 0 {
            return Err(ErrorCode::InvalidArgument);
        }
        let place =
            |position: i64| usize::try_from(position).map_or(value.len(), |place| place.min(value.len()));
        // Empty where the end precedes the start.
        Ok(Arc::from(value.get(place(start)..place(end)).unwrap_or(&[])))
    }

    fn bytes_concat(&self, left: &[u8], right: &[u8]) -> Result<Arc<[u8]>, ErrorCode> {
        within(left.len().saturating_add(right.len()), BYTES_LENGTH)?;
        Ok(Arc::from([left, right].concat()))
    }

    fn bytes_hex(&self, value: &[u8]) -> Result<Arc<str>, ErrorCode> {
        within(value.len().saturating_mul(2), TEXT_LENGTH)?;
        let digits = value.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        let text: String = digits
            .filter_map(|digit| DIGITS.get(usize::from(digit)))
            .map(|digit| char::from(*digit))
            .collect();
        Ok(Arc::from(text))
    }

    fn bytes_parse_hex(&self, value: &str) -> Result<Arc<[u8]>, ErrorCode> {
        let (pairs, rest) = value.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return Err(ErrorCode::BadFormat);
        }
        let bytes = pairs
            .iter()
            .map(|[high, low]| Some(half(*high)? << 4 | half(*low)?));
        let bytes: Option<Vec<u8>> = bytes.collect();
        bytes.map(Arc::from).ok_or(ErrorCode::BadFormat)
    }

    fn bytes_base64(&self, value: &[u8]) -> Result<Arc<str>, ErrorCode> {
        within(base64::text_length(value.len()), TEXT_LENGTH)?;
        Ok(Arc::from(base64::text(value)))
    }

    fn bytes_parse_base64(&self, value: &str) -> Result<Arc<[u8]>, ErrorCode> {
        base64::parse(value).map(Arc::from).ok_or(ErrorCode::BadFormat)
    }

    fn bytes_utf8(&self, value: &str) -> Result<Arc<[u8]>, ErrorCode> {
        // The limit of a string is in code points, which have up to four bytes.
        within(value.len(), BYTES_LENGTH)?;
        Ok(Arc::from(value.as_bytes()))
    }

    fn bytes_parse_utf8(&self, value: &[u8]) -> Result<Arc<str>, ErrorCode> {
        // Rust also rejects overlong forms and surrogates.
        std::str::from_utf8(value)
            .map(Arc::from)
            .map_err(|_| ErrorCode::BadFormat)
    }

    fn bytes_sha256(&self, value: &[u8]) -> Arc<[u8]> {
        Arc::from(Sha256::digest(value).as_slice())
    }
}
