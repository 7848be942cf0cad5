//! The subject of a client's certificate.

use std::fmt::Write as _;

/// Returns the subject of a verified certificate as RFC 4514 writes it, such as `CN=billing,O=Acme`.
pub fn subject(certificate: &[u8]) -> Option<String> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    if fields.first() == Some(&0xa0) {
        fields = element(fields)?.2;
    }
    // Serial number, algorithm, issuer and validity come before the subject.
    for _ in 0..4 {
        fields = element(fields)?.2;
    }
    let (_, mut names, _) = element(fields)?;
    let mut parts = Vec::new();
    while !names.is_empty() {
        let (_, mut set, rest) = element(names)?;
        names = rest;
        let mut together = Vec::new();
        while !set.is_empty() {
            let (_, pair, rest) = element(set)?;
            set = rest;
            let (_, kind, value) = element(pair)?;
            let (tag, value, _) = element(value)?;
            together.push(format!("{}={}", attribute(kind), text(tag, value)?));
        }
        parts.push(together.join("+"));
    }
    parts.reverse();
    Some(parts.join(",")).filter(|subject| !subject.is_empty())
}

/// Splits a DER element from its bytes: its tag, its content, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (
                digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)),
                rest,
            )
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Returns the short name of an attribute, or its number.
fn attribute(kind: &[u8]) -> String {
    let name = match kind {
        [0x55, 0x04, 0x03] => "CN",
        [0x55, 0x04, 0x05] => "serialNumber",
        [0x55, 0x04, 0x06] => "C",
        [0x55, 0x04, 0x07] => "L",
        [0x55, 0x04, 0x08] => "ST",
        [0x55, 0x04, 0x0a] => "O",
        [0x55, 0x04, 0x0b] => "OU",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01] => "UID",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19] => "DC",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01] => "emailAddress",
        _ => return object_identifier(kind),
    };
    name.to_owned()
}

fn object_identifier(kind: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in kind {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.push(first.to_string());
                number -= first * 40;
            }
            numbers.push(number.to_string());
            number = 0;
        }
    }
    numbers.join(".")
}

/// Returns the escaped text of a UTF-8, printable, IA5 or teletex string; others are refused.
fn text(tag: u8, value: &[u8]) -> Option<String> {
    if !matches!(tag, 0x0c | 0x13 | 0x14 | 0x16) {
        return None;
    }
    let value = std::str::from_utf8(value).ok()?;
    let mut out = String::with_capacity(value.len());
    for (place, each) in value.chars().enumerate() {
        let is_edge = place == 0 || place + 1 == value.chars().count();
        match each {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => out.extend(['\\', each]),
            ' ' if is_edge => out.push_str("\\ "),
            '#' if place == 0 => out.push_str("\\#"),
            each if each.is_control() => drop(write!(out, "\\{:02X}", u32::from(each))),
            each => out.push(each),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut out = vec![tag, u8::try_from(content.len()).unwrap_or(0)];
        out.extend(content);
        out
    }

    #[test]
    fn a_subject_is_written_last_part_first_and_escaped() {
        let pair = |kind: &[u8], tag, value: &[u8]| {
            der(0x31, &[&der(0x30, &[&der(0x06, &[kind]), &der(tag, &[value])])])
        };
        let names = der(
            0x30,
            &[
                &pair(&[0x55, 0x04, 0x0a], 0x13, b"Acme, Inc"),
                &pair(&[0x2a, 0x03], 0x0c, b"x"),
                &pair(&[0x55, 0x04, 0x03], 0x0c, "bülling".as_bytes()),
            ],
        );
        let nothing = der(0x30, &[]);
        let body = der(
            0x30,
            &[&der(0xa0, &[]), &nothing, &nothing, &nothing, &nothing, &names],
        );
        let certificate = der(0x30, &[&body]);
        assert_eq!(
            subject(&certificate).as_deref(),
            Some("CN=bülling,1.2.3=x,O=Acme\\, Inc")
        );
        assert_eq!(subject(b"\x30\x85"), None);
    }
}
