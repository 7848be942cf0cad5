//! Conversion between `decimal.Decimal` objects and decimals, through memory layout or text.
//!
//! Python has no C API for decimals, and their text costs more than the rest of a call. On the builds of `CPython`
//! listed below that pass a test at import, this module therefore uses the private layout of `_decimal`;
//! docs/how-to/use-the-direct-engine.md describes how to switch it off. Only exact `Decimal` objects are read this way,
//! because the layout of a subclass is unknown.

use std::mem::{offset_of, size_of};

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};
use vesper_ir::Decimal;
use vesper_ir::decimal::{MAX_SCALE, ParseDecimalError};

/// Environment variable; `text` forces the conversion through text on any Python.
const VARIABLE: &str = "VESPER_DECIMALS";

/// Base of the words of a coefficient, 10^19.
const WORD_BASE: u128 = 10_000_000_000_000_000_000;

/// A number of `_decimal`: `mpd_t` of libmpdec.
#[repr(C)]
struct Mpd {
    flags: u8,
    exponent: isize,
    digits: isize,
    length: isize,
    allocated: isize,
    words: *mut u64,
}

/// A decimal object: `PyDecObject` of `_decimal`.
#[repr(C)]
struct DecimalObject {
    head: ffi::PyObject,
    hash: ffi::Py_hash_t,
    number: Mpd,
    /// Target of `words` for a coefficient that fits.
    own_words: [u64; 4],
}

const NEGATIVE: u8 = 1;
/// Flags of infinities and of quiet and signalling NaNs.
const SPECIAL: u8 = 2 | 4 | 8;
/// Flags of a number whose structure and words libmpdec did not allocate.
const STATIC: u8 = 16 | 32;

/// Reader and maker of `Decimal` objects.
pub(crate) struct Decimals {
    class: Py<PyType>,
    /// `Decimal.__str__` of the base type.
    to_text: Py<PyAny>,
    /// Allocates an object of the class; only its head is initialised.
    allocate: Allocate,
    /// Reason for using text; `None` if the layout is used.
    why_text: Option<String>,
}

type Allocate = unsafe extern "C" fn(*mut ffi::PyTypeObject) -> *mut ffi::PyObject;

/// A number as read from memory.
#[derive(Debug, PartialEq, Eq)]
struct Raw {
    is_negative: bool,
    coefficient: u128,
    exponent: isize,
}

