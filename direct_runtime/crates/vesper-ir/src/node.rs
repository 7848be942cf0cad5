//! A node, in the two forms it has on the way in: as decoded (names as written) and as verified (places and types).

use std::collections::HashMap;
use std::sync::Arc;

use crate::flow::{Block, CalledNode, Machine};
use crate::generated::ops::Op;
use crate::intern::Types;
use crate::types::Type;
use crate::value::Value;

/// A place in the table of expressions.
pub type ExpressionIndex = u32;

/// An IR document whose shape is right; nothing is known yet about its meaning.
#[derive(Debug)]
pub struct Document {
    pub semantics: Semantics,
    pub source: Source,
    /// Every type that the document names.
    pub types: Types,
    /// sha256 over the canonical bytes of version and semantics, in hexadecimal.
    pub semantic_hash: String,
}

/// What the hash covers, field by field as the document has it.
#[derive(Debug)]
pub struct Semantics {
    pub body: Block,
    pub calls: Vec<CalledNode>,
    pub constants: Vec<RawConstant>,
    pub constraints: Vec<RawConstraint>,
    /// The fields of declared errors.
    pub errors: Vec<Output>,
    pub expressions: Vec<RawExpression>,
    pub inputs: Vec<RawInput>,
    pub invariants: Vec<ExpressionIndex>,
    pub machines: Vec<Machine>,
    pub node_id: Arc<str>,
    pub outputs: Vec<Output>,
    pub postconditions: Vec<ExpressionIndex>,
    pub preconditions: Vec<ExpressionIndex>,
}

/// A value as JSON has it, before a type gives it a meaning.
#[derive(Debug)]
pub enum RawValue {
    Null,
    Boolean(bool),
    Integer(i64),
    Text(Arc<str>),
    List(Vec<RawValue>),
    /// Keys in code-point order, each once.
    Object(Vec<(String, RawValue)>),
}

#[derive(Debug)]
pub struct RawInput {
    pub default: Option<RawValue>,
    pub name: Arc<str>,
    pub ty: Type,
}

#[derive(Debug)]
pub struct RawConstant {
    pub name: Arc<str>,
    pub ty: Type,
    pub value: RawValue,
}

#[derive(Debug)]
pub struct RawConstraint {
    pub holds: ExpressionIndex,
    pub input: Arc<str>,
}

#[derive(Debug)]
pub enum RawExpression {
    Literal {
        ty: Type,
        value: RawValue,
    },
    Input(Arc<str>),
    Constant(Arc<str>),
    Step(Arc<str>),
    Output(Arc<str>),
    Error(Arc<str>),
    Now(Type),
    Result(Type),
    Call {
        op: String,
        args: Vec<ExpressionIndex>,
        of: Option<Vec<Type>>,
    },
    If {
        condition: ExpressionIndex,
        then: ExpressionIndex,
        otherwise: ExpressionIndex,
    },
    And(ExpressionIndex, ExpressionIndex),
    Or(ExpressionIndex, ExpressionIndex),
    Local(LocalNumber),
    Let {
        local: LocalNumber,
        value: ExpressionIndex,
        body: ExpressionIndex,
    },
    For {
        locals: Vec<LocalNumber>,
        parts: For,
    },
    Array {
        items: Vec<ExpressionIndex>,
        of: Type,
    },
    Record {
        fields: Vec<(Arc<str>, ExpressionIndex)>,
    },
    Field {
        name: Arc<str>,
        of: ExpressionIndex,
    },
}

/// A local as the document numbers it.
pub type LocalNumber = u64;

/// What a `for` computes from the items it goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForKind {
    Array,
    Set,
    Map,
    ForAll,
    Exists,
    Sum,
    Count,
    Min,
    Max,
    Avg,
    SortBy,
    DistinctBy,
    MinBy,
    MaxBy,
    GroupBy,
    CountBy,
    IndexBy,
    TakeWhile,
    DropWhile,
    Fold,
}

/// Every kind of `for`, with its name in documents.
const FOR_KINDS: [(ForKind, &str); 20] = [
    (ForKind::Array, "array"),
    (ForKind::Set, "set"),
    (ForKind::Map, "map"),
    (ForKind::ForAll, "forall"),
    (ForKind::Exists, "exists"),
    (ForKind::Sum, "sum"),
    (ForKind::Count, "count"),
    (ForKind::Min, "min"),
    (ForKind::Max, "max"),
    (ForKind::Avg, "avg"),
    (ForKind::SortBy, "sort_by"),
    (ForKind::DistinctBy, "distinct_by"),
    (ForKind::MinBy, "min_by"),
    (ForKind::MaxBy, "max_by"),
    (ForKind::GroupBy, "group_by"),
    (ForKind::CountBy, "count_by"),
    (ForKind::IndexBy, "index_by"),
    (ForKind::TakeWhile, "take_while"),
    (ForKind::DropWhile, "drop_while"),
    (ForKind::Fold, "fold"),
];

