//! Messages in the encoding of a protocol; spans by the OTLP crate.
//!
//! The crate encodes and posts in one go. What it would post is taken from it instead and goes
//! the way of all signals, since its own way knows neither our deadline nor our account.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use prost::Message;
use serde::Serialize;

use super::OtlpError;
use super::answer::Trouble;
use super::reason::Reason;
use crate::config::OtlpProtocol;

/// A message of our own.
pub(super) fn encoded<M: Message + Serialize>(protocol: OtlpProtocol, message: &M) -> Vec<u8> {
    match protocol {
        OtlpProtocol::HttpProtobuf | OtlpProtocol::Grpc => message.encode_to_vec(),
        OtlpProtocol::HttpJson => {
            serde_json::to_vec(message).expect("a message has text keys and plain values")
        }
    }
}

/// Turns spans into messages.
#[derive(Debug)]
pub(super) struct SpanEncoder {
    crate_exporter: SpanExporter,
    taken: Arc<Taken>,
}

impl SpanEncoder {
    /// For `protocol`; every message says that it comes from `resource`.
    ///
    /// # Errors
    ///
    /// If the crate does not like it.
    pub(super) fn new(
        protocol: OtlpProtocol,
        resource: &[(String, String)],
    ) -> Result<Self, OtlpError> {
        let taken = Arc::new(Taken::default());
        let mut crate_exporter = SpanExporter::builder()
            .with_http()
            // It is never connected to; without one the crate looks for one in the environment.
            .with_endpoint("http://127.0.0.1/v1/traces")
            .with_protocol(match protocol {
                OtlpProtocol::HttpProtobuf | OtlpProtocol::Grpc => Protocol::HttpBinary,
                OtlpProtocol::HttpJson => Protocol::HttpJson,
            })
            .with_headers(HashMap::new())
            .with_shared_http_client(taken.clone())
            .with_retry_policy(RetryPolicy::disabled())
            .with_max_request_body_size(usize::MAX)
            .build()?;
        let attributes = resource
            .iter()
            .map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
        let resource = Resource::builder_empty()
            .with_attributes(attributes)
            .build();
        crate_exporter.set_resource(&resource);
        Ok(Self {
            crate_exporter,
            taken,
        })
    }

    /// The message that holds `spans`.
    pub(super) async fn encode(&self, spans: Vec<SpanData>) -> Result<Vec<u8>, Trouble> {
        let result = self.crate_exporter.export(spans).await;
        let taken = self.taken.slot().take();
        taken.ok_or_else(|| {
            let text = match result {
                Err(error) => error.to_string(),
                Ok(()) => "the OTLP crate encoded nothing".to_owned(),
            };
            Trouble::new(Reason::Unsendable, text)
        })
    }
}

/// The body of the last request that the crate would have sent.
#[derive(Debug, Default)]
struct Taken(Mutex<Option<Vec<u8>>>);

impl Taken {
    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Vec<u8>>> {
        // A value is replaced whole, so a panic elsewhere cannot have left half of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Taken {
    // The lifetimes are those that the trait's macro writes.
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Sending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        *self.slot() = Some(request.into_body().into());
        Box::pin(std::future::ready(Ok(Response::new(Bytes::new()))))
    }
}
