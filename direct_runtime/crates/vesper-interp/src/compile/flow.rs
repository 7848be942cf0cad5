//! Statements: branches, loops with state, and guards that route failures to handlers.
//!
//! A statement with handlers:
//!
//! ```text
//! start:  the statement and its blocks
//! end:    jump over the handlers
//!         handler: its body, then its value and a jump to after, or the same failure again
//! after:
//! ```
//!
//! A loop:
//!
//! ```text
//!         over, the initial state
//! next:   the next item, or a jump to done after the last one; where; while; the limit
//!         the body, collect, the next state, stop_when; jump to next
//! done:   the record of the state and the collected values
//! ```
//!
//! A parallel statement, and the rounds of a loop with `in_flight`:
//!
//! ```text
//!         fork                             next:   the next item, or a jump to done; where; the limit; fork
//!         the first member, its end                the count of rounds; jump to next
//!         the second member, its end               the body, the end of the round with the collected value
//!         join                             done:   join; the record of the collected values
//! ```

use vesper_ir::flow::{Arm, Block, Branch, Handler, Loop, NamedValue, Parallel, Statement, leaves};
use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{Type, Value};
use vesper_opt::LoopPlace;

use crate::bytecode::sites::{Entry, ErrorConversion, ForkSite, Guard, Region, Strands};

use super::loops::{Locals, Over};
use super::memory::LoopPrices;
use super::{Compiled, Compiler, Form, Instruction, MISSING, Operand, OperandList, Phase, Register, place};

/// The jumps out of the body, with targets after it.
#[derive(Default)]
pub(super) struct Exits {
    pub(super) returns: Vec<usize>,
    pub(super) raises: Vec<usize>,
}

