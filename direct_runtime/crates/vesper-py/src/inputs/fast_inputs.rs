//! Fast conversion of common inputs into a room, and of outputs out of it.
//!
//! This module makes no decisions. If an object is not of the exact expected type, or a name without a default is
//! missing, it gives up, and `checked_inputs` converts the inputs again by all rules. The objects are only borrowed:
//! reading inputs of plain shapes runs no Python code that could release them.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use pyo3::{Borrowed, PyTypeInfo};
use vesper_interp::inputs::is_too_long;
use vesper_interp::{Limits, Outcome, Room};
use vesper_ir::limits::{FUEL, MEMORY};
use vesper_ir::{Member, Type, Value};

use crate::calls::outcome::NamedShapes;
use crate::calls::program::Program;
use crate::inputs::checked_inputs::MAX_ENTRIES;
use crate::inputs::shapes::{Fields, Parts, Shape};
use crate::inputs::values::to_python;
use crate::layout::decimals::{Decimals, decimals};
use crate::layout::dicts::{Entries, Layout};
use crate::watch::{WATCH, run_watched_within};

/// Maximum number of names, each of which has a bit in a `u64`.
const MAX_NAMES: usize = 64;
/// Maximum number of names for which a linear scan is faster than a search.
const MAX_SCANNED_NAMES: usize = 16;

/// Result of a run on fast inputs.
pub(crate) enum FastRun<'py> {
    Returned(Bound<'py, PyDict>),
    Otherwise(Outcome),
    /// The inputs need `checked_inputs`; nothing was run.
    Unusual,
}

/// Limits of a call without explicit limits. They contain no time, because the watch measures the time of long runs.
pub(crate) const DEFAULT_LIMITS: Limits = Limits {
    fuel: FUEL,
    memory: MEMORY,
    time: None,
    watch: Some(WATCH),
};

