//! Programs: loaded nodes that any thread can call.

use std::sync::{Arc, OnceLock};

use vesper_ir::{Node, Rejected, Value};
use vesper_opt::{Rule, Rules, optimise, optimise_proven};

use crate::bytecode::Code;
use crate::bytecode::listing::listing;
use crate::compile::link::{ProvenChecks, Unit, link};
use crate::compile::{CompileFault, Form, compile};
use crate::inputs::parts::{Parts, parts_of_inputs};
use crate::inputs::reads::{Ending, Source};
use crate::observe::fingerprint::{Fingerprint, FingerprintKey, HashPlan};
use crate::observe::marks::{Mark, Marks};
use crate::observe::path::{Path, Point, Points};
use crate::run::execution::{Advanced, Execution, Misuse};
use crate::run::frame::Frame;
use crate::run::meter::{Limits, Meter};
use crate::run::strand::OwnForm;
use crate::run::{Outcome, Stop};
use crate::tier::words::{Express, Scales, Shape, Words};
use crate::tier::{Hot, Report, Tier, Tiering};

/// A node with its forms of bytecode and the nodes that it calls.
#[derive(Debug)]
pub struct Program {
    unit: Arc<Unit>,
    rules: Rules,
    traced: Arc<Code>,
    tiering: Option<Arc<Tiering>>,
    /// This and the next are computed on first use, which most programs never need.
    points: OnceLock<Points>,
    pathed: OnceLock<Result<Arc<PathedForm>, &'static str>>,
}

/// The pathed form of a node, with the parts of inputs that it reads.
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

/// The outcome, path and fingerprint of a run.
#[derive(Debug)]
pub struct Pathed {
    pub outcome: Outcome,
    pub path: Path,
    /// The fingerprint of the values read on this path (docs/spec/migration.md).
    pub fingerprint: u64,
}

const NO_TIME: &str = "the node uses now, and no time was given";
const MAKES_REQUESTS: &str = "the node makes requests, and this call completes none";
const WRONG_INPUTS: &str = "the number of inputs is not the declared one";

impl Program {
    /// Reads, verifies and compiles an IR document.
    pub fn load(ir: &[u8]) -> Result<Self, Rejected> {
        Self::load_with(ir, &[])
    }

    /// Reads, verifies and compiles an IR document. `others` holds the documents of its callees.
    pub fn load_with(ir: &[u8], others: &[&[u8]]) -> Result<Self, Rejected> {
        Self::load_by(ir, others, Rules::ALL)
    }

    /// Loads with these optimisation rules, which apply to the plain form only.
    pub fn load_by(ir: &[u8], others: &[&[u8]], rules: Rules) -> Result<Self, Rejected> {
        Self::load_tiered(ir, others, rules, &[], None)
    }

    /// Loads with a tiering, which compiles hot forms to machine code. Without one, no form is compiled. The plain
    /// form leaves out what is proven.
    pub fn load_tiered(
        ir: &[u8],
        others: &[&[u8]],
        rules: Rules,
        proven: &[ProvenChecks],
        tiering: Option<Arc<Tiering>>,
    ) -> Result<Self, Rejected> {
        // Machine code avoids jumps itself, and analyses branches but not these rewrites.
        let rules = match tiering {
            Some(_) => rules.without(Rule::JumpTables).without(Rule::Selects),
            None => rules,
        };
        let unit = link(ir, others, rules, proven, tiering.clone())?;
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

    /// Returns the points of the node, indexed by their number in a path.
    pub fn points(&self) -> &[Point] {
        &self.point_table().list
    }

    fn point_table(&self) -> &Points {
        self.points.get_or_init(|| {
            let callees_use_now = self.unit.callees.iter().map(|callee| callee.uses_now);
            Points::of(&self.unit.node, callees_use_now.collect())
        })
    }

    /// Returns the path of a run that has passed no point.
    pub fn empty_path(&self) -> Path {
        Path::new(std::iter::repeat_n(0, self.point_table().words()))
    }

    pub(crate) fn unit(&self) -> &Arc<Unit> {
        &self.unit
    }

    pub(crate) fn pathed(&self) -> Result<&Arc<PathedForm>, &'static str> {
        let made = self.pathed.get_or_init(|| {
            let mut code =
                compile(&self.unit.node, Form::Pathed(self.point_table())).map_err(|fault| fault.0)?;
            if self.tiering.is_some() && self.rules.has(Rule::Intervals) {
                // Rules would change the path of the node, but their proofs hold for the original too.
                code.proven = optimise(&self.unit.node, Rules::NONE.with(Rule::Intervals))
                    .facts
                    .proven;
            }
            let parts = parts_of_inputs(&self.unit.node);
            let tier = Tier::new(self.tiering.clone());
            let shape = self
                .is_self_contained()
                .then(|| Shape::of(&self.unit.node, &code));
            let shape = shape.flatten().map(Arc::new);
            tier.compile_if_eager(&code, || shape.clone());
            Ok(Arc::new(PathedForm {
                code,
                parts,
                tier,
                shape,
            }))
        });
        made.as_ref().map_err(|what| *what)
    }

