//! An execution: it is advanced, asks for something, waits, and is advanced with what came of it.
//!
//! It owns all that it needs, so it may wait as long as it likes, wherever it likes.

use std::fmt::Write as _;
use std::sync::Arc;

use vesper_ir::{Effect, EffectClass, FailureCode, Type, Value};

use crate::bytecode::Code;
use crate::bytecode::sites::{CallSite, Position, RequestSite};
use crate::compile::link::Unit;
use crate::observe::fingerprint::Fingerprint;
use crate::observe::marks::{Mark, Marks};
use crate::observe::path::Path;
use crate::program::PathedForm;
use crate::run::frame::{Failure, Frame};
use crate::run::meter::{Limits, Meter};
use crate::run::{Fault, Outcome, Stop, execute, write};

/// What an execution asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// 0, 1, 2, … in the order in which an execution asks.
    pub id: u64,
    /// The node whose statement it is: the one that was started, or one that it calls.
    pub node: Arc<str>,
    /// The name of the statement.
    pub step: Arc<str>,
    /// The name with the rounds of the loops around it, behind those of the calls that led to it: `pay/send[2][0]`.
    pub path: String,
    pub effect: Effect,
    pub class: EffectClass,
    pub key: Option<Arc<str>>,
    pub fixed: Vec<(Arc<str>, Arc<str>)>,
    pub arguments: Vec<Argument>,
    /// The type of what must come back.
    pub result: Type,
}

/// An argument of a request.
#[derive(Clone, Debug)]
pub struct Argument {
    pub name: Arc<str>,
    pub ty: Type,
    pub value: Value,
}

/// What came of a request.
#[derive(Clone, Debug)]
pub enum Completion {
    /// A value of the request's result type.
    Value(Value),
    Failed(FailureCode),
    /// The capability that was not granted.
    Denied(Arc<str>),
    /// The limit that was hit.
    LimitHit(Arc<str>),
}

/// Where an execution is after it was advanced.
#[derive(Debug)]
pub enum Advanced {
    Blocked(Request),
    Done(Outcome, Vec<Mark>),
}

/// An execution was not used as it must be; it is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse(pub String);

#[derive(Clone, Copy, Debug)]
enum State {
    New,
    /// For the completion of the request with this id, which this site made.
    Waiting(u64, u32),
    Ended,
}

/// A node that waits for one that it has called.
#[derive(Debug)]
struct Caller {
    unit: Arc<Unit>,
    frame: Frame,
    site: u32,
}

/// The form of the node that was started.
#[derive(Debug)]
pub(crate) enum OwnForm {
    Plain,
    Traced(Arc<Code>),
    /// With what has come back so far.
    Pathed(Arc<PathedForm>, Box<Fingerprint>),
}

#[derive(Debug)]
pub struct Execution {
    unit: Arc<Unit>,
    frame: Frame,
    /// The form of the node that was started. Called nodes are always in the plain one.
    form: OwnForm,
    /// The outermost first.
    callers: Vec<Caller>,
    marks: Marks,
    /// One for all nodes of the execution, over its whole life.
    meter: Meter,
    now: Option<Value>,
    next_id: u64,
    state: State,
}

const NO_SITE: Fault = "an instruction names a request or a call that does not exist";
const NO_CALLEE: Fault = "a call names a node that was not linked";
const NO_ERROR_CODE: Fault = "a declared error has no code";
const NO_KEY: Fault = "the key of a request is no string";

/// The code that is at work: `form` is that of the outermost node.
fn code<'a>(unit: &'a Unit, form: &'a OwnForm, callers: &[Caller]) -> &'a Code {
    match form {
        OwnForm::Traced(traced) if callers.is_empty() => traced,
        OwnForm::Pathed(pathed, _) if callers.is_empty() => &pathed.code,
        _ => &unit.plain,
    }
}

fn frame(unit: &Unit, code: &Code, mut inputs: Vec<Value>, now: Option<&Value>) -> Frame {
    if unit.node.uses_now {
        // Who starts an execution that needs the time is made to give it.
        inputs.push(now.cloned().unwrap_or(Value::Null));
    }
    Frame::pathed(code, inputs)
}

impl Execution {
    /// INVARIANT: as many inputs as the node declares, and a time where it is used.
    pub(crate) fn new(
        unit: Arc<Unit>,
        form: OwnForm,
        inputs: Vec<Value>,
        now: Option<Value>,
        limits: Limits,
    ) -> Self {
        let frame = frame(&unit, code(&unit, &form, &[]), inputs, now.as_ref());
        Self {
            unit,
            frame,
            form,
            callers: Vec::new(),
            marks: Marks::default(),
            meter: Meter::new(limits),
            now,
            next_id: 0,
            state: State::New,
        }
    }

    /// The type of what the request that is waited for gives, and the id of that request.
    pub fn awaited(&self) -> Option<(u64, &Type)> {
        match self.state {
            State::Waiting(id, site) => {
                let code = code(&self.unit, &self.form, &self.callers);
                Some((id, &code.requests.get(site as usize)?.ty))
            }
            State::New | State::Ended => None,
        }
    }

