//! Verification of statements: their required parts, their scopes and the types of their values.
//!
//! The body is visited in program order, and its expressions are typed on the way. The decoder limits the nesting of
//! blocks, and thereby the recursion here.

use std::collections::HashSet;
use std::iter::{Peekable, Zip};
use std::slice;
use std::sync::Arc;
use std::vec;

use crate::Rejected;
use crate::flow::{
    Block, Branch, CalledNode, Handler, Loop, Machine, NamedValue, Parallel, Statement, leaves,
};
use crate::limits::STRANDS;
use crate::node::{ExpressionIndex, LocalNumber, Output, RawExpression, RawFunction};
use crate::types::{Field, Type};

use super::expression::{Scope, Typing};

/// Parts of a body, in program order.
#[derive(Default)]
pub(super) struct Parts {
    /// Names of statements.
    pub(super) names: Vec<Arc<str>>,
    /// Expressions that statements use.
    pub(super) roots: Vec<ExpressionIndex>,
    /// Names of requests and calls.
    pub(super) answering: HashSet<Arc<str>>,
    /// Locals that loops introduce, with the names of the loops.
    pub(super) locals: Vec<(Arc<str>, LocalNumber)>,
}

pub(super) fn parts(body: &Block) -> Parts {
    let mut found = Parts::default();
    found.block(body);
    found
}

impl Parts {
    fn block(&mut self, block: &Block) {
        for statement in block {
            self.names.extend(statement.name().cloned());
            self.statement(statement);
            for handler in statement.handlers() {
                self.block(&handler.body);
                self.roots.extend(handler.value);
            }
        }
    }

    fn values(&mut self, values: &[NamedValue]) {
        self.roots.extend(values.iter().map(|(_, value)| *value));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Step { value, .. } => self.roots.push(*value),
            Statement::Return { success: values } | Statement::Raise { error: values } => self.values(values),
            Statement::Require { holds } => self.roots.push(*holds),
            Statement::Branch(branch) => {
                for arm in &branch.arms {
                    self.roots.push(arm.when);
                    self.block(&arm.body);
                    self.roots.extend(arm.value);
                }
                self.block(&branch.otherwise);
                self.roots.extend(branch.otherwise_value);
            }
            Statement::Loop(repeated) => {
                let state = repeated.state.iter();
                let numbers = repeated.locals.iter().copied();
                let numbers = numbers.chain(state.clone().map(|variable| variable.local));
                self.locals
                    .extend(numbers.map(|number| (Arc::clone(&repeated.name), number)));
                self.roots.extend(repeated.over);
                self.roots.extend(state.map(|variable| variable.value));
                self.roots.extend(repeated.filter);
                self.roots.extend(repeated.condition);
                self.block(&repeated.body);
                self.roots.extend(repeated.collect);
                self.roots.extend(repeated.next.iter().map(|(_, value)| *value));
                self.roots.extend(repeated.stop_when);
            }
            Statement::Parallel(parallel) => {
                for member in &parallel.members {
                    self.block(member);
                }
            }
            Statement::Request(request) => {
                self.roots.extend(request.key);
                self.answering.insert(Arc::clone(&request.name));
                self.values(&request.arguments);
                self.roots.push(request.result);
            }
            Statement::Call(call) => {
                self.answering.insert(Arc::clone(&call.name));
                self.values(&call.inputs);
                self.roots.push(call.result);
            }
        }
    }
}

/// Common value of the arms of a branch whose end is reachable.
enum ArmValue {
    /// No such arm so far.
    Unknown,
    None,
    Of(Type),
}

/// Steps that a block brought into scope and that its end removes.
type Shown = Vec<usize>;

pub(super) struct Flow<'a> {
    pub(super) typing: Typing<'a>,
    remaining: Peekable<Zip<vec::IntoIter<RawExpression>, slice::Iter<'a, ExpressionIndex>>>,
    pub(super) calls: &'a [CalledNode],
    pub(super) machines: &'a [Machine],
    outputs: &'a [Output],
    errors: &'a [Output],
    /// Index of the next named statement.
    next_step: usize,
    /// Types of all steps so far.
    steps: Vec<Option<Type>>,
}

