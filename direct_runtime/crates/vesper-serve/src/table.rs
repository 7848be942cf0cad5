//! The table of one epoch: endpoints, pages and settings, read from JSON (docs/spec/serving.md).

use std::collections::HashMap;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde_json::Value;
use vesper_auth::{Auth, Fields, TableError};

use crate::exchange::{Builtin, Endpoint};
use crate::numbers::Shape;
use crate::routes::{Routes, segments_of_template};
use crate::webhook::Webhook;

const VERSION: u64 = 1;
const LIVEZ_PATH: &str = "/livez";

/// A target of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Livez,
    Page(usize),
    Node(usize),
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) endpoints: Vec<Service>,
    pub(crate) pages: Vec<Page>,
    pub(crate) routes: Routes,
    pub(crate) cors: Option<Cors>,
    pub(crate) auth: Auth,
    /// Senders of signed requests, by node; their requests need no other credentials.
    pub(crate) webhooks: HashMap<String, Webhook>,
    pub(crate) max_body_bytes: Option<u64>,
}

/// A page of the server itself.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) builtin: Builtin,
    pub(crate) path: String,
    pub(crate) scopes: Vec<String>,
}

/// A node at its method and path.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) node: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Inputs from path, query and header.
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Body,
    pub(crate) status: StatusCode,
    pub(crate) statuses: HashMap<String, StatusCode>,
    pub(crate) response_headers: Vec<(HeaderName, Vec<Part>)>,
    pub(crate) has_etag: bool,
    pub(crate) scopes: Vec<String>,
    /// Places of decimals that are written as numbers.
    pub(crate) outputs: Shape,
    pub(crate) errors: Shape,
}

/// The source of the inputs that no parameter has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Members of the body.
    Object,
    None,
    /// The body is the value of one input.
    Input(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Position among the holes of the path.
    Path(usize),
    Query(String),
    Header(HeaderName),
}

impl Source {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Path(_) => "path",
            Self::Query(_) => "query",
            Self::Header(_) => "header",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Parameter {
    /// Member of the inputs, quoted, with its colon.
    pub(crate) member: String,
    pub(crate) name: String,
    pub(crate) source: Source,
    /// True where a number or boolean is written without quotes.
    pub(crate) is_bare: bool,
    pub(crate) is_array: bool,
}

/// A part of the template of a response header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Output(String),
}

#[derive(Debug)]
pub(crate) struct Cors {
    pub(crate) origins: Vec<String>,
    pub(crate) is_any_origin: bool,
    pub(crate) headers: HeaderValue,
    pub(crate) exposed: HeaderValue,
    pub(crate) max_age: HeaderValue,
    pub(crate) has_credentials: bool,
}

impl Table {
    pub(crate) fn read(text: &[u8]) -> Result<Self, TableError> {
        let value: Value =
            serde_json::from_slice(text).map_err(|error| TableError(format!("is not JSON: {error}")))?;
        let mut top = Fields::of(value, "the table")?;
        if top.take("version").as_u64() != Some(VERSION) {
            return Err(top.error("version", "1 is expected"));
        }
        let has_numbers = match top.text("decimals")?.as_str() {
            "text" => false,
            "number" => true,
            _ => return Err(top.error("decimals", "`text` or `number` is expected")),
        };
        let mut endpoints = Vec::new();
        for (index, each) in top.list("endpoints")?.into_iter().enumerate() {
            endpoints.push(Service::read(
                Fields::of(each, &format!("endpoints[{index}]"))?,
                has_numbers,
            )?);
        }
        let pages = top
            .list("builtins")?
            .into_iter()
            .map(Page::read)
            .collect::<Result<Vec<_>, _>>()?;
        let cors = match top.take("cors") {
            Value::Null => None,
            given => Some(Cors::read(Fields::of(given, "cors")?)?),
        };
        let mut auth = Fields::of(top.take("auth"), "auth")?;
        let mut webhooks = HashMap::new();
        for each in auth.list("webhooks")? {
            let mut each = Fields::of(each, "auth.webhooks")?;
            webhooks.insert(each.text("node")?, Webhook::read(each)?);
        }
        let auth = Auth::read(auth)?;
        let max_body_bytes = top.take("max_body_bytes").as_u64();
        top.done()?;
        let mut routes = Routes::default();
        routes.add(&Method::GET, LIVEZ_PATH, Target::Livez)?;
        for (index, each) in pages.iter().enumerate() {
            routes.add(&Method::GET, &each.path, Target::Page(index))?;
        }
        for (index, each) in endpoints.iter().enumerate() {
            routes.add(&each.method, &each.path, Target::Node(index))?;
        }
        Ok(Self {
            endpoints,
            pages,
            routes,
            cors,
            auth,
            webhooks,
            max_body_bytes,
        })
    }

