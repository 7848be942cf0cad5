//! The optimizer of the direct path: a verified node in, a node that does the same in less time out.
//!
//! One rule a file. Every rule keeps the order of effects, the first error with the expression it is of, the fuel, and
//! the way a run goes; the generated Python never sees what comes out of here.
//!
//! The table of expressions keeps its places. A rule either puts a literal where an expression was, and what was below it
//! is never evaluated, or it notes something beside the node ([`Facts`]) which the compiler to bytecode asks for. So the
//! index of an expression is its name here as everywhere, and nothing has to be translated back. References (to inputs,
//! constants, steps, outputs, locals) are never replaced: what a broken clause mentions is read from the table.

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
pub use rules::{Rule, Rules};

/// A node that does the same as the one it was made of, and what is known about it.
#[derive(Debug)]
pub struct Optimised {
    pub node: Node,
    pub facts: Facts,
}

/// Expressions that nest deeper are left as they are: the rules go down with them, and a thread may have little stack.
/// What people write never nests so deep, because the front end takes 100 levels; a document made by hand may.
const MOST_NESTED: u32 = 128;

/// The node after these rules.
pub fn optimised(node: &Node, rules: Rules) -> Optimised {
    let mut node = node.clone();
    let mut facts = Facts::default();
    if nesting(&node) > MOST_NESTED {
        return Optimised { node, facts };
    }
    if rules.has(Rule::Constants) {
        constants::fold(&mut node);
    }
    if rules.has(Rule::Intervals) {
        intervals::prove(&mut node, &mut facts);
    }
    if rules.has(Rule::Guards) {
        guards::remember(&mut node, &facts);
    }
    if rules.has(Rule::Common) {
        common::same_on_both_sides(&mut node, &facts);
    }
    if rules.has(Rule::Constants) && (rules.has(Rule::Guards) || rules.has(Rule::Intervals)) {
        // What is known by now may decide more.
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

/// How deep the deepest expression is.
fn nesting(node: &Node) -> u32 {
    let mut depths: Vec<u32> = Vec::with_capacity(node.expressions.len());
    for expression in &node.expressions {
        // An operand stands before its user.
        let parts = safety::parts_of(&expression.kind).into_iter();
        let below = parts.filter_map(|part| depths.get(part as usize).copied()).max();
        depths.push(below.map_or(0, |below| below.saturating_add(1)));
    }
    depths.into_iter().max().unwrap_or(0)
}

/// The expression whose value an expression has once its conditions are known: a choice that is decided is what it
/// chooses.
pub fn forwarded(node: &Node, mut index: ExpressionIndex) -> ExpressionIndex {
    // An operand stands before its user, so this ends.
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

/// The truth value that an expression is a literal of.
pub fn known_boolean(node: &Node, index: ExpressionIndex) -> Option<bool> {
    match kind(node, forwarded(node, index)) {
        ExpressionKind::Literal(Value::Boolean(value)) => Some(*value),
        _ => None,
    }
}

static NOTHING: ExpressionKind = ExpressionKind::Literal(Value::Null);

/// What an expression does. A verified node refers to no expression that is not there.
pub(crate) fn kind(node: &Node, index: ExpressionIndex) -> &ExpressionKind {
    node.expression(index).map_or(&NOTHING, |own| &own.kind)
}

pub(crate) fn type_of(node: &Node, index: ExpressionIndex) -> Option<&Type> {
    node.expression(index).map(|own| &own.ty)
}

/// Puts a literal in the place of an expression.
pub(crate) fn replace(node: &mut Node, index: ExpressionIndex, value: Value) {
    if let Some(place) = node.expressions.get_mut(index as usize) {
        place.kind = ExpressionKind::Literal(value);
    }
}

/// True where the value is there already: nothing is computed, and nothing is gained by computing it elsewhere.
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
        | ExpressionKind::Field { .. } => false,
    }
}
