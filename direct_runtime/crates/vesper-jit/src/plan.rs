//! The plan: how each instruction is compiled, and where values live before each block.

use std::collections::{BTreeMap, BTreeSet};

use vesper_interp::code::{Code, Instruction, Operand};
use vesper_interp::words::Shape;

use crate::NotCompiled;
use crate::dataflow::{Accesses, Places, all_accesses, live_places, loop_place, places, register_place};
use crate::kinds::{Kind, inline};

mod frameless;
mod scales;

pub(crate) use frameless::{function_call, word_of};
pub(crate) use scales::{Known, of_function, scales};

/// The location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Only in the frame.
    Frame,
    /// In machine registers, and also in the frame unless `dirty`.
    Native { kind: Kind, dirty: bool },
}

/// The locations of all values at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State(Vec<Place>);

impl State {
    fn new(count: usize) -> Self {
        Self(vec![Place::Frame; count])
    }

    pub(crate) fn get(&self, place: usize) -> Place {
        self.0.get(place).copied().unwrap_or(Place::Frame)
    }

    pub(crate) fn set(&mut self, place: usize, to: Place) {
        if let Some(place) = self.0.get_mut(place) {
            *place = to;
        }
    }

    /// Returns the kind of a value in machine registers.
    pub(crate) fn native(&self, place: usize) -> Option<Kind> {
        match self.get(place) {
            Place::Native { kind, .. } => Some(kind),
            Place::Frame => None,
        }
    }

    /// Returns the live values that the frame does not have.
    pub(crate) fn dirty(&self, needed: &Places) -> Vec<(usize, Kind)> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(place, at)| match at {
            Place::Native { kind, dirty: true } if needed.has(place) => Some((place, *kind)),
            _ => None,
        })
        .collect()
    }

    /// Merges the state of another edge. Returns true if this one changed.
    fn meet(&mut self, other: &Self, needed: &Places) -> bool {
        let mut is_changed = false;
        for (place, (own, other)) in self.0.iter_mut().zip(&other.0).enumerate() {
            let both = match (*own, *other) {
                _ if !needed.has(place) => Place::Frame,
                (
                    Place::Native { kind, dirty },
                    Place::Native {
                        kind: other,
                        dirty: or,
                    },
                ) if kind == other => Place::Native {
                    kind,
                    dirty: dirty || or,
                },
                _ => Place::Frame,
            };
            is_changed |= both != *own;
            *own = both;
        }
        is_changed
    }
}

/// How an instruction is compiled.
#[derive(Clone, Debug)]
pub(crate) enum How {
    /// Inline, with the kinds it needs in machine registers and those it produces.
    Inline {
        uses: Vec<(usize, Kind)>,
        gives: Vec<(usize, Kind)>,
    },
    /// A move between registers.
    Move { out: usize, from: usize },
    /// A call of a function on the frame, which reads these places. Its result may go to machine registers; `direct`
    /// if it bypasses the frame.
    Step {
        reads: Vec<usize>,
        gives: Vec<(usize, Option<Kind>)>,
        direct: bool,
    },
    /// An exit: the interpreter continues here.
    Leave,
}

/// The instructions searched for the first use of a value.
const LOOK_AHEAD: usize = 256;

/// The analysis of a code before it is compiled.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) how: Vec<How>,
    /// The accesses of each instruction, which are needed often.
    pub(crate) touched: Vec<Accesses>,
    pub(crate) needed: Vec<Places>,
    /// The start of each reachable block, with the locations of values there.
    pub(crate) blocks: BTreeMap<usize, State>,
    /// All jumps as source and target.
    pub(crate) jumps: Vec<(usize, usize)>,
    /// The possible starts of a run: the first instruction, and each one after a stop.
    pub(crate) entries: Vec<usize>,
    /// The values loaded to machine registers at the start.
    pub(crate) loads: Vec<(usize, Kind)>,
    /// The gathered fields of a loop, by the instructions that start, advance and read it.
    pub(crate) rows: BTreeMap<usize, Rows>,
    /// The maximum fuel of a run from its first range on; for frameless code.
    pub(crate) max_units: Option<u64>,
}

/// The fields of a loop's items that are computed with. They are gathered for all items at the start of the loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// Per field: the index in its record, the kind and the row offset.
    pub(crate) fields: Vec<(u32, Kind, usize)>,
    /// Slots per row.
    pub(crate) width: usize,
}

