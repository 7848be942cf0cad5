//! Reader of typed JSON: a value of a type, from bytes that may be hostile.
//!
//! The text is parsed without recursion and to a limited depth; the value is then read as the type says. A value that
//! a person gave may have any form that the type takes from a caller (docs/spec/values.md).

use std::sync::Arc;

use vesper_interp::inputs::{Given, ProblemKind, convert};
use vesper_ir::json::{Build, Object, ParseJsonError, build, parse};
use vesper_ir::limits::ITEMS;
use vesper_ir::time::{date_text, parse_date, parse_time, parse_timestamp, time_text};
use vesper_ir::{Decimal, Json, Map, MapType, OwnedKey, RecordType, Set, Type, Value, base64, float};

use super::write::{decimal_text, moment_text};

/// Bytes of a text. Escapes make it longer than what was written.
const MAX_BYTES: usize = 4 * super::MAX_TEXT;

/// A parsed text.
enum Tree {
    Null,
    Boolean(bool),
    /// The text of a number.
    Number(Box<str>),
    Text(Arc<str>),
    Array(Vec<Tree>),
    /// Members in code-point order of their names.
    Object(Vec<(Arc<str>, Tree)>),
    /// An object with one name that starts with `$`.
    Tag(Arc<str>, Box<Tree>),
}

impl Build for Tree {
    /// A type nests 32 deep at most, around a json of 128 levels; a map has three brackets.
    const MAX_DEPTH: usize = 512;
    const MAX_ITEMS: usize = ITEMS;

    fn null() -> Self {
        Self::Null
    }

    fn boolean(value: bool) -> Self {
        Self::Boolean(value)
    }

    fn number(text: &str) -> Option<Self> {
        Some(Self::Number(Box::from(text)))
    }

    fn text(text: Arc<str>) -> Self {
        Self::Text(text)
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn object(mut entries: Vec<(Arc<str>, Self)>) -> Option<Self> {
        if entries.iter().any(|(name, _)| name.starts_with('$')) {
            // A name that starts with `$` does not stand beside others.
            let (tag, content) = entries.pop().filter(|_| entries.is_empty())?;
            return Some(Self::Tag(tag, Box::new(content)));
        }
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        let is_ordered = entries.is_sorted_by(|(left, _), (right, _)| left < right);
        is_ordered.then_some(Self::Object(entries))
    }
}

/// Reads a value of a type. The error is a text for people.
pub fn read_value(text: &str, ty: &Type) -> Result<Value, String> {
    if text.len() > MAX_BYTES {
        return Err(format!(
            "a value in the journal is too large: {} bytes",
            text.len()
        ));
    }
    let tree = build::<Tree>(text).map_err(|error| match error {
        ParseJsonError::Malformed => "a value in the journal cannot be read: it is no typed JSON".to_owned(),
        ParseJsonError::TooLarge => "a value in the journal is nested too deeply, or too long".to_owned(),
    })?;
    value(ty, tree).map_err(|kind| format!("a value in the journal is no {ty}: {}", kind.name()))
}

/// Reads a value of a parsed text. The depth of recursion is that of the type, which is limited.
fn value(ty: &Type, tree: Tree) -> Result<Value, ProblemKind> {
    match (ty, tree) {
        (Type::Optional(_), Tree::Null) => Ok(Value::Null),
        (Type::Optional(of), tree) => value(of, tree),
        (Type::Json, tree) => json(tree).map(|json| Value::Json(Arc::new(json))),
        (Type::Array(of), Tree::Array(items)) => {
            let items = items.into_iter().map(|item| value(of, item));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        (Type::Set(of), tree) => set(of, tree),
        (Type::Map(of), tree) => map(of, tree),
        (Type::Record(of), Tree::Object(members)) => record(of, members),
        (Type::Array(_) | Type::Record(_), _) => Err(ProblemKind::WrongType),
        (ty, tree) => scalar(ty, &tree),
    }
}

fn scalar(ty: &Type, tree: &Tree) -> Result<Value, ProblemKind> {
    match tree {
        Tree::Boolean(value) => convert(ty, Given::Boolean(*value)),
        Tree::Number(text) => convert(ty, number(text)?),
        Tree::Text(text) => convert(ty, Given::Text(text)),
        Tree::Tag(tag, content) => tagged(ty, tag, content),
        Tree::Null | Tree::Array(_) | Tree::Object(_) => Err(ProblemKind::WrongType),
    }
}

/// Reads a number: without point and exponent it is whole.
fn number(text: &str) -> Result<Given<'static>, ProblemKind> {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return Ok(text
            .parse()
            .map_or_else(|_| Given::WideInteger(Decimal::parse(text).ok()), Given::Integer));
    }
    let value: f64 = text.parse().map_err(|_| ProblemKind::Malformed)?;
    if !value.is_finite() {
        return Err(ProblemKind::OutOfRange);
    }
    Ok(Given::Float(value))
}

