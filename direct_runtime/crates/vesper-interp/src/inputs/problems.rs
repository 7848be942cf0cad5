//! Problems with inputs and their paths. A path is rendered only when there is a problem.

use vesper_ir::{OwnedKey, Type, base64, time};

use crate::inputs::ProblemKind;

/// The position of a value in the inputs; each step refers to its parent.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// All inputs.
    Whole,
    Input(&'a str),
    /// An undeclared input name, as UTF-8 with lone surrogates.
    UnknownInput(&'a [u8]),
    Field(&'a Path<'a>, &'a str),
    UnknownField(&'a Path<'a>, &'a [u8]),
    Item(&'a Path<'a>, usize),
    /// The value of a map for a key of this type.
    Entry(&'a Path<'a>, &'a OwnedKey, &'a Type),
    /// The value of a map for an enum member with this text.
    MemberEntry(&'a Path<'a>, &'a str),
    /// A key that does not convert and therefore has no text.
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
            Self::MemberEntry(parent, text) => {
                parent.write(out);
                out.push(b'[');
                quote(text, out);
                out.push(b']');
            }
            Self::BadKey(parent) => {
                parent.write(out);
                out.extend_from_slice(b"[?]");
            }
        }
    }
}

/// Writes a string as canonical JSON.
fn quote(text: &str, out: &mut Vec<u8>) {
    let mut quoted = String::new();
    vesper_ir::json::quote(text, &mut quoted);
    out.extend_from_slice(quoted.as_bytes());
}

/// One problem, with its path as UTF-8 that may contain lone surrogates.
#[derive(Clone, Debug)]
pub struct Problem {
    pub path: Vec<u8>,
    pub kind: ProblemKind,
}

/// All problems, in order of discovery.
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

    /// Iterates in order of discovery.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }
}
