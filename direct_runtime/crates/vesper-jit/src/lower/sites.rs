//! Calls of functions that execute instructions on the frame.

use cranelift_codegen::ir::{InstBuilder, Value, types};
use vesper_interp::code::Instruction;

use crate::dataflow::takes_fuel;
use crate::plan::Rows;

use super::{How, IntCC, Kind, Lower, NONE, NotCompiled, Place, Site, SlotBinding, answer, apply};

impl Lower<'_, '_> {
    pub(super) fn site(&mut self, site: Site) -> i64 {
        let number = self.side.sites.len();
        self.side.sites.push(site);
        i64::try_from(number).unwrap_or(i64::MAX)
    }

    /// Returns the record fields to gather as rows where the current instruction starts a loop.
    fn rows(&self, kind: Kind) -> Option<Rows> {
        let rows = self.plan.rows.get(&self.at);
        rows.filter(|_| kind == Kind::Items).cloned()
    }

    /// Emits the call and returns its result.
    pub(super) fn call_step(&mut self, site: i64) -> Value {
        let site = self.builder.ins().iconst(types::I32, site);
        let call = self
            .builder
            .ins()
            .call(self.functions.step, &[self.context, site]);
        let answer = self.builder.inst_results(call).first().copied();
        // The function is declared with one result.
        answer.unwrap_or(site)
    }

    /// Emits a call that can only succeed or refuse; the code continues after it.
    pub(super) fn call_site(&mut self, site: Site, is_guard: bool) {
        if is_guard {
            self.force();
        }
        let load = site.load;
        if self.in_slots {
            let state = self.state.clone();
            let (before, _) = self.numbered_exit(self.at, &state);
            let number = self.site(Site {
                exits: Some([before, before]),
                ..site
            });
            let answer = self.call_step(number);
            self.leave_if_refused(answer);
            return;
        }
        let number = self.site(site);
        let answer = self.call_step(number);
        let (other, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(other);
        self.builder.ins().brif(answer, other, &NONE, next, &NONE);
        self.builder.switch_to_block(other);
        let refuses = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::Equal, answer, answer::BEFORE);
        let (exit, fault) = (self.exit_before(), self.fault_block());
        self.builder.ins().brif(refuses, exit, &NONE, fault, &NONE);
        self.builder.switch_to_block(next);
        if let Some(kept) = load {
            self.take_loaded(kept);
        }
    }

    /// Leaves quick-level code if the called function refused.
    pub(super) fn leave_if_refused(&mut self, answer: Value) {
        let (refused, next) = (self.refused_block(), self.builder.create_block());
        self.builder.ins().brif(answer, refused, &NONE, next, &NONE);
        self.builder.switch_to_block(next);
    }

    /// Returns the call after a field instruction that alone uses the field.
    pub(super) fn borrowing_call(&self, gives: &[(usize, Option<Kind>)]) -> Option<Instruction> {
        let [(field, None)] = gives else {
            return None;
        };
        let is_field = matches!(
            self.code.instructions.get(self.at),
            Some(Instruction::Field { .. } | Instruction::LoopField { .. })
        );
        let next = self.at + 1;
        let call = self.code.instructions.get(next)?;
        let is_step = matches!(
            (call, self.plan.how.get(next)?),
            (Instruction::Call { .. }, How::Step { .. })
        );
        let (touched, of_call) = (self.plan.touched.get(self.at)?, self.plan.touched.get(next)?);
        let is_over = of_call.writes.contains(field) || !self.plan.needed.get(next + 1)?.has(*field);
        let is_lent = is_field
            && is_step
            && of_call.reads.contains(field)
            && is_over
            && !touched.reads.contains(field)
            && !self.plan.blocks.contains_key(&next);
        is_lent.then_some(*call)
    }

    /// Emits a call together with the current field instruction. An exit is before both.
    pub(super) fn emit_borrowing_call(
        &mut self,
        field: &Instruction,
        call: Instruction,
        reads: &[usize],
    ) -> Result<(), NotCompiled> {
        self.exit_before();
        self.at += 1;
        let plan = self.plan;
        let Some(How::Step {
            reads: of_call,
            gives,
            direct,
        }) = plan.how.get(self.at)
        else {
            return Err(NotCompiled::new(
                "a call is planned in another way than it is done",
            ));
        };
        let all: Vec<usize> = reads.iter().chain(of_call).copied().collect();
        self.step(&call, Some(*field), &all, gives, *direct)
    }

