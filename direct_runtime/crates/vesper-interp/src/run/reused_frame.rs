//! A frame for many runs of one node. Allocating one would cost more than a short run.
//!
//! INVARIANT: between two runs every register equals that of a new frame, so no value of the last caller remains
//! visible or allocated.

use std::cell::OnceCell;
use std::sync::Arc;

use vesper_ir::{Node, Value};

use crate::bytecode::Code;
use crate::compile::link::Unit;
use crate::json::order_of_outputs;
use crate::observe::marks::Marks;
use crate::observe::path::Path;
use crate::program::{PathedForm, Program};
use crate::run::frame::Frame;
use crate::run::loop_state::LoopState;
use crate::run::meter::{Limits, Meter};
use crate::run::{Fault, NO_REGISTER, Outcome, Stop};

/// A reusable frame for one form of one node, for one run at a time.
///
/// Write the inputs, run, read the outputs, clear. After a fault, drop the frame instead of clearing it.
#[derive(Debug)]
pub struct Room {
    frame: Frame,
    inputs: usize,
    /// The pathed form, or `None` for the plain form.
    pathed: Option<Arc<PathedForm>>,
    /// The address of the node that the frame belongs to; only compared.
    of: usize,
    /// The outputs in name order, computed on first use.
    order: OnceCell<Box<[usize]>>,
}

const WRONG_FRAME: Fault = "a run was given the frame of another node";
const HAS_STOPPED: Fault = "a node without requests and calls has stopped";

impl Room {
    /// Returns the input registers in declared order. They are empty before the caller writes them.
    pub fn inputs(&mut self) -> &mut [Value] {
        self.frame.registers.get_mut(..self.inputs).unwrap_or_default()
    }

    /// Restores the state before the run.
    pub fn clear(&mut self) {
        for register in &mut self.frame.registers {
            register.clear();
        }
        self.frame.loops.iter_mut().for_each(LoopState::release);
        self.frame.reset_flow();
        if let Some(form) = &self.pathed {
            self.frame.clear_path(&form.code);
        }
    }

    /// Returns the indices of the outputs in name order.
    pub(crate) fn order_of_outputs(&self, node: &Node) -> &[usize] {
        self.order.get_or_init(|| order_of_outputs(node))
    }

    fn code<'a>(&'a self, unit: &'a Unit) -> &'a Code {
        self.pathed.as_ref().map_or(&unit.plain, |form| &form.code)
    }
}

impl Program {
    /// Creates a reusable frame. Returns `None` if the node makes requests, calls nodes or uses `now`.
    pub fn room(&self) -> Option<Room> {
        self.is_self_contained()
            .then(|| self.room_for(&self.unit().plain, None))
    }

    /// Creates a reusable frame for the pathed form.
    pub fn pathed_room(&self) -> Option<Room> {
        let form = self.pathed().ok().filter(|_| self.is_self_contained())?;
        Some(self.room_for(&form.code, Some(Arc::clone(form))))
    }

    fn room_for(&self, code: &Code, pathed: Option<Arc<PathedForm>>) -> Room {
        let mut frame = Frame::pathed(code, Vec::with_capacity(code.registers));
        frame.keeps_outputs = true;
        Room {
            frame,
            inputs: self.node().inputs.len(),
            pathed,
            of: Arc::as_ptr(self.unit()).addr(),
            order: OnceCell::new(),
        }
    }

    /// Runs the node on the inputs in its frame. The outputs stay in the frame, and the outcome holds no values.
    pub fn run_in(&self, room: &mut Room, limits: Limits) -> Outcome {
        if room.of != Arc::as_ptr(self.unit()).addr() {
            return Outcome::Fault(WRONG_FRAME);
        }
        let mut meter = Meter::new(limits);
        meter.start_clock();
        let unit = self.unit();
        let (frame, marks) = (&mut room.frame, &mut Marks::default());
        let ran = match &room.pathed {
            Some(form) => form.tier.run(form, &form.code, frame, marks, &mut meter),
            None => unit.tier.run(unit, &unit.plain, frame, marks, &mut meter),
        };
        match ran {
            Ok(Stop::Ended(outcome)) => outcome,
            Ok(_) => Outcome::Fault(HAS_STOPPED),
            Err(fault) => Outcome::Fault(fault),
        }
    }

    /// Returns the outputs of a run that returned, in declared order.
    pub fn outputs_in<'a>(&'a self, room: &'a Room) -> impl Iterator<Item = Result<&'a Value, Fault>> {
        let code = room.code(self.unit());
        let read = |output: &crate::bytecode::Operand| output.read(&code.constants, &room.frame.registers);
        code.returns
            .iter()
            .map(move |output| read(output).ok_or(NO_REGISTER))
    }

    /// Returns one output of a run that returned.
    pub(crate) fn output_in<'a>(&'a self, room: &'a Room, place: usize) -> Option<&'a Value> {
        let code = room.code(self.unit());
        code.returns
            .get(place)?
            .read(&code.constants, &room.frame.registers)
    }

    /// Returns the points that the run passed, or an empty path for the plain form.
    pub fn path_in(&self, room: &Room) -> Path {
        room.pathed
            .as_ref()
            .map(|form| form.path(&room.frame))
            .unwrap_or_default()
    }
}
