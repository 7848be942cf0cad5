//! The entries of a dict where they stand in memory, where that is known; otherwise `PyDict_Next` goes through them.
//!
//! A call goes through as many entries as it has inputs, and through those of every record: to ask Python for each costs
//! as much as to read it. So the private layout of dicts is used as that of decimals is (`decimals`): on builds of
//! `CPython` that are in the table and pass a test at import; docs/how-to/use-the-rust-engine.md says how to switch it
//! off. Only a dict is read so that has a table of its own in which every key is a string and none was taken out.

use std::mem::size_of;

use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

/// Set to `api`, dicts are gone through by the functions of Python, whatever Python this is.
const VARIABLE: &str = "VESPER_DICTS";

/// A dict: `PyDictObject`.
#[repr(C)]
struct DictObject {
    head: ffi::PyObject,
    used: isize,
    version: u64,
    keys: *mut Keys,
    /// Where a table is shared with other dicts.
    values: *mut (),
}

/// Its table: `PyDictKeysObject`. The indices stand behind it, and the entries behind those.
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

/// One of them: `PyDictUnicodeEntry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
}

impl Entry {
    /// The value under this very string; nothing where it is under another.
    ///
    /// INVARIANT: since the entries were looked for no code of Python has run.
    #[inline]
    pub(crate) fn value_under<'a, 'py>(
        &'a self,
        key: &Bound<'py, PyString>,
    ) -> Option<Borrowed<'a, 'py, PyAny>> {
        if self.key != key.as_ptr() {
            return None;
        }
        // SAFETY: an entry that is there: its dict holds the value.
        unsafe { Borrowed::from_ptr_or_opt(key.py(), self.value) }
    }
}

/// The kind of a table in which every key is a string.
const STRINGS: u8 = 1;

/// Says that dicts have the layout above in this Python. Nobody has one where they have not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout(());

/// Looked up once.
pub(crate) fn layout(py: Python<'_>) -> PyResult<Option<Layout>> {
    Ok(cached_layout(py)?.as_ref().ok().copied())
}

fn cached_layout(py: Python<'_>) -> PyResult<&'static Result<Layout, String>> {
    static LAYOUT: PyOnceLock<Result<Layout, String>> = PyOnceLock::new();
    LAYOUT.get_or_try_init(py, || detect_layout(py))
}

/// How this build goes through dicts: `layout`, or `api: ` and why.
#[pyfunction]
pub(crate) fn dict_access(py: Python<'_>) -> PyResult<String> {
    Ok(match cached_layout(py)? {
        Ok(_) => "layout".to_owned(),
        Err(why) => format!("api: {why}"),
    })
}

impl Layout {
    /// The first entry of a dict and how many there are, if it is one that is read so.
    #[inline]
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "there are eight bytes of indices at least, so that entries are aligned as their table is"
    )]
    fn table(self, dict: *mut ffi::PyObject) -> Option<(*mut Entry, usize)> {
        let Self(()) = self;
        // SAFETY: a dict that is alive, or one of a subclass, which begins alike; who has a layout knows where its parts
        // stand. Its table is alive as long as nothing is put into it.
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

    /// The entries of a dict, if it is one that is read so. They are there until code of Python runs.
    #[inline]
    pub(crate) fn entries<'a>(self, dict: Borrowed<'a, '_, PyDict>) -> Option<&'a [Entry]> {
        let (first, count) = self.table(dict.as_ptr())?;
        // SAFETY: so many entries stand there, which nobody writes to meanwhile.
        Some(unsafe { std::slice::from_raw_parts(first, count) })
    }

    /// Where the values of a dict stand, which may be put there in the stead of others.
    ///
    /// INVARIANT: nobody else has the dict; neither what is there nor what is put there is an object that the collector
    /// of garbage looks at; and nothing else is done with the dict meanwhile.
    #[inline]
    pub(crate) fn slots<'a>(self, dict: &'a Bound<'_, PyDict>) -> Slots<'a> {
        match self.table(dict.as_ptr()) {
            // SAFETY: as above, and who calls has the dict alone.
            Some((first, count)) => Slots(unsafe { std::slice::from_raw_parts_mut(first, count) }),
            None => Slots::none(),
        }
    }
}

/// The entries of a dict that nobody else has.
pub(crate) struct Slots<'a>(&'a mut [Entry]);

impl Slots<'_> {
    /// Of a dict of which nothing is known.
    #[inline]
    pub(crate) fn none() -> Self {
        Self(&mut [])
    }

    /// Puts a value into the place of a key; gives it back where that stands elsewhere, and then nothing was done.
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
                // SAFETY: the dict had a reference to it, and has one to the other now.
                unsafe { ffi::Py_DECREF(before) };
                Ok(())
            }
            _ => Err(value),
        }
    }
}

/// Goes through the entries of a dict that nobody changes meanwhile.
pub(crate) struct Entries<'a, 'py> {
    dict: Borrowed<'a, 'py, PyDict>,
    /// The next one, where the layout is known and of use; otherwise null.
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

    /// The next key and value, which the dict holds; nothing where there is none.
    ///
    /// INVARIANT: since this was made no code of Python has run.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(*mut ffi::PyObject, Borrowed<'a, 'py, PyAny>)> {
        self.left = self.left.checked_sub(1)?;
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the dict is alive, this thread is attached, and nobody has changed the dict since: there are as many
        // entries as there were.
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

/// The layout, or why it is not used on this Python.
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
    // `t`: without the global lock; `d`: with checks for developers, whose objects have more in front.
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

/// What is otherwise than the layout says; nothing where all is as expected.
fn find_difference(py: Python<'_>, layout: Layout) -> PyResult<Option<String>> {
    for length in [0, 1, 5, 6, 11, 200] {
        let dict = PyDict::new(py);
        let names: Vec<Py<PyString>> = (0..length)
            .map(|place| PyString::new(py, &format!("key {place}")).unbind())
            .collect();
        for (place, name) in names.iter().enumerate() {
            dict.set_item(name, place)?;
        }
        // A copy has its table as the original has.
        for dict in [dict.copy()?, dict] {
            let Some((_, count)) = layout.table(dict.as_ptr()) else {
                // One that is empty may have a table that all such dicts share.
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
                // Only this function has it again.
                // SAFETY: the value is alive.
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
