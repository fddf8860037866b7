//! When the kernel received what a socket read brought: Linux, TCP, without `unsafe`.
//!
//! The kernel puts a wall-clock stamp on every segment and hands out that of the last segment of
//! a read, if asked to before the segment arrives. Elsewhere, and where the option is refused,
//! there are no stamps and nobody is told: reads are then stamped by our own clock.
//!
//! The wall clock may step between stamp and read. So both clocks are read together at each
//! read and the stamp counts only by how long ago it was ([`placed`]); a stamp of the future, or
//! from before the socket was last seen empty, is not used.

use crate::clock::{MonoTime, WallAnchor};

/// The instant of the stamp `stamp_ns` by the clocks read at `now`, if that is possible: not
/// after `now`, and not before `emptied`, when nothing was there to be read.
pub(super) fn placed(now: WallAnchor, stamp_ns: u64, emptied: MonoTime) -> Option<MonoTime> {
    now.earlier(stamp_ns).filter(|at| *at >= emptied)
}

#[cfg(target_os = "linux")]
pub(super) use linux::{has_news, keep_stamping, receive, stamp_reads};

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::RefCell;
    use std::io::{self, IoSliceMut};
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::sync::OnceLock;

    use nix::errno::Errno;
    use nix::sys::socket::sockopt::ReceiveTimestampns;
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, recv, recvmsg, setsockopt};
    use nix::sys::time::TimeSpec;
    use tokio::net::TcpStream;

    /// Room for one stamp and some; control messages are read in place, so it is aligned.
    #[repr(align(16))]
    struct Control([u8; 128]);

    thread_local! {
        static CONTROL: RefCell<Control> = const { RefCell::new(Control([0; 128])) };
    }

    /// A socket that wants stamps as long as the program runs: while no socket does, the kernel
    /// takes none, and what arrives in the moment after one did has none either.
    static KEEPER: OnceLock<Option<UdpSocket>> = OnceLock::new();

    /// Has the kernel stamp what arrives, from soon on and as long as the program runs.
    pub(in super::super) fn keep_stamping() {
        KEEPER.get_or_init(|| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
            setsockopt(&socket, ReceiveTimestampns, &true).ok()?;
            Some(socket)
        });
    }

    /// Asks for stamps on what `stream` receives from now on.
    pub(in super::super) fn stamp_reads(stream: &TcpStream) {
        keep_stamping();
        if let Err(error) = setsockopt(stream, ReceiveTimestampns, &true) {
            tracing::debug!(%error, "no kernel receive stamps; reads are stamped by our own clock");
        }
    }

    /// Reads once without waiting: the number of bytes, and the kernel's stamp of the last
    /// segment in nanoseconds of Unix time.
    pub(in super::super) fn receive(
        stream: &TcpStream,
        bytes: &mut [u8],
    ) -> io::Result<(usize, Option<u64>)> {
        CONTROL.with_borrow_mut(|control| {
            let mut parts = [IoSliceMut::new(bytes)];
            let flags = MsgFlags::empty();
            let got = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut control.0), flags)?;
            let stamp = got.cmsgs().ok().and_then(|mut messages| {
                messages.find_map(|message| match message {
                    ControlMessageOwned::ScmTimestampns(stamp) => unix_ns(stamp),
                    _ => None,
                })
            });
            Ok((got.bytes, stamp))
        })
    }

    /// Whether a byte or the end of the stream waits in `socket`, which is asked itself: what the
    /// runtime knows may be older. `None` if that cannot be said.
    pub(in super::super) fn has_news(socket: &impl AsRawFd) -> Option<bool> {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(socket.as_raw_fd(), &mut [0], flags) {
            Err(Errno::EAGAIN) => Some(false),
            Err(Errno::EINTR) => None,
            Ok(_) | Err(_) => Some(true),
        }
    }

    fn unix_ns(stamp: TimeSpec) -> Option<u64> {
        let seconds = u64::try_from(stamp.tv_sec()).ok()?;
        let nanos = u64::try_from(stamp.tv_nsec()).ok()?;
        seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MILLI: u64 = 1_000_000;
    /// Monotonic and wall time of the read.
    const MONO: u64 = 100 * SECOND;
    const WALL: u64 = 1_700_000_000 * SECOND;

    /// A stamp taken 300 µs before a read, with the wall clock stepped by `step` between, on a
    /// socket that was empty 20 ms before the read.
    fn stepped(step: i64) -> Option<u64> {
        let now = WallAnchor::new(MonoTime::from_nanos(MONO), WALL.wrapping_add_signed(step));
        let emptied = MonoTime::from_nanos(MONO - 20 * MILLI);
        placed(now, WALL - 300_000, emptied).map(MonoTime::as_nanos)
    }

    #[test]
    fn a_stamp_is_as_old_as_the_wall_clock_says() {
        assert_eq!(stepped(0), Some(MONO - 300_000));
    }

    #[test]
    fn a_step_of_an_hour_makes_the_stamp_useless_and_is_found() {
        let hour = 3_600 * 1_000_000_000;
        assert_eq!((stepped(hour), stepped(-hour)), (None, None));
    }

    #[test]
    fn a_step_of_a_millisecond_back_is_found_and_one_forward_shifts_what_was_under_way() {
        assert_eq!(stepped(-1_000_000), None);
        assert_eq!(stepped(1_000_000), Some(MONO - 1_300_000));
        // What is older than the last moment at which nothing was there is found too.
        assert_eq!(stepped(20_000_000), None);
    }
}
