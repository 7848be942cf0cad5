//! Name resolution and typing of expressions, one after the other.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Rejected;
use crate::fit::fit;
use crate::generated::ops::Op;
use crate::intern::Types;
use crate::node::{
    Constant, Expression, ExpressionIndex, ExpressionKind, Input, LocalNumber, Output, RawExpression,
    RawFunction,
};
use crate::pattern::Pattern;
use crate::table::Table;
use crate::types::{Type, TypePattern};
use crate::value::Value;

use super::Named;
use super::locals::Locals;

/// Type and kind of an expression, or an error message.
pub(super) type Resolved = Result<(Type, ExpressionKind), String>;

/// Expressions of a node, whether one is `now`, and the indexes of loop locals.
pub(super) type Typed = (Vec<Expression>, bool, HashMap<LocalNumber, usize>);

/// Position of an expression, which determines the names that it may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Value of a recursive function.
    Function,
    Constraint,
    Precondition,
    Body,
    Postcondition,
    Invariant,
    /// Expression for the result of a request or a call.
    Result,
}

/// All declared names.
pub(super) struct Names<'a> {
    pub(super) by_name: HashMap<Arc<str>, Named>,
    pub(super) outputs_by_name: HashMap<Arc<str>, usize>,
    pub(super) errors_by_name: HashMap<Arc<str>, usize>,
    pub(super) inputs: &'a [Input],
    pub(super) constants: &'a [Constant],
    pub(super) outputs: &'a [Output],
    pub(super) errors: &'a [Output],
    pub(super) functions: &'a [RawFunction],
    pub(super) functions_by_name: HashMap<Arc<str>, usize>,
}

/// Table of the expressions typed so far.
pub(super) struct Typing<'a> {
    names: Names<'a>,
    pub(super) types: Types,
    pub(super) locals: Locals,
    /// Types of the steps in scope, by index.
    steps: Vec<Option<Type>>,
    /// Patterns read so far, by text, because several calls often use one pattern.
    patterns: HashMap<Arc<str>, Arc<Pattern>>,
    /// Tables of the document by hash, and whether a call uses each.
    tables: HashMap<Arc<str>, (Arc<Table>, bool)>,
    done: Vec<Expression>,
    uses_now: bool,
}

impl<'a> Typing<'a> {
    pub(super) fn new(
        names: Names<'a>,
        types: Types,
        locals: Locals,
        steps: usize,
        tables: HashMap<Arc<str>, Arc<Table>>,
    ) -> Self {
        Self {
            names,
            types,
            locals,
            steps: vec![None; steps],
            patterns: HashMap::new(),
            tables: tables
                .into_iter()
                .map(|(hash, table)| (hash, (table, false)))
                .collect(),
            done: Vec::new(),
            uses_now: false,
        }
    }

    /// Returns the index of the next expression.
    pub(super) fn next_index(&self) -> ExpressionIndex {
        ExpressionIndex::try_from(self.done.len()).unwrap_or(ExpressionIndex::MAX)
    }

    pub(super) fn type_of(&self, index: ExpressionIndex) -> Option<&Type> {
        self.done
            .get(usize::try_from(index).ok()?)
            .map(|expression| &expression.ty)
    }

    /// Brings a step into scope if it has a type, or removes it from scope.
    pub(super) fn show_step(&mut self, place: usize, ty: Option<Type>) {
        if let Some(step) = self.steps.get_mut(place) {
            *step = ty;
        }
    }

    /// Returns the expressions, whether one is `now`, and the indexes of loop locals. Fails where a table is not used.
    pub(super) fn finish(self) -> Result<Typed, Rejected> {
        if let Some((hash, _)) = self.tables.iter().find(|(_, (_, is_used))| !is_used) {
            return Err(Rejected(format!("no call uses the table {hash}")));
        }
        Ok((self.done, self.uses_now, self.locals.into_loop_places()))
    }

