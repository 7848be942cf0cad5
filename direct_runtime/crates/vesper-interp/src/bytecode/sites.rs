//! Sites: the data of handlers, requests and calls that does not fit an instruction.

use std::sync::Arc;

use vesper_ir::node::ExpressionIndex;
use vesper_ir::{Effect, EffectClass, EnumType, Type};

use crate::bytecode::{LoopSlot, Operand, Register};

/// The handlers of the instructions in `start..end`.
#[derive(Debug)]
pub struct Guard {
    pub start: usize,
    pub end: usize,
    pub handlers: Vec<Entry>,
}

/// The entry of a handler and the failure codes it catches.
#[derive(Debug)]
pub struct Entry {
    pub codes: Vec<Arc<str>>,
    pub at: usize,
    /// The slot that holds the failure while the handler is active.
    pub slot: u32,
}

impl Guard {
    /// Returns the handler for a code: by exact name, by status class, `http_error` for any status, then `any`.
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

/// Returns the first digit of the status if the code is `http_` and three digits.
fn status(code: &str) -> Option<u8> {
    let digits = code.strip_prefix("http_")?.as_bytes();
    let is_status = digits.len() == 3 && digits.iter().all(u8::is_ascii_digit);
    is_status.then(|| digits.first().copied()).flatten()
}

/// The position of a statement: its name and the rounds of the enclosing loops.
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
    /// The expression and type of the result.
    pub result: ExpressionIndex,
    pub ty: Type,
}

#[derive(Debug)]
pub struct CallSite {
    pub position: Position,
    /// The index of the called node in `calls`.
    pub callee: usize,
    /// One per input of the called node; `None` if the call omits it.
    pub inputs: Vec<Option<Operand>>,
    pub out: Register,
    pub result: ExpressionIndex,
}

/// A statement whose members or rounds are strands.
#[derive(Debug)]
pub struct ForkSite {
    /// The first instruction of the part that begins strands. With `join` it encloses their code.
    pub start: usize,
    pub strands: Strands,
    /// The instruction at which the strands are joined.
    pub join: usize,
}

#[derive(Debug)]
pub enum Strands {
    Members(Vec<Region>),
    Rounds {
        body: Region,
        /// How many are open at one time.
        in_flight: usize,
        /// The loop that keeps the collected values.
        slot: LoopSlot,
        collect: ExpressionIndex,
    },
}

/// The instructions of a strand.
#[derive(Debug)]
pub struct Region {
    pub start: usize,
    pub end: usize,
    /// The registers of a member's steps.
    pub results: std::ops::Range<usize>,
}

/// The conversion of failures of the body to declared errors.
#[derive(Debug)]
pub struct ErrorConversion {
    /// The range of instructions of the body.
    pub start: usize,
    pub end: usize,
    /// The type of `error_code`, whose members are the converted failure codes.
    pub codes: Arc<EnumType>,
    /// The index of a string field `message`, if there is one. All other fields are optional.
    pub message: Option<usize>,
    /// The instruction at which the run continues.
    pub to: usize,
}