impl ForKind {
    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut kinds = FOR_KINDS.iter();
        kinds.find(|(_, own)| *own == name).map(|(kind, _)| *kind)
    }

    /// The name in documents.
    pub fn name(self) -> &'static str {
        let mut kinds = FOR_KINDS.iter();
        kinds.find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// True where the items themselves are in the result, or counted there, so that each item is one value.
    pub fn is_of_items(self) -> bool {
        match self {
            Self::SortBy
            | Self::DistinctBy
            | Self::MinBy
            | Self::MaxBy
            | Self::GroupBy
            | Self::CountBy
            | Self::IndexBy
            | Self::TakeWhile
            | Self::DropWhile => true,
            Self::Array
            | Self::Set
            | Self::Map
            | Self::ForAll
            | Self::Exists
            | Self::Sum
            | Self::Count
            | Self::Min
            | Self::Max
            | Self::Avg
            | Self::Fold => false,
        }
    }
}

/// The expressions of a `for`, apart from its locals.
#[derive(Clone, Copy, Debug)]
pub struct For {
    pub kind: ForKind,
    pub over: ExpressionIndex,
    /// INVARIANT, once verified: the order of a `sort_by`, what a `fold` starts with, and nowhere else.
    pub with: Option<ExpressionIndex>,
    /// Which items count.
    pub filter: Option<ExpressionIndex>,
    /// INVARIANT, once verified: there is one in a map and nowhere else.
    pub key: Option<ExpressionIndex>,
    pub value: ExpressionIndex,
}

/// Where things stand in the `.vsp` file. Engines carry it and read no meaning from it.
#[derive(Clone, Debug)]
pub struct Source {
    pub clauses: Vec<(String, String)>,
    pub intent: String,
    /// The author's names of the locals, by their numbers.
    pub locals: Vec<Arc<str>>,
    pub path: String,
    pub sha256: String,
    pub spans: Vec<Span>,
    pub steps: Vec<(String, Span)>,
}

/// Line, column, end line, end column.
pub type Span = [u32; 4];

/// A verified node: every name has a place, every expression has a type, and all rules of docs/spec/ir.md hold.
#[derive(Clone, Debug)]
pub struct Node {
    pub node_id: Arc<str>,
    pub semantic_hash: String,
    pub source: Source,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub constants: Vec<Constant>,
    pub expressions: Vec<Expression>,
    pub constraints: Vec<ExpressionIndex>,
    pub preconditions: Vec<ExpressionIndex>,
    pub body: Block,
    /// Everything in the body that has a name, in program order.
    pub steps: Vec<Step>,
    pub postconditions: Vec<ExpressionIndex>,
    pub invariants: Vec<ExpressionIndex>,
    /// The fields of declared errors; the first is `error_code`, an enum. None where the node declares no errors.
    pub errors: Vec<Output>,
    pub calls: Vec<CalledNode>,
    /// True when an expression of it is `now`.
    pub uses_now: bool,
    /// The places of steps, by their names.
    pub(crate) step_places: HashMap<Arc<str>, usize>,
    /// The places of the locals of loops, by their numbers.
    pub(crate) loop_locals: HashMap<LocalNumber, usize>,
    /// How many locals there are.
    pub locals: usize,
}

#[derive(Clone, Debug)]
pub struct Input {
    pub name: Arc<str>,
    pub ty: Type,
    pub default: Option<Value>,
}

#[derive(Clone, Debug)]
pub struct Output {
    pub name: Arc<str>,
    pub ty: Type,
}

#[derive(Clone, Debug)]
pub struct Constant {
    pub name: Arc<str>,
    pub ty: Type,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub name: Arc<str>,
    /// The type of its value; nothing for a branch without one.
    pub ty: Option<Type>,
}

#[derive(Clone, Debug)]
pub struct Expression {
    pub ty: Type,
    pub kind: ExpressionKind,
    /// The first expression of the subtree; the subtree is everything from there to the expression itself.
    pub start: ExpressionIndex,
}

/// What an expression does; inputs, constants, steps, outputs and locals by their places.
#[derive(Clone, Debug)]
pub enum ExpressionKind {
    Literal(Value),
    Input(usize),
    Constant(usize),
    Step(usize),
    Output(usize),
    /// A field of the declared error.
    Error(usize),
    /// The start of the execution.
    Now,
    /// What a request or a call gave: it stands in the statement and in no other expression.
    Result,
    Call {
        op: Op,
        args: Vec<ExpressionIndex>,
    },
    If {
        condition: ExpressionIndex,
        then: ExpressionIndex,
        otherwise: ExpressionIndex,
    },
    And(ExpressionIndex, ExpressionIndex),
    Or(ExpressionIndex, ExpressionIndex),
    Local(usize),
    Let {
        local: usize,
        value: ExpressionIndex,
        body: ExpressionIndex,
    },
    For {
        /// The item; over a map, the key.
        item: usize,
        /// The value of a map's entry.
        entry_value: Option<usize>,
        /// What a `fold` has so far. INVARIANT: there is one in a `fold` and nowhere else.
        so_far: Option<usize>,
        parts: For,
    },
    Array(Vec<ExpressionIndex>),
    /// The fields in declared order.
    Record(Vec<ExpressionIndex>),
    Field {
        place: u32,
        of: ExpressionIndex,
    },
}

impl Node {
    /// The expression at this place of the table.
    pub fn expression(&self, index: ExpressionIndex) -> Option<&Expression> {
        self.expressions.get(usize::try_from(index).ok()?)
    }

    /// The place of a step.
    pub fn step_place(&self, name: &str) -> Option<usize> {
        self.step_places.get(name).copied()
    }

    /// The place of a local that a loop introduces.
    pub fn loop_local(&self, number: LocalNumber) -> Option<usize> {
        self.loop_locals.get(&number).copied()
    }
}
