//! Walk over a node in order of evaluation, shared by all rules.

use std::collections::HashMap;

use vesper_ir::Node;
use vesper_ir::flow::{Block, Branch, Handler, Loop, NamedValue, Statement, leaves};
use vesper_ir::node::{ExpressionIndex, ExpressionKind};

use crate::{Facts, LoopPlace, forward, kind, known_boolean};

/// Callbacks of a walk. Scopes nest: expressions between `open` and `close` are not evaluated in every execution.
pub(crate) trait Visitor {
    /// Called before the operands of an expression. False skips the operands and the expression.
    fn enter(&mut self, _node: &Node, _index: ExpressionIndex) -> bool {
        true
    }

    /// Called after the operands of an expression.
    fn leave(&mut self, node: &mut Node, index: ExpressionIndex);

    fn open(&mut self) {}

    fn close(&mut self) {}

    /// Called where a condition has a known value until the end of the scope.
    fn assume(&mut self, _node: &Node, _condition: ExpressionIndex, _is: bool) {}

    /// Called after a step received its value. `value` is its expression, if there is only one.
    fn step(&mut self, _node: &Node, _place: usize, _value: Option<ExpressionIndex>) {}

    /// Called where a `let` binds its local.
    fn bind(&mut self, _node: &Node, _local: usize, _value: ExpressionIndex) {}

    /// Called where a loop takes its next item.
    fn item(&mut self, _node: &Node, _local: usize, _over: ExpressionIndex) {}

    /// Called before the rounds of a loop. The expressions that are computed before them follow.
    fn rounds(&mut self, _node: &Node, _place: LoopPlace) {}

    /// Called for each variable of a loop's state, with its first value.
    fn state(&mut self, _node: &Node, _local: usize, _first: ExpressionIndex) {}

    /// Called after the state of a loop received its next values.
    fn next(&mut self, _node: &Node, _repeated: &Loop) {}

    /// Called after a loop; its step has the record of its state.
    fn after_loop(&mut self, _node: &Node, _place: usize, _repeated: &Loop) {}

    fn after_return(&mut self, _node: &Node, _success: &[NamedValue]) {}

    /// Called before the clauses after the body: postconditions if `is_post`, otherwise invariants.
    fn after_body(&mut self, _node: &Node, _is_post: bool) {}
}

/// Walks a node in program order.
pub(crate) fn walk(node: &mut Node, facts: Option<&Facts>, visitor: &mut impl Visitor) {
    let nothing = HashMap::new();
    let before = facts.map_or(&nothing, |facts| &facts.before);
    let body = std::mem::take(&mut node.body);
    let mut walk = Walk {
        node,
        visitor,
        before,
    };
    walk.clauses(|node| &node.constraints);
    walk.clauses(|node| &node.preconditions);
    // An early `return` or a `raise` skips the rest of the body but not the clauses after it.
    let is_straight = is_straight(&body);
    let has_errors = !walk.node.errors.is_empty();
    walk.visitor.open();
    walk.block(&body);
    if !is_straight {
        walk.visitor.close();
    }
    walk.visitor.after_body(walk.node, true);
    // A declared error skips the postconditions.
    walk.visitor.open();
    walk.clauses(|node| &node.postconditions);
    walk.visitor.close();
    if is_straight && has_errors {
        walk.visitor.close();
    }
    walk.visitor.after_body(walk.node, false);
    walk.clauses(|node| &node.invariants);
    if is_straight && !has_errors {
        walk.visitor.close();
    }
    node.body = body;
}

struct Walk<'a, V> {
    node: &'a mut Node,
    visitor: &'a mut V,
    before: &'a HashMap<LoopPlace, Vec<ExpressionIndex>>,
}

