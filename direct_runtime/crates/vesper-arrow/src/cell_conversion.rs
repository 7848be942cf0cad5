//! Conversion of cells to values with a complete list of problems, by the rules of docs/spec/values.md.

use std::sync::Arc;

use vesper_interp::inputs::{
    Given, ProblemKind, collect_all, convert, convert_outside_text, is_too_long, outside_entry,
};
use vesper_interp::json::json_of_text;
use vesper_interp::problems::{Path, Problems};
use vesper_ir::decimal::ParseDecimalError;
use vesper_ir::json::{MAX_DEPTH, Object};
use vesper_ir::limits::ITEMS;
use vesper_ir::{Decimal, Json, KeyKind, Map, MapType, OwnedKey, RecordType, Set, Type, Value, float};

use crate::cell::Cell;

/// The conversion of one row.
#[derive(Debug, Default)]
pub(crate) struct Conversion {
    pub(crate) problems: Problems,
}

impl Conversion {
    fn refuse(&mut self, path: &Path<'_>, kind: ProblemKind) -> Option<Value> {
        self.problems.add(path, kind);
        None
    }

    /// Returns the value of an input or a field, or its default if it is absent.
    pub(crate) fn value_or_default(
        &mut self,
        ty: &Type,
        default: Option<&Value>,
        given: Option<&Cell<'_>>,
        path: &Path<'_>,
    ) -> Option<Value> {
        match (given, default, ty) {
            (Some(cell), _, _) => self.value(ty, cell, path),
            (None, Some(default), _) => Some(default.clone()),
            (None, None, Type::Optional(_)) => Some(Value::Null),
            (None, None, _) => self.refuse(path, ProblemKind::Missing),
        }
    }

    /// Converts a cell to a value. The depth of recursion is that of the type, which is limited.
    pub(crate) fn value(&mut self, ty: &Type, cell: &Cell<'_>, path: &Path<'_>) -> Option<Value> {
        match (ty, cell) {
            (Type::Optional(_), Cell::Null) => Some(Value::Null),
            (Type::Optional(of), cell) => self.value(of, cell, path),
            (Type::Json, cell) => match json(cell, 0) {
                Ok(json) => Some(Value::Json(Arc::new(json))),
                Err(kind) => self.refuse(path, kind),
            },
            (Type::Array(_) | Type::Set(_), Cell::List(items)) if items.len() > ITEMS => {
                self.refuse(path, ProblemKind::OutOfRange)
            }
            (Type::Array(of), Cell::List(items)) => self
                .items(of, items, path)
                .map(|items| Value::Array(items.into())),
            (Type::Set(of), Cell::List(items)) => self.set(of, items, path),
            (Type::Map(of), Cell::Entries(entries)) => {
                let entries: Vec<(&Cell<'_>, &Cell<'_>)> =
                    entries.iter().map(|(key, value)| (key, value)).collect();
                self.map(of, &entries, path)
            }
            (Type::Map(of), Cell::Fields(fields)) => {
                // As in a dict, a field that is null in a row is a key whose value is null.
                let keys: Vec<Cell<'_>> = fields.iter().map(|(name, _)| Cell::Text(name)).collect();
                let entries: Vec<(&Cell<'_>, &Cell<'_>)> =
                    keys.iter().zip(fields.iter().map(|(_, value)| value)).collect();
                self.map(of, &entries, path)
            }
            (Type::Record(of), Cell::Fields(fields)) => self.record(of, fields, path),
            (ty, cell) => match scalar(ty, cell) {
                Ok(value) => Some(value),
                Err(kind) => self.refuse(path, kind),
            },
        }
    }

    fn items(&mut self, of: &Type, items: &[Cell<'_>], path: &Path<'_>) -> Option<Vec<Value>> {
        let mut values = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            values.extend(self.value(of, item, &Path::Item(path, place)));
        }
        (values.len() == items.len()).then_some(values)
    }

