//! Ledgers in Redis: one script is one decision, by the clock of Redis. It decides as `ledger` does; a test compares the
//! two.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::amounts::{Amounts, Resource};
use super::ledger::{Event, MIN_TIME_US, Notice, NoticeKind, Outcome, Refusal, Standing};
use super::limits::Budget;
use super::state::StoreError;
use crate::policy::redis_script::Script;
use crate::resp::{Address, Client, Reply, RespError, Word};

/// Units of money in a millionth of a dollar. A Lua number is exact up to 2^53, hence money is two of them.
const PARTS: u128 = 1_000_000;
/// The budgets of one decision lie in one slot of a cluster.
const TAG: &str = "{budgets}";

static STEP: LazyLock<Script> = LazyLock::new(|| {
    let body = include_str!("../redis/budget.lua");
    Script::new(format!("local PARTS, MIN_TIME = {PARTS}, {MIN_TIME_US}\n{body}"))
});
static READ: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../redis/budget_read.lua").to_owned()));

/// Budgets that all processes with the same Redis share.
pub struct RedisBudgets {
    client: Client,
    prefix: String,
    /// Time for scripts in place of that of Redis, in microseconds: for tests.
    clock: Option<Box<dyn Fn() -> i64 + Send + Sync>>,
}

impl fmt::Debug for RedisBudgets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisBudgets({})", self.client.address())
    }
}

impl From<RespError> for StoreError {
    /// Leaves the message out: it may hold an address with a password.
    fn from(error: RespError) -> Self {
        Self(format!("the Redis of budgets cannot be asked ({})", error.class))
    }
}

impl RedisBudgets {
    pub fn new(
        address: Address,
        prefix: String,
        timeout: Duration,
        clock: Option<Box<dyn Fn() -> i64 + Send + Sync>>,
    ) -> Self {
        Self {
            client: Client::new(address, timeout),
            prefix,
            clock,
        }
    }

    pub async fn apply(
        &self,
        budgets: &[Budget],
        asker: &Arc<str>,
        event: Event,
    ) -> Result<Outcome, StoreError> {
        let keys = self.keys(budgets.iter().map(|each| &each.key));
        let mut words: Vec<Word<'_>> = keys.iter().map(|key| Word::Text(key)).collect();
        let (operation, amounts, is_timed, lease_us) = match event {
            Event::Reserve {
                worst,
                is_timed,
                lease_us,
            } => ("reserve", worst, is_timed, lease_us),
            Event::Settle(actual) => ("settle", actual, true, 0),
            Event::Release => ("release", Amounts::default(), true, 0),
        };
        words.extend([
            Word::Text(operation),
            Word::Text(asker),
            self.clock(),
            Word::Number(lease_us),
        ]);
        words.extend(Resource::ALL.into_iter().flat_map(|resource| {
            let is_bound = resource != Resource::Time || is_timed;
            numbers(resource, is_bound.then(|| amounts.of(resource)))
        }));
        for budget in budgets {
            let limit = &budget.limit;
            words.extend(
                Resource::ALL
                    .into_iter()
                    .flat_map(|resource| numbers(resource, limit.of(resource))),
            );
            words.extend(
                Resource::ALL
                    .into_iter()
                    .flat_map(|resource| numbers(resource, limit.alert_at(resource))),
            );
            words.push(Word::Text(limit.on_exceeded.name()));
            words.push(Word::Number(
                budget
                    .kept_us
                    .map_or(0, |kept_us| kept_us / 1000 + lease_us / 1000),
            ));
        }
        let reply = STEP.run(&self.client, keys.len(), words).await?;
        read_outcome(&reply).ok_or_else(misread)
    }

    pub async fn read(&self, keys: &[Arc<str>]) -> Result<Vec<Standing>, StoreError> {
        let keys = self.keys(keys.iter());
        let mut words: Vec<Word<'_>> = keys.iter().map(|key| Word::Text(key)).collect();
        words.push(self.clock());
        let reply = READ.run(&self.client, keys.len(), words).await?;
        read_standings(&reply, keys.len() / 2).ok_or_else(misread)
    }

