//! `vesper._direct`: the direct runtime as a Python extension module. Its types are in `vesper/_direct.pyi`.
//!
//! `inputs` and `layout` convert values between Python and the engine, `calls` loads and runs nodes, `routing` serves
//! nodes between the two engines, `serve` serves them by HTTP, `batch` runs tables, and `journal` writes the text of journal entries. `tier` decides
//! when machine code is compiled; `global_lock` and `watch` acquire and release the lock of Python. The crate defines no
//! semantics of its own.

#[allow(unsafe_code, reason = "imports tables by their addresses")]
mod batch;
mod calls;
#[allow(unsafe_code, reason = "queries Python for the holder of its lock")]
mod global_lock;
mod host;
mod inputs;
mod journal;
mod layout;
#[allow(unsafe_code, reason = "defines and calls C functions without PyO3")]
mod metrics;
mod routing;
mod sandbox;
mod serve;
mod tier;
#[allow(unsafe_code, reason = "releases the global lock during a run")]
mod watch;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use vesper_ir::Op;

pyo3::create_exception!(
    vesper._direct,
    IrRejected,
    PyValueError,
    "Malformed IR document; the message names the defect and its place."
);

pyo3::create_exception!(
    vesper._direct,
    NotCompiled,
    PyValueError,
    "No machine code for the node; the message gives the reason."
);

/// Returns the names of all operations of this build, sorted.
#[pyfunction]
fn operation_names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Op::ALL.iter().map(|op| op.name()).collect();
    names.sort_unstable();
    names
}

/// The direct engine. Only `vesper.engines.direct_engine` imports this module, and the journal for its texts.
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
    use super::calls::ending::Ending;
    #[pymodule_export]
    use super::calls::entry::Entry;
    #[pymodule_export]
    use super::calls::execution::Execution;
    #[pymodule_export]
    use super::calls::fast_entry::FastEntry;
    #[pymodule_export]
    use super::calls::program::Program;
    #[pymodule_export]
    use super::host::budgets::SharedBudgets;
    #[pymodule_export]
    use super::host::database::{Databases, StateMachines};
    #[pymodule_export]
    use super::host::forks::{forget_runtime, hold_runtime, release_runtime};
    #[pymodule_export]
    use super::host::http::models::{ModelCatalog, ModelPerformer};
    #[pymodule_export]
    use super::host::http::{
        HttpPerformer, check_http_endpoint, check_http_header, check_http_value, read_http_origin,
        read_http_url, sign_aws_request,
    };
    #[pymodule_export]
    use super::host::journal::Journal;
    #[pymodule_export]
    use super::host::journal::backtest::JournalBacktest;
    #[pymodule_export]
    use super::host::journal::forks::{forget_journals, hold_journals, release_journals};
    #[pymodule_export]
    use super::host::journal::run::Run;
    #[pymodule_export]
    use super::host::limits::{LimitToken, SharedLimits};
    #[pymodule_export]
    use super::host::machine::{ambient_performer, file_performer};
    #[pymodule_export]
    use super::host::native_performer::NativePerformer;
    #[pymodule_export]
    use super::host::owner::{is_dead, this_owner};
    #[pymodule_export]
    use super::host::policies::{PolicyGate, RetryMachine};
    #[pymodule_export]
    use super::host::run::{PreparedNode, Running};
    #[pymodule_export]
    use super::host::sealing::{KeyRing, RunKey};
    #[pymodule_export]
    use super::host::secrets::{SecretStore, secret_forms};
    #[pymodule_export]
    use super::host::sizes::size_of;
    #[pymodule_export]
    use super::host::spawned::RunWorkers;
    #[pymodule_export]
    use super::host::typed_json::{typed_json_of, value_of_typed_json};
    #[pymodule_export]
    use super::journal::text::journal_text;
    #[pymodule_export]
    use super::layout::decimals::decimal_access;
    #[pymodule_export]
    use super::layout::dicts::dict_access;
    #[pymodule_export]
    use super::metrics::{
        CountedCall, count_metric, metric_bounds, observe_metric, render_metrics, set_metric,
        snapshot_metrics, use_metrics_directory,
    };
    #[pymodule_export]
    use super::operation_names;
    #[pymodule_export]
    use super::routing::inflight_counters::Flight;
    #[pymodule_export]
    use super::routing::route::Route;
    #[pymodule_export]
    use super::sandbox::confine;
    #[pymodule_export]
    use super::serve::exchange::{Exchange, ExchangeCall, verify_webhook};
    #[pymodule_export]
    use super::serve::server::{HttpCall, HttpServer, HttpStream};
    #[pymodule_export]
    use super::tier::tier_counters;

    #[pymodule_export]
    const IR_VERSION: i64 = vesper_ir::IR_VERSION;

    #[pymodule_export]
    const DEFAULT_FUEL: u64 = vesper_ir::limits::FUEL;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        vesper_interp::guard::quiet_guarded_panics();
        super::tier::watch_forks(module)?;
        super::metrics::start(module)?;
        vesper_host::interrupts::set_check(super::host::errors::check_signals);
        // Tests the layout of decimals at import, not in the first call.
        super::layout::decimals::decimals(module.py()).map(|_| ())
    }
}
