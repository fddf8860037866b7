//! Opens real connections: TCP, directly or through a proxy, or a Unix socket; then TLS.
//!
//! A name is resolved anew for each connection, and its addresses are tried one after another in
//! the resolver's order. No racing of address families: which address was slow must not be
//! hidden.

use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::errno::Errno;
use tokio::net::{TcpStream, UnixStream};

use super::{Connect, ConnectError, Endpoint, Opened, Opening, Progress, Step, Wire, proxy};
use crate::clock::MonoTime;
use crate::config::{AddressFamily, BaseUrl, ProxyConfig, Scheme};

/// Opens connections over the network of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpConnect;

impl Connect for TcpConnect {
    fn open<'a>(&'a self, endpoint: &'a Endpoint, progress: &'a Progress) -> Opening<'a> {
        Box::pin(async move {
            let network = endpoint.network();
            let (wire, resolved) = match (endpoint.url().scheme(), &network.proxy) {
                (Scheme::Unix, _) => (socket(endpoint.url(), progress).await?, None),
                (_, None) => direct(endpoint.url(), network.family, progress).await?,
                (_, Some(proxy)) => through(proxy, endpoint, progress).await?,
            };
            let opened = Opened {
                wire,
                resolved,
                connected: progress.now(),
                tls: None,
                http2: false,
            };
            endpoint.secure(opened, progress).await
        })
    }
}

/// A stream, and when its name was resolved.
type Way = (Wire, Option<MonoTime>);

async fn direct(
    url: &BaseUrl,
    family: AddressFamily,
    progress: &Progress,
) -> Result<Way, ConnectError> {
    let (addresses, resolved) = resolve(url, family, progress).await?;
    match first_open(&addresses).await {
        Ok(stream) => Ok((Wire::Tcp(stream), resolved)),
        Err(source) => Err(ConnectError::Refused {
            authority: url.authority(),
            resolved,
            source,
        }),
    }
}

/// Through a tunnel: the family chosen is that of the proxy's addresses, since it is the proxy
/// that resolves the target's name.
async fn through(
    proxy: &ProxyConfig,
    endpoint: &Endpoint,
    progress: &Progress,
) -> Result<Way, ConnectError> {
    let family = endpoint.network().family;
    let (addresses, resolved) = resolve(&proxy.url, family, progress).await?;
    let refused = |source| ConnectError::Proxy {
        authority: proxy.url.authority(),
        resolved,
        source,
    };
    let mut stream = first_open(&addresses).await.map_err(refused)?;
    progress.note(|reached| reached.step = Step::Tunnel);
    proxy::tunnel(&mut stream, proxy, &endpoint.url().authority())
        .await
        .map_err(refused)?;
    Ok((Wire::Tcp(stream), resolved))
}

async fn socket(url: &BaseUrl, progress: &Progress) -> Result<Wire, ConnectError> {
    progress.note(|reached| reached.step = Step::Address);
    match UnixStream::connect(url.host()).await {
        Ok(stream) => Ok(Wire::Unix(stream)),
        Err(source) => Err(ConnectError::Refused {
            authority: url.to_string(),
            resolved: None,
            source,
        }),
    }
}

async fn resolve(
    url: &BaseUrl,
    family: AddressFamily,
    progress: &Progress,
) -> Result<(Vec<SocketAddr>, Option<MonoTime>), ConnectError> {
    let failed = |source| ConnectError::Dns {
        host: url.host().to_owned(),
        source,
    };
    let (found, resolved) = if let Ok(address) = url.host().parse::<IpAddr>() {
        (vec![SocketAddr::new(address, url.port())], None)
    } else {
        let found = tokio::net::lookup_host((url.host(), url.port()))
            .await
            .map_err(failed)?;
        (found.collect::<Vec<_>>(), Some(progress.now()))
    };
    progress.note(|reached| {
        reached.resolved = resolved;
        reached.step = Step::Address;
    });
    let chosen = of_family(&found, family);
    if chosen.is_empty() {
        return Err(failed(io::Error::other(format!(
            "none of its {} addresses is of the family wanted, `{}`",
            found.len(),
            family.name()
        ))));
    }
    Ok((chosen, resolved))
}

/// Those of `found` that are of `family`, in their order.
pub(super) fn of_family(found: &[SocketAddr], family: AddressFamily) -> Vec<SocketAddr> {
    let is_wanted = |address: &&SocketAddr| match family {
        AddressFamily::Any => true,
        AddressFamily::Ipv4 => address.is_ipv4(),
        AddressFamily::Ipv6 => address.is_ipv6(),
    };
    found.iter().filter(is_wanted).copied().collect()
}

async fn first_open(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether `error` says that this machine has no descriptor, port or memory left.
pub(super) fn is_own_limit(error: &io::Error) -> bool {
    let own = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM];
    let code = error.raw_os_error().map(Errno::from_raw);
    error.kind() == io::ErrorKind::AddrNotAvailable || code.is_some_and(|code| own.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_told_from_what_others_refuse() {
        for (error, expected) in [
            (Errno::EMFILE, true),
            (Errno::ENFILE, true),
            (Errno::EADDRNOTAVAIL, true),
            (Errno::ECONNREFUSED, false),
            (Errno::ENETUNREACH, false),
            (Errno::ETIMEDOUT, false),
        ] {
            assert_eq!(is_own_limit(&io::Error::from(error)), expected, "{error}");
        }
    }

    #[test]
    fn the_family_is_chosen_without_changing_the_order() {
        let [a, b, c] = ["[::1]:1", "127.0.0.1:1", "[::2]:1"]
            .map(|text| text.parse::<SocketAddr>().expect("an address"));
        for (family, expected) in [
            (AddressFamily::Any, vec![a, b, c]),
            (AddressFamily::Ipv4, vec![b]),
            (AddressFamily::Ipv6, vec![a, c]),
        ] {
            assert_eq!(of_family(&[a, b, c], family), expected);
        }
    }
}
