//! The interpreter of the direct runtime: a verified node is compiled once to register bytecode, then run.
//!
//! `inputs` holds the conversion rules, `compile` turns a node into the `bytecode`, `run` executes it until it ends or
//! needs something from outside, and an `execution` is what waits for that. This is the tier that a compiler to machine
//! code will sit above, so nothing here looks up a name or allocates per instruction.

mod bytecode;
pub mod code;
mod compile;
mod execution;
mod fingerprint;
mod frame;
pub mod guard;
pub mod inputs;
pub mod json;
mod link;
mod listing;
mod loops;
mod marks;
mod meter;
pub mod native;
mod parts;
mod path;
pub mod problems;
mod program;
mod quick;
mod reads;
mod room;
mod rows;
mod run;
mod sites;
mod step;
pub mod tier;
pub mod words;

pub use bytecode::{Mention, Phase};
pub use execution::{Advanced, Argument, Completion, Execution, Misuse, Request};
pub use fingerprint::{FingerprintKey, fingerprint_of_problems};
pub use frame::Frame;
pub use marks::Mark;
pub use meter::{Limits, Meter, Watch};
pub use path::{LoopClass, Path, Point};
pub use program::{Pathed, PathedForm, Program};
pub use room::Room;
pub use rows::Rows;
pub use run::{Fault, Outcome};
pub use vesper_opt::{Rule, Rules};
