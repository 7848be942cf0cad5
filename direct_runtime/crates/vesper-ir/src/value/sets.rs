//! Operations that derive new sets and maps, in time linear in their operands.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Key, Map, OwnedKey, Set, Value};

/// Parts of two sets that their combination keeps.
#[derive(Clone, Copy)]
struct Kept {
    only_left: bool,
    both: bool,
    only_right: bool,
}

const UNION: Kept = Kept {
    only_left: true,
    both: true,
    only_right: true,
};
const INTERSECTION: Kept = Kept {
    only_left: false,
    both: true,
    only_right: false,
};
const DIFFERENCE: Kept = Kept {
    only_left: true,
    both: false,
    only_right: false,
};

fn combine_slices<T: Ord + Clone>(left: &[T], right: &[T], kept: Kept) -> Vec<T> {
    let mut result = Vec::new();
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return result,
        };
        let is_kept = match order {
            Ordering::Less => kept.only_left,
            Ordering::Equal => kept.both,
            Ordering::Greater => kept.only_right,
        };
        let member = match order {
            Ordering::Less => left.next(),
            Ordering::Equal => left.next().and(right.next()),
            Ordering::Greater => right.next(),
        };
        if is_kept {
            result.extend(member.cloned());
        }
    }
}

fn with<T: Ord + Clone>(members: &[T], place: usize, member: T) -> Vec<T> {
    let (before, after) = members.split_at_checked(place).unwrap_or((members, &[]));
    let mut result = Vec::with_capacity(members.len() + 1);
    result.extend_from_slice(before);
    result.push(member);
    result.extend_from_slice(after);
    result
}

fn without<T: Clone>(members: &[T], place: usize) -> Vec<T> {
    let mut result = Vec::with_capacity(members.len());
    let others = members.iter().enumerate().filter(|(other, _)| *other != place);
    result.extend(others.map(|(_, member)| member.clone()));
    result
}

impl PartialEq for Set {
    fn eq(&self, other: &Self) -> bool {
        self.arrange(other).is_eq()
    }
}

impl Eq for Set {}

impl Default for Set {
    fn default() -> Self {
        Self::Boolean(Vec::new())
    }
}

