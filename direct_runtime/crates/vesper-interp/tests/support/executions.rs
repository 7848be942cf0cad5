//! Helpers that start, advance and complete executions of nodes with the integer `x`.

use serde_json::{Value as Json, json};
use vesper_interp::{Advanced, Completion, Execution, Misuse, Program, Request};
use vesper_ir::{FailureCode, Value};

use super::flow::build;
use super::support::{load, show_value, shown_outcome};

pub(crate) fn node(id: &str, body: Json, rest: Json) -> Json {
    let mut node = json!({
        "node_id": id, "type": "workflow",
        "inputs": [{"name": "x", "type": "integer"}],
        "outputs": {"success": [{"name": "result", "type": "integer"}], "error": []},
        "body": body,
    });
    for (key, value) in rest.as_object().unwrap() {
        node[key] = value.clone();
    }
    build(&node)
}

pub(crate) fn program(body: Json) -> Program {
    load(&node("test_v1", body, json!({})))
}

pub(crate) fn start(program: &Program, x: i64) -> Execution {
    program.start(vec![Value::Integer(x)], None, true).unwrap()
}

pub(crate) fn expect_request(advanced: Result<Advanced, Misuse>) -> Request {
    match advanced.unwrap() {
        Advanced::Blocked(mut wave) => {
            assert_eq!(wave.len(), 1, "{wave:?}");
            wave.remove(0)
        }
        Advanced::Done(outcome, _) => panic!("done: {outcome:?}"),
    }
}

pub(crate) fn expect_outcome(program: &Program, advanced: Result<Advanced, Misuse>) -> (String, Vec<String>) {
    match advanced.unwrap() {
        Advanced::Blocked(request) => panic!("blocked: {request:?}"),
        Advanced::Done(outcome, marks) => {
            let marks = marks.iter().map(|mark| {
                let ty = &program.node().expression(mark.index).unwrap().ty;
                format!("{}:{}", mark.index, show_value(ty, &mark.value))
            });
            (shown_outcome(program, &outcome), marks.collect())
        }
    }
}

#[allow(clippy::unnecessary_wraps, reason = "what an execution is advanced with")]
pub(crate) fn value(id: u64, value: i64) -> Option<(u64, Completion)> {
    Some((id, Completion::Value(Value::Integer(value))))
}

#[allow(clippy::unnecessary_wraps, reason = "what an execution is advanced with")]
pub(crate) fn failure(id: u64, code: &str) -> Option<(u64, Completion)> {
    Some((id, Completion::Failed(FailureCode::new(code))))
}

/// Completes the only request of a new execution with a failure.
pub(crate) fn failing(program: &Program, code: &str) -> String {
    let mut execution = start(program, 1);
    let request = expect_request(execution.advance(None));
    expect_outcome(program, execution.advance(failure(request.id, code))).0
}