impl<'a> Flow<'a> {
    #[expect(clippy::too_many_arguments, reason = "each is a part of one document")]
    pub(super) fn new(
        typing: Typing<'a>,
        raw: Vec<RawExpression>,
        starts: &'a [ExpressionIndex],
        names: &[Arc<str>],
        calls: &'a [CalledNode],
        machines: &'a [Machine],
        outputs: &'a [Output],
        errors: &'a [Output],
    ) -> Self {
        Self {
            typing,
            remaining: raw.into_iter().zip(starts).peekable(),
            calls,
            machines,
            outputs,
            errors,
            next_step: 0,
            steps: vec![None; names.len()],
        }
    }

    /// Returns the typed expressions and the types of the steps.
    pub(super) fn finish(self) -> (Typing<'a>, Vec<Option<Type>>) {
        (self.typing, self.steps)
    }

    /// Returns the type of the next expression that a clause or statement uses.
    pub(super) fn root(&mut self, index: ExpressionIndex, scope: Scope) -> Result<Type, Rejected> {
        // INVARIANT: `structure` checked that each root's subtree ends at the root and starts after the previous one.
        while self.typing.next_index() <= index {
            let Some((raw, start)) = self.remaining.next() else {
                break;
            };
            self.typing.push(raw, *start, scope)?;
        }
        let found = self.typing.type_of(index).cloned();
        found.ok_or_else(|| {
            Rejected(format!(
                "expression {index} is used, but the table ends before it"
            ))
        })
    }

    fn boolean(&mut self, index: ExpressionIndex, what: impl FnOnce() -> String) -> Result<(), Rejected> {
        match self.root(index, Scope::Body)? {
            Type::Boolean => Ok(()),
            other => Err(Rejected(format!("{} is boolean, not {other}", what()))),
        }
    }

    /// Verifies the value of a recursive function.
    pub(super) fn function(&mut self, function: &RawFunction) -> Result<(), Rejected> {
        for (number, ty) in &function.params {
            self.typing.locals.introduce(*number, ty.clone());
        }
        let found = self.root(function.value, Scope::Function)?;
        for (number, _) in &function.params {
            self.typing.locals.withdraw(*number);
        }
        if found != function.returns {
            return Err(Rejected(format!(
                "function `{}` returns {}, but its value is {found}",
                function.name, function.returns
            )));
        }
        Ok(())
    }

    pub(super) fn clauses(
        &mut self,
        phase: &str,
        list: &[ExpressionIndex],
        scope: Scope,
    ) -> Result<(), Rejected> {
        for (number, holds) in list.iter().enumerate() {
            let found = self.root(*holds, scope)?;
            if found != Type::Boolean {
                return Err(Rejected(format!(
                    "{phase} {number}: a clause is boolean, not {found}"
                )));
            }
        }
        Ok(())
    }

    /// Verifies the body of the node.
    pub(super) fn body(&mut self, body: &Block) -> Result<(), Rejected> {
        let shown = self.block(body)?;
        self.hide(shown);
        Ok(())
    }

    /// Verifies the statements of a block and returns the steps that they bring into scope.
    fn block(&mut self, block: &Block) -> Result<Shown, Rejected> {
        let mut shown = Vec::new();
        for (number, statement) in block.iter().enumerate() {
            if number + 1 < block.len() && statement.leaves() {
                return Err(Rejected(format!(
                    "statement {} follows one that leaves its block",
                    number + 1
                )));
            }
            self.statement(statement, &mut shown)?;
        }
        Ok(shown)
    }

    fn hide(&mut self, shown: Shown) {
        for place in shown {
            self.typing.show_step(place, None);
        }
    }

