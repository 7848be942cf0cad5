//! Checks that proofs from outside leave out of the plain form, and proofs that are refused.

use vesper_ir::Node;
use vesper_opt::{Proofs, Rules, listing, optimise_proven};

use crate::node::load;

const NODE: &str = "
    precondition integer.less(x, 1000)
    a = integer.add(x, 1)
    require integer.less(a, 5000)
    return result: a
    postcondition integer.less(integer.multiply(output.result, output.result), 7)
    invariant integer.greater(output.result, 0)
";

fn load_node() -> Node {
    load(NODE)
}

fn lines(node: &Node, proofs: &Proofs) -> Vec<String> {
    let text = listing(&optimise_proven(node, Rules::NONE, proofs));
    text.lines().skip(1).map(|line| line.trim().to_owned()).collect()
}

/// Returns the index of the call of an operation.
fn call_of(node: &Node, op: vesper_ir::Op) -> u32 {
    let is_call = |own: &vesper_ir::node::Expression| matches!(&own.kind, vesper_ir::node::ExpressionKind::Call { op: own, .. } if *own == op);
    u32::try_from(node.expressions.iter().position(is_call).unwrap()).unwrap()
}

#[test]
fn proven_clauses_hold_and_the_others_stay() {
    let node = load_node();
    let proofs = Proofs::new(&node, &[node.postconditions[0]], &[]).unwrap();
    let lines = lines(&node, &proofs);
    assert!(lines.contains(&"postcondition 0: holds".to_owned()), "{lines:?}");
    assert!(
        lines.contains(&"invariant 0: integer.greater(output.result, 0)".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"precondition 0: integer.less(x, 1000)".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn validations_may_be_proven() {
    let node = load_node();
    let vesper_ir::flow::Statement::Require { holds } = &node.body[1] else {
        panic!("{:?}", node.body[1]);
    };
    let proofs = Proofs::new(&node, &[*holds], &[]).unwrap();
    assert!(lines(&node, &proofs).contains(&"require: holds".to_owned()));
}

#[test]
fn proven_arithmetic_needs_no_check() {
    let node = load_node();
    let add = call_of(&node, vesper_ir::Op::IntegerAdd);
    let proofs = Proofs::new(&node, &[], &[add]).unwrap();
    assert!(lines(&node, &proofs).contains(&"a = integer.add!(x, 1)".to_owned()));
}

#[test]
fn what_is_no_such_check_is_refused() {
    let node = load_node();
    let refused = |clauses: &[u32], calls: &[u32]| Proofs::new(&node, clauses, calls).unwrap_err().0;
    let assumption = node.preconditions[0];
    let message = format!("proofs: expression {assumption} is no postcondition, invariant or validation");
    assert_eq!(refused(&[assumption], &[]), message);
    assert!(refused(&[u32::MAX], &[]).contains("is no postcondition"));
    assert!(refused(&[], &[u32::MAX]).contains("is no integer arithmetic"));
    assert!(refused(&[], &[node.postconditions[0]]).contains("is no integer arithmetic"));
}

/// A clause with a loop spends fuel, which every engine counts: it stays.
#[test]
fn clauses_that_cost_fuel_stay() {
    let node = load(
        "
        return result: x
        postcondition (forall $0 in array.range(0, x, 1) : integer.less($0, x))
        ",
    );
    let proofs = Proofs::new(&node, &[node.postconditions[0]], &[]).unwrap();
    let lines = lines(&node, &proofs);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("postcondition 0: (forall")),
        "{lines:?}"
    );
}
