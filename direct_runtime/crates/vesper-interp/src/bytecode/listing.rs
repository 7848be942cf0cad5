//! Listings: bytecode as text for people.
//!
//! Each line has the index of an instruction, its operation, and after a semicolon the expression of the IR or the
//! clause it implements. `r3` is a register; inputs come first. Constants are printed inline.

use std::fmt::Write as _;

use vesper_ir::json::quote;
use vesper_ir::node::ExpressionIndex;
use vesper_ir::{Node, Op, Value};

use crate::bytecode::sites::{Position, Strands};
use crate::bytecode::{Code, Instruction, LoopSlot, Operand, OperandList, Register};

/// Returns the listing of one form of a node; `form` is its name.
pub(crate) fn listing(node: &Node, form: &str, code: &Code) -> String {
    let mut text = String::new();
    let count = code.instructions.len();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "{}, {form} form: {count} instructions, {} registers, {} loops at a time",
        node.node_id, code.registers, code.loops
    );
    for (place, input) in node.inputs.iter().enumerate() {
        let _ = writeln!(text, "  r{place} is the input {}", input.name);
    }
    if node.uses_now {
        let _ = writeln!(text, "  r{} is now", node.inputs.len());
    }
    if let Some(path) = &code.path {
        let _ = writeln!(text, "  r{} has the path, in {} words", path.first.0, path.words);
    }
    let _ = writeln!(text);
    for (place, instruction) in code.instructions.iter().enumerate() {
        let (what, remark) = line(code, *instruction);
        let line = if remark.is_empty() {
            format!("{place:>5}  {what}")
        } else {
            format!("{place:>5}  {what:<58} ; {remark}")
        };
        let _ = writeln!(text, "{line}");
    }
    let outputs = node.outputs.iter().zip(&code.returns);
    let outputs: Vec<String> = outputs
        .map(|(output, from)| format!("{} = {}", output.name, operand(code, *from)))
        .collect();
    let _ = writeln!(text, "{count:>5}  return {}", outputs.join(", "));
    if !code.errors.is_empty() {
        let errors = node.errors.iter().zip(&code.errors);
        let errors: Vec<String> = errors
            .map(|(error, from)| format!("{} = r{}", error.name, from.0))
            .collect();
        let _ = writeln!(text, "       or the error {}", errors.join(", "));
    }
    for guard in &code.guards {
        for handler in &guard.handlers {
            let codes: Vec<&str> = handler.codes.iter().map(|code| &**code).collect();
            let _ = writeln!(
                text,
                "       failures of {} to {}: {} go to {}",
                guard.start,
                guard.end.saturating_sub(1),
                codes.join(", "),
                handler.at
            );
        }
    }
    if let Some(error_conversion) = &code.error_conversion {
        let _ = writeln!(
            text,
            "       failures of {} to {} that are declared go to {}",
            error_conversion.start,
            error_conversion.end.saturating_sub(1),
            error_conversion.to
        );
    }
    text
}

