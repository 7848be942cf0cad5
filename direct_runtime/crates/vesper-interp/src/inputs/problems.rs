//! What is wrong with the inputs, and where. A path is written out only when there is a problem to report.

use vesper_ir::{OwnedKey, Type, base64, time};

use crate::inputs::ProblemKind;

/// Where a value stands in the inputs; each step refers to the one before.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// All the inputs.
    Whole,
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
            Self::Whole => {}
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
    let mut quoted = String::new();
    vesper_ir::json::quote(text, &mut quoted);
    out.extend_from_slice(quoted.as_bytes());
}

/// One problem, with its path as UTF-8 that may have lone surrogates in it.
#[derive(Clone, Debug)]
pub struct Problem {
    pub path: Vec<u8>,
    pub kind: ProblemKind,
}

/// Every problem so far, in order.
#[derive(Clone, Debug, Default)]
pub struct Problems(Vec<Problem>);

impl Problems {
    #[cold]
    pub fn add(&mut self, path: &Path<'_>, kind: ProblemKind) {
        let mut text = Vec::new();
        path.write(&mut text);
        self.0.push(Problem { path: text, kind });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }
}
