//! Active calls of recursive functions. They use no stack of the thread.

use vesper_ir::{ErrorCode, Value};

use crate::bytecode::{Code, FunctionCode, Operand, OperandList, Register};
use crate::run::loop_state::{LoopState, price_at};
use crate::run::{Fault, NO_OPERANDS, NO_REGISTER, read, write};

const NO_FUNCTION: Fault = "an instruction names a function that does not exist";
const NO_CALL: Fault = "a function ends that was not called";

/// The active calls of a run, outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    active: Vec<ActiveCall>,
}

#[derive(Clone, Debug)]
struct ActiveCall {
    function: u32,
    /// The number of active calls of its group, this one included.
    depth: u32,
    /// The instruction after the call.
    back: usize,
    out: Register,
    /// The registers and loops of the function before the call; empty where no call of its group was active.
    registers: Vec<Value>,
    loops: Vec<LoopState>,
}

impl Calls {
    pub(crate) fn clear(&mut self) {
        self.active.clear();
    }

    /// Ends all calls after a failure inside them. Returns the instruction of the outermost call.
    pub(crate) fn unwind(&mut self, at: usize) -> usize {
        let outermost = self.active.first().map_or(at, |call| call.back - 1);
        self.active.clear();
        outermost
    }

    /// Returns the depth that a call of the function would have, or the failure if that is too deep.
    pub(crate) fn depth(&self, code: &Code, function: u32) -> Result<Result<u32, ErrorCode>, Fault> {
        let called = function_at(code, function)?;
        let depth = match self.active.last() {
            Some(outer) if function_at(code, outer.function)?.group == called.group => outer.depth + 1,
            _ => 1,
        };
        Ok(if depth > called.max_depth {
            Err(ErrorCode::RecursionLimit)
        } else {
            Ok(depth)
        })
    }

    /// Begins a call. Returns its first instruction.
    #[expect(clippy::too_many_arguments, reason = "each is a part of one call")]
    pub(crate) fn begin(
        &mut self,
        code: &Code,
        function: u32,
        depth: u32,
        args: OperandList,
        (back, out): (usize, Register),
        registers: &mut [Value],
        loops: &mut [LoopState],
    ) -> Result<usize, Fault> {
        let called = function_at(code, function)?;
        let start = args.start as usize;
        let args = code.operands.get(start..start + args.length as usize);
        let mut values = Vec::with_capacity(args.map_or(0, <[Operand]>::len));
        for arg in args.ok_or(NO_OPERANDS)? {
            values.push(read(*arg, &code.constants, registers)?.clone());
        }
        let own = registers.get_mut(called.registers.clone()).ok_or(NO_REGISTER)?;
        let own_loops = loops.get_mut(called.loops.clone()).ok_or(NO_REGISTER)?;
        let mut call = ActiveCall {
            function,
            depth,
            back,
            out,
            registers: Vec::new(),
            loops: Vec::new(),
        };
        if depth > 1 {
            call.registers = own
                .iter_mut()
                .map(|register| std::mem::replace(register, Value::Boolean(false)))
                .collect();
            call.loops = own_loops
                .iter_mut()
                .map(|each| std::mem::replace(each, LoopState::new()))
                .collect();
        }
        for (register, value) in own.iter_mut().zip(values) {
            *register = value;
        }
        self.active.push(call);
        Ok(called.entry as usize)
    }

    /// Ends the innermost call with a value. Returns the next instruction and the price of the value.
    pub(crate) fn end(
        &mut self,
        code: &Code,
        value: Operand,
        registers: &mut [Value],
        loops: &mut [LoopState],
    ) -> Result<(usize, u64), Fault> {
        let value = read(value, &code.constants, registers)?.clone();
        let call = self.active.pop().ok_or(NO_CALL)?;
        let called = function_at(code, call.function)?;
        let price = called
            .price
            .map_or(0, |price| price_at(&code.prices, price, &value));
        let own = registers.get_mut(called.registers.clone()).ok_or(NO_REGISTER)?;
        for (register, saved) in own.iter_mut().zip(call.registers) {
            *register = saved;
        }
        let own = loops.get_mut(called.loops.clone()).ok_or(NO_REGISTER)?;
        for (slot, saved) in own.iter_mut().zip(call.loops) {
            *slot = saved;
        }
        write(registers, call.out, value)?;
        Ok((call.back, price))
    }
}

fn function_at(code: &Code, function: u32) -> Result<&FunctionCode, Fault> {
    code.functions.get(function as usize).ok_or(NO_FUNCTION)
}
