//! Lowering of a plan to Cranelift IR, one block of bytecode after the other.

use std::collections::{BTreeMap, HashMap, HashSet};

use cranelift_codegen::ir::{
    Block, BlockArg, FuncRef, InstBuilder, MemFlagsData, Type, Value, condcodes::IntCC, types,
};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};
use vesper_interp::code::{Code, Instruction, Operand};
use vesper_interp::words::Shape;

use crate::NotCompiled;
use crate::dataflow::{accesses, loop_place, register_place};
use crate::kinds::{Comparison, Inline, Kind, inline};
use crate::machine::Level;
use crate::plan::{How, Known, Place, Plan, State, apply, scales};
use crate::runtime::{Entry, Exit, FAULTED, REFUSED, Site, SlotBinding, answer};

mod decimal_calls;
mod decimals;
mod exits;
mod frameless;
mod loops;
mod masks;
mod numbers;
mod ranges;
mod rounds;
mod selects;
mod sites;
mod unnoted_loops;

pub(crate) use frameless::{Frameless, FramelessFunctions};

use exits::Late;
use loops::InStep;
use rounds::Counted;
use unnoted_loops::Copies;

/// The functions of this crate that compiled code calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(crate) step: FuncRef,
    pub(crate) refill: FuncRef,
    pub(crate) decimal_add: FuncRef,
    pub(crate) decimal_subtract: FuncRef,
    pub(crate) decimal_multiply: FuncRef,
    pub(crate) decimal_compare: FuncRef,
}

/// The options of one lowered function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LowerOptions<'a> {
    /// The guard that always fails.
    pub(crate) fail_guard: Option<u32>,
    pub(crate) level: Level,
    /// The layout of words and the functions to call, for frameless code.
    pub(crate) without_frame: Option<(&'a Shape, FramelessFunctions)>,
    /// The known scales of decimal inputs; the code gives up on others.
    pub(crate) scales: &'a [Option<u16>],
}

/// The data that accompanies the machine code.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub(crate) exits: Vec<Exit>,
    pub(crate) sites: Vec<Site>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) slots: usize,
    pub(crate) constants: Vec<(usize, [u64; 2])>,
    pub(crate) guards: u32,
    /// The calls of frameless code.
    pub(crate) calls: Vec<crate::frameless::Site>,
}

/// The parts of a value in machine registers.
type ValueParts = Vec<Value>;

pub(crate) struct Lower<'a, 'b> {
    code: &'a Code,
    plan: &'a Plan,
    builder: FunctionBuilder<'b>,
    functions: Functions,
    fail_guard: Option<u32>,
    /// True if values live in slots between instructions, false if in variables.
    in_slots: bool,
    variables: HashMap<(usize, Kind, usize), Variable>,
    slots: BTreeMap<usize, usize>,
    /// The slots of constants that routines compute with.
    constants: HashMap<[u64; 2], usize>,
    side: Side,
    blocks: HashMap<usize, Block>,
    late: Vec<Late>,
    context: Value,
    memory: Value,
    fuel: Variable,
    fault: Option<Block>,
    /// The block that leaves at the exit given as its parameter.
    leave: Option<Block>,
    /// The block that leaves quick-level code after a refused call.
    refused: Option<Block>,
    /// The locations of values before the current instruction.
    state: State,
    at: usize,
    /// The exit before the current instruction, once it exists.
    before: Option<Block>,
    /// The side of a choice being computed speculatively.
    tried: Option<TriedSide>,
    /// The blocks merged into a choice without jumps.
    merged: HashSet<usize>,
    /// The state of frameless code.
    words: Option<Frameless<'a>>,
    /// True if the current call cannot fail.
    is_proven: bool,
    /// The loops with fuel in step with their items, by range place.
    in_step: HashMap<usize, InStep>,
    /// The counted choices of such loops.
    counted: Vec<Counted>,
    /// The positions of the last counted choices, while each always follows the one before.
    chain: Vec<usize>,
    /// The copies of loops without notes.
    plain: Copies,
    /// The block after the last choice, if it is reached only from there.
    follows: Option<Block>,
    /// The known scales at the start of each block; empty if no input scale is known.
    scales: BTreeMap<usize, Known>,
    /// The known scales before the current instruction.
    fixed: Known,
}

/// One side of a choice: whether it is taken, and the values computed so far.
#[derive(Debug)]
struct TriedSide {
    is_taken: Value,
    values: BTreeMap<(usize, usize), (Kind, Value)>,
}

