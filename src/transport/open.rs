//! Opens real connections: TCP, directly or through a proxy, or a Unix socket; then TLS.
//!
//! A name is resolved anew for each connection, and its addresses are tried one after another in
//! the resolver's order. No racing of address families: which address was slow must not be
//! hidden.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpStream, UnixStream};

use super::{Connect, ConnectError, Endpoint, Opened, Opening, Wire, proxy};
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{AddressFamily, BaseUrl, ProxyConfig, Scheme};

/// Opens connections over the network of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpConnect;

impl Connect for TcpConnect {
    fn open<'a>(&'a self, endpoint: &'a Endpoint, anchor: TimeAnchor) -> Opening<'a> {
        Box::pin(async move {
            let network = endpoint.network();
            let (wire, resolved) = match (endpoint.url().scheme(), &network.proxy) {
                (Scheme::Unix, _) => (socket(endpoint.url()).await?, None),
                (_, None) => direct(endpoint.url(), network.family, anchor).await?,
                (_, Some(proxy)) => through(proxy, endpoint, anchor).await?,
            };
            let opened = Opened {
                wire,
                resolved,
                connected: anchor.now(),
                tls: None,
                http2: false,
            };
            endpoint.secure(opened, anchor).await
        })
    }
}

/// A stream, and when its name was resolved.
type Reached = (Wire, Option<MonoTime>);

async fn direct(
    url: &BaseUrl,
    family: AddressFamily,
    anchor: TimeAnchor,
) -> Result<Reached, ConnectError> {
    let (addresses, resolved) = resolve(url, family, anchor).await?;
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
    anchor: TimeAnchor,
) -> Result<Reached, ConnectError> {
    let family = endpoint.network().family;
    let (addresses, resolved) = resolve(&proxy.url, family, anchor).await?;
    let refused = |source| ConnectError::Proxy {
        authority: proxy.url.authority(),
        resolved,
        source,
    };
    let mut stream = first_open(&addresses).await.map_err(refused)?;
    proxy::tunnel(&mut stream, proxy, &endpoint.url().authority())
        .await
        .map_err(refused)?;
    Ok((Wire::Tcp(stream), resolved))
}

async fn socket(url: &BaseUrl) -> Result<Wire, ConnectError> {
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
    anchor: TimeAnchor,
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
        (found.collect::<Vec<_>>(), Some(anchor.now()))
    };
    let chosen = of_family(&found, family);
    if chosen.is_empty() {
        return Err(failed(io::Error::other(format!(
            "none of its {} addresses is of the family wanted, {family:?}",
            found.len()
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

#[cfg(test)]
mod tests {
    use super::*;

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
