//! Access to dict entries through their memory layout, or through `PyDict_Next`.
//!
//! A call visits every input and every field of a record, and a function call for each costs as much as reading it.
//! On the builds of `CPython` listed below that pass a test at import, this module therefore reads the private layout
//! of dicts, as `decimals` does; docs/how-to/use-the-direct-engine.md describes how to switch it off. Only a dict with
//! a table of its own is read this way, whose keys are all strings and from which no key was removed.

use std::mem::size_of;

use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

/// Environment variable; `api` forces access through functions of Python.
const VARIABLE: &str = "VESPER_DICTS";

/// A dict: `PyDictObject`.
#[repr(C)]
struct DictObject {
    head: ffi::PyObject,
    used: isize,
    version: u64,
    keys: *mut Keys,
    /// Null unless the table is shared with other dicts.
    values: *mut (),
}

/// The table of a dict: `PyDictKeysObject`. The indices follow it in memory, then the entries.
#[repr(C)]
struct Keys {
    references: isize,
    log2_size: u8,
    log2_index_bytes: u8,
    kind: u8,
    version: u32,
    usable: isize,
    entries: isize,
}

/// An entry of a table: `PyDictUnicodeEntry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
}

impl Entry {
    /// Returns the value if the key is this string object.
    ///
    /// INVARIANT: no Python code has run since the entries were found.
    #[inline]
    pub(crate) fn value_under<'a, 'py>(
        &'a self,
        key: &Bound<'py, PyString>,
    ) -> Option<Borrowed<'a, 'py, PyAny>> {
        if self.key != key.as_ptr() {
            return None;
        }
        // SAFETY: the entry exists, so its dict holds the value.
        unsafe { Borrowed::from_ptr_or_opt(key.py(), self.value) }
    }
}

/// The kind of a table whose keys are all strings.
const STRINGS: u8 = 1;

/// Proof that dicts have the layout above. Only a passed test creates it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout(());

/// Returns the layout, which is tested once.
pub(crate) fn layout(py: Python<'_>) -> PyResult<Option<Layout>> {
    Ok(cached_layout(py)?.as_ref().ok().copied())
}

fn cached_layout(py: Python<'_>) -> PyResult<&'static Result<Layout, String>> {
    static LAYOUT: PyOnceLock<Result<Layout, String>> = PyOnceLock::new();
    LAYOUT.get_or_try_init(py, || detect_layout(py))
}

/// Returns how this build reads dicts: `layout`, or `api: ` and the reason.
#[pyfunction]
pub(crate) fn dict_access(py: Python<'_>) -> PyResult<String> {
    Ok(match cached_layout(py)? {
        Ok(_) => "layout".to_owned(),
        Err(why) => format!("api: {why}"),
    })
}

impl Layout {
    /// Returns the first entry and the number of entries, if the dict is readable this way.
    #[inline]
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "the indices have at least eight bytes, so entries have the alignment of their table"
    )]
    fn table(self, dict: *mut ffi::PyObject) -> Option<(*mut Entry, usize)> {
        let Self(()) = self;
        // SAFETY: the dict is alive. A dict of a subclass begins like a dict, and `Layout` proves the offsets of the
        // fields. The table is alive until something is inserted.
        unsafe {
            let dict = dict.cast::<DictObject>();
            let keys = (*dict).keys;
            let is_usual =
                (*dict).values.is_null() && (*keys).kind == STRINGS && (*keys).entries == (*dict).used;
            let indices = keys.add(1).cast::<u8>();
            let first = indices.add(1 << ((*keys).log2_index_bytes & 31)).cast::<Entry>();
            is_usual.then_some((first, (*dict).used.unsigned_abs()))
        }
    }

    /// Returns the entries of a dict that is readable this way. They are valid until Python code runs.
    #[inline]
    pub(crate) fn entries<'a>(self, dict: Borrowed<'a, '_, PyDict>) -> Option<&'a [Entry]> {
        let (first, count) = self.table(dict.as_ptr())?;
        if count == 0 {
            return Some(&[]); // the table that all empty dicts share is too short to be aligned
        }
        // SAFETY: the table has `count` entries, and nothing writes to them while they are borrowed.
        Some(unsafe { std::slice::from_raw_parts(first, count) })
    }

    /// Returns the values of a dict for replacement.
    ///
    /// INVARIANT: the dict has no other owner; neither the old nor the new values are tracked by the garbage
    /// collector; nothing else accesses the dict meanwhile.
    #[inline]
    pub(crate) fn slots<'a>(self, dict: &'a Bound<'_, PyDict>) -> Slots<'a> {
        match self.table(dict.as_ptr()) {
            // SAFETY: as above, and the caller is the only owner of the dict.
            Some((first, count)) if count > 0 => {
                Slots(unsafe { std::slice::from_raw_parts_mut(first, count) })
            }
            _ => Slots::none(),
        }
    }
}

