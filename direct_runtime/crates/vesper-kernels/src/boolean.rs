//! Kernels of the `boolean` family.

use std::sync::Arc;

use vesper_ir::BooleanKernels;

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
}
