//! Optimizer of the direct engine: makes a verified node execute faster with equal behaviour.
//!
//! Each file has one rule. Every rule preserves the order of effects, the first failure with its expression, the fuel
//! and the path. The generated Python is not affected.
//!
//! The table of expressions keeps its indexes. A rule either replaces an expression by a literal, whose operands are
//! then never evaluated, or records a fact in [`Facts`], which the bytecode compiler reads. An index therefore
//! identifies an expression in every form of the node, without translation. References (to inputs, constants, steps,
//! outputs, locals) are never replaced: the values that a broken clause reports are read from the table.

mod common;
mod constants;
mod dead_steps;
mod facts;
mod guards;
mod intervals;
mod invariants;
mod jump_tables;
mod listing;
mod numbering;
mod proofs;
mod rules;
mod safety;
mod selects;
mod walk;

use vesper_ir::Node;
use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{Type, Value};

pub use facts::{Case, Facts, LoopPlace, Switch};
pub use jump_tables::{ChainArm, chain};
pub use listing::listing;
pub use proofs::Proofs;
pub use rules::{Rule, Rules};

/// Optimised node with the facts about it.
#[derive(Debug)]
pub struct Optimised {
    pub node: Node,
    pub facts: Facts,
}

/// Maximum nesting of expressions that are optimised. The rules recurse, and a thread may have a small stack. The front
/// end accepts 100 levels; only a document written by hand has more.
const MAX_NESTING: u32 = 128;

/// Applies these rules to a copy of a node.
pub fn optimise(node: &Node, rules: Rules) -> Optimised {
    optimise_proven(node, rules, &Proofs::default())
}

/// Applies these rules to a copy of a node, and leaves out the checks that are proven.
pub fn optimise_proven(node: &Node, rules: Rules, proofs: &Proofs) -> Optimised {
    let mut node = node.clone();
    let mut facts = Facts::default();
    // The rules know no functions: a local of one has a value for each active call.
    if !node.functions.is_empty() || nesting(&node) > MAX_NESTING {
        return Optimised { node, facts };
    }
    if rules.has(Rule::Constants) {
        constants::fold(&mut node);
    }
    if rules.has(Rule::Intervals) {
        intervals::prove(&mut node, &mut facts);
    }
    if rules.has(Rule::Guards) {
        guards::replace_known(&mut node, &facts);
    }
    proofs::leave_out(&mut node, &mut facts, proofs);
    if rules.has(Rule::Common) {
        common::decide_self_comparisons(&mut node, &facts);
    }
    if rules.has(Rule::Constants) && (rules.has(Rule::Guards) || rules.has(Rule::Intervals)) {
        // The results of the rules so far may decide more expressions.
        constants::fold(&mut node);
    }
    if rules.has(Rule::DeadSteps) {
        dead_steps::remove(&mut node, &facts);
    }
    if rules.has(Rule::JumpTables) {
        jump_tables::find(&mut node, &mut facts);
    }
    if rules.has(Rule::Invariants) || rules.has(Rule::Guards) {
        invariants::hoist(&mut node, &mut facts, rules);
    }
    if rules.has(Rule::Common) {
        common::share(&mut node, &mut facts);
    }
    if rules.has(Rule::Selects) {
        selects::find(&node, &mut facts);
    }
    Optimised { node, facts }
}

/// Returns the depth of the deepest expression.
fn nesting(node: &Node) -> u32 {
    let mut depths: Vec<u32> = Vec::with_capacity(node.expressions.len());
    for expression in &node.expressions {
        // An operand precedes its user.
        let parts = safety::parts_of(&expression.kind).into_iter();
        let below = parts.filter_map(|part| depths.get(part as usize).copied()).max();
        depths.push(below.map_or(0, |below| below.saturating_add(1)));
    }
    depths.into_iter().max().unwrap_or(0)
}

/// Returns the expression that provides an expression's value. A decided choice forwards to its chosen operand.
pub fn forward(node: &Node, mut index: ExpressionIndex) -> ExpressionIndex {
    // An operand precedes its user, so the loop ends.
    loop {
        index = match kind(node, index) {
            ExpressionKind::If {
                condition,
                then,
                otherwise,
            } => match known_boolean(node, *condition) {
                Some(true) => *then,
                Some(false) => *otherwise,
                None => return index,
            },
            ExpressionKind::And(left, right) => {
                match (known_boolean(node, *left), known_boolean(node, *right)) {
                    (Some(true), _) => *right,
                    (Some(false), _) | (None, Some(true)) => *left,
                    (None, _) => return index,
                }
            }
            ExpressionKind::Or(left, right) => {
                match (known_boolean(node, *left), known_boolean(node, *right)) {
                    (Some(false), _) => *right,
                    (Some(true), _) | (None, Some(false)) => *left,
                    (None, _) => return index,
                }
            }
            _ => return index,
        };
    }
}

/// Returns the boolean that an expression is known to have.
pub fn known_boolean(node: &Node, index: ExpressionIndex) -> Option<bool> {
    match kind(node, forward(node, index)) {
        ExpressionKind::Literal(Value::Boolean(value)) => Some(*value),
        _ => None,
    }
}

static NOTHING: ExpressionKind = ExpressionKind::Literal(Value::Null);

/// Returns the kind of an expression. A verified node refers only to expressions in its table.
pub(crate) fn kind(node: &Node, index: ExpressionIndex) -> &ExpressionKind {
    node.expression(index).map_or(&NOTHING, |own| &own.kind)
}

pub(crate) fn type_of(node: &Node, index: ExpressionIndex) -> Option<&Type> {
    node.expression(index).map(|own| &own.ty)
}

/// Replaces an expression by a literal.
pub(crate) fn replace(node: &mut Node, index: ExpressionIndex, value: Value) {
    if let Some(place) = node.expressions.get_mut(index as usize) {
        place.kind = ExpressionKind::Literal(value);
    }
}

/// Returns true where the value is available without computation.
pub(crate) fn is_reference(kind: &ExpressionKind) -> bool {
    match kind {
        ExpressionKind::Literal(_)
        | ExpressionKind::Input(_)
        | ExpressionKind::Constant(_)
        | ExpressionKind::Step(_)
        | ExpressionKind::Output(_)
        | ExpressionKind::Error(_)
        | ExpressionKind::Now
        | ExpressionKind::Result
        | ExpressionKind::Local(_) => true,
        ExpressionKind::Call { .. }
        | ExpressionKind::If { .. }
        | ExpressionKind::And(..)
        | ExpressionKind::Or(..)
        | ExpressionKind::Let { .. }
        | ExpressionKind::For { .. }
        | ExpressionKind::Array(_)
        | ExpressionKind::Record(_)
        | ExpressionKind::Field { .. }
        | ExpressionKind::Apply { .. } => false,
    }
}
