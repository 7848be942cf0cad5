//! Outside names: how JSON and Arrow write the members of an enum and the fields of a record (docs/spec/values.md).

use std::sync::Arc;

use super::Type;

/// Maximum length of an outside name, in characters.
const MAX_OUTSIDE_NAME: usize = 128;

/// Returns true for a text that can be an outside name.
pub fn is_outside_name(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= MAX_OUTSIDE_NAME && !text.chars().any(char::is_control)
}

/// Names with their indexes, for lookup without hashing.
#[derive(Clone, Debug)]
struct Index(Vec<(Arc<str>, u32)>);

impl Index {
    /// Creates an index, or returns the name that occurs twice.
    fn new(named: impl Iterator<Item = (Arc<str>, u32)>) -> Result<Self, Arc<str>> {
        let mut named: Vec<(Arc<str>, u32)> = named.collect();
        named.sort();
        let repeated = named.windows(2).find_map(|pair| match pair {
            [(left, _), (right, _)] if left == right => Some(Arc::clone(left)),
            _ => None,
        });
        repeated.map_or(Ok(Self(named)), Err)
    }

    fn find(&self, name: &str) -> Option<u32> {
        let found = self.0.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        self.0.get(found).map(|(_, place)| *place)
    }
}

/// Outside texts of an enum's members.
#[derive(Clone, Debug)]
pub struct MemberTexts {
    texts: Vec<Arc<str>>,
    index: Index,
}

impl MemberTexts {
    /// Creates the texts of all members in declared order, or returns the text that occurs twice.
    pub fn new(texts: Vec<Arc<str>>) -> Result<Self, Arc<str>> {
        let index = Index::new(texts.iter().cloned().zip(0..))?;
        Ok(Self { texts, index })
    }

    pub(super) fn texts(&self) -> &[Arc<str>] {
        &self.texts
    }

    pub(super) fn find(&self, text: &str) -> Option<u32> {
        self.index.find(text)
    }
}

/// Outside names of the fields of a record, or of the inputs or outputs of a node.
#[derive(Clone, Debug)]
pub struct Outside {
    names: Vec<Arc<str>>,
    /// The fields that have a key outside, by that key.
    index: Index,
    /// Fields with a flag, and the flag: true where the field is left out.
    flags: Vec<(u32, u32)>,
    rest: Option<u32>,
    is_spelled_plainly: bool,
}

/// A field as a document declares it: its name, its type and, where they are declared, outside name and flag.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'a> {
    pub name: &'a Arc<str>,
    pub ty: &'a Type,
    pub outside: Option<&'a Arc<str>>,
    pub flag: Option<&'a Arc<str>>,
}

/// Names, flags and rest of a record, which identify its spelling.
pub(crate) type OutsideKey = (Vec<Arc<str>>, Vec<(u32, u32)>, Option<u32>);

impl Outside {
    /// Creates the outside names of these fields; `rest` names the field of undeclared keys. `what` is for messages.
    pub fn new(what: &str, fields: &[Declared<'_>], rest: Option<&str>) -> Result<Self, String> {
        let place = |name: &str| fields.iter().zip(0..).find(|(field, _)| **field.name == *name);
        let mut flags: Vec<(u32, u32)> = Vec::new();
        for (field, own) in fields.iter().zip(0..) {
            let Some(flag) = field.flag else { continue };
            let name = field.name;
            if !matches!(field.ty, Type::Optional(_)) {
                return Err(format!(
                    "{what} `{name}` has a flag and is {}, not an optional",
                    field.ty
                ));
            }
            match place(flag) {
                Some((found, at))
                    if matches!(found.ty, Type::Boolean)
                        && found.outside.is_none()
                        && !flags.iter().any(|(_, known)| *known == at) =>
                {
                    flags.push((own, at));
                }
                _ => {
                    return Err(format!(
                        "`{flag}`, the flag of `{name}`, is no {what} of type boolean without an outside name, or the flag of two"
                    ));
                }
            }
        }
        let rest = match rest.map(|rest| (rest, place(rest))) {
            None => None,
            Some((_, Some((found, at)))) if holds_rest(found) && at as usize + 1 == fields.len() => Some(at),
            Some((rest, _)) => {
                return Err(format!(
                    "`{rest}` is not the last {what}, a map<string, json> without an outside name"
                ));
            }
        };
        let is_hidden = |place: u32| rest == Some(place) || flags.iter().any(|(_, flag)| *flag == place);
        let names: Vec<Arc<str>> = fields
            .iter()
            .map(|field| Arc::clone(field.outside.unwrap_or(field.name)))
            .collect();
        // Arrow has columns for hidden fields too, so all names are distinct.
        let mut index = Index::new(names.iter().cloned().zip(0..))
            .map_err(|name| format!("two of the {what}s are `{}` outside", name.escape_debug()))?;
        index.0.retain(|(_, place)| !is_hidden(*place));
        Ok(Self {
            is_spelled_plainly: !names.iter().any(|name| name.contains(['"', '\\'])),
            names,
            index,
            flags,
            rest,
        })
    }

    /// Returns the name of a field outside. Hidden fields have theirs in Arrow only.
    pub fn name(&self, place: usize) -> &str {
        self.names.get(place).map_or("", |name| name)
    }

    /// Returns the index of the field with this key.
    pub fn place(&self, key: &str) -> Option<usize> {
        self.index.find(key).map(|place| place as usize)
    }

    /// Returns the index of a field's flag.
    pub fn flag_of(&self, place: usize) -> Option<usize> {
        let found = self.flags.iter().find(|(own, _)| *own as usize == place);
        found.map(|(_, flag)| *flag as usize)
    }

    /// Returns the index of the field whose flag this is.
    pub fn flagged(&self, place: usize) -> Option<usize> {
        let found = self.flags.iter().find(|(_, flag)| *flag as usize == place);
        found.map(|(own, _)| *own as usize)
    }

    /// Returns the index of the field of undeclared keys.
    pub fn rest(&self) -> Option<usize> {
        self.rest.map(|place| place as usize)
    }

    /// Returns true for a field without a key of its own: a flag, or the field of undeclared keys.
    pub fn is_hidden(&self, place: usize) -> bool {
        self.rest() == Some(place) || self.flagged(place).is_some()
    }

    /// Returns true where the keys of a value depend on the value.
    pub fn is_sparse(&self) -> bool {
        self.rest.is_some() || !self.flags.is_empty()
    }

    /// Returns true where every value has the same keys and JSON spells each without escapes.
    pub fn is_simple(&self) -> bool {
        !self.is_sparse() && self.is_spelled_plainly
    }

    /// Iterates over the fields that have a key, in code-point order of the keys.
    pub fn shown(&self) -> impl Iterator<Item = (&str, usize)> {
        self.index
            .0
            .iter()
            .map(|(name, place)| (&**name, *place as usize))
    }

    /// Returns the names, flags and rest, which identify it.
    pub(crate) fn key(&self) -> OutsideKey {
        (self.names.clone(), self.flags.clone(), self.rest)
    }
}

/// Returns true for a field that can hold undeclared keys.
fn holds_rest(field: &Declared<'_>) -> bool {
    let is_map = |ty: &Type| match ty {
        Type::Map(of) => matches!((&of.key, &of.value), (Type::Text, Type::Json)),
        _ => false,
    };
    is_map(field.ty) && field.outside.is_none() && field.flag.is_none()
}
