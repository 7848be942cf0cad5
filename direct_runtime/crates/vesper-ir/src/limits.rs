//! The limits of docs/spec/ir.md, checked while reading, before anything is kept; and those of docs/spec/types.md on
//! the size of a value.

/// The longest document, in bytes.
pub const DOCUMENT_BYTES: usize = 8 * 1024 * 1024;
/// The most expressions in a document.
pub const EXPRESSIONS: usize = 65_536;
/// The most of anything else that is listed.
pub const LISTED: usize = 4_096;
/// The most clauses: there are four lists of them, and `require` statements.
pub const CLAUSES: usize = 4 * LISTED + STATEMENTS;
/// The most statements, in all blocks together.
pub const STATEMENTS: usize = 1_000;
/// How deep blocks may nest; the body of the node has depth 1.
pub const BLOCK_DEPTH: u8 = 16;
/// The most iterations of a loop.
pub const ITERATIONS: i64 = 1_000_000;
/// How deep nodes may call each other; one that calls none has depth 1.
pub const CALL_DEPTH: usize = 32;
/// How deep one expression may be; one without operands has depth 1.
pub const DEPTH: u16 = 512;
/// The fuel of an execution for which nobody says how much (docs/spec/limits.md).
pub const FUEL: u64 = 10_000_000;
/// The most code points of a string.
pub const TEXT_LENGTH: usize = 10_000_000;
/// The most bytes of a value of type `bytes`.
pub const BYTES_LENGTH: usize = 10_000_000;
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
