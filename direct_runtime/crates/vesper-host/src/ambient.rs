//! Performer of `clock_now`, `random_integer` and `uuid_new`.
//!
//! Completions are recorded like those of any other effect, so that a replay sees the same ones.

use std::fmt;
use std::future::ready;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};

use vesper_ir::{Effect, Value};

use crate::effect::{Ask, AttemptError, Failure, Pending, Performer};
use crate::sources::{Sources, SystemSources};

/// The last time that this process gave out by its own clock: two performers must not disagree about the order of
/// events.
static LAST_US: LazyLock<Arc<AtomicI64>> = LazyLock::new(Arc::default);

/// The clock, random numbers and unique names. Random bytes are those of the operating system: a forked process does
/// not repeat its parent's.
pub struct Ambient {
    sources: Arc<dyn Sources>,
    last_us: Arc<AtomicI64>,
}

impl fmt::Debug for Ambient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Ambient")
    }
}

impl Ambient {
    /// Creates a performer with the clock and the random bytes of the operating system.
    pub fn system() -> Self {
        Self {
            sources: SystemSources::shared(),
            last_us: Arc::clone(&LAST_US),
        }
    }

    /// Creates a performer with sources of its own: for tests.
    pub fn new(sources: Arc<dyn Sources>) -> Self {
        Self {
            sources,
            last_us: Arc::default(),
        }
    }

    fn value(&self, ask: Ask<'_>) -> Result<Value, Failure> {
        match ask.request.effect {
            Effect::ClockNow => Ok(Value::Timestamp(self.now_us())),
            Effect::RandomInteger => self.random_integer(integer(ask, "min")?, integer(ask, "max")?),
            Effect::UuidNew => self.uuid(),
            other => Err(Failure::new(
                "unavailable",
                format!("the machine does not perform {}", other.name()),
            )),
        }
    }

    /// Returns the time, which never goes back: it stands still until the clock of the machine has caught up.
    fn now_us(&self) -> i64 {
        let now = self.sources.now_us();
        self.last_us.fetch_max(now, Ordering::Relaxed).max(now)
    }

    fn random_integer(&self, least: i64, most: i64) -> Result<Value, Failure> {
        if least > most {
            return Err(Failure::new(
                "invalid_argument",
                format!(
                    "no integer is at least {} and at most {}",
                    signed(least),
                    signed(most)
                ),
            ));
        }
        let range = most.abs_diff(least);
        let mask = u64::MAX.checked_shr(range.leading_zeros()).unwrap_or(0);
        loop {
            // Drawing again keeps every number equally likely.
            let drawn = u64::from_be_bytes(self.bytes()?) & mask;
            if drawn <= range {
                return Ok(Value::Integer(least.wrapping_add_unsigned(drawn)));
            }
        }
    }

    fn uuid(&self) -> Result<Value, Failure> {
        let bits = u128::from_be_bytes(self.bytes()?);
        let bits = bits & !(0xf << 76) & !(0b11 << 62) | 0x4 << 76 | 0b10 << 62;
        let text = format!("{bits:032x}");
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
        Ok(Value::Text(Arc::from(parts.join("-"))))
    }

    fn bytes<const N: usize>(&self) -> Result<[u8; N], Failure> {
        let mut bytes = [0; N];
        let filled = self.sources.fill(&mut bytes);
        filled.map_err(|_| Failure::new("unavailable", "the operating system gives no random bytes"))?;
        Ok(bytes)
    }
}

impl Performer for Ambient {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        Box::pin(ready(self.value(ask).map_err(AttemptError::Failed)))
    }

    fn probe<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Option<Value>> {
        Box::pin(ready(Err(never_probed(ask).into())))
    }

    fn close(&self) {}
}

/// Returns the failure of a probe of an effect of class `read`.
pub(crate) fn never_probed(ask: Ask<'_>) -> Failure {
    let effect = ask.request.effect.name();
    Failure::new(
        "unavailable",
        format!("{effect} is of class `read`: it is done again, and never probed"),
    )
}

fn integer(ask: Ask<'_>, name: &str) -> Result<i64, Failure> {
    match ask.argument(name).map(|argument| &argument.value) {
        Some(Value::Integer(value)) => Ok(*value),
        _ => Err(Failure::new(
            "unavailable",
            format!("the argument `{name}` is no integer"),
        )),
    }
}

fn signed(number: i64) -> String {
    let digits = crate::messages::grouped(number.unsigned_abs());
    if number < 0 { format!("-{digits}") } else { digits }
}
