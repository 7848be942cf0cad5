//! Scales of decimals that are known at compile time from the scales of the inputs.
//!
//! A table column has one scale for all rows. Sums, products, moves and constants preserve known scales; a merge of
//! different scales, or a scale that depends on a value, is unknown. Code with a known scale neither stores nor
//! checks it.

use std::collections::BTreeMap;

use vesper_interp::code::{Code, Instruction, Operand};
use vesper_ir::decimal::MAX_SCALE;
use vesper_ir::{Op, Value};

use super::frameless::FunctionCall;
use super::{Plan, function_call};
use crate::dataflow::{accesses, places, register_place};
use crate::frameless::Site;
use crate::kinds::{Inline, Kind, inline};

/// The known scale of the decimal at each place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known(Vec<Option<u16>>);

impl Known {
    pub(crate) fn get(&self, place: usize) -> Option<u16> {
        self.0.get(place).copied().flatten()
    }

    fn set(&mut self, place: usize, scale: Option<u16>) {
        if let Some(place) = self.0.get_mut(place) {
            *place = scale;
        }
    }

    /// Returns the scale of an operand.
    fn of(&self, code: &Code, operand: Operand) -> Option<u16> {
        match operand.as_register() {
            Some(register) => self.get(register_place(register)),
            None => match operand.read(&code.constants, &[]) {
                Some(Value::Decimal(value)) => Some(value.scale()),
                _ => None,
            },
        }
    }

    /// Merges another edge. Returns true if less is known afterwards.
    fn meet(&mut self, other: &Self) -> bool {
        let mut is_changed = false;
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            let is_other = *own != *other;
            if own.is_some() && is_other {
                *own = None;
                is_changed = true;
            }
        }
        is_changed
    }

    /// Applies an instruction to the known scales.
    pub(crate) fn transfer(&mut self, code: &Code, instruction: &Instruction) {
        // Most code has no known scales.
        if self.0.is_empty() {
            return;
        }
        let given = match *instruction {
            Instruction::Call { op, out, args, .. } => self
                .of_call(code, op, &args)
                .map(|scale| (register_place(out), scale)),
            Instruction::Move { out, from } => self.of(code, from).map(|scale| (register_place(out), scale)),
            _ => None,
        };
        for place in accesses(code, instruction).writes {
            self.set(place, None);
        }
        if let Some((place, scale)) = given {
            self.set(place, Some(scale));
        }
    }

    fn of_call(&self, code: &Code, op: Op, args: &[Operand]) -> Option<u16> {
        let scale = |place: usize| self.of(code, *args.get(place)?);
        match inline(op) {
            Some((what, Kind::Decimal, Kind::Decimal)) => match what {
                Inline::Add | Inline::Subtract => Some(scale(0)?.max(scale(1)?)),
                Inline::Multiply => {
                    let sum = scale(0)?.checked_add(scale(1)?)?;
                    Some(sum).filter(|sum| *sum <= MAX_SCALE)
                }
                Inline::Negate => scale(0),
                _ => None,
            },
            Some((Inline::ToDecimal, ..)) => Some(0),
            Some(_) => None,
            None => of_function(code, op, args),
        }
    }
}

/// Returns the scale of all results of a function: a map whose values share one, or rounding to constant places.
pub(crate) fn of_function(code: &Code, op: Op, args: &[Operand]) -> Option<u16> {
    match op {
        Op::MapAt => match function_call(code, op, args)? {
            FunctionCall {
                site: Site::At { values, .. },
                gives: Kind::Decimal,
                ..
            } => {
                let mut scales = values.iter().map(|[_, scale, _]| *scale);
                let first = scales.next()?;
                scales.all(|scale| scale == first).then_some(())?;
                u16::try_from(first).ok()
            }
            _ => None,
        },
        Op::DecimalRound => {
            let places = args.get(1)?;
            let places = match places.as_register() {
                Some(_) => None,
                None => places.read(&code.constants, &[]),
            };
            match places {
                Some(Value::Integer(places)) => {
                    u16::try_from(*places).ok().filter(|places| *places <= MAX_SCALE)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Computes the scales at the start of each block from those of the inputs.
pub(crate) fn scales(code: &Code, plan: &Plan, given: &[Option<u16>]) -> BTreeMap<usize, Known> {
    let nothing = Known(vec![None; places(code)]);
    let mut first = nothing.clone();
    for (place, scale) in given.iter().enumerate() {
        first.set(place, *scale);
    }
    let mut found: BTreeMap<usize, Known> = BTreeMap::new();
    let entries = plan.entries.iter();
    let mut open: Vec<(usize, Known)> = entries
        .map(|at| (*at, if *at == 0 { first.clone() } else { nothing.clone() }))
        .collect();
    while let Some((start, known)) = open.pop() {
        let mut known = if let Some(own) = found.get_mut(&start) {
            if !own.meet(&known) {
                continue;
            }
            own.clone()
        } else {
            found.insert(start, known.clone());
            known
        };
        let mut at = start;
        while let Some(instruction) = code.instructions.get(at) {
            let touched = accesses(code, instruction);
            let before = known.clone();
            known.transfer(code, instruction);
            if let Some(to) = touched.jump {
                open.push((to, if touched.is_last { before } else { known.clone() }));
            }
            if touched.is_last {
                break;
            }
            at += 1;
            if plan.blocks.contains_key(&at) {
                open.push((at, known));
                break;
            }
        }
    }
    found
}
