//! Lines that were read: their fields, and their bodies where these stand in a blob or are sealed.
//!
//! Bodies stay text. Values inside are checked by the reader that decodes them with their types.

use std::collections::HashMap;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::value::RawValue;

use crate::journal::cells::truncate;
use crate::journal::limits::MAX_TEXT;
use crate::journal::lines::{FORMAT, name_of};
use crate::journal::sealing::RunKey;
use crate::journal::{ErrorKind, JournalError, Kind};

const FIELDS: usize = 12;
const MAX_REPORT: usize = 200;

/// A line; the body may be sealed or stand elsewhere.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub kind: Kind,
    pub path: String,
    pub effect: String,
    pub class: String,
    pub key: Option<String>,
    pub digest: String,
    pub at_us: i64,
    pub seq: u64,
    pub branch: String,
    pub body: Body<'a>,
}

#[derive(Debug)]
pub(crate) enum Body<'a> {
    Plain(&'a str),
    Sealed(Vec<u8>),
    Blob(BlobName),
}

/// Name of a blob in a line; `size` is that of the content.
#[derive(Debug)]
pub(crate) struct BlobName {
    pub name: String,
    pub size: u64,
    pub is_sealed: bool,
}

/// A row of `vesper_blobs`.
#[derive(Debug)]
pub(crate) struct BlobRow<'a> {
    pub is_compressed: bool,
    pub data: &'a [u8],
}

fn error(message: impl Into<String>) -> JournalError {
    JournalError::new(ErrorKind::Journal, message)
}

fn unreadable(report: impl std::fmt::Display) -> JournalError {
    let report = truncate(&report.to_string(), MAX_REPORT);
    error(format!("a value in the journal cannot be read: {report}"))
}

/// Returns the items of a JSON list; None for another value.
fn items(text: &str) -> Result<Option<Vec<&RawValue>>, JournalError> {
    match serde_json::from_str(text) {
        Ok(items) => Ok(Some(items)),
        Err(report) if report.is_data() => Ok(None),
        Err(report) => Err(unreadable(report)),
    }
}

/// Returns the members of a JSON object; None for another value.
pub(crate) fn members(text: &str) -> Option<HashMap<String, &RawValue>> {
    serde_json::from_str(text).ok()
}

/// Returns a JSON string; None for another value.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn utf8(bytes: &[u8]) -> Result<&str, JournalError> {
    std::str::from_utf8(bytes).map_err(unreadable)
}

/// Reads a stored line. Refuses bytes that are none, and one of a later format.
pub(crate) fn read(line: &[u8]) -> Result<Line<'_>, JournalError> {
    let malformed = || error("an entry in the journal is malformed");
    let fields = items(utf8(line)?)?.ok_or_else(malformed)?;
    let format: Option<i64> = fields
        .first()
        .and_then(|raw| serde_json::from_str(raw.get()).ok());
    let format = format.ok_or_else(malformed)?;
    if u64::try_from(format) != Ok(FORMAT) {
        return Err(error(format!(
            "an entry in the journal has the format {format}, and this Vesper reads {FORMAT}: a newer one wrote it"
        )));
    }
    if fields.len() != FIELDS {
        return Err(malformed());
    }
    let raw = |index: usize| fields.get(index).copied().ok_or_else(malformed);
    let text = |index: usize| string(raw(index)?).ok_or_else(malformed);
    let key = raw(7)?;
    Ok(Line {
        branch: text(1)?,
        seq: serde_json::from_str(raw(2)?.get()).map_err(|_| malformed())?,
        kind: Kind::from_name(&text(3)?).ok_or_else(malformed)?,
        path: text(4)?,
        effect: text(5)?,
        class: text(6)?,
        key: if key.get() == "null" { None } else { Some(text(7)?) },
        digest: text(8)?,
        at_us: serde_json::from_str(raw(9)?.get()).map_err(|_| malformed())?,
        body: read_body(&text(10)?, raw(11)?.get())?,
    })
}

fn read_body<'a>(form: &str, body: &'a str) -> Result<Body<'a>, JournalError> {
    let malformed = || error("the body of an entry in the journal is malformed");
    match form {
        "plain" if body.starts_with('{') => Ok(Body::Plain(body)),
        "sealed" => {
            let text: String = serde_json::from_str(body).map_err(|_| malformed())?;
            let sealed = STANDARD.decode(text);
            let sealed = sealed.map_err(|_| error("a sealed body in the journal is not in base64"))?;
            Ok(Body::Sealed(sealed))
        }
        "blob" => {
            let (name, size, is_sealed) = serde_json::from_str(body).map_err(|_| malformed())?;
            Ok(Body::Blob(BlobName {
                name,
                size,
                is_sealed,
            }))
        }
        _ => Err(malformed()),
    }
}

/// Returns the content of a blob, checked against its name.
pub(crate) fn blob_content(
    name: &BlobName,
    row: Option<&BlobRow<'_>>,
    key: Option<&RunKey>,
    seq: u64,
) -> Result<Vec<u8>, JournalError> {
    let blob = &name.name;
    let changed = || {
        error(format!(
            "the body of entry {seq} was changed: blob {blob} is not what its name says"
        ))
    };
    if !i64::try_from(name.size).is_ok_and(|size| size <= MAX_TEXT) {
        return Err(changed()); // no journal writes such a body: it is not unpacked
    }
    let row = row.ok_or_else(|| {
        error(format!(
            "the body of entry {seq} is missing: the journal has no blob {blob}"
        ))
    })?;
    let mut content = match key {
        Some(key) if name.is_sealed && name_of(row.data) == *blob => key.open(row.data, seq)?,
        _ if name.is_sealed => return Err(changed()),
        _ => row.data.to_vec(),
    };
    if row.is_compressed {
        let mut plain = Vec::new();
        // One byte more than expected shows that there is too much, without unpacking all of it.
        let mut unpacked = ZlibDecoder::new(content.as_slice()).take(name.size.saturating_add(1));
        unpacked.read_to_end(&mut plain).map_err(|_| {
            error(format!(
                "the body of entry {seq} is damaged: blob {blob} cannot be decompressed"
            ))
        })?;
        content = plain;
    }
    if u64::try_from(content.len()) != Ok(name.size) || !name.is_sealed && name_of(&content) != *blob {
        return Err(changed());
    }
    Ok(content)
}

/// Returns the text of a body that stood in a blob.
pub(crate) fn plain_body(content: Vec<u8>) -> Result<String, JournalError> {
    let text = String::from_utf8(content).map_err(unreadable)?;
    let _: &RawValue = serde_json::from_str(&text).map_err(unreadable)?;
    if !text.starts_with('{') {
        return Err(error("a body in the journal is no mapping"));
    }
    Ok(text)
}

/// Returns the key and the body that were sealed together.
pub(crate) fn sealed_body(content: &[u8]) -> Result<(Option<String>, String), JournalError> {
    let malformed = || error("a sealed body in the journal is malformed");
    match items(utf8(content)?)?.ok_or_else(malformed)?.as_slice() {
        [key, body] if body.get().starts_with('{') => {
            let key = match key.get() {
                "null" => None,
                _ => Some(string(key).ok_or_else(malformed)?),
            };
            Ok((key, body.get().to_owned()))
        }
        _ => Err(malformed()),
    }
}
