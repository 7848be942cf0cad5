//! A dict by the names in it: how both the inputs of a node and the fields of a record come.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

/// Up to this many names, looking through all of them is quicker than searching for one.
const FEW_NAMES: usize = 16;

/// Objects that are held while they are converted: those of one dict behind those of the dict around it.
pub(crate) type Held<'py> = Vec<Option<Bound<'py, PyAny>>>;

/// What else a dict has: names in code-point order, each once, as UTF-8 with lone surrogates in it.
pub(crate) type Unknown = Vec<Vec<u8>>;

/// Puts what a dict gives behind what is held, one place for each declared name; nothing where a key is not a string.
///
/// Goes through the dict's own storage instead of asking it: a look-up may call `__eq__` of keys that are subclasses of
/// `str`, and a subclass of `dict` may have methods of its own. Of two keys with the same text the later one counts.
pub(crate) fn gather<'py>(
    dict: &Bound<'py, PyDict>,
    names: &[Py<PyString>],
    find: impl Fn(&str) -> Option<usize>,
    held: &mut Held<'py>,
) -> PyResult<Option<Unknown>> {
    let py = dict.py();
    let base = held.len();
    held.resize(base + names.len(), None);
    let mut unknown: Vec<Bound<'py, PyString>> = Vec::new();
    let mut cursor: ffi::Py_ssize_t = 0;
    let mut position = 0;
    let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the dict is alive and this thread is attached. Hardly anything in this loop can run Python code (an error
    // about a lone surrogate may start the collector); if it does, and changes the dict, then `PyDict_Next` still gives
    // entries that are there at that moment, or ends.
    while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut cursor, &raw mut key, &raw mut value) } != 0 {
        // SAFETY: an entry that `PyDict_Next` just found: the dict holds both, and from here on so does this.
        let (key, value) = unsafe {
            (
                Bound::from_borrowed_ptr(py, key),
                Bound::from_borrowed_ptr(py, value),
            )
        };
        let Ok(key) = key.cast_into::<PyString>() else {
            return Ok(None);
        };
        let place = find_place(&key, position, names, &find);
        match place.and_then(|place| held.get_mut(base + place)) {
            Some(slot) => *slot = Some(value),
            None => unknown.push(key),
        }
        position += 1;
    }
    if unknown.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut spelled: Unknown = unknown
        .iter()
        .map(bytes_with_surrogates)
        .collect::<PyResult<_>>()?;
    // UTF-8, surrogates included, sorts by code point.
    spelled.sort();
    spelled.dedup();
    Ok(Some(spelled))
}

/// The place of a name. Callers mostly write the names in their source, in declared order: then the key is the very
/// string that was interned here.
#[inline]
fn find_place(
    key: &Bound<'_, PyString>,
    position: usize,
    names: &[Py<PyString>],
    find: impl Fn(&str) -> Option<usize>,
) -> Option<usize> {
    if names.get(position).is_some_and(|name| name.is(key)) {
        return Some(position);
    }
    if names.len() <= FEW_NAMES
        && let Some(place) = names.iter().position(|name| name.is(key))
    {
        return Some(place);
    }
    find(key.to_str().ok()?)
}

/// The UTF-8 of a string, with lone surrogates encoded as if they were characters.
fn bytes_with_surrogates(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    if let Ok(text) = text.to_str() {
        return Ok(text.as_bytes().to_vec());
    }
    // From the base type, because a subclass may have its own `encode`.
    let class = text.py().get_type::<PyString>();
    let bytes = class.call_method1("encode", (text, "utf-8", "surrogatepass"))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}
