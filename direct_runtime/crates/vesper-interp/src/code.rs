//! The bytecode as the machine code compiler reads it.

pub use crate::bytecode::sites::{CallSite, Entry, ErrorConversion, Guard, Position, RequestSite};
pub use crate::bytecode::{Code, Instruction, LoopSlot, Operand, OperandList, PathOfCode, Register};
pub use crate::run::loop_state::Range;
pub use crate::run::single_step::{StepResult, Tables, call_value, read_field, step};
