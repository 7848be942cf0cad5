//! A loaded node, ready to be called from any thread: what the crates above hold on to.

use std::sync::{Arc, OnceLock};

use vesper_ir::{Node, Rejected, Value};
use vesper_opt::{Rule, Rules, optimise};

use crate::bytecode::Code;
use crate::compile::{CompileFault, Form, compile};
use crate::execution::{Advanced, Execution, Misuse, OwnForm};
use crate::fingerprint::{Fingerprint, FingerprintKey, Hashed};
use crate::frame::Frame;
use crate::link::{Unit, link};
use crate::listing::listing;
use crate::marks::{Mark, Marks};
use crate::meter::{Limits, Meter};
use crate::parts::{Parts, parts_of_inputs};
use crate::path::{Path, Point, Points};
use crate::reads::{Ending, Source};
use crate::run::{Outcome, Stop};
use crate::tier::{Hot, Report, Tier, Tiering};
use crate::words::{Express, Scales, Shape, Words};

/// A node and its forms of bytecode, with the nodes that it calls.
#[derive(Debug)]
pub struct Program {
    unit: Arc<Unit>,
    rules: Rules,
    traced: Arc<Code>,
    tiering: Option<Arc<Tiering>>,
    /// These two are made when they are first asked for: of most programs they never are.
    points: OnceLock<Points>,
    pathed: OnceLock<Result<Arc<PathedForm>, &'static str>>,
}

/// The form of a node that says which way a run went, and what is read of its inputs.
#[derive(Debug)]
pub struct PathedForm {
    pub(crate) code: Code,
    pub(crate) parts: Vec<Parts>,
    pub(crate) tier: Tier,
    shape: Option<Arc<Shape>>,
}

impl Hot for PathedForm {
    fn make(&self) {
        self.tier.make(&self.code, self.shape.clone());
    }
}

/// How a run ended, and which way it went.
#[derive(Debug)]
pub struct Pathed {
    pub outcome: Outcome,
    pub path: Path,
    /// Of what was read on this path (docs/spec/migration.md).
    pub fingerprint: u64,
}

const NO_TIME: &str = "the node uses now, and no time was given";
const ASKS: &str = "the node asks for effects, and is not advanced with their results";
const WRONG_INPUTS: &str = "the number of inputs is not the declared one";

impl Program {
    /// Reads, verifies and compiles an IR document.
    pub fn load(ir: &[u8]) -> Result<Self, Rejected> {
        Self::load_with(ir, &[])
    }

    /// Reads, verifies and compiles an IR document; `others` holds those of the nodes that it calls.
    pub fn load_with(ir: &[u8], others: &[&[u8]]) -> Result<Self, Rejected> {
        Self::load_by(ir, others, Rules::ALL)
    }

    /// The same, optimised by these rules: what is traced, or says which way it goes, is not.
    pub fn load_by(ir: &[u8], others: &[&[u8]], rules: Rules) -> Result<Self, Rejected> {
        Self::load_tiered(ir, others, rules, None)
    }

    /// The same; machine code is made of what turns out to be hot. Without a tiering none is.
    pub fn load_tiered(
        ir: &[u8],
        others: &[&[u8]],
        rules: Rules,
        tiering: Option<Arc<Tiering>>,
    ) -> Result<Self, Rejected> {
        // Machine code has ways of its own to do without jumps, which see through branches and not through these.
        let rules = match tiering {
            Some(_) => rules.without(Rule::JumpTables).without(Rule::Selects),
            None => rules,
        };
        let unit = link(ir, others, rules, tiering.clone())?;
        let fault = |CompileFault(what)| Rejected(format!("a fault of the engine while compiling: {what}"));
        let traced = Arc::new(compile(&unit.node, Form::Traced).map_err(fault)?);
        Ok(Self {
            unit,
            rules,
            traced,
            tiering,
            points: OnceLock::new(),
            pathed: OnceLock::new(),
        })
    }

    /// What a run of the node may pass, by the number that it has in a path.
    pub fn points(&self) -> &[Point] {
        &self.numbered().list
    }

