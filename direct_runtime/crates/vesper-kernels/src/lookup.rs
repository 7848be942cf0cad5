//! Kernels of the `lookup` family.

use std::sync::Arc;

use vesper_ir::{LookupKernels, Table, Value};

use crate::Native;

impl LookupKernels for Native {
    fn lookup_find(&self, table: &Table, keys: &[Value]) -> Option<Value> {
        table.find(keys)
    }

    fn lookup_find_all(&self, table: &Table, keys: &[Value]) -> Arc<[Value]> {
        table.find_all(keys)
    }
}