impl Set {
    /// Compares any two sets of one type; see [`Value::arrange`].
    pub(super) fn arrange(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => left.cmp(right),
            (Self::Integer(left), Self::Integer(right)) | (Self::Timestamp(left), Self::Timestamp(right)) => {
                left.cmp(right)
            }
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Bytes(left), Self::Bytes(right)) => left.cmp(right),
            (Self::Date(left), Self::Date(right)) => left.cmp(right),
            (Self::Member(left), Self::Member(right)) => left.cmp(right),
            // One set is empty; sets of different types are not compared.
            _ => self.len().cmp(&other.len()),
        }
    }

    fn combine(&self, other: &Self, kept: Kept) -> Self {
        match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => Self::Boolean(combine_slices(left, right, kept)),
            (Self::Integer(left), Self::Integer(right)) => Self::Integer(combine_slices(left, right, kept)),
            (Self::Text(left), Self::Text(right)) => Self::Text(combine_slices(left, right, kept)),
            (Self::Bytes(left), Self::Bytes(right)) => Self::Bytes(combine_slices(left, right, kept)),
            (Self::Timestamp(left), Self::Timestamp(right)) => {
                Self::Timestamp(combine_slices(left, right, kept))
            }
            (Self::Date(left), Self::Date(right)) => Self::Date(combine_slices(left, right, kept)),
            (Self::Member(left), Self::Member(right)) => Self::Member(combine_slices(left, right, kept)),
            // One set is empty, and its kind may differ.
            _ if self.is_empty() && kept.only_right => other.clone(),
            _ if other.is_empty() && kept.only_left => self.clone(),
            _ if self.is_empty() => self.clone(),
            _ => other.clone(),
        }
    }

    /// Returns the members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, UNION)
    }

    /// Returns the members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, INTERSECTION)
    }

    /// Returns the members of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, DIFFERENCE)
    }

    /// Iterates over the members as keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        (0..self.len()).map_while(|place| self.key(place))
    }

    /// Returns the set with this member added, and its index. Returns `None` if the set contains it already.
    fn insert_new(&self, key: Key<'_>) -> Option<(Self, usize)> {
        let place = match (key, self) {
            (Key::Boolean(key), Self::Boolean(members)) => members.binary_search(&key).err()?,
            (Key::Integer(key), Self::Integer(members)) | (Key::Timestamp(key), Self::Timestamp(members)) => {
                members.binary_search(&key).err()?
            }
            (Key::Text(key), Self::Text(members)) => {
                let found = members.binary_search_by(|member| member.as_ref().cmp(key));
                found.err()?
            }
            (Key::Bytes(key), Self::Bytes(members)) => {
                let found = members.binary_search_by(|member| member.as_ref().cmp(key));
                found.err()?
            }
            (Key::Date(key), Self::Date(members)) => members.binary_search(&key).err()?,
            (Key::Member(key), Self::Member(members)) => members.binary_search(&key).err()?,
            // Empty set of another kind.
            _ => 0,
        };
        let set = match (key, self) {
            (Key::Boolean(key), Self::Boolean(members)) => Self::Boolean(with(members, place, key)),
            (Key::Integer(key), Self::Integer(members)) => Self::Integer(with(members, place, key)),
            (Key::Text(key), Self::Text(members)) => Self::Text(with(members, place, Arc::from(key))),
            (Key::Bytes(key), Self::Bytes(members)) => Self::Bytes(with(members, place, Arc::from(key))),
            (Key::Timestamp(key), Self::Timestamp(members)) => Self::Timestamp(with(members, place, key)),
            (Key::Date(key), Self::Date(members)) => Self::Date(with(members, place, key)),
            (Key::Member(key), Self::Member(members)) => Self::Member(with(members, place, key)),
            (Key::Boolean(key), _) => Self::Boolean(vec![key]),
            (Key::Integer(key), _) => Self::Integer(vec![key]),
            (Key::Text(key), _) => Self::Text(vec![Arc::from(key)]),
            (Key::Bytes(key), _) => Self::Bytes(vec![Arc::from(key)]),
            (Key::Timestamp(key), _) => Self::Timestamp(vec![key]),
            (Key::Date(key), _) => Self::Date(vec![key]),
            (Key::Member(key), _) => Self::Member(vec![key]),
        };
        Some((set, place))
    }

    fn without_place(&self, place: usize) -> Self {
        match self {
            Self::Boolean(members) => Self::Boolean(without(members, place)),
            Self::Integer(members) => Self::Integer(without(members, place)),
            Self::Text(members) => Self::Text(without(members, place)),
            Self::Bytes(members) => Self::Bytes(without(members, place)),
            Self::Timestamp(members) => Self::Timestamp(without(members, place)),
            Self::Date(members) => Self::Date(without(members, place)),
            Self::Member(members) => Self::Member(without(members, place)),
        }
    }

    /// Returns the set with this member added.
    #[must_use]
    pub fn put(&self, key: Key<'_>) -> Self {
        self.insert_new(key).map_or_else(|| self.clone(), |(set, _)| set)
    }

    /// Returns the set without this member.
    #[must_use]
    pub fn remove(&self, key: Key<'_>) -> Self {
        self.find(key)
            .map_or_else(|| self.clone(), |place| self.without_place(place))
    }

    /// Creates the set of these keys. An empty set has an arbitrary kind.
    pub fn of_values(values: &[Value]) -> Option<Self> {
        let Some(first) = values.first() else {
            return Some(Self::default());
        };
        let kind = first.as_key()?.kind();
        let keys: Option<Vec<OwnedKey>> = values.iter().map(Value::to_key).collect();
        Self::from_keys(kind, keys?.into_iter())
    }
}

impl Map {
    /// Returns the map with this key set to the value.
    #[must_use]
    pub fn put(&self, key: Key<'_>, value: Value) -> Self {
        if let Some((keys, place)) = self.keys.insert_new(key) {
            let values = if keys.len() > 1 {
                let (before, after) = self.values.split_at_checked(place).unwrap_or((&self.values, &[]));
                let new = std::iter::once(value);
                before
                    .iter()
                    .cloned()
                    .chain(new)
                    .chain(after.iter().cloned())
                    .collect()
            } else {
                vec![value]
            };
            return Self { keys, values };
        }
        let mut map = self.clone();
        if let Some(old) = self.keys.find(key).and_then(|place| map.values.get_mut(place)) {
            *old = value;
        }
        map
    }

    /// Returns the map without this key.
    #[must_use]
    pub fn remove(&self, key: Key<'_>) -> Self {
        match self.keys.find(key) {
            None => self.clone(),
            Some(place) => Self {
                keys: self.keys.without_place(place),
                values: without(&self.values, place),
            },
        }
    }

    /// Returns the entries of both maps. Where both have a key, the value of `other` is used.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let keys = self.keys.union(&other.keys);
        let found = keys
            .keys()
            .filter_map(|key| other.get(key).or_else(|| self.get(key)));
        let values = found.cloned().collect();
        Self { keys, values }
    }
}
