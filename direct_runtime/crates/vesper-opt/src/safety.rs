//! Expressions that cannot fail and cost no fuel: only these may be moved or removed.

use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{Node, Op};

use crate::{Facts, forward, kind};

/// Returns true where evaluating the expression has no effect except its value.
pub(crate) fn is_safe(node: &Node, facts: &Facts, index: ExpressionIndex) -> bool {
    let index = forward(node, index);
    let all = |parts: &[ExpressionIndex]| parts.iter().all(|part| is_safe(node, facts, *part));
    match kind(node, index) {
        ExpressionKind::Literal(_)
        | ExpressionKind::Input(_)
        | ExpressionKind::Constant(_)
        | ExpressionKind::Step(_)
        | ExpressionKind::Output(_)
        | ExpressionKind::Error(_)
        | ExpressionKind::Now
        | ExpressionKind::Local(_) => true,
        // Each item costs fuel, and the result may exceed a limit.
        ExpressionKind::For { .. } | ExpressionKind::Apply { .. } | ExpressionKind::Result => false,
        ExpressionKind::Call { op, args, .. } => {
            let cannot_fail = op.signature().raises.is_empty() || facts.proven.contains(&index);
            cannot_fail && !has_work(*op) && all(args)
        }
        ExpressionKind::If {
            condition,
            then,
            otherwise,
        } => all(&[*condition, *then, *otherwise]),
        ExpressionKind::And(left, right) | ExpressionKind::Or(left, right) => all(&[*left, *right]),
        ExpressionKind::Let { value, body, .. } => all(&[*value, *body]),
        ExpressionKind::Array(parts) | ExpressionKind::Record(parts) => all(parts),
        ExpressionKind::Field { of, .. } => is_safe(node, facts, *of),
    }
}

/// Returns true for an operation that costs fuel on large values.
pub(crate) fn has_work(op: Op) -> bool {
    let signature = op.signature();
    signature.builds
        || !signature.work.is_empty()
        || matches!(op, Op::JsonCast | Op::JsonFromValue | Op::JsonParse)
}

/// Returns true where evaluating the expression may call such an operation.
pub(crate) fn reaches_work(node: &Node, index: ExpressionIndex) -> bool {
    let index = forward(node, index);
    match kind(node, index) {
        ExpressionKind::Call { op, .. } if has_work(*op) => true,
        kind => parts_of(kind).into_iter().any(|part| reaches_work(node, part)),
    }
}

/// Collects every expression that evaluating this one may reach, itself last. Decided choices are left out.
pub(crate) fn collect_reached(node: &Node, index: ExpressionIndex, found: &mut Vec<ExpressionIndex>) {
    let index = forward(node, index);
    for part in parts_of(kind(node, index)) {
        collect_reached(node, part, found);
    }
    found.push(index);
}

/// Returns the operands of an expression, in order.
pub(crate) fn parts_of(kind: &ExpressionKind) -> Vec<ExpressionIndex> {
    match kind {
        ExpressionKind::Literal(_)
        | ExpressionKind::Input(_)
        | ExpressionKind::Constant(_)
        | ExpressionKind::Step(_)
        | ExpressionKind::Output(_)
        | ExpressionKind::Error(_)
        | ExpressionKind::Now
        | ExpressionKind::Result
        | ExpressionKind::Local(_) => Vec::new(),
        ExpressionKind::Call { args: parts, .. }
        | ExpressionKind::Apply { args: parts, .. }
        | ExpressionKind::Array(parts)
        | ExpressionKind::Record(parts) => parts.clone(),
        ExpressionKind::If {
            condition,
            then,
            otherwise,
        } => vec![*condition, *then, *otherwise],
        ExpressionKind::And(left, right) | ExpressionKind::Or(left, right) => vec![*left, *right],
        ExpressionKind::Let { value, body, .. } => vec![*value, *body],
        ExpressionKind::Field { of, .. } => vec![*of],
        ExpressionKind::For { parts, .. } => {
            let optional = [parts.with, parts.filter, parts.key];
            let mut all = vec![parts.over];
            all.extend(optional.into_iter().flatten());
            all.push(parts.value);
            all
        }
    }
}
