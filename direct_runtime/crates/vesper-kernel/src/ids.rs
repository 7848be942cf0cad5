//! Identifiers: a letter and the number of the change that made the thing.

use std::fmt;

use crate::refusal::Refusal;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($letter:literal, $what:literal);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}{}", $letter, self.0)
            }
        }

        impl $name {
            /// Reads an identifier. One that no kernel makes names nothing.
            pub fn read(text: &str) -> Result<Self, Refusal> {
                if text.is_empty() {
                    return Err(Refusal::invalid(concat!("Name the ", $what, ".")));
                }
                let number = text.strip_prefix($letter).filter(|digits| !digits.starts_with(['0', '+']));
                number
                    .and_then(|digits| digits.parse().ok())
                    .map(Self)
                    .ok_or_else(|| Self::unknown(text))
            }

            pub fn unknown(text: impl fmt::Display) -> Refusal {
                Refusal::not_found(format!(concat!("There is no ", $what, " \"{}\"."), text))
            }
        }
    )*};
}

ids! {
    /// A process.
    Pid('p', "process");
    /// A question to a person.
    InterruptId('i', "interrupt");
}

/// A step of a session: its process and its number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepId {
    pub pid: Pid,
    pub number: u64,
}

impl fmt::Display for StepId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.pid, self.number)
    }
}

impl StepId {
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let unknown = || Refusal::not_found(format!("There is no step \"{text}\"."));
        if text.is_empty() {
            return Err(Refusal::invalid("Name the step."));
        }
        let (pid, number) = text.split_once('/').ok_or_else(unknown)?;
        let pid = Pid::read(pid).map_err(|_| unknown())?;
        let number = number.parse().map_err(|_| unknown())?;
        Ok(Self { pid, number })
    }
}

/// An envelope: one of its own, or that of a branch of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeId {
    Free(u64),
    OfBranch(Pid, u64),
}

impl fmt::Display for EnvelopeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free(number) => write!(formatter, "e{number}"),
            Self::OfBranch(pid, branch) => write!(formatter, "{pid}/e{branch}"),
        }
    }
}

impl EnvelopeId {
    pub fn read(text: &str) -> Result<Self, Refusal> {
        if text.is_empty() {
            return Err(Refusal::invalid("Name the envelope."));
        }
        let read = || match text.split_once("/e") {
            None => text.strip_prefix('e')?.parse().ok().map(Self::Free),
            Some((pid, branch)) => Some(Self::OfBranch(Pid::read(pid).ok()?, branch.parse().ok()?)),
        };
        read().ok_or_else(|| Self::unknown(text))
    }

    pub fn unknown(text: impl fmt::Display) -> Refusal {
        Refusal::not_found(format!("There is no envelope \"{text}\"."))
    }
}
