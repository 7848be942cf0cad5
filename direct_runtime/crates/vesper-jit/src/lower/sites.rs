//! What is left to functions on the frame.

use cranelift_codegen::ir::{InstBuilder, Value, types};
use vesper_interp::code::Instruction;
use vesper_ir::planted;

use crate::plan::Rows;

use super::{How, IntCC, Kept, Kind, Lower, NONE, NotCompiled, Place, Site, Touched, answer, apply};

impl Lower<'_, '_> {
    pub(super) fn site(&mut self, site: Site) -> i64 {
        let number = self.side.sites.len();
        self.side.sites.push(site);
        i64::try_from(number).unwrap_or(i64::MAX)
    }

    /// What the loop of the instruction at hand gathers, where that is what is loaded.
    fn rows(&self, kind: Kind) -> Option<Rows> {
        let rows = self.plan.rows.get(&self.at);
        rows.filter(|_| kind == Kind::Items).cloned()
    }

    /// Calls the function, and gives its answer.
    pub(super) fn call_step(&mut self, site: i64) -> Value {
        let site = self.builder.ins().iconst(types::I32, site);
        let call = self.builder.ins().call(self.functions.step, &[self.context, site]);
        let answer = self.builder.inst_results(call).first().copied();
        // It is declared with one result.
        answer.unwrap_or(site)
    }

    /// Has a function do something that may only refuse; the code goes on behind it.
    pub(super) fn call_site(&mut self, site: Site, is_guard: bool) -> Result<(), NotCompiled> {
        if is_guard && self.is_forced() {
            let always = self.builder.ins().iconst(types::I8, 1);
            let (exit, next) = (self.exit_before(), self.builder.create_block());
            self.builder.ins().brif(always, exit, &NONE, next, &NONE);
            self.builder.switch_to_block(next);
        }
        let load = site.load;
        let number = self.site(site);
        let answer = self.call_step(number);
        let (other, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(other);
        self.builder.ins().brif(answer, other, &NONE, next, &NONE);
        self.builder.switch_to_block(other);
        let refuses = self.builder.ins().icmp_imm_s(IntCC::Equal, answer, answer::BEFORE);
        let (exit, fault) = (self.exit_before(), self.fault_block());
        self.builder.ins().brif(refuses, exit, &NONE, fault, &NONE);
        self.builder.switch_to_block(next);
        if let Some(kept) = load {
            let held = self.load(kept);
            self.hold(kept.place, kept.kind, &held);
        }
        Ok(())
    }

    /// Takes what an instruction computes with out of the frame, where it is not in machine registers already.
    pub(super) fn take_in(&mut self, uses: &[(usize, Kind)]) -> Result<(), NotCompiled> {
        let mut taken: Vec<usize> = Vec::new();
        for (place, kind) in uses {
            if self.state.get(*place) != Place::Frame || taken.contains(place) {
                continue;
            }
            taken.push(*place);
            let load = self.kept(*place, *kind);
            self.call_site(
                Site {
                    kept: Vec::new(),
                    instruction: None,
                    load: Some(load),
                    direct: false,
                    rows: self.rows(*kind),
                },
                true,
            )?;
        }
        Ok(())
    }

    /// An instruction that a function does on the frame.
    pub(super) fn step(
        &mut self,
        instruction: &Instruction,
        touched: &Touched,
        reads: &[usize],
        gives: &[(usize, Option<Kind>)],
        direct: bool,
    ) -> Result<(), NotCompiled> {
        let takes_fuel = matches!(
            instruction,
            Instruction::LoopNext { .. }
                | Instruction::LoopNextNumeric { .. }
                | Instruction::LoopNextEntry { .. }
                | Instruction::LoopAdvance { .. }
        );
        let mut kept: Vec<Kept> = Vec::new();
        for place in reads {
            if let Place::Native { kind, dirty: true } = self.state.get(*place)
                && !kept.iter().any(|one| one.place == *place)
            {
                let one = self.kept(*place, kind);
                kept.push(one);
            }
        }
        let load = gives.iter().find_map(|(place, kind)| kind.map(|kind| (*place, kind)));
        let load = load.map(|(place, kind)| self.kept(place, kind));
        if self.is_forced() {
            let always = self.builder.ins().iconst(types::I8, 1);
            let (exit, next) = (self.exit_before(), self.builder.create_block());
            self.builder.ins().brif(always, exit, &NONE, next, &NONE);
            self.builder.switch_to_block(next);
        }
        if takes_fuel {
            self.have_fuel();
        }
        for one in &kept {
            planted!("jit.functions_see_old_values", self.store(*one), ());
        }
        let exit = self.exit_before();
        let site = Site {
            kept,
            instruction: Some(*instruction),
            rows: load.and_then(|load| self.rows(load.kind)),
            load,
            direct,
        };
        let site = self.site(site);
        let answer = self.call_step(site);
        apply(
            &How::Step {
                reads: reads.to_vec(),
                gives: gives.to_vec(),
                direct,
            },
            &mut self.state,
        )?;
        let (other, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(answer, other, &NONE, next, &NONE);
        self.builder.switch_to_block(other);
        if let Some(to) = touched.jump {
            let rest = self.builder.create_block();
            self.builder.set_cold_block(rest);
            let to = self.edge(to)?;
            let jumps = self.builder.ins().icmp_imm_s(IntCC::Equal, answer, answer::JUMPS);
            self.builder.ins().brif(jumps, to, &NONE, rest, &NONE);
            self.builder.switch_to_block(rest);
        } else {
            self.builder.set_cold_block(other);
        }
        let rest = self.builder.create_block();
        self.builder.set_cold_block(rest);
        let refuses = self.builder.ins().icmp_imm_s(IntCC::Equal, answer, answer::BEFORE);
        self.builder.ins().brif(refuses, exit, &NONE, rest, &NONE);
        self.builder.switch_to_block(rest);
        let fault = self.fault_block();
        match load {
            Some(load) if !direct => {
                // It is done, and stands in the frame.
                let mut state = self.state.clone();
                state.set(load.place, Place::Frame);
                let after = self.exit(self.at + 1, &state);
                let paid = self.builder.create_block();
                let is_done = self.builder.ins().icmp_imm_s(IntCC::Equal, answer, answer::AFTER);
                self.builder.ins().brif(is_done, paid, &NONE, fault, &NONE);
                self.builder.switch_to_block(paid);
                self.builder.set_cold_block(paid);
                if takes_fuel {
                    self.take_fuel();
                }
                self.builder.ins().jump(after, &NONE);
            }
            _ => {
                self.builder.ins().jump(fault, &NONE);
            }
        }
        self.builder.switch_to_block(next);
        if takes_fuel {
            planted!("jit.items_of_arrays_cost_nothing", self.take_fuel(), ());
        }
        if let Some(load) = load {
            let held = self.load(load);
            self.hold(load.place, load.kind, &held);
        }
        Ok(())
    }
}
