//! The requests of a node in the form of the run loop, with the data that converts their values.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString};
use vesper_host::run::contract::{Plan, Setting};
use vesper_interp::problems::Path;
use vesper_interp::{Argument, Request};
use vesper_ir::budget::{Budget, OnExceeded, Scope};
use vesper_ir::flow::{Block, Statement};
use vesper_ir::{Node, Value, flow};

use crate::IrRejected;
use crate::inputs::checked_inputs::Conversion;
use crate::inputs::shapes::{Shape, Shapes};
use crate::inputs::values::to_python;

/// A request of the node with the data that converts its values.
pub(crate) struct PlannedRequest {
    plan: Plan,
    /// The result type in the form of Python.
    pub(crate) gives: Py<PyAny>,
    pub(crate) result: Arc<Shape>,
    arguments: Vec<PlannedArgument>,
    fixed: Py<PyDict>,
    effect: Py<PyString>,
    class: Py<PyString>,
    step: Arc<str>,
}

struct PlannedArgument {
    name: Arc<str>,
    key: Py<PyString>,
    shape: Arc<Shape>,
}

/// All requests of a node, by path without iterations.
pub(crate) struct RequestPlans {
    pub(crate) node_id: Arc<str>,
    requests: HashMap<String, PlannedRequest>,
}

