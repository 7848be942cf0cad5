//! Access to Python objects through the private memory layouts of `CPython`.
//!
//! Each module tests its layout at import and falls back to the C API, or to text, on an unknown build.

#[allow(unsafe_code, reason = "reads and makes objects of a type that has no C API")]
pub(crate) mod decimals;
#[allow(
    unsafe_code,
    reason = "reads the entries of dicts, and writes into dicts of its own"
)]
pub(crate) mod dicts;
