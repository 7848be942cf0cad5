//! Members of JSON values, and values with members.

use std::sync::Arc;

use vesper_ir::Json;
use vesper_ir::decimal::Decimal;
use vesper_ir::json::Object;

/// Returns a member of an object that is not null.
pub(super) fn member<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    match json {
        Json::Object(object) => object.get(name).filter(|found| !matches!(found, Json::Null)),
        _ => None,
    }
}

/// Returns a member that is a text.
pub(super) fn text<'a>(json: &'a Json, name: &str) -> Option<&'a str> {
    match member(json, name)? {
        Json::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns a member that is a number from 0, without its fraction.
pub(super) fn count(json: &Json, name: &str) -> Option<u64> {
    match member(json, name)? {
        Json::Number(number) => whole(number),
        _ => None,
    }
}

/// Returns a whole number from 0.
pub(super) fn whole(number: &Decimal) -> Option<u64> {
    number.normalize().to_string().parse().ok()
}

/// Returns the items of a member; none where it is no list.
pub(super) fn list<'a>(json: &'a Json, name: &str) -> &'a [Json] {
    match member(json, name) {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}

pub(super) fn string(text: &str) -> Json {
    Json::Text(Arc::from(text))
}

pub(super) fn number(value: u64) -> Json {
    Json::Number(Decimal::whole(i128::from(value)))
}

pub(super) fn array(items: impl IntoIterator<Item = Json>) -> Json {
    Json::Array(items.into_iter().collect())
}

/// Creates an object. Of two members with one name the last counts.
pub(super) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    let mut found: Vec<(Arc<str>, Json)> = Vec::new();
    for (name, value) in members {
        match found.iter_mut().find(|(each, _)| &**each == name) {
            Some((_, place)) => *place = value,
            None => found.push((Arc::from(name), value)),
        }
    }
    Object::new(found).map_or(Json::Null, Json::Object)
}

/// Returns an object with other members.
pub(super) fn with<'a>(json: &'a Json, members: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    let own = match json {
        Json::Object(of) => of.entries(),
        _ => &[],
    };
    let own = own.iter().map(|(name, value)| (&**name, value.clone()));
    object(own.chain(members))
}
