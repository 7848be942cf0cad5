//! TLS: the authorities that are trusted, and why a certificate is refused.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{CertificateError, ClientConfig};

use crate::messages::reason;
use crate::tls::verifier;

/// Configuration of TLS with the authorities of one file, read when it is first used.
pub(super) struct Authorities {
    file: String,
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Authorities {
    pub(super) fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            config: OnceLock::new(),
        }
    }

    /// Returns the configuration, or why the file cannot be used.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, String> {
        self.config.get_or_init(|| read(&self.file)).clone()
    }
}

fn read(file: &str) -> Result<Arc<ClientConfig>, String> {
    let unusable = |problem: String| format!("`{file}` holds no certificates in PEM form: {problem}");
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unusable(error.to_string()))?;
    let certificates: Result<Vec<_>, _> = certificates.collect();
    let certificates = certificates.map_err(|error| unusable(error.to_string()))?;
    if certificates.is_empty() {
        return Err(unusable("no certificate was found".to_owned()));
    }
    let verifier = verifier(certificates).map_err(|error| unusable(error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = builder
        .dangerous() // The name of rustls for every verifier but its own.
        .with_custom_certificate_verifier(verifier);
    Ok(Arc::new(builder.with_no_client_auth()))
}

/// Returns the message for a handshake that failed.
pub(super) fn problem(host: &str, error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(problem)) => {
            format!(
                "the certificate of `{host}` is refused: {}",
                refusal(host, problem)
            )
        }
        _ => format!("no TLS connection with `{host}`: {}", reason(error)),
    }
}

/// Returns why a certificate is refused, in the words of OpenSSL where it has some.
fn refusal(host: &str, problem: &CertificateError) -> String {
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    match problem {
        CertificateError::UnknownIssuer => "unable to get local issuer certificate".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate is not yet valid".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } if is_address => {
            format!("IP address mismatch, certificate is not valid for '{host}'.")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("Hostname mismatch, certificate is not valid for '{host}'.")
        }
        CertificateError::Revoked => "certificate revoked".to_owned(),
        CertificateError::BadSignature => "certificate signature failure".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "unsuitable certificate purpose".to_owned()
        }
        other => other.to_string(),
    }
}