    pub(super) fn push(
        &mut self,
        raw: RawExpression,
        start: ExpressionIndex,
        scope: Scope,
    ) -> Result<(), Rejected> {
        let index = self.next_index();
        let (ty, kind) = self
            .resolve(raw, scope)
            .map_err(|what| Rejected(format!("expression {index}: {what}")))?;
        self.locals.open(index, &ty, &self.done)?;
        self.done.push(Expression { ty, kind, start });
        Ok(())
    }

    fn resolve(&mut self, raw: RawExpression, scope: Scope) -> Resolved {
        match raw {
            RawExpression::Literal { ty, value } => {
                let value = fit(&ty, &value)?;
                Ok((ty, ExpressionKind::Literal(value)))
            }
            RawExpression::Input(name) if scope == Scope::Function => {
                Err(format!("input `{name}` cannot be referred to in a function"))
            }
            RawExpression::Input(name) => match self.names.by_name.get(&name) {
                Some(Named::Input(place)) => {
                    let input = self
                        .names
                        .inputs
                        .get(*place)
                        .ok_or_else(|| absent("input", &name))?;
                    Ok((input.ty.clone(), ExpressionKind::Input(*place)))
                }
                _ => Err(absent("input", &name)),
            },
            RawExpression::Constant(name) => match self.names.by_name.get(&name) {
                Some(Named::Constant(place)) => {
                    let constant = self
                        .names
                        .constants
                        .get(*place)
                        .ok_or_else(|| absent("constant", &name))?;
                    Ok((constant.ty.clone(), ExpressionKind::Constant(*place)))
                }
                _ => Err(absent("constant", &name)),
            },
            RawExpression::Step(name) => match self.names.by_name.get(&name) {
                Some(Named::Step(place)) => {
                    let ty = self.steps.get(*place).cloned().flatten();
                    let ty = ty.ok_or_else(|| format!("step `{name}` cannot be referred to here"))?;
                    Ok((ty, ExpressionKind::Step(*place)))
                }
                _ => Err(absent("step", &name)),
            },
            RawExpression::Output(name) => self.output(&name, scope),
            RawExpression::Error(name) => self.error(&name, scope),
            RawExpression::Now(ty) => self.now(&ty, scope),
            RawExpression::Result(ty) if scope == Scope::Result => Ok((ty, ExpressionKind::Result)),
            RawExpression::Result(_) => {
                Err("`result` is permitted only as the result of a request or a call".to_owned())
            }
            RawExpression::Call { op, args, of } => self.call(&op, args, of),
            RawExpression::If {
                condition,
                then,
                otherwise,
            } => {
                self.wants_boolean("the condition of `if`", condition)?;
                let ty = self.operand(then)?;
                let other = self.operand(otherwise)?;
                if ty != other {
                    return Err(format!("`then` is {ty}, but `else` is {other}"));
                }
                Ok((
                    ty.clone(),
                    ExpressionKind::If {
                        condition,
                        then,
                        otherwise,
                    },
                ))
            }
            RawExpression::And(left, right) => {
                self.wants_boolean("the left operand of `and`", left)?;
                self.wants_boolean("the right operand of `and`", right)?;
                Ok((Type::Boolean, ExpressionKind::And(left, right)))
            }
            RawExpression::Or(left, right) => {
                self.wants_boolean("the left operand of `or`", left)?;
                self.wants_boolean("the right operand of `or`", right)?;
                Ok((Type::Boolean, ExpressionKind::Or(left, right)))
            }
            RawExpression::Local(number) => {
                let (place, ty) = self.locals.get(number)?;
                Ok((ty, ExpressionKind::Local(place)))
            }
            RawExpression::Let { value, body, .. } => self.binding(value, body),
            RawExpression::For { parts, .. } => self.comprehension(parts),
            RawExpression::Array { items, of } => self.array(items, &of),
            RawExpression::Record { fields } => self.record(fields),
            RawExpression::Field { name, of } => self.field(&name, of),
            RawExpression::Apply { function, args } => self.apply(&function, args),
        }
    }