    fn numbered(&self) -> &Points {
        self.points.get_or_init(|| {
            let callees_use_now = self.unit.callees.iter().map(|callee| callee.uses_now);
            Points::of(&self.unit.node, callees_use_now.collect())
        })
    }

    /// The path of a run that has passed nothing.
    pub fn empty_path(&self) -> Path {
        Path::new(std::iter::repeat_n(0, self.numbered().words()))
    }

    pub(crate) fn unit(&self) -> &Arc<Unit> {
        &self.unit
    }

    pub(crate) fn pathed(&self) -> Result<&Arc<PathedForm>, &'static str> {
        let made = self.pathed.get_or_init(|| {
            let mut code =
                compile(&self.unit.node, Form::Pathed(self.numbered())).map_err(|fault| fault.0)?;
            if self.tiering.is_some() && self.rules.has(Rule::Intervals) {
                // The node stays as it is, because rules change its path; what they prove holds all the same.
                code.proven = optimise(&self.unit.node, Rules::NONE.with(Rule::Intervals))
                    .facts
                    .proven;
            }
            let parts = parts_of_inputs(&self.unit.node);
            let tier = Tier::new(self.tiering.clone());
            let shape = self.is_alone().then(|| Shape::of(&self.unit.node, &code));
            let shape = shape.flatten().map(Arc::new);
            tier.loaded(&code, || shape.clone());
            Ok(Arc::new(PathedForm {
                code,
                parts,
                tier,
                shape,
            }))
        });
        made.as_ref().map_err(|what| *what)
    }

    /// The bytecode of the plain form.
    pub fn plain_code(&self) -> &Code {
        &self.unit.plain
    }

    /// The bytecode of the form that says which way a run goes.
    pub fn pathed_code(&self) -> Result<&Code, &'static str> {
        self.pathed().map(|form| &form.code)
    }

    /// The node this is the program of.
    pub fn node(&self) -> &Node {
        &self.unit.node
    }

    /// What the optimizer makes of the node, for people to read.
    pub fn optimised_listing(&self) -> String {
        vesper_opt::listing(&optimise(&self.unit.node, self.rules))
    }

    /// The node and all those it calls, each once.
    pub fn nodes(&self) -> Vec<&Node> {
        self.units().into_iter().map(|unit| &unit.node).collect()
    }

    /// What is made of the plain form of each of these nodes, and of the pathed form of the first where there is one.
    pub fn tiers(&self) -> (Vec<(&Node, Report)>, Option<Report>) {
        let plain = self
            .units()
            .into_iter()
            .map(|unit| (&unit.node, unit.tier.report()));
        let pathed = self.pathed.get().and_then(|made| made.as_ref().ok());
        (plain.collect(), pathed.map(|form| form.tier.report()))
    }

    /// The bytecode that calls run, as text.
    pub fn listing(&self) -> String {
        listing(&self.unit.node, "plain", &self.unit.plain)
    }

    /// The same of a run that says which way it goes; the error is a fault of the engine.
    pub fn pathed_listing(&self) -> Result<String, &'static str> {
        let form = self.pathed()?;
        Ok(listing(&self.unit.node, "pathed", &form.code))
    }

    #[cfg(test)]
    pub(crate) fn unit_for_tests(&self) -> &Arc<Unit> {
        &self.unit
    }

    fn units(&self) -> Vec<&Unit> {
        let mut found: Vec<&Unit> = vec![&self.unit];
        let mut next = 0;
        while let Some(unit) = found.get(next) {
            for callee in &unit.callees {
                if !found
                    .iter()
                    .any(|known| std::ptr::eq(*known, Arc::as_ptr(callee)))
                {
                    found.push(callee);
                }
            }
            next += 1;
        }
        found
    }

    /// The bytecode that is run where nobody watches.
    pub(crate) fn plain(&self) -> &Code {
        &self.unit.plain
    }

    /// True when a run calls no node, asks for nothing and needs no time.
    pub(crate) fn is_alone(&self) -> bool {
        self.unit.callees.is_empty() && !self.unit.asks && !self.unit.uses_now
    }

    /// How the node is run without a frame, where it can be.
    pub fn shape(&self) -> Option<Arc<Shape>> {
        self.unit.shape()
    }

    /// The way without a frame, where there is machine code for it and it is of use. Whether it gave outputs is to be
    /// told to `expressed`; where it gave none, the node is run in the ordinary way.
    #[inline]
    pub fn express(&self) -> Option<&dyn Express> {
        self.unit.tier.express()
    }

    #[inline]
    pub fn expressed(&self, has_outputs: bool) {
        self.unit.tier.expressed(has_outputs);
    }

    /// The form that says which way a run went, which has such a way too. Nothing where there is a fault in it.
    #[inline]
    pub fn pathed_form(&self) -> Option<&PathedForm> {
        self.pathed().ok().map(|form| &**form)
    }

    /// How the form that says which way a run went is run without a frame, where it can be.
    pub fn pathed_shape(&self) -> Option<Arc<Shape>> {
        self.pathed().ok()?.shape.clone()
    }

    /// The same way for so many runs, one after the other, as a batch has them, and for how many of them; how they ended is
    /// to be told to `expressed_rows`. Where there is none: so many runs are made in the ordinary way before somebody asks
    /// again.
    pub fn express_rows(&self, rows: u32) -> Result<(&dyn Express, u32), u32> {
        self.unit.tier.express_rows(rows)
    }

    /// The same way for rows whose decimals have these scales, where there is machine code for just those; `general` is
    /// what `express_rows` gave.
    pub fn express_scaled(&self, general: &dyn Express, scales: &Scales, rows: u32) -> Option<&dyn Express> {
        self.unit
            .tier
            .express_scaled(general, &self.unit.plain, scales, rows)
    }

    pub fn expressed_rows(&self, outputs: u32, gave_up: u32) {
        self.unit.tier.expressed_rows(outputs, gave_up);
    }

    /// True when an execution may ask for effects.
    pub fn asks(&self) -> bool {
        self.unit.asks
    }

    /// True when an execution needs the time of its start.
    pub fn uses_now(&self) -> bool {
        self.unit.uses_now
    }

    /// An empty frame, for the converted inputs in declared order. It has room for all registers of a run.
    pub fn new_frame(&self) -> Vec<Value> {
        Vec::with_capacity(self.unit.plain.registers)
    }

    /// The same with room for the registers of a run that says which way it goes.
    pub fn new_pathed_frame(&self) -> Vec<Value> {
        let registers = self.pathed().map(|form| form.code.registers);
        Vec::with_capacity(registers.unwrap_or_default())
    }

    /// Begins an execution on converted inputs, at this time. It runs when it is advanced.
    pub fn start(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        is_traced: bool,
    ) -> Result<Execution, Misuse> {
        self.start_within(inputs, now, is_traced, Limits::default())
    }

    /// The same within these limits.
    pub fn start_within(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        is_traced: bool,
        limits: Limits,
    ) -> Result<Execution, Misuse> {
        if inputs.len() != self.unit.node.inputs.len() {
            return Err(Misuse(WRONG_INPUTS.to_owned()));
        }
        if self.unit.uses_now && now.is_none() {
            return Err(Misuse(NO_TIME.to_owned()));
        }
        let form = if is_traced {
            OwnForm::Traced(Arc::clone(&self.traced))
        } else {
            OwnForm::Plain
        };
        Ok(Execution::new(Arc::clone(&self.unit), form, inputs, now, limits))
    }

    /// Begins an execution that says which way it goes. Fingerprints are of this key.
    pub fn start_pathed(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        limits: Limits,
        key: &FingerprintKey,
    ) -> Result<Execution, Misuse> {
        if inputs.len() != self.unit.node.inputs.len() {
            return Err(Misuse(WRONG_INPUTS.to_owned()));
        }
        if self.unit.uses_now && now.is_none() {
            return Err(Misuse(NO_TIME.to_owned()));
        }
        let form = self
            .pathed()
            .map_err(|what| Misuse(format!("a fault of the engine while compiling: {what}")))?;
        let form = OwnForm::Pathed(Arc::clone(form), Box::new(Fingerprint::new(key)));
        Ok(Execution::new(Arc::clone(&self.unit), form, inputs, now, limits))
    }

    /// Runs a node without effects on converted inputs and says which way it went.
    pub fn run_pathed(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        limits: Limits,
        key: &FingerprintKey,
    ) -> Pathed {
        let (outcome, path, fingerprint) = self.run_way(inputs, now, limits, Some(key));
        Pathed {
            outcome,
            path,
            fingerprint,
        }
    }

    /// The same without the fingerprint, for whom the way alone decides: hashing costs more than a short run.
    pub fn run_unhashed(&self, inputs: Vec<Value>, now: Option<Value>, limits: Limits) -> (Outcome, Path) {
        let (outcome, path, _) = self.run_way(inputs, now, limits, None);
        (outcome, path)
    }

    /// The fingerprint is 0 where there is no key.
    #[inline]
    fn run_way(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        limits: Limits,
        key: Option<&FingerprintKey>,
    ) -> (Outcome, Path, u64) {
        let fault = |what| {
            let fingerprint = key.map_or(0, |key| Fingerprint::new(key).finish());
            (Outcome::Fault(what), self.empty_path(), fingerprint)
        };
        if inputs.len() != self.unit.node.inputs.len() {
            return fault(WRONG_INPUTS);
        }
        if self.unit.uses_now && now.is_none() {
            return fault(NO_TIME);
        }
        let form = match self.pathed() {
            Ok(form) => form,
            Err(what) => return fault(what),
        };
        if self.unit.callees.is_empty() && !self.unit.asks {
            return run_pathed(form, &self.unit, inputs, now.as_ref(), limits, key);
        }
        // Nothing comes back here, so that without a key nothing is hashed.
        let came_back = Fingerprint::new(key.unwrap_or(&[0; 16]));
        let form = OwnForm::Pathed(Arc::clone(form), Box::new(came_back));
        let mut execution = Execution::new(Arc::clone(&self.unit), form, inputs, now, limits);
        let outcome = match execution.advance(None) {
            Ok(Advanced::Done(outcome, _)) => outcome,
            Ok(Advanced::Blocked(_)) => Outcome::Fault(ASKS),
            Err(_) => Outcome::Fault("an execution that begins was not advanced"),
        };
        let fingerprint = key.map_or(0, |_| execution.fingerprint());
        (outcome, execution.path(), fingerprint)
    }

    /// Runs a node without effects on converted inputs.
    pub fn run(&self, inputs: Vec<Value>, now: Option<Value>) -> Outcome {
        self.run_within(inputs, now, Limits::default())
    }

    /// The same within these limits.
    pub fn run_within(&self, inputs: Vec<Value>, now: Option<Value>, limits: Limits) -> Outcome {
        let unit = &*self.unit;
        if !unit.callees.is_empty() || unit.asks || unit.uses_now {
            return self.run_whole(inputs, now, false, limits).1;
        }
        if inputs.len() != unit.node.inputs.len() {
            return Outcome::Fault(WRONG_INPUTS);
        }
        // What most nodes are: nothing to wait for and nobody to call.
        let mut frame = Frame::new(&unit.plain, inputs);
        let mut meter = Meter::new(limits);
        meter.go();
        let ran = unit.tier.run(
            &self.unit,
            &unit.plain,
            &mut frame,
            &mut Marks::default(),
            &mut meter,
        );
        match ran {
            Ok(Stop::Ended(outcome)) => outcome,
            Ok(_) => Outcome::Fault("a node without requests and calls has stopped"),
            Err(fault) => Outcome::Fault(fault),
        }
    }

    /// Runs a node without effects on converted inputs and records the marks.
    pub fn run_traced(&self, inputs: Vec<Value>, now: Option<Value>) -> (Vec<Mark>, Outcome) {
        self.run_whole(inputs, now, true, Limits::default())
    }

    fn run_whole(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        is_traced: bool,
        limits: Limits,
    ) -> (Vec<Mark>, Outcome) {
        let fault = |what| (Vec::new(), Outcome::Fault(what));
        if inputs.len() != self.unit.node.inputs.len() {
            return fault(WRONG_INPUTS);
        }
        let Ok(mut execution) = self.start_within(inputs, now, is_traced, limits) else {
            return fault(NO_TIME);
        };
        match execution.advance(None) {
            Ok(Advanced::Done(outcome, marks)) => (marks, outcome),
            Ok(Advanced::Blocked(_)) => fault(ASKS),
            Err(_) => fault("an execution that begins was not advanced"),
        }
    }
}

