//! Types of docs/spec/values.md, and the type patterns that operations declare.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::value::{KeyKind, Member};

mod outside;
mod sums;

pub use outside::{Declared, MemberTexts, Outside, is_outside_name};
pub use sums::Addition;

/// Type of a value. Parts are shared, so that a clone is cheap. Within one document [`crate::intern::Types`] allocates
/// equal types once.
#[derive(Clone, Debug)]
pub enum Type {
    Boolean,
    Integer,
    Decimal,
    Float,
    Text,
    Bytes,
    Timestamp,
    Date,
    Duration,
    TimeOfDay,
    Period,
    Json,
    Enum(Arc<EnumType>),
    Set(Arc<Type>),
    Array(Arc<Type>),
    Map(Arc<MapType>),
    /// INVARIANT: never the optional of an optional.
    Optional(Arc<Type>),
    Record(Arc<RecordType>),
}

/// Types of a map's keys and values. INVARIANT: the key type is one that [`Type::is_key`] accepts.
#[derive(Debug, PartialEq, Eq)]
pub struct MapType {
    pub key: Type,
    pub value: Type,
}

impl PartialEq for Type {
    /// Compares types without descending into shared parts. A type with shared parts may represent a tree far larger
    /// than itself.
    fn eq(&self, other: &Self) -> bool {
        fn shared<T: PartialEq>(left: &Arc<T>, right: &Arc<T>) -> bool {
            Arc::ptr_eq(left, right) || left == right
        }
        match (self, other) {
            (Self::Boolean, Self::Boolean)
            | (Self::Integer, Self::Integer)
            | (Self::Decimal, Self::Decimal)
            | (Self::Float, Self::Float)
            | (Self::Text, Self::Text)
            | (Self::Bytes, Self::Bytes)
            | (Self::Timestamp, Self::Timestamp)
            | (Self::Date, Self::Date)
            | (Self::Duration, Self::Duration)
            | (Self::TimeOfDay, Self::TimeOfDay)
            | (Self::Period, Self::Period)
            | (Self::Json, Self::Json) => true,
            (Self::Enum(left), Self::Enum(right)) => shared(left, right),
            (Self::Set(left), Self::Set(right))
            | (Self::Array(left), Self::Array(right))
            | (Self::Optional(left), Self::Optional(right)) => shared(left, right),
            (Self::Map(left), Self::Map(right)) => shared(left, right),
            (Self::Record(left), Self::Record(right)) => shared(left, right),
            _ => false,
        }
    }
}

impl Eq for Type {}

/// Enum with its members in declared order. INVARIANT: at least one member, no duplicates.
#[derive(Debug)]
pub struct EnumType {
    members: Vec<Arc<str>>,
    /// Indexes into `members`, ordered by name, for lookup without hashing.
    by_name: Vec<u32>,
    /// The members in JSON and Arrow, where they differ. They take no part in equality.
    outside: Option<MemberTexts>,
}

/// Error for a list of names that does not make an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnumTypeError {
    NoMembers,
    Repeated(Arc<str>),
}

impl EnumType {
    /// Creates an enum of these members.
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
        Ok(Self {
            members,
            by_name,
            outside: None,
        })
    }

    /// Returns the enum with these outside texts, one for each member.
    #[must_use]
    pub fn with_texts(mut self, texts: MemberTexts) -> Self {
        self.outside = Some(texts);
        self
    }

    /// Returns the members as JSON and Arrow have them, in declared order.
    pub fn texts(&self) -> &[Arc<str>] {
        self.outside.as_ref().map_or(&self.members, MemberTexts::texts)
    }

    /// Returns the text of a member in JSON and Arrow.
    pub fn text(&self, member: Member) -> Option<&Arc<str>> {
        self.texts().get(usize::try_from(member.0).ok()?)
    }

    /// Returns the member with this text in JSON and Arrow.
    pub fn member_of_text(&self, text: &str) -> Option<Member> {
        match &self.outside {
            None => self.member(text),
            Some(texts) => texts.find(text).map(Member),
        }
    }

    /// Returns the outside texts, if the enum has any.
    pub fn outside(&self) -> Option<&MemberTexts> {
        self.outside.as_ref()
    }

    /// Returns the members in declared order.
    pub fn members(&self) -> &[Arc<str>] {
        &self.members
    }

    /// Returns the name of a member.
    pub fn name(&self, member: Member) -> Option<&Arc<str>> {
        self.members.get(usize::try_from(member.0).ok()?)
    }

    /// Returns the member with this name.
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
        // `by_name` is derived from the members, and outside texts are an annotation.
        std::ptr::eq(self, other) || self.members == other.members
    }
}

