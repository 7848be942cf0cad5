//! The compiler from a verified node to bytecode.
//!
//! One function compiles the plain, traced and pathed forms, which differ in marks and notes. Registers are allocated
//! as a stack: a temporary lives until its user has read it, a step until the end of its block. References to inputs,
//! constants, literals, steps and outputs become operands and cost no instruction.

use std::collections::HashMap;

use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::types::TypePattern;
use vesper_ir::{MAX_ARITY, Node, Op, Type, Value};
use vesper_opt::{Facts, Optimised};

use crate::run::inline_operations::is_comparison;

use crate::observe::path::Points;

use crate::bytecode::{Clause, Code, Instruction, LoopSlot, Mention, Operand, OperandList, Phase, Register};

mod flow;
mod functions;
pub(crate) mod link;
mod loops;
mod memory;
mod optimizer_facts;
mod path_notes;
mod sites;

use flow::Exits;

use loops::Locals;
use memory::{ItemPrice, Memory};

/// A state that a verified node cannot reach; the message is for an engine fault.
#[derive(Debug)]
pub(crate) struct CompileFault(pub(crate) &'static str);

type Compiled<T> = Result<T, CompileFault>;

/// The observations that the bytecode of a node records.
#[derive(Clone, Copy)]
pub(crate) enum Form<'a> {
    Plain,
    /// Records marks.
    Traced,
    /// Records which of these points the run passes.
    Pathed(&'a Points),
}

/// Compiles a node as verified.
pub(crate) fn compile<'a>(node: &'a Node, form: Form<'a>) -> Compiled<Code> {
    compile_form(node, None, form, Memory::of(node))
}

/// Compiles the plain form of an optimised node. Prices are those of the node as verified.
pub(crate) fn compile_optimised(of: &Optimised, verified: &Node) -> Compiled<Code> {
    compile_form(&of.node, Some(&of.facts), Form::Plain, Memory::of(verified))
}

fn compile_form<'a>(
    node: &'a Node,
    facts: Option<&'a Facts>,
    form: Form<'a>,
    memory: Memory,
) -> Compiled<Code> {
    let mut compiler = Compiler::new(node, facts, form, memory)?;
    compiler.functions()?;
    compiler.clauses(Phase::Constraint, &node.constraints)?;
    compiler.clauses(Phase::Precondition, &node.preconditions)?;
    let exits = compiler.body(&node.body)?;
    compiler.land_all(exits.returns)?;
    let postconditions = compiler.code.instructions.len();
    compiler.clauses(Phase::Postcondition, &node.postconditions)?;
    compiler.record_postconditions(postconditions);
    compiler.land_all(exits.raises)?;
    compiler.end_errors()?;
    compiler.clauses(Phase::Invariant, &node.invariants)?;
    Ok(compiler.code)
}

struct Compiler<'a> {
    node: &'a Node,
    /// The findings of the optimizer; `None` for a node as verified.
    facts: Option<&'a Facts>,
    form: Form<'a>,
    /// The prices of values that loops keep.
    memory: Memory,
    code: Code,
    /// The first register of held values.
    held: u32,
    /// For each held value, whether it was computed further up.
    is_held: Vec<bool>,
    /// The operand of each step, from its statement on.
    steps: Vec<Option<Operand>>,
    /// The operand of `now`, if the node uses it.
    now: Option<Operand>,
    /// The jumps that leave the body.
    exits: Exits,
    /// The round counters of the enclosing loops, outermost first.
    rounds: Vec<Register>,
    /// The number of enclosing handlers.
    handlers: u32,
    /// The number of `require` statements so far.
    requires: u32,
    /// The operand of each local within its `let`, `for` or `loop`.
    locals: Vec<Option<Operand>>,
    /// For each local whose fields alone are read, the slot of its loop.
    in_place: Vec<Option<LoopSlot>>,
    /// The constant with the member names of an enum, by address of the enum. Many calls may share a large enum.
    names: HashMap<usize, Operand>,
    /// The first free register.
    top: u32,
    /// The first free loop slot.
    loop_top: u32,
    /// The last jump target.
    landed: u32,
}