/// A run of a node with nothing to wait for and nobody to call.
fn run_pathed(
    form: &Arc<PathedForm>,
    unit: &Unit,
    mut inputs: Vec<Value>,
    now: Option<&Value>,
    limits: Limits,
    key: Option<&FingerprintKey>,
) -> (Outcome, Path, u64) {
    if unit.node.uses_now {
        inputs.push(now.cloned().unwrap_or(Value::Null));
    }
    let mut frame = Frame::pathed(&form.code, inputs);
    let mut meter = Meter::new(limits);
    meter.go();
    let ran = form
        .tier
        .run(form, &form.code, &mut frame, &mut Marks::default(), &mut meter);
    let outcome = match ran {
        Ok(Stop::Ended(outcome)) => outcome,
        Ok(_) => Outcome::Fault("a node without requests and calls has stopped"),
        Err(fault) => Outcome::Fault(fault),
    };
    let path = form.path(&frame);
    let fingerprint = key.map_or(0, |key| {
        form.fingerprint(&frame, &path, now, Fingerprint::new(key))
    });
    (outcome, path, fingerprint)
}

impl PathedForm {
    /// The points that a run has passed so far.
    pub(crate) fn path(&self, frame: &Frame) -> Path {
        self.code
            .path
            .as_ref()
            .map(|path| frame.path(path))
            .unwrap_or_default()
    }

