//! The interpreter of the direct runtime: a verified node is compiled once to register bytecode, then run.
//!
//! `inputs` holds the conversion rules, `compile` turns a node into the `bytecode`, `run` executes it until it ends or
//! needs something from outside, and an `execution` is what waits for that. This is the tier that a compiler to machine
//! code will sit above, so nothing here looks up a name or allocates per instruction.

mod bytecode;
pub mod code;
mod compile;
pub mod guard;
pub mod inputs;
pub mod json;
mod observe;
mod program;
mod run;
pub mod tier;

pub use bytecode::{Mention, Phase};
pub use inputs::problems;
pub use observe::fingerprint::{FingerprintKey, fingerprint_of_problems};
pub use observe::marks::Mark;
pub use observe::path::{LoopClass, Path, Point};
pub use program::{Pathed, PathedForm, Program};
pub use run::execution::{Advanced, Argument, Completion, Execution, Misuse, Request};
pub use run::frame::Frame;
pub use run::meter::{Limits, Meter, Watch};
pub use run::reused_frame::Room;
pub use run::rows::Rows;
pub use run::{Fault, Outcome};
pub use tier::{native, words};
pub use vesper_opt::{Rule, Rules};
