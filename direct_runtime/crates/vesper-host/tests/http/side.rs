//! Our side of a server: settings, performers and attempts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use vesper_host::effect::{Ask, AttemptError, Failure, Performer as _, Secrets, TraceHeaders};
use vesper_host::http::settings::{BodyFormat, HttpSettings, Redirects};
use vesper_host::http::url::read_url;
use vesper_host::http::{HttpPerformer, Surroundings, Template};
use vesper_interp::{Argument, Request};
use vesper_ir::types::Field;
use vesper_ir::{Effect, EffectClass, Json, RecordType, Type, Value};
use zeroize::Zeroizing;

/// Time that nothing here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const API_KEY: &str = "sk_live_0123456789";
pub(crate) const OTHER: &str = "very secret/text+";

/// Secrets by name.
pub(crate) struct Vault(pub Vec<(&'static str, String)>);

impl Vault {
    pub(crate) fn usual() -> Self {
        Self(vec![("api_key", API_KEY.to_owned()), ("other", OTHER.to_owned())])
    }
}

impl Secrets for Vault {
    fn text(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        let found = self.0.iter().find(|(each, _)| *each == name);
        found
            .map(|(_, text)| Zeroizing::new(text.clone()))
            .ok_or_else(|| Failure::new("not_found", format!("there is no secret `{name}`")))
    }
}

/// Addresses by name; other names are those of the server.
pub(crate) type Names = Arc<Mutex<HashMap<String, Vec<IpAddr>>>>;

pub(crate) struct Side {
    pub(crate) settings: HttpSettings,
    pub(crate) names: Names,
    pub(crate) runtime: Runtime,
}

impl Side {
    pub(crate) fn new(base: &str) -> Self {
        let base = read_url(base).unwrap();
        let settings = HttpSettings {
            table: "providers",
            name: "shop".to_owned(),
            pack: None,
            allowed: vec![base.origin.clone()],
            base,
            auth: None,
            headers: Vec::new(),
            key_header: "Idempotency-Key".to_owned(),
            body: BodyFormat::Json,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            max_response: 1 << 20,
            redirects: Redirects::None,
            allow_private_addresses: true,
            ca_file: None,
            max_connections: 20,
            probe: None,
            retry_after_max: Duration::from_mins(5),
            failures: Vec::new(),
        };
        Self {
            settings,
            names: Names::default(),
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
        }
    }

    pub(crate) fn performer(&self) -> HttpPerformer {
        let names = Arc::clone(&self.names);
        let surroundings = Surroundings {
            secrets: Arc::new(Vault::usual()),
            public_authorities: "no such file".to_owned(),
            resolve: Arc::new(move |host, _| {
                let found = names.lock().unwrap().get(host).cloned();
                Ok(found.unwrap_or_else(|| vec!["127.0.0.1".parse().unwrap()]))
            }),
            on_answer: None,
        };
        HttpPerformer::new([self.settings.clone()], surroundings).unwrap()
    }

    pub(crate) fn perform(&self, performer: &HttpPerformer, call: &Call) -> Result<Value, Failure> {
        plain(self.runtime.block_on(performer.perform(call.ask())))
    }

    /// Returns the failure of an attempt, in bounded time and without a secret in its message.
    pub(crate) fn failure(&self, performer: &HttpPerformer, call: &Call) -> Failure {
        let begun = Instant::now();
        let failure = self.perform(performer, call).unwrap_err();
        assert!(begun.elapsed() < PATIENCE);
        for secret in [API_KEY, OTHER] {
            assert!(!failure.message.contains(secret), "{}", failure.message);
        }
        assert!(failure.message.chars().count() < 700, "{}", failure.message);
        failure
    }

    /// Returns the JSON text of an answer.
    pub(crate) fn json(&self, performer: &HttpPerformer, call: &Call) -> String {
        match self.perform(performer, call) {
            Ok(Value::Json(json)) => json.text(),
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the failure of an attempt; performers of HTTP have no exceptions.
pub(crate) fn plain<T>(result: Result<T, AttemptError>) -> Result<T, Failure> {
    result.map_err(|error| match error {
        AttemptError::Failed(failure) => failure,
        AttemptError::Broken(broken) => panic!("{broken:?}"),
    })
}

/// One attempt, with everything that it borrows.
pub(crate) struct Call {
    pub(crate) request: Request,
    pub(crate) timeout: Option<Duration>,
    pub(crate) secrets: Vault,
    pub(crate) references: HashMap<Arc<str>, Arc<str>>,
    pub(crate) trace: Option<TraceHeaders<'static>>,
}

impl Call {
    pub(crate) fn new(method: &str, endpoint: &str) -> Self {
        let fixed = [("provider", "shop"), ("method", method)];
        let names = ["api_key", "other", "mine", "absent", "unknown"];
        let mut call = Self {
            request: Request {
                id: 0,
                node: "pay_v1".into(),
                step: "charge".into(),
                path: "charge[2]".to_owned(),
                effect: Effect::HttpRequest,
                class: EffectClass::Read,
                key: None,
                fixed: fixed.map(|(name, value)| (name.into(), value.into())).to_vec(),
                arguments: Vec::new(),
                result: Type::Json,
            },
            timeout: Some(PATIENCE),
            secrets: Vault::usual(),
            references: names
                .map(|name| (format!("secret:{name}").into(), name.into()))
                .into(),
            trace: None,
        };
        call.argument("endpoint", Type::Text, Value::Text(endpoint.into()));
        call
    }

    fn argument(&mut self, name: &str, ty: Type, value: Value) {
        let name = name.into();
        self.request.arguments.push(Argument { name, ty, value });
    }

    pub(crate) fn body(mut self, json: &str) -> Self {
        let json: Json = vesper_ir::json::parse(json).unwrap();
        self.argument("body", Type::Json, Value::Json(json.into()));
        self
    }

    pub(crate) fn record(mut self, name: &str, fields: Vec<(&str, Type, Value)>) -> Self {
        let types = fields.iter().map(|(name, ty, _)| Field {
            name: (*name).into(),
            ty: ty.clone(),
        });
        let ty = Type::Record(Arc::new(RecordType::new(types.collect()).unwrap()));
        let values = fields.into_iter().map(|(_, _, value)| value).collect();
        self.argument(name, ty, Value::Record(values));
        self
    }

    pub(crate) fn headers(self, headers: &[(&str, &str)]) -> Self {
        let fields = headers.iter();
        let fields = fields.map(|(name, value)| (*name, Type::Text, Value::Text((*value).into())));
        self.record("headers", fields.collect())
    }

    pub(crate) fn class(mut self, class: EffectClass, key: Option<&str>) -> Self {
        self.request.class = class;
        self.request.key = key.map(Into::into);
        self
    }

    pub(crate) fn gives(mut self, ty: Type) -> Self {
        self.request.result = ty;
        self
    }

    pub(crate) fn within(mut self, milliseconds: u64) -> Self {
        self.timeout = Some(Duration::from_millis(milliseconds));
        self
    }

    pub(crate) fn ask(&self) -> Ask<'_> {
        Ask {
            execution: "run_1",
            request: &self.request,
            timeout: self.timeout,
            is_repeat: false,
            attempt: 1,
            is_sensitive: false,
            secrets: &self.secrets,
            references: &self.references,
            trace: self.trace,
            sink: None,
            limits: None,
            budgets: &[],
        }
    }
}

/// Returns a template `BEFORE{secret:NAME}`.
pub(crate) fn template(before: &str, name: &str) -> Template {
    Template {
        texts: vec![before.to_owned(), String::new()],
        names: vec![name.to_owned()],
    }
}
