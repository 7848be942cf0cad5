//! Dataflow: reads and writes of each instruction, control flow, and liveness.
//!
//! The state of a loop counts as a place after the registers.

use vesper_interp::code::{Code, Instruction, LoopSlot, Operand, Register};

/// Returns the place of a register.
pub(crate) fn register_place(register: Register) -> usize {
    register.0 as usize
}

/// Returns the place of a loop's state.
pub(crate) fn loop_place(code: &Code, slot: LoopSlot) -> usize {
    code.registers + slot.0 as usize
}

/// Returns the number of places.
pub(crate) fn places(code: &Code) -> usize {
    code.registers + code.loops
}

/// The places that an instruction reads and writes.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    pub(crate) reads: Vec<usize>,
    pub(crate) writes: Vec<usize>,
    /// The jump target.
    pub(crate) jump: Option<usize>,
    /// True if control never falls through to the next instruction.
    pub(crate) is_last: bool,
}

impl Accesses {
    fn read(mut self, operands: &[Operand]) -> Self {
        self.add(operands);
        self
    }

    fn add(&mut self, operands: &[Operand]) {
        self.reads.extend(
            operands
                .iter()
                .filter_map(|operand| operand.as_register())
                .map(register_place),
        );
    }

    fn place(mut self, place: usize) -> Self {
        self.reads.push(place);
        self
    }

    fn write(mut self, register: Register) -> Self {
        self.writes.push(register_place(register));
        self
    }

    fn jump(mut self, to: u32) -> Self {
        self.jump = Some(to as usize);
        self
    }

    fn last(mut self) -> Self {
        self.is_last = true;
        self
    }
}

/// Returns true for an instruction that takes a unit of fuel.
pub(crate) fn takes_fuel(instruction: &Instruction) -> bool {
    matches!(
        instruction,
        Instruction::Spend
            | Instruction::LoopNext { .. }
            | Instruction::LoopNextEntry { .. }
            | Instruction::LoopAdvance { .. }
    )
}

/// Returns the accesses of an instruction.
#[expect(clippy::too_many_lines, reason = "one arm an instruction")]
pub(crate) fn accesses(code: &Code, instruction: &Instruction) -> Accesses {
    let none = Accesses::default();
    let list = |list: vesper_interp::code::OperandList| {
        let start = list.start as usize;
        let operands = code.operands.get(start..start + list.length as usize);
        operands.unwrap_or_default()
    };
    let slot = |slot| Accesses::default().place(loop_place(code, slot));
    let mentions = |clause: u32, mut touched: Accesses| {
        if let Some(clause) = code.clauses.get(clause as usize) {
            for (_, operand) in &clause.mentions {
                touched.add(&[*operand]);
            }
        }
        touched
    };
    match *instruction {
        Instruction::Call { out, args, .. } => none.read(&args).write(out),
        Instruction::Move { out, from } => none.read(&[from]).write(out),
        Instruction::Jump { to } => none.jump(to).last(),
        Instruction::JumpIfTrue { condition, to } | Instruction::JumpIfFalse { condition, to } => {
            none.read(&[condition]).jump(to)
        }
        Instruction::JumpUnless {
            first, second, to, ..
        } => none.read(&[first, second]).jump(to),
        Instruction::JumpUnlessNull { value, to } => none.read(&[value]).jump(to),
        // Code with a switch is not compiled.
        Instruction::Switch { on, .. } => none.read(&[on]).last(),
        Instruction::Select {
            out,
            condition,
            then,
            otherwise,
        } => none.read(&[condition, then, otherwise]).write(out),
        Instruction::SelectThat {
            out,
            first,
            second,
            then,
            otherwise,
            ..
        } => none.read(&[first, second, then, otherwise]).write(out),
        Instruction::Array { out, items } => none.read(list(items)).write(out),
        Instruction::Record { out, fields } => none.read(list(fields)).write(out),
        Instruction::Field { out, of, .. } => none.read(&[of]).write(out),
        Instruction::LoopStart { slot, over } => {
            let mut touched = none.read(&[over]);
            touched.writes.push(loop_place(code, slot));
            touched
        }
        Instruction::LoopRange {
            slot,
            start,
            end,
            step,
            ..
        } => {
            let mut touched = none.read(&[start, end, step]);
            touched.writes.push(loop_place(code, slot));
            touched
        }
        Instruction::LoopNext { slot: at, item, done } => slot(at).write(item).jump(done),
        Instruction::LoopNextEntry {
            slot: at,
            key,
            value,
            done,
        } => slot(at).write(key).write(value).jump(done),
        Instruction::LoopAdvance { slot: at, done } => slot(at).jump(done),
        Instruction::LoopField { slot: at, out, .. }
        | Instruction::LoopArray { slot: at, out }
        | Instruction::LoopDistinct { slot: at, out }
        | Instruction::LoopSet { slot: at, out, .. }
        | Instruction::LoopMap { slot: at, out, .. }
        | Instruction::LoopGroups { slot: at, out, .. }
        | Instruction::LoopBegan { slot: at, out } => slot(at).write(out),
        Instruction::LoopPush { slot: at, value, .. } | Instruction::LoopPushMember { slot: at, value } => {
            slot(at).read(&[value])
        }
        Instruction::LoopRecount { state, .. } => none.read(list(state)),
        Instruction::LoopPushKeyed {
            slot: at, key, item, ..
        }
        | Instruction::LoopGroup {
            slot: at, key, item, ..
        } => slot(at).read(&[key, item]),
        Instruction::LoopPut {
            slot: at, key, value, ..
        } => slot(at).read(&[key, value]),
        Instruction::LoopCount { slot: at, key, .. } => slot(at).read(&[key]),
        Instruction::LoopSorted { slot: at, out, order } => slot(at).read(&[order]).write(out),
        Instruction::JumpUnlessBetter { best, value, to, .. } => {
            none.place(register_place(best)).read(&[value]).jump(to)
        }
        // Code with forks is not compiled.
        Instruction::Fail { .. }
        | Instruction::FailAgain { .. }
        | Instruction::Fork { .. }
        | Instruction::Join
        | Instruction::EndMember
        | Instruction::EndRound { .. } => none.last(),
        Instruction::Require { condition, clause } => mentions(clause, none.read(&[condition])),
        Instruction::RequireThat {
            first,
            second,
            clause,
            ..
        } => mentions(clause, none.read(&[first, second])),
        Instruction::LoopLimit { count, .. } => none.place(register_place(count)),
        Instruction::LoopRound { count } => none.place(register_place(count)).write(count),
        Instruction::Request { site } => {
            let mut touched = none;
            if let Some(site) = code.requests.get(site as usize) {
                touched
                    .reads
                    .extend(site.position.rounds.iter().copied().map(register_place));
                touched.add(site.key.as_slice());
                touched.reads.extend(
                    site.arguments
                        .iter()
                        .filter_map(|(_, _, operand)| operand.as_register())
                        .map(register_place),
                );
                touched.writes.push(register_place(site.out));
            }
            touched
        }
        Instruction::CallNode { site } => {
            let mut touched = none;
            if let Some(site) = code.calls.get(site as usize) {
                touched
                    .reads
                    .extend(site.position.rounds.iter().copied().map(register_place));
                let given = site.inputs.iter().flatten();
                touched.reads.extend(
                    given
                        .filter_map(|operand| operand.as_register())
                        .map(register_place),
                );
                touched.writes.push(register_place(site.out));
            }
            touched
        }
        // Code with functions is not compiled. The memory of a loop is in the frame alone.
        Instruction::Apply { .. }
        | Instruction::Leave { .. }
        | Instruction::Spend
        | Instruction::EndWithError
        | Instruction::LoopMemory { .. }
        | Instruction::LoopRestore { .. } => none,
        Instruction::Mark { value, .. } | Instruction::LoopCharge { value, .. } => none.read(&[value]),
        Instruction::Note { word, .. } => none.place(register_place(word)).write(word),
        Instruction::NoteItems {
            slot: at,
            began,
            point,
        } => words(code, point, slot(at).place(register_place(began))),
        Instruction::NoteRounds { count, point } => words(code, point, none.place(register_place(count))),
    }
}