impl<'a> Compiler<'a> {
    fn new(node: &'a Node, facts: Option<&'a Facts>, form: Form<'a>, memory: Memory) -> Compiled<Self> {
        // Constants of the node come first, so that a reference is its own index; literals follow.
        let constants = node
            .constants
            .iter()
            .map(|constant| constant.value.clone())
            .collect();
        let code = Code {
            instructions: Vec::with_capacity(node.expressions.len()),
            registers: node.inputs.len(),
            returns: Vec::with_capacity(node.outputs.len()),
            errors: Vec::with_capacity(node.errors.len()),
            clauses: Vec::new(),
            constants,
            operands: Vec::new(),
            prices: Vec::new(),
            loops: 0,
            guards: Vec::new(),
            failures: 0,
            requests: Vec::new(),
            calls: Vec::new(),
            forks: Vec::new(),
            functions: Vec::new(),
            error_conversion: None,
            path: None,
            switches: Vec::new(),
            proven: facts
                .map(|facts| &facts.proven | &facts.unchecked)
                .unwrap_or_default(),
        };
        let mut compiler = Self {
            node,
            facts,
            form,
            memory,
            code,
            held: 0,
            is_held: Vec::new(),
            steps: vec![None; node.steps.len()],
            now: None,
            exits: Exits::default(),
            rounds: Vec::new(),
            handlers: 0,
            requires: 0,
            locals: vec![None; node.locals],
            in_place: vec![None; node.locals],
            names: HashMap::new(),
            top: place(node.inputs.len())?,
            loop_top: 0,
            landed: 0,
        };
        // The frame holds the inputs, then `now`.
        if node.uses_now {
            compiler.now = Some(Operand::register(compiler.allocate()?));
        }
        compiler.reserve_path()?;
        compiler.reserve_results()?;
        compiler.reserve_held()?;
        Ok(compiler)
    }

    fn allocate(&mut self) -> Compiled<Register> {
        let register = Register(self.top);
        self.top = self
            .top
            .checked_add(1)
            .ok_or(CompileFault("too many registers"))?;
        self.code.registers = self
            .code
            .registers
            .max(usize::try_from(self.top).unwrap_or(usize::MAX));
        Ok(register)
    }

    /// Adds a price to the program.
    fn price(&mut self, price: ItemPrice) -> Compiled<u32> {
        self.code.prices.push(price);
        place(self.code.prices.len() - 1)
    }

    fn emit(&mut self, instruction: Instruction) {
        self.code.instructions.push(instruction);
    }

    fn here(&self) -> Compiled<u32> {
        place(self.code.instructions.len())
    }

    fn mark(&mut self, expression: ExpressionIndex, value: Operand) {
        if let Form::Traced = self.form
            && !cfg!(feature = "blind")
        {
            self.emit(Instruction::Mark { expression, value });
        }
    }

    fn clauses(&mut self, phase: Phase, list: &[ExpressionIndex]) -> Compiled<()> {
        for (number, holds) in (0..).zip(list) {
            self.clause(phase, number, *holds)?;
        }
        Ok(())
    }

    fn clause(&mut self, phase: Phase, number: u32, holds: ExpressionIndex) -> Compiled<()> {
        if self.is_known(holds) == Some(true) {
            return Ok(());
        }
        let top = self.top;
        let condition = self.operand(holds)?;
        self.mark(holds, condition);
        let clause = place(self.code.clauses.len())?;
        let mentions = self.mentions(holds)?;
        self.code.clauses.push(Clause {
            phase,
            number,
            mentions,
        });
        self.top = top;
        let required = match self.take_comparison(condition) {
            Some((op, first, second)) => Instruction::RequireThat {
                op,
                first,
                second,
                clause,
            },
            None => Instruction::Require { condition, clause },
        };
        self.emit(required);
        Ok(())
    }

    /// Lists the names in a clause, in order of first mention. If an input and an output share a name, the output's
    /// value is reported.
    fn mentions(&self, holds: ExpressionIndex) -> Compiled<Vec<(Mention, Operand)>> {
        let start = self.node.expression(holds).ok_or(MISSING)?.start;
        let mut found: Vec<(Mention, Operand)> = Vec::new();
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        for index in start..=holds {
            let expression = self.node.expression(index).ok_or(MISSING)?;
            let (mention, name) = match &expression.kind {
                ExpressionKind::Input(place) => (
                    Mention::Input(*place),
                    &self.node.inputs.get(*place).ok_or(MISSING)?.name,
                ),
                ExpressionKind::Constant(place) if !matches!(expression.ty, Type::Set(_) | Type::Map(_)) => (
                    Mention::Constant(*place),
                    &self.node.constants.get(*place).ok_or(MISSING)?.name,
                ),
                ExpressionKind::Step(place) => (
                    Mention::Step(*place),
                    &self.node.steps.get(*place).ok_or(MISSING)?.name,
                ),
                ExpressionKind::Output(place) => (
                    Mention::Output(*place),
                    &self.node.outputs.get(*place).ok_or(MISSING)?.name,
                ),
                ExpressionKind::Error(place) => (
                    Mention::Error(*place),
                    &self.node.errors.get(*place).ok_or(MISSING)?.name,
                ),
                _ => continue,
            };
            // A step `x` that may be skipped is wrapped as `_x`; users know it as `x`.
            let name = name.trim_start_matches('_');
            let operand = self.reference(&expression.kind)?.ok_or(MISSING)?;
            match by_name.get(name).and_then(|place| found.get_mut(*place)) {
                None => {
                    by_name.insert(name, found.len());
                    found.push((mention, operand));
                }
                Some(earlier) if matches!(mention, Mention::Output(_)) => {
                    *earlier = (mention, operand);
                }
                Some(_) => {}
            }
        }
        Ok(found)
    }

