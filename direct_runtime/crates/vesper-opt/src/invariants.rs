//! Loop-invariant code: computes unchanging expressions before the first round of a loop.
//!
//! Only expressions that cannot fail and cost no fuel are moved, because a loop without rounds would not evaluate them.
//! Conditions belong to the rule `guards`, all other expressions to `invariants`.

use std::collections::HashSet;
use std::sync::Arc;

use vesper_ir::flow::{Block, Loop, Statement};
use vesper_ir::node::{ExpressionIndex, ExpressionKind, LocalNumber};
use vesper_ir::{Node, Type};

use crate::common::is_test;
use crate::safety::{collect_reached, is_safe, parts_of};
use crate::{Facts, LoopPlace, Rule, Rules, forward, is_reference, kind, type_of};

/// Records the expressions to compute before the rounds of loops, outermost loops first.
pub(crate) fn hoist(node: &mut Node, facts: &mut Facts, rules: Rules) {
    let body = std::mem::take(&mut node.body);
    let mut search = Search { node, facts, rules };
    let clauses = [
        &node.constraints,
        &node.preconditions,
        &node.postconditions,
        &node.invariants,
    ];
    for clause in clauses.into_iter().flatten() {
        search.expression(*clause);
    }
    search.block(&body);
    node.body = body;
}

/// Names whose values change from round to round.
#[derive(Default)]
struct Changing {
    locals: HashSet<usize>,
    steps: HashSet<usize>,
}

struct Search<'a> {
    node: &'a Node,
    facts: &'a mut Facts,
    rules: Rules,
}

impl Search<'_> {
    fn block(&mut self, block: &Block) {
        for statement in block {
            match statement {
                Statement::Branch(branch) => {
                    for arm in &branch.arms {
                        self.expression(arm.when);
                        self.block(&arm.body);
                        self.expressions(arm.value);
                    }
                    self.block(&branch.otherwise);
                    self.expressions(branch.otherwise_value);
                }
                Statement::Loop(repeated) => self.loop_statement(repeated),
                Statement::Parallel(parallel) => {
                    for member in &parallel.members {
                        self.block(member);
                    }
                }
                other => self.expressions(values_of(other)),
            }
            for handler in statement.handlers() {
                self.block(&handler.body);
                self.expressions(handler.value);
            }
        }
    }

    fn expressions(&mut self, values: impl IntoIterator<Item = ExpressionIndex>) {
        for value in values {
            self.expression(value);
        }
    }

    fn loop_statement(&mut self, repeated: &Loop) {
        let mut inside = Inside::default();
        inside.rounds(repeated);
        let Inside {
            values,
            names,
            numbers,
        } = inside;

        let mut changing = Changing::default();
        let locals = numbers.iter().filter_map(|number| self.node.loop_local(*number));
        changing.locals.extend(locals);
        let places = names.iter().filter_map(|name| self.node.step_place(name));
        changing.steps.extend(places);
        for value in &values {
            self.collect_bound(*value, &mut changing);
        }
        self.expressions(repeated.over);
        self.expressions(repeated.state.iter().map(|variable| variable.value));
        if let Some(place) = self.node.step_place(&repeated.name) {
            self.rounds(LoopPlace::Statement(place), &values, &changing);
        }
        // Inner loops, for expressions that only they keep unchanged.
        self.expressions([repeated.filter, repeated.condition].into_iter().flatten());
        self.block(&repeated.body);
        self.expressions(repeated.collect);
        self.expressions(repeated.next.iter().map(|(_, value)| *value));
        self.expressions(repeated.stop_when);
    }

    /// Visits the loops in an expression.
    fn expression(&mut self, index: ExpressionIndex) {
        let node = self.node;
        let index = forward(node, index);
        if self.facts.held.contains_key(&index) {
            return;
        }
        if let ExpressionKind::For {
            item,
            entry_value,
            so_far,
            parts,
        } = kind(node, index)
        {
            let optional = [parts.filter, parts.key, Some(parts.value)];
            let values: Vec<_> = optional.into_iter().flatten().collect();
            let mut changing = Changing::default();
            changing.locals.insert(*item);
            changing
                .locals
                .extend([*entry_value, *so_far].into_iter().flatten());
            for value in &values {
                self.collect_bound(*value, &mut changing);
            }
            self.rounds(LoopPlace::For(index), &values, &changing);
        }
        for part in parts_of(kind(node, index)) {
            self.expression(part);
        }
    }

    /// Collects the locals that are bound inside an expression.
    fn collect_bound(&self, value: ExpressionIndex, changing: &mut Changing) {
        let mut found = Vec::new();
        collect_reached(self.node, value, &mut found);
        for index in found {
            match kind(self.node, index) {
                ExpressionKind::Let { local, .. } => {
                    changing.locals.insert(*local);
                }
                ExpressionKind::For {
                    item,
                    entry_value,
                    so_far,
                    ..
                } => {
                    let locals = [Some(*item), *entry_value, *so_far];
                    changing.locals.extend(locals.into_iter().flatten());
                }
                _ => {}
            }
        }
    }

    fn rounds(&mut self, place: LoopPlace, values: &[ExpressionIndex], changing: &Changing) {
        let mut found = Vec::new();
        for value in values {
            self.collect_largest(*value, changing, &mut found);
        }
        for index in &found {
            let held = self.facts.new_place();
            self.facts.held.insert(*index, held);
        }
        if !found.is_empty() {
            self.facts.before.insert(place, found);
        }
    }

    /// Collects the largest expressions that do not change.
    fn collect_largest(&self, index: ExpressionIndex, changing: &Changing, found: &mut Vec<ExpressionIndex>) {
        let index = forward(self.node, index);
        let kind = kind(self.node, index);
        if is_reference(kind) || self.facts.held.contains_key(&index) {
            return;
        }
        if self.is_worthwhile(index, kind)
            && self.is_unchanged(index, changing)
            && is_safe(self.node, self.facts, index)
        {
            found.push(index);
            return;
        }
        for part in parts_of(kind) {
            self.collect_largest(part, changing, found);
        }
    }

    fn is_worthwhile(&self, index: ExpressionIndex, kind: &ExpressionKind) -> bool {
        let rule = match type_of(self.node, index) {
            Some(Type::Boolean) => Rule::Guards,
            // A value that may be large is built where it is used, if at all.
            Some(Type::Array(_) | Type::Set(_) | Type::Map(_) | Type::Json | Type::Record(_)) | None => {
                return false;
            }
            Some(_) => Rule::Invariants,
        };
        // A jump evaluates a numeric comparison by itself and would only read the result instead.
        let is_free = matches!(kind, ExpressionKind::Call { op, .. } if is_test(*op));
        self.rules.has(rule) && !is_free && !matches!(kind, ExpressionKind::Let { .. })
    }

    fn is_unchanged(&self, index: ExpressionIndex, changing: &Changing) -> bool {
        let mut found = Vec::new();
        collect_reached(self.node, index, &mut found);
        found.iter().all(|part| match kind(self.node, *part) {
            ExpressionKind::Local(local) => !changing.locals.contains(local),
            ExpressionKind::Step(step) => !changing.steps.contains(step),
            _ => true,
        })
    }
}