impl RequestPlans {
    /// Reads the types from the documents of a node and of all nodes that it calls, and the rest from the `Plan`s of
    /// Python. Returns also the plans in the form of the run loop.
    pub(crate) fn new(
        py: Python<'_>,
        ir: &Bound<'_, PyBytes>,
        callees: &[Bound<'_, PyBytes>],
        requests: &Bound<'_, PyDict>,
    ) -> PyResult<(Self, HashMap<Arc<str>, Plan>)> {
        let load =
            |bytes: &[u8]| vesper_ir::load(bytes).map_err(|error| IrRejected::new_err(error.to_string()));
        let mut nodes = vec![load(ir.as_bytes())?];
        for callee in callees {
            nodes.push(load(callee.as_bytes())?);
        }
        let shapes = Shapes::new(py, &nodes);
        let mut declared = HashMap::new();
        if let Some(node) = nodes.first() {
            collect(node, &nodes, "", &mut declared);
        }
        let mut found = HashMap::new();
        let mut plans = HashMap::new();
        for (path, plan) in requests.iter() {
            let path: String = path.extract()?;
            let (node, statement) = declared
                .get(&path)
                .ok_or_else(|| PyValueError::new_err(format!("the node has no request `{path}`")))?;
            let planned = planned(py, &shapes, node, statement, &plan)?;
            plans.insert(Arc::from(path.as_str()), planned.plan.clone());
            found.insert(path, planned);
        }
        let node_id = nodes
            .first()
            .map_or_else(|| Arc::from(""), |node| Arc::from(&*node.node_id));
        Ok((
            Self {
                node_id,
                requests: found,
            },
            plans,
        ))
    }

    /// Returns the request at a path with iterations, such as `pay[1]/charge[2]`.
    pub(crate) fn of(&self, path: &str) -> Option<&PlannedRequest> {
        self.requests.get(path).or_else(|| {
            let plain = without_iterations(path);
            self.requests.get(&plain)
        })
    }
}

fn without_iterations(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut is_inside = false;
    for letter in path.chars() {
        match letter {
            '[' => is_inside = true,
            ']' if is_inside => is_inside = false,
            _ if is_inside => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Collects the requests of a node and of those that it calls. The checker rules out recursion.
fn collect<'a>(
    node: &'a Node,
    nodes: &'a [Node],
    prefix: &str,
    found: &mut HashMap<String, (&'a Node, &'a flow::Request)>,
) {
    walk(&node.body, &mut |statement| match statement {
        Statement::Request(request) => {
            found.insert(format!("{prefix}{}", request.name), (node, request));
        }
        Statement::Call(call) => {
            let hash = node
                .calls
                .iter()
                .find(|each| each.node == call.node)
                .map(|each| &*each.hash);
            let called = nodes
                .iter()
                .find(|each| Some(each.semantic_hash.as_str()) == hash);
            if let Some(called) = called {
                collect(called, nodes, &format!("{prefix}{}/", call.name), found);
            }
        }
        _ => {}
    });
}

fn walk<'a>(block: &'a Block, visit: &mut impl FnMut(&'a Statement)) {
    for statement in block {
        visit(statement);
        for block in statement.blocks() {
            walk(block, visit);
        }
    }
}

fn planned(
    py: Python<'_>,
    shapes: &Shapes,
    node: &Node,
    statement: &flow::Request,
    plan: &Bound<'_, PyAny>,
) -> PyResult<PlannedRequest> {
    let missing = || PyRuntimeError::new_err("engine fault: a request names an unknown expression");
    let result = &node.expression(statement.result).ok_or_else(missing)?.ty;
    let mut arguments = Vec::with_capacity(statement.arguments.len());
    let mut types = Vec::with_capacity(statement.arguments.len());
    for (name, index) in &statement.arguments {
        let ty = &node.expression(*index).ok_or_else(missing)?.ty;
        types.push((Arc::clone(name), ty.clone()));
        arguments.push(PlannedArgument {
            name: Arc::clone(name),
            key: PyString::intern(py, name).unbind(),
            shape: shapes.of(py, ty),
        });
    }
    let fixed = PyDict::new(py);
    // In declared order, which messages show.
    for name in statement.effect.declaration().fixed {
        if let Some((_, text)) = statement.fixed.iter().find(|(each, _)| &**each == *name) {
            fixed.set_item(name, &**text)?;
        }
    }
    let text = |name| plan.getattr(name)?.extract::<String>().map(Arc::<str>::from);
    let timeout: Option<f64> = plan.getattr(intern!(py, "timeout"))?.extract()?;
    let capabilities: Vec<String> = plan.getattr(intern!(py, "capabilities"))?.extract()?;
    Ok(PlannedRequest {
        gives: plan.getattr(intern!(py, "gives"))?.unbind(),
        result: shapes.of(py, result),
        arguments,
        fixed: fixed.unbind(),
        effect: PyString::intern(py, statement.effect.name()).unbind(),
        class: PyString::intern(py, statement.class.name()).unbind(),
        step: Arc::clone(&statement.name),
        plan: Plan {
            node_id: Arc::clone(&node.node_id),
            effect: statement.effect,
            target: text("target")?,
            class: statement.class,
            result: result.clone(),
            arguments: types,
            fixed: statement.fixed.clone(),
            capabilities: capabilities.iter().map(|each| Arc::from(each.as_str())).collect(),
            in_handler: plan.getattr(intern!(py, "in_handler"))?.extract()?,
            timeout: timeout.map(Duration::from_secs_f64),
            is_sensitive: plan.getattr(intern!(py, "is_sensitive"))?.extract()?,
            policy: Arc::new(settings(&plan.getattr(intern!(py, "policy"))?)?),
            limits_name: text("limits_name")?,
        },
    })
}

/// Reads the policies of a step.
pub(crate) fn settings(policy: &Bound<'_, PyAny>) -> PyResult<HashMap<Arc<str>, Setting>> {
    let mut found = HashMap::new();
    for (name, value) in policy.cast::<PyDict>()?.iter() {
        let name: String = name.extract()?;
        let setting = if name == "budgets" {
            Setting::Budgets(
                value
                    .try_iter()?
                    .map(|each| budget(&each?))
                    .collect::<PyResult<_>>()?,
            )
        } else if let Ok(number) = value.extract::<i64>() {
            Setting::Integer(number)
        } else if let Ok(text) = value.extract::<String>() {
            Setting::Text(Arc::from(text))
        } else {
            let texts: Vec<String> = value.extract()?;
            Setting::Texts(texts.into_iter().map(Arc::from).collect())
        };
        found.insert(Arc::from(name), setting);
    }
    Ok(found)
}

fn budget(given: &Bound<'_, PyAny>) -> PyResult<Budget> {
    let text = |name: &str| given.getattr(name)?.extract::<Option<String>>();
    let number = |name: &str| given.getattr(name)?.extract::<Option<i64>>();
    let scope = text("scope")?.and_then(|name| Scope::from_name(&name));
    let on_exceeded = text("on_exceeded")?.and_then(|name| OnExceeded::from_name(&name));
    let malformed = |field| PyValueError::new_err(format!("a budget has an unknown `{field}`"));
    Ok(Budget {
        scope: scope.ok_or_else(|| malformed("scope"))?,
        name: Arc::from(text("name")?.ok_or_else(|| malformed("name"))?),
        usd: text("usd")?.map(Arc::from),
        tokens: number("tokens")?,
        calls: number("calls")?,
        time_us: number("time_us")?,
        on_exceeded: on_exceeded.ok_or_else(|| malformed("on_exceeded"))?,
        alert_percent: number("alert_percent")?,
        depth: given.getattr("depth")?.extract()?,
    })
}

impl PlannedRequest {
    /// Builds a request from the objects of Python. One that differs from its declaration is a fault of its engine.
    pub(crate) fn request(&self, id: u64, path: String, given: &Given<'_, '_>) -> PyResult<Request> {
        let py = given.arguments.py();
        let is_declared =
            given.effect.eq(&self.effect)? && given.class.eq(&self.class)? && given.fixed.eq(&self.fixed)?;
        let mapping = given.arguments.cast::<PyMapping>()?;
        if !is_declared || mapping.len()? != self.arguments.len() {
            return Err(undeclared(&path));
        }
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            let object = mapping.get_item(argument.key.bind(py))?;
            let value = converted(&argument.shape, &object)?.ok_or_else(|| undeclared(&path))?;
            arguments.push(Argument {
                name: Arc::clone(&argument.name),
                ty: argument.shape.ty.clone(),
                value,
            });
        }
        let key: Option<String> = given.key.extract()?;
        Ok(Request {
            id,
            node: Arc::clone(&self.plan.node_id),
            step: Arc::clone(&self.step),
            path,
            effect: self.plan.effect,
            class: self.plan.class,
            key: key.map(Arc::from),
            fixed: self.plan.fixed.clone(),
            arguments,
            result: self.plan.result.clone(),
        })
    }

    /// Returns the value of a result; None for an object of another type.
    pub(crate) fn value(&self, object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
        converted(&self.result, object)
    }

    /// Returns the arguments of a request as a dict.
    pub(crate) fn arguments<'py>(&self, py: Python<'py>, request: &Request) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (planned, argument) in self.arguments.iter().zip(&request.arguments) {
            dict.set_item(
                planned.key.bind(py),
                to_python(py, &planned.shape, &argument.value)?,
            )?;
        }
        Ok(dict)
    }

