//! The state of policies in Redis: limits that hold over all processes that share it.
//!
//! An `acquire` and a `release` are one script each, so that no other step comes in between, and the clock is that of
//! Redis, so that all processes agree on it. The scripts decide as `gate` does; a test compares the two. A name has six
//! keys under one hash tag, and each expires some time after it has stopped to matter.
//!
//! Where Redis cannot be reached, limits hold in each process alone (`is_local`), or effects are refused. Either is
//! reported once an outage.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use super::breaker::Change;
use super::gate::{By, Decision, Rule};
use super::is_trouble;
use super::memory_state::MemoryState;
use super::redis_script::Script;
use super::settings::{MAX_US, PolicyError};
use super::state::{Admission, CLOCK_STEP_US, Demand, Question, Store, Token, open_to_all};
use super::waiters::{ASK_AGAIN_US, LONGEST_PAUSE_US, MAX_WAITING, PATIENCE_US};
use crate::resp::{Address, Client, Reply, RespError, Word};
use crate::sources::{Sources, SystemSources};

/// Keys of one name: a hash; askers that failed, by time; askers inside, by the end of the lease; waiters, by the order
/// of coming; waiters, by the end of their patience; the holds of askers.
const KEYS: [&str; 6] = ["state", "failures", "inside", "queue", "kept", "holds"];
/// Time for which a key is kept longer than it matters.
const SPARE_US: i64 = 60_000_000;

/// Returns a script. A Lua number is a double: every number here is whole and below 2^53 (`settings::MAX_US`), hence
/// exact.
fn script(body: &str) -> Script {
    Script::new(format!(
        "local ASK_AGAIN, LONGEST_PAUSE = {ASK_AGAIN_US}, {LONGEST_PAUSE_US}\n\
         local PATIENCE, MAX_WAITING = {PATIENCE_US}, {MAX_WAITING}\n\
         local CLOCK_STEP, SPARE, MAX_US = {CLOCK_STEP_US}, {SPARE_US}, {MAX_US}\n\n{}\n{body}",
        include_str!("redis/common.lua"),
    ))
}

/// Arguments: asker, time (of Redis where it is empty), time that it may wait, its lease; failures, window and open time
/// of the breaker; places; the time in which a bucket of tokens fills, and the hold; the rate, the distance of two
/// requests and the time by which one may come early, each of the two in two numbers. Returns the decision, the policy
/// that made it, the time to wait, and the time.
static ACQUIRE: LazyLock<Script> = LazyLock::new(|| script(include_str!("redis/acquire.lua")));
/// Arguments: asker, time, `failed`, `answered` or `abandoned`, the moment of admission; the numbers of the breaker;
/// places; the time in which a bucket of tokens fills, and the tokens that were used, as a time, or -1 where they are not
/// known. Returns the change of the breaker.
static LEAVE: LazyLock<Script> = LazyLock::new(|| script(include_str!("redis/leave.lua")));

/// Arguments: asker, time; then as those of `ACQUIRE` from the places on. Returns the time that another asker would wait.
static PRESSURE: LazyLock<Script> = LazyLock::new(|| script(include_str!("redis/pressure.lua")));

/// Receiver of messages about outages.
pub trait OutageLog: Send + Sync {
    fn warn(&self, message: &str);
    fn info(&self, message: &str);
}

/// Settings of the state.
pub struct RedisOptions {
    pub prefix: String,
    /// True where limits hold in each process alone during an outage; otherwise effects are refused.
    pub is_local: bool,
    pub timeout: Duration,
    /// Time after a failure for which Redis is not asked: each attempt would cost its time-out.
    pub pause: Duration,
    /// Time for scripts in place of that of Redis, in microseconds: for tests.
    pub clock: Option<Box<dyn Fn() -> i64 + Send + Sync>>,
    pub log: Box<dyn OutageLog>,
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisOptions({})", self.prefix)
    }
}

/// State that processes share. Times in decisions are the caller's: only differences come from the clock of Redis.
pub struct RedisState {
    client: Client,
    options: RedisOptions,
    sources: Arc<dyn Sources>,
    local: MemoryState,
    started: Instant,
    is_down: AtomicBool,
    /// True where the next failure is reported.
    is_reporting: AtomicBool,
    /// Milliseconds after `started` before which Redis is not asked.
    ask_again_ms: AtomicU64,
}

impl fmt::Debug for RedisState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisState({})", self.client.address())
    }
}

impl RedisState {
    pub fn new(address: Address, options: RedisOptions) -> Self {
        Self {
            client: Client::new(address, options.timeout),
            options,
            sources: SystemSources::shared(),
            local: MemoryState::default(),
            started: Instant::now(),
            is_down: AtomicBool::new(false),
            is_reporting: AtomicBool::new(true),
            ask_again_ms: AtomicU64::new(0),
        }
    }