impl<V: Visitor> Walk<'_, V> {
    fn clauses(&mut self, list: fn(&Node) -> &Vec<ExpressionIndex>) {
        let clauses = list(self.node).clone();
        for holds in clauses {
            self.expression(holds);
            self.visitor.assume(self.node, holds, true);
        }
    }

    fn block(&mut self, block: &Block) {
        for statement in block {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        let handlers = statement.handlers();
        if !handlers.is_empty() {
            // A handled failure skips the rest of the statement.
            self.visitor.open();
        }
        match statement {
            Statement::Step { value, .. } => self.expression(*value),
            Statement::Return { success } => {
                for (_, value) in success {
                    self.expression(*value);
                }
                self.visitor.after_return(self.node, success);
            }
            Statement::Raise { error } => {
                for (_, value) in error {
                    self.expression(*value);
                }
            }
            Statement::Require { holds } => {
                self.expression(*holds);
                self.visitor.assume(self.node, *holds, true);
            }
            Statement::Branch(branch) => self.branch(branch),
            Statement::Loop(repeated) => self.loop_statement(repeated),
            // Members do not see each other: what one computes, no other one has.
            Statement::Parallel(parallel) => {
                for member in &parallel.members {
                    self.visitor.open();
                    self.block(member);
                    self.visitor.close();
                }
            }
            Statement::Request(request) => {
                request.key.iter().for_each(|key| self.expression(*key));
                for (_, value) in &request.arguments {
                    self.expression(*value);
                }
            }
            Statement::Call(call) => {
                for (_, value) in &call.inputs {
                    self.expression(*value);
                }
            }
        }
        if !handlers.is_empty() {
            self.visitor.close();
            self.handlers(handlers);
        }
        let place = statement.name().and_then(|name| self.node.step_place(name));
        if let Some(place) = place {
            match statement {
                Statement::Step { value, handlers, .. } if handlers.is_empty() => {
                    self.visitor.step(self.node, place, Some(*value));
                }
                Statement::Loop(repeated) if handlers.is_empty() => {
                    self.visitor.after_loop(self.node, place, repeated);
                }
                _ => self.visitor.step(self.node, place, None),
            }
        }
        if let Statement::Branch(branch) = statement
            && handlers.is_empty()
        {
            self.assume_no_arm(branch);
        }
    }

    fn handlers(&mut self, handlers: &[Handler]) {
        for handler in handlers {
            self.visitor.open();
            self.block(&handler.body);
            handler.value.iter().for_each(|value| self.expression(*value));
            self.visitor.close();
        }
    }

    fn branch(&mut self, branch: &Branch) {
        for arm in &branch.arms {
            self.expression(arm.when);
            let known = known_boolean(self.node, arm.when);
            if known != Some(false) {
                self.visitor.open();
                self.visitor.assume(self.node, arm.when, true);
                self.block(&arm.body);
                arm.value.iter().for_each(|value| self.expression(*value));
                self.visitor.close();
            }
            self.visitor.open();
            self.visitor.assume(self.node, arm.when, false);
        }
        self.block(&branch.otherwise);
        branch
            .otherwise_value
            .iter()
            .for_each(|value| self.expression(*value));
        for _ in &branch.arms {
            self.visitor.close();
        }
    }

    /// Assumes that no test held, after a branch whose arms all left the block.
    fn assume_no_arm(&mut self, branch: &Branch) {
        if branch.arms.iter().all(|arm| leaves(&arm.body)) && !leaves(&branch.otherwise) {
            for arm in &branch.arms {
                self.visitor.assume(self.node, arm.when, false);
            }
        }
    }

    fn loop_statement(&mut self, repeated: &Loop) {
        repeated.over.iter().for_each(|over| self.expression(*over));
        for variable in &repeated.state {
            self.expression(variable.value);
        }
        for variable in &repeated.state {
            if let Some(local) = self.node.loop_local(variable.local) {
                self.visitor.state(self.node, local, variable.value);
            }
        }
        let Some(place) = self.node.step_place(&repeated.name) else {
            return;
        };
        self.begin_rounds(LoopPlace::Statement(place));
        if let Some(over) = repeated.over {
            for number in &repeated.locals {
                if let Some(local) = self.node.loop_local(*number) {
                    self.visitor.item(self.node, local, over);
                }
            }
        }
        for condition in [repeated.filter, repeated.condition].into_iter().flatten() {
            self.expression(condition);
            self.visitor.assume(self.node, condition, true);
        }
        self.block(&repeated.body);
        repeated.collect.iter().for_each(|value| self.expression(*value));
        for (_, value) in &repeated.next {
            self.expression(*value);
        }
        self.visitor.next(self.node, repeated);
        repeated
            .stop_when
            .iter()
            .for_each(|value| self.expression(*value));
        self.visitor.close();
    }

    /// Visits the expressions before a loop's rounds and opens the scope of a round.
    fn begin_rounds(&mut self, place: LoopPlace) {
        self.visitor.rounds(self.node, place);
        for index in self.before.get(&place).into_iter().flatten() {
            self.expression(*index);
        }
        self.visitor.open();
    }

    fn expression(&mut self, index: ExpressionIndex) {
        let index = forward(self.node, index);
        if !self.visitor.enter(self.node, index) {
            return;
        }
        match kind(self.node, index) {
            ExpressionKind::Literal(_)
            | ExpressionKind::Input(_)
            | ExpressionKind::Constant(_)
            | ExpressionKind::Step(_)
            | ExpressionKind::Output(_)
            | ExpressionKind::Error(_)
            | ExpressionKind::Now
            | ExpressionKind::Result
            | ExpressionKind::Local(_) => {}
            ExpressionKind::Call { args: parts, .. }
            | ExpressionKind::Apply { args: parts, .. }
            | ExpressionKind::Array(parts)
            | ExpressionKind::Record(parts) => {
                for part in parts.clone() {
                    self.expression(part);
                }
            }
            ExpressionKind::Field { of, .. } => self.expression(*of),
            ExpressionKind::If {
                condition,
                then,
                otherwise,
            } => {
                let (condition, then, otherwise) = (*condition, *then, *otherwise);
                self.expression(condition);
                self.conditional(condition, true, then);
                self.conditional(condition, false, otherwise);
            }
            ExpressionKind::And(left, right) => {
                let (left, right) = (*left, *right);
                self.expression(left);
                self.conditional(left, true, right);
            }
            ExpressionKind::Or(left, right) => {
                let (left, right) = (*left, *right);
                self.expression(left);
                self.conditional(left, false, right);
            }
            ExpressionKind::Let { local, value, body } => {
                let (local, value, body) = (*local, *value, *body);
                self.expression(value);
                self.visitor.bind(self.node, local, value);
                self.expression(body);
            }
            ExpressionKind::For {
                item,
                entry_value,
                parts,
                ..
            } => {
                let (item, entry_value, parts) = (*item, *entry_value, *parts);
                self.expression(parts.over);
                parts.with.iter().for_each(|with| self.expression(*with));
                self.begin_rounds(LoopPlace::For(index));
                for local in [Some(item), entry_value].into_iter().flatten() {
                    self.visitor.item(self.node, local, parts.over);
                }
                if let Some(filter) = parts.filter {
                    self.expression(filter);
                    self.visitor.assume(self.node, filter, true);
                }
                parts.key.iter().for_each(|key| self.expression(*key));
                self.expression(parts.value);
                self.visitor.close();
            }
        }
        self.visitor.leave(self.node, index);
    }

    /// Visits an expression that is evaluated only under a condition.
    fn conditional(&mut self, condition: ExpressionIndex, is: bool, index: ExpressionIndex) {
        if known_boolean(self.node, condition) == Some(!is) {
            return;
        }
        self.visitor.open();
        self.visitor.assume(self.node, condition, is);
        self.expression(index);
        self.visitor.close();
    }
}

