//! Code from findings of the optimizer: held values, choices without jumps, and jump tables.
//!
//! Without facts these functions do nothing: the traced and pathed forms compile the node as verified.

use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_opt::{LoopPlace, Switch, chain, known_boolean};

use crate::bytecode::JumpTable;

use super::{Compiled, Compiler, Instruction, MISSING, Operand, Register, place};

/// A jump table under compilation, with the chain of tests behind it.
pub(super) struct Table<'a> {
    switch: &'a Switch,
    place: usize,
    /// The first instruction of each arm's test.
    tests: Vec<u32>,
    /// The first instruction of each arm after its test.
    bodies: Vec<u32>,
}

impl<'a> Compiler<'a> {
    /// Reserves registers for held values, which no temporary uses.
    pub(super) fn reserve_held(&mut self) -> Compiled<()> {
        self.held = self.top;
        let places = self.facts.map_or(0, |facts| facts.places);
        for _ in 0..places {
            self.allocate()?;
            self.is_held.push(false);
        }
        Ok(())
    }

    /// Returns the expression that computes the value of this one.
    pub(super) fn resolve(&self, index: ExpressionIndex) -> ExpressionIndex {
        match self.facts {
            Some(_) => vesper_opt::forward(self.node, index),
            None => index,
        }
    }

    /// Returns the value of a condition that the optimizer knows.
    pub(super) fn is_known(&self, index: ExpressionIndex) -> Option<bool> {
        self.facts.and_then(|_| known_boolean(self.node, index))
    }

    /// Returns the operand of a held value, and computes it at the first use.
    pub(super) fn held_operand(&mut self, index: ExpressionIndex) -> Compiled<Option<Operand>> {
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

    /// Computes the values that are held across the rounds of a loop.
    pub(super) fn compute_before_loop(&mut self, place: LoopPlace) -> Compiled<()> {
        let found = self.facts.and_then(|facts| facts.before.get(&place));
        for index in found.into_iter().flatten() {
            self.held_operand(*index)?;
        }
        Ok(())
    }

    /// Compiles a choice as a selection or a table. Returns false if it is neither.
    pub(super) fn shortcut(
        &mut self,
        index: ExpressionIndex,
        condition: ExpressionIndex,
        out: Register,
    ) -> Compiled<bool> {
        // Loops keep branches, which machine code turns into selections itself.
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
        // The values first: they emit no instruction, so the comparison stays the last one.
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

    /// Compiles a chain of choices behind a jump table.
    fn chain(&mut self, index: ExpressionIndex, first: ExpressionIndex, out: Register) -> Compiled<()> {
        let (arms, otherwise, _) = chain(self.node, index, usize::MAX);
        let mut table = self.begin_table(Some(first))?;
        let mut to_end = Vec::with_capacity(arms.len());
        for (condition, then) in arms {
            let top = self.top;
            self.begin_arm(&mut table)?;
            let decides = self.operand(condition)?;
            self.top = top;
            let to_next = self.jump_unless(decides);
            self.mark_arm_decided(&mut table)?;
            self.compute(then, out)?;
            to_end.push(self.jump(Instruction::Jump { to: 0 }));
            self.land(to_next)?;
        }
        self.end_table(table)?;
        self.compute(otherwise, out)?;
        self.land_all(to_end)
    }

    /// Starts the table of a chain that begins with this test, if it has one.
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

    /// Records the start of the next arm's test.
    pub(super) fn begin_arm(&mut self, table: &mut Option<Table<'_>>) -> Compiled<()> {
        if let Some(table) = table {
            self.landed = self.here()?;
            table.tests.push(self.landed);
        }
        Ok(())
    }

    /// Records the start of an arm after its test.
    pub(super) fn mark_arm_decided(&mut self, table: &mut Option<Table<'_>>) -> Compiled<()> {
        if let Some(table) = table {
            self.landed = self.here()?;
            table.bodies.push(self.landed);
        }
        Ok(())
    }

    /// Records the start of the default arm and fills the table.
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
            // The optimizer bounds the span of a table.
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
