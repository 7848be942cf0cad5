//! Verification of taint flags: every flag names a value of the node, and every source can be one.

use std::collections::HashSet;
use std::sync::Arc;

use crate::Rejected;
use crate::node::{Expression, ExpressionIndex, Flags, Input, Output, SourceFlow, Step};
use crate::types::Type;

/// The parts of a node that flags and releases can name.
pub(super) struct Flagged<'a> {
    pub(super) inputs: &'a [Input],
    pub(super) outputs: &'a [Output],
    pub(super) errors: &'a [Output],
    pub(super) steps: &'a [Step],
    pub(super) expressions: &'a [Expression],
    /// Names of requests and calls.
    pub(super) answering: &'a HashSet<Arc<str>>,
}

impl Flagged<'_> {
    /// Checks the names of released values, and the flags of a document that has some.
    pub(super) fn check(&self, released: &[Arc<str>], flags: Option<&Flags>) -> Result<(), Rejected> {
        self.check_released(released)?;
        flags.map_or(Ok(()), |flags| self.check_flags(flags))
    }

    fn check_flags(&self, flags: &Flags) -> Result<(), Rejected> {
        let mut seen = HashSet::with_capacity(flags.sources.len());
        for source in &flags.sources {
            let is_input = self.inputs.iter().any(|input| input.name == *source);
            if !is_input && !self.answering.contains(source) {
                return Err(refuse(&format!(
                    "`{source}` is no input, request or call, so it is no source"
                )));
            }
            if !seen.insert(source) {
                return Err(refuse(&format!("the source `{source}` occurs twice")));
            }
        }
        let count = flags.sources.len();
        for (listed, outputs, what) in [
            (&flags.outputs, self.outputs, "output"),
            (&flags.errors, self.errors, "error field"),
        ] {
            for (name, flow) in listed {
                let found = outputs.iter().find(|output| output.name == *name);
                let found = found.ok_or_else(|| refuse(&format!("no {what} is named `{name}`")))?;
                check_flow(flow, &found.ty, count)?;
            }
        }
        for (name, flow) in &flags.steps {
            let found = self.steps.iter().find(|step| step.name == *name);
            let ty = found.and_then(|step| step.ty.as_ref());
            let ty = ty.ok_or_else(|| refuse(&format!("no step with a value is named `{name}`")))?;
            check_flow(flow, ty, count)?;
        }
        for (at, flow) in &flags.values {
            check_flow(flow, self.type_at(*at)?, count)?;
        }
        for (at, flow) in &flags.failures {
            self.type_at(*at)?;
            // A code is no record.
            check_flow(flow, &Type::Text, count)?;
        }
        Ok(())
    }

    /// Checks that each release names a step, an output or an error field.
    fn check_released(&self, names: &[Arc<str>]) -> Result<(), Rejected> {
        for name in names {
            let is_known = if let Some(field) = name.strip_prefix("error.") {
                self.errors.iter().any(|error| &*error.name == field)
            } else {
                let is_output = self.outputs.iter().any(|output| output.name == *name);
                // The value of a skippable step `x` is named `_x`.
                let is_step = |step: &Step| step.name.trim_start_matches('_') == &**name;
                is_output || self.steps.iter().any(is_step)
            };
            if !is_known {
                return Err(Rejected(format!(
                    "`declassified`: no step, output or error field is named `{name}`"
                )));
            }
        }
        Ok(())
    }

    fn type_at(&self, at: ExpressionIndex) -> Result<&Type, Rejected> {
        let found = usize::try_from(at).ok().and_then(|at| self.expressions.get(at));
        found
            .map(|expression| &expression.ty)
            .ok_or_else(|| refuse(&format!("there is no expression {at}")))
    }
}

fn refuse(what: &str) -> Rejected {
    Rejected(format!("taint: {what}"))
}

/// Checks a flow of a value of this type: sources exist, fields exist, and no field repeats a source of the whole.
fn check_flow(flow: &SourceFlow, ty: &Type, sources: usize) -> Result<(), Rejected> {
    let top = flow.from.last().map_or(0, |nibble| 8 - nibble.leading_zeros());
    let bits = flow.from.len().saturating_sub(1).saturating_mul(4);
    if bits.saturating_add(usize::try_from(top).unwrap_or(usize::MAX)) > sources {
        return Err(refuse(&format!(
            "a flow has a source beyond the {sources} declared ones"
        )));
    }
    for (name, inner) in &flow.fields {
        let found = field(ty, name).ok_or_else(|| refuse(&format!("{ty} has no field `{name}`")))?;
        if repeats(inner, &flow.from) {
            return Err(refuse(&format!(
                "the field `{name}` repeats a source of its record"
            )));
        }
        check_flow(inner, found, sources)?;
    }
    Ok(())
}

/// Returns whether a flow has one of these sources, at any depth.
fn repeats(flow: &SourceFlow, from: &[u8]) -> bool {
    flow.from.iter().zip(from).any(|(own, outer)| own & outer != 0)
        || flow.fields.iter().any(|(_, inner)| repeats(inner, from))
}

/// Returns the type of a field of a record, alone or in arrays and optionals.
pub(super) fn field<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    match ty {
        Type::Array(inner) | Type::Optional(inner) => field(inner, name),
        Type::Record(record) => record
            .place(name)
            .and_then(|place| record.fields().get(place))
            .map(|field| &field.ty),
        _ => None,
    }
}
