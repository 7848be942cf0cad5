//! The interface of machine code for one form of a node.

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

/// Machine code of one `Code`, compiled by a crate above this one.
///
/// INVARIANT: it starts at `frame.next`, executes as much as it can, and leaves frame and meter exactly as the
/// interpreter would before the new `frame.next`. It stops before an instruction that fails, breaks a contract, makes
/// a request or exhausts fuel; the interpreter executes that one. After a complete run `frame.next` is one past the
/// last instruction.
pub trait Native: Debug + Send + Sync {
    /// Runs as far as machine code can.
    fn enter(&self, frame: &mut Frame, meter: &mut Meter) -> Result<(), Fault>;

    /// Returns the bytes of machine code.
    fn size(&self) -> usize;

    /// Returns the frameless function of the whole node, if it has one.
    fn express(&self) -> Option<&dyn Express> {
        None
    }

    /// Returns the number of guards: the places at which a test can force a stop.
    fn guards(&self) -> u32 {
        0
    }
}

/// The outcome and final state of a run that may include machine code.
#[derive(Debug)]
pub struct TierRun {
    pub outcome: Outcome,
    /// The unspent fuel.
    pub fuel: u64,
    /// Where the interpreter took over; one past the last instruction after a complete run.
    pub left_at: usize,
    pub path: Option<Path>,
}

/// Runs one form of a node without requests and calls, with machine code if given. Comparisons of the tiers use it.
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
