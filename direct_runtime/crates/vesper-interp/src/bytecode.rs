//! Instructions and the tables they refer to.
//!
//! One list of instructions spans the node from the first constraint to the last invariant.
//!
//! INVARIANT: every run ends. A backward jump targets only the head of its own loop. The head takes one item of a
//! collection fixed at the start (`LoopNext`), counts up to the limit of the loop (`LoopLimit`), or leaves the loop.
//! Loops nest as expressions and statements do, so an inner loop restarts at most once per round of the outer one.
//! Failures only go forward, because handlers follow the code they guard.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use vesper_ir::node::ExpressionIndex;
use vesper_ir::prices::Price;
use vesper_ir::{ErrorCode, KeyKind, MAX_ARITY, Op, Value};

use crate::inputs::reads::Reads;

pub(crate) mod listing;
pub(crate) mod sites;

use sites::{CallSite, ErrorConversion, ForkSite, Guard, RequestSite};

/// A register of the frame: inputs first, then steps, returned values and temporaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub u32);

/// The slot of a loop's state. Loops that are never active together share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopSlot(pub u32);

/// A slice of `Code::operands`.
#[derive(Clone, Copy, Debug)]
pub struct OperandList {
    pub start: u32,
    pub length: u32,
}

/// The source of a value: a register, or a constant if the top bit is set.
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

    /// Returns the register, unless the operand is a constant.
    pub fn as_register(self) -> Option<Register> {
        (self.0 & CONSTANT == 0).then_some(Register(self.0))
    }

    /// Returns the index of the constant, unless the operand is a register.
    pub fn as_constant(self) -> Option<u32> {
        (self.0 & CONSTANT != 0).then_some(self.0 & !CONSTANT)
    }

    /// Returns the value of the operand.
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