    pub async fn acquire(
        &self,
        name: &Arc<str>,
        rule: &Rule,
        demand: Demand,
        now_us: i64,
        deadline_us: Option<i64>,
        waiting: Option<&Token>,
    ) -> Result<Admission, PolicyError> {
        if rule.is_open_to_all() {
            return Ok(open_to_all(now_us));
        }
        let question = Question::new(&*self.sources, rule, demand, now_us, deadline_us, waiting);
        let mut arguments = vec![Word::Number(question.left_us), Word::Number(question.lease_us)];
        arguments.extend(shared_arguments(rule).map(Word::Number));
        let hold_us = rule
            .tokens
            .map_or(0, |tokens| tokens.time_us(question.most_tokens));
        arguments.extend([Word::Number(burst_us(rule)), Word::Number(hold_us)]);
        arguments.extend(pace_arguments(rule).map(Word::Number));
        let reply = self.ask(&ACQUIRE, name, &question.asker, arguments, read_answer);
        let Some(answer) = reply.await else {
            if self.options.is_local {
                return self
                    .local
                    .acquire(name, rule, demand, now_us, deadline_us, waiting);
            }
            let wait_us = i64::try_from(self.options.pause.as_micros()).unwrap_or(i64::MAX);
            let decision = Decision::Rejected {
                by: By::Store,
                retry_at_us: now_us + wait_us,
                wait_us,
            };
            return Ok(Admission {
                decision,
                token: None,
            });
        };
        let (at_us, wait_us) = (now_us.saturating_add(answer.wait_us), answer.wait_us);
        let decision = match answer.kind {
            Kind::Admitted => Decision::Admitted { at_us, wait_us },
            Kind::Waiting(by) => Decision::Waiting {
                by,
                until_us: at_us,
                wait_us,
            },
            Kind::Rejected(by) => Decision::Rejected {
                by,
                retry_at_us: at_us,
                wait_us,
            },
        };
        let token = Token {
            name: Arc::clone(name),
            asker: question.asker,
            rule: *rule,
            admitted_us: answer.store_us,
            store: Store::Redis,
            asked_us: question.asked_us,
        };
        let is_rejected = matches!(decision, Decision::Rejected { .. });
        Ok(Admission {
            decision,
            token: (!is_rejected).then_some(token),
        })
    }

    pub async fn release(
        &self,
        token: &Token,
        failure_code: Option<&str>,
        tokens: Option<i64>,
        now_us: i64,
    ) -> Change {
        if token.store != Store::Redis {
            return self.local.release(token, failure_code, tokens, now_us);
        }
        let is_failure = failure_code.is_some_and(is_trouble);
        let ending = if is_failure { "failed" } else { "answered" };
        self.leave(token, ending, tokens).await
    }

    pub async fn pressure_us(&self, name: &Arc<str>, rule: &Rule, now_us: i64) -> i64 {
        let mut arguments = vec![Word::Number(0); 5];
        arguments.extend([
            Word::Number(rule.concurrency.map_or(0, |rule| rule.limit)),
            Word::Number(burst_us(rule)),
            Word::Number(rule.tokens.map_or(0, |tokens| tokens.time_us(1))),
        ]);
        arguments.extend(pace_arguments(rule).map(Word::Number));
        let read = |reply: &Reply| reply.text()?.parse().ok();
        match self.ask(&PRESSURE, name, "", arguments, read).await {
            Some(wait_us) => wait_us,
            None if self.options.is_local => self.local.pressure_us(name, rule, now_us),
            None => 0,
        }
    }

    pub async fn abandon(&self, token: &Token, now_us: i64) {
        if token.store == Store::Redis {
            self.leave(token, "abandoned", None).await;
        } else {
            self.local.abandon(token, now_us);
        }
    }

    pub fn close(&self) {
        self.client.close();
    }

    /// Reports the end of an attempt. Where Redis cannot be told, leases end by themselves and the failure is lost.
    async fn leave(&self, token: &Token, ending: &str, tokens: Option<i64>) -> Change {
        let mut arguments = vec![Word::Text(ending), Word::Number(token.admitted_us)];
        arguments.extend(shared_arguments(&token.rule).map(Word::Number));
        let used_us = token
            .rule
            .tokens
            .and_then(|rule| tokens.map(|tokens| rule.time_us(tokens)));
        arguments.extend([
            Word::Number(burst_us(&token.rule)),
            Word::Number(used_us.unwrap_or(-1)),
        ]);
        let read = |reply: &Reply| Change::from_name(reply.text()?);
        let reply = self.ask(&LEAVE, &token.name, &token.asker, arguments, read);
        reply.await.unwrap_or(Change::None)
    }