const TRUSTED: MemFlagsData = MemFlagsData::trusted();
/// The empty block arguments: values pass between blocks in variables.
const NONE: [BlockArg; 0] = [];

impl<'a, 'b> Lower<'a, 'b> {
    /// Lowers the whole function.
    pub(crate) fn write(
        code: &'a Code,
        plan: &'a Plan,
        mut builder: FunctionBuilder<'b>,
        functions: Functions,
        manner: LowerOptions<'a>,
        config: cranelift_codegen::isa::TargetFrontendConfig,
    ) -> Result<Side, NotCompiled> {
        let LowerOptions {
            fail_guard,
            level,
            without_frame,
            scales: given,
        } = manner;
        let first = builder.create_block();
        builder.append_block_params_for_function_params(first);
        builder.switch_to_block(first);
        let parameters = builder.block_params(first).to_vec();
        let [context, memory, entry] = parameters.as_slice() else {
            return Err(NotCompiled::new(
                "the function has other parameters than declared",
            ));
        };
        let (context, memory, entry) = (*context, *memory, *entry);
        let fuel = builder.declare_var(types::I64);
        let mut lower = Self {
            code,
            plan,
            builder,
            functions,
            fail_guard,
            in_slots: level == Level::Quick,
            variables: HashMap::new(),
            slots: BTreeMap::new(),
            constants: HashMap::new(),
            side: Side::default(),
            blocks: HashMap::new(),
            late: Vec::new(),
            context,
            memory,
            fuel,
            fault: None,
            leave: None,
            refused: None,
            state: plan
                .blocks
                .get(&0)
                .cloned()
                .ok_or_else(|| NotCompiled::new("there is no code"))?,
            at: 0,
            before: None,
            tried: None,
            merged: HashSet::new(),
            words: without_frame.map(|(shape, call)| Frameless::new(shape, call, entry)),
            is_proven: false,
            in_step: HashMap::new(),
            counted: Vec::new(),
            chain: Vec::new(),
            plain: Copies::default(),
            follows: None,
            scales: if given.iter().any(Option::is_some) {
                scales(code, plan, given)
            } else {
                BTreeMap::new()
            },
            fixed: Known::default(),
        };
        // Quick-level code loads none.
        if level == Level::Good {
            let at_hand = lower.first_fuel();
            lower.builder.def_var(fuel, at_hand);
        }
        for start in plan.blocks.keys() {
            let block = lower.builder.create_block();
            lower.blocks.insert(*start, block);
        }
        lower.entries(entry)?;
        if let Some(words) = &mut lower.words {
            words.has_begun = true;
        }
        for (start, state) in &plan.blocks {
            if !lower.merged.contains(start) {
                lower.block(*start, state.clone())?;
            }
        }
        lower.copies()?;
        lower.write_late_blocks();
        lower.write_too_long();
        lower.write_give_up();
        lower.size_slots();
        lower.side.calls = lower.words.take().map(|words| words.sites).unwrap_or_default();
        lower.builder.seal_all_blocks();
        lower.builder.finalize(config);
        Ok(lower.side)
    }

    /// Lowers the entries of a run.
    fn entries(&mut self, entry: Value) -> Result<(), NotCompiled> {
        let mut switch = Switch::new();
        let mut blocks = Vec::new();
        for (number, next) in self.plan.entries.iter().enumerate() {
            let loads: Vec<SlotBinding> = if *next == 0 {
                let loads = self.plan.loads.iter();
                let at = |(place, kind): &(usize, Kind)| match &self.words {
                    Some(words) => words.input(*place, *kind),
                    None => Some(self.slot_binding(*place, *kind)),
                };
                loads.filter_map(at).collect()
            } else {
                Vec::new()
            };
            let block = self.builder.create_block();
            switch.set_entry(number as u128, block);
            blocks.push((block, *next, loads.clone()));
            self.side.entries.push(Entry { next: *next, loads });
        }
        let fault = self.fault_block();
        if let [(block, ..)] = blocks.as_slice() {
            self.builder.ins().jump(*block, &NONE);
        } else {
            switch.emit(&mut self.builder, entry, fault);
        }
        for (block, next, loads) in blocks {
            self.builder.switch_to_block(block);
            for kept in loads {
                self.take_loaded(kept);
                self.guard_scale(kept, next);
                self.take_number(kept)?;
            }
            let to = self.block_at(next)?;
            self.builder.ins().jump(to, &NONE);
        }
        Ok(())
    }

    fn block_at(&self, at: usize) -> Result<Block, NotCompiled> {
        let block = self.blocks.get(&at).copied();
        block.ok_or_else(|| NotCompiled::new("a jump goes to no block"))
    }