/// One instruction. Jump targets are instruction indices.
///
/// `repr(u8)` keeps the discriminant in a separate byte. By default the compiler hides it in the range of `Op`, and
/// decoding would need arithmetic.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Instruction {
    /// Calls a kernel. An operation with fewer than `MAX_ARITY` parameters repeats its first argument.
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
    /// Jumps if a comparison of two values is false.
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
    /// Jumps by a table of integers or members.
    Switch {
        on: Operand,
        table: u32,
    },
    /// Selects one of two values by a condition.
    Select {
        out: Register,
        condition: Operand,
        then: Operand,
        otherwise: Operand,
    },
    /// Selects one of two values by a comparison of numbers.
    SelectThat {
        op: Op,
        out: Register,
        first: Operand,
        second: Operand,
        then: Operand,
        otherwise: Operand,
    },
    /// Creates an array of the operands.
    Array {
        out: Register,
        items: OperandList,
    },
    /// Creates a record of the operands, in field order.
    Record {
        out: Register,
        fields: OperandList,
    },
    Field {
        out: Register,
        of: Operand,
        place: u32,
    },
    /// Starts a loop over a collection.
    LoopStart {
        slot: LoopSlot,
        over: Operand,
    },
    /// Starts a loop over a range, which is never materialised.
    LoopRange {
        slot: LoopSlot,
        start: Operand,
        end: Operand,
        step: Operand,
        expression: ExpressionIndex,
    },
    /// Writes the next item (of a map, the key) to a register; jumps after the last one.
    LoopNext {
        slot: LoopSlot,
        item: Register,
        done: u32,
    },
    /// Writes the next key and value of a map to registers; jumps after the last entry.
    LoopNextEntry {
        slot: LoopSlot,
        key: Register,
        value: Register,
        done: u32,
    },
    /// Moves to the next item of an array of which only fields are read; jumps after the last one.
    LoopAdvance {
        slot: LoopSlot,
        done: u32,
    },
    /// Reads a field of the current item in place.
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
        /// The price of the item.
        price: u32,
    },
    /// Begins to count the memory of a loop.
    LoopMemory {
        slot: LoopSlot,
    },
    /// Gives back the memory of the last round.
    LoopRestore {
        slot: LoopSlot,
    },
    /// Takes memory for a value that a loop keeps.
    LoopCharge {
        slot: LoopSlot,
        value: Operand,
        price: u32,
    },
    /// Counts the memory of a loop's state anew, once the rounds have taken much more.
    LoopRecount {
        slot: LoopSlot,
        state: OperandList,
        /// The price of the first variable; those of the others follow.
        price: u32,
    },
    /// Adds a member to the set that a loop builds; duplicates are allowed.
    LoopPushMember {
        slot: LoopSlot,
        value: Operand,
    },
    /// Adds an item and the key that sorts or distinguishes it.
    LoopPushKeyed {
        slot: LoopSlot,
        key: Operand,
        item: Operand,
        expression: ExpressionIndex,
    },
    /// Adds an entry to the map that a loop builds; fails if the key exists.
    LoopPut {
        slot: LoopSlot,
        key: Operand,
        value: Operand,
        expression: ExpressionIndex,
    },
    /// Increments the count of a key in the map that a loop builds.
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
    /// Finishes an array of the items, sorted by key.
    LoopSorted {
        slot: LoopSlot,
        out: Register,
        order: Operand,
    },
    /// Finishes an array of the items whose key equals no earlier key.
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
    /// Finishes a map of the groups, each an array.
    LoopGroups {
        slot: LoopSlot,
        out: Register,
        kind: KeyKind,
    },
    /// Jumps unless the value compares as `side` to the best so far. The best is null before the first value.
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
    /// Ends the run with a broken contract if the condition is false.
    Require {
        condition: Operand,
        clause: u32,
    },
    /// Ends the run with a broken contract if a comparison of two values is false.
    RequireThat {
        op: Op,
        first: Operand,
        second: Operand,
        clause: u32,
    },
    /// Fails if a loop has reached its maximum rounds.
    LoopLimit {
        count: Register,
        max: u32,
        expression: ExpressionIndex,
    },
    /// Takes one unit of fuel. `LoopNext` and `LoopNextEntry` take one per item themselves.
    Spend,
    /// Counts a round of a loop.
    LoopRound {
        count: Register,
    },
    /// Suspends the run until the request is completed.
    Request {
        site: u32,
    },
    /// Calls a recursive function, at most as deep as it allows.
    Apply {
        function: u32,
        out: Register,
        args: OperandList,
        expression: ExpressionIndex,
    },
    /// Ends a call of a recursive function with this value.
    Leave {
        value: Operand,
    },
    /// Suspends the run until the called node has ended.
    CallNode {
        site: u32,
    },
    /// Begins the strands of a parallel statement, or the next round of a loop with rounds in flight.
    Fork {
        site: u32,
    },
    /// Suspends the run until all strands of the statement have ended.
    Join,
    /// Ends a member of a parallel statement.
    EndMember,
    /// Ends a round in flight with the value that it collects.
    EndRound {
        value: Operand,
        price: u32,
    },
    /// Raises the failure that a handler holds again, unchanged.
    FailAgain {
        slot: u32,
    },
    /// Makes the outcome a declared error instead of outputs.
    EndWithError,
    /// Records a mark; only in the traced form.
    Mark {
        expression: ExpressionIndex,
        value: Operand,
    },
    /// Records a point: a bit of a path word. This and the next three exist only in the pathed form.
    Note {
        word: Register,
        bit: u8,
    },
    /// Stores the item count of a loop that was just started.
    LoopBegan {
        slot: LoopSlot,
        out: Register,
    },
    /// Records the point of a loop by the number of items taken.
    NoteItems {
        slot: LoopSlot,
        began: Register,
        point: u32,
    },
    /// Records the point of a loop by a count of rounds.
    NoteRounds {
        count: Register,
        point: u32,
    },
}