    /// What was observed so far. At the end the marks are given away, and there are none here.
    pub fn marks(&self) -> &[Mark] {
        self.marks.all()
    }

    /// The points that it has passed so far; of one that was not started with a path, none.
    pub fn path(&self) -> Path {
        match &self.form {
            OwnForm::Pathed(pathed, _) => pathed.path(self.own_frame()),
            OwnForm::Plain | OwnForm::Traced(_) => Path::default(),
        }
    }

    /// The fingerprint of what it has read so far; of one that was not started with a path, nothing.
    pub fn fingerprint(&self) -> u64 {
        match &self.form {
            OwnForm::Pathed(pathed, came_back) => {
                let frame = self.own_frame();
                pathed.fingerprint(frame, &pathed.path(frame), self.now.as_ref(), *came_back.clone())
            }
            OwnForm::Plain | OwnForm::Traced(_) => 0,
        }
    }

    /// The frame of the node that was started.
    fn own_frame(&self) -> &Frame {
        self.callers.first().map_or(&self.frame, |caller| &caller.frame)
    }

    /// Goes on until the next request or the end: first with nothing, then each time with the id of the last request
    /// and what came of it.
    pub fn advance(&mut self, completion: Option<(u64, Completion)>) -> Result<Advanced, Misuse> {
        let ended = match (self.state, completion) {
            (State::New, None) => Ok(None),
            (State::New, Some(_)) => return Err(Misuse("nothing was asked for yet".to_owned())),
            (State::Waiting(id, _), None) => {
                return Err(Misuse(format!("request {id} waits to be completed")));
            }
            (State::Waiting(id, _), Some((other, _))) if id != other => {
                return Err(Misuse(format!(
                    "request {id} waits to be completed, not request {other}"
                )));
            }
            (State::Waiting(_, site), Some((_, completion))) => self.complete(site, completion),
            (State::Ended, _) => return Err(Misuse("this execution has ended".to_owned())),
        };
        // Whatever happens from here on, a panic included: it does not go on from a place between two instructions.
        self.state = State::Ended;
        self.meter.start_clock();
        let done = ended.and_then(|ended| self.run(ended));
        self.meter.stop_clock();
        Ok(match done {
            Ok(advanced) => advanced,
            Err(fault) => Advanced::Done(Outcome::Fault(fault), self.marks.take()),
        })
    }

    /// Puts what came of a request into the frame; the outcome, where it ends the node that asked.
    fn complete(&mut self, site: u32, completion: Completion) -> Result<Option<Outcome>, Fault> {
        if matches!(self.form, OwnForm::Pathed(..)) {
            let path = self.request_path(site)?;
            if let OwnForm::Pathed(_, came_back) = &mut self.form {
                came_back.add_completion(&path, &completion);
            }
        }
        let code = code(&self.unit, &self.form, &self.callers);
        let RequestSite { out, result, .. } = code.requests.get(site as usize).ok_or(NO_SITE)?;
        match completion {
            Completion::Value(value) => {
                write(&mut self.frame.registers, *out, value)?;
                Ok(None)
            }
            Completion::Failed(failure) => {
                let failure = Failure {
                    code: failure,
                    expression: *result,
                };
                Ok(self.frame.fail(code, failure)?.map(Outcome::from))
            }
            Completion::Denied(capability) => Ok(Some(Outcome::Denied(capability))),
            Completion::LimitHit(limit) => Ok(Some(Outcome::LimitHit(limit))),
        }
    }

    /// Runs to the next request or the end, through calls; `ended` is how the node at work has ended, if it has.
    fn run(&mut self, mut ended: Option<Outcome>) -> Result<Advanced, Fault> {
        loop {
            let outcome = if let Some(outcome) = ended.take() {
                outcome
            } else {
                match self.execute()? {
                    Stop::Ended(outcome) => outcome,
                    Stop::Request(site) => {
                        let request = self.request(site)?;
                        self.state = State::Waiting(request.id, site);
                        return Ok(Advanced::Blocked(request));
                    }
                    Stop::Call(site) => {
                        if let Err(limit) = self.meter.spend() {
                            limit.into()
                        } else {
                            self.enter(site)?;
                            continue;
                        }
                    }
                }
            };
            let Some(Caller { unit, frame, site }) = self.callers.pop() else {
                return Ok(Advanced::Done(outcome, self.marks.take()));
            };
            let callee = std::mem::replace(&mut self.unit, unit);
            self.frame = frame;
            ended = self.resume_caller(&callee, site, outcome)?;
        }
    }

    /// Runs the node at work until it stops.
    fn execute(&mut self) -> Result<Stop, Fault> {
        let (frame, marks, meter) = (&mut self.frame, &mut self.marks, &mut self.meter);
        match &self.form {
            // Marks are the interpreter's affair.
            OwnForm::Traced(traced) if self.callers.is_empty() => execute(traced, frame, marks, meter),
            OwnForm::Pathed(pathed, _) if self.callers.is_empty() => {
                pathed.tier.run(pathed, &pathed.code, frame, marks, meter)
            }
            _ => (self.unit.tier).run(&self.unit, &self.unit.plain, frame, marks, meter),
        }
    }

