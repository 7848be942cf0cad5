//! Comparison of a program on the interpreter and with machine code.

use std::sync::Arc;

use vesper_interp::code::Code;
use vesper_interp::native::{Native, run_on};
use vesper_interp::words::{Ended, Express, Shape, Word, Words};
use vesper_interp::{Limits, Outcome, Program};
use vesper_ir::Value;
use vesper_jit::{Options, compile, compile_scaled};

use crate::draw::{Random, inputs};

/// The counts of a comparison without differences.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) runs: usize,
    /// Runs that compiled code completed.
    pub(crate) whole: usize,
    pub(crate) guards: usize,
    /// Frameless runs that produced outputs.
    pub(crate) without_frame: usize,
    /// Such runs with known scales.
    pub(crate) scaled: usize,
}

impl std::fmt::Display for Report {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{} runs, {} whole, {} guards, {} without a frame, {} of known scales",
            self.runs, self.whole, self.guards, self.without_frame, self.scaled
        )
    }
}

fn describe_run(
    program: &Program,
    code: &Code,
    native: Option<&dyn Native>,
    given: &[Value],
    limits: Limits,
) -> (String, bool) {
    let now = Value::Timestamp(1_700_000_000_000_000);
    let shown = run_on(program, code, native, given.to_vec(), Some(&now), limits);
    let is_whole = shown.left_at >= code.instructions.len();
    (
        format!("{:?} fuel {} path {:?}", shown.outcome, shown.fuel, shown.path),
        is_whole,
    )
}

/// Returns the inputs as words, or `None` if one has no form in words.
fn words<'a>(shape: &Arc<Shape>, given: &'a [Value]) -> Option<Words<'a>> {
    let mut words = Words::new(shape);
    for (input, value) in given.iter().enumerate() {
        if let Some(word) = Word::of(value) {
            words.put(input, word).then_some(())?;
            continue;
        }
        let Value::Array(items) = value else {
            return None;
        };
        words.begin_rows(input, items.len()).then_some(())?;
        for (number, item) in items.iter().enumerate() {
            let Value::Record(fields) = item else {
                return None;
            };
            let mut row = words.row(input, number)?;
            for (field, value) in fields.iter().enumerate() {
                row.put(field, Word::of(value)?).then_some(())?;
            }
        }
    }
    Some(words)
}

/// The vectors of scales that are compiled per program.
const VECTORS: usize = 3;

fn scales_of(given: &[Value]) -> Vec<Option<u16>> {
    let scale = |value: &Value| match value {
        Value::Decimal(number) => Some(number.scale()),
        _ => None,
    };
    given.iter().map(scale).collect()
}

/// Compares code with known scales on all inputs; it gives up on other scales.
fn compare_scaled(
    program: &Program,
    code: &Code,
    shape: &Arc<Shape>,
    all: &[Vec<Value>],
    report: &mut Report,
) -> Result<(), String> {
    let mut vectors: Vec<Vec<Option<u16>>> = Vec::new();
    for scales in all.iter().map(|given| scales_of(given)) {
        let is_new = scales.iter().any(Option::is_some) && !vectors.contains(&scales);
        if is_new && vectors.len() < VECTORS {
            vectors.push(scales);
        }
    }
    for scales in vectors {
        // There is no code if every run would give up.
        let Ok(express) = compile_scaled(code, shape, &scales, &Options::default()) else {
            continue;
        };
        for given in all {
            let is_done = compare_without_frame(program, code, Some(&*express), given, Limits::default())?;
            if is_done && scales_of(given) != scales {
                return Err(format!("{given:?}: code for the scales {scales:?} took others"));
            }
            report.scaled += usize::from(is_done);
        }
    }
    Ok(())
}

