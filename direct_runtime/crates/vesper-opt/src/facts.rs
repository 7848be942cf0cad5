//! What is known about a node besides the node: the compiler to bytecode asks for it, and documents do not have it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use vesper_ir::node::ExpressionIndex;

/// What the rules have found out about a node.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Expressions whose value stays where it was computed, by the number of the place: of those with one number the
    /// first that is come to computes it, the others read it.
    pub held: HashMap<ExpressionIndex, u32>,
    /// How many such places there are.
    pub places: u32,
    /// What is computed once before the first round of a loop.
    pub before: HashMap<LoopPlace, Vec<ExpressionIndex>>,
    /// Calls that cannot fail here, though their operation may.
    pub proven: BTreeSet<ExpressionIndex>,
    /// Choices between two values that are there already: no jump is needed.
    pub selects: BTreeSet<ExpressionIndex>,
    /// Chains of tests, by the first one.
    pub switches: BTreeMap<ExpressionIndex, Switch>,
    /// The choices inside such a chain, which are no expressions of their own any more.
    pub chained: BTreeSet<ExpressionIndex>,
}

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopPlace {
    For(ExpressionIndex),
    /// By the place of its step.
    Statement(usize),
}

/// Where a chain of tests leads, by the value that its first tests look at.
#[derive(Clone, Debug)]
pub struct Switch {
    /// What is looked at: a reference to an enum or an integer.
    pub subject: ExpressionIndex,
    /// By value, in order, each once.
    pub cases: Vec<Case>,
    /// The arm that all other values begin with; that behind the last one is what is done where no test holds.
    pub otherwise: usize,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub value: i64,
    /// The first arm whose test may hold.
    pub arm: usize,
    /// True where it does hold, so that nothing is left to test.
    pub is_decided: bool,
}

impl Facts {
    /// A new place for a value.
    pub(crate) fn new_place(&mut self) -> u32 {
        let place = self.places;
        self.places += 1;
        place
    }
}
