//! Interval analysis: derives the ranges of numbers from contracts, conditions and arithmetic.
//!
//! Additions that cannot overflow are recorded, and comparisons and clauses with a certain result are replaced by
//! literals.
//!
//! The ranges of a loop's state are guessed. A guess counts when a walk through the whole node confirms it: the range
//! after a round lies within the guess, or the state changes by a known distance so that all rounds together stay
//! within it. Guesses that are not confirmed are widened, in the end to the whole type.

use std::collections::HashMap;

use vesper_ir::flow::{Loop, NamedValue};
use vesper_ir::limits::ITEMS;
use vesper_ir::node::{ExpressionIndex, ExpressionKind, ForKind};
use vesper_ir::{Node, Op, Type, Value};

use crate::safety::is_safe;
use crate::walk::{Scoped, Visitor, walk};
use crate::{Facts, forward, kind, replace, type_of};

mod range;

use range::Range;

/// Number of walks that widen a guess to the range found. The next walk uses the number of rounds, the last one the
/// whole type.
const WIDENING_WALKS: usize = 2;
const MAX_WALKS: usize = 8;

/// Records calls that cannot overflow, and replaces decided comparisons by literals.
pub(crate) fn prove(node: &mut Node, facts: &mut Facts) {
    let mut guesses: HashMap<usize, Range> = HashMap::new();
    for attempt in 0..MAX_WALKS {
        let mut trial = Intervals::new(node, facts, &guesses, false);
        walk(node, None, &mut trial);
        let found = trial.found;
        let mut is_confirmed = true;
        for state in found {
            if state.is_confirmed {
                continue;
            }
            is_confirmed = false;
            let wider = match attempt {
                tried if tried < WIDENING_WALKS => state.seen,
                tried if tried == WIDENING_WALKS => state.by_rounds.unwrap_or(state.widest),
                _ => state.widest,
            };
            guesses.insert(state.local, wider);
        }
        if is_confirmed {
            let mut last = Intervals::new(node, facts, &guesses, true);
            walk(node, None, &mut last);
            facts.proven = last.proven;
            return;
        }
    }
    // Unreachable: the widest guess is always confirmed. Without a confirmed guess no fact is recorded.
}

/// Name to which a range is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Input(usize),
    Step(usize),
    Local(usize),
    Output(usize),
    /// Field of the record of a loop.
    Field(usize, u32),
}

/// Ranges that a walk found for a variable of a loop's state.
struct Found {
    local: usize,
    is_confirmed: bool,
    /// Hull of the guess and of the range after a round.
    seen: Range,
    /// Range after all rounds, if each changes the variable by a known distance.
    by_rounds: Option<Range>,
    widest: Range,
}

struct Intervals<'a> {
    guesses: &'a HashMap<usize, Range>,
    facts: Facts,
    /// True in the walk that records its results.
    is_last: bool,
    ranges: Vec<Range>,
    known: Scoped<Name, Range>,
    nexts: HashMap<usize, Range>,
    found: Vec<Found>,
    outputs: HashMap<usize, Range>,
    proven: std::collections::BTreeSet<ExpressionIndex>,
}

impl<'a> Intervals<'a> {
    fn new(node: &Node, facts: &Facts, guesses: &'a HashMap<usize, Range>, is_last: bool) -> Self {
        Self {
            guesses,
            facts: facts.clone(),
            is_last,
            ranges: vec![Range::Any; node.expressions.len()],
            known: Scoped::new(),
            nexts: HashMap::new(),
            found: Vec::new(),
            outputs: HashMap::new(),
            proven: std::collections::BTreeSet::new(),
        }
    }

    fn range(&self, node: &Node, index: ExpressionIndex) -> Range {
        let index = forward(node, index);
        match self.ranges.get(index as usize) {
            Some(Range::Any) | None => type_range(type_of(node, index)),
            Some(range) => range.clone(),
        }
    }

    fn of_name(&self, node: &Node, index: ExpressionIndex, name: Name) -> Range {
        let known = self.known.get(&name).cloned();
        known.unwrap_or_else(|| type_range(type_of(node, index)))
    }

