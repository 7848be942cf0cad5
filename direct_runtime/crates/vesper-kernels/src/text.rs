//! The `text` family.

use vesper_ir::TextKernels;

use crate::{Native, count};

impl TextKernels for Native {
    #[inline]
    fn text_length(&self, value: &str) -> i64 {
        // SEMANTICS: Rust's `len` counts UTF-8 bytes; Vesper, like Python, counts code points.
        count(value.chars().count())
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
