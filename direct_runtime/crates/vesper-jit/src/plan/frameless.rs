//! The plan of frameless code. Without a form in machine registers an instruction is an exit, and the whole run is
//! repeated with a frame.

use std::collections::BTreeMap;

use vesper_interp::code::{Code, Instruction, Operand};
use vesper_interp::words::{Given, RowShape, Shape};
use vesper_ir::types::TypePattern;
use vesper_ir::value::Set;
use vesper_ir::{Op, Value};

use super::{How, Plan, Rows, loops_over_range, uses};
use crate::dataflow::{Accesses, accesses, loop_place, register_place};
use crate::frameless::{Arg, Keys, Site};
use crate::kinds::{Kind, inline};

/// A call of a function on words.
#[derive(Debug)]
pub(crate) struct FunctionCall {
    pub(crate) site: Site,
    /// The arguments, in order.
    pub(crate) given: Vec<(Operand, Kind)>,
    pub(crate) gives: Kind,
}

/// Returns the values loaded at the start: all inputs and the empty path.
pub(super) fn loads(shape: &Shape) -> Vec<(usize, Kind)> {
    let inputs = shape.inputs.iter().enumerate();
    let path = shape.path.into_iter();
    let path = path.flat_map(|path| (path.first..path.first + path.words).map(|word| (word, Kind::Integer)));
    inputs
        .map(|(place, given)| match given {
            Given::Value { form, .. } => (place, Kind::of_form(*form)),
            Given::Rows(_) => (place, Kind::Rows),
        })
        .chain(path)
        .collect()
}

pub(super) fn how(
    code: &Code,
    all: &[Accesses],
    at: usize,
    instruction: &Instruction,
    rows: Option<&Rows>,
) -> How {
    let known = match *instruction {
        Instruction::LoopStart { slot, over } => {
            let over = over.as_register().filter(|_| rows.is_some());
            over.map(|over| How::Inline {
                uses: vec![(register_place(over), Kind::Rows)],
                gives: vec![(loop_place(code, slot), Kind::Items)],
            })
        }
        Instruction::LoopAdvance { slot, .. } => rows.map(|_| How::Inline {
            uses: vec![(loop_place(code, slot), Kind::Items)],
            gives: vec![(loop_place(code, slot), Kind::Items)],
        }),
        Instruction::LoopField { slot, out, place } => {
            let kind = rows.and_then(|rows| rows.fields.iter().find(|field| field.0 == place));
            kind.map(|(_, kind, _)| How::Inline {
                uses: vec![(loop_place(code, slot), Kind::Items)],
                gives: vec![(register_place(out), *kind)],
            })
        }
        Instruction::LoopBegan { slot, out } if starts_with_rows(code, at) => Some(How::Inline {
            uses: vec![(loop_place(code, slot), Kind::Items)],
            gives: vec![(register_place(out), Kind::Integer)],
        }),
        Instruction::LoopRange {
            slot,
            start,
            end,
            step,
            ..
        } => uses(code, &[start, end, step], Kind::Integer).map(|uses| How::Inline {
            uses,
            gives: vec![(loop_place(code, slot), Kind::Range)],
        }),
        Instruction::NoteItems { slot, began, point } => {
            let kind = if loops_over_range(code, at) {
                Kind::Range
            } else {
                Kind::Items
            };
            word_of(code, point).map(|(word, _)| How::Inline {
                uses: vec![
                    (loop_place(code, slot), kind),
                    (register_place(began), Kind::Integer),
                    (word, Kind::Integer),
                ],
                gives: vec![(word, Kind::Integer)],
            })
        }
        Instruction::NoteRounds { count, point } => word_of(code, point).map(|(word, _)| How::Inline {
            uses: vec![(register_place(count), Kind::Integer), (word, Kind::Integer)],
            gives: vec![(word, Kind::Integer)],
        }),
        Instruction::Move { out, from } if is_text(code, from) => Some(How::Inline {
            uses: Vec::new(),
            gives: vec![(register_place(out), Kind::Text)],
        }),
        // What takes memory is an exit, so a frameless run has none to give back or to count.
        Instruction::LoopMemory { .. }
        | Instruction::LoopRestore { .. }
        | Instruction::LoopRecount { .. } => Some(How::Inline {
            uses: Vec::new(),
            gives: Vec::new(),
        }),
        _ => match super::how(code, all, at, instruction, None) {
            how @ (How::Inline { .. } | How::Move { .. }) => Some(how),
            How::Step { .. } | How::Leave => by_function(code, at, instruction),
        },
    };
    known.unwrap_or(How::Leave)
}

