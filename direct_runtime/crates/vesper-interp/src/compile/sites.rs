//! Requests and calls: the sites at which a run is suspended.

use std::sync::Arc;

use vesper_ir::flow::{Call, Request};

use crate::bytecode::sites::{CallSite, Position, RequestSite};

use super::{Compiled, Compiler, Instruction, MISSING, Operand, Register, place};

impl Compiler<'_> {
    fn position(&self, name: &Arc<str>) -> Position {
        Position {
            name: Arc::clone(name),
            rounds: self.rounds.clone(),
        }
    }

    pub(super) fn request(&mut self, request: &Request, out: Register) -> Compiled<()> {
        let top = self.top;
        let key = match request.key {
            Some(key) => Some(self.operand(key)?),
            None => None,
        };
        let mut arguments = Vec::with_capacity(request.arguments.len());
        for (name, value) in &request.arguments {
            let operand = self.operand(*value)?;
            arguments.push((Arc::clone(name), self.type_of(*value)?.clone(), operand));
        }
        self.top = top;
        let site = place(self.code.requests.len())?;
        let site_of_request = RequestSite {
            position: self.position(&request.name),
            effect: request.effect,
            class: request.class,
            fixed: request.fixed.clone(),
            key,
            arguments,
            out,
            result: request.result,
            ty: self.type_of(request.result)?.clone(),
        };
        self.code.requests.push(site_of_request);
        self.emit(Instruction::Request { site });
        self.mark(request.result, Operand::register(out));
        Ok(())
    }

    pub(super) fn call_node(&mut self, call: &Call, out: Register) -> Compiled<()> {
        let top = self.top;
        let node = self.node;
        let callee = node.calls.iter().position(|called| called.node == call.node);
        let callee = callee.ok_or(MISSING)?;
        let declared = &node.calls.get(callee).ok_or(MISSING)?.inputs;
        let mut given = call.inputs.iter().peekable();
        let mut inputs = Vec::with_capacity(declared.len());
        for input in declared {
            let value = given.next_if(|(name, _)| *name == input.name);
            inputs.push(match value {
                Some((_, value)) => Some(self.operand(*value)?),
                None => None,
            });
        }
        self.top = top;
        self.read_now_of(callee);
        let site = place(self.code.calls.len())?;
        self.code.calls.push(CallSite {
            position: self.position(&call.name),
            callee,
            inputs,
            out,
            result: call.result,
        });
        self.emit(Instruction::CallNode { site });
        self.mark(call.result, Operand::register(out));
        Ok(())
    }
}
