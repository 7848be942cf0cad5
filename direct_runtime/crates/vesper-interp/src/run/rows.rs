//! Many runs of one node, one after the other, in one frame: what a batch needs of the interpreter.

use vesper_ir::Value;

use crate::observe::marks::Marks;
use crate::program::Program;
use crate::run::execution::Misuse;
use crate::run::frame::Frame;
use crate::run::meter::{Limits, Meter};
use crate::run::{Outcome, Stop};

/// The runs of a node without effects, on one thread.
///
/// The inputs of a run are written into [`Rows::inputs`], where those of the run before still stand: a value of the same
/// type is replaced in place, and nothing is allocated for a number.
#[derive(Debug)]
pub struct Rows<'a> {
    program: &'a Program,
    /// Reused where the node calls nobody and asks for no time; otherwise it holds the inputs alone.
    frame: Frame,
    is_reused: bool,
    now: Option<Value>,
    limits: Limits,
}

impl Program {
    /// Runs of this node that all begin at this time, each within these limits.
    pub fn rows(&self, now: Option<Value>, limits: Limits) -> Result<Rows<'_>, Misuse> {
        if self.asks() {
            return Err(Misuse(
                "the node asks for effects, and rows of a batch are not advanced with their results"
                    .to_owned(),
            ));
        }
        if self.uses_now() && now.is_none() {
            return Err(Misuse("the node uses now, and no time was given".to_owned()));
        }
        let is_reused = self.is_self_contained();
        let inputs = vec![Value::Null; self.node().inputs.len()];
        let frame = Frame::new(self.plain(), inputs);
        Ok(Rows {
            program: self,
            frame,
            is_reused,
            now,
            limits,
        })
    }
}

impl Rows<'_> {
    /// The places of the inputs, in declared order. Each is to be written before a run: a run may change it.
    #[inline]
    pub fn inputs(&mut self) -> &mut [Value] {
        let length = self.program.node().inputs.len();
        self.frame.registers.get_mut(..length).unwrap_or_default()
    }

    /// Runs the node on what stands in the places of the inputs.
    #[inline]
    pub fn run(&mut self) -> Outcome {
        if !self.is_reused {
            let inputs = self.inputs().to_vec();
            return self.program.run_within(inputs, self.now.clone(), self.limits);
        }
        self.frame.rewind();
        let mut meter = Meter::new(self.limits);
        meter.start_clock();
        let unit = self.program.unit();
        let ran = (unit.tier).run(
            unit,
            &unit.plain,
            &mut self.frame,
            &mut Marks::default(),
            &mut meter,
        );
        match ran {
            Ok(Stop::Ended(outcome)) => outcome,
            Ok(_) => Outcome::Fault("a node without requests and calls has stopped"),
            Err(fault) => Outcome::Fault(fault),
        }
    }
}
