//! The interpreter tier of the direct engine: compiles a verified node to register bytecode and executes it.
//!
//! `inputs` converts inputs and tracks which of them are read. `compile` translates a node to `bytecode`. `run`
//! executes it until the end or the next request. `observe` holds marks, paths and fingerprints. `tier` hands hot
//! code to a compiler of machine code. `json` runs a node on JSON text. No instruction looks up a name or allocates
//! by itself.

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
pub use compile::link::ProvenChecks;
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
