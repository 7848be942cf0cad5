//! Interned types of one document: equal types share one allocation.
//!
//! Every interned type is well formed. Types are also computed (a record of records, the array of a `for`). Through
//! sharing, a few expressions can describe a type that would be enormous if written out. INVARIANT: no code in these
//! crates walks a type as a tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::limits::TYPE_DEPTH;
use crate::types::{EnumType, EnumTypeError, Field, KEY_TYPES, MapType, RecordType, RecordTypeError, Type};

/// Identity of a type: its kind and the addresses of its parts. The parts are interned types, which live as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Id(u8, usize);

#[derive(Debug, PartialEq, Eq, Hash)]
enum Shape {
    Set(Id),
    Array(Id),
    Map(Id, Id),
    Optional(Id),
    Record(Vec<(Arc<str>, Id)>),
}

/// All types of a document so far.
#[derive(Debug, Default)]
pub struct Types {
    enums: HashSet<Arc<EnumType>>,
    composed: HashMap<Shape, Type>,
    depths: HashMap<Id, u8>,
}

fn id(ty: &Type) -> Id {
    let kind = match ty {
        Type::Boolean => 0,
        Type::Integer => 1,
        Type::Decimal => 2,
        Type::Text => 3,
        Type::Enum(_) => 4,
        Type::Set(_) => 5,
        Type::Array(_) => 6,
        Type::Map(_) => 7,
        Type::Optional(_) => 8,
        Type::Record(_) => 9,
        Type::Float => 10,
        Type::Bytes => 11,
        Type::Timestamp => 12,
        Type::Date => 13,
        Type::Duration => 14,
        Type::Json => 15,
    };
    Id(kind, ty.address().unwrap_or(0))
}

impl Types {
    /// Interns the enum of these members.
    pub fn enumeration(&mut self, members: Vec<Arc<str>>) -> Result<Type, String> {
        let of = EnumType::new(members).map_err(|error| match error {
            EnumTypeError::NoMembers => "an enum has no members".to_owned(),
            EnumTypeError::Repeated(member) => {
                format!("an enum has the member `{}` twice", member.escape_debug())
            }
        })?;
        if let Some(known) = self.enums.get(&of) {
            return Ok(Type::Enum(Arc::clone(known)));
        }
        let of = Arc::new(of);
        self.enums.insert(Arc::clone(&of));
        let ty = Type::Enum(of);
        self.depths.insert(id(&ty), 1);
        Ok(ty)
    }

    /// Interns the set of a type.
    pub fn set(&mut self, of: &Type) -> Result<Type, String> {
        if !of.is_key() {
            return Err(format!("a set holds {KEY_TYPES}, not {of}"));
        }
        self.compose(Shape::Set(id(of)), &[of], || Type::Set(Arc::new(of.clone())))
    }

    /// Interns the array of a type.
    pub fn array(&mut self, of: &Type) -> Result<Type, String> {
        self.compose(Shape::Array(id(of)), &[of], || Type::Array(Arc::new(of.clone())))
    }

    /// Interns the map of a key type and a value type.
    pub fn map(&mut self, key: &Type, value: &Type) -> Result<Type, String> {
        if !key.is_key() {
            return Err(format!("the key of a map is {KEY_TYPES}, not {key}"));
        }
        self.compose(Shape::Map(id(key), id(value)), &[key, value], || {
            let (key, value) = (key.clone(), value.clone());
            Type::Map(Arc::new(MapType { key, value }))
        })
    }

    /// Interns the optional of a type.
    pub fn optional(&mut self, of: &Type) -> Result<Type, String> {
        if matches!(of, Type::Optional(_)) {
            return Err(format!("an optional is of {of}, which is an optional itself"));
        }
        self.compose(Shape::Optional(id(of)), &[of], || {
            Type::Optional(Arc::new(of.clone()))
        })
    }

    /// Interns the record of these fields.
    pub fn record(&mut self, fields: Vec<Field>) -> Result<Type, String> {
        let shape = fields
            .iter()
            .map(|field| (Arc::clone(&field.name), id(&field.ty)));
        let shape = Shape::Record(shape.collect());
        if let Some(known) = self.composed.get(&shape) {
            return Ok(known.clone());
        }
        let of = RecordType::new(fields).map_err(|error| match error {
            RecordTypeError::NoFields => "a record has no fields".to_owned(),
            RecordTypeError::Repeated(name) => format!("a record has the field `{name}` twice"),
        })?;
        let of = Arc::new(of);
        let parts: Vec<&Type> = of.fields().iter().map(|field| &field.ty).collect();
        self.compose(shape, &parts, || Type::Record(Arc::clone(&of)))
    }

    /// Interns a type whose parts are interned already, such as an operation's result.
    pub fn adopt(&mut self, ty: &Type) -> Result<Type, String> {
        if self.depths.contains_key(&id(ty)) {
            return Ok(ty.clone());
        }
        match ty {
            Type::Set(of) => {
                let of = self.adopt(of)?;
                self.set(&of)
            }
            Type::Array(of) => {
                let of = self.adopt(of)?;
                self.array(&of)
            }
            Type::Map(of) => {
                let (key, value) = (self.adopt(&of.key)?, self.adopt(&of.value)?);
                self.map(&key, &value)
            }
            Type::Optional(of) => {
                let of = self.adopt(of)?;
                self.optional(&of)
            }
            Type::Record(of) => {
                let fields = of.fields().iter().map(|field| {
                    let (name, ty) = (Arc::clone(&field.name), self.adopt(&field.ty)?);
                    Ok(Field { name, ty })
                });
                let fields = fields.collect::<Result<_, String>>()?;
                self.record(fields)
            }
            // Enum that an operation declares.
            Type::Enum(of) => self.enumeration(of.members().to_vec()),
            // Types without parts.
            Type::Boolean
            | Type::Integer
            | Type::Decimal
            | Type::Float
            | Type::Text
            | Type::Bytes
            | Type::Timestamp
            | Type::Date
            | Type::Duration
            | Type::Json => Ok(ty.clone()),
        }
    }

    fn compose(
        &mut self,
        shape: Shape,
        parts: &[&Type],
        make: impl FnOnce() -> Type,
    ) -> Result<Type, String> {
        if let Some(known) = self.composed.get(&shape) {
            return Ok(known.clone());
        }
        let depth_of = |part: &&Type| self.depths.get(&id(part)).copied().unwrap_or(1);
        let depth = 1 + parts.iter().map(depth_of).max().unwrap_or(0);
        if depth > TYPE_DEPTH {
            return Err(format!("a type nests more than {TYPE_DEPTH} deep"));
        }
        let ty = make();
        self.depths.insert(id(&ty), depth);
        self.composed.insert(shape, ty.clone());
        Ok(ty)
    }
}
