//! Limits of the server: its settings, and deadlines of connections.
//!
//! A connection stores its deadline as a number, and one timer of each thread looks at all of them: a request arms no
//! timer of its own.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::wire::MAX_HEADERS;

/// Time between two looks at the deadlines.
pub(super) const SWEEP_INTERVAL: Duration = Duration::from_millis(250);
/// No deadline.
const NEVER: u64 = u64::MAX;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    pub threads: usize,
    pub max_connections: usize,
    pub max_body_bytes: usize,
    /// Bytes of all bodies beyond `FREE_BODY_BYTES` of one.
    pub max_buffered_bytes: usize,
    pub max_head_bytes: usize,
    pub max_headers: usize,
    /// Time for a whole head, from its first byte, and for a handshake.
    pub head: Duration,
    /// Time for a body and for an answer, to which every received or sent byte adds `1 / min_bytes_per_second`.
    pub body: Duration,
    pub write: Duration,
    pub min_bytes_per_second: u64,
    pub idle: Duration,
    /// Calls that wait for a thread of Python.
    pub queue: usize,
    /// Threads for native runs that are not short, and how many runs may wait for them.
    pub native_threads: usize,
    pub native_queue: usize,
    /// Share of native requests without a sampled parent that `take_spans` returns.
    pub span_sample: f64,
    pub is_access_logged: bool,
    pub tls: Option<TlsSettings>,
}

/// The files of the certificates.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Authorities of client certificates; without them no client certificate is requested.
    pub client_authorities: Option<PathBuf>,
    pub is_client_required: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threads: 1,
            max_connections: 10_000,
            max_body_bytes: 1 << 20,
            max_buffered_bytes: 128 << 20,
            max_head_bytes: 16 << 10,
            max_headers: 100,
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            write: Duration::from_secs(30),
            min_bytes_per_second: 1_000,
            idle: Duration::from_secs(75),
            queue: 256,
            native_threads: 2,
            native_queue: 64,
            span_sample: 0.0,
            is_access_logged: false,
            tls: None,
        }
    }
}

impl Settings {
    /// Reads settings from a JSON object. Absent ones have their defaults; unknown ones are errors.
    pub fn of_json(text: &[u8]) -> Result<Self, String> {
        let value: Value =
            serde_json::from_slice(text).map_err(|error| format!("the settings are not JSON: {error}"))?;
        let mut fields = match value {
            Value::Object(fields) => Fields(fields),
            _ => return Err("the settings are not a JSON object".to_owned()),
        };
        let usual = Self::default();
        let found = Self {
            threads: fields.count("threads", usual.threads, 1..=64)?,
            max_connections: fields.count("max_connections", usual.max_connections, 1..=1 << 24)?,
            max_body_bytes: fields.count("max_body_bytes", usual.max_body_bytes, 0..=1 << 40)?,
            max_buffered_bytes: fields.count("max_buffered_bytes", usual.max_buffered_bytes, 0..=1 << 48)?,
            max_head_bytes: fields.count("max_head_bytes", usual.max_head_bytes, 256..=1 << 20)?,
            max_headers: fields.count("max_headers", usual.max_headers, 1..=MAX_HEADERS)?,
            head: fields.seconds("head_seconds", usual.head)?,
            body: fields.seconds("body_seconds", usual.body)?,
            write: fields.seconds("write_seconds", usual.write)?,
            min_bytes_per_second: fields.count("min_bytes_per_second", 1_000, 1..=1 << 30)? as u64,
            idle: fields.seconds("idle_seconds", usual.idle)?,
            queue: fields.count("queue", usual.queue, 1..=1 << 20)?,
            native_threads: fields.count("native_threads", usual.native_threads, 1..=256)?,
            native_queue: fields.count("native_queue", usual.native_queue, 0..=1 << 20)?,
            span_sample: fields.number("span_sample", 0.0, 1.0)?,
            is_access_logged: fields.flag("is_access_logged")?,
            tls: match fields.0.remove("tls") {
                None | Some(Value::Null) => None,
                Some(Value::Object(fields)) => Some(TlsSettings::of(Fields(fields))?),
                Some(_) => return Err("`tls` is not an object".to_owned()),
            },
        };
        fields.finish()?;
        Ok(found)
    }
}

impl TlsSettings {
    fn of(mut fields: Fields) -> Result<Self, String> {
        let required = |path: Option<PathBuf>, name: &str| path.ok_or(format!("`tls` has no `{name}`"));
        let found = Self {
            certificate: required(fields.path("certificate")?, "certificate")?,
            key: required(fields.path("key")?, "key")?,
            client_authorities: fields.path("client_authorities")?,
            is_client_required: fields.flag("is_client_required")?,
        };
        if found.is_client_required && found.client_authorities.is_none() {
            return Err("`is_client_required` needs `client_authorities`".to_owned());
        }
        fields.finish()?;
        Ok(found)
    }
}

