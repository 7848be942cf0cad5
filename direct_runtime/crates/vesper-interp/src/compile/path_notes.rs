//! Notes of passed points and of values read, for the pathed form.

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

    /// Reserves registers for the words of the path.
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

    /// Returns the point of a condition with this outcome.
    fn side_point(&self, condition: ExpressionIndex, outcome: bool) -> Compiled<Option<u32>> {
        let Some(points) = self.points() else {
            return Ok(None);
        };
        let was_false = points.condition(condition).ok_or(MISSING)?;
        Ok(Some(was_false + u32::from(outcome)))
    }

    /// Notes the outcome of a condition and enters the region that runs only then. Returns the argument for `leave`.
    pub(super) fn enter_side(&mut self, condition: ExpressionIndex, outcome: bool) -> Compiled<usize> {
        self.note_side(condition, outcome)?;
        self.enter_sides(condition, &[outcome])
    }

    /// Notes the outcome of a condition.
    pub(super) fn note_side(&mut self, condition: ExpressionIndex, outcome: bool) -> Compiled<()> {
        if let Some(point) = self.side_point(condition, outcome)? {
            self.note(point);
        }
        Ok(())
    }

    /// Enters a region that runs if the condition had one of these outcomes.
    pub(super) fn enter_sides(&mut self, condition: ExpressionIndex, outcomes: &[bool]) -> Compiled<usize> {
        let mut any_of = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            any_of.extend(self.side_point(condition, *outcome)?.map(EntryCondition::Point));
        }
        Ok(self.enter(any_of))
    }

    /// Enters a region that runs if one of these conditions holds.
    pub(super) fn enter(&mut self, any_of: Vec<EntryCondition>) -> usize {
        match &mut self.code.path {
            Some(path) => path.reads.enter(any_of),
            None => 0,
        }
    }

    /// Enters a region that runs in the rounds of the loop with this first point.
    pub(super) fn enter_round(&mut self, first: Option<u32>) -> usize {
        match (&mut self.code.path, first) {
            (Some(path), Some(first)) => path.reads.enter_round(first),
            _ => self.region(),
        }
    }

    /// Returns to the region before `enter`.
    pub(super) fn leave(&mut self, outer: usize) {
        if let Some(path) = &mut self.code.path {
            path.reads.leave(outer);
        }
    }

    /// Returns the current region.
    pub(super) fn region(&self) -> usize {
        self.code.path.as_ref().map_or(0, |path| path.reads.current())
    }

    /// Records a read of an input or of `now`.
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

    /// Records the instructions since `start` as postconditions.
    pub(super) fn record_postconditions(&mut self, start: usize) {
        let end = self.code.instructions.len();
        if let Some(path) = &mut self.code.path {
            path.reads.set_postconditions(start, end);
        }
    }

    /// Notes a handler and enters its region.
    pub(super) fn enter_handler(&mut self, handler: &Handler) -> Compiled<usize> {
        let Some(points) = self.points() else {
            return Ok(0);
        };
        let point = points.handler(handler).ok_or(MISSING)?;
        self.note(point);
        Ok(self.enter(vec![EntryCondition::Point(point)]))
    }

    /// Enters the region after these handlers. Each has the end of its region if it continues here.
    pub(super) fn continue_after_handlers(&mut self, handlers: &[(&Handler, Option<usize>)]) -> Compiled<()> {
        let Some(points) = self.points() else {
            return Ok(());
        };
        // In a loop the code may have run in an earlier round.
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

    /// Enters the region after a loop that has ended, or after one of these regions.
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

    /// Enters the region after one of these regions.
    pub(super) fn continue_after(&mut self, ends: Vec<usize>) {
        self.enter(ends.into_iter().map(EntryCondition::After).collect());
    }

    /// Records that a called node reads `now`.
    pub(super) fn read_now_of(&mut self, callee: usize) {
        if self.points().is_some_and(|points| points.callee_uses_now(callee)) {
            self.read_source(Source::Now);
        }
    }

    /// Returns the first point of a `for`.
    pub(super) fn points_of_comprehension(&self, index: ExpressionIndex) -> Compiled<Option<u32>> {
        match self.points() {
            Some(points) => points.comprehension(index).ok_or(MISSING).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the first point of a loop.
    pub(super) fn points_of_loop(&self, repeated: &Loop) -> Compiled<Option<u32>> {
        match self.points() {
            Some(points) => points.loop_statement(repeated).ok_or(MISSING).map(Some),
            None => Ok(None),
        }
    }

    /// Stores the item count of a loop that was just started.
    pub(super) fn count_items(&mut self, slot: LoopSlot) -> Compiled<Option<Register>> {
        if self.points().is_none() {
            return Ok(None);
        }
        let out = self.allocate()?;
        self.emit(Instruction::LoopBegan { slot, out });
        Ok(Some(out))
    }

    /// Emits the jump back to the head for items that a filter rejects.
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

    /// Records the end of the loop with this head.
    pub(super) fn end_loop(&mut self, head: u32) -> Compiled<()> {
        let here = self.here()? as usize;
        if let Some(path) = &mut self.code.path {
            path.reads.add_loop(head as usize, here);
        }
        Ok(())
    }
}