impl Eq for EnumType {}

impl Hash for EnumType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.members.hash(state);
    }
}

/// Record with its fields in declared order. INVARIANT: at least one field, no duplicate names.
#[derive(Debug)]
pub struct RecordType {
    fields: Vec<Field>,
    /// Indexes into `fields`, ordered by name.
    by_name: Vec<u32>,
    /// The fields in JSON and Arrow, where that differs. They take no part in equality.
    outside: Option<Outside>,
    /// The record without outside names at any depth, where the record has some. Equality compares these, so that
    /// equal types are the same allocation and no comparison descends into shared parts twice.
    bare: Option<Arc<RecordType>>,
}

/// Field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: Arc<str>,
    pub ty: Type,
}

/// Error for a list of fields that does not make a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordTypeError {
    NoFields,
    Repeated(Arc<str>),
}

impl RecordType {
    /// Creates a record of these fields.
    pub fn new(fields: Vec<Field>) -> Result<Self, RecordTypeError> {
        if fields.is_empty() {
            return Err(RecordTypeError::NoFields);
        }
        let mut named: Vec<(&Arc<str>, u32)> = fields.iter().map(|field| &field.name).zip(0..).collect();
        named.sort();
        for pair in named.windows(2) {
            if let [(left, _), (right, _)] = pair
                && left == right
            {
                return Err(RecordTypeError::Repeated(Arc::clone(left)));
            }
        }
        let by_name = named.into_iter().map(|(_, place)| place).collect();
        Ok(Self {
            fields,
            by_name,
            outside: None,
            bare: None,
        })
    }

    /// Returns the record with outside names; `bare` is the one without any, at any depth.
    #[must_use]
    pub fn with_outside(mut self, outside: Option<Outside>, bare: Arc<Self>) -> Self {
        self.outside = outside;
        self.bare = Some(bare);
        self
    }

    /// Returns the outside names, if the fields have any of their own.
    pub fn outside(&self) -> Option<&Outside> {
        self.outside.as_ref()
    }

    /// Returns the key of a field in JSON and Arrow.
    pub fn key(&self, place: usize) -> &str {
        match &self.outside {
            Some(outside) => outside.name(place),
            None => self.fields.get(place).map_or("", |field| &field.name),
        }
    }

    /// Returns the index of the field with this key in JSON and Arrow.
    pub fn place_of_key(&self, key: &str) -> Option<usize> {
        match &self.outside {
            Some(outside) => outside.place(key),
            None => self.place(key),
        }
    }

    /// Returns true where flags or undeclared keys make the keys of a value depend on the value.
    pub fn is_sparse(&self) -> bool {
        self.outside.as_ref().is_some_and(Outside::is_sparse)
    }

    /// Returns the fields in declared order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Iterates over the fields and their indexes, in code-point order of their names.
    pub fn fields_by_name(&self) -> impl Iterator<Item = (usize, &Field)> {
        let places = self.by_name.iter().map(|place| *place as usize);
        places.filter_map(|place| self.fields.get(place).map(|field| (place, field)))
    }

    /// Returns the index of the field with this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        let own = |place: u32| self.fields.get(place as usize).map_or("", |field| &*field.name);
        let found = self
            .by_name
            .binary_search_by(|place| own(*place).cmp(name))
            .ok()?;
        self.by_name.get(found).map(|place| *place as usize)
    }
}

impl PartialEq for RecordType {
    fn eq(&self, other: &Self) -> bool {
        // `by_name` is derived from the fields, and outside names are an annotation.
        let (own, others) = (
            self.bare.as_deref().unwrap_or(self),
            other.bare.as_deref().unwrap_or(other),
        );
        std::ptr::eq(own, others) || own.fields == others.fields
    }
}

impl Eq for RecordType {}

/// Number of members or fields that a message shows.
const PARTS_SHOWN: usize = 6;
/// Depth to which a message shows a type. Together with `PARTS_SHOWN` it bounds the message for types of any size.
const DEPTH_SHOWN: usize = 4;

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(formatter, DEPTH_SHOWN)
    }
}