    /// Returns the fields of a Python `Request` after its path: effect, class, fixed texts, arguments, key.
    pub(crate) fn fields<'py>(&self, py: Python<'py>, request: &Request) -> PyResult<Fields<'py>> {
        Ok((
            self.effect.bind(py).clone(),
            self.class.bind(py).clone(),
            self.fixed.bind(py).clone(),
            self.arguments(py, request)?,
        ))
    }
}

/// Effect, class, fixed texts and arguments of a request.
type Fields<'py> = (
    Bound<'py, PyString>,
    Bound<'py, PyString>,
    Bound<'py, PyDict>,
    Bound<'py, PyDict>,
);

/// The parts of a request of Python.
pub(crate) struct Given<'a, 'py> {
    pub(crate) effect: &'a Bound<'py, PyAny>,
    pub(crate) class: &'a Bound<'py, PyAny>,
    pub(crate) fixed: &'a Bound<'py, PyAny>,
    pub(crate) arguments: &'a Bound<'py, PyAny>,
    pub(crate) key: &'a Bound<'py, PyAny>,
}

fn undeclared(path: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "the request `{path}` is not the one that the node declares"
    ))
}

fn converted(shape: &Shape, object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let mut conversion = Conversion::default();
    let mut value = Value::Null;
    let fits = conversion.value(shape, object, &Path::Input("result"), &mut value)?;
    Ok((fits && conversion.problems.is_empty()).then_some(value))
}
