//! Kernels of the `boolean` family.

use std::sync::Arc;

use vesper_ir::{BooleanKernels, ErrorCode};

use crate::Native;

impl BooleanKernels for Native {
    #[inline]
    fn boolean_not(&self, value: bool) -> bool {
        !value
    }

    #[inline]
    fn boolean_equal(&self, left: bool, right: bool) -> bool {
        left == right
    }

    #[inline]
    fn boolean_not_equal(&self, left: bool, right: bool) -> bool {
        left != right
    }

    #[inline]
    fn boolean_text(&self, value: bool) -> Arc<str> {
        Arc::from(if value { "true" } else { "false" })
    }

    fn boolean_parse(&self, value: &str) -> Result<bool, ErrorCode> {
        match value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(ErrorCode::BadFormat),
        }
    }
}