/// The settings that were not read yet.
struct Fields(Map<String, Value>);

impl Fields {
    fn read<T>(
        &mut self,
        name: &str,
        usual: T,
        what: &str,
        of: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, String> {
        match self.0.remove(name) {
            None => Ok(usual),
            Some(given) => of(&given).ok_or_else(|| format!("`{name}` is {given}, which is not {what}")),
        }
    }

    fn count(
        &mut self,
        name: &str,
        usual: usize,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<usize, String> {
        let what = format!("a number from {} to {}", range.start(), range.end());
        self.read(name, usual, &what, |given| {
            given
                .as_u64()
                .and_then(|given| usize::try_from(given).ok())
                .filter(|given| range.contains(given))
        })
    }

    fn number(&mut self, name: &str, usual: f64, max: f64) -> Result<f64, String> {
        let what = format!("a number from 0 to {max}");
        self.read(name, usual, &what, |given| {
            given.as_f64().filter(|given| (0.0..=max).contains(given))
        })
    }

    fn seconds(&mut self, name: &str, usual: Duration) -> Result<Duration, String> {
        self.number(name, usual.as_secs_f64(), 1e9)
            .map(Duration::from_secs_f64)
    }

    fn flag(&mut self, name: &str) -> Result<bool, String> {
        self.read(name, false, "true or false", Value::as_bool)
    }

    fn path(&mut self, name: &str) -> Result<Option<PathBuf>, String> {
        self.read(name, None, "a path or null", |given| match given {
            Value::Null => Some(None),
            Value::String(path) => Some(Some(PathBuf::from(path))),
            _ => None,
        })
    }

    fn finish(self) -> Result<(), String> {
        match self.0.keys().next() {
            Some(name) => Err(format!("there is no setting `{name}`")),
            None => Ok(()),
        }
    }
}

/// The clock of the deadlines: milliseconds since the server was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    pub(super) fn at(self, instant: Instant) -> u64 {
        u64::try_from(instant.saturating_duration_since(self.0).as_millis()).unwrap_or(NEVER)
    }
}

/// The deadline of one connection, and its task.
#[derive(Debug)]
pub(super) struct Watched {
    deadline: AtomicU64,
    is_expired: AtomicBool,
    task: OnceLock<Waker>,
}

impl Watched {
    pub(super) fn new() -> Self {
        Self {
            deadline: AtomicU64::new(NEVER),
            is_expired: AtomicBool::new(false),
            task: OnceLock::new(),
        }
    }

    /// Sets the task to wake; its first call counts, because the waker of a task stays the same.
    pub(super) fn set_task(&self, waker: &Waker) {
        self.task.get_or_init(|| waker.clone());
    }

    pub(super) fn set(&self, deadline: u64) {
        self.deadline.store(deadline, Ordering::Relaxed);
        self.is_expired.store(false, Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        self.set(NEVER);
    }

    pub(super) fn is_expired(&self) -> bool {
        self.is_expired.load(Ordering::Relaxed)
    }

    pub(super) fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }

    /// Wakes the task if its deadline has passed.
    pub(super) fn sweep(&self, now: u64) {
        if self.deadline.load(Ordering::Relaxed) <= now && !self.is_expired.swap(true, Ordering::Relaxed) {
            self.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_with_defaults_and_refused_by_name() {
        let read = |text: &str| Settings::of_json(text.as_bytes());
        let found = read(r#"{"queue": 3, "idle_seconds": 0.5, "tls": {"certificate": "a", "key": "b"}}"#);
        assert!(found.is_ok_and(|found| {
            (found.queue, found.idle, found.threads) == (3, Duration::from_millis(500), 1)
                && found.tls.is_some()
        }));
        for (text, name) in [
            (r#"{"quue": 3}"#, "`quue`"),
            (r#"{"queue": 0}"#, "`queue` is 0"),
            (r#"{"idle_seconds": -1}"#, "`idle_seconds`"),
            (r#"{"tls": {"key": "a"}}"#, "`certificate`"),
            (
                r#"{"tls": {"key": "a", "certificate": "a", "is_client_required": true}}"#,
                "client_authorities",
            ),
            ("[]", "object"),
        ] {
            assert!(read(text).is_err_and(|why| why.contains(name)), "{text}");
        }
    }
}
