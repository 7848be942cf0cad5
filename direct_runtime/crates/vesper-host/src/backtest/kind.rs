//! Kinds of change: how two endings differ, as a text that all runs with the same change share.
//!
//! The rule of sameness is that of `vesper/engines/version_outcomes.py`, on typed JSON: equal values of one type have
//! equal texts. Python uses this module only where the common fields have types whose texts can be compared.

use std::cmp::Ordering;

use vesper_interp::{Outcome, Program};
use vesper_ir::node::Output;
use vesper_ir::{Type, Value};

use crate::backtest::Plan;
use crate::backtest::measure::text_of;
use crate::backtest::version::{Ended, Replay, ending_text};

/// Characters of a text that a kind quotes; a longer text only changes.
const MAX_QUOTED: usize = 40;
const ARROW: &str = " → ";

/// How a kind names the change of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldMode {
    /// With both values: enums, booleans and texts.
    Quoted,
    /// With the direction, where there is one.
    Plain,
    /// Without a value: sensitive ones.
    Hidden,
}

/// An output that is compared.
#[derive(Clone, Debug)]
pub struct OutputField {
    pub name: String,
    pub mode: FieldMode,
}

/// The comparison of two endings.
#[derive(Debug)]
pub(super) enum Compared {
    Same,
    Changed(String),
    /// The ending that says nothing about its version.
    Not(String),
}

pub(super) fn compare(plan: &Plan, before: &Replay, after: &Replay) -> Compared {
    if let (Ended::Outcome(Outcome::Returned(left)), Ended::Outcome(Outcome::Returned(right))) =
        (&before.ended, &after.ended)
    {
        return of_outputs(plan, left, right);
    }
    let one = ending_text(&plan.before, &before.ended, plan.hides_codes);
    let other = ending_text(&plan.after, &after.ended, plan.hides_codes);
    for (ended, text) in [(&before.ended, &one), (&after.ended, &other)] {
        if let Ended::Fault | Ended::Outcome(Outcome::LimitHit(_) | Outcome::Fault(_)) = ended {
            return Compared::Not(text.clone());
        }
    }
    if one != other {
        return Compared::Changed(format!("{one}{ARROW}{other}"));
    }
    if let (Ended::Outcome(Outcome::DeclaredError(left)), Ended::Outcome(Outcome::DeclaredError(right))) =
        (&before.ended, &after.ended)
    {
        let differs = |name: &&String| {
            text_of_field(&plan.before.node().errors, left, name)
                != text_of_field(&plan.after.node().errors, right, name)
        };
        if let Some(name) = plan.errors.iter().find(differs) {
            return Compared::Changed(format!("{one}, another error.{name}"));
        }
    }
    Compared::Same
}

fn of_outputs(plan: &Plan, left: &[Value], right: &[Value]) -> Compared {
    let mut kinds: Vec<String> = Vec::new();
    for field in &plan.outputs {
        let before = field_of(&plan.before, left, &field.name);
        let after = field_of(&plan.after, right, &field.name);
        let (Some((ty, before)), Some((other, after))) = (before, after) else {
            continue;
        };
        if is_certainly_same(before, after) {
            continue;
        }
        let (one, two) = (text_of(ty, before), text_of(other, after));
        if one != two {
            kinds.push(of_field(field, (before, &one), (after, &two)));
        }
    }
    if kinds.is_empty() {
        return Compared::Same;
    }
    Compared::Changed(kinds.join(", "))
}

/// Returns true for equal values of the frequent types, without their texts.
fn is_certainly_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Boolean(left), Value::Boolean(right)) => left == right,
        (Value::Integer(left), Value::Integer(right)) => left == right,
        (Value::Decimal(left), Value::Decimal(right)) => left.is_identical(right),
        (Value::Text(left), Value::Text(right)) => left == right,
        _ => false,
    }
}

fn of_field(field: &OutputField, (before, one): (&Value, &str), (after, two): (&Value, &str)) -> String {
    let name = &field.name;
    match field.mode {
        FieldMode::Hidden => format!("{name} changes"),
        FieldMode::Quoted => {
            if is_short(before, one) && is_short(after, two) {
                format!("{name}: {one}{ARROW}{two}")
            } else {
                format!("{name} changes")
            }
        }
        FieldMode::Plain => {
            let shown = |value: &Value| {
                if matches!(value, Value::Null) {
                    "null"
                } else {
                    "a value"
                }
            };
            if matches!(before, Value::Null) || matches!(after, Value::Null) {
                return format!("{name}: {}{ARROW}{}", shown(before), shown(after));
            }
            format!("{name} {}", direction(before, after))
        }
    }
}

fn is_short(value: &Value, text: &str) -> bool {
    match value {
        Value::Text(text) => text.chars().count() <= MAX_QUOTED,
        // A member is written in quotes.
        Value::Member(_) => text.chars().count() <= MAX_QUOTED + 2,
        _ => true,
    }
}

fn direction(before: &Value, after: &Value) -> &'static str {
    let order = match (before, after) {
        (Value::Integer(before), Value::Integer(after))
        | (Value::Duration(before), Value::Duration(after)) => Some(after.cmp(before)),
        (Value::Decimal(before), Value::Decimal(after)) => Some(after.compare(before)),
        (Value::Float(before), Value::Float(after)) => after.partial_cmp(before),
        _ => None,
    };
    match order {
        Some(Ordering::Greater) => "rises",
        Some(Ordering::Less) => "falls",
        _ => "changes",
    }
}

fn field_of<'a>(program: &'a Program, values: &'a [Value], name: &str) -> Option<(&'a Type, &'a Value)> {
    let outputs = &program.node().outputs;
    let place = outputs.iter().position(|output| &*output.name == name)?;
    Some((&outputs.get(place)?.ty, values.get(place)?))
}

fn text_of_field(fields: &[Output], values: &[Value], name: &str) -> Option<String> {
    let place = fields.iter().position(|field| &*field.name == name)?;
    Some(text_of(&fields.get(place)?.ty, values.get(place)?))
}
