//! The instructions, and the tables they point into.
//!
//! One `Vec` of instructions runs from the first constraint to the last invariant. Every run ends: a jump that goes
//! back goes to the head of the loop it stands in and to nothing else; what stands there (`LoopNext`) takes one item of
//! a collection that was fixed when the loop started, or (`LoopLimit`) counts up to the limit of the loop, or leaves it;
//! and loops nest as expressions and statements do, so that a loop starts again only once for each round of the loop
//! around it. A failure goes forward: handlers stand behind what they guard.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use vesper_ir::node::ExpressionIndex;
use vesper_ir::{ErrorCode, KeyKind, MAX_ARITY, Op, Value};

use crate::inputs::reads::Reads;

pub(crate) mod listing;
pub(crate) mod sites;

use sites::{CallSite, ErrorConversion, Guard, RequestSite};

/// A place in the frame of a run: inputs first, then steps, returned values and temporaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub u32);

/// The state of one loop of a run; loops that are never under way together share a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopSlot(pub u32);

/// A run of `Code::operands`.
#[derive(Clone, Copy, Debug)]
pub struct OperandList {
    pub start: u32,
    pub length: u32,
}

/// Where an instruction reads: a register, or a constant of the program when the top bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand(u32);

const CONSTANT: u32 = 1 << 31;

impl Operand {
    pub fn register(register: Register) -> Self {
        Self(register.0)
    }

    pub fn constant(place: u32) -> Self {
        Self(place | CONSTANT)
    }

    /// The register it reads, unless it is a constant.
    pub fn as_register(self) -> Option<Register> {
        (self.0 & CONSTANT == 0).then_some(Register(self.0))
    }

    /// The place of the constant it reads, unless it is a register.
    pub fn as_constant(self) -> Option<u32> {
        (self.0 & CONSTANT != 0).then_some(self.0 & !CONSTANT)
    }

    /// The value an operand stands for.
    #[inline]
    pub fn read<'a>(self, constants: &'a [Value], registers: &'a [Value]) -> Option<&'a Value> {
        let place = (self.0 & !CONSTANT) as usize;
        if self.0 & CONSTANT == 0 {
            registers.get(place)
        } else {
            constants.get(place)
        }
    }
}

