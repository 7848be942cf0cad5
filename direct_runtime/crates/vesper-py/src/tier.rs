//! The tiers of a program in Python terms: options, reports, listings and fork handlers.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};
use vesper_interp::code::Code;
use vesper_interp::guard::guarded;
use vesper_interp::native::Native;
use vesper_interp::tier::{self, Compiler, Report, Stage, Tiering};
use vesper_interp::words::{Express, Scales, Shape};
use vesper_jit::Options;

use crate::NotCompiled;

/// Options of a program: `off`, `auto` or `always`, and the thresholds of `auto`.
pub(crate) struct JitOptions<'a> {
    pub(crate) jit: &'a str,
    pub(crate) calls: u32,
    pub(crate) operations: u64,
    pub(crate) max_code_bytes: usize,
    pub(crate) fail_guard: Option<u32>,
}

impl JitOptions<'_> {
    pub(crate) fn tiering(self) -> PyResult<Option<Arc<Tiering>>> {
        let is_eager = match self.jit {
            "off" => return Ok(None),
            "auto" => false,
            "always" => true,
            other => {
                return Err(PyValueError::new_err(format!(
                    "jit is off, auto or always, not {other}"
                )));
            }
        };
        Ok(Some(Arc::new(Tiering {
            compiler: Box::new(Cranelift {
                fail_guard: self.fail_guard,
            }),
            is_eager,
            calls: self.calls,
            operations: self.operations,
            max_bytes: self.max_code_bytes,
            clock: nanoseconds,
        })))
    }
}

fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[derive(Debug)]
struct Cranelift {
    fail_guard: Option<u32>,
}

impl Compiler for Cranelift {
    fn compile(&self, code: &Code, shape: Option<Arc<Shape>>) -> Result<Box<dyn Native>, String> {
        let options = Options {
            fail_guard: self.fail_guard,
            ..Options::default()
        };
        vesper_jit::compile(code, shape, &options).map_err(|why| why.to_string())
    }

    fn compile_scaled(
        &self,
        code: &Code,
        shape: &Arc<Shape>,
        scales: &Scales,
    ) -> Result<Box<dyn Express>, String> {
        // Scaled code has fewer guards, numbered separately; `fail_guard` applies to these as well.
        let options = Options {
            fail_guard: self.fail_guard,
            ..Options::default()
        };
        vesper_jit::compile_scaled(code, shape, scales, &options).map_err(|why| why.to_string())
    }
}

/// Returns a form of a node as text: `ir-optimized`, `bytecode`, `clif` or `asm`.
pub(crate) fn listing(program: &vesper_interp::Program, what: &str) -> PyResult<String> {
    let made = guarded(|| match what {
        "ir-optimized" => Ok(Ok(program.optimised_listing())),
        "bytecode" => Ok(Ok(program.listing())),
        "clif" => Ok(vesper_jit::clif(program.plain_code())),
        "asm" => Ok(vesper_jit::asm(program.plain_code())),
        other => Err(PyValueError::new_err(format!(
            "a listing is ir-optimized, bytecode, clif or asm, not {other}"
        ))),
    });
    made.map_err(|message| PyRuntimeError::new_err(format!("engine fault: {message}")))??
        .map_err(|why| NotCompiled::new_err(why.to_string()))
}

/// Returns a report as a dict: stage, reason, bytes, guards, entered, exits, rests.
pub(crate) fn report_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let (stage, reason) = match &report.stage {
        Stage::Off => ("off", None),
        Stage::Cold => ("cold", None),
        Stage::Queued => ("queued", None),
        Stage::Installed => ("installed", None),
        Stage::Resting => ("resting", None),
        Stage::Refused(why) => ("refused", Some(why)),
    };
    let found = PyDict::new(py);
    found.set_item("stage", stage)?;
    found.set_item("reason", reason)?;
    found.set_item("bytes", report.bytes)?;
    found.set_item("guards", report.guards)?;
    found.set_item("entered", report.entered)?;
    found.set_item("exits", report.exits)?;
    found.set_item("expressed", report.expressed)?;
    found.set_item("rests", report.rests)?;
    Ok(found)
}

/// Returns the counters of this process: compiled, refused, nanoseconds of compilation, bytes in use.
#[pyfunction]
pub(crate) fn tier_counters(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let counters = tier::counters();
    let found = PyDict::new(py);
    found.set_item("compiled", counters.compiled)?;
    found.set_item("refused", counters.refused)?;
    found.set_item("nanoseconds", counters.nanoseconds)?;
    found.set_item("bytes", counters.bytes)?;
    Ok(found)
}

/// Waits without the lock of Python. Another forking thread may hold the awaited lock, and need that of Python.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    py.detach(tier::before_fork);
}

#[pyfunction]
fn after_fork_in_parent() {
    tier::after_fork_in_parent();
}

#[pyfunction]
fn after_fork_in_child() {
    tier::after_fork_in_child();
}

/// Registers fork handlers that stop and restart the compiler thread.
pub(crate) fn watch_forks(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
    let os = py.import("os")?;
    // A system without forks has no such function.
    if let Some(register) = os.getattr_opt("register_at_fork")? {
        register.call((), Some(&hooks))?;
    }
    Ok(())
}