    pub(crate) fn endpoint(&self, target: Target) -> Option<Endpoint> {
        match target {
            Target::Livez => None,
            Target::Page(index) => self.pages.get(index).map(|page| Endpoint::Builtin(page.builtin)),
            Target::Node(index) => Some(Endpoint::Node(index)),
        }
    }

    pub(crate) fn webhook(&self, target: Target) -> Option<&Webhook> {
        let Target::Node(index) = target else { return None };
        self.webhooks.get(&self.endpoints.get(index)?.node)
    }

    pub(crate) fn scopes(&self, target: Target) -> &[String] {
        match target {
            Target::Livez => &[],
            Target::Page(index) => self.pages.get(index).map_or(&[], |page| &page.scopes),
            Target::Node(index) => self.endpoints.get(index).map_or(&[], |service| &service.scopes),
        }
    }
}

impl Page {
    fn read(given: Value) -> Result<Self, TableError> {
        let (path, scopes) = if let Value::String(path) = given {
            (path, Vec::new())
        } else {
            let mut fields = Fields::of(given, "builtins")?;
            let found = (fields.text("path")?, fields.texts("scopes")?);
            fields.done()?;
            found
        };
        let builtin =
            Builtin::of_path(&path).ok_or_else(|| TableError(format!("builtins: there is no `{path}`")))?;
        Ok(Self {
            builtin,
            path,
            scopes,
        })
    }
}

impl Service {
    fn read(mut fields: Fields, has_numbers: bool) -> Result<Self, TableError> {
        let path = fields.text("path")?;
        let holes: Vec<String> = segments_of_template(&path)?
            .into_iter()
            .filter_map(|each| each.hole.map(str::to_owned))
            .collect();
        let method = fields.text("method")?;
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|_| fields.error("method", "is none of HTTP"))?;
        let mut parameters = Vec::new();
        let mut is_object = false;
        for each in fields.list("inputs")? {
            let mut input = Fields::of(each, &format!("{}.inputs", fields.path()))?;
            match Parameter::read(&mut input, &holes)? {
                Some(parameter) => parameters.push(parameter),
                None => is_object = true,
            }
            input.done()?;
        }
        let body = match fields.text("body")?.as_str() {
            "none" if is_object => {
                return Err(fields.error("body", "inputs come from it, so it cannot be `none`"));
            }
            "none" => Body::None,
            "object" => Body::Object,
            name => Body::Input(name.to_owned()),
        };
        let status = status_of(&mut fields, "success_status")?;
        let mut statuses = HashMap::new();
        let mut given = Fields::of(fields.take("statuses"), &format!("{}.statuses", fields.path()))?;
        for code in given.names() {
            let found = status_of(&mut given, &code)?;
            statuses.insert(code, found);
        }
        let response_headers = read_response_headers(&mut fields)?;
        let mut shape = |name: &str| match fields.take(name) {
            given if has_numbers => Shape::read(&given),
            _ => Ok(Shape::Other),
        };
        let (outputs, errors) = (shape("outputs")?, shape("errors")?);
        fields.take("has_now");
        let is_pure = fields.boolean("is_pure")?;
        let found = Self {
            node: fields.text("node")?,
            has_etag: is_pure && method == Method::GET,
            method,
            path,
            parameters,
            body,
            status,
            statuses,
            response_headers,
            scopes: fields.texts("scopes")?,
            outputs,
            errors,
        };
        fields.done()?;
        Ok(found)
    }

    /// Returns the kind of source of the input that the path of a problem begins with.
    pub(crate) fn source_of(&self, problem: &str) -> &'static str {
        let is_of = |name: &str| {
            problem
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let parameter = self.parameters.iter().find(|each| is_of(&each.name));
        match parameter {
            Some(parameter) => parameter.source.word(),
            None if problem.starts_with('?') => "query",
            None => "body",
        }
    }
}

