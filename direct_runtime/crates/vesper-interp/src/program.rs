//! A loaded node, ready to be called from any thread: what the crates above hold on to.

use std::sync::Arc;

use vesper_ir::{Node, Rejected, Value};

use crate::bytecode::Code;
use crate::compile::{CompileFault, compile};
use crate::execution::{Advanced, Execution, Misuse};
use crate::frame::Frame;
use crate::link::{Unit, link};
use crate::meter::{Limits, Meter};
use crate::run::{Mark, Outcome, Stop, execute};

/// A node and its two forms of bytecode, with the nodes that it calls.
#[derive(Debug)]
pub struct Program {
    unit: Arc<Unit>,
    traced: Arc<Code>,
}

const WRONG_INPUTS: &str = "the number of inputs is not the declared one";

impl Program {
    /// Reads, verifies and compiles an IR document.
    pub fn load(ir: &[u8]) -> Result<Self, Rejected> {
        Self::load_with(ir, &[])
    }

    /// Reads, verifies and compiles an IR document; `others` holds those of the nodes that it calls.
    pub fn load_with(ir: &[u8], others: &[&[u8]]) -> Result<Self, Rejected> {
        let unit = link(ir, others)?;
        let fault = |CompileFault(what)| Rejected(format!("a fault of the engine while compiling: {what}"));
        let traced = Arc::new(compile(&unit.node, true).map_err(fault)?);
        Ok(Self { unit, traced })
    }

    /// The node this is the program of.
    pub fn node(&self) -> &Node {
        &self.unit.node
    }

    /// The node and all those it calls, each once.
    pub fn nodes(&self) -> Vec<&Node> {
        let mut found: Vec<&Unit> = vec![&self.unit];
        let mut next = 0;
        while let Some(unit) = found.get(next) {
            for callee in &unit.callees {
                if !found
                    .iter()
                    .any(|known| std::ptr::eq(*known, Arc::as_ptr(callee)))
                {
                    found.push(callee);
                }
            }
            next += 1;
        }
        found.into_iter().map(|unit| &unit.node).collect()
    }

    /// True when an execution may ask for effects.
    pub fn asks(&self) -> bool {
        self.unit.asks
    }

    /// True when an execution needs the time of its start.
    pub fn uses_now(&self) -> bool {
        self.unit.uses_now
    }

    /// An empty frame, for the converted inputs in declared order. It has room for all registers of a run.
    pub fn new_frame(&self) -> Vec<Value> {
        Vec::with_capacity(self.unit.plain.registers)
    }

    /// Begins an execution on converted inputs, at this time. It runs when it is advanced.
    pub fn start(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        is_traced: bool,
    ) -> Result<Execution, Misuse> {
        self.start_within(inputs, now, is_traced, Limits::default())
    }

    /// The same within these limits.
    pub fn start_within(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        is_traced: bool,
        limits: Limits,
    ) -> Result<Execution, Misuse> {
        if inputs.len() != self.unit.node.inputs.len() {
            return Err(Misuse(WRONG_INPUTS.to_owned()));
        }
        if self.unit.uses_now && now.is_none() {
            return Err(Misuse("the node uses now, and no time was given".to_owned()));
        }
        let traced = is_traced.then(|| Arc::clone(&self.traced));
        Ok(Execution::new(
            Arc::clone(&self.unit),
            traced,
            inputs,
            now,
            limits,
        ))
    }

    /// Runs a node without effects on converted inputs.
    pub fn run(&self, inputs: Vec<Value>, now: Option<Value>) -> Outcome {
        self.run_within(inputs, now, Limits::default())
    }

    /// The same within these limits.
    pub fn run_within(&self, inputs: Vec<Value>, now: Option<Value>, limits: Limits) -> Outcome {
        let unit = &*self.unit;
        if !unit.callees.is_empty() || unit.asks || unit.uses_now {
            return self.run_whole(inputs, now, false, limits).1;
        }
        if inputs.len() != unit.node.inputs.len() {
            return Outcome::Fault(WRONG_INPUTS);
        }
        // What most nodes are: nothing to wait for and nobody to call.
        let mut frame = Frame::new(&unit.plain, inputs);
        let mut meter = Meter::new(limits);
        meter.go();
        match execute(&unit.plain, &mut frame, &mut Vec::new(), &mut meter) {
            Ok(Stop::Ended(outcome)) => outcome,
            Ok(_) => Outcome::Fault("a node without requests and calls has stopped"),
            Err(fault) => Outcome::Fault(fault),
        }
    }

    /// Runs a node without effects on converted inputs and records the marks.
    pub fn run_traced(&self, inputs: Vec<Value>, now: Option<Value>) -> (Vec<Mark>, Outcome) {
        self.run_whole(inputs, now, true, Limits::default())
    }

    fn run_whole(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        is_traced: bool,
        limits: Limits,
    ) -> (Vec<Mark>, Outcome) {
        let fault = |what| (Vec::new(), Outcome::Fault(what));
        if inputs.len() != self.unit.node.inputs.len() {
            return fault(WRONG_INPUTS);
        }
        let Ok(mut execution) = self.start_within(inputs, now, is_traced, limits) else {
            return fault("the node uses now, and no time was given");
        };
        match execution.advance(None) {
            Ok(Advanced::Done(outcome, marks)) => (marks, outcome),
            Ok(Advanced::Blocked(_)) => {
                fault("the node asks for effects, and is not advanced with their results")
            }
            Err(_) => fault("an execution that begins was not advanced"),
        }
    }
}
