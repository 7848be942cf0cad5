//! Value numbering: expressions with one number have equal values.
//!
//! This holds within one round of the same loops. A step has the number of its value, a local that of its bound
//! expression, and after a straight body an output that of the returned value. An expression whose value may differ
//! between places (a loop, a result) has a number of its own.

use std::collections::HashMap;
use std::sync::Arc;

use vesper_ir::flow::{Loop, NamedValue};
use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{Node, Op, Value};

use crate::walk::{Visitor, is_straight, walk};
use crate::{Facts, forward, kind};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Coefficient and scale: equal decimals may differ in their text.
    Decimal(i128, u16),
    /// Bits of the float: zero and minus zero differ.
    Float(u64),
    Text(Arc<str>),
    Member(u32),
    Input(usize),
    Constant(usize),
    Step(usize),
    Output(usize),
    Error(usize),
    Now,
    /// A local, and the number of changes of its value so far.
    Local(usize, u32),
    Call(Op, Vec<Number>),
    If([Number; 3]),
    And([Number; 2]),
    Or([Number; 2]),
    Array(Vec<Number>),
    Record(Vec<Number>),
    Field(u32, Number),
    Alone(ExpressionIndex),
}

pub(crate) type Number = u32;

/// Value numbers of the expressions of a node.
#[derive(Debug)]
pub(crate) struct Numbers {
    of: Vec<Option<Number>>,
    by_key: HashMap<Key, Number>,
}

impl Numbers {
    pub(crate) fn of(node: &mut Node, facts: &Facts) -> Self {
        let mut numbering = Numbering {
            numbers: Self {
                of: vec![None; node.expressions.len()],
                by_key: HashMap::new(),
            },
            steps: HashMap::new(),
            locals: HashMap::new(),
            changes: HashMap::new(),
            outputs: HashMap::new(),
            is_straight: is_straight(&node.body),
            sees_outputs: false,
        };
        walk(node, Some(facts), &mut numbering);
        numbering.numbers
    }

    /// Returns the number of an evaluated expression.
    pub(crate) fn get(&self, node: &Node, index: ExpressionIndex) -> Option<Number> {
        *self.of.get(forward(node, index) as usize)?
    }

    /// Returns the number of a call on these values, if there is one.
    pub(crate) fn of_call(&self, op: Op, args: Vec<Number>) -> Option<Number> {
        self.by_key.get(&Key::Call(op, args)).copied()
    }
}

struct Numbering {
    numbers: Numbers,
    steps: HashMap<usize, Number>,
    locals: HashMap<usize, Number>,
    /// Number of changes of a loop's state in one round: one, before `stop_when`.
    changes: HashMap<usize, u32>,
    outputs: HashMap<usize, Number>,
    is_straight: bool,
    sees_outputs: bool,
}

impl Numbering {
    fn number(&mut self, key: Key) -> Number {
        // There are at most as many numbers as expressions.
        let next = u32::try_from(self.numbers.by_key.len()).unwrap_or(u32::MAX);
        *self.numbers.by_key.entry(key).or_insert(next)
    }

    fn key(&self, node: &Node, index: ExpressionIndex) -> Option<Result<Key, Number>> {
        let get = |part: ExpressionIndex| self.numbers.get(node, part);
        let all = |parts: &[ExpressionIndex]| parts.iter().map(|part| get(*part)).collect::<Option<Vec<_>>>();
        Some(Ok(match kind(node, index) {
            ExpressionKind::Literal(value) => literal(value, index),
            ExpressionKind::Input(place) => Key::Input(*place),
            ExpressionKind::Constant(place) => Key::Constant(*place),
            ExpressionKind::Step(place) => match self.steps.get(place) {
                Some(known) => return Some(Err(*known)),
                None => Key::Step(*place),
            },
            ExpressionKind::Output(place) => match self.outputs.get(place) {
                Some(known) if self.sees_outputs => return Some(Err(*known)),
                _ => Key::Output(*place),
            },
            ExpressionKind::Error(place) => Key::Error(*place),
            ExpressionKind::Now => Key::Now,
            ExpressionKind::Local(place) => match self.locals.get(place) {
                Some(known) => return Some(Err(*known)),
                None => Key::Local(*place, self.changes.get(place).copied().unwrap_or_default()),
            },
            // The results of these operations depend on more than their arguments.
            ExpressionKind::Call { op, .. }
                if !(op.signature().named.is_empty() && op.signature().typed.is_empty()) =>
            {
                Key::Alone(index)
            }
            ExpressionKind::Call { op, args, .. } => Key::Call(*op, all(args)?),
            ExpressionKind::If {
                condition,
                then,
                otherwise,
            } => Key::If([get(*condition)?, get(*then)?, get(*otherwise)?]),
            ExpressionKind::And(left, right) => Key::And([get(*left)?, get(*right)?]),
            ExpressionKind::Or(left, right) => Key::Or([get(*left)?, get(*right)?]),
            ExpressionKind::Let { body, .. } => return Some(Err(get(*body)?)),
            ExpressionKind::Array(items) => Key::Array(all(items)?),
            ExpressionKind::Record(fields) => Key::Record(all(fields)?),
            ExpressionKind::Field { place, of } => Key::Field(*place, get(*of)?),
            ExpressionKind::For { .. } | ExpressionKind::Apply { .. } | ExpressionKind::Result => {
                Key::Alone(index)
            }
        }))
    }
}

fn literal(value: &Value, index: ExpressionIndex) -> Key {
    match value {
        Value::Null => Key::Null,
        Value::Boolean(value) => Key::Boolean(*value),
        Value::Integer(value) => Key::Integer(*value),
        Value::Decimal(value) => match value.as_small() {
            Some((coefficient, scale)) => Key::Decimal(coefficient, scale),
            None => Key::Alone(index),
        },
        Value::Float(value) => Key::Float(value.to_bits()),
        Value::Text(text) => Key::Text(Arc::clone(text)),
        Value::Member(member) => Key::Member(member.0),
        _ => Key::Alone(index),
    }
}

impl Visitor for Numbering {
    fn leave(&mut self, node: &mut Node, index: ExpressionIndex) {
        let number = match self.key(node, index) {
            Some(Ok(key)) => self.number(key),
            Some(Err(known)) => known,
            None => self.number(Key::Alone(index)),
        };
        if let Some(place) = self.numbers.of.get_mut(index as usize) {
            *place = Some(number);
        }
    }

    fn step(&mut self, node: &Node, place: usize, value: Option<ExpressionIndex>) {
        if let Some(number) = value.and_then(|value| self.numbers.get(node, value)) {
            self.steps.insert(place, number);
        }
    }

    fn bind(&mut self, node: &Node, local: usize, value: ExpressionIndex) {
        if let Some(number) = self.numbers.get(node, value) {
            self.locals.insert(local, number);
        }
    }

    fn next(&mut self, node: &Node, repeated: &Loop) {
        for variable in &repeated.state {
            if let Some(local) = node.loop_local(variable.local) {
                *self.changes.entry(local).or_default() += 1;
            }
        }
    }

    fn after_return(&mut self, node: &Node, success: &[NamedValue]) {
        for (place, (_, value)) in success.iter().enumerate() {
            if let Some(number) = self.numbers.get(node, *value) {
                self.outputs.insert(place, number);
            }
        }
    }

    fn after_body(&mut self, node: &Node, is_post: bool) {
        // In the invariants of a node with errors an output may be null.
        self.sees_outputs = self.is_straight && (is_post || node.errors.is_empty());
    }
}
