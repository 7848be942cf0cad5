//! What is made once for the types of a loaded node and of those it calls: the Python strings of enum members and of
//! record fields, each beside its type, so that a conversion looks nothing up.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use vesper_ir::{Node, RecordType, Type};

/// A type, and what its conversion needs.
pub(crate) struct Shape {
    pub(crate) ty: Type,
    pub(crate) parts: Parts,
    /// True where no object of this type runs code of Python while it is read (`swift`).
    pub(crate) is_plain: bool,
}

pub(crate) enum Parts {
    /// Of a type without parts, and of json, whose parts have no types.
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
            Self::Record(fields) => fields.shapes.iter().all(|shape| shape.is_plain),
        }
    }
}

/// The fields of a record, in declared order.
pub(crate) struct Fields {
    pub(crate) of: Arc<RecordType>,
    pub(crate) names: Vec<Py<PyString>>,
    pub(crate) shapes: Vec<Arc<Shape>>,
}

/// The shapes of the types that have parts, by their address: the types of a node are each one allocation, and the shape
/// keeps it.
pub(crate) struct Shapes(HashMap<usize, Arc<Shape>>);

impl Shapes {
    /// The shapes of all types of these nodes.
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

    /// Goes as deep as the type does, which is limited, and into each part once.
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

    /// The shape of a type, which may be one of no node that was loaded here.
    pub(crate) fn of(&self, py: Python<'_>, ty: &Type) -> Arc<Shape> {
        let known = ty.address().and_then(|address| self.0.get(&address));
        known.map_or_else(|| Self(HashMap::new()).add(py, ty), Arc::clone)
    }
}
