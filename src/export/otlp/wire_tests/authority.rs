//! Certificates made on the spot, and a server that wants one of its clients too.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::config::OtlpProtocol;

/// An authority and what it signs.
pub(super) struct Authority {
    pub(super) pem: PathBuf,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate for `localhost`, and its key.
pub(super) struct Identity {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
    chain: Vec<CertificateDer<'static>>,
    private: PrivateKeyDer<'static>,
}

fn file(text: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tokencanary-otlp-{}-{number}.pem", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("a writable directory");
    path
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signed");
        Self {
            pem: file(&certificate.pem()),
            der: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    pub(super) fn identity(&self) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        Identity {
            cert: file(&certificate.pem()),
            key: file(&key.serialize_pem()),
            chain: vec![certificate.der().clone()],
            private: PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        }
    }

    /// A server that takes only clients whom this authority vouches for.
    pub(super) fn server(&self, protocol: OtlpProtocol) -> ServerConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("a certificate");
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .expect("there is a root");
        let Identity { chain, private, .. } = self.identity();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring knows them")
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, private)
            .expect("a pair");
        let name: &[u8] = match protocol {
            OtlpProtocol::Grpc => b"h2",
            OtlpProtocol::HttpProtobuf | OtlpProtocol::HttpJson => b"http/1.1",
        };
        config.alpn_protocols = vec![name.to_vec()];
        config
    }
}
