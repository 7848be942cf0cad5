//! Types of `let`, `for`, `array`, `record` and `field`.

use std::sync::Arc;

use crate::generated::choices::SortOrder;
use crate::node::{ExpressionIndex, ExpressionKind, For, ForKind};
use crate::types::{Bound, Field, Type};

use super::expression::{Resolved, Typing};

impl Typing<'_> {
    pub(super) fn binding(&mut self, value: ExpressionIndex, body: ExpressionIndex) -> Resolved {
        let local = self.locals.close(value)?.item;
        let ty = self.operand(body)?.clone();
        Ok((ty, ExpressionKind::Let { local, value, body }))
    }

    pub(super) fn comprehension(&mut self, parts: For) -> Resolved {
        let places = self.locals.close(parts.with.unwrap_or(parts.over))?;
        if let Some(filter) = parts.filter {
            self.wants_boolean("the `where` of `for`", filter)?;
        }
        let ty = self.comprehension_type(&parts)?;
        let kind = ExpressionKind::For {
            item: places.item,
            entry_value: places.entry_value,
            so_far: places.so_far,
            parts,
        };
        Ok((ty, kind))
    }

    fn comprehension_type(&mut self, parts: &For) -> Result<Type, String> {
        let kind = parts.kind.name();
        let value = self.operand(parts.value)?.clone();
        if parts.key.is_some() && parts.kind != ForKind::Map {
            return Err(format!(
                "a `for` of kind `{kind}` has a `key`, which only `map` has"
            ));
        }
        let wants = |bound: Bound| {
            if bound.admits(&value) {
                return Ok(());
            }
            Err(format!("the value of `{kind}` is {bound}, not {value}"))
        };
        match parts.kind {
            ForKind::Map => {
                let key = parts
                    .key
                    .ok_or_else(|| "a `for` of kind `map` has no `key`".to_owned())?;
                let key = self.operand(key)?.clone();
                self.types.map(&key, &value)
            }
            ForKind::Array => self.types.array(&value),
            ForKind::Set => self.types.set(&value),
            ForKind::Count => Ok(Type::Integer),
            ForKind::ForAll | ForKind::Exists => match value {
                Type::Boolean => Ok(value),
                other => Err(format!("the value of `{kind}` is boolean, not {other}")),
            },
            ForKind::TakeWhile | ForKind::DropWhile => {
                self.wants_boolean(&format!("the value of `{kind}`"), parts.value)?;
                let item = self.item_type(parts)?;
                self.types.array(&item)
            }
            ForKind::Sum => match value.addition() {
                Some(_) => Ok(value),
                None => Err(format!("the value of `sum` cannot be added: it is {value}")),
            },
            ForKind::Avg => {
                let found = value.average().map(|(_, ty)| ty);
                found.ok_or_else(|| format!("the value of `avg` has no average: it is {value}"))
            }
            ForKind::Min | ForKind::Max => {
                wants(Bound::Ordered)?;
                Ok(value)
            }
            ForKind::MinBy | ForKind::MaxBy => {
                wants(Bound::Ordered)?;
                match self.item_type(parts)? {
                    // SEMANTICS: the optional of an optional is that optional.
                    item @ Type::Optional(_) => Ok(item),
                    item => self.types.optional(&item),
                }
            }
            ForKind::SortBy => {
                // Null comes first.
                match &value {
                    Type::Optional(of) if of.is_ordered() => {}
                    _ => wants(Bound::Ordered)?,
                }
                self.wants_sort_order(parts.with)?;
                let item = self.item_type(parts)?;
                self.types.array(&item)
            }
            ForKind::DistinctBy => {
                let item = self.item_type(parts)?;
                self.types.array(&item)
            }
            ForKind::GroupBy => {
                wants(Bound::Key)?;
                let item = self.item_type(parts)?;
                let group = self.types.array(&item)?;
                self.types.map(&value, &group)
            }
            ForKind::CountBy => {
                wants(Bound::Key)?;
                self.types.map(&value, &Type::Integer)
            }
            ForKind::IndexBy => {
                wants(Bound::Key)?;
                let item = self.item_type(parts)?;
                self.types.map(&value, &item)
            }
            ForKind::Fold => match parts.with.map(|with| self.operand(with)).transpose()? {
                Some(with) if *with == value => Ok(value),
                Some(with) => Err(format!(
                    "the value of `fold` is {value}, but its `with` is {with}"
                )),
                None => Err("a `for` of kind `fold` has no `with`".to_owned()),
            },
        }
    }

    /// Returns the type of the item to which the single local is bound.
    fn item_type(&self, parts: &For) -> Result<Type, String> {
        match self.operand(parts.over)? {
            Type::Array(of) | Type::Set(of) => Ok(Type::clone(of)),
            Type::Map(of) => Ok(of.key.clone()),
            other => Err(format!("`over` is an array, a set or a map, not {other}")),
        }
    }

    fn wants_sort_order(&self, with: Option<ExpressionIndex>) -> Result<(), String> {
        let with = with.ok_or_else(|| "a `for` of kind `sort_by` has no `with`".to_owned())?;
        match self.operand(with)? {
            Type::Enum(of)
                if of
                    .members()
                    .iter()
                    .map(AsRef::as_ref)
                    .eq(SortOrder::MEMBERS.iter().copied()) =>
            {
                Ok(())
            }
            other => Err(format!(
                "the `with` of `sort_by` is enum[{}], not {other}",
                SortOrder::MEMBERS.join(", ")
            )),
        }
    }

    pub(super) fn array(&mut self, items: Vec<ExpressionIndex>, of: &Type) -> Resolved {
        for (place, item) in items.iter().enumerate() {
            let found = self.operand(*item)?;
            if found != of {
                return Err(format!("item {place} of an array of {of} is {found}"));
            }
        }
        Ok((self.types.array(of)?, ExpressionKind::Array(items)))
    }

    pub(super) fn record(&mut self, fields: Vec<(Arc<str>, ExpressionIndex)>) -> Resolved {
        let mut of = Vec::with_capacity(fields.len());
        let mut values = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            let ty = self.operand(value)?.clone();
            of.push(Field { name, ty });
            values.push(value);
        }
        Ok((self.types.record(of)?, ExpressionKind::Record(values)))
    }

    pub(super) fn field(&self, name: &str, of: ExpressionIndex) -> Resolved {
        let record = match self.operand(of)? {
            Type::Record(record) => record,
            other => return Err(format!("`field` is of a record, not {other}")),
        };
        let found = record.place(name).and_then(|place| {
            let field = record.fields().get(place)?;
            Some((field.ty.clone(), u32::try_from(place).ok()?))
        });
        let (ty, place) = found.ok_or_else(|| format!("no field of the record is named `{name}`"))?;
        Ok((ty, ExpressionKind::Field { place, of }))
    }
}