    fn apply(&self, name: &str, args: Vec<ExpressionIndex>) -> Resolved {
        let place = self.names.functions_by_name.get(name).copied();
        let found = place.and_then(|place| Some((place, self.names.functions.get(place)?)));
        let (place, function) = found.ok_or_else(|| absent("function", name))?;
        if args.len() != function.params.len() {
            let wanted = function.params.len();
            return Err(format!("`{name}` takes {wanted} arguments, got {}", args.len()));
        }
        for (number, ((_, wanted), arg)) in function.params.iter().zip(&args).enumerate() {
            let given = self.operand(*arg)?;
            if wanted != given {
                return Err(format!(
                    "`{name}` wants {wanted} as argument {number}, got {given}"
                ));
            }
        }
        let kind = ExpressionKind::Apply {
            function: place,
            args,
        };
        Ok((function.returns.clone(), kind))
    }

    fn output(&mut self, name: &str, scope: Scope) -> Resolved {
        if !matches!(scope, Scope::Postcondition | Scope::Invariant) {
            return Err(format!(
                "output `{name}` can be referred to only in postconditions and invariants"
            ));
        }
        let place = self.names.outputs_by_name.get(name).copied();
        let found = place.and_then(|place| Some((place, self.names.outputs.get(place)?)));
        let (place, output) = found.ok_or_else(|| absent("output", name))?;
        let ty = match scope {
            Scope::Invariant if !self.names.errors.is_empty() => self.optional(&output.ty)?,
            _ => output.ty.clone(),
        };
        Ok((ty, ExpressionKind::Output(place)))
    }

    fn error(&mut self, name: &str, scope: Scope) -> Resolved {
        if scope != Scope::Invariant {
            return Err(format!("error `{name}` can be referred to only in invariants"));
        }
        let place = self.names.errors_by_name.get(name).copied();
        let found = place.and_then(|place| Some((place, self.names.errors.get(place)?)));
        let (place, error) = found.ok_or_else(|| absent("error field", name))?;
        Ok((self.optional(&error.ty)?, ExpressionKind::Error(place)))
    }

    /// Returns the optional of a type, or the type itself where it is an optional.
    fn optional(&mut self, ty: &Type) -> Result<Type, String> {
        match ty {
            Type::Optional(_) => Ok(ty.clone()),
            ty => self.types.optional(ty),
        }
    }

    fn now(&mut self, ty: &Type, scope: Scope) -> Resolved {
        if matches!(scope, Scope::Constraint | Scope::Function) {
            return Err("`now` is not permitted in constraints and functions".to_owned());
        }
        if *ty != Type::Timestamp {
            return Err(format!("`now` is a timestamp, not {ty}"));
        }
        self.uses_now = true;
        Ok((ty.clone(), ExpressionKind::Now))
    }

    pub(super) fn operand(&self, index: ExpressionIndex) -> Result<&Type, String> {
        self.type_of(index)
            .ok_or_else(|| format!("its operand {index} does not precede it"))
    }

    pub(super) fn wants_boolean(&self, what: &str, index: ExpressionIndex) -> Result<(), String> {
        match self.operand(index)? {
            Type::Boolean => Ok(()),
            other => Err(format!("{what} is boolean, not {other}")),
        }
    }

