//! A replay of one version: requests get their recorded answers, and nothing is performed.

use vesper_interp::guard::guarded;
use vesper_interp::{Advanced, Outcome, Program};
use vesper_ir::node::Output;
use vesper_ir::{Type, Value};

use crate::backtest::Plan;
use crate::backtest::case::Case;
use crate::typed_json::{member, text_member, write_text, write_value};

/// How a replay ended.
#[derive(Debug)]
pub(super) enum Ended {
    Outcome(Outcome),
    /// The inputs are none of this version.
    Refused,
    /// The step, without the rounds of loops, whose request the record does not answer.
    Unanswered(String),
    /// A panic of the engine.
    Fault,
}

/// A replay with the inputs that it had.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) ended: Ended,
    /// None where they were refused.
    pub(super) inputs: Option<Vec<Value>>,
}

impl Replay {
    pub(super) fn of(program: &Program, case: &Case<'_>) -> Self {
        let inputs = inputs_of(program, case);
        let ended = match &inputs {
            None => Ended::Refused,
            Some(inputs) => guarded(|| run(program, inputs.clone(), case)).unwrap_or(Ended::Fault),
        };
        Self { ended, inputs }
    }
}

/// Returns the inputs in declared order; None where one is refused.
fn inputs_of(program: &Program, case: &Case<'_>) -> Option<Vec<Value>> {
    let declared = program.node().inputs.iter();
    let values = declared.map(|input| match case.input(&input.name, &input.ty) {
        Some(value) => value.ok(),
        None => match (&input.default, &input.ty) {
            (Some(default), _) => Some(default.clone()),
            (None, Type::Optional(_)) => Some(Value::Null),
            (None, _) => None,
        },
    });
    values.collect()
}

fn run(program: &Program, inputs: Vec<Value>, case: &Case<'_>) -> Ended {
    let Ok(mut execution) = program.start(inputs, Some(case.now.clone()), false) else {
        return Ended::Fault;
    };
    let mut answered: Vec<String> = Vec::new();
    let mut completions = Vec::new();
    loop {
        match execution.advance(std::mem::take(&mut completions)) {
            Err(_) => return Ended::Fault,
            Ok(Advanced::Done(outcome, _)) => return Ended::Outcome(outcome),
            Ok(Advanced::Blocked(wave)) => {
                for request in wave {
                    // Each answer is given once.
                    let found = if answered.contains(&request.path) {
                        None
                    } else {
                        case.answer(&request)
                    };
                    let Some(found) = found else {
                        return Ended::Unanswered(without_rounds(&request.path));
                    };
                    completions.push((request.id, found));
                    answered.push(request.path);
                }
            }
        }
    }
}

fn without_rounds(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut is_inside = false;
    for character in path.chars() {
        match character {
            '[' => is_inside = true,
            ']' => is_inside = false,
            _ if !is_inside => text.push(character),
            _ => {}
        }
    }
    text
}

/// Returns how a replay ended in words that do not depend on places, clauses or values.
pub(super) fn ending_text(program: &Program, ended: &Ended, hides_codes: bool) -> String {
    let outcome = match ended {
        Ended::Refused => return String::from("inputs refused"),
        Ended::Fault => return String::from("engine fault"),
        Ended::Unanswered(step) => return format!("asks something new at {step}"),
        Ended::Outcome(outcome) => outcome,
    };
    match outcome {
        Outcome::Returned(_) => String::from("returned"),
        Outcome::DeclaredError(values) => match error_code(program, values).filter(|_| !hides_codes) {
            Some(code) => format!("declared error: {code}"),
            None => String::from("declared error"),
        },
        Outcome::Failed { code, .. } => format!("failed: {}", code.name()),
        Outcome::ContractBroken { phase, .. } => format!("{} broken", phase.name()),
        Outcome::Denied(capability) => format!("denied: {capability}"),
        Outcome::LimitHit(limit) => format!("limit hit: {limit}"),
        Outcome::Fault(_) => String::from("engine fault"),
    }
}

fn error_code(program: &Program, values: &[Value]) -> Option<String> {
    let field = program.node().errors.first()?;
    match (values.first()?, &field.ty) {
        (Value::Member(member), Type::Enum(of)) => of.name(*member).map(ToString::to_string),
        (Value::Text(text), _) => Some(text.to_string()),
        _ => None,
    }
}

/// Returns whether a replay ends as recorded: the same values, code or phase; places do not count.
pub(super) fn reproduces(plan: &Plan, replay: &Replay, case: &Case<'_>) -> bool {
    let Some(end) = case.end else { return true };
    let Some(kind) = text_member(end, "outcome") else {
        return true;
    };
    let node = plan.before.node();
    let is_same = |fields: &[Output], values: &[Value]| {
        let recorded = member(end, "value").unwrap_or_default();
        record_text(fields, values).is_some_and(|text| text == recorded)
    };
    match (kind.as_str(), &replay.ended) {
        ("limit_hit" | "engine_fault" | "denied", _) => true,
        ("returned", Ended::Outcome(Outcome::Returned(values))) => is_same(&node.outputs, values),
        ("declared_error", Ended::Outcome(Outcome::DeclaredError(values))) => is_same(&node.errors, values),
        ("failed", Ended::Outcome(Outcome::Failed { code, .. })) => {
            text_member(end, "code").as_deref() == Some(code.name())
        }
        ("failed", Ended::Refused) => text_member(end, "code").as_deref() == Some("bad_input"),
        ("contract_broken", Ended::Outcome(Outcome::ContractBroken { phase, .. })) => {
            text_member(end, "phase").as_deref() == Some(phase.name())
        }
        _ => false,
    }
}

/// Returns the typed JSON of named values.
fn record_text(fields: &[Output], values: &[Value]) -> Option<String> {
    let mut named: Vec<_> = fields.iter().zip(values).collect();
    named.sort_unstable_by_key(|(field, _)| &*field.name);
    let mut text = String::with_capacity(128);
    text.push('{');
    for (place, (field, value)) in named.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        write_text(&mut text, &field.name);
        text.push(':');
        write_value(&mut text, &field.ty, value).ok()?;
    }
    text.push('}');
    Some(text)
}
