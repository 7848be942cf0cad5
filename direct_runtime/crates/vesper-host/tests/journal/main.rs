//! The journal over a file: its lines, commits, moves between owners and due work.
#![allow(clippy::indexing_slicing, reason = "a test fails by panicking")]

mod due;
mod moving;
mod parts;
mod support;
mod writing;
