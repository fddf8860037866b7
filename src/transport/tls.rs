//! TLS below HTTP: what is trusted, who we are, the handshake and why it failed.
//!
//! Every handshake is a whole one: sessions are not resumed, so that each new connection checks
//! the server's certificate and its time is that of a first visitor.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, InvalidMessage, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::endpoint::EndpointError;
use super::stamped::Stamped;
use crate::config::{HttpVersion, TlsConfig};

const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// How one target is spoken to in TLS.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    /// What the server must prove to be.
    name: ServerName<'static>,
}

/// What the handshake settled.
pub(super) struct Agreed {
    pub(super) stream: TlsStream<Stamped>,
    /// When the server's certificate expires, in seconds of Unix time.
    pub(super) expiry: Option<i64>,
    /// Whether the server picked HTTP/2; `None` if it picked nothing.
    pub(super) http2: Option<bool>,
}

/// Why there is no TLS.
pub(super) struct Unagreed {
    /// The kind of failure, in a few words.
    pub(super) kind: &'static str,
    pub(super) source: io::Error,
}

impl Tls {
    /// For the host `host`, as `tls` says. Reads the files that it names.
    pub(super) fn new(
        host: &str,
        tls: &TlsConfig,
        http: HttpVersion,
    ) -> Result<Self, EndpointError> {
        let mut config = client_config(tls)?;
        let offered: &[&[u8]] = match http {
            HttpVersion::Http1 => &[HTTP1],
            HttpVersion::Http2 => &[HTTP2],
            HttpVersion::Auto => &[HTTP2, HTTP1],
        };
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        let name = tls.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| EndpointError::Name(name.to_owned()))?;
        if tls.ca.is_none() && system_roots().is_empty() {
            return Err(EndpointError::NoRoots);
        }
        Ok(Self {
            config: Arc::new(config),
            name,
        })
    }

    /// Shakes hands over `stream`.
    pub(super) async fn handshake(&self, stream: Stamped) -> Result<Agreed, Unagreed> {
        let stream = TlsConnector::from(Arc::clone(&self.config))
            .connect(self.name.clone(), stream)
            .await
            .map_err(|error| {
                let (kind, why) = why(&error);
                let source = io::Error::new(error.kind(), why);
                Unagreed { kind, source }
            })?;
        let session = stream.get_ref().1;
        let leaf = session.peer_certificates().and_then(<[_]>::first);
        Ok(Agreed {
            expiry: leaf.and_then(|leaf| expiry(leaf)),
            http2: session.alpn_protocol().map(|name| name == HTTP2),
            stream,
        })
    }
}

/// Trust and identity as `tls` says, offering no protocol yet. Without roots nothing is trusted.
pub(super) fn client_config(tls: &TlsConfig) -> Result<ClientConfig, EndpointError> {
    let roots = match &tls.ca {
        Some(path) => Arc::new(own_roots(path)?),
        None => Arc::clone(system_roots()),
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| EndpointError::Identity(error.to_string()))?
        .with_root_certificates(roots);
    let mut config = match (&tls.cert, &tls.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(cert), Some(key)) => {
            let chain = certificates(cert)?;
            let wanted = "wanted a private key in PEM";
            let key = PrivateKeyDer::from_pem_slice(&read(key)?)
                .map_err(|error| refused(key, &format!("{wanted}: {error}")))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| refused(cert, &format!("not usable with its key: {error}")))?
        }
        (Some(path), None) => return Err(refused(path, "wanted its private key, too")),
        (None, Some(path)) => return Err(refused(path, "wanted its certificate, too")),
    };
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// The roots that the system trusts; read once, since that takes some milliseconds.
fn system_roots() -> &'static Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(%error, "a root certificate cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        Arc::new(roots)
    })
}

fn own_roots(path: &Path) -> Result<RootCertStore, EndpointError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| refused(path, &format!("not usable as a root: {error}")))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, EndpointError> {
    let wanted = "wanted certificates in PEM";
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    match found {
        Ok(found) if found.is_empty() => Err(refused(path, &format!("{wanted}, found none"))),
        Ok(found) => Ok(found),
        Err(error) => Err(refused(path, &format!("{wanted}: {error}"))),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, EndpointError> {
    std::fs::read(path).map_err(|error| refused(path, &error.to_string()))
}

fn refused(path: &Path, what: &str) -> EndpointError {
    EndpointError::File {
        path: path.display().to_string(),
        what: what.to_owned(),
    }
}

/// When `certificate` expires, in seconds of Unix time.
fn expiry(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(parsed.validity().not_after.timestamp())
}

/// Why a handshake failed: the kind, and words for a person.
fn why(error: &io::Error) -> (&'static str, String) {
    match inside(error) {
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            ("not TLS", "what the server answered is not TLS".to_owned())
        }
        Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => (
            "HTTP version",
            "the server speaks no version of HTTP that was offered".to_owned(),
        ),
        Some(rustls::Error::AlertReceived(alert)) => ("handshake", refusal(*alert)),
        Some(rustls::Error::InvalidCertificate(why)) => certificate(why),
        _ if error.kind() == io::ErrorKind::UnexpectedEof => (
            "handshake",
            "the server closed the connection in the handshake".to_owned(),
        ),
        Some(error) => ("handshake", error.to_string()),
        None => ("handshake", error.to_string()),
    }
}

fn refusal(alert: AlertDescription) -> String {
    // The names of the standard, in words.
    let mut words = String::new();
    for c in format!("{alert:?}").chars() {
        if c.is_ascii_uppercase() && words.ends_with(|last: char| last.is_ascii_lowercase()) {
            words.push(' ');
        }
        words.push(c);
    }
    words.make_ascii_lowercase();
    format!("the server refused it: {words}")
}

/// Why the server's certificate is not good.
fn certificate(error: &CertificateError) -> (&'static str, String) {
    match error {
        CertificateError::UnknownIssuer => (
            "untrusted certificate",
            "nobody who is trusted has signed the server's certificate".to_owned(),
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ("expired certificate", error.to_string())
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ("other name", error.to_string())
        }
        // webpki's name for it, which has no variant of its own.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => (
            "certificate of a CA",
            "the server shows the certificate of a CA as its own".to_owned(),
        ),
        _ => ("certificate", error.to_string()),
    }
}

/// The alert by which a server ended TLS, if that is the cause of `error`: in TLS 1.3 what it
/// thinks of our certificate comes only after the handshake.
pub(super) fn alert_in(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        let found = error.downcast_ref::<io::Error>().and_then(inside);
        if let Some(rustls::Error::AlertReceived(alert)) = found {
            return Some(refusal(*alert));
        }
        next = error.source();
    }
    None
}

fn inside(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
