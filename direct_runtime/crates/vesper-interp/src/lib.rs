//! The interpreter of the direct runtime: a verified node is compiled once to register bytecode, then run.
//!
//! `inputs` holds the conversion rules, `compile` turns a node into the `bytecode`, `run` executes it. This is the tier
//! that a compiler to machine code will sit above, so nothing here looks up a name or allocates per instruction.

mod bytecode;
mod compile;
pub mod inputs;
mod loops;
mod program;
mod run;

pub use bytecode::{Mention, Phase};
pub use program::Program;
pub use run::{Mark, Outcome};
