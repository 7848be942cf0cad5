//! Jump tables: a chain of tests on one enum or integer jumps to the first test that may hold.
//!
//! A skipped test would have been false, and a comparison cannot fail, so the result is the same. The rest of a test
//! after its comparison (`kind == a and amount > 3`) is still evaluated; where it is false, the chain continues as
//! written.

use std::collections::BTreeMap;

use vesper_ir::flow::{Block, Statement};
use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{Node, Op, Value};

use crate::{Case, Facts, Switch, forward, kind, known_boolean};

/// Minimum number of values; fewer are tested as fast one by one.
const MIN_CASES: usize = 3;
/// Maximum number of entries in a table.
const MAX_TABLE_SPAN: i64 = 256;

/// Records every chain that becomes a table.
pub(crate) fn find(node: &mut Node, facts: &mut Facts) {
    let body = std::mem::take(&mut node.body);
    in_block(node, facts, &body);
    node.body = body;
    // From the last to the first: the outermost choice of a chain is visited before the inner ones.
    let count = u32::try_from(node.expressions.len()).unwrap_or(u32::MAX);
    for index in (0..count).rev() {
        if facts.chained.contains(&index) {
            continue;
        }
        let (arms, _, inner) = chain(node, index, usize::MAX);
        let conditions: Vec<_> = arms.iter().map(|(condition, _)| *condition).collect();
        if let (Some(first), Some(switch)) = (conditions.first(), switch(node, &conditions)) {
            facts.switches.insert(*first, switch);
            facts.chained.extend(inner);
        }
    }
}

fn in_block(node: &Node, facts: &mut Facts, block: &Block) {
    for statement in block {
        if let Statement::Branch(branch) = statement {
            let conditions: Vec<_> = branch.arms.iter().map(|arm| arm.when).collect();
            if let (Some(first), Some(switch)) = (conditions.first(), switch(node, &conditions)) {
                facts.switches.insert(*first, switch);
            }
        }
        for block in statement.blocks() {
            in_block(node, facts, block);
        }
    }
}

/// Condition and chosen value of an arm.
pub type ChainArm = (ExpressionIndex, ExpressionIndex);

/// Returns the arms of a chain of choices, its default, and the choices after the first. Returns at most `most` arms.
pub fn chain(
    node: &Node,
    mut index: ExpressionIndex,
    most: usize,
) -> (Vec<ChainArm>, ExpressionIndex, Vec<ExpressionIndex>) {
    let (mut arms, mut inner) = (Vec::new(), Vec::new());
    while let ExpressionKind::If {
        condition,
        then,
        otherwise,
    } = kind(node, index)
    {
        if arms.len() == most || known_boolean(node, *condition).is_some() {
            break;
        }
        if !arms.is_empty() {
            inner.push(index);
        }
        arms.push((*condition, *then));
        index = forward(node, *otherwise);
    }
    (arms, index, inner)
}

/// Comparison at the start of a test.
struct Test {
    subject: ExpressionIndex,
    values: Vec<i64>,
    /// True where the test has no other part.
    is_whole: bool,
}

fn switch(node: &Node, conditions: &[ExpressionIndex]) -> Option<Switch> {
    let tests: Vec<_> = conditions
        .iter()
        .map(|condition| test(node, *condition))
        .collect();
    let subject = tests.first()?.as_ref()?.subject;
    let is_of_subject = |test: &&Test| is_same(node, test.subject, subject);
    let tests: Vec<_> = tests
        .iter()
        .map(|test| test.as_ref().filter(is_of_subject))
        .collect();
    let untested = tests.iter().position(Option::is_none).unwrap_or(tests.len());
    let mut cases: BTreeMap<i64, Case> = BTreeMap::new();
    for (arm, test) in tests.iter().enumerate().take(untested) {
        let Some(test) = test else {
            break;
        };
        for value in &test.values {
            let case = Case {
                value: *value,
                arm,
                is_decided: test.is_whole,
            };
            cases.entry(*value).or_insert(case);
        }
    }
    let (low, high) = (*cases.keys().next()?, *cases.keys().next_back()?);
    let is_dense = high.checked_sub(low).is_some_and(|span| span < MAX_TABLE_SPAN);
    (cases.len() >= MIN_CASES && is_dense).then(|| Switch {
        subject,
        cases: cases.into_values().collect(),
        otherwise: untested,
    })
}

fn test(node: &Node, condition: ExpressionIndex) -> Option<Test> {
    match kind(node, forward(node, condition)) {
        ExpressionKind::Call {
            op: Op::EnumEqual | Op::IntegerEqual,
            args,
            ..
        } => {
            let [left, right] = args.as_slice() else {
                return None;
            };
            let (subject, value) = match (fixed_value(node, *left), fixed_value(node, *right)) {
                (None, Some(value)) => (*left, value),
                (Some(value), None) => (*right, value),
                _ => return None,
            };
            let subject = forward(node, subject);
            is_stable_reference(kind(node, subject)).then(|| Test {
                subject,
                values: vec![value],
                is_whole: true,
            })
        }
        ExpressionKind::And(left, _) => test(node, *left).map(|test| Test {
            is_whole: false,
            ..test
        }),
        ExpressionKind::Or(left, right) => {
            let (mut left, right) = (test(node, *left)?, test(node, *right)?);
            let is_union = left.is_whole && right.is_whole && is_same(node, left.subject, right.subject);
            left.values.extend(right.values);
            is_union.then_some(left)
        }
        _ => None,
    }
}

fn fixed_value(node: &Node, index: ExpressionIndex) -> Option<i64> {
    match kind(node, forward(node, index)) {
        ExpressionKind::Literal(Value::Integer(value)) => Some(*value),
        ExpressionKind::Literal(Value::Member(member)) => Some(i64::from(member.0)),
        _ => None,
    }
}

/// Returns true for references, whose value no test changes.
fn is_stable_reference(kind: &ExpressionKind) -> bool {
    matches!(
        kind,
        ExpressionKind::Input(_)
            | ExpressionKind::Step(_)
            | ExpressionKind::Local(_)
            | ExpressionKind::Output(_)
    )
}

fn is_same(node: &Node, left: ExpressionIndex, right: ExpressionIndex) -> bool {
    match (kind(node, left), kind(node, right)) {
        (ExpressionKind::Input(left), ExpressionKind::Input(right))
        | (ExpressionKind::Step(left), ExpressionKind::Step(right))
        | (ExpressionKind::Local(left), ExpressionKind::Local(right))
        | (ExpressionKind::Output(left), ExpressionKind::Output(right)) => left == right,
        _ => false,
    }
}
