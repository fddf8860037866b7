//! What a scraper wants: the format by its `Accept` header, the packing by `Accept-Encoding`,
//! both with q-values.
//!
//! The format with the highest quality is sent; at a tie the richer one, since clients add
//! wildcards out of habit. Only versions that we write are offered. Who wants none of them gets
//! text 0.0.4, which anyone can read.

/// A format of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text 0.0.4: classic histograms only.
    Text,
    /// `OpenMetrics` 1.0: classic histograms with exemplars.
    OpenMetrics,
    /// Length-delimited protobuf: native and classic histograms with exemplars.
    Protobuf,
}

/// How a page is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Identity,
    /// With gzip.
    Gzip,
}

/// The `Content-Type` of a page in `format`.
#[must_use]
pub const fn content_type(format: Format) -> &'static str {
    match format {
        Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        Format::Protobuf => {
            "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
        }
    }
}

/// The format for a request with this `Accept` header.
#[must_use]
pub fn negotiate(accept: Option<&str>) -> Format {
    // From the richest on: a later one has to be wanted more.
    let formats = [Format::Protobuf, Format::OpenMetrics, Format::Text];
    let ranges: Vec<Range<'_>> = ranges(accept.unwrap_or_default()).collect();
    let mut best = (Format::Text, 0.0);
    for format in formats {
        let named = ranges.iter().filter(|range| range.names(format));
        let quality = named.fold(0.0, |best: f32, range| best.max(range.quality));
        if quality > best.1 {
            best = (format, quality);
        }
    }
    best.0
}

/// The packing for a request with this `Accept-Encoding` header.
#[must_use]
pub fn negotiate_encoding(accept: Option<&str>) -> Encoding {
    let ranges: Vec<Range<'_>> = ranges(accept.unwrap_or_default()).collect();
    let quality = |names: [&str; 2]| {
        let of = |name: &str| {
            let mut named = ranges.iter().filter(|range| range.is(name));
            named.next().map(|range| range.quality)
        };
        of(names[0]).or_else(|| of(names[1]))
    };
    let gzip = quality(["gzip", "x-gzip"]).or_else(|| quality(["*", "*"]));
    // Not being named, identity is acceptable, but less than anything that is named.
    let identity = quality(["identity", "identity"]).unwrap_or(0.0);
    match gzip {
        Some(gzip) if gzip > 0.0 && gzip >= identity => Encoding::Gzip,
        _ => Encoding::Identity,
    }
}

/// One entry of such a header.
struct Range<'a> {
    name: &'a str,
    proto: Option<&'a str>,
    encoding: Option<&'a str>,
    version: Option<&'a str>,
    quality: f32,
}

fn ranges(header: &str) -> impl Iterator<Item = Range<'_>> {
    header.split(',').map(Range::parse)
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self {
            name: parts.next().unwrap_or_default(),
            proto: None,
            encoding: None,
            version: None,
            quality: 1.0,
        };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match key.trim().to_ascii_lowercase().as_str() {
                "proto" => range.proto = Some(value),
                "encoding" => range.encoding = Some(value),
                "version" => range.version = Some(value),
                // A quality that is no number must not win.
                "q" => {
                    let quality = value.parse().unwrap_or(0.0_f32);
                    range.quality = if quality.is_nan() {
                        0.0
                    } else {
                        quality.clamp(0.0, 1.0)
                    };
                }
                _ => {}
            }
        }
        range
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn has_version(&self, version: &str) -> bool {
        self.version.is_none_or(|wanted| wanted == version)
    }

    /// Whether `format` is what it asks for. Wildcards are for text.
    fn names(&self, format: Format) -> bool {
        match format {
            Format::Protobuf => {
                self.is("application/vnd.google.protobuf")
                    && self.proto == Some("io.prometheus.client.MetricFamily")
                    && self.encoding == Some("delimited")
            }
            Format::OpenMetrics => {
                self.is("application/openmetrics-text") && self.has_version("1.0.0")
            }
            Format::Text => {
                (self.is("text/plain") && self.has_version("0.0.4"))
                    || self.is("text/*")
                    || self.is("*/*")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTO: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    /// What Prometheus 2.42 asks for, and 3.5 with and without native histograms.
    const OLD: &str = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    const NEW: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

    fn check(accept: &str, wanted: Format) {
        assert_eq!(negotiate(Some(accept)), wanted, "{accept}");
    }

    #[test]
    fn protobuf_is_sent_where_it_is_preferred() {
        check(PROTO, Format::Protobuf);
        check(&format!("{PROTO};q=0.7,{NEW}"), Format::Protobuf);
        check(&format!("*/*, {PROTO}"), Format::Protobuf);
        check(
            &format!("application/openmetrics-text, {PROTO}"),
            Format::Protobuf,
        );
        check(
            "text/plain;q=0.5, application/vnd.google.protobuf; proto=\"io.prometheus.client.MetricFamily\"; encoding=delimited",
            Format::Protobuf,
        );
    }

    #[test]
    fn open_metrics_is_sent_in_the_version_that_we_write() {
        check(OLD, Format::OpenMetrics);
        check(NEW, Format::OpenMetrics);
        check("application/openmetrics-text", Format::OpenMetrics);
        check(
            "Application/OpenMetrics-Text; version=\"1.0.0\"; charset=utf-8",
            Format::OpenMetrics,
        );
        check(
            &format!("application/openmetrics-text;q=0.9,{PROTO};q=0.5"),
            Format::OpenMetrics,
        );
        check(
            "application/openmetrics-text;version=1.0.0,*/*",
            Format::OpenMetrics,
        );
        for version in ["0.0.1", "2.0.0"] {
            check(
                &format!("application/openmetrics-text;version={version},text/plain;q=0.1"),
                Format::Text,
            );
        }
        check(
            "application/openmetrics-text;q=0.4,text/plain;q=0.5",
            Format::Text,
        );
        check(
            "application/openmetrics-text;q=0,text/plain;q=0.1",
            Format::Text,
        );
    }

    #[test]
    fn all_else_gets_text() {
        assert_eq!(negotiate(None), Format::Text);
        for accept in [
            "",
            "*/*",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "application/json",
            "application/vnd.google.protobuf;proto=other;encoding=delimited",
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
        ] {
            check(accept, Format::Text);
        }
        check(&format!("{PROTO};q=0,text/plain;q=0.1"), Format::Text);
        check(&format!("{PROTO};q=nan,text/plain;q=0.1"), Format::Text);
        check(&format!("{PROTO};q=x,text/plain;q=0.1"), Format::Text);
    }

    #[test]
    fn gzip_is_sent_to_whom_it_is_acceptable() {
        for (accept, wanted) in [
            ("gzip", Encoding::Gzip),
            ("deflate, GZIP;q=0.5, br", Encoding::Gzip),
            ("x-gzip", Encoding::Gzip),
            ("*", Encoding::Gzip),
            ("gzip;q=0.5, identity;q=0.4", Encoding::Gzip),
            ("gzip;q=0", Encoding::Identity),
            ("gzip;q=0, *", Encoding::Identity),
            ("gzip;q=0.4, identity", Encoding::Identity),
            ("identity", Encoding::Identity),
            ("br", Encoding::Identity),
            ("", Encoding::Identity),
        ] {
            assert_eq!(negotiate_encoding(Some(accept)), wanted, "{accept}");
        }
        assert_eq!(negotiate_encoding(None), Encoding::Identity);
    }
}
