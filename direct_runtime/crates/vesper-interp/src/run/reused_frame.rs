//! A frame that is used again, for whoever runs one node many times: what a run allocates, and then throws away, is more
//! than a short one computes.
//!
//! Between two runs a frame is as a new one is, register by register: nothing of the last caller can be seen, and nothing
//! of what was given is held.

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

/// Room for one run at a time of one form of one node.
///
/// Write the inputs, run, read the outputs, clear; a room in which something went wrong is dropped instead.
#[derive(Debug)]
pub struct Room {
    frame: Frame,
    inputs: usize,
    /// The form that says which way a run goes; nothing for the plain one.
    pathed: Option<Arc<PathedForm>>,
    /// Whose room it is, by its address: only compared.
    of: usize,
    /// The places of the outputs in the order of their names, once that was asked for.
    order: OnceCell<Box<[usize]>>,
}

const WRONG_FRAME: Fault = "a run was given the frame of another node";
const HAS_STOPPED: Fault = "a node without requests and calls has stopped";

impl Room {
    /// Where the inputs are written, in declared order. None of them holds anything before that.
    pub fn inputs(&mut self) -> &mut [Value] {
        self.frame.registers.get_mut(..self.inputs).unwrap_or_default()
    }

    /// Makes it as it was before the run.
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

    /// The places of the outputs of this node in the order of their names.
    pub(crate) fn order_of_outputs(&self, node: &Node) -> &[usize] {
        self.order.get_or_init(|| order_of_outputs(node))
    }

    fn code<'a>(&'a self, unit: &'a Unit) -> &'a Code {
        self.pathed.as_ref().map_or(&unit.plain, |form| &form.code)
    }
}

impl Program {
    /// Room for runs of this node; nothing where it asks, calls or needs the time.
    pub fn room(&self) -> Option<Room> {
        self.is_self_contained()
            .then(|| self.room_for(&self.unit().plain, None))
    }

    /// The same for runs that say which way they go.
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

    /// Runs the node on the inputs that are in its room. What it returns is left there: the outcome has no values.
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

    /// The outputs of a run that returned, in declared order.
    pub fn outputs_in<'a>(&'a self, room: &'a Room) -> impl Iterator<Item = Result<&'a Value, Fault>> {
        let code = room.code(self.unit());
        let read = |output: &crate::bytecode::Operand| output.read(&code.constants, &room.frame.registers);
        code.returns
            .iter()
            .map(move |output| read(output).ok_or(NO_REGISTER))
    }

    /// One of the outputs of a run that returned.
    pub(crate) fn output_in<'a>(&'a self, room: &'a Room, place: usize) -> Option<&'a Value> {
        let code = room.code(self.unit());
        code.returns
            .get(place)?
            .read(&code.constants, &room.frame.registers)
    }

    /// The points that the run passed; of the plain form none.
    pub fn path_in(&self, room: &Room) -> Path {
        room.pathed
            .as_ref()
            .map(|form| form.path(&room.frame))
            .unwrap_or_default()
    }
}
