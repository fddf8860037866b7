//! gRPC as one message there and one back needs it: the frame around a message, and what the end
//! of an answer says. Pure; the exchange is that of [`crate::transport::fetch`].

use std::time::Duration;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bytes::{BufMut, Bytes, BytesMut};
use hyper::HeaderMap;
use prost::Message;

/// In front of each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Base 64 with or without padding, as gRPC has it in metadata.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// `google.rpc.Status`, as far as it is read.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// What the end of an answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: u32,
    pub(super) message: String,
    /// After which time the receiver wants to hear from us again.
    pub(super) retry_after: Option<Duration>,
}

/// `message` in its frame. `None` if it is longer than a frame can say.
pub(super) fn framed(message: &[u8], is_compressed: bool) -> Option<Bytes> {
    let length = u32::try_from(message.len()).ok()?;
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(u8::from(is_compressed));
    frame.put_u32(length);
    frame.put_slice(message);
    Some(frame.freeze())
}

/// The message in the one frame of `body`; `None` if it is compressed, not whole, or not alone.
pub(super) fn unframed(body: &[u8]) -> Option<&[u8]> {
    let ([0, length @ ..], message) = body.split_first_chunk::<PREFIX>()? else {
        return None;
    };
    (message.len() == usize::try_from(u32::from_be_bytes(*length)).ok()?).then_some(message)
}

/// The status: after the body, or, where there is no body, in the head. `None` if there is none.
pub(super) fn status(headers: &HeaderMap, trailers: &HeaderMap) -> Option<Status> {
    let places = [trailers, headers];
    let of = places
        .into_iter()
        .find(|map| map.contains_key("grpc-status"))?;
    let text = |name: &str| of.get(name).and_then(|value| value.to_str().ok());
    Some(Status {
        code: text("grpc-status")?.trim().parse().ok()?,
        message: text("grpc-message").unwrap_or_default().to_owned(),
        retry_after: text("grpc-status-details-bin").and_then(retry_after),
    })
}

fn retry_after(details: &str) -> Option<Duration> {
    let bytes = BASE64.decode(details.trim()).ok()?;
    let status = RpcStatus::decode(bytes.as_slice()).ok()?;
    let info = status
        .details
        .iter()
        .find(|detail| detail.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(info.value.as_slice()).ok()?.retry_delay?;
    let seconds = Duration::from_secs(u64::try_from(delay.seconds).ok()?);
    Some(seconds + Duration::from_nanos(u64::try_from(delay.nanos).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                let name = hyper::header::HeaderName::from_static(name);
                (name, hyper::header::HeaderValue::from_static(value))
            })
            .collect()
    }

    #[test]
    fn a_frame_is_a_flag_a_length_and_the_message() {
        let frame = framed(b"abc", false).expect("a short message");
        assert_eq!(&frame[..], [0, 0, 0, 0, 3, b'a', b'b', b'c']);
        assert_eq!(unframed(&frame), Some(&b"abc"[..]));
        let frame = framed(b"", true).expect("a short message");
        assert_eq!(&frame[..], [1, 0, 0, 0, 0]);
    }

    #[test]
    fn what_is_not_one_plain_whole_frame_is_none() {
        for body in [
            &b""[..],
            &[0, 0, 0, 0],
            &[0, 0, 0, 0, 2, 1],
            &[0, 0, 0, 0, 1, 1, 2],
            &[1, 0, 0, 0, 0],
            &[0, 255, 255, 255, 255],
        ] {
            assert_eq!(unframed(body), None, "{body:?}");
        }
    }

    #[test]
    fn the_status_is_at_the_end_or_in_a_head_without_a_body() {
        let none = HeaderMap::new();
        let ok = headers(&[("grpc-status", "0")]);
        let code = |headers, trailers| status(headers, trailers).map(|status| status.code);
        assert_eq!(code(&none, &ok), Some(0));
        assert_eq!(code(&ok, &none), Some(0));
        let busy = headers(&[("grpc-status", "14"), ("grpc-message", "busy")]);
        assert_eq!(code(&ok, &busy), Some(14), "the end has the last word");
        assert_eq!(code(&none, &none), None);
        assert_eq!(code(&none, &headers(&[("grpc-status", "x")])), None);
    }

    /// As a Go server writes it: code 8, "slow down", one detail, a `RetryInfo` of 1.5 s.
    #[test]
    fn the_wait_that_is_asked_for_is_in_the_details() {
        let details = "CAgSCXNsb3cgZG93bho2Cih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMuUmV0cnlJbmZvEgoKCAgBEIDKte4B";
        let found = status(
            &HeaderMap::new(),
            &headers(&[("grpc-status", "8"), ("grpc-status-details-bin", details)]),
        );
        let found = found.expect("a status");
        assert_eq!(found.code, 8);
        assert_eq!(found.retry_after, Some(Duration::from_millis(1500)));
        for bad in ["", "!", "AAAA"] {
            assert_eq!(retry_after(bad), None, "{bad}");
        }
    }
}
