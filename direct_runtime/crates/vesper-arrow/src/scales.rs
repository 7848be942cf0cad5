//! Bounds of the scale of output decimals, inferred from the node and the input columns.
//!
//! No row is read, so that the column types are the same for every table of one schema. Every step, local and
//! expression has a bound, and bounds grow until nothing changes. An operation whose scale depends on values has no
//! bound, and its column holds texts.

use arrow_schema::DataType;
use vesper_ir::flow::{Block, Handler, NamedValue, Statement};
use vesper_ir::node::{Expression, ExpressionIndex, ExpressionKind, For, ForKind, Node};
use vesper_ir::{Op, Type, Value};

use crate::cell::scale_of_column;
use crate::column_writer::PRECISION;

/// A maximum scale, or no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bound(u16);

const NONE: Bound = Bound(u16::MAX);
const ZERO: Bound = Bound(0);
/// Scale of the seconds of a duration.
const SECONDS: Bound = Bound(6);

impl Bound {
    fn of(scale: u16) -> Self {
        if scale > u16::from(PRECISION) {
            NONE
        } else {
            Self(scale)
        }
    }

    fn plus(self, other: Self) -> Self {
        Self::of(self.0.saturating_add(other.0))
    }

    /// Returns the scale, if there is a bound.
    pub(crate) fn scale(self) -> Option<u8> {
        u8::try_from(self.0).ok().filter(|scale| *scale <= PRECISION)
    }
}

/// Returns true if values of the type contain decimals that a column holds as numbers.
pub(crate) fn has_decimals(ty: &Type) -> bool {
    match ty {
        Type::Decimal => true,
        Type::Array(of) | Type::Set(of) | Type::Optional(of) => has_decimals(of),
        Type::Map(of) => has_decimals(&of.value),
        Type::Record(of) => of.fields().iter().any(|field| has_decimals(&field.ty)),
        _ => false,
    }
}

/// Returns the bound of an input of type `ty` from a column of type `column`.
pub(crate) fn of_column(ty: &Type, column: &DataType) -> Bound {
    match (ty, column) {
        (ty, _) if !has_decimals(ty) => ZERO,
        (Type::Optional(of), column) => of_column(of, column),
        (ty, DataType::Dictionary(_, values)) => of_column(ty, values),
        (
            Type::Decimal,
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale),
        ) => Bound::of(scale_of_column(*scale)),
        (Type::Decimal, column) if column.is_integer() || column.is_null() => ZERO,
        (
            Type::Array(of),
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _),
        ) => of_column(of, item.data_type()),
        (Type::Record(of), DataType::Struct(fields)) => {
            let bounds = of.fields().iter().enumerate().map(|(place, field)| {
                let column = fields.iter().find(|column| column.name() == of.key(place));
                column.map_or(ZERO, |column| of_column(&field.ty, column.data_type()))
            });
            bounds.max().unwrap_or(ZERO)
        }
        (Type::Map(of), DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(fields) => fields
                .get(1)
                .map_or(NONE, |value| of_column(&of.value, value.data_type())),
            _ => NONE,
        },
        _ => NONE,
    }
}

/// Returns the largest scale in a value.
pub(crate) fn of_value(value: &Value) -> Bound {
    let largest = |values: &[Value]| values.iter().map(of_value).max().unwrap_or(ZERO);
    match value {
        Value::Decimal(number) => Bound::of(number.scale()),
        Value::Array(values) | Value::Record(values) => largest(values),
        Value::Map(map) => largest(map.values()),
        _ => ZERO,
    }
}

/// The bounds of all parts of a node.
struct Bounds<'a> {
    node: &'a Node,
    inputs: &'a [Bound],
    expressions: Vec<Bound>,
    steps: Vec<Bound>,
    locals: Vec<Bound>,
    outputs: Vec<Bound>,
    has_changed: bool,
}

