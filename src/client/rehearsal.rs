//! Runs an exchange against ourselves, so that its code is not cold when the clock starts.
//!
//! A canary that sends a request every few seconds finds caches and branch predictors full of
//! somebody else's work; the first pass through the request path then costs a multiple of the
//! next one, and all of it would count as the server's. The rehearsal is that first pass: the
//! same encoder, connection, decoder and clock, over an in-memory pipe whose other end answers
//! with a short stream.

use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Mutex;

use super::protocol::Protocol;
use super::reading::{Ended, Reading};
use crate::clock::TimeAnchor;
use crate::measurement::RequestRecord;
use crate::transport::{Connection, ReadMark, Taken, Wire};

/// Room in the pipe: a prompt of some thousand tokens.
const PIPE: usize = 64 * 1024;

const ANSWER: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const FRAMES: [&str; 4] = [
    "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}",
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}",
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}",
    "[DONE]",
];

/// A stage of our own, made when it is first needed.
#[derive(Default)]
pub(super) struct Rehearsal(Mutex<Option<Stage>>);

struct Stage {
    connection: Connection,
    partner: DuplexStream,
}

impl Rehearsal {
    /// Plays one exchange of `request` through. Its outcome is nobody's.
    pub(super) async fn play(
        &self,
        request: Request<Full<Bytes>>,
        mut record: RequestRecord,
        (protocol, anchor): (&Arc<Protocol>, TimeAnchor),
    ) -> Option<()> {
        let mut stage = self.0.lock().await;
        let Stage {
            mut connection,
            mut partner,
        } = if let Some(stage) = stage.take() {
            stage
        } else {
            let (ours, partner) = tokio::io::duplex(PIPE);
            let connection = Connection::start(Wire::Pipe(ours), anchor);
            Stage {
                connection,
                partner,
            }
        };
        let (response, ()) = tokio::join!(connection.send(request), answer(&mut partner));
        response.ok()?;
        let mut reading = Reading::new(Arc::clone(protocol));
        let mut last = ReadMark::user(anchor.now(), 0);
        let mut take = |data: &[u8], read| {
            last = read;
            reading.take(data, read, &mut record);
        };
        while let Ok(Taken::Part) = connection.body(&mut take).await {}
        reading.end(Ended::Complete, last, &mut record);
        if connection.ready().await {
            *stage = Some(Stage {
                connection,
                partner,
            });
        }
        Some(())
    }
}

/// Reads a request and answers it.
async fn answer(partner: &mut DuplexStream) {
    let mut taken = [0; 4096];
    // The body is JSON, so its last byte is a closing brace; a long one comes in several reads.
    while let Ok(count @ 1..) = partner.read(&mut taken).await {
        if taken[..count].ends_with(b"}") {
            break;
        }
    }
    let mut text = ANSWER.to_owned();
    for frame in FRAMES {
        let event = format!("data: {frame}\n\n");
        write!(text, "{:x}\r\n{event}\r\n", event.len()).expect("a string takes all");
    }
    text.push_str("0\r\n\r\n");
    if partner.write_all(text.as_bytes()).await.is_err() {
        tracing::trace!("the rehearsal's pipe is closed");
    }
}
