//! Text forms of outcomes and marks, and the loader of small documents.

use serde_json::Value as Json;
use vesper_interp::{Mention, Outcome, Program};
use vesper_ir::{Type, Value};

pub(crate) mod document;

pub(crate) use document::document;

pub(crate) fn load(semantics: &Json) -> Program {
    Program::load(&document(semantics)).unwrap_or_else(|rejected| panic!("{rejected}"))
}

/// Returns a readable form of a value.
pub(crate) fn show_value(ty: &Type, value: &Value) -> String {
    let ty = match ty {
        Type::Optional(of) => of,
        ty => ty,
    };
    match value {
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Decimal(value) => value.to_string(),
        Value::Float(value) => vesper_ir::float::text(*value),
        Value::Bytes(value) => vesper_ir::base64::text(value),
        Value::Timestamp(value) => vesper_ir::time::timestamp_text(*value),
        Value::Date(value) => vesper_ir::time::date_text(*value),
        Value::Duration(value) => vesper_ir::time::duration_text(*value),
        Value::TimeOfDay(value) => vesper_ir::time::time_text(*value),
        Value::Period(value) => vesper_ir::time::period_text(*value),
        Value::Json(value) => value.text(),
        Value::Type(of) => panic!("{of} is no value"),
        Value::Table(_) => panic!("a table is no value"),
        Value::Text(value) => format!("{value:?}"),
        Value::Member(member) => match ty {
            Type::Enum(of) => of.name(*member).unwrap().to_string(),
            _ => panic!("a member of {ty}"),
        },
        Value::Set(members) => {
            let Type::Set(of) = ty else {
                panic!("a set of {ty}")
            };
            let members: Vec<String> = members.iter().map(|member| show_value(of, &member)).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let Type::Array(of) = ty else {
                panic!("an array of {ty}")
            };
            let items: Vec<String> = items.iter().map(|item| show_value(of, item)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Map(map) => {
            let Type::Map(of) = ty else {
                panic!("a map of {ty}")
            };
            let entries = map.keys().iter().zip(map.values());
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("{}:{}", show_value(&of.key, &key), show_value(&of.value, value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Record(fields) => {
            let Type::Record(of) = ty else {
                panic!("a record of {ty}")
            };
            let fields: Vec<String> = (of.fields().iter().zip(fields.iter()))
                .map(|(field, value)| format!("{}={}", field.name, show_value(&field.ty, value)))
                .collect();
            format!("({})", fields.join(","))
        }
        Value::Null => "null".to_owned(),
        Value::Pattern(pattern) => format!("pattern {:?}", pattern.text()),
    }
}

pub(crate) fn shown_outcome(program: &Program, outcome: &Outcome) -> String {
    let node = program.node();
    match outcome {
        Outcome::Returned(values) => {
            let outputs = node.outputs.iter().zip(values);
            let outputs: Vec<String> = outputs
                .map(|(output, value)| format!("{}={}", output.name, show_value(&output.ty, value)))
                .collect();
            format!("returned {}", outputs.join(" "))
        }
        Outcome::DeclaredError(values) => {
            let fields = node.errors.iter().zip(values);
            let fields: Vec<String> = fields
                .map(|(field, value)| format!("{}={}", field.name, show_value(&field.ty, value)))
                .collect();
            format!("error {}", fields.join(" "))
        }
        Outcome::Denied(capability) => format!("denied {capability}"),
        Outcome::LimitHit(limit) => format!("limit {limit}"),
        Outcome::Failed { code, expression } => format!("failed {} at {expression}", code.name()),
        Outcome::ContractBroken {
            phase,
            clause,
            values,
        } => {
            let values: Vec<String> = values
                .iter()
                .map(|(mention, value)| match mention {
                    Mention::Input(place) => {
                        let input = &node.inputs[*place];
                        format!("{}={}", input.name, show_value(&input.ty, value))
                    }
                    Mention::Constant(place) => {
                        let constant = &node.constants[*place];
                        format!("{}={}", constant.name, show_value(&constant.ty, value))
                    }
                    Mention::Step(place) => {
                        let step = &node.steps[*place];
                        format!("{}={}", step.name, show_value(step.ty.as_ref().unwrap(), value))
                    }
                    Mention::Output(place) => {
                        let output = &node.outputs[*place];
                        format!("{}={}", output.name, show_value(&output.ty, value))
                    }
                    Mention::Error(place) => {
                        let field = &node.errors[*place];
                        format!("{}={}", field.name, show_value(&field.ty, value))
                    }
                })
                .collect();
            format!("broken {} {clause}: {}", phase.name(), values.join(" "))
        }
        Outcome::Fault(message) => format!("fault: {message}"),
    }
}

/// Runs the plain and the traced form, which must agree. Returns marks and outcome.
pub(crate) fn run(program: &Program, inputs: &[Value]) -> (Vec<String>, String) {
    let plain = shown_outcome(program, &program.run(inputs.to_vec(), None));
    let (marks, outcome) = program.run_traced(inputs.to_vec(), None);
    assert_eq!(
        shown_outcome(program, &outcome),
        plain,
        "the traced form ends in another way"
    );
    let marks = marks.iter().map(|mark| {
        let ty = &program.node().expression(mark.index).unwrap().ty;
        format!("{}:{}", mark.index, show_value(ty, &mark.value))
    });
    (marks.collect(), plain)
}
