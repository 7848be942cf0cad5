//! Verifier from [`Document`] to [`Node`]: every rule under "well formed" in docs/spec/ir.md.
//!
//! Each rule has a message with its location. `structure` assigns expressions to clauses and statements. One pass over
//! the table in order then resolves names and computes types, because operands precede their users and steps precede
//! the expressions that read them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::Rejected;
use crate::fit::fit;
use crate::flow::{CalledNode, Machine, leaves};
use crate::node::{
    Constant, Document, ExpressionIndex, Input, Node, Output, RawConstant, RawConstraint, RawInput, Step,
};
use crate::types::Type;

mod composed;
mod expression;
mod flow;
mod functions;
mod locals;
mod request;
mod structure;
mod taint;

use expression::{Names, Scope, Typing};
use flow::Flow;
use locals::Locals;
use taint::Flagged;

/// Declaration behind a name of the shared namespace of inputs, constants and steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Input(usize),
    Constant(usize),
    Step(usize),
}

/// Verifies a document and returns its node.
#[expect(clippy::too_many_lines, reason = "one part of the document after the other")]
pub(crate) fn verify(document: Document) -> Result<Node, Rejected> {
    let Document {
        semantics,
        source,
        tables,
        flags,
        types,
        semantic_hash,
    } = document;
    if !leaves(&semantics.body) {
        return Err(Rejected(
            "the body does not end with a return or a raise".to_owned(),
        ));
    }
    check_distinct("outputs", &semantics.outputs)?;
    check_errors(&semantics.errors)?;
    check_machines(&semantics.machines)?;
    check_calls(&semantics.calls)?;
    let groups = functions::check(&semantics.functions, &semantics.expressions)?;
    let inputs = inputs(semantics.inputs)?;
    let constants = constants(semantics.constants)?;
    let parts = flow::parts(&semantics.body);
    let by_name = namespace(&inputs, &constants, &parts.names)?;
    let constraints = constraints(&semantics.constraints, &by_name)?;
    if source.spans.len() != semantics.expressions.len() {
        return Err(Rejected(format!(
            "the source has {} spans for {} expressions",
            source.spans.len(),
            semantics.expressions.len()
        )));
    }

    let values = semantics.functions.iter().map(|function| &function.value);
    let before = values.chain(&constraints).chain(&semantics.preconditions);
    let after = semantics.postconditions.iter().chain(&semantics.invariants);
    let roots: Vec<ExpressionIndex> = before.chain(&parts.roots).chain(after).copied().collect();
    let starts = structure::check(&semantics.expressions, &roots)?;
    let places = |outputs: &[Output]| {
        let names = outputs.iter().map(|output| Arc::clone(&output.name));
        names.zip(0..).collect::<HashMap<Arc<str>, usize>>()
    };
    let names = Names {
        by_name,
        outputs_by_name: places(&semantics.outputs),
        errors_by_name: places(&semantics.errors),
        inputs: &inputs,
        constants: &constants,
        outputs: &semantics.outputs,
        errors: &semantics.errors,
        functions: &semantics.functions,
        functions_by_name: functions::places(&semantics.functions),
    };
    let parameters = functions::parameters(&semantics.functions);
    let locals = Locals::new(
        &semantics.expressions,
        &parts.locals,
        &parameters,
        source.locals.len(),
    )?;
    let local_count = locals.count();
    let typing = Typing::new(names, types, locals, parts.names.len(), tables);
    let mut flow = Flow::new(
        typing,
        semantics.expressions,
        &starts,
        &parts.names,
        &semantics.calls,
        &semantics.machines,
        &semantics.outputs,
        &semantics.errors,
    );
    for function in &semantics.functions {
        flow.function(function)?;
    }
    flow.clauses("constraint", &constraints, Scope::Constraint)?;
    flow.clauses("precondition", &semantics.preconditions, Scope::Precondition)?;
    flow.body(&semantics.body)?;
    flow.clauses("postcondition", &semantics.postconditions, Scope::Postcondition)?;
    flow.clauses("invariant", &semantics.invariants, Scope::Invariant)?;
    let (typing, step_types) = flow.finish();
    let (expressions, uses_now, loop_locals) = typing.finish()?;
    let functions = functions::resolve(semantics.functions, &groups, &loop_locals);
    let step_places = parts.names.iter().cloned().zip(0..).collect();
    let steps: Vec<Step> = (parts.names.into_iter().zip(step_types))
        .map(|(name, ty)| Step { name, ty })
        .collect();
    let flagged = Flagged {
        inputs: &inputs,
        outputs: &semantics.outputs,
        errors: &semantics.errors,
        steps: &steps,
        answering: &parts.answering,
        expressions: &expressions,
    };
    flagged.check(&semantics.declassified, flags.as_ref())?;
    Ok(Node {
        node_id: semantics.node_id,
        semantic_hash,
        source,
        inputs,
        outputs: semantics.outputs,
        constants,
        expressions,
        functions,
        constraints,
        preconditions: semantics.preconditions,
        body: semantics.body,
        steps,
        postconditions: semantics.postconditions,
        invariants: semantics.invariants,
        errors: semantics.errors,
        outside_inputs: semantics.outside_inputs,
        outside_outputs: semantics.outside_outputs,
        outside_errors: semantics.outside_errors,
        calls: semantics.calls,
        uses_now,
        step_places,
        loop_locals,
        locals: local_count,
    })
}

