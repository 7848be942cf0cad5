//! Time, random bytes and kill points: everything that a test replaces to repeat a run byte for byte.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom, SystemRandom};

/// Source of time and of random bytes.
pub trait Sources: Send + Sync {
    /// Returns the time in nanoseconds since 1970.
    fn now_ns(&self) -> i64;

    /// Fills the buffer with random bytes that cannot be guessed.
    fn fill(&self, buffer: &mut [u8]) -> Result<(), NoRandomness>;

    /// Returns the time in microseconds since 1970.
    fn now_us(&self) -> i64 {
        self.now_ns() / 1000
    }

    /// Returns microseconds of a clock that never goes back, since a moment of this process.
    fn monotonic_us(&self) -> i64 {
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        let since = BEGAN.get_or_init(Instant::now).elapsed();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    /// Returns the factor of the waits between attempts; 0 skips them, in tests.
    fn wait_scale(&self) -> f64 {
        1.0
    }

    /// Returns the factor of the timeouts of attempts, in tests.
    fn timeout_scale(&self) -> f64 {
        1.0
    }
}

/// Failure of the operating system to give random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRandomness;

/// The clock and the random bytes of the operating system.
#[derive(Debug)]
pub struct SystemSources {
    random: SystemRandom,
}

impl SystemSources {
    pub fn shared() -> Arc<dyn Sources> {
        Arc::new(Self {
            random: SystemRandom::new(),
        })
    }
}

impl Sources for SystemSources {
    fn now_ns(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    fn fill(&self, buffer: &mut [u8]) -> Result<(), NoRandomness> {
        self.random.fill(buffer).map_err(|_| NoRandomness)
    }
}

/// Place and number of the passage at which the process kills itself.
struct Death {
    place: String,
    passage: u64,
    passed: AtomicU64,
}

static DEATH: OnceLock<Option<Death>> = OnceLock::new();

/// Ends the process at once, without any destructor, where `VESPER_DIE_AT` names this place (`PLACE`, or `PLACE:N` for the N-th passage).
///
/// docs/how-to/test-recovery.md lists the places. Tests of recovery use them; without the variable a passage costs one load.
pub fn kill_point(place: &str) {
    let Some(death) = DEATH.get_or_init(configured_death) else {
        return;
    };
    if death.place == place && death.passed.fetch_add(1, Ordering::Relaxed) + 1 == death.passage {
        // SIGKILL leaves no way back: nothing is flushed, closed or rolled back, and no handler runs.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

fn configured_death() -> Option<Death> {
    let text = std::env::var("VESPER_DIE_AT").ok()?;
    let (place, passage) = text.rsplit_once(':').unwrap_or((&text, "1"));
    Some(Death {
        place: place.to_owned(),
        passage: passage.parse().unwrap_or(1),
        passed: AtomicU64::new(0),
    })
}
