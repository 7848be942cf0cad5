//! Guards: replaces a condition with a known value by that value.
//!
//! Contracts, `require` statements, enclosing tests and arms that left the block make a condition known. (`invariants`
//! moves guards that no round changes out of a loop.)

use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{Node, Op, Type, Value};

use crate::numbering::{Number, Numbers};
use crate::safety::is_safe;
use crate::walk::{Scoped, Visitor, walk};
use crate::{Facts, forward, is_reference, kind, replace, type_of};

/// Replaces every guard with a known value by that value.
pub(crate) fn replace_known(node: &mut Node, facts: &Facts) {
    let numbers = Numbers::of(node, facts);
    let mut guards = Guards {
        numbers,
        facts,
        known: Scoped::new(),
    };
    walk(node, Some(facts), &mut guards);
}

struct Guards<'a> {
    numbers: Numbers,
    facts: &'a Facts,
    known: Scoped<Number, bool>,
}

/// Returns the comparison with the opposite result. Floats are excluded: with NaN both are false.
fn opposite(op: Op) -> Option<Op> {
    Some(match op {
        Op::IntegerEqual => Op::IntegerNotEqual,
        Op::IntegerNotEqual => Op::IntegerEqual,
        Op::IntegerLess => Op::IntegerGreaterOrEqual,
        Op::IntegerGreaterOrEqual => Op::IntegerLess,
        Op::IntegerGreater => Op::IntegerLessOrEqual,
        Op::IntegerLessOrEqual => Op::IntegerGreater,
        Op::DecimalEqual => Op::DecimalNotEqual,
        Op::DecimalNotEqual => Op::DecimalEqual,
        Op::DecimalLess => Op::DecimalGreaterOrEqual,
        Op::DecimalGreaterOrEqual => Op::DecimalLess,
        Op::DecimalGreater => Op::DecimalLessOrEqual,
        Op::DecimalLessOrEqual => Op::DecimalGreater,
        Op::EnumEqual => Op::EnumNotEqual,
        Op::EnumNotEqual => Op::EnumEqual,
        Op::TextEqual => Op::TextNotEqual,
        Op::TextNotEqual => Op::TextEqual,
        Op::BooleanEqual => Op::BooleanNotEqual,
        Op::BooleanNotEqual => Op::BooleanEqual,
        Op::OptionalIsNull => Op::OptionalIsNotNull,
        Op::OptionalIsNotNull => Op::OptionalIsNull,
        _ => return None,
    })
}

impl Visitor for Guards<'_> {
    fn leave(&mut self, node: &mut Node, index: ExpressionIndex) {
        if is_reference(kind(node, index)) || !matches!(type_of(node, index), Some(Type::Boolean)) {
            return;
        }
        let Some(number) = self.numbers.get(node, index) else {
            return;
        };
        if let Some(known) = self.known.get(&number)
            && is_safe(node, self.facts, index)
        {
            let known = *known;
            replace(node, index, Value::Boolean(known));
        }
    }

    fn open(&mut self) {
        self.known.open();
    }

    fn close(&mut self) {
        self.known.close();
    }

    fn assume(&mut self, node: &Node, condition: ExpressionIndex, is: bool) {
        let condition = forward(node, condition);
        if let Some(number) = self.numbers.get(node, condition) {
            self.known.put(number, is);
        }
        match kind(node, condition) {
            ExpressionKind::And(left, right) if is => {
                self.assume(node, *left, true);
                self.assume(node, *right, true);
            }
            ExpressionKind::Or(left, right) if !is => {
                self.assume(node, *left, is);
                self.assume(node, *right, is);
            }
            ExpressionKind::Call {
                op: Op::BooleanNot,
                args,
                ..
            } => {
                if let [of] = args.as_slice() {
                    self.assume(node, *of, !is);
                }
            }
            ExpressionKind::Call { op, args, .. } => {
                let numbers = args.iter().map(|arg| self.numbers.get(node, *arg));
                if let (Some(opposite), Some(numbers)) = (opposite(*op), numbers.collect::<Option<Vec<_>>>())
                    && let Some(number) = self.numbers.of_call(opposite, numbers)
                {
                    self.known.put(number, !is);
                }
            }
            _ => {}
        }
    }
}