    /// Verifies a statement with its handlers. Adds the steps that the following statements may refer to.
    fn statement(&mut self, statement: &Statement, shown: &mut Shown) -> Result<(), Rejected> {
        let place = self.next_step;
        let Some(name) = statement.name() else {
            match statement {
                Statement::Return { success } => {
                    self.values("return", "output", success, self.outputs)?;
                }
                Statement::Raise { error } => self.values("raise", "error field", error, self.errors)?,
                Statement::Require { holds } => {
                    self.boolean(*holds, || "the condition of `require`".to_owned())?;
                }
                _ => {}
            }
            return Ok(());
        };
        self.next_step += 1;
        let ty = match statement {
            Statement::Step { value, .. } => Some(self.root(*value, Scope::Body)?),
            Statement::Branch(branch) => self.branch(branch)?,
            Statement::Loop(repeated) => Some(self.loop_statement(repeated)?),
            Statement::Parallel(parallel) => {
                let steps = self.parallel(parallel)?;
                self.handlers(name, &parallel.handlers, None)?;
                for step in &steps {
                    self.typing
                        .show_step(*step, self.steps.get(*step).cloned().flatten());
                }
                shown.extend(steps);
                return Ok(());
            }
            Statement::Request(request) => Some(self.request(request)?),
            Statement::Call(call) => Some(self.call(call)?),
            _ => None,
        };
        self.handlers(name, statement.handlers(), ty.as_ref())?;
        if let Some(step) = self.steps.get_mut(place) {
            step.clone_from(&ty);
        }
        self.typing.show_step(place, ty);
        shown.push(place);
        Ok(())
    }

    /// Verifies the values of a `return` or `raise`: every declared one, in this order.
    fn values(
        &mut self,
        statement: &str,
        what: &str,
        given: &[NamedValue],
        declared: &[Output],
    ) -> Result<(), Rejected> {
        if statement == "raise" && declared.is_empty() {
            return Err(Rejected(
                "there is a `raise`, but the node declares no errors".to_owned(),
            ));
        }
        if given.len() != declared.len() {
            return Err(Rejected(format!(
                "the {statement} has {} values for {} {what}s",
                given.len(),
                declared.len()
            )));
        }
        for ((name, value), declared) in given.iter().zip(declared) {
            if *name != declared.name {
                return Err(Rejected(format!(
                    "the {statement} has `{name}` where {what} `{}` is next in declared order",
                    declared.name
                )));
            }
            let found = self.root(*value, Scope::Body)?;
            if found != declared.ty {
                return Err(Rejected(format!(
                    "the {statement} has {found} for {what} `{name}`, which is {}",
                    declared.ty
                )));
            }
        }
        Ok(())
    }

    fn handlers(&mut self, name: &str, handlers: &[Handler], ty: Option<&Type>) -> Result<(), Rejected> {
        let refuse = |what: String| Rejected(format!("a handler of `{name}`: {what}"));
        let mut codes = HashSet::new();
        for handler in handlers {
            if handler.codes.is_empty() {
                return Err(refuse("it has no codes".to_owned()));
            }
            for code in &handler.codes {
                if !codes.insert(code) {
                    return Err(refuse(format!(
                        "the code `{}` is given twice",
                        code.escape_debug()
                    )));
                }
            }
            let shown = self.block(&handler.body)?;
            if let Some(value) = handler.value {
                let found = self.root(value, Scope::Body)?;
                if leaves(&handler.body) {
                    return Err(refuse("its body leaves, but it has a value".to_owned()));
                }
                match ty {
                    Some(ty) if *ty == found => {}
                    Some(ty) => return Err(refuse(format!("its value is {found}, not {ty}"))),
                    None => return Err(refuse("it has a value, and the statement has none".to_owned())),
                }
            }
            self.hide(shown);
        }
        Ok(())
    }

    fn branch(&mut self, branch: &Branch) -> Result<Option<Type>, Rejected> {
        let name = &branch.name;
        let mut value = ArmValue::Unknown;
        for arm in &branch.arms {
            self.boolean(arm.when, || format!("a condition of branch `{name}`"))?;
            self.arm(name, &arm.body, arm.value, &mut value)?;
        }
        self.arm(name, &branch.otherwise, branch.otherwise_value, &mut value)?;
        Ok(match value {
            ArmValue::Of(ty) => Some(ty),
            ArmValue::None | ArmValue::Unknown => None,
        })
    }

