//! Interned types of one document: equal types share one allocation.
//!
//! Every interned type is well formed. Types are also computed (a record of records, the array of a `for`). Through
//! sharing, a few expressions can describe a type that would be enormous if written out. INVARIANT: no code in these
//! crates walks a type as a tree.

use std::collections::HashMap;
use std::sync::Arc;

use crate::limits::TYPE_DEPTH;
use crate::types::{
    EnumType, EnumTypeError, Field, KEY_TYPES, MapType, MemberTexts, Outside, RecordType, RecordTypeError,
    Type,
};

/// Identity of a type: its kind and the addresses of its parts. The parts are interned types, which live as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Id(u8, usize);

#[derive(Debug, PartialEq, Eq, Hash)]
enum Shape {
    Set(Id),
    Array(Id),
    Map(Id, Id),
    Optional(Id),
    Record(Vec<(Arc<str>, Id)>, Option<OutsideKey>),
}

/// Names, flags and rest of outside names.
type OutsideKey = (Vec<Arc<str>>, Vec<(u32, u32)>, Option<u32>);
/// Members of an enum and their outside texts.
type EnumKey = (Vec<Arc<str>>, Option<Vec<Arc<str>>>);

/// All types of a document so far.
#[derive(Debug, Default)]
pub struct Types {
    enums: HashMap<EnumKey, Type>,
    composed: HashMap<Shape, Type>,
    depths: HashMap<Id, u8>,
    /// For types with outside names, at any depth, the type without them.
    bare: HashMap<Id, Type>,
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
        Type::TimeOfDay => 16,
        Type::Period => 17,
    };
    Id(kind, ty.address().unwrap_or(0))
}

impl Types {
    /// Interns the enum of these members, with outside texts if it has any.
    pub fn enumeration(
        &mut self,
        members: Vec<Arc<str>>,
        texts: Option<Vec<Arc<str>>>,
    ) -> Result<Type, String> {
        let key = (members, texts);
        if let Some(known) = self.enums.get(&key) {
            return Ok(known.clone());
        }
        let of = EnumType::new(key.0.clone()).map_err(|error| match error {
            EnumTypeError::NoMembers => "an enum has no members".to_owned(),
            EnumTypeError::Repeated(member) => {
                format!("an enum has the member `{}` twice", member.escape_debug())
            }
        })?;
        let of = match &key.1 {
            None => of,
            Some(texts) => {
                let texts = MemberTexts::new(texts.clone()).map_err(|text| {
                    format!("two members of an enum are `{}` outside", text.escape_debug())
                })?;
                of.with_texts(texts)
            }
        };
        let ty = Type::Enum(Arc::new(of));
        self.depths.insert(id(&ty), 1);
        if key.1.is_some() {
            let bare = self.enumeration(key.0.clone(), None)?;
            self.bare.insert(id(&ty), bare);
        }
        self.enums.insert(key, ty.clone());
        Ok(ty)
    }

    /// Returns the type without outside names, if it has any.
    fn bare_of(&self, ty: &Type) -> Option<Type> {
        self.bare.get(&id(ty)).cloned()
    }

    /// Notes the type without outside names that `make` returns for the bare part of this type.
    fn note_bare(
        &mut self,
        ty: Type,
        part: &Type,
        make: impl FnOnce(&mut Self, &Type) -> Result<Type, String>,
    ) -> Result<Type, String> {
        if !self.bare.contains_key(&id(&ty))
            && let Some(part) = self.bare_of(part)
        {
            let bare = make(self, &part)?;
            self.bare.insert(id(&ty), bare);
        }
        Ok(ty)
    }

    /// Interns the set of a type.
    pub fn set(&mut self, of: &Type) -> Result<Type, String> {
        if !of.is_key() {
            return Err(format!("a set holds {KEY_TYPES}, not {of}"));
        }
        let ty = self.compose(Shape::Set(id(of)), &[of], || Type::Set(Arc::new(of.clone())))?;
        self.note_bare(ty, of, Self::set)
    }

