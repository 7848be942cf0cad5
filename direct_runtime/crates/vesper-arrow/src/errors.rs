//! The column of errors: null where a row has outputs.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::ArrowError;

use crate::plan::error_fields;

/// What is said of a row, in the words that an outcome has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub kind: String,
    pub code: String,
    pub place: Option<String>,
    pub message: String,
}

/// The column of so many rows, with what is said of those that have an error, in order.
pub fn error_column(length: usize, told: &[(usize, Told)]) -> Result<ArrayRef, ArrowError> {
    let builder = || StringBuilder::with_capacity(length, told.len() * 16);
    let (mut kinds, mut codes, mut places, mut messages) = (builder(), builder(), builder(), builder());
    let mut nulls = NullBufferBuilder::new(length);
    let mut told = told.iter().peekable();
    for row in 0..length {
        if let Some((_, error)) = told.next_if(|(at, _)| *at == row) {
            kinds.append_value(&error.kind);
            codes.append_value(&error.code);
            places.append_option(error.place.as_ref());
            messages.append_value(&error.message);
            nulls.append_non_null();
        } else {
            // Below a null there is nothing, but there has to be a row.
            for column in [&mut kinds, &mut codes, &mut places, &mut messages] {
                column.append_null();
            }
            nulls.append_null();
        }
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(kinds.finish()),
        Arc::new(codes.finish()),
        Arc::new(places.finish()),
        Arc::new(messages.finish()),
    ];
    Ok(Arc::new(StructArray::try_new_with_length(
        error_fields(),
        columns,
        nulls.finish(),
        length,
    )?))
}