    /// Returns the operand of an expression that needs no computation, except for literals.
    fn reference(&self, kind: &ExpressionKind) -> Compiled<Option<Operand>> {
        Ok(match kind {
            ExpressionKind::Input(input) => Some(Operand::register(Register(place(*input)?))),
            ExpressionKind::Constant(constant) => Some(Operand::constant(place(*constant)?)),
            ExpressionKind::Step(step) => Some(self.steps.get(*step).copied().flatten().ok_or(MISSING)?),
            ExpressionKind::Output(output) => Some(*self.code.returns.get(*output).ok_or(MISSING)?),
            ExpressionKind::Error(error) => {
                Some(Operand::register(*self.code.errors.get(*error).ok_or(MISSING)?))
            }
            ExpressionKind::Now => Some(self.now.ok_or(MISSING)?),
            ExpressionKind::Local(local) => Some(self.locals.get(*local).copied().flatten().ok_or(MISSING)?),
            _ => None,
        })
    }

    /// Adds a constant to the program.
    fn constant(&mut self, value: Value) -> Compiled<Operand> {
        let operand = Operand::constant(place(self.code.constants.len())?);
        self.code.constants.push(value);
        Ok(operand)
    }

    /// Computes an expression to an operand that is valid until `top` is reset.
    fn operand(&mut self, index: ExpressionIndex) -> Compiled<Operand> {
        let index = self.resolve(index);
        if let Some(held) = self.held_operand(index)? {
            return Ok(held);
        }
        let kind = &self.node.expression(index).ok_or(MISSING)?.kind;
        if let Some(operand) = self.reference(kind)? {
            self.read(kind)?;
            return Ok(operand);
        }
        if let ExpressionKind::Literal(value) = kind {
            return self.constant(value.clone());
        }
        let out = self.allocate()?;
        self.compute(index, out)?;
        Ok(Operand::register(out))
    }

    /// Computes an expression to an operand that stays valid, and frees the temporaries.
    fn compute_kept(&mut self, index: ExpressionIndex) -> Compiled<Operand> {
        let top = self.top;
        let operand = self.operand(index)?;
        // INVARIANT: `operand` allocates the result register, if any, before any temporary.
        self.top = if operand == Operand::register(Register(top)) {
            top + 1
        } else {
            top
        };
        Ok(operand)
    }

    /// Computes an expression to a register. The recursion is bounded by the limit on expression depth.
    fn compute(&mut self, index: ExpressionIndex, out: Register) -> Compiled<()> {
        let index = self.resolve(index);
        if let Some(from) = self.held_operand(index)? {
            self.emit(Instruction::Move { out, from });
            return Ok(());
        }
        self.compute_anew(index, out)
    }

