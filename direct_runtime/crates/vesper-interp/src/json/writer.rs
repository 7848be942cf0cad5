//! The writer of outcomes as canonical JSON, which has one spelling for each.

use std::fmt::Write as _;
use std::sync::Arc;

use vesper_ir::json::quote;
use vesper_ir::types::Outside;
use vesper_ir::{Decimal, EnumType, ErrorCode, Member, Node, Type, Value, base64, float, time};

use super::fault;
use crate::inputs::problems::Problems;
use crate::{Mention, Outcome};

/// The initial capacity, enough for most outcomes.
const OUTCOME_CAPACITY: usize = 256;
/// The maximum scale written here; `Decimal` writes larger ones.
const MAX_SHORT_SCALE: usize = 18;

/// The names of fields and enum members in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Inside,
    Outside,
}

pub(super) struct OutcomeWriter<'a> {
    pub(super) node: &'a Node,
}

pub(super) fn bad_input(problems: &Problems) -> String {
    let mut out = String::new();
    write_failed(ErrorCode::BadInput.name(), None, problems, &mut out);
    out
}

fn write_failed(code: &str, at: Option<u32>, problems: &Problems, out: &mut String) {
    out.push_str("{\"at\":");
    match at {
        // Writing to a string cannot fail.
        Some(at) => drop(write!(out, "{at}")),
        None => out.push_str("null"),
    }
    out.push_str(",\"code\":");
    quote(code, out);
    out.push_str(",\"kind\":\"failed\",\"problems\":[");
    for (place, problem) in problems.iter().enumerate() {
        out.push_str(if place > 0 { ",{\"kind\":" } else { "{\"kind\":" });
        quote(problem.kind.name(), out);
        out.push_str(",\"path\":");
        // Paths from JSON text contain no lone surrogates.
        quote(&String::from_utf8_lossy(&problem.path), out);
        out.push('}');
    }
    out.push_str("]}");
}

/// Returns the indices of the outputs in code-point order of their names.
pub(crate) fn order_of_outputs(node: &Node) -> Box<[usize]> {
    let mut places: Vec<usize> = (0..node.outputs.len()).collect();
    places.sort_by_key(|place| node.output_key(*place));
    places.into()
}

impl OutcomeWriter<'_> {
    /// Returns the outcome of a node that returned these values; `order` sorts the outputs by name. Returns `None` if
    /// a value is missing.
    pub(super) fn write_returned<'v>(
        &self,
        order: &[usize],
        value: impl Fn(usize) -> Option<&'v Value>,
    ) -> Option<String> {
        let mut out = String::with_capacity(OUTCOME_CAPACITY);
        out.push_str("{\"kind\":\"returned\",\"value\":");
        let outside = self.node.outside_outputs.as_ref();
        let mut before = '{';
        for place in order {
            let output = self.node.outputs.get(*place)?;
            if let Some(outside) = outside {
                let flag = outside.flag_of(*place).and_then(&value);
                if outside.is_hidden(*place) || matches!(flag, Some(Value::Boolean(true))) {
                    continue;
                }
            }
            out.push(before);
            before = ',';
            quote(self.node.output_key(*place), &mut out);
            out.push(':');
            canonical(&output.ty, value(*place)?, &mut out);
        }
        out.push_str(if before == '{' { "{}}" } else { "}}" });
        Some(out)
    }

    pub(super) fn outcome(&self, outcome: &Outcome) -> String {
        let mut out = String::new();
        match outcome {
            Outcome::Returned(values) => {
                out.push_str("{\"kind\":\"returned\",\"value\":");
                let outputs = self.node.outputs.iter().map(|output| (&*output.name, &output.ty));
                declared(outputs, self.node.outside_outputs.as_ref(), values, &mut out);
                out.push('}');
            }
            Outcome::DeclaredError(values) => {
                out.push_str("{\"kind\":\"declared_error\",\"value\":");
                let errors = self.node.errors.iter().map(|field| (&*field.name, &field.ty));
                declared(errors, self.node.outside_errors.as_ref(), values, &mut out);
                out.push('}');
            }
            Outcome::Failed { code, expression } => {
                write_failed(code.name(), Some(*expression), &Problems::default(), &mut out);
            }
            Outcome::ContractBroken {
                phase,
                clause,
                values,
            } => {
                let _ = write!(
                    out,
                    "{{\"index\":{clause},\"kind\":\"contract_broken\",\"phase\":\"{}\"",
                    phase.name()
                );
                out.push_str(",\"values\":");
                let named = values.iter().filter_map(|(mention, value)| {
                    let (name, ty) = self.resolve_mention(*mention)?;
                    Some(((name.trim_start_matches('_'), ty), value))
                });
                // SEMANTICS: values of a clause have the names that the clause uses.
                fields(named, Names::Inside, &mut out);
                out.push('}');
            }
            Outcome::Denied(capability) => {
                out.push_str("{\"capability\":");
                quote(capability, &mut out);
                out.push_str(",\"kind\":\"denied\"}");
            }
            Outcome::LimitHit(limit) => {
                out.push_str("{\"kind\":\"limit_hit\",\"limit\":");
                quote(limit, &mut out);
                out.push('}');
            }
            Outcome::Fault(message) => return fault(message),
        }
        out
    }

    fn resolve_mention(&self, mention: Mention) -> Option<(&str, &Type)> {
        let node = self.node;
        Some(match mention {
            Mention::Input(place) => node.inputs.get(place).map(|input| (&*input.name, &input.ty))?,
            Mention::Constant(place) => {
                let constant = node.constants.get(place)?;
                (&*constant.name, &constant.ty)
            }
            Mention::Step(place) => {
                let step = node.steps.get(place)?;
                (&*step.name, step.ty.as_ref()?)
            }
            Mention::Error(place) => node.errors.get(place).map(|field| (&*field.name, &field.ty))?,
            Mention::Output(place) => node
                .outputs
                .get(place)
                .map(|output| (&*output.name, &output.ty))?,
        })
    }
}

