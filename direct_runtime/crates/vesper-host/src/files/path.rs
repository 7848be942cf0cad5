//! Paths of files below a root.

use crate::effect::Failure;
use crate::messages::{grouped, shown};

/// Code of a path that may not be used; the effects declare none of its own for it.
pub(super) const REFUSED: &str = "invalid_argument";
/// Start of the names of half-written files; no path of a node may have such a part.
pub(super) const OURS: &str = ".vesper-";
const MAX_PATH_BYTES: usize = 4096;
const MAX_PART_BYTES: usize = 255;
const MAX_PARTS: usize = 64;

/// Splits a path into the names that lead to a file; the failure gives the reason why it is none.
pub(super) fn parts(path: &str) -> Result<Vec<&str>, Failure> {
    let parts: Vec<&str> = path.split('/').take(MAX_PARTS + 1).collect();
    match problem(path, &parts) {
        None => Ok(parts),
        Some(problem) => Err(Failure::new(
            REFUSED,
            format!("the path {} {problem}", shown(path)),
        )),
    }
}

fn problem(path: &str, parts: &[&str]) -> Option<String> {
    Some(if path.is_empty() {
        String::from("is empty")
    } else if path.len() > MAX_PATH_BYTES || parts.len() > MAX_PARTS {
        let bytes = grouped(MAX_PATH_BYTES as u64);
        format!("is longer than {bytes} bytes or has more than {MAX_PARTS} parts")
    } else if path.chars().any(|each| each < ' ' || each == '\u{7f}') {
        String::from("has a control character")
    } else if path.contains('\\') {
        String::from("has a backslash; parts are separated by `/`")
    } else if path.starts_with('/') {
        String::from("is absolute; paths begin at the root of their files")
    } else if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        String::from("has an empty part, `.` or `..`")
    } else if parts.iter().any(|part| part.len() > MAX_PART_BYTES) {
        format!("has a part of more than {MAX_PART_BYTES} bytes")
    } else if parts.iter().any(|part| part.starts_with(OURS)) {
        format!("has a part that begins with `{OURS}`: these are files that are being written")
    } else {
        return None;
    })
}