/// Reads the content of a tag. Only the spelling of the writer is taken.
fn tagged(ty: &Type, tag: &str, content: &Tree) -> Result<Value, ProblemKind> {
    let given = match (tag, content) {
        ("$decimal", Tree::Text(text)) => Given::Decimal(Ok(decimal(text)?)),
        ("$float", Tree::Text(text)) => Given::Float(match &**text {
            "nan" => f64::NAN,
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            _ => return Err(ProblemKind::Malformed),
        }),
        ("$bytes", Tree::Text(text)) => {
            let bytes = base64::parse(text).ok_or(ProblemKind::Malformed)?;
            return convert(ty, Given::Bytes(&bytes));
        }
        ("$date", Tree::Text(text)) => match parse_date(text) {
            Ok(date) if *date_text(date) == **text => Given::Day(i64::from(date)),
            _ => return Err(ProblemKind::Malformed),
        },
        ("$time", Tree::Text(text)) => match parse_timestamp(text) {
            Ok(moment) if *moment_text(moment) == **text => Given::Moment(i128::from(moment)),
            _ => return Err(ProblemKind::Malformed),
        },
        ("$duration", Tree::Number(text)) => {
            Given::Length(text.parse().map_err(|_| ProblemKind::OutOfRange)?)
        }
        ("$clock", Tree::Text(text)) => match parse_time(text) {
            Ok(time) if *time_text(time) == **text => Given::Clock(i128::from(time)),
            _ => return Err(ProblemKind::Malformed),
        },
        ("$period", Tree::Number(text)) => Given::Months(text.parse().map_err(|_| ProblemKind::OutOfRange)?),
        _ => Given::Other,
    };
    convert(ty, given)
}

fn decimal(text: &str) -> Result<Decimal, ProblemKind> {
    match Decimal::parse(text) {
        Ok(number) if decimal_text(&number) == *text => Ok(number),
        _ => Err(ProblemKind::Malformed),
    }
}

fn set(of: &Type, tree: Tree) -> Result<Value, ProblemKind> {
    let items = match tree {
        Tree::Array(items) => items,
        Tree::Tag(tag, content) if &*tag == "$set" => match *content {
            Tree::Array(items) => items,
            _ => return Err(ProblemKind::Malformed),
        },
        _ => return Err(ProblemKind::WrongType),
    };
    let length = items.len();
    let keys = items.iter().map(|item| key(of, item));
    let keys: Vec<OwnedKey> = keys.collect::<Result<_, _>>()?;
    let kind = of.key_kind().ok_or(ProblemKind::WrongType)?;
    let set = Set::from_keys(kind, keys.into_iter());
    let set = set.filter(|set| set.len() == length);
    set.map(|set| Value::Set(Arc::new(set)))
        .ok_or(ProblemKind::Duplicate)
}

fn key(of: &Type, tree: &Tree) -> Result<OwnedKey, ProblemKind> {
    scalar(of, tree)?.to_key().ok_or(ProblemKind::WrongType)
}

