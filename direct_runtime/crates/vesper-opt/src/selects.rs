//! If-conversion: a choice between two available values needs no jump.

use vesper_ir::Node;
use vesper_ir::node::{ExpressionIndex, ExpressionKind};

use crate::{Facts, forward, is_reference, kind};

/// Records every choice that is a selection.
pub(crate) fn find(node: &Node, facts: &mut Facts) {
    for index in (0..).take(node.expressions.len()) {
        if let Some((condition, _, _)) = selection(node, index)
            && !facts.chained.contains(&index)
            && !facts.switches.contains_key(&condition)
        {
            facts.selects.insert(index);
        }
    }
}

/// Returns condition and values of a choice, if evaluating both values costs nothing.
pub(crate) fn selection(
    node: &Node,
    index: ExpressionIndex,
) -> Option<(ExpressionIndex, ExpressionIndex, ExpressionIndex)> {
    let ExpressionKind::If {
        condition,
        then,
        otherwise,
    } = kind(node, index)
    else {
        return None;
    };
    let is_there = |part: &ExpressionIndex| is_reference(kind(node, forward(node, *part)));
    (is_there(then) && is_there(otherwise)).then_some((*condition, *then, *otherwise))
}
