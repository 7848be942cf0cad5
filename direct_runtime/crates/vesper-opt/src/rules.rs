//! Rules of the optimizer. Each can be disabled, so that a test can check one alone.

/// Rule of the optimizer; its file has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Constants,
    Intervals,
    Guards,
    DeadSteps,
    JumpTables,
    Invariants,
    Common,
    Selects,
}

/// All rules with their names.
const RULES: [(Rule, &str); 8] = [
    (Rule::Constants, "constants"),
    (Rule::Intervals, "intervals"),
    (Rule::Guards, "guards"),
    (Rule::DeadSteps, "dead_steps"),
    (Rule::JumpTables, "jump_tables"),
    (Rule::Invariants, "invariants"),
    (Rule::Common, "common"),
    (Rule::Selects, "selects"),
];

impl Rule {
    /// Returns the rule with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut rules = RULES.iter();
        rules.find(|(_, own)| *own == name).map(|(rule, _)| *rule)
    }

    /// Iterates over the names of all rules.
    pub fn names() -> impl Iterator<Item = &'static str> {
        RULES.iter().map(|(_, name)| *name)
    }

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

/// Set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules(u16);

impl Rules {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self((1 << RULES.len()) - 1);

    /// Returns the set with one more rule.
    #[must_use]
    pub fn with(self, rule: Rule) -> Self {
        Self(self.0 | rule.bit())
    }

    /// Returns the set without a rule.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self(self.0 & !rule.bit())
    }

    pub fn has(self, rule: Rule) -> bool {
        self.0 & rule.bit() != 0
    }
}
