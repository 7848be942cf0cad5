//! What instructions point to that has more parts than an instruction should have: handlers, requests, calls.

use std::sync::Arc;

use vesper_ir::node::ExpressionIndex;
use vesper_ir::{Effect, EffectClass, EnumType, Type};

use crate::bytecode::{Operand, Register};

/// What takes the failures of the instructions from `start` to `end`, which is not in it.
#[derive(Debug)]
pub struct Guard {
    pub start: usize,
    pub end: usize,
    pub handlers: Vec<Entry>,
}

/// Where a handler begins, and which failures it takes.
#[derive(Debug)]
pub struct Entry {
    pub codes: Vec<Arc<str>>,
    pub at: usize,
    /// Where the failure is held while the handler is at work.
    pub slot: u32,
}

impl Guard {
    /// The handler that takes this code: one that names it, then, for a status, the one of its hundred, then the one
    /// of all statuses, then the one of any code.
    pub fn handler(&self, code: &str) -> Option<&Entry> {
        let named = |name: &str| {
            let mut handlers = self.handlers.iter();
            handlers.find(|handler| handler.codes.iter().any(|own| &**own == name))
        };
        let of_status = || {
            let hundred = match status(code)? {
                b'4' => named("http_4xx"),
                b'5' => named("http_5xx"),
                _ => None,
            };
            hundred.or_else(|| named("http_error"))
        };
        named(code).or_else(of_status).or_else(|| named("any"))
    }
}

/// The first digit of the status, if a code is `http_` and three digits.
fn status(code: &str) -> Option<u8> {
    let digits = code.strip_prefix("http_")?.as_bytes();
    let is_status = digits.len() == 3 && digits.iter().all(u8::is_ascii_digit);
    is_status.then(|| digits.first().copied()).flatten()
}

/// Where a statement stands: its name, and the rounds of the loops around it.
#[derive(Debug)]
pub struct Position {
    pub name: Arc<str>,
    pub rounds: Vec<Register>,
}

#[derive(Debug)]
pub struct RequestSite {
    pub position: Position,
    pub effect: Effect,
    pub class: EffectClass,
    pub fixed: Vec<(Arc<str>, Arc<str>)>,
    pub key: Option<Operand>,
    pub arguments: Vec<(Arc<str>, Type, Operand)>,
    pub out: Register,
    /// The expression of the result, and its type.
    pub result: ExpressionIndex,
    pub ty: Type,
}

#[derive(Debug)]
pub struct CallSite {
    pub position: Position,
    /// The place of the called node in `calls`.
    pub callee: usize,
    /// One for each input of the called node; nothing where the call leaves it out.
    pub inputs: Vec<Option<Operand>>,
    pub out: Register,
    pub result: ExpressionIndex,
}

/// How a failure of the body error_conversion a declared error.
#[derive(Debug)]
pub struct ErrorConversion {
    /// The instructions of the body: from the first to the one after the last.
    pub start: usize,
    pub end: usize,
    /// The type of `error_code`: its members are the codes that become errors.
    pub codes: Arc<EnumType>,
    /// The place of `message` among the fields, if there is one that is a string. All others are optional.
    pub message: Option<usize>,
    /// Where to go on.
    pub to: usize,
}
