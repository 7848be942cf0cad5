//! Performers of `vesper-host` as objects of Python. The run loop uses the performer inside without Python; tests and
//! performers of Python call its methods.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyMapping};
use vesper_host::effect::{Ask, AttemptError, Broken, Failure, Performer, Secrets};
use vesper_host::runtime::{self, NoRuntime};
use vesper_interp::problems::Path;
use vesper_interp::{Argument, Request};
use vesper_ir::types::{Declared, Field, MemberTexts, Outside};
use vesper_ir::{Effect, EffectClass, EnumType, MapType, RecordType, Type, Value};
use zeroize::Zeroizing;

use crate::host::performer::{FAILED, MODULE, NOT_DONE, failure_of};
use crate::inputs::checked_inputs::Conversion;
use crate::inputs::shapes::Shapes;
use crate::inputs::values::to_python;
use crate::watch::check_signals;

/// A performer of `vesper-host`.
#[pyclass(frozen, subclass, module = "vesper._direct")]
pub(crate) struct NativePerformer {
    pub(crate) performer: Arc<dyn Performer>,
}

#[pymethods]
impl NativePerformer {
    /// Performs the effect of an `Ask` and returns its value.
    #[pyo3(signature = (ask, /))]
    fn perform<'py>(&self, ask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = ask.py();
        let asked = Asked::read(ask)?;
        let value = wait_for(py, self.performer.perform(asked.ask()))?;
        asked.answer(py, &value)
    }

    /// Finds out what became of the effect of an `Ask`.
    #[pyo3(signature = (ask, /))]
    fn probe<'py>(&self, ask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = ask.py();
        let asked = Asked::read(ask)?;
        match wait_for(py, self.performer.probe(asked.ask()))? {
            Some(value) => asked.answer(py, &value),
            None => Ok(NOT_DONE.import(py, MODULE, "NOT_DONE")?.clone()),
        }
    }

    /// Closes connections.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.performer.close());
    }
}

/// Returns the native form of a performer of Python; None where it has none.
pub(crate) fn native_form(
    object: &Bound<'_, PyAny>,
    is_joined: bool,
) -> PyResult<Option<Arc<dyn Performer>>> {
    if let Ok(native) = object.cast::<NativePerformer>() {
        return Ok(Some(Arc::clone(&native.get().performer)));
    }
    let Some(method) = object.getattr_opt(intern!(object.py(), "native_performer"))? else {
        return Ok(None);
    };
    let native = method.call1((is_joined,))?;
    let native = native
        .cast::<NativePerformer>()
        .map_err(|_| PyTypeError::new_err("`native_performer` returns a NativePerformer"))?;
    Ok(Some(Arc::clone(&native.get().performer)))
}

/// Returns the exception of a failure.
pub(crate) fn failure_exception(py: Python<'_>, failure: &Failure) -> PyErr {
    let made = || {
        let class = FAILED.import(py, MODULE, "EffectFailed")?;
        let wait = failure.retry_after.map(|time| time.as_secs_f64());
        let more = [
            ("retry_after", wait.into_pyobject(py)?),
            (
                "may_have_happened",
                failure.may_have_happened.into_pyobject(py)?.to_owned().into_any(),
            ),
        ];
        class.call(
            (failure.code.name(), &failure.message),
            Some(&more.into_py_dict(py)?),
        )
    };
    made().map_or_else(|error| error, PyErr::from_value)
}

/// Returns the exception of an attempt.
pub(crate) fn attempt_exception(py: Python<'_>, error: AttemptError) -> PyErr {
    match error {
        AttemptError::Failed(failure) => failure_exception(py, &failure),
        AttemptError::Broken(broken) => exception_of(broken),
    }
}

/// Returns the exception that ended an attempt or a run.
pub(crate) fn exception_of(broken: Broken) -> PyErr {
    let found = broken.0.downcast::<PyErr>();
    found.map_or_else(
        |_| PyRuntimeError::new_err("an exception of another kind ended the run"),
        |error| *error,
    )
}

/// Returns the time of a number of seconds.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(if seconds > 0.0 {
        Duration::MAX
    } else {
        Duration::ZERO
    })
}

/// Runs a future to its end without Python's lock; signals are handled while it waits.
pub(crate) fn wait_for<T: Send, E: Into<AttemptError>>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, E>> + Send,
) -> PyResult<T> {
    enum Stop {
        Interrupted(PyErr),
        Unable(NoRuntime),
    }
    impl From<NoRuntime> for Stop {
        fn from(error: NoRuntime) -> Self {
            Self::Unable(error)
        }
    }
    let future = async { future.await.map_err(Into::into) };
    let check = || check_signals().map_err(Stop::Interrupted);
    match py.detach(|| runtime::block_on(future, check)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(attempt_exception(py, error)),
        Err(Stop::Interrupted(raised)) => Err(raised),
        Err(Stop::Unable(NoRuntime(message))) => Err(PyRuntimeError::new_err(message)),
    }
}