    /// Lowers one block of bytecode.
    fn block(&mut self, start: usize, state: State) -> Result<(), NotCompiled> {
        let block = self.block_at(start)?;
        if self.follows.take() != Some(block) {
            self.chain.clear();
        }
        self.builder.switch_to_block(block);
        self.state = state;
        self.at = start;
        self.fixed = self.scales.get(&start).cloned().unwrap_or_default();
        loop {
            self.before = None;
            let at = self.at;
            let (Some(instruction), Some(how)) = (self.code.instructions.get(at), self.plan.how.get(at))
            else {
                // Past the last instruction: the run is complete.
                if self.words.is_some() {
                    return self.give_outputs();
                }
                let exit = self.exit_before();
                self.builder.ins().jump(exit, &NONE);
                return Ok(());
            };
            match how {
                How::Leave => {
                    let exit = self.exit_before();
                    self.builder.ins().jump(exit, &NONE);
                    return Ok(());
                }
                How::Move { out, from } => self.emit_move(*out, *from, instruction),
                How::Step { reads, gives, direct } => match self.borrowing_call(gives) {
                    Some(call) => self.emit_borrowing_call(instruction, call, reads)?,
                    None => self.step(instruction, None, reads, gives, *direct)?,
                },
                How::Inline { uses, .. } => {
                    if self.words.is_none() {
                        self.take_in(uses);
                    } else if !self.has_all(uses) {
                        return Ok(());
                    }
                    if self.inline(instruction, how)? {
                        return Ok(());
                    }
                }
            }
            if !matches!(how, How::Step { .. }) {
                apply(how, &mut self.state)?;
            }
            self.fixed.transfer(self.code, instruction);
            self.at += 1;
            if self.plan.blocks.contains_key(&self.at) {
                let to = self.edge(self.at)?;
                self.builder.ins().jump(to, &NONE);
                return Ok(());
            }
        }
    }

    /// Lowers an inline instruction. Returns true if it ended the block.
    #[expect(clippy::too_many_lines, reason = "one arm an instruction")]
    fn inline(&mut self, instruction: &Instruction, how: &How) -> Result<bool, NotCompiled> {
        match *instruction {
            Instruction::Call {
                op,
                out,
                args,
                expression,
            } => {
                if self.decimal_in_slots(op, register_place(out), &args)? {
                    return Ok(false);
                }
                let (result, held) = if let Some((what, kind, result)) = inline(op) {
                    self.is_proven = self.code.is_proven(expression);
                    let [first, second, ..] = args;
                    (result, self.compute(what, kind, first, second)?)
                } else {
                    self.is_proven = false;
                    self.by_function(op, &args)?
                };
                self.write_value(register_place(out), result, &held);
            }
            Instruction::Move { out, from } => {
                if let How::Inline { gives, .. } = how
                    && let [(_, kind)] = gives.as_slice()
                {
                    let held = self.operand(from, *kind)?;
                    self.write_value(register_place(out), *kind, &held);
                }
            }
            Instruction::Jump { to } => {
                let block = self.edge(to as usize)?;
                if !self.next_round(to as usize, block) {
                    self.builder.ins().jump(block, &NONE);
                }
                return Ok(true);
            }
            Instruction::JumpIfTrue { condition, to } => {
                let condition = self.one(condition, Kind::Boolean)?;
                return self.branch(how, condition, self.at + 1, to as usize, true);
            }
            Instruction::JumpIfFalse { condition, to } => {
                let condition = self.one(condition, Kind::Boolean)?;
                return self.branch(how, condition, self.at + 1, to as usize, false);
            }
            Instruction::JumpUnless {
                op,
                first,
                second,
                to,
            } => {
                let holds = self.holds(op, first, second)?;
                return self.branch(how, holds, self.at + 1, to as usize, false);
            }
            Instruction::Require { condition, .. } => {
                let condition = self.one(condition, Kind::Boolean)?;
                self.guard_unless(condition);
            }
            Instruction::RequireThat {
                op, first, second, ..
            } => {
                let holds = self.holds(op, first, second)?;
                self.guard_unless(holds);
            }
            Instruction::LoopStart { over, .. } => self.first_row(over, how)?,
            Instruction::LoopRange {
                slot,
                start,
                end,
                step,
                ..
            } => self.first_of_range(loop_place(self.code, slot), [start, end, step])?,
            Instruction::Spend => self.spend(),
            Instruction::LoopNext { slot, item, done } => {
                return self.next_of_range(
                    how,
                    loop_place(self.code, slot),
                    register_place(item),
                    done as usize,
                );
            }
            Instruction::LoopAdvance { slot, done } => {
                return self.next_of_items(how, loop_place(self.code, slot), done as usize);
            }
            Instruction::LoopField { slot, place, .. } => {
                self.field(how, loop_place(self.code, slot), place)?;
            }
            Instruction::NoteItems { slot, began, point } => {
                let rounds = self.items_taken(loop_place(self.code, slot), register_place(began))?;
                self.note_rounds(rounds, point)?;
            }
            Instruction::NoteRounds { count, point } => {
                let rounds = self.only(register_place(count), Kind::Integer)?;
                self.note_rounds(rounds, point)?;
            }
            Instruction::LoopBegan { slot, out } => {
                let loop_place = loop_place(self.code, slot);
                let kind = self.state.native(loop_place).unwrap_or(Kind::Range);
                let held = self.read_value(loop_place, kind);
                if let [_, _, left] = held.as_slice() {
                    self.write_value(register_place(out), Kind::Integer, &[*left]);
                }
            }
            Instruction::LoopLimit { count, max, .. } => self.limit(register_place(count), max)?,
            Instruction::LoopRound { count } => self.round(register_place(count))?,
            // Planned inline in frameless code alone, which takes no memory.
            Instruction::LoopMemory { .. }
            | Instruction::LoopRestore { .. }
            | Instruction::LoopRecount { .. } => {}
            // In a copy without notes.
            Instruction::Note { .. } if self.plain.is_written() => {}
            Instruction::Note { word, bit } => {
                let path = self.only(register_place(word), Kind::Integer)?;
                let bit = self.builder.ins().iconst(types::I64, 1_i64 << bit);
                let path = self.builder.ins().bor(path, bit);
                self.write_value(register_place(word), Kind::Integer, &[path]);
            }
            _ => {
                return Err(NotCompiled::new(
                    "an instruction without machine code is planned as one that has some",
                ));
            }
        }
        Ok(false)
    }

