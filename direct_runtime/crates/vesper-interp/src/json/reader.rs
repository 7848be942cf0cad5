//! The general reader: JSON text to values, with every problem (docs/spec/values.md).

use std::sync::Arc;

use vesper_ir::json::{Build, MAX_DEPTH, Object};
use vesper_ir::limits::ITEMS;
use vesper_ir::types::Outside;
use vesper_ir::{Decimal, Json, KeyKind, Map, MapType, OwnedKey, RecordType, RoundingMode, Set, Type, Value};

use crate::inputs::problems::{Path, Problems};
use crate::inputs::{
    Given, ProblemKind, collect_all, convert, convert_outside_text, is_too_long, outside_entry,
};

/// A parsed JSON value with its spelling.
pub(super) enum Spelled {
    Null,
    Boolean(bool),
    Number(Number),
    Text(Arc<str>),
    Array(Vec<Spelled>),
    /// In the given order; keys are unique.
    Object(Vec<(Arc<str>, Spelled)>),
}

/// A number and its spelling.
pub(super) struct Number {
    /// The exact value, or beyond the limits of a decimal the nearest float.
    value: Result<Decimal, f64>,
    /// True if it has neither a fraction nor an exponent, as an integer must.
    is_whole: bool,
    /// True if it starts with a minus. The value of a zero has no sign.
    has_minus: bool,
}

/// Maximum depth of a text of inputs: the inputs, types of 32 levels, of which a map has two, and a `json` of 128.
const MAX_TEXT_DEPTH: usize = 256;

impl Build for Spelled {
    const MAX_DEPTH: usize = MAX_TEXT_DEPTH;
    // The type of a collection decides whether it is too long.
    const MAX_ITEMS: usize = usize::MAX;

    fn null() -> Self {
        Self::Null
    }

    fn boolean(value: bool) -> Self {
        Self::Boolean(value)
    }

    fn number(text: &str) -> Option<Self> {
        let is_whole = !text.contains(['.', 'e', 'E']);
        let value = match Decimal::parse(text) {
            Ok(value) => Ok(value),
            Err(_) => Err(text.parse().ok()?),
        };
        let has_minus = text.starts_with('-');
        Some(Self::Number(Number {
            value,
            is_whole,
            has_minus,
        }))
    }

    fn text(text: Arc<str>) -> Self {
        Self::Text(text)
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn object(entries: Vec<(Arc<str>, Self)>) -> Option<Self> {
        let mut keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_ref()).collect();
        keys.sort_unstable();
        let is_once = keys.is_sorted_by(|left, right| left < right);
        is_once.then_some(Self::Object(entries))
    }
}

