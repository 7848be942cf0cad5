//! The verified node has every part of the document at its place: written back, it is the same document.

use serde_json::{Value as Json, json};
use vesper_ir::flow::{Block, Handler, NamedValue, Statement};
use vesper_ir::node::{Expression, ExpressionIndex, ExpressionKind, Node};

use crate::base::base;

/// Numbers of the document's locals, by the index that the verified node gives them: those of expressions in order of
/// the table, then those of loops.
const LOCALS: [u64; 8] = [2, 3, 4, 5, 6, 7, 0, 1];

fn write_expression(node: &Node, expression: &Expression, document: &Json) -> Json {
    match &expression.kind {
        ExpressionKind::Input(place) => json!({"input": &*node.inputs[*place].name}),
        ExpressionKind::Constant(place) => json!({"constant": &*node.constants[*place].name}),
        ExpressionKind::Step(place) => json!({"step": &*node.steps[*place].name}),
        ExpressionKind::Output(place) => json!({"output": &*node.outputs[*place].name}),
        ExpressionKind::Error(place) => json!({"error": &*node.errors[*place].name}),
        ExpressionKind::Now => json!({"now": "timestamp"}),
        ExpressionKind::Local(place) => json!({"local": LOCALS[*place]}),
        ExpressionKind::Call { op, args, .. } => {
            let mut fields = json!({"op": op.name(), "args": args});
            if let Some(of) = document.pointer("/call/of") {
                fields["of"] = of.clone();
            }
            json!({"call": fields})
        }
        ExpressionKind::If {
            condition,
            then,
            otherwise,
        } => {
            json!({"if": {"condition": condition, "then": then, "else": otherwise}})
        }
        ExpressionKind::And(left, right) => json!({"and": [left, right]}),
        ExpressionKind::Or(left, right) => json!({"or": [left, right]}),
        ExpressionKind::Let { local, value, body } => {
            json!({"let": {"local": LOCALS[*local], "value": value, "body": body}})
        }
        ExpressionKind::For {
            item,
            entry_value,
            so_far,
            parts,
        } => {
            let locals = [Some(*item), *entry_value, *so_far].into_iter().flatten();
            let locals: Vec<u64> = locals.map(|place| LOCALS[place]).collect();
            let mut fields = json!({
                "kind": parts.kind.name(), "locals": locals, "over": parts.over, "value": parts.value,
            });
            put(&mut fields, "with", parts.with);
            put(&mut fields, "where", parts.filter);
            put(&mut fields, "key", parts.key);
            json!({"for": fields})
        }
        ExpressionKind::Array(items) => json!({"array": {"items": items, "of": document["array"]["of"]}}),
        ExpressionKind::Record(values) => {
            let vesper_ir::Type::Record(of) = &expression.ty else {
                panic!("{:?}", expression.ty)
            };
            let fields = of.fields().iter().zip(values);
            let fields: Vec<Json> = fields
                .map(|(field, value)| json!({"name": &*field.name, "value": value}))
                .collect();
            json!({"record": {"fields": fields}})
        }
        ExpressionKind::Field { place, of } => {
            let vesper_ir::Type::Record(record) = &node.expressions[*of as usize].ty else {
                panic!("{of}")
            };
            json!({"field": {"name": &*record.fields()[*place as usize].name, "of": of}})
        }
        ExpressionKind::Apply { function, args } => {
            json!({"apply": {"args": args, "function": &*node.functions[*function].name}})
        }
        // Values and types have tests of their own.
        ExpressionKind::Literal(_) | ExpressionKind::Result => document.clone(),
    }
}

fn put(fields: &mut Json, name: &str, index: Option<ExpressionIndex>) {
    if let Some(index) = index {
        fields[name] = json!(index);
    }
}

fn write_values(values: &[NamedValue]) -> Vec<Json> {
    let values = values.iter();
    values
        .map(|(name, value)| json!({"name": &**name, "value": value}))
        .collect()
}

