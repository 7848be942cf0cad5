//! Exits of machine code: guards, exit blocks, and blocks that are lowered last.

use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};

use super::loops::InStep;
use super::{
    Exit, FAULTED, Known, Lower, NONE, NotCompiled, Place, REFUSED, Site, SlotBinding, State, TRUSTED,
};

/// A block that is lowered last: the values it saves and its successor.
pub(super) struct Late {
    pub(super) block: Block,
    pub(super) kept: Vec<SlotBinding>,
    pub(super) then: Then,
    /// The enclosing loop that determines the fuel, and the next instruction.
    pub(super) in_step: Option<(InStep, usize)>,
}

pub(super) enum Then {
    /// Leave the code at this exit.
    Leave(usize),
    /// Continue at this block, with the values saved to the frame.
    GoOn(Block),
    /// Continue after a loop, with the saved values read back.
    Behind(Block),
    /// Continue a loop at this block, or in its copy without notes.
    Rounds(Block),
}

impl Lower<'_, '_> {
    /// Returns the block of an edge to the block at `to`. It writes the values that the target expects in the frame.
    pub(super) fn edge(&mut self, to: usize) -> Result<Block, NotCompiled> {
        let block = self.block_at(to)?;
        if self.words.is_some() {
            return Ok(block);
        }
        let (Some(state), Some(needed)) = (self.plan.blocks.get(&to), self.plan.needed.get(to)) else {
            return Ok(block);
        };
        let dirty = self.state.dirty(needed);
        let missing: Vec<_> = dirty
            .into_iter()
            .filter(|(place, _)| state.get(*place) == Place::Frame)
            .collect();
        if missing.is_empty() {
            return Ok(block);
        }
        let kept = missing
            .into_iter()
            .map(|(place, kind)| self.slot_binding(place, kind))
            .collect();
        let between = self.builder.create_block();
        self.late.push(Late {
            block: between,
            kept,
            then: Then::GoOn(block),
            in_step: None,
        });
        Ok(between)
    }

    /// Returns the block that leaves before the current instruction.
    pub(super) fn exit_before(&mut self) -> Block {
        if let Some(block) = self.before {
            return block;
        }
        let state = self.state.clone();
        let block = self.exit(self.at, &state);
        self.before = Some(block);
        block
    }

    /// Creates a block that leaves with these locations; the interpreter continues at `next`.
    pub(super) fn exit(&mut self, next: usize, state: &State) -> Block {
        if let Some(block) = self.give_up_block() {
            return block;
        }
        let (number, kept) = self.numbered_exit(next, state);
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        self.late.push(Late {
            block,
            kept,
            then: Then::Leave(number),
            in_step: self.around().map(|in_step| (in_step, next)),
        });
        block
    }

    /// Creates an exit without a block. Also returns the values that must be in slots there.
    pub(super) fn numbered_exit(&mut self, next: usize, state: &State) -> (usize, Vec<SlotBinding>) {
        let dirty = self
            .plan
            .needed
            .get(next)
            .map(|needed| state.dirty(needed))
            .unwrap_or_default();
        let kept: Vec<SlotBinding> = dirty
            .into_iter()
            .filter(|(place, _)| *place < usize::MAX)
            .map(|(place, kind)| self.slot_binding(place, kind))
            .collect();
        let number = self.side.exits.len();
        self.side.exits.push(Exit {
            next,
            kept: kept.clone(),
        });
        (number, kept)
    }

