//! Conversion of Python collections and dicts to values, with a complete list of problems.
//!
//! Reads a `list`, `tuple`, `set` or `dict` from the storage of the base type. A subclass that overrides its length
//! or its items has no influence.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyIterator, PyList, PySet, PyTuple};
use vesper_interp::inputs::ProblemKind;
use vesper_interp::problems::{Path, Problems};
use vesper_ir::types::Outside;
use vesper_ir::{KeyKind, Map, OwnedKey, Set, Type, Value};

use crate::inputs::dict_fields::{Held, gather};
use crate::inputs::json_values::to_json;
use crate::inputs::shapes::{Fields, Parts, Shape};
use crate::inputs::values::to_scalar;

/// Maximum number of entries of an array, a set or a map.
pub(crate) const MAX_ENTRIES: usize = 1_000_000;

/// The conversion of the inputs of one call.
#[derive(Default)]
pub(crate) struct Conversion<'py> {
    pub(crate) problems: Problems,
    /// Objects from dicts that are not converted yet.
    pub(crate) held: Held<'py>,
}

/// Result of a conversion: true if the value was written, false if there are problems.
///
/// An error is an exception of Python, such as a lack of memory. Values are written in place, because returning one
/// copies it through memory in pieces.
type Converted = PyResult<bool>;

/// The two Python types of an array.
pub(crate) enum Sequence<'a, 'py> {
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
}

impl<'a, 'py> Sequence<'a, 'py> {
    pub(crate) fn new(object: &'a Bound<'py, PyAny>) -> Option<Self> {
        if let Ok(list) = object.cast::<PyList>() {
            return Some(Self::List(list));
        }
        object.cast::<PyTuple>().ok().map(Self::Tuple)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Tuple(tuple) => tuple.len(),
        }
    }

    pub(crate) fn get(&self, place: usize) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::List(list) => list.get_item(place),
            Self::Tuple(tuple) => tuple.get_item(place),
        }
    }
}

impl<'py> Conversion<'py> {
    fn refuse(&mut self, path: &Path<'_>, kind: ProblemKind) -> bool {
        self.problems.add(path, kind);
        false
    }

    /// Writes the value of an object for a place of this type. The depth of recursion is that of the type, which is
    /// limited.
    pub(crate) fn value(
        &mut self,
        shape: &Shape,
        object: &Bound<'py, PyAny>,
        path: &Path<'_>,
        out: &mut Value,
    ) -> Converted {
        match &shape.parts {
            Parts::None if matches!(shape.ty, Type::Json) => match to_json(object)? {
                Ok(value) => *out = Value::Json(Arc::new(value)),
                Err(kind) => return Ok(self.refuse(path, kind)),
            },
            Parts::None | Parts::Enum(_) => {
                if let Err(kind) = to_scalar(shape, object, out)? {
                    return Ok(self.refuse(path, kind));
                }
            }
            Parts::Optional(_) if object.is_none() => *out = Value::Null,
            Parts::Optional(of) => return self.value(of, object, path, out),
            Parts::Array(of) => match self.items(of, object, path)? {
                Some(items) => *out = Value::Array(items),
                None => return Ok(false),
            },
            Parts::Set(of) => return self.set(of, object, path, out),
            Parts::Map(key, value) => return self.map(key, value, object, path, out),
            Parts::Record(fields) => return self.record(fields, object, path, out),
        }
        Ok(true)
    }

    /// Converts the items of an array, or of a set that is given as an array.
    fn items(
        &mut self,
        of: &Shape,
        object: &Bound<'py, PyAny>,
        path: &Path<'_>,
    ) -> PyResult<Option<Arc<[Value]>>> {
        let Some(sequence) = Sequence::new(object) else {
            self.refuse(path, ProblemKind::WrongType);
            return Ok(None);
        };
        let length = sequence.len();
        if length > MAX_ENTRIES {
            self.refuse(path, ProblemKind::OutOfRange);
            return Ok(None);
        }
        collect_values(length, |place, out| {
            let item = sequence.get(place)?;
            self.value(of, &item, &Path::Item(path, place), out)
        })
    }

