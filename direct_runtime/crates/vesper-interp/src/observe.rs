//! Observations of a run: the marks of a trace, the path, and the fingerprint of the values it read.

pub(crate) mod fingerprint;
pub(crate) mod marks;
pub(crate) mod path;