    fn compute(&self, node: &Node, index: ExpressionIndex) -> Range {
        let get = |part: &ExpressionIndex| self.range(node, *part);
        match kind(node, index) {
            ExpressionKind::Literal(value) => Range::of(value),
            ExpressionKind::Constant(place) => node
                .constants
                .get(*place)
                .map_or(Range::Any, |own| Range::of(&own.value)),
            ExpressionKind::If { then, otherwise, .. } => get(then).hull(&get(otherwise)),
            ExpressionKind::Let { body, .. } => get(body),
            ExpressionKind::For { parts, .. } if parts.kind == ForKind::Count => items(),
            ExpressionKind::Call { op, args, .. } => match (op, args.as_slice()) {
                (Op::IntegerAdd | Op::DecimalAdd, [left, right]) => get(left).add(&get(right)),
                (Op::IntegerSubtract | Op::DecimalSubtract, [left, right]) => get(left).subtract(&get(right)),
                (Op::IntegerMultiply | Op::DecimalMultiply, [left, right]) => get(left).multiply(&get(right)),
                (Op::IntegerNegate | Op::DecimalNegate, [of]) => get(of).negate(),
                (Op::IntegerAbs | Op::DecimalAbs, [of]) => {
                    let (own, other) = (get(of), get(of).negate());
                    let zero = match own {
                        Range::Integer(..) => Range::Integer(0, 0),
                        _ => Range::of(&Value::Decimal(0.into())),
                    };
                    own.hull(&other).at_least(&zero, false)
                }
                (Op::IntegerBitAnd, [left, right]) => bit_and(&get(left), &get(right)),
                (Op::IntegerMod, [_, by]) => match get(by) {
                    Range::Integer(low, high) if low > 0 => Range::Integer(0, high - 1),
                    _ => Range::Any,
                },
                (Op::IntegerRem, [_, by]) => match get(by) {
                    Range::Integer(low, high) if low > 0 => Range::Integer(1 - high, high - 1),
                    _ => Range::Any,
                },
                (Op::DecimalFromInteger, [of]) => match get(of) {
                    Range::Integer(low, high) => {
                        let decimal = |bound: i128| Some(vesper_ir::Decimal::whole(bound));
                        Range::Decimal(decimal(low), decimal(high))
                    }
                    _ => Range::Any,
                },
                (Op::ArrayLength | Op::ArrayCount | Op::SetLength | Op::MapLength, [_]) => items(),
                (Op::TextLength | Op::BytesLength, [_]) => Range::Integer(0, i128::from(i64::MAX)),
                _ => Range::Any,
            },
            other => match name_of(node, other) {
                Some(name) => self.of_name(node, index, name),
                None => Range::Any,
            },
        }
    }

