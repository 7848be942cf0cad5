//! Text listing of an optimised node, for inspection.
//!
//! ```text
//! %0 = e    the value of e is held        %0        the value held there
//! op!(…)    cannot fail here              select(…) a choice without a jump
//! ```

use std::fmt::Write;

use vesper_ir::flow::{Block, Branch, Handler, Loop, NamedValue, Statement};
use vesper_ir::node::{ExpressionIndex, ExpressionKind, For};
use vesper_ir::{Node, Type, Value};

use crate::{Facts, LoopPlace, Optimised, Switch, forward, kind, known_boolean, type_of};

/// Formats the statements and clauses of an optimised node, one per line.
pub fn listing(of: &Optimised) -> String {
    let mut writer = Writer {
        node: &of.node,
        facts: &of.facts,
        text: String::new(),
        shown: vec![false; of.facts.places as usize],
        depth: 0,
    };
    writer.line(&format!("node {}", of.node.node_id));
    writer.clauses("constraint", &of.node.constraints);
    writer.clauses("precondition", &of.node.preconditions);
    writer.block(&of.node.body);
    writer.clauses("postcondition", &of.node.postconditions);
    writer.clauses("invariant", &of.node.invariants);
    writer.text
}

struct Writer<'a> {
    node: &'a Node,
    facts: &'a Facts,
    text: String,
    /// Slots that an earlier line assigned.
    shown: Vec<bool>,
    depth: usize,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn clauses(&mut self, phase: &str, list: &[ExpressionIndex]) {
        for (number, holds) in list.iter().enumerate() {
            self.clause(&format!("{phase} {number}"), *holds);
        }
    }

    fn clause(&mut self, what: &str, holds: ExpressionIndex) {
        if known_boolean(self.node, holds) == Some(true) {
            self.line(&format!("{what}: holds"));
            return;
        }
        let text = self.expression(holds);
        self.line(&format!("{what}: {text}"));
    }

    fn block(&mut self, block: &Block) {
        for statement in block {
            self.statement(statement);
        }
    }

    fn with_indent(&mut self, write: impl FnOnce(&mut Self)) {
        self.depth += 1;
        write(self);
        self.depth -= 1;
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Step { name, value, .. } => {
                let text = self.expression(*value);
                self.line(&format!("{name} = {text}"));
            }
            Statement::Return { success } => self.named_values("return", success),
            Statement::Raise { error } => self.named_values("raise", error),
            Statement::Require { holds } => self.clause("require", *holds),
            Statement::Branch(branch) => self.branch(branch),
            Statement::Loop(repeated) => self.loop_statement(repeated),
            Statement::Parallel(parallel) => {
                self.line(&format!("parallel {}", parallel.name));
                for member in &parallel.members {
                    self.with_indent(|own| {
                        own.line("member");
                        own.with_indent(|own| own.block(member));
                    });
                }
            }
            Statement::Request(request) => {
                let key = request.key.map(|key| self.expression(key));
                let key = key.map_or_else(String::new, |key| format!(" key {key}"));
                self.named_values(
                    &format!("{} = request {}{key}", request.name, request.effect.name()),
                    &request.arguments,
                );
            }
            Statement::Call(call) => {
                self.named_values(&format!("{} = call {}", call.name, call.node), &call.inputs);
            }
        }
        self.handlers(statement.handlers());
    }

    fn named_values(&mut self, what: &str, values: &[NamedValue]) {
        let mut text = what.to_owned();
        for (place, (name, value)) in values.iter().enumerate() {
            let value = self.expression(*value);
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(text, "{comma} {name}: {value}");
        }
        self.line(&text);
    }

    fn handlers(&mut self, handlers: &[Handler]) {
        for handler in handlers {
            self.line(&format!("on {}", handler.codes.join(", ")));
            self.with_indent(|own| {
                own.block(&handler.body);
                own.value(handler.value);
            });
        }
    }

    fn value(&mut self, value: Option<ExpressionIndex>) {
        if let Some(value) = value {
            let text = self.expression(value);
            self.line(&format!("= {text}"));
        }
    }

    fn branch(&mut self, branch: &Branch) {
        let first = branch
            .arms
            .first()
            .and_then(|arm| self.facts.switches.get(&arm.when));
        let table = first.map(|switch| self.table(switch));
        self.line(&format!("{} = branch{}", branch.name, table.unwrap_or_default()));
        for arm in &branch.arms {
            let when = self.expression(arm.when);
            self.line(&format!("when {when}"));
            self.with_indent(|own| {
                own.block(&arm.body);
                own.value(arm.value);
            });
        }
        self.line("else");
        self.with_indent(|own| {
            own.block(&branch.otherwise);
            own.value(branch.otherwise_value);
        });
    }

    fn loop_statement(&mut self, repeated: &Loop) {
        let over = repeated.over.map(|over| self.expression(over));
        let over = over.map_or_else(String::new, |over| format!(" over {over}"));
        let state: Vec<_> = repeated
            .state
            .iter()
            .map(|variable| format!(" {}: {}", variable.name, self.expression(variable.value)))
            .collect();
        self.line(&format!("{} = loop{over} with{}", repeated.name, state.join(",")));
        self.with_indent(|own| {
            if let Some(place) = own.node.step_place(&repeated.name) {
                own.before(LoopPlace::Statement(place));
            }
            own.part("where", repeated.filter);
            own.part("while", repeated.condition);
            own.block(&repeated.body);
            own.part("collect", repeated.collect);
            for (number, value) in &repeated.next {
                let text = own.expression(*value);
                let named = repeated.state.iter().find(|variable| variable.local == *number);
                let name = named.map_or("", |variable| &variable.name);
                own.line(&format!("next {name} = {text}"));
            }
            own.part("stop when", repeated.stop_when);
        });
    }

    fn before(&mut self, place: LoopPlace) {
        for index in self.facts.before.get(&place).into_iter().flatten() {
            let text = self.expression(*index);
            self.line(&format!("before {text}"));
        }
    }

    fn part(&mut self, what: &str, value: Option<ExpressionIndex>) {
        if let Some(value) = value {
            let text = self.expression(value);
            self.line(&format!("{what} {text}"));
        }
    }

    fn table(&mut self, switch: &Switch) -> String {
        let subject = self.expression(switch.subject);
        let ty = type_of(self.node, switch.subject).cloned();
        let mut text = format!(" by table of {subject}:");
        for case in &switch.cases {
            let value = match &ty {
                Some(Type::Enum(_)) => {
                    u32::try_from(case.value).map(|place| Value::Member(vesper_ir::Member(place)))
                }
                _ => Ok(Value::Integer(case.value)),
            };
            let value = value.map_or_else(|_| String::new(), |value| format_literal(&value, ty.as_ref()));
            let more = if case.is_decided { "" } else { "?" };
            let _ = write!(text, " {value} -> {}{more},", case.arm);
        }
        let _ = write!(text, " else -> {}", switch.otherwise);
        text
    }

    fn expression(&mut self, index: ExpressionIndex) -> String {
        let index = forward(self.node, index);
        let Some(place) = self.facts.held.get(&index).copied() else {
            return self.format_expression(index);
        };
        match self.shown.get_mut(place as usize) {
            Some(shown) if !*shown => {
                *shown = true;
                let text = self.format_expression(index);
                format!("(%{place} = {text})")
            }
            _ => format!("%{place}"),
        }
    }

    fn all(&mut self, parts: &[ExpressionIndex]) -> String {
        let texts: Vec<_> = parts.iter().map(|part| self.expression(*part)).collect();
        texts.join(", ")
    }

    fn format_expression(&mut self, index: ExpressionIndex) -> String {
        let node = self.node;
        let name = |name: Option<&std::sync::Arc<str>>| name.map_or_else(String::new, ToString::to_string);
        match kind(node, index) {
            ExpressionKind::Literal(value) => format_literal(value, type_of(node, index)),
            ExpressionKind::Input(place) => name(node.inputs.get(*place).map(|own| &own.name)),
            ExpressionKind::Constant(place) => name(node.constants.get(*place).map(|own| &own.name)),
            ExpressionKind::Step(place) => name(node.steps.get(*place).map(|own| &own.name)),
            ExpressionKind::Output(place) => {
                format!("output.{}", name(node.outputs.get(*place).map(|own| &own.name)))
            }
            ExpressionKind::Error(place) => {
                format!("error.{}", name(node.errors.get(*place).map(|own| &own.name)))
            }
            ExpressionKind::Now => "now".to_owned(),
            ExpressionKind::Result => "result".to_owned(),
            ExpressionKind::Local(place) => format!("${place}"),
            ExpressionKind::Call { op, args, .. } => {
                let args = self.all(args);
                let proven = if self.facts.proven.contains(&index) || self.facts.unchecked.contains(&index) {
                    "!"
                } else {
                    ""
                };
                format!("{}{proven}({args})", op.name())
            }
            ExpressionKind::If {
                condition,
                then,
                otherwise,
            } => {
                let table = self
                    .facts
                    .switches
                    .get(condition)
                    .map(|switch| self.table(switch));
                let parts = [*condition, *then, *otherwise].map(|part| self.expression(part));
                let [condition, then, otherwise] = parts;
                if self.facts.selects.contains(&index) {
                    return format!("select({condition}, {then}, {otherwise})");
                }
                let table = table.map_or_else(String::new, |table| format!("[{}] ", table.trim_start()));
                format!("{table}if {condition} then {then} else {otherwise}")
            }
            ExpressionKind::And(left, right) => {
                format!("({} and {})", self.expression(*left), self.expression(*right))
            }
            ExpressionKind::Or(left, right) => {
                format!("({} or {})", self.expression(*left), self.expression(*right))
            }
            ExpressionKind::Let { local, value, body } => {
                let value = self.expression(*value);
                format!("(let ${local} = {value} in {})", self.expression(*body))
            }
            ExpressionKind::For { item, parts, .. } => self.comprehension(index, *item, parts),
            ExpressionKind::Apply { function, args } => {
                let name = node
                    .functions
                    .get(*function)
                    .map_or("", |function| &*function.name);
                format!("{name}({})", self.all(args))
            }
            ExpressionKind::Array(items) => format!("[{}]", self.all(items)),
            ExpressionKind::Record(fields) => format!("{{{}}}", self.all(fields)),
            ExpressionKind::Field { place, of } => {
                let field = match type_of(node, *of) {
                    Some(Type::Record(record)) => {
                        record.fields().get(*place as usize).map(|field| &field.name)
                    }
                    _ => None,
                };
                format!("{}.{}", self.expression(*of), name(field))
            }
        }
    }

    fn comprehension(&mut self, index: ExpressionIndex, item: usize, parts: &For) -> String {
        let mut text = format!("{} ${item} in {}", parts.kind.name(), self.expression(parts.over));
        if let Some(with) = parts.with {
            let _ = write!(text, " with {}", self.expression(with));
        }
        for index in self
            .facts
            .before
            .get(&LoopPlace::For(index))
            .into_iter()
            .flatten()
        {
            let _ = write!(text, " before {}", self.expression(*index));
        }
        for (what, part) in [
            ("where", parts.filter),
            ("key", parts.key),
            (":", Some(parts.value)),
        ] {
            if let Some(part) = part {
                let _ = write!(text, " {what} {}", self.expression(part));
            }
        }
        format!("({text})")
    }
}

/// Formats a literal, as short as is unambiguous.
fn format_literal(value: &Value, ty: Option<&Type>) -> String {
    match (value, ty) {
        (Value::Boolean(value), _) => value.to_string(),
        (Value::Integer(value), _) => value.to_string(),
        (Value::Decimal(value), _) => format!("{value}d"),
        (Value::Float(value), _) => format!("{value:?}"),
        (Value::Text(text), _) => format!("{text:?}"),
        (Value::Member(member), Some(Type::Enum(of))) => {
            let name = of.members().get(member.0 as usize);
            name.map_or_else(String::new, ToString::to_string)
        }
        (Value::Null, _) => "null".to_owned(),
        (Value::Array(items), _) => format!("[{} items]", items.len()),
        (Value::Set(members), _) => format!("{{{} members}}", members.len()),
        (Value::Map(map), _) => format!("{{{} entries}}", map.keys().len()),
        (Value::Record(fields), _) => format!("{{{} fields}}", fields.len()),
        (other, _) => format!("{other:?}"),
    }
}