/// Returns the converter, which is created once.
#[inline]
pub(crate) fn decimals(py: Python<'_>) -> PyResult<&'static Decimals> {
    static DECIMALS: PyOnceLock<Decimals> = PyOnceLock::new();
    match DECIMALS.get(py) {
        Some(decimals) => Ok(decimals),
        None => DECIMALS.get_or_try_init(py, || Decimals::new(py)),
    }
}

/// Returns how this build converts decimals: `layout`, or `text: ` and the reason.
#[pyfunction]
pub(crate) fn decimal_access(py: Python<'_>) -> PyResult<String> {
    Ok(match &decimals(py)?.why_text {
        None => "layout".to_owned(),
        Some(why) => format!("text: {why}"),
    })
}

impl Decimals {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let class = py.import("decimal")?.getattr("Decimal")?.cast_into::<PyType>()?;
        let to_text = class.getattr("__str__")?.unbind();
        let allocate = allocator(&class);
        let mut decimals = Self {
            class: class.unbind(),
            to_text,
            allocate,
            why_text: None,
        };
        decimals.why_text = why_text(py, &decimals)?;
        Ok(decimals)
    }

    /// Reads the coefficient and the scale of a small exact `Decimal` from memory.
    ///
    /// Returns `None` for other types, long numbers and unknown layouts. The result is within the limits of a
    /// decimal.
    #[inline]
    pub(crate) fn read_small(&self, object: &Bound<'_, PyAny>) -> Option<(i128, u16)> {
        if self.why_text.is_some() || !self.is_exact(object) {
            return None;
        }
        // Any other number is read by `read`, which applies all rules.
        let raw = self.raw(object)?;
        let scale = u16::try_from(raw.exponent.checked_neg()?).ok()?;
        let coefficient = i128::try_from(raw.coefficient).ok()?;
        let coefficient = if raw.is_negative {
            -coefficient
        } else {
            coefficient
        };
        (scale <= MAX_SCALE).then_some((coefficient, scale))
    }

    /// Reads a number like `read_small`, for coefficients of 64 bits, which are the most common.
    #[inline]
    pub(crate) fn read_short(&self, object: &Bound<'_, PyAny>) -> Option<(i64, u16)> {
        if self.why_text.is_some() || !self.is_exact(object) {
            return None;
        }
        // SAFETY: as in `raw`.
        let (flags, exponent, length, low) = unsafe {
            let number = &(*object.as_ptr().cast::<DecimalObject>()).number;
            (number.flags, number.exponent, number.length, *number.words)
        };
        let scale = exponent.wrapping_neg().cast_unsigned();
        if flags & SPECIAL != 0 || length != 1 || scale > usize::from(MAX_SCALE) {
            return None;
        }
        let magnitude = i64::try_from(low).ok()?;
        let coefficient = if flags & NEGATIVE != 0 {
            -magnitude
        } else {
            magnitude
        };
        Some((coefficient, u16::try_from(scale).unwrap_or(MAX_SCALE)))
    }

    /// Returns true if `read_small` reads the object without loss: it drops the sign of a zero.
    pub(crate) fn is_plain(&self, object: &Bound<'_, PyAny>) -> bool {
        match self.read_small(object) {
            Some((0, _)) => self.raw(object).is_some_and(|raw| !raw.is_negative),
            found => found.is_some(),
        }
    }

    #[inline]
    fn is_exact(&self, object: &Bound<'_, PyAny>) -> bool {
        object.get_type_ptr() == self.class.as_ptr().cast()
    }

    /// Reads a finite number of at most 38 digits from memory.
    ///
    /// INVARIANT: the object is exactly a `Decimal`, and its basic size is that of `DecimalObject`.
    #[inline]
    fn raw(&self, object: &Bound<'_, PyAny>) -> Option<Raw> {
        debug_assert!(self.is_exact(object), "only exact decimals have the layout");
        // SAFETY: the object is alive and exactly of the C type `_decimal.Decimal`, whose basic size was compared
        // with this struct. A decimal is immutable except for its hash, which is not read. `words` points to at least
        // `length` words, and no more are read.
        let (flags, exponent, low, high) = unsafe {
            let number = &(*object.as_ptr().cast::<DecimalObject>()).number;
            let (low, high) = match number.length {
                1 => (*number.words, 0),
                2 => (*number.words, *number.words.add(1)),
                _ => return None,
            };
            (number.flags, number.exponent, low, high)
        };
        if flags & SPECIAL != 0 {
            return None;
        }
        Some(Raw {
            is_negative: flags & NEGATIVE != 0,
            // Each word is less than 10^19, so the result is less than 10^38. The branch avoids a multiplication of
            // 128 bits.
            coefficient: if high == 0 {
                u128::from(low)
            } else {
                u128::from(high)
                    .wrapping_mul(WORD_BASE)
                    .wrapping_add(u128::from(low))
            },
            exponent,
        })
    }

    /// Reads a decimal, or returns why it is out of range. Returns `None` for other objects.
    pub(crate) fn read(
        &self,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Result<Decimal, ParseDecimalError>>> {
        if let Some(number) = self.read_small(object)
            && let Ok(number) = Decimal::new(number.0, number.1)
        {
            return Ok(Some(Ok(number)));
        }
        // Not `isinstance`: an object may claim any `__class__`.
        if !self.is_exact(object) && !object.get_type().is_subclass(self.class.bind(object.py()))? {
            return Ok(None);
        }
        let text = self.to_text.bind(object.py()).call1((object,))?;
        Ok(Some(Decimal::parse(text.cast_into::<PyString>()?.to_str()?)))
    }

    /// Returns a `Decimal` of this number.
    #[inline]
    pub(crate) fn object<'py>(&self, py: Python<'py>, number: &Decimal) -> PyResult<Bound<'py, PyAny>> {
        match number.as_small() {
            Some((coefficient, scale)) if self.why_text.is_none() => self.make(py, coefficient, scale),
            _ => self.class.bind(py).call1((number.to_string(),)),
        }
    }

    /// Makes a `Decimal` of a 64-bit coefficient without running Python code. Returns `None` if the layout is
    /// unknown.
    #[inline]
    pub(crate) fn make_short<'py>(
        &self,
        py: Python<'py>,
        coefficient: i64,
        scale: u16,
    ) -> Option<Bound<'py, PyAny>> {
        if self.why_text.is_some() {
            return None;
        }
        let word = coefficient.unsigned_abs();
        let digits = word.checked_ilog10().unwrap_or(0) + 1;
        self.make_from_words(py, coefficient < 0, [word, 0, 0], 1, digits, scale)
            .ok()
    }

    /// Makes a `Decimal` in memory.
    ///
    /// INVARIANT: the basic size of a `Decimal` is that of `DecimalObject`.
    #[inline]
    fn make<'py>(&self, py: Python<'py>, coefficient: i128, scale: u16) -> PyResult<Bound<'py, PyAny>> {
        let magnitude = coefficient.unsigned_abs();
        let (words, length, digits) = match u64::try_from(magnitude) {
            // The common case; a division of 128 bits is a function call.
            Ok(word) if magnitude < WORD_BASE => ([word, 0, 0], 1, word.checked_ilog10().unwrap_or(0) + 1),
            _ => long_words(magnitude),
        };
        self.make_from_words(py, coefficient < 0, words, length, digits, scale)
    }

    /// Makes a `Decimal` from the words of its coefficient, of which `length` are used.
    #[inline]
    fn make_from_words<'py>(
        &self,
        py: Python<'py>,
        is_negative: bool,
        words: [u64; 3],
        length: isize,
        digits: u32,
        scale: u16,
    ) -> PyResult<Bound<'py, PyAny>> {
        let class: *mut ffi::PyTypeObject = self.class.as_ptr().cast();
        // SAFETY: `allocate` returns an object with a reference count of one and its type set, tracked by the
        // collector if the type requires it, or null and an error.
        let object = unsafe { Bound::from_owned_ptr_or_err(py, (self.allocate)(class))? };
        // SAFETY: the object is new, has no other owner, and is exactly a `Decimal` of the size of this struct. This
        // block writes every field behind the head. The words are in the object itself, as `_decimal` stores those of
        // short numbers, and it never frees them.
        unsafe {
            let made = object.as_ptr().cast::<DecimalObject>();
            (*made).hash = -1;
            let [low, middle, high] = words;
            (*made).own_words = [low, middle, high, 0];
            (*made).number = Mpd {
                flags: STATIC | if is_negative { NEGATIVE } else { 0 },
                exponent: -isize::try_from(scale).unwrap_or(0),
                digits: isize::try_from(digits).unwrap_or(0),
                length,
                allocated: 4,
                words: (&raw mut (*made).own_words).cast(),
            };
        }
        Ok(object)
    }
}

