//! Settings of a provider. Python reads and checks them (`vesper.effects.http.settings`) and hands them over once.

use std::time::Duration;

use super::secrets::Template;
use super::url::{Origin, Url};

/// Credentials of a provider.
#[derive(Clone, Debug)]
pub enum Auth {
    Header { name: String, value: Template },
    Basic { user: Template, password: Template },
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
    pub name: String,
    pub base: Url,
    /// Destinations of all connections, `base` among them.
    pub allowed: Vec<Origin>,
    pub auth: Option<Auth>,
    pub headers: Vec<(String, Template)>,
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
}

impl HttpSettings {
    /// Returns true for a header that the configuration sets, so that a node cannot; the name is in lower case.
    pub(super) fn is_reserved(&self, name: &str) -> bool {
        let own = match &self.auth {
            Some(Auth::Header { name, .. }) => name.as_str(),
            Some(Auth::Basic { .. }) => "authorization",
            None => "",
        };
        let mut names = self.headers.iter().map(|(name, _)| name.as_str()).chain([own]);
        names.any(|each| each.eq_ignore_ascii_case(name))
    }
}
