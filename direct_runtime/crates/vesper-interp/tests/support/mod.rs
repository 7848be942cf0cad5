//! Builds small IR documents for tests, and shows outcomes and marks as text.

use serde_json::{Value as Json, json};
use vesper_interp::{Mention, Outcome, Program};
use vesper_ir::{Type, Value};

/// The canonical bytes of a document; `serde_json` sorts keys and escapes exactly as canonical JSON does.
pub(crate) fn document(semantics: &Json) -> Vec<u8> {
    let spans = semantics["expressions"].as_array().map_or(0, Vec::len);
    let expressions = semantics["expressions"].as_array().unwrap();
    let locals: usize = expressions.iter().map(introduced).sum();
    let source = json!({
        "path": "x.vsp", "sha256": "0".repeat(64), "intent": "a test", "spans": vec![[1, 1, 1, 2]; spans],
        "steps": {}, "clauses": {}, "locals": vec!["x"; locals],
    });
    json!({"ir_version": 1, "semantics": semantics, "source": source})
        .to_string()
        .into_bytes()
}

/// How many locals an expression introduces.
fn introduced(expression: &Json) -> usize {
    let of_for = expression.pointer("/for/locals").and_then(Json::as_array);
    of_for.map_or(usize::from(expression.get("let").is_some()), Vec::len)
}

pub(crate) fn load(semantics: &Json) -> Program {
    Program::load(&document(semantics)).unwrap_or_else(|rejected| panic!("{rejected}"))
}

/// The form of a value that a person would write.
pub(crate) fn shown(ty: &Type, value: &Value) -> String {
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
        Value::Json(value) => value.text(),
        Value::Type(of) => panic!("{of} is no value"),
        Value::Text(value) => format!("{value:?}"),
        Value::Member(member) => match ty {
            Type::Enum(of) => of.name(*member).unwrap().to_string(),
            _ => panic!("a member of {ty}"),
        },
        Value::Set(members) => {
            let Type::Set(of) = ty else {
                panic!("a set of {ty}")
            };
            let members: Vec<String> = members.iter().map(|member| shown(of, &member)).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let Type::Array(of) = ty else {
                panic!("an array of {ty}")
            };
            let items: Vec<String> = items.iter().map(|item| shown(of, item)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Map(map) => {
            let Type::Map(of) = ty else {
                panic!("a map of {ty}")
            };
            let entries = map.keys().iter().zip(map.values());
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("{}:{}", shown(&of.key, &key), shown(&of.value, value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Record(fields) => {
            let Type::Record(of) = ty else {
                panic!("a record of {ty}")
            };
            let fields: Vec<String> = (of.fields().iter().zip(fields.iter()))
                .map(|(field, value)| format!("{}={}", field.name, shown(&field.ty, value)))
                .collect();
            format!("({})", fields.join(","))
        }
        Value::Null => "null".to_owned(),
    }
}

pub(crate) fn shown_outcome(program: &Program, outcome: &Outcome) -> String {
    let node = program.node();
    match outcome {
        Outcome::Returned(values) => {
            let outputs = node.outputs.iter().zip(values);
            let outputs: Vec<String> = outputs
                .map(|(output, value)| format!("{}={}", output.name, shown(&output.ty, value)))
                .collect();
            format!("returned {}", outputs.join(" "))
        }
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
                        format!("{}={}", input.name, shown(&input.ty, value))
                    }
                    Mention::Constant(place) => {
                        let constant = &node.constants[*place];
                        format!("{}={}", constant.name, shown(&constant.ty, value))
                    }
                    Mention::Output(place) => {
                        let output = &node.outputs[*place];
                        format!("{}={}", output.name, shown(&output.ty, value))
                    }
                    Mention::Step(_) => panic!("no clause mentions a step"),
                })
                .collect();
            format!("broken {} {clause}: {}", phase.name(), values.join(" "))
        }
        Outcome::Fault(message) => format!("fault: {message}"),
    }
}

/// Runs both forms, which must end alike; gives marks and outcome.
pub(crate) fn run(program: &Program, inputs: &[Value]) -> (Vec<String>, String) {
    let plain = shown_outcome(program, &program.run(inputs.to_vec()));
    let (marks, outcome) = program.run_traced(inputs.to_vec());
    assert_eq!(
        shown_outcome(program, &outcome),
        plain,
        "the traced form ends in another way"
    );
    let marks = marks.iter().map(|mark| {
        let ty = &program.node().expression(mark.index).unwrap().ty;
        format!("{}:{}", mark.index, shown(ty, &mark.value))
    });
    (marks.collect(), plain)
}
