//! Python collections and dicts to values, with every problem in them.
//!
//! What is in a `list`, `tuple`, `set` or `dict` is read from the storage of the base type, whatever a subclass says of
//! its length or its items.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyIterator, PyList, PySet, PyTuple};
use vesper_interp::inputs::ProblemKind;
use vesper_interp::problems::{Path, Problems};
use vesper_ir::{Map, OwnedKey, Set, Type, Value};

use crate::convert::to_scalar;
use crate::gather::{Held, gather};
use crate::json::to_json;
use crate::shapes::{Fields, Parts, Shape};

/// The most entries of an array, a set or a map.
const MAX_ENTRIES: usize = 1_000_000;

/// The conversion of one call's inputs.
#[derive(Default)]
pub(crate) struct Conversion<'py> {
    pub(crate) problems: Problems,
    /// What dicts gave and is not converted yet.
    pub(crate) held: Held<'py>,
}

/// A value, or nothing where problems were found; the error is Python's own, such as a lack of memory.
type Converted = PyResult<Option<Value>>;

/// The two forms of an array.
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
    fn refuse(&mut self, path: &Path<'_>, kind: ProblemKind) -> Option<Value> {
        self.problems.add(path, kind);
        None
    }

    /// The value of an object, for a place of this type. Goes as deep as the type does, which is limited.
    pub(crate) fn value(
        &mut self,
        shape: &Shape,
        object: &Bound<'py, PyAny>,
        path: &Path<'_>,
    ) -> Converted {
        match &shape.parts {
            Parts::None if matches!(shape.ty, Type::Json) => Ok(match to_json(object)? {
                Ok(value) => Some(Value::Json(Arc::new(value))),
                Err(kind) => self.refuse(path, kind),
            }),
            Parts::None | Parts::Enum(_) => Ok(match to_scalar(shape, object)? {
                Ok(value) => Some(value),
                Err(kind) => self.refuse(path, kind),
            }),
            Parts::Optional(_) if object.is_none() => Ok(Some(Value::Null)),
            Parts::Optional(of) => self.value(of, object, path),
            Parts::Array(of) => Ok(self.items(of, object, path)?.map(Value::Array)),
            Parts::Set(of) => self.set(of, object, path),
            Parts::Map(key, value) => self.map(key, value, object, path),
            Parts::Record(fields) => self.record(fields, object, path),
        }
    }

    /// The items of an array, or of a set in that form.
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
        all(0..length, |place| {
            let item = sequence.get(place)?;
            self.value(of, &item, &Path::Item(path, place))
        })
    }

    fn set(&mut self, of: &Shape, object: &Bound<'py, PyAny>, path: &Path<'_>) -> Converted {
        let keys: Option<Vec<OwnedKey>> = match members(object)? {
            None => {
                let Some(items) = self.items(of, object, path)? else {
                    return Ok(None);
                };
                items.iter().map(Value::to_key).collect()
            }
            Some((length, _)) if length > MAX_ENTRIES => {
                return Ok(self.refuse(path, ProblemKind::OutOfRange));
            }
            Some((length, members)) => {
                let mut keys = Vec::with_capacity(length);
                for member in members {
                    // Members come in no order that could be told to anyone, so the first misfit says it all.
                    match to_scalar(of, &member?)?.ok().and_then(|member| member.to_key()) {
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
        Ok(match set {
            Some(set) if Some(set.len()) == length => Some(Value::Set(Arc::new(set))),
            _ => self.refuse(path, ProblemKind::Duplicate),
        })
    }

    fn map(
        &mut self,
        of_key: &Shape,
        of_value: &Shape,
        object: &Bound<'py, PyAny>,
        path: &Path<'_>,
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
            match to_scalar(of_key, &key)? {
                Ok(key) => given.extend(key.to_key().map(|key| (key, value))),
                Err(kind) => {
                    is_whole = false;
                    self.refuse(&Path::BadKey(path), kind);
                }
            }
        }
        given.sort_by(|(left, _), (right, _)| left.cmp(right));
        // Keys of subclasses may be different in the dict and yet have the same base value.
        if given
            .windows(2)
            .any(|pair| matches!(pair, [(left, _), (right, _)] if left == right))
        {
            return Ok(self.refuse(path, ProblemKind::Duplicate));
        }
        let mut entries = Vec::with_capacity(given.len());
        for (key, value) in given {
            match self.value(of_value, &value, &Path::Entry(path, &key, &of_key.ty))? {
                Some(value) => entries.push((key, value)),
                None => is_whole = false,
            }
        }
        if !is_whole {
            return Ok(None);
        }
        let map = of_key
            .ty
            .key_kind()
            .and_then(|kind| Map::from_entries(kind, entries));
        Ok(match map {
            Some(map) => Some(Value::Map(Arc::new(map))),
            None => self.refuse(path, ProblemKind::Duplicate),
        })
    }

    fn record(&mut self, fields: &Fields, object: &Bound<'py, PyAny>, path: &Path<'_>) -> Converted {
        let Ok(dict) = object.cast::<PyDict>() else {
            return Ok(self.refuse(path, ProblemKind::WrongType));
        };
        let base = self.held.len();
        let Some(unknown) = gather(dict, &fields.names, |name| fields.of.place(name), &mut self.held)? else {
            return Ok(self.refuse(path, ProblemKind::WrongType));
        };
        let declared = fields.of.fields();
        let values = all(0..fields.shapes.len(), |place| {
            let given = self.held.get_mut(base + place).and_then(Option::take);
            // As many shapes as fields.
            let (Some(field), Some(shape)) = (declared.get(place), fields.shapes.get(place)) else {
                return Ok(None);
            };
            self.given(shape, None, given.as_ref(), &Path::Field(path, &field.name))
        })?;
        self.held.truncate(base);
        for name in &unknown {
            self.refuse(&Path::UnknownField(path, name), ProblemKind::Unknown);
        }
        Ok(values.filter(|_| unknown.is_empty()).map(Value::Record))
    }

    /// The value of an input or a field, which may not be given.
    pub(crate) fn given(
        &mut self,
        shape: &Shape,
        default: Option<&Value>,
        given: Option<&Bound<'py, PyAny>>,
        path: &Path<'_>,
    ) -> Converted {
        match (given, default, &shape.ty) {
            (Some(object), _, _) => self.value(shape, object, path),
            (None, Some(default), _) => Ok(Some(default.clone())),
            (None, None, Type::Optional(_)) => Ok(Some(Value::Null)),
            (None, None, _) => Ok(self.refuse(path, ProblemKind::Missing)),
        }
    }
}

/// The values at these places, in one allocation; nothing where one is missing. All are asked for, that every problem
/// is found, unless Python itself has an error.
fn all(
    places: std::ops::Range<usize>,
    mut value: impl FnMut(usize) -> Converted,
) -> PyResult<Option<Arc<[Value]>>> {
    let mut is_whole = true;
    let mut error = None;
    // Not by way of a `Result` for each: the length of that is not known beforehand, which costs a second allocation.
    let values: Arc<[Value]> = places
        .map(|place| {
            if error.is_none() {
                match value(place) {
                    Ok(Some(value)) => return value,
                    Ok(None) => is_whole = false,
                    Err(raised) => error = Some(raised),
                }
            }
            Value::Null
        })
        .collect();
    match error {
        Some(raised) => Err(raised),
        None => Ok(is_whole.then_some(values)),
    }
}

/// How many members a set has, and an iterator of the base type over them; nothing where the object is no set.
fn members<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<(usize, Bound<'py, PyIterator>)>> {
    let py = object.py();
    // The size is read from the storage, and for a subclass `__iter__` is taken from the base type.
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
