//! Tiering: decides when a form is compiled to machine code, and when it returns to the interpreter.
//!
//! Each form that can become machine code (plain or pathed, of a node or its callees) has a `Tier` that counts calls
//! and fuel. At a threshold the form goes to the compiler thread of the process (`worker`). The result is stored in a
//! cell that is set once, so a call reads two words of memory and takes no lock.
//!
//! Afterwards some calls run on both tiers and are timed (`monitor`). Code that is slower than the interpreter rests
//! for a number of calls. Most calls of a node without effects need no frame (`frameless`); those runs are timed and
//! rest separately. Tiers hold no reference that keeps a dropped program alive.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use crate::bytecode::{Code, Instruction};
use crate::guard::guarded;
use crate::observe::marks::Marks;
use crate::run::frame::Frame;
use crate::run::meter::Meter;
use crate::run::{Fault, Outcome, Stop, execute};
use crate::tier::native::Native;
use crate::tier::words::{Express, Scales, Shape};

mod frameless;
mod monitor;
pub mod native;
mod trial;
mod variants;
pub mod words;
mod worker;

use frameless::Probe;
use monitor::{Monitor, Verdict};
use trial::Trial;
use variants::Variants;
pub use worker::{after_fork_in_child, after_fork_in_parent, before_fork};

/// Compiles bytecode to machine code. A crate above this one implements it.
pub trait Compiler: Debug + Send + Sync {
    /// Compiles a form, or returns why it cannot. With a shape the result can also run without a frame.
    fn compile(&self, code: &Code, shape: Option<Arc<Shape>>) -> Result<Box<dyn Native>, String>;

    /// Compiles only the frameless function, for inputs whose decimals have these scales.
    fn compile_scaled(
        &self,
        code: &Code,
        shape: &Arc<Shape>,
        scales: &Scales,
    ) -> Result<Box<dyn Express>, String> {
        let _ = (code, shape, scales);
        Err("this compiler makes no code for known scales".to_owned())
    }
}

/// The compilation policy for all forms of a program.
#[derive(Debug)]
pub struct Tiering {
    pub compiler: Box<dyn Compiler>,
    /// True if loading a program compiles it at once and machine code never rests; for tests.
    pub is_eager: bool,
    /// The number of calls that makes a form hot.
    pub calls: u32,
    /// The units of fuel that make a form hot.
    pub operations: u64,
    /// The maximum bytes of machine code in the process.
    pub max_bytes: usize,
    /// Returns nanoseconds since a fixed time.
    pub clock: fn() -> u64,
}

/// Compilation counters of the process. The first three include dropped programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    pub compiled: u64,
    pub refused: u64,
    /// Nanoseconds spent compiling.
    pub nanoseconds: u64,
    /// Bytes of machine code currently held.
    pub bytes: usize,
}

static COMPILED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
static COMPILE_NANOSECONDS: AtomicU64 = AtomicU64::new(0);
static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

pub fn counters() -> Counters {
    Counters {
        compiled: COMPILED.load(Ordering::Relaxed),
        refused: REFUSED.load(Ordering::Relaxed),
        nanoseconds: COMPILE_NANOSECONDS.load(Ordering::Relaxed),
        bytes: HELD_BYTES.load(Ordering::Relaxed),
    }
}

/// The compilation stage of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The program has no tiering.
    Off,
    Cold,
    Queued,
    Installed,
    /// Slower than the interpreter; retried later.
    Resting,
    /// Not compilable, with the reason.
    Refused(String),
}

/// The state of a form, for reports.
#[derive(Clone, Debug)]
pub struct Report {
    pub stage: Stage,
    /// Bytes of machine code.
    pub bytes: usize,
    /// The number of guards in the machine code.
    pub guards: u32,
    /// The number of entries into machine code.
    pub entered: u64,
    /// The number of entries that a guard ended early.
    pub exits: u64,
    /// The number of frameless runs that produced outputs.
    pub expressed: u64,
    /// The number of additional functions for known scales.
    pub variants: usize,
    /// The number of rests.
    pub rests: u32,
}

/// Machine code and the bytes it accounts for.
#[derive(Debug)]
struct InstalledCode {
    native: Arc<dyn Native>,
    bytes: usize,
    /// The timed frameless function, if there is one.
    probe: Option<Probe>,
}

