//! When machine code is made of a form of a node, by whom, and how runs go back to the interpreter.
//!
//! Every form that may become machine code (the plain one of a node and of those it calls, and the pathed one) has a
//! `Tier`. It counts calls and fuel; at a threshold the form is handed to the one thread of the process that compiles
//! (`worker`), and what comes back is put into a cell that is set once, so that a call looks at two words of memory and
//! takes no lock. From then on some calls are run on both sides and timed (`monitor`); code that turns out slower than the
//! interpreter rests for a while. Most calls of a node without effects need no frame (`frameless`): that way is timed and
//! rests by itself. A program that is dropped is not kept by any of this.

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

/// Makes machine code. The crate that can is above this one.
pub trait Compiler: Debug + Send + Sync {
    /// Machine code of a form, or why there is none.
    /// With a shape it is of a whole node that may be run without a frame too.
    fn compile(&self, code: &Code, shape: Option<Arc<Shape>>) -> Result<Box<dyn Native>, String>;

    /// The way without a frame alone, for inputs whose decimals have these scales; or why there is none.
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

/// When machine code is made, for all forms of a program.
#[derive(Debug)]
pub struct Tiering {
    pub compiler: Box<dyn Compiler>,
    /// True where it is made when a program is loaded, by who loads it, and is never left again: for tests.
    pub is_eager: bool,
    /// So many calls make a form hot,
    pub calls: u32,
    /// or so many units of fuel.
    pub operations: u64,
    /// How many bytes of machine code the process may hold.
    pub max_bytes: usize,
    /// Nanoseconds since some time.
    pub clock: fn() -> u64,
}

/// What the process has made so far. Programs that are gone count in the first three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    pub compiled: u64,
    pub refused: u64,
    /// Nanoseconds of compiling.
    pub nanoseconds: u64,
    /// Bytes of machine code that are held now.
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

/// Where a form is on its way to machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing is made of it: nobody said that anything should be.
    Off,
    Cold,
    Queued,
    Installed,
    /// It is slower than the interpreter, and is tried again later.
    Resting,
    /// There is no machine code of it, and why.
    Refused(String),
}

/// What there is to say of a form.
#[derive(Clone, Debug)]
pub struct Report {
    pub stage: Stage,
    /// Of machine code.
    pub bytes: usize,
    /// How many guards it has.
    pub guards: u32,
    /// How often machine code was entered,
    pub entered: u64,
    /// and how often it left what it could have done to the interpreter.
    pub exits: u64,
    /// How many of those runs were without a frame, and gave outputs.
    pub expressed: u64,
    /// How many functions there are besides for inputs of known scales.
    pub variants: usize,
    /// How often it was put to rest.
    pub rests: u32,
}

/// Machine code, and its share of what the process holds.
#[derive(Debug)]
struct InstalledCode {
    native: Arc<dyn Native>,
    bytes: usize,
    /// The same without a frame, timed; nothing where it has no such way.
    probe: Option<Probe>,
}