    pub async fn forget(&self, keys: &[Arc<str>]) -> Result<(), StoreError> {
        let keys = self.keys(keys.iter());
        let mut command = vec![Word::Text("DEL")];
        command.extend(keys.iter().map(|key| Word::Text(key)));
        self.client.run_repeatable(&[command]).await?;
        Ok(())
    }

    pub fn close(&self) {
        self.client.close();
    }

    fn keys<'a>(&self, keys: impl Iterator<Item = &'a Arc<str>>) -> Vec<String> {
        let named = |key: &Arc<str>| format!("{}{TAG}:{key}", self.prefix);
        keys.flat_map(|key| [named(key), format!("{}:leases", named(key))])
            .collect()
    }

    fn clock<'a>(&self) -> Word<'a> {
        let clock = self.clock.as_ref();
        clock.map_or(Word::Text(""), |clock| Word::Number(clock()))
    }
}

/// Returns an amount as the numbers of a script: money as two, without an amount -1 at the first place.
fn numbers<'a>(resource: Resource, amount: Option<u128>) -> Vec<Word<'a>> {
    let number = |value: u128| Word::Number(i64::try_from(value).unwrap_or(i64::MAX));
    match (resource, amount) {
        (Resource::Usd, Some(amount)) => vec![number(amount / PARTS), number(amount % PARTS)],
        (Resource::Usd, None) => vec![Word::Number(-1), Word::Number(0)],
        (_, Some(amount)) => vec![number(amount)],
        (_, None) => vec![Word::Number(-1)],
    }
}

fn misread() -> StoreError {
    StoreError(String::from(
        "the Redis of budgets gave another reply than its script",
    ))
}

fn read_outcome(reply: &Reply) -> Option<Outcome> {
    let Reply::Array(parts) = reply else { return None };
    let [refusal, time, notices] = parts.as_slice() else {
        return None;
    };
    let refusal = match refusal {
        Reply::Array(parts) => Some(read_refusal(parts)?),
        _ => None,
    };
    let notices = notices.text()?.split(';').filter(|text| !text.is_empty());
    let read_notice = |text: &str| {
        let mut words = text.split(' ');
        Some(Notice {
            place: words.next()?.parse().ok()?,
            kind: NoticeKind::from_name(words.next()?)?,
            resource: Resource::from_name(words.next()?)?,
        })
    };
    Some(Outcome {
        refusal,
        time_us: time.text()?.parse().ok(), // -1 is none
        notices: notices.map(read_notice).collect::<Option<_>>()?,
    })
}

fn read_refusal(parts: &[Reply]) -> Option<Refusal> {
    let [place, resource, left, left_parts] = parts else {
        return None;
    };
    let resource = Resource::from_name(resource.text()?)?;
    let number = |reply: &Reply| reply.text()?.parse::<u128>().ok();
    let left = if resource == Resource::Usd {
        number(left)? * PARTS + number(left_parts)?
    } else {
        number(left)?
    };
    Some(Refusal {
        place: place.text()?.parse().ok()?,
        resource,
        left,
    })
}

fn read_standings(reply: &Reply, count: usize) -> Option<Vec<Standing>> {
    let Reply::Array(parts) = reply else { return None };
    let mut parts = parts.iter();
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        let next = |parts: &mut std::slice::Iter<'_, Reply>| {
            let texts: Option<Vec<&str>> = parts.by_ref().take(5).map(Reply::text).collect();
            read_amounts(texts?.into_iter())
        };
        let mut standing = Standing {
            used: next(&mut parts)?,
            reserved: next(&mut parts)?,
        };
        let over: usize = parts.next()?.text()?.parse().ok()?;
        for _ in 0..over {
            let claim = read_amounts(parts.next()?.text()?.split(' '))?;
            standing.used = standing.used.plus(&claim);
            standing.reserved = standing.reserved.minus(&claim);
        }
        found.push(standing);
    }
    Some(found)
}

fn read_amounts<'a>(words: impl Iterator<Item = &'a str>) -> Option<Amounts> {
    let numbers: Option<Vec<u128>> = words.map(|word| word.parse().ok()).collect();
    let [money, parts, tokens, calls, time_us] = numbers?.try_into().ok()?;
    Some(Amounts {
        usd: money * PARTS + parts,
        tokens,
        calls,
        time_us,
    })
}