    fn set(&mut self, of: &Type, items: &[Cell<'_>], path: &Path<'_>) -> Option<Value> {
        let values = self.items(of, items, path)?;
        let keys: Option<Vec<OwnedKey>> = values.iter().map(Value::to_key).collect();
        let set = keys
            .zip(of.key_kind())
            .and_then(|(keys, kind)| Set::from_keys(kind, keys.into_iter()));
        match set {
            Some(set) if set.len() == values.len() => Some(Value::Set(Arc::new(set))),
            _ => self.refuse(path, ProblemKind::Duplicate),
        }
    }

    fn map(&mut self, of: &MapType, given: &[(&Cell<'_>, &Cell<'_>)], path: &Path<'_>) -> Option<Value> {
        if given.len() > ITEMS {
            return self.refuse(path, ProblemKind::OutOfRange);
        }
        let mut is_whole = true;
        let mut keyed: Vec<(OwnedKey, &Cell<'_>)> = Vec::with_capacity(given.len());
        for (key, value) in given {
            match scalar(&of.key, key) {
                Ok(key) => keyed.extend(key.to_key().map(|key| (key, *value))),
                Err(kind) => {
                    is_whole = false;
                    self.refuse(&Path::BadKey(path), kind);
                }
            }
        }
        keyed.sort_by(|(left, _), (right, _)| left.cmp(right));
        if !keyed.is_sorted_by(|(left, _), (right, _)| left < right) {
            return self.refuse(path, ProblemKind::Duplicate);
        }
        let mut entries = Vec::with_capacity(keyed.len());
        for (key, value) in keyed {
            match self.value(&of.value, value, &outside_entry(path, &key, &of.key)) {
                Some(value) => entries.push((key, value)),
                None => is_whole = false,
            }
        }
        if !is_whole {
            return None;
        }
        let map = of
            .key
            .key_kind()
            .and_then(|kind| Map::from_entries(kind, entries));
        match map {
            Some(map) => Some(Value::Map(Arc::new(map))),
            None => self.refuse(path, ProblemKind::Duplicate),
        }
    }

    fn record(&mut self, of: &RecordType, given: &[(&str, Cell<'_>)], path: &Path<'_>) -> Option<Value> {
        let length = of.fields().len();
        let mut values = Vec::with_capacity(length);
        let find = |key: &str| given.iter().find(|(name, _)| *name == key).map(|(_, cell)| cell);
        for (place, field) in of.fields().iter().enumerate() {
            let key = of.key(place);
            let found = find(key);
            // A column cannot be absent in one row: flags and undeclared keys have columns of their own, or defaults.
            let default = match of.outside() {
                Some(outside) if found.is_none() => match outside.flagged(place) {
                    Some(flagged) => Some(Value::Boolean(find(of.key(flagged)).is_none())),
                    None if outside.rest() == Some(place) => empty_rest(),
                    None => None,
                },
                _ => None,
            };
            let path = Path::Field(path, key);
            values.extend(self.value_or_default(&field.ty, default.as_ref(), found, &path));
        }
        let mut is_whole = values.len() == length;
        let names = given.iter().map(|(name, _)| *name);
        let is_declared = |name: &str| (0..length).any(|place| of.key(place) == name);
        let mut unknown: Vec<&str> = names.filter(|name| !is_declared(name)).collect();
        unknown.sort_unstable();
        for name in unknown {
            is_whole = false;
            self.refuse(&Path::UnknownField(path, name.as_bytes()), ProblemKind::Unknown);
        }
        is_whole.then(|| Value::Record(values.into()))
    }
}

/// Returns a map without undeclared keys.
fn empty_rest() -> Option<Value> {
    Map::from_entries(KeyKind::Text, Vec::new()).map(|map| Value::Map(Arc::new(map)))
}

/// Converts a cell to a value of a scalar type.
pub(crate) fn scalar(ty: &Type, cell: &Cell<'_>) -> Result<Value, ProblemKind> {
    let given = match cell {
        Cell::Boolean(value) => Given::Boolean(*value),
        Cell::Integer(value) => Given::Integer(*value),
        Cell::Wide(value) => Given::WideInteger(Some(value.clone())),
        Cell::Decimal(number) => Given::Decimal(number.clone()),
        Cell::Float(value) => Given::Float(*value),
        Cell::Text(text) => return convert_outside_text(ty, text),
        Cell::Bytes(bytes) => Given::Bytes(bytes),
        Cell::Moment(moment) => Given::Moment(*moment),
        Cell::NaiveMoment(_) => Given::NaiveMoment,
        Cell::Day(day) => Given::Day(*day),
        Cell::Length(length) => Given::Length(*length),
        Cell::Clock(time) => Given::Clock(*time),
        Cell::Finer if matches!(ty, Type::Timestamp | Type::Duration | Type::TimeOfDay) => {
            return Err(ProblemKind::Malformed);
        }
        Cell::Null | Cell::Finer | Cell::List(_) | Cell::Fields(_) | Cell::Entries(_) | Cell::Other(_) => {
            Given::Other
        }
    };
    convert(ty, given)
}

/// Parses a text as a value of any type, by the rules of the command line.
pub(crate) fn parse_text(ty: &Type, text: &str) -> Result<Value, ProblemKind> {
    match ty {
        Type::Optional(of) => parse_text(of, text),
        Type::Boolean => match text {
            "true" => Ok(Value::Boolean(true)),
            "false" => Ok(Value::Boolean(false)),
            _ => Err(ProblemKind::Malformed),
        },
        Type::Integer => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(ProblemKind::Malformed);
            }
            text.parse()
                .map(Value::Integer)
                .map_err(|_| ProblemKind::OutOfRange)
        }
        Type::Float => {
            if let Some(value) = float::parse_named(text) {
                return Ok(Value::Float(value));
            }
            let nearest = match Decimal::parse(text) {
                Ok(number) => number.to_float(),
                Err(ParseDecimalError::OutOfRange) => text.parse().map_err(|_| ProblemKind::Malformed)?,
                Err(ParseDecimalError::Malformed) => return Err(ProblemKind::Malformed),
            };
            Some(nearest)
                .filter(|nearest| nearest.is_finite())
                .map(Value::Float)
                .ok_or(ProblemKind::OutOfRange)
        }
        Type::Json => {
            let json = json_of_text(text)?;
            Ok(Value::Json(Arc::new(json)))
        }
        ty => convert_outside_text(ty, text),
    }
}

/// Converts a cell to a JSON value. Of several problems the first kind in the table of problems counts.
fn json(cell: &Cell<'_>, depth: usize) -> Result<Json, ProblemKind> {
    let text = |text: &str| {
        if is_too_long(text) {
            Err(ProblemKind::OutOfRange)
        } else {
            Ok(Arc::from(text))
        }
    };
    Ok(match cell {
        Cell::Null => Json::Null,
        Cell::Boolean(value) => Json::Boolean(*value),
        Cell::Integer(value) => Json::Number(Decimal::from(*value)),
        Cell::Wide(value) | Cell::Decimal(Ok(value)) => Json::Number(value.clone()),
        Cell::Decimal(Err(_)) => return Err(ProblemKind::OutOfRange),
        Cell::Float(value) => {
            // SEMANTICS: a float is the number that its shortest text denotes. NaN and the infinities are malformed.
            let number = Decimal::parse(&float::text(*value));
            Json::Number(number.map_err(|_| ProblemKind::Malformed)?)
        }
        Cell::Text(value) => Json::Text(text(value)?),
        Cell::List(items) => {
            if items.len() > ITEMS {
                return Err(ProblemKind::OutOfRange);
            }
            if depth == MAX_DEPTH {
                return Err(ProblemKind::TooDeep);
            }
            Json::Array(collect_all(items.iter().map(|item| json(item, depth + 1)))?.into())
        }
        Cell::Fields(fields) => {
            if depth == MAX_DEPTH {
                return Err(ProblemKind::TooDeep);
            }
            let entries = fields
                .iter()
                .map(|(name, value)| Ok((text(name)?, json(value, depth + 1)?)));
            Json::Object(Object::new(collect_all(entries)?).ok_or(ProblemKind::Duplicate)?)
        }
        _ => return Err(ProblemKind::WrongType),
    })
}