impl Drop for InstalledCode {
    fn drop(&mut self) {
        HELD_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A form that can be compiled to machine code.
pub(crate) trait Hot: Send + Sync {
    /// Compiles the form and installs the result.
    fn make(&self);
}

/// The call count of a form that is not sampled.
const NEVER: u32 = u32::MAX;
/// Calls until a form refused for lack of memory is retried.
const FULL_RETRY_CALLS: u32 = 10_000;
const CODE_LIMIT_HIT: &str = "the process holds as much machine code as it may (max_code_mb)";

/// The tier state of one form of a node.
#[derive(Debug)]
pub(crate) struct Tier {
    tiering: Option<Arc<Tiering>>,
    made: OnceLock<InstalledCode>,
    /// True while calls enter the machine code.
    enters: AtomicBool,
    /// Calls until the next sample. Concurrent threads may lose a count, which is harmless.
    left: AtomicU32,
    operations: AtomicU64,
    entered: AtomicU64,
    exits: AtomicU64,
    /// The number of frameless runs that produced outputs.
    expressed: AtomicU64,
    /// Rises when a frameless run gives up and falls when it succeeds. Above a bound, the number of calls that
    /// frameless runs rest.
    misses: AtomicU32,
    /// Frameless functions for inputs of known scales.
    variants: Variants,
    /// Read only by sampled calls.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// The monitors of framed and frameless runs, which rest separately.
    framed: Monitor,
    frameless: Monitor,
    rests: u32,
}

/// How a sampled call is run.
enum Sample {
    /// Like any other call.
    Skip,
    /// On both tiers, one after the other.
    Both,
    /// On the interpreter, to compare with this many nanoseconds of a frameless run.
    Interpreter(u64),
}

impl Tier {
    pub(crate) fn new(tiering: Option<Arc<Tiering>>) -> Self {
        let stage = if tiering.is_some() {
            Stage::Cold
        } else {
            Stage::Off
        };
        Self {
            left: AtomicU32::new(tiering.as_ref().map_or(NEVER, |tiering| tiering.calls)),
            tiering,
            made: OnceLock::new(),
            enters: AtomicBool::new(false),
            operations: AtomicU64::new(0),
            entered: AtomicU64::new(0),
            exits: AtomicU64::new(0),
            expressed: AtomicU64::new(0),
            misses: AtomicU32::new(0),
            variants: Variants::default(),
            state: Mutex::new(State {
                stage,
                framed: Monitor::new(),
                frameless: Monitor::new(),
                rests: 0,
            }),
        }
    }

    pub(crate) fn report(&self) -> Report {
        let state = self.state();
        let known = state.as_deref();
        Report {
            stage: known.map_or(Stage::Queued, |state| state.stage.clone()),
            bytes: self.made.get().map_or(0, |made| made.bytes) + self.variants.bytes(),
            variants: self.variants.count(),
            guards: self.made.get().map_or(0, |made| made.native.guards()),
            entered: (self.entered.load(Ordering::Relaxed))
                .wrapping_add(self.expressed.load(Ordering::Relaxed)),
            exits: self.exits.load(Ordering::Relaxed),
            expressed: self.expressed.load(Ordering::Relaxed),
            rests: known.map_or(0, |state| state.rests),
        }
    }

    /// Locks the state for a few instructions, or returns `None`. A process forked while another thread held the lock
    /// finds it locked forever; the form then keeps its stage.
    fn state(&self) -> Option<MutexGuard<'_, State>> {
        worker::lock_soon(&self.state)
    }

    /// Compiles the form at load time if the tiering is eager.
    pub(crate) fn compile_if_eager(&self, code: &Code, shape: impl FnOnce() -> Option<Arc<Shape>>) {
        if self.tiering.as_ref().is_some_and(|tiering| tiering.is_eager) {
            self.make(code, shape());
        }
    }

    /// Runs the code from the current instruction of its frame; `of` owns this tier.
    #[inline]
    pub(crate) fn run<H: Hot + 'static>(
        &self,
        of: &Arc<H>,
        code: &Code,
        frame: &mut Frame,
        marks: &mut Marks,
        meter: &mut Meter,
    ) -> Result<Stop, Fault> {
        let Some(tiering) = &self.tiering else {
            return execute(code, frame, marks, meter);
        };
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return self.run_sampled(tiering, of, code, frame, marks, meter);
        }
        if self.enters.load(Ordering::Acquire)
            && let Some(made) = self.made.get()
        {
            self.left.store(left - 1, Ordering::Relaxed);
            self.enter(made, code, frame, meter)?;
            return execute(code, frame, marks, meter);
        }
        // No counting while the form is queued: the compiler thread sets the next count.
        if left != NEVER {
            self.left.store(left - 1, Ordering::Relaxed);
        }
        let before = meter.spent();
        let stop = execute(code, frame, marks, meter);
        let spent = meter.spent() - before;
        if spent > 0 {
            self.count_fuel(tiering, of, spent);
        }
        stop
    }

    #[inline]
    fn enter(
        &self,
        made: &InstalledCode,
        code: &Code,
        frame: &mut Frame,
        meter: &mut Meter,
    ) -> Result<(), Fault> {
        made.native.enter(frame, meter)?;
        count(&self.entered);
        // Requests and calls always belong to the interpreter; any other stop is a guard.
        if let Some(instruction) = code.instructions.get(frame.next)
            && !matches!(
                instruction,
                Instruction::Request { .. } | Instruction::CallNode { .. }
            )
        {
            count(&self.exits);
        }
        Ok(())
    }

    /// Counts the fuel of an interpreted run. A few long runs make a form hot, as many calls do.
    fn count_fuel<H: Hot + 'static>(&self, tiering: &Tiering, of: &Arc<H>, units: u64) {
        let before = self.operations.load(Ordering::Relaxed);
        if before >= tiering.operations {
            return;
        }
        let sum = before.saturating_add(units);
        self.operations.store(sum, Ordering::Relaxed);
        if sum >= tiering.operations {
            let state = self.state();
            if let Some(mut state) = state.filter(|state| state.stage == Stage::Cold) {
                self.queue(tiering, of, &mut state);
            }
        }
    }

    fn queue<H: Hot + 'static>(&self, tiering: &Tiering, of: &Arc<H>, state: &mut State) {
        let weak: Weak<H> = Arc::downgrade(of);
        if worker::push(weak) {
            state.stage = Stage::Queued;
            self.left.store(NEVER, Ordering::Relaxed);
        } else {
            // No thread could be started. A later call retries.
            self.left.store(tiering.calls.max(1), Ordering::Relaxed);
        }
    }

    /// Runs a sampled call.
    #[cold]
    fn run_sampled<H: Hot + 'static>(
        &self,
        tiering: &Tiering,
        of: &Arc<H>,
        code: &Code,
        frame: &mut Frame,
        marks: &mut Marks,
        meter: &mut Meter,
    ) -> Result<Stop, Fault> {
        let sample = self.choose_sample(tiering, of);
        let made = self.made.get().filter(|_| self.enters.load(Ordering::Acquire));
        match (sample, made) {
            // Only a complete run is comparable.
            (Sample::Both, Some(made)) if frame.next == 0 => {
                self.run_both(tiering, made, code, frame, marks, meter)
            }
            (Sample::Interpreter(machine), _) if frame.next == 0 => {
                self.run_interpreter_sample(tiering, machine, code, frame, marks, meter)
            }
            (_, Some(made)) => {
                self.enter(made, code, frame, meter)?;
                execute(code, frame, marks, meter)
            }
            (_, None) => execute(code, frame, marks, meter),
        }
    }

    /// Runs machine code, then the interpreter on a copy of the same inputs. A run that stops for a request or does
    /// not return is not repeated.
    fn run_both(
        &self,
        tiering: &Tiering,
        made: &InstalledCode,
        code: &Code,
        frame: &mut Frame,
        marks: &mut Marks,
        meter: &mut Meter,
    ) -> Result<Stop, Fault> {
        let (copy, copied) = (frame.clone(), meter.clone());
        let begun = (tiering.clock)();
        self.enter(made, code, frame, meter)?;
        let stop = execute(code, frame, marks, meter)?;
        if let Stop::Ended(Outcome::Returned(_)) = &stop {
            let machine = (tiering.clock)().saturating_sub(begun);
            let trial = Trial::of(tiering, machine, code, copy, &copied)?;
            if let Some(interpreter) = trial.took {
                self.judge_framed(machine, interpreter);
            }
        }
        Ok(stop)
    }

    /// Runs the interpreter on inputs that a frameless run has timed. If it takes much longer, it is aborted and
    /// machine code runs instead.
    fn run_interpreter_sample(
        &self,
        tiering: &Tiering,
        machine: u64,
        code: &Code,
        frame: &mut Frame,
        marks: &mut Marks,
        meter: &mut Meter,
    ) -> Result<Stop, Fault> {
        // The time of the copy does not count.
        meter.stop_clock();
        let trial = Trial::of(tiering, machine, code, frame.clone(), meter)?;
        meter.start_clock();
        if let Some(interpreter) = trial.took {
            self.judge_frameless(machine, interpreter);
        }
        // A hit limit may be that of the trial, so the run is repeated.
        if !matches!(trial.stop, Stop::Ended(Outcome::LimitHit(_))) {
            (*frame, *meter) = (trial.frame, trial.meter);
            return Ok(trial.stop);
        }
        if let Some(made) = self.made.get().filter(|_| self.enters.load(Ordering::Acquire)) {
            self.enter(made, code, frame, meter)?;
        }
        execute(code, frame, marks, meter)
    }

    /// Chooses how to run a sampled call and sets the next sample.
    fn choose_sample<H: Hot + 'static>(&self, tiering: &Tiering, of: &Arc<H>) -> Sample {
        self.left.store(NEVER, Ordering::Relaxed);
        let probed = self.made.get().and_then(|made| made.probe.as_ref()?.take());
        let Some(mut state) = self.state() else {
            return Sample::Skip;
        };
        match state.stage {
            Stage::Refused(ref why) if why != CODE_LIMIT_HIT => Sample::Skip,
            // Memory may be free by now.
            Stage::Cold | Stage::Refused(_) => {
                self.queue(tiering, of, &mut state);
                Sample::Skip
            }
            Stage::Resting => {
                state.stage = Stage::Installed;
                state.framed = Monitor::new();
                self.left.store(state.framed.interval(), Ordering::Relaxed);
                self.enters.store(true, Ordering::Release);
                Sample::Skip
            }
            Stage::Installed if !tiering.is_eager => {
                let (every, sample) = match probed {
                    Some(took) => (state.frameless.interval(), Sample::Interpreter(took)),
                    None => (state.framed.interval(), Sample::Both),
                };
                self.left.store(every, Ordering::Relaxed);
                sample
            }
            Stage::Installed | Stage::Queued | Stage::Off => Sample::Skip,
        }
    }

    /// Compares the times of a framed run on both tiers.
    fn judge_framed(&self, machine: u64, interpreter: u64) {
        let Some(mut state) = self.state() else {
            return;
        };
        if state.stage == Stage::Installed && state.framed.record(machine, interpreter) == Verdict::Slower {
            self.enters.store(false, Ordering::Release);
            state.stage = Stage::Resting;
            self.left
                .store(monitor::rest_calls(state.rests), Ordering::Relaxed);
            state.rests = state.rests.saturating_add(1);
        }
    }

    /// Compiles the form of this tier.
    pub(crate) fn make(&self, code: &Code, shape: Option<Arc<Shape>>) {
        let Some(tiering) = &self.tiering else {
            return;
        };
        let begun = (tiering.clock)();
        let made = compile_form(tiering, code, shape);
        COMPILE_NANOSECONDS.fetch_add((tiering.clock)().saturating_sub(begun), Ordering::Relaxed);
        let Some(mut state) = self.state() else {
            return;
        };
        match made {
            Ok(made) => {
                COMPILED.fetch_add(1, Ordering::Relaxed);
                let every = if tiering.is_eager {
                    NEVER
                } else {
                    state.framed.interval()
                };
                // INVARIANT: set before the code, because calls that find the code count down.
                self.left.store(every, Ordering::Relaxed);
                // The cell is empty: only the queued form is compiled, and only once.
                let _ = self.made.set(made);
                state.stage = Stage::Installed;
                self.enters.store(true, Ordering::Release);
            }
            Err(why) => {
                REFUSED.fetch_add(1, Ordering::Relaxed);
                let left = if why == CODE_LIMIT_HIT {
                    FULL_RETRY_CALLS
                } else {
                    NEVER
                };
                state.stage = Stage::Refused(why);
                self.left.store(left, Ordering::Relaxed);
            }
        }
    }
}

fn compile_form(tiering: &Tiering, code: &Code, shape: Option<Arc<Shape>>) -> Result<InstalledCode, String> {
    if HELD_BYTES.load(Ordering::Relaxed) >= tiering.max_bytes {
        return Err(CODE_LIMIT_HIT.to_owned());
    }
    let native = guarded(|| tiering.compiler.compile(code, shape))
        .map_err(|message| format!("a fault of the compiler: {message}"))??;
    let bytes = native.size();
    // Counted from here on; dropping the code returns the bytes.
    let held = HELD_BYTES
        .fetch_add(bytes, Ordering::Relaxed)
        .saturating_add(bytes);
    let native: Arc<dyn Native> = Arc::from(native);
    let probe = Probe::of(&native, tiering);
    let made = InstalledCode { native, bytes, probe };
    if held > tiering.max_bytes {
        return Err(CODE_LIMIT_HIT.to_owned());
    }
    Ok(made)
}

/// Increments a reporting counter without an atomic update. Concurrent threads may lose a count.
#[inline]
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