impl Type {
    fn write(&self, formatter: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let Some(below) = depth.checked_sub(1) else {
            return formatter.write_str("…");
        };
        let left_out =
            |formatter: &mut fmt::Formatter<'_>, length: usize| match length.saturating_sub(PARTS_SHOWN) {
                0 => Ok(()),
                more => write!(formatter, " and {more} more"),
            };
        let wrapped = |formatter: &mut fmt::Formatter<'_>, name: &str, of: &Type| {
            write!(formatter, "{name}<")?;
            of.write(formatter, below)?;
            formatter.write_str(">")
        };
        match self {
            Self::Boolean => formatter.write_str("boolean"),
            Self::Integer => formatter.write_str("integer"),
            Self::Decimal => formatter.write_str("decimal"),
            Self::Float => formatter.write_str("float"),
            Self::Text => formatter.write_str("string"),
            Self::Bytes => formatter.write_str("bytes"),
            Self::Timestamp => formatter.write_str("timestamp"),
            Self::Date => formatter.write_str("date"),
            Self::Duration => formatter.write_str("duration"),
            Self::TimeOfDay => formatter.write_str("time_of_day"),
            Self::Period => formatter.write_str("period"),
            Self::Json => formatter.write_str("json"),
            Self::Enum(of) => {
                let shown: Vec<&str> = of.members.iter().take(PARTS_SHOWN).map(AsRef::as_ref).collect();
                write!(formatter, "enum[{}", shown.join(", "))?;
                left_out(formatter, of.members.len())?;
                formatter.write_str("]")
            }
            Self::Set(of) => wrapped(formatter, "set", of),
            Self::Array(of) => wrapped(formatter, "array", of),
            Self::Optional(of) => wrapped(formatter, "optional", of),
            Self::Map(of) => {
                formatter.write_str("map<")?;
                of.key.write(formatter, below)?;
                formatter.write_str(", ")?;
                of.value.write(formatter, below)?;
                formatter.write_str(">")
            }
            Self::Record(of) => {
                formatter.write_str("record{")?;
                for (number, field) in of.fields.iter().take(PARTS_SHOWN).enumerate() {
                    write!(
                        formatter,
                        "{}{}: ",
                        if number > 0 { ", " } else { "" },
                        field.name
                    )?;
                    field.ty.write(formatter, below)?;
                }
                left_out(formatter, of.fields.len())?;
                formatter.write_str("}")
            }
        }
    }
}

/// Types that keys may have, for a message.
pub(crate) const KEY_TYPES: &str = "string, integer, boolean, bytes, date, timestamp or an enum";

/// Constraint on a type argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Any type.
    Any,
    /// Type of a set's members: string, integer, boolean, bytes, date, timestamp or an enum.
    Key,
    /// Sortable type: a key type, decimal, float, duration, or an array or record of sortable types. Inside of those
    /// an optional is sortable too.
    Ordered,
    /// Integer, decimal or float.
    Number,
    /// Any enum.
    Enum,
    /// Any record.
    Record,
}

impl Bound {
    /// Returns true when the type satisfies the bound.
    pub fn admits(self, of: &Type) -> bool {
        match self {
            Self::Any => true,
            Self::Key => of.is_key(),
            Self::Ordered => of.is_ordered(),
            Self::Number => matches!(of, Type::Integer | Type::Decimal | Type::Float),
            Self::Enum => matches!(of, Type::Enum(_)),
            Self::Record => matches!(of, Type::Record(_)),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Any => "a type",
            Self::Key => KEY_TYPES,
            Self::Ordered => {
                "string, integer, decimal, float, boolean, bytes, date, timestamp, duration, time_of_day, period, an enum, or an array or record of these"
            }
            Self::Number => "integer, decimal or float",
            Self::Enum => "an enum",
            Self::Record => "a record",
        })
    }
}

impl Type {
    /// Returns true for the types of set members and map keys.
    pub fn is_key(&self) -> bool {
        self.key_kind().is_some()
    }

    /// Returns true for a type that the bound `ordered` admits. Visits each shared part once.
    pub fn is_ordered(&self) -> bool {
        // Null alone has no place among values that an aggregate selects from.
        if matches!(self, Self::Optional(_)) {
            return false;
        }
        let mut seen = HashSet::new();
        let mut waiting = vec![self];
        while let Some(ty) = waiting.pop() {
            if ty.address().is_some_and(|address| !seen.insert(address)) {
                continue;
            }
            match ty {
                Self::Array(of) | Self::Optional(of) => waiting.push(of),
                Self::Record(of) => waiting.extend(of.fields().iter().map(|field| &field.ty)),
                Self::Decimal | Self::Float | Self::Duration | Self::TimeOfDay | Self::Period => {}
                _ if ty.is_key() => {}
                _ => return false,
            }
        }
        true
    }

    /// Returns the kind of keys of this type, or `None` for other types.
    pub fn key_kind(&self) -> Option<KeyKind> {
        match self {
            Self::Boolean => Some(KeyKind::Boolean),
            Self::Integer => Some(KeyKind::Integer),
            Self::Text => Some(KeyKind::Text),
            Self::Bytes => Some(KeyKind::Bytes),
            Self::Timestamp => Some(KeyKind::Timestamp),
            Self::Date => Some(KeyKind::Date),
            Self::Enum(_) => Some(KeyKind::Member),
            _ => None,
        }
    }

