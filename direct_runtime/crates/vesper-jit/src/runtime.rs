//! The runtime of framed machine code: its context, the functions it calls, and its exits.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vesper_interp::code::{Instruction, StepResult, Tables, call_value, read_field, step};
use vesper_interp::native::Native;
use vesper_interp::words::Express;
use vesper_interp::{Fault, Frame, Meter};
use vesper_ir::Value;

use crate::frameless::FramelessCode;
use crate::kinds::{Bits, Kind, range_bits, write_position, write_range};
use crate::machine::Machine;
use crate::plan::Rows;

/// A place and the slot of its bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotBinding {
    pub(crate) place: usize,
    pub(crate) kind: Kind,
    pub(crate) slot: usize,
}

/// An exit of compiled code: the next instruction, and the values that the frame lacks.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) next: usize,
    pub(crate) kept: Vec<SlotBinding>,
}

/// A call from compiled code. The frame receives missing values, the instruction runs on it, and the result is loaded
/// to slots.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) kept: Vec<SlotBinding>,
    pub(crate) instruction: Option<Instruction>,
    pub(crate) load: Option<SlotBinding>,
    /// True if the value is read in place and the instruction skipped. Its result never enters the frame.
    pub(crate) direct: bool,
    /// The skipped field instruction before a call that alone uses it.
    pub(crate) lent: Option<Instruction>,
    /// The fields to gather when a loop is loaded.
    pub(crate) rows: Option<Rows>,
    /// The exits before and after the instruction; only at the quick level.
    pub(crate) exits: Option<[usize; 2]>,
}

/// A possible start of a run, and the values to load for it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) next: usize,
    pub(crate) loads: Vec<SlotBinding>,
}

/// The immutable data of compiled code.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) tables: Tables,
    pub(crate) registers: usize,
    pub(crate) exits: Vec<Exit>,
    pub(crate) sites: Vec<Site>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) slots: usize,
    /// The constants that routines compute with, in slots from the start.
    pub(crate) constants: Vec<(usize, [u64; 2])>,
    pub(crate) guards: u32,
}

/// The context of machine code, which accesses `fuel` directly. The rest is for the functions below.
#[repr(C)]
pub(crate) struct Context<'a> {
    pub(crate) fuel: u64,
    slots: &'a mut [u64],
    frame: &'a mut Frame,
    meter: &'a mut Meter,
    parts: &'a Parts,
    /// The gathered rows of the active loops.
    gathered: Vec<Vec<u64>>,
    /// The exit to take after the last site.
    exit: Option<usize>,
    fault: Option<Fault>,
}

impl Context<'_> {
    /// Returns the address of the slots.
    pub(crate) fn slots(&mut self) -> *mut u64 {
        self.slots.as_mut_ptr()
    }

    pub(crate) fn all_slots(&mut self) -> &mut [u64] {
        self.slots
    }

    /// Makes code of the quick level leave at this exit, without an effect.
    #[cold]
    pub(crate) fn refuse(&mut self, exit: usize) -> i64 {
        self.exit = Some(exit);
        answer::BEFORE
    }

    /// Records an engine fault, which becomes the outcome of the run.
    #[cold]
    pub(crate) fn fail(&mut self, fault: Fault) -> i64 {
        self.fault = Some(fault);
        answer::FAULT
    }
}

/// The results of a function called by compiled code.
pub(crate) mod answer {
    pub(crate) const DONE: i64 = 0;
    pub(crate) const JUMPS: i64 = 1;
    /// Status of a called function that had no effect: the interpreter repeats the instruction.
    pub(crate) const BEFORE: i64 = 2;
    /// The instruction was executed, but its result has no form in machine registers: the interpreter continues after
    /// it.
    pub(crate) const AFTER: i64 = 3;
    pub(crate) const FAULT: i64 = 4;
}

/// The result of compiled code after an engine fault.
pub(crate) const FAULTED: i64 = -1;
/// The result of quick-level code after a refused call; the site determines the exit.
pub(crate) const REFUSED: i64 = -2;

const PANICKED: Fault = "the engine panicked under compiled code";
const NO_SITE: Fault = "compiled code names a site that does not exist";
pub(crate) const NO_SLOT: Fault = "compiled code names a slot that does not exist";
const NO_EXIT: Fault = "compiled code stopped at an exit that does not exist";
const NOT_A_VALUE: Fault = "compiled code left bits that are no value";