/// An `Ask` of Python in the form of the run loop.
pub(crate) struct Asked {
    execution: String,
    request: Request,
    timeout: Option<Duration>,
    is_repeat: bool,
    is_sensitive: bool,
    secrets: PythonSecrets,
    references: HashMap<Arc<str>, Arc<str>>,
}

impl Asked {
    pub(crate) fn read(ask: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = ask.py();
        let field = |name: &str| ask.getattr(name);
        let text = |name: &str| field(name)?.extract::<String>();
        let effect = text("effect")?;
        let effect = Effect::from_name(&effect)
            .ok_or_else(|| PyTypeError::new_err(format!("no effect is called `{effect}`")))?;
        let class = text("effect_class")?;
        let class = EffectClass::from_name(&class)
            .ok_or_else(|| PyTypeError::new_err(format!("no class is called `{class}`")))?;
        let timeout: Option<f64> = field("timeout")?.extract()?;
        let path = text("path")?;
        let references: Option<HashMap<String, String>> = field("references")?.extract()?;
        Ok(Self {
            execution: text("execution")?,
            timeout: timeout.map(|time| Duration::try_from_secs_f64(time).unwrap_or_default()),
            is_repeat: field("is_repeat")?.extract()?,
            is_sensitive: field("is_sensitive")?.extract()?,
            secrets: PythonSecrets(field("secret")?.unbind()),
            references: references
                .unwrap_or_default()
                .into_iter()
                .map(|(reference, name)| (Arc::from(reference), Arc::from(name)))
                .collect(),
            request: Request {
                id: 0,
                node: Arc::from(""),
                step: Arc::from(path.as_str()),
                path,
                effect,
                class,
                key: field("key")?.extract::<Option<String>>()?.map(Arc::from),
                fixed: texts(&field("fixed")?)?,
                arguments: arguments(py, effect, &field("arguments")?)?,
                result: type_of(&field("gives")?)?,
            },
        })
    }

    pub(crate) fn ask(&self) -> Ask<'_> {
        Ask {
            execution: &self.execution,
            request: &self.request,
            timeout: self.timeout,
            is_repeat: self.is_repeat,
            attempt: 1,
            is_sensitive: self.is_sensitive,
            secrets: &self.secrets,
            references: &self.references,
            trace: None,
            sink: None,
            limits: None,
            budgets: &[],
        }
    }

    fn answer<'py>(&self, py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        let shape = Shapes::new(py, []).of(py, &self.request.result);
        to_python(py, &shape, value)
    }
}

fn texts(mapping: &Bound<'_, PyAny>) -> PyResult<Vec<(Arc<str>, Arc<str>)>> {
    let mut found = Vec::new();
    for item in mapping.cast::<PyMapping>()?.items()? {
        let (name, text): (String, String) = item.extract()?;
        found.push((Arc::from(name), Arc::from(text)));
    }
    Ok(found)
}

