//! What the compiler does with what the optimizer has found: values that are held, choices without jumps, tables.
//!
//! Without facts nothing here does anything: the traced and the pathed form are of the node as it was verified.

use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_opt::{LoopPlace, Switch, chain, known_boolean};

use crate::bytecode::JumpTable;

use super::{Compiled, Compiler, Instruction, MISSING, Operand, Register, place};

/// A table, while the chain of tests that it stands before is compiled.
pub(super) struct Table<'a> {
    switch: &'a Switch,
    place: usize,
    /// Where the test of each arm begins.
    tests: Vec<u32>,
    /// Where each arm begins behind its test.
    bodies: Vec<u32>,
}

impl<'a> Compiler<'a> {
    /// Registers for values that are held. They are nobody's temporaries.
    pub(super) fn reserve_held(&mut self) -> Compiled<()> {
        self.held = self.top;
        let places = self.facts.map_or(0, |facts| facts.places);
        for _ in 0..places {
            self.allocate()?;
            self.is_held.push(false);
        }
        Ok(())
    }

    /// The expression whose value this one has.
    pub(super) fn forwarded(&self, index: ExpressionIndex) -> ExpressionIndex {
        match self.facts {
            Some(_) => vesper_opt::forward(self.node, index),
            None => index,
        }
    }

    /// What a condition is, where the optimizer knows it.
    pub(super) fn is_known(&self, index: ExpressionIndex) -> Option<bool> {
        self.facts.and_then(|_| known_boolean(self.node, index))
    }

    /// Where the value of an expression is held; who comes to it first computes it.
    pub(super) fn held(&mut self, index: ExpressionIndex) -> Compiled<Option<Operand>> {
        let Some(number) = self.facts.and_then(|facts| facts.held.get(&index)).copied() else {
            return Ok(None);
        };
        let register = Register(self.held + number);
        let is_held = self.is_held.get_mut(number as usize).ok_or(MISSING)?;
        if !std::mem::replace(is_held, true) {
            self.compute_anew(index, register)?;
        }
        Ok(Some(Operand::register(register)))
    }

    /// What is computed before the rounds of a loop.
    pub(super) fn before(&mut self, place: LoopPlace) -> Compiled<()> {
        let found = self.facts.and_then(|facts| facts.before.get(&place));
        for index in found.into_iter().flatten() {
            self.held(*index)?;
        }
        Ok(())
    }

    /// A choice by a selection or by a table; false where it is neither.
    pub(super) fn shortcut(
        &mut self,
        index: ExpressionIndex,
        condition: ExpressionIndex,
        out: Register,
    ) -> Compiled<bool> {
        // Loops keep their branches: machine code turns them into selections by itself.
        let Some(facts) = self.facts.filter(|_| self.loop_top == 0) else {
            return Ok(false);
        };
        if facts.selects.contains(&index) {
            self.select(index, out)?;
            return Ok(true);
        }
        if facts.switches.contains_key(&condition) {
            self.chain(index, condition, out)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn select(&mut self, index: ExpressionIndex, out: Register) -> Compiled<()> {
        let node = self.node;
        let ExpressionKind::If {
            condition,
            then,
            otherwise,
        } = &node.expression(index).ok_or(MISSING)?.kind
        else {
            return Err(MISSING);
        };
        // The values first: they take no instruction, so that the comparison is still the last one.
        let (then, otherwise) = (self.operand(*then)?, self.operand(*otherwise)?);
        let top = self.top;
        let condition = self.operand(*condition)?;
        self.top = top;
        let select = match self.take_comparison(condition) {
            Some((op, first, second)) => Instruction::SelectThat {
                op,
                out,
                first,
                second,
                then,
                otherwise,
            },
            None => Instruction::Select {
                out,
                condition,
                then,
                otherwise,
            },
        };
        self.emit(select);
        Ok(())
    }

    /// A chain of choices behind a table.
    fn chain(&mut self, index: ExpressionIndex, first: ExpressionIndex, out: Register) -> Compiled<()> {
        let (arms, otherwise, _) = chain(self.node, index, usize::MAX);
        let mut table = self.begin_table(Some(first))?;
        let mut to_end = Vec::with_capacity(arms.len());
        for (condition, then) in arms {
            let top = self.top;
            self.arm_begins(&mut table)?;
            let decides = self.operand(condition)?;
            self.top = top;
            let to_next = self.jump_unless(decides);
            self.arm_is_decided(&mut table)?;
            self.compute(then, out)?;
            to_end.push(self.jump(Instruction::Jump { to: 0 }));
            self.land(to_next)?;
        }
        self.end_table(table)?;
        self.compute(otherwise, out)?;
        self.land_all(to_end)
    }

    /// The table of a chain that begins with this test, if it has one.
    pub(super) fn begin_table(&mut self, first: Option<ExpressionIndex>) -> Compiled<Option<Table<'a>>> {
        let facts = self.facts.filter(|_| self.loop_top == 0);
        let Some(switch) = facts
            .zip(first)
            .and_then(|(facts, first)| facts.switches.get(&first))
        else {
            return Ok(None);
        };
        let on = self.operand(switch.subject)?;
        let number = self.code.switches.len();
        let least = switch.cases.first().ok_or(MISSING)?.value;
        self.code.switches.push(JumpTable {
            least,
            targets: Vec::new(),
            otherwise: 0,
        });
        self.emit(Instruction::Switch {
            on,
            table: place(number)?,
        });
        Ok(Some(Table {
            switch,
            place: number,
            tests: Vec::new(),
            bodies: Vec::new(),
        }))
    }

    /// The test of the next arm begins here.
    pub(super) fn arm_begins(&mut self, table: &mut Option<Table<'_>>) -> Compiled<()> {
        if let Some(table) = table {
            self.landed = self.here()?;
            table.tests.push(self.landed);
        }
        Ok(())
    }

    /// The test of this arm has held.
    pub(super) fn arm_is_decided(&mut self, table: &mut Option<Table<'_>>) -> Compiled<()> {
        if let Some(table) = table {
            self.landed = self.here()?;
            table.bodies.push(self.landed);
        }
        Ok(())
    }

    /// What is done where no test holds begins here.
    pub(super) fn end_table(&mut self, table: Option<Table<'_>>) -> Compiled<()> {
        let Some(mut table) = table else {
            return Ok(());
        };
        self.landed = self.here()?;
        table.tests.push(self.landed);
        let otherwise = *table.tests.get(table.switch.otherwise).ok_or(MISSING)?;
        let least = table.switch.cases.first().ok_or(MISSING)?.value;
        let mut targets = Vec::new();
        for case in &table.switch.cases {
            let from = if case.is_decided {
                &table.bodies
            } else {
                &table.tests
            };
            let to = *from.get(case.arm).ok_or(MISSING)?;
            // The span of a table is small.
            let at = case
                .value
                .checked_sub(least)
                .and_then(|at| usize::try_from(at).ok());
            targets.resize(at.ok_or(MISSING)?, otherwise);
            targets.push(to);
        }
        let made = self.code.switches.get_mut(table.place).ok_or(MISSING)?;
        made.targets = targets;
        made.otherwise = otherwise;
        Ok(())
    }
}
