//! Which of our formats a scraper wants: its `Accept` header, with q-values.
//!
//! Protobuf is sent where it is asked for by its full name and nothing is preferred to it;
//! all else gets text. A scraper that prefers `OpenMetrics` gets text 0.0.4 until that format
//! is built.

/// A format of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text 0.0.4: classic histograms only.
    Text,
    /// Length-delimited protobuf: native and classic histograms.
    Protobuf,
}

/// The `Content-Type` of a page in `format`.
#[must_use]
pub const fn content_type(format: Format) -> &'static str {
    match format {
        Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        Format::Protobuf => {
            "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
        }
    }
}

/// The format for a request with this `Accept` header.
#[must_use]
pub fn negotiate(accept: Option<&str>) -> Format {
    let (mut protobuf, mut other) = (0.0_f32, 0.0_f32);
    for range in accept.unwrap_or_default().split(',').map(MediaRange::parse) {
        if range.is_our_protobuf() {
            protobuf = protobuf.max(range.quality);
        } else if range.is_text() {
            other = other.max(range.quality);
        }
    }
    // At a tie the named format wins over the wildcard that clients add out of habit.
    if protobuf > 0.0 && protobuf >= other {
        Format::Protobuf
    } else {
        Format::Text
    }
}

/// One entry of an `Accept` header.
struct MediaRange<'a> {
    name: &'a str,
    proto: Option<&'a str>,
    encoding: Option<&'a str>,
    quality: f32,
}

impl<'a> MediaRange<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self {
            name: parts.next().unwrap_or_default(),
            proto: None,
            encoding: None,
            quality: 1.0,
        };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match key.trim().to_ascii_lowercase().as_str() {
                "proto" => range.proto = Some(value),
                "encoding" => range.encoding = Some(value),
                // A quality that is no number must not win.
                "q" => range.quality = value.parse().map_or(0.0, |q: f32| q.clamp(0.0, 1.0)),
                _ => {}
            }
        }
        range
    }

    fn is_our_protobuf(&self) -> bool {
        self.name
            .eq_ignore_ascii_case("application/vnd.google.protobuf")
            && self.proto == Some("io.prometheus.client.MetricFamily")
            && self.encoding == Some("delimited")
    }

    fn is_text(&self) -> bool {
        [
            "application/openmetrics-text",
            "text/plain",
            "text/*",
            "*/*",
        ]
        .iter()
        .any(|name| self.name.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTO: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

    #[test]
    fn protobuf_is_sent_where_it_is_preferred() {
        for accept in [
            PROTO.to_owned(),
            format!("{PROTO};q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
            format!("*/*, {PROTO}"),
            "text/plain;q=0.5, application/vnd.google.protobuf; proto=\"io.prometheus.client.MetricFamily\"; encoding=delimited".to_owned(),
        ] {
            assert_eq!(negotiate(Some(&accept)), Format::Protobuf, "{accept}");
        }
    }

    #[test]
    fn all_else_gets_text() {
        for accept in [
            None,
            Some(String::new()),
            Some("*/*".to_owned()),
            Some("text/html,application/xhtml+xml,*/*;q=0.8".to_owned()),
            Some("application/openmetrics-text;version=1.0.0".to_owned()),
            Some(format!("application/openmetrics-text;q=0.9,{PROTO};q=0.5")),
            Some(format!("{PROTO};q=0,text/plain;q=0.1")),
            Some(format!("{PROTO};q=nan,text/plain;q=0.1")),
            Some("application/vnd.google.protobuf;proto=other;encoding=delimited".to_owned()),
            Some("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text".to_owned()),
        ] {
            assert_eq!(negotiate(accept.as_deref()), Format::Text, "{accept:?}");
        }
    }
}