/// Compiled code of one form of a node.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Declared before the machine, because it points into its memory.
    pub(crate) express: Option<FramelessCode>,
    pub(crate) machine: Machine,
    pub(crate) parts: Parts,
}

impl Native for Compiled {
    fn enter(&self, frame: &mut Frame, meter: &mut Meter) -> Result<(), Fault> {
        let mut few = [0; 32];
        let mut many;
        let slots = if let Some(slots) = few.get_mut(..self.parts.slots) {
            slots
        } else {
            many = vec![0; self.parts.slots];
            many.as_mut_slice()
        };
        // The interpreter may be at any instruction; without an entry there, it continues alone.
        let entries = self.parts.entries.iter();
        let Some((number, entry)) = entries.enumerate().find(|(_, entry)| entry.next == frame.next()) else {
            return Ok(());
        };
        for kept in &entry.loads {
            if !load(&self.parts, frame, slots, *kept)? {
                return Ok(());
            }
        }
        for (slot, bits) in &self.parts.constants {
            let place = slots.get_mut(*slot..*slot + bits.len()).ok_or(NO_SLOT)?;
            place.copy_from_slice(bits);
        }
        let mut context = Context {
            fuel: meter.at_hand(),
            slots,
            frame,
            meter,
            parts: &self.parts,
            gathered: Vec::new(),
            exit: None,
            fault: None,
        };
        let stopped = self.machine.run(&mut context, number);
        if let Some(fault) = context.fault {
            return Err(fault);
        }
        let exit = if stopped == REFUSED {
            context.exit
        } else {
            usize::try_from(stopped).ok()
        };
        let exit = exit.and_then(|exit| self.parts.exits.get(exit)).ok_or(NO_EXIT)?;
        write_back(&self.parts, context.frame, context.slots, &exit.kept)?;
        context.frame.set_next(exit.next);
        context.meter.set_at_hand(context.fuel);
        Ok(())
    }

    fn express(&self) -> Option<&dyn Express> {
        let express: &dyn Express = self.express.as_ref()?;
        Some(express)
    }

    fn size(&self) -> usize {
        self.machine.size()
    }

    fn guards(&self) -> u32 {
        self.parts.guards
    }
}

fn bits_at(slots: &[u64], at: usize) -> Result<Bits, Fault> {
    let mut bits = [0; 3];
    for (bits, slot) in bits.iter_mut().zip(slots.get(at..).ok_or(NO_SLOT)?) {
        *bits = *slot;
    }
    Ok(bits)
}

fn put(slots: &mut [u64], kept: SlotBinding, bits: Bits) -> Result<(), Fault> {
    let place = slots
        .get_mut(kept.slot..kept.slot + kept.kind.width())
        .ok_or(NO_SLOT)?;
    for (slot, bits) in place.iter_mut().zip(bits) {
        *slot = bits;
    }
    Ok(())
}

/// Loads a value of the frame to its slots. Returns false if it has no form there.
#[inline]
fn load(parts: &Parts, frame: &Frame, slots: &mut [u64], kept: SlotBinding) -> Result<bool, Fault> {
    let bits = match kept.kind {
        Kind::Range => range_bits(frame, kept.place.saturating_sub(parts.registers)),
        kind => frame.register(kept.place).and_then(|value| kind.bits(value)),
    };
    let Some(bits) = bits else {
        return Ok(false);
    };
    put(slots, kept, bits)?;
    Ok(true)
}

/// Writes missing values back to the frame.
#[inline]
fn write_back(parts: &Parts, frame: &mut Frame, slots: &[u64], kept: &[SlotBinding]) -> Result<(), Fault> {
    for kept in kept {
        let bits = bits_at(slots, kept.slot)?;
        let is_written = match kept.kind {
            Kind::Range => write_range(frame, kept.place.saturating_sub(parts.registers), bits),
            Kind::Items => write_position(frame, kept.place.saturating_sub(parts.registers), bits),
            kind => frame
                .register_mut(kept.place)
                .is_some_and(|place| kind.write(place, bits)),
        };
        if !is_written {
            return Err(NOT_A_VALUE);
        }
    }
    Ok(())
}