/// The writable entries of a dict with one owner.
pub(crate) struct Slots<'a>(&'a mut [Entry]);

impl Slots<'_> {
    /// Returns slots that accept no value, for a dict of unknown layout.
    #[inline]
    pub(crate) fn none() -> Self {
        Self(&mut [])
    }

    /// Replaces the value at `place` if its key matches. Otherwise returns the value and changes nothing.
    #[inline]
    pub(crate) fn put<'py>(
        &mut self,
        place: usize,
        key: &Py<PyString>,
        value: Bound<'py, PyAny>,
    ) -> Result<(), Bound<'py, PyAny>> {
        match self.0.get_mut(place) {
            Some(entry) if entry.key == key.as_ptr() => {
                let before = std::mem::replace(&mut entry.value, value.into_ptr());
                // SAFETY: the dict held a reference to the old value, and holds one to the new value instead.
                unsafe { ffi::Py_DECREF(before) };
                Ok(())
            }
            _ => Err(value),
        }
    }
}

/// Iterator over the entries of a dict that does not change meanwhile.
pub(crate) struct Entries<'a, 'py> {
    dict: Borrowed<'a, 'py, PyDict>,
    /// The next entry if the layout is used, otherwise null.
    next: *const Entry,
    cursor: ffi::Py_ssize_t,
    left: usize,
}

impl<'a, 'py> Entries<'a, 'py> {
    #[inline]
    pub(crate) fn of(dict: Borrowed<'a, 'py, PyDict>, layout: Option<Layout>) -> Self {
        match layout.and_then(|layout| layout.table(dict.as_ptr())) {
            Some((first, count)) => Self {
                dict,
                next: first,
                cursor: 0,
                left: count,
            },
            None => Self {
                dict,
                next: std::ptr::null(),
                cursor: 0,
                left: dict.len(),
            },
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.left
    }

    /// Returns the next key and value, which the dict holds.
    ///
    /// INVARIANT: no Python code has run since the iterator was made.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(*mut ffi::PyObject, Borrowed<'a, 'py, PyAny>)> {
        self.left = self.left.checked_sub(1)?;
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the dict is alive, this thread is attached, and the dict is unchanged since the iterator was made,
        // so that `left` entries follow.
        unsafe {
            if self.next.is_null() {
                let dict = self.dict.as_ptr();
                if ffi::PyDict_Next(dict, &raw mut self.cursor, &raw mut key, &raw mut value) == 0 {
                    return None;
                }
            } else {
                let entry = *self.next;
                (key, value) = (entry.key, entry.value);
                self.next = self.next.add(1);
            }
            Some((key, Borrowed::from_ptr_or_opt(self.dict.py(), value)?))
        }
    }
}

