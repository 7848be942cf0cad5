//! Authentication of callers: keys and tokens in metadata, subjects of client certificates.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::sync::watch;
use tonic::Status;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};
use vesper_auth::{Auth, Fields, TableError};

const MAX_KEY_SET_BYTES: u64 = 1 << 20;
const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];
const REFRESH_SECONDS: u64 = 600;
const REFRESHES: std::ops::RangeInclusive<u64> = 1..=86_400;

/// The credentials that are accepted; without any, every caller is.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    auth: Arc<watch::Sender<Arc<Auth>>>,
    /// The table that `auth` was read from, with paths in place of key sets.
    table: Arc<Table>,
}

#[derive(Debug, Default)]
struct Table {
    keys: Vec<Value>,
    issuers: Vec<Issuer>,
    has_client_authority: bool,
}

/// An issuer of tokens, as the settings name it.
#[derive(Debug)]
struct Issuer {
    key_set: String,
    refresh: Duration,
    /// Members of the table of `vesper-auth`, but the keys.
    row: Value,
}

impl Credentials {
    /// Reads settings: tokens with commas between them, keys and issuers as lists in JSON; and the files of issuers.
    pub(crate) fn read(
        tokens: Option<&str>,
        keys: Option<&str>,
        jwt: Option<&str>,
        has_client_authority: bool,
    ) -> Result<Self, String> {
        let tokens = tokens
            .into_iter()
            .flat_map(|tokens| tokens.split(','))
            .map(read_token);
        let keys = list("KEYS", keys)?.into_iter().enumerate().map(read_key);
        let issuers = list("JWT", jwt)?.into_iter().enumerate().map(Issuer::read);
        let table = Table {
            keys: tokens.chain(keys).collect::<Result<_, _>>()?,
            issuers: issuers.collect::<Result<Vec<_>, _>>().map_err(|error| error.0)?,
            has_client_authority,
        };
        let names: HashSet<_> = table.issuers.iter().map(|each| each.row.get("issuer")).collect();
        if names.len() < table.issuers.len() {
            return Err("JWT has an issuer twice.".to_owned());
        }
        let auth = table.load()?;
        Ok(Self {
            auth: Arc::new(watch::Sender::new(Arc::new(auth))),
            table: Arc::new(table),
        })
    }

    pub fn is_empty(&self) -> bool {
        !self.auth().is_required
    }

    /// Returns whether callers may have other credentials than a certificate.
    pub(crate) fn has_metadata(&self) -> bool {
        !(self.table.keys.is_empty() && self.table.issuers.is_empty())
    }

    /// Refuses a request without valid credentials. Reads its head alone.
    pub(crate) fn check<B>(&self, request: &http::Request<B>) -> Result<(), Status> {
        let auth = self.auth();
        if !auth.is_required {
            return Ok(());
        }
        let connection = request.extensions().get::<TlsConnectInfo<TcpConnectInfo>>();
        let certificates = connection.and_then(TlsConnectInfo::peer_certs);
        let subject = certificates.and_then(|chain| vesper_auth::subject(chain.first()?));
        let authorization = request.headers().get(http::header::AUTHORIZATION);
        let authorization = authorization.map(http::HeaderValue::as_bytes);
        match auth.identify(authorization, None, subject.as_deref(), SystemTime::now()) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Status::unauthenticated(
                "Send the metadata `authorization: Bearer TOKEN`.",
            )),
            Err(rejection) => Err(Status::unauthenticated(rejection)),
        }
    }

    fn auth(&self) -> Arc<Auth> {
        Arc::clone(&self.auth.borrow())
    }

    /// Reads the key sets again as long as the credentials are in use; where that fails, the known keys stay.
    pub(crate) fn refresh(&self) {
        let Some(every) = self.table.issuers.iter().map(|each| each.refresh).min() else {
            return;
        };
        let (auth, table) = (Arc::downgrade(&self.auth), Arc::clone(&self.table));
        tokio::spawn(refresh_every(every, auth, table));
    }
}

async fn refresh_every(every: Duration, auth: Weak<watch::Sender<Arc<Auth>>>, table: Arc<Table>) {
    loop {
        tokio::time::sleep(every).await;
        let table = Arc::clone(&table);
        let loaded = tokio::task::spawn_blocking(move || table.load()).await;
        let Some(auth) = auth.upgrade() else { return };
        match loaded {
            Ok(Ok(loaded)) => drop(auth.send_replace(Arc::new(loaded))),
            Ok(Err(problem)) => {
                // Where standard error is closed, the old keys stay all the same.
                let _ = writeln!(std::io::stderr(), "vesper-kernel: the known keys stay: {problem}");
            }
            Err(_) => return,
        }
    }
}

