//! Assignment of dict entries to declared names: inputs of a node and fields of a record.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

/// Maximum number of names for which a linear scan is faster than a search.
const MAX_SCANNED_NAMES: usize = 16;

/// Objects held during conversion. The entries of a nested dict follow those of the dict around it.
pub(crate) type Held<'py> = Vec<Option<Bound<'py, PyAny>>>;

/// Undeclared names in code-point order without repetition, as UTF-8 that may contain lone surrogates.
pub(crate) type Unknown = Vec<Vec<u8>>;

/// Appends the entries of a dict to `held`, one place for each declared name. Returns `None` if a key is not a
/// string.
///
/// Iterates the storage of the dict: a lookup could call `__eq__` of keys that are subclasses of `str`, and a
/// subclass of `dict` could override methods. Of two keys with equal text the later one counts.
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
    // SAFETY: the dict is alive and this thread is attached. Python code can run in this loop only if an error about
    // a lone surrogate starts the garbage collector. If that code changes the dict, `PyDict_Next` still returns
    // entries that exist at that moment, or ends.
    while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut cursor, &raw mut key, &raw mut value) } != 0 {
        // SAFETY: `PyDict_Next` returned this entry, so the dict holds both objects; from here on these references
        // do, too.
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

/// Returns the place of a name. Names that a caller writes in its source, in declared order, are the strings interned
/// here.
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
    if names.len() <= MAX_SCANNED_NAMES
        && let Some(place) = names.iter().position(|name| name.is(key))
    {
        return Some(place);
    }
    find(key.to_str().ok()?)
}

/// Returns the UTF-8 of a string, with lone surrogates encoded like characters.
fn bytes_with_surrogates(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    if let Ok(text) = text.to_str() {
        return Ok(text.as_bytes().to_vec());
    }
    // `encode` of the base type, because a subclass may override it.
    let class = text.py().get_type::<PyString>();
    let bytes = class.call_method1("encode", (text, "utf-8", "surrogatepass"))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}