    /// Runs a script; None where Redis cannot be asked.
    async fn ask<T>(
        &self,
        script: &Script,
        name: &str,
        asker: &str,
        arguments: Vec<Word<'_>>,
        read: impl Fn(&Reply) -> Option<T>,
    ) -> Option<T> {
        let elapsed_ms = || u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let is_down = self.is_down.load(Ordering::Relaxed);
        if is_down && elapsed_ms() < self.ask_again_ms.load(Ordering::Relaxed) {
            return None;
        }
        let clock = self.options.clock.as_ref().map(|clock| clock());
        let keys = KEYS.map(|key| format!("{}{{{name}}}:{key}", self.options.prefix));
        let mut words: Vec<Word<'_>> = keys.iter().map(|key| Word::Text(key)).collect();
        words.push(Word::Text(asker));
        words.push(clock.map_or(Word::Text(""), Word::Number));
        words.extend(arguments);
        match script
            .run(&self.client, KEYS.len(), words)
            .await
            .and_then(|reply| {
                read(&reply).ok_or_else(|| RespError {
                    class: "InvalidResponse",
                    message: "the script gave another reply".to_owned(),
                })
            }) {
            Ok(found) => {
                if self.is_down.swap(false, Ordering::Relaxed) {
                    self.is_reporting.store(true, Ordering::Relaxed);
                    self.options.log.info("the policies' Redis answers again");
                }
                Some(found)
            }
            Err(error) => {
                let pause_ms = u64::try_from(self.options.pause.as_millis()).unwrap_or(u64::MAX);
                self.ask_again_ms
                    .store(elapsed_ms().saturating_add(pause_ms), Ordering::Relaxed);
                self.is_down.store(true, Ordering::Relaxed);
                self.report(&error);
                None
            }
        }
    }

    /// Reports the first failure of an outage. Its message is left out: it may hold an address with a password.
    fn report(&self, error: &RespError) {
        if !self.is_reporting.swap(false, Ordering::Relaxed) {
            return;
        }
        let follows = if self.options.is_local {
            "limits hold in each process alone until it answers"
        } else {
            "effects are refused"
        };
        let class = error.class;
        self.options.log.warn(&format!(
            "the policies' Redis cannot be asked ({class}): {follows}"
        ));
    }
}

enum Kind {
    Admitted,
    Waiting(By),
    Rejected(By),
}

struct Answer {
    kind: Kind,
    wait_us: i64,
    store_us: i64,
}

/// Reads the reply of `ACQUIRE`.
fn read_answer(reply: &Reply) -> Option<Answer> {
    let Reply::Array(parts) = reply else { return None };
    let [kind, by, wait_us, store_us] = parts.as_slice() else {
        return None;
    };
    let by = by.text()?;
    let kind = match kind.text()? {
        "admitted" => Kind::Admitted,
        "waiting" => Kind::Waiting(By::from_name(by)?),
        "rejected" => Kind::Rejected(By::from_name(by)?),
        _ => return None,
    };
    Some(Answer {
        kind,
        wait_us: wait_us.text()?.parse().ok()?,
        store_us: store_us.text()?.parse().ok()?,
    })
}

/// Returns the time in which a bucket of tokens fills; zero without one.
fn burst_us(rule: &Rule) -> i64 {
    rule.tokens.map_or(0, |tokens| tokens.burst_us())
}

fn shared_arguments(rule: &Rule) -> [i64; 4] {
    let breaker = rule.breaker;
    let [failures, within_us, open_us] =
        breaker.map_or([0; 3], |rule| [rule.failures, rule.within_us, rule.open_us]);
    let places = rule.concurrency.map_or(0, |rule| rule.limit);
    [failures, within_us, open_us, places]
}

/// Returns the rate, the distance of two requests, and the time by which a request of a burst may come early: the two as
/// whole microseconds and parts of one, because their product with the rate may not fit a double.
fn pace_arguments(rule: &Rule) -> [i64; 5] {
    let Some(rate) = rule.rate else { return [0; 5] };
    let early = i128::from(rate.burst - 1) * i128::from(rate.per_us);
    let limit = i128::from(rate.limit);
    let whole = i64::try_from(early / limit).unwrap_or(i64::MAX);
    let parts = i64::try_from(early % limit).unwrap_or_default();
    [
        rate.limit,
        rate.per_us / rate.limit,
        rate.per_us % rate.limit,
        whole,
        parts,
    ]
}