    /// The way without a frame, as `Program::express`.
    #[inline]
    pub fn express(&self) -> Option<&dyn Express> {
        self.tier.express()
    }

    #[inline]
    pub fn expressed(&self, has_outputs: bool) {
        self.tier.expressed(has_outputs);
    }

    /// The fingerprint of what a run without a frame has read that went this way and returned: that of `run_pathed` on the
    /// same inputs. Nothing where these are no words of this form.
    #[inline]
    pub fn fingerprint_of(&self, words: &Words<'_>, path: &Path, key: &FingerprintKey) -> Option<u64> {
        let own = self.shape.as_ref()?;
        if !Arc::ptr_eq(own, words.shape()) {
            return None;
        }
        let fingerprint = Fingerprint::new(key);
        let Some(of_code) = &self.code.path else {
            return Some(fingerprint.finish());
        };
        let ending = Ending {
            path,
            at: usize::MAX,
            skipped: &[],
            is_error: false,
        };
        of_code.reads.of(ending, |sources| {
            let hashed = sources.hashed(|list| Hashed::all_of(list, own, &self.parts))?;
            let read = fingerprint.with_worded(hashed, words, &self.parts)?;
            Some(read.finish())
        })
    }

    /// The fingerprint of what a run has read so far; `so_far` is that of what has come back.
    pub(crate) fn fingerprint(
        &self,
        frame: &Frame,
        path: &Path,
        now: Option<&Value>,
        mut so_far: Fingerprint,
    ) -> u64 {
        let Some(of_code) = &self.code.path else {
            return so_far.finish();
        };
        // What is returned as it was given is read by no instruction: at the end everything was come to.
        let is_at_the_end = frame.next >= self.code.instructions.len();
        let ending = Ending {
            path,
            at: if is_at_the_end { usize::MAX } else { frame.next },
            skipped: &frame.flow.skipped,
            is_error: frame.flow.is_error,
        };
        of_code.reads.of(ending, |sources| {
            for source in &sources.list {
                match source {
                    Source::Input(place) => {
                        let parts = self.parts.get(*place as usize).unwrap_or(&Parts::Whole);
                        if let Some(value) = frame.registers.get(*place as usize) {
                            so_far.add_input(*place, value, parts);
                        }
                    }
                    Source::Now => {
                        if let Some(now) = now {
                            so_far.add_now(now);
                        }
                    }
                }
            }
        });
        so_far.finish()
    }
}
