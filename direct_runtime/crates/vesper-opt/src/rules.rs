//! Which rules there are. Each can be left out, so that a test can look at one alone.

/// One rule; its file has the same name.
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

/// Every rule, with its name for people.
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
    /// The rule with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut rules = RULES.iter();
        rules.find(|(_, own)| *own == name).map(|(rule, _)| *rule)
    }

    /// The names of all rules.
    pub fn names() -> impl Iterator<Item = &'static str> {
        RULES.iter().map(|(_, name)| *name)
    }

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

/// A choice of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules(u16);

impl Rules {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self((1 << RULES.len()) - 1);

    /// These and one more.
    #[must_use]
    pub fn with(self, rule: Rule) -> Self {
        Self(self.0 | rule.bit())
    }

    /// These and not that one.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self(self.0 & !rule.bit())
    }

    pub fn has(self, rule: Rule) -> bool {
        self.0 & rule.bit() != 0
    }
}