    fn compute_anew(&mut self, index: ExpressionIndex, out: Register) -> Compiled<()> {
        let top = self.top;
        let node = self.node;
        match &node.expression(index).ok_or(MISSING)?.kind {
            ExpressionKind::Call { op, args, types } => self.call(index, *op, args, types, out)?,
            ExpressionKind::If {
                condition,
                then,
                otherwise,
            } if !self.shortcut(index, *condition, out)? => {
                self.choice(*condition, *then, *otherwise, out)?;
            }
            ExpressionKind::If { .. } => {}
            ExpressionKind::And(left, right) => {
                self.compute(*left, out)?;
                let condition = Operand::register(out);
                let to_end = self.jump(Instruction::JumpIfFalse { condition, to: 0 });
                self.compute(*right, out)?;
                self.land(to_end)?;
            }
            ExpressionKind::Or(left, right) => {
                self.compute(*left, out)?;
                let condition = Operand::register(out);
                let to_end = self.jump(Instruction::JumpIfTrue { condition, to: 0 });
                self.compute(*right, out)?;
                self.land(to_end)?;
            }
            ExpressionKind::Let { local, value, body } => {
                let value = self.operand(*value)?;
                self.bind(*local, Some(value))?;
                self.compute(*body, out)?;
                self.bind(*local, None)?;
            }
            ExpressionKind::For {
                item,
                entry_value,
                so_far,
                parts,
            } => {
                let locals = Locals {
                    item: *item,
                    entry_value: *entry_value,
                    so_far: *so_far,
                };
                self.comprehension(index, locals, parts, out)?;
            }
            ExpressionKind::Apply { function, args } => {
                let (function, args) = (place(*function)?, self.operands(args)?);
                self.emit(Instruction::Apply {
                    function,
                    out,
                    args,
                    expression: index,
                });
            }
            ExpressionKind::Array(items) => {
                let items = self.operands(items)?;
                self.emit(Instruction::Array { out, items });
            }
            ExpressionKind::Record(fields) => {
                let fields = self.operands(fields)?;
                self.emit(Instruction::Record { out, fields });
            }
            ExpressionKind::Field { place, of } => {
                let place = *place;
                if let Some(slot) = self.item_slot(*of)? {
                    self.emit(Instruction::LoopField { slot, out, place });
                } else {
                    let of = self.operand(*of)?;
                    self.emit(Instruction::Field { out, of, place });
                }
            }
            ExpressionKind::Literal(_)
            | ExpressionKind::Input(_)
            | ExpressionKind::Constant(_)
            | ExpressionKind::Step(_)
            | ExpressionKind::Output(_)
            | ExpressionKind::Error(_)
            | ExpressionKind::Now
            | ExpressionKind::Local(_) => {
                let from = self.operand(index)?;
                self.emit(Instruction::Move { out, from });
            }
            ExpressionKind::Result => return Err(CompileFault("a result is computed")),
        }
        self.top = top;
        Ok(())
    }

    fn choice(
        &mut self,
        condition: ExpressionIndex,
        then: ExpressionIndex,
        otherwise: ExpressionIndex,
        out: Register,
    ) -> Compiled<()> {
        let top = self.top;
        let decides = self.operand(condition)?;
        self.mark(condition, decides);
        self.top = top;
        let to_else = self.jump_unless(decides);
        let outer = self.enter_side(condition, true)?;
        self.compute(then, out)?;
        self.leave(outer);
        let to_end = self.jump(Instruction::Jump { to: 0 });
        self.land(to_else)?;
        let outer = self.enter_side(condition, false)?;
        self.compute(otherwise, out)?;
        self.leave(outer);
        self.land(to_end)
    }

    /// Binds a local to an operand, or unbinds it.
    fn bind(&mut self, local: usize, to: Option<Operand>) -> Compiled<()> {
        *self.locals.get_mut(local).ok_or(MISSING)? = to;
        Ok(())
    }

    /// Computes expressions in order, to operands that are valid together.
    fn operands(&mut self, parts: &[ExpressionIndex]) -> Compiled<OperandList> {
        let mut found = Vec::with_capacity(parts.len());
        for part in parts {
            found.push(self.operand(*part)?);
        }
        let list = OperandList {
            start: place(self.code.operands.len())?,
            length: place(found.len())?,
        };
        self.code.operands.extend(found);
        Ok(list)
    }

    fn call(
        &mut self,
        index: ExpressionIndex,
        op: Op,
        args: &[ExpressionIndex],
        types: &[Type],
        out: Register,
    ) -> Compiled<()> {
        let mut operands: Option<[Operand; MAX_ARITY]> = None;
        for (place, arg) in args.iter().enumerate() {
            let operand = self.operand(*arg)?;
            let slots = operands.get_or_insert([operand; MAX_ARITY]);
            *slots.get_mut(place).ok_or(CompileFault("too many arguments"))? = operand;
        }
        let mut args_then_names = operands.ok_or(CompileFault("an operation without arguments"))?;
        let signature = op.signature();
        for (number, parameter) in signature.named.iter().enumerate() {
            let names = self.names_of_members(index, op, args, *parameter)?;
            let place = args.len() + number;
            *args_then_names
                .get_mut(place)
                .ok_or(CompileFault("too many arguments"))? = names;
        }
        for (number, ty) in types.iter().enumerate() {
            let place = args.len() + signature.named.len() + number;
            *args_then_names
                .get_mut(place)
                .ok_or(CompileFault("too many arguments"))? = self.constant(Value::Type(ty.clone()))?;
        }
        let args = args_then_names;
        self.emit(Instruction::Call {
            op,
            out,
            args,
            expression: index,
        });
        Ok(())
    }

