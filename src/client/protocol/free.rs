//! Bodies of the operator's own: sent as they are (`raw`) or made from a template.

use super::{Ask, ProtocolError, Said};
use crate::client::framing::Event;
use crate::config::RequestConfig;
use crate::measurement::Api;

/// What the operator said about the body and about where the answer's text is.
#[derive(Debug)]
pub(super) struct Free {
    body: String,
}

impl Free {
    /// Reads template and path.
    pub(super) fn new(_api: Api, config: &RequestConfig) -> Result<Self, ProtocolError> {
        let body = config.body.clone().ok_or(ProtocolError::NoBody)?;
        Ok(Self { body })
    }

    pub(super) fn path(&self) -> String {
        "/".to_owned()
    }

    pub(super) fn body(&self, _ask: &Ask<'_>) -> Vec<u8> {
        self.body.clone().into_bytes()
    }

    pub(super) fn read<'a>(
        &self,
        event: Event<'a>,
        said: &mut Said<'a>,
    ) -> Result<(), serde_json::Error> {
        super::chat::read(event, said)
    }
}
