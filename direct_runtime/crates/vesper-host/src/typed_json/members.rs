//! Members of a body, found without parsing their values.

use vesper_ir::Json;
use vesper_ir::json::{parse, quote};

/// Returns the text of a member of an object in its canonical spelling; None where it has no such member.
///
/// The text of another value, or a damaged one, has no members. The scan is linear and does not recurse.
pub fn member<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let mut wanted = String::with_capacity(name.len() + 2);
    quote(name, &mut wanted);
    let mut rest = body.strip_prefix('{')?;
    loop {
        let key = value_length(rest)?;
        let (key, after) = rest.split_at_checked(key)?;
        let after = after.strip_prefix(':')?;
        let (value, after) = after.split_at_checked(value_length(after)?)?;
        if key == wanted {
            return Some(value);
        }
        rest = after.strip_prefix(',')?;
    }
}

/// Returns a member that is a text, without its quotes and escapes.
pub fn text_member(body: &str, name: &str) -> Option<String> {
    match parse(member(body, name)?).ok()? {
        Json::Text(text) => Some(text.as_ref().to_owned()),
        _ => None,
    }
}

/// Returns the length of the value at the start of a text, up to the separator that follows it.
fn value_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut is_in_string = false;
    let mut is_escaped = false;
    for (place, byte) in text.bytes().enumerate() {
        if is_in_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => is_in_string = true,
            b'[' | b'{' => depth += 1,
            b',' | b':' | b']' | b'}' if depth == 0 => return (place > 0).then_some(place),
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}