    /// Verifies body and value of an arm. `known` is the value of the arms before it.
    fn arm(
        &mut self,
        name: &str,
        body: &Block,
        value: Option<ExpressionIndex>,
        known: &mut ArmValue,
    ) -> Result<(), Rejected> {
        let refuse = |what: String| Rejected(format!("branch `{name}`: {what}"));
        let shown = self.block(body)?;
        let found = match value {
            Some(value) => Some(self.root(value, Scope::Body)?),
            None => None,
        };
        self.hide(shown);
        if leaves(body) {
            return match found {
                Some(_) => Err(refuse("an arm that leaves has a value".to_owned())),
                None => Ok(()),
            };
        }
        let found = found.map_or(ArmValue::None, ArmValue::Of);
        match (&*known, &found) {
            (ArmValue::Unknown, _) => *known = found,
            (ArmValue::None, ArmValue::None) => {}
            (ArmValue::Of(known), ArmValue::Of(found)) if known == found => {}
            (ArmValue::Of(known), ArmValue::Of(found)) => {
                return Err(refuse(format!(
                    "an arm has a value of {known}, another one of {found}"
                )));
            }
            _ => return Err(refuse("an arm has a value, another none".to_owned())),
        }
        Ok(())
    }

    /// Verifies the members of a parallel statement, which do not see each other. Returns their steps.
    fn parallel(&mut self, parallel: &Parallel) -> Result<Shown, Rejected> {
        let refuse = |what: String| Rejected(format!("parallel `{}`: {what}", parallel.name));
        let count = parallel.members.len();
        if !usize::try_from(STRANDS).is_ok_and(|most| (2..=most).contains(&count)) {
            return Err(refuse(format!("it has 2 to {STRANDS} members, not {count}")));
        }
        let mut steps = Shown::new();
        for member in &parallel.members {
            if member.is_empty() {
                return Err(refuse("a member is empty".to_owned()));
            }
            if may_leave(member) {
                return Err(refuse("a member has a return or a raise".to_owned()));
            }
            let shown = self.block(member)?;
            self.hide(shown.clone());
            steps.extend(shown);
        }
        Ok(steps)
    }

    fn loop_statement(&mut self, repeated: &Loop) -> Result<Type, Rejected> {
        let refuse = |what: String| Rejected(format!("loop `{}`: {what}", repeated.name));
        if repeated.over.is_none() && repeated.condition.is_none() {
            return Err(refuse("it has neither `over` nor `while`".to_owned()));
        }
        if repeated.over.is_none() && repeated.filter.is_some() {
            return Err(refuse("it has `where`, but no `over`".to_owned()));
        }
        if repeated.in_flight.is_some() {
            if repeated.over.is_none() {
                return Err(refuse("it has `in_flight`, but no `over`".to_owned()));
            }
            let before = [repeated.condition, repeated.stop_when];
            if !repeated.state.is_empty() || !repeated.next.is_empty() || before.iter().any(Option::is_some) {
                return Err(refuse(
                    "it has `in_flight`, so its rounds have no state, no `while` and no `stop_when`"
                        .to_owned(),
                ));
            }
            if may_leave(&repeated.body) {
                return Err(refuse(
                    "it has `in_flight`, and its body has a return or a raise".to_owned(),
                ));
            }
        }
        if repeated.state.is_empty() && repeated.collect.is_none() {
            return Err(refuse("it has neither state nor `collect`".to_owned()));
        }
        let items = match repeated.over {
            Some(over) => items(&self.root(over, Scope::Body)?, repeated.locals.len()).map_err(refuse)?,
            None if repeated.locals.is_empty() => Vec::new(),
            None => return Err(refuse("it has locals, but no `over`".to_owned())),
        };
        let mut fields = Vec::with_capacity(repeated.state.len() + 1);
        for variable in &repeated.state {
            if &*variable.name == "collected" {
                return Err(refuse("a part of its state is named `collected`".to_owned()));
            }
            let ty = self.root(variable.value, Scope::Body)?;
            let name = Arc::clone(&variable.name);
            fields.push(Field { name, ty });
        }
        let numbers = repeated.locals.iter().zip(items);
        let state = repeated.state.iter().zip(&fields);
        let state = state.map(|(variable, field)| (&variable.local, field.ty.clone()));
        for (number, ty) in numbers.chain(state) {
            self.typing.locals.introduce(*number, ty);
        }
        self.iteration(repeated, &mut fields)?;
        let state = repeated.state.iter().map(|variable| &variable.local);
        for number in repeated.locals.iter().chain(state) {
            self.typing.locals.withdraw(*number);
        }
        self.typing.types.record(fields).map_err(refuse)
    }