/// One instruction. Jumps give the place of the next instruction.
///
/// Which one it is stands in a byte of its own: left to itself the compiler hides it among the numbers of operations, and
/// every instruction is then told from an operation by arithmetic.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Instruction {
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
    /// Compares two values, and jumps where the comparison does not hold.
    JumpUnless {
        op: Op,
        first: Operand,
        second: Operand,
        to: u32,
    },
    JumpUnlessNull {
        value: Operand,
        to: u32,
    },
    /// Jumps to where a table says for an integer or a member.
    Switch {
        on: Operand,
        table: u32,
    },
    /// One of two values; the second where the condition is false.
    Select {
        out: Register,
        condition: Operand,
        then: Operand,
        otherwise: Operand,
    },
    /// The same by a comparison of numbers.
    SelectThat {
        op: Op,
        out: Register,
        first: Operand,
        second: Operand,
        then: Operand,
        otherwise: Operand,
    },
    /// Makes an array of the operands.
    Array {
        out: Register,
        items: OperandList,
    },
    /// Makes a record of the operands, in the order of its fields.
    Record {
        out: Register,
        fields: OperandList,
    },
    Field {
        out: Register,
        of: Operand,
        place: u32,
    },
    /// Takes hold of a collection, before its first item.
    LoopStart {
        slot: LoopSlot,
        over: Operand,
    },
    /// Takes hold of a range, which is not written out.
    LoopRange {
        slot: LoopSlot,
        start: Operand,
        end: Operand,
        step: Operand,
        expression: ExpressionIndex,
    },
    /// Puts the next item (of a map, the key) into a register; after the last one, jumps.
    LoopNext {
        slot: LoopSlot,
        item: Register,
        done: u32,
    },
    /// Puts the next key and value of a map into registers; after the last ones, jumps.
    LoopNextEntry {
        slot: LoopSlot,
        key: Register,
        value: Register,
        done: u32,
    },
    /// Goes on to the next item of an array, of which only fields are asked for; after the last one, jumps.
    LoopAdvance {
        slot: LoopSlot,
        done: u32,
    },
    /// Reads a field of the item that a loop is at, where it stands.
    LoopField {
        slot: LoopSlot,
        out: Register,
        place: u32,
    },
    /// Adds an item to the array that a loop builds.
    LoopPush {
        slot: LoopSlot,
        value: Operand,
        expression: ExpressionIndex,
    },
    /// Adds a member to the set that a loop builds; it may be there already.
    LoopPushMember {
        slot: LoopSlot,
        value: Operand,
    },
    /// Adds an item, and the key by which it is sorted or told from others.
    LoopPushKeyed {
        slot: LoopSlot,
        key: Operand,
        item: Operand,
        expression: ExpressionIndex,
    },
    /// Adds an entry to the map that a loop builds; fails where the key is there already.
    LoopPut {
        slot: LoopSlot,
        key: Operand,
        value: Operand,
        expression: ExpressionIndex,
    },
    /// Counts one more for a key of the map that a loop builds.
    LoopCount {
        slot: LoopSlot,
        key: Operand,
        expression: ExpressionIndex,
    },
    /// Adds an item to the group of its key.
    LoopGroup {
        slot: LoopSlot,
        key: Operand,
        item: Operand,
        expression: ExpressionIndex,
    },
    LoopArray {
        slot: LoopSlot,
        out: Register,
    },
    /// The items in the order of their keys.
    LoopSorted {
        slot: LoopSlot,
        out: Register,
        order: Operand,
    },
    /// The items whose keys equal no earlier one.
    LoopDistinct {
        slot: LoopSlot,
        out: Register,
    },
    LoopSet {
        slot: LoopSlot,
        out: Register,
        kind: KeyKind,
        expression: ExpressionIndex,
    },
    LoopMap {
        slot: LoopSlot,
        out: Register,
        kind: KeyKind,
    },
    /// The map of the groups, each an array.
    LoopGroups {
        slot: LoopSlot,
        out: Register,
        kind: KeyKind,
    },
    /// Jumps unless the value comes on this side of the best so far, which is null before the first.
    JumpUnlessBetter {
        best: Register,
        value: Operand,
        side: Ordering,
        to: u32,
    },
    /// Ends the run with a failure.
    Fail {
        code: ErrorCode,
        expression: ExpressionIndex,
    },
    /// Ends the run with a broken contract where the condition is false.
    Require {
        condition: Operand,
        clause: u32,
    },
    /// Compares two values, and ends the run with a broken contract where the comparison does not hold.
    RequireThat {
        op: Op,
        first: Operand,
        second: Operand,
        clause: u32,
    },
    /// Fails where a loop has had as many rounds as it may have.
    LoopLimit {
        count: Register,
        max: u32,
        expression: ExpressionIndex,
    },
    /// Takes one unit of fuel; `LoopNext` and `LoopNextEntry` take one for each item by themselves.
    Spend,
    /// One round of a loop is done.
    LoopRound {
        count: Register,
    },
    /// Stops until what is asked for has come.
    Request {
        site: u32,
    },
    /// Stops until the called node has ended.
    CallNode {
        site: u32,
    },
    /// The failure that a handler took goes on, as it was.
    FailAgain {
        slot: u32,
    },
    /// What is there at the end is a declared error, not the outputs.
    EndWithError,
    /// Records a mark; only in the traced form.
    Mark {
        expression: ExpressionIndex,
        value: Operand,
    },
    /// Passes a point: a bit of the word of the path in this register. This and the next three only in the pathed form.
    Note {
        word: Register,
        bit: u8,
    },
    /// Remembers how many items a loop that was just started has before it.
    LoopBegan {
        slot: LoopSlot,
        out: Register,
    },
    /// Passes one of the three points of a loop, by how many of these items it has taken.
    NoteItems {
        slot: LoopSlot,
        began: Register,
        point: u32,
    },
    /// The same by a count of rounds.
    NoteRounds {
        count: Register,
        point: u32,
    },
}

