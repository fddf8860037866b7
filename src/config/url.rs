//! The URL of a target: scheme, host, port, perhaps a path in front of the API's own; or the
//! path of a Unix socket.

use std::fmt;

/// Where a target listens. Paths of the API are appended to [`BaseUrl::prefix`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    scheme: Scheme,
    /// For a Unix socket its path.
    host: String,
    port: u16,
    prefix: String,
}

/// What carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// TCP.
    Http,
    /// TLS over TCP.
    Https,
    /// A Unix socket.
    Unix,
}

/// Why a text is not a usable target URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlError(String);

impl BaseUrl {
    /// Reads `http[s]://host[:port][/prefix]` or `unix:///path`. A final `/` or `/v1` is dropped,
    /// since the paths of the API bring their own.
    ///
    /// # Errors
    ///
    /// On another scheme, user information, a query, a bad port, or no host.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return invalid("no scheme; wanted `http://host:port`".to_owned());
        };
        // Case does not matter in it (RFC 3986, 3.1).
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "unix" => return Self::socket(rest),
            _ => {
                return invalid(format!(
                    "scheme `{scheme}` is not `http`, `https` or `unix`"
                ));
            }
        };
        if rest.contains(['?', '#', '@']) || rest.contains(char::is_whitespace) {
            return invalid("only host, port and path may follow the scheme".to_owned());
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = split_port(authority, scheme)?;
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
            scheme,
            host: host.to_owned(),
            port,
            prefix,
        })
    }

    fn socket(path: &str) -> Result<Self, UrlError> {
        let what = match path {
            "" | "/" => "the path of the socket is missing".to_owned(),
            _ if path.contains('\0') => "the path of the socket has a zero in it".to_owned(),
            _ if !path.starts_with('/') => {
                format!("the path `{path}` of the socket does not begin with `/`")
            }
            _ => {
                return Ok(Self {
                    scheme: Scheme::Unix,
                    host: path.to_owned(),
                    port: 0,
                    prefix: String::new(),
                });
            }
        };
        invalid(format!("{what}; wanted `unix:///absolute/path`"))
    }

    /// What carries the bytes.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Host name or address; an IPv6 address without brackets. Of a Unix socket: its path.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port; 0 for a Unix socket.
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
        if self.scheme == Scheme::Unix {
            "localhost".to_owned()
        } else if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scheme {
            Scheme::Unix => write!(f, "unix://{}", self.host),
            Scheme::Https => write!(f, "https://{}{}", self.authority(), self.prefix),
            Scheme::Http => write!(f, "http://{}{}", self.authority(), self.prefix),
        }
    }
}

fn invalid<T>(what: String) -> Result<T, UrlError> {
    Err(UrlError(what))
}

fn split_port(authority: &str, scheme: Scheme) -> Result<(&str, u16), UrlError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None => return invalid(format!("`{port}` after the address is no port")),
            },
            None => return invalid(format!("`{authority}` lacks a closing bracket")),
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return invalid("the host is missing; wanted `http://host:port`".to_owned());
    }
    match port {
        None if scheme == Scheme::Https => Ok((host, 443)),
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
            ("https://api.example/v1", "api.example", 443, ""),
            ("unix:///run/vllm.sock", "/run/vllm.sock", 0, ""),
            ("HTTP://Host:8000/v1", "Host", 8000, ""),
            ("Https://api.example", "api.example", 443, ""),
            ("UNIX:///run/Vllm.sock", "/run/Vllm.sock", 0, ""),
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
        for (text, wrong) in [
            ("x:8000", "no scheme"),
            ("http:x", "no scheme"),
            ("ftp://x", "`ftp`"),
            ("http://", "the host is missing"),
            ("HTTPS:///path", "the host is missing"),
            ("http://:8000", "the host is missing"),
            ("http://u@x", "only host, port and path"),
            ("http://x:0", "port `0`"),
            ("http://x:", "port ``"),
            ("http://x:99999", "port `99999`"),
            ("http://x/?a=1", "only host, port and path"),
            ("http://[::1", "closing bracket"),
            ("http://[::1]8000", "`8000` after the address"),
            (
                "unix://run/x",
                "`run/x` of the socket does not begin with `/`",
            ),
            ("unix://", "the path of the socket is missing"),
            ("unix:///", "the path of the socket is missing"),
        ] {
            let error = BaseUrl::parse(text).expect_err(text).to_string();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }
}
