//! Kernels of the `table` family: results of the matching rows of a decision table.

use vesper_ir::{ErrorCode, TableKernels, Value};

use crate::Native;

impl TableKernels for Native {
    fn table_only(&self, results: &[Value]) -> Result<Option<Value>, ErrorCode> {
        match results {
            [] => Ok(None),
            [only] => Ok(Some(only.clone())),
            _ => Err(ErrorCode::TableConflict),
        }
    }

    fn table_same(&self, results: &[Value]) -> Result<Option<Value>, ErrorCode> {
        let Some((first, others)) = results.split_first() else {
            return Ok(None);
        };
        for other in others {
            if !first.is_equal(other) {
                return Err(ErrorCode::TableConflict);
            }
        }
        Ok(Some(first.clone()))
    }

    #[inline]
    fn table_allowed(&self, value: &Value, is_allowed: bool) -> Result<Value, ErrorCode> {
        if is_allowed {
            Ok(value.clone())
        } else {
            Err(ErrorCode::InvalidArgument)
        }
    }
}