impl Table {
    fn load(&self) -> Result<Auth, String> {
        let mut issuers = Vec::new();
        for each in &self.issuers {
            let mut row = each.row.clone();
            if let Value::Object(members) = &mut row {
                let keys = read_key_set(&each.key_set).map_err(|problem| format!("JWT: {problem}"))?;
                members.insert("keys".to_owned(), keys);
            }
            issuers.push(row);
        }
        let is_required = self.has_client_authority || !(self.keys.is_empty() && issuers.is_empty());
        let table = json!({
            "keys": self.keys, "jwt": issuers, "mtls": self.has_client_authority, "is_required": is_required,
        });
        let named = |error: TableError| error.0.replace("auth.keys", "KEYS").replace("auth.jwt", "JWT");
        let auth = Fields::of(table, "auth").and_then(Auth::read).map_err(named)?;
        match auth.issuer_without_key() {
            Some(issuer) => Err(format!(
                "JWT: the key set of {issuer} has no key for its algorithms."
            )),
            None => Ok(auth),
        }
    }
}

impl Issuer {
    fn read((place, given): (usize, Value)) -> Result<Self, TableError> {
        let mut fields = Fields::of(given, &format!("JWT[{place}]"))?;
        let algorithms = match fields.texts("algorithms")? {
            none if none.is_empty() => ALGORITHMS.map(str::to_owned).to_vec(),
            named => named,
        };
        let row = json!({
            "issuer": fields.text("issuer")?, "audience": fields.text("audience")?, "algorithms": algorithms,
            "subject_claim": fields.optional_text("subject_claim")?,
        });
        let key_set = fields.text("jwks")?;
        if key_set.contains("://") {
            return Err(fields.error("jwks", "the path of a file is expected, not a URL"));
        }
        let refresh = match fields.take("refresh") {
            Value::Null => REFRESH_SECONDS,
            given => given
                .as_u64()
                .filter(|seconds| REFRESHES.contains(seconds))
                .ok_or_else(|| fields.error("refresh", "seconds from 1 to 86400 are expected"))?,
        };
        fields.done()?;
        Ok(Self {
            key_set,
            refresh: Duration::from_secs(refresh),
            row,
        })
    }
}

fn read_token(token: &str) -> Result<Value, String> {
    let token = token.trim();
    if token.is_empty() {
        return Err("TOKENS has an empty token.".to_owned());
    }
    let digits = digest(&SHA256, token.as_bytes());
    let digits: String = digits
        .as_ref()
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect();
    Ok(json!({"name": "token", "sha256": digits}))
}

fn read_key((place, given): (usize, Value)) -> Result<Value, String> {
    let read = || {
        let mut fields = Fields::of(given, &format!("KEYS[{place}]"))?;
        let key = json!({"name": fields.text("name")?, "sha256": fields.text("sha256")?});
        fields.done().map(|()| key)
    };
    read().map_err(|error: TableError| error.0)
}

fn list(name: &str, text: Option<&str>) -> Result<Vec<Value>, String> {
    match text.map(serde_json::from_str) {
        None => Ok(Vec::new()),
        Some(Ok(Value::Array(found))) => Ok(found),
        Some(_) => Err(format!("{name}: a list in JSON is expected.")),
    }
}

fn read_key_set(path: &str) -> Result<Value, String> {
    let fail = |error: std::io::Error| format!("{path} cannot be read: {error}");
    let mut data = Vec::new();
    let file = File::open(Path::new(path)).map_err(fail)?;
    file.take(MAX_KEY_SET_BYTES + 1)
        .read_to_end(&mut data)
        .map_err(fail)?;
    if data.len() as u64 > MAX_KEY_SET_BYTES {
        return Err(format!("{path} has more than {MAX_KEY_SET_BYTES} bytes"));
    }
    let mut found: Value = serde_json::from_slice(&data).unwrap_or_default();
    match found.get_mut("keys").map(Value::take) {
        Some(Value::Array(keys)) if !keys.is_empty() => Ok(Value::Array(keys)),
        _ => Err(format!("{path} is no key set: {{\"keys\": […]}} is expected")),
    }
}
