//! The other side of requests, a scripted engine, and a run of the one on the other.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vesper_host::effect::{Ask, AttemptError, Broken, Failure, Pending, Performer, Secrets};
use vesper_host::journal::{Entry, Kind, Stored};
use vesper_host::policy::budget::{BudgetState, MemoryBudgets};
use vesper_host::policy::memory_state::MemoryState;
use vesper_host::policy::state::PolicyState;
use vesper_host::run::contract::{
    Copied, Ended, Execution, Halted, Performers, Plan, Plans, Setting, Step, Watcher,
};
use vesper_host::run::grants::{Grants, Mint};
use vesper_host::run::outcome::{Outcome, RunError};
use vesper_host::run::running::{Control, Pace, Prepared, Running, Services};
use vesper_host::runtime::{self, NoRuntime};
use vesper_host::sources::{NoRandomness, Sources};
use vesper_interp::{Argument, Completion, Request};
use vesper_ir::{Effect, EffectClass, FailureCode, Type, Value};
use zeroize::Zeroizing;

use crate::journal::{Disk, Life, MemoryRun};

/// A clock that a test moves; it advances by a microsecond at each reading of the time.
#[derive(Default)]
pub(crate) struct Clock {
    pub(crate) now_us: AtomicI64,
    pub(crate) monotonic_us: AtomicI64,
}

impl Sources for Clock {
    fn now_ns(&self) -> i64 {
        self.now_us.fetch_add(1, Ordering::Relaxed) * 1000
    }

    fn fill(&self, buffer: &mut [u8]) -> Result<(), NoRandomness> {
        buffer.fill(0);
        Ok(())
    }

    fn monotonic_us(&self) -> i64 {
        self.monotonic_us.load(Ordering::Relaxed)
    }
}

/// Answer of the other side to one attempt.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Value(i64),
    /// A text of this length.
    Text(usize),
    Fails(Failure),
    Breaks,
    Never,
    /// Answers after this time of the monotonic clock.
    After(Duration, i64),
}

/// An attempt that reached the other side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) is_repeat: bool,
    pub(crate) references: Vec<(String, String)>,
}

/// The other side: answers attempts, and remembers what they did.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) clock: Arc<Clock>,
    pub(crate) life: Mutex<Arc<Life>>,
    /// Answers by path, one for each attempt; without one it is the number of the attempt at the path.
    pub(crate) answers: Mutex<HashMap<String, VecDeque<Answer>>>,
    pub(crate) seen: Mutex<Vec<Seen>>,
    /// Receipts of what was really done, with the number of times; the other side recognises keys and receipts.
    pub(crate) done: Mutex<HashMap<String, usize>>,
    pub(crate) probes: Mutex<usize>,
    pub(crate) probe_fails: Mutex<Option<Failure>>,
    pub(crate) is_unconfigured: Mutex<bool>,
    pub(crate) key_ttl: Mutex<Option<Duration>>,
}

impl World {
    fn pass(&self) {
        let life = Arc::clone(&self.life.lock().unwrap());
        life.pass();
    }

    fn is_next(&self, path: &str, answer: &Answer) -> bool {
        let answers = self.answers.lock().unwrap();
        let next = answers.get(path).and_then(VecDeque::front);
        next.is_some_and(|next| std::mem::discriminant(next) == std::mem::discriminant(answer))
    }

    fn perform_now(&self, ask: Ask<'_>) -> Result<Value, AttemptError> {
        self.pass();
        let path = ask.request.path.clone();
        let mut references: Vec<(String, String)> = Vec::new();
        references.extend(
            ask.references
                .iter()
                .map(|(left, right)| (left.to_string(), right.to_string())),
        );
        self.seen.lock().unwrap().push(Seen {
            path: path.clone(),
            timeout: ask.timeout,
            is_repeat: ask.is_repeat,
            references,
        });
        let answer = self
            .answers
            .lock()
            .unwrap()
            .get_mut(&path)
            .and_then(VecDeque::pop_front);
        let value = match answer {
            None => 7,
            Some(Answer::Value(value)) => value,
            Some(Answer::After(time, value)) => {
                let us = i64::try_from(time.as_micros()).unwrap();
                self.clock.monotonic_us.fetch_add(us, Ordering::Relaxed);
                value
            }
            Some(Answer::Text(length)) => {
                self.done.lock().unwrap().insert(ask.receipt(), 1);
                return Ok(Value::Text(Arc::from("x".repeat(length))));
            }
            Some(Answer::Fails(failure)) => return Err(failure.into()),
            Some(Answer::Never) => panic!("it does not answer"),
            Some(Answer::Breaks) => {
                return Err(AttemptError::Broken(Broken(Box::new("the application broke"))));
            }
        };
        let is_recognised = matches!(ask.request.class, EffectClass::Keyed | EffectClass::Txn);
        let mut done = self.done.lock().unwrap();
        let times = done.entry(ask.receipt()).or_default();
        if *times == 0 || !is_recognised {
            *times += 1;
        }
        drop(done);
        self.pass();
        if ask.request.effect == Effect::SecretRead {
            let name = ask.fixed("name").to_owned();
            let secret = ask.secrets.text(&name)?;
            return Ok(Value::Text(Arc::from(format!(
                "reference to {} of {}",
                name,
                secret.len()
            ))));
        }
        Ok(Value::Integer(value))
    }
}