    /// Lowers the deferred blocks.
    pub(super) fn write_late_blocks(&mut self) {
        // Scales known at the end of the last block do not hold here.
        self.fixed = Known::default();
        while let Some(late) = self.late.pop() {
            let Late {
                block,
                kept,
                then,
                in_step,
            } = late;
            self.builder.switch_to_block(block);
            if let (Then::Rounds(taken), Some((in_step, _))) = (&then, in_step) {
                self.continue_unnoted(in_step, *taken);
                continue;
            }
            if let Some((in_step, next)) = in_step {
                let fuel = self.fuel_in_step(in_step);
                self.builder.def_var(self.fuel, fuel);
                self.write_counted(in_step, next);
            }
            for kept in &kept {
                self.store(*kept);
            }
            match then {
                Then::Behind(to) | Then::Rounds(to) => {
                    self.read_back(&kept);
                    self.builder.ins().jump(to, &NONE);
                }
                Then::Leave(number) => {
                    let number = i64::try_from(number).unwrap_or(FAULTED);
                    let number = self.builder.ins().iconst(types::I64, number);
                    let leave = self.leave_block();
                    self.builder.ins().jump(leave, &[BlockArg::Value(number)]);
                }
                Then::GoOn(to) => {
                    let site = self.site(Site {
                        kept,
                        instruction: None,
                        load: None,
                        direct: false,
                        lent: None,
                        rows: None,
                        exits: None,
                    });
                    let done = self.call_step(site);
                    let fault = self.fault_block();
                    self.builder.ins().brif(done, fault, &NONE, to, &NONE);
                }
            }
        }
        if let Some(refused) = self.refused.take() {
            self.builder.switch_to_block(refused);
            let number = self.builder.ins().iconst(types::I64, REFUSED);
            let leave = self.leave_block();
            self.builder.ins().jump(leave, &[BlockArg::Value(number)]);
        }
        if let Some(leave) = self.leave.take() {
            self.builder.switch_to_block(leave);
            // Read before the variable, which may become a parameter too.
            let number = self.builder.block_params(leave).to_vec();
            if !self.in_slots {
                let fuel = self.builder.use_var(self.fuel);
                self.builder.ins().store(TRUSTED, fuel, self.context, 0);
            }
            self.builder.ins().return_(&number);
        }
        if let Some(fault) = self.fault.take() {
            self.builder.switch_to_block(fault);
            let faulted = self.builder.ins().iconst(types::I64, FAULTED);
            self.builder.ins().return_(&[faulted]);
        }
    }

    pub(super) fn leave_block(&mut self) -> Block {
        if let Some(block) = self.leave {
            return block;
        }
        let block = self.builder.create_block();
        self.builder.append_block_param(block, types::I64);
        self.leave = Some(block);
        block
    }

    pub(super) fn refused_block(&mut self) -> Block {
        if let Some(block) = self.refused {
            return block;
        }
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        self.refused = Some(block);
        block
    }

    pub(super) fn fault_block(&mut self) -> Block {
        if let Some(block) = self.fault {
            return block;
        }
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        self.fault = Some(block);
        block
    }

    /// Counts a guard. Returns true if it is the one that always fails.
    pub(super) fn is_forced(&mut self) -> bool {
        let number = self.side.guards;
        self.side.guards += 1;
        self.fail_guard == Some(number)
    }

    /// Counts a guard inside a called function. Leaves here if it is the one that always fails.
    pub(super) fn force(&mut self) {
        if self.is_forced() {
            let always = self.builder.ins().iconst(types::I8, 1);
            let (exit, next) = (self.exit_before(), self.builder.create_block());
            self.builder.ins().brif(always, exit, &NONE, next, &NONE);
            self.builder.switch_to_block(next);
        }
    }

    /// Leaves before the current instruction unless the condition holds.
    pub(super) fn guard_unless(&mut self, condition: Value) {
        let condition = if self.is_forced() {
            self.builder.ins().iconst(types::I8, 0)
        } else {
            condition
        };
        let exit = self.exit_before();
        let next = self.builder.create_block();
        self.builder.ins().brif(condition, next, &NONE, exit, &NONE);
        self.builder.switch_to_block(next);
    }

    /// Leaves before the current instruction if the condition holds.
    pub(super) fn guard(&mut self, condition: Value) {
        let condition = if self.is_forced() {
            self.builder.ins().iconst(types::I8, 1)
        } else if let Some(tried) = &self.tried {
            // An overflow on the side that is not taken does not count.
            self.builder.ins().band(condition, tried.is_taken)
        } else {
            condition
        };
        let exit = self.exit_before();
        let next = self.builder.create_block();
        self.builder.ins().brif(condition, exit, &NONE, next, &NONE);
        self.builder.switch_to_block(next);
    }
}