impl Program {
    /// Runs a node in a room. The room is clear afterwards, unless this panics.
    #[inline]
    pub(crate) fn run_fast<'py>(
        &self,
        py: Python<'py>,
        room: &mut Room,
        inputs: &Bound<'py, PyDict>,
        limit: Option<Duration>,
    ) -> PyResult<FastRun<'py>> {
        let ran = self.run_and_read(py, room, inputs, limit);
        room.clear();
        ran
    }

    #[inline]
    fn run_and_read<'py>(
        &self,
        py: Python<'py>,
        room: &mut Room,
        inputs: &Bound<'py, PyDict>,
        limit: Option<Duration>,
    ) -> PyResult<FastRun<'py>> {
        match self.run_in_room(py, room, inputs, limit)? {
            Some(Outcome::Returned(_)) => self.outputs_of(py, room).map(FastRun::Returned),
            Some(outcome) => Ok(FastRun::Otherwise(outcome)),
            None => Ok(FastRun::Unusual),
        }
    }

    /// Runs a node in a room and leaves the outputs there. Returns `None` if the inputs need `checked_inputs`.
    #[inline]
    pub(crate) fn run_in_room<'py>(
        &self,
        py: Python<'py>,
        room: &mut Room,
        inputs: &Bound<'py, PyDict>,
        limit: Option<Duration>,
    ) -> PyResult<Option<Outcome>> {
        if !self.read_inputs(py, inputs, room.inputs())? {
            return Ok(None);
        }
        let compiled = self.compiled();
        run_watched_within(py, limit, || compiled.run_in(room, DEFAULT_LIMITS)).map(Some)
    }

    /// Writes the inputs into their places; returns false if it gives up.
    #[inline]
    pub(crate) fn read_inputs<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyDict>,
        places: &mut [Value],
    ) -> PyResult<bool> {
        // Reading other shapes may run Python code that changes the dict. Give up before that, so that the checked
        // conversion finds the original inputs.
        if !self.has_plain_inputs() {
            return Ok(false);
        }
        let NamedShapes { names, shapes } = self.inputs();
        let reader = Reader {
            decimals: decimals(py)?,
            layout: self.frameless_calls().layout(),
        };
        let given = visit_entries(
            reader.layout,
            inputs.as_borrowed(),
            names,
            |name| self.place_of_input(name),
            |place, object| match (shapes.get(place), places.get_mut(place)) {
                (Some(shape), Some(out)) => reader.value(shape, object, out),
                _ => false,
            },
        );
        let Some(given) = given else {
            return Ok(false);
        };
        if given == all_bits(names.len()) {
            return Ok(true);
        }
        let declared = self.compiled().node().inputs.iter().zip(places);
        for (place, (input, out)) in declared.enumerate() {
            if given & 1 << place == 0 {
                match (&input.default, &input.ty) {
                    (Some(default), _) => {
                        out.set(default);
                    }
                    (None, Type::Optional(_)) => out.put(Value::Null),
                    (None, _) => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// Returns the outputs of a run that returned.
    #[inline]
    pub(crate) fn outputs_of<'py>(&self, py: Python<'py>, room: &Room) -> PyResult<Bound<'py, PyDict>> {
        let NamedShapes { names, shapes } = self.outputs();
        let decimals = decimals(py)?;
        let dict = PyDict::new(py);
        let values = self.compiled().outputs_in(room);
        for ((name, shape), value) in names.iter().zip(shapes).zip(values) {
            let value = value.map_err(|what| PyRuntimeError::new_err(format!("engine fault: {what}")))?;
            let object = match (&shape.parts, value) {
                (Parts::None, Value::Decimal(number)) => decimals.object(py, number)?,
                (Parts::None, Value::Integer(number)) => number.into_pyobject(py)?.into_any(),
                _ => to_python(py, shape, value)?,
            };
            // SAFETY: the dict is new and both objects are alive; the dict takes references of its own.
            let is_set = unsafe { ffi::PyDict_SetItem(dict.as_ptr(), name.as_ptr(), object.as_ptr()) };
            if is_set != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(dict)
    }
}

/// Calls `each` with the place and value of every entry, until it returns false.
///
/// Returns a bit set of the places, or `None` if `each` returned false, or a key is undeclared or repeated.
#[inline]
pub(crate) fn visit_entries<'a, 'py>(
    layout: Option<Layout>,
    dict: Borrowed<'a, 'py, PyDict>,
    names: &[Py<PyString>],
    find: impl Fn(&str) -> Option<usize>,
    mut each: impl FnMut(usize, Borrowed<'a, 'py, PyAny>) -> bool,
) -> Option<u64> {
    let py = dict.py();
    // INVARIANT: neither this loop nor `each` runs Python code.
    let mut entries = Entries::of(dict, layout);
    if names.len() > MAX_NAMES || entries.len() > names.len() {
        return None;
    }
    let mut given = 0_u64;
    for position in 0..entries.len() {
        let (key, value) = entries.next()?;
        let place = match names.get(position) {
            // Names that a caller writes in its source, in declared order, are the strings interned here.
            Some(name) if name.as_ptr() == key => position,
            // SAFETY: the entry was just found, so the dict holds its key.
            _ => find_place(unsafe { Borrowed::from_ptr_or_opt(py, key) }?, names, &find)?,
        };
        // Places are less than `MAX_NAMES`, so the mask changes nothing.
        let bit = 1_u64 << (place & (MAX_NAMES - 1));
        if given & bit != 0 {
            return None;
        }
        given |= bit;
        if !each(place, value) {
            return None;
        }
    }
    Some(given)
}

/// Returns a bit set of the first `places` places.
#[inline]
pub(crate) fn all_bits(places: usize) -> u64 {
    if places >= MAX_NAMES {
        u64::MAX
    } else {
        (1 << places) - 1
    }
}

/// Returns the place of a name out of order. A subclass of `str` and a lone surrogate have none.
#[inline(never)]
fn find_place(
    key: Borrowed<'_, '_, PyAny>,
    names: &[Py<PyString>],
    find: impl Fn(&str) -> Option<usize>,
) -> Option<usize> {
    if names.len() <= MAX_SCANNED_NAMES
        && let Some(place) = names.iter().position(|name| name.as_ptr() == key.as_ptr())
    {
        return Some(place);
    }
    find(key.cast_exact::<PyString>().ok()?.to_str().ok()?)
}

/// Reader of plain shapes that accepts objects of exact types only.
struct Reader<'a> {
    decimals: &'a Decimals,
    layout: Option<Layout>,
}

impl Reader<'_> {
    /// Writes a value into an empty place; returns false if it gives up. The depth of recursion is that of the type,
    /// which is limited.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "most values have no parts, and a call costs as much as one of them"
    )]
    fn value(&self, shape: &Shape, object: Borrowed<'_, '_, PyAny>, out: &mut Value) -> bool {
        match &shape.parts {
            Parts::None => self.scalar(&shape.ty, object, out),
            _ => self.compound(shape, object, out),
        }
    }

    #[inline(never)]
    fn compound(&self, shape: &Shape, object: Borrowed<'_, '_, PyAny>, out: &mut Value) -> bool {
        match &shape.parts {
            Parts::Enum(names) => {
                // Members written in a source are interned, like these names.
                let place = names.iter().position(|name| name.as_ptr() == object.as_ptr());
                match (place.map(u32::try_from), &shape.ty) {
                    (Some(Ok(place)), _) => {
                        out.put(Value::Member(Member(place)));
                        true
                    }
                    (_, Type::Enum(of)) => match text_of(&object).and_then(|text| of.member(text)) {
                        Some(member) => {
                            out.put(Value::Member(member));
                            true
                        }
                        None => false,
                    },
                    _ => false,
                }
            }
            Parts::Optional(_) if object.is_none() => {
                out.put(Value::Null);
                true
            }
            Parts::Optional(of) => self.value(of, object, out),
            Parts::Array(of) => self.array(of, object, out),
            Parts::Record(fields) => self.record(fields, object, out),
            Parts::None | Parts::Set(_) | Parts::Map(..) => false,
        }
    }

    #[inline]
    fn scalar(&self, ty: &Type, object: Borrowed<'_, '_, PyAny>, out: &mut Value) -> bool {
        match ty {
            Type::Decimal => {
                // `read_small` guarantees that the scale is within its limit.
                if let Some((coefficient, scale)) = self.decimals.read_small(&object) {
                    out.put_small_decimal(coefficient, scale);
                    return true;
                }
                if let Some(value) = integer(object) {
                    out.put_small_decimal(i128::from(value), 0);
                    return true;
                }
            }
            Type::Integer => {
                if let Some(value) = integer(object) {
                    out.put(Value::Integer(value));
                    return true;
                }
            }
            Type::Boolean => {
                if let Ok(value) = object.cast_exact::<PyBool>() {
                    out.put(Value::Boolean(value.is_true()));
                    return true;
                }
            }
            Type::Text => {
                if let Some(text) = text_of(&object)
                    && !is_too_long(text)
                {
                    out.put(Value::Text(Arc::from(text)));
                    return true;
                }
            }
            Type::Float => {
                if let Ok(value) = object.cast_exact::<PyFloat>() {
                    out.put(Value::Float(value.value()));
                    return true;
                }
            }
            _ => {}
        }
        false
    }

    fn array(&self, of: &Shape, object: Borrowed<'_, '_, PyAny>, out: &mut Value) -> bool {
        let Ok(list) = object.cast_exact::<PyList>() else {
            return false;
        };
        let length = list.len();
        if length > MAX_ENTRIES {
            return false;
        }
        let mut items = NewValues::new(length);
        for (place, out) in (0..).zip(items.places()) {
            // SAFETY: the list is alive and holds its items. Its length is unchanged, because this loop runs no
            // Python code.
            let item =
                unsafe { Borrowed::from_ptr_or_opt(object.py(), ffi::PyList_GET_ITEM(list.as_ptr(), place)) };
            if !item.is_some_and(|item| self.value(of, item, out)) {
                return false;
            }
        }
        out.put(Value::Array(items.0));
        true
    }

    fn record(&self, fields: &Fields, object: Borrowed<'_, '_, PyAny>, out: &mut Value) -> bool {
        let Ok(dict) = object.cast::<PyDict>() else {
            return false;
        };
        let mut values = NewValues::new(fields.shapes.len());
        let places = values.places();
        let given = visit_entries(
            self.layout,
            dict,
            &fields.names,
            |name| fields.of.place(name),
            |place, object| match (fields.shapes.get(place), places.get_mut(place)) {
                (Some(shape), Some(out)) => self.value(shape, object, out),
                _ => false,
            },
        );
        let Some(given) = given else {
            return false;
        };
        // An absent optional field is null.
        let is_whole = given == all_bits(fields.shapes.len())
            || (fields.shapes.iter().enumerate())
                .all(|(place, shape)| given & 1 << place != 0 || matches!(shape.parts, Parts::Optional(_)));
        if is_whole {
            out.put(Value::Record(values.0));
        }
        is_whole
    }
}