/// Detects the layout, or returns why it is not used on this Python.
fn detect_layout(py: Python<'_>) -> PyResult<Result<Layout, String>> {
    match std::env::var(VARIABLE) {
        Err(_) => {}
        Ok(choice) if choice == "api" => return Ok(Err(format!("{VARIABLE}=api"))),
        Ok(choice) => {
            return Err(PyValueError::new_err(format!(
                "{VARIABLE} is `{choice}`; it is `api`, or not set"
            )));
        }
    }
    let version = py.version_info();
    if (version.major, version.minor) < (3, 11) || (version.major, version.minor) > (3, 13) {
        return Ok(Err(format!(
            "the layout of dicts in Python {}.{} is not known to this build",
            version.major, version.minor
        )));
    }
    let sys = py.import("sys")?;
    let implementation: String = sys.getattr("implementation")?.getattr("name")?.extract()?;
    // `t`: without the global lock; `d`: a debug build, whose objects have a longer head.
    let flags: String = sys.getattr("abiflags")?.extract()?;
    if implementation != "cpython" || !flags.is_empty() {
        return Ok(Err(format!(
            "{implementation} with the flags `{flags}` is not a usual CPython"
        )));
    }
    if size_of::<usize>() != 8 {
        return Ok(Err("not a 64-bit machine".to_owned()));
    }
    // SAFETY: the type of dicts is alive.
    let size = unsafe { (*py.get_type::<PyDict>().as_type_ptr()).tp_basicsize };
    if usize::try_from(size) != Ok(size_of::<DictObject>()) {
        return Ok(Err(format!(
            "a dict has {size} bytes instead of {}",
            size_of::<DictObject>()
        )));
    }
    Ok(match find_difference(py, Layout(()))? {
        Some(what) => Err(format!("the test at import failed: {what}")),
        None => Ok(Layout(())),
    })
}

/// Tests the layout and returns the first difference, or `None`.
fn find_difference(py: Python<'_>, layout: Layout) -> PyResult<Option<String>> {
    for length in [0, 1, 5, 6, 11, 200] {
        let dict = PyDict::new(py);
        let names: Vec<Py<PyString>> = (0..length)
            .map(|place| PyString::new(py, &format!("key {place}")).unbind())
            .collect();
        for (place, name) in names.iter().enumerate() {
            dict.set_item(name, place)?;
        }
        // A copy has a table of the same form.
        for dict in [dict.copy()?, dict] {
            let Some((_, count)) = layout.table(dict.as_ptr()) else {
                // Empty dicts may share one table.
                if length == 0 {
                    continue;
                }
                return Ok(Some(format!("a dict of {length} has no table")));
            };
            let mut entries = Entries::of(dict.as_borrowed(), Some(layout));
            for (place, name) in names.iter().enumerate() {
                let is_same = entries
                    .next()
                    .is_some_and(|(key, value)| key == name.as_ptr() && value.eq(place).unwrap_or(false));
                if !is_same {
                    return Ok(Some(format!("entry {place} of {length} is not read")));
                }
            }
            if count != length || entries.next().is_some() {
                return Ok(Some(format!("a dict of {length} has other entries")));
            }
            let value = PyString::new(py, "a value").into_any();
            if let Some((place, name)) = names.iter().enumerate().next_back() {
                let is_put = layout.slots(&dict).put(place, name, value.clone()).is_ok()
                    && dict.get_item(name)?.is_some_and(|found| found.is(&value))
                    && layout.slots(&dict).put(place + 1, name, value.clone()).is_err();
                drop(dict);
                // SAFETY: the value is alive. Only this function may hold a reference to it now.
                if !is_put || unsafe { ffi::Py_REFCNT(value.as_ptr()) } != 1 {
                    return Ok(Some(format!("the last of {length} is not put")));
                }
            }
        }
    }
    let unusual = PyDict::new(py);
    unusual.set_item("one", 1)?;
    unusual.set_item("two", 2)?;
    unusual.del_item("one")?;
    if layout.table(unusual.as_ptr()).is_some() {
        return Ok(Some("a dict with a hole is read".to_owned()));
    }
    let unusual = PyDict::new(py);
    unusual.set_item(1, 1)?;
    if layout.table(unusual.as_ptr()).is_some() {
        return Ok(Some("a dict of numbers is read".to_owned()));
    }
    Ok(None)
}
