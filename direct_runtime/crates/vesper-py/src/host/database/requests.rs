//! Requests that Python makes of a native performer, outside of a run: of an outbox, of commands and of tests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use vesper_host::effect::{Ask, Failure, Secrets};
use vesper_interp::problems::Path;
use vesper_interp::{Argument, Request};
use vesper_ir::types::Field;
use vesper_ir::{Effect, EffectClass, EnumType, MapType, RecordType, Type, Value};
use zeroize::Zeroizing;

use crate::host::native_performer::seconds;
use crate::inputs::checked_inputs::Conversion;
use crate::inputs::shapes::{Shape, Shapes};
use crate::inputs::values::to_python;

/// An `Ask` of Python as a request of the run loop.
pub(super) struct AskOfPython {
    execution: String,
    request: Request,
    timeout: Option<Duration>,
    is_repeat: bool,
    result: Arc<Shape>,
    references: HashMap<Arc<str>, Arc<str>>,
}

impl AskOfPython {
    /// Converts an `Ask`. `types` has the types of the values in `bind`; other arguments are texts.
    pub(super) fn new(ask: &Bound<'_, PyAny>, types: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = ask.py();
        let text = |name: &str| ask.getattr(name)?.extract::<String>();
        let shapes = Shapes::new(py, []);
        let result = shapes.of(py, &type_of(&ask.getattr(intern!(py, "gives"))?)?);
        let fixed: Vec<(String, String)> = dict(&ask.getattr(intern!(py, "fixed"))?)?
            .iter()
            .map(|(name, text)| Ok((name.extract()?, text.extract()?)))
            .collect::<PyResult<_>>()?;
        let mut arguments = Vec::new();
        for (name, object) in dict(&ask.getattr(intern!(py, "arguments"))?)? {
            let name: String = name.extract()?;
            if types.is_none() && name == "bind" {
                continue; // A probe needs no values.
            }
            let ty = if name == "bind" {
                record(types, &object)?
            } else {
                Type::Text
            };
            arguments.push(Argument {
                value: converted(&shapes.of(py, &ty), &object)?,
                name: Arc::from(name),
                ty,
            });
        }
        let (effect, class) = (text("effect")?, text("effect_class")?);
        let path = text("path")?;
        let known = Effect::ALL.iter().copied().find(|each| each.name() == effect);
        let unknown = |what: String| PyValueError::new_err(what);
        Ok(Self {
            execution: text("execution")?,
            request: Request {
                id: 0,
                node: Arc::from(""),
                step: Arc::from(path.as_str()),
                path,
                effect: known.ok_or_else(|| unknown(format!("no effect is called `{effect}`")))?,
                class: EffectClass::from_name(&class)
                    .ok_or_else(|| unknown(format!("no class is called `{class}`")))?,
                key: ask
                    .getattr(intern!(py, "key"))?
                    .extract::<Option<String>>()?
                    .map(Arc::from),
                fixed: fixed
                    .into_iter()
                    .map(|(name, text)| (Arc::from(name), Arc::from(text)))
                    .collect(),
                arguments,
                result: result.ty.clone(),
            },
            timeout: ask
                .getattr(intern!(py, "timeout"))?
                .extract::<Option<f64>>()?
                .map(seconds),
            is_repeat: ask.getattr(intern!(py, "is_repeat"))?.extract()?,
            result,
            references: HashMap::new(),
        })
    }

    pub(super) fn ask(&self) -> Ask<'_> {
        Ask {
            execution: &self.execution,
            request: &self.request,
            timeout: self.timeout,
            is_repeat: self.is_repeat,
            attempt: 1,
            is_sensitive: false,
            secrets: &NoSecrets,
            references: &self.references,
            trace: None,
            sink: None,
            limits: None,
            budgets: &[],
        }
    }

    /// Returns a result in its Python form.
    pub(super) fn object<'py>(&self, py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.result, value)
    }
}

/// Secrets of a request that may use none.
struct NoSecrets;

impl Secrets for NoSecrets {
    fn text(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        Err(Failure::new(
            "not_found",
            format!("the secret `{name}` may not be used here"),
        ))
    }
}

fn dict<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    Ok(object.cast::<PyDict>()?.clone())
}

fn converted(shape: &Shape, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let mut conversion = Conversion::default();
    let mut value = Value::Null;
    let fits = conversion.value(shape, object, &Path::Input("bind"), &mut value)?;
    if !fits || !conversion.problems.is_empty() {
        return Err(PyTypeError::new_err(format!(
            "an argument is not of the type {}",
            shape.ty
        )));
    }
    Ok(value)
}

/// Returns the type of `bind`, whose values have these types.
fn record(types: &Bound<'_, PyAny>, bind: &Bound<'_, PyAny>) -> PyResult<Type> {
    let fields = dict(bind)?;
    let fields = fields
        .iter()
        .map(|(name, _)| field(&name, &types.get_item(&name)?));
    record_of(fields.collect::<PyResult<_>>()?)
}

fn field(name: &Bound<'_, PyAny>, ty: &Bound<'_, PyAny>) -> PyResult<Field> {
    Ok(Field {
        name: Arc::from(name.extract::<String>()?),
        ty: type_of(ty)?,
    })
}

fn record_of(fields: Vec<Field>) -> PyResult<Type> {
    let record = RecordType::new(fields).map_err(|error| PyValueError::new_err(format!("{error:?}")))?;
    Ok(Type::Record(Arc::new(record)))
}

/// Returns a type of `vesper.values.types`.
fn type_of(object: &Bound<'_, PyAny>) -> PyResult<Type> {
    let class: Bound<'_, PyString> = object.get_type().name()?;
    let part = |name: &str| type_of(&object.getattr(name)?);
    Ok(match class.to_str()? {
        "ArrayOf" => Type::Array(Arc::new(part("element")?)),
        "SetOf" => Type::Set(Arc::new(part("element")?)),
        "OptionalOf" => Type::Optional(Arc::new(part("inner")?)),
        "MapOf" => Type::Map(Arc::new(MapType {
            key: part("key")?,
            value: part("value")?,
        })),
        "Enum" => {
            let members: Vec<String> = object.getattr("members")?.extract()?;
            let members = EnumType::new(members.into_iter().map(Arc::from).collect());
            Type::Enum(Arc::new(
                members.map_err(|error| PyValueError::new_err(format!("{error:?}")))?,
            ))
        }
        "Record" => {
            let fields = object.getattr("fields")?.try_iter()?.map(|each| {
                let each = each?;
                field(&each.get_item(0)?, &each.get_item(1)?)
            });
            record_of(fields.collect::<PyResult<_>>()?)?
        }
        _ => match object.str()?.to_str()? {
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
            other => return Err(PyTypeError::new_err(format!("`{other}` is no type of a value"))),
        },
    })
}
