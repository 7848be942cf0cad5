//! The frame: registers, loops and failure state of one run.
//!
//! A frame is a separate value, so that a run can be suspended.

use vesper_ir::node::ExpressionIndex;
use vesper_ir::{FailureCode, Value};

use crate::bytecode::sites::{ErrorConversion, Guard};
use crate::bytecode::{Code, Operand, PathOfCode};
use crate::observe::path::Path;
use crate::run::calls::Calls;
use crate::run::loop_state::{LoopState, Range};
use crate::run::{Fault, NO_REGISTER, Outcome, write};

/// A failure before it reaches a handler.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: FailureCode,
    pub(crate) expression: ExpressionIndex,
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failed {
            code: failure.code,
            expression: failure.expression,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub(crate) registers: Vec<Value>,
    pub(crate) loops: Vec<LoopState>,
    pub(crate) flow: FlowState,
    pub(crate) calls: Calls,
    /// The next instruction.
    pub(crate) next: usize,
    /// True if outputs are read from the registers after the run; the run loop then copies none.
    pub(crate) keeps_outputs: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct FlowState {
    /// The failures held by active handlers.
    failures: Vec<Option<Failure>>,
    /// True once a declared error has replaced the outputs.
    pub(crate) is_error: bool,
    /// The instructions of the strand, or of the statement whose strands are open. A failure leaves them only through the
    /// join.
    pub(crate) fence: Option<(usize, usize)>,
    /// The ranges of instructions that failures skipped outside of loops; only in the pathed form.
    pub(crate) skipped: Vec<(usize, usize)>,
}

/// The view of machine code on a frame.
impl Frame {
    /// Returns the next instruction.
    pub fn next(&self) -> usize {
        self.next
    }

    pub fn set_next(&mut self, next: usize) {
        self.next = next;
    }

    pub fn register(&self, place: usize) -> Option<&Value> {
        self.registers.get(place)
    }

    pub fn register_mut(&mut self, place: usize) -> Option<&mut Value> {
        self.registers.get_mut(place)
    }

    /// Returns the remaining range of a loop over a range.
    pub fn range(&self, slot: usize) -> Option<Range> {
        self.loops.get(slot)?.range
    }

    /// Returns the items of a loop over an array, and the next position.
    pub fn items(&self, slot: usize) -> Option<(&[Value], usize)> {
        let state = self.loops.get(slot)?;
        match &state.over {
            Value::Array(items) => Some((items, state.next)),
            _ => None,
        }
    }

    /// Sets the next position of a loop over an array. Returns false if there is no such loop.
    pub fn set_position(&mut self, slot: usize, next: usize) -> bool {
        let state = self.loops.get_mut(slot);
        state.map(|state| state.next = next).is_some()
    }

    /// Sets the remaining range of a loop. Returns false if the loop has no range.
    pub fn set_range(&mut self, slot: usize, to: Range) -> bool {
        let range = self.loops.get_mut(slot).and_then(|state| state.range.as_mut());
        range.map(|range| *range = to).is_some()
    }
}

impl Frame {
    /// Creates the frame of a new run. `registers` holds the inputs, then `now` if the code uses it.
    #[inline]
    pub(crate) fn new(code: &Code, mut registers: Vec<Value>) -> Self {
        registers.resize(code.registers, Value::Boolean(false));
        // `vec!` would construct one element even for a length of zero.
        Self {
            registers,
            loops: (0..code.loops).map(|_| LoopState::new()).collect(),
            flow: FlowState {
                failures: (0..code.failures).map(|_| None).collect(),
                is_error: false,
                fence: None,
                skipped: Vec::new(),
            },
            calls: Calls::default(),
            next: 0,
            keeps_outputs: false,
        }
    }

    /// Creates the frame of a strand on the instructions of the region.
    pub(crate) fn forked(&self, code: &Code, region: (usize, usize)) -> Self {
        Self {
            registers: self.registers.clone(),
            // No instruction of a strand reads a loop that began before it.
            loops: (0..code.loops).map(|_| LoopState::new()).collect(),
            flow: FlowState {
                failures: self.flow.failures.clone(),
                is_error: false,
                fence: Some(region),
                skipped: Vec::new(),
            },
            calls: Calls::default(),
            next: region.0,
            keeps_outputs: false,
        }
    }

    /// Adds the points that a strand has passed.
    pub(crate) fn join_path(&mut self, code: &Code, strand: &Self) {
        if let Some(path) = &code.path {
            let words = path.first.0 as usize..path.first.0 as usize + path.words;
            let own = self.registers.get_mut(words.clone()).unwrap_or_default();
            for (own, passed) in own
                .iter_mut()
                .zip(strand.registers.get(words).unwrap_or_default())
            {
                if let (Value::Integer(own), Value::Integer(passed)) = (own, passed) {
                    *own |= passed;
                }
            }
        }
    }

    /// Creates the frame of a new run of the pathed form, with an empty path.
    pub(crate) fn pathed(code: &Code, registers: Vec<Value>) -> Self {
        let mut frame = Self::new(code, registers);
        frame.clear_path(code);
        frame
    }

    /// Clears the words of the path, if the code has one.
    pub(crate) fn clear_path(&mut self, code: &Code) {
        if let Some(path) = &code.path {
            let words = self.registers.iter_mut().skip(path.first.0 as usize);
            for word in words.take(path.words) {
                *word = Value::Integer(0);
            }
        }
    }

    /// Resets everything except registers and loops.
    pub(crate) fn reset_flow(&mut self) {
        self.next = 0;
        self.calls.clear();
        self.flow.is_error = false;
        self.flow.skipped.clear();
        self.flow.failures.fill(None);
    }

    /// Resets the frame for another run of the same code with new inputs. Other registers and loops are written
    /// before they are read.
    #[inline]
    pub(crate) fn rewind(&mut self) {
        self.next = 0;
        self.calls.clear();
        self.flow.is_error = false;
        for failure in &mut self.flow.failures {
            *failure = None;
        }
    }

    /// Returns the points passed so far.
    pub(crate) fn path(&self, path: &PathOfCode) -> Path {
        let first = path.first.0 as usize;
        let words = self.registers.get(first..first + path.words).unwrap_or_default();
        Path::new(words.iter().map(|word| match word {
            Value::Integer(bits) => bits.cast_unsigned(),
            _ => 0,
        }))
    }

    pub(crate) fn read<'a>(&'a self, code: &'a Code, operand: Operand) -> Result<&'a Value, Fault> {
        operand.read(&code.constants, &self.registers).ok_or(NO_REGISTER)
    }

    /// Fails the instruction that stopped the run. Continues at a handler, or returns the failure.
    pub(crate) fn fail(&mut self, code: &Code, failure: Failure) -> Result<Option<Failure>, Fault> {
        let at = self.next.saturating_sub(1);
        match self.flow.handle(code, &mut self.registers, at, failure)? {
            Ok(next) => {
                self.next = next;
                Ok(None)
            }
            Err(failure) => Ok(Some(failure)),
        }
    }
}

const NOT_HELD: Fault = "a handler holds no failure";

impl FlowState {
    /// Finds the instruction at which a failure of `at` continues. Returns the failure if nothing catches it.
    #[cold]
    pub(crate) fn handle(
        &mut self,
        code: &Code,
        registers: &mut [Value],
        at: usize,
        failure: Failure,
    ) -> Result<Result<usize, Failure>, Fault> {
        let fence = self.fence;
        let encloses =
            |guard: &Guard| fence.is_none_or(|(start, end)| start <= guard.start && guard.end <= end);
        let around = code
            .guards
            .iter()
            .filter(|guard| (guard.start..guard.end).contains(&at) && encloses(guard));
        for guard in around {
            if let Some(handler) = guard.handler(failure.code.name()) {
                *self.failures.get_mut(handler.slot as usize).ok_or(NOT_HELD)? = Some(failure);
                self.skip(code, at, handler.at);
                return Ok(Ok(handler.at));
            }
        }
        if let Some((_, end)) = self.fence {
            self.skip(code, at, end);
            return Ok(Err(failure));
        }
        let Some(error_conversion) = &code.error_conversion else {
            return Ok(Err(failure));
        };
        let member = error_conversion.codes.member(failure.code.name());
        let Some(member) = member.filter(|_| (error_conversion.start..error_conversion.end).contains(&at))
        else {
            return Ok(Err(failure));
        };
        declare(
            code,
            error_conversion,
            registers,
            Value::Member(member),
            &failure.code,
        )?;
        self.is_error = true;
        self.skip(code, at, error_conversion.to);
        Ok(Ok(error_conversion.to))
    }

    /// Records the instructions skipped between a failure and its handler. Inside a loop they may have run in an
    /// earlier round.
    fn skip(&mut self, code: &Code, failed: usize, to: usize) {
        if let Some(path) = &code.path {
            let from = path.reads.end_of_loops(failed);
            if from < to {
                self.skipped.push((from, to));
            }
        }
    }

    /// Takes the failure that a handler holds.
    pub(crate) fn take_failure(&mut self, slot: u32) -> Result<Failure, Fault> {
        let held = self.failures.get_mut(slot as usize);
        held.and_then(Option::take).ok_or(NOT_HELD)
    }
}

/// Writes the declared error of a failure, and sets the outputs to null.
fn declare(
    code: &Code,
    error_conversion: &ErrorConversion,
    registers: &mut [Value],
    member: Value,
    failure: &FailureCode,
) -> Result<(), Fault> {
    let mut member = Some(member);
    for (place, field) in code.errors.iter().enumerate() {
        // `error_code` is the first field.
        let value = match member.take() {
            Some(member) => member,
            None if error_conversion.message == Some(place) => Value::Text(failure.name().into()),
            None => Value::Null,
        };
        write(registers, *field, value)?;
    }
    for output in &code.returns {
        if let Some(register) = output.as_register() {
            write(registers, register, Value::Null)?;
        }
    }
    Ok(())
}
