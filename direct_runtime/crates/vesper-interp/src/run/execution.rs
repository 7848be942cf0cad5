//! Executions: advanced to a wave of requests, suspended, and advanced again with their completions.
//!
//! An execution owns all its state, so it can stay suspended for any time and on any thread.

use std::sync::Arc;

use vesper_ir::{Effect, EffectClass, FailureCode, Type, Value};

use crate::compile::link::Unit;
use crate::observe::marks::Mark;
use crate::observe::path::Path;
use crate::run::meter::{Limits, Meter};
use crate::run::strand::{OwnForm, Progress, Strand, Turn};
use crate::run::{Fault, Outcome};

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
    /// The requests that wait to be completed together, in written order: one, except where strands wait.
    Blocked(Vec<Request>),
    Done(Outcome, Vec<Mark>),
}

/// A violation of the execution protocol. The execution is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse(pub String);

#[derive(Clone, Copy, Debug)]
enum State {
    New,
    /// Suspended: the id of the first open request, and their number. Ids follow each other.
    Waiting(u64, u64),
    Ended,
}

#[derive(Debug)]
pub struct Execution {
    strand: Strand,
    /// The form of the started node.
    form: OwnForm,
    meter: Meter,
    now: Option<Value>,
    next_id: u64,
    state: State,
    /// The completions of the first requests of the wave, while others are missing. It keeps its allocation.
    given: Vec<Option<Completion>>,
}

const UNJOINED: Fault = "a strand ended outside of its statement";

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
        Self {
            strand: Strand::new(unit, &form, inputs, now.as_ref()),
            form,
            meter: Meter::new(limits),
            now,
            next_id: 0,
            state: State::New,
            given: Vec::new(),
        }
    }

    /// Returns the ids of the open requests and the types of their results, in written order.
    pub fn awaited(&self) -> Vec<(u64, &Type)> {
        let open = self.open_requests();
        open.filter_map(|(id, strand, site)| Some((id, strand.type_at(&self.form, site)?)))
            .collect()
    }

    /// Returns the requests without completion: id, strand and site.
    fn open_requests(&self) -> impl Iterator<Item = (u64, &Strand, u32)> {
        let mut found = Vec::new();
        let mut first = 0;
        if let State::Waiting(id, _) = self.state {
            first = id;
            self.strand.waiting(&mut found);
        }
        let open = (first..).zip(found).skip(self.given.len());
        open.map(|(id, (strand, site))| (id, strand, site))
    }

    /// Returns the marks so far. After the end it returns none, because the outcome has taken them.
    pub fn marks(&self) -> &[Mark] {
        self.strand.marks.all()
    }

    /// Returns the points passed so far, or an empty path if the execution records none. Those of open strands are
    /// added when they are joined.
    pub fn path(&self) -> Path {
        match &self.form {
            OwnForm::Pathed(pathed, _) => pathed.path(self.strand.own_frame()),
            OwnForm::Plain | OwnForm::Traced(_) => Path::default(),
        }
    }

    /// Returns the fingerprint of the values read so far. Returns 0 if the execution records no path.
    pub fn fingerprint(&self) -> u64 {
        match &self.form {
            OwnForm::Pathed(pathed, came_back) => {
                let frame = self.strand.own_frame();
                pathed.fingerprint(frame, &pathed.path(frame), self.now.as_ref(), *came_back.clone())
            }
            OwnForm::Plain | OwnForm::Traced(_) => 0,
        }
    }

    /// Runs to the next wave or the end. The first call gives no completion, each later one those of the last wave, in
    /// written order. Where it gives the first ones alone, the execution is blocked on the others and no strand runs.
    pub fn advance(
        &mut self,
        completions: impl IntoIterator<Item = (u64, Completion)>,
    ) -> Result<Advanced, Misuse> {
        if !self.accept(completions.into_iter())? {
            let open = self.open_requests();
            let open = open.map(|(id, strand, site)| {
                let request = strand.request(&self.form, site)?;
                Ok(Request { id, ..request })
            });
            return Ok(match open.collect() {
                Ok(rest) => Advanced::Blocked(rest),
                Err(fault) => Advanced::Done(Outcome::Fault(fault), Vec::new()),
            });
        }
        // Set first: after a panic the execution must not resume between two instructions.
        self.state = State::Ended;
        self.meter.start_clock();
        let mut turn = Turn {
            form: &mut self.form,
            meter: &mut self.meter,
            now: self.now.as_ref(),
            completions: &mut self.given,
            wave: Vec::new(),
        };
        let progress = self.strand.advance(&mut turn);
        let mut wave = turn.wave;
        self.given.clear();
        self.meter.stop_clock();
        let outcome = match progress {
            Ok(Progress::Waiting) => {
                let first = self.next_id;
                for request in &mut wave {
                    request.id = self.next_id;
                    self.next_id += 1;
                }
                self.state = State::Waiting(first, self.next_id - first);
                return Ok(Advanced::Blocked(wave));
            }
            Ok(Progress::Ended(outcome)) => outcome,
            Ok(Progress::Finished(_)) => Outcome::Fault(UNJOINED),
            Err(fault) => Outcome::Fault(fault),
        };
        Ok(Advanced::Done(outcome, self.strand.marks.take()))
    }

    /// Takes the next completions of the last wave. Returns true when it has all of them.
    fn accept(&mut self, given: impl Iterator<Item = (u64, Completion)>) -> Result<bool, Misuse> {
        let (first, count) = match self.state {
            State::New => (0, 0),
            State::Waiting(first, count) => (first, count),
            State::Ended => return Err(Misuse("this execution has ended".to_owned())),
        };
        let had = self.given.len();
        let mut next = first + had as u64;
        let mut wrong = None;
        self.given.extend(given.map_while(|(id, completion)| {
            if wrong.is_none() && (id != next || next == first + count) {
                wrong = Some(id);
            }
            next += 1;
            wrong.is_none().then_some(Some(completion))
        }));
        let missing = first + self.given.len() as u64;
        let what = match wrong {
            None if self.given.len() > had || count == 0 => return Ok(missing == first + count),
            None => format!("request {missing} waits to be completed"),
            Some(_) if count == 0 => "nothing was asked for yet".to_owned(),
            Some(other) if missing == first + count => {
                format!("request {other} does not wait to be completed")
            }
            Some(other) => format!("request {missing} waits to be completed, not request {other}"),
        };
        self.given.truncate(had);
        Err(Misuse(what))
    }
}