/// Splits a long coefficient into words; returns the words, their number and the number of digits.
#[cold]
fn long_words(magnitude: u128) -> ([u64; 3], isize, u32) {
    // Three words hold the at most 39 digits. Each remainder is less than 2^64.
    let words = [
        magnitude % WORD_BASE,
        magnitude / WORD_BASE % WORD_BASE,
        magnitude / WORD_BASE / WORD_BASE,
    ];
    let words = words.map(|word| u64::try_from(word).unwrap_or(u64::MAX));
    let length = match words {
        [_, 0, 0] => 1,
        [_, _, 0] => 2,
        _ => 3,
    };
    (words, length, magnitude.checked_ilog10().unwrap_or(0) + 1)
}

/// Returns the allocation function of the class.
///
/// `tp_alloc` of a type also serves types with a collector or a length, and clears memory that is overwritten at
/// once. `_decimal` allocates with `PyObject_New`, so this does the same if the type has neither.
fn allocator(class: &Bound<'_, PyType>) -> Allocate {
    let class = class.as_type_ptr();
    // SAFETY: the type is alive.
    let (flags, items, allocate) = unsafe { ((*class).tp_flags, (*class).tp_itemsize, (*class).tp_alloc) };
    let is_usual = allocate
        .is_some_and(|allocate| std::ptr::fn_addr_eq(allocate, ffi::PyType_GenericAlloc as ffi::allocfunc));
    if is_usual && items == 0 && flags & ffi::Py_TPFLAGS_HAVE_GC == 0 {
        allocate_plainly
    } else {
        allocate_by_type
    }
}

