//! Runs of nodes without effects on the threads of the server, without the lock of Python.
//!
//! A short run executes on the task of its connection. One that takes longer is stopped and starts again on a thread
//! for native runs, where later calls of that node begin until they are short again. Only outputs are answered from
//! here: every other outcome is left to Python, which runs the node again and explains it.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use vesper_interp::guard::guarded;
use vesper_interp::json::Worded;
use vesper_interp::words::{Ended, Express, Words};
use vesper_interp::{Limits, Path, Program, Room, Watch};
use vesper_ir::Value;
use vesper_ir::limits::ITEMS;

/// Maximum duration of a run on the task of its connection.
const MAX_INLINE_TIME: Duration = Duration::from_millis(1);
/// Maximum length of inputs that are read on the task of their connection.
const MAX_INLINE_BYTES: usize = 1 << 16;
/// Maximum fuel of a frameless run, which cannot be stopped: about a millisecond.
const MAX_FRAMELESS_FUEL: u64 = 32_768;
/// Calls on a thread for native runs after one that was too long, unless these are short.
const LONG_RUN_CALLS: u32 = 16;
/// Frames that a node keeps for its next runs.
const MAX_POOLED: usize = 4;

/// The start of the JSON of outputs.
const RETURNED: &str = "{\"kind\":\"returned\"";

/// The source of a node's program, and the decision which of its calls may run natively.
pub trait Engine: Send + Sync {
    fn program(&self) -> &Program;

    /// Returns true if the next call may run on the direct engine without comparison.
    fn admits(&self) -> bool {
        true
    }

    /// Returns true if outputs of some paths only may be answered.
    fn has_paths(&self) -> bool {
        false
    }

    /// Returns true if outputs of this path may be answered now.
    fn trusts(&self, _path: &Path) -> bool {
        true
    }

    /// Returns the maximum duration of a run.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// Counts the start and the end of a run, in memory that survives a crash.
    fn enter(&self) {}
    fn leave(&self) {}

    /// Counts a call that was answered.
    fn count_served(&self) {}
}

/// A node that can run natively.
pub struct NativeNode {
    engine: Box<dyn Engine>,
    json: OnceLock<Worded>,
    words: Mutex<Vec<Words<'static>>>,
    rooms: Mutex<Vec<Room>>,
    /// Calls that skip the task of their connection.
    long_calls: AtomicU32,
}

impl fmt::Debug for NativeNode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NativeNode")
            .field("node", &self.engine.program().node().node_id)
            .finish_non_exhaustive()
    }
}

/// The end of a native run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// The canonical outcome of a node that returned.
    Returned(Vec<u8>),
    /// Python serves the call.
    Declined,
    /// The run takes too long for the task of a connection.
    Long,
    /// The message of a panic.
    Fault(String),
}

thread_local! {
    /// Start of the run on this thread, from its first poll.
    static FIRST_POLL: Cell<Option<Instant>> = const { Cell::new(None) };
    static IS_STOPPED: Cell<bool> = const { Cell::new(false) };
}

/// Stops a run on the task of a connection that takes too long.
fn poll() -> bool {
    let now = Instant::now();
    let is_over = now.duration_since(FIRST_POLL.get().unwrap_or(now)) >= MAX_INLINE_TIME;
    FIRST_POLL.set(FIRST_POLL.get().or(Some(now)));
    IS_STOPPED.set(is_over);
    is_over
}

impl NativeNode {
    pub fn new(engine: Box<dyn Engine>) -> Self {
        Self {
            engine,
            json: OnceLock::new(),
            words: Mutex::default(),
            rooms: Mutex::default(),
            long_calls: AtomicU32::new(0),
        }
    }

    /// Runs JSON inputs on the task of a connection.
    pub(super) fn run_inline(&self, text: &[u8]) -> Ran {
        if !self.engine.admits() {
            return Ran::Declined;
        }
        if text.len() > MAX_INLINE_BYTES || self.long_calls.load(Ordering::Relaxed) > 0 {
            return Ran::Long;
        }
        FIRST_POLL.set(None);
        IS_STOPPED.set(false);
        let ran = self.run(
            text,
            Limits {
                watch: Some(Watch(poll)),
                ..Limits::default()
            },
        );
        if ran == Ran::Declined && IS_STOPPED.get() {
            self.long_calls.store(LONG_RUN_CALLS, Ordering::Relaxed);
            return Ran::Long;
        }
        ran
    }