/// Returns true where the only `return` is the last statement. Every execution that returns has then passed all
/// statements.
pub(crate) fn is_straight(body: &Block) -> bool {
    matches!(body.last(), Some(Statement::Return { .. })) && count_returns(body) == 1
}

fn count_returns(block: &[Statement]) -> usize {
    let of = |statement: &Statement| {
        let own = usize::from(matches!(statement, Statement::Return { .. }));
        own + statement
            .blocks()
            .map(|block| count_returns(block))
            .sum::<usize>()
    };
    block.iter().map(of).sum()
}

/// Map that restores its entries at the end of a scope.
#[derive(Debug)]
pub(crate) struct Scoped<K, T> {
    now: HashMap<K, T>,
    /// For each scope the replaced entries.
    before: Vec<Vec<(K, Option<T>)>>,
}

impl<K: Clone + Eq + std::hash::Hash, T: Clone> Scoped<K, T> {
    pub(crate) fn new() -> Self {
        Self {
            now: HashMap::new(),
            before: Vec::new(),
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&T> {
        self.now.get(key)
    }

    pub(crate) fn put(&mut self, key: K, value: T) {
        let old = self.now.insert(key.clone(), value);
        if let Some(scope) = self.before.last_mut() {
            scope.push((key, old));
        }
    }

    pub(crate) fn open(&mut self) {
        self.before.push(Vec::new());
    }

    pub(crate) fn close(&mut self) {
        for (key, old) in self.before.pop().unwrap_or_default().into_iter().rev() {
            match old {
                Some(value) => self.now.insert(key, value),
                None => self.now.remove(&key),
            };
        }
    }
}
