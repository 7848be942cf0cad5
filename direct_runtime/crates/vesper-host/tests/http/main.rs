//! The HTTP performer against real sockets on loopback.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod answers;
mod connections;
mod hostile;
mod requests;
mod server;
mod side;
