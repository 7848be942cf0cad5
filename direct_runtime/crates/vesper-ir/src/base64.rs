//! Base64 of docs/spec/bytes.md: RFC 4648 alphabet with `+` and `/`, padded, one line, one spelling.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the length of the base64 text of `bytes` bytes.
pub fn text_length(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(4)
}

/// Encodes bytes as base64.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(text_length(bytes.len()));
    for chunk in bytes.chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = bits >> shift & 0x3f;
            let char = ALPHABET.get(digit as usize).copied().unwrap_or(b'=');
            // A chunk of n bytes fills n + 1 characters; the others are padding.
            let is_padding = place > chunk.len();
            text.push(if is_padding { '=' } else { char::from(char) });
        }
    }
    text
}

/// Decodes base64. Returns `None` unless the text is the one spelling of its bytes.
pub fn parse(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    let padding = text
        .iter()
        .rev()
        .take(2)
        .take_while(|byte| **byte == b'=')
        .count();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.get(..text.len() - padding)?;
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.chunks(4) {
        let mut bits = 0_u32;
        for byte in chunk {
            bits = bits << 6 | digit(*byte)?;
        }
        let missing = 4 - chunk.len();
        // SEMANTICS: unused bits must be zero, or one value would have several texts.
        let unused = (1_u32 << (2 * missing)) - 1;
        if missing == 3 || bits & unused != 0 {
            return None;
        }
        let [_, first, second, third] = (bits << (6 * missing)).to_be_bytes();
        bytes.extend([first, second, third].iter().take(3 - missing));
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}
