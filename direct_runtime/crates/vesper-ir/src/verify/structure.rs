//! Shape of the table of expressions: program order, operands used once, bounded depth.

use crate::Rejected;
use crate::limits::DEPTH;
use crate::node::{ExpressionIndex, RawExpression};

/// Returns the start of each expression's subtree. A subtree is the run of expressions from its start to its root.
pub(super) fn check(
    expressions: &[RawExpression],
    roots: &[ExpressionIndex],
) -> Result<Vec<ExpressionIndex>, Rejected> {
    check_used_once(expressions, roots)?;
    let mut starts: Vec<ExpressionIndex> = Vec::with_capacity(expressions.len());
    let mut depths: Vec<u16> = Vec::with_capacity(expressions.len());
    for (index, expression) in (0..).zip(expressions) {
        let mut depth = 0;
        let mut start = index;
        // From the last operand to the first: each must end directly before the next one.
        for operand in operands(expression).into_iter().rev() {
            if operand.checked_add(1) != Some(start) {
                return Err(order_error(operand));
            }
            let place = usize::try_from(operand).unwrap_or(usize::MAX);
            start = starts.get(place).copied().unwrap_or(operand);
            depth = depth.max(depths.get(place).copied().unwrap_or(0));
        }
        if depth >= DEPTH {
            return Err(Rejected(format!(
                "expression {index}: it is more than {DEPTH} deep"
            )));
        }
        starts.push(start);
        depths.push(depth + 1);
    }
    let mut next = 0;
    for root in roots {
        let start = usize::try_from(*root).ok().and_then(|place| starts.get(place));
        if start != Some(&next) {
            return Err(order_error(*root));
        }
        next = root.saturating_add(1);
    }
    Ok(starts)
}

fn order_error(index: ExpressionIndex) -> Rejected {
    Rejected(format!("expression {index}: it is not in program order"))
}

fn check_used_once(expressions: &[RawExpression], roots: &[ExpressionIndex]) -> Result<(), Rejected> {
    let mut is_used = vec![false; expressions.len()];
    let mut mark = |index: ExpressionIndex| {
        let used = usize::try_from(index)
            .ok()
            .and_then(|place| is_used.get_mut(place));
        match used {
            None => Err(Rejected(format!(
                "expression {index} is used, but the table ends before it"
            ))),
            Some(true) => Err(Rejected(format!("expression {index} is used twice"))),
            Some(used) => {
                *used = true;
                Ok(())
            }
        }
    };
    for (index, expression) in (0..).zip(expressions) {
        for operand in operands(expression) {
            if operand >= index {
                return Err(Rejected(format!(
                    "expression {index}: its operand {operand} does not precede it"
                )));
            }
            mark(operand)?;
        }
    }
    for root in roots {
        mark(*root)?;
    }
    match is_used.iter().position(|used| !used) {
        Some(index) => Err(Rejected(format!("expression {index} is not used"))),
        None => Ok(()),
    }
}

/// Returns the operands in order of evaluation.
pub(super) fn operands(expression: &RawExpression) -> Vec<ExpressionIndex> {
    match expression {
        RawExpression::Call { args, .. } | RawExpression::Apply { args, .. } => args.clone(),
        RawExpression::If {
            condition,
            then,
            otherwise,
        } => vec![*condition, *then, *otherwise],
        RawExpression::And(left, right) | RawExpression::Or(left, right) => vec![*left, *right],
        RawExpression::Let { value, body, .. } => vec![*value, *body],
        RawExpression::For { parts, .. } => {
            let mut found = vec![parts.over];
            found.extend(parts.with);
            found.extend(parts.filter);
            found.extend(parts.key);
            found.push(parts.value);
            found
        }
        RawExpression::Array { items, .. } => items.clone(),
        RawExpression::Record { fields } => fields.iter().map(|(_, value)| *value).collect(),
        RawExpression::Field { of, .. } => vec![*of],
        RawExpression::Literal { .. }
        | RawExpression::Local(_)
        | RawExpression::Input(_)
        | RawExpression::Constant(_)
        | RawExpression::Step(_)
        | RawExpression::Output(_)
        | RawExpression::Error(_)
        | RawExpression::Now(_)
        | RawExpression::Result(_) => Vec::new(),
    }
}
