//! TLS of a session, as the `sslmode` of its DSN asks.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::postgres::dsn::{Server, Target, TlsMode};
use crate::postgres::socket::Socket;
use crate::tls::{system_bundle, verifier};

/// Starter of TLS for one connection to one server.
#[derive(Clone)]
pub struct Tls {
    configuration: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Tls({:?})", self.name)
    }
}

impl Tls {
    /// Reads certificates and settles what is checked. The error is for people.
    pub fn new(target: &Target, server: &Server) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier::new(target, provider)?));
        let configuration = match &target.client_certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("the key {key} cannot be read: {error}"))?;
                builder
                    .with_client_auth_cert(certificates(Path::new(certificate))?, key)
                    .map_err(|error| format!("the certificate {certificate} cannot be used: {error}"))?
            }
        };
        let name = ServerName::try_from(server.host.clone())
            .map_err(|_| format!("`{}` is no name of a server that TLS could check", server.host))?;
        Ok(Self {
            configuration: Arc::new(configuration),
            name,
        })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error| format!("the certificate file {} cannot be read: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
    found.collect::<Result<_, _>>().map_err(unreadable)
}

/// Checks as much of a certificate as `sslmode` asks for.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// None where any certificate is taken.
    chain: Option<Arc<dyn ServerCertVerifier>>,
    is_name_checked: bool,
}

impl Verifier {
    fn new(target: &Target, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let default_root = target
            .home
            .as_ref()
            .map(|home| format!("{home}/.postgresql/root.crt"));
        let root = target
            .root_certificate
            .clone()
            .or_else(|| default_root.filter(|path| Path::new(path).exists()));
        let chain = match (target.tls, root) {
            (TlsMode::Disable | TlsMode::Allow | TlsMode::Prefer, _) | (TlsMode::Require, None) => None,
            (_, Some(root)) => Some(Self::chain(&root)?),
            (TlsMode::VerifyCa | TlsMode::VerifyFull, None) => {
                return Err(
                    "the certificate of the server is to be checked, and no root certificate is there: name one as \
                     `sslrootcert`, or use `sslrootcert=system`"
                        .to_owned(),
                );
            }
        };
        // libpq: the certificates of the system prove nothing without the name.
        let is_name_checked =
            target.tls == TlsMode::VerifyFull || target.root_certificate.as_deref() == Some("system");
        Ok(Self {
            provider,
            chain,
            is_name_checked,
        })
    }

    fn chain(root: &str) -> Result<Arc<dyn ServerCertVerifier>, String> {
        let path = if root == "system" {
            system_bundle()
                .ok_or("this system has no file of root certificates: name it in `SSL_CERT_FILE`")?
        } else {
            PathBuf::from(root)
        };
        verifier(certificates(&path)?).map_err(|error| {
            format!(
                "the certificate file {} holds no root certificate: {error}",
                path.display()
            )
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last, so that a wrong one proves a valid chain.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.is_name_checked => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Connector of tokio-postgres; it has no `Tls` where the session is not encrypted.
#[derive(Debug)]
pub struct Connector(pub Option<Tls>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connector {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let Some(tls) = self.0 else {
                return Err(io::Error::other("this session is not to be encrypted"));
            };
            let connector = TlsConnector::from(tls.configuration);
            connector.connect(tls.name, stream).await.map(Encrypted)
        })
    }
}

/// A stream of an encrypted session.
#[derive(Debug)]
pub struct Encrypted<S = Socket>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
