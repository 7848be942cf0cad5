//! The bytecode, as the crate above this one sees it that compiles it to machine code.

pub use crate::bytecode::{Code, Instruction, LoopSlot, Operand, OperandList, PathOfCode, Register};
pub use crate::loops::Range;
pub use crate::sites::{Becomes, CallSite, Entry, Guard, Position, RequestSite};
pub use crate::step::{Stepped, Tables, field, step};