impl Parameter {
    /// Reads an input; returns `None` for one that comes from the body.
    fn read(input: &mut Fields, holes: &[String]) -> Result<Option<Self>, TableError> {
        let (name, from) = (input.text("name")?, input.text("from")?);
        let (key, form) = (input.text("key")?, input.text("form")?);
        let source = match from.as_str() {
            "body" => return Ok(None),
            "path" => match holes.iter().position(|each| *each == key) {
                Some(position) => Source::Path(position),
                None => return Err(input.error("key", &format!("the path has no `{{{key}}}`"))),
            },
            "query" => Source::Query(key),
            "header" => match HeaderName::from_bytes(key.as_bytes()) {
                Ok(header) => Source::Header(header),
                Err(_) => return Err(input.error("key", &format!("`{key}` is no name of a header"))),
            },
            _ => return Err(input.error("from", "`path`, `query`, `header` or `body` is expected")),
        };
        if name.starts_with('?') {
            return Err(input.error("name", "`?` begins the names of unknown query parameters"));
        }
        let (is_bare, is_array) = match form.as_str() {
            "text" => (false, false),
            "bare" => (true, false),
            "array_text" => (false, true),
            "array_bare" => (true, true),
            _ => return Err(input.error("form", "`text`, `bare`, `array_text` or `array_bare` is expected")),
        };
        let member = format!("{}:", Value::from(name.as_str()));
        Ok(Some(Self {
            member,
            name,
            source,
            is_bare,
            is_array,
        }))
    }
}

fn read_response_headers(fields: &mut Fields) -> Result<Vec<(HeaderName, Vec<Part>)>, TableError> {
    let mut given = Fields::of(
        fields.take("response_headers"),
        &format!("{}.response_headers", fields.path()),
    )?;
    let mut found = Vec::new();
    for name in given.names() {
        let template = given.text(&name)?;
        let header = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .filter(|_| HeaderValue::from_str(&template).is_ok())
            .ok_or_else(|| given.error(&name, "is no header of HTTP"))?;
        let mut parts = Vec::new();
        for (index, piece) in template.split('{').enumerate() {
            let (output, text) = if index == 0 {
                (None, piece)
            } else {
                split_hole(&given, &name, piece)?
            };
            parts.extend(output.map(|output| Part::Output(output.to_owned())));
            parts.extend((!text.is_empty()).then(|| Part::Text(text.to_owned())));
        }
        found.push((header, parts));
    }
    Ok(found)
}

fn split_hole<'a>(
    given: &Fields,
    name: &str,
    piece: &'a str,
) -> Result<(Option<&'a str>, &'a str), TableError> {
    match piece.split_once('}') {
        Some((output, text)) => Ok((Some(output), text)),
        None => Err(given.error(name, "a `{` is not closed")),
    }
}

impl Cors {
    fn read(mut fields: Fields) -> Result<Self, TableError> {
        let origins = fields.texts("origins")?;
        let listed = |names: Vec<String>| {
            HeaderValue::from_str(&names.join(", "))
                .map_err(|_| TableError("cors: a header's name is malformed".into()))
        };
        let mut headers: Vec<String> = [
            "authorization",
            "content-type",
            "idempotency-key",
            "vesper-timeout",
            "x-api-key",
            "traceparent",
            "tracestate",
        ]
        .map(str::to_owned)
        .into();
        headers.extend(fields.texts("headers")?);
        let has_credentials = fields.boolean("has_credentials")?;
        let is_any_origin = origins.iter().any(|each| each == "*");
        if is_any_origin && has_credentials {
            return Err(fields.error(
                "has_credentials",
                "browsers send credentials to named origins only",
            ));
        }
        let found = Self {
            is_any_origin,
            origins,
            headers: listed(headers)?,
            exposed: HeaderValue::from_static("etag, location, retry-after, traceparent, vesper-execution"),
            max_age: HeaderValue::from(fields.take("max_age").as_u64().unwrap_or_default()),
            has_credentials,
        };
        fields.done()?;
        Ok(found)
    }
}

fn status_of(fields: &mut Fields, name: &str) -> Result<StatusCode, TableError> {
    let found = fields
        .take(name)
        .as_u64()
        .and_then(|each| u16::try_from(each).ok());
    found
        .filter(|each| (200..600).contains(each))
        .and_then(|each| StatusCode::from_u16(each).ok())
        .ok_or_else(|| fields.error(name, "a status from 200 to 599 is expected"))
}