    /// Ends a block with a branch.
    fn branch(
        &mut self,
        how: &How,
        condition: Value,
        next: usize,
        to: usize,
        is_jump_if_true: bool,
    ) -> Result<bool, NotCompiled> {
        if let Some(choice) = self.choice(how, to)? {
            self.select(how, &choice, condition, is_jump_if_true)?;
            return Ok(true);
        }
        apply(how, &mut self.state)?;
        let next = self.edge(next)?;
        let to = self.edge(to)?;
        let (holds, fails) = if is_jump_if_true { (to, next) } else { (next, to) };
        self.builder.ins().brif(condition, holds, &NONE, fails, &NONE);
        Ok(true)
    }

    fn emit_move(&mut self, out: usize, from: usize, instruction: &Instruction) {
        // A value without a location is not moved; its readers give up.
        if out == from || self.is_nowhere(from) {
            return;
        }
        if let Some(kind) = self.state.native(from) {
            let held = self.read_value(from, kind);
            self.write_value(out, kind, &held);
        } else {
            self.call_site(
                Site {
                    kept: Vec::new(),
                    instruction: Some(*instruction),
                    load: None,
                    direct: false,
                    lent: None,
                    rows: None,
                    exits: None,
                },
                false,
            );
        }
    }

    fn slot_binding(&mut self, place: usize, kind: Kind) -> SlotBinding {
        let free = &mut self.side.slots;
        // A register may hold values of several kinds, so its slots fit the widest.
        let slot = *self.slots.entry(place).or_insert_with(|| {
            let slot = *free;
            *free += kind.width().max(2);
            slot
        });
        SlotBinding { place, kind, slot }
    }

    fn variable(&mut self, place: usize, kind: Kind, part: usize) -> Variable {
        let builder = &mut self.builder;
        let made = self.variables.entry((place, kind, part));
        *made.or_insert_with(|| builder.declare_var(type_of(kind)))
    }

    /// Reads the parts of a value.
    fn read_value(&mut self, place: usize, kind: Kind) -> ValueParts {
        (0..kind.width())
            .map(|part| self.read_part(place, kind, part))
            .collect()
    }

    fn read_part(&mut self, place: usize, kind: Kind, part: usize) -> Value {
        let tried = self.tried.as_ref();
        if let Some((_, value)) = tried.and_then(|tried| tried.values.get(&(place, part))) {
            return *value;
        }
        if self.in_slots {
            let kept = self.slot_binding(place, kind);
            return self.load_part(kept, part);
        }
        if let (Kind::Decimal, 1, Some(scale)) = (kind, part, self.fixed.get(place)) {
            return self.builder.ins().iconst(types::I64, i64::from(scale));
        }
        let variable = self.variable(place, kind, part);
        self.builder.use_var(variable)
    }