    /// Returns the range of the difference between a value and a local. The value must be that local plus a term.
    fn distance(&self, node: &Node, index: ExpressionIndex, local: usize) -> Option<Range> {
        let index = forward(node, index);
        match kind(node, index) {
            ExpressionKind::Local(own) if *own == local => Some(Range::Integer(0, 0)),
            ExpressionKind::If { then, otherwise, .. } => {
                let then = self.distance(node, *then, local)?;
                Some(then.hull(&self.distance(node, *otherwise, local)?))
            }
            ExpressionKind::Call { op, args, .. } => match (op, args.as_slice()) {
                (Op::IntegerAdd, [left, right]) => {
                    let by = self.distance(node, *left, local);
                    match by {
                        Some(by) => Some(by.add(&self.range(node, *right))),
                        None => Some(self.distance(node, *right, local)?.add(&self.range(node, *left))),
                    }
                }
                (Op::IntegerSubtract, [left, right]) => Some(
                    self.distance(node, *left, local)?
                        .subtract(&self.range(node, *right)),
                ),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the result of a comparison, if it is certain.
    fn decide(&self, node: &Node, index: ExpressionIndex) -> Option<bool> {
        let ExpressionKind::Call { op, args, .. } = kind(node, index) else {
            return None;
        };
        let [left, right] = args.as_slice() else {
            return None;
        };
        let relation = Relation::of(*op)?;
        let (left, right) = (self.range(node, *left), self.range(node, *right));
        relation.decide(&left, &right)
    }

    /// Narrows the operands of a condition with a known value.
    fn refine(&mut self, node: &Node, condition: ExpressionIndex, is: bool) {
        let ExpressionKind::Call { op, args, .. } = kind(node, condition) else {
            return;
        };
        if let (Op::BooleanNot, [of]) = (op, args.as_slice()) {
            self.assume(node, *of, !is);
        }
        let (Some(relation), [left, right]) = (Relation::of(*op), args.as_slice()) else {
            return;
        };
        let Some(relation) = (if is { Some(relation) } else { relation.opposite() }) else {
            return;
        };
        let (of_left, of_right) = (self.range(node, *left), self.range(node, *right));
        self.narrow(node, *left, &relation.narrow_left(&of_left, &of_right));
        if let Some(turned) = relation.exchange() {
            self.narrow(node, *right, &turned.narrow_left(&of_right, &of_left));
        }
    }

    fn narrow(&mut self, node: &Node, index: ExpressionIndex, range: &Range) {
        if let Some(name) = name_of(node, kind(node, forward(node, index)))
            && !matches!(range, Range::Any)
        {
            self.known.put(name, range.clone());
        }
    }
}

/// Relation between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Differs,
}

impl Relation {
    /// Returns the relation of an operation on integers or decimals. Floats are excluded, because they may be NaN.
    fn of(op: Op) -> Option<Self> {
        Some(match op {
            Op::IntegerLess | Op::DecimalLess => Self::Less,
            Op::IntegerLessOrEqual | Op::DecimalLessOrEqual => Self::AtMost,
            Op::IntegerGreater | Op::DecimalGreater => Self::Greater,
            Op::IntegerGreaterOrEqual | Op::DecimalGreaterOrEqual => Self::AtLeast,
            Op::IntegerEqual | Op::DecimalEqual => Self::Equal,
            Op::IntegerNotEqual | Op::DecimalNotEqual => Self::Differs,
            _ => return None,
        })
    }

    fn opposite(self) -> Option<Self> {
        match self {
            Self::Less => Some(Self::AtLeast),
            Self::AtMost => Some(Self::Greater),
            Self::Greater => Some(Self::AtMost),
            Self::AtLeast => Some(Self::Less),
            Self::Differs => Some(Self::Equal),
            Self::Equal => None,
        }
    }

    /// Returns the relation with its operands exchanged.
    fn exchange(self) -> Option<Self> {
        match self {
            Self::Less => Some(Self::Greater),
            Self::AtMost => Some(Self::AtLeast),
            Self::Greater => Some(Self::Less),
            Self::AtLeast => Some(Self::AtMost),
            Self::Equal => Some(Self::Equal),
            Self::Differs => None,
        }
    }

    /// Returns the part of the left range for which the relation can hold.
    fn narrow_left(self, left: &Range, right: &Range) -> Range {
        match self {
            Self::Less => left.at_most(right, true),
            Self::AtMost => left.at_most(right, false),
            Self::Greater => left.at_least(right, true),
            Self::AtLeast => left.at_least(right, false),
            Self::Equal => left.at_most(right, false).at_least(right, false),
            Self::Differs => left.clone(),
        }
    }

    fn decide(self, left: &Range, right: &Range) -> Option<bool> {
        let (holds, fails) = match self {
            Self::Less => (left.is_below(right, false), right.is_below(left, true)),
            Self::AtMost => (left.is_below(right, true), right.is_below(left, false)),
            Self::Greater => (right.is_below(left, false), left.is_below(right, true)),
            Self::AtLeast => (right.is_below(left, true), left.is_below(right, false)),
            Self::Equal => (false, left.is_below(right, false) || right.is_below(left, false)),
            Self::Differs => (left.is_below(right, false) || right.is_below(left, false), false),
        };
        match (holds, fails) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            // Both results occur only for an empty range, that is in unreachable code.
            _ => None,
        }
    }
}

fn name_of(node: &Node, kind_of: &ExpressionKind) -> Option<Name> {
    Some(match kind_of {
        ExpressionKind::Input(place) => Name::Input(*place),
        ExpressionKind::Step(place) => Name::Step(*place),
        ExpressionKind::Local(place) => Name::Local(*place),
        ExpressionKind::Output(place) => Name::Output(*place),
        ExpressionKind::Field { place, of } => match kind(node, *of) {
            ExpressionKind::Step(step) => Name::Field(*step, *place),
            _ => return None,
        },
        _ => return None,
    })
}

/// Returns the range of all values of a type.
fn type_range(ty: Option<&Type>) -> Range {
    match ty {
        Some(Type::Integer) => Range::INTEGER,
        Some(Type::Decimal) => Range::DECIMAL,
        _ => Range::Any,
    }
}

/// Returns the range of a collection's length.
fn items() -> Range {
    Range::Integer(0, i128::try_from(ITEMS).unwrap_or(i128::from(i64::MAX)))
}

fn bit_and(left: &Range, right: &Range) -> Range {
    let most = |range: &Range| match range {
        Range::Integer(low, high) if *low >= 0 => Some(*high),
        _ => None,
    };
    match (most(left), most(right)) {
        (Some(left), Some(right)) => Range::Integer(0, left.min(right)),
        (Some(most), None) | (None, Some(most)) => Range::Integer(0, most),
        (None, None) => Range::INTEGER,
    }
}

impl Visitor for Intervals<'_> {
    fn leave(&mut self, node: &mut Node, index: ExpressionIndex) {
        let mut range = self.compute(node, index);
        if let ExpressionKind::Call { op, .. } = kind(node, index)
            && matches!(
                op,
                Op::IntegerAdd
                    | Op::IntegerSubtract
                    | Op::IntegerMultiply
                    | Op::IntegerNegate
                    | Op::IntegerAbs
            )
        {
            if range.fits() {
                self.proven.insert(index);
                self.facts.proven.insert(index);
            } else if let Range::Integer(low, high) = range {
                // Execution continues only if the result did not overflow.
                range = Range::Integer(low.max(i128::from(i64::MIN)), high.min(i128::from(i64::MAX)));
            }
        }
        if let Some(place) = self.ranges.get_mut(index as usize) {
            *place = range;
        }
        if self.is_last
            && let Some(value) = self.decide(node, index)
            && is_safe(node, &self.facts, index)
        {
            replace(node, index, Value::Boolean(value));
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
        match kind(node, condition) {
            ExpressionKind::And(left, right) if is => {
                self.assume(node, *left, true);
                self.assume(node, *right, true);
            }
            ExpressionKind::Or(left, right) if !is => {
                self.assume(node, *left, false);
                self.assume(node, *right, false);
            }
            _ => self.refine(node, condition, is),
        }
    }

    fn step(&mut self, node: &Node, place: usize, value: Option<ExpressionIndex>) {
        if let Some(value) = value {
            let range = self.range(node, value);
            self.known.put(Name::Step(place), range);
        }
    }

    fn bind(&mut self, node: &Node, local: usize, value: ExpressionIndex) {
        let range = self.range(node, value);
        self.known.put(Name::Local(local), range);
    }

    fn item(&mut self, node: &Node, local: usize, over: ExpressionIndex) {
        // Bounds of a range in either direction.
        if let ExpressionKind::Call {
            op: Op::ArrayRange,
            args,
            ..
        } = kind(node, forward(node, over))
            && let [start, end, _] = args.as_slice()
        {
            let range = self.range(node, *start).hull(&self.range(node, *end));
            self.known.put(Name::Local(local), range);
        }
    }

    fn state(&mut self, node: &Node, local: usize, first: ExpressionIndex) {
        let of_first = self.range(node, first);
        let guess = self.guesses.get(&local).cloned().unwrap_or(of_first);
        self.known.put(Name::Local(local), guess);
    }

    fn next(&mut self, node: &Node, repeated: &Loop) {
        for variable in &repeated.state {
            let Some(local) = node.loop_local(variable.local) else {
                continue;
            };
            let next = repeated.next.iter().find(|(number, _)| *number == variable.local);
            let first = self.range(node, variable.value);
            let guess = self.guesses.get(&local).cloned().unwrap_or_else(|| first.clone());
            let mut seen = guess.hull(&first);
            let mut by_rounds = None;
            if let Some((_, next)) = next {
                seen = seen.hull(&self.range(node, *next));
                by_rounds = self.distance(node, *next, local).map(|by| {
                    let still = Range::Integer(0, 0);
                    let rounds = Range::Integer(0, i128::from(repeated.max));
                    first.add(&by.hull(&still).multiply(&rounds))
                });
            }
            let is_confirmed = seen.is_within(&guess)
                || by_rounds
                    .as_ref()
                    .is_some_and(|by_rounds| by_rounds.is_within(&guess));
            let widest = type_range(type_of(node, variable.value));
            self.nexts.insert(local, guess);
            self.found.push(Found {
                local,
                is_confirmed,
                seen,
                by_rounds: by_rounds.filter(Range::fits),
                widest,
            });
        }
        // `stop_when` sees the next values, which the guess covers, but no condition on the previous ones.
        for variable in &repeated.state {
            if let Some(local) = node.loop_local(variable.local) {
                let range = self.nexts.get(&local).cloned().unwrap_or(Range::Any);
                self.known.put(Name::Local(local), range);
            }
        }
    }

    fn after_loop(&mut self, node: &Node, place: usize, repeated: &Loop) {
        for (field, variable) in (0..).zip(&repeated.state) {
            let range = node
                .loop_local(variable.local)
                .and_then(|local| self.nexts.get(&local));
            if let Some(range) = range.cloned() {
                self.known.put(Name::Field(place, field), range);
            }
        }
    }

    fn after_return(&mut self, node: &Node, success: &[NamedValue]) {
        for (place, (_, value)) in success.iter().enumerate() {
            let range = self.range(node, *value);
            let all = match self.outputs.get(&place) {
                Some(known) => known.hull(&range),
                None => range,
            };
            self.outputs.insert(place, all);
        }
    }

    fn after_body(&mut self, node: &Node, is_post: bool) {
        for (place, range) in &self.outputs {
            // In the invariants of a node with errors an output may be null.
            let is_there = is_post || node.errors.is_empty();
            let range = if is_there { range.clone() } else { Range::Any };
            self.known.put(Name::Output(*place), range);
        }
    }
}