fn inputs(raw: Vec<RawInput>) -> Result<Vec<Input>, Rejected> {
    raw.into_iter()
        .map(|raw| {
            let refuse = |what: &str| Rejected(format!("input `{}`: {what}", raw.name));
            let default = raw.default.map(|default| fit(&raw.ty, &default)).transpose();
            let default = default.map_err(|what| refuse(&format!("its default: {what}")))?;
            Ok(Input {
                name: Arc::clone(&raw.name),
                ty: raw.ty,
                default,
            })
        })
        .collect()
}

fn constants(raw: Vec<RawConstant>) -> Result<Vec<Constant>, Rejected> {
    raw.into_iter()
        .map(|raw| {
            let value = fit(&raw.ty, &raw.value)
                .map_err(|what| Rejected(format!("constant `{}`: {what}", raw.name)))?;
            Ok(Constant {
                name: raw.name,
                ty: raw.ty,
                value,
            })
        })
        .collect()
}

fn check_distinct(what: &str, outputs: &[Output]) -> Result<(), Rejected> {
    let mut seen = HashSet::with_capacity(outputs.len());
    for output in outputs {
        if !seen.insert(&output.name) {
            return Err(Rejected(format!("two {what} are named `{}`", output.name)));
        }
    }
    Ok(())
}

fn check_errors(errors: &[Output]) -> Result<(), Rejected> {
    check_distinct("error fields", errors)?;
    match errors.first() {
        None => Ok(()),
        Some(first) if &*first.name == "error_code" && matches!(first.ty, Type::Enum(_)) => Ok(()),
        Some(first) => Err(Rejected(format!(
            "the first error field is `error_code`, an enum, not `{}`, which is {}",
            first.name, first.ty
        ))),
    }
}

fn check_machines(machines: &[Machine]) -> Result<(), Rejected> {
    let mut names = HashSet::with_capacity(machines.len());
    for machine in machines {
        let name = &machine.name;
        if !names.insert(name) {
            return Err(Rejected(format!("two machines are named `{name}`")));
        }
        let mut states = HashSet::with_capacity(machine.states.len());
        if let Some(state) = machine.states.iter().find(|state| !states.insert(*state)) {
            return Err(Rejected(format!(
                "machine `{name}` has the state `{state}` twice"
            )));
        }
        let mentioned = machine.transitions.iter().flat_map(|(from, to)| [from, to]);
        if let Some(state) = mentioned
            .chain([&machine.initial])
            .find(|state| !states.contains(state))
        {
            return Err(Rejected(format!("machine `{name}` has no state `{state}`")));
        }
    }
    Ok(())
}

fn check_calls(calls: &[CalledNode]) -> Result<(), Rejected> {
    let mut seen = HashSet::with_capacity(calls.len());
    match calls.iter().find(|called| !seen.insert(&called.node)) {
        Some(called) => Err(Rejected(format!("`calls` has the node `{}` twice", called.node))),
        None => Ok(()),
    }
}

fn namespace(
    inputs: &[Input],
    constants: &[Constant],
    steps: &[Arc<str>],
) -> Result<HashMap<Arc<str>, Named>, Rejected> {
    let names = (inputs
        .iter()
        .map(|input| &input.name)
        .zip((0..).map(Named::Input)))
    .chain(
        constants
            .iter()
            .map(|constant| &constant.name)
            .zip((0..).map(Named::Constant)),
    )
    .chain(steps.iter().zip((0..).map(Named::Step)));
    let mut found = HashMap::with_capacity(inputs.len() + constants.len() + steps.len());
    for (name, named) in names {
        if found.insert(Arc::clone(name), named).is_some() {
            return Err(Rejected(format!(
                "two of the inputs, constants and steps are named `{name}`"
            )));
        }
    }
    Ok(found)
}

fn constraints(
    raw: &[RawConstraint],
    names: &HashMap<Arc<str>, Named>,
) -> Result<Vec<ExpressionIndex>, Rejected> {
    (0..)
        .zip(raw)
        .map(
            |(number, constraint): (u32, _)| match names.get(&constraint.input) {
                Some(Named::Input(_)) => Ok(constraint.holds),
                _ => Err(Rejected(format!(
                    "constraint {number}: no input is named `{}`",
                    constraint.input
                ))),
            },
        )
        .collect()
}