/// Converts the arguments of an `Ask`, which has no types: they are those of the effect, or else of the objects.
fn arguments(py: Python<'_>, effect: Effect, mapping: &Bound<'_, PyAny>) -> PyResult<Vec<Argument>> {
    let mut found = Vec::new();
    let shapes = Shapes::new(py, []);
    for item in mapping.cast::<PyMapping>()?.items()? {
        let (name, object): (String, Bound<'_, PyAny>) = item.extract()?;
        let is_json = matches!(
            (effect, name.as_str()),
            (Effect::HttpRequest, "body")
                | (Effect::EventPublish, "payload")
                | (Effect::ModelCall, "request")
        );
        let ty = if is_json {
            Type::Json
        } else {
            type_of_object(&object)?
        };
        let mut conversion = Conversion::default();
        let mut value = Value::Null;
        let shape = shapes.of(py, &ty);
        if !conversion.value(&shape, &object, &Path::Input(&name), &mut value)? {
            return Err(PyTypeError::new_err(format!("the argument `{name}` is no value")));
        }
        let name = Arc::from(name);
        found.push(Argument { name, ty, value });
    }
    Ok(found)
}

/// Returns a type that accepts the object.
fn type_of_object(object: &Bound<'_, PyAny>) -> PyResult<Type> {
    let class = object.get_type();
    let first = |wrap: fn(Arc<Type>) -> Type| -> PyResult<Type> {
        let mut inner = Type::Optional(Arc::new(Type::Text));
        for item in object.try_iter()? {
            let ty = type_of_object(&item?)?;
            // Where items differ, json holds them all.
            inner = match (inner, ty) {
                (Type::Optional(_), ty) => ty,
                (inner, ty) if inner == ty || matches!(ty, Type::Optional(_)) => inner,
                _ => Type::Json,
            };
        }
        Ok(wrap(Arc::new(inner)))
    };
    Ok(match class.name()?.to_str()? {
        "bool" => Type::Boolean,
        "int" => Type::Integer,
        "Decimal" => Type::Decimal,
        "float" => Type::Float,
        "bytes" => Type::Bytes,
        "datetime" => Type::Timestamp,
        "date" => Type::Date,
        "timedelta" => Type::Duration,
        "time" => Type::TimeOfDay,
        "Period" => Type::Period,
        "NoneType" => Type::Optional(Arc::new(Type::Text)),
        "list" => match first(Type::Array)? {
            Type::Array(of) if *of == Type::Json => Type::Json,
            ty => ty,
        },
        "frozenset" => first(Type::Set)?,
        "dict" => {
            let mut fields = Vec::new();
            for (name, item) in object.cast::<PyDict>()?.iter() {
                fields.push(Field {
                    name: Arc::from(name.extract::<String>()?),
                    ty: type_of_object(&item)?,
                });
            }
            RecordType::new(fields).map_or(Type::Json, |of| Type::Record(Arc::new(of)))
        }
        _ => Type::Text,
    })
}

/// Converts a type of `vesper.values.types`.
pub(crate) fn type_of(object: &Bound<'_, PyAny>) -> PyResult<Type> {
    let part = |name: &str| {
        object
            .getattr(name)
            .and_then(|inner| type_of(&inner))
            .map(Arc::new)
    };
    Ok(match object.get_type().name()?.to_str()? {
        "Primitive" => primitive(&object.getattr("name")?.extract::<String>()?)?,
        "ArrayOf" => Type::Array(part("element")?),
        "SetOf" => Type::Set(part("element")?),
        "OptionalOf" => Type::Optional(part("inner")?),
        "MapOf" => Type::Map(Arc::new(MapType {
            key: type_of(&object.getattr("key")?)?,
            value: type_of(&object.getattr("value")?)?,
        })),
        "Enum" => {
            let members: Vec<String> = object.getattr("members")?.extract()?;
            let texts: Vec<String> = object.getattr("outside")?.extract()?;
            let of = EnumType::new(members.into_iter().map(Arc::from).collect());
            let of = of.map_err(|_| unknown_type(object))?;
            if texts.is_empty() {
                return Ok(Type::Enum(Arc::new(of)));
            }
            let texts = MemberTexts::new(texts.into_iter().map(Arc::from).collect());
            Type::Enum(Arc::new(of.with_texts(texts.map_err(|_| unknown_type(object))?)))
        }
        "Record" => {
            let mut fields = Vec::new();
            for field in object.getattr("fields")?.try_iter()? {
                let (name, ty): (String, Bound<'_, PyAny>) = field?.extract()?;
                fields.push(Field {
                    name: Arc::from(name),
                    ty: type_of(&ty)?,
                });
            }
            let outside = outside_of(&object.getattr("outside")?, &fields)?;
            let of = RecordType::new(fields.clone()).map_err(|_| unknown_type(object))?;
            let Some(outside) = outside else {
                return Ok(Type::Record(Arc::new(of)));
            };
            let named = RecordType::new(fields).map_err(|_| unknown_type(object))?;
            Type::Record(Arc::new(named.with_outside(Some(outside), Arc::new(of))))
        }
        _ => return Err(unknown_type(object)),
    })
}

/// Converts the outside names of a record, an `Outside` of `vesper.values.types` or `None`.
fn outside_of(object: &Bound<'_, PyAny>, fields: &[Field]) -> PyResult<Option<Outside>> {
    if object.is_none() {
        return Ok(None);
    }
    let pairs = |name: &str| -> PyResult<HashMap<String, Arc<str>>> {
        let pairs: Vec<(String, String)> = object.getattr(name)?.extract()?;
        Ok(pairs
            .into_iter()
            .map(|(name, other)| (name, Arc::from(other)))
            .collect())
    };
    let (names, flags) = (pairs("names")?, pairs("flags")?);
    let rest: Option<String> = object.getattr("rest")?.extract()?;
    let declared = fields.iter().map(|field| Declared {
        name: &field.name,
        ty: &field.ty,
        outside: names.get(&*field.name),
        flag: flags.get(&*field.name),
    });
    let outside = Outside::new("field", &declared.collect::<Vec<_>>(), rest.as_deref());
    outside.map(Some).map_err(PyTypeError::new_err)
}

fn primitive(name: &str) -> PyResult<Type> {
    Ok(match name {
        "boolean" => Type::Boolean,
        "integer" => Type::Integer,
        "decimal" => Type::Decimal,
        "float" => Type::Float,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "date" => Type::Date,
        "duration" => Type::Duration,
        "time_of_day" => Type::TimeOfDay,
        "period" => Type::Period,
        "json" => Type::Json,
        other => return Err(PyTypeError::new_err(format!("no type is called `{other}`"))),
    })
}

fn unknown_type(object: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{object} is no type of a value"))
}

/// A function of Python that returns the text of a secret.
pub(crate) struct PythonSecrets(pub(crate) Py<PyAny>);

impl Secrets for PythonSecrets {
    fn text(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        Python::attach(|py| {
            let found = self.0.call1(py, (name,));
            let text = found.map_err(|error| failure_of(py, error))?;
            // A surrogate, which no other side understands.
            let invalid = |_| Failure::new("unavailable", format!("the secret `{name}` is no valid text"));
            text.extract(py).map(Zeroizing::new).map_err(invalid)
        })
    }
}
