//! Kernels of the `text` family.

use std::sync::Arc;

use vesper_ir::limits::TEXT_LENGTH;
use vesper_ir::unicode::{normalize, push_lower, push_upper};
use vesper_ir::{ErrorCode, NormalForm, TextKernels, Value};

use crate::{Native, count, within_items};

/// Returns true for the property `White_Space` of Unicode 15.0.
///
/// SEMANTICS: the list is explicit, because Rust uses the tables of its release, and Python's `strip` also removes
/// U+001C to U+001F.
fn is_white_space(char: char) -> bool {
    matches!(
        char,
        '\u{9}'..='\u{d}'
            | ' '
            | '\u{85}'
            | '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}'
    )
}

fn length(value: &str) -> usize {
    value.chars().count()
}

/// Fails above the maximum number of code points in a string. Callers check before they allocate.
fn within_text(length: usize) -> Result<(), ErrorCode> {
    if length > TEXT_LENGTH {
        return Err(ErrorCode::TooLarge);
    }
    Ok(())
}

/// Converts a position in code points to bytes; positions past the end become the end.
fn byte_place(value: &str, position: usize) -> usize {
    value
        .char_indices()
        .nth(position)
        .map_or(value.len(), |(place, _)| place)
}

/// Collects parts in an array. Fails above the maximum number of items.
fn parts<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Arc<[Value]>, ErrorCode> {
    let mut result = Vec::new();
    for part in parts {
        within_items(result.len().saturating_add(1))?;
        result.push(Value::Text(Arc::from(part)));
    }
    Ok(Arc::from(result))
}

/// Converts each code point to another case, which may have several code points.
fn in_case(value: &str, push: fn(char, &mut String)) -> Result<Arc<str>, ErrorCode> {
    let mut result = String::with_capacity(value.len());
    for char in value.chars() {
        push(char, &mut result);
    }
    // No string has more code points than bytes.
    if result.len() > TEXT_LENGTH {
        within_text(length(&result))?;
    }
    Ok(Arc::from(result))
}

/// Returns the padding that extends a string to a width.
fn padding(value: &str, width: i64, fill: &str) -> Result<String, ErrorCode> {
    let mut fills = fill.chars();
    if fills.next().is_none() || fills.next().is_some() {
        return Err(ErrorCode::InvalidArgument);
    }
    let missing = width.saturating_sub(count(length(value)));
    if missing <= 0 {
        return Ok(String::new());
    }
    within_text(usize::try_from(width).unwrap_or(usize::MAX))?;
    Ok(fill.repeat(usize::try_from(missing).unwrap_or(0)))
}

impl TextKernels for Native {
    #[inline]
    fn text_length(&self, value: &str) -> i64 {
        // SEMANTICS: Rust's `len` counts UTF-8 bytes; Vesper, like Python, counts code points.
        count(value.chars().count())
    }

    #[inline]
    fn text_equal(&self, left: &str, right: &str) -> bool {
        left == right
    }

    #[inline]
    fn text_not_equal(&self, left: &str, right: &str) -> bool {
        left != right
    }

    fn text_concat(&self, left: &str, right: &str) -> Result<Arc<str>, ErrorCode> {
        // No string has more code points than bytes.
        if left.len().saturating_add(right.len()) > TEXT_LENGTH {
            within_text(length(left).saturating_add(length(right)))?;
        }
        Ok(Arc::from([left, right].concat()))
    }

    // SEMANTICS: UTF-8 byte order is code-point order.

    #[inline]
    fn text_less(&self, left: &str, right: &str) -> bool {
        left < right
    }

    #[inline]
    fn text_less_or_equal(&self, left: &str, right: &str) -> bool {
        left <= right
    }

    #[inline]
    fn text_greater(&self, left: &str, right: &str) -> bool {
        left > right
    }

    #[inline]
    fn text_greater_or_equal(&self, left: &str, right: &str) -> bool {
        left >= right
    }

    fn text_at(&self, value: &str, index: i64) -> Result<Arc<str>, ErrorCode> {
        let char = usize::try_from(index)
            .ok()
            .and_then(|index| value.chars().nth(index));
        let char = char.ok_or(ErrorCode::IndexOutOfRange)?;
        Ok(Arc::from(&*char.encode_utf8(&mut [0; 4])))
    }

    fn text_slice(&self, value: &str, start: i64, end: i64) -> Result<Arc<str>, ErrorCode> {
        if start < 0 || end < 0 {
            return Err(ErrorCode::InvalidArgument);
        }
        let position = |position: i64| usize::try_from(position).unwrap_or(usize::MAX);
        let rest = value.get(byte_place(value, position(start))..).unwrap_or("");
        let kept = byte_place(rest, position(end.saturating_sub(start).max(0)));
        Ok(Arc::from(rest.get(..kept).unwrap_or("")))
    }

    fn text_split(&self, value: &str, separator: &str) -> Result<Arc<[Value]>, ErrorCode> {
        // SEMANTICS: Rust splits at an empty separator around every character; here it fails.
        if separator.is_empty() {
            return Err(ErrorCode::InvalidArgument);
        }
        parts(value.split(separator))
    }

    fn text_words(&self, value: &str) -> Result<Arc<[Value]>, ErrorCode> {
        parts(value.split(is_white_space).filter(|word| !word.is_empty()))
    }

