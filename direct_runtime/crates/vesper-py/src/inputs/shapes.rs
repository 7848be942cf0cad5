//! Conversion data of types, prepared when a node is loaded.
//!
//! A shape holds the interned Python strings of enum members and record fields beside their type, so that a
//! conversion looks nothing up.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use vesper_ir::{Node, RecordType, Type};

/// A type with its conversion data.
pub(crate) struct Shape {
    pub(crate) ty: Type,
    pub(crate) parts: Parts,
    /// True if reading an object of this type runs no Python code (`fast_inputs`).
    pub(crate) is_plain: bool,
}

pub(crate) enum Parts {
    /// For types without parts, and for json, whose parts have no types.
    None,
    Enum(Vec<Py<PyString>>),
    Optional(Arc<Shape>),
    Array(Arc<Shape>),
    Set(Arc<Shape>),
    Map(Arc<Shape>, Arc<Shape>),
    Record(Fields),
}

impl Parts {
    fn are_plain(&self, ty: &Type) -> bool {
        match self {
            Self::None => matches!(
                ty,
                Type::Boolean | Type::Integer | Type::Decimal | Type::Float | Type::Text
            ),
            Self::Enum(_) => true,
            Self::Optional(of) | Self::Array(of) => of.is_plain,
            Self::Set(_) | Self::Map(..) => false,
            Self::Record(fields) => {
                !fields.of.is_sparse() && fields.shapes.iter().all(|shape| shape.is_plain)
            }
        }
    }
}

/// The fields of a record, in declared order.
pub(crate) struct Fields {
    pub(crate) of: Arc<RecordType>,
    pub(crate) names: Vec<Py<PyString>>,
    pub(crate) shapes: Vec<Arc<Shape>>,
}

/// The shapes of types with parts, by the address of the type. Each type of a node is one allocation, which its shape
/// keeps alive.
pub(crate) struct Shapes(HashMap<usize, Arc<Shape>>);

impl Shapes {
    /// Prepares the shapes of all types of these nodes.
    pub(crate) fn new<'a>(py: Python<'_>, nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let mut shapes = Self(HashMap::new());
        for node in nodes {
            let inputs = node.inputs.iter().map(|input| &input.ty);
            let outputs = node.outputs.iter().chain(&node.errors).map(|output| &output.ty);
            let constants = node.constants.iter().map(|constant| &constant.ty);
            let expressions = node.expressions.iter().map(|expression| &expression.ty);
            for ty in inputs.chain(outputs).chain(constants).chain(expressions) {
                shapes.add(py, ty);
            }
        }
        shapes
    }

    /// Adds a type and its parts, each once. The depth of recursion is that of the type, which is limited.
    fn add(&mut self, py: Python<'_>, ty: &Type) -> Arc<Shape> {
        let address = ty.address();
        if let Some(known) = address.and_then(|address| self.0.get(&address)) {
            return Arc::clone(known);
        }
        let intern = |name: &str| PyString::intern(py, name).unbind();
        let parts = match ty {
            Type::Enum(of) => Parts::Enum(of.members().iter().map(|member| intern(member)).collect()),
            Type::Optional(of) => Parts::Optional(self.add(py, of)),
            Type::Array(of) => Parts::Array(self.add(py, of)),
            Type::Set(of) => Parts::Set(self.add(py, of)),
            Type::Map(of) => Parts::Map(self.add(py, &of.key), self.add(py, &of.value)),
            Type::Record(of) => Parts::Record(Fields {
                of: Arc::clone(of),
                names: of.fields().iter().map(|field| intern(&field.name)).collect(),
                shapes: of.fields().iter().map(|field| self.add(py, &field.ty)).collect(),
            }),
            _ => Parts::None,
        };
        let shape = Arc::new(Shape {
            ty: ty.clone(),
            is_plain: parts.are_plain(ty),
            parts,
        });
        if let Some(address) = address {
            self.0.insert(address, Arc::clone(&shape));
        }
        shape
    }

    /// Returns the shape of a type. A type of another node gets a new shape.
    pub(crate) fn of(&self, py: Python<'_>, ty: &Type) -> Arc<Shape> {
        let known = ty.address().and_then(|address| self.0.get(&address));
        known.map_or_else(|| Self(HashMap::new()).add(py, ty), Arc::clone)
    }
}
