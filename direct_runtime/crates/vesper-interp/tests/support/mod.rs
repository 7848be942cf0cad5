//! Builders of small IR documents, and text forms of outcomes and marks.

use serde_json::{Value as Json, json};
use vesper_interp::{Mention, Outcome, Program};
use vesper_ir::{Type, Value};

/// Returns the canonical bytes of a document; `serde_json` sorts keys and escapes as canonical JSON does. Fields that
/// most tests ignore may be omitted.
pub(crate) fn document(semantics: &Json) -> Vec<u8> {
    let semantics = complete(semantics);
    let expressions = semantics["expressions"].as_array().unwrap();
    let mut locals: usize = expressions.iter().map(count_locals).sum();
    locals += loop_locals(&semantics["body"]);
    let source = json!({
        "path": "x.vsp", "sha256": "0".repeat(64), "intent": "a test", "spans": vec![[1, 1, 1, 2]; expressions.len()],
        "steps": {}, "clauses": {}, "locals": vec!["x"; locals],
    });
    json!({"ir_version": 2, "semantics": semantics, "source": source})
        .to_string()
        .into_bytes()
}

/// Returns the semantics with all omitted fields.
pub(crate) fn complete(semantics: &Json) -> Json {
    let mut whole = json!({
        "type": "function", "audit": "none", "sensitive": [], "policy": {}, "machines": [], "calls": [],
        "capabilities": {"denied": [], "required": []}, "invariants": [], "constants": [], "constraints": [],
        "preconditions": [], "postconditions": [],
    });
    for (key, value) in semantics.as_object().unwrap() {
        whole[key] = value.clone();
    }
    if whole["outputs"].get("error").is_none() {
        whole["outputs"]["error"] = json!([]);
    }
    complete_statements(&mut whole["body"]);
    whole
}

/// Adds handlers to statements without any, and optional fields to requests.
fn complete_statements(block: &mut Json) {
    for statement in block.as_array_mut().unwrap() {
        let (kind, fields) = statement.as_object_mut().unwrap().iter_mut().next().unwrap();
        let defaults = match kind.as_str() {
            "step" | "call" => json!({"handlers": []}),
            "branch" => json!({"handlers": [], "else": []}),
            "loop" => json!({"handlers": [], "locals": [], "state": [], "next": [], "body": [], "max": 1000}),
            "request" => json!({"handlers": [], "policy": {}, "fixed": {}, "arguments": []}),
            _ => json!({}),
        };
        for (key, value) in defaults.as_object().unwrap() {
            if fields.get(key).is_none() {
                fields[key] = value.clone();
            }
        }
        for block in blocks_mut(fields) {
            complete_statements(block);
        }
    }
}

/// Returns the blocks within a statement.
fn blocks_mut(fields: &mut Json) -> Vec<&mut Json> {
    let mut found = Vec::new();
    for (key, value) in fields.as_object_mut().unwrap() {
        match key.as_str() {
            "body" | "else" => found.push(value),
            "arms" | "handlers" => {
                found.extend(
                    value
                        .as_array_mut()
                        .unwrap()
                        .iter_mut()
                        .map(|each| &mut each["body"]),
                );
            }
            _ => {}
        }
    }
    found
}

/// Counts the locals that the loops of a block introduce.
fn loop_locals(block: &Json) -> usize {
    let statements = block.as_array().unwrap().iter();
    let each = statements.map(|statement| {
        let (_, fields) = statement.as_object().unwrap().iter().next().unwrap();
        let count = |name: &str| match &fields[name] {
            Json::Array(listed) => listed.len(),
            _ => 0,
        };
        let inside: usize = blocks_mut(&mut fields.clone())
            .into_iter()
            .map(|block| loop_locals(block))
            .sum();
        count("locals") + count("state") + inside
    });
    each.sum()
}

/// Counts the locals that an expression introduces.
fn count_locals(expression: &Json) -> usize {
    let of_for = expression.pointer("/for/locals").and_then(Json::as_array);
    of_for.map_or(usize::from(expression.get("let").is_some()), Vec::len)
}

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
