//! The line of an entry: canonical bytes, and the hash that chains it to the line before.
//!
//! A line is a JSON array (docs/spec/journal.md). Its last two elements are the form of the body and the body: `plain`
//! is typed JSON, `sealed` is encrypted, `blob` stands in the table of blobs. The chain covers the stored bytes: it
//! holds without any key, and after the key was deleted.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use ring::digest::{self, SHA256};
use vesper_ir::base64;
use vesper_ir::json::quote;

use crate::journal::limits::Limits;
use crate::journal::sealing::RunKey;
use crate::journal::{Entry, ErrorKind, JournalError};
use crate::messages::grouped;

/// The version that new entries are written in.
pub const FORMAT: u64 = 1;
/// The only branch so far: what was executed.
pub const BRANCH: &str = "main";
pub const HASH_BYTES: usize = 32;

/// Hash of a line.
pub type Hash = [u8; HASH_BYTES];

/// A body that stands beside its line. `name` is the SHA-256 of the content, or of the sealed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    pub name: String,
    /// Bytes of the content.
    pub size: usize,
    pub is_compressed: bool,
    pub data: Vec<u8>,
}

/// Returns the hash that the chain of an execution starts from: no line can be moved to another execution.
pub fn first_hash(execution: &str) -> Hash {
    next_hash(b"vesper journal 1\n", execution.as_bytes())
}

/// Returns the hash of a line that follows the hash `before`.
pub fn next_hash(before: &[u8], line: &[u8]) -> Hash {
    let mut context = digest::Context::new(&SHA256);
    context.update(before);
    context.update(line);
    hash_of(&context.finish())
}

/// Returns the SHA-256 of the data in hexadecimal.
pub fn name_of(data: &[u8]) -> String {
    hexadecimal(digest::digest(&SHA256, data).as_ref())
}

pub(crate) fn hash_of(digest: &digest::Digest) -> Hash {
    let mut hash = Hash::default();
    for (to, from) in hash.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    hash
}

/// Returns bytes as lower-case hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from(if half < 10 { b'0' + half } else { b'a' + half - 10 }));
        }
    }
    text
}

/// Returns the line of an entry, and its body where that is too large to stand in it.
pub fn write_line(
    entry: &Entry<'_>,
    seq: u64,
    key: Option<&RunKey>,
    limits: &Limits,
) -> Result<(String, Option<Blob>), JournalError> {
    if let Some(key) = key {
        return write_sealed(entry, seq, key, limits);
    }
    let size = entry.body.len();
    if size <= limits.max_inline {
        return Ok((line_of(entry, seq, entry.key, "plain", entry.body), None));
    }
    check_size(entry, size, limits)?;
    let content = entry.body.as_bytes();
    let (is_compressed, data) = compress(content);
    let name = name_of(content);
    let reference = format!("[\"{name}\",{size},false]");
    let blob = Blob {
        name,
        size,
        is_compressed,
        data,
    };
    Ok((line_of(entry, seq, entry.key, "blob", &reference), Some(blob)))
}

/// Seals the key together with the body: what names a request may be as sensitive as its arguments.
fn write_sealed(
    entry: &Entry<'_>,
    seq: u64,
    key: &RunKey,
    limits: &Limits,
) -> Result<(String, Option<Blob>), JournalError> {
    let mut content = String::with_capacity(entry.body.len() + 64);
    content.push('[');
    push_key(&mut content, entry.key);
    content.push(',');
    content.push_str(entry.body);
    content.push(']');
    let size = content.len();
    check_size(entry, size, limits)?;
    if size <= limits.max_inline {
        let body = format!("\"{}\"", base64::text(&key.seal(content.as_bytes(), seq)?));
        return Ok((line_of(entry, seq, None, "sealed", &body), None));
    }
    let (is_compressed, data) = compress(content.as_bytes());
    let data = key.seal(&data, seq)?;
    let name = name_of(&data);
    let reference = format!("[\"{name}\",{size},true]");
    let blob = Blob {
        name,
        size,
        is_compressed,
        data,
    };
    Ok((line_of(entry, seq, None, "blob", &reference), Some(blob)))
}

fn line_of(entry: &Entry<'_>, seq: u64, key: Option<&str>, form: &str, body: &str) -> String {
    let mut line = String::with_capacity(body.len() + entry.path.len() + 224);
    // Writing to a string cannot fail.
    let _ = write!(line, "[{FORMAT},\"{BRANCH}\",{seq},\"{}\",", entry.kind.name());
    for text in [entry.path, entry.effect, entry.class] {
        quote(text, &mut line);
        line.push(',');
    }
    push_key(&mut line, key);
    line.push(',');
    quote(entry.digest, &mut line);
    let _ = write!(line, ",{},\"{form}\",{body}]", entry.at_us);
    line
}

fn check_size(entry: &Entry<'_>, size: usize, limits: &Limits) -> Result<(), JournalError> {
    if size <= limits.max_body {
        return Ok(());
    }
    let place = match entry.path {
        "" => "of the execution".to_owned(),
        path => format!("of step `{path}`"),
    };
    Err(JournalError::new(
        ErrorKind::TooLarge,
        format!(
            "the {} {place} has {} bytes, and the journal takes {} at most: let the step give less, or raise \
             `max_body` of the journal",
            entry.kind.name(),
            grouped(size as u64),
            grouped(limits.max_body as u64)
        ),
    ))
}

/// Returns the content compressed where that is shorter, and whether it is.
fn compress(content: &[u8]) -> (bool, Vec<u8>) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(1));
    // Writing to a vector cannot fail; were it to, the content is stored as it is.
    match encoder.write_all(content).and_then(|()| encoder.finish()) {
        Ok(smaller) if smaller.len() < content.len() => (true, smaller),
        _ => (false, content.to_vec()),
    }
}

fn push_key(to: &mut String, key: Option<&str>) {
    match key {
        Some(key) => quote(key, to),
        None => to.push_str("null"),
    }
}
