//! The store of secrets for Python.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use vesper_host::effect::Secrets as _;
use vesper_host::encoded_forms::forms_of;
use vesper_host::secret_store::{SecretReads, SecretSource, SecretStore as Store};

use crate::host::native_performer::{NativePerformer, PythonSecrets, failure_exception, seconds};
use crate::host::sources::sources_of;

/// The secrets of a Host.
#[pyclass(frozen, weakref, module = "vesper._direct")]
pub(crate) struct SecretStore {
    pub(crate) inner: Arc<Store>,
}

#[pymethods]
impl SecretStore {
    /// Opens the source that `SecretSettings` describe. `function` gives the texts of the source `python`.
    #[new]
    #[pyo3(signature = (settings, function, sources, /))]
    fn new(
        settings: &Bound<'_, PyAny>,
        function: Option<Py<PyAny>>,
        sources: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = settings.py();
        let time = |name| settings.getattr(name)?.extract::<f64>().map(seconds);
        let source = match settings
            .getattr(intern!(py, "source"))?
            .extract::<String>()?
            .as_str()
        {
            "environment" => SecretSource::Environment {
                prefix: settings.getattr(intern!(py, "prefix"))?.extract()?,
            },
            "file" => SecretSource::Files {
                path: settings.getattr(intern!(py, "path"))?.extract::<PathBuf>()?,
            },
            _ => {
                let function = function.map(PythonSecrets);
                let function =
                    function.ok_or_else(|| PyValueError::new_err("the source `python` needs a function"))?;
                SecretSource::Function {
                    call: Box::new(move |name| function.text(name)),
                    timeout: time(intern!(py, "timeout"))?,
                }
            }
        };
        let inner = Arc::new(Store::new(
            source,
            time(intern!(py, "ttl"))?,
            sources_of(sources)?,
        ));
        Ok(Self { inner })
    }

    /// Returns the text of a secret. Raises `EffectFailed`.
    #[pyo3(signature = (name, /))]
    fn text(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        let text = py.detach(|| self.inner.text(name));
        text.map(|text| text.as_str().to_owned())
            .map_err(|failure| failure_exception(py, &failure))
    }

    /// Returns the text with `secret:NAME` in place of each secret that was given out.
    #[pyo3(signature = (text, /))]
    fn redact(&self, py: Python<'_>, text: &str) -> String {
        py.detach(|| self.inner.redact(text))
    }

    /// Returns the performer of `secret_read`.
    #[pyo3(signature = (sources, /))]
    fn performer(&self, sources: Option<&Bound<'_, PyAny>>) -> PyResult<NativePerformer> {
        let performer = Arc::new(SecretReads::new(Arc::clone(&self.inner), sources_of(sources)?));
        Ok(NativePerformer { performer })
    }
}

/// Returns the forms in which a secret may occur in a text after a program encoded it.
#[pyfunction]
#[pyo3(signature = (secret, /))]
pub fn secret_forms(secret: &str) -> Vec<String> {
    forms_of(secret)
        .iter()
        .map(|form| form.as_str().to_owned())
        .collect()
}
