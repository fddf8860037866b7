//! Secrets of ours that come back in the words of others.
//!
//! A server or proxy that shows the request it refuses shows the key it came with. What is kept
//! of foreign words goes to files, spans and screens, so each of our secrets is taken out of it,
//! also where only its beginning was kept.

use hyper::HeaderMap;

use crate::config::Secret;
use crate::measurement::RequestRecord;
use crate::transport::Endpoint;

/// Shorter texts are no secrets, and would be found by chance.
const SHORTEST: usize = 4;
const HIDDEN: &str = "(secret)";

/// What must not be shown.
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// The sensitive values among `headers`, and what the proxy of `endpoint` is told; each
    /// whole, and without the word before it (`Bearer`).
    pub(super) fn of(headers: &HeaderMap, endpoint: &Endpoint) -> Self {
        let proxy = endpoint.network().proxy.as_ref();
        let proxy = proxy.and_then(|proxy| proxy.authorization.as_ref());
        let values = headers
            .values()
            .filter(|value| value.is_sensitive())
            .filter_map(|value| value.to_str().ok())
            .chain(proxy.map(Secret::reveal));
        let mut secrets: Vec<String> = values
            .flat_map(|value| [value, value.rsplit(' ').next().unwrap_or(value)])
            .filter(|secret| secret.len() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        // The whole before its part.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets)
    }

    /// Takes them out of what `record` keeps of foreign words.
    pub(super) fn hide(&self, record: &mut RequestRecord) {
        let error = record.error.as_mut();
        let texts = error.map(|error| [&mut error.kind, &mut error.message]);
        for text in texts.into_iter().flatten().chain(&mut record.finish_reason) {
            if let Some(clean) = self.without(text) {
                *text = clean.into();
            }
        }
    }

    /// `text` without secrets, if there was one in it.
    fn without(&self, text: &str) -> Option<String> {
        let mut clean = text.to_owned();
        for secret in &self.0 {
            clean = clean.replace(secret, HIDDEN);
            if let Some(cut) = cut_off(&clean, secret) {
                clean.truncate(cut);
                clean.push_str(HIDDEN);
            }
        }
        (clean != text).then_some(clean)
    }
}

/// Where `text` ends in the beginning of `secret`, since it was cut there.
fn cut_off(text: &str, secret: &str) -> Option<usize> {
    (SHORTEST..secret.len())
        .rev()
        .filter(|length| secret.is_char_boundary(*length))
        .find(|length| text.ends_with(&secret[..*length]))
        .map(|length| text.len() - length)
}

#[cfg(test)]
mod tests {
    use hyper::header::{AUTHORIZATION, HeaderValue};

    use super::*;
    use crate::config::{BaseUrl, NetworkConfig, ProxyConfig};

    fn secrets() -> Secrets {
        let mut headers = HeaderMap::new();
        let mut key = HeaderValue::from_static("Bearer sk-VERYSECRET123");
        key.set_sensitive(true);
        headers.insert(AUTHORIZATION, key);
        headers.insert("x-team", HeaderValue::from_static("platform"));
        let url = |text| BaseUrl::parse(text).expect("a good URL");
        let network = NetworkConfig {
            proxy: Some(ProxyConfig {
                url: url("http://proxy:1"),
                authorization: Some(Secret::new("Basic UFJPWFk=")),
            }),
            ..NetworkConfig::default()
        };
        let endpoint = Endpoint::new(url("http://h"), network).expect("no files");
        Secrets::of(&headers, &endpoint)
    }

    #[test]
    fn secrets_that_are_echoed_are_not_kept() {
        for (text, clean) in [
            (
                "no: authorization: Bearer sk-VERYSECRET123 x-team: platform",
                "no: authorization: (secret) x-team: platform",
            ),
            ("key sk-VERYSECRET123 is bad", "key (secret) is bad"),
            ("407 for Basic UFJPWFk= | x", "407 for (secret) | x"),
            ("cut after sk-VERYSEC", "cut after (secret)"),
        ] {
            assert_eq!(secrets().without(text).as_deref(), Some(clean), "{text}");
        }
        assert_eq!(secrets().without("nothing of ours"), None);
    }
}