    /// Returns the type bound to a type parameter in a call: that of an argument, else of the result.
    fn type_argument(
        &self,
        call: ExpressionIndex,
        op: Op,
        args: &[ExpressionIndex],
        parameter: usize,
    ) -> Compiled<&'a Type> {
        let signature = op.signature();
        let wanted = TypePattern::Parameter(parameter);
        let place = signature
            .params
            .iter()
            .position(|(_, pattern)| *pattern == wanted);
        let typed = match place {
            Some(place) => *args.get(place).ok_or(MISSING)?,
            None if signature.returns == wanted => call,
            None => return Err(MISSING),
        };
        Ok(&self.node.expression(typed).ok_or(MISSING)?.ty)
    }

    /// Returns the member names of the enum bound to a type parameter.
    fn names_of_members(
        &mut self,
        call: ExpressionIndex,
        op: Op,
        args: &[ExpressionIndex],
        parameter: usize,
    ) -> Compiled<Operand> {
        let ty = self.type_argument(call, op, args, parameter)?;
        let (Type::Enum(of), Some(address)) = (ty, ty.address()) else {
            return Err(MISSING);
        };
        if let Some(known) = self.names.get(&address) {
            return Ok(*known);
        }
        let names = of.members().iter().cloned().map(Value::Text).collect();
        let operand = self.constant(Value::Array(names))?;
        self.names.insert(address, operand);
        Ok(operand)
    }

    /// Emits a jump whose target is set later.
    fn jump(&mut self, jump: Instruction) -> usize {
        self.emit(jump);
        self.code.instructions.len().saturating_sub(1)
    }

    /// Emits a jump for a false condition that is read nowhere else.
    fn jump_unless(&mut self, condition: Operand) -> usize {
        let jump = match self.take_comparison(condition) {
            Some((op, first, second)) => Instruction::JumpUnless {
                op,
                first,
                second,
                to: 0,
            },
            None => Instruction::JumpIfFalse { condition, to: 0 },
        };
        self.jump(jump)
    }

    /// Removes a last instruction that only computes this condition, and returns its operands. It must be a
    /// comparison of numbers. Does nothing at a jump target, because the jump brings its own condition. The caller
    /// has reset `top`.
    fn take_comparison(&mut self, condition: Operand) -> Option<(Op, Operand, Operand)> {
        if self.here().ok()? == self.landed {
            return None;
        }
        let Some(Instruction::Call { op, out, args, .. }) = self.code.instructions.last().copied() else {
            return None;
        };
        let [first, second, ..] = args;
        // Registers below `top` are in use, for example by a step.
        let is_temporary = out.0 >= self.top;
        if condition != Operand::register(out) || !is_temporary || !is_comparison(op) {
            return None;
        }
        self.code.instructions.pop();
        Some((op, first, second))
    }

    /// Sets the target of earlier jumps to the next instruction.
    fn land_all(&mut self, jumps: Vec<usize>) -> Compiled<()> {
        for jump in jumps {
            self.land(jump)?;
        }
        Ok(())
    }

    /// Sets the target of an earlier jump to the next instruction.
    fn land(&mut self, jump: usize) -> Compiled<()> {
        let here = self.here()?;
        self.landed = here;
        match self.code.instructions.get_mut(jump) {
            Some(
                Instruction::Jump { to }
                | Instruction::JumpIfTrue { to, .. }
                | Instruction::JumpIfFalse { to, .. }
                | Instruction::JumpUnless { to, .. }
                | Instruction::JumpUnlessNull { to, .. }
                | Instruction::LoopNext { done: to, .. }
                | Instruction::LoopAdvance { done: to, .. }
                | Instruction::LoopNextEntry { done: to, .. },
            ) => {
                *to = here;
                Ok(())
            }
            _ => Err(CompileFault("a jump is not where it was")),
        }
    }
}

const MISSING: CompileFault = CompileFault("a verified node refers to something that is not there");

fn place(length: usize) -> Compiled<u32> {
    // Must stay below the bit that marks constants.
    u32::try_from(length)
        .ok()
        .filter(|place| *place < 1 << 31)
        .ok_or(CompileFault("the node is too large"))
}