/// The instructions of one form of the program, and how many registers they need.
#[derive(Debug)]
pub struct Code {
    pub instructions: Vec<Instruction>,
    pub registers: usize,
    /// Where each output stands at the end.
    pub returns: Vec<Operand>,
    /// Where each field of a declared error stands at the end.
    pub errors: Vec<Register>,
    /// By the place that `Require` gives.
    pub clauses: Vec<Clause>,
    pub constants: Vec<Value>,
    /// What `Array` and `Record` read.
    pub operands: Vec<Operand>,
    /// How many loop slots a run needs.
    pub loops: usize,
    /// Inner ones before those around them.
    pub guards: Vec<Guard>,
    /// How many failures handlers hold at the same time.
    pub failures: usize,
    /// By the place that `Request` gives.
    pub requests: Vec<RequestSite>,
    /// By the place that `CallNode` gives.
    pub calls: Vec<CallSite>,
    /// Which failures of the body become declared errors.
    pub error_conversion: Option<ErrorConversion>,
    /// The registers of the path, and what is read on it; only in the pathed form.
    pub path: Option<PathOfCode>,
    /// By the place that `Switch` gives.
    pub(crate) switches: Vec<JumpTable>,
    /// Calls that cannot fail here, by their expressions. The interpreter checks all the same: that costs it nothing.
    pub(crate) proven: BTreeSet<ExpressionIndex>,
}

impl Code {
    /// True for a call that cannot fail here, though its operation may: machine code needs no check for it.
    pub fn is_proven(&self, expression: ExpressionIndex) -> bool {
        self.proven.contains(&expression)
    }

    /// The same in other instructions, for machine code that never goes on in the interpreter: what that has for failures
    /// is left out. Nothing for code with places that have numbers of instructions elsewhere.
    pub fn with(&self, instructions: Vec<Instruction>, registers: usize) -> Option<Self> {
        if !self.requests.is_empty() || !self.calls.is_empty() || !self.switches.is_empty() {
            return None;
        }
        Some(Self {
            instructions,
            registers,
            returns: self.returns.clone(),
            errors: self.errors.clone(),
            clauses: self.clauses.clone(),
            constants: self.constants.clone(),
            operands: self.operands.clone(),
            loops: self.loops,
            guards: Vec::new(),
            failures: 0,
            requests: Vec::new(),
            calls: Vec::new(),
            error_conversion: None,
            path: self.path.as_ref().map(|path| PathOfCode {
                first: path.first,
                words: path.words,
                reads: Reads::default(),
            }),
            switches: Vec::new(),
            proven: self.proven.clone(),
        })
    }
}

/// Where to go on, by an integer.
#[derive(Debug)]
pub(crate) struct JumpTable {
    /// The integer of the first place.
    pub(crate) least: i64,
    pub(crate) targets: Vec<u32>,
    pub(crate) otherwise: u32,
}

impl JumpTable {
    #[inline]
    pub(crate) fn target(&self, value: i64) -> u32 {
        let place = value
            .checked_sub(self.least)
            .and_then(|place| usize::try_from(place).ok());
        let target = place.and_then(|place| self.targets.get(place));
        target.copied().unwrap_or(self.otherwise)
    }
}

/// What the pathed form has besides.
#[derive(Debug)]
pub struct PathOfCode {
    /// The first of the registers that hold the words of the path.
    pub first: Register,
    pub words: usize,
    pub(crate) reads: Reads,
}

impl PathOfCode {
    /// The register and the bit of a point.
    pub fn place(&self, point: u32) -> (Register, u8) {
        let bit = u8::try_from(point % 64).unwrap_or_default();
        (Register(self.first.0 + point / 64), bit)
    }
}

/// The phases that have clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Constraint,
    Precondition,
    /// The `require` statements of the body.
    Validation,
    Postcondition,
    Invariant,
}

impl Phase {
    /// The name in outcomes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constraint => "constraint",
            Self::Precondition => "precondition",
            Self::Validation => "validation",
            Self::Postcondition => "postcondition",
            Self::Invariant => "invariant",
        }
    }
}

/// A clause, as an outcome reports it.
#[derive(Clone, Debug)]
pub struct Clause {
    pub phase: Phase,
    /// The index in the list of its phase.
    pub number: u32,
    /// What the clause mentions, in order of first mention, and where the values are.
    pub mentions: Vec<(Mention, Operand)>,
}

/// Something with a name that a clause mentions: the place among its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention {
    Input(usize),
    Constant(usize),
    Step(usize),
    Output(usize),
    Error(usize),
}
