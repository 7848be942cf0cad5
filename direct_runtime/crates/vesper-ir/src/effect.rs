//! Types of the table of effects that is generated from `schemas/effects.toml`.

/// Rule for repeating an effect after a crash between request and completion (docs/spec/effects.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectClass {
    Read,
    Keyed,
    Txn,
    Probe,
    Unsafe,
    /// The run is suspended until its completion is known.
    Wait,
}

impl EffectClass {
    /// Returns the class with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "read" => Self::Read,
            "keyed" => Self::Keyed,
            "txn" => Self::Txn,
            "probe" => Self::Probe,
            "unsafe" => Self::Unsafe,
            "wait" => Self::Wait,
            _ => return None,
        })
    }

    /// Returns the name of the class in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Keyed => "keyed",
            Self::Txn => "txn",
            Self::Probe => "probe",
            Self::Unsafe => "unsafe",
            Self::Wait => "wait",
        }
    }
}

/// Shape of a request for one effect.
#[derive(Debug)]
pub struct EffectDeclaration {
    /// Classes that a step may choose.
    pub classes: &'static [EffectClass],
    /// Names of the texts that are fixed when the node is checked.
    pub fixed: &'static [&'static str],
    /// Arguments, in order of evaluation.
    pub arguments: &'static [EffectArgument],
    pub gives: Gives,
    /// Codes of failures besides `timeout` and `unavailable`, which every effect has.
    pub fails: &'static [&'static str],
}

/// Argument of an effect.
#[derive(Debug)]
pub struct EffectArgument {
    pub name: &'static str,
    /// Names of its permitted types: types without parts, `any`, and `record` for every record.
    pub types: &'static [&'static str],
    pub is_optional: bool,
}

/// Type of an effect's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// The type with this name.
    Type(&'static str),
    /// The type that the request declares.
    Declared,
    /// The enum of the states of the request's machine.
    States,
}
