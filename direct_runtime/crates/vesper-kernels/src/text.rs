//! The `text` family.

use vesper_ir::TextKernels;

use crate::Native;

impl TextKernels for Native {
    #[inline]
    fn text_length(&self, value: &str) -> i64 {
        // SEMANTICS: Rust's `len` counts UTF-8 bytes; Vesper, like Python, counts code points. No text in memory has
        // more of them than an `i64` holds.
        i64::try_from(value.chars().count()).unwrap_or(i64::MAX)
    }

    #[inline]
    fn text_equal(&self, left: &str, right: &str) -> bool {
        left == right
    }

    #[inline]
    fn text_not_equal(&self, left: &str, right: &str) -> bool {
        left != right
    }
}
