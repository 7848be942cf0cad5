//! Lines of the journal with their hashes, for entries whose body `text` can write.
//!
//! `vesper/journal/lines.py` defines the format and writes all other lines: bodies stored elsewhere because of their
//! size, sealed bodies, and texts with a lone surrogate. One call replaces about ten calls of Python; a step with an
//! effect writes two lines and a digest.

use std::fmt::Write as _;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use sha2::{Digest, Sha256};

use crate::journal::text::{Writer, push_quoted};

/// A line and its hash.
type Line<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);
/// A line, its hash, and the digest of its request.
type IntentLine<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, String);

/// Returns the line of an entry and its hash. Returns None if Python has to write it.
///
/// `start` is the common start of all lines, `before` the previous hash; `other` writes parts of the body of uncommon
/// kinds, and `most` is the maximum number of bytes of a body.
#[pyfunction]
#[pyo3(signature = (start, before, seq, kind, path, effect, effect_class, key, digest, at_us, body, other, most, /))]
#[allow(clippy::too_many_arguments, reason = "one argument for each field of a line")]
pub fn journal_line<'py>(
    start: &str,
    before: &[u8],
    seq: i64,
    kind: &Bound<'py, PyString>,
    path: &Bound<'py, PyString>,
    effect: &Bound<'py, PyString>,
    effect_class: &Bound<'py, PyString>,
    key: Option<&Bound<'py, PyString>>,
    digest: &Bound<'py, PyString>,
    at_us: i64,
    body: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
    most: usize,
) -> PyResult<Option<Line<'py>>> {
    let py = body.py();
    let mut writer = Writer::new(py, other, most)?;
    if !writer.value(body, 0)? || writer.text.len() > most {
        return Ok(None);
    }
    let Ok(key) = key.map(|key| key.to_str()).transpose() else {
        return Ok(None);
    };
    let head = Head {
        start,
        seq,
        at_us,
        kind: kind.to_str().ok(),
        path: path.to_str().ok(),
        effect: effect.to_str().ok(),
        effect_class: effect_class.to_str().ok(),
        key,
        digest: digest.to_str().ok(),
    };
    let Some(line) = head.line(&[&writer.text]) else {
        return Ok(None);
    };
    Ok(Some((PyBytes::new(py, line.as_bytes()), hash(py, before, &line))))
}

/// Returns the line of an INTENT, its hash and its digest. Returns None if Python has to write it.
#[pyfunction]
#[pyo3(signature = (start, before, seq, path, effect, effect_class, key, at_us, fixed, arguments, other, most, /))]
#[allow(clippy::too_many_arguments, reason = "one argument for each field of a line")]
pub fn journal_intent<'py>(
    start: &str,
    before: &[u8],
    seq: i64,
    path: &Bound<'py, PyString>,
    effect: &Bound<'py, PyString>,
    effect_class: &Bound<'py, PyString>,
    key: Option<&Bound<'py, PyString>>,
    at_us: i64,
    fixed: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
    most: usize,
) -> PyResult<Option<IntentLine<'py>>> {
    let py = fixed.py();
    let mut writer = Writer::new(py, other, most)?;
    if !writer.value(arguments, 0)? {
        return Ok(None);
    }
    let arguments = std::mem::take(&mut writer.text);
    // A digest writes the numbers of a json in another form.
    if !writer.value(fixed, 0)? || writer.has_json {
        return Ok(None);
    }
    let fixed = writer.text;
    let parts = ["{\"arguments\":", &arguments, ",\"fixed\":", &fixed, "}"];
    if parts.iter().map(|part| part.len()).sum::<usize>() > most {
        return Ok(None);
    }
    let (Ok(effect), Ok(effect_class), Ok(key)) = (
        effect.to_str(),
        effect_class.to_str(),
        key.map(|key| key.to_str()).transpose(),
    ) else {
        return Ok(None);
    };
    let digest = digest_of(effect, effect_class, &fixed, &arguments, key);
    let head = Head {
        start,
        seq,
        at_us,
        kind: Some("INTENT"),
        path: path.to_str().ok(),
        effect: Some(effect),
        effect_class: Some(effect_class),
        key,
        digest: Some(&digest),
    };
    let Some(line) = head.line(&parts) else {
        return Ok(None);
    };
    Ok(Some((
        PyBytes::new(py, line.as_bytes()),
        hash(py, before, &line),
        digest,
    )))
}

/// All fields of a line except its body. A text without UTF-8 form is None, which prevents the line.
struct Head<'a> {
    start: &'a str,
    seq: i64,
    at_us: i64,
    kind: Option<&'a str>,
    path: Option<&'a str>,
    effect: Option<&'a str>,
    effect_class: Option<&'a str>,
    /// None if the effect has no key.
    key: Option<&'a str>,
    digest: Option<&'a str>,
}

impl Head<'_> {
    fn line(&self, body: &[&str]) -> Option<String> {
        let size: usize = body.iter().map(|part| part.len()).sum();
        let mut line = String::with_capacity(size + 256);
        line.push_str(self.start);
        // Writing to a string cannot fail.
        let _ = write!(line, "{},", self.seq);
        for text in [self.kind?, self.path?, self.effect?, self.effect_class?] {
            push_quoted(&mut line, text);
            line.push(',');
        }
        push_key(&mut line, self.key);
        line.push(',');
        push_quoted(&mut line, self.digest?);
        let _ = write!(line, ",{},\"plain\",", self.at_us);
        for part in body {
            line.push_str(part);
        }
        line.push(']');
        Some(line)
    }
}

fn push_key(line: &mut String, key: Option<&str>) {
    match key {
        Some(key) => push_quoted(line, key),
        None => line.push_str("null"),
    }
}

/// Computes `vesper.journal.typed_json.digest_of` from the written texts.
fn digest_of(effect: &str, effect_class: &str, fixed: &str, arguments: &str, key: Option<&str>) -> String {
    let mut text = String::with_capacity(fixed.len() + arguments.len() + 128);
    text.push('[');
    push_quoted(&mut text, effect);
    text.push(',');
    push_quoted(&mut text, effect_class);
    for part in [fixed, arguments] {
        text.push(',');
        text.push_str(part);
    }
    text.push(',');
    push_key(&mut text, key);
    text.push(']');
    let mut digest = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        for half in [byte >> 4, byte & 15] {
            digest.push(char::from(if half < 10 { b'0' + half } else { b'a' + half - 10 }));
        }
    }
    digest
}

fn hash<'py>(py: Python<'py>, before: &[u8], line: &str) -> Bound<'py, PyBytes> {
    let hash = Sha256::new()
        .chain_update(before)
        .chain_update(line.as_bytes())
        .finalize();
    PyBytes::new(py, hash.as_slice())
}