    /// Returns the address of the type's parts, or `None` for a type without parts. Within one document two types with
    /// the same address are equal.
    pub fn address(&self) -> Option<usize> {
        Some(match self {
            Self::Boolean
            | Self::Integer
            | Self::Decimal
            | Self::Float
            | Self::Text
            | Self::Bytes
            | Self::Timestamp
            | Self::Date
            | Self::Duration
            | Self::TimeOfDay
            | Self::Period
            | Self::Json => return None,
            Self::Enum(of) => Arc::as_ptr(of).addr(),
            Self::Set(of) | Self::Array(of) | Self::Optional(of) => Arc::as_ptr(of).addr(),
            Self::Map(of) => Arc::as_ptr(of).addr(),
            Self::Record(of) => Arc::as_ptr(of).addr(),
        })
    }
}

/// Type in the declaration of an operation. Type parameters are given by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypePattern {
    Boolean,
    Integer,
    Decimal,
    Float,
    Text,
    Bytes,
    Timestamp,
    Date,
    Duration,
    TimeOfDay,
    Period,
    Json,
    Parameter(usize),
    /// Enum of these members.
    EnumOf(&'static [&'static str]),
    SetOf(&'static TypePattern),
    ArrayOf(&'static TypePattern),
    MapOf(&'static TypePattern, &'static TypePattern),
    OptionalOf(&'static TypePattern),
    /// Record of these fields.
    RecordOf(&'static [(&'static str, TypePattern)]),
}

impl TypePattern {
    /// Substitutes type arguments. Returns `None` where a parameter has no argument.
    pub fn instantiate(&self, of: &[Type]) -> Option<Type> {
        Some(match self {
            Self::Boolean => Type::Boolean,
            Self::Integer => Type::Integer,
            Self::Decimal => Type::Decimal,
            Self::Float => Type::Float,
            Self::Text => Type::Text,
            Self::Bytes => Type::Bytes,
            Self::Timestamp => Type::Timestamp,
            Self::Date => Type::Date,
            Self::Duration => Type::Duration,
            Self::TimeOfDay => Type::TimeOfDay,
            Self::Period => Type::Period,
            Self::Json => Type::Json,
            Self::Parameter(place) => of.get(*place)?.clone(),
            Self::EnumOf(members) => {
                let members = members.iter().map(|member| Arc::from(*member)).collect();
                Type::Enum(Arc::new(EnumType::new(members).ok()?))
            }
            Self::SetOf(pattern) => Type::Set(Arc::new(pattern.instantiate(of)?)),
            Self::ArrayOf(pattern) => Type::Array(Arc::new(pattern.instantiate(of)?)),
            Self::MapOf(key, value) => Type::Map(Arc::new(MapType {
                key: key.instantiate(of)?,
                value: value.instantiate(of)?,
            })),
            // SEMANTICS: the optional of an optional is that optional.
            Self::OptionalOf(pattern) => match pattern.instantiate(of)? {
                optional @ Type::Optional(_) => optional,
                other => Type::Optional(Arc::new(other)),
            },
            Self::RecordOf(fields) => {
                let fields = fields.iter().map(|(name, pattern)| {
                    let name = Arc::from(*name);
                    pattern.instantiate(of).map(|ty| Field { name, ty })
                });
                Type::Record(Arc::new(RecordType::new(fields.collect::<Option<_>>()?).ok()?))
            }
        })
    }
}

/// Declaration of an operation's types and failures.
#[derive(Debug)]
pub struct Signature {
    /// Type parameters and their bounds.
    pub type_params: &'static [(&'static str, Bound)],
    /// Parameters and their types.
    pub params: &'static [(&'static str, TypePattern)],
    /// Type of the result.
    pub returns: TypePattern,
    /// Failure codes of a call.
    pub raises: &'static [crate::ErrorCode],
    /// Type parameters whose member names the kernel receives after its arguments. A member value is an index into its
    /// enum; only the type has its name.
    pub named: &'static [usize],
    /// Type parameters that the kernel receives as types, after those names. A json value does not contain the type to
    /// cast to, nor a record the names of its fields.
    pub typed: &'static [usize],
    /// Parameters whose argument is a literal that the kernel takes in its parsed form: patterns and tables.
    pub literals: &'static [usize],
    /// Parameters whose size counts as work (docs/spec/limits.md).
    pub work: &'static [usize],
    /// True where the size of the result counts as work.
    pub builds: bool,
}
