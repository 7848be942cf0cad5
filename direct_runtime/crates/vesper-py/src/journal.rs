//! The entries of the journal as text, for the common kinds of values.

pub(crate) mod text;
