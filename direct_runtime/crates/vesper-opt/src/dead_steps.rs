//! Dead steps: removes unread steps that cannot fail and cost no fuel.
//!
//! The walk runs from the end, because a step is read only after it. Every reference of a clause counts as a read: the
//! outcome shows it when the clause is broken.

use std::collections::HashSet;

use vesper_ir::Node;
use vesper_ir::flow::{Block, Statement};
use vesper_ir::node::{ExpressionIndex, ExpressionKind};

use crate::safety::{collect_reached, is_safe};
use crate::{Facts, kind, known_boolean};

/// Removes the steps that no expression reads.
pub(crate) fn remove(node: &mut Node, facts: &Facts) {
    let body = std::mem::take(&mut node.body);
    let mut search = Search {
        node,
        facts,
        read: HashSet::new(),
    };
    let body = search.block(body);
    node.body = body;
}

struct Search<'a> {
    node: &'a Node,
    facts: &'a Facts,
    /// Indexes of the steps that later statements read.
    read: HashSet<usize>,
}

impl Search<'_> {
    fn block(&mut self, block: Block) -> Block {
        let mut kept = Vec::with_capacity(block.len());
        for statement in block.into_iter().rev() {
            if let Some(statement) = self.statement(statement) {
                kept.push(statement);
            }
        }
        kept.reverse();
        kept
    }

    fn statement(&mut self, mut statement: Statement) -> Option<Statement> {
        for handler in statement_handlers(&mut statement).iter_mut().rev() {
            self.read_all(handler.value);
            handler.body = self.block(std::mem::take(&mut handler.body));
        }
        let place = statement.name().and_then(|name| self.node.step_place(name));
        match &mut statement {
            Statement::Step { value, handlers, .. } => {
                let is_read = place.is_none_or(|place| self.read.contains(&place));
                let may_fail = !is_safe(self.node, self.facts, *value);
                if !is_read && !may_fail && handlers.is_empty() {
                    return None;
                }
                self.read_all([*value]);
            }
            Statement::Return { success: values } | Statement::Raise { error: values } => {
                self.read_all(values.iter().map(|(_, value)| *value));
            }
            Statement::Require { holds } => {
                if known_boolean(self.node, *holds) != Some(true) {
                    self.read_all([*holds]);
                    self.mention(*holds);
                }
            }
            Statement::Branch(branch) => {
                self.read_all(branch.otherwise_value);
                branch.otherwise = self.block(std::mem::take(&mut branch.otherwise));
                for arm in branch.arms.iter_mut().rev() {
                    self.read_all(arm.value);
                    arm.body = self.block(std::mem::take(&mut arm.body));
                    self.read_all([arm.when]);
                }
            }
            Statement::Loop(repeated) => {
                self.read_all(repeated.stop_when);
                self.read_all(repeated.next.iter().map(|(_, value)| *value));
                self.read_all(repeated.collect);
                repeated.body = self.block(std::mem::take(&mut repeated.body));
                self.read_all(
                    [repeated.over, repeated.filter, repeated.condition]
                        .into_iter()
                        .flatten(),
                );
                self.read_all(repeated.state.iter().map(|variable| variable.value));
            }
            Statement::Parallel(parallel) => {
                for member in parallel.members.iter_mut().rev() {
                    *member = self.block(std::mem::take(member));
                }
            }
            Statement::Request(request) => {
                self.read_all(request.key);
                self.read_all(request.arguments.iter().map(|(_, value)| *value));
            }
            Statement::Call(call) => self.read_all(call.inputs.iter().map(|(_, value)| *value)),
        }
        Some(statement)
    }

    fn read_all(&mut self, values: impl IntoIterator<Item = ExpressionIndex>) {
        for value in values {
            let mut found = Vec::new();
            collect_reached(self.node, value, &mut found);
            for index in found {
                if let ExpressionKind::Step(place) = kind(self.node, index) {
                    self.read.insert(*place);
                }
            }
        }
    }

    /// Records all references of a clause, evaluated or not.
    fn mention(&mut self, holds: ExpressionIndex) {
        let start = self.node.expression(holds).map_or(holds, |own| own.start);
        for index in start..=holds {
            if let ExpressionKind::Step(place) = kind(self.node, index) {
                self.read.insert(*place);
            }
        }
    }
}

fn statement_handlers(statement: &mut Statement) -> &mut [vesper_ir::flow::Handler] {
    match statement {
        Statement::Step { handlers, .. } => handlers,
        Statement::Branch(branch) => &mut branch.handlers,
        Statement::Loop(repeated) => &mut repeated.handlers,
        Statement::Parallel(parallel) => &mut parallel.handlers,
        Statement::Request(request) => &mut request.handlers,
        Statement::Call(call) => &mut call.handlers,
        Statement::Return { .. } | Statement::Raise { .. } | Statement::Require { .. } => &mut [],
    }
}
