//! What the kernel knows of a TCP connection: Linux, without `unsafe`.
//!
//! The socket option that says it (`TCP_INFO`) is wrapped by no crate that we have, so the kernel
//! is asked over its own diagnostic socket (`sock_diag`), which answers at once, in some
//! microseconds. Asked for rarely: a connection that was asked about a moment ago says the same.
//! Where the kernel does not answer nothing is known, and nobody is told.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use crate::clock::MonoTime;

/// What the kernel knows of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TcpInfo {
    /// Smoothed round trip time.
    pub(super) rtt: Duration,
    /// Its mean deviation.
    pub(super) rtt_deviation: Duration,
    /// Segments that were sent again, since the connection began.
    pub(super) retransmits: u32,
}

/// Between two questions of one thread: at most 500 a second, a few thousandths of a processor.
const PAUSE: Duration = Duration::from_millis(2);

thread_local! {
    static ASKED: Cell<Option<MonoTime>> = const { Cell::new(None) };
}

/// Whether it is time to ask again; if so, that is now.
fn may_ask(now: MonoTime) -> bool {
    let due = ASKED
        .get()
        .is_none_or(|asked| asked > now || now.since(asked) >= PAUSE);
    if due {
        ASKED.set(Some(now));
    }
    due
}

/// Asks the kernel about the connection between these ends, unless it was asked just now.
pub(super) fn tcp_info_now(ends: Ends, now: MonoTime) -> Option<TcpInfo> {
    may_ask(now).then(|| tcp_info(ends))?
}

/// Both ends of a connection.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// Asks the kernel about the connection between these ends.
#[cfg(target_os = "linux")]
fn tcp_info(ends: Ends) -> Option<TcpInfo> {
    linux::ask(&request(ends)?, info_in)
}

/// Nobody to ask.
#[cfg(not(target_os = "linux"))]
fn tcp_info(_: Ends) -> Option<TcpInfo> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::OnceCell;
    use std::os::fd::{AsRawFd, OwnedFd};

    use nix::sys::socket::{
        AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto,
        socket,
    };

    thread_local! {
        /// None, where the kernel has no such socket for us.
        static KERNEL: OnceCell<Option<OwnedFd>> = const { OnceCell::new() };
    }

    fn open() -> Option<OwnedFd> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let protocol = SockProtocol::NetlinkSockDiag;
        socket(AddressFamily::Netlink, SockType::Raw, flags, protocol).ok()
    }

    /// Sends `question` and shows the answer to `read`. The kernel answers while it is asked, so
    /// nothing is waited for.
    pub(super) fn ask<R>(question: &[u8], read: impl FnOnce(&[u8]) -> Option<R>) -> Option<R> {
        KERNEL.with(|kernel| {
            let kernel = kernel.get_or_init(open).as_ref()?.as_raw_fd();
            let to = NetlinkAddr::new(0, 0);
            sendto(kernel, question, &to, MsgFlags::empty()).ok()?;
            let mut answer = [0; 2048];
            let length = recv(kernel, &mut answer, MsgFlags::empty()).ok()?;
            read(&answer[..length])
        })
    }
}

/// Length of a netlink header, and of what describes a socket behind it.
const HEADER: usize = 16;
const MESSAGE: usize = 72;
/// `SOCK_DIAG_BY_FAMILY`, both ways.
const BY_FAMILY: u16 = 20;
/// The attribute with `struct tcp_info`.
const INFO: u16 = 2;