    /// Returns the bytecode of the plain form.
    pub fn plain_code(&self) -> &Code {
        &self.unit.plain
    }

    /// Returns the bytecode of the pathed form.
    pub fn pathed_code(&self) -> Result<&Code, &'static str> {
        self.pathed().map(|form| &form.code)
    }

    /// Returns the node of the program.
    pub fn node(&self) -> &Node {
        &self.unit.node
    }

    /// Returns the optimised node as text.
    pub fn optimised_listing(&self) -> String {
        vesper_opt::listing(&optimise_proven(&self.unit.node, self.rules, &self.unit.proofs))
    }

    /// Returns the node and all its callees, each once.
    pub fn nodes(&self) -> Vec<&Node> {
        self.units().into_iter().map(|unit| &unit.node).collect()
    }

    /// Reports the tiers: plain form of each node, and pathed form if it exists.
    pub fn tiers(&self) -> (Vec<(&Node, Report)>, Option<Report>) {
        let plain = self
            .units()
            .into_iter()
            .map(|unit| (&unit.node, unit.tier.report()));
        let pathed = self.pathed.get().and_then(|made| made.as_ref().ok());
        (plain.collect(), pathed.map(|form| form.tier.report()))
    }

    /// Returns the bytecode of the plain form as text.
    pub fn listing(&self) -> String {
        listing(&self.unit.node, "plain", &self.unit.plain)
    }

    /// Returns the bytecode of the pathed form as text. An error is an engine fault.
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

    /// Returns the plain form, which runs without observation.
    pub(crate) fn plain(&self) -> &Code {
        &self.unit.plain
    }

    /// Returns true if a run needs no calls, requests, strands or `now`.
    pub(crate) fn is_self_contained(&self) -> bool {
        self.unit.is_self_contained()
    }

    /// Returns the layout for frameless runs of the plain form, if they are possible.
    pub fn shape(&self) -> Option<Arc<Shape>> {
        self.unit.shape()
    }

    /// Returns the frameless function, if it is compiled and does not rest. The caller reports to `expressed` whether
    /// it produced outputs, and otherwise runs the node with a frame.
    #[inline]
    pub fn express(&self) -> Option<&dyn Express> {
        self.unit.tier.express()
    }

    #[inline]
    pub fn expressed(&self, has_outputs: bool) {
        self.unit.tier.record_frameless(has_outputs);
    }

    /// Returns the pathed form, or `None` on an engine fault.
    #[inline]
    pub fn pathed_form(&self) -> Option<&PathedForm> {
        self.pathed().ok().map(|form| &**form)
    }

    /// Returns the layout for frameless runs of the pathed form, if they are possible.
    pub fn pathed_shape(&self) -> Option<Arc<Shape>> {
        self.pathed().ok()?.shape.clone()
    }

    /// Returns the frameless function for a batch and its number of rows. Otherwise returns the rows to run with a
    /// frame before the next check. The caller reports the results to `expressed_rows`.
    pub fn express_rows(&self, rows: u32) -> Result<(&dyn Express, u32), u32> {
        self.unit.tier.express_rows(rows)
    }

    /// Returns the function for rows whose decimals have these scales, if there is one. `general` is the result of
    /// `express_rows`.
    pub fn express_scaled(&self, general: &dyn Express, scales: &Scales, rows: u32) -> Option<&dyn Express> {
        self.unit
            .tier
            .express_scaled(general, &self.unit.plain, scales, rows)
    }

    pub fn expressed_rows(&self, outputs: u32, gave_up: u32) {
        self.unit.tier.record_frameless_rows(outputs, gave_up);
    }

    /// Returns true if an execution may make requests.
    pub fn asks(&self) -> bool {
        self.unit.asks
    }

    /// Returns true if an execution needs its start time.
    pub fn uses_now(&self) -> bool {
        self.unit.uses_now
    }

    /// Returns an empty list for the inputs, with capacity for all registers.
    pub fn new_frame(&self) -> Vec<Value> {
        Vec::with_capacity(self.unit.plain.registers)
    }

    /// Returns an empty list for the inputs of the pathed form.
    pub fn new_pathed_frame(&self) -> Vec<Value> {
        let registers = self.pathed().map(|form| form.code.registers);
        Vec::with_capacity(registers.unwrap_or_default())
    }

    /// Starts an execution on converted inputs at this time. It runs when it is advanced.
    pub fn start(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        is_traced: bool,
    ) -> Result<Execution, Misuse> {
        self.start_within(inputs, now, is_traced, Limits::default())
    }

    /// Starts an execution within these limits.
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

    /// Starts an execution of the pathed form, with fingerprints under this key.
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

    /// Runs a node without effects and records its path and fingerprint.
    pub fn run_pathed(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        limits: Limits,
        key: &FingerprintKey,
    ) -> Pathed {
        let (outcome, path, fingerprint) = self.run_with_path(inputs, now, limits, Some(key));
        Pathed {
            outcome,
            path,
            fingerprint,
        }
    }

    /// Runs a node without effects and records only its path. Hashing costs more than a short run.
    pub fn run_unhashed(&self, inputs: Vec<Value>, now: Option<Value>, limits: Limits) -> (Outcome, Path) {
        let (outcome, path, _) = self.run_with_path(inputs, now, limits, None);
        (outcome, path)
    }

    /// Runs the pathed form. Without a key the fingerprint is 0.
    #[inline]
    fn run_with_path(
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
        if self.unit.runs_straight() {
            return run_pathed(form, &self.unit, inputs, now.as_ref(), limits, key);
        }
        // No completions occur here, so without a key nothing is hashed.
        let came_back = Fingerprint::new(key.unwrap_or(&[0; 16]));
        let form = OwnForm::Pathed(Arc::clone(form), Box::new(came_back));
        let mut execution = Execution::new(Arc::clone(&self.unit), form, inputs, now, limits);
        let outcome = match execution.advance(None) {
            Ok(Advanced::Done(outcome, _)) => outcome,
            Ok(Advanced::Blocked(_)) => Outcome::Fault(MAKES_REQUESTS),
            Err(_) => Outcome::Fault("an execution that begins was not advanced"),
        };
        let fingerprint = key.map_or(0, |_| execution.fingerprint());
        (outcome, execution.path(), fingerprint)
    }

    /// Runs a node without effects on converted inputs.
    pub fn run(&self, inputs: Vec<Value>, now: Option<Value>) -> Outcome {
        self.run_within(inputs, now, Limits::default())
    }

    /// Runs a node without effects within these limits.
    pub fn run_within(&self, inputs: Vec<Value>, now: Option<Value>, limits: Limits) -> Outcome {
        let unit = &*self.unit;
        if !unit.is_self_contained() {
            return self.run_whole(inputs, now, false, limits).1;
        }
        if inputs.len() != unit.node.inputs.len() {
            return Outcome::Fault(WRONG_INPUTS);
        }
        // The usual case: a node without requests and calls.
        let mut frame = Frame::new(&unit.plain, inputs);
        let mut meter = Meter::new(limits);
        meter.start_clock();
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
            Ok(Advanced::Blocked(_)) => fault(MAKES_REQUESTS),
            Err(_) => fault("an execution that begins was not advanced"),
        }
    }
}

/// Runs the pathed form of a node without requests and calls.
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
    meter.start_clock();
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
    /// Returns the points passed so far.
    pub(crate) fn path(&self, frame: &Frame) -> Path {
        self.code
            .path
            .as_ref()
            .map(|path| frame.path(path))
            .unwrap_or_default()
    }

    /// Returns the frameless function, like `Program::express`.
    #[inline]
    pub fn express(&self) -> Option<&dyn Express> {
        self.tier.express()
    }

    #[inline]
    pub fn expressed(&self, has_outputs: bool) {
        self.tier.record_frameless(has_outputs);
    }

    /// Returns the fingerprint of a frameless run that returned on this path. It equals that of `run_pathed`. Returns
    /// `None` for words of another form.
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
            let hashed = sources.hash_plans(|list| HashPlan::all_of(list, own, &self.parts))?;
            let read = fingerprint.with_words(hashed, words, &self.parts)?;
            Some(read.finish())
        })
    }

    /// Returns the fingerprint of the values read so far; `so_far` holds that of the completions.
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
        // No instruction reads an input that is returned unchanged, so at the end all reads count.
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
