//! Strands: the parts of an execution that wait for requests side by side (docs/spec/flow.md, Waves).
//!
//! An execution is one strand. A parallel statement, and a loop with rounds in flight, fork: each member or round is a
//! strand with a frame of its own on the same code. Strands run one after the other in written order, each until it has
//! ended or waits, so no result depends on the order in which requests are performed.

use std::fmt::Write as _;
use std::sync::Arc;

use vesper_ir::{FailureCode, Type, Value};

use crate::bytecode::sites::{CallSite, ForkSite, Position, RequestSite, Strands};
use crate::bytecode::{Code, LoopSlot, Operand};
use crate::compile::link::Unit;
use crate::observe::fingerprint::Fingerprint;
use crate::observe::marks::Marks;
use crate::program::PathedForm;
use crate::run::execution::{Argument, Completion, Request};
use crate::run::frame::{Failure, Frame};
use crate::run::loop_state::price_at;
use crate::run::meter::Meter;
use crate::run::{Fault, NO_LOOP, NO_REGISTER, Outcome, Stop, execute, write};

/// Memory of an open strand: of its frame.
const STRAND_BYTES: u64 = 16_384;

const NO_SITE: Fault = "an instruction names a request, a call or a fork that does not exist";
const NO_CALLEE: Fault = "a call names a node that was not linked";
const NO_ERROR_CODE: Fault = "a declared error has no code";
const NO_KEY: Fault = "the key of a request is no string";
const NO_COMPLETION: Fault = "a strand was resumed without the completion of its request";
const HAS_ENDED: Fault = "a strand was resumed that has ended";
const NO_GROUP: Fault = "strands are joined that were not forked";
const NOT_FORKED: Fault = "code ends a strand outside of one";

/// The form of bytecode of the started node.
#[derive(Debug)]
pub(crate) enum OwnForm {
    Plain,
    Traced(Arc<Code>),
    /// With the fingerprint of the completions so far.
    Pathed(Arc<PathedForm>, Box<Fingerprint>),
}

/// One advance of an execution: what all its strands share.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) form: &'a mut OwnForm,
    /// One meter for all nodes and strands of the execution, over its whole life.
    pub(crate) meter: &'a mut Meter,
    pub(crate) now: Option<&'a Value>,
    /// The completions of the last wave; each is taken by its strand.
    pub(crate) completions: &'a mut [Option<Completion>],
    /// The requests of the next wave, in written order.
    pub(crate) wave: Vec<Request>,
}

/// A caller, suspended until the node that it called ends.
#[derive(Debug)]
struct Caller {
    unit: Arc<Unit>,
    frame: Frame,
    site: u32,
}

/// One line of execution, through called nodes.
#[derive(Debug)]
pub(crate) struct Strand {
    unit: Arc<Unit>,
    frame: Frame,
    /// The outermost caller first.
    callers: Vec<Caller>,
    /// True where the outermost frame is of the started node, which has the form of the execution. Called nodes
    /// always run their plain form.
    is_own: bool,
    /// The path of the calls around the strand.
    prefix: Arc<str>,
    pub(crate) marks: Marks,
    state: State,
    /// The strands that the innermost frame has forked and not joined yet.
    group: Option<Box<Group>>,
    /// The bytes that the strand has taken, while it does not run.
    count: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Ready,
    /// Waits for the request of this site, at this place of the wave.
    Waiting(u32, usize),
    /// Waits for its strands.
    Forked,
    Ended,
}

/// The strands of one statement.
#[derive(Debug)]
struct Group {
    site: u32,
    slots: Vec<Slot>,
    open: usize,
    /// The fence of the frame before it forked.
    outer: Option<(usize, usize)>,
    /// A failure of the loop's own part. It comes after those of the rounds that began before it.
    failure: Option<Failure>,
    has_failed: bool,
    /// True where no further strand begins.
    is_joining: bool,
    prefix: Arc<str>,
}

#[derive(Debug)]
enum Slot {
    Open(Box<Strand>),
    Ended(Finished),
}

/// A strand that has ended.
#[derive(Debug)]
struct Finished {
    /// The registers of a member's steps, or the value that a round collects.
    results: Vec<Value>,
    failure: Option<Failure>,
    marks: Marks,
    skipped: Vec<(usize, usize)>,
    count: u64,
}