    /// Begins a called node.
    fn enter(&mut self, site: u32) -> Result<(), Fault> {
        let code = code(&self.unit, &self.form, &self.callers);
        let CallSite { callee, inputs, .. } = code.calls.get(site as usize).ok_or(NO_SITE)?;
        let callee = Arc::clone(self.unit.callees.get(*callee).ok_or(NO_CALLEE)?);
        let mut values = Vec::with_capacity(callee.plain.registers);
        for (input, given) in callee.node.inputs.iter().zip(inputs) {
            values.push(match given {
                Some(given) => self.frame.read(code, *given)?.clone(),
                // One that has no default is optional.
                None => input.default.clone().unwrap_or(Value::Null),
            });
        }
        let inner = frame(&callee, &callee.plain, values, self.now.as_ref());
        self.callers.push(Caller {
            unit: std::mem::replace(&mut self.unit, callee),
            frame: std::mem::replace(&mut self.frame, inner),
            site,
        });
        Ok(())
    }

    /// Goes on after a call, with how the called node ended; the outcome, where that ends the caller too.
    fn resume_caller(
        &mut self,
        callee: &Unit,
        site: u32,
        outcome: Outcome,
    ) -> Result<Option<Outcome>, Fault> {
        let code = code(&self.unit, &self.form, &self.callers);
        let CallSite { out, result, .. } = code.calls.get(site as usize).ok_or(NO_SITE)?;
        let failure = match outcome {
            Outcome::Returned(values) => {
                write(&mut self.frame.registers, *out, Value::Record(values.into()))?;
                return Ok(None);
            }
            Outcome::DeclaredError(values) => declared_code(callee, &values)?,
            Outcome::Failed { code, .. } => code,
            Outcome::ContractBroken { .. } => FailureCode::new("contract_broken"),
            ending @ (Outcome::Denied(_) | Outcome::LimitHit(_)) => return Ok(Some(ending)),
            Outcome::Fault(fault) => return Err(fault),
        };
        let failure = Failure {
            code: failure,
            expression: *result,
        };
        Ok(self.frame.fail(code, failure)?.map(Outcome::from))
    }

    /// The path of the request of this site, at which it is.
    fn request_path(&self, site: u32) -> Result<String, Fault> {
        let work = code(&self.unit, &self.form, &self.callers);
        let site = work.requests.get(site as usize).ok_or(NO_SITE)?;
        let mut path = String::new();
        for (depth, caller) in self.callers.iter().enumerate() {
            let around = self.callers.get(..depth).unwrap_or(&[]);
            let calls = &code(&caller.unit, &self.form, around).calls;
            let call = calls.get(caller.site as usize).ok_or(NO_SITE)?;
            add_position(&mut path, &call.position, &caller.frame);
            path.push('/');
        }
        add_position(&mut path, &site.position, &self.frame);
        Ok(path)
    }

    fn request(&mut self, site: u32) -> Result<Request, Fault> {
        let path = self.request_path(site)?;
        let work = code(&self.unit, &self.form, &self.callers);
        let site = work.requests.get(site as usize).ok_or(NO_SITE)?;
        let key = match site.key {
            None => None,
            Some(key) => match self.frame.read(work, key)? {
                Value::Text(key) => Some(Arc::clone(key)),
                _ => return Err(NO_KEY),
            },
        };
        let mut arguments = Vec::with_capacity(site.arguments.len());
        for (name, ty, operand) in &site.arguments {
            arguments.push(Argument {
                name: Arc::clone(name),
                ty: ty.clone(),
                value: self.frame.read(work, *operand)?.clone(),
            });
        }
        let id = self.next_id;
        self.next_id += 1;
        Ok(Request {
            id,
            node: Arc::clone(&self.unit.node.node_id),
            step: Arc::clone(&site.position.name),
            path,
            effect: site.effect,
            class: site.class,
            key,
            fixed: site.fixed.clone(),
            arguments,
            result: site.ty.clone(),
        })
    }
}

/// The member of `error_code` that a declared error has.
fn declared_code(callee: &Unit, values: &[Value]) -> Result<FailureCode, Fault> {
    let of = callee.node.errors.first().map(|field| &field.ty);
    let (Some(Type::Enum(of)), Some(Value::Member(member))) = (of, values.first()) else {
        return Err(NO_ERROR_CODE);
    };
    of.name(*member)
        .map(|name| FailureCode::new(name))
        .ok_or(NO_ERROR_CODE)
}

/// `name`, and `[i]` for each loop around it.
fn add_position(path: &mut String, position: &Position, frame: &Frame) {
    path.push_str(&position.name);
    for register in &position.rounds {
        if let Some(Value::Integer(round)) = frame.registers.get(register.0 as usize) {
            // Writing to a string cannot fail.
            let _ = write!(path, "[{round}]");
        }
    }
}