/// Returns the text of an exact string, unless it contains a lone surrogate.
#[inline]
fn text_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    object.cast_exact::<PyString>().ok()?.to_str().ok()
}

/// Returns the value of an exact integer of at most 64 bits.
#[inline]
pub(crate) fn integer(object: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    if object.get_type_ptr() != PyInt::type_object_raw(object.py()) {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: the object is an exact integer and alive. The function reads its digits, runs no Python code and raises
    // nothing.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &raw mut overflow) };
    (overflow == 0).then_some(value)
}

/// Values in a new allocation with one owner; each is null until written.
struct NewValues(Arc<[Value]>);

impl NewValues {
    #[inline]
    fn new(length: usize) -> Self {
        let values = Arc::<[Value]>::new_uninit_slice(length);
        let first = Arc::as_ptr(&values).cast::<Value>().cast_mut();
        for place in 0..length {
            // SAFETY: the place is inside the new allocation, which has no other owner and holds no value there yet.
            unsafe { first.add(place).write(Value::Null) };
        }
        // SAFETY: the loop wrote every value.
        Self(unsafe { values.assume_init() })
    }

    #[inline]
    fn places(&mut self) -> &mut [Value] {
        let first = Arc::as_ptr(&self.0).cast::<Value>().cast_mut();
        // SAFETY: the slice is the whole allocation, and this is its only owner: it is never cloned, and moved out
        // only as a whole. `Arc::get_mut` would check this with an atomic exchange.
        unsafe { std::slice::from_raw_parts_mut(first, self.0.len()) }
    }
}