/// Allocates with `PyObject_New`.
///
/// SAFETY: the type is alive, and this thread is attached.
unsafe extern "C" fn allocate_plainly(class: *mut ffi::PyTypeObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { ffi::PyObject_New(class) }
}

/// Allocates with `tp_alloc` of the type.
///
/// SAFETY: the type is alive, and this thread is attached.
unsafe extern "C" fn allocate_by_type(class: *mut ffi::PyTypeObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let Some(allocate) = (*class).tp_alloc else {
            let message = c"engine fault: Decimal has no allocator";
            ffi::PyErr_SetString(ffi::PyExc_RuntimeError, message.as_ptr());
            return std::ptr::null_mut();
        };
        allocate(class, 0)
    }
}

/// Returns why this Python needs text; `None` if the layout is known and passes its test.
fn why_text(py: Python<'_>, decimals: &Decimals) -> PyResult<Option<String>> {
    match std::env::var(VARIABLE) {
        Err(_) => {}
        Ok(choice) if choice == "text" => return Ok(Some(format!("{VARIABLE}=text"))),
        Ok(choice) => {
            return Err(PyValueError::new_err(format!(
                "{VARIABLE} is `{choice}`; it is `text`, or not set"
            )));
        }
    }
    let version = py.version_info();
    if (version.major, version.minor) < (3, 11) || (version.major, version.minor) > (3, 13) {
        return Ok(Some(format!(
            "the layout of decimals in Python {}.{} is not known to this build",
            version.major, version.minor
        )));
    }
    let sys = py.import("sys")?;
    let implementation: String = sys.getattr("implementation")?.getattr("name")?.extract()?;
    // `t`: without the global lock; `d`: a debug build, whose objects have a longer head.
    let flags: String = sys.getattr("abiflags")?.extract()?;
    if implementation != "cpython" || !flags.is_empty() {
        return Ok(Some(format!(
            "{implementation} with the flags `{flags}` is not a usual CPython"
        )));
    }
    if size_of::<usize>() != 8 || cfg!(target_endian = "big") {
        return Ok(Some("not a 64-bit little-endian machine".to_owned()));
    }
    let native = py.import("_decimal").and_then(|module| module.getattr("Decimal"));
    if !native.is_ok_and(|native| native.is(&decimals.class)) {
        return Ok(Some("decimal.Decimal is not that of _decimal".to_owned()));
    }
    // SAFETY: `class` is a type and alive.
    let size = unsafe { (*decimals.class.as_ptr().cast::<ffi::PyTypeObject>()).tp_basicsize };
    if usize::try_from(size) != Ok(size_of::<DecimalObject>()) {
        return Ok(Some(format!(
            "a Decimal has {size} bytes instead of {}",
            size_of::<DecimalObject>()
        )));
    }
    Ok(find_difference(py, decimals)?.map(|what| format!("the test at import failed: {what}")))
}

