//! The performer of `http_request` for Python, and the checks of its settings.

pub(crate) mod models;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vesper_host::effect::{Performer, Secrets};
use vesper_host::http::aws::{AwsKey, AwsRequest, sign};
use vesper_host::http::settings::{
    Auth, AwsSigV4, BodyFormat, FailureRule, HttpSettings, OAuth2, Probe, Redirects,
};
use vesper_host::http::url::{Origin, Url, check_endpoint, read_origin, read_url};
use vesper_host::http::{self, Resolve, Surroundings, Template, headers, look_up};
use vesper_ir::json::parse;

use crate::host::native_performer::{NativePerformer, PythonSecrets};
use crate::host::secrets::SecretStore;

/// Scheme is https, host and port.
type Destination = (bool, String, u16);

fn destination(origin: Origin) -> Destination {
    (origin.is_secure, origin.host, origin.port)
}

fn origin((is_secure, host, port): Destination) -> Origin {
    Origin {
        is_secure,
        host,
        port,
    }
}

/// Reads an absolute URL: its origin, path and query.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn read_http_url(text: &str) -> PyResult<(Destination, String, String)> {
    let url = read_url(text).map_err(PyValueError::new_err)?;
    Ok((destination(url.origin), url.path, url.query))
}

/// Reads `host` or `host:port`.
#[pyfunction]
#[pyo3(signature = (is_secure, text, /))]
pub(crate) fn read_http_origin(is_secure: bool, text: &str) -> PyResult<Destination> {
    read_origin(is_secure, text)
        .map(destination)
        .map_err(PyValueError::new_err)
}

/// Checks an endpoint below a base.
#[pyfunction]
#[pyo3(signature = (base, path, endpoint, /))]
pub(crate) fn check_http_endpoint(base: Destination, path: String, endpoint: &str) -> PyResult<()> {
    let base = Url {
        origin: origin(base),
        path,
        query: String::new(),
    };
    check_endpoint(&base, endpoint).map_err(PyValueError::new_err)
}

/// Checks the name of a header that a configuration sets.
#[pyfunction]
#[pyo3(signature = (name, /))]
pub(crate) fn check_http_header(name: &str) -> PyResult<()> {
    headers::check_name(name).map_err(PyValueError::new_err)
}

/// Checks the value of a header.
#[pyfunction]
#[pyo3(signature = (name, value, /))]
pub(crate) fn check_http_value(name: &str, value: &str) -> PyResult<()> {
    headers::check_value(name, value).map_err(PyValueError::new_err)
}

/// Returns the headers that sign a request to AWS (Signature Version 4) at a time in microseconds since 1970.
#[pyfunction]
#[pyo3(signature = (method, url, headers, body, region, service, access_key_id, secret_access_key, session_token, now_us, /))]
#[expect(
    clippy::too_many_arguments,
    reason = "a signature covers all of them, and Python has no other form of it"
)]
pub(crate) fn sign_aws_request(
    method: &str,
    url: &str,
    headers: Vec<(String, String)>,
    body: &[u8],
    region: &str,
    service: &str,
    access_key_id: &str,
    secret_access_key: &str,
    session_token: Option<&str>,
    now_us: i64,
) -> PyResult<Vec<(String, String)>> {
    let url = read_url(url).map_err(PyValueError::new_err)?;
    let headers: Vec<_> = headers
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.into()))
        .collect();
    let request = AwsRequest {
        method,
        host: &url.origin.authority(),
        path: &url.path,
        query: &url.query,
        headers: &headers,
        body,
    };
    let key = AwsKey {
        region,
        service,
        access_key_id,
        secret_access_key,
        session_token,
    };
    let signed = sign(&request, &key, now_us).into_iter();
    Ok(signed
        .map(|(name, value)| (name, value.as_str().to_owned()))
        .collect())
}

/// A function of Python that may change.
type Slot = Arc<Mutex<Option<Py<PyAny>>>>;

/// The performer of `http_request`.
#[pyclass(frozen, extends = NativePerformer, module = "vesper._direct")]
pub(crate) struct HttpPerformer {
    on_answer: Slot,
}

