//! Python strings that are made once for a loaded node and those it calls: the members of its enums and the fields of its records.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyString;
use vesper_ir::{Node, Type};

/// The strings of each type, by its address: the types of a node are each one allocation, and the node keeps them.
pub(crate) struct Names(HashMap<usize, Vec<Py<PyString>>>);

impl Names {
    /// The names of all types of these nodes.
    pub(crate) fn new<'a>(py: Python<'_>, nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let mut names = Self(HashMap::new());
        for node in nodes {
            let inputs = node.inputs.iter().map(|input| &input.ty);
            let outputs = node.outputs.iter().chain(&node.errors).map(|output| &output.ty);
            let constants = node.constants.iter().map(|constant| &constant.ty);
            let expressions = node.expressions.iter().map(|expression| &expression.ty);
            for ty in inputs.chain(outputs).chain(constants).chain(expressions) {
                names.add(py, ty);
            }
        }
        names
    }

    /// Goes as deep as the type does, which is limited, and into each part once.
    fn add(&mut self, py: Python<'_>, ty: &Type) {
        let Some(address) = ty.address() else {
            return;
        };
        if self.0.contains_key(&address) {
            return;
        }
        let intern = |name: &str| PyString::intern(py, name).unbind();
        let strings = match ty {
            Type::Enum(of) => of.members().iter().map(|member| intern(member)).collect(),
            Type::Record(of) => of.fields().iter().map(|field| intern(&field.name)).collect(),
            _ => Vec::new(),
        };
        self.0.insert(address, strings);
        match ty {
            Type::Set(of) | Type::Array(of) | Type::Optional(of) => self.add(py, of),
            Type::Map(of) => {
                self.add(py, &of.key);
                self.add(py, &of.value);
            }
            Type::Record(of) => {
                for field in of.fields() {
                    self.add(py, &field.ty);
                }
            }
            // Without parts.
            _ => {}
        }
    }

    /// The members of an enum or the fields of a record, in declared order.
    pub(crate) fn of(&self, ty: &Type) -> &[Py<PyString>] {
        let found = ty.address().and_then(|address| self.0.get(&address));
        found.map_or(&[], Vec::as_slice)
    }
}