fn map(of: &MapType, tree: Tree) -> Result<Value, ProblemKind> {
    let mut entries: Vec<(OwnedKey, Value)> = Vec::new();
    match tree {
        Tree::Object(members) => {
            for (name, item) in members {
                entries.push((key(&of.key, &Tree::Text(name))?, value(&of.value, item)?));
            }
        }
        Tree::Tag(tag, content) if &*tag == "$map" => {
            for pair in pairs(*content)? {
                let [each, item] = pair;
                entries.push((key(&of.key, &each)?, value(&of.value, item)?));
            }
        }
        _ => return Err(ProblemKind::WrongType),
    }
    let kind = of.key.key_kind().ok_or(ProblemKind::WrongType)?;
    let map = Map::from_entries(kind, entries).ok_or(ProblemKind::Duplicate)?;
    Ok(Value::Map(Arc::new(map)))
}

/// Returns the pairs of a `$map`.
fn pairs(content: Tree) -> Result<Vec<[Tree; 2]>, ProblemKind> {
    let Tree::Array(pairs) = content else {
        return Err(ProblemKind::Malformed);
    };
    let pairs = pairs.into_iter().map(|pair| match pair {
        Tree::Array(pair) => pair.try_into().map_err(|_| ProblemKind::Malformed),
        _ => Err(ProblemKind::Malformed),
    });
    pairs.collect()
}

fn record(of: &RecordType, members: Vec<(Arc<str>, Tree)>) -> Result<Value, ProblemKind> {
    let mut values: Vec<Option<Value>> = of.fields().iter().map(|_| None).collect();
    for (name, item) in members {
        let place = of.place(&name).ok_or(ProblemKind::Unknown)?;
        let field = of.fields().get(place).ok_or(ProblemKind::Unknown)?;
        let found = value(&field.ty, item)?;
        if let Some(out) = values.get_mut(place) {
            *out = Some(found);
        }
    }
    let values = values
        .into_iter()
        .zip(of.fields())
        .map(|(found, field)| match (found, &field.ty) {
            (Some(found), _) => Ok(found),
            (None, Type::Optional(_)) => Ok(Value::Null),
            (None, _) => Err(ProblemKind::Missing),
        });
    Ok(Value::Record(values.collect::<Result<_, _>>()?))
}

/// Reads a json, from its own tag or from plain values. The depth of a parsed text is limited.
fn json(tree: Tree) -> Result<Json, ProblemKind> {
    let found = plain_json(tree)?;
    if found.depth() > vesper_ir::json::MAX_DEPTH {
        return Err(ProblemKind::TooDeep);
    }
    Ok(found)
}

fn plain_json(tree: Tree) -> Result<Json, ProblemKind> {
    Ok(match tree {
        Tree::Null => Json::Null,
        Tree::Boolean(value) => Json::Boolean(value),
        Tree::Number(text) => Json::Number(match number(&text)? {
            Given::Integer(value) => Decimal::from(value),
            Given::WideInteger(Some(value)) => value,
            // SEMANTICS: a float is the number that its shortest text denotes.
            Given::Float(value) => {
                Decimal::parse(&float::text(value)).map_err(|_| ProblemKind::OutOfRange)?
            }
            _ => return Err(ProblemKind::OutOfRange),
        }),
        Tree::Text(text) => Json::Text(text),
        Tree::Array(items) => {
            let items = items.into_iter().map(plain_json);
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        Tree::Object(members) => object(members)?,
        Tree::Tag(tag, content) => match (&*tag, *content) {
            ("$decimal", Tree::Text(text)) => Json::Number(decimal(&text)?),
            ("$json", Tree::Text(text)) => parse(&text).map_err(|_| ProblemKind::Malformed)?,
            ("$map", content) => {
                let pairs = pairs(content)?.into_iter();
                let members = pairs.map(|[name, item]| match name {
                    Tree::Text(name) => Ok((name, item)),
                    _ => Err(ProblemKind::WrongType),
                });
                object(members.collect::<Result<_, _>>()?)?
            }
            _ => return Err(ProblemKind::WrongType),
        },
    })
}

fn object(members: Vec<(Arc<str>, Tree)>) -> Result<Json, ProblemKind> {
    let members = members
        .into_iter()
        .map(|(name, item)| Ok((name, plain_json(item)?)));
    let object = Object::new(members.collect::<Result<_, ProblemKind>>()?);
    object.map(Json::Object).ok_or(ProblemKind::Duplicate)
}
