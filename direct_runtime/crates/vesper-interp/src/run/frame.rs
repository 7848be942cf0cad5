//! The state of one run: registers, loops, and what its failures did. It is a value of its own, so that a run may wait.

use vesper_ir::node::ExpressionIndex;
use vesper_ir::{FailureCode, Value};

use crate::bytecode::sites::ErrorConversion;
use crate::bytecode::{Code, Operand, PathOfCode};
use crate::observe::path::Path;
use crate::run::loop_state::{LoopState, Range};
use crate::run::{Fault, NO_REGISTER, Outcome, write};

/// A failure on its way to a handler.
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
    /// The instruction that comes next.
    pub(crate) next: usize,
    /// True where what a run returns is read from the registers afterwards: then it is not copied.
    pub(crate) keeps_outputs: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct FlowState {
    /// What handlers took, while they are at work.
    failures: Vec<Option<Failure>>,
    /// True from where a declared error takes the place of the outputs.
    pub(crate) is_error: bool,
    /// The instructions that failures jumped over, outside of loops; in the pathed form only.
    pub(crate) skipped: Vec<(usize, usize)>,
}

/// What machine code sees of a frame.
impl Frame {
    /// The instruction that comes next.
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

    /// What is still to come in a loop that goes through a range.
    pub fn range(&self, slot: usize) -> Option<Range> {
        self.loops.get(slot)?.range
    }

    /// The items of the array that a loop goes through, and the place of the one that comes next.
    pub fn items(&self, slot: usize) -> Option<(&[Value], usize)> {
        let state = self.loops.get(slot)?;
        match &state.over {
            Value::Array(items) => Some((items, state.next)),
            _ => None,
        }
    }

    /// Goes on in an array; false where there is no such loop.
    pub fn set_position(&mut self, slot: usize, next: usize) -> bool {
        let state = self.loops.get_mut(slot);
        state.map(|state| state.next = next).is_some()
    }

    /// Goes on in the range of a loop; false where it goes through none.
    pub fn set_range(&mut self, slot: usize, to: Range) -> bool {
        let range = self.loops.get_mut(slot).and_then(|state| state.range.as_mut());
        range.map(|range| *range = to).is_some()
    }
}

impl Frame {
    /// A run that begins. `registers` holds the inputs, then `now` where the code uses it, and nothing else.
    #[inline]
    pub(crate) fn new(code: &Code, mut registers: Vec<Value>) -> Self {
        registers.resize(code.registers, Value::Boolean(false));
        // Not by `vec!`, which makes a first one even where there is nothing to hold.
        Self {
            registers,
            loops: (0..code.loops).map(|_| LoopState::new()).collect(),
            flow: FlowState {
                failures: (0..code.failures).map(|_| None).collect(),
                is_error: false,
                skipped: Vec::new(),
            },
            next: 0,
            keeps_outputs: false,
        }
    }

    /// A run of the pathed form that begins: it has passed nothing.
    pub(crate) fn pathed(code: &Code, registers: Vec<Value>) -> Self {
        let mut frame = Self::new(code, registers);
        frame.clear_path(code);
        frame
    }

    /// Nothing was passed, where the code has a path.
    pub(crate) fn clear_path(&mut self, code: &Code) {
        if let Some(path) = &code.path {
            let words = self.registers.iter_mut().skip(path.first.0 as usize);
            for word in words.take(path.words) {
                *word = Value::Integer(0);
            }
        }
    }

    /// All but the registers and the loops is as in a frame that begins.
    pub(crate) fn reset_flow(&mut self) {
        self.next = 0;
        self.flow.is_error = false;
        self.flow.skipped.clear();
        self.flow.failures.fill(None);
    }

    /// Back to the beginning, for another run of the same code with inputs of its own. What else stands in registers and
    /// loops is written before it is read.
    #[inline]
    pub(crate) fn rewind(&mut self) {
        self.next = 0;
        self.flow.is_error = false;
        for failure in &mut self.flow.failures {
            *failure = None;
        }
    }

    /// The points that were passed so far.
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

    /// The last instruction, which stopped the run, fails after all: goes on at a handler, or gives the failure back.
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
    /// Where a failure of the instruction `at` goes on, or the failure itself where nothing takes it.
    #[cold]
    pub(crate) fn handle(
        &mut self,
        code: &Code,
        registers: &mut [Value],
        at: usize,
        failure: Failure,
    ) -> Result<Result<usize, Failure>, Fault> {
        let around = code
            .guards
            .iter()
            .filter(|guard| (guard.start..guard.end).contains(&at));
        for guard in around {
            if let Some(handler) = guard.handler(failure.code.name()) {
                *self.failures.get_mut(handler.slot as usize).ok_or(NOT_HELD)? = Some(failure);
                self.skip(code, at, handler.at);
                return Ok(Ok(handler.at));
            }
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

    /// What stands between an instruction that failed and the one at which it goes on is not run; in a loop it may have
    /// been.
    fn skip(&mut self, code: &Code, failed: usize, to: usize) {
        if let Some(path) = &code.path {
            let from = path.reads.end_of_loops(failed);
            if from < to {
                self.skipped.push((from, to));
            }
        }
    }

    /// The failure that a handler took.
    pub(crate) fn take_failure(&mut self, slot: u32) -> Result<Failure, Fault> {
        let held = self.failures.get_mut(slot as usize);
        held.and_then(Option::take).ok_or(NOT_HELD)
    }
}

/// Puts the error that a failure error_conversion into the registers, and takes the outputs out of them.
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