fn write_handlers(handlers: &[Handler]) -> Vec<Json> {
    let written = handlers.iter().map(|handler| {
        let codes: Vec<&str> = handler.codes.iter().map(AsRef::as_ref).collect();
        let mut fields = json!({"codes": codes, "body": write_block(&handler.body)});
        put(&mut fields, "value", handler.value);
        fields
    });
    written.collect()
}

fn write_block(block: &Block) -> Vec<Json> {
    block.iter().map(write_statement).collect()
}

fn write_statement(statement: &Statement) -> Json {
    let handlers = write_handlers(statement.handlers());
    match statement {
        Statement::Step { name, value, .. } => {
            json!({"step": {"name": &**name, "value": value, "handlers": handlers}})
        }
        Statement::Return { success } => json!({"return": {"success": write_values(success)}}),
        Statement::Raise { error } => json!({"raise": {"error": write_values(error)}}),
        Statement::Require { holds } => json!({"require": {"holds": holds}}),
        Statement::Branch(branch) => {
            let arms = branch.arms.iter().map(|arm| {
                let mut fields = json!({"when": arm.when, "body": write_block(&arm.body)});
                put(&mut fields, "value", arm.value);
                fields
            });
            let mut fields = json!({
                "name": &*branch.name, "arms": arms.collect::<Vec<_>>(), "else": write_block(&branch.otherwise),
                "handlers": handlers,
            });
            put(&mut fields, "otherwise", branch.otherwise_value);
            json!({"branch": fields})
        }
        Statement::Loop(repeated) => {
            let state = repeated.state.iter();
            let state =
                state.map(|each| json!({"local": each.local, "name": &*each.name, "value": each.value}));
            let next = repeated.next.iter();
            let next = next.map(|(local, value)| json!({"local": local, "value": value}));
            let mut fields = json!({
                "name": &*repeated.name, "locals": repeated.locals, "max": repeated.max, "handlers": handlers,
                "state": state.collect::<Vec<_>>(), "body": write_block(&repeated.body),
                "next": next.collect::<Vec<_>>(),
            });
            put(&mut fields, "over", repeated.over);
            put(&mut fields, "where", repeated.filter);
            put(&mut fields, "while", repeated.condition);
            put(&mut fields, "collect", repeated.collect);
            put(&mut fields, "stop_when", repeated.stop_when);
            if let Some(in_flight) = repeated.in_flight {
                fields["in_flight"] = json!(in_flight);
            }
            json!({"loop": fields})
        }
        Statement::Parallel(parallel) => {
            let members: Vec<Vec<Json>> = parallel.members.iter().map(write_block).collect();
            json!({"parallel": {"name": &*parallel.name, "members": members, "handlers": handlers}})
        }
        Statement::Request(request) => {
            let fixed = request.fixed.iter();
            let fixed = fixed.map(|(name, text)| (name.to_string(), json!(&**text)));
            let mut fields = json!({
                "name": &*request.name, "effect": request.effect.name(), "class": request.class.name(),
                "fixed": Json::Object(fixed.collect()), "arguments": write_values(&request.arguments),
                "result": request.result, "handlers": handlers,
            });
            put(&mut fields, "key", request.key);
            if !request.sensitive.is_empty() {
                let names: Vec<&str> = request.sensitive.iter().map(AsRef::as_ref).collect();
                fields["sensitive"] = json!(names);
            }
            json!({"request": fields})
        }
        Statement::Call(call) => json!({"call": {
            "name": &*call.name, "node": &*call.node, "inputs": write_values(&call.inputs), "result": call.result,
            "handlers": handlers,
        }}),
    }
}

/// Removes the policies, which an engine checks and discards.
fn drop_policies(value: &mut Json) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(drop_policies),
        Json::Object(fields) => {
            fields.remove("policy");
            fields.values_mut().for_each(drop_policies);
        }
        _ => {}
    }
}

fn loaded() -> (Node, Json) {
    let document = base();
    let node = vesper_ir::load(document.to_string().as_bytes()).unwrap();
    (node, document["semantics"].clone())
}