    /// Runs JSON inputs on a thread for native runs, for at most `time`.
    pub(super) fn run_long(&self, text: &[u8], time: Option<Duration>) -> Ran {
        let begun = Instant::now();
        let time = [time, self.engine.time_limit()].into_iter().flatten().min();
        let ran = self.run(
            text,
            Limits {
                time,
                ..Limits::default()
            },
        );
        if begun.elapsed() < MAX_INLINE_TIME {
            // Two calls may count at a time; the number only has to reach zero soon.
            let left = self.long_calls.load(Ordering::Relaxed);
            self.long_calls.store(left.saturating_sub(1), Ordering::Relaxed);
        }
        ran
    }

    fn run(&self, text: &[u8], limits: Limits) -> Ran {
        self.engine.enter();
        let ran = guarded(|| {
            self.run_frameless(text)
                .or_else(|| self.run_in_frame(text, limits))
        });
        self.engine.leave();
        match ran {
            Ok(Some(outcome)) => {
                self.engine.count_served();
                Ran::Returned(outcome)
            }
            Ok(None) => Ran::Declined,
            Err(message) => Ran::Fault(message),
        }
    }

    fn run_frameless(&self, text: &[u8]) -> Option<Vec<u8>> {
        let program = self.engine.program();
        if !self.engine.has_paths() {
            return self.express(program.express()?, text, |has_outputs| {
                program.expressed(has_outputs);
            });
        }
        let form = program.pathed_form()?;
        self.express(form.express()?, text, |has_outputs| form.expressed(has_outputs))
    }

    /// Runs machine code without a frame, and reports to `tell` whether it produced outputs.
    fn express(&self, express: &dyn Express, text: &[u8], tell: impl FnOnce(bool)) -> Option<Vec<u8>> {
        if text.len() > MAX_INLINE_BYTES {
            return None;
        }
        let json = self
            .json
            .get_or_init(|| Worded::new(self.engine.program().node(), express.shape()));
        let mut words = match pooled(&self.words) {
            Some(words) => words.again(),
            None => Words::new(express.shape()),
        };
        let ended = match json.read(text, &mut words, ITEMS) {
            Some(_) => express.run(&mut words, MAX_FRAMELESS_FUEL),
            None => Ended::GaveUp,
        };
        let outcome = (ended == Ended::Done).then(|| {
            let mut out = Vec::with_capacity(256);
            json.write(&words, &mut out)?;
            let is_trusted = !self.engine.has_paths() || self.engine.trusts(&words.path());
            is_trusted.then_some(out)
        });
        if ended != Ended::TooLong {
            tell(ended == Ended::Done);
        }
        put_back(&self.words, words.again());
        outcome.flatten()
    }

    fn run_in_frame(&self, text: &[u8], limits: Limits) -> Option<Vec<u8>> {
        let program = self.engine.program();
        let has_paths = self.engine.has_paths();
        let trusts = |path: &Path| self.engine.trusts(path);
        let room = pooled(&self.rooms).or_else(|| {
            if has_paths {
                program.pathed_room()
            } else {
                program.room()
            }
        });
        if let Some(mut room) = room {
            let ran = if has_paths {
                program.run_json_trusted_in(&mut room, text, limits, trusts)
            } else {
                program.run_json_in(&mut room, text, limits).map(Some)
            };
            put_back(&self.rooms, room);
            if let Some(answer) = ran {
                return answer.and_then(returned);
            }
        }
        let now = program.uses_now().then(timestamp);
        if has_paths {
            program
                .run_json_trusted(text, now, limits, trusts)
                .map(String::into_bytes)
        } else {
            returned(program.run_json(text, now, limits))
        }
    }
}

fn returned(outcome: String) -> Option<Vec<u8>> {
    outcome.starts_with(RETURNED).then(|| outcome.into_bytes())
}

/// Returns the time of the system, the start time of a run.
fn timestamp() -> Value {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Value::Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn pooled<T>(pool: &Mutex<Vec<T>>) -> Option<T> {
    pool.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

fn put_back<T>(pool: &Mutex<Vec<T>>, spare: T) {
    let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
    if pool.len() < MAX_POOLED {
        pool.push(spare);
    }
}