impl Plan {
    /// Plans a code. With a shape the code is frameless, and anything without a form in machine registers is an exit.
    pub(crate) fn new(code: &Code, shape: Option<&Shape>) -> Result<Self, NotCompiled> {
        let touched = all_accesses(code);
        let rows = shape.map_or_else(|| rows(code, &touched), |shape| frameless::rows(code, shape));
        let all = code.instructions.iter().enumerate();
        let how: Vec<How> = all
            .map(|(at, one)| match shape {
                Some(_) => frameless::how(code, &touched, at, one, rows.get(&at)),
                None => how(code, &touched, at, one, rows.get(&at)),
            })
            .collect();
        let needed = live_places(code, &touched);
        let starts = starts(code, &touched);
        let jumps = jumps(&touched);
        let mut plan = Self {
            how,
            touched,
            needed,
            blocks: BTreeMap::new(),
            jumps,
            entries: entries(code),
            loads: Vec::new(),
            rows,
            max_units: None,
        };
        plan.max_units = shape.and_then(|_| frameless::max_units(code, &plan));
        plan.loads = match shape {
            Some(shape) => frameless::loads(shape),
            None => plan.entry_loads(code),
        };
        let mut first = State::new(places(code));
        for (place, kind) in &plan.loads {
            first.set(
                *place,
                Place::Native {
                    kind: *kind,
                    dirty: false,
                },
            );
        }
        let mut open: Vec<(usize, State)> = Vec::new();
        for entry in &plan.entries {
            let state = if *entry == 0 {
                first.clone()
            } else {
                State::new(places(code))
            };
            open.push((*entry, state));
        }
        while let Some((at, state)) = open.pop() {
            let Some(needed) = plan.needed.get(at) else {
                continue;
            };
            let state = if let Some(known) = plan.blocks.get_mut(&at) {
                if !known.meet(&state, needed) {
                    continue;
                }
                known.clone()
            } else {
                let mut first = state.clone();
                first.meet(&state, needed);
                plan.blocks.insert(at, first.clone());
                first
            };
            plan.follow(&starts, at, state, &mut open)?;
        }
        Ok(plan)
    }

    /// Returns true if every run reaches an exit before any branch.
    pub(crate) fn always_leaves(&self) -> bool {
        let mut at = 0;
        while let (Some(touched), Some(how)) = (self.touched.get(at), self.how.get(at)) {
            match (how, touched.jump) {
                (How::Leave, _) => return true,
                (_, Some(to)) if touched.is_last && to > at => at = to,
                (_, Some(_)) => return false,
                (_, None) => at += 1,
            }
        }
        false
    }

    /// Plans one block and adds its successors.
    fn follow(
        &self,
        starts: &BTreeSet<usize>,
        mut at: usize,
        mut state: State,
        open: &mut Vec<(usize, State)>,
    ) -> Result<(), NotCompiled> {
        while let (Some(touched), Some(how)) = (self.touched.get(at), self.how.get(at)) {
            if matches!(how, How::Leave) {
                return Ok(());
            }
            let before = touched.is_last.then(|| state.clone());
            apply(how, &mut state)?;
            if let Some(to) = touched.jump {
                // Its result does not exist where it jumps, but is not read there either.
                open.push((to, before.unwrap_or_else(|| state.clone())));
            }
            if touched.is_last {
                return Ok(());
            }
            at += 1;
            if starts.contains(&at) {
                open.push((at, state));
                return Ok(());
            }
        }
        open.push((at, state));
        Ok(())
    }

    /// Returns the inputs and path words that the code computes with.
    fn entry_loads(&self, code: &Code) -> Vec<(usize, Kind)> {
        let Some(needed) = self.needed.first() else {
            return Vec::new();
        };
        let all = (0..code.registers).filter(|place| needed.has(*place));
        all.filter_map(|place| {
            let kind = first_kind_used(code, &self.touched, 0, place, usize::MAX, 0)?;
            Some((place, kind))
        })
        .collect()
    }
}