/// Returns the text of an instruction and its origin.
#[expect(
    clippy::too_many_lines,
    reason = "one arm an instruction, as where they are executed"
)]
fn line(code: &Code, instruction: Instruction) -> (String, String) {
    let show = |from: Operand| operand(code, from);
    let alone = |what: String| (what, String::new());
    match instruction {
        Instruction::Call {
            op,
            out,
            args,
            expression,
        } => {
            let arity = op.signature().params.len();
            let args: Vec<String> = args.iter().take(arity).map(|each| show(*each)).collect();
            (
                format!("{} = {}({})", reg(out), op.name(), args.join(", ")),
                of(expression),
            )
        }
        Instruction::Move { out, from } => alone(format!("{} = {}", reg(out), show(from))),
        Instruction::Jump { to } => alone(format!("go to {to}")),
        Instruction::JumpIfTrue { condition, to } => alone(format!("if {} go to {to}", show(condition))),
        Instruction::JumpIfFalse { condition, to } => alone(format!("if not {} go to {to}", show(condition))),
        Instruction::JumpUnless {
            op,
            first,
            second,
            to,
        } => alone(format!(
            "if not {} go to {to}",
            comparison_text(code, op, first, second)
        )),
        Instruction::JumpUnlessNull { value, to } => {
            alone(format!("if {} is not null go to {to}", show(value)))
        }
        Instruction::Switch { on, table } => {
            let found = code.switches.get(table as usize);
            alone(found.map_or_else(String::new, |table| {
                let targets: Vec<String> = (table.least..)
                    .zip(&table.targets)
                    .map(|(value, to)| format!("{value} {to}"))
                    .collect();
                let (on, targets) = (show(on), targets.join(", "));
                format!("by {on} go to [{targets}], or to {}", table.otherwise)
            }))
        }
        Instruction::Select {
            out,
            condition,
            then,
            otherwise,
        } => alone(format!(
            "{} = {} if {}, else {}",
            reg(out),
            show(then),
            show(condition),
            show(otherwise)
        )),
        Instruction::SelectThat {
            op,
            out,
            first,
            second,
            then,
            otherwise,
        } => alone(format!(
            "{} = {} if {}, else {}",
            reg(out),
            show(then),
            comparison_text(code, op, first, second),
            show(otherwise)
        )),
        Instruction::Array { out, items } => alone(format!("{} = array of {}", reg(out), list(code, items))),
        Instruction::Record { out, fields } => {
            alone(format!("{} = record of {}", reg(out), list(code, fields)))
        }
        Instruction::Field { out, of, place } => {
            alone(format!("{} = field {place} of {}", reg(out), show(of)))
        }
        Instruction::LoopStart { slot, over } => alone(format!("{}: over {}", looping(slot), show(over))),
        Instruction::LoopRange {
            slot,
            start,
            end,
            step,
            expression,
        } => {
            let bounds = [start, end, step].map(show).join(", ");
            (format!("{}: over range({bounds})", looping(slot)), of(expression))
        }
        Instruction::LoopNext { slot, item, done } => alone(format!(
            "{}: {} = next item, or go to {done}",
            looping(slot),
            reg(item)
        )),
        Instruction::LoopNextEntry {
            slot,
            key,
            value,
            done,
        } => alone(format!(
            "{}: {}, {} = next entry, or go to {done}",
            looping(slot),
            reg(key),
            reg(value)
        )),
        Instruction::LoopAdvance { slot, done } => {
            alone(format!("{}: next item, or go to {done}", looping(slot)))
        }
        Instruction::LoopField { slot, out, place } => alone(format!(
            "{} = field {place} of the item of {}",
            reg(out),
            looping(slot)
        )),
        Instruction::LoopPush {
            slot,
            value,
            expression,
            ..
        } => (format!("{}: add {}", looping(slot), show(value)), of(expression)),
        Instruction::LoopMemory { slot } => alone(format!("{}: begin to count memory", looping(slot))),
        Instruction::LoopRestore { slot } => alone(format!(
            "{}: give back the memory of the last round",
            looping(slot)
        )),
        Instruction::LoopCharge { slot, value, .. } => {
            alone(format!("{}: take memory for {}", looping(slot), show(value)))
        }
        Instruction::LoopRecount { slot, .. } => alone(format!("{}: count its state", looping(slot))),
        Instruction::LoopPushMember { slot, value } => {
            alone(format!("{}: add the member {}", looping(slot), show(value)))
        }
        Instruction::LoopPushKeyed {
            slot,
            key,
            item,
            expression,
        } => (
            format!("{}: add {} by {}", looping(slot), show(item), show(key)),
            of(expression),
        ),
        Instruction::LoopPut {
            slot,
            key,
            value,
            expression,
        } => (
            format!("{}: put {} at {}", looping(slot), show(value), show(key)),
            of(expression),
        ),
        Instruction::LoopCount {
            slot,
            key,
            expression,
        } => (format!("{}: count {}", looping(slot), show(key)), of(expression)),
        Instruction::LoopGroup {
            slot,
            key,
            item,
            expression,
        } => (
            format!("{}: add {} to the group {}", looping(slot), show(item), show(key)),
            of(expression),
        ),
        Instruction::LoopArray { slot, out } => {
            alone(format!("{} = the array of {}", reg(out), looping(slot)))
        }
        Instruction::LoopSorted { slot, out, order } => alone(format!(
            "{} = the array of {}, sorted by {}",
            reg(out),
            looping(slot),
            show(order)
        )),
        Instruction::LoopDistinct { slot, out } => alone(format!(
            "{} = the array of {}, each once",
            reg(out),
            looping(slot)
        )),
        Instruction::LoopSet {
            slot,
            out,
            expression,
            ..
        } => (
            format!("{} = the set of {}", reg(out), looping(slot)),
            of(expression),
        ),
        Instruction::LoopMap { slot, out, .. } => {
            alone(format!("{} = the map of {}", reg(out), looping(slot)))
        }
        Instruction::LoopGroups { slot, out, .. } => {
            alone(format!("{} = the groups of {}", reg(out), looping(slot)))
        }
        Instruction::JumpUnlessBetter {
            best,
            value,
            side,
            to,
        } => alone(format!(
            "if {} is not {} than {} go to {to}",
            show(value),
            format!("{side:?}").to_lowercase(),
            reg(best)
        )),
        Instruction::Fail {
            code: failure,
            expression,
        } => (format!("fail {}", failure.name()), of(expression)),
        Instruction::Require { condition, clause } => {
            (format!("require {}", show(condition)), clause_of(code, clause))
        }
        Instruction::RequireThat {
            op,
            first,
            second,
            clause,
        } => (
            format!("require {}", comparison_text(code, op, first, second)),
            clause_of(code, clause),
        ),
        Instruction::LoopLimit {
            count,
            max,
            expression,
        } => (
            format!("fail loop_limit if {} is {max}", reg(count)),
            of(expression),
        ),
        Instruction::Spend => alone("spend one unit of fuel".to_owned()),
        Instruction::LoopRound { count } => alone(format!("{0} = {0} + 1", reg(count))),
        Instruction::Request { site } => {
            let made = code.requests.get(site as usize);
            let made = made.map(|site| {
                format!(
                    "{} = ask for {} ({})",
                    reg(site.out),
                    position(&site.position),
                    site.effect.name()
                )
            });
            let result = code.requests.get(site as usize).map(|site| of(site.result));
            (made.unwrap_or_default(), result.unwrap_or_default())
        }
        Instruction::Apply {
            function,
            out,
            args,
            expression,
        } => {
            let start = args.start as usize;
            let args = code.operands.get(start..start + args.length as usize);
            let args: Vec<String> = args.unwrap_or_default().iter().map(|arg| show(*arg)).collect();
            (
                format!("{} = function {function} ({})", reg(out), args.join(", ")),
                of(expression),
            )
        }
        Instruction::Leave { value } => alone(format!("leave with {}", show(value))),
        Instruction::Fork { site } => {
            let fork = code.forks.get(site as usize);
            let text = fork.map_or_else(String::new, |fork| match &fork.strands {
                Strands::Members(members) => {
                    let at: Vec<String> = members.iter().map(|each| each.start.to_string()).collect();
                    format!("begin strands at {}, join at {}", at.join(", "), fork.join)
                }
                Strands::Rounds { body, in_flight, .. } => format!(
                    "begin a strand at {}, {in_flight} at a time, join at {}",
                    body.start, fork.join
                ),
            });
            alone(text)
        }
        Instruction::Join => alone("join the strands".to_owned()),
        Instruction::EndMember => alone("end the strand".to_owned()),
        Instruction::EndRound { value, .. } => alone(format!("end the strand with {}", show(value))),
        Instruction::CallNode { site } => {
            let made = code.calls.get(site as usize);
            let made = made.map(|site| {
                let inputs: Vec<String> = site
                    .inputs
                    .iter()
                    .map(|given| given.map_or_else(|| "its default".to_owned(), show))
                    .collect();
                format!(
                    "{} = call {} of node {} with {}",
                    reg(site.out),
                    position(&site.position),
                    site.callee,
                    inputs.join(", ")
                )
            });
            let result = code.calls.get(site as usize).map(|site| of(site.result));
            (made.unwrap_or_default(), result.unwrap_or_default())
        }
        Instruction::FailAgain { slot } => alone(format!("fail again with failure {slot}")),
        Instruction::EndWithError => alone("what there is at the end is the error".to_owned()),
        Instruction::Mark { expression, value } => (format!("mark {}", show(value)), of(expression)),
        Instruction::Note { word, bit } => alone(format!("pass bit {bit} of {}", reg(word))),
        Instruction::LoopBegan { slot, out } => {
            alone(format!("{} = items before {}", reg(out), looping(slot)))
        }
        Instruction::NoteItems { slot, began, point } => alone(format!(
            "pass point {point}, {} or {} by items of {} since {}",
            point + 1,
            point + 2,
            looping(slot),
            reg(began)
        )),
        Instruction::NoteRounds { count, point } => alone(format!(
            "pass point {point}, {} or {} by rounds in {}",
            point + 1,
            point + 2,
            reg(count)
        )),
    }
}