    fn only(&mut self, place: usize, kind: Kind) -> Result<Value, NotCompiled> {
        first_of(&self.read_value(place, kind))
    }

    fn write_value(&mut self, place: usize, kind: Kind, held: &[Value]) {
        for (part, value) in held.iter().enumerate() {
            if let Some(tried) = &mut self.tried {
                tried.values.insert((place, part), (kind, *value));
                continue;
            }
            if self.in_slots {
                let kept = self.slot_binding(place, kind);
                self.store_part(kept, part, *value);
                continue;
            }
            let variable = self.variable(place, kind, part);
            self.builder.def_var(variable, *value);
        }
    }

    /// Reads the parts of an operand.
    fn operand(&mut self, operand: Operand, kind: Kind) -> Result<ValueParts, NotCompiled> {
        if let Some(register) = operand.as_register() {
            return Ok(self.read_value(register_place(register), kind));
        }
        if kind == Kind::Text
            && let Some(text) = self.text(operand)
        {
            return Ok(vec![text]);
        }
        let value = operand.read(&self.code.constants, &[]);
        let bits = value.and_then(|value| kind.bits(value));
        let bits = bits.ok_or_else(|| NotCompiled::new("a constant has no form in machine registers"))?;
        let parts = bits.iter().take(kind.width());
        Ok(parts.map(|bits| self.constant(kind, *bits)).collect())
    }

    fn one(&mut self, operand: Operand, kind: Kind) -> Result<Value, NotCompiled> {
        first_of(&self.operand(operand, kind)?)
    }

    fn constant(&mut self, kind: Kind, bits: u64) -> Value {
        match type_of(kind) {
            types::F64 => self.builder.ins().f64const(f64::from_bits(bits)),
            ty => self.builder.ins().iconst(ty, bits.cast_signed()),
        }
    }

    /// Loads the slots of a value.
    fn load(&mut self, kept: SlotBinding) -> ValueParts {
        let held = (0..kept.kind.width())
            .map(|part| self.load_part(kept, part))
            .collect();
        if kept.kind == Kind::Range {
            self.range_with_end(held)
        } else {
            held
        }
    }

    fn load_part(&mut self, kept: SlotBinding, part: usize) -> Value {
        let (memory, offset) = (self.memory(), offset(kept.slot + part));
        let ty = type_of(kept.kind);
        self.builder.ins().load(ty, TRUSTED, memory, offset)
    }

    /// Reads the slots that a called function has filled.
    fn take_loaded(&mut self, kept: SlotBinding) {
        if !self.in_slots {
            let held = self.load(kept);
            self.write_value(kept.place, kept.kind, &held);
        }
    }

    /// Stores a value to its slots, unless it lives there.
    fn store(&mut self, kept: SlotBinding) {
        if self.in_slots {
            return;
        }
        let mut held = self.read_value(kept.place, kept.kind);
        if kept.kind == Kind::Range {
            held = self.range_with_next(held);
        }
        for (part, value) in held.into_iter().enumerate() {
            self.store_part(kept, part, value);
        }
    }

    fn store_part(&mut self, kept: SlotBinding, part: usize, value: Value) {
        let value = if kept.kind == Kind::Boolean {
            self.builder.ins().uextend(types::I64, value)
        } else {
            value
        };
        let (memory, offset) = (self.memory(), offset(kept.slot + part));
        self.builder.ins().store(TRUSTED, value, memory, offset);
    }

    /// Evaluates a comparison of two operands.
    fn holds(&mut self, op: vesper_ir::Op, first: Operand, second: Operand) -> Result<Value, NotCompiled> {
        let held = match inline(op) {
            Some((what, kind, _)) => self.compute(what, kind, first, second)?,
            None => self.by_function(op, &[first, second])?.1,
        };
        first_of(&held)
    }
}

fn first_of(held: &[Value]) -> Result<Value, NotCompiled> {
    held.first()
        .copied()
        .ok_or_else(|| NotCompiled::new("a value has no parts"))
}

fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Boolean => types::I8,
        Kind::Float => types::F64,
        _ => types::I64,
    }
}

/// Returns the byte offset of a slot.
fn offset(slot: usize) -> i32 {
    i32::try_from(slot * 8).unwrap_or(i32::MAX)
}
