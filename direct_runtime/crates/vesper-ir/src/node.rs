//! The two forms of a node: decoded with names, and verified with indexes and types.

use std::collections::HashMap;
use std::sync::Arc;

use crate::flow::{Block, CalledNode, Machine};
use crate::generated::ops::Op;
use crate::intern::Types;
use crate::table::Table;
use crate::types::{Outside, Type};
use crate::value::Value;

/// Index into the table of expressions.
pub type ExpressionIndex = u32;

/// Decoded IR document. Its shape is correct; its meaning is not verified.
#[derive(Debug)]
pub struct Document {
    pub semantics: Semantics,
    pub source: Source,
    /// Tables by their hash.
    pub tables: HashMap<Arc<str>, Arc<Table>>,
    /// Taint flags; `None` for a document that was written without them.
    pub flags: Option<Flags>,
    /// All types that the document names.
    pub types: Types,
    /// SHA-256 of the canonical bytes of version and semantics, in hexadecimal.
    pub semantic_hash: String,
}

/// Part of the document that the semantic hash covers, field by field.
#[derive(Debug)]
pub struct Semantics {
    pub body: Block,
    pub calls: Vec<CalledNode>,
    pub constants: Vec<RawConstant>,
    pub constraints: Vec<RawConstraint>,
    /// Names of released values: steps and outputs, or `error.` and an error field.
    pub declassified: Vec<Arc<str>>,
    /// Fields of declared errors.
    pub errors: Vec<Output>,
    pub expressions: Vec<RawExpression>,
    pub functions: Vec<RawFunction>,
    pub inputs: Vec<RawInput>,
    pub invariants: Vec<ExpressionIndex>,
    pub machines: Vec<Machine>,
    pub node_id: Arc<str>,
    pub outputs: Vec<Output>,
    pub outside_errors: Option<Outside>,
    pub outside_inputs: Option<Outside>,
    pub outside_outputs: Option<Outside>,
    pub postconditions: Vec<ExpressionIndex>,
    pub preconditions: Vec<ExpressionIndex>,
}

/// Taint flags: the sources of each value. The Host reads them; an engine only verifies them.
#[derive(Debug)]
pub struct Flags {
    pub errors: Vec<(Arc<str>, SourceFlow)>,
    pub failures: Vec<(ExpressionIndex, SourceFlow)>,
    pub outputs: Vec<(Arc<str>, SourceFlow)>,
    /// Names of inputs, requests and calls; bit n of a flow stands for the n-th.
    pub sources: Vec<Arc<str>>,
    pub steps: Vec<(Arc<str>, SourceFlow)>,
    pub values: Vec<(ExpressionIndex, SourceFlow)>,
}

/// Sources of a value, and further sources of single fields.
#[derive(Debug)]
pub struct SourceFlow {
    pub fields: Vec<(String, SourceFlow)>,
    /// Nibbles of the set of sources, the lowest first.
    pub from: Vec<u8>,
}

/// JSON value that has no type yet.
#[derive(Debug)]
pub enum RawValue {
    Null,
    Boolean(bool),
    Integer(i64),
    Text(Arc<str>),
    List(Vec<RawValue>),
    /// INVARIANT: keys in code-point order, each once.
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

/// Recursive function.
#[derive(Debug)]
pub struct RawFunction {
    pub max_depth: u32,
    pub name: Arc<str>,
    pub params: Vec<(LocalNumber, Type)>,
    pub returns: Type,
    pub value: ExpressionIndex,
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
    Apply {
        function: Arc<str>,
        args: Vec<ExpressionIndex>,
    },
}

/// Number of a local in the document.
pub type LocalNumber = u64;

/// Computation of a `for` over its items.
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

/// All kinds of `for` with their names in documents.
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
    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut kinds = FOR_KINDS.iter();
        kinds.find(|(_, own)| *own == name).map(|(kind, _)| *kind)
    }

    /// Returns the name of the kind in documents.
    pub fn name(self) -> &'static str {
        let mut kinds = FOR_KINDS.iter();
        kinds.find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Returns true where the result contains or counts the items. Each item is then one value.
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

/// Expressions of a `for`, without its locals.
#[derive(Clone, Copy, Debug)]
pub struct For {
    pub kind: ForKind,
    pub over: ExpressionIndex,
    /// Order of a `sort_by` or initial value of a `fold`. INVARIANT: after verification, present only there.
    pub with: Option<ExpressionIndex>,
    /// Condition that selects items.
    pub filter: Option<ExpressionIndex>,
    /// INVARIANT: after verification, present in `map` and only there.
    pub key: Option<ExpressionIndex>,
    pub value: ExpressionIndex,
}