impl Spelled {
    /// Finds the value of a key by a linear scan, because few are declared.
    pub(super) fn find<'a>(entries: &'a [(Arc<str>, Self)], key: &str) -> Option<&'a Self> {
        let mut entries = entries.iter();
        entries.find(|(own, _)| &**own == key).map(|(_, value)| value)
    }

    /// Returns true for a collection in a form of this type with too many items.
    fn is_too_long(&self, ty: &Type) -> bool {
        match (ty, self) {
            (Type::Array(_) | Type::Set(_), Self::Array(items)) => items.len() > ITEMS,
            (Type::Map(of), Self::Array(items)) => !has_names(of) && items.len() > ITEMS,
            (Type::Map(_) | Type::Record(_), Self::Object(entries)) => entries.len() > ITEMS,
            _ => false,
        }
    }

    /// Returns the undeclared keys in code-point order.
    pub(super) fn unknown(entries: &[(Arc<str>, Self)], is_declared: impl Fn(&str) -> bool) -> Vec<&str> {
        let keys = entries.iter().map(|(key, _)| key.as_ref());
        let mut unknown: Vec<&str> = keys.filter(|key| !is_declared(key)).collect();
        unknown.sort_unstable();
        unknown
    }

    /// Converts to a JSON value. Of several problems the first kind in the table of problems counts.
    pub(crate) fn to_json(&self) -> Result<Json, ProblemKind> {
        self.to_json_within(MAX_DEPTH)
    }

    /// Converts to a JSON value of at most `depth` levels. Deeper levels are not inspected.
    fn to_json_within(&self, depth: usize) -> Result<Json, ProblemKind> {
        let inside = |length: usize| match depth.checked_sub(1) {
            _ if length > ITEMS => Err(ProblemKind::OutOfRange),
            None => Err(ProblemKind::TooDeep),
            Some(depth) => Ok(depth),
        };
        Ok(match self {
            Self::Null => Json::Null,
            Self::Boolean(value) => Json::Boolean(*value),
            Self::Number(number) => Json::Number(number.decimal()?),
            Self::Text(text) => Json::Text(short(text)?),
            Self::Array(items) => {
                let depth = inside(items.len())?;
                Json::Array(collect_all(items.iter().map(|item| item.to_json_within(depth)))?.into())
            }
            Self::Object(entries) => {
                let depth = inside(entries.len())?;
                let entries = entries.iter().map(|(key, value)| {
                    let (key, value) = (short(key), value.to_json_within(depth));
                    match (key, value) {
                        (Ok(key), Ok(value)) => Ok((key, value)),
                        (Err(kind), Err(other)) => Err(kind.min(other)),
                        (Err(kind), _) | (_, Err(kind)) => Err(kind),
                    }
                });
                Json::Object(Object::new(collect_all(entries)?).ok_or(ProblemKind::Duplicate)?)
            }
        })
    }
}

impl Number {
    fn decimal(&self) -> Result<Decimal, ProblemKind> {
        self.value.clone().map_err(|_| ProblemKind::OutOfRange)
    }

    /// Returns the nearest float, with the sign of the text.
    fn float(&self) -> f64 {
        let size = self
            .value
            .as_ref()
            .map_or_else(|nearest| *nearest, Decimal::to_float)
            .abs();
        let is_negative = self.has_minus;
        if is_negative { -size } else { size }
    }
}

fn short(text: &Arc<str>) -> Result<Arc<str>, ProblemKind> {
    if is_too_long(text) {
        return Err(ProblemKind::OutOfRange);
    }
    Ok(Arc::clone(text))
}

/// The conversion of the inputs of one call.
#[derive(Default)]
pub(super) struct InputReader {
    problems: Problems,
}

impl InputReader {
    pub(super) fn add_problem(&mut self, path: &Path<'_>, kind: ProblemKind) -> Option<Value> {
        self.problems.add(path, kind);
        None
    }

    /// Returns a single problem for a text that is no object of inputs.
    pub(super) fn reject(mut self, kind: ProblemKind) -> Problems {
        self.problems.add(&Path::Whole, kind);
        self.problems
    }

    pub(super) fn finish(self, frame: Vec<Value>) -> Result<Vec<Value>, Problems> {
        if self.problems.is_empty() {
            Ok(frame)
        } else {
            Err(self.problems)
        }
    }

    /// Reads an input or field that may be absent.
    pub(super) fn read_given(
        &mut self,
        ty: &Type,
        default: Option<&Value>,
        given: Option<&Spelled>,
        path: &Path<'_>,
    ) -> Option<Value> {
        match (given, default, ty) {
            (Some(spelled), _, _) => self.value(ty, spelled, path),
            (None, Some(default), _) => Some(default.clone()),
            (None, None, Type::Optional(_)) => Some(Value::Null),
            (None, None, _) => self.add_problem(path, ProblemKind::Missing),
        }
    }

