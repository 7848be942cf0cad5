//! [`Document`] to [`Node`]: every rule under "well formed" in docs/spec/ir.md, each with a message of what and where.
//!
//! `structure` settles which expression belongs to which clause or statement; after that one pass over the table, in
//! order, resolves names and finds types, because operands stand before their users and steps before what reads them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::Rejected;
use crate::fit::fit;
use crate::node::{
    Constant, Document, Expression, ExpressionIndex, Input, Node, Output, RawConstraint, RawInput, Statement,
    Step,
};
use crate::types::Type;

mod composed;
mod expression;
mod locals;
mod structure;

use expression::{Names, Scope, Typing};
use locals::Locals;
use structure::Root;

/// What a name of the one namespace of inputs, constants and steps stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Input(usize),
    Constant(usize),
    Step(usize),
}

/// The node that a document describes.
pub(crate) fn verify(document: Document) -> Result<Node, Rejected> {
    let Document {
        semantics,
        source,
        types,
        semantic_hash,
    } = document;
    let (steps, returned) = body(semantics.body)?;
    outputs(&semantics.outputs)?;
    let returns = returns(&semantics.outputs, &returned)?;
    let inputs = inputs(semantics.inputs)?;
    let constants = semantics
        .constants
        .into_iter()
        .map(|raw| {
            let value = fit(&raw.ty, &raw.value)
                .map_err(|what| Rejected(format!("constant `{}`: {what}", raw.name)))?;
            Ok(Constant {
                name: raw.name,
                ty: raw.ty,
                value,
            })
        })
        .collect::<Result<Vec<_>, Rejected>>()?;
    let by_name = namespace(&inputs, &constants, &steps)?;
    let constraints = constraints(&semantics.constraints, &by_name)?;
    if source.spans.len() != semantics.expressions.len() {
        return Err(Rejected(format!(
            "the source has {} spans for {} expressions",
            source.spans.len(),
            semantics.expressions.len()
        )));
    }

    let roots = roots(
        &constraints,
        &semantics.preconditions,
        &steps,
        &returns,
        &semantics.postconditions,
    );
    let starts = structure::check(&semantics.expressions, &roots)?;
    let outputs_by_name = semantics
        .outputs
        .iter()
        .map(|output| Arc::clone(&output.name))
        .zip(0..)
        .collect();
    let names = Names {
        by_name,
        outputs_by_name,
        inputs: &inputs,
        constants: &constants,
        outputs: &semantics.outputs,
    };
    let locals = Locals::new(&semantics.expressions, source.locals.len())?;
    let local_count = locals.count();
    let typing = Typing::new(names, types, locals, semantics.expressions.len());
    let expressions = typed(typing, &semantics.outputs, semantics.expressions, &starts, &roots)?;
    Ok(Node {
        node_id: semantics.node_id,
        semantic_hash,
        source,
        inputs,
        outputs: semantics.outputs,
        constants,
        expressions,
        constraints,
        preconditions: semantics.preconditions,
        steps,
        returns,
        postconditions: semantics.postconditions,
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

fn outputs(outputs: &[Output]) -> Result<(), Rejected> {
    let mut seen = HashSet::with_capacity(outputs.len());
    for output in outputs {
        if !seen.insert(&output.name) {
            return Err(Rejected(format!("two outputs are named `{}`", output.name)));
        }
    }
    Ok(())
}

fn namespace(
    inputs: &[Input],
    constants: &[Constant],
    steps: &[Step],
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
    .chain(steps.iter().map(|step| &step.name).zip((0..).map(Named::Step)));
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

/// What the body's `return` gives: names and the expressions of their values.
type Returned = Vec<(Arc<str>, ExpressionIndex)>;

/// Steps, and the one return at the end.
fn body(statements: Vec<Statement>) -> Result<(Vec<Step>, Returned), Rejected> {
    let mut steps = Vec::with_capacity(statements.len());
    let mut returned = None;
    for (number, statement) in statements.into_iter().enumerate() {
        if returned.is_some() {
            return Err(Rejected(format!("statement {number} stands after the return")));
        }
        match statement {
            Statement::Step { name, value } => steps.push(Step { name, value }),
            Statement::Return { success } => returned = Some(success),
        }
    }
    let returned = returned.ok_or_else(|| Rejected("the body does not end with a return".to_owned()))?;
    Ok((steps, returned))
}

fn returns(outputs: &[Output], returned: &Returned) -> Result<Vec<ExpressionIndex>, Rejected> {
    if returned.len() != outputs.len() {
        return Err(Rejected(format!(
            "the return gives {} values for {} outputs",
            returned.len(),
            outputs.len()
        )));
    }
    let pairs = outputs.iter().zip(returned);
    pairs
        .map(|(output, (name, value))| {
            if output.name != *name {
                return Err(Rejected(format!(
                    "the return gives `{name}` where output `{}` is next in declared order",
                    output.name
                )));
            }
            Ok(*value)
        })
        .collect()
}

/// Everything that owns an expression, in program order.
fn roots(
    constraints: &[ExpressionIndex],
    preconditions: &[ExpressionIndex],
    steps: &[Step],
    returns: &[ExpressionIndex],
    postconditions: &[ExpressionIndex],
) -> Vec<Root> {
    let clauses = |phase: &'static str, list: &[ExpressionIndex], scope: Scope| {
        let roots: Vec<Root> = (0..)
            .zip(list)
            .map(|(number, holds)| Root {
                index: *holds,
                scope,
                owner: structure::Owner::Clause(phase, number),
            })
            .collect();
        roots
    };
    let mut found = clauses("constraint", constraints, Scope::BEFORE_BODY);
    found.extend(clauses("precondition", preconditions, Scope::BEFORE_BODY));
    found.extend(steps.iter().enumerate().map(|(number, step)| Root {
        index: step.value,
        scope: Scope::in_body(number),
        owner: structure::Owner::Step,
    }));
    found.extend(returns.iter().enumerate().map(|(number, value)| Root {
        index: *value,
        scope: Scope::in_body(steps.len()),
        owner: structure::Owner::Return(number),
    }));
    found.extend(clauses("postcondition", postconditions, Scope::AFTER_BODY));
    found
}

fn typed(
    mut typing: Typing<'_>,
    outputs: &[Output],
    raw: Vec<crate::node::RawExpression>,
    starts: &[ExpressionIndex],
    roots: &[Root],
) -> Result<Vec<Expression>, Rejected> {
    let mut remaining = raw.into_iter().zip(starts);
    for root in roots {
        // INVARIANT: `structure` showed that each root's subtree ends at the root and begins where the last one ended.
        while typing.next_index() <= root.index {
            let Some((raw, start)) = remaining.next() else {
                break;
            };
            typing.push(raw, *start, root.scope)?;
        }
        let Some(found) = typing.type_of(root.index) else {
            continue;
        };
        match root.owner {
            structure::Owner::Clause(phase, number) if *found != Type::Boolean => {
                return Err(Rejected(format!(
                    "{phase} {number}: a clause is boolean, not {found}"
                )));
            }
            structure::Owner::Return(number) => {
                if let Some(output) = outputs.get(number)
                    && output.ty != *found
                {
                    return Err(Rejected(format!(
                        "the return gives {found} for output `{}`, which is {}",
                        output.name, output.ty
                    )));
                }
            }
            structure::Owner::Step => typing.define_step(root.index),
            structure::Owner::Clause(..) => {}
        }
    }
    Ok(typing.finish())
}
