//! Notes of the points that a run passes, and of what is read on the way; in the pathed form only.

use vesper_ir::flow::{Handler, Loop};
use vesper_ir::node::{ExpressionIndex, ExpressionKind};

use crate::bytecode::PathOfCode;
use crate::inputs::reads::{EntryCondition, Reads, Source};
use crate::observe::path::Points;

use super::{Compiled, Compiler, Form, Instruction, LoopSlot, MISSING, Operand, Register, place};

impl<'a> Compiler<'a> {
    fn points(&self) -> Option<&'a Points> {
        match self.form {
            Form::Pathed(points) => Some(points),
            Form::Plain | Form::Traced => None,
        }
    }

    /// Registers for the words of the path.
    pub(super) fn reserve_path(&mut self) -> Compiled<()> {
        let Some(points) = self.points() else {
            return Ok(());
        };
        let (first, words) = (Register(self.top), points.words());
        for _ in 0..words {
            self.allocate()?;
        }
        self.code.path = Some(PathOfCode {
            first,
            words,
            reads: Reads::new(),
        });
        Ok(())
    }

    fn note(&mut self, point: u32) {
        if let Some(path) = &self.code.path {
            let (word, bit) = path.place(point);
            self.emit(Instruction::Note { word, bit });
        }
    }

    /// The point at which a condition was this.
    fn side_point(&self, condition: ExpressionIndex, outcome: bool) -> Compiled<Option<u32>> {
        let Some(points) = self.points() else {
            return Ok(None);
        };
        let was_false = points.condition(condition).ok_or(MISSING)?;
        Ok(Some(was_false + u32::from(outcome)))
    }

    /// A condition was this; what follows is run only then, until `leave` is given what this gives.
    pub(super) fn enter_side(&mut self, condition: ExpressionIndex, outcome: bool) -> Compiled<usize> {
        self.note_side(condition, outcome)?;
        self.enter_sides(condition, &[outcome])
    }

    /// Notes that a condition was this.
    pub(super) fn note_side(&mut self, condition: ExpressionIndex, outcome: bool) -> Compiled<()> {
        if let Some(point) = self.side_point(condition, outcome)? {
            self.note(point);
        }
        Ok(())
    }

    /// What follows is run where the condition was one of these.
    pub(super) fn enter_sides(&mut self, condition: ExpressionIndex, outcomes: &[bool]) -> Compiled<usize> {
        let mut any_of = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            any_of.extend(self.side_point(condition, *outcome)?.map(EntryCondition::Point));
        }
        Ok(self.enter(any_of))
    }

    /// What follows is run where it is come to in one of these ways.
    pub(super) fn enter(&mut self, any_of: Vec<EntryCondition>) -> usize {
        match &mut self.code.path {
            Some(path) => path.reads.enter(any_of),
            None => 0,
        }
    }

    /// What follows is run in the rounds of a loop with this first point.
    pub(super) fn enter_round(&mut self, first: Option<u32>) -> usize {
        match (&mut self.code.path, first) {
            (Some(path), Some(first)) => path.reads.enter_round(first),
            _ => self.region(),
        }
    }

    /// What follows is run as what came before `enter` was.
    pub(super) fn leave(&mut self, outer: usize) {
        if let Some(path) = &mut self.code.path {
            path.reads.leave(outer);
        }
    }

    /// Where what is compiled now is run.
    pub(super) fn region(&self) -> usize {
        self.code.path.as_ref().map_or(0, |path| path.reads.current())
    }

    /// Remembers that an expression of this kind is read here, if it is from outside.
    pub(super) fn read(&mut self, kind: &ExpressionKind) -> Compiled<()> {
        let source = match kind {
            ExpressionKind::Input(input) => Source::Input(place(*input)?),
            ExpressionKind::Now => Source::Now,
            _ => return Ok(()),
        };
        self.read_source(source);
        Ok(())
    }

    pub(super) fn read_source(&mut self, source: Source) {
        let at = self.code.instructions.len();
        if let Some(path) = &mut self.code.path {
            path.reads.add(at, source);
        }
    }

    /// The postconditions are what was compiled since `start`.
    pub(super) fn record_postconditions(&mut self, start: usize) {
        let end = self.code.instructions.len();
        if let Some(path) = &mut self.code.path {
            path.reads.set_postconditions(start, end);
        }
    }

    /// A handler begins.
    pub(super) fn enter_handler(&mut self, handler: &Handler) -> Compiled<usize> {
        let Some(points) = self.points() else {
            return Ok(0);
        };
        let point = points.handler(handler).ok_or(MISSING)?;
        self.note(point);
        Ok(self.enter(vec![EntryCondition::Point(point)]))
    }

    /// What follows comes behind these handlers, where they ran: each with where its end is, if it goes on here.
    pub(super) fn continue_after_handlers(&mut self, handlers: &[(&Handler, Option<usize>)]) -> Compiled<()> {
        let Some(points) = self.points() else {
            return Ok(());
        };
        // In a loop, what follows may have been run in an earlier round.
        if !self.rounds.is_empty() || handlers.is_empty() {
            return Ok(());
        }
        let mut after = Vec::with_capacity(handlers.len());
        for (handler, end) in handlers {
            after.push((points.handler(handler).ok_or(MISSING)?, *end));
        }
        if let Some(path) = &mut self.code.path {
            path.reads.continue_after(after);
        }
        Ok(())
    }

    /// What follows comes behind a loop that has ended, or behind one of these pieces of code.
    pub(super) fn continue_after_loop(&mut self, first: Option<u32>, ends: Vec<usize>) {
        if let Some(first) = first {
            let classes = (first..first + 3).map(EntryCondition::Point);
            self.enter(
                classes
                    .chain(ends.into_iter().map(EntryCondition::After))
                    .collect(),
            );
        }
    }

    /// What follows comes behind one of these pieces of code.
    pub(super) fn continue_after(&mut self, ends: Vec<usize>) {
        self.enter(ends.into_iter().map(EntryCondition::After).collect());
    }

    /// A called node that uses `now` reads it.
    pub(super) fn read_now_of(&mut self, callee: usize) {
        if self.points().is_some_and(|points| points.callee_uses_now(callee)) {
            self.read_source(Source::Now);
        }
    }

    /// The first point of a `for`.
    pub(super) fn points_of_comprehension(&self, index: ExpressionIndex) -> Compiled<Option<u32>> {
        match self.points() {
            Some(points) => points.comprehension(index).ok_or(MISSING).map(Some),
            None => Ok(None),
        }
    }

    /// The first point of a loop.
    pub(super) fn points_of_repeated(&self, repeated: &Loop) -> Compiled<Option<u32>> {
        match self.points() {
            Some(points) => points.loop_statement(repeated).ok_or(MISSING).map(Some),
            None => Ok(None),
        }
    }

    /// Remembers how many items a loop has before it that was just started.
    pub(super) fn count_items(&mut self, slot: LoopSlot) -> Compiled<Option<Register>> {
        if self.points().is_none() {
            return Ok(None);
        }
        let out = self.allocate()?;
        self.emit(Instruction::LoopBegan { slot, out });
        Ok(Some(out))
    }

    /// The jump back to the head for what a condition that was just computed does not let through.
    pub(super) fn emit_filter(
        &mut self,
        index: ExpressionIndex,
        condition: Operand,
        next: u32,
    ) -> Compiled<()> {
        if self.points().is_none() {
            self.emit(Instruction::JumpIfFalse { condition, to: next });
            return Ok(());
        }
        let to_round = self.jump(Instruction::JumpIfTrue { condition, to: 0 });
        self.note_side(index, false)?;
        self.emit(Instruction::Jump { to: next });
        self.land(to_round)?;
        self.note_side(index, true)
    }

    /// Records for the path that the loop with this head ends here.
    pub(super) fn end_loop(&mut self, head: u32) -> Compiled<()> {
        let here = self.here()? as usize;
        if let Some(path) = &mut self.code.path {
            path.reads.add_loop(head as usize, here);
        }
        Ok(())
    }
}
