//! TCP: resolve, then try the addresses one after another in the resolver's order.
//!
//! No racing of address families: which address was slow must not be hidden.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;

use super::{Connect, ConnectError, Endpoint, Opened, Opening, Wire};
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::BaseUrl;

/// Opens TCP connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpConnect;

impl Connect for TcpConnect {
    fn open<'a>(&'a self, endpoint: &'a Endpoint, anchor: TimeAnchor) -> Opening<'a> {
        Box::pin(async move {
            let url = endpoint.url();
            let (addresses, resolved) = resolve(url, anchor).await?;
            let stream = first_open(&addresses)
                .await
                .map_err(|source| ConnectError::Refused {
                    authority: url.authority(),
                    resolved,
                    source,
                })?;
            Ok(Opened {
                wire: Wire::Tcp(stream),
                resolved,
                connected: anchor.now(),
                tls: None,
                http2: false,
            })
        })
    }
}

async fn resolve(
    url: &BaseUrl,
    anchor: TimeAnchor,
) -> Result<(Vec<SocketAddr>, Option<MonoTime>), ConnectError> {
    if let Ok(address) = url.host().parse::<IpAddr>() {
        return Ok((vec![SocketAddr::new(address, url.port())], None));
    }
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((url.host(), url.port()))
        .await
        .map_err(|source| ConnectError::Dns {
            host: url.host().to_owned(),
            source,
        })?
        .collect();
    Ok((addresses, Some(anchor.now())))
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
