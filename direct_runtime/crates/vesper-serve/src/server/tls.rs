//! TLS: the certificates of the server and of its clients.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};

use super::limits::TlsSettings;

/// Reads the files of the settings.
pub(super) fn load(settings: &TlsSettings) -> Result<Arc<ServerConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = certificates(&settings.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&settings.key)
        .map_err(|error| format!("the key {} cannot be read: {error}", settings.key.display()))?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be configured: {error}"))?;
    let builder = match &settings.client_authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots
                    .add(certificate)
                    .map_err(|error| format!("{} has a bad certificate: {error}", path.display()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if settings.is_client_required {
                verifier
            } else {
                verifier.allow_unauthenticated()
            };
            builder.with_client_cert_verifier(
                verifier
                    .build()
                    .map_err(|error| format!("{} has no use: {error}", path.display()))?,
            )
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| {
        format!(
            "{} and {} do not fit: {error}",
            settings.certificate.display(),
            settings.key.display()
        )
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = |error| format!("the certificates {} cannot be read: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path)
        .map_err(read)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(read)?;
    if found.is_empty() {
        return Err(format!("{} has no certificate", path.display()));
    }
    Ok(found)
}
