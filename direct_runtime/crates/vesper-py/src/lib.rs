//! `vesper._direct`: the direct runtime as a Python extension module. Its types are in `vesper/_direct.pyi`.
//!
//! `convert`, `composed`, `json` and `times` carry values over the boundary, `program` loads and calls nodes, `execution`
//! is one that waits for effects, `entry` and `way` the short ways in, with `swift`, `express`, `dicts` and
//! `rooms`, `route` that of a node that is being moved over, with what it needs (`exact`, `flight`, `gathered`,
//! `follower`), `batch` that of tables, `lock` who holds Python's lock, and `tier` says when machine code is made. No
//! meaning lives here.

#[allow(unsafe_code, reason = "takes over tables by their addresses")]
mod batch;
mod composed;
mod convert;
#[allow(unsafe_code, reason = "reads and makes objects of a type that has no C API")]
mod decimals;
#[allow(unsafe_code, reason = "reads what stands in dicts, and writes into its own")]
mod dicts;
#[allow(unsafe_code, reason = "makes outcome objects without calling Python")]
mod entry;
mod exact;
mod execution;
#[allow(
    unsafe_code,
    reason = "reads lists and texts, and fills dicts, without taking hold of what is in them"
)]
mod express;
#[allow(unsafe_code, reason = "counts in memory that a file is mapped to")]
mod flight;
mod follower;
#[allow(
    unsafe_code,
    reason = "goes through dicts without taking each entry apart twice"
)]
mod gather;
mod gathered;
mod journal_line;
mod journal_text;
mod json;
#[allow(unsafe_code, reason = "Python is asked who holds its lock")]
mod lock;
mod outcome;
mod problems;
mod program;
#[allow(unsafe_code, reason = "keeps what only the holder of the global lock touches")]
mod rooms;
mod route;
mod shapes;
#[allow(
    unsafe_code,
    reason = "reads dicts and lists without taking hold of what is in them"
)]
mod swift;
mod tier;
mod times;
#[allow(unsafe_code, reason = "lets go of the global lock in the middle of a run")]
mod watch;
#[allow(unsafe_code, reason = "is called by Python without PyO3 between")]
mod way;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use vesper_ir::Op;

pyo3::create_exception!(
    vesper._direct,
    IrRejected,
    PyValueError,
    "The bytes are not a well-formed IR document; the message says what and where."
);

pyo3::create_exception!(
    vesper._direct,
    NotCompiled,
    PyValueError,
    "There is no machine code of the node; the message says why."
);

/// Every operation this build implements, sorted.
#[pyfunction]
fn operation_names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Op::ALL.iter().map(|op| op.name()).collect();
    names.sort_unstable();
    names
}

/// The Rust engine. Only `vesper.engines.direct_engine` imports this module, and the journal for its texts.
#[pymodule(gil_used = true)]
mod _direct {
    use super::{Bound, PyModule, PyResult};

    #[pymodule_export]
    use super::IrRejected;
    #[pymodule_export]
    use super::NotCompiled;
    #[pymodule_export]
    use super::batch::Batches;
    #[pymodule_export]
    use super::decimals::decimal_access;
    #[pymodule_export]
    use super::dicts::dict_access;
    #[pymodule_export]
    use super::entry::Entry;
    #[pymodule_export]
    use super::execution::Execution;
    #[pymodule_export]
    use super::flight::Flight;
    #[pymodule_export]
    use super::journal_line::{journal_intent, journal_line};
    #[pymodule_export]
    use super::journal_text::journal_text;
    #[pymodule_export]
    use super::operation_names;
    #[pymodule_export]
    use super::program::Program;
    #[pymodule_export]
    use super::route::Route;
    #[pymodule_export]
    use super::tier::tier_counters;
    #[pymodule_export]
    use super::way::Way;

    #[pymodule_export]
    const IR_VERSION: i64 = vesper_ir::IR_VERSION;

    #[pymodule_export]
    const DEFAULT_FUEL: u64 = vesper_ir::limits::FUEL;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        vesper_interp::guard::quiet_guarded_panics();
        super::tier::watch_forks(module)?;
        // Tests here whether decimals may be read from memory, rather than in the first call.
        super::decimals::decimals(module.py()).map(|_| ())
    }
}
