//! Executions: advanced to a request, suspended, and advanced again with its completion.
//!
//! An execution owns all its state, so it can stay suspended for any time and on any thread.

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

/// The demand of a suspended execution for one effect.
#[derive(Clone, Debug)]
pub struct Request {
    /// The number of the request within its execution, from 0.
    pub id: u64,
    /// The node whose statement makes the request: the started node or one that it calls.
    pub node: Arc<str>,
    /// The name of the statement.
    pub step: Arc<str>,
    /// The name with loop rounds, after those of the calls that lead to it: `pay/send[2][0]`.
    pub path: String,
    pub effect: Effect,
    pub class: EffectClass,
    pub key: Option<Arc<str>>,
    pub fixed: Vec<(Arc<str>, Arc<str>)>,
    pub arguments: Vec<Argument>,
    /// The type of the completion's value.
    pub result: Type,
}

/// An argument of a request.
#[derive(Clone, Debug)]
pub struct Argument {
    pub name: Arc<str>,
    pub ty: Type,
    pub value: Value,
}

/// The completion of a request.
#[derive(Clone, Debug)]
pub enum Completion {
    /// A value of the request's result type.
    Value(Value),
    Failed(FailureCode),
    /// The missing capability.
    Denied(Arc<str>),
    /// The limit that was hit.
    LimitHit(Arc<str>),
}

/// The state of an execution after it was advanced.
#[derive(Debug)]
pub enum Advanced {
    Blocked(Request),
    Done(Outcome, Vec<Mark>),
}

/// A violation of the execution protocol. The execution is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse(pub String);

#[derive(Clone, Copy, Debug)]
enum State {
    New,
    /// Suspended: the id of the open request and its site.
    Waiting(u64, u32),
    Ended,
}

/// A caller, suspended until the node that it called ends.
#[derive(Debug)]
struct Caller {
    unit: Arc<Unit>,
    frame: Frame,
    site: u32,
}

/// The form of bytecode of the started node.
#[derive(Debug)]
pub(crate) enum OwnForm {
    Plain,
    Traced(Arc<Code>),
    /// With the fingerprint of the completions so far.
    Pathed(Arc<PathedForm>, Box<Fingerprint>),
}

#[derive(Debug)]
pub struct Execution {
    unit: Arc<Unit>,
    frame: Frame,
    /// The form of the started node. Called nodes always run their plain form.
    form: OwnForm,
    /// The outermost caller first.
    callers: Vec<Caller>,
    marks: Marks,
    /// One meter for all nodes of the execution, over its whole life.
    meter: Meter,
    now: Option<Value>,
    next_id: u64,
    state: State,
}

const NO_SITE: Fault = "an instruction names a request or a call that does not exist";
const NO_CALLEE: Fault = "a call names a node that was not linked";
const NO_ERROR_CODE: Fault = "a declared error has no code";
const NO_KEY: Fault = "the key of a request is no string";

/// Returns the code of the innermost node; `form` belongs to the outermost one.
fn code<'a>(unit: &'a Unit, form: &'a OwnForm, callers: &[Caller]) -> &'a Code {
    match form {
        OwnForm::Traced(traced) if callers.is_empty() => traced,
        OwnForm::Pathed(pathed, _) if callers.is_empty() => &pathed.code,
        _ => &unit.plain,
    }
}

fn frame(unit: &Unit, code: &Code, mut inputs: Vec<Value>, now: Option<&Value>) -> Frame {
    if unit.node.uses_now {
        // `start` rejects an execution without the time that it needs.
        inputs.push(now.cloned().unwrap_or(Value::Null));
    }
    Frame::pathed(code, inputs)
}

impl Execution {
    /// Creates an execution before its first instruction.
    ///
    /// INVARIANT: `inputs` has one value per declared input, and `now` is set if the node uses it.
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

    /// Returns the id of the open request and the type of its result.
    pub fn awaited(&self) -> Option<(u64, &Type)> {
        match self.state {
            State::Waiting(id, site) => {
                let code = code(&self.unit, &self.form, &self.callers);
                Some((id, &code.requests.get(site as usize)?.ty))
            }
            State::New | State::Ended => None,
        }
    }

