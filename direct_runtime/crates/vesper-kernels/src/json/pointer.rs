//! JSON Pointers (RFC 6901).

use std::borrow::Cow;

use vesper_ir::{ErrorCode, Json};

/// Returns the value at a path, or `None` where there is none.
pub(super) fn follow<'a>(value: &'a Json, path: &str) -> Result<Option<&'a Json>, ErrorCode> {
    let Some(parts) = path.strip_prefix('/') else {
        return if path.is_empty() {
            Ok(Some(value))
        } else {
            Err(ErrorCode::InvalidArgument)
        };
    };
    let mut found = Some(value);
    for part in parts.split('/') {
        // All parts are parsed, because a malformed path fails even where an earlier part has no value.
        let part = unescape(part).ok_or(ErrorCode::InvalidArgument)?;
        found = match found {
            Some(Json::Object(object)) => object.get(&part),
            Some(Json::Array(items)) => position(&part).and_then(|place| items.get(place)),
            _ => None,
        };
    }
    Ok(found)
}

/// Replaces `~1` by `/` and `~0` by `~`. Returns `None` for any other `~`.
fn unescape(part: &str) -> Option<Cow<'_, str>> {
    let mut pieces = part.split('~');
    let first = pieces.next()?;
    if first.len() == part.len() {
        return Some(Cow::Borrowed(part));
    }
    let mut text = first.to_owned();
    for piece in pieces {
        // SEMANTICS: one pass, so that `~01` becomes `~1` and not `/`.
        if let Some(rest) = piece.strip_prefix('0') {
            text.push('~');
            text.push_str(rest);
        } else {
            text.push('/');
            text.push_str(piece.strip_prefix('1')?);
        }
    }
    Some(Cow::Owned(text))
}

/// Parses `0`, or digits without a leading zero. Rust alone would also accept `+1` and `01`.
fn position(part: &str) -> Option<usize> {
    let is_spelled_so =
        part == "0" || !part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit());
    if is_spelled_so { part.parse().ok() } else { None }
}
