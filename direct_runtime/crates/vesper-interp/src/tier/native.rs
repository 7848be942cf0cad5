//! What the tier above promises the interpreter: machine code for one form of a node.

use std::fmt::Debug;

use vesper_ir::Value;

use crate::bytecode::Code;
use crate::observe::marks::Marks;
use crate::observe::path::Path;
use crate::program::Program;
use crate::run::frame::Frame;
use crate::run::meter::{Limits, Meter};
use crate::run::{Fault, Outcome, Stop, execute};
use crate::tier::words::Express;

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

    /// The whole node without a frame, where it can be run so.
    fn express(&self) -> Option<&dyn Express> {
        None
    }

    /// How many guards it has: places where it may stop that somebody may ask it to stop at.
    fn guards(&self) -> u32 {
        0
    }
}

/// How a run with machine code in it ended, and what can be told of it besides.
#[derive(Debug)]
pub struct TierRun {
    pub outcome: Outcome,
    /// What was not spent.
    pub fuel: u64,
    /// Where the interpreter took over; behind the last instruction where there was nothing left to do.
    pub left_at: usize,
    pub path: Option<Path>,
}

/// Runs one form of a node that neither asks nor calls, machine code first where there is some: for those who compare
/// the two.
pub fn run_on(
    program: &Program,
    code: &Code,
    native: Option<&dyn Native>,
    mut inputs: Vec<Value>,
    now: Option<&Value>,
    limits: Limits,
) -> TierRun {
    if program.node().uses_now {
        inputs.push(now.cloned().unwrap_or(Value::Null));
    }
    let mut frame = Frame::pathed(code, inputs);
    let mut meter = Meter::new(limits);
    meter.start_clock();
    let mut left_at = 0;
    let entered = native.map_or(Ok(()), |native| native.enter(&mut frame, &mut meter));
    let stopped = entered.and_then(|()| {
        left_at = frame.next;
        execute(code, &mut frame, &mut Marks::default(), &mut meter)
    });
    let outcome = match stopped {
        Ok(Stop::Ended(outcome)) => outcome,
        Ok(_) => Outcome::Fault("a node without requests and calls has stopped"),
        Err(fault) => Outcome::Fault(fault),
    };
    TierRun {
        outcome,
        fuel: meter.left(),
        left_at,
        path: code.path.as_ref().map(|path| frame.path(path)),
    }
}
