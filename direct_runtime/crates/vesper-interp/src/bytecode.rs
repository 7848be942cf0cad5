//! The instructions, and the tables they point into.
//!
//! One `Vec` of instructions runs from the first constraint to the last postcondition; jumps only go forward, so every
//! run ends after at most as many instructions as there are.

use vesper_ir::node::ExpressionIndex;
use vesper_ir::{MAX_ARITY, Op, Value};

/// A place in the frame of a run: inputs first, then steps, returned values and temporaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register(pub(crate) u32);

/// Where an instruction reads: a register, or a constant of the program when the top bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand(u32);

const CONSTANT: u32 = 1 << 31;

impl Operand {
    pub(crate) fn register(register: Register) -> Self {
        Self(register.0)
    }

    pub(crate) fn constant(place: u32) -> Self {
        Self(place | CONSTANT)
    }

    /// The value an operand stands for.
    #[inline]
    pub(crate) fn read<'a>(self, constants: &'a [Value], registers: &'a [Value]) -> Option<&'a Value> {
        let place = (self.0 & !CONSTANT) as usize;
        if self.0 & CONSTANT == 0 {
            registers.get(place)
        } else {
            constants.get(place)
        }
    }
}

/// One instruction. Jumps give the place of the next instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instruction {
    /// Calls a kernel. An operation with fewer than `MAX_ARITY` parameters has its first argument repeated.
    Call {
        op: Op,
        out: Register,
        args: [Operand; MAX_ARITY],
        expression: ExpressionIndex,
    },
    Move {
        out: Register,
        from: Operand,
    },
    Jump {
        to: u32,
    },
    JumpIfTrue {
        condition: Operand,
        to: u32,
    },
    JumpIfFalse {
        condition: Operand,
        to: u32,
    },
    /// Ends the run with a broken contract where the condition is false.
    Require {
        condition: Operand,
        clause: u32,
    },
    /// Records a mark; only in the traced form.
    Mark {
        expression: ExpressionIndex,
        value: Operand,
    },
}

/// The instructions of one form of the program, and how many registers they need.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) registers: usize,
    /// Where each output stands at the end.
    pub(crate) returns: Vec<Operand>,
    /// By the place that `Require` gives.
    pub(crate) clauses: Vec<Clause>,
    pub(crate) constants: Vec<Value>,
}

/// The phases that have clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Constraint,
    Precondition,
    Postcondition,
}

impl Phase {
    /// The name in outcomes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constraint => "constraint",
            Self::Precondition => "precondition",
            Self::Postcondition => "postcondition",
        }
    }
}

/// A clause, as an outcome reports it.
#[derive(Debug)]
pub(crate) struct Clause {
    pub(crate) phase: Phase,
    /// The index in the list of its phase.
    pub(crate) number: u32,
    /// What the clause mentions, in order of first mention, and where the values are.
    pub(crate) mentions: Vec<(Mention, Operand)>,
}

/// Something with a name that a clause mentions: the place among its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention {
    Input(usize),
    Constant(usize),
    Step(usize),
    Output(usize),
}
