//! Settings of a server: from a file of `NAME=value` lines and from the environment, which wins.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use vesper_host::postgres::dsn::Dsn;
use vesper_kernel::proto::v1::Quota;
use vesper_kernel::settings::{RateLimit, SECOND_US, Settings};

pub use crate::credentials::Credentials;
use crate::traces::Endpoint;
pub use crate::traces::TraceSettings;

const PREFIX: &str = "VESPER_KERNEL_";

/// Where the log is.
#[derive(Clone, Debug)]
pub enum Store {
    /// Nothing survives the process.
    Memory,
    Sqlite(PathBuf),
    /// Shared by kernels of which one writes.
    Postgres(Dsn),
}

#[derive(Clone, Debug)]
pub struct ServerSettings {
    pub listen: String,
    /// Where Prometheus reads the metrics, if anywhere.
    pub metrics: Option<String>,
    /// Where spans are sent, if anywhere.
    pub traces: Option<TraceSettings>,
    pub store: Store,
    pub kernel: Settings,
    pub credentials: Credentials,
    pub tls: Option<TlsSettings>,
    pub max_message_bytes: usize,
    /// How long a shutdown waits for requests under way.
    pub drain: Duration,
}

/// Paths of files in PEM form.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Certificates of clients are issued by one of these.
    pub client_authorities: Option<PathBuf>,
}

/// A setting that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError(pub String);

impl fmt::Display for SettingsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

/// Reads lines `NAME=value`; empty ones and those that start with # are comments.
pub fn read_file(text: &str) -> Result<BTreeMap<String, String>, SettingsError> {
    let mut found = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| SettingsError(format!("Line {number} is not NAME=value: {line}")))?;
        found.insert(name.trim().to_owned(), value.trim().to_owned());
    }
    Ok(found)
}

impl ServerSettings {
    /// Reads the settings whose names start with `VESPER_KERNEL_`. One that does not exist is an error.
    pub fn read(values: &BTreeMap<String, String>) -> Result<Self, SettingsError> {
        let mut values: BTreeMap<&str, &str> = values
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value.as_str())))
            .collect();
        let mut text = |name: &'static str| values.remove(name).filter(|value| !value.is_empty());
        let listen = text("LISTEN").unwrap_or("127.0.0.1:7443").to_owned();
        let metrics = text("METRICS").map(str::to_owned);
        let store = match text("STORE").unwrap_or("memory") {
            "memory" => Store::Memory,
            other => match (other.strip_prefix("sqlite:"), Dsn::parse(other)) {
                (Some(path), _) => Store::Sqlite(path.into()),
                (None, Ok(dsn)) => Store::Postgres(dsn),
                (None, Err(_)) => return Err(wrong_store(other)),
            },
        };
        let traces = read_traces(text("OTLP"), text("SAMPLE"))?;
        let tls = read_tls(text("TLS_CERT"), text("TLS_KEY"), text("TLS_CLIENT_CA"))?;
        let has_client_authority = tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some());
        let credentials = Credentials::read(text("TOKENS"), text("KEYS"), text("JWT"), has_client_authority)
            .map_err(|problem| SettingsError(format!("{PREFIX}{problem}")))?;
        let mut number = |name: &'static str, most: i64| match text(name) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) if (0..=most).contains(&number) => Ok(Some(number)),
                _ => Err(wrong(name, text, &format!("a number from 0 to {most}"))),
            },
        };
        let narrow = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
        let rate_limit = RateLimit {
            burst: narrow(number("RATE_BURST", 1 << 20)?),
            per_minute: narrow(number("RATE_PER_MINUTE", 1 << 20)?),
            per_hour: narrow(number("RATE_PER_HOUR", 1 << 20)?),
        };
        let most = 1 << 53;
        let default_quota = Quota {
            max_llm_calls: number("MAX_LLM_CALLS", most)?,
            max_tool_calls: number("MAX_TOOL_CALLS", most)?,
            max_agent_hops: number("MAX_AGENT_HOPS", most)?,
            max_iterations: number("MAX_ITERATIONS", most)?,
            max_tokens_in: number("MAX_TOKENS_IN", most)?,
            max_tokens_out: number("MAX_TOKENS_OUT", most)?,
            timeout_us: number("TIMEOUT_SECONDS", 1 << 32)?.map(|seconds| seconds * SECOND_US),
        };
        let retention = number("RETENTION_SECONDS", 1 << 32)?;
        let max_message = number("MAX_MESSAGE_BYTES", 1 << 30)?.unwrap_or(4 << 20);
        let drain = number("DRAIN_SECONDS", 3_600)?.unwrap_or(5);
        if let Some(name) = values.keys().next() {
            return Err(SettingsError(format!("There is no setting {PREFIX}{name}.")));
        }
        let defaults = Settings::default();
        Ok(Self {
            listen,
            metrics,
            traces,
            store,
            kernel: Settings {
                default_quota,
                rate_limit,
                retention_us: retention.map_or(defaults.retention_us, |seconds| seconds * SECOND_US),
            },
            credentials,
            tls,
            max_message_bytes: usize::try_from(max_message).unwrap_or(4 << 20),
            drain: Duration::from_secs(drain.unsigned_abs()),
        })
    }
}

fn read_traces(otlp: Option<&str>, sample: Option<&str>) -> Result<Option<TraceSettings>, SettingsError> {
    let sample = match sample.map(|text| (text, text.parse())) {
        None => 1.0,
        Some((_, Ok(share))) if (0.0..=1.0).contains(&share) => share,
        Some((text, _)) => return Err(wrong("SAMPLE", text, "a share from 0 to 1")),
    };
    let Some(otlp) = otlp else { return Ok(None) };
    // The URL may hold a password, which is not repeated.
    let endpoint = Endpoint::read(otlp).ok_or_else(|| {
        SettingsError(format!(
            "{PREFIX}OTLP is not the base URL of a receiver such as http://127.0.0.1:4318; it is http:// without user and query."
        ))
    })?;
    Ok(Some(TraceSettings { endpoint, sample }))
}

fn read_tls(
    certificate: Option<&str>,
    key: Option<&str>,
    client_authorities: Option<&str>,
) -> Result<Option<TlsSettings>, SettingsError> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsSettings {
            certificate: certificate.into(),
            key: key.into(),
            client_authorities: client_authorities.map(PathBuf::from),
        })),
        (None, None) if client_authorities.is_none() => Ok(None),
        (None, None) => Err(SettingsError(format!(
            "{PREFIX}TLS_CLIENT_CA needs {PREFIX}TLS_CERT and {PREFIX}TLS_KEY."
        ))),
        _ => Err(SettingsError(format!(
            "Set both {PREFIX}TLS_CERT and {PREFIX}TLS_KEY, or neither."
        ))),
    }
}

/// Returns the error of a store; a URL may hold a password, which is not repeated.
fn wrong_store(value: &str) -> SettingsError {
    let shown = if value.contains("://") {
        "a URL that cannot be read"
    } else {
        value
    };
    wrong(
        "STORE",
        shown,
        "`memory`, `sqlite:PATH` or `postgresql://USER@HOST/DATABASE`",
    )
}

fn wrong(name: &str, value: &str, allowed: &str) -> SettingsError {
    SettingsError(format!("{PREFIX}{name} is \"{value}\"; it has to be {allowed}."))
}