    fn text_join(&self, parts: &[Value], separator: &str) -> Result<Arc<str>, ErrorCode> {
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                Value::Text(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        let separators = length(separator).saturating_mul(texts.len().saturating_sub(1));
        within_text(separators)?;
        // A string may be repeated a million times, so counting stops at the limit.
        let mut total = separators;
        for text in &texts {
            total = total.saturating_add(length(text));
            within_text(total)?;
        }
        Ok(Arc::from(texts.join(separator)))
    }

    fn text_trim(&self, value: &str) -> Arc<str> {
        Arc::from(value.trim_matches(is_white_space))
    }

    fn text_trim_start(&self, value: &str) -> Arc<str> {
        Arc::from(value.trim_start_matches(is_white_space))
    }

    fn text_trim_end(&self, value: &str) -> Arc<str> {
        Arc::from(value.trim_end_matches(is_white_space))
    }

    #[inline]
    fn text_starts_with(&self, value: &str, prefix: &str) -> bool {
        value.starts_with(prefix)
    }

    #[inline]
    fn text_ends_with(&self, value: &str, suffix: &str) -> bool {
        value.ends_with(suffix)
    }

    #[inline]
    fn text_contains(&self, value: &str, part: &str) -> bool {
        value.contains(part)
    }

    fn text_index_of(&self, value: &str, part: &str) -> Option<Value> {
        let before = value.get(..value.find(part)?)?;
        Some(Value::Integer(count(length(before))))
    }

    fn text_replace(&self, value: &str, old: &str, new: &str) -> Result<Arc<str>, ErrorCode> {
        // SEMANTICS: Rust replaces an empty text around every character; here it fails.
        if old.is_empty() {
            return Err(ErrorCode::InvalidArgument);
        }
        let found = value.matches(old).count();
        let kept = length(value).saturating_sub(found.saturating_mul(length(old)));
        within_text(kept.saturating_add(found.saturating_mul(length(new))))?;
        Ok(Arc::from(value.replace(old, new)))
    }

    fn text_lower(&self, value: &str) -> Result<Arc<str>, ErrorCode> {
        in_case(value, push_lower)
    }

    fn text_upper(&self, value: &str) -> Result<Arc<str>, ErrorCode> {
        in_case(value, push_upper)
    }

    fn text_repeat(&self, value: &str, count: i64) -> Result<Arc<str>, ErrorCode> {
        if count < 0 {
            return Err(ErrorCode::InvalidArgument);
        }
        if value.is_empty() {
            return Ok(Arc::from(""));
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        within_text(length(value).saturating_mul(count))?;
        Ok(Arc::from(value.repeat(count)))
    }

    fn text_pad_start(&self, value: &str, width: i64, fill: &str) -> Result<Arc<str>, ErrorCode> {
        Ok(Arc::from(padding(value, width, fill)? + value))
    }

    fn text_pad_end(&self, value: &str, width: i64, fill: &str) -> Result<Arc<str>, ErrorCode> {
        let padding = padding(value, width, fill)?;
        Ok(Arc::from([value, &padding].concat()))
    }

    fn text_reverse(&self, value: &str) -> Arc<str> {
        Arc::from(value.chars().rev().collect::<String>())
    }

    fn text_is_digits(&self, value: &str) -> bool {
        !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn text_code_point(&self, value: &str) -> Result<i64, ErrorCode> {
        let mut chars = value.chars();
        match (chars.next(), chars.next()) {
            (Some(only), None) => Ok(i64::from(u32::from(only))),
            _ => Err(ErrorCode::InvalidArgument),
        }
    }

    fn text_from_code_point(&self, number: i64) -> Result<Arc<str>, ErrorCode> {
        let char = u32::try_from(number).ok().and_then(char::from_u32);
        let char = char.ok_or(ErrorCode::InvalidArgument)?;
        Ok(Arc::from(&*char.encode_utf8(&mut [0; 4])))
    }

    fn text_percent_encode(&self, value: &str) -> Result<Arc<str>, ErrorCode> {
        let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let kept = value.bytes().filter(|byte| is_kept(*byte)).count();
        within_text(kept.saturating_add((value.len() - kept).saturating_mul(3)))?;
        let mut encoded = String::with_capacity(value.len());
        for byte in value.bytes() {
            if is_kept(byte) {
                encoded.push(char::from(byte));
            } else {
                encoded.push('%');
                for digit in [byte >> 4, byte & 15] {
                    let digit = char::from_digit(u32::from(digit), 16).unwrap_or('0');
                    encoded.push(digit.to_ascii_uppercase());
                }
            }
        }
        Ok(Arc::from(encoded))
    }

    fn text_code_points(&self, value: &str) -> Result<Arc<[Value]>, ErrorCode> {
        let length = length(value);
        within_items(length)?;
        let mut result = Vec::with_capacity(length);
        result.extend(
            value
                .chars()
                .map(|char| Value::Integer(i64::from(u32::from(char)))),
        );
        Ok(Arc::from(result))
    }

    fn text_normalize(&self, value: &str, form: NormalForm) -> Result<Arc<str>, ErrorCode> {
        let normal = normalize(value, form);
        // SEMANTICS: a code point becomes at most 18 code points, so that the text is built before its length is known.
        within_text(length(&normal))?;
        Ok(Arc::from(normal))
    }
}