/// Returns the bound of each output, given those of the inputs.
pub(crate) fn of_outputs(node: &Node, inputs: &[Bound]) -> Vec<Bound> {
    let mut bounds = Bounds {
        node,
        inputs,
        expressions: vec![ZERO; node.expressions.len()],
        steps: vec![ZERO; node.steps.len()],
        locals: vec![ZERO; node.locals],
        outputs: vec![ZERO; node.outputs.len()],
        has_changed: true,
    };
    // Each round that changes anything increases a bound, and a bound has about forty values.
    while bounds.has_changed {
        bounds.has_changed = false;
        for (place, expression) in node.expressions.iter().enumerate() {
            let found = if has_decimals(&expression.ty) {
                bounds.of_expression(expression)
            } else {
                bounds.bind_locals(expression);
                ZERO
            };
            grow(&mut bounds.expressions, place, found, &mut bounds.has_changed);
        }
        bounds.block(&node.body);
    }
    bounds.outputs
}

fn grow(places: &mut [Bound], place: usize, to: Bound, has_changed: &mut bool) {
    if let Some(known) = places.get_mut(place)
        && *known < to
    {
        *known = to;
        *has_changed = true;
    }
}

impl Bounds<'_> {
    fn at(&self, index: ExpressionIndex) -> Bound {
        self.expressions.get(index as usize).copied().unwrap_or(NONE)
    }

    fn largest(&self, indices: &[ExpressionIndex]) -> Bound {
        indices.iter().map(|index| self.at(*index)).max().unwrap_or(ZERO)
    }

    fn local(&mut self, local: usize, to: Bound) {
        grow(&mut self.locals, local, to, &mut self.has_changed);
    }

    fn step(&mut self, name: &str, to: Option<ExpressionIndex>) {
        if let (Some(place), Some(to)) = (self.node.step_place(name), to) {
            let to = self.at(to);
            grow(&mut self.steps, place, to, &mut self.has_changed);
        }
    }

    /// Updates the bounds of the locals that an expression binds.
    fn bind_locals(&mut self, expression: &Expression) {
        // Parameters of functions have any scale.
        for param in self.node.functions.iter().flat_map(|function| &function.params) {
            self.local(*param, NONE);
        }
        match expression.kind {
            ExpressionKind::Let { local, value, .. } => self.local(local, self.at(value)),
            ExpressionKind::For {
                item,
                entry_value,
                so_far,
                parts,
            } => {
                let over = self.at(parts.over);
                self.local(item, over);
                if let Some(entry_value) = entry_value {
                    self.local(entry_value, over);
                }
                if let (Some(so_far), Some(with)) = (so_far, parts.with) {
                    self.local(so_far, self.at(with).max(self.at(parts.value)));
                }
            }
            _ => {}
        }
    }

    fn of_expression(&mut self, expression: &Expression) -> Bound {
        self.bind_locals(expression);
        let place_in = |places: &[Bound], place: usize| places.get(place).copied().unwrap_or(NONE);
        match &expression.kind {
            ExpressionKind::Literal(value) => of_value(value),
            ExpressionKind::Input(place) => place_in(self.inputs, *place),
            ExpressionKind::Constant(place) => {
                let constant = self.node.constants.get(*place);
                constant.map_or(NONE, |constant| of_value(&constant.value))
            }
            ExpressionKind::Step(place) => place_in(&self.steps, *place),
            ExpressionKind::Output(place) => place_in(&self.outputs, *place),
            ExpressionKind::Local(place) => place_in(&self.locals, *place),
            // Values from outside the node have any scale.
            ExpressionKind::Error(_)
            | ExpressionKind::Now
            | ExpressionKind::Result
            | ExpressionKind::Apply { .. } => NONE,
            ExpressionKind::If { then, otherwise, .. } => self.at(*then).max(self.at(*otherwise)),
            ExpressionKind::And(left, right) | ExpressionKind::Or(left, right) => {
                self.at(*left).max(self.at(*right))
            }
            ExpressionKind::Let { body, .. } => self.at(*body),
            ExpressionKind::Array(items) | ExpressionKind::Record(items) => self.largest(items),
            ExpressionKind::Field { of, .. } => self.at(*of),
            ExpressionKind::For { parts, .. } => self.of_for(parts),
            ExpressionKind::Call { op, args, .. } => self.of_call(*op, args),
        }
    }

    fn of_for(&self, parts: &For) -> Bound {
        if parts.kind.is_of_items() {
            return self.at(parts.over);
        }
        match parts.kind {
            ForKind::Avg => NONE,
            ForKind::Fold => parts
                .with
                .map_or(NONE, |with| self.at(with))
                .max(self.at(parts.value)),
            _ => self.at(parts.value),
        }
    }

    fn of_call(&self, op: Op, args: &[ExpressionIndex]) -> Bound {
        match op {
            Op::DecimalFromInteger => ZERO,
            Op::DecimalMultiply => match args {
                [left, right] => self.at(*left).plus(self.at(*right)),
                _ => NONE,
            },
            Op::DecimalRound => self.literal_scale(args.get(1)),
            Op::DecimalDiv => self.literal_scale(args.get(2)),
            Op::DurationTotalSeconds => SECONDS,
            // Their scale is at most the largest among their arguments.
            Op::DecimalAdd
            | Op::DecimalSubtract
            | Op::DecimalNegate
            | Op::DecimalAbs
            | Op::DecimalNormalize
            | Op::DecimalSum
            | Op::DecimalAllocate
            | Op::ValueMin
            | Op::ValueMax
            | Op::ValueClamp => self.largest(args),
            op if GATHERING.iter().any(|family| op.name().starts_with(family)) => self.largest(args),
            _ => NONE,
        }
    }

    /// Returns the scale given by a literal argument.
    fn literal_scale(&self, argument: Option<&ExpressionIndex>) -> Bound {
        let expression = argument.and_then(|index| self.node.expression(*index));
        match expression.map(|expression| &expression.kind) {
            Some(ExpressionKind::Literal(Value::Integer(scale))) => {
                Bound::of(u16::try_from((*scale).max(0)).unwrap_or(u16::MAX))
            }
            _ => NONE,
        }
    }

    fn handlers(&mut self, name: &str, handlers: &[Handler]) {
        for handler in handlers {
            self.block(&handler.body);
            self.step(name, handler.value);
        }
    }

    fn named(&self, values: &[NamedValue]) -> Vec<Bound> {
        values.iter().map(|(_, value)| self.at(*value)).collect()
    }

    fn block(&mut self, block: &Block) {
        for statement in block {
            match statement {
                Statement::Step {
                    name,
                    value,
                    handlers,
                } => {
                    self.step(name, Some(*value));
                    self.handlers(name, handlers);
                }
                Statement::Return { success } => {
                    for (place, to) in self.named(success).into_iter().enumerate() {
                        grow(&mut self.outputs, place, to, &mut self.has_changed);
                    }
                }
                Statement::Raise { .. } | Statement::Require { .. } => {}
                Statement::Branch(branch) => {
                    for arm in &branch.arms {
                        self.block(&arm.body);
                        self.step(&branch.name, arm.value);
                    }
                    self.block(&branch.otherwise);
                    self.step(&branch.name, branch.otherwise_value);
                    self.handlers(&branch.name, &branch.handlers);
                }
                Statement::Loop(repeated) => {
                    let over = repeated.over.map_or(ZERO, |over| self.at(over));
                    for number in &repeated.locals {
                        if let Some(local) = self.node.loop_local(*number) {
                            self.local(local, over);
                        }
                    }
                    let state = repeated
                        .state
                        .iter()
                        .map(|variable| (variable.local, variable.value));
                    let all: Vec<(u64, ExpressionIndex)> =
                        state.chain(repeated.next.iter().copied()).collect();
                    for (number, value) in all {
                        let to = self.at(value);
                        if let Some(local) = self.node.loop_local(number) {
                            self.local(local, to);
                        }
                        self.step(&repeated.name, Some(value));
                    }
                    self.block(&repeated.body);
                    self.step(&repeated.name, repeated.collect);
                    self.handlers(&repeated.name, &repeated.handlers);
                }
                Statement::Parallel(parallel) => {
                    for member in &parallel.members {
                        self.block(member);
                    }
                    self.handlers(&parallel.name, &parallel.handlers);
                }
                Statement::Request(request) => {
                    self.step(&request.name, Some(request.result));
                    self.handlers(&request.name, &request.handlers);
                }
                Statement::Call(call) => {
                    self.step(&call.name, Some(call.result));
                    self.handlers(&call.name, &call.handlers);
                }
            }
        }
    }
}

/// Families of operations that combine or split their arguments.
const GATHERING: [&str; 4] = ["array.", "map.", "optional.", "record."];
