//! Constant folding: kernels compute expressions over literals and constants once.
//!
//! An expression that would fail is left in place, so that it fails at its own index when it is reached. An expression
//! with a large value is left too: a range of a million items is not stored in a program.

use std::collections::HashMap;

use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{MAX_ARITY, Node, Value, dispatch};
use vesper_kernels::Native;

use crate::walk::{Visitor, walk};
use crate::{Facts, forward, is_reference, kind, known_boolean, replace, safety};

/// Maximum length of folded texts and collections.
const MAX_FOLDED_PARTS: usize = 64;

/// Folds constant expressions.
pub(crate) fn fold(node: &mut Node) {
    walk(node, None, &mut Folding::default());
}

#[derive(Default)]
struct Folding {
    steps: HashMap<usize, Value>,
    locals: HashMap<usize, Value>,
}

impl Folding {
    /// Returns the value of an expression, if it is constant.
    fn known_value(&self, node: &Node, index: ExpressionIndex) -> Option<Value> {
        match kind(node, forward(node, index)) {
            ExpressionKind::Literal(value) => Some(value.clone()),
            ExpressionKind::Constant(place) => Some(node.constants.get(*place)?.value.clone()),
            ExpressionKind::Step(place) => self.steps.get(place).cloned(),
            ExpressionKind::Local(place) => self.locals.get(place).cloned(),
            _ => None,
        }
    }

    fn compute(&self, node: &Node, index: ExpressionIndex) -> Option<Value> {
        match kind(node, index) {
            ExpressionKind::Call { op, args, .. } => {
                let signature = op.signature();
                // These kernels receive more than values, or a pattern, which is compiled with the node.
                if !(signature.named.is_empty()
                    && signature.typed.is_empty()
                    && signature.literals.is_empty())
                {
                    return None;
                }
                let mut values = Vec::with_capacity(MAX_ARITY);
                for arg in args {
                    values.push(self.known_value(node, *arg).filter(is_small)?);
                }
                let first = values.first()?;
                let mut given = [first; MAX_ARITY];
                for (place, value) in given.iter_mut().zip(&values) {
                    *place = value;
                }
                let result = dispatch(&Native, *op, &given);
                result.ok().filter(is_small)
            }
            ExpressionKind::Field { place, of } => match self.known_value(node, *of)? {
                Value::Record(fields) => fields.get(*place as usize).cloned(),
                _ => None,
            },
            ExpressionKind::Let { body, .. } => self.known_value(node, *body),
            _ => None,
        }
    }
}

fn is_small(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.len() <= MAX_FOLDED_PARTS,
        Value::Bytes(bytes) => bytes.len() <= MAX_FOLDED_PARTS,
        Value::Array(items) | Value::Record(items) => {
            items.len() <= MAX_FOLDED_PARTS && items.iter().all(is_small)
        }
        Value::Set(members) => members.len() <= MAX_FOLDED_PARTS,
        Value::Map(map) => map.keys().len() <= MAX_FOLDED_PARTS && map.values().iter().all(is_small),
        Value::Json(_) | Value::Type(_) | Value::Pattern(_) | Value::Table(_) => false,
        _ => true,
    }
}

impl Visitor for Folding {
    fn leave(&mut self, node: &mut Node, index: ExpressionIndex) {
        if is_reference(kind(node, index)) {
            return;
        }
        // A `let` whose value may fail must evaluate it.
        if let ExpressionKind::Let { value, .. } = kind(node, index)
            && !safety::is_safe(node, &Facts::default(), *value)
        {
            return;
        }
        if let Some(value) = self.compute(node, index) {
            replace(node, index, value);
            return;
        }
        // A constant right side decides if the left side cannot fail.
        let decided = match kind(node, index) {
            ExpressionKind::And(left, right) if known_boolean(node, *right) == Some(false) => {
                Some((*left, false))
            }
            ExpressionKind::Or(left, right) if known_boolean(node, *right) == Some(true) => {
                Some((*left, true))
            }
            _ => None,
        };
        if let Some((left, value)) = decided
            && safety::is_safe(node, &Facts::default(), left)
        {
            replace(node, index, Value::Boolean(value));
        }
    }

    fn step(&mut self, node: &Node, place: usize, value: Option<ExpressionIndex>) {
        if let Some(value) = value.and_then(|value| self.known_value(node, value)) {
            self.steps.insert(place, value);
        }
    }

    fn bind(&mut self, node: &Node, local: usize, value: ExpressionIndex) {
        if let Some(value) = self.known_value(node, value) {
            self.locals.insert(local, value);
        }
    }
}
