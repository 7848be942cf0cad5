//! Linking: compiles a node and the nodes that it calls, each once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use vesper_ir::flow::{CalledInput, CalledNode};
use vesper_ir::limits::CALL_DEPTH;
use vesper_ir::node::{ExpressionIndex, Input, Output};
use vesper_ir::{Node, Rejected, Type};
use vesper_opt::{Proofs, Rules, optimise_proven};

use crate::bytecode::Code;
use crate::compile::{CompileFault, Form, compile, compile_optimised};
use crate::tier::words::Shape;
use crate::tier::{Hot, Tier, Tiering};

/// A node, its bytecode, and the units of the nodes that it calls.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) node: Node,
    /// What the plain form leaves out.
    pub(crate) proofs: Proofs,
    pub(crate) plain: Code,
    /// The tier of the plain form.
    pub(crate) tier: Tier,
    /// Indexed as `calls` of the node.
    pub(crate) callees: Vec<Arc<Unit>>,
    /// The depth of the call tree from here; 1 without calls.
    depth: usize,
    /// True if the node or a callee makes requests.
    pub(crate) asks: bool,
    /// True if the node or a callee uses `now`.
    pub(crate) uses_now: bool,
}

/// Proven clauses and calls of the node with a semantic hash, by index of expression.
#[derive(Clone, Debug)]
pub struct ProvenChecks {
    pub hash: String,
    pub clauses: Vec<ExpressionIndex>,
    pub calls: Vec<ExpressionIndex>,
}

/// Links a node. `others` holds the documents of its callees and may hold more; `proven` may name other nodes too.
pub(crate) fn link(
    ir: &[u8],
    others: &[&[u8]],
    rules: Rules,
    proven: &[ProvenChecks],
    tiering: Option<Arc<Tiering>>,
) -> Result<Arc<Unit>, Rejected> {
    let node = vesper_ir::load(ir)?;
    let mut linker = Linker {
        rules,
        proven,
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

struct Linker<'a> {
    /// The optimisation rules of the plain form.
    rules: Rules,
    proven: &'a [ProvenChecks],
    /// Verified but not yet compiled.
    waiting: HashMap<Arc<str>, Node>,
    done: HashMap<Arc<str>, Arc<Unit>>,
    /// The nodes being linked, to detect recursion.
    open: HashSet<Arc<str>>,
    tiering: Option<Arc<Tiering>>,
}

impl Hot for Unit {
    fn make(&self) {
        self.tier.make(&self.plain, self.shape());
    }
}

impl Unit {
    /// Returns true if a run needs no calls, requests, strands or `now`.
    pub(crate) fn is_self_contained(&self) -> bool {
        self.runs_straight() && !self.uses_now
    }

    /// Returns true if a run needs no calls, requests or strands: it ends at its first stop.
    pub(crate) fn runs_straight(&self) -> bool {
        self.callees.is_empty() && !self.asks && self.plain.forks.is_empty()
    }

    /// Returns the layout for frameless runs. Returns `None` if a type has no form in words, or the node makes
    /// requests or calls.
    pub(crate) fn shape(&self) -> Option<Arc<Shape>> {
        let shape = self
            .is_self_contained()
            .then(|| Shape::of(&self.node, &self.plain))?;
        shape.map(Arc::new)
    }
}

impl Linker<'_> {
    /// Links a node with at most this depth of calls.
    fn unit(&mut self, node: Node, depth: usize) -> Result<Arc<Unit>, Rejected> {
        let Some(below) = depth.checked_sub(1) else {
            return Err(too_deep());
        };
        self.open.insert(Arc::clone(&node.node_id));
        let mut callees = Vec::with_capacity(node.calls.len());
        for called in &node.calls {
            let unit = self.callee(called, below)?;
            check_called(called, &unit.node)
                .map_err(|what| Rejected(format!("called node `{}`: {what}", called.node)))?;
            callees.push(unit);
        }
        self.open.remove(&node.node_id);
        let fault = |CompileFault(what)| Rejected(format!("a fault of the engine while compiling: {what}"));
        let proofs = self.proofs(&node)?;
        // Marks, paths and names refer to the node as verified.
        let plain = if self.rules == Rules::NONE {
            compile(&node, Form::Plain)
        } else {
            compile_optimised(&optimise_proven(&node, self.rules, &proofs), &node)
        };
        let plain = plain.map_err(fault)?;
        let deepest = callees.iter().map(|callee| callee.depth).max();
        let unit = Unit {
            depth: deepest.unwrap_or(0) + 1,
            asks: !plain.requests.is_empty() || callees.iter().any(|callee| callee.asks),
            uses_now: node.uses_now || callees.iter().any(|callee| callee.uses_now),
            tier: Tier::new(self.tiering.clone()),
            node,
            proofs,
            plain,
            callees,
        };
        if unit.depth > depth {
            return Err(too_deep());
        }
        unit.tier.compile_if_eager(&unit.plain, || unit.shape());
        Ok(Arc::new(unit))
    }

    /// Returns the proofs of the node with exactly this hash; none without optimisation.
    fn proofs(&self, node: &Node) -> Result<Proofs, Rejected> {
        let mut of_node = self
            .proven
            .iter()
            .filter(|each| *each.hash == *node.semantic_hash);
        match of_node.next() {
            Some(found) if self.rules != Rules::NONE => Proofs::new(node, &found.clauses, &found.calls),
            _ => Ok(Proofs::default()),
        }
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

/// Rejects a node that differs from the one its caller was checked with.
fn check_called(called: &CalledNode, node: &Node) -> Result<(), &'static str> {
    // Comparing types takes no longer than reading them, because both are bounded by the document size.
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
