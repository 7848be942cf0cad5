//! The column of errors, which is null for a row with outputs.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, StructArray};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use crate::plan::error_fields;

/// The error of a row, in the terms of an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    pub kind: Arc<str>,
    pub code: Arc<str>,
    pub place: Option<Arc<str>>,
    pub message: String,
}

/// Makes the error column of `length` rows from the errors of some rows, in order.
///
/// Most rows have no error, and need no work.
pub fn error_column(length: usize, row_errors: &[(usize, RowError)]) -> Result<ArrayRef, ArrowError> {
    let texts = |of: fn(&RowError) -> Option<&str>| -> Result<ArrayRef, ArrowError> {
        let mut column = SparseTexts::new(length);
        for (row, error) in row_errors {
            column.add(*row, of(error));
        }
        Ok(Arc::new(column.finish(length)?))
    };
    let columns = vec![
        texts(|error| Some(&error.kind))?,
        texts(|error| Some(&error.code))?,
        texts(|error| error.place.as_deref())?,
        texts(|error| Some(&error.message))?,
    ];
    let mut nulls = NullBufferBuilder::new(length);
    for (row, _) in row_errors {
        nulls.append_n_nulls(row.saturating_sub(nulls.len()));
        nulls.append_non_null();
    }
    nulls.append_n_nulls(length.saturating_sub(nulls.len()));
    let nulls = nulls.finish();
    Ok(Arc::new(StructArray::try_new_with_length(
        error_fields(),
        columns,
        nulls,
        length,
    )?))
}

/// A column of few texts among many nulls.
struct SparseTexts {
    bytes: Vec<u8>,
    /// Ends of the texts.
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl SparseTexts {
    fn new(length: usize) -> Self {
        let mut offsets = Vec::with_capacity(length + 1);
        offsets.push(0);
        Self {
            bytes: Vec::new(),
            offsets,
            nulls: NullBufferBuilder::new(length),
        }
    }

    /// Adds nulls up to this row. An offset beyond 32 bits makes `finish` fail.
    fn skip_to(&mut self, row: usize) {
        let end = i32::try_from(self.bytes.len()).unwrap_or(i32::MAX);
        self.nulls.append_n_nulls(row.saturating_sub(self.nulls.len()));
        self.offsets.resize(row + 1, end);
    }

    fn add(&mut self, row: usize, text: Option<&str>) {
        self.skip_to(row);
        if let Some(text) = text {
            self.bytes.extend_from_slice(text.as_bytes());
            self.offsets
                .push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
            self.nulls.append_non_null();
        }
    }

    fn finish(mut self, length: usize) -> Result<StringArray, ArrowError> {
        self.skip_to(length);
        StringArray::try_new(
            OffsetBuffer::new(ScalarBuffer::from(self.offsets)),
            Buffer::from_vec(self.bytes),
            self.nulls.finish(),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    use super::*;

    fn row_errors(code: &str, place: Option<&str>) -> RowError {
        RowError {
            kind: Arc::from("failed"),
            code: Arc::from(code),
            place: place.map(Arc::from),
            message: format!("it is {code}"),
        }
    }

    /// The kind, the code, the place and the message of an error.
    type Row = (String, String, Option<String>, String);

    fn shown(length: usize, row_errors: &[(usize, RowError)]) -> Vec<Option<Row>> {
        let column = error_column(length, row_errors).unwrap();
        let column = column.as_struct();
        let text = |place: usize, row: usize| {
            let texts = column.column(place).as_string::<i32>();
            texts.is_valid(row).then(|| texts.value(row).to_owned())
        };
        assert_eq!(column.len(), length);
        (0..length)
            .map(|row| {
                assert_eq!(column.is_valid(row), text(0, row).is_some());
                column.is_valid(row).then(|| {
                    (
                        text(0, row).unwrap(),
                        text(1, row).unwrap(),
                        text(2, row),
                        text(3, row).unwrap(),
                    )
                })
            })
            .collect()
    }

    #[test]
    fn rows_without_an_error_are_null() {
        assert_eq!(shown(0, &[]), []);
        assert_eq!(shown(3, &[]), [None, None, None]);
    }

    #[test]
    fn errors_stand_in_their_rows() {
        let found = shown(
            5,
            &[
                (0, row_errors("a", None)),
                (2, row_errors("b", Some("x"))),
                (3, row_errors("c", None)),
            ],
        );
        let row = |code: &str, place: Option<&str>| {
            Some((
                "failed".to_owned(),
                code.to_owned(),
                place.map(str::to_owned),
                format!("it is {code}"),
            ))
        };
        assert_eq!(
            found,
            [row("a", None), None, row("b", Some("x")), row("c", None), None]
        );
        assert_eq!(shown(1, &[(0, row_errors("a", None))]), [row("a", None)]);
    }
}
