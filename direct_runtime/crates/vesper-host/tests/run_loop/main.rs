//! The run loop against a scripted execution, scripted performers and a journal in memory.
#![allow(
    clippy::assigning_clones,
    clippy::field_reassign_with_default,
    clippy::indexing_slicing,
    clippy::option_option,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod attempts;
mod crashes;
mod ends;
mod grants;
mod journal;
mod limits;
mod recovery;
mod requests;
mod routed;
mod waiting;
mod world;
