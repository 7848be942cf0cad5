//! Performers of what every machine has, for Python: files, clock, random numbers.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use vesper_host::ambient::Ambient;
use vesper_host::files::{Files, Root};

use crate::host::native_performer::NativePerformer;
use crate::host::sources::sources_of;

/// Returns the performer of clock, random numbers and unique names.
#[pyfunction]
#[pyo3(signature = (sources, /))]
pub(crate) fn ambient_performer(sources: Option<&Bound<'_, PyAny>>) -> PyResult<NativePerformer> {
    let ambient = match sources {
        Some(_) => Ambient::new(sources_of(sources)?),
        None => Ambient::system(),
    };
    Ok(NativePerformer {
        performer: Arc::new(ambient),
    })
}

/// Returns the performer of files below the roots of these `FileSettings`.
#[pyfunction]
#[pyo3(signature = (settings, sources, /))]
#[allow(clippy::needless_pass_by_value, reason = "PyO3 passes new lists")]
pub(crate) fn file_performer(
    settings: Vec<Bound<'_, PyAny>>,
    sources: Option<&Bound<'_, PyAny>>,
) -> PyResult<NativePerformer> {
    let roots: PyResult<Vec<Root>> = settings.iter().map(read_root).collect();
    let performer = Arc::new(Files::new(roots?, sources_of(sources)?));
    Ok(NativePerformer { performer })
}

fn read_root(settings: &Bound<'_, PyAny>) -> PyResult<Root> {
    let py = settings.py();
    Ok(Root {
        name: settings.getattr(intern!(py, "name"))?.extract()?,
        path: settings.getattr(intern!(py, "path"))?.extract::<PathBuf>()?,
        is_read_only: settings.getattr(intern!(py, "read_only"))?.extract()?,
        max_bytes: settings.getattr(intern!(py, "max_bytes"))?.extract()?,
        is_synced: settings.getattr(intern!(py, "sync"))?.extract()?,
        allows_hard_links: settings.getattr(intern!(py, "hard_links"))?.extract()?,
    })
}