#[pymethods]
impl HttpPerformer {
    /// Creates a performer from `HttpSettings`. `secret` is the store of the secrets that they name, or a function of
    /// Python; `authorities` is a file of certificates; `resolve` returns the addresses of a name in place of the system.
    #[new]
    #[pyo3(signature = (providers, secret, authorities, resolve=None, /))]
    fn new(
        providers: &Bound<'_, PyDict>,
        secret: &Bound<'_, PyAny>,
        authorities: String,
        resolve: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let settings = providers
            .values()
            .iter()
            .map(|each| read_settings(&each, "providers"))
            .collect::<PyResult<Vec<_>>>()?;
        let on_answer = Slot::default();
        let slot = Arc::clone(&on_answer);
        let surroundings = Surroundings {
            secrets: secrets_of(secret),
            public_authorities: authorities,
            resolve: resolve.map_or_else(|| Arc::new(look_up) as Arc<Resolve>, python_resolve),
            on_answer: Some(Arc::new(move |path, status| report(&slot, path, status))),
        };
        let performer = http::HttpPerformer::new(settings, surroundings).map_err(|bad| {
            PyValueError::new_err((format!("providers.{}.{}", bad.provider, bad.setting), bad.problem))
        })?;
        let performer: Arc<dyn Performer> = Arc::new(performer);
        Ok(PyClassInitializer::from(NativePerformer { performer }).add_subclass(Self { on_answer }))
    }

    /// Learns the path and the status of each answer to a request; None where nobody watches.
    #[getter]
    fn on_answer(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let slot = self.on_answer.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().map(|function| function.clone_ref(py))
    }

    #[setter]
    fn set_on_answer(&self, function: Option<Py<PyAny>>) {
        let mut slot = self.on_answer.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *slot, function);
        drop(slot);
        drop(before);
    }
}

fn secrets_of(given: &Bound<'_, PyAny>) -> Arc<dyn Secrets> {
    match given.cast::<SecretStore>() {
        Ok(store) => Arc::clone(&store.get().inner) as _,
        Err(_) => Arc::new(PythonSecrets(given.clone().unbind())),
    }
}

fn report(slot: &Slot, path: &str, status: u16) {
    let is_watched = slot.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    if !is_watched {
        return;
    }
    Python::attach(|py| {
        // Not held while Python is called: another thread may wait for it with the lock of Python.
        let function = {
            let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.as_ref().map(|function| function.clone_ref(py))
        };
        if let Some(Err(error)) = function.map(|function| function.call1(py, (path, status))) {
            error.write_unraisable(py, None);
        }
    });
}

fn python_resolve(function: Py<PyAny>) -> Arc<Resolve> {
    Arc::new(move |host, port| {
        Python::attach(|py| {
            let found = function.call1(py, (host, port));
            let found: Vec<String> = found
                .and_then(|found| found.extract(py))
                .map_err(|error| reason(py, &error))?;
            let addresses = found.iter().map(|address| address.parse::<IpAddr>());
            addresses.collect::<Result<_, _>>().map_err(io::Error::other)
        })
    })
}

fn reason(py: Python<'_>, error: &PyErr) -> io::Error {
    let text = error
        .value(py)
        .getattr("strerror")
        .and_then(|text| text.extract::<String>());
    io::Error::other(text.unwrap_or_else(|_| error.to_string()))
}

// -- settings -------------------------------------------------------------------------------------