/// Applies an instruction to the locations of values.
pub(crate) fn apply(how: &How, state: &mut State) -> Result<(), NotCompiled> {
    match how {
        How::Inline { uses, gives } => {
            for (place, kind) in uses {
                match state.get(*place) {
                    Place::Frame => state.set(
                        *place,
                        Place::Native {
                            kind: *kind,
                            dirty: false,
                        },
                    ),
                    Place::Native { kind: own, .. } if own == *kind => {}
                    Place::Native { .. } => {
                        return Err(NotCompiled::new(
                            "a register is used as two kinds of value at once",
                        ));
                    }
                }
            }
            for (place, kind) in gives {
                state.set(
                    *place,
                    Place::Native {
                        kind: *kind,
                        dirty: true,
                    },
                );
            }
        }
        How::Move { out, from } => {
            let to = match state.get(*from) {
                Place::Native { kind, .. } => Place::Native { kind, dirty: true },
                Place::Frame => Place::Frame,
            };
            if out != from {
                state.set(*out, to);
            }
        }
        How::Step { reads, gives, direct } => {
            for place in reads {
                if let Place::Native { kind, dirty: true } = state.get(*place) {
                    state.set(*place, Place::Native { kind, dirty: false });
                }
            }
            for (place, kind) in gives {
                let to = kind.map_or(Place::Frame, |kind| Place::Native { kind, dirty: *direct });
                state.set(*place, to);
            }
        }
        How::Leave => {}
    }
    Ok(())
}

/// Returns the possible starts of a run.
fn entries(code: &Code) -> Vec<usize> {
    let all = code.instructions.iter().enumerate();
    let stops =
        all.filter(|(_, one)| matches!(one, Instruction::Request { .. } | Instruction::CallNode { .. }));
    std::iter::once(0).chain(stops.map(|(at, _)| at + 1)).collect()
}

/// Returns all jumps as source and target.
fn jumps(all: &[Accesses]) -> Vec<(usize, usize)> {
    let all = all.iter().enumerate();
    all.filter_map(|(at, touched)| touched.jump.map(|to| (at, to)))
        .collect()
}

/// Returns the starts of blocks.
fn starts(code: &Code, all: &[Accesses]) -> BTreeSet<usize> {
    let mut starts: BTreeSet<usize> = entries(code).into_iter().collect();
    for (at, touched) in all.iter().enumerate() {
        if let Some(to) = touched.jump {
            starts.extend([to, at + 1]);
        }
        if touched.is_last {
            starts.insert(at + 1);
        }
    }
    starts.insert(all.len());
    starts
}

/// Returns the kind of a constant operand.
pub(crate) fn constant(code: &Code, operand: Operand) -> Option<Kind> {
    if operand.as_register().is_some() {
        return None;
    }
    Kind::of(operand.read(&code.constants, &[])?)
}

/// Returns the places needed in machine registers for these operands. Returns `None` if a constant has no such form.
fn uses(code: &Code, operands: &[Operand], kind: Kind) -> Option<Vec<(usize, Kind)>> {
    let mut uses = Vec::with_capacity(operands.len());
    for operand in operands {
        match operand.as_register() {
            Some(register) => uses.push((register_place(register), kind)),
            None if constant(code, *operand) == Some(kind) => {}
            None => return None,
        }
    }
    Some(uses)
}

