//! Conversion between Python objects and values of the direct engine.
//!
//! `checked_inputs` applies every conversion rule and reports all problems; `fast_inputs` reads the common forms and
//! gives up on any other. Both use `shapes`, the conversion data that a node prepares when it is loaded.

pub(crate) mod checked_inputs;
#[allow(unsafe_code, reason = "iterates dicts with `PyDict_Next`")]
pub(crate) mod dict_fields;
#[allow(
    unsafe_code,
    reason = "borrows the entries of dicts and lists without counting references"
)]
pub(crate) mod fast_inputs;
pub(crate) mod json_values;
pub(crate) mod problems;
pub(crate) mod shapes;
pub(crate) mod times;
pub(crate) mod values;
