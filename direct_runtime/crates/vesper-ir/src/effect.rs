//! What a declaration of `schemas/effects.toml` says of a request. The table itself is generated.

/// What may be done after a crash between asking and answering (docs/spec/effects.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectClass {
    Read,
    Keyed,
    Txn,
    Probe,
    Unsafe,
}

impl EffectClass {
    /// The class with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "read" => Self::Read,
            "keyed" => Self::Keyed,
            "txn" => Self::Txn,
            "probe" => Self::Probe,
            "unsafe" => Self::Unsafe,
            _ => return None,
        })
    }

    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Keyed => "keyed",
            Self::Txn => "txn",
            Self::Probe => "probe",
            Self::Unsafe => "unsafe",
        }
    }
}

/// The shape of a request for one effect.
#[derive(Debug)]
pub struct EffectDeclaration {
    /// Those that a step may choose.
    pub classes: &'static [EffectClass],
    /// The names of texts that are known when the node is checked.
    pub fixed: &'static [&'static str],
    /// Expressions, in the order in which they are evaluated.
    pub arguments: &'static [EffectArgument],
    pub gives: Gives,
}

/// An argument of an effect.
#[derive(Debug)]
pub struct EffectArgument {
    pub name: &'static str,
    /// The words of the types it may have: those of types without parts, `any`, and `record` for every record.
    pub types: &'static [&'static str],
    pub is_optional: bool,
}

/// The type of an effect's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// The one with this word.
    Type(&'static str),
    /// The one that the request says.
    Declared,
    /// The enum of the states of the request's machine.
    States,
}
