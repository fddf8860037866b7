//! One address of a target, with all that is needed to open connections to it.
//!
//! Made once per stream; files of certificates are read then, so that a wrong one is reported
//! at the start.

use crate::config::{BaseUrl, NetworkConfig};

/// One address, ready to be connected to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    url: BaseUrl,
    network: NetworkConfig,
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
}

impl Endpoint {
    /// The endpoint at `url`, reached as `network` says.
    ///
    /// # Errors
    ///
    /// If a file of certificates or keys is not usable.
    pub fn new(url: BaseUrl, network: NetworkConfig) -> Result<Self, EndpointError> {
        Ok(Self { url, network })
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
}