/// Returns true if the loop of an instruction runs over an array.
fn starts_with_rows(code: &Code, at: usize) -> bool {
    let Some(Instruction::LoopBegan { slot, .. }) = code.instructions.get(at) else {
        return false;
    };
    let before = code.instructions.get(..at).unwrap_or_default();
    let last = before.iter().rev().find_map(|instruction| match instruction {
        Instruction::LoopStart { slot: of, .. } if of == slot => Some(true),
        Instruction::LoopRange { slot: of, .. } if of == slot => Some(false),
        _ => None,
    });
    last == Some(true)
}

/// Returns the path word of a loop's three points and the bit of the first. Returns `None` if they span two words.
pub(crate) fn word_of(code: &Code, point: u32) -> Option<(usize, u8)> {
    let path = code.path.as_ref()?;
    let ((word, bit), (last, _)) = (path.place(point), path.place(point + 2));
    (word == last).then_some((register_place(word), bit))
}

fn is_text(code: &Code, operand: Operand) -> bool {
    operand.as_constant().is_some() && matches!(operand.read(&code.constants, &[]), Some(Value::Text(_)))
}

fn by_function(code: &Code, at: usize, instruction: &Instruction) -> Option<How> {
    let (call, gives) = match *instruction {
        Instruction::Call { op, out, args, .. } => {
            let call = function_call(code, op, &args)?;
            let gives = vec![(register_place(out), call.gives)];
            (call, gives)
        }
        Instruction::JumpUnless {
            op, first, second, ..
        }
        | Instruction::RequireThat {
            op, first, second, ..
        } => (function_call(code, op, &[first, second])?, Vec::new()),
        _ => return None,
    };
    // The length of a text costs no fuel and a kernel copies it, so in a range the time would be unbounded.
    let is_of_text = call.given.iter().any(|(_, kind)| *kind == Kind::Text);
    if is_of_text && is_in_range(code, at) {
        return None;
    }
    let arguments = call.given.iter();
    let uses = arguments.filter_map(|(operand, kind)| Some((register_place(operand.as_register()?), *kind)));
    Some(How::Inline {
        uses: uses.collect(),
        gives,
    })
}

/// Returns true in the rounds of a loop over a range.
fn is_in_range(code: &Code, at: usize) -> bool {
    let before = code.instructions.iter().enumerate().take(at);
    let mut heads = before.filter_map(|(head, one)| match one {
        Instruction::LoopNext { done, .. } => Some((head, *done)),
        _ => None,
    });
    heads.any(|(head, done)| at < done as usize && loops_over_range(code, head))
}

/// Plans the call of an operation. Returns `None` if an argument or the result has no form in words.
pub(crate) fn function_call(code: &Code, op: Op, args: &[Operand]) -> Option<FunctionCall> {
    let of_texts = |site, count: usize, gives| {
        let given = args.get(..count)?.iter().map(|arg| (*arg, Kind::Text)).collect();
        Some(FunctionCall { site, given, gives })
    };
    match op {
        Op::TextLength => of_texts(Site::Length, 1, Kind::Integer),
        Op::TextEqual
        | Op::TextNotEqual
        | Op::TextLess
        | Op::TextLessOrEqual
        | Op::TextGreater
        | Op::TextGreaterOrEqual => of_texts(Site::Texts(op), 2, Kind::Boolean),
        Op::SetIsMember | Op::SetContains | Op::MapIsKey | Op::MapContains | Op::MapAt => {
            lookup_call(code, op, args).or_else(|| kernel_call(op, args))
        }
        _ => kernel_call(op, args),
    }
}

/// Plans a lookup of a text in a constant.
fn lookup_call(code: &Code, op: Op, args: &[Operand]) -> Option<FunctionCall> {
    let [first, second, ..] = args else {
        return None;
    };
    let (key, entries) = match op {
        Op::SetIsMember | Op::MapIsKey => (*first, *second),
        _ => (*second, *first),
    };
    let constant = entries.as_constant()? as usize;
    let (keys, values) = match code.constants.get(constant)? {
        Value::Set(set) => (&**set, None),
        Value::Map(map) => (map.keys(), Some(map.values())),
        _ => return None,
    };
    if !matches!(keys, Set::Text(_)) {
        return None;
    }
    let (site, gives) = if op == Op::MapAt {
        let values = values?;
        let kind = Kind::of(values.first()?)?;
        let values = values
            .iter()
            .map(|value| kind.bits(value))
            .collect::<Option<_>>()?;
        let keys = Keys::new(keys);
        (Site::At { keys, values }, kind)
    } else {
        (Site::Has(Keys::new(keys), Keys::numbers(keys)), Kind::Boolean)
    };
    Some(FunctionCall {
        site,
        given: vec![(key, Kind::Text)],
        gives,
    })
}