    /// Loads operands from the frame, unless they are in machine registers.
    pub(super) fn take_in(&mut self, uses: &[(usize, Kind)]) {
        let mut taken: Vec<usize> = Vec::new();
        for (place, kind) in uses {
            if self.state.get(*place) != Place::Frame || taken.contains(place) {
                continue;
            }
            taken.push(*place);
            let load = self.slot_binding(*place, *kind);
            self.call_site(
                Site {
                    kept: Vec::new(),
                    instruction: None,
                    load: Some(load),
                    direct: false,
                    lent: None,
                    rows: self.rows(*kind),
                    exits: None,
                },
                true,
            );
        }
    }

    /// Emits an instruction that a function executes on the frame.
    pub(super) fn step(
        &mut self,
        instruction: &Instruction,
        lent: Option<Instruction>,
        reads: &[usize],
        gives: &[(usize, Option<Kind>)],
        direct: bool,
    ) -> Result<(), NotCompiled> {
        let takes_fuel = takes_fuel(instruction);
        let jump = self.plan.touched.get(self.at).and_then(|touched| touched.jump);
        // An exit repeats the field instruction that serves only this call.
        let before = if lent.is_some() { self.at - 1 } else { self.at };
        let mut kept: Vec<SlotBinding> = Vec::new();
        for place in reads {
            if let Place::Native { kind, dirty: true } = self.state.get(*place)
                && !kept.iter().any(|one| one.place == *place)
            {
                let one = self.slot_binding(*place, kind);
                kept.push(one);
            }
        }
        let load = gives
            .iter()
            .find_map(|(place, kind)| kind.map(|kind| (*place, kind)));
        let load = load.map(|(place, kind)| self.slot_binding(place, kind));
        self.force();
        if takes_fuel {
            self.have_fuel();
        }
        for one in &kept {
            self.store(*one);
        }
        let site = Site {
            kept,
            instruction: Some(*instruction),
            rows: load.and_then(|load| self.rows(load.kind)),
            load,
            direct,
            lent,
            exits: None,
        };
        let how = How::Step {
            reads: reads.to_vec(),
            gives: gives.to_vec(),
            direct,
        };
        if self.in_slots {
            return self.step_in_slots(site, &how, before, jump);
        }
        let exit = self.exit_before();
        let site = self.site(site);
        let answer = self.call_step(site);
        apply(&how, &mut self.state)?;
        let (other, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(answer, other, &NONE, next, &NONE);
        self.builder.switch_to_block(other);
        if let Some(to) = jump {
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
        let refuses = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::Equal, answer, answer::BEFORE);
        self.builder.ins().brif(refuses, exit, &NONE, rest, &NONE);
        self.builder.switch_to_block(rest);
        let fault = self.fault_block();
        match load {
            Some(load) => {
                // The instruction was executed, and its result is in the frame.
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
            None => {
                self.builder.ins().jump(fault, &NONE);
            }
        }
        self.builder.switch_to_block(next);
        if takes_fuel {
            self.take_fuel();
        }
        if let Some(load) = load {
            self.take_loaded(load);
        }
        self.prepare_range();
        Ok(())
    }

    /// Emits the call in quick-level code: all operands are in slots, and the site determines the exit.
    fn step_in_slots(
        &mut self,
        site: Site,
        how: &How,
        before: usize,
        jump: Option<usize>,
    ) -> Result<(), NotCompiled> {
        let state = self.state.clone();
        let (before, _) = self.numbered_exit(before, &state);
        apply(how, &mut self.state)?;
        let mut state = self.state.clone();
        if let Some(load) = site.load {
            state.set(load.place, Place::Frame);
        }
        let (after, _) = self.numbered_exit(self.at + 1, &state);
        let site = self.site(Site {
            exits: Some([before, after]),
            ..site
        });
        let answer = self.call_step(site);
        let Some(to) = jump else {
            self.leave_if_refused(answer);
            return Ok(());
        };
        let (other, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(answer, other, &NONE, next, &NONE);
        self.builder.switch_to_block(other);
        let (to, refused) = (self.edge(to)?, self.refused_block());
        let jumps = self.builder.ins().icmp_imm_s(IntCC::Equal, answer, answer::JUMPS);
        self.builder.ins().brif(jumps, to, &NONE, refused, &NONE);
        self.builder.switch_to_block(next);
        Ok(())
    }
}
