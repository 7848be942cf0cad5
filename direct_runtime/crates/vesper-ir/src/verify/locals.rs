//! Scopes of locals: the binders that introduce them and the expressions that may use them.
//!
//! The table has operands before users, so the body of a `let` is typed before the `let` itself. The expressions that
//! determine a local's type (the value of a `let`, the `over` and the `with` of a `for`) come directly before all
//! expressions that may use it. The scope opens after the last of them is typed, and closes at the `let` or `for`.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Rejected;
use crate::node::{Expression, ExpressionIndex, For, ForKind, LocalNumber, RawExpression};
use crate::types::Type;

/// A `let` or `for`, and the index of its first local; its other locals follow.
struct Binder {
    index: ExpressionIndex,
    /// Expressions of a `for`.
    parts: Option<For>,
    numbers: Vec<LocalNumber>,
    first: usize,
}

/// Indexes of the locals of a `let` or `for`.
pub(super) struct Places {
    /// Local of a `let`, or of the item; over a map, of the key.
    pub(super) item: usize,
    /// Local of the value of a map's entry.
    pub(super) entry_value: Option<usize>,
    /// Accumulator of a `fold`.
    pub(super) so_far: Option<usize>,
}

impl Binder {
    fn is_fold(&self) -> bool {
        self.parts.is_some_and(|parts| parts.kind == ForKind::Fold)
    }

    /// Returns the number of locals that are bound to parts of an item.
    fn of_item(&self) -> usize {
        self.numbers.len() - usize::from(self.is_fold())
    }
}

pub(super) struct Locals {
    /// Binders by the operand after which their scope opens. Every expression is used once, so each has at most one
    /// binder.
    binders: HashMap<ExpressionIndex, Binder>,
    in_scope: HashMap<LocalNumber, (usize, Type)>,
    /// Indexes of the locals of loops and of parameters.
    of_loops: HashMap<LocalNumber, usize>,
    count: usize,
}