/// How a strand stands after it was advanced.
#[derive(Debug)]
pub(crate) enum Progress {
    Waiting,
    Ended(Outcome),
    /// A member or a round has reached its end. A round has its collected value and the place of its price.
    Finished(Option<(Operand, u32)>),
}

/// What a strand does after its own strands were advanced.
enum Next {
    Run,
    Wait,
    End(Outcome),
}

/// Returns the code of the innermost node; `form` belongs to the started one.
fn code<'a>(unit: &'a Unit, form: &'a OwnForm, is_started: bool) -> &'a Code {
    match form {
        OwnForm::Traced(traced) if is_started => traced,
        OwnForm::Pathed(pathed, _) if is_started => &pathed.code,
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

impl Strand {
    /// Creates the strand of an execution before its first instruction.
    pub(crate) fn new(unit: Arc<Unit>, form: &OwnForm, inputs: Vec<Value>, now: Option<&Value>) -> Self {
        let frame = frame(&unit, code(&unit, form, true), inputs, now);
        Self::on(unit, frame, true, Arc::from(""))
    }

    fn on(unit: Arc<Unit>, frame: Frame, is_own: bool, prefix: Arc<str>) -> Self {
        Self {
            unit,
            frame,
            callers: Vec::new(),
            is_own,
            prefix,
            marks: Marks::default(),
            state: State::Ready,
            group: None,
            count: 0,
        }
    }

    fn is_started(&self) -> bool {
        self.is_own && self.callers.is_empty()
    }

    /// Returns the frame of the outermost node.
    pub(crate) fn own_frame(&self) -> &Frame {
        self.callers.first().map_or(&self.frame, |caller| &caller.frame)
    }

    /// Adds the requests for which the strand and its strands wait, in written order: each strand, and the site.
    pub(crate) fn waiting<'a>(&'a self, found: &mut Vec<(&'a Self, u32)>) {
        if let State::Waiting(site, _) = self.state {
            found.push((self, site));
        }
        for slot in self.group.iter().flat_map(|group| &group.slots) {
            if let Slot::Open(strand) = slot {
                strand.waiting(found);
            }
        }
    }

    /// Returns the type of the result of a request.
    pub(crate) fn type_at<'a>(&'a self, form: &'a OwnForm, site: u32) -> Option<&'a Type> {
        let code = code(&self.unit, form, self.is_started());
        code.requests.get(site as usize).map(|site| &site.ty)
    }

    /// Runs until the strand ends or waits, through calls. It takes its completion from the turn and adds its requests
    /// to it.
    pub(crate) fn advance(&mut self, turn: &mut Turn<'_>) -> Result<Progress, Fault> {
        let begun = turn.wave.len();
        // The state is set first: after a fault the strand must not resume between two instructions.
        let mut next = match std::mem::replace(&mut self.state, State::Ended) {
            State::Ready => Next::Run,
            State::Waiting(site, place) => {
                let completion = turn.completions.get_mut(place).and_then(Option::take);
                match self.complete(turn, site, completion.ok_or(NO_COMPLETION)?)? {
                    Some(outcome) => Next::End(outcome),
                    None => Next::Run,
                }
            }
            State::Forked => self.run_strands(turn, 0)?,
            State::Ended => return Err(HAS_ENDED),
        };
        loop {
            let outcome = match next {
                Next::Wait => {
                    self.state = State::Forked;
                    return Ok(Progress::Waiting);
                }
                Next::End(outcome) => outcome,
                Next::Run => match self.execute(turn)? {
                    Stop::Ended(Outcome::Failed { code, expression }) if self.group.is_some() => {
                        next = self.end_launch(turn, Some(Failure { code, expression }))?;
                        continue;
                    }
                    Stop::Ended(outcome) => outcome,
                    Stop::Request(site) => {
                        let request = self.request(turn.form, site)?;
                        self.state = State::Waiting(site, turn.wave.len());
                        turn.wave.push(request);
                        return Ok(Progress::Waiting);
                    }
                    Stop::Call(site) => {
                        if let Err(limit) = turn.meter.spend() {
                            limit.into()
                        } else {
                            self.enter(turn, site)?;
                            next = Next::Run;
                            continue;
                        }
                    }
                    Stop::Fork(site) => {
                        next = self.fork(turn, site)?;
                        continue;
                    }
                    // A loop without a round has forked nothing.
                    Stop::Join if self.group.is_none() => {
                        next = Next::Run;
                        continue;
                    }
                    Stop::Join => {
                        next = self.end_launch(turn, None)?;
                        continue;
                    }
                    Stop::StrandEnd(collected) => return Ok(Progress::Finished(collected)),
                },
            };
            self.abandon(turn, begun)?;
            let Some(Caller { unit, frame, site }) = self.callers.pop() else {
                return Ok(Progress::Ended(outcome));
            };
            let callee = std::mem::replace(&mut self.unit, unit);
            self.frame = frame;
            next = match self.resume_caller(turn.form, &callee, site, outcome)? {
                Some(outcome) => Next::End(outcome),
                None => Next::Run,
            };
        }
    }

    /// Runs the innermost node until it stops.
    fn execute(&mut self, turn: &mut Turn<'_>) -> Result<Stop, Fault> {
        let is_started = self.is_started();
        let (frame, marks, meter) = (&mut self.frame, &mut self.marks, &mut *turn.meter);
        match &*turn.form {
            // Only the interpreter records marks.
            OwnForm::Traced(traced) if is_started => execute(traced, frame, marks, meter),
            OwnForm::Pathed(pathed, _) if is_started => {
                pathed.tier.run(pathed, &pathed.code, frame, marks, meter)
            }
            _ => (self.unit.tier).run(&self.unit, &self.unit.plain, frame, marks, meter),
        }
    }

    // -- requests and calls -----------------------------------------------------------------------

    /// Writes a completion to the frame. Returns the outcome if it ends the requesting node.
    fn complete(
        &mut self,
        turn: &mut Turn<'_>,
        site: u32,
        completion: Completion,
    ) -> Result<Option<Outcome>, Fault> {
        if matches!(turn.form, OwnForm::Pathed(..)) {
            let path = self.request_path(turn.form, site)?;
            if let OwnForm::Pathed(_, came_back) = turn.form {
                came_back.add_completion(&path, &completion);
            }
        }
        let code = code(&self.unit, turn.form, self.is_started());
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

    /// Starts a called node.
    fn enter(&mut self, turn: &Turn<'_>, site: u32) -> Result<(), Fault> {
        let code = code(&self.unit, turn.form, self.is_started());
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
        let inner = frame(&callee, &callee.plain, values, turn.now);
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
        form: &OwnForm,
        callee: &Unit,
        site: u32,
        outcome: Outcome,
    ) -> Result<Option<Outcome>, Fault> {
        let code = code(&self.unit, form, self.is_started());
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

    /// Returns the path of the calls of the strand, for the current rounds.
    fn path_of_calls(&self, form: &OwnForm) -> Result<String, Fault> {
        let mut path = String::from(&*self.prefix);
        for (depth, caller) in self.callers.iter().enumerate() {
            let calls = &code(&caller.unit, form, self.is_own && depth == 0).calls;
            let call = calls.get(caller.site as usize).ok_or(NO_SITE)?;
            add_position(&mut path, &call.position, &caller.frame);
            path.push('/');
        }
        Ok(path)
    }

    /// Returns the path of the request at this site, for the current rounds.
    fn request_path(&self, form: &OwnForm, site: u32) -> Result<String, Fault> {
        let work = code(&self.unit, form, self.is_started());
        let site = work.requests.get(site as usize).ok_or(NO_SITE)?;
        let mut path = self.path_of_calls(form)?;
        add_position(&mut path, &site.position, &self.frame);
        Ok(path)
    }

    /// Returns the request at this site, without its id.
    pub(crate) fn request(&self, form: &OwnForm, site: u32) -> Result<Request, Fault> {
        let path = self.request_path(form, site)?;
        let work = code(&self.unit, form, self.is_started());
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
        Ok(Request {
            id: 0,
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

    // -- strands of a statement -------------------------------------------------------------------

    /// Begins the members of a parallel statement, or the next round of a loop.
    fn fork(&mut self, turn: &mut Turn<'_>, site: u32) -> Result<Next, Fault> {
        let is_started = self.is_started();
        if self.group.is_none() {
            let prefix = Arc::from(self.path_of_calls(turn.form)?);
            self.group = Some(Box::new(Group {
                site,
                slots: Vec::new(),
                open: 0,
                outer: self.frame.flow.fence,
                failure: None,
                has_failed: false,
                is_joining: false,
                prefix,
            }));
        }
        let group = self.group.as_mut().ok_or(NO_GROUP)?;
        let code = code(&self.unit, turn.form, is_started);
        let fork = code.forks.get(site as usize).ok_or(NO_SITE)?;
        self.frame.flow.fence = Some((fork.start, fork.join));
        let first = group.slots.len();
        let regions = match &fork.strands {
            Strands::Members(members) => {
                group.is_joining = true;
                self.frame.next = fork.join;
                members.as_slice()
            }
            Strands::Rounds { body, .. } => std::slice::from_ref(body),
        };
        for region in regions {
            let frame = self.frame.forked(code, (region.start, region.end));
            let strand = Self::on(
                Arc::clone(&self.unit),
                frame,
                is_started,
                Arc::clone(&group.prefix),
            );
            group.slots.push(Slot::Open(Box::new(strand)));
        }
        group.open += regions.len();
        self.run_strands(turn, first)
    }

    /// Ends the part of a loop that begins rounds.
    fn end_launch(&mut self, turn: &mut Turn<'_>, failure: Option<Failure>) -> Result<Next, Fault> {
        let group = self.group.as_mut().ok_or(NO_GROUP)?;
        group.is_joining = true;
        group.failure = failure;
        self.continue_group(turn)
    }

    /// Runs the open strands from this one on, in written order.
    fn run_strands(&mut self, turn: &mut Turn<'_>, first: usize) -> Result<Next, Fault> {
        let is_started = self.is_started();
        let group = self.group.as_mut().ok_or(NO_GROUP)?;
        let site = group.site;
        for place in first..group.slots.len() {
            let Some(Slot::Open(strand)) = group.slots.get_mut(place) else {
                continue;
            };
            let own = turn.meter.swap_count(strand.count);
            let progress = strand.run(turn);
            let code = code(&self.unit, turn.form, is_started);
            let fork = code.forks.get(site as usize).ok_or(NO_SITE)?;
            let finished = match progress? {
                Progress::Waiting => None,
                Progress::Finished(collected) => {
                    match strand.finish(turn.meter, code, fork, place, collected)? {
                        Ok(finished) => Some(finished),
                        Err(limit) => {
                            strand.count = turn.meter.swap_count(own);
                            return Ok(Next::End(limit));
                        }
                    }
                }
                Progress::Ended(Outcome::Failed {
                    code: failed,
                    expression,
                }) => {
                    group.has_failed = true;
                    let failure = Failure {
                        code: failed,
                        expression,
                    };
                    give_back_frame(turn.meter);
                    Some(strand.take_finished(Vec::new(), Some(failure)))
                }
                Progress::Ended(outcome) => {
                    strand.count = turn.meter.swap_count(own);
                    return Ok(Next::End(outcome));
                }
            };
            let count = turn.meter.swap_count(own);
            match finished {
                None => strand.count = count,
                Some(mut finished) => {
                    finished.count = count;
                    self.frame.join_path(code, &strand.frame);
                    group.open -= 1;
                    if let Some(slot) = group.slots.get_mut(place) {
                        *slot = Slot::Ended(finished);
                    }
                }
            }
        }
        self.continue_group(turn)
    }

    /// Runs the strand within a group; it takes its memory when it begins.
    fn run(&mut self, turn: &mut Turn<'_>) -> Result<Progress, Fault> {
        if matches!(self.state, State::Ready)
            && let Err(limit) = turn.meter.take_memory(STRAND_BYTES)
        {
            return Ok(Progress::Ended(limit.into()));
        }
        self.advance(turn)
    }

    /// Returns what is left of a strand that has reached its end, or the limit that its value hits.
    fn finish(
        &mut self,
        meter: &mut Meter,
        code: &Code,
        fork: &ForkSite,
        place: usize,
        collected: Option<(Operand, u32)>,
    ) -> Result<Result<Finished, Outcome>, Fault> {
        let mut results = Vec::new();
        match (&fork.strands, collected) {
            (Strands::Rounds { .. }, Some((value, price))) => {
                let value = self.frame.read(code, value)?.clone();
                let price = price_at(&code.prices, price, &value);
                if let Err(limit) = meter.take_memory(price) {
                    return Ok(Err(limit.into()));
                }
                meter.restore_memory(price);
                results.push(value);
            }
            (Strands::Members(members), None) => {
                let steps = &members.get(place).ok_or(NO_SITE)?.results;
                let steps = self.frame.registers.get_mut(steps.clone()).ok_or(NO_REGISTER)?;
                let taken = |register: &mut Value| std::mem::replace(register, Value::Boolean(false));
                results.extend(steps.iter_mut().map(taken));
                give_back_frame(meter);
            }
            _ => return Err(NOT_FORKED),
        }
        Ok(Ok(self.take_finished(results, None)))
    }

    fn take_finished(&mut self, results: Vec<Value>, failure: Option<Failure>) -> Finished {
        Finished {
            results,
            failure,
            marks: std::mem::take(&mut self.marks),
            skipped: std::mem::take(&mut self.frame.flow.skipped),
            count: 0,
        }
    }

    /// Decides how to continue after strands have run.
    fn continue_group(&mut self, turn: &mut Turn<'_>) -> Result<Next, Fault> {
        let code = code(&self.unit, turn.form, self.is_started());
        let group = self.group.as_mut().ok_or(NO_GROUP)?;
        let fork = code.forks.get(group.site as usize).ok_or(NO_SITE)?;
        if let Strands::Rounds { in_flight, .. } = &fork.strands
            && !group.is_joining
        {
            if !group.has_failed {
                let is_full = group.open >= *in_flight;
                return Ok(if is_full { Next::Wait } else { Next::Run });
            }
            group.is_joining = true;
        }
        if group.open > 0 {
            return Ok(Next::Wait);
        }
        self.join(turn)
    }

    /// Joins the strands, which all have ended.
    fn join(&mut self, turn: &mut Turn<'_>) -> Result<Next, Fault> {
        let group = self.group.take().ok_or(NO_GROUP)?;
        let code = code(&self.unit, turn.form, self.is_started());
        let fork = code.forks.get(group.site as usize).ok_or(NO_SITE)?;
        self.frame.flow.fence = group.outer;
        self.frame.next = fork.join + 1;
        let mut failure = None;
        let mut taken = 0_u64;
        for (place, slot) in group.slots.into_iter().enumerate() {
            let Slot::Ended(mut ended) = slot else {
                return Err(NO_GROUP);
            };
            self.marks.append(&mut ended.marks);
            self.frame.flow.skipped.append(&mut ended.skipped);
            taken = taken.saturating_add(ended.count);
            if ended.failure.is_some() {
                failure = failure.or(ended.failure);
                continue;
            }
            match &fork.strands {
                Strands::Members(members) => {
                    let steps = &members.get(place).ok_or(NO_SITE)?.results;
                    let steps = self.frame.registers.get_mut(steps.clone()).ok_or(NO_REGISTER)?;
                    for (register, value) in steps.iter_mut().zip(ended.results) {
                        *register = value;
                    }
                }
                Strands::Rounds { slot, collect, .. } => {
                    let LoopSlot(slot) = *slot;
                    let state = self.frame.loops.get_mut(slot as usize).ok_or(NO_LOOP)?;
                    for value in ended.results {
                        if let Err(code) = state.push(value) {
                            let code = FailureCode::from(code);
                            failure = failure.or(Some(Failure {
                                code,
                                expression: *collect,
                            }));
                        }
                    }
                }
            }
        }
        turn.meter.absorb(taken);
        if let Strands::Rounds { slot, .. } = &fork.strands {
            let state = self.frame.loops.get_mut(slot.0 as usize).ok_or(NO_LOOP)?;
            state.memory.hold(taken);
        }
        let Some(failure) = failure.or(group.failure) else {
            return Ok(Next::Run);
        };
        Ok(match self.frame.fail(code, failure)? {
            Some(failure) => Next::End(failure.into()),
            None => Next::Run,
        })
    }

    /// Drops the strands of a node that ends at once, with their requests of this turn. Their marks, points and memory
    /// stay.
    fn abandon(&mut self, turn: &mut Turn<'_>, begun: usize) -> Result<(), Fault> {
        let Some(group) = self.group.take() else {
            return Ok(());
        };
        turn.wave.truncate(begun);
        for slot in group.slots {
            match slot {
                Slot::Open(mut strand) => {
                    strand.abandon(turn, begun)?;
                    self.marks.append(&mut strand.marks);
                    turn.meter.absorb(strand.count);
                    let code = code(&self.unit, turn.form, self.is_started());
                    self.frame.join_path(code, strand.own_frame());
                }
                Slot::Ended(mut ended) => {
                    self.marks.append(&mut ended.marks);
                    turn.meter.absorb(ended.count);
                }
            }
        }
        Ok(())
    }
}

fn give_back_frame(meter: &mut Meter) {
    meter.restore_memory(meter.memory().saturating_sub(STRAND_BYTES));
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