/// Performer of everything, in the world.
struct Everything(Arc<World>);

impl Performer for Everything {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        let never = self.0.is_next(&ask.request.path, &Answer::Never);
        Box::pin(async move {
            if never {
                std::future::pending::<()>().await;
            }
            self.0.perform_now(ask)
        })
    }

    fn probe<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Option<Value>> {
        Box::pin(async move {
            self.0.pass();
            *self.0.probes.lock().unwrap() += 1;
            if let Some(failure) = self.0.probe_fails.lock().unwrap().clone() {
                return Err(failure.into());
            }
            let is_done = self.0.done.lock().unwrap().contains_key(&ask.receipt());
            Ok(is_done.then_some(Value::Integer(7)))
        })
    }

    fn close(&self) {}
}

pub(crate) struct WorldPerformers(pub(crate) Arc<World>);

impl Performers for WorldPerformers {
    fn performer(&self, plan: &Plan) -> Result<Arc<dyn Performer>, Failure> {
        if *self.0.is_unconfigured.lock().unwrap() {
            let message = format!("nothing is configured that performs `{}`", plan.effect.name());
            return Err(Failure::new("unavailable", message));
        }
        Ok(Arc::new(Everything(Arc::clone(&self.0))))
    }

    fn key_ttl(&self, _plan: &Plan) -> Option<Duration> {
        *self.0.key_ttl.lock().unwrap()
    }

    fn redact(&self, text: String) -> String {
        text.replace("hunter2", "***")
    }

    fn secrets(&self) -> &dyn Secrets {
        self
    }
}

impl Secrets for WorldPerformers {
    fn text(&self, _name: &str) -> Result<Zeroizing<String>, Failure> {
        Ok(Zeroizing::new(String::from("hunter2")))
    }
}

/// An engine that makes these requests, one after the other or in waves, whatever comes of them.
pub(crate) struct Script {
    pub(crate) waves: Vec<Vec<Request>>,
    pub(crate) at: usize,
    pub(crate) completions: Vec<(u64, String)>,
    pub(crate) end: Option<Ended>,
    pub(crate) handoffs: VecDeque<Option<String>>,
    pub(crate) halts: Option<Halted>,
    pub(crate) begun: Option<String>,
    pub(crate) stopped: Option<Option<&'static str>>,
}

impl Script {
    pub(crate) fn new(requests: Vec<Request>) -> Self {
        Self {
            waves: requests.into_iter().map(|each| vec![each]).collect(),
            at: 0,
            completions: Vec::new(),
            end: Some(returned()),
            handoffs: VecDeque::new(),
            halts: None,
            begun: None,
            stopped: None,
        }
    }
}

impl Execution for Script {
    fn advance(&mut self, completions: Vec<(u64, Completion)>) -> Result<Step, Halted> {
        for (id, completion) in completions {
            let shown = match completion {
                Completion::Value(Value::Integer(value)) => value.to_string(),
                Completion::Failed(code) => code.name().to_owned(),
                other => format!("{other:?}"),
            };
            self.completions.push((id, shown));
        }
        if self.at == self.waves.len()
            && let Some(halted) = self.halts.take()
        {
            return Err(halted);
        }
        let found = self.waves.get(self.at).cloned();
        self.at += 1;
        Ok(match found {
            Some(wave) => Step::Blocked(wave),
            None => Step::Done(self.end.take().unwrap()),
        })
    }

    fn begin(&mut self, execution: &str) {
        self.begun = Some(execution.to_owned());
    }

    fn handed_over(&mut self) -> Option<String> {
        self.handoffs.pop_front().flatten()
    }