/// Plans a kernel call on temporary values.
fn kernel_call(op: Op, args: &[Operand]) -> Option<FunctionCall> {
    let signature = op.signature();
    if !signature.named.is_empty() || !signature.typed.is_empty() || !signature.literals.is_empty() {
        return None;
    }
    let result = Kind::of_type(&signature.returns)?;
    let (mut given, mut all) = (Vec::new(), Vec::new());
    for ((_, ty), arg) in signature.params.iter().zip(args) {
        if let Some(constant) = arg.as_constant() {
            all.push(Arg::Constant(constant as usize));
            continue;
        }
        let kind = match ty {
            TypePattern::Text => Kind::Text,
            ty => Kind::of_type(ty)?,
        };
        all.push(Arg::Given(kind));
        given.push((*arg, kind));
    }
    Some(FunctionCall {
        site: Site::Kernel {
            op,
            args: all,
            gives: result,
        },
        given,
        gives: result,
    })
}

/// The maximum work of a run of unknown length: about a millisecond, at up to a few nanoseconds per unit. No signal
/// or other thread is served meanwhile, and Python switches threads every five milliseconds. A framed run polls after
/// 4,096 rounds.
const MAX_WORK: u64 = 1 << 20;
/// The maximum fuel, however short the rounds are.
const MAX_UNITS: u64 = 1 << 16;
/// The work of an instruction that calls a function.
const CALL_WORK: u64 = 64;

/// Returns the maximum fuel from the first range on. This many rounds of the longest loop stay within `MAX_WORK`.
/// Loops over input arrays are bounded by reading the inputs, which takes longer.
pub(super) fn max_units(code: &Code, plan: &Plan) -> Option<u64> {
    let mut all = code.instructions.iter();
    if !all.any(|one| matches!(one, Instruction::LoopRange { .. })) {
        return None;
    }
    let work = |at: usize| match code.instructions.get(at) {
        Some(
            Instruction::Call { op, .. }
            | Instruction::JumpUnless { op, .. }
            | Instruction::RequireThat { op, .. },
        ) if inline(*op).is_none() => CALL_WORK,
        _ => 1,
    };
    let rounds = plan.jumps.iter().filter(|(from, to)| to <= from);
    let longest = rounds
        .map(|(from, to)| (*to..=*from).map(work).sum::<u64>())
        .max();
    Some((MAX_WORK / longest.unwrap_or(1).max(1)).min(MAX_UNITS))
}

/// Returns the row layout of loops over input arrays, by the instructions of these loops.
pub(super) fn rows(code: &Code, shape: &Shape) -> BTreeMap<usize, Rows> {
    let mut found = BTreeMap::new();
    for (start, instruction) in code.instructions.iter().enumerate() {
        let Instruction::LoopStart { slot, over } = *instruction else {
            continue;
        };
        let Some(shape) = array(code, shape, over) else {
            continue;
        };
        let mut rows = Rows {
            fields: Vec::new(),
            width: shape.width,
        };
        for (place, (form, at)) in (0..).zip(&shape.fields) {
            rows.fields.push((place, Kind::of_form(*form), *at));
        }
        let mut members = vec![start];
        // Up to the next loop in the same slot.
        for (at, instruction) in code.instructions.iter().enumerate().skip(start + 1) {
            match *instruction {
                Instruction::LoopStart { slot: other, .. } | Instruction::LoopRange { slot: other, .. }
                    if other == slot =>
                {
                    break;
                }
                Instruction::LoopAdvance { slot: other, .. } | Instruction::LoopField { slot: other, .. }
                    if other == slot =>
                {
                    members.push(at);
                }
                _ => {}
            }
        }
        found.extend(members.into_iter().map(|at| (at, rows.clone())));
    }
    found
}

/// Returns the input array that an operand always is.
fn array<'a>(code: &Code, shape: &'a Shape, operand: Operand) -> Option<&'a RowShape> {
    let place = register_place(operand.as_register()?);
    let Given::Rows(rows) = shape.inputs.get(place)? else {
        return None;
    };
    let mut all = code.instructions.iter();
    let is_kept = !all.any(|one| accesses(code, one).writes.contains(&place));
    is_kept.then_some(rows)
}
