//! TLS of connections: certificates of the system, or of files.

use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::RespError;
use super::address::TlsFiles;
use crate::tls::{system_bundle, verifier};

/// Returns the settings of a client with these files.
pub(super) fn client_config(files: &TlsFiles) -> Result<Arc<ClientConfig>, RespError> {
    let trusted = match files.authorities.clone().or_else(system_bundle) {
        Some(bundle) => certificates(&bundle)?,
        None => Vec::new(),
    };
    let verifier = verifier(trusted).map_err(|error| RespError::connection(error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| RespError::connection(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match (
        &files.certificate,
        files.key.as_ref().or(files.certificate.as_ref()),
    ) {
        (Some(certificate), Some(key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
            builder
                .with_client_auth_cert(certificates(certificate)?, key)
                .map_err(|error| RespError::connection(error.to_string()))?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, RespError> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(path, &error))?;
    found
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &rustls::pki_types::pem::Error) -> RespError {
    RespError::connection(format!("{} cannot be read: {error}", path.display()))
}
