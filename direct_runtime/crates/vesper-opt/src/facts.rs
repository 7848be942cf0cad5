//! Facts that the rules derive about a node for the bytecode compiler. Documents do not contain them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use vesper_ir::node::ExpressionIndex;

/// Results of the rules for one node.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Expressions whose value is held, by the number of the slot. Of those with one slot the first to be reached
    /// computes the value and the others read it.
    pub held: HashMap<ExpressionIndex, u32>,
    /// Number of slots.
    pub places: u32,
    /// Expressions that are computed once before the first round of a loop.
    pub before: HashMap<LoopPlace, Vec<ExpressionIndex>>,
    /// Calls that cannot fail here, although their operation may.
    pub proven: BTreeSet<ExpressionIndex>,
    /// Calls that cannot fail by a proof from outside. They need no check, and are never moved.
    pub unchecked: BTreeSet<ExpressionIndex>,
    /// Choices between two available values, which need no jump.
    pub selects: BTreeSet<ExpressionIndex>,
    /// Chains of tests, by their first choice.
    pub switches: BTreeMap<ExpressionIndex, Switch>,
    /// Choices inside such a chain, which are not compiled separately.
    pub chained: BTreeSet<ExpressionIndex>,
}

/// Loop of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopPlace {
    For(ExpressionIndex),
    /// Loop statement, by the index of its step.
    Statement(usize),
}

/// Jump table of a chain of tests, by the value that the first tests compare.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Compared value: a reference to an enum or an integer.
    pub subject: ExpressionIndex,
    /// Cases in order of value, without duplicates.
    pub cases: Vec<Case>,
    /// First arm for all other values. An index past the last arm selects the default.
    pub otherwise: usize,
}

/// Case of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub value: i64,
    /// First arm whose test may hold.
    pub arm: usize,
    /// True where that test always holds, so that no test remains.
    pub is_decided: bool,
}

impl Facts {
    /// Allocates a slot for a value.
    pub(crate) fn new_place(&mut self) -> u32 {
        let place = self.places;
        self.places += 1;
        place
    }
}