impl Compiler<'_> {
    /// Reserves result registers. A single return without errors needs none, because the values stay where they were
    /// computed.
    pub(super) fn reserve_results(&mut self) -> Compiled<()> {
        if self.returns_once() {
            return Ok(());
        }
        for _ in &self.node.outputs {
            let register = self.allocate()?;
            self.code.returns.push(Operand::register(register));
        }
        for _ in &self.node.errors {
            let register = self.allocate()?;
            self.code.errors.push(register);
        }
        Ok(())
    }

    /// Returns true if the only return is the end of the body.
    fn returns_once(&self) -> bool {
        self.node.errors.is_empty() && returns(&self.node.body) == 1
    }

    /// Compiles the statements of the node and returns the jumps out of them.
    pub(super) fn body(&mut self, body: &Block) -> Compiled<Exits> {
        let start = self.code.instructions.len();
        self.block(body)?;
        let end = self.code.instructions.len();
        self.code.error_conversion = self.error_conversion(start, end);
        Ok(std::mem::take(&mut self.exits))
    }

    fn error_conversion(&self, start: usize, end: usize) -> Option<ErrorConversion> {
        let (first, others) = self.node.errors.split_first()?;
        let Type::Enum(codes) = &first.ty else {
            return None;
        };
        let mut message = None;
        for (place, field) in (1..).zip(others) {
            match &field.ty {
                Type::Text if &*field.name == "message" => message = Some(place),
                Type::Optional(_) => {}
                _ => return None,
            }
        }
        Some(ErrorConversion {
            start,
            end,
            codes: codes.clone(),
            message,
            to: end,
        })
    }

    /// Sets the target of raised errors and converted failures to the next instruction.
    pub(super) fn end_errors(&mut self) -> Compiled<()> {
        let here = self.here()? as usize;
        if let Some(error_conversion) = &mut self.code.error_conversion {
            error_conversion.to = here;
        }
        Ok(())
    }

    /// Compiles a block. Its steps keep their registers until the caller resets `top`.
    fn block(&mut self, block: &[Statement]) -> Compiled<()> {
        for statement in block {
            self.statement(statement)?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Compiled<()> {
        match statement {
            Statement::Step {
                name,
                value,
                handlers,
            } => {
                let step = self.step(*value, handlers)?;
                self.define_step(name, step)
            }
            Statement::Return { success } => self.compile_return(success),
            Statement::Raise { error } => self.compile_raise(error),
            Statement::Require { holds } => {
                let number = self.requires;
                self.requires += 1;
                self.clause(Phase::Validation, number, *holds)
            }
            Statement::Branch(branch) => self.branch(branch),
            Statement::Loop(repeated) => self.compile_loop(repeated),
            Statement::Parallel(parallel) => self.parallel(parallel),
            Statement::Request(request) => {
                let out = self.allocate()?;
                let start = self.code.instructions.len();
                self.request(request, out)?;
                self.handlers(start, &request.handlers, Some(out))?;
                self.define_step(&request.name, Operand::register(out))
            }
            Statement::Call(call) => {
                let out = self.allocate()?;
                let start = self.code.instructions.len();
                self.call_node(call, out)?;
                self.handlers(start, &call.handlers, Some(out))?;
                self.define_step(&call.name, Operand::register(out))
            }
        }
    }

    /// Makes a step visible to the following statements.
    fn define_step(&mut self, name: &str, value: Operand) -> Compiled<()> {
        let step = self.node.step_place(name).ok_or(MISSING)?;
        *self.steps.get_mut(step).ok_or(MISSING)? = Some(value);
        Ok(())
    }

    fn step(&mut self, value: ExpressionIndex, handlers: &[Handler]) -> Compiled<Operand> {
        let kind = &self.node.expression(value).ok_or(MISSING)?.kind;
        // Loop state changes after `next`, but the step must not, so it is copied.
        if handlers.is_empty() && !matches!(kind, ExpressionKind::Local(_)) {
            let operand = self.compute_kept(value)?;
            self.mark(value, operand);
            return Ok(operand);
        }
        let out = self.allocate()?;
        let start = self.code.instructions.len();
        self.compute_marked(value, out)?;
        self.handlers(start, handlers, Some(out))?;
        Ok(Operand::register(out))
    }

    fn compute_marked(&mut self, value: ExpressionIndex, out: Register) -> Compiled<()> {
        self.compute(value, out)?;
        self.mark(value, Operand::register(out));
        Ok(())
    }

    /// Compiles the handlers of the code since `start`. Their values go to the register of the statement. Returns the
    /// ends of the handlers that have one.
    fn handlers(
        &mut self,
        start: usize,
        handlers: &[Handler],
        out: Option<Register>,
    ) -> Compiled<Vec<usize>> {
        let end = self.code.instructions.len();
        if handlers.is_empty() {
            return Ok(Vec::new());
        }
        let mut ends = Vec::with_capacity(handlers.len());
        let mut to_after = vec![self.jump(Instruction::Jump { to: 0 })];
        let mut entries = Vec::with_capacity(handlers.len());
        let slot = self.handlers;
        // Handlers nest with blocks, whose depth is limited.
        self.handlers += 1;
        self.code.failures = self.code.failures.max(self.handlers as usize);
        for handler in handlers {
            let top = self.top;
            let at = self.here()? as usize;
            let outer = self.enter_handler(handler)?;
            self.block(&handler.body)?;
            if let Some(value) = handler.value {
                self.compute_marked(value, out.ok_or(MISSING)?)?;
                to_after.push(self.jump(Instruction::Jump { to: 0 }));
            } else if !leaves(&handler.body) {
                self.emit(Instruction::FailAgain { slot });
            }
            ends.push((handler, handler.value.map(|_| self.region())));
            self.leave(outer);
            self.top = top;
            let codes = handler.codes.clone();
            entries.push(Entry { codes, at, slot });
        }
        self.handlers = slot;
        // Guards of inner statements were added before, so a failure finds them first.
        self.code.guards.push(Guard {
            start,
            end,
            handlers: entries,
        });
        self.land_all(to_after)?;
        self.continue_after_handlers(&ends)?;
        Ok(ends.into_iter().filter_map(|(_, end)| end).collect())
    }

    fn compile_return(&mut self, success: &[NamedValue]) -> Compiled<()> {
        if self.returns_once() {
            for (_, value) in success {
                let value = self.compute_kept(*value)?;
                self.code.returns.push(value);
            }
            return Ok(());
        }
        for (place, (_, value)) in success.iter().enumerate() {
            let out = self.code.returns.get(place).and_then(|out| out.as_register());
            self.compute(*value, out.ok_or(MISSING)?)?;
        }
        let errors = self.code.errors.clone();
        self.clear(errors)?;
        let exit = self.jump(Instruction::Jump { to: 0 });
        self.exits.returns.push(exit);
        Ok(())
    }

    fn compile_raise(&mut self, error: &[NamedValue]) -> Compiled<()> {
        for (place, (_, value)) in error.iter().enumerate() {
            let out = *self.code.errors.get(place).ok_or(MISSING)?;
            self.compute(*value, out)?;
        }
        let outputs = self.code.returns.iter().filter_map(|output| output.as_register());
        let outputs = outputs.collect();
        self.clear(outputs)?;
        self.emit(Instruction::EndWithError);
        let exit = self.jump(Instruction::Jump { to: 0 });
        self.exits.raises.push(exit);
        Ok(())
    }

    /// Sets registers to null, for the invariants.
    fn clear(&mut self, registers: Vec<Register>) -> Compiled<()> {
        if self.node.invariants.is_empty() || registers.is_empty() {
            return Ok(());
        }
        let from = self.constant(Value::Null)?;
        for out in registers {
            self.emit(Instruction::Move { out, from });
        }
        Ok(())
    }

    fn branch(&mut self, branch: &Branch) -> Compiled<()> {
        let values = branch.arms.iter().map(|arm| arm.value);
        let has_value = values
            .chain([branch.otherwise_value])
            .any(|value| value.is_some());
        let out = if has_value { Some(self.allocate()?) } else { None };
        let start = self.code.instructions.len();
        let mut to_end = Vec::with_capacity(branch.arms.len());
        let mut ends = Vec::new();
        let around = self.region();
        let mut table = self.begin_table(branch.arms.first().map(|arm| arm.when))?;
        for Arm { when, body, value } in &branch.arms {
            if self.is_known(*when) == Some(false) {
                // The arm is unreachable, but `require` statements are numbered by source order.
                self.requires += requires(body);
                self.begin_arm(&mut table)?;
                self.mark_arm_decided(&mut table)?;
                continue;
            }
            let top = self.top;
            self.begin_arm(&mut table)?;
            let condition = self.operand(*when)?;
            self.mark(*when, condition);
            self.top = top;
            let to_next = self.jump_unless(condition);
            self.mark_arm_decided(&mut table)?;
            let outer = self.enter_side(*when, true)?;
            self.arm(body, *value, out)?;
            if !leaves(body) {
                ends.push(self.region());
            }
            self.leave(outer);
            to_end.push(self.jump(Instruction::Jump { to: 0 }));
            self.land(to_next)?;
            self.enter_side(*when, false)?;
        }
        self.end_table(table)?;
        self.arm(&branch.otherwise, branch.otherwise_value, out)?;
        if !leaves(&branch.otherwise) {
            ends.push(self.region());
        }
        self.leave(around);
        self.land_all(to_end)?;
        ends.extend(self.handlers(start, &branch.handlers, out)?);
        self.continue_after(ends);
        match out {
            Some(out) => self.define_step(&branch.name, Operand::register(out)),
            None => Ok(()),
        }
    }

    fn arm(&mut self, body: &Block, value: Option<ExpressionIndex>, out: Option<Register>) -> Compiled<()> {
        let top = self.top;
        self.block(body)?;
        if let Some(value) = value {
            self.compute_marked(value, out.ok_or(MISSING)?)?;
        }
        self.top = top;
        Ok(())
    }

    /// Compiles a parallel statement: its members one after the other, each in registers of its own.
    fn parallel(&mut self, parallel: &Parallel) -> Compiled<()> {
        let start = self.code.instructions.len();
        let site = self.code.forks.len();
        self.emit(Instruction::Fork { site: place(site)? });
        // Inner statements add their sites after this one.
        self.code.forks.push(ForkSite {
            start,
            strands: Strands::Members(Vec::new()),
            join: 0,
        });
        let (around, held) = (self.region(), self.is_held.clone());
        let mut members = Vec::with_capacity(parallel.members.len());
        for member in &parallel.members {
            let (first, begin) = (self.top, self.code.instructions.len());
            self.landed = self.here()?;
            self.block(member)?;
            self.emit(Instruction::EndMember);
            members.push(Region {
                start: begin,
                end: self.code.instructions.len(),
                results: first as usize..self.top as usize,
            });
            self.leave(around);
            self.is_held.clone_from(&held);
        }
        let join = self.code.instructions.len();
        self.emit(Instruction::Join);
        self.landed = self.here()?;
        let fork = self.code.forks.get_mut(site).ok_or(MISSING)?;
        (fork.strands, fork.join) = (Strands::Members(members), join);
        self.handlers(start, &parallel.handlers, None)?;
        Ok(())
    }

    /// Compiles the rounds of a loop as strands, after the code that begins one. Returns the site of the fork.
    fn rounds_in_flight(
        &mut self,
        repeated: &Loop,
        (slot, count, next): (super::LoopSlot, Register, u32),
        in_flight: usize,
        prices: LoopPrices,
    ) -> Compiled<usize> {
        let site = self.code.forks.len();
        self.emit(Instruction::Fork { site: place(site)? });
        self.emit(Instruction::LoopRound { count });
        self.emit(Instruction::Jump { to: next });
        let collect = repeated.collect.ok_or(MISSING)?;
        let start = self.code.instructions.len();
        self.landed = self.here()?;
        self.code.forks.push(ForkSite {
            start: next as usize,
            strands: Strands::Members(Vec::new()),
            join: 0,
        });
        self.block(&repeated.body)?;
        let value = self.operand(collect)?;
        self.mark(collect, value);
        let price = self.price(prices.collected.ok_or(MISSING)?)?;
        self.emit(Instruction::EndRound { value, price });
        let body = Region {
            start,
            end: self.code.instructions.len(),
            results: 0..0,
        };
        let fork = self.code.forks.get_mut(site).ok_or(MISSING)?;
        fork.strands = Strands::Rounds {
            body,
            in_flight,
            slot,
            collect,
        };
        Ok(site)
    }

    fn compile_loop(&mut self, repeated: &Loop) -> Compiled<()> {
        let out = self.allocate()?;
        let start = self.code.instructions.len();
        let (top, loop_top) = (self.top, self.loop_top);
        let slot = self.enter_loop();

        let over = match repeated.over {
            Some(over) => self.collection(over)?,
            None => Over::Value(self.constant(Value::Null)?),
        };
        self.start_loop(slot, over);
        self.top = top;
        let mut state = Vec::with_capacity(repeated.state.len() + 1);
        for variable in &repeated.state {
            let register = self.allocate()?;
            self.compute(variable.value, register)?;
            state.push(register);
        }
        let count = self.allocate()?;
        let from = self.constant(Value::Integer(0))?;
        self.emit(Instruction::Move { out: count, from });
        for (variable, register) in repeated.state.iter().zip(&state) {
            let local = self.node.loop_local(variable.local).ok_or(MISSING)?;
            self.bind(local, Some(Operand::register(*register)))?;
        }

        let prices = self.memory.loops.get(&repeated.name).cloned().ok_or(MISSING)?;
        let restores = prices.takes_memory && prices.state.is_empty();
        if restores || repeated.collect.is_some() || !prices.state.is_empty() {
            self.emit(Instruction::LoopMemory { slot });
        }
        let step = self.node.step_place(&repeated.name).ok_or(MISSING)?;
        self.compute_before_loop(LoopPlace::Statement(step))?;
        let points = self.points_of_loop(repeated)?;
        let around = self.region();
        let next = self.here()?;
        let mut to_done = Vec::new();
        if repeated.over.is_some() {
            let mut locals = repeated.locals.iter().map(|number| self.node.loop_local(*number));
            let item = locals.next().flatten().ok_or(MISSING)?;
            let entry_value = locals.next().flatten();
            let locals = Locals {
                item,
                entry_value,
                so_far: None,
            };
            to_done.push(self.next_item(slot, locals)?);
        }
        if restores {
            self.emit(Instruction::LoopRestore { slot });
        }
        let to_end_of_while = self.begin_round(repeated, points, next)?;
        self.emit(Instruction::LoopLimit {
            count,
            max: u32::try_from(repeated.max).unwrap_or(u32::MAX),
            expression: repeated.condition.or(repeated.over).ok_or(MISSING)?,
        });
        if repeated.over.is_none() {
            self.emit(Instruction::Spend);
        }
        self.rounds.push(count);
        let fork = if let Some(in_flight) = repeated.in_flight {
            Some(self.rounds_in_flight(repeated, (slot, count, next), in_flight, prices)?)
        } else {
            self.round(repeated, &state, slot, prices)?;
            None
        };
        self.rounds.pop();
        if fork.is_none() {
            self.emit(Instruction::LoopRound { count });
            to_done.extend(self.end_round(repeated, next)?);
        }
        self.leave(around);
        if let Some((index, jump)) = to_end_of_while {
            self.land(jump)?;
            self.note_side(index, false)?;
        }
        self.land_all(to_done)?;
        if let Some(site) = fork {
            let join = self.code.instructions.len();
            self.code.forks.get_mut(site).ok_or(MISSING)?.join = join;
            self.emit(Instruction::Join);
        }
        if restores {
            self.emit(Instruction::LoopRestore { slot });
        }
        self.end_loop(next)?;
        if let Some(point) = points {
            self.emit(Instruction::NoteRounds { count, point });
        }
        if repeated.collect.is_some() {
            let collected = self.allocate()?;
            self.emit(Instruction::LoopArray { slot, out: collected });
            state.push(collected);
        }
        self.record(&state, out)?;
        self.top = top;
        self.loop_top = loop_top;
        let ends = self.handlers(start, &repeated.handlers, Some(out))?;
        self.continue_after_loop(points, ends);
        self.define_step(&repeated.name, Operand::register(out))
    }

    /// Emits a record whose fields are these registers.
    fn record(&mut self, registers: &[Register], out: Register) -> Compiled<()> {
        let fields = OperandList {
            start: place(self.code.operands.len())?,
            length: place(registers.len())?,
        };
        let operands = registers.iter().copied().map(Operand::register);
        self.code.operands.extend(operands);
        self.emit(Instruction::Record { out, fields });
        Ok(())
    }

    /// Compiles the conditions of a round. Returns the `while` condition and its jump, if there is one.
    fn begin_round(
        &mut self,
        repeated: &Loop,
        points: Option<u32>,
        next: u32,
    ) -> Compiled<Option<(ExpressionIndex, usize)>> {
        // Rounds are counted after these conditions, so their own points record whether they were evaluated.
        if let Some(filter) = repeated.filter {
            self.enter_sides(filter, &[false, true])?;
            let condition = self.condition(filter)?;
            self.emit_filter(filter, condition, next)?;
            self.enter_sides(filter, &[true])?;
        }
        let mut to_end = None;
        if let Some(index) = repeated.condition {
            self.enter_sides(index, &[false, true])?;
            let condition = self.condition(index)?;
            to_end = Some((index, self.jump_unless(condition)));
            self.enter_side(index, true)?;
        }
        if repeated.filter.is_none() && repeated.condition.is_none() {
            self.enter_round(points);
        }
        Ok(to_end)
    }

    /// Compiles the end of a round and the jump to the next one. Returns the jump to the end of the loop, if there is
    /// one.
    fn end_round(&mut self, repeated: &Loop, next: u32) -> Compiled<Option<usize>> {
        let Some(stop_when) = repeated.stop_when else {
            self.emit(Instruction::Jump { to: next });
            return Ok(None);
        };
        let condition = self.condition(stop_when)?;
        let to_stop = self.jump(Instruction::JumpIfTrue { condition, to: 0 });
        if !matches!(self.form, Form::Pathed(_)) {
            self.emit(Instruction::Jump { to: next });
            return Ok(Some(to_stop));
        }
        self.note_side(stop_when, false)?;
        self.emit(Instruction::Jump { to: next });
        self.land(to_stop)?;
        self.note_side(stop_when, true)?;
        // The note of a false `while` follows, if there is one.
        let has_while = repeated.condition.is_some();
        Ok(has_while.then(|| self.jump(Instruction::Jump { to: 0 })))
    }

    /// Computes a condition and frees its temporaries.
    fn condition(&mut self, index: ExpressionIndex) -> Compiled<Operand> {
        let top = self.top;
        let condition = self.operand(index)?;
        self.mark(index, condition);
        self.top = top;
        Ok(condition)
    }

    /// Compiles the body of a loop, its collected value and the next state. Steps keep their registers for
    /// `stop_when`.
    fn round(
        &mut self,
        repeated: &Loop,
        state: &[Register],
        slot: super::LoopSlot,
        prices: LoopPrices,
    ) -> Compiled<()> {
        self.block(&repeated.body)?;
        let top = self.top;
        if let Some(collect) = repeated.collect {
            let value = self.operand(collect)?;
            self.mark(collect, value);
            // At most one item per round, and rounds never exceed the maximum length of an array.
            let price = self.price(prices.collected.ok_or(MISSING)?)?;
            self.emit(Instruction::LoopPush {
                slot,
                value,
                expression: collect,
                price,
            });
            self.top = top;
        }
        let mut moves = Vec::with_capacity(repeated.next.len());
        for (number, value) in &repeated.next {
            let mut variables = repeated.state.iter().zip(state);
            let found = variables.find(|(variable, _)| variable.local == *number);
            let (_, register) = found.ok_or(MISSING)?;
            // All next values are computed from the old state, so parts of it are copied too.
            let from = self.allocate()?;
            self.compute_marked(*value, from)?;
            moves.push((*register, from));
        }
        for (out, from) in moves {
            let from = Operand::register(from);
            self.emit(Instruction::Move { out, from });
        }
        if !prices.state.is_empty() {
            let variables: Vec<_> = state.iter().copied().map(Operand::register).collect();
            self.recount(slot, &variables, prices.state)?;
        }
        self.top = top;
        Ok(())
    }
}

/// Counts the `return` statements.
fn returns(block: &[Statement]) -> usize {
    let each = block.iter().map(|statement| {
        let own = usize::from(matches!(statement, Statement::Return { .. }));
        own + statement.blocks().map(|block| returns(block)).sum::<usize>()
    });
    each.sum()
}

/// Counts the `require` statements.
fn requires(block: &[Statement]) -> u32 {
    let each = block.iter().map(|statement| {
        let own = u32::from(matches!(statement, Statement::Require { .. }));
        own + statement.blocks().map(|block| requires(block)).sum::<u32>()
    });
    each.sum()
}