fn read_settings(given: &Bound<'_, PyAny>, table: &'static str) -> PyResult<HttpSettings> {
    let field = |name: &str| given.getattr(name);
    let text = |name: &str| field(name)?.extract::<String>();
    let seconds = |name: &str| -> PyResult<Duration> {
        let seconds = field(name)?.extract::<f64>()?;
        Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    };
    let (base, path): (Destination, String) = field("base")?.extract()?;
    let allowed: Vec<Destination> = field("allowed")?.extract()?;
    let mut headers = Vec::new();
    for header in field("headers")?.try_iter()? {
        let (name, value): (String, Bound<'_, PyAny>) = header?.extract()?;
        headers.push((name, template(&value)?));
    }
    let ca_file = field("ca_file")?;
    Ok(HttpSettings {
        table,
        name: text("name")?,
        pack: field("pack")?.extract()?,
        base: Url {
            origin: origin(base),
            path,
            query: String::new(),
        },
        allowed: allowed.into_iter().map(origin).collect(),
        auth: auth(&field("auth")?)?,
        headers,
        key_header: text("key_header")?,
        body: match text("body")?.as_str() {
            "form" => BodyFormat::Form,
            _ => BodyFormat::Json,
        },
        timeout: seconds("timeout")?,
        connect_timeout: seconds("connect_timeout")?,
        max_response: field("max_response")?.extract()?,
        redirects: match text("redirects")?.as_str() {
            "same_host" => Redirects::SameHost,
            "allowed_hosts" => Redirects::AllowedHosts,
            _ => Redirects::None,
        },
        allow_private_addresses: field("allow_private_addresses")?.extract()?,
        ca_file: if ca_file.is_none() {
            None
        } else {
            Some(ca_file.str()?.extract()?)
        },
        max_connections: field("max_connections")?.extract()?,
        probe: probe(&field("probe")?)?,
        retry_after_max: seconds("retry_after_max")?,
        failures: field("failures")?
            .try_iter()?
            .map(|each| failure_rule(&each?))
            .collect::<PyResult<_>>()?,
    })
}

fn template(given: &Bound<'_, PyAny>) -> PyResult<Template> {
    let (texts, names) = given.extract()?;
    Ok(Template { texts, names })
}

/// Reads a rule of failures; the values of body members are JSON texts.
fn failure_rule(given: &Bound<'_, PyAny>) -> PyResult<FailureRule> {
    let body: Vec<(Vec<String>, String)> = given.getattr("body")?.extract()?;
    let body = body.into_iter().map(|(path, text)| match parse(&text) {
        Ok(value) => Ok((path, value)),
        Err(_) => Err(PyValueError::new_err(text)),
    });
    Ok(FailureRule {
        status: given.getattr("status")?.extract()?,
        headers: given.getattr("headers")?.extract()?,
        body: body.collect::<PyResult<_>>()?,
        code: given.getattr("code")?.extract()?,
        retry_at: given.getattr("retry_at")?.extract()?,
        may_have_happened: given.getattr("may_have_happened")?.extract()?,
    })
}

/// Reads the credentials; the class of the settings has the name of the form.
fn auth(given: &Bound<'_, PyAny>) -> PyResult<Option<Auth>> {
    let field = |name: &str| given.getattr(name);
    let text = |name: &str| field(name)?.extract::<String>();
    let filled = |name: &str| template(&field(name)?);
    let form = given.get_type().name()?.to_string();
    Ok(match form.as_str() {
        "Basic" => Some(Auth::Basic {
            user: filled("user")?,
            password: filled("password")?,
        }),
        "AuthHeader" => Some(Auth::Header {
            name: text("name")?,
            value: filled("value")?,
        }),
        "OAuth2" => {
            let (place, path, query): (Destination, String, String) = field("token_url")?.extract()?;
            Some(Auth::OAuth2(OAuth2 {
                token_url: Url {
                    origin: origin(place),
                    path,
                    query,
                },
                client_id: filled("client_id")?,
                client_secret: filled("client_secret")?,
                scope: text("scope")?,
                audience: text("audience")?,
                is_in_body: field("is_in_body")?.extract()?,
            }))
        }
        "AwsSigV4" => Some(Auth::AwsSigV4(AwsSigV4 {
            region: text("region")?,
            service: text("service")?,
            access_key_id: filled("access_key_id")?,
            secret_access_key: filled("secret_access_key")?,
            session_token: match field("session_token")? {
                token if token.is_none() => None,
                token => Some(template(&token)?),
            },
        })),
        _ => None,
    })
}

fn probe(given: &Bound<'_, PyAny>) -> PyResult<Option<Probe>> {
    if given.is_none() {
        return Ok(None);
    }
    Ok(Some(Probe {
        method: given.getattr("method")?.extract()?,
        endpoint: given.getattr("endpoint")?.extract()?,
        found_status: given.getattr("found_status")?.extract()?,
    }))
}
