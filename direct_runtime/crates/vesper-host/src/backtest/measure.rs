//! Segments, sums and the selection: expressions over inputs and outputs of a version, compiled to functions.

use std::collections::HashMap;
use std::sync::Arc;

use vesper_interp::guard::guarded;
use vesper_interp::{Advanced, Outcome, Program};
use vesper_ir::{Decimal, Type, Value};

use crate::backtest::case::Case;
use crate::backtest::version::{Ended, Replay};
use crate::typed_json::write_value;

/// Segment of runs for which an expression fails.
pub const FAILED: &str = "(the expression fails)";

/// Where an input of the function comes from.
#[derive(Clone, Debug)]
pub enum Given {
    /// Name of an input of the version.
    Input(String),
    /// Name of an output of the version.
    Output(String),
    Constant(Value),
    Now,
}

/// An expression over one version: a function with one output.
#[derive(Clone, Debug)]
pub struct Side {
    /// The version whose names it mentions.
    pub of: Arc<Program>,
    pub function: Arc<Program>,
    /// In the order of the function's inputs.
    pub given: Vec<Given>,
}

/// An expression for each version that has its names.
#[derive(Clone, Debug)]
pub struct Measure {
    pub before: Option<Side>,
    pub after: Option<Side>,
}

/// The value of a measure, or why a run has none.
#[derive(Debug)]
pub(super) enum Measured {
    Value(Type, Value),
    /// The version did not return, or has no such name.
    NoOutput,
    Failed,
}

impl Measure {
    pub(super) fn before(&self, replay: &Replay, case: &Case<'_>) -> Measured {
        value_of(self.before.as_ref(), replay, case)
    }

    pub(super) fn after(&self, replay: &Replay, case: &Case<'_>) -> Measured {
        value_of(self.after.as_ref(), replay, case)
    }
}

fn value_of(side: Option<&Side>, replay: &Replay, case: &Case<'_>) -> Measured {
    side.map_or(Measured::NoOutput, |side| side.value(replay, case))
}

impl Side {
    fn value(&self, replay: &Replay, case: &Case<'_>) -> Measured {
        let mut inputs = Vec::with_capacity(self.given.len());
        for given in &self.given {
            match self.given_value(given, replay, case) {
                Ok(value) => inputs.push(value),
                Err(missing) => return missing,
            }
        }
        let Some(output) = self.function.node().outputs.first() else {
            return Measured::Failed;
        };
        // A field alone is a function that returns its input.
        let done = guarded(|| {
            let mut execution = self.function.start(inputs, None, false).ok()?;
            match execution.advance(None).ok()? {
                Advanced::Done(Outcome::Returned(values), _) => values.into_iter().next(),
                _ => None,
            }
        });
        match done {
            Ok(Some(value)) => Measured::Value(output.ty.clone(), value),
            _ => Measured::Failed,
        }
    }

    fn given_value(&self, given: &Given, replay: &Replay, case: &Case<'_>) -> Result<Value, Measured> {
        let node = self.of.node();
        match given {
            Given::Constant(value) => Ok(value.clone()),
            Given::Now => Ok(case.now.clone()),
            Given::Output(name) => {
                let place = node.outputs.iter().position(|output| *output.name == **name);
                match (&replay.ended, place) {
                    (Ended::Outcome(Outcome::Returned(values)), Some(place)) => {
                        values.get(place).cloned().ok_or(Measured::NoOutput)
                    }
                    _ => Err(Measured::NoOutput),
                }
            }
            Given::Input(name) => {
                let place = node.inputs.iter().position(|input| *input.name == **name);
                let place = place.ok_or(Measured::NoOutput)?;
                if let Some(inputs) = &replay.inputs {
                    return inputs.get(place).cloned().ok_or(Measured::NoOutput);
                }
                let input = node.inputs.get(place).ok_or(Measured::NoOutput)?;
                match case.input(name, &input.ty) {
                    Some(value) => value.map_err(|_| Measured::Failed),
                    None => input.default.clone().ok_or(Measured::Failed),
                }
            }
        }
    }
}

/// Returns the typed JSON of a value.
pub(super) fn text_of(ty: &Type, value: &Value) -> String {
    let mut text = String::with_capacity(32);
    if write_value(&mut text, ty, value).is_err() {
        // Values of a run fit into the journal, so this is a value that no text shows.
        text.clear();
        text.push_str("(too large)");
    }
    text
}

/// A sum of integers and decimals without rounding: units by the number of digits after the point.
#[derive(Clone, Debug, Default)]
pub struct ExactSum {
    small: HashMap<u16, i128>,
    /// Numbers that need more digits, one by one: coefficients with their scales.
    large: Vec<(String, u16)>,
}

impl ExactSum {
    /// Adds a value; returns false for one that is no number.
    pub(super) fn add(&mut self, value: &Value) -> bool {
        match value {
            Value::Integer(number) => self.add_small(i128::from(*number), 0),
            Value::Decimal(number) => match number.as_small() {
                Some((coefficient, scale)) => self.add_small(coefficient, scale),
                None => self.large.push(digits_of(number)),
            },
            _ => return false,
        }
        true
    }

    fn add_small(&mut self, coefficient: i128, scale: u16) {
        let sum = self.small.entry(scale).or_default();
        if let Some(found) = sum.checked_add(coefficient) {
            *sum = found;
        } else {
            self.large.push((sum.to_string(), scale));
            *sum = coefficient;
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (scale, sum) in other.small {
            self.add_small(sum, scale);
        }
        self.large.extend(other.large);
    }

    /// Returns the parts, whose sum it is: a coefficient as text, and its scale.
    pub fn parts(&self) -> Vec<(String, u16)> {
        let small = self.small.iter().map(|(scale, sum)| (sum.to_string(), *scale));
        small.chain(self.large.iter().cloned()).collect()
    }
}

/// Returns the coefficient of a decimal as text, and its scale.
fn digits_of(number: &Decimal) -> (String, u16) {
    let text: String = number.to_string().chars().filter(|each| *each != '.').collect();
    (text, number.scale())
}
