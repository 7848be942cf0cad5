//! Statements of a body, and the declarations that they refer to.
//!
//! Documents and verified nodes share these types: statements keep the names of the document, and the verified node
//! maps names to indexes.

use std::sync::Arc;

use crate::effect::EffectClass;
use crate::generated::effects::Effect;
use crate::generated::errors::ErrorCode;
use crate::node::{ExpressionIndex, LocalNumber, Output};
use crate::types::Type;

/// Statements that are executed in order.
pub type Block = Vec<Statement>;

/// A name and the expression of its value.
pub type NamedValue = (Arc<str>, ExpressionIndex);

#[derive(Clone, Debug)]
pub enum Statement {
    Step {
        name: Arc<str>,
        value: ExpressionIndex,
        handlers: Vec<Handler>,
    },
    /// INVARIANT: after verification, every output, in declared order.
    Return {
        success: Vec<NamedValue>,
    },
    /// INVARIANT: after verification, every error field, in declared order.
    Raise {
        error: Vec<NamedValue>,
    },
    Require {
        holds: ExpressionIndex,
    },
    Branch(Branch),
    Loop(Box<Loop>),
    Parallel(Parallel),
    Request(Box<Request>),
    Call(Call),
}

#[derive(Clone, Debug)]
pub struct Branch {
    pub name: Arc<str>,
    pub arms: Vec<Arm>,
    pub otherwise: Block,
    pub otherwise_value: Option<ExpressionIndex>,
    pub handlers: Vec<Handler>,
}

#[derive(Clone, Debug)]
pub struct Arm {
    pub when: ExpressionIndex,
    pub body: Block,
    pub value: Option<ExpressionIndex>,
}

#[derive(Clone, Debug)]
pub struct Loop {
    pub name: Arc<str>,
    /// Locals that a round binds: the item, or a map's key and optionally its value.
    pub locals: Vec<LocalNumber>,
    pub max: i64,
    pub over: Option<ExpressionIndex>,
    pub filter: Option<ExpressionIndex>,
    pub condition: Option<ExpressionIndex>,
    pub state: Vec<LoopVariable>,
    pub body: Block,
    pub collect: Option<ExpressionIndex>,
    pub next: Vec<(LocalNumber, ExpressionIndex)>,
    pub stop_when: Option<ExpressionIndex>,
    /// How many rounds are open at one time, as strands; `None` for a loop with one round after the other.
    pub in_flight: Option<usize>,
    pub handlers: Vec<Handler>,
}

/// Blocks that are executed as strands: each runs until it waits for requests, and they wait together.
#[derive(Clone, Debug)]
pub struct Parallel {
    pub name: Arc<str>,
    /// INVARIANT: after verification 2 to 64, none of which returns or raises.
    pub members: Vec<Block>,
    pub handlers: Vec<Handler>,
}

/// Variable of a loop's state.
#[derive(Clone, Debug)]
pub struct LoopVariable {
    pub local: LocalNumber,
    pub name: Arc<str>,
    pub value: ExpressionIndex,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub name: Arc<str>,
    pub effect: Effect,
    pub class: EffectClass,
    /// Fixed texts by name, in code-point order.
    pub fixed: Vec<(Arc<str>, Arc<str>)>,
    pub key: Option<ExpressionIndex>,
    pub arguments: Vec<NamedValue>,
    pub result: ExpressionIndex,
    /// Fields of the completion that the node declares sensitive. The Host reads them; an engine only verifies them.
    pub sensitive: Vec<Arc<str>>,
    pub handlers: Vec<Handler>,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub name: Arc<str>,
    pub node: Arc<str>,
    pub inputs: Vec<NamedValue>,
    pub result: ExpressionIndex,
    pub handlers: Vec<Handler>,
}

#[derive(Clone, Debug)]
pub struct Handler {
    pub codes: Vec<Arc<str>>,
    pub body: Block,
    pub value: Option<ExpressionIndex>,
}

impl Statement {
    /// Returns the name of the step, if the statement has one.
    pub fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Step { name, .. } => Some(name),
            Self::Branch(branch) => Some(&branch.name),
            Self::Loop(repeated) => Some(&repeated.name),
            Self::Parallel(parallel) => Some(&parallel.name),
            Self::Request(request) => Some(&request.name),
            Self::Call(call) => Some(&call.name),
            Self::Return { .. } | Self::Raise { .. } | Self::Require { .. } => None,
        }
    }

    /// Returns the handlers of the statement's failures.
    pub fn handlers(&self) -> &[Handler] {
        match self {
            Self::Step { handlers, .. } => handlers,
            Self::Branch(branch) => &branch.handlers,
            Self::Loop(repeated) => &repeated.handlers,
            Self::Parallel(parallel) => &parallel.handlers,
            Self::Request(request) => &request.handlers,
            Self::Call(call) => &call.handlers,
            Self::Return { .. } | Self::Raise { .. } | Self::Require { .. } => &[],
        }
    }

    /// Returns the blocks inside the statement, in program order.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let mut blocks = Vec::new();
        match self {
            Self::Branch(branch) => {
                blocks.extend(branch.arms.iter().map(|arm| &arm.body));
                blocks.push(&branch.otherwise);
            }
            Self::Loop(repeated) => blocks.push(&repeated.body),
            Self::Parallel(parallel) => blocks.extend(&parallel.members),
            _ => {}
        }
        blocks.extend(self.handlers().iter().map(|handler| &handler.body));
        blocks.into_iter()
    }

    /// Returns true when no later statement of the block can be reached.
    pub fn leaves(&self) -> bool {
        match self {
            Self::Return { .. } | Self::Raise { .. } => true,
            Self::Branch(branch) => {
                branch.arms.iter().all(|arm| leaves(&arm.body))
                    && leaves(&branch.otherwise)
                    && branch.handlers.iter().all(|handler| leaves(&handler.body))
            }
            _ => false,
        }
    }
}

/// Returns true when the end of the block cannot be reached.
pub fn leaves(block: &[Statement]) -> bool {
    block.last().is_some_and(Statement::leaves)
}

/// State machine as far as an engine uses it. The Host owns its transitions.
#[derive(Clone, Debug)]
pub struct Machine {
    pub name: Arc<str>,
    pub initial: Arc<str>,
    pub states: Vec<Arc<str>>,
    pub transitions: Vec<(Arc<str>, Arc<str>)>,
}

/// Declaration of a called node: its id, its semantic hash, its inputs and its outputs.
#[derive(Clone, Debug)]
pub struct CalledNode {
    pub node: Arc<str>,
    pub hash: Arc<str>,
    pub inputs: Vec<CalledInput>,
    pub success: Vec<Output>,
    pub error: Vec<Output>,
}

/// Input of a called node.
#[derive(Clone, Debug)]
pub struct CalledInput {
    pub name: Arc<str>,
    pub ty: Type,
    /// True when a call may omit the input. It has a default or may be null.
    pub is_optional: bool,
}

/// Code of a failure. An external code is `http_402` or an error of a called node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureCode {
    Known(ErrorCode),
    /// INVARIANT: not a name of the closed list.
    Other(Arc<str>),
}

impl FailureCode {
    /// Returns the code with this name.
    pub fn new(name: &str) -> Self {
        ErrorCode::from_name(name).map_or_else(|| Self::Other(Arc::from(name)), Self::Known)
    }

    /// Returns the name in documents and outcomes.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(code) => code.name(),
            Self::Other(name) => name,
        }
    }
}

impl From<ErrorCode> for FailureCode {
    fn from(code: ErrorCode) -> Self {
        Self::Known(code)
    }
}
