//! Types of the expressions that bind, go through or put together: `let`, `for`, `array`, `record`, `field`.

use std::sync::Arc;

use crate::node::{ExpressionIndex, ExpressionKind, For, ForKind};
use crate::types::{Field, Type};

use super::expression::{Resolved, Typing};

impl Typing<'_> {
    pub(super) fn binding(&mut self, value: ExpressionIndex, body: ExpressionIndex) -> Resolved {
        let (local, _) = self.locals.close(value)?;
        let ty = self.operand(body)?.clone();
        Ok((ty, ExpressionKind::Let { local, value, body }))
    }

    pub(super) fn comprehension(&mut self, parts: For) -> Resolved {
        let (item, entry_value) = self.locals.close(parts.over)?;
        if let Some(filter) = parts.filter {
            self.wants_boolean("the `where` of `for`", filter)?;
        }
        let kind = parts.kind.name();
        let value = self.operand(parts.value)?.clone();
        let key = parts.key.map(|key| self.operand(key).cloned()).transpose()?;
        let ty = match (parts.kind, key) {
            (ForKind::Map, Some(key)) => self.types.map(&key, &value)?,
            (ForKind::Map, None) => return Err("a `for` of kind `map` has no `key`".to_owned()),
            (_, Some(_)) => {
                return Err(format!(
                    "a `for` of kind `{kind}` has a `key`, which stands in `map` alone"
                ));
            }
            (ForKind::Array, None) => self.types.array(&value)?,
            (ForKind::Set, None) => self.types.set(&value)?,
            (ForKind::Count, None) => Type::Integer,
            (ForKind::ForAll | ForKind::Exists, None) => match value {
                Type::Boolean => value,
                other => return Err(format!("the value of `{kind}` is boolean, not {other}")),
            },
            (ForKind::Sum, None) => match value {
                Type::Integer | Type::Decimal => value,
                other => return Err(format!("the value of `sum` is integer or decimal, not {other}")),
            },
            (ForKind::Min | ForKind::Max, None) => match value {
                Type::Integer | Type::Decimal | Type::Text => value,
                other => {
                    return Err(format!(
                        "the value of `{kind}` is integer, decimal or string, not {other}"
                    ));
                }
            },
        };
        let kind = ExpressionKind::For {
            item,
            entry_value,
            parts,
        };
        Ok((ty, kind))
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
