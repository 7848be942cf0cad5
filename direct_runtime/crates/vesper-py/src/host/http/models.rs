//! The configured models and the performer of `model_call` for Python.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vesper_host::effect::{Ask, Failure, Performer};
use vesper_host::http::{Resolve, Surroundings, look_up};
use vesper_host::model::{
    self, Api, Catalog, CustomAnswer, CustomModels, Limits, Model, Prices, PromptCache, Strategy, Usd,
};
use vesper_host::policy::gate::Rule;
use vesper_host::runtime;
use vesper_ir::Value;
use vesper_ir::json::parse;

use crate::host::context::attached;
use crate::host::http::{python_resolve, read_settings, secrets_of};
use crate::host::limits::policy_error;
use crate::host::native_performer::{Asked, NativePerformer};
use crate::host::performer::failure_of;
use crate::host::plans::settings;

/// The configured models: their limits and prices.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct ModelCatalog {
    pub(crate) inner: Arc<Catalog>,
}

#[pymethods]
impl ModelCatalog {
    /// Reads `ModelSettings` by name.
    #[new]
    #[pyo3(signature = (models, /))]
    fn new(models: &Bound<'_, PyDict>) -> PyResult<Self> {
        let models = models
            .values()
            .iter()
            .map(|each| read_model(&each))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(Self {
            inner: Arc::new(Catalog::new(models)),
        })
    }

    /// Returns the most that one attempt at the `Ask` can use: tokens of its input and its answer, and dollars as text.
    #[pyo3(signature = (ask, /))]
    fn bound(&self, ask: &Bound<'_, PyAny>) -> PyResult<(u64, u64, String)> {
        let asked = Asked::read(ask)?;
        let bound = self.inner.bound(asked.ask().request);
        let bound = bound.map_err(|failure| PyValueError::new_err(failure.message))?;
        Ok((bound.input_tokens, bound.output_tokens, bound.cost.to_string()))
    }
}

fn read_model(given: &Bound<'_, PyAny>) -> PyResult<Model> {
    let field = |name: &str| given.getattr(name);
    let api = field("api")?.extract::<String>()?;
    let http = field("http")?;
    let long: Option<(u64, Bound<'_, PyAny>)> = field("long_prices")?.extract()?;
    let fallback: Vec<String> = field("fallback")?.extract()?;
    Ok(Model {
        name: Arc::from(field("name")?.extract::<String>()?),
        api: match api.as_str() {
            "anthropic" => Api::Anthropic,
            "openai" => Api::OpenAi,
            "ollama" => Api::Ollama,
            "azure" => Api::Azure,
            "vertex" => Api::Vertex,
            "bedrock" => Api::Bedrock,
            _ => Api::Custom,
        },
        model: field("model")?.extract()?,
        max_output: field("max_output")?.extract()?,
        context: field("context")?.extract()?,
        prices: prices(&field("prices")?)?,
        long: long
            .map(|(above, of)| prices(&of).map(|of| (above, of)))
            .transpose()?,
        prompt_cache: match field("prompt_cache")?.extract::<String>()?.as_str() {
            "5m" => PromptCache::FiveMinutes,
            "1h" => PromptCache::OneHour,
            _ => PromptCache::Off,
        },
        is_adaptive: field("is_adaptive")?.extract()?,
        fallback: fallback.into_iter().map(Arc::from).collect(),
        fallback_on: field("fallback_on")?.extract()?,
        http: if http.is_none() {
            None
        } else {
            Some(read_settings(&http, "models")?)
        },
        limits: read_limits(given)?,
    })
}

/// Reads the limits of a model, whose policy is that of a gate.
fn read_limits(model: &Bound<'_, PyAny>) -> PyResult<Option<Limits>> {
    let limits = model.getattr("limits")?;
    if limits.is_none() {
        return Ok(None);
    }
    Ok(Some(Limits {
        name: Arc::from(format!("model {}", model.getattr("name")?.extract::<String>()?)),
        rule: Rule::new(&settings(&limits.getattr("policy")?)?).map_err(policy_error)?,
        strategy: match limits.getattr("strategy")?.extract::<String>()?.as_str() {
            "reject" => Strategy::Reject,
            "backpressure" => Strategy::Backpressure,
            _ => Strategy::Queue,
        },
    }))
}

/// Reads the prices of a million tokens, which are texts of dollars.
fn prices(given: &Bound<'_, PyAny>) -> PyResult<Prices> {
    let price = |name: &str| -> PyResult<u64> {
        let text: String = given.getattr(name)?.extract()?;
        let units = Usd::parse(&text).map(|price| price.0 / 1_000_000);
        let units = units.and_then(|units| u64::try_from(units).ok());
        units.ok_or_else(|| PyValueError::new_err(text))
    };
    Ok(Prices {
        input: price("input")?,
        output: price("output")?,
        cached_input: price("cached_input")?,
        cache_write: price("cache_write")?,
    })
}

/// The performer of `model_call`.
#[pyclass(frozen, extends = NativePerformer, module = "vesper._direct")]
pub(crate) struct ModelPerformer;

#[pymethods]
impl ModelPerformer {
    /// Creates a performer. `secret` and `authorities` are as those of `HttpPerformer`; `custom` is called with the name
    /// of a model of the application and the `Ask`, and returns its answer as JSON text.
    #[new]
    #[pyo3(signature = (models, secret, authorities, custom, resolve=None, /))]
    fn new(
        models: &ModelCatalog,
        secret: &Bound<'_, PyAny>,
        authorities: String,
        custom: Py<PyAny>,
        resolve: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let surroundings = Surroundings {
            secrets: secrets_of(secret),
            public_authorities: authorities,
            resolve: resolve.map_or_else(|| Arc::new(look_up) as Arc<Resolve>, python_resolve),
            on_answer: None,
        };
        let custom: Arc<dyn CustomModels> = Arc::new(PythonModels(custom));
        let performer = model::ModelPerformer::new(Arc::clone(&models.inner), surroundings, Some(custom));
        let performer = performer.map_err(|bad| {
            PyValueError::new_err((format!("models.{}.{}", bad.provider, bad.setting), bad.problem))
        })?;
        let performer: Arc<dyn Performer> = Arc::new(performer);
        Ok(PyClassInitializer::from(NativePerformer { performer }).add_subclass(Self))
    }
}

/// Models of the application.
struct PythonModels(Py<PyAny>);

impl CustomModels for PythonModels {
    fn ask(&self, model: &Model, ask: &Ask<'_>) -> CustomAnswer {
        let request = ask.argument("request").map(|argument| &argument.value);
        let Some(Value::Json(request)) = request else {
            return Err(Failure::new("invalid_request", "the request is no JSON"));
        };
        let request = request.literal_text();
        let answer = runtime::blocking(|| {
            attached(|py| {
                let timeout = ask.timeout.map(|time| time.as_secs_f64());
                let path = &*ask.request.path;
                let arguments = (&*model.name, request, ask.execution, path, ask.is_repeat, timeout);
                let answer = self.0.call1(py, arguments);
                let answer = answer.and_then(|answer| answer.extract::<String>(py));
                answer.map_err(|error| failure_of(py, error))
            })
        })?;
        parse(&answer).map_err(|_| {
            let problem = format!("the answer of `{}` is no JSON that can be read", model.name);
            Failure {
                may_have_happened: true,
                ..Failure::new("bad_response", problem)
            }
        })
    }
}
