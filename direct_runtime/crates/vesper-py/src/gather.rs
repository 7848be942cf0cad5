//! A dict by the names in it: how both the inputs of a node and the fields of a record come.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

/// Up to this many names, looking through all of them is quicker than searching for one.
const FEW_NAMES: usize = 16;

/// What a dict gives for names that are declared, and what else it has.
pub(crate) struct Gathered<'py> {
    /// By the place of the name.
    pub(crate) given: Vec<Option<Bound<'py, PyAny>>>,
    /// The other names in code-point order, each once, as UTF-8 with lone surrogates in it.
    pub(crate) unknown: Vec<Vec<u8>>,
}

/// Sorts the entries of a dict by declared names; nothing where a key is not a string.
///
/// Goes through the dict's own storage instead of asking it: a look-up may call `__eq__` of keys that are subclasses of
/// `str`, and a subclass of `dict` may have methods of its own. Of two keys with the same text the later one counts.
pub(crate) fn gather<'py>(
    dict: &Bound<'py, PyDict>,
    names: &[Py<PyString>],
    find: impl Fn(&str) -> Option<usize>,
) -> PyResult<Option<Gathered<'py>>> {
    let mut given: Vec<Option<Bound<'py, PyAny>>> = vec![None; names.len()];
    let mut unknown: Vec<Vec<u8>> = Vec::new();
    for (position, (key, value)) in dict.iter().enumerate() {
        let Ok(key) = key.cast_into::<PyString>() else {
            return Ok(None);
        };
        let place = place(&key, position, names, &find);
        match place.and_then(|place| given.get_mut(place)) {
            Some(slot) => *slot = Some(value),
            None => unknown.push(bytes_with_surrogates(&key)?),
        }
    }
    // UTF-8, surrogates included, sorts by code point.
    unknown.sort();
    unknown.dedup();
    Ok(Some(Gathered { given, unknown }))
}

/// The place of a name. Callers mostly write the names in their source, in declared order: then the key is the very
/// string that was interned here.
fn place(
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
