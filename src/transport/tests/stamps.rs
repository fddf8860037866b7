//! Kernel stamps of real loopback sockets, against the clock of the server that writes.

use std::future::poll_fn;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::clock::{MonoTime, TimeAnchor};
use crate::transport::marks::{ReadMark, StampClock};
use crate::transport::stamped::{Raw, Stamped};

/// Kernel and writer agree this well on a machine that is busy with other tests.
const CLOSE: Duration = Duration::from_millis(5);

/// A server on a thread of its own: for each pause it gets, it waits that long and writes four
/// bytes, and says when.
struct Server {
    address: SocketAddr,
    pauses: mpsc::Sender<u64>,
    written: mpsc::Receiver<MonoTime>,
    thread: JoinHandle<()>,
}

impl Server {
    fn start(anchor: TimeAnchor) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let (pauses, orders) = mpsc::channel::<u64>();
        let (reports, written) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a client");
            peer.set_nodelay(true).expect("a TCP socket");
            for pause in orders {
                block(pause);
                let at = anchor.now();
                peer.write_all(b"four").expect("the client is there");
                reports.send(at).expect("the test waits");
            }
        });
        Self {
            address,
            pauses,
            written,
            thread,
        }
    }

    fn write_after(&self, millis: u64) {
        self.pauses.send(millis).expect("the server runs");
    }

    fn end(self) {
        drop(self.pauses);
        self.thread.join().expect("no panic");
    }
}

/// Keeps this thread busy or asleep, deaf to its sockets.
fn block(millis: u64) {
    let (_nobody, never) = mpsc::channel::<()>();
    never
        .recv_timeout(Duration::from_millis(millis))
        .expect_err("nothing is sent");
}

async fn connected(server: &Server, anchor: TimeAnchor) -> Stamped {
    let stream = TcpStream::connect(server.address)
        .await
        .expect("it listens");
    Stamped::new(Raw::Tcp(stream), anchor)
}

async fn read(stream: &mut Stamped) -> (usize, ReadMark) {
    let mut bytes = [0; 64];
    let count = poll_fn(|cx| stream.poll_take(cx, &mut bytes))
        .await
        .expect("bytes");
    (count, stream.marks().last_read().expect("it was read"))
}

/// Reads until the kernel stamps: it begins to a moment after it was first asked to.
#[cfg(target_os = "linux")]
async fn warm_up(server: &Server, stream: &mut Stamped) {
    for _ in 0..500 {
        server.write_after(2);
        let (_, mark) = read(stream).await;
        server.written.recv().expect("it wrote");
        if mark.clock == StampClock::Kernel {
            return;
        }
    }
    panic!("the kernel gives no stamps");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_busy_reader_still_knows_when_the_bytes_came() {
    let anchor = TimeAnchor::start();
    let server = Server::start(anchor);
    let mut stream = connected(&server, anchor).await;
    warm_up(&server, &mut stream).await;
    let mut close = 0;
    for _ in 0..6 {
        server.write_after(2);
        block(32);
        let (count, mark) = read(&mut stream).await;
        let written = server.written.recv().expect("it wrote");
        assert_eq!(
            (count, mark.clock, mark.bad_stamp),
            (4, StampClock::Kernel, false)
        );
        assert!(mark.at <= mark.returned);
        assert!(mark.at >= written.minus(Duration::from_micros(100)));
        close += u32::from(mark.at.since(written) < CLOSE && mark.returned.since(written) > CLOSE);
    }
    // The server itself may be set aside between looking at its clock and writing.
    assert!(close >= 3, "only {close} of 6 stamps are the server's");
    server.end();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_merged_read_says_how_far_its_bytes_may_lie_apart() {
    let anchor = TimeAnchor::start();
    let server = Server::start(anchor);
    let mut stream = connected(&server, anchor).await;
    warm_up(&server, &mut stream).await;
    server.write_after(1);
    let (_, first) = read(&mut stream).await;
    server.written.recv().expect("it wrote");
    server.write_after(5);
    server.write_after(15);
    block(40);
    let (count, merged) = read(&mut stream).await;
    let early = server.written.recv().expect("it wrote");
    let late = server.written.recv().expect("it wrote");
    assert_eq!((count, merged.number), (8, first.number + 1));
    assert!(merged.at >= late.minus(Duration::from_micros(100)));
    assert!(merged.at < merged.returned, "{merged:?}");
    assert_eq!(merged.spread, merged.at.since(first.at));
    assert!(
        merged.at.minus(merged.spread) <= early,
        "the first bytes lie within"
    );
    server.end();
}

#[tokio::test]
async fn the_end_of_a_stream_is_no_read() {
    let anchor = TimeAnchor::start();
    let server = Server::start(anchor);
    let mut stream = connected(&server, anchor).await;
    server.end();
    let mut bytes = [0; 8];
    let count = poll_fn(|cx| stream.poll_take(cx, &mut bytes))
        .await
        .expect("an end");
    assert_eq!((count, stream.marks().last_read()), (0, None));
}

#[test]
fn a_thread_that_slept_knows_that_its_first_byte_woke_it() {
    let anchor = TimeAnchor::start();
    let server = Server::start(anchor);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(crate::transport::thread_parks)
        .on_thread_unpark(crate::transport::thread_unparks)
        .build()
        .expect("a runtime");
    let spreads: Vec<Duration> = runtime.block_on(async {
        let mut stream = connected(&server, anchor).await;
        let mut spreads = Vec::new();
        for _ in 0..20 {
            server.write_after(10);
            spreads.push(read(&mut stream).await.1.spread);
        }
        spreads
    });
    // The plain interval would be 10 ms; a core that is busy elsewhere may cost some of them.
    let short = spreads.iter().filter(|spread| **spread < CLOSE).count();
    assert!(short >= 10, "{spreads:?}");
    server.end();
}
