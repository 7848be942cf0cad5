//! Cells of rows, and values in messages.

use std::fmt::Write as _;

use crate::journal::JournalError;
use crate::journal::store::Cell;

/// Signs of a cell that a message repeats.
pub(crate) const MAX_SHOWN: usize = 40;

pub(crate) fn integer(cell: Option<&Cell>) -> Result<i64, JournalError> {
    cell.unwrap_or(&Cell::Null).integer()
}

pub(crate) fn data(cell: Option<&Cell>) -> Result<&[u8], JournalError> {
    cell.unwrap_or(&Cell::Null).bytes()
}

pub(crate) fn text(cell: Option<&Cell>) -> Result<&str, JournalError> {
    cell.unwrap_or(&Cell::Null).text()
}

/// Returns the first signs of a text.
pub(crate) fn truncate(text: &str, signs: usize) -> String {
    text.chars().take(signs).collect()
}

/// Returns a cell as Python writes the value in a message.
pub(crate) fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => "None".to_owned(),
        Cell::Integer(number) => number.to_string(),
        Cell::Text(text) => quoted(text),
        Cell::Bytes(bytes) => {
            let signs: String = bytes
                .iter()
                .take(MAX_SHOWN)
                .map(|byte| byte.escape_ascii().to_string())
                .collect();
            format!("b'{signs}'")
        }
        Cell::Other(text) => text.clone(),
    }
}

/// Returns a text in quotes, with the escapes of Python.
pub(crate) fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut written = String::with_capacity(text.len() + 2);
    written.push(quote);
    for sign in text.chars() {
        match sign {
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            sign if sign == quote => {
                written.push('\\');
                written.push(sign);
            }
            sign if sign.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(written, "\\x{:02x}", u32::from(sign));
            }
            sign => written.push(sign),
        }
    }
    written.push(quote);
    written
}
