//! Where machine code is left: guards, exits, and the blocks that are written last.

use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};

use super::loops::InStep;
use super::{
    Exit, FAULTED, Known, Lower, NONE, NotCompiled, Place, REFUSED, Site, SlotBinding, State, TRUSTED,
};

/// A block that is written after all others: what it saves, and where it goes.
pub(super) struct Late {
    pub(super) block: Block,
    pub(super) kept: Vec<SlotBinding>,
    pub(super) then: Then,
    /// The loop that it is in, where the fuel is known by that, and the instruction that comes next.
    pub(super) in_step: Option<(InStep, usize)>,
}

pub(super) enum Then {
    /// Out of the code, by this exit.
    Leave(usize),
    /// On to this block, with what was saved in the frame.
    GoOn(Block),
    /// On to the block behind a loop, with what was saved read back.
    Behind(Block),
    /// On in a loop at this block, or in its plain copy where the path has seen all that its rounds note.
    Rounds(Block),
}

impl Lower<'_, '_> {
    /// The block for an edge from here to the block at `to`: what that expects in the frame is written there first.
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

    /// The block that leaves the code before the instruction at hand.
    pub(super) fn exit_before(&mut self) -> Block {
        if let Some(block) = self.before {
            return block;
        }
        let state = self.state.clone();
        let block = self.exit(self.at, &state);
        self.before = Some(block);
        block
    }

    /// A block that leaves the code where values stand like this; the interpreter goes on at `next`.
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

    /// An exit without a block of its own, and what is to be in the slots there.
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

    /// Writes the blocks that were put off.
    pub(super) fn write_late_blocks(&mut self) {
        // What was known of scales where the last block ended is not known here.
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
            // Before the variable is read, which may become a parameter too.
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

    /// True where the next guard is one that is to fail whatever happens. Counts it.
    pub(super) fn is_forced(&mut self) -> bool {
        let number = self.side.guards;
        self.side.guards += 1;
        self.fail_guard == Some(number)
    }

    /// Counts a guard that a function asks, and leaves the code there where it is the one that is to fail.
    pub(super) fn force(&mut self) {
        if self.is_forced() {
            let always = self.builder.ins().iconst(types::I8, 1);
            let (exit, next) = (self.exit_before(), self.builder.create_block());
            self.builder.ins().brif(always, exit, &NONE, next, &NONE);
            self.builder.switch_to_block(next);
        }
    }

    /// Leaves the code before the instruction at hand unless the condition holds.
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

    /// Leaves the code before the instruction at hand where the condition holds.
    pub(super) fn guard(&mut self, condition: Value) {
        let condition = if self.is_forced() {
            self.builder.ins().iconst(types::I8, 1)
        } else if let Some(tried) = &self.tried {
            // What overflows on the side that is not taken does not count.
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