/// Returns the expressions of a statement that is neither branch nor loop.
fn values_of(statement: &Statement) -> Vec<ExpressionIndex> {
    match statement {
        Statement::Step { value, .. } => vec![*value],
        Statement::Return { success: values } | Statement::Raise { error: values } => {
            values.iter().map(|(_, value)| *value).collect()
        }
        Statement::Require { holds } => vec![*holds],
        Statement::Request(request) => {
            let arguments = request.arguments.iter().map(|(_, value)| *value);
            request.key.into_iter().chain(arguments).collect()
        }
        Statement::Call(call) => call.inputs.iter().map(|(_, value)| *value).collect(),
        Statement::Branch(_) | Statement::Loop(_) | Statement::Parallel(_) => Vec::new(),
    }
}

/// Names inside the rounds of a loop, including inner blocks and loops.
#[derive(Default)]
struct Inside {
    values: Vec<ExpressionIndex>,
    /// Names of its steps.
    names: Vec<Arc<str>>,
    /// Numbers of its locals and of its state.
    numbers: Vec<LocalNumber>,
}

impl Inside {
    fn rounds(&mut self, repeated: &Loop) {
        self.numbers.extend(&repeated.locals);
        self.numbers
            .extend(repeated.state.iter().map(|variable| variable.local));
        self.values
            .extend([repeated.filter, repeated.condition].into_iter().flatten());
        self.block(&repeated.body);
        self.values.extend(repeated.collect);
        self.values.extend(repeated.next.iter().map(|(_, value)| *value));
        self.values.extend(repeated.stop_when);
    }

    fn block(&mut self, block: &Block) {
        for statement in block {
            self.names.extend(statement.name().cloned());
            self.values.extend(values_of(statement));
            match statement {
                Statement::Branch(branch) => {
                    for arm in &branch.arms {
                        self.values.push(arm.when);
                        self.block(&arm.body);
                        self.values.extend(arm.value);
                    }
                    self.block(&branch.otherwise);
                    self.values.extend(branch.otherwise_value);
                }
                Statement::Loop(repeated) => {
                    self.values.extend(repeated.over);
                    self.values
                        .extend(repeated.state.iter().map(|variable| variable.value));
                    self.rounds(repeated);
                }
                Statement::Parallel(parallel) => {
                    for member in &parallel.members {
                        self.block(member);
                    }
                }
                _ => {}
            }
            for handler in statement.handlers() {
                self.block(&handler.body);
                self.values.extend(handler.value);
            }
        }
    }
}