/// Writes fields with their values, under their outside names if they have any.
fn declared<'a>(
    named: impl Iterator<Item = (&'a str, &'a Type)>,
    outside: Option<&'a Outside>,
    values: &'a [Value],
    out: &mut String,
) {
    let Some(outside) = outside else {
        return fields(named.zip(values), Names::Outside, out);
    };
    let rest = match outside.rest().and_then(|rest| values.get(rest)) {
        Some(Value::Map(rest)) => Some(rest),
        _ => None,
    };
    // SEMANTICS: an entry under the name of a declared field is not written.
    let keys: Vec<(Arc<str>, &Value)> = (rest.iter())
        .flat_map(|rest| rest.keys().iter().zip(rest.values()))
        .filter_map(|(key, value)| match key {
            Value::Text(key) if outside.place(&key).is_none() => Some((key, value)),
            _ => None,
        })
        .collect();
    let named = named
        .zip(values)
        .enumerate()
        .filter_map(|(place, ((_, ty), value))| {
            let flag = outside.flag_of(place).and_then(|flag| values.get(flag));
            let is_shown = !outside.is_hidden(place) && !matches!(flag, Some(Value::Boolean(true)));
            is_shown.then(|| ((outside.name(place), ty), value))
        });
    fields(
        named.chain(keys.iter().map(|(key, value)| ((&**key, &Type::Json), *value))),
        Names::Outside,
        out,
    );
}

/// Writes an object with keys in code-point order.
fn fields<'a>(
    entries: impl Iterator<Item = ((&'a str, &'a Type), &'a Value)>,
    names: Names,
    out: &mut String,
) {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(|((name, _), _)| *name);
    out.push('{');
    for (place, ((name, ty), value)) in entries.into_iter().enumerate() {
        out.push_str(if place > 0 { "," } else { "" });
        quote(name, out);
        out.push(':');
        write_value(ty, value, names, out);
    }
    out.push('}');
}

/// Writes the canonical form of a value.
pub(super) fn canonical(ty: &Type, value: &Value, out: &mut String) {
    write_value(ty, value, Names::Outside, out);
}