/// Locations in the `.vsp` file. Engines carry them without interpreting them.
#[derive(Clone, Debug)]
pub struct Source {
    pub clauses: Vec<(String, String)>,
    pub intent: String,
    /// The author's names of the locals, by number.
    pub locals: Vec<Arc<str>>,
    pub path: String,
    pub sha256: String,
    pub spans: Vec<Span>,
    pub steps: Vec<(String, Span)>,
}

/// Line, column, end line, end column.
pub type Span = [u32; 4];

/// Verified node. Names are resolved, expressions are typed, and all rules of docs/spec/ir.md hold.
#[derive(Clone, Debug)]
pub struct Node {
    pub node_id: Arc<str>,
    pub semantic_hash: String,
    pub source: Source,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub constants: Vec<Constant>,
    pub expressions: Vec<Expression>,
    /// Recursive functions, which expressions call by their index.
    pub functions: Vec<Function>,
    pub constraints: Vec<ExpressionIndex>,
    pub preconditions: Vec<ExpressionIndex>,
    pub body: Block,
    /// Named statements of the body, in program order.
    pub steps: Vec<Step>,
    pub postconditions: Vec<ExpressionIndex>,
    pub invariants: Vec<ExpressionIndex>,
    /// Fields of declared errors; the first is `error_code`, an enum. Empty where the node declares no errors.
    pub errors: Vec<Output>,
    /// Outside names of the inputs, outputs and error fields, where they have any.
    pub outside_inputs: Option<Outside>,
    pub outside_outputs: Option<Outside>,
    pub outside_errors: Option<Outside>,
    pub calls: Vec<CalledNode>,
    /// True when an expression of the node is `now`.
    pub uses_now: bool,
    /// Indexes of steps, by name.
    pub(crate) step_places: HashMap<Arc<str>, usize>,
    /// Indexes of the locals of loops and of parameters, by number.
    pub(crate) loop_locals: HashMap<LocalNumber, usize>,
    /// Number of locals.
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

/// Recursive function. Its value reads its parameters and constants only.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: Arc<str>,
    /// Locals of the parameters.
    pub params: Vec<usize>,
    pub returns: Type,
    pub value: ExpressionIndex,
    pub max_depth: u32,
    /// Functions that call each other have the same number.
    pub group: u32,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub name: Arc<str>,
    /// Type of the step's value; `None` for a branch without a value.
    pub ty: Option<Type>,
}

#[derive(Clone, Debug)]
pub struct Expression {
    pub ty: Type,
    pub kind: ExpressionKind,
    /// First expression of the subtree, which extends from there to the expression itself.
    pub start: ExpressionIndex,
}

/// Operation of an expression. Inputs, constants, steps, outputs and locals are indexes.
#[derive(Clone, Debug)]
pub enum ExpressionKind {
    Literal(Value),
    Input(usize),
    Constant(usize),
    Step(usize),
    Output(usize),
    /// Field of the declared error.
    Error(usize),
    /// Start time of the execution.
    Now,
    /// Completion of a request or result of a call. INVARIANT: occurs only as a direct expression of the statement.
    Result,
    Call {
        op: Op,
        args: Vec<ExpressionIndex>,
        /// Type arguments that the kernel receives, as the document has them: those of the arguments may have other
        /// outside names.
        types: Vec<Type>,
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
        /// Local of the item; over a map, of the key.
        item: usize,
        /// Local of the value of a map's entry.
        entry_value: Option<usize>,
        /// Local of the accumulator. INVARIANT: present in a `fold` and only there.
        so_far: Option<usize>,
        parts: For,
    },
    Array(Vec<ExpressionIndex>),
    /// Fields in declared order.
    Record(Vec<ExpressionIndex>),
    Field {
        place: u32,
        of: ExpressionIndex,
    },
    /// Call of a recursive function.
    Apply {
        function: usize,
        args: Vec<ExpressionIndex>,
    },
}

impl Node {
    /// Returns the expression at this index.
    pub fn expression(&self, index: ExpressionIndex) -> Option<&Expression> {
        self.expressions.get(usize::try_from(index).ok()?)
    }

    /// Returns the name of an input in JSON and Arrow.
    pub fn input_key(&self, place: usize) -> &str {
        let own = || self.inputs.get(place).map_or("", |input| &*input.name);
        self.outside_inputs
            .as_ref()
            .map_or_else(own, |outside| outside.name(place))
    }

    /// Returns the name of an output in JSON and Arrow.
    pub fn output_key(&self, place: usize) -> &str {
        let own = || self.outputs.get(place).map_or("", |output| &*output.name);
        self.outside_outputs
            .as_ref()
            .map_or_else(own, |outside| outside.name(place))
    }

    /// Returns the index of the step with this name.
    pub fn step_place(&self, name: &str) -> Option<usize> {
        self.step_places.get(name).copied()
    }

    /// Returns the index of the local that a loop introduces under this number.
    pub fn loop_local(&self, number: LocalNumber) -> Option<usize> {
        self.loop_locals.get(&number).copied()
    }
}
