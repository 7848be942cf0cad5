//! Loops through ranges, counted loops, and the fuel that rounds take.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, types};
use vesper_ir::planted;

use super::{How, Kind, Lower, NONE, NotCompiled, TRUSTED, apply, offset, type_of};

impl Lower<'_, '_> {
    /// Takes one unit of fuel, or leaves the code before the instruction at hand where there is none to be had.
    pub(super) fn spend(&mut self) {
        self.have_fuel();
        self.take_fuel();
    }

    /// Leaves the code before the instruction at hand where there is no fuel to be had.
    pub(super) fn have_fuel(&mut self) {
        let is_forced = self.is_forced();
        let exit = self.exit_before();
        if is_forced {
            let next = self.builder.create_block();
            let never = self.builder.ins().iconst(types::I8, 0);
            self.builder.ins().brif(never, next, &NONE, exit, &NONE);
            self.builder.switch_to_block(next);
        }
        let next = self.builder.create_block();
        let fuel = self.builder.use_var(self.fuel);
        if self.words.is_some() {
            self.builder.ins().brif(fuel, next, &NONE, exit, &NONE);
            self.builder.switch_to_block(next);
            return;
        }
        let empty = self.builder.create_block();
        self.builder.set_cold_block(empty);
        self.builder.ins().brif(fuel, next, &NONE, empty, &NONE);
        self.builder.switch_to_block(empty);
        let call = self.builder.ins().call(self.functions.refill, &[self.context]);
        if let Some(fuel) = self.builder.inst_results(call).first().copied() {
            self.builder.def_var(self.fuel, fuel);
            self.builder.ins().brif(fuel, next, &NONE, exit, &NONE);
        }
        self.builder.switch_to_block(next);
    }

    /// Takes one unit of the fuel that is there.
    pub(super) fn take_fuel(&mut self) {
        let fuel = self.builder.use_var(self.fuel);
        let less = self
            .builder
            .ins()
            .iadd_imm_s(fuel, planted!("jit.items_cost_two_units", -1, -2));
        self.builder.def_var(self.fuel, less);
    }

    /// The head of a loop through a range.
    pub(super) fn next_of_range(
        &mut self,
        how: &How,
        range: usize,
        item: usize,
        done: usize,
    ) -> Result<bool, NotCompiled> {
        let held = self.held(range, Kind::Range);
        let [next, step, left] = held.as_slice() else {
            return Err(NotCompiled::new("a range has other parts than three"));
        };
        let (next, step, left) = (*next, *step, *left);
        let taken = self.builder.create_block();
        // Before anything of the instruction is done: where it is done with, it takes nothing.
        let ended = self.edge(done)?;
        self.builder.ins().brif(left, taken, &NONE, ended, &NONE);
        self.builder.switch_to_block(taken);
        planted!("jit.items_of_ranges_cost_nothing", self.spend(), ());
        let less = self.builder.ins().iadd_imm_s(left, -1);
        // What comes after the last one may not fit, and is never taken.
        let after = planted!(
            "jit.ranges_go_by_one",
            self.builder.ins().iadd(next, step),
            self.builder.ins().iadd_imm_s(next, 1)
        );
        self.hold(range, Kind::Range, &[after, step, less]);
        self.hold(
            item,
            Kind::Integer,
            &[planted!("jit.item_is_the_next_one", next, after)],
        );
        apply(how, &mut self.state)?;
        let to = self.edge(self.at + 1)?;
        self.builder.ins().jump(to, &NONE);
        Ok(true)
    }

    /// The head of a loop through an array, of whose items only fields are read.
    pub(super) fn next_of_items(
        &mut self,
        how: &How,
        items: usize,
        done: usize,
    ) -> Result<bool, NotCompiled> {
        let held = self.held(items, Kind::Items);
        let [row, next, left] = held.as_slice() else {
            return Err(NotCompiled::new("a loop has other parts than three"));
        };
        let (row, next, left) = (*row, *next, *left);
        let taken = self.builder.create_block();
        let ended = self.edge(done)?;
        self.builder.ins().brif(left, taken, &NONE, ended, &NONE);
        self.builder.switch_to_block(taken);
        planted!("jit.items_cost_nothing", self.spend(), ());
        let width = self.plan.rows.get(&self.at).map_or(0, |rows| rows.width);
        let row = self.builder.ins().iadd_imm_s(row, i64::from(offset(width)));
        let next = self.builder.ins().iadd_imm_s(next, 1);
        let left = self.builder.ins().iadd_imm_s(left, -1);
        self.hold(items, Kind::Items, &[row, next, left]);
        apply(how, &mut self.state)?;
        let to = self.edge(self.at + 1)?;
        self.builder.ins().jump(to, &NONE);
        Ok(true)
    }

    /// A field of the item that a loop is at.
    pub(super) fn field(&mut self, how: &How, items: usize, place: u32) -> Result<(), NotCompiled> {
        let missing = || NotCompiled::new("a field is read that was not gathered");
        let How::Inline { gives, .. } = how else {
            return Err(missing());
        };
        let [(out, kind)] = gives.as_slice() else {
            return Err(missing());
        };
        let rows = self.plan.rows.get(&self.at).ok_or_else(missing)?;
        let at = rows.offset(place, *kind).ok_or_else(missing)?;
        // The row that comes next is behind the one that the loop is at.
        let back = offset(rows.width);
        let held = self.held(items, Kind::Items);
        let row = held.first().copied().ok_or_else(missing)?;
        let parts = (0..kind.width()).map(|part| {
            let flags = TRUSTED.with_readonly();
            self.builder
                .ins()
                .load(type_of(*kind), flags, row, offset(at + part) - back)
        });
        let parts: Vec<_> = parts.collect();
        self.hold(*out, *kind, &parts);
        Ok(())
    }

    /// Leaves a loop that had as many rounds as it may have to the interpreter.
    pub(super) fn limit(&mut self, count: usize, max: u32) -> Result<(), NotCompiled> {
        let rounds = self.only(count, Kind::Integer)?;
        let is_over = self.builder.ins().icmp_imm_s(
            planted!(
                "jit.one_round_too_many",
                IntCC::SignedGreaterThanOrEqual,
                IntCC::SignedGreaterThan
            ),
            rounds,
            i64::from(max),
        );
        self.guard(is_over);
        Ok(())
    }

    /// Counts a round.
    pub(super) fn round(&mut self, count: usize) -> Result<(), NotCompiled> {
        let rounds = self.only(count, Kind::Integer)?;
        // There are never as many rounds as would not fit: each takes a unit of fuel.
        let more = self.builder.ins().iadd_imm_s(rounds, 1);
        self.hold(count, Kind::Integer, &[more]);
        Ok(())
    }
}