    /// Converts a value. The recursion is bounded by the depth of the type.
    fn value(&mut self, ty: &Type, spelled: &Spelled, path: &Path<'_>) -> Option<Value> {
        match (ty, spelled) {
            (Type::Optional(_), Spelled::Null) => Some(Value::Null),
            (Type::Optional(of), spelled) => self.value(of, spelled, path),
            (Type::Json, spelled) => match spelled.to_json() {
                Ok(json) => Some(Value::Json(Arc::new(json))),
                Err(kind) => self.add_problem(path, kind),
            },
            (Type::Array(_) | Type::Set(_) | Type::Map(_) | Type::Record(_), spelled)
                if spelled.is_too_long(ty) =>
            {
                self.add_problem(path, ProblemKind::OutOfRange)
            }
            (Type::Array(of), Spelled::Array(items)) => self
                .items(of, items, path)
                .map(|items| Value::Array(items.into())),
            (Type::Set(of), Spelled::Array(items)) => self.set(of, items, path),
            (Type::Map(of), spelled) => self.map(of, spelled, path),
            (Type::Record(of), Spelled::Object(entries)) => self.record(of, entries, path),
            (ty, spelled) => match scalar(ty, spelled) {
                Ok(value) => Some(value),
                Err(kind) => self.add_problem(path, kind),
            },
        }
    }

    fn items(&mut self, of: &Type, items: &[Spelled], path: &Path<'_>) -> Option<Vec<Value>> {
        let mut values = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            values.extend(self.value(of, item, &Path::Item(path, place)));
        }
        (values.len() == items.len()).then_some(values)
    }

    fn set(&mut self, of: &Type, items: &[Spelled], path: &Path<'_>) -> Option<Value> {
        let values = self.items(of, items, path)?;
        let keys: Option<Vec<OwnedKey>> = values.iter().map(Value::to_key).collect();
        let set = keys
            .zip(of.key_kind())
            .and_then(|(keys, kind)| Set::from_keys(kind, keys.into_iter()));
        match set {
            Some(set) if set.len() == values.len() => Some(Value::Set(Arc::new(set))),
            _ => self.add_problem(path, ProblemKind::Duplicate),
        }
    }

    /// Converts a map from an object or an array of pairs. Pairs are for keys that are neither strings nor enum
    /// members.
    fn map(&mut self, of: &MapType, spelled: &Spelled, path: &Path<'_>) -> Option<Value> {
        let given: Option<Vec<(Result<Value, ProblemKind>, &Spelled)>> = match spelled {
            Spelled::Object(entries) => {
                let convert = |(key, value)| (convert_outside_text(&of.key, key), value);
                Some(
                    entries
                        .iter()
                        .map(|(key, value)| (key.as_ref(), value))
                        .map(convert)
                        .collect(),
                )
            }
            Spelled::Array(pairs) if !has_names(of) => {
                pairs.iter().map(|pair| pair_of(&of.key, pair)).collect()
            }
            _ => None,
        };
        let Some(given) = given else {
            return self.add_problem(path, ProblemKind::WrongType);
        };
        let mut is_whole = true;
        let mut keyed: Vec<(OwnedKey, &Spelled)> = Vec::with_capacity(given.len());
        for (key, value) in given {
            match key {
                Ok(key) => keyed.extend(key.to_key().map(|key| (key, value))),
                Err(kind) => {
                    is_whole = false;
                    self.add_problem(&Path::BadKey(path), kind);
                }
            }
        }
        keyed.sort_by(|(left, _), (right, _)| left.cmp(right));
        if !keyed.is_sorted_by(|(left, _), (right, _)| left < right) {
            return self.add_problem(path, ProblemKind::Duplicate);
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
            None => self.add_problem(path, ProblemKind::Duplicate),
        }
    }

    /// Reads the undeclared keys of an open record.
    fn rest(&mut self, of: &RecordType, entries: &[(Arc<str>, Spelled)], path: &Path<'_>) -> Option<Value> {
        let mut undeclared: Vec<&(Arc<str>, Spelled)> = entries
            .iter()
            .filter(|(key, _)| of.place_of_key(key).is_none())
            .collect();
        undeclared.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut found = Vec::with_capacity(undeclared.len());
        for (key, spelled) in &undeclared {
            match short(key).and_then(|key| Ok((key, spelled.to_json()?))) {
                Ok((key, json)) => found.push((OwnedKey::Text(key), Value::Json(Arc::new(json)))),
                Err(kind) => {
                    self.add_problem(&Path::UnknownField(path, key.as_bytes()), kind);
                }
            }
        }
        if found.len() < undeclared.len() {
            return None;
        }
        Map::from_entries(KeyKind::Text, found).map(|map| Value::Map(Arc::new(map)))
    }

    fn record(&mut self, of: &RecordType, entries: &[(Arc<str>, Spelled)], path: &Path<'_>) -> Option<Value> {
        let length = of.fields().len();
        let mut values = Vec::with_capacity(length);
        let rest = of.outside().and_then(Outside::rest);
        for (place, field) in of.fields().iter().enumerate() {
            if rest == Some(place) {
                values.extend(self.rest(of, entries, path));
                continue;
            }
            if let Some(flagged) = of.outside().and_then(|outside| outside.flagged(place)) {
                let is_absent = Spelled::find(entries, of.key(flagged)).is_none();
                values.push(Value::Boolean(is_absent));
                continue;
            }
            let key = of.key(place);
            let given = Spelled::find(entries, key);
            values.extend(self.read_given(&field.ty, None, given, &Path::Field(path, key)));
        }
        let mut is_whole = values.len() == length;
        if rest.is_some() {
            return is_whole.then(|| Value::Record(values.into()));
        }
        for name in Spelled::unknown(entries, |name| of.place_of_key(name).is_some()) {
            is_whole = false;
            self.add_problem(&Path::UnknownField(path, name.as_bytes()), ProblemKind::Unknown);
        }
        is_whole.then(|| Value::Record(values.into()))
    }
}