    /// Verifies the body of a loop. `fields` are those of its state, to which `collected` is added.
    fn iteration(&mut self, repeated: &Loop, fields: &mut Vec<Field>) -> Result<(), Rejected> {
        let refuse = |what: String| Rejected(format!("loop `{}`: {what}", repeated.name));
        let name = &repeated.name;
        if let Some(filter) = repeated.filter {
            self.boolean(filter, || format!("the `where` of loop `{name}`"))?;
        }
        if let Some(condition) = repeated.condition {
            self.boolean(condition, || format!("the `while` of loop `{name}`"))?;
        }
        let shown = self.block(&repeated.body)?;
        if leaves(&repeated.body) {
            return Err(refuse("its body leaves, so it is no loop".to_owned()));
        }
        let collected = match repeated.collect {
            Some(collect) => Some(self.root(collect, Scope::Body)?),
            None => None,
        };
        let mut state = repeated.state.iter().zip(fields.iter());
        for (number, value) in &repeated.next {
            let found = self.root(*value, Scope::Body)?;
            // Each search continues after the previous match, so every variable occurs once, in the order of the state.
            let Some((_, field)) = state.find(|(variable, _)| variable.local == *number) else {
                return Err(refuse(format!(
                    "`next` names local {number}, which is not the next part of its state"
                )));
            };
            if field.ty != found {
                return Err(refuse(format!(
                    "`{}` is {}, and its next value {found}",
                    field.name, field.ty
                )));
            }
        }
        if let Some(stop_when) = repeated.stop_when {
            self.boolean(stop_when, || format!("the `stop_when` of loop `{name}`"))?;
        }
        self.hide(shown);
        if let Some(of) = collected {
            let ty = self.typing.types.array(&of).map_err(refuse)?;
            let name = Arc::from("collected");
            fields.push(Field { name, ty });
        }
        Ok(())
    }

    /// Returns the type of the result of a request or a call.
    pub(super) fn result(
        &mut self,
        index: ExpressionIndex,
        refuse: impl Fn(String) -> Rejected,
    ) -> Result<Type, Rejected> {
        let is_result = matches!(self.remaining.peek(), Some((RawExpression::Result(_), _)));
        if !is_result || self.typing.next_index() != index {
            return Err(refuse("its `result` is no expression of that kind".to_owned()));
        }
        self.root(index, Scope::Result)
    }
}

/// Returns true where a return or a raise is anywhere inside the block.
fn may_leave(block: &Block) -> bool {
    block.iter().any(|statement| {
        matches!(statement, Statement::Return { .. } | Statement::Raise { .. })
            || statement.blocks().any(may_leave)
    })
}

/// Returns the types of `count` locals over a collection.
fn items(over: &Type, count: usize) -> Result<Vec<Type>, String> {
    let mut types = match over {
        Type::Array(of) | Type::Set(of) => vec![Type::clone(of)],
        Type::Map(of) => vec![of.key.clone(), of.value.clone()],
        other => return Err(format!("`over` is an array, a set or a map, not {other}")),
    };
    if count == 0 || count > types.len() {
        return Err(format!("over {over} there are not {count} locals"));
    }
    types.truncate(count);
    Ok(types)
}