/// Runs without a frame, if possible, and compares the outputs. Returns whether it did.
fn compare_without_frame(
    program: &Program,
    code: &Code,
    express: Option<&dyn Express>,
    given: &[Value],
    limits: Limits,
) -> Result<bool, String> {
    let Some(express) = express else {
        return Ok(false);
    };
    let Some(mut words) = words(express.shape(), given) else {
        return Ok(false);
    };
    if express.run(&mut words, limits.fuel) != Ended::Done {
        return Ok(false);
    }
    let shown = run_on(program, code, None, given.to_vec(), None, limits);
    let Outcome::Returned(values) = &shown.outcome else {
        return Err(format!(
            "{given:?}\n  interpreter {:?}\n  without a frame it returned",
            shown.outcome
        ));
    };
    let (expected, got) = (shown.path.unwrap_or_default(), words.path());
    if expected != got {
        return Err(format!(
            "{given:?}\n  interpreter     {expected:?}\n  without a frame {got:?}"
        ));
    }
    for (place, value) in values.iter().enumerate() {
        let (expected, got) = (Word::of(value), words.output(place));
        if format!("{expected:?}") != format!("{got:?}") {
            return Err(format!(
                "{given:?}, output {place}\n  interpreter     {expected:?}\n  without a frame {got:?}"
            ));
        }
    }
    Ok(true)
}

/// Compares both forms on drawn inputs: as compiled, then with every guard failing in turn.
pub(crate) fn compare(program: &Program, seed: u64, count: usize, forced: usize) -> Result<Report, String> {
    let mut random = Random(seed);
    let mut report = Report::default();
    let all: Vec<Vec<Value>> = (0..count).map(|_| inputs(program, &mut random)).collect();
    let pathed = program.pathed_code().map_err(ToOwned::to_owned)?;
    // At the good level, and at the quick level if it differs.
    let forms = [program.plain_code(), pathed];
    let mut last = None;
    for (code, quick_from) in forms.into_iter().flat_map(|code| [(code, usize::MAX), (code, 0)]) {
        let made_so = Options {
            quick_from,
            ..Options::default()
        };
        let is_plain = std::ptr::eq(code, program.plain_code());
        let shape = || {
            if is_plain {
                program.shape()
            } else {
                program.pathed_shape()
            }
        };
        let native = match compile(code, shape(), &made_so) {
            Ok(native) => native,
            Err(why) => return Err(format!("not compiled: {why}")),
        };
        // Code with loops has one level and is not compared twice.
        let made = Some((std::ptr::from_ref(code), native.size(), native.guards()));
        if std::mem::replace(&mut last, made) == made {
            continue;
        }
        for (place, given) in all.iter().enumerate() {
            let fuels = [100_000, 0, 1, 2, 3, 5, 8, 30];
            let limits = Limits {
                fuel: fuels[place % fuels.len()],
                ..Limits::default()
            };
            let (expected, _) = describe_run(program, code, None, given, limits);
            let (got, is_whole) = describe_run(program, code, Some(&*native), given, limits);
            let is_done = compare_without_frame(program, code, native.express(), given, limits)?;
            report.without_frame += usize::from(is_done);
            report.runs += 1;
            report.whole += usize::from(is_whole);
            if expected != got {
                return Err(format!(
                    "{given:?}\n  interpreter {expected}\n  compiled    {got}"
                ));
            }
        }
        if let Some(shape) = shape().filter(|_| quick_from > 0) {
            compare_scaled(program, code, &shape, &all, &mut report)?;
        }
        for guard in 0..native.guards() {
            report.guards += 1;
            let options = Options {
                fail_guard: Some(guard),
                ..made_so
            };
            let native = compile(code, shape(), &options)
                .map_err(|why| format!("guard {guard}: not compiled: {why}"))?;
            for given in all.iter().take(forced) {
                compare_without_frame(program, code, native.express(), given, Limits::default())?;
                let (expected, _) = describe_run(program, code, None, given, Limits::default());
                let (got, _) = describe_run(program, code, Some(&*native), given, Limits::default());
                if expected != got {
                    return Err(format!(
                        "guard {guard}: {given:?}\n  interpreter {expected}\n  compiled    {got}"
                    ));
                }
            }
        }
    }
    Ok(report)
}
