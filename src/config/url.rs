//! The URL of a target: plain HTTP, a host, a port, perhaps a path in front of the API's own.

use std::fmt;

/// Where a target listens. Paths of the API are appended to [`BaseUrl::prefix`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    host: String,
    port: u16,
    prefix: String,
}

/// Why a text is not a usable target URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// `https://`: TLS is not built yet.
    #[error("`https` is not available in this version")]
    Tls,
    /// Something else.
    #[error("{0}")]
    Invalid(String),
}

impl BaseUrl {
    /// Reads `http://host[:port][/prefix]`. A final `/` or `/v1` is dropped, since the paths of
    /// the API bring their own.
    ///
    /// # Errors
    ///
    /// On another scheme, user information, a query, a bad port, or no host.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => return Err(UrlError::Tls),
            Some((scheme, _)) => return invalid(format!("scheme `{scheme}` is not `http`")),
            None => return invalid("no scheme; wanted `http://host:port`".to_owned()),
        };
        if rest.contains(['?', '#', '@']) || rest.contains(char::is_whitespace) {
            return invalid("only host, port and path may follow `http://`".to_owned());
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = split_port(authority)?;
        let path = path.trim_end_matches('/');
        let path = path
            .strip_suffix("v1")
            .filter(|p| p.is_empty() || p.ends_with('/'))
            .unwrap_or(path);
        let path = path.trim_end_matches('/');
        let prefix = if path.is_empty() {
            String::new()
        } else {
            format!("/{path}")
        };
        Ok(Self {
            host: host.to_owned(),
            port,
            prefix,
        })
    }

    /// Host name or address; an IPv6 address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Path in front of the API's own: empty, or `/…` without a final slash.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The value of the `Host` header.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.prefix)
    }
}

fn invalid<T>(what: String) -> Result<T, UrlError> {
    Err(UrlError::Invalid(what))
}

fn split_port(authority: &str) -> Result<(&str, u16), UrlError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => return invalid(format!("`{authority}` lacks a closing bracket")),
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return invalid("the host is empty".to_owned());
    }
    match port {
        None => Ok((host, 80)),
        Some(text) => match text.parse() {
            Ok(0) | Err(_) => invalid(format!("port `{text}` is not from 1 to 65535")),
            Ok(port) => Ok((host, port)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_host_port_and_prefix() {
        for (text, host, port, prefix) in [
            ("http://vllm.svc:8000", "vllm.svc", 8000, ""),
            ("http://vllm.svc", "vllm.svc", 80, ""),
            ("http://vllm.svc:8000/v1/", "vllm.svc", 8000, ""),
            ("http://gw/team-a/v1", "gw", 80, "/team-a"),
            ("http://gw/nov1", "gw", 80, "/nov1"),
            ("http://[::1]:9/x", "::1", 9, "/x"),
        ] {
            let url = BaseUrl::parse(text).expect("a good URL");
            assert_eq!(
                (url.host(), url.port(), url.prefix()),
                (host, port, prefix),
                "{text}"
            );
        }
    }

    #[test]
    fn bad_urls_say_what_is_wrong() {
        assert_eq!(BaseUrl::parse("https://x"), Err(UrlError::Tls));
        for text in [
            "x:8000",
            "ftp://x",
            "http://",
            "http://u@x",
            "http://x:0",
            "http://x:99999",
            "http://x/?a=1",
            "http://[::1",
        ] {
            assert!(
                matches!(BaseUrl::parse(text), Err(UrlError::Invalid(_))),
                "{text}"
            );
        }
    }
}
