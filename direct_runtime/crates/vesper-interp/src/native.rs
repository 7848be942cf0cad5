//! What the tier above promises the interpreter: machine code for one form of a node.

use std::fmt::Debug;

use crate::frame::Frame;
use crate::meter::Meter;
use crate::run::Fault;

/// Machine code of one `Code`, made by a crate above this one.
///
/// It begins where `frame.next` says, does as much as it can, and leaves the frame and the meter exactly as the
/// interpreter would have them before the instruction at `frame.next`; the interpreter goes on from there. An instruction
/// that fails, breaks a contract, asks for something or runs out of fuel is left to the interpreter: machine code stops
/// before it. Where all is done, `frame.next` is behind the last instruction.
pub trait Native: Debug + Send + Sync {
    /// Runs as far as it can.
    fn enter(&self, frame: &mut Frame, meter: &mut Meter) -> Result<(), Fault>;

    /// How many bytes of machine code it holds.
    fn size(&self) -> usize;
}
