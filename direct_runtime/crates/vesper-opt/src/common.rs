//! Common subexpressions: a value that every execution has computed before is read, not computed again.
//!
//! The first occurrence computes the value and fails, if it fails, at its own expression. An execution that reaches the
//! second occurrence has passed the first. Numeric comparisons are excluded, because a jump instruction compares by
//! itself. Expressions of a loop round are excluded too.

use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{Node, Op, Value};

use crate::numbering::{Number, Numbers};
use crate::safety::{is_safe, reaches_work};
use crate::walk::{Scoped, Visitor, walk};
use crate::{Facts, LoopPlace, kind, replace};

/// Records the values that are held for later occurrences.
pub(crate) fn share(node: &mut Node, facts: &mut Facts) {
    let numbers = Numbers::of(node, facts);
    let known = facts.clone();
    let mut sharing = Sharing {
        numbers,
        facts,
        available: Scoped::new(),
        is_round: false,
        rounds: Vec::new(),
    };
    walk(node, Some(&known), &mut sharing);
}

struct Sharing<'a> {
    numbers: Numbers,
    facts: &'a mut Facts,
    /// First occurrence of each value that is computed on every path to this point.
    available: Scoped<Number, ExpressionIndex>,
    /// True between a loop and its rounds.
    is_round: bool,
    /// For each scope, whether it is that of a round.
    rounds: Vec<bool>,
}

/// Returns true where reading the value costs less than computing it.
fn is_worthwhile(kind: &ExpressionKind) -> bool {
    match kind {
        ExpressionKind::Call { op, .. } => !is_test(*op),
        ExpressionKind::If { .. } | ExpressionKind::Field { .. } | ExpressionKind::Record(_) => true,
        ExpressionKind::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Returns true for operations that jumps, loops and tables evaluate without a result register.
pub(crate) fn is_test(op: Op) -> bool {
    matches!(
        op,
        Op::IntegerEqual
            | Op::IntegerNotEqual
            | Op::IntegerLess
            | Op::IntegerLessOrEqual
            | Op::IntegerGreater
            | Op::IntegerGreaterOrEqual
            | Op::FloatEqual
            | Op::FloatNotEqual
            | Op::FloatLess
            | Op::FloatLessOrEqual
            | Op::FloatGreater
            | Op::FloatGreaterOrEqual
            | Op::DecimalEqual
            | Op::DecimalNotEqual
            | Op::DecimalLess
            | Op::DecimalLessOrEqual
            | Op::DecimalGreater
            | Op::DecimalGreaterOrEqual
            | Op::EnumEqual
            | Op::EnumNotEqual
            | Op::ArrayRange
    )
}

impl Visitor for Sharing<'_> {
    fn enter(&mut self, node: &Node, index: ExpressionIndex) -> bool {
        if !is_worthwhile(kind(node, index))
            || self.facts.chained.contains(&index)
            || reaches_work(node, index)
        {
            return true;
        }
        let first = self
            .numbers
            .get(node, index)
            .and_then(|number| self.available.get(&number));
        let Some(first) = first.copied() else {
            return true;
        };
        if first != index {
            let place = match self.facts.held.get(&first) {
                Some(place) => *place,
                None => self.facts.new_place(),
            };
            self.facts.held.insert(first, place);
            self.facts.held.insert(index, place);
        }
        false
    }

    fn leave(&mut self, node: &mut Node, index: ExpressionIndex) {
        if is_worthwhile(kind(node, index))
            && !self.facts.chained.contains(&index)
            && !self.rounds.contains(&true)
            && !reaches_work(node, index)
            && let Some(number) = self.numbers.get(node, index)
        {
            self.available.put(number, index);
        }
    }

    fn rounds(&mut self, _node: &Node, _place: LoopPlace) {
        self.is_round = true;
    }

    fn open(&mut self) {
        self.available.open();
        self.rounds.push(std::mem::take(&mut self.is_round));
    }

    fn close(&mut self) {
        self.rounds.pop();
        self.available.close();
    }
}

/// Replaces comparisons of a value with itself by literals. A postcondition that repeats the computation of an output
/// is then true.
pub(crate) fn decide_self_comparisons(node: &mut Node, facts: &Facts) {
    let mut same = Same {
        numbers: Numbers::of(node, facts),
        facts,
        available: Scoped::new(),
        decided: Vec::new(),
    };
    walk(node, Some(facts), &mut same);
}

struct Same<'a> {
    numbers: Numbers,
    facts: &'a Facts,
    /// Values that are computed on every path to this point.
    available: Scoped<Number, ()>,
    /// Decided comparisons that are being visited, the innermost last.
    decided: Vec<(ExpressionIndex, bool)>,
}

impl Same<'_> {
    /// Returns true where another evaluation cannot fail: the expression never fails, or succeeded before.
    fn is_settled(&self, node: &Node, index: ExpressionIndex) -> bool {
        let number = self.numbers.get(node, index);
        let was_there = number.is_some_and(|number| self.available.get(&number).is_some());
        (was_there && !reaches_work(node, index)) || is_safe(node, self.facts, index)
    }
}

/// Returns the result of comparing a value with itself. Floats are excluded: NaN does not equal itself.
fn compare_same(op: Op) -> Option<bool> {
    match op {
        Op::IntegerEqual
        | Op::IntegerLessOrEqual
        | Op::IntegerGreaterOrEqual
        | Op::DecimalEqual
        | Op::DecimalLessOrEqual
        | Op::DecimalGreaterOrEqual
        | Op::TextEqual
        | Op::EnumEqual
        | Op::BooleanEqual => Some(true),
        Op::IntegerNotEqual
        | Op::IntegerLess
        | Op::IntegerGreater
        | Op::DecimalNotEqual
        | Op::DecimalLess
        | Op::DecimalGreater
        | Op::TextNotEqual
        | Op::EnumNotEqual
        | Op::BooleanNotEqual => Some(false),
        _ => None,
    }
}

impl Visitor for Same<'_> {
    fn enter(&mut self, node: &Node, index: ExpressionIndex) -> bool {
        // Before the operands are visited, because visiting them would record them as computed.
        if let ExpressionKind::Call { op, args, .. } = kind(node, index)
            && let [left, right] = args.as_slice()
            && let Some(value) = compare_same(*op)
        {
            let (first, second) = (self.numbers.get(node, *left), self.numbers.get(node, *right));
            let is_same = first.is_some() && first == second;
            let is_settled = self.is_settled(node, *left) && self.is_settled(node, *right);
            if is_same && is_settled {
                self.decided.push((index, value));
            }
        }
        true
    }

    fn leave(&mut self, node: &mut Node, index: ExpressionIndex) {
        if let Some((decided, value)) = self.decided.last()
            && *decided == index
        {
            replace(node, index, Value::Boolean(*value));
            self.decided.pop();
            return;
        }
        if let Some(number) = self.numbers.get(node, index) {
            self.available.put(number, ());
        }
    }

    fn open(&mut self) {
        self.available.open();
    }

    fn close(&mut self) {
        self.available.close();
    }
}
