//! Decoder of the statements of a body. Excess depth and number are rejected before they cost stack or memory.

use std::sync::Arc;

use crate::Rejected;
use crate::canonical::Reader;
use crate::effect::EffectClass;
use crate::flow::{Arm, Block, Branch, Call, Handler, Loop, LoopVariable, Parallel, Request, Statement};
use crate::generated::effects::Effect;
use crate::limits::{BLOCK_DEPTH, ITERATIONS, LISTED, LITERAL_BYTES, NAME_BYTES, STATEMENTS, STRANDS};

use super::expression::local;
use super::header::step_policy;
use super::taint;
use super::{index, is_name, name, named_value};

/// Remaining limits: nesting depth of blocks and number of statements.
struct Budget {
    depth: u8,
    statements: usize,
}

pub(super) fn body(reader: &mut Reader<'_>) -> Result<Block, Rejected> {
    let mut budget = Budget {
        depth: BLOCK_DEPTH,
        statements: STATEMENTS,
    };
    block(reader, &mut budget)
}

fn block(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Block, Rejected> {
    let outer = budget.depth;
    let Some(inner) = outer.checked_sub(1) else {
        return Err(reader.refuse(format_args!("blocks nest more than {BLOCK_DEPTH} deep")));
    };
    budget.depth = inner;
    let found = reader.list(STATEMENTS, |reader| {
        let Some(left) = budget.statements.checked_sub(1) else {
            return Err(reader.refuse(format_args!("more than {STATEMENTS} statements")));
        };
        budget.statements = left;
        statement(reader, budget)
    })?;
    budget.depth = outer;
    Ok(found)
}

type ReadFields = fn(&mut Reader<'_>, &mut Budget) -> Result<Statement, Rejected>;

fn statement(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Statement, Rejected> {
    reader.open_object()?;
    let key = reader.key()?;
    let read: ReadFields = match key.as_ref() {
        "step" => step,
        "return" => |reader, _| {
            let success = reader.field("success", |reader| reader.list(LISTED, named_value))?;
            Ok(Statement::Return { success })
        },
        "raise" => |reader, _| {
            let error = reader.field("error", |reader| reader.list(LISTED, named_value))?;
            Ok(Statement::Raise { error })
        },
        "require" => |reader, _| {
            let holds = reader.field("holds", index)?;
            Ok(Statement::Require { holds })
        },
        "branch" => branch,
        "loop" => loop_statement,
        "parallel" => parallel,
        "request" => request,
        "call" => call,
        _ => {
            return Err(reader.refuse(format_args!(
                "`{}` is not a kind of statement",
                key.escape_debug()
            )));
        }
    };
    reader.open_object()?;
    let found = read(reader, budget)?;
    reader.close_object()?;
    reader.close_object()?;
    Ok(found)
}

fn step(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Statement, Rejected> {
    let handlers = handlers(reader, budget)?;
    let name = reader.field("name", name)?;
    let value = reader.field("value", index)?;
    Ok(Statement::Step {
        name,
        value,
        handlers,
    })
}

fn branch(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Statement, Rejected> {
    let arms = reader.field("arms", |reader| {
        reader.list(LISTED, |reader| {
            reader.open_object()?;
            let body = reader.field("body", |reader| block(reader, budget))?;
            let value = reader.optional_field("value", index)?;
            let when = reader.field("when", index)?;
            reader.close_object()?;
            Ok(Arm { when, body, value })
        })
    })?;
    let otherwise = reader.field("else", |reader| block(reader, budget))?;
    let handlers = handlers(reader, budget)?;
    let name = reader.field("name", name)?;
    let otherwise_value = reader.optional_field("otherwise", index)?;
    Ok(Statement::Branch(Branch {
        name,
        arms,
        otherwise,
        otherwise_value,
        handlers,
    }))
}

fn loop_statement(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Statement, Rejected> {
    let body = reader.field("body", |reader| block(reader, budget))?;
    let collect = reader.optional_field("collect", index)?;
    let handlers = handlers(reader, budget)?;
    let in_flight = reader.optional_field("in_flight", |reader| match reader.integer()? {
        count @ 2..=STRANDS => Ok(usize::try_from(count).unwrap_or_default()),
        count => Err(reader.refuse(format_args!(
            "the `in_flight` of a loop is 2 to {STRANDS}, not {count}"
        ))),
    })?;
    let locals = reader.field("locals", |reader| reader.list(LISTED, local))?;
    let max = reader.field("max", |reader| match reader.integer()? {
        max @ 1..=ITERATIONS => Ok(max),
        max => Err(reader.refuse(format_args!(
            "the `max` of a loop is 1 to {ITERATIONS}, not {max}"
        ))),
    })?;
    let loop_name = reader.field("name", name)?;
    let next = reader.field("next", |reader| {
        reader.list(LISTED, |reader| {
            reader.open_object()?;
            let local = reader.field("local", local)?;
            let value = reader.field("value", index)?;
            reader.close_object()?;
            Ok((local, value))
        })
    })?;
    let over = reader.optional_field("over", index)?;
    let state = reader.field("state", |reader| {
        reader.list(LISTED, |reader| {
            reader.open_object()?;
            let local = reader.field("local", local)?;
            let name = reader.field("name", name)?;
            let value = reader.field("value", index)?;
            reader.close_object()?;
            Ok(LoopVariable { local, name, value })
        })
    })?;
    let stop_when = reader.optional_field("stop_when", index)?;
    let filter = reader.optional_field("where", index)?;
    let condition = reader.optional_field("while", index)?;
    Ok(Statement::Loop(Box::new(Loop {
        name: loop_name,
        locals,
        max,
        over,
        filter,
        condition,
        state,
        body,
        collect,
        next,
        stop_when,
        in_flight,
        handlers,
    })))
}

fn parallel(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Statement, Rejected> {
    let handlers = handlers(reader, budget)?;
    let members = reader.field("members", |reader| {
        reader.list(LISTED, |reader| block(reader, budget))
    })?;
    let name = reader.field("name", name)?;
    Ok(Statement::Parallel(Parallel {
        name,
        members,
        handlers,
    }))
}

fn request(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Statement, Rejected> {
    let arguments = reader.field("arguments", |reader| reader.list(LISTED, named_value))?;
    let class = reader.field("class", |reader| {
        let class = reader.string(NAME_BYTES)?;
        EffectClass::from_name(&class).ok_or_else(|| {
            reader.refuse(format_args!(
                "`{}` is not a class of effect",
                class.escape_debug()
            ))
        })
    })?;
    let effect = reader.field("effect", |reader| {
        let effect = reader.string(NAME_BYTES)?;
        Effect::from_name(&effect)
            .ok_or_else(|| reader.refuse(format_args!("no effect is named `{}`", effect.escape_debug())))
    })?;
    let fixed = reader.field("fixed", |reader| {
        reader.map(LISTED, |reader, key| {
            if is_name(key) {
                return Ok(Arc::<str>::from(reader.string(LITERAL_BYTES)?));
            }
            Err(reader.refuse(format_args!("`{}` is not a name", key.escape_debug())))
        })
    })?;
    let handlers = handlers(reader, budget)?;
    let key = reader.optional_field("key", index)?;
    let name = reader.field("name", name)?;
    reader.field("policy", step_policy)?;
    let result = reader.field("result", index)?;
    let sensitive = reader
        .optional_field("sensitive", taint::sensitive)?
        .unwrap_or_default();
    Ok(Statement::Request(Box::new(Request {
        name,
        effect,
        class,
        fixed: fixed
            .into_iter()
            .map(|(name, text)| (Arc::from(name), text))
            .collect(),
        key,
        arguments,
        result,
        sensitive,
        handlers,
    })))
}

fn call(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Statement, Rejected> {
    reader.optional_field("budgets", super::budget::budgets)?;
    let handlers = handlers(reader, budget)?;
    let inputs = reader.field("inputs", |reader| reader.list(LISTED, named_value))?;
    let step = reader.field("name", name)?;
    let node = reader.field("node", name)?;
    let result = reader.field("result", index)?;
    Ok(Statement::Call(Call {
        name: step,
        node,
        inputs,
        result,
        handlers,
    }))
}

fn handlers(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Vec<Handler>, Rejected> {
    reader.field("handlers", |reader| {
        reader.list(LISTED, |reader| {
            reader.open_object()?;
            let body = reader.field("body", |reader| block(reader, budget))?;
            let codes = reader.field("codes", |reader| reader.list(LISTED, code))?;
            let value = reader.optional_field("value", index)?;
            reader.close_object()?;
            Ok(Handler { codes, body, value })
        })
    })
}

/// Reads a failure code of any origin. Codes of called nodes are members of enums, which may be any text.
pub(super) fn code(reader: &mut Reader<'_>) -> Result<Arc<str>, Rejected> {
    match reader.string(NAME_BYTES)? {
        code if code.is_empty() => Err(reader.refuse("a code is empty")),
        code => Ok(Arc::from(code)),
    }
}