#[expect(clippy::too_many_lines, reason = "one arm an instruction, as in `accesses`")]
fn how(code: &Code, all: &[Accesses], at: usize, instruction: &Instruction, rows: Option<&Rows>) -> How {
    let Some(touched) = all.get(at) else {
        return How::Leave;
    };
    let in_machine_code = |operands: &[Operand], kind: Kind, gives: Vec<(usize, Kind)>| {
        uses(code, operands, kind).map(|uses| How::Inline { uses, gives })
    };
    // The result goes to machine registers if it is computed with.
    let by_step = |direct: bool| {
        let gives = touched
            .writes
            .iter()
            .map(|place| (*place, first_kind_used(code, all, at + 1, *place, LOOK_AHEAD, 0)));
        let gives: Vec<_> = gives.collect();
        // Only one result is loaded.
        let taken = gives.iter().filter(|(_, kind)| kind.is_some()).count();
        How::Step {
            reads: touched.reads.clone(),
            direct: direct && taken == 1,
            gives: if taken <= 1 {
                gives
            } else {
                gives.into_iter().map(|(place, _)| (place, None)).collect()
            },
        }
    };
    let quick = match *instruction {
        Instruction::Call { op, out, args, .. } => inline(op).and_then(|(_, kind, result)| {
            let [first, second, ..] = args;
            in_machine_code(&[first, second], kind, vec![(register_place(out), result)])
        }),
        Instruction::Move { out, from } => match from.as_register() {
            Some(from) => Some(How::Move {
                out: register_place(out),
                from: register_place(from),
            }),
            None => constant(code, from).map(|kind| How::Inline {
                uses: Vec::new(),
                gives: vec![(register_place(out), kind)],
            }),
        },
        Instruction::Jump { .. } | Instruction::Spend => Some(How::Inline {
            uses: Vec::new(),
            gives: Vec::new(),
        }),
        Instruction::JumpIfTrue { condition, .. }
        | Instruction::JumpIfFalse { condition, .. }
        | Instruction::Require { condition, .. } => in_machine_code(&[condition], Kind::Boolean, Vec::new()),
        Instruction::JumpUnless {
            op, first, second, ..
        }
        | Instruction::RequireThat {
            op, first, second, ..
        } => inline(op).and_then(|(_, kind, _)| in_machine_code(&[first, second], kind, Vec::new())),
        Instruction::LoopRange { slot, .. } => Some(How::Step {
            reads: touched.reads.clone(),
            gives: vec![(loop_place(code, slot), Some(Kind::Range))],
            direct: false,
        }),
        Instruction::LoopStart { slot, .. } if rows.is_some() => Some(How::Step {
            reads: touched.reads.clone(),
            gives: vec![(loop_place(code, slot), Some(Kind::Items))],
            direct: false,
        }),
        Instruction::LoopAdvance { slot, .. } if rows.is_some() => Some(How::Inline {
            uses: vec![(loop_place(code, slot), Kind::Items)],
            gives: vec![(loop_place(code, slot), Kind::Items)],
        }),
        Instruction::LoopField { slot, out, .. } if rows.is_some() => {
            first_kind_used(code, all, at + 1, register_place(out), LOOK_AHEAD, 0).map(|kind| How::Inline {
                uses: vec![(loop_place(code, slot), Kind::Items)],
                gives: vec![(register_place(out), kind)],
            })
        }
        Instruction::LoopNext { slot, item, .. } if loops_over_range(code, at) => Some(How::Inline {
            uses: vec![(loop_place(code, slot), Kind::Range)],
            gives: vec![
                (register_place(item), Kind::Integer),
                (loop_place(code, slot), Kind::Range),
            ],
        }),
        Instruction::LoopBegan { slot, out } if loops_over_range(code, at) => Some(How::Inline {
            uses: vec![(loop_place(code, slot), Kind::Range)],
            gives: vec![(register_place(out), Kind::Integer)],
        }),
        Instruction::LoopLimit { count, .. } => Some(How::Inline {
            uses: vec![(register_place(count), Kind::Integer)],
            gives: Vec::new(),
        }),
        Instruction::LoopRound { count } => Some(How::Inline {
            uses: vec![(register_place(count), Kind::Integer)],
            gives: vec![(register_place(count), Kind::Integer)],
        }),
        Instruction::Note { word, .. } => Some(How::Inline {
            uses: vec![(register_place(word), Kind::Integer)],
            gives: vec![(register_place(word), Kind::Integer)],
        }),
        Instruction::Fail { .. }
        | Instruction::Request { .. }
        | Instruction::CallNode { .. }
        | Instruction::Apply { .. }
        | Instruction::Leave { .. }
        | Instruction::FailAgain { .. }
        | Instruction::Mark { .. } => Some(How::Leave),
        _ => None,
    };
    quick.unwrap_or_else(|| match *instruction {
        Instruction::Field { .. } | Instruction::LoopField { .. } => by_step(true),
        Instruction::Call { op, out, .. } => {
            let known = Kind::of_type(&op.signature().returns);
            match known {
                Some(kind) => How::Step {
                    reads: touched.reads.clone(),
                    gives: vec![(register_place(out), Some(kind))],
                    direct: true,
                },
                None => by_step(true),
            }
        }
        _ => by_step(false),
    })
}

/// Returns true if the loop of an instruction runs over a range. The last start of its slot decides, because a slot
/// holds one loop at a time.
fn loops_over_range(code: &Code, at: usize) -> bool {
    let slot_of = |instruction: &Instruction| match *instruction {
        Instruction::LoopNext { slot, .. }
        | Instruction::LoopBegan { slot, .. }
        | Instruction::NoteItems { slot, .. } => Some(slot),
        _ => None,
    };
    let Some(slot) = code.instructions.get(at).and_then(slot_of) else {
        return false;
    };
    let before = code.instructions.get(..at).unwrap_or_default();
    let last = before.iter().rev().find_map(|instruction| match *instruction {
        Instruction::LoopRange { slot: of, .. } if of == slot => Some(true),
        Instruction::LoopStart { slot: of, .. } if of == slot => Some(false),
        _ => None,
    });
    last == Some(true)
}

