//! A loaded node, ready to be called from any thread: what the crates above hold on to.

use vesper_ir::{Node, Rejected, Value};

use crate::bytecode::Code;
use crate::compile::{CompileFault, compile};
use crate::run::{Mark, Outcome, run};

/// A node and its two forms of bytecode.
#[derive(Debug)]
pub struct Program {
    node: Node,
    plain: Code,
    traced: Code,
}

impl Program {
    /// Reads, verifies and compiles an IR document.
    pub fn load(ir: &[u8]) -> Result<Self, Rejected> {
        let node = vesper_ir::load(ir)?;
        let fault = |CompileFault(what)| Rejected(format!("a fault of the engine while compiling: {what}"));
        let plain = compile(&node, false).map_err(fault)?;
        let traced = compile(&node, true).map_err(fault)?;
        Ok(Self { node, plain, traced })
    }

    /// The node this is the program of.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// An empty frame, for the converted inputs in declared order. It has room for all registers of a run.
    pub fn new_frame(&self) -> Vec<Value> {
        Vec::with_capacity(self.plain.registers)
    }

    /// Runs on converted inputs.
    pub fn run(&self, inputs: Vec<Value>) -> Outcome {
        self.checked(inputs, |inputs| run(&self.plain, inputs, &mut Vec::new()))
    }

    /// Runs on converted inputs and records the marks.
    pub fn run_traced(&self, inputs: Vec<Value>) -> (Vec<Mark>, Outcome) {
        let mut marks = Vec::new();
        let outcome = self.checked(inputs, |inputs| run(&self.traced, inputs, &mut marks));
        (marks, outcome)
    }

    fn checked(&self, inputs: Vec<Value>, run: impl FnOnce(Vec<Value>) -> Outcome) -> Outcome {
        if inputs.len() != self.node.inputs.len() {
            return Outcome::Fault("the number of inputs is not the declared one");
        }
        run(inputs)
    }
}
