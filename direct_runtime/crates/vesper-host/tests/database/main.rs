//! Database effects on real databases: an SQLite file through the library of the system, and a Postgres server.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod effects;
mod server;
mod world;