    fn stop(&mut self, outcome: Option<&Outcome>) {
        self.stopped = Some(outcome.map(Outcome::kind));
    }
}

pub(crate) fn returned() -> Ended {
    Ended {
        kind: "returned",
        record: vec![("value", String::from("{\"total\":1}"))],
        failed: None,
        payload: Box::new(()),
    }
}

pub(crate) fn failed(code: &str) -> Ended {
    Ended {
        kind: "failed",
        record: vec![("at", String::from("3")), ("code", format!("\"{code}\""))],
        failed: Some((FailureCode::new(code), true)),
        payload: Box::new(()),
    }
}

/// Watcher that remembers what it learns.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) settled: Mutex<Vec<String>>,
    pub(crate) warnings: Mutex<Vec<String>>,
    pub(crate) endings: Mutex<Vec<&'static str>>,
    pub(crate) known: Mutex<HashMap<String, Copied>>,
    pub(crate) prefix: Mutex<Option<String>>,
}

impl Watcher for Notes {
    fn settled(&self, request: &Request, entry: &Entry<'_>) {
        let line = format!("{} {} {}", request.path, entry.kind.name(), entry.body);
        self.settled.lock().unwrap().push(line);
    }

    fn answer(&self, request: &Request) -> Result<Option<Copied>, Broken> {
        Ok(self.known.lock().unwrap().get(&request.path).cloned())
    }

    fn rename(&self, request: &Request) -> Result<Option<Arc<str>>, Broken> {
        let prefix = self.prefix.lock().unwrap();
        let renamed = prefix.as_deref().zip(request.key.as_deref());
        Ok(renamed.map(|(prefix, key)| Arc::from(format!("{prefix}{key}"))))
    }

    fn ending(&self, outcome: &Outcome) -> Result<(), vesper_host::journal::JournalError> {
        self.endings.lock().unwrap().push(outcome.kind());
        Ok(())
    }

    fn warn(&self, message: &str) {
        self.warnings.lock().unwrap().push(message.to_owned());
    }
}

/// One run with everything around it, which a test changes before it goes.
pub(crate) struct Bench {
    pub(crate) world: Arc<World>,
    pub(crate) disk: Arc<Mutex<Disk>>,
    pub(crate) life: Arc<Life>,
    pub(crate) notes: Arc<Notes>,
    pub(crate) plans: Plans,
    pub(crate) refused: Vec<(Arc<str>, String)>,
    /// Capabilities without a handle.
    pub(crate) missing: Vec<&'static str>,
    pub(crate) pace: Pace,
    pub(crate) input_size: u64,
    pub(crate) max_body: usize,
    pub(crate) fails_after: usize,
    /// The caller's time.
    pub(crate) left: Option<Duration>,
    pub(crate) is_cancelled: bool,
    /// True where a signal ends the first wait.
    pub(crate) is_interrupted: bool,
    pub(crate) control: Option<Arc<Control>>,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            world: Arc::default(),
            disk: Arc::default(),
            life: Arc::default(),
            notes: Arc::default(),
            plans: Plans::default(),
            refused: Vec::new(),
            missing: Vec::new(),
            pace: Pace::Policies,
            input_size: 0,
            max_body: 1 << 20,
            fails_after: usize::MAX,
            left: None,
            is_cancelled: false,
            is_interrupted: false,
            control: None,
        }
    }
}

impl Bench {
    /// Adds the plan of each request.
    pub(crate) fn knowing(requests: &[Request]) -> Self {
        let mut bench = Self::default();
        for each in requests {
            bench
                .plans
                .requests
                .insert(Arc::from(plain(&each.path)), plan_of(each));
        }
        bench
    }

    pub(crate) fn plan(&mut self, path: &str) -> &mut Plan {
        self.plans.requests.get_mut(path).unwrap()
    }

    pub(crate) fn set(&mut self, path: &str, name: &str, setting: Setting) {
        let mut policy = (*self.plan(path).policy).clone();
        policy.insert(Arc::from(name), setting);
        self.plan(path).policy = Arc::new(policy);
    }

    pub(crate) fn answer(&self, path: &str, answers: &[Answer]) {
        let found = answers.iter().cloned().collect();
        self.world.answers.lock().unwrap().insert(path.to_owned(), found);
    }

    /// Runs the script; ends the run where it has an outcome.
    pub(crate) fn go(&mut self, script: &mut Script) -> Result<Outcome, RunError> {
        let (services, grants) = self.services();
        self.go_with(script, services, grants)
    }