/// The question, in the kernel's form (`inet_diag_req_v2`).
fn request((local, peer): Ends) -> Option<Vec<u8>> {
    const REQUEST: u16 = 1;
    const INET: u8 = 2;
    const INET6: u8 = 10;
    const TCP: u8 = 6;
    const LENGTH: u32 = 72;
    let family = match (local, peer) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => INET,
        (SocketAddr::V6(_), SocketAddr::V6(_)) => INET6,
        _ => return None,
    };
    let mut bytes = Vec::with_capacity(LENGTH as usize);
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    // Number and sender: the answer is read before anything else is asked.
    bytes.extend([0; 8]);
    // The bit of the attribute that is wanted; of sockets in any state.
    bytes.extend([family, TCP, 1 << (INFO - 1), 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(peer.port().to_be_bytes());
    for end in [local, peer] {
        let mut address = [0; 16];
        match end {
            SocketAddr::V4(end) => address[..4].copy_from_slice(&end.ip().octets()),
            SocketAddr::V6(end) => address.copy_from_slice(&end.ip().octets()),
        }
        bytes.extend(address);
    }
    // On any interface, and by no cookie.
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend([0xff; 8]);
    Some(bytes)
}

/// What an answer says.
fn info_in(answer: &[u8]) -> Option<TcpInfo> {
    /// Places in `struct tcp_info`, which only grows at its end.
    const RTT: usize = 68;
    const RTT_VAR: usize = 72;
    const TOTAL_RETRANS: usize = 100;
    if short(answer, 4)? != BY_FAMILY {
        return None;
    }
    let mut rest = answer.get(HEADER + MESSAGE..)?;
    loop {
        let (length, kind) = (usize::from(short(rest, 0)?), short(rest, 2)?);
        let value = rest.get(4..length)?;
        if kind == INFO {
            let micros = |place| Some(Duration::from_micros(u64::from(long(value, place)?)));
            return Some(TcpInfo {
                rtt: micros(RTT)?,
                rtt_deviation: micros(RTT_VAR)?,
                retransmits: long(value, TOTAL_RETRANS)?,
            });
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

fn short(bytes: &[u8], place: usize) -> Option<u16> {
    let two = bytes.get(place..place + 2)?;
    two.try_into().ok().map(u16::from_ne_bytes)
}

fn long(bytes: &[u8], place: usize) -> Option<u32> {
    let four = bytes.get(place..place + 4)?;
    four.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Two ends of a connection over which `bytes` went there and back.
    fn connected(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).expect("loopback is there");
        let there = listener.local_addr().expect("it is bound");
        let mut ours = TcpStream::connect(there).expect("it listens");
        let (mut theirs, _) = listener.accept().expect("somebody came");
        let mut byte = [0];
        for _ in 0..5 {
            ours.write_all(b"x").expect("open");
            theirs.read_exact(&mut byte).expect("open");
            theirs.write_all(b"y").expect("open");
            ours.read_exact(&mut byte).expect("open");
        }
        (ours, theirs)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_knows_the_round_trip_of_a_connection() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (ours, _theirs) = connected(address);
            let ends = (
                ours.local_addr().expect("bound"),
                ours.peer_addr().expect("connected"),
            );
            // A kernel that does not answer such questions says nothing, which is allowed.
            if let Some(info) = tcp_info(ends) {
                assert!(
                    !info.rtt.is_zero() && info.rtt < Duration::from_secs(5),
                    "{info:?}"
                );
                assert_eq!(info.retransmits, 0, "{info:?}");
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn of_a_connection_that_is_none_nothing_is_known() {
        let nowhere: SocketAddr = "127.0.0.1:1".parse().expect("an address");
        assert_eq!(tcp_info((nowhere, nowhere)), None);
        let mixed = ("[::1]:1".parse().expect("an address"), nowhere);
        assert_eq!(tcp_info(mixed), None);
    }

    #[test]
    fn it_is_asked_once_in_a_while() {
        let at = |micros: u64| MonoTime::from_nanos(micros * 1_000);
        let asked = [5_000, 5_500, 6_999, 7_000, 8_000, 9_000, 100].map(|now| may_ask(at(now)));
        assert_eq!(asked, [true, false, false, true, false, true, true]);
    }

    /// As a kernel answered: 280 bytes of information behind one attribute that is something else.
    fn answer(rtt: u32, retransmits: u32) -> Vec<u8> {
        let mut info = vec![0; 280];
        info[68..72].copy_from_slice(&rtt.to_ne_bytes());
        info[72..76].copy_from_slice(&7_u32.to_ne_bytes());
        info[100..104].copy_from_slice(&retransmits.to_ne_bytes());
        let mut bytes = vec![0; HEADER + MESSAGE];
        bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        for (kind, value) in [(8_u16, &[1][..]), (INFO, &info)] {
            let length = u16::try_from(value.len() + 4).expect("short");
            bytes.extend(length.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn an_answer_is_read_wherever_it_is_cut() {
        let whole = answer(1_500, 3);
        let info = TcpInfo {
            rtt: Duration::from_micros(1_500),
            rtt_deviation: Duration::from_micros(7),
            retransmits: 3,
        };
        assert_eq!(info_in(&whole), Some(info));
        for length in 0..whole.len() {
            assert_eq!(info_in(&whole[..length]), None, "cut after {length}");
        }
        let mut error = whole;
        error[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        assert_eq!(info_in(&error), None, "an error is no answer");
    }

    #[test]
    fn a_length_of_nothing_does_not_go_round_for_ever() {
        let mut bytes = answer(1, 1);
        bytes[HEADER + MESSAGE..HEADER + MESSAGE + 2].copy_from_slice(&0_u16.to_ne_bytes());
        assert_eq!(info_in(&bytes), None);
    }
}
