//! Paths: the set of points that a run passed (docs/spec/migration.md, Paths).
//!
//! Points are numbered from the node alone. The compiler emits a note for each point, and a run collects notes in
//! dedicated registers.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use vesper_ir::Node;
use vesper_ir::flow::{Block, Handler, Loop, Statement};
use vesper_ir::node::{ExpressionIndex, ExpressionKind};

/// A point that a run can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// The condition at this expression had this outcome.
    Condition {
        expression: ExpressionIndex,
        outcome: bool,
    },
    /// A loop ended after this class of rounds. The expression is the `for`, or of a statement its collection or else
    /// its `while`.
    Loop {
        expression: ExpressionIndex,
        class: LoopClass,
    },
    /// This handler ran, numbered in program order within the node.
    Handler { number: u32 },
}

/// The number of rounds of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopClass {
    None,
    One,
    Many,
}

/// The set of the points that a run passed: point `n` is bit `n % 64` of word `n / 64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Words);

/// Hashes only the words: all paths of a node have the same length, and every compared run looks its path up.
impl Hash for Path {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Words::One([word]) => state.write_u64(*word),
            Words::Other(words) => words.iter().for_each(|word| state.write_u64(*word)),
        }
    }
}

/// The words, without an allocation for the usual single word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Words {
    One([u64; 1]),
    /// INVARIANT: the length is not one.
    Other(Vec<u64>),
}

impl Path {
    #[inline]
    pub(crate) fn new(mut words: impl ExactSizeIterator<Item = u64>) -> Self {
        if words.len() == 1 {
            return Self(Words::One([words.next().unwrap_or_default()]));
        }
        Self(Words::Other(words.collect()))
    }

    #[inline]
    pub fn words(&self) -> &[u64] {
        match &self.0 {
            Words::One(word) => word,
            Words::Other(words) => words,
        }
    }

    /// Returns the words as little-endian bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.words().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Returns true if this point was passed.
    pub fn has(&self, point: u32) -> bool {
        let word = self.words().get(point as usize / 64);
        word.is_some_and(|word| word >> (point % 64) & 1 == 1)
    }
}

impl Default for Path {
    /// Returns the path of a node without points.
    fn default() -> Self {
        Self(Words::Other(Vec::new()))
    }
}

/// The points of a node, and the number of the first point of each element.
#[derive(Debug, Default)]
pub(crate) struct Points {
    pub(crate) list: Vec<Point>,
    conditions: HashMap<ExpressionIndex, u32>,
    comprehensions: HashMap<ExpressionIndex, u32>,
    /// By address of the loop statement and of the handler, which have no other identity.
    loops: HashMap<usize, u32>,
    handlers: HashMap<usize, u32>,
    /// For each callee, whether it uses `now`.
    callees_use_now: Vec<bool>,
}

impl Points {
    /// Numbers the points: expressions by index, then statements in program order.
    pub(crate) fn of(node: &Node, callees_use_now: Vec<bool>) -> Self {
        let mut points = Self {
            callees_use_now,
            ..Self::default()
        };
        for (index, expression) in (0..).zip(&node.expressions) {
            match &expression.kind {
                ExpressionKind::If { condition, .. } => points.add_condition(*condition),
                ExpressionKind::For { parts, .. } => {
                    if let Some(filter) = parts.filter {
                        points.add_condition(filter);
                    }
                    let first = points.add_loop(index);
                    points.comprehensions.insert(index, first);
                }
                _ => {}
            }
        }
        points.block(&node.body);
        points
    }

    /// Returns the number of words of a path.
    pub(crate) fn words(&self) -> usize {
        self.list.len().div_ceil(64)
    }

    /// Returns the point of a false condition; the next one is that of a true condition.
    pub(crate) fn condition(&self, index: ExpressionIndex) -> Option<u32> {
        self.conditions.get(&index).copied()
    }

    /// Returns the first of the three points of a `for`.
    pub(crate) fn comprehension(&self, index: ExpressionIndex) -> Option<u32> {
        self.comprehensions.get(&index).copied()
    }

    /// Returns the first of the three points of a loop statement.
    pub(crate) fn loop_statement(&self, statement: &Loop) -> Option<u32> {
        self.loops.get(&address(statement)).copied()
    }

    pub(crate) fn handler(&self, handler: &Handler) -> Option<u32> {
        self.handlers.get(&address(handler)).copied()
    }

    /// Returns true if this callee uses `now`.
    pub(crate) fn callee_uses_now(&self, callee: usize) -> bool {
        self.callees_use_now.get(callee).copied().unwrap_or(true)
    }

    fn next(&self) -> u32 {
        // The limits on documents are far below.
        u32::try_from(self.list.len()).unwrap_or(u32::MAX)
    }

    fn add_condition(&mut self, expression: ExpressionIndex) {
        self.conditions.insert(expression, self.next());
        for outcome in [false, true] {
            self.list.push(Point::Condition { expression, outcome });
        }
    }

    fn add_loop(&mut self, expression: ExpressionIndex) -> u32 {
        let first = self.next();
        for class in [LoopClass::None, LoopClass::One, LoopClass::Many] {
            self.list.push(Point::Loop { expression, class });
        }
        first
    }

    fn block(&mut self, block: &Block) {
        for statement in block {
            match statement {
                Statement::Branch(branch) => {
                    for arm in &branch.arms {
                        self.add_condition(arm.when);
                        self.block(&arm.body);
                    }
                    self.block(&branch.otherwise);
                }
                Statement::Parallel(parallel) => {
                    for member in &parallel.members {
                        self.block(member);
                    }
                }
                Statement::Loop(repeated) => {
                    let conditions = [repeated.filter, repeated.condition, repeated.stop_when];
                    for condition in conditions.into_iter().flatten() {
                        self.add_condition(condition);
                    }
                    let named = repeated.over.or(repeated.condition).unwrap_or_default();
                    let first = self.add_loop(named);
                    self.loops.insert(address(&**repeated), first);
                    self.block(&repeated.body);
                }
                _ => {}
            }
            for handler in statement.handlers() {
                let point = self.next();
                let number = u32::try_from(self.handlers.len()).unwrap_or(u32::MAX);
                self.handlers.insert(address(handler), point);
                self.list.push(Point::Handler { number });
                self.block(&handler.body);
            }
        }
    }
}

fn address<T>(thing: &T) -> usize {
    std::ptr::from_ref(thing).addr()
}
