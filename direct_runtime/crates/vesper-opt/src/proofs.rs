//! Checks that a solver has proven never to fail (docs/spec/proofs.md): left out of the plain form.
//!
//! A proof comes from outside and may be wrong. It removes checks of values only: a clause that costs nothing, and the
//! overflow check of integer arithmetic. No rule moves an expression because of it.

use std::collections::BTreeSet;

use vesper_ir::flow::{Block, Statement};
use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{Node, Op, Rejected, Value};

use crate::safety::{collect_reached, has_work};
use crate::{Facts, kind, replace};

/// Proofs about one node.
#[derive(Clone, Debug, Default)]
pub struct Proofs {
    /// Expressions of postconditions, invariants and validations that always hold.
    clauses: BTreeSet<ExpressionIndex>,
    /// Calls of integer arithmetic that never overflow.
    calls: BTreeSet<ExpressionIndex>,
}

impl Proofs {
    /// Checks that every index names what it claims. Constraints and preconditions are refused: proofs assume them.
    pub fn new(
        node: &Node,
        clauses: &[ExpressionIndex],
        calls: &[ExpressionIndex],
    ) -> Result<Self, Rejected> {
        let mut known: BTreeSet<_> = node
            .postconditions
            .iter()
            .chain(&node.invariants)
            .copied()
            .collect();
        collect_validations(&node.body, &mut known);
        if let Some(index) = clauses.iter().find(|index| !known.contains(index)) {
            return Err(Rejected(format!(
                "proofs: expression {index} is no postcondition, invariant or validation"
            )));
        }
        if let Some(index) = calls.iter().find(|index| !is_arithmetic(node, **index)) {
            return Err(Rejected(format!(
                "proofs: expression {index} is no integer arithmetic"
            )));
        }
        Ok(Self {
            clauses: clauses.iter().copied().collect(),
            calls: calls.iter().copied().collect(),
        })
    }
}

/// Leaves out what is proven. Runs after the rules that rely on clauses, before those that share values.
pub(crate) fn leave_out(node: &mut Node, facts: &mut Facts, proofs: &Proofs) {
    facts.unchecked.clone_from(&proofs.calls);
    for clause in &proofs.clauses {
        if is_free_of_charge(node, *clause) {
            replace(node, *clause, Value::Boolean(true));
        }
    }
}

fn is_arithmetic(node: &Node, index: ExpressionIndex) -> bool {
    let ExpressionKind::Call { op, .. } = kind(node, index) else {
        return false;
    };
    matches!(
        op,
        Op::IntegerAdd | Op::IntegerSubtract | Op::IntegerMultiply | Op::IntegerNegate | Op::IntegerAbs
    )
}

/// Returns true where evaluating the clause spends neither fuel nor memory. Others stay, with their charge.
fn is_free_of_charge(node: &Node, clause: ExpressionIndex) -> bool {
    let mut reached = Vec::new();
    collect_reached(node, clause, &mut reached);
    reached.into_iter().all(|index| match kind(node, index) {
        ExpressionKind::For { .. } | ExpressionKind::Apply { .. } => false,
        ExpressionKind::Call { op, .. } => !has_work(*op),
        _ => true,
    })
}

fn collect_validations(block: &Block, found: &mut BTreeSet<ExpressionIndex>) {
    for statement in block {
        if let Statement::Require { holds } = statement {
            found.insert(*holds);
        }
        for block in statement.blocks() {
            collect_validations(block, found);
        }
    }
}
