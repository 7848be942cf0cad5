//! The limits of docs/spec/ir.md, checked while reading, before anything is kept; and those of docs/spec/types.md on
//! the size of a value.

/// The longest document, in bytes.
pub const DOCUMENT_BYTES: usize = 8 * 1024 * 1024;
/// The most expressions in a document.
pub const EXPRESSIONS: usize = 65_536;
/// The most of anything else that is listed.
pub const LISTED: usize = 4_096;
/// The most clauses: there are three lists of them.
pub const CLAUSES: usize = 3 * LISTED;
/// How deep one expression may be; one without operands has depth 1.
pub const DEPTH: u16 = 512;
/// The most code points of a string.
pub const TEXT_LENGTH: usize = 10_000_000;
/// The most items of an array, a set or a map.
pub const ITEMS: usize = 1_000_000;
/// The longest name, in bytes.
pub const NAME_BYTES: usize = 128;
/// The longest string literal, in bytes.
pub const LITERAL_BYTES: usize = 64 * 1024;
/// How deep types may nest; one without parts has depth 1.
pub const TYPE_DEPTH: u8 = 32;
/// How deep the brackets of a value may nest: a map has two for its one level of type.
pub const VALUE_DEPTH: u8 = 2 * TYPE_DEPTH;