/// Tests the layout and returns the first difference, or `None`.
fn find_difference(py: Python<'_>, decimals: &Decimals) -> PyResult<Option<String>> {
    // Reading comes first: of numbers whose words are inside the object.
    let class = decimals.class.bind(py);
    let is_tracked = py.import("gc")?.getattr("is_tracked")?;
    // A context of its own, because the current context may trap these operations.
    let context = py.import("decimal")?.getattr("Context")?.call1((100,))?;
    for text in SAMPLES {
        let sample = class.call1((*text,))?;
        let (sign, digits, exponent): (u8, Bound<'_, PyTuple>, isize) =
            sample.call_method0("as_tuple")?.extract()?;
        let mut coefficient = 0_u128;
        for digit in digits.extract::<Vec<u128>>()? {
            coefficient = coefficient * 10 + digit;
        }
        let expected = Raw {
            is_negative: sign == 1,
            coefficient,
            exponent,
        };
        if !has_own_words(&sample) || decimals.raw(&sample) != Some(expected) {
            return Ok(Some(format!("{text} is not read")));
        }
    }
    for text in ["NaN", "-sNaN12", "Infinity", "-Infinity", LONG] {
        if decimals.raw(&class.call1((text,))?).is_some() {
            return Ok(Some(format!("{text} is read as a short number")));
        }
    }
    for text in SAMPLES.iter().chain(MORE_SAMPLES) {
        let Ok(number) = Decimal::parse(text) else {
            return Ok(Some(format!("{text} is no decimal")));
        };
        let Some((coefficient, scale)) = number.as_small() else {
            return Ok(Some(format!("{text} is not short")));
        };
        let made = decimals.make(py, coefficient, scale)?;
        // Plain text, from which returned decimals are made without the layout.
        let expected = class.call1((number.to_string(),))?;
        let is_same = made.get_type().is(class)
            && has_own_words(&made)
            && describe(&context, &made)? == describe(&context, &expected)?
            && made.eq(&expected)?
            && is_tracked.call1((&made,))?.eq(is_tracked.call1((&expected,))?)?
            && references(&made) == references(&expected);
        if !is_same {
            return Ok(Some(format!("{text} is not made")));
        }
    }
    Ok(None)
}

/// Returns what Python computes from a number, as one text for comparison.
fn describe(context: &Bound<'_, PyAny>, number: &Bound<'_, PyAny>) -> PyResult<String> {
    let parts = number.call_method0("as_tuple")?.repr()?;
    let size = number.call_method0("__sizeof__")?.repr()?;
    let sum = context.call_method1("add", (number, number))?.repr()?;
    let product = context.call_method1("multiply", (number, number))?.repr()?;
    let hash = number.hash()?;
    Ok(format!(
        "{} {parts} {size} {sum} {product} {hash}",
        number.repr()?
    ))
}

fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: the object is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

/// Returns true if the words of a number are where the layout expects them.
///
/// INVARIANT: the object is exactly a `Decimal`, and its basic size is that of `DecimalObject`.
fn has_own_words(object: &Bound<'_, PyAny>) -> bool {
    let own = object.as_ptr().addr() + offset_of!(DecimalObject, own_words);
    // SAFETY: as in `raw`; the pointer is read and not followed.
    let number = unsafe { &(*object.as_ptr().cast::<DecimalObject>()).number };
    number.words.addr() == own && number.allocated == 4 && number.flags & STATIC == STATIC
}

/// Numbers of at most 38 digits, which can be read and made.
const SAMPLES: &[&str] = &[
    "0",
    "1",
    "-1",
    "9.99",
    "-0.00",
    "0.0000001",
    "1000000000000000000",
    "9999999999999999999",
    "10000000000000000000",
    "-18446744073709551616.5",
    "99999999999999999999999999999999999999",
    "-9999999999999999999000000000000000.0001",
    "1E-1000",
];

/// Numbers of 39 digits, which can only be made.
const MORE_SAMPLES: &[&str] = &[
    "100000000000000000000000000000000000000",
    "-170141183460469231731687303715884105728",
    "1.70141183460469231731687303715884105727",
];

/// The longest number whose words are inside the object: 76 digits.
const LONG: &str = "1234567890123456789012345678901234567890123456789012345678901234567890123456";
