//! Limits of docs/spec/ir.md on documents and of docs/spec/types.md on values.
//!
//! Document limits are checked while reading, before any part of the document is stored.

/// Maximum length of a document, in bytes.
pub const DOCUMENT_BYTES: usize = 8 * 1024 * 1024;
/// Maximum length of the tables of a document, in bytes, beside its other parts.
pub const TABLE_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of rows of a table.
pub const ROWS: usize = 100_000;
/// Maximum number of columns of a table.
pub const COLUMNS: usize = 64;
/// Maximum number of expressions in a document.
pub const EXPRESSIONS: usize = 65_536;
/// Maximum number of items in any other list of a document.
pub const LISTED: usize = 4_096;
/// Maximum number of clauses: four lists of them, and the `require` statements.
pub const CLAUSES: usize = 4 * LISTED + STATEMENTS;
/// Maximum number of statements in all blocks together.
pub const STATEMENTS: usize = 1_000;
/// Maximum nesting depth of blocks; the body of the node has depth 1.
pub const BLOCK_DEPTH: u8 = 16;
/// Maximum number of iterations of a loop.
pub const ITERATIONS: i64 = 1_000_000;
/// Maximum number of members of a parallel statement, and of open rounds of a loop.
pub const STRANDS: i64 = 64;
/// Maximum depth of calls between nodes; a node without calls has depth 1.
pub const CALL_DEPTH: usize = 32;
/// Maximum `max_depth` of a recursive function.
pub const RECURSION_DEPTH: u32 = 1_000;
/// Maximum number of calls of recursive functions that can be active at once, each counted once more for every `for`
/// around the next call.
pub const RECURSION_FRAMES: u64 = 2_000;
/// Maximum depth of an expression; an expression without operands has depth 1.
pub const DEPTH: u16 = 512;
/// Default fuel of an execution (docs/spec/limits.md).
pub const FUEL: u64 = 10_000_000;
/// Default memory of an execution, in bytes.
pub const MEMORY: u64 = 256 * 1024 * 1024;
/// Size of the values of a call up to which it costs nothing.
pub const FREE_SIZE: u64 = 4_096;
/// Size of an item of a collection; a code point or a byte has size 1.
pub const SIZE_OF_ITEM: u64 = 4;
/// Work of an item of a collection.
pub const WORK_OF_ITEM: u64 = 64;
/// Work of an item in operations that compare, sort or build for each.
pub const WORK_OF_SLOW_ITEM: u64 = 512;
/// Work of a code point in operations of regex.
pub const WORK_OF_PATTERN: u64 = 8_192;
/// Work of a byte of the price of a json that is read or made.
pub const WORK_OF_JSON: u64 = 192;
/// Work that costs one unit of fuel.
pub const WORK_PER_UNIT: u64 = 4_096;
/// Maximum number of code points in a string.
pub const TEXT_LENGTH: usize = 10_000_000;
/// Maximum number of bytes in a value of type `bytes`.
pub const BYTES_LENGTH: usize = 10_000_000;
/// Maximum number of items in an array, a set or a map.
pub const ITEMS: usize = 1_000_000;
/// Maximum length of a name, in bytes.
pub const NAME_BYTES: usize = 128;
/// Maximum length of a string literal, in bytes.
pub const LITERAL_BYTES: usize = 64 * 1024;
/// Maximum nesting depth of types; a type without parts has depth 1.
pub const TYPE_DEPTH: u8 = 32;
/// Maximum nesting depth of brackets in a value. A map has two brackets for its one level of type.
pub const VALUE_DEPTH: u8 = 2 * TYPE_DEPTH;
