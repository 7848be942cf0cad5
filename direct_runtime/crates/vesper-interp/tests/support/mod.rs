//! Builds small IR documents for tests, and shows outcomes and marks as text.

use serde_json::{Value as Json, json};
use vesper_interp::{Mention, Outcome, Program};
use vesper_ir::{Type, Value};

/// The canonical bytes of a document; `serde_json` sorts keys and escapes exactly as canonical JSON does.
pub(crate) fn document(semantics: &Json) -> Vec<u8> {
    let spans = semantics["expressions"].as_array().map_or(0, Vec::len);
    let source = json!({
        "path": "x.vsp", "sha256": "0".repeat(64), "intent": "a test", "spans": vec![[1, 1, 1, 2]; spans],
        "steps": {}, "clauses": {}, "locals": [],
    });
    json!({"ir_version": 1, "semantics": semantics, "source": source})
        .to_string()
        .into_bytes()
}

pub(crate) fn load(semantics: &Json) -> Program {
    Program::load(&document(semantics)).unwrap_or_else(|rejected| panic!("{rejected}"))
}

/// The form of a value that a person would write.
pub(crate) fn shown(ty: &Type, value: &Value) -> String {
    match value {
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Decimal(value) => value.to_string(),
        Value::Text(value) => format!("{value:?}"),
        Value::Member(member) => match ty {
            Type::Enum(of) => of.name(*member).unwrap().to_string(),
            _ => panic!("a member of {ty}"),
        },
        Value::Set(_) => panic!("a set is never shown"),
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
