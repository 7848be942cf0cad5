//! Settings of a provider. Python reads and checks them (`vesper.effects.http.settings`) and hands them over once.

use std::time::Duration;

use vesper_ir::Json;

use super::aws;
use super::secrets::Template;
use super::url::{Origin, Url};

/// Credentials of a provider.
#[derive(Clone, Debug)]
pub enum Auth {
    Header { name: String, value: Template },
    Basic { user: Template, password: Template },
    OAuth2(OAuth2),
    AwsSigV4(AwsSigV4),
}

/// Client credentials of OAuth 2 (RFC 6749, section 4.4).
#[derive(Clone, Debug)]
pub struct OAuth2 {
    pub token_url: Url,
    pub client_id: Template,
    pub client_secret: Template,
    pub scope: String,
    pub audience: String,
    /// True where the client's name and secret are sent as fields of the form, not as HTTP's basic scheme.
    pub is_in_body: bool,
}

/// Signature Version 4 of AWS.
#[derive(Clone, Debug)]
pub struct AwsSigV4 {
    pub region: String,
    pub service: String,
    pub access_key_id: Template,
    pub secret_access_key: Template,
    pub session_token: Option<Template>,
}

/// Answers that have another failure code than that of their status.
#[derive(Clone, Debug)]
pub struct FailureRule {
    pub status: u16,
    /// Headers in lower case with their values; `*` is any value.
    pub headers: Vec<(String, String)>,
    /// Members of the JSON body by path, with their values.
    pub body: Vec<(Vec<String>, Json)>,
    pub code: String,
    /// Header with the time of the next attempt, in seconds since 1970.
    pub retry_at: Option<String>,
    pub may_have_happened: bool,
}

/// Form of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    Json,
    Form,
}

/// Redirects that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    None,
    SameHost,
    AllowedHosts,
}

/// Request that finds out whether another one happened, by the name that was sent with it.
#[derive(Clone, Debug)]
pub struct Probe {
    /// `GET` or `HEAD`.
    pub method: String,
    /// With `{key}` in place of the name.
    pub endpoint: String,
    pub found_status: u16,
}

/// Settings of one provider, all checked.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Table of the configuration that the provider is in, for messages.
    pub table: &'static str,
    pub name: String,
    /// Name and version of the pack that the settings extend, for messages.
    pub pack: Option<String>,
    pub base: Url,
    /// Destinations of all connections, `base` among them.
    pub allowed: Vec<Origin>,
    pub auth: Option<Auth>,
    pub headers: Vec<(String, Template)>,
    /// Empty where the provider recognises no repeats.
    pub key_header: String,
    pub body: BodyFormat,
    /// Time of one attempt where the step has none.
    pub timeout: Duration,
    /// Time for lookup, connection and TLS handshake, within that of the attempt.
    pub connect_timeout: Duration,
    /// Bytes of the body of an answer.
    pub max_response: usize,
    pub redirects: Redirects,
    pub allow_private_addresses: bool,
    /// File with the certificates of the trusted authorities in PEM form; by default those of the public ones.
    pub ca_file: Option<String>,
    pub max_connections: usize,
    pub probe: Option<Probe>,
    /// Longest wait that a provider can demand by `Retry-After`.
    pub retry_after_max: Duration,
    /// The first that fits an answer decides.
    pub failures: Vec<FailureRule>,
}

impl HttpSettings {
    /// Returns true for a header that the configuration sets, so that a node cannot; the name is in lower case.
    pub(super) fn is_reserved(&self, name: &str) -> bool {
        let own: &[&str] = match &self.auth {
            Some(Auth::Header { name, .. }) => &[name],
            Some(Auth::Basic { .. } | Auth::OAuth2(_)) => &["authorization"],
            Some(Auth::AwsSigV4(_)) => &aws::OWN_HEADERS,
            None => &[],
        };
        let mut names = self
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .chain(own.iter().copied());
        names.any(|each| each.eq_ignore_ascii_case(name))
    }
}
