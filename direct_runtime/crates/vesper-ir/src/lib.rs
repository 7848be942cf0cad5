//! The bottom of the direct runtime: values, types, and the way from bytes to a verified node.
//!
//! `canonical` reads tokens, `decode` shapes them into a document, `verify` turns a document into a [`Node`] in which
//! every name is resolved and every expression has a type. The crates above see only that last form.

pub mod base64;
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
pub mod time;
pub mod types;
pub mod unicode;
pub mod value;
mod verify;

pub use decimal::Decimal;
pub use effect::EffectClass;
pub use flow::FailureCode;
// Everything: a new family must not need an edit here.
pub use generated::choices::*;
pub use generated::dispatch::*;
pub use generated::effects::*;
pub use generated::errors::*;
pub use generated::kernels::*;
pub use generated::ops::*;
pub use json::Json;
pub use node::Node;
pub use types::{EnumType, MapType, RecordType, Signature, Type};
pub use value::{Key, KeyKind, Map, Member, OwnedKey, Set, Value};

/// The version of the IR format that this build reads.
pub const IR_VERSION: i64 = 2;

/// The bytes are not a well-formed IR document; the message says what and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected(pub String);

impl std::fmt::Display for Rejected {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Rejected {}

/// Reads and verifies an IR document: the one way to get a [`Node`].
pub fn load(bytes: &[u8]) -> Result<Node, Rejected> {
    verify::verify(decode::decode(bytes)?)
}
