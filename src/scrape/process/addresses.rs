//! Where a server listens, and which socket of the kernel's tables that is.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use crate::config::{BaseUrl, Scheme};

/// So much of a table is read, bytes. Sockets that listen come first in it, a hundred and fifty
/// bytes each; those of connections may go on for long.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// The state of a socket that listens.
const LISTENS: &str = "0A";
/// The flags of a Unix socket that listens.
const TAKES_CONNECTIONS: &str = "00010000";

/// Where a server is to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listening {
    /// At a port, of this host.
    Port(Host, u16),
    /// At a Unix socket.
    Socket(PathBuf),
}

/// Whose port it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// That of `localhost`.
    Loopback,
    /// Of this address.
    Address(IpAddr),
    /// Of a name. Whoever said that the server is on this machine knows whose name it is.
    Named,
}

impl Listening {
    /// Where the server at `url` listens, if that is this machine.
    #[must_use]
    pub fn at(url: &BaseUrl) -> Self {
        let host = url.host();
        if url.scheme() == Scheme::Unix {
            return Self::Socket(host.into());
        }
        let host = match host.parse() {
            Ok(address) => Host::Address(address),
            Err(_) if host.eq_ignore_ascii_case("localhost") => Host::Loopback,
            Err(_) => Host::Named,
        };
        Self::Port(host, url.port())
    }

    /// The numbers of the sockets that listen there, by the tables below `root`.
    pub(super) fn sockets(&self, root: &Path) -> BTreeSet<u64> {
        let net = root.join("proc/net");
        match self {
            Self::Port(Host::Address(address), _) if !is_ours(&net, *address) => BTreeSet::new(),
            Self::Port(host, port) => {
                let tables = [head(&net.join("tcp")), head(&net.join("tcp6"))];
                let text = tables.concat();
                let rows = text.lines().filter_map(tcp_row);
                let there: Vec<(Fit, u64)> = rows
                    .filter(|row| row.port == *port)
                    .filter_map(|row| Some((host.fits(row.address)?, row.socket)))
                    .collect();
                // A socket of one address gets its connections, one of all addresses the rest.
                let best = there.iter().map(|(fit, _)| *fit).max();
                let best = there.iter().filter(|(fit, _)| Some(*fit) == best);
                best.map(|(_, socket)| *socket).collect()
            }
            Self::Socket(path) => {
                let text = head(&net.join("unix"));
                let rows = text.lines().filter_map(|row| unix_row(row, path));
                rows.collect()
            }
        }
    }
}

impl std::fmt::Display for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Port(Host::Address(address), port) => {
                write!(f, "{}", std::net::SocketAddr::new(*address, *port))
            }
            Self::Port(Host::Loopback, port) => write!(f, "localhost:{port}"),
            Self::Port(Host::Named, port) => write!(f, "port {port}"),
            Self::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How well a socket's address fits; the better is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It listens on all addresses.
    Any,
    /// It listens on this one.
    Exact,
}

impl Host {
    fn fits(self, local: IpAddr) -> Option<Fit> {
        let local = local.to_canonical();
        if local.is_unspecified() {
            // One of IPv6 takes both, unless it was told not to, which no table shows.
            let takes = match self {
                Self::Address(address) => address.to_canonical().is_ipv4() || local.is_ipv6(),
                Self::Loopback | Self::Named => true,
            };
            return takes.then_some(Fit::Any);
        }
        let is_it = match self {
            Self::Loopback => local.is_loopback(),
            Self::Address(address) => address.to_canonical() == local,
            Self::Named => true,
        };
        is_it.then_some(Fit::Exact)
    }
}

/// A socket that listens.
struct Row {
    address: IpAddr,
    port: u16,
    socket: u64,
}

/// A row of `/proc/net/tcp` or `tcp6`, if it listens.
fn tcp_row(row: &str) -> Option<Row> {
    let fields: Vec<&str> = row.split_ascii_whitespace().take(10).collect();
    let [_, local, _, LISTENS, .., socket] = fields.as_slice() else {
        return None;
    };
    let (address, port) = local.split_once(':')?;
    Some(Row {
        address: address_of(address)?,
        port: u16::from_str_radix(port, 16).ok()?,
        socket: socket.parse().ok().filter(|_| fields.len() == 10)?,
    })
}

/// An address as words of 32 bits, each as the processor would print the number in its bytes.
fn address_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            let bytes: [u8; 16] = words.try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// The number of the socket in a row of `/proc/net/unix`, if it listens at `path`.
fn unix_row(row: &str, path: &Path) -> Option<u64> {
    // Num RefCount Protocol Flags Type St Inode Path; the path may contain blanks.
    let mut fields = row.split_ascii_whitespace();
    let flags = fields.nth(3)?;
    let socket = fields.nth(2)?.parse().ok()?;
    let (_, from_root) = row.split_once(" /")?;
    let is_it = Path::new("/").join(from_root) == path;
    (flags == TAKES_CONNECTIONS && is_it).then_some(socket)
}

/// Whether connections to `address` end on this machine, by the tables in `net`.
fn is_ours(net: &Path, address: IpAddr) -> bool {
    match address.to_canonical() {
        address if address.is_loopback() => true,
        IpAddr::V4(address) => {
            let tables = head(&net.join("fib_trie"));
            // A row with the address, and below it a row for each kind of route to it.
            let mut at = None;
            tables.lines().map(str::trim_start).any(|row| {
                if let Some(other) = row.strip_prefix("|-- ") {
                    at = other.parse().ok();
                }
                row.starts_with("/32 host LOCAL") && at == Some(address)
            })
        }
        IpAddr::V6(address) => {
            let digits: String = address.octets().map(|byte| format!("{byte:02x}")).concat();
            let rows = head(&net.join("if_inet6"));
            rows.lines().any(|row| row.starts_with(&digits))
        }
    }
}

/// The beginning of a long file, whole lines; empty if it cannot be read.
fn head(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.truncate(end.map_or(0, |end| end + 1));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}
