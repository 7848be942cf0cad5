//! The compiler of recursive functions: each has its own registers and loop slots, which a call saves.

use vesper_ir::node::Function;

use crate::bytecode::{FunctionCode, Instruction, Operand};

use super::{Compiled, Compiler, MISSING, place};

impl Compiler<'_> {
    /// Compiles the functions before the code of the node, which jumps over them.
    pub(super) fn functions(&mut self) -> Compiled<()> {
        if self.node.functions.is_empty() {
            return Ok(());
        }
        let region = self.region();
        let over = self.jump(Instruction::Jump { to: 0 });
        let node = self.node;
        for (number, function) in node.functions.iter().enumerate() {
            self.function(number, function)?;
        }
        self.land(over)?;
        self.leave(region);
        Ok(())
    }

    fn function(&mut self, number: usize, function: &Function) -> Compiled<()> {
        let entry = self.here()?;
        self.landed = entry;
        let (first, first_loop) = (self.top, self.loop_top);
        for param in &function.params {
            let register = self.allocate()?;
            self.bind(*param, Some(Operand::register(register)))?;
        }
        // Until the end of the function, `registers` and `loops` are the most that it uses.
        let (registers, loops) = (self.code.registers, self.code.loops);
        self.code.registers = self.top as usize;
        self.code.loops = self.loop_top as usize;
        let value = self.operand(function.value)?;
        self.emit(Instruction::Leave { value });
        let price = self.memory.functions.get(number).ok_or(MISSING)?.clone();
        let price = price.map(|price| self.price((0, price))).transpose()?;
        self.code.functions.push(FunctionCode {
            entry,
            registers: first as usize..self.code.registers,
            loops: first_loop as usize..self.code.loops,
            max_depth: function.max_depth,
            group: function.group,
            price,
        });
        // Code that follows uses other registers and slots.
        self.top = place(self.code.registers)?;
        self.loop_top = place(self.code.loops)?;
        self.code.registers = self.code.registers.max(registers);
        self.code.loops = self.code.loops.max(loops);
        for param in &function.params {
            self.bind(*param, None)?;
        }
        Ok(())
    }
}
