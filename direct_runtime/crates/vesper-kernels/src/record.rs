//! Kernels of the `record` family.

use vesper_ir::value::are_equal;
use vesper_ir::{RecordKernels, Value};

use crate::Native;

impl RecordKernels for Native {
    fn record_equal(&self, left: &[Value], right: &[Value]) -> bool {
        are_equal(left, right)
    }

    fn record_not_equal(&self, left: &[Value], right: &[Value]) -> bool {
        !are_equal(left, right)
    }
}