/// Adds the path words of the three points of a loop.
fn words(code: &Code, point: u32, mut touched: Accesses) -> Accesses {
    if let Some(path) = &code.path {
        for point in point..point + 3 {
            let word = register_place(path.place(point).0);
            if !touched.writes.contains(&word) {
                touched.reads.push(word);
                touched.writes.push(word);
            }
        }
    }
    touched
}

/// A set of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places(Vec<u64>);

impl Places {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        self.0
            .get(place / 64)
            .is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    fn add(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    fn remove(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word &= !(1 << (place % 64));
        }
    }

    /// Adds another set. Returns true if this one changed.
    fn unite(&mut self, other: &Self) -> bool {
        let mut is_changed = false;
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            is_changed |= *other & !*own != 0;
            *own |= *other;
        }
        is_changed
    }
}

/// Returns the accesses of each instruction.
pub(crate) fn all_accesses(code: &Code) -> Vec<Accesses> {
    code.instructions.iter().map(|one| accesses(code, one)).collect()
}

/// Computes the live places before each instruction and at the end.
pub(crate) fn live_places(code: &Code, all: &[Accesses]) -> Vec<Places> {
    let count = places(code);
    let end = code.instructions.len();
    // A run may end at any instruction, and its path is read then.
    let mut everywhere = Places::new(count);
    if let Some(path) = &code.path {
        let first = register_place(path.first);
        (first..first + path.words).for_each(|word| everywhere.add(word));
    }
    let mut needed = vec![everywhere; end + 1];
    if let Some(at_end) = needed.last_mut() {
        let returned = code.returns.iter().filter_map(|operand| operand.as_register());
        for register in returned.chain(code.errors.iter().copied()) {
            at_end.add(register_place(register));
        }
    }
    // The instructions at which the interpreter may continue after a failure.
    let caught = |at: usize| {
        let around = code
            .guards
            .iter()
            .filter(move |guard| (guard.start..guard.end).contains(&at));
        let handlers = around.flat_map(|guard| guard.handlers.iter().map(|handler| handler.at));
        let conversion = code.error_conversion.iter();
        let conversion =
            conversion.filter(move |conversion| (conversion.start..conversion.end).contains(&at));
        handlers.chain(conversion.map(|conversion| conversion.to))
    };
    loop {
        let mut is_changed = false;
        for (at, touched) in all.iter().enumerate().rev() {
            let mut after = Places::new(count);
            if !touched.is_last
                && let Some(there) = needed.get(at + 1)
            {
                after.unite(there);
            }
            // An instruction that jumps has not written its output.
            touched.writes.iter().for_each(|place| after.remove(*place));
            if let Some(there) = touched.jump.and_then(|to| needed.get(to)) {
                after.unite(there);
            }
            touched.reads.iter().for_each(|place| after.add(*place));
            for to in caught(at) {
                if let Some(there) = needed.get(to) {
                    after.unite(there);
                }
            }
            if let Some(here) = needed.get_mut(at) {
                is_changed |= here.unite(&after);
            }
        }
        if !is_changed {
            return needed;
        }
    }
}