/// Returns the gathered fields of loops that read only fields of their items.
fn rows(code: &Code, all: &[Accesses]) -> BTreeMap<usize, Rows> {
    let mut found = BTreeMap::new();
    for (start, instruction) in code.instructions.iter().enumerate() {
        let Instruction::LoopStart { slot, .. } = *instruction else {
            continue;
        };
        let mut rows = Rows::default();
        let mut members = vec![start];
        let mut is_through_fields = false;
        // Up to the next loop in the same slot.
        for (at, instruction) in code.instructions.iter().enumerate().skip(start + 1) {
            match *instruction {
                Instruction::LoopStart { slot: other, .. } | Instruction::LoopRange { slot: other, .. }
                    if other == slot =>
                {
                    break;
                }
                Instruction::LoopNext { slot: other, .. }
                | Instruction::LoopNextEntry { slot: other, .. }
                    if other == slot =>
                {
                    is_through_fields = false;
                    break;
                }
                Instruction::LoopAdvance { slot: other, .. } if other == slot => {
                    is_through_fields = true;
                    members.push(at);
                }
                Instruction::LoopField {
                    slot: other,
                    out,
                    place,
                } if other == slot => {
                    if let Some(kind) = first_kind_used(code, all, at + 1, register_place(out), LOOK_AHEAD, 0)
                    {
                        members.push(at);
                        rows.add(place, kind);
                    }
                }
                _ => {}
            }
        }
        if is_through_fields {
            found.extend(members.into_iter().map(|at| (at, rows.clone())));
        }
    }
    found
}

impl Rows {
    fn add(&mut self, place: u32, kind: Kind) {
        if self.offset(place, kind).is_none() {
            self.fields.push((place, kind, self.width));
            self.width += kind.width();
        }
    }

    /// Returns the offset of a field in a row.
    pub(crate) fn offset(&self, place: u32, kind: Kind) -> Option<usize> {
        let mut fields = self.fields.iter();
        fields
            .find(|field| (field.0, field.1) == (place, kind))
            .map(|field| field.2)
    }
}

/// Returns the kind of the first use of a value from an instruction on. Returns `None` if the frame needs it first.
fn first_kind_used(
    code: &Code,
    all: &[Accesses],
    from: usize,
    place: usize,
    limit: usize,
    depth: usize,
) -> Option<Kind> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(mut at) = open.pop() {
        while let (Some(instruction), Some(touched)) = (code.instructions.get(at), all.get(at)) {
            if seen.len() >= limit || !seen.insert(at) {
                break;
            }
            if touched.reads.contains(&place) {
                if let Some(kind) = used_as(code, instruction, place) {
                    return Some(kind);
                }
                match *instruction {
                    Instruction::Move { out, .. } if depth < 4 && register_place(out) != place => {
                        if let Some(kind) =
                            first_kind_used(code, all, at + 1, register_place(out), LOOK_AHEAD, depth + 1)
                        {
                            return Some(kind);
                        }
                    }
                    // A broken clause reports the value, but only in the interpreter.
                    Instruction::Require { .. } | Instruction::RequireThat { .. } => {}
                    _ => break,
                }
            }
            if touched.jump.is_none() && touched.writes.contains(&place) {
                break;
            }
            if let Some(to) = touched.jump {
                open.push(to);
            }
            if touched.is_last {
                break;
            }
            at += 1;
        }
    }
    None
}

/// Returns the kind by which an instruction reads a place.
fn used_as(code: &Code, instruction: &Instruction, place: usize) -> Option<Kind> {
    let is = |operand: &Operand| {
        operand
            .as_register()
            .is_some_and(|register| register_place(register) == place)
    };
    let all_are = |operands: &[Operand], kind: Kind| {
        (operands.iter().any(is) && uses(code, operands, kind).is_some()).then_some(kind)
    };
    match instruction {
        Instruction::Call { op, args, .. } => {
            let (_, kind, _) = inline(*op)?;
            let [first, second, ..] = args;
            all_are(&[*first, *second], kind)
        }
        Instruction::JumpUnless {
            op, first, second, ..
        }
        | Instruction::RequireThat {
            op, first, second, ..
        } => {
            let (_, kind, _) = inline(*op)?;
            all_are(&[*first, *second], kind)
        }
        Instruction::JumpIfTrue { condition, .. }
        | Instruction::JumpIfFalse { condition, .. }
        | Instruction::Require { condition, .. } => all_are(&[*condition], Kind::Boolean),
        Instruction::LoopLimit { .. } | Instruction::LoopRound { .. } | Instruction::Note { .. } => {
            Some(Kind::Integer)
        }
        _ => None,
    }
}
