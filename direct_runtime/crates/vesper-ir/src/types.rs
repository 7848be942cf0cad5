//! The types of docs/spec/values.md, and the patterns that operations declare over them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::value::Member;

/// A type. Enums are shared, so that a clone is cheap and equal types are mostly the same allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Boolean,
    Integer,
    Decimal,
    Text,
    Enum(Arc<EnumType>),
    Set(Arc<Type>),
}

/// The members of an enum, as declared. INVARIANT: at least one, each once.
#[derive(Debug)]
pub struct EnumType {
    members: Vec<Arc<str>>,
    /// Places in `members`, ordered by name: for look-up without hashing.
    by_name: Vec<u32>,
}

/// Why a list of names does not make an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnumTypeError {
    NoMembers,
    Repeated(Arc<str>),
}

impl EnumType {
    /// An enum of these members.
    pub fn new(members: Vec<Arc<str>>) -> Result<Self, EnumTypeError> {
        if members.is_empty() {
            return Err(EnumTypeError::NoMembers);
        }
        let mut named: Vec<(&Arc<str>, u32)> = members.iter().zip(0..).collect();
        named.sort();
        for pair in named.windows(2) {
            if let [(left, _), (right, _)] = pair
                && left == right
            {
                return Err(EnumTypeError::Repeated(Arc::clone(left)));
            }
        }
        let by_name = named.into_iter().map(|(_, place)| place).collect();
        Ok(Self { members, by_name })
    }

    /// The members in declared order.
    pub fn members(&self) -> &[Arc<str>] {
        &self.members
    }

    /// The text of a member.
    pub fn name(&self, member: Member) -> Option<&Arc<str>> {
        self.members.get(usize::try_from(member.0).ok()?)
    }

    /// The member with this name.
    pub fn member(&self, name: &str) -> Option<Member> {
        let found = self
            .by_name
            .binary_search_by(|place| self.name(Member(*place)).map_or("", |own| own).cmp(name))
            .ok()?;
        self.by_name.get(found).copied().map(Member)
    }
}

impl PartialEq for EnumType {
    fn eq(&self, other: &Self) -> bool {
        // `by_name` follows from the members.
        std::ptr::eq(self, other) || self.members == other.members
    }
}

impl Eq for EnumType {}

impl Hash for EnumType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.members.hash(state);
    }
}

/// What a message shows of a long enum.
const MEMBERS_SHOWN: usize = 6;

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => formatter.write_str("boolean"),
            Self::Integer => formatter.write_str("integer"),
            Self::Decimal => formatter.write_str("decimal"),
            Self::Text => formatter.write_str("string"),
            Self::Enum(of) => {
                let shown: Vec<&str> = of.members.iter().take(MEMBERS_SHOWN).map(AsRef::as_ref).collect();
                let left_out = of.members.len().saturating_sub(shown.len());
                write!(formatter, "enum[{}", shown.join(", "))?;
                if left_out > 0 {
                    write!(formatter, " and {left_out} more")?;
                }
                formatter.write_str("]")
            }
            Self::Set(of) => write!(formatter, "set<{of}>"),
        }
    }
}

/// What a type argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Something a set may hold: string, integer, boolean or an enum.
    Key,
    /// Any enum.
    Enum,
}

impl Bound {
    /// True when the type may stand for a parameter with this bound.
    pub fn admits(self, of: &Type) -> bool {
        match self {
            Self::Key => of.is_key(),
            Self::Enum => matches!(of, Type::Enum(_)),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Key => "string, integer, boolean or an enum",
            Self::Enum => "an enum",
        })
    }
}

impl Type {
    /// True for the types that a set may hold.
    pub fn is_key(&self) -> bool {
        matches!(self, Self::Boolean | Self::Integer | Self::Text | Self::Enum(_))
    }
}

/// A type as an operation declares it: with type parameters by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypePattern {
    Boolean,
    Integer,
    Decimal,
    Text,
    Parameter(usize),
    SetOf(&'static TypePattern),
}

impl TypePattern {
    /// The type itself, with the arguments put in; nothing where a parameter has no argument.
    pub fn instantiate(&self, of: &[Type]) -> Option<Type> {
        Some(match self {
            Self::Boolean => Type::Boolean,
            Self::Integer => Type::Integer,
            Self::Decimal => Type::Decimal,
            Self::Text => Type::Text,
            Self::Parameter(place) => of.get(*place)?.clone(),
            Self::SetOf(pattern) => Type::Set(Arc::new(pattern.instantiate(of)?)),
        })
    }
}

/// The declared shape of an operation.
#[derive(Debug)]
pub struct Signature {
    /// Type parameters and their bounds.
    pub type_params: &'static [(&'static str, Bound)],
    /// Parameters and their types.
    pub params: &'static [(&'static str, TypePattern)],
    /// The type of the result.
    pub returns: TypePattern,
    /// What a call may fail with.
    pub raises: &'static [crate::ErrorCode],
}
