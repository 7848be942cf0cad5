//! Consecutive runs of one node in one frame, for a batch.

use vesper_ir::Value;

use crate::observe::marks::Marks;
use crate::program::Program;
use crate::run::execution::Misuse;
use crate::run::frame::Frame;
use crate::run::meter::{Limits, Meter};
use crate::run::{Outcome, Stop};

/// The runs of a node without effects, on one thread.
///
/// The caller writes inputs to [`Rows::inputs`], which still holds those of the previous run. A value of the same
/// type is replaced in place, so numbers need no allocation.
#[derive(Debug)]
pub struct Rows<'a> {
    program: &'a Program,
    /// Reused if the node neither calls nodes nor uses `now`; otherwise it holds only the inputs.
    frame: Frame,
    is_reused: bool,
    now: Option<Value>,
    limits: Limits,
}

impl Program {
    /// Creates runs of this node that share a start time and limits.
    pub fn rows(&self, now: Option<Value>, limits: Limits) -> Result<Rows<'_>, Misuse> {
        if self.asks() {
            return Err(Misuse(
                "the node makes requests, and a batch completes none".to_owned(),
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
    /// Returns the inputs in declared order. The caller writes each of them before every run, because a run may
    /// change them.
    #[inline]
    pub fn inputs(&mut self) -> &mut [Value] {
        let length = self.program.node().inputs.len();
        self.frame.registers.get_mut(..length).unwrap_or_default()
    }

    /// Runs the node on the current inputs.
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