    /// Returns the marks so far. After the end it returns none, because the outcome has taken them.
    pub fn marks(&self) -> &[Mark] {
        self.marks.all()
    }

    /// Returns the points passed so far, or an empty path if the execution records none.
    pub fn path(&self) -> Path {
        match &self.form {
            OwnForm::Pathed(pathed, _) => pathed.path(self.own_frame()),
            OwnForm::Plain | OwnForm::Traced(_) => Path::default(),
        }
    }

    /// Returns the fingerprint of the values read so far. Returns 0 if the execution records no path.
    pub fn fingerprint(&self) -> u64 {
        match &self.form {
            OwnForm::Pathed(pathed, came_back) => {
                let frame = self.own_frame();
                pathed.fingerprint(frame, &pathed.path(frame), self.now.as_ref(), *came_back.clone())
            }
            OwnForm::Plain | OwnForm::Traced(_) => 0,
        }
    }

    /// Returns the frame of the started node.
    fn own_frame(&self) -> &Frame {
        self.callers.first().map_or(&self.frame, |caller| &caller.frame)
    }

    /// Runs to the next request or the end. The first call passes `None`, each later one the id and completion of the
    /// last request.
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
        // Set first: after a panic the execution must not resume between two instructions.
        self.state = State::Ended;
        self.meter.start_clock();
        let done = ended.and_then(|ended| self.run(ended));
        self.meter.stop_clock();
        Ok(match done {
            Ok(advanced) => advanced,
            Err(fault) => Advanced::Done(Outcome::Fault(fault), self.marks.take()),
        })
    }

    /// Writes a completion to the frame. Returns the outcome if it ends the requesting node.
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

    /// Runs to the next request or the end, through calls. `ended` is the outcome of the innermost node if it has
    /// ended.
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

    /// Runs the innermost node until it stops.
    fn execute(&mut self) -> Result<Stop, Fault> {
        let (frame, marks, meter) = (&mut self.frame, &mut self.marks, &mut self.meter);
        match &self.form {
            // Only the interpreter records marks.
            OwnForm::Traced(traced) if self.callers.is_empty() => execute(traced, frame, marks, meter),
            OwnForm::Pathed(pathed, _) if self.callers.is_empty() => {
                pathed.tier.run(pathed, &pathed.code, frame, marks, meter)
            }
            _ => (self.unit.tier).run(&self.unit, &self.unit.plain, frame, marks, meter),
        }
    }

    /// Starts a called node.
    fn enter(&mut self, site: u32) -> Result<(), Fault> {
        let code = code(&self.unit, &self.form, &self.callers);
        let CallSite { callee, inputs, .. } = code.calls.get(site as usize).ok_or(NO_SITE)?;
        let callee = Arc::clone(self.unit.callees.get(*callee).ok_or(NO_CALLEE)?);
        let mut values = Vec::with_capacity(callee.plain.registers);
        for (input, given) in callee.node.inputs.iter().zip(inputs) {
            values.push(match given {
                Some(given) => self.frame.read(code, *given)?.clone(),
                // An input without a default is optional.
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

    /// Resumes the caller with the outcome of the called node. Returns the outcome if it ends the caller too.
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

    /// Returns the path of the request at this site, for the current rounds.
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

/// Returns the member of `error_code` of a declared error.
fn declared_code(callee: &Unit, values: &[Value]) -> Result<FailureCode, Fault> {
    let of = callee.node.errors.first().map(|field| &field.ty);
    let (Some(Type::Enum(of)), Some(Value::Member(member))) = (of, values.first()) else {
        return Err(NO_ERROR_CODE);
    };
    of.name(*member)
        .map(|name| FailureCode::new(name))
        .ok_or(NO_ERROR_CODE)
}

/// Appends `name`, and `[i]` for each loop around it.
fn add_position(path: &mut String, position: &Position, frame: &Frame) {
    path.push_str(&position.name);
    for register in &position.rounds {
        if let Some(Value::Integer(round)) = frame.registers.get(register.0 as usize) {
            // Writing to a string cannot fail.
            let _ = write!(path, "[{round}]");
        }
    }
}
