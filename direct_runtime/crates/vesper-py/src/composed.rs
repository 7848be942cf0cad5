//! Python collections and dicts to values, with every problem in them.
//!
//! What is in a `list`, `tuple`, `set` or `dict` is read from the storage of the base type, whatever a subclass says of
//! its length or its items.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyIterator, PyList, PySet, PyTuple};
use vesper_interp::inputs::ProblemKind;
use vesper_ir::{Map, MapType, OwnedKey, RecordType, Set, Type, Value};

use crate::convert::to_scalar;
use crate::gather::gather;
use crate::json::to_json;
use crate::names::Names;
use crate::problems::{Path, Problems};

/// The most entries of an array, a set or a map.
const MAX_ENTRIES: usize = 1_000_000;

/// The conversion of one call's inputs.
pub(crate) struct Conversion<'a> {
    pub(crate) names: &'a Names,
    pub(crate) problems: Problems,
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

impl Conversion<'_> {
    fn refuse(&mut self, path: &Path<'_>, kind: ProblemKind) -> Option<Value> {
        self.problems.add(path, kind);
        None
    }

    /// The value of an object, for a place of this type. Goes as deep as the type does, which is limited.
    pub(crate) fn value(&mut self, ty: &Type, object: &Bound<'_, PyAny>, path: &Path<'_>) -> Converted {
        match ty {
            Type::Boolean
            | Type::Integer
            | Type::Decimal
            | Type::Float
            | Type::Text
            | Type::Bytes
            | Type::Timestamp
            | Type::Date
            | Type::Duration
            | Type::Enum(_) => Ok(match to_scalar(ty, object)? {
                Ok(value) => Some(value),
                Err(kind) => self.refuse(path, kind),
            }),
            Type::Json => Ok(match to_json(object)? {
                Ok(value) => Some(Value::Json(Arc::new(value))),
                Err(kind) => self.refuse(path, kind),
            }),
            Type::Optional(_) if object.is_none() => Ok(Some(Value::Null)),
            Type::Optional(of) => self.value(of, object, path),
            Type::Array(of) => Ok(self
                .items(of, object, path)?
                .map(|items| Value::Array(items.into()))),
            Type::Set(of) => self.set(of, object, path),
            Type::Map(of) => self.map(of, object, path),
            Type::Record(of) => self.record(ty, of, object, path),
        }
    }

    /// The items of an array, or of a set in that form.
    fn items(
        &mut self,
        of: &Type,
        object: &Bound<'_, PyAny>,
        path: &Path<'_>,
    ) -> PyResult<Option<Vec<Value>>> {
        let Some(sequence) = Sequence::new(object) else {
            self.refuse(path, ProblemKind::WrongType);
            return Ok(None);
        };
        let length = sequence.len();
        if length > MAX_ENTRIES {
            self.refuse(path, ProblemKind::OutOfRange);
            return Ok(None);
        }
        let mut items = Vec::with_capacity(length);
        for place in 0..length {
            let item = sequence.get(place)?;
            items.extend(self.value(of, &item, &Path::Item(path, place))?);
        }
        Ok((items.len() == length).then_some(items))
    }

    fn set(&mut self, of: &Type, object: &Bound<'_, PyAny>, path: &Path<'_>) -> Converted {
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
            .zip(of.key_kind())
            .and_then(|(keys, kind)| Set::from_keys(kind, keys.into_iter()));
        Ok(match set {
            Some(set) if Some(set.len()) == length => Some(Value::Set(Arc::new(set))),
            _ => self.refuse(path, ProblemKind::Duplicate),
        })
    }

    fn map(&mut self, of: &MapType, object: &Bound<'_, PyAny>, path: &Path<'_>) -> Converted {
        let Ok(dict) = object.cast::<PyDict>() else {
            return Ok(self.refuse(path, ProblemKind::WrongType));
        };
        if dict.len() > MAX_ENTRIES {
            return Ok(self.refuse(path, ProblemKind::OutOfRange));
        }
        let mut is_whole = true;
        let mut given: Vec<(OwnedKey, Bound<'_, PyAny>)> = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            match to_scalar(&of.key, &key)? {
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
            match self.value(&of.value, &value, &Path::Entry(path, &key, &of.key))? {
                Some(value) => entries.push((key, value)),
                None => is_whole = false,
            }
        }
        if !is_whole {
            return Ok(None);
        }
        let map = of
            .key
            .key_kind()
            .and_then(|kind| Map::from_entries(kind, entries));
        Ok(match map {
            Some(map) => Some(Value::Map(Arc::new(map))),
            None => self.refuse(path, ProblemKind::Duplicate),
        })
    }

    fn record(
        &mut self,
        ty: &Type,
        of: &RecordType,
        object: &Bound<'_, PyAny>,
        path: &Path<'_>,
    ) -> Converted {
        let Ok(dict) = object.cast::<PyDict>() else {
            return Ok(self.refuse(path, ProblemKind::WrongType));
        };
        let names = self.names;
        let Some(gathered) = gather(dict, names.of(ty), |name| of.place(name))? else {
            return Ok(self.refuse(path, ProblemKind::WrongType));
        };
        let length = of.fields().len();
        let mut values = Vec::with_capacity(length);
        for (field, given) in of.fields().iter().zip(gathered.given) {
            let path = Path::Field(path, &field.name);
            values.extend(self.given(&field.ty, None, given.as_ref(), &path)?);
        }
        for name in &gathered.unknown {
            self.refuse(&Path::UnknownField(path, name), ProblemKind::Unknown);
        }
        let is_whole = values.len() == length && gathered.unknown.is_empty();
        Ok(is_whole.then(|| Value::Record(values.into())))
    }

    /// The value of an input or a field, which may not be given.
    pub(crate) fn given(
        &mut self,
        ty: &Type,
        default: Option<&Value>,
        given: Option<&Bound<'_, PyAny>>,
        path: &Path<'_>,
    ) -> Converted {
        match (given, default, ty) {
            (Some(object), _, _) => self.value(ty, object, path),
            (None, Some(default), _) => Ok(Some(default.clone())),
            (None, None, Type::Optional(_)) => Ok(Some(Value::Null)),
            (None, None, _) => Ok(self.refuse(path, ProblemKind::Missing)),
        }
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