fn reg(register: Register) -> String {
    format!("r{}", register.0)
}

fn looping(slot: LoopSlot) -> String {
    format!("loop {}", slot.0)
}

fn of(expression: ExpressionIndex) -> String {
    format!("expression {expression}")
}

fn position(position: &Position) -> String {
    let mut text = format!("`{}`", position.name);
    for rounds in &position.rounds {
        let _ = write!(text, "[{}]", reg(*rounds));
    }
    text
}

fn comparison_text(code: &Code, op: Op, first: Operand, second: Operand) -> String {
    format!(
        "{}({}, {})",
        op.name(),
        operand(code, first),
        operand(code, second)
    )
}

fn clause_of(code: &Code, clause: u32) -> String {
    let found = code.clauses.get(clause as usize);
    found.map_or_else(String::new, |clause| {
        format!("{} {}", clause.phase.name(), clause.number)
    })
}

fn list(code: &Code, list: OperandList) -> String {
    let start = list.start as usize;
    let found = code.operands.get(start..start + list.length as usize);
    let shown: Vec<String> = found
        .unwrap_or_default()
        .iter()
        .map(|each| operand(code, *each))
        .collect();
    format!("[{}]", shown.join(", "))
}

fn operand(code: &Code, operand: Operand) -> String {
    match operand.as_register() {
        Some(register) => reg(register),
        None => operand
            .read(&code.constants, &[])
            .map_or_else(|| "nothing".to_owned(), constant),
    }
}

/// The maximum characters printed of a constant.
const MAX_CONSTANT_CHARACTERS: usize = 60;

fn constant(value: &Value) -> String {
    let text = match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Decimal(value) => format!("{value}d"),
        Value::Float(value) => format!("{value:?}f"),
        Value::Text(text) => {
            let mut quoted = String::new();
            quote(text, &mut quoted);
            quoted
        }
        Value::Member(member) => format!("member {}", member.0),
        Value::Type(_) => "a type".to_owned(),
        Value::Pattern(_) => "a pattern".to_owned(),
        Value::Table(_) => "a table".to_owned(),
        Value::Array(items) | Value::Record(items) => {
            let items: Vec<String> = items.iter().map(constant).collect();
            format!("[{}]", items.join(", "))
        }
        other => format!("{other:?}"),
    };
    if text.chars().count() <= MAX_CONSTANT_CHARACTERS {
        return text;
    }
    let mut short: String = text.chars().take(MAX_CONSTANT_CHARACTERS).collect();
    short.push('…');
    short
}