/// Returns true for a map that is an object in JSON.
fn has_names(of: &MapType) -> bool {
    matches!(of.key, Type::Text | Type::Enum(_))
}

/// Returns key and value of a pair, or `None` if it is no pair.
fn pair_of<'a>(of: &Type, pair: &'a Spelled) -> Option<(Result<Value, ProblemKind>, &'a Spelled)> {
    let Spelled::Array(pair) = pair else {
        return None;
    };
    match pair.as_slice() {
        [
            key @ (Spelled::Boolean(_) | Spelled::Number(Number { is_whole: true, .. }) | Spelled::Text(_)),
            value,
        ] => Some((scalar(of, key), value)),
        _ => None,
    }
}

/// Converts a number text to a scalar type.
pub(super) fn number(ty: &Type, text: &str) -> Option<Value> {
    scalar(ty, &Spelled::number(text)?).ok()
}

fn scalar(ty: &Type, spelled: &Spelled) -> Result<Value, ProblemKind> {
    match (ty, spelled) {
        // SEMANTICS: a decimal keeps the spelled scale.
        (Type::Decimal, Spelled::Number(number)) => number.decimal().map(Value::Decimal),
        // SEMANTICS: a float has a negative zero and a decimal has none, so the sign is taken from the text.
        (Type::Float, Spelled::Number(number)) => Some(number.float())
            .filter(|nearest| nearest.is_finite())
            .map(Value::Float)
            .ok_or(ProblemKind::OutOfRange),
        (Type::Integer, Spelled::Number(number)) if number.is_whole => number
            .decimal()?
            .to_whole(RoundingMode::Down)
            .map(Value::Integer)
            .ok_or(ProblemKind::OutOfRange),
        (ty, Spelled::Boolean(value)) => convert(ty, Given::Boolean(*value)),
        (ty, Spelled::Text(text)) => convert_outside_text(ty, text),
        (ty, _) => convert(ty, Given::Other),
    }
}
