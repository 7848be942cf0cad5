//! The locals: who introduces which, and where they may be used.
//!
//! The table has operands before users, so the body of a `let` is typed before the `let` itself is reached. But what
//! gives a local its type (the value of a `let`, the `over` of a `for`) stands right before everything that may use it:
//! the scope opens when that operand has its type, and closes at the `let` or `for`.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Rejected;
use crate::node::{ExpressionIndex, LocalNumber, RawExpression};
use crate::types::Type;

/// A `let` or `for`, and the place of the first of its locals; a second one has the next place.
struct Binder {
    index: ExpressionIndex,
    is_for: bool,
    numbers: Vec<LocalNumber>,
    first: usize,
}

pub(super) struct Locals {
    /// By the operand after which their locals are in scope. Every expression is used once, so there is one at most.
    binders: HashMap<ExpressionIndex, Binder>,
    in_scope: HashMap<LocalNumber, (usize, Type)>,
    /// The places of what loops introduce.
    of_loops: HashMap<LocalNumber, usize>,
    count: usize,
}

impl Locals {
    /// Finds every `let` and `for` of the table; the statements named `loop` introduce the other ones. The source
    /// names this many locals, so these are their numbers.
    pub(super) fn new(
        expressions: &[RawExpression],
        of_loops: &[(Arc<str>, LocalNumber)],
        named: usize,
    ) -> Result<Self, Rejected> {
        let mut binders = HashMap::new();
        let mut places: HashMap<LocalNumber, usize> = HashMap::new();
        for (index, expression) in (0..).zip(expressions) {
            let (opens, is_for, numbers) = match expression {
                RawExpression::Let { local, value, .. } => (*value, false, vec![*local]),
                RawExpression::For { locals, parts } => (parts.over, true, locals.clone()),
                _ => continue,
            };
            if !(1..=2).contains(&numbers.len()) {
                return Err(Rejected(format!(
                    "expression {index}: a `for` has one or two locals, not {}",
                    numbers.len()
                )));
            }
            let first = places.len();
            for number in &numbers {
                if usize::try_from(*number).map_or(true, |number| number >= named) {
                    return Err(Rejected(format!(
                        "expression {index}: the source names {named} locals, and local {number} is not one of them"
                    )));
                }
                let place = places.len();
                if places.insert(*number, place).is_some() {
                    return Err(Rejected(format!(
                        "expression {index}: local {number} is introduced twice"
                    )));
                }
            }
            binders.insert(
                opens,
                Binder {
                    index,
                    is_for,
                    numbers,
                    first,
                },
            );
        }
        let mut loop_places = HashMap::with_capacity(of_loops.len());
        for (name, number) in of_loops {
            if usize::try_from(*number).map_or(true, |number| number >= named) {
                return Err(Rejected(format!(
                    "loop `{name}`: the source names {named} locals, and local {number} is not one of them"
                )));
            }
            let place = places.len();
            if places.insert(*number, place).is_some() {
                return Err(Rejected(format!(
                    "loop `{name}`: local {number} is introduced twice"
                )));
            }
            loop_places.insert(*number, place);
        }
        if places.len() != named {
            return Err(Rejected(format!(
                "the source names {named} locals, but {} are introduced",
                places.len()
            )));
        }
        Ok(Self {
            binders,
            in_scope: HashMap::new(),
            of_loops: loop_places,
            count: places.len(),
        })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// From here on there is this local of a loop.
    pub(super) fn introduce(&mut self, number: LocalNumber, ty: Type) {
        if let Some(place) = self.of_loops.get(&number) {
            self.in_scope.insert(number, (*place, ty));
        }
    }

    /// From here on there is this local of a loop no more.
    pub(super) fn withdraw(&mut self, number: LocalNumber) {
        self.in_scope.remove(&number);
    }

    /// The places of what loops introduce, once all is verified.
    pub(super) fn into_loop_places(self) -> HashMap<LocalNumber, usize> {
        self.of_loops
    }

    /// The place and the type of a local that is in scope.
    pub(super) fn get(&self, number: LocalNumber) -> Result<(usize, Type), String> {
        let found = self.in_scope.get(&number).cloned();
        found.ok_or_else(|| format!("local {number} is not introduced around it"))
    }

    /// Opens the scope that follows an operand of this type, if one does.
    pub(super) fn open(&mut self, operand: ExpressionIndex, ty: &Type) -> Result<(), Rejected> {
        let Some(binder) = self.binders.get(&operand) else {
            return Ok(());
        };
        let refuse = |what: String| Rejected(format!("expression {}: {what}", binder.index));
        let mut types = match ty {
            ty if !binder.is_for => vec![ty.clone()],
            Type::Array(of) | Type::Set(of) => vec![Type::clone(of)],
            Type::Map(of) => vec![of.key.clone(), of.value.clone()],
            other => {
                return Err(refuse(format!("`over` is an array, a set or a map, not {other}")));
            }
        };
        if binder.numbers.len() > types.len() {
            return Err(refuse(format!(
                "a `for` has two locals only over a map, not over {ty}"
            )));
        }
        types.truncate(binder.numbers.len());
        let places = binder.first..;
        for ((number, place), ty) in binder.numbers.iter().zip(places).zip(types) {
            self.in_scope.insert(*number, (place, ty));
        }
        Ok(())
    }

    /// Closes the scope that opened after the operand; the places of its locals, the second only where there is one.
    pub(super) fn close(&mut self, operand: ExpressionIndex) -> Result<(usize, Option<usize>), String> {
        let binder = self
            .binders
            .remove(&operand)
            .ok_or_else(|| format!("no scope opens after {operand}"))?;
        for number in &binder.numbers {
            self.in_scope.remove(number);
        }
        let second = (binder.numbers.len() > 1).then_some(binder.first + 1);
        Ok((binder.first, second))
    }
}
