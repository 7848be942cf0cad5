//! A node and those it calls, compiled, each once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use vesper_ir::flow::{CalledInput, CalledNode};
use vesper_ir::limits::CALL_DEPTH;
use vesper_ir::node::{Input, Output};
use vesper_ir::{Node, Rejected, Type};
use vesper_opt::{Rules, optimise};

use crate::bytecode::Code;
use crate::compile::{CompileFault, Form, compile, compile_optimised};
use crate::tier::{Hot, Tier, Tiering};
use crate::words::Shape;

/// A node, its bytecode, and the units of the nodes that it calls.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) node: Node,
    pub(crate) plain: Code,
    /// How the plain form is run.
    pub(crate) tier: Tier,
    /// By the place of the called node in `calls`.
    pub(crate) callees: Vec<Arc<Unit>>,
    /// How deep calls go from here; 1 where there are none.
    depth: usize,
    /// True when it, or a node it calls, asks for effects.
    pub(crate) asks: bool,
    /// True when it, or a node it calls, uses `now`.
    pub(crate) uses_now: bool,
}

/// The unit of a node; `others` are the documents of those it calls, and may hold more than these.
pub(crate) fn link(
    ir: &[u8],
    others: &[&[u8]],
    rules: Rules,
    tiering: Option<Arc<Tiering>>,
) -> Result<Arc<Unit>, Rejected> {
    let node = vesper_ir::load(ir)?;
    let mut linker = Linker {
        rules,
        tiering,
        waiting: HashMap::new(),
        done: HashMap::new(),
        open: HashSet::new(),
    };
    for bytes in others {
        let other =
            vesper_ir::load(bytes).map_err(|Rejected(what)| Rejected(format!("a called node: {what}")))?;
        let id = Arc::clone(&other.node_id);
        if linker.waiting.insert(Arc::clone(&id), other).is_some() {
            return Err(Rejected(format!("two documents are of the node `{id}`")));
        }
    }
    linker.unit(node, CALL_DEPTH)
}

struct Linker {
    /// What the plain form is optimised by.
    rules: Rules,
    /// Verified, not compiled.
    waiting: HashMap<Arc<str>, Node>,
    done: HashMap<Arc<str>, Arc<Unit>>,
    /// Those that are being linked: one of these is called by itself.
    open: HashSet<Arc<str>>,
    tiering: Option<Arc<Tiering>>,
}

impl Hot for Unit {
    fn make(&self) {
        self.tier.make(&self.plain, self.shape());
    }
}

impl Unit {
    /// How it is run without a frame, where its inputs and outputs have forms for that and nothing is asked or called.
    pub(crate) fn shape(&self) -> Option<Arc<Shape>> {
        let is_alone = self.callees.is_empty() && !self.asks && !self.uses_now;
        let shape = is_alone.then(|| Shape::of(&self.node, &self.plain))?;
        shape.map(Arc::new)
    }
}

impl Linker {
    /// The unit of a node, from which calls may go so deep.
    fn unit(&mut self, node: Node, depth: usize) -> Result<Arc<Unit>, Rejected> {
        let Some(below) = depth.checked_sub(1) else {
            return Err(too_deep());
        };
        self.open.insert(Arc::clone(&node.node_id));
        let mut callees = Vec::with_capacity(node.calls.len());
        for called in &node.calls {
            let unit = self.callee(called, below)?;
            matches(called, &unit.node)
                .map_err(|what| Rejected(format!("called node `{}`: {what}", called.node)))?;
            callees.push(unit);
        }
        self.open.remove(&node.node_id);
        let fault = |CompileFault(what)| Rejected(format!("a fault of the engine while compiling: {what}"));
        // Everything that people see is of the node as it was verified: marks, paths, names.
        let plain = if self.rules == Rules::NONE {
            compile(&node, Form::Plain)
        } else {
            compile_optimised(&optimise(&node, self.rules))
        };
        let plain = plain.map_err(fault)?;
        let deepest = callees.iter().map(|callee| callee.depth).max();
        let unit = Unit {
            depth: deepest.unwrap_or(0) + 1,
            asks: !plain.requests.is_empty() || callees.iter().any(|callee| callee.asks),
            uses_now: node.uses_now || callees.iter().any(|callee| callee.uses_now),
            tier: Tier::new(self.tiering.clone()),
            node,
            plain,
            callees,
        };
        if unit.depth > depth {
            return Err(too_deep());
        }
        unit.tier.loaded(&unit.plain, || unit.shape());
        Ok(Arc::new(unit))
    }

    fn callee(&mut self, called: &CalledNode, depth: usize) -> Result<Arc<Unit>, Rejected> {
        if self.open.contains(&called.node) {
            return Err(Rejected(format!("node `{}` calls itself", called.node)));
        }
        if let Some(unit) = self.done.get(&called.node) {
            return Ok(Arc::clone(unit));
        }
        let node = self.waiting.remove(&called.node);
        let node = node.ok_or_else(|| Rejected(format!("called node `{}`: it is not there", called.node)))?;
        let unit = self.unit(node, depth)?;
        self.done.insert(Arc::clone(&called.node), Arc::clone(&unit));
        Ok(unit)
    }
}

fn too_deep() -> Rejected {
    Rejected(format!("nodes call each other more than {CALL_DEPTH} deep"))
}

/// Refuses a node that is not the one that its caller was checked with.
fn matches(called: &CalledNode, node: &Node) -> Result<(), &'static str> {
    // Written types are no larger than the documents they stand in, so comparing them takes no longer than reading.
    let same_outputs = |left: &[Output], right: &[Output]| {
        let mut pairs = left.iter().zip(right);
        left.len() == right.len() && pairs.all(|(left, right)| left.name == right.name && left.ty == right.ty)
    };
    let same_input = |(called, own): (&CalledInput, &Input)| {
        let is_optional = own.default.is_some() || matches!(own.ty, Type::Optional(_));
        called.name == own.name && called.ty == own.ty && called.is_optional == is_optional
    };
    if *called.hash != *node.semantic_hash {
        return Err("it has another semantic hash");
    }
    let mut inputs = called.inputs.iter().zip(&node.inputs);
    if called.inputs.len() != node.inputs.len() || !inputs.all(same_input) {
        return Err("it has other inputs");
    }
    if !same_outputs(&called.success, &node.outputs) {
        return Err("it has other outputs");
    }
    if !same_outputs(&called.error, &node.errors) {
        return Err("it has other errors");
    }
    Ok(())
}