    fn set(&mut self, of: &Shape, object: &Bound<'py, PyAny>, path: &Path<'_>, out: &mut Value) -> Converted {
        let keys: Option<Vec<OwnedKey>> = match members(object)? {
            None => {
                let Some(items) = self.items(of, object, path)? else {
                    return Ok(false);
                };
                items.iter().map(Value::to_key).collect()
            }
            Some((length, _)) if length > MAX_ENTRIES => {
                return Ok(self.refuse(path, ProblemKind::OutOfRange));
            }
            Some((length, members)) => {
                let mut keys = Vec::with_capacity(length);
                for member in members {
                    // The members have no order that a message could use, so the first problem is reported for the
                    // whole set.
                    let fits = to_scalar(of, &member?, out)?.is_ok();
                    match out.to_key().filter(|_| fits) {
                        Some(key) => keys.push(key),
                        None => return Ok(self.refuse(path, ProblemKind::Malformed)),
                    }
                }
                Some(keys)
            }
        };
        let length = keys.as_ref().map(Vec::len);
        let set = keys
            .zip(of.ty.key_kind())
            .and_then(|(keys, kind)| Set::from_keys(kind, keys.into_iter()));
        match set {
            Some(set) if Some(set.len()) == length => {
                *out = Value::Set(Arc::new(set));
            }
            _ => return Ok(self.refuse(path, ProblemKind::Duplicate)),
        }
        Ok(true)
    }

