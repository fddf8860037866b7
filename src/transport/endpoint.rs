//! One address of a target, with all that is needed to open connections to it.
//!
//! Made once per stream; files of certificates are read then, so that a wrong one is reported
//! at the start.

use super::tls::{Agreed, Tls, Unagreed};
use super::wire::Bytes;
use super::{ConnectError, Handshake, Opened, Progress, Step, Wire};
use crate::config::{BaseUrl, HttpVersion, NetworkConfig, Scheme};

/// One address, ready to be connected to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    url: BaseUrl,
    network: NetworkConfig,
    tls: Option<Tls>,
}

/// Why an endpoint cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// A file cannot be read, or holds no PEM of the kind wanted.
    #[error("`{path}`: {what}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// The server's name is none.
    #[error("`{0}` is neither a host name nor an address that a certificate could prove")]
    Name(String),
    /// The system trusts nobody, and no file of roots was given.
    #[error("the system has no root certificates; name a file of them under `tls.ca`")]
    NoRoots,
    /// Certificate and key do not make an identity.
    #[error("no TLS: {0}")]
    Identity(String),
}

impl Endpoint {
    /// The endpoint at `url`, reached as `network` says.
    ///
    /// # Errors
    ///
    /// If a file of certificates or keys is not usable.
    pub fn new(url: BaseUrl, network: NetworkConfig) -> Result<Self, EndpointError> {
        // Long before the first connection, so that its first segment has a stamp.
        #[cfg(target_os = "linux")]
        super::kernel::keep_stamping();
        let tls = match url.scheme() {
            Scheme::Https => Some(Tls::new(url.host(), &network.tls, network.http)?),
            Scheme::Http | Scheme::Unix => None,
        };
        Ok(Self { url, network, tls })
    }

    /// Its address.
    #[must_use]
    pub const fn url(&self) -> &BaseUrl {
        &self.url
    }

    /// How it is reached.
    #[must_use]
    pub const fn network(&self) -> &NetworkConfig {
        &self.network
    }

    /// Puts TLS on top of a fresh stream, if the address asks for it, and settles the version of
    /// HTTP. For every network, real or in memory.
    ///
    /// # Errors
    ///
    /// If the handshake fails.
    pub async fn secure(
        &self,
        opened: Opened,
        progress: &Progress,
    ) -> Result<Opened, ConnectError> {
        progress.note(|reached| {
            reached.connected = Some(opened.connected);
            reached.step = Step::Tls;
        });
        let known = self.network.http == HttpVersion::Http2;
        let Some(tls) = &self.tls else {
            return Ok(Opened {
                http2: known,
                ..opened
            });
        };
        let stream = match opened.wire.stamped(progress.anchor()) {
            Bytes::Plain(stream) => stream,
            Bytes::Tls(stream) => {
                return Ok(Opened {
                    wire: Wire::Tls(stream),
                    ..opened
                });
            }
        };
        let Agreed {
            stream,
            expiry,
            http2,
        } = tls
            .handshake(stream)
            .await
            .map_err(|Unagreed { kind, source }| ConnectError::Tls {
                authority: self.url.authority(),
                resolved: opened.resolved,
                connected: opened.connected,
                kind,
                source,
            })?;
        Ok(Opened {
            wire: Wire::Tls(Box::new(stream)),
            tls: Some(Handshake {
                done: progress.now(),
                certificate_expiry: expiry,
            }),
            http2: http2.unwrap_or(known),
            ..opened
        })
    }
}