/// Writes the canonical form of a value. The recursion is bounded by the depth of the type.
fn write_value(ty: &Type, value: &Value, names: Names, out: &mut String) {
    let text_of = |of: &EnumType, member: Member| {
        let text = if names == Names::Outside {
            of.text(member)
        } else {
            of.name(member)
        };
        text.cloned().unwrap_or_default()
    };
    match (ty, value) {
        // An absent optional, or an output of a node that ends with an error.
        (_, Value::Null) => out.push_str("null"),
        (Type::Optional(of), value) => write_value(of, value, names, out),
        (_, Value::Boolean(value)) => out.push_str(if *value { "true" } else { "false" }),
        (_, Value::Integer(value)) => plain(i128::from(*value), 0, out),
        (_, Value::Decimal(value)) => {
            out.push('"');
            match value.as_small() {
                Some((coefficient, scale)) => plain(coefficient, scale, out),
                None => drop(write!(out, "{value}")),
            }
            out.push('"');
        }
        (_, Value::Float(value)) if value.is_finite() => {
            out.push_str(&float::text(*value));
        }
        (_, Value::Float(value)) => quote(&float::text(*value), out),
        (_, Value::Text(value)) => quote(value, out),
        (_, Value::Bytes(value)) => quote(&base64::text(value), out),
        (_, Value::Timestamp(value)) => quote(&time::timestamp_text(*value), out),
        (_, Value::Date(value)) => quote(&time::date_text(*value), out),
        (_, Value::Duration(value)) => quote(&time::duration_text(*value), out),
        (_, Value::TimeOfDay(value)) => quote(&time::time_text(*value), out),
        (_, Value::Period(value)) => quote(&time::period_text(*value), out),
        (_, Value::Json(value)) => out.push_str(&value.text()),
        (Type::Enum(of), Value::Member(member)) => quote(&text_of(of, *member), out),
        (Type::Array(of), Value::Array(items)) => {
            list(items.iter(), out, |item, out| write_value(of, item, names, out));
        }
        (Type::Set(of), Value::Set(members)) => {
            list(members.iter(), out, |member, out| {
                write_value(of, &member, names, out);
            });
        }
        (Type::Map(of), Value::Map(map)) => {
            let entries = map.keys().iter().zip(map.values());
            if matches!(of.key, Type::Text | Type::Enum(_)) {
                let text_of_key = |key: &Value| match (key, &of.key) {
                    (Value::Text(key), _) => key.to_string(),
                    (Value::Member(member), Type::Enum(of)) => text_of(of, *member).to_string(),
                    _ => String::new(),
                };
                let mut entries: Vec<(String, &Value)> =
                    entries.map(|(key, value)| (text_of_key(&key), value)).collect();
                // Members are in declared order, but objects sort by key.
                entries.sort_by(|(left, _), (right, _)| left.cmp(right));
                fields(
                    entries
                        .iter()
                        .map(|(key, value)| ((key.as_str(), &of.value), *value)),
                    names,
                    out,
                );
            } else {
                list(entries, out, |(key, value), out| {
                    out.push('[');
                    write_value(&of.key, &key, names, out);
                    out.push(',');
                    write_value(&of.value, value, names, out);
                    out.push(']');
                });
            }
        }
        (Type::Record(of), Value::Record(values)) => {
            let typed = of.fields().iter().map(|field| (&*field.name, &field.ty));
            match names {
                Names::Inside => fields(typed.zip(values.iter()), names, out),
                Names::Outside => declared(typed, of.outside(), values, out),
            }
        }
        // The verifier excludes this; `null` would be a valid value.
        _ => quote("engine fault: a value is not of its type", out),
    }
}

/// Writes plain notation with this scale, as `Decimal` does but without the formatting machinery.
pub(super) fn plain(coefficient: i128, scale: u16, out: &mut String) {
    let Ok(mut rest) = u64::try_from(coefficient.unsigned_abs()) else {
        if let Ok(number) = Decimal::new(coefficient, scale) {
            let _ = write!(out, "{number}");
        }
        return;
    };
    if usize::from(scale) > MAX_SHORT_SCALE {
        if let Ok(number) = Decimal::new(coefficient, scale) {
            let _ = write!(out, "{number}");
        }
        return;
    }
    // Filled from the last digit: at most twenty digits, or the scale plus one, and a point.
    let mut digits = [b'0'; 2 + MAX_SHORT_SCALE + 20];
    let mut length = 0;
    let mut places = digits.iter_mut().rev();
    let mut left = scale;
    loop {
        if let Some(place) = places.next() {
            // A remainder of ten is one digit.
            *place = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            length += 1;
        }
        rest /= 10;
        if left == 1
            && let Some(place) = places.next()
        {
            *place = b'.';
            length += 1;
        } else if left == 0 && rest == 0 {
            break;
        }
        left = left.saturating_sub(1);
    }
    if coefficient < 0 {
        out.push('-');
    }
    let written = digits.get(digits.len() - length..).unwrap_or_default();
    out.push_str(std::str::from_utf8(written).unwrap_or_default());
}

fn list<T>(items: impl Iterator<Item = T>, out: &mut String, mut write: impl FnMut(T, &mut String)) {
    out.push('[');
    for (place, item) in items.enumerate() {
        out.push_str(if place > 0 { "," } else { "" });
        write(item, out);
    }
    out.push(']');
}
