//! The entries of the journal as text, for the common kinds of values.

pub(crate) mod line;
pub(crate) mod text;
