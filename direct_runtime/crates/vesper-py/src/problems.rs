//! What is wrong with the inputs, and where. A path is written out only when there is a problem to report.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use vesper_interp::inputs::ProblemKind;
use vesper_ir::{OwnedKey, Type, base64, time};

/// Where a value stands in the inputs; each step refers to the one before.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Input(&'a str),
    /// A name that no input has, as UTF-8 with lone surrogates in it.
    UnknownInput(&'a [u8]),
    Field(&'a Path<'a>, &'a str),
    UnknownField(&'a Path<'a>, &'a [u8]),
    Item(&'a Path<'a>, usize),
    /// The value of a map for a key of this type.
    Entry(&'a Path<'a>, &'a OwnedKey, &'a Type),
    /// A key that does not fit, which has no form.
    BadKey(&'a Path<'a>),
}

impl Path<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Input(name) => out.extend_from_slice(name.as_bytes()),
            Self::UnknownInput(name) => out.extend_from_slice(name),
            Self::Field(parent, name) => {
                parent.write(out);
                out.push(b'.');
                out.extend_from_slice(name.as_bytes());
            }
            Self::UnknownField(parent, name) => {
                parent.write(out);
                out.push(b'.');
                out.extend_from_slice(name);
            }
            Self::Item(parent, place) => {
                parent.write(out);
                out.extend_from_slice(format!("[{place}]").as_bytes());
            }
            Self::Entry(parent, key, ty) => {
                parent.write(out);
                out.push(b'[');
                match (key, ty) {
                    (OwnedKey::Boolean(key), _) => out.extend_from_slice(key.to_string().as_bytes()),
                    (OwnedKey::Integer(key), _) => out.extend_from_slice(key.to_string().as_bytes()),
                    (OwnedKey::Text(key), _) => quote(key, out),
                    (OwnedKey::Bytes(key), _) => out.extend_from_slice(base64::text(key).as_bytes()),
                    (OwnedKey::Timestamp(key), _) => {
                        out.extend_from_slice(time::timestamp_text(*key).as_bytes());
                    }
                    (OwnedKey::Date(key), _) => out.extend_from_slice(time::date_text(*key).as_bytes()),
                    (OwnedKey::Member(key), Type::Enum(of)) => {
                        quote(of.name(*key).map_or("", |name| name), out);
                    }
                    (OwnedKey::Member(_), _) => {}
                }
                out.push(b']');
            }
            Self::BadKey(parent) => {
                parent.write(out);
                out.extend_from_slice(b"[?]");
            }
        }
    }
}

/// A string as canonical JSON writes it.
fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            0..0x20 => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}

/// One problem, with its path as UTF-8 that may have lone surrogates in it.
pub(crate) struct Problem {
    path: Vec<u8>,
    kind: ProblemKind,
}

/// Every problem so far, in order.
#[derive(Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    #[cold]
    pub(crate) fn add(&mut self, path: &Path<'_>, kind: ProblemKind) {
        let mut text = Vec::new();
        path.write(&mut text);
        self.0.push(Problem { path: text, kind });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Pairs of path and kind.
    pub(crate) fn to_python<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(Bound<'py, PyString>, &'static str)>> {
        let pairs = self.0.iter().map(|problem| {
            let path = match std::str::from_utf8(&problem.path) {
                Ok(text) => PyString::new(py, text),
                Err(_) => PyBytes::new(py, &problem.path)
                    .call_method1("decode", ("utf-8", "surrogatepass"))?
                    .cast_into()?,
            };
            Ok((path, problem.kind.name()))
        });
        pairs.collect()
    }
}