    /// Interns the array of a type.
    pub fn array(&mut self, of: &Type) -> Result<Type, String> {
        let ty = self.compose(Shape::Array(id(of)), &[of], || Type::Array(Arc::new(of.clone())))?;
        self.note_bare(ty, of, Self::array)
    }

    /// Interns the map of a key type and a value type.
    pub fn map(&mut self, key: &Type, value: &Type) -> Result<Type, String> {
        if !key.is_key() {
            return Err(format!("the key of a map is {KEY_TYPES}, not {key}"));
        }
        let ty = self.compose(Shape::Map(id(key), id(value)), &[key, value], || {
            let (key, value) = (key.clone(), value.clone());
            Type::Map(Arc::new(MapType { key, value }))
        })?;
        let (bare_key, bare_value) = (self.bare_of(key), self.bare_of(value));
        if !self.bare.contains_key(&id(&ty)) && (bare_key.is_some() || bare_value.is_some()) {
            let bare = self.map(
                bare_key.as_ref().unwrap_or(key),
                bare_value.as_ref().unwrap_or(value),
            )?;
            self.bare.insert(id(&ty), bare);
        }
        Ok(ty)
    }

    /// Interns the optional of a type.
    pub fn optional(&mut self, of: &Type) -> Result<Type, String> {
        if matches!(of, Type::Optional(_)) {
            return Err(format!("an optional is of {of}, which is an optional itself"));
        }
        let ty = self.compose(Shape::Optional(id(of)), &[of], || {
            Type::Optional(Arc::new(of.clone()))
        })?;
        self.note_bare(ty, of, Self::optional)
    }

    /// Interns the record of these fields.
    pub fn record(&mut self, fields: Vec<Field>) -> Result<Type, String> {
        self.record_outside(fields, None)
    }

    /// Interns the record of these fields with outside names, if it has any.
    pub fn record_outside(&mut self, fields: Vec<Field>, outside: Option<Outside>) -> Result<Type, String> {
        let shape = fields
            .iter()
            .map(|field| (Arc::clone(&field.name), id(&field.ty)));
        let shape = Shape::Record(shape.collect(), outside.as_ref().map(Outside::key));
        if let Some(known) = self.composed.get(&shape) {
            return Ok(known.clone());
        }
        let bare_fields: Vec<Option<Type>> = fields.iter().map(|field| self.bare_of(&field.ty)).collect();
        let has_bare = outside.is_some() || bare_fields.iter().any(Option::is_some);
        let bare = if has_bare {
            let fields = fields.iter().zip(bare_fields).map(|(field, bare)| Field {
                name: Arc::clone(&field.name),
                ty: bare.unwrap_or_else(|| field.ty.clone()),
            });
            Some(self.record_outside(fields.collect(), None)?)
        } else {
            None
        };
        let of = RecordType::new(fields).map_err(|error| match error {
            RecordTypeError::NoFields => "a record has no fields".to_owned(),
            RecordTypeError::Repeated(name) => format!("a record has the field `{name}` twice"),
        })?;
        let of = Arc::new(match &bare {
            Some(Type::Record(bare)) => of.with_outside(outside, Arc::clone(bare)),
            _ => of,
        });
        let parts: Vec<&Type> = of.fields().iter().map(|field| &field.ty).collect();
        let ty = self.compose(shape, &parts, || Type::Record(Arc::clone(&of)))?;
        if let Some(bare) = bare {
            self.bare.insert(id(&ty), bare);
        }
        Ok(ty)
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
                self.record_outside(fields, of.outside().cloned())
            }
            // Enum that an operation declares.
            Type::Enum(of) => {
                self.enumeration(of.members().to_vec(), of.outside().map(|_| of.texts().to_vec()))
            }
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
            | Type::TimeOfDay
            | Type::Period
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
