//! Verifies callers: keys, JSON Web Tokens, subjects of client certificates.

mod certificate;
mod credentials;
mod fields;

pub use certificate::subject;
pub use credentials::{Actor, Auth, Rejection};
pub use fields::{Fields, TableError};