/// Loads the result of a site to its slots. Returns false if it has no form there.
fn load_site(context: &mut Context<'_>, site: &Site, kept: SlotBinding) -> Result<bool, Fault> {
    let Some(rows) = &site.rows else {
        return load(context.parts, context.frame, context.slots, kept);
    };
    let slot = kept.place.saturating_sub(context.parts.registers);
    while context.gathered.len() <= slot {
        context.gathered.push(Vec::new());
    }
    let Some((items, next)) = context.frame.items(slot) else {
        return Ok(false);
    };
    let gathered = context.gathered.get_mut(slot).ok_or(NO_SLOT)?;
    gathered.clear();
    // From the current item, whose fields may still be read.
    let from = next.saturating_sub(1);
    gathered.reserve(items.len().saturating_sub(from) * rows.width);
    for item in items.get(from..).unwrap_or_default() {
        if !add_row(rows, item, gathered) {
            return Ok(false);
        }
    }
    let place = gathered
        .get((next - from) * rows.width..)
        .unwrap_or_default()
        .as_ptr();
    let left = items.len().saturating_sub(next);
    put(
        context.slots,
        kept,
        [place.addr() as u64, next as u64, left as u64],
    )?;
    Ok(true)
}

/// Appends the fields of an item. Returns false if one has no form in machine registers.
#[inline]
fn add_row(rows: &Rows, item: &Value, gathered: &mut Vec<u64>) -> bool {
    let Value::Record(fields) = item else {
        return false;
    };
    for (place, kind, _) in &rows.fields {
        let Some(bits) = fields.get(*place as usize).and_then(|field| kind.bits(field)) else {
            return false;
        };
        gathered.extend(bits.iter().take(kind.width()));
    }
    true
}

fn at_site(context: &mut Context<'_>, site: u32) -> Result<i64, Fault> {
    let parts = context.parts;
    let site = parts.sites.get(site as usize).ok_or(NO_SITE)?;
    write_back(parts, context.frame, context.slots, &site.kept)?;
    if site.direct
        && let Some(kept) = site.load
        && let Some(value) = site
            .instruction
            .and_then(|one| read_field(&one, &parts.tables, context.frame))
    {
        return match kept.kind.bits(value?) {
            Some(bits) => put(context.slots, kept, bits).map(|()| answer::DONE),
            None => Ok(answer::BEFORE),
        };
    }
    if let Some(instruction @ Instruction::Call { out, .. }) = &site.instruction
        && let Some(value) = call_value(instruction, site.lent.as_ref(), &parts.tables, context.frame)
    {
        let Some(value) = value? else {
            return Ok(answer::BEFORE);
        };
        let bits = site.load.and_then(|kept| Some((kept, kept.kind.bits(&value)?)));
        if let Some((kept, bits)) = bits {
            return put(context.slots, kept, bits).map(|()| answer::DONE);
        }
        *context.frame.register_mut(out.0 as usize).ok_or(NO_SLOT)? = value;
        return Ok(if site.load.is_some() {
            answer::AFTER
        } else {
            answer::DONE
        });
    }
    let stepped = match &site.instruction {
        Some(instruction) => step(instruction, &parts.tables, context.frame, context.meter)?,
        None => StepResult::Done,
    };
    match (stepped, site.load) {
        (StepResult::Refused, _) => Ok(answer::BEFORE),
        (StepResult::Jumps, _) => Ok(answer::JUMPS),
        (StepResult::Done, None) => Ok(answer::DONE),
        (StepResult::Done, Some(kept)) => Ok(if load_site(context, site, kept)? {
            answer::DONE
        } else if site.instruction.is_some() {
            answer::AFTER
        } else {
            answer::BEFORE
        }),
    }
}

/// Executes a site. Called by compiled code.
///
/// Catches panics, because compiled code cannot be unwound.
pub(crate) extern "C" fn step_at(context: &mut Context<'_>, site: u32) -> i64 {
    let done = catch_unwind(AssertUnwindSafe(|| at_site(context, site))).unwrap_or(Err(PANICKED));
    if let Ok(answer @ (answer::BEFORE | answer::AFTER)) = done {
        let exits = context.parts.sites.get(site as usize).and_then(|site| site.exits);
        context.exit = exits.map(|[before, after]| if answer == answer::AFTER { after } else { before });
    }
    done.unwrap_or_else(|fault| {
        context.fault = Some(fault);
        answer::FAULT
    })
}

/// Refills fuel and returns the units at hand. Called by compiled code.
pub(crate) extern "C" fn refill(context: &mut Context<'_>) -> u64 {
    let refilled = catch_unwind(AssertUnwindSafe(|| {
        context.meter.set_at_hand(0);
        context.meter.refill();
        context.meter.at_hand()
    }));
    // Without fuel compiled code stops, and the interpreter determines why.
    refilled.unwrap_or(0)
}