#[test]
fn expressions_keep_their_operands() {
    let (node, semantics) = loaded();
    let listed = semantics["expressions"].as_array().unwrap();
    assert_eq!(node.expressions.len(), listed.len());
    for (place, (expression, document)) in node.expressions.iter().zip(listed).enumerate() {
        assert_eq!(
            &write_expression(&node, expression, document),
            document,
            "expression {place}"
        );
    }
}

#[test]
fn statements_keep_their_parts() {
    let (node, semantics) = loaded();
    let mut body = semantics["body"].clone();
    drop_policies(&mut body);
    assert_eq!(json!(write_block(&node.body)), body);
}

#[test]
fn declarations_keep_their_order() {
    let (node, semantics) = loaded();
    let listed = |path: &str, field: &str| -> Vec<Json> {
        let list = semantics.pointer(path).unwrap().as_array().unwrap();
        list.iter().map(|each| each[field].clone()).collect()
    };
    let names = |names: Vec<&str>| names.into_iter().map(|name| json!(name)).collect::<Vec<_>>();
    let inputs = node.inputs.iter().map(|input| &*input.name).collect();
    assert_eq!(names(inputs), listed("/inputs", "name"));
    let outputs = node.outputs.iter().map(|output| &*output.name).collect();
    assert_eq!(names(outputs), listed("/outputs/success", "name"));
    let errors = node.errors.iter().map(|error| &*error.name).collect();
    assert_eq!(names(errors), listed("/outputs/error", "name"));
    let constants = node.constants.iter().map(|constant| &*constant.name).collect();
    assert_eq!(names(constants), listed("/constants", "name"));
    for (list, path) in [
        (&node.constraints, "/constraints"),
        (&node.preconditions, "/preconditions"),
        (&node.postconditions, "/postconditions"),
        (&node.invariants, "/invariants"),
    ] {
        let written: Vec<Json> = list.iter().map(|holds| json!(holds)).collect();
        assert_eq!(written, listed(path, "holds"));
    }
    let has_default: Vec<bool> = node.inputs.iter().map(|input| input.default.is_some()).collect();
    assert_eq!(has_default, [true, false, true, true]);
    assert!(node.uses_now);
    assert_eq!(node.locals, LOCALS.len());
    for (place, number) in LOCALS.iter().enumerate().skip(6) {
        assert_eq!(node.loop_local(*number), Some(place));
    }
    assert_eq!(node.loop_local(2), None);
    for (place, step) in node.steps.iter().enumerate() {
        assert_eq!(node.step_place(&step.name), Some(place));
    }
    let called = &node.calls[0];
    assert_eq!((&*called.node, called.inputs[0].is_optional), ("other_v1", false));
    assert_eq!((&*called.inputs[0].name, &*called.success[0].name), ("a", "out"));
    assert!(called.error.is_empty());
}

/// A subtree starts at its first operand, at any depth.
#[test]
fn subtrees_start_at_their_first_expression() {
    let (node, semantics) = loaded();
    let listed = semantics["expressions"].as_array().unwrap();
    for (place, (expression, document)) in node.expressions.iter().zip(listed).enumerate() {
        let first = match &expression.kind {
            ExpressionKind::Call { args, .. } | ExpressionKind::Apply { args, .. } => args.first().copied(),
            ExpressionKind::If { condition, .. } => Some(*condition),
            ExpressionKind::And(left, _) | ExpressionKind::Or(left, _) => Some(*left),
            ExpressionKind::Let { value, .. } => Some(*value),
            ExpressionKind::For { parts, .. } => Some(parts.over),
            ExpressionKind::Array(items) | ExpressionKind::Record(items) => items.first().copied(),
            ExpressionKind::Field { of, .. } => Some(*of),
            _ => None,
        };
        let own = u32::try_from(place).unwrap();
        let expected = first.map_or(own, |first| node.expressions[first as usize].start);
        assert_eq!(expression.start, expected, "{document}");
    }
}