impl Locals {
    /// Finds every `let` and `for` of the table; `loop` statements and functions introduce the other locals. The source names `named`
    /// locals, which bounds their numbers.
    pub(super) fn new(
        expressions: &[RawExpression],
        of_loops: &[(Arc<str>, LocalNumber)],
        of_functions: &[(Arc<str>, LocalNumber)],
        named: usize,
    ) -> Result<Self, Rejected> {
        let mut binders = HashMap::new();
        let mut places: HashMap<LocalNumber, usize> = HashMap::new();
        for (index, expression) in (0..).zip(expressions) {
            let (opens, parts, numbers) = match expression {
                RawExpression::Let { local, value, .. } => (*value, None, vec![*local]),
                RawExpression::For { locals, parts } => {
                    let refuse = |what: String| Rejected(format!("expression {index}: {what}"));
                    check_with(parts).map_err(refuse)?;
                    check_count(parts.kind, locals.len()).map_err(refuse)?;
                    (parts.with.unwrap_or(parts.over), Some(*parts), locals.clone())
                }
                _ => continue,
            };
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
                    parts,
                    numbers,
                    first,
                },
            );
        }
        let mut loop_places = HashMap::with_capacity(of_loops.len() + of_functions.len());
        let of_functions = of_functions.iter().map(|each| ("function", each));
        for (what, (name, number)) in of_loops.iter().map(|each| ("loop", each)).chain(of_functions) {
            if usize::try_from(*number).map_or(true, |number| number >= named) {
                return Err(Rejected(format!(
                    "{what} `{name}`: the source names {named} locals, and local {number} is not one of them"
                )));
            }
            let place = places.len();
            if places.insert(*number, place).is_some() {
                return Err(Rejected(format!(
                    "{what} `{name}`: local {number} is introduced twice"
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

    /// Brings the local of a loop or a parameter into scope.
    pub(super) fn introduce(&mut self, number: LocalNumber, ty: Type) {
        if let Some(place) = self.of_loops.get(&number) {
            self.in_scope.insert(number, (*place, ty));
        }
    }

    /// Removes the local of a loop or a parameter from scope.
    pub(super) fn withdraw(&mut self, number: LocalNumber) {
        self.in_scope.remove(&number);
    }

    /// Returns the indexes of the locals of loops after verification.
    pub(super) fn into_loop_places(self) -> HashMap<LocalNumber, usize> {
        self.of_loops
    }

    /// Returns index and type of a local in scope.
    pub(super) fn get(&self, number: LocalNumber) -> Result<(usize, Type), String> {
        let found = self.in_scope.get(&number).cloned();
        found.ok_or_else(|| format!("local {number} is not introduced around it"))
    }

    /// Opens the scope that follows an operand of this type, if there is one. `done` are the expressions before it.
    pub(super) fn open(
        &mut self,
        operand: ExpressionIndex,
        ty: &Type,
        done: &[Expression],
    ) -> Result<(), Rejected> {
        let Some(binder) = self.binders.get(&operand) else {
            return Ok(());
        };
        let types = match binder.parts {
            None => vec![ty.clone()],
            Some(parts) => {
                let refuse = |what: String| Rejected(format!("expression {}: {what}", binder.index));
                // `operand` is `over` where there is no `with`, and follows `over` where there is one.
                let over = if parts.with.is_some() {
                    let over = usize::try_from(parts.over).ok().and_then(|place| done.get(place));
                    &over
                        .ok_or_else(|| refuse("its `over` does not precede it".to_owned()))?
                        .ty
                } else {
                    ty
                };
                let mut types = item_types(over, binder.of_item()).map_err(refuse)?;
                if binder.is_fold() {
                    types.push(ty.clone());
                }
                types
            }
        };
        let places = binder.first..;
        for ((number, place), ty) in binder.numbers.iter().zip(places).zip(types) {
            self.in_scope.insert(*number, (place, ty));
        }
        Ok(())
    }

    /// Closes the scope that opened after the operand.
    pub(super) fn close(&mut self, operand: ExpressionIndex) -> Result<Places, String> {
        let binder = self
            .binders
            .remove(&operand)
            .ok_or_else(|| format!("no scope opens after {operand}"))?;
        for number in &binder.numbers {
            self.in_scope.remove(number);
        }
        Ok(Places {
            item: binder.first,
            entry_value: (binder.of_item() > 1).then_some(binder.first + 1),
            so_far: binder.is_fold().then_some(binder.first + binder.of_item()),
        })
    }
}

/// Checks that `with` is present in `sort_by` and `fold`, and only there.
fn check_with(parts: &For) -> Result<(), String> {
    let kind = parts.kind.name();
    match (parts.kind, parts.with) {
        (ForKind::SortBy | ForKind::Fold, None) => Err(format!("a `for` of kind `{kind}` has no `with`")),
        (ForKind::SortBy | ForKind::Fold, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => Err(format!(
            "a `for` of kind `{kind}` has a `with`, which only `sort_by` and `fold` have"
        )),
    }
}

fn check_count(kind: ForKind, count: usize) -> Result<(), String> {
    match (kind, count) {
        (ForKind::Fold, 2 | 3) => Ok(()),
        (ForKind::Fold, _) => Err(format!("a `fold` has two or three locals, not {count}")),
        (kind, 2) if kind.is_of_items() => Err(format!(
            "a `for` of kind `{}` has one local, the item, not 2",
            kind.name()
        )),
        (_, 1 | 2) => Ok(()),
        _ => Err(format!("a `for` has one or two locals, not {count}")),
    }
}

/// Returns the types of the one or two locals bound to a collection's items.
fn item_types(over: &Type, count: usize) -> Result<Vec<Type>, String> {
    match (over, count) {
        (Type::Array(of) | Type::Set(of), 1) => Ok(vec![Type::clone(of)]),
        (Type::Map(of), 1) => Ok(vec![of.key.clone()]),
        (Type::Map(of), _) => Ok(vec![of.key.clone(), of.value.clone()]),
        (Type::Array(_) | Type::Set(_), _) => {
            Err(format!("a `for` has two locals only over a map, not over {over}"))
        }
        (other, _) => Err(format!("`over` is an array, a set or a map, not {other}")),
    }
}