    fn call(&mut self, name: &str, args: Vec<ExpressionIndex>, of: Option<Vec<Type>>) -> Resolved {
        let op =
            Op::from_name(name).ok_or_else(|| format!("no operation is named `{}`", name.escape_debug()))?;
        let signature = op.signature();
        if of.is_some() == signature.type_params.is_empty() {
            let wanted = if of.is_some() {
                "has no type parameters, but `of` is given"
            } else {
                "wants `of`"
            };
            return Err(format!("`{name}` {wanted}"));
        }
        let of = of.unwrap_or_default();
        if of.len() != signature.type_params.len() {
            let wanted = signature.type_params.len();
            return Err(format!(
                "`{name}` has {wanted} type parameters, but `of` has {}",
                of.len()
            ));
        }
        for ((parameter, bound), given) in signature.type_params.iter().zip(&of) {
            if !bound.admits(given) {
                return Err(format!("`{name}` wants {bound} for `{parameter}`, got {given}"));
            }
        }
        if args.len() != signature.params.len() {
            return Err(format!(
                "`{name}` takes {} arguments, got {}",
                signature.params.len(),
                args.len()
            ));
        }
        let unknown = || format!("`{name}` is declared with a type parameter it does not have");
        for ((parameter, pattern), arg) in signature.params.iter().zip(&args) {
            let wanted = pattern.instantiate(&of).ok_or_else(unknown)?;
            let given = self.operand(*arg)?;
            if wanted != *given {
                return Err(format!(
                    "`{name}` wants {wanted} as its `{parameter}` argument, got {given}"
                ));
            }
        }
        for arg in signature.literals.iter().filter_map(|place| args.get(*place)) {
            let read = match op {
                Op::LookupFind | Op::LookupFindAll => self.read_table(*arg, &of),
                _ => self.read_pattern(*arg),
            };
            read.map_err(|what| format!("`{name}`: {what}"))?;
        }
        for ((_, pattern), arg) in signature.params.iter().zip(&args) {
            self.spell_argument(*arg, pattern, signature.typed, &of);
        }
        let returns = signature.returns.instantiate(&of).ok_or_else(unknown)?;
        let returns = self.types.adopt(&returns)?;
        let types = signature
            .typed
            .iter()
            .filter_map(|place| of.get(*place).cloned())
            .collect();
        Ok((returns, ExpressionKind::Call { op, args, types }))
    }
}

impl Typing<'_> {
    /// Gives an argument whose type the kernel receives the type of the call: only that has the outside names. Every
    /// expression is used exactly once, so no other operation sees it.
    fn spell_argument(&mut self, arg: ExpressionIndex, pattern: &TypePattern, typed: &[usize], of: &[Type]) {
        let TypePattern::Parameter(parameter) = pattern else {
            return;
        };
        let given = usize::try_from(arg).ok().and_then(|arg| self.done.get_mut(arg));
        if let (true, Some(given), Some(ty)) = (typed.contains(parameter), given, of.get(*parameter)) {
            given.ty = ty.clone();
        }
    }

    /// Parses the literal of a pattern argument and replaces its value by the pattern. Each text is parsed once. Every
    /// expression is used exactly once, so no other operation sees the replacement.
    fn read_pattern(&mut self, index: ExpressionIndex) -> Result<(), String> {
        let Some(value) = literal(&mut self.done, index) else {
            return Err("its pattern is not a literal".to_owned());
        };
        if let Value::Text(text) = value {
            let pattern = match self.patterns.get(text) {
                Some(known) => Arc::clone(known),
                None => Arc::new(Pattern::new(text).map_err(|error| error.to_string())?),
            };
            self.patterns.insert(Arc::clone(text), Arc::clone(&pattern));
            *value = Value::Pattern(pattern);
        }
        Ok(())
    }
}

impl Typing<'_> {
    /// Replaces the hash of a table argument by the table, whose types are those of the call.
    fn read_table(&mut self, index: ExpressionIndex, of: &[Type]) -> Result<(), String> {
        let Some(value) = literal(&mut self.done, index) else {
            return Err("its table is not a literal".to_owned());
        };
        if let Value::Text(hash) = value {
            let Some((table, is_used)) = self.tables.get_mut(hash) else {
                return Err(format!("no table has the hash `{}`", hash.escape_debug()));
            };
            let (keys, results) = table.types();
            if of != [keys.clone(), results.clone()] {
                return Err("the table has other types".to_owned());
            }
            *is_used = true;
            *value = Value::Table(Arc::clone(table));
        }
        Ok(())
    }
}

fn literal(done: &mut [Expression], index: ExpressionIndex) -> Option<&mut Value> {
    let index = usize::try_from(index).ok()?;
    match &mut done.get_mut(index)?.kind {
        ExpressionKind::Literal(value) => Some(value),
        _ => None,
    }
}

fn absent(kind: &str, name: &str) -> String {
    format!("no {kind} is named `{name}`")
}