/// A recursive function.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    /// The first instruction.
    pub(crate) entry: u32,
    /// The registers of the function, the parameters first.
    pub(crate) registers: std::ops::Range<usize>,
    pub(crate) loops: std::ops::Range<usize>,
    pub(crate) max_depth: u32,
    /// Functions that call each other have the same number.
    pub(crate) group: u32,
    /// The price of the value that a call makes, unless it is fixed.
    pub(crate) price: Option<u32>,
}

/// The instructions of one form of a node, with their tables.
#[derive(Debug)]
pub struct Code {
    pub instructions: Vec<Instruction>,
    pub registers: usize,
    /// The operand of each output at the end.
    pub returns: Vec<Operand>,
    /// The register of each field of a declared error at the end.
    pub errors: Vec<Register>,
    /// Indexed by `Require`.
    pub clauses: Vec<Clause>,
    pub constants: Vec<Value>,
    /// The operands of `Array` and `Record`.
    pub operands: Vec<Operand>,
    /// Prices of values that loops keep: a fixed part, and one that depends on the value.
    pub prices: Vec<(u64, Price)>,
    /// The number of loop slots.
    pub loops: usize,
    /// Inner guards before outer ones.
    pub guards: Vec<Guard>,
    /// The maximum failures held by handlers at one time.
    pub failures: usize,
    /// Indexed by `Request`.
    pub requests: Vec<RequestSite>,
    /// Indexed by `CallNode`.
    pub calls: Vec<CallSite>,
    /// Indexed by `Fork`.
    pub forks: Vec<ForkSite>,
    /// Indexed by `Apply`.
    pub functions: Vec<FunctionCode>,
    /// The failures of the body that become declared errors.
    pub error_conversion: Option<ErrorConversion>,
    /// The registers of the path and the reads along it; only in the pathed form.
    pub path: Option<PathOfCode>,
    /// Indexed by `Switch`.
    pub(crate) switches: Vec<JumpTable>,
    /// The expressions of calls that provably cannot fail. The interpreter checks them anyway, at no cost.
    pub(crate) proven: BTreeSet<ExpressionIndex>,
}

impl Code {
    /// Returns true for a call that cannot fail here. Machine code needs no check for it.
    pub fn is_proven(&self, expression: ExpressionIndex) -> bool {
        self.proven.contains(&expression)
    }

    /// Copies the code with other instructions, for machine code that never resumes in the interpreter. Omits failure
    /// handling. Returns `None` if other tables refer to instruction indices.
    pub fn with(&self, instructions: Vec<Instruction>, registers: usize) -> Option<Self> {
        if !self.functions.is_empty()
            || !self.requests.is_empty()
            || !self.calls.is_empty()
            || !self.forks.is_empty()
            || !self.switches.is_empty()
        {
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
            prices: self.prices.clone(),
            loops: self.loops,
            guards: Vec::new(),
            failures: 0,
            requests: Vec::new(),
            calls: Vec::new(),
            forks: Vec::new(),
            functions: Vec::new(),
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

/// A jump table over integers.
#[derive(Debug)]
pub(crate) struct JumpTable {
    /// The integer of the first target.
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

/// The path data of the pathed form.
#[derive(Debug)]
pub struct PathOfCode {
    /// The first register of the path words.
    pub first: Register,
    pub words: usize,
    pub(crate) reads: Reads,
}

impl PathOfCode {
    /// Returns the register and bit of a point.
    pub fn place(&self, point: u32) -> (Register, u8) {
        let bit = u8::try_from(point % 64).unwrap_or_default();
        (Register(self.first.0 + point / 64), bit)
    }
}

/// The phases of a contract.
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
    /// Returns the name in outcomes.
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

/// A clause as an outcome reports it.
#[derive(Clone, Debug)]
pub struct Clause {
    pub phase: Phase,
    /// The index within its phase.
    pub number: u32,
    /// The names that the clause mentions, in order of first mention, with their operands.
    pub mentions: Vec<(Mention, Operand)>,
}

/// A named value that a clause mentions, by index within its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention {
    Input(usize),
    Constant(usize),
    Step(usize),
    Output(usize),
    Error(usize),
}