impl Drop for InstalledCode {
    fn drop(&mut self) {
        HELD_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A form of a node that machine code may be made of.
pub(crate) trait Hot: Send + Sync {
    /// Makes machine code of it, and installs that.
    fn make(&self);
}

/// For a code that nothing more is asked about.
const NEVER: u32 = u32::MAX;
/// Code that found no room is tried again after so many calls.
const FULL_RETRY_CALLS: u32 = 10_000;
const CODE_LIMIT_HIT: &str = "the process holds as much machine code as it may (max_code_mb)";

/// How one form of a node is run.
#[derive(Debug)]
pub(crate) struct Tier {
    tiering: Option<Arc<Tiering>>,
    made: OnceLock<InstalledCode>,
    /// True while calls enter what was made.
    enters: AtomicBool,
    /// So many calls until somebody looks. Threads that count at once may lose one: it is no promise.
    left: AtomicU32,
    operations: AtomicU64,
    entered: AtomicU64,
    exits: AtomicU64,
    /// How often a run without a frame gave outputs.
    expressed: AtomicU64,
    /// Grows where a run without a frame gave up, and shrinks where it did not. Above a bound that way rests, and this
    /// says for how many calls.
    misses: AtomicU32,
    /// The way without a frame for inputs of which more is known.
    variants: Variants,
    /// Only for who looks, which few calls do.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// Of runs with a frame, and of runs without: each way rests by itself.
    framed: Monitor,
    frameless: Monitor,
    rests: u32,
}

/// What is done with a call at which somebody looks.
enum Sample {
    /// Nothing besides.
    Skip,
    /// It is run on both sides, one after the other.
    Both,
    /// The interpreter runs what took machine code so many nanoseconds without a frame.
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

    /// Held for a few instructions. Nobody waits for it longer: a process that was forked by a thread while another held
    /// this has it locked for ever, and then this form stays as it is.
    fn state(&self) -> Option<MutexGuard<'_, State>> {
        worker::lock_soon(&self.state)
    }

    /// Makes machine code at once where it is wanted when a program is loaded.
    pub(crate) fn compile_if_eager(&self, code: &Code, shape: impl FnOnce() -> Option<Arc<Shape>>) {
        if self.tiering.as_ref().is_some_and(|tiering| tiering.is_eager) {
            self.make(code, shape());
        }
    }

    /// Runs the code from where its frame is; `of` has this tier.
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
        // While it is compiled nobody counts: the count that comes with the code would be written over.
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
        // Requests and calls are the interpreter's own; whatever else is left over was a guard.
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

    /// Counts the units that a run on the interpreter spent; a few long ones make a form hot as well as many calls.
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
            // No thread was to be had. Another call tries again.
            self.left.store(tiering.calls.max(1), Ordering::Relaxed);
        }
    }

    /// Runs the code, and does what was to be done at this call.
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
            // The middle of a run says nothing about the whole of one.
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

    /// Runs machine code, and then the interpreter on a copy: what other inputs take says nothing about these. A run that
    /// stops before its end, or does not return, is not repeated: nothing is asked for twice.
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

    /// Runs on the interpreter what took machine code so long without a frame; where that takes much longer, it is left,
    /// and machine code does it once more.
    fn run_interpreter_sample(
        &self,
        tiering: &Tiering,
        machine: u64,
        code: &Code,
        frame: &mut Frame,
        marks: &mut Marks,
        meter: &mut Meter,
    ) -> Result<Stop, Fault> {
        // What the copy takes is not the run's time.
        meter.stop_clock();
        let trial = Trial::of(tiering, machine, code, frame.clone(), meter)?;
        meter.start_clock();
        if let Some(interpreter) = trial.took {
            self.judge_frameless(machine, interpreter);
        }
        // Whoever was stopped may have been stopped by the end of the trial.
        if !matches!(trial.stop, Stop::Ended(Outcome::LimitHit(_))) {
            (*frame, *meter) = (trial.frame, trial.meter);
            return Ok(trial.stop);
        }
        if let Some(made) = self.made.get().filter(|_| self.enters.load(Ordering::Acquire)) {
            self.enter(made, code, frame, meter)?;
        }
        execute(code, frame, marks, meter)
    }

    /// Does what was to be done at this call.
    fn choose_sample<H: Hot + 'static>(&self, tiering: &Tiering, of: &Arc<H>) -> Sample {
        self.left.store(NEVER, Ordering::Relaxed);
        let probed = self.made.get().and_then(|made| made.probe.as_ref()?.take());
        let Some(mut state) = self.state() else {
            return Sample::Skip;
        };
        match state.stage {
            Stage::Refused(ref why) if why != CODE_LIMIT_HIT => Sample::Skip,
            // There may be room by now.
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

    /// Told how long either side took for the same inputs, machine code with a frame.
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

    /// Makes machine code of the form that has this tier.
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
                // First: who finds the code counts.
                self.left.store(every, Ordering::Relaxed);
                // Only who queued it makes it, and that happens once.
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
    // From here on it is counted, and given back when it is dropped.
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

/// Not one atomic step: what is counted here is shown to people, and a thread more may lose one.
#[inline]
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
