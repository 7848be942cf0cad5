//! The one spelling of values in the journal (docs/spec/journal.md), and back.
//!
//! A value of a type is written as `vesper/journal/typed_json.py` writes its Python form, byte for byte. A `json` has
//! the form that callers and performers of effects know: whole numbers as numbers, others as decimals with their
//! places, so that a digest needs no form of its own.

mod members;
mod read;
mod write;

use vesper_interp::Request;
use vesper_ir::{Type, Value};

use crate::journal::JournalError;

pub use members::{member, text_member};
pub use read::read_value;
pub use write::{MAX_TEXT, write_text};

/// Appends a value of a type. Fails with `TooLarge` where its text would have more than [`MAX_TEXT`] bytes.
pub fn write_value(out: &mut String, ty: &Type, value: &Value) -> Result<(), JournalError> {
    write::Writer::new(out).value(ty, value)
}

/// Returns the texts of a request's `fixed` and `arguments`, as an entry has them.
pub fn request_texts(request: &Request) -> Result<(String, String), JournalError> {
    let mut fixed = String::with_capacity(64);
    let pairs = request.fixed.iter().map(|(name, text)| (&**name, &**text));
    write_object(&mut fixed, pairs.collect(), |out, text| {
        write_text(out, text);
        Ok(())
    })?;
    let mut arguments = String::with_capacity(128);
    let pairs = request.arguments.iter().map(|each| (&*each.name, each));
    write_object(&mut arguments, pairs.collect(), |out, argument| {
        write_value(out, &argument.ty, &argument.value)
    })?;
    Ok((fixed, arguments))
}

/// Returns the text that the digest of a request is computed from, of the texts that `request_texts` gave.
pub fn digest_text(request: &Request, fixed: &str, arguments: &str) -> String {
    let mut text = String::with_capacity(fixed.len() + arguments.len() + 128);
    text.push('[');
    write_text(&mut text, request.effect.name());
    text.push(',');
    write_text(&mut text, request.class.name());
    for part in [fixed, arguments] {
        text.push(',');
        text.push_str(part);
    }
    text.push(',');
    match &request.key {
        Some(key) => write_text(&mut text, key),
        None => text.push_str("null"),
    }
    text.push(']');
    text
}

/// Appends an object of these members in code-point order of their names, none of which starts with `$`.
fn write_object<T>(
    out: &mut String,
    mut members: Vec<(&str, T)>,
    mut write: impl FnMut(&mut String, T) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    members.sort_by_key(|(name, _)| *name);
    out.push('{');
    for (place, (name, item)) in members.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_text(out, name);
        out.push(':');
        write(out, item)?;
    }
    out.push('}');
    Ok(())
}