    fn map(
        &mut self,
        of_key: &Shape,
        of_value: &Shape,
        object: &Bound<'py, PyAny>,
        path: &Path<'_>,
        out: &mut Value,
    ) -> Converted {
        let Ok(dict) = object.cast::<PyDict>() else {
            return Ok(self.refuse(path, ProblemKind::WrongType));
        };
        if dict.len() > MAX_ENTRIES {
            return Ok(self.refuse(path, ProblemKind::OutOfRange));
        }
        let mut is_whole = true;
        let mut given: Vec<(OwnedKey, Bound<'_, PyAny>)> = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            match to_scalar(of_key, &key, out)? {
                Ok(()) => given.extend(out.to_key().map(|key| (key, value))),
                Err(kind) => {
                    is_whole = false;
                    self.refuse(&Path::BadKey(path), kind);
                }
            }
        }
        given.sort_by(|(left, _), (right, _)| left.cmp(right));
        // Keys of subclasses may differ in the dict and still have equal base values.
        if given
            .windows(2)
            .any(|pair| matches!(pair, [(left, _), (right, _)] if left == right))
        {
            return Ok(self.refuse(path, ProblemKind::Duplicate));
        }
        let mut entries = Vec::with_capacity(given.len());
        for (key, value) in given {
            let mut place = Value::Null;
            if self.value(of_value, &value, &Path::Entry(path, &key, &of_key.ty), &mut place)? {
                entries.push((key, place));
            } else {
                is_whole = false;
            }
        }
        if !is_whole {
            return Ok(false);
        }
        let map = of_key
            .ty
            .key_kind()
            .and_then(|kind| Map::from_entries(kind, entries));
        match map {
            Some(map) => *out = Value::Map(Arc::new(map)),
            None => return Ok(self.refuse(path, ProblemKind::Duplicate)),
        }
        Ok(true)
    }

    fn record(
        &mut self,
        fields: &Fields,
        object: &Bound<'py, PyAny>,
        path: &Path<'_>,
        out: &mut Value,
    ) -> Converted {
        let Ok(dict) = object.cast::<PyDict>() else {
            return Ok(self.refuse(path, ProblemKind::WrongType));
        };
        let base = self.held.len();
        let Some(unknown) = gather(dict, &fields.names, |name| fields.of.place(name), &mut self.held)? else {
            self.held.truncate(base);
            return Ok(self.refuse(path, ProblemKind::WrongType));
        };
        let declared = fields.of.fields();
        let defaults = hidden_defaults(fields.of.outside(), self.held.get(base..).unwrap_or_default());
        let values = collect_values(fields.shapes.len(), |place, out| {
            let given = self.held.get_mut(base + place).and_then(Option::take);
            // There are as many shapes as fields.
            let (Some(field), Some(shape)) = (declared.get(place), fields.shapes.get(place)) else {
                return Ok(false);
            };
            let path = Path::Field(path, &field.name);
            let default = defaults.get(place).and_then(Option::as_ref);
            self.value_or_default(shape, default, given.as_ref(), &path, out)
        })?;
        self.held.truncate(base);
        for name in &unknown {
            self.refuse(&Path::UnknownField(path, name), ProblemKind::Unknown);
        }
        match values {
            Some(values) if unknown.is_empty() => *out = Value::Record(values),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes the value of an input or a field, or its default if it is absent.
    pub(crate) fn value_or_default(
        &mut self,
        shape: &Shape,
        default: Option<&Value>,
        given: Option<&Bound<'py, PyAny>>,
        path: &Path<'_>,
        out: &mut Value,
    ) -> Converted {
        match (given, default, &shape.ty) {
            (Some(object), _, _) => return self.value(shape, object, path, out),
            (None, Some(default), _) => {
                out.set(default);
            }
            (None, None, Type::Optional(_)) => *out = Value::Null,
            (None, None, _) => return Ok(self.refuse(path, ProblemKind::Missing)),
        }
        Ok(true)
    }
}

/// Returns the defaults of fields without a key outside, by place: a flag is true where its field is not given, and
/// there are no undeclared keys. `held` are the given objects by place.
pub(crate) fn hidden_defaults<T>(outside: Option<&Outside>, held: &[Option<T>]) -> Vec<Option<Value>> {
    let Some(outside) = outside.filter(|outside| outside.is_sparse()) else {
        return Vec::new();
    };
    let is_given = |place: usize| held.get(place).is_some_and(Option::is_some);
    let default = |place: usize| match outside.flagged(place) {
        Some(flagged) => Some(Value::Boolean(!is_given(flagged))),
        None if outside.rest() == Some(place) => {
            Map::from_entries(KeyKind::Text, Vec::new()).map(|map| Value::Map(Arc::new(map)))
        }
        None => None,
    };
    (0..held.len()).map(default).collect()
}

/// Collects `length` values in one allocation; returns `None` if one is missing. Every value is converted, so that
/// all problems are found, unless Python raises.
fn collect_values(
    length: usize,
    mut value: impl FnMut(usize, &mut Value) -> Converted,
) -> PyResult<Option<Arc<[Value]>>> {
    let mut values: Arc<[Value]> = (0..length).map(|_| Value::Null).collect();
    let mut is_whole = true;
    // The allocation has no other owner yet.
    for (place, out) in Arc::get_mut(&mut values).into_iter().flatten().enumerate() {
        is_whole &= value(place, out)?;
    }
    Ok(is_whole.then_some(values))
}

/// Returns the size of a set and an iterator over it, or `None` for other objects.
fn members<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<(usize, Bound<'py, PyIterator>)>> {
    let py = object.py();
    // The size comes from the storage. A subclass is iterated with `__iter__` of the base type.
    let (length, class, is_exact) = if let Ok(set) = object.cast::<PySet>() {
        let is_exact = object.is_exact_instance_of::<PySet>();
        (set.len(), py.get_type::<PySet>(), is_exact)
    } else if let Ok(set) = object.cast::<PyFrozenSet>() {
        let is_exact = object.is_exact_instance_of::<PyFrozenSet>();
        (set.len(), py.get_type::<PyFrozenSet>(), is_exact)
    } else {
        return Ok(None);
    };
    if is_exact {
        return Ok(Some((length, object.try_iter()?)));
    }
    let iterator = class.call_method1(intern!(py, "__iter__"), (object,))?;
    Ok(Some((length, iterator.cast_into()?)))
}