    /// Returns the services of a Host, and the handles of its mint.
    pub(crate) fn services(&self) -> (Arc<Services>, Grants) {
        *self.world.life.lock().unwrap() = Arc::clone(&self.life);
        let mint = Mint::default();
        let mut grants = Grants {
            refused: self.refused.clone(),
            ..Grants::default()
        };
        let all = self.plans.requests.values().flat_map(|each| &each.capabilities);
        for capability in all.filter(|each| !self.missing.contains(&&***each)) {
            grants
                .handles
                .insert(Arc::clone(capability), mint.handle(Arc::clone(capability)));
        }
        let services = Services {
            mint,
            performers: Arc::new(WorldPerformers(Arc::clone(&self.world))),
            sources: Arc::clone(&self.world.clock) as Arc<dyn Sources>,
            policies: Arc::new(PolicyState::Memory(MemoryState::default())),
            budgets: Arc::new(BudgetState::Memory(MemoryBudgets::default())),
            pace: self.pace,
        };
        (Arc::new(services), grants)
    }

    pub(crate) fn go_with(
        &mut self,
        script: &mut Script,
        services: Arc<Services>,
        grants: Grants,
    ) -> Result<Outcome, RunError> {
        let mut run = MemoryRun::open(&self.disk, &self.life);
        run.max_body = self.max_body;
        run.fails_after = self.fails_after;
        let plans = Plans {
            requests: self.plans.requests.clone(),
            ..self.plans
        };
        let prepared = Arc::new(Prepared {
            node: Arc::from("node"),
            plans,
            grants,
            is_joined: false,
        });
        let watcher = Arc::clone(&self.notes) as Arc<dyn Watcher>;
        let mut running = Running::new(services, prepared, Arc::new(run), watcher);
        if let Some(left) = self.left {
            running.limit(left);
        }
        if self.is_cancelled {
            running.control().cancel();
        }
        self.control = Some(Arc::clone(running.control()));
        let going = running.go(script, self.input_size);
        let interruption = || {
            let error = NoRuntime(String::from("interrupted"));
            if self.is_interrupted { Err(error) } else { Ok(()) }
        };
        match runtime::block_on(going, interruption) {
            Ok(outcome) => running.end(outcome?),
            Err(NoRuntime(text)) => Err(RunError::Fault(text)),
        }
    }

    /// Returns the durable entries after START, without times.
    pub(crate) fn lines(&self) -> Vec<String> {
        let disk = self.disk.lock().unwrap();
        let entries = disk.entries.iter().filter(|each| each.kind != Kind::Start);
        entries.map(line).collect()
    }

    pub(crate) fn commits(&self) -> usize {
        self.disk.lock().unwrap().commits
    }

    pub(crate) fn paths_seen(&self) -> Vec<String> {
        let seen = self.world.seen.lock().unwrap();
        seen.iter().map(|each| each.path.clone()).collect()
    }
}

fn line(entry: &Stored) -> String {
    let parts = [entry.kind.name(), &entry.path, &entry.body];
    let filled: Vec<&str> = parts.into_iter().filter(|each| !each.is_empty()).collect();
    filled.join(" ")
}

fn plain(path: &str) -> &str {
    path.split('[').next().unwrap()
}

/// Returns a request of an effect of the application with one argument.
pub(crate) fn request(id: u64, path: &str, class: EffectClass) -> Request {
    let key = (class == EffectClass::Keyed).then(|| Arc::from(format!("key of {path}")));
    Request {
        id,
        node: Arc::from("pay_v1"),
        step: Arc::from(plain(path)),
        path: path.to_owned(),
        effect: Effect::Custom,
        class,
        key,
        fixed: vec![(Arc::from("name"), Arc::from("charge"))],
        arguments: vec![Argument {
            name: Arc::from("amount"),
            ty: Type::Integer,
            value: Value::Integer(5),
        }],
        result: Type::Integer,
    }
}

fn plan_of(request: &Request) -> Plan {
    Plan {
        node_id: Arc::clone(&request.node),
        effect: request.effect,
        target: Arc::from("charge"),
        class: request.class,
        result: request.result.clone(),
        arguments: Vec::new(),
        fixed: request.fixed.clone(),
        capabilities: vec![Arc::from("custom.call.charge")],
        in_handler: false,
        timeout: None,
        is_sensitive: false,
        policy: Arc::default(),
        limits_name: Arc::from("pay_v1 custom charge"),
    }
}
