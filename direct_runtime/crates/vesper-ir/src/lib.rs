//! Base crate of the direct engine: values, types, and the loader of verified nodes.
//!
//! `canonical` reads tokens, `decode` builds a document from them, and `verify` turns the document into a [`Node`] in
//! which every name is resolved and every expression has a type. The other crates use only the verified form.

pub mod base64;
pub mod budget;
pub mod canonical;
pub mod decimal;
pub mod decode;
pub mod effect;
mod fit;
pub mod float;
pub mod flow;
mod generated;
pub mod intern;
pub mod json;
pub mod limits;
pub mod node;
pub mod pattern;
pub mod prices;
pub mod table;
pub mod time;
pub mod types;
pub mod unicode;
pub mod value;
mod verify;

pub use decimal::Decimal;
pub use effect::EffectClass;
pub use flow::FailureCode;
// Glob exports: a new family of operations needs no edit here.
pub use generated::choices::*;
pub use generated::dispatch::*;
pub use generated::effects::*;
pub use generated::errors::*;
pub use generated::kernels::*;
pub use generated::ops::*;
pub use json::Json;
pub use node::Node;
pub use table::Table;
pub use types::{EnumType, MapType, RecordType, Signature, Type};
pub use value::{Key, KeyKind, Map, Member, OwnedKey, Set, Value};

/// Version of the IR format that this build reads.
pub const IR_VERSION: i64 = 2;

/// Error for bytes that are not a well-formed IR document. The message contains the defect and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected(pub String);

impl std::fmt::Display for Rejected {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Rejected {}

/// Reads and verifies an IR document. This is the only constructor of a [`Node`].
pub fn load(bytes: &[u8]) -> Result<Node, Rejected> {
    verify::verify(decode::decode(bytes)?)
}
