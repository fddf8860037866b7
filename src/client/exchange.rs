//! One timed exchange: connect or reuse, write, read, stamp, classify.
//!
//! Every instant is taken before anything is done with what it marks. All limits run from the
//! start, the gap limit from the last token.

mod call;
mod failure;
mod head;
mod limits;
mod refusal;
mod request;
mod secrets;
mod share;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Body;
use hyper::header::HeaderMap;
use hyper::{Request, Response};

pub use self::call::{Call, FirstToken};
use self::failure::{Failed, broken};
use self::head::{is_without_content, unasked_encoding};
pub use self::request::BodyWriter;
use self::secrets::Secrets;
use self::share::Share;
use super::protocol::{Protocol, ProtocolError, request_error};
use super::reading::{Ended, Reading};
use super::rehearsal::Rehearsal;
use super::watch::{Cancel, Gone, Watch};
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::Limits;
use crate::load::workload::Prompt;
use crate::measurement::{Chunks, Outcome, RequestRecord, TcpFacts, TokenCounts};
use crate::transport::{
    Connect, Connection, Endpoint, Marks, Opened, Pool, Progress, ReadMark, SendFailure, Taken,
    with_source,
};

/// After the protocol's last event a server has this long to end the body.
const TAIL: Duration = Duration::from_secs(2);
/// A server that closes a used connection has this long to have sent that on its way.
const CROSSING: Duration = Duration::from_secs(1);
/// Room for chunks where the output length is not known.
const USUAL_CHUNKS: u32 = 256;
/// Room for chunks is not reserved beyond this; more are still taken.
const MAX_RESERVED_CHUNKS: u32 = 16 * 1024;

/// What all requests of one stream have in common.
pub struct ClientSetup {
    /// Where the requests go.
    pub endpoint: Endpoint,
    /// What they say.
    pub protocol: Protocol,
    /// Headers of every request, authorisation included.
    pub headers: HeaderMap,
    /// When a request is given up.
    pub limits: Limits,
    /// Opens connections.
    pub connect: Arc<dyn Connect>,
    /// The program's clock.
    pub anchor: TimeAnchor,
}

/// [`ClientSetup`], with the protocol shared.
struct Setup {
    endpoint: Endpoint,
    protocol: Arc<Protocol>,
    headers: HeaderMap,
    limits: Limits,
    connect: Arc<dyn Connect>,
    anchor: TimeAnchor,
    secrets: Secrets,
}

/// Sends requests of one stream.
pub struct Client {
    setup: Setup,
    pool: Pool,
    rehearsal: Rehearsal,
    keep_text: bool,
}

impl Client {
    /// A client without open connections.
    ///
    /// # Errors
    ///
    /// If the URL's host is no header value.
    pub fn new(setup: ClientSetup) -> Result<Self, hyper::http::Error> {
        let ClientSetup {
            endpoint,
            protocol,
            headers,
            limits,
            connect,
            anchor,
        } = setup;
        let secrets = Secrets::of(&headers, &endpoint);
        let headers = request::fixed_headers(headers, &endpoint, &protocol)?;
        let pool = Pool::new(endpoint.network().reuse_for);
        Ok(Self {
            setup: Setup {
                endpoint,
                protocol: Arc::new(protocol),
                headers,
                limits,
                connect,
                anchor,
                secrets,
            },
            pool,
            rehearsal: Rehearsal::default(),
            keep_text: false,
        })
    }

    /// Keeps the texts of answers in their records, for a local tokenizer.
    #[must_use]
    pub fn keeping_text(mut self) -> Self {
        self.keep_text = true;
        self
    }

    /// Sends one request and returns its finished record.
    pub async fn send(&self, call: Call, cancel: &Cancel) -> Box<RequestRecord> {
        let Call {
            mut record,
            prompt,
            session,
            give_up,
            keep_reply,
            first_token,
        } = call;
        let share = Share::of(record.stream.connection, session);
        let request = match self.request(&record, &prompt) {
            Ok(request) => request,
            Err(error) => return self.not_sent(record, &error),
        };
        record.tokens = TokenCounts {
            requested_input: prompt.input_tokens,
            requested_output: prompt.output_tokens,
            requested_cached: prompt.shared_tokens,
            ..TokenCounts::default()
        };
        let room = prompt
            .output_tokens
            .unwrap_or(USUAL_CHUNKS)
            .min(MAX_RESERVED_CHUNKS);
        record.chunks = Chunks::with_capacity(room as usize);
        // All that needs no connection, and a kept one, is made ready before the clock starts.
        let kept = self.kept(share).await;
        let again = kept.is_some().then(|| request.clone());
        let connect_by = self.setup.anchor.now() + self.setup.limits.connect;
        let mut watch = Watch::new(self.setup.anchor, connect_by, cancel.clone());
        let start = self.setup.anchor.now();
        record.timeline.start = Some(start);
        let mut exchange = Exchange {
            client: self,
            record,
            watch: &mut watch,
            start,
            share,
            give_up,
            keep_reply,
            first_token,
        };
        let ended = match kept {
            Some(kept) => exchange.run_on(kept, request, again).await,
            None => exchange.run(request).await,
        };
        if let Err(failed) = ended {
            exchange.fail(failed);
        }
        let mut record = exchange.record;
        self.setup.secrets.hide(&mut record);
        record
    }

    /// The record of a request that we could not write: nobody's failure but ours.
    fn not_sent(
        &self,
        mut record: Box<RequestRecord>,
        error: &ProtocolError,
    ) -> Box<RequestRecord> {
        let now = self.setup.anchor.now();
        record.timeline.start = Some(now);
        record.timeline.end = Some(now);
        record.outcome = Outcome::Cancelled;
        record.error = Some(request_error("template", &error.to_string()));
        record
    }

    /// Plays the exchange of `record` and `prompt` through without a server, so that its code is
    /// not cold when the clock starts. Call it shortly before a request is due. Whether it was
    /// played to its end.
    pub async fn rehearse(&self, record: RequestRecord, prompt: &Prompt) -> bool {
        let Ok(request) = self.request(&record, prompt) else {
            return false;
        };
        let played = self
            .rehearsal
            .play(request, record, (&self.setup.protocol, self.setup.anchor))
            .await;
        played.is_some()
    }

    /// The connection that was used last, if the policy allows it and it is still open.
    async fn kept(&self, share: Share) -> Option<Connection> {
        let Share::Idle(session) = share else {
            return None;
        };
        while let Some(mut connection) = self.pool.take(session, self.setup.anchor.now()) {
            if connection.ready().await {
                return Some(connection);
            }
        }
        None
    }
}

/// The state of one exchange.
struct Exchange<'c> {
    client: &'c Client,
    record: Box<RequestRecord>,
    watch: &'c mut Watch,
    start: MonoTime,
    share: Share,
    /// After this long from the end of writing it is given up, as planned.
    give_up: Option<Duration>,
    keep_reply: bool,
    first_token: FirstToken,
}

impl Exchange<'_> {
    /// The exchange on a new connection.
    async fn run(&mut self, request: Request<Full<Bytes>>) -> Result<(), Failed> {
        let mut connection = Box::pin(self.open()).await?;
        let sent = self.send_on(&mut connection, request).await;
        if sent.is_err() {
            self.note_tcp(&mut connection);
        }
        match sent? {
            Ok(response) => self.finish(connection, response).await,
            Err(failure) => Err(Failed::not_answered(&failure, connection.marks())),
        }
    }

    /// The exchange on a kept connection. If that turns out to have been closed, it is replaced
    /// by a new one, once, and the record says so.
    async fn run_on(
        &mut self,
        mut kept: Connection,
        request: Request<Full<Bytes>>,
        again: Option<Request<Full<Bytes>>>,
    ) -> Result<(), Failed> {
        let failure = match self.send_on(&mut kept, request).await? {
            Ok(response) => return self.finish(kept, response).await,
            Err(failure) => failure,
        };
        match again {
            Some(again) if self.was_closed_idle(&failure, kept.marks()) => {
                self.record.replaced_connection = true;
                Box::pin(self.run(again)).await
            }
            _ => Err(Failed::not_answered(&failure, kept.marks())),
        }
    }

    /// Reads the response and keeps the connection, if it can be used again.
    async fn finish(
        &mut self,
        mut connection: Connection,
        response: Response<()>,
    ) -> Result<(), Failed> {
        self.record.http_status = Some(response.status().as_u16());
        let complete = if response.status().is_success() {
            self.answer(response.headers(), &mut connection).await
        } else {
            self.refusal(&response, &mut connection).await
        };
        self.note_tcp(&mut connection);
        let complete = complete?;
        if let (true, Share::Idle(session)) = (complete, self.share)
            && connection.ready().await
        {
            let now = self.client.setup.anchor.now();
            self.client.pool.give(connection, session, now);
        }
        Ok(())
    }

    /// All instants are taken: asking the kernel is in no time of this request.
    fn note_tcp(&mut self, connection: &mut Connection) {
        let report = connection.tcp_report(self.client.setup.anchor.now());
        self.record.tcp = report.map(|report| TcpFacts {
            rtt: report.rtt,
            rtt_deviation: report.rtt_deviation,
            retransmits: report.retransmits,
        });
    }

    /// Whether a connection that was used before was closed by the server while nothing was
    /// under way on it: our request crossed the close on the way. No byte came back, and soon.
    fn was_closed_idle(&self, failure: &SendFailure, marks: &Marks) -> bool {
        let soon = self.client.setup.anchor.now().since(self.start) < CROSSING;
        match failure {
            SendFailure::Unsent => true,
            SendFailure::Other { .. } => false,
            SendFailure::Tls(_) => soon && marks.first_read().is_none(),
            SendFailure::Broken(error) => soon && marks.first_read().is_none() && !error.is_parse(),
        }
    }

    async fn send_on(
        &mut self,
        connection: &mut Connection,
        request: Request<Full<Bytes>>,
    ) -> Result<Result<Response<()>, SendFailure>, Failed> {
        let marks = Arc::clone(connection.marks());
        marks.begin();
        let length = request.body().size_hint().lower();
        let sent = {
            let mut sending = pin!(connection.send(request));
            loop {
                let (deadline, late) = self.deadline_of_sending(marks.wrote_all(length));
                match self.watch.until(deadline, sending.as_mut()).await {
                    Ok(sent) => break Ok(sent),
                    Err(Gone::Late)
                        if late == Outcome::Cancelled && !self.is_given_up(&marks, length) => {}
                    Err(gone) => break Err(Failed::from((gone, late))),
                }
            }
        };
        let timeline = &mut self.record.timeline;
        timeline.sent_first = marks.first_write();
        timeline.sent = marks.last_write();
        timeline.headers = marks.first_read();
        self.record.reused = Some(connection.is_reused());
        sent
    }

    async fn open(&mut self) -> Result<Connection, Failed> {
        let setup = &self.client.setup;
        let deadline = self.start + setup.limits.connect.min(setup.limits.total);
        let progress = Progress::new(setup.anchor);
        let opening = setup.connect.open(&setup.endpoint, &progress);
        let opened = match self.watch.until(deadline, opening).await {
            Ok(opened) => opened,
            Err(gone) => {
                let at = (&setup.endpoint, progress.reached());
                return Err(Failed::given_up(gone, at, &mut self.record.timeline));
            }
        };
        let Opened {
            wire,
            resolved,
            connected,
            tls,
            http2,
        } = opened.map_err(|error| Failed::not_opened(&error, &mut self.record.timeline))?;
        self.record.timeline.resolved = resolved;
        self.record.timeline.connected = Some(connected);
        self.record.timeline.tls_done = tls.map(|tls| tls.done);
        self.record.certificate_expiry = tls.and_then(|tls| tls.certificate_expiry);
        let started = if http2 {
            Connection::start_http2(wire, setup.anchor).await
        } else {
            Ok(Connection::start(wire, setup.anchor))
        };
        started.map_err(|error| Failed(Outcome::Connect, Some(broken(&with_source(&error)))))
    }

    /// Reads a success to its end. True if the connection can be used again.
    async fn answer(
        &mut self,
        headers: &HeaderMap,
        connection: &mut Connection,
    ) -> Result<bool, Failed> {
        let mut reading = Reading::new(Arc::clone(&self.client.setup.protocol));
        if self.client.keep_text {
            reading = reading.keeping_text();
        }
        if self.keep_reply {
            reading = reading.keeping_reply();
        }
        if let Some(encoding) = unasked_encoding(headers) {
            reading.encoded(&encoding);
        }
        if self.record.http_status.is_some_and(is_without_content) {
            reading.without_content();
        }
        let marks = Arc::clone(connection.marks());
        let (mut done_at, mut broken_by, mut until_close) = (None, None, false);
        let ended = loop {
            let (mut deadline, mut late) = self.next_deadline();
            if reading.is_done() {
                let done = *done_at.get_or_insert(self.client.setup.anchor.now());
                (deadline, late) = (done + TAIL, Outcome::Ok);
            }
            let was_settled = reading.is_settled();
            let record = &mut self.record;
            let take = |data: &[u8], read: ReadMark| {
                if !was_settled && read.at <= deadline {
                    reading.take(data, read, record);
                }
            };
            let mut next = self.watch.until(deadline, connection.body(take)).await;
            // A stream that never pauses never lets the timer speak.
            if self.last_read(&marks).at > deadline {
                next = Err(Gone::Late);
            }
            match next {
                Ok(_) if was_settled => break Ended::Broken,
                Ok(Ok(Taken::Part)) => {
                    self.first_token.look(self.record.timeline.first_token);
                }
                Ok(Ok(end)) => {
                    until_close = end == Taken::Closed;
                    break Ended::Complete;
                }
                Ok(Err(error)) => {
                    broken_by = Some(error);
                    break Ended::Broken;
                }
                Err(Gone::Late) if late == Outcome::Ok => break Ended::Broken,
                Err(gone) => {
                    reading.end(Ended::Broken, self.last_read(&marks), &mut self.record);
                    self.record.error = None;
                    return Err(Failed::from((gone, late)));
                }
            }
        };
        let noticed = self.client.setup.anchor.now();
        let last = self.last_read(&marks);
        self.record.timeline.end = Some(last.at);
        reading.end(ended, last, &mut self.record);
        let failed = matches!(self.record.outcome, Outcome::StreamCut | Outcome::Empty);
        if failed && (until_close || broken_by.is_some()) {
            // It may have been silent for long before: what ended it was no byte that was read.
            self.record.timeline.end = Some(noticed);
        }
        if let (Outcome::StreamCut, Some(error)) = (self.record.outcome, broken_by) {
            self.record.error = Some(broken(&error.to_string()));
        }
        Ok(ended == Ended::Complete)
    }

    /// The read that completed what just came out of the connection.
    fn last_read(&self, marks: &Marks) -> ReadMark {
        marks.last_read().unwrap_or_else(|| self.no_read())
    }

    /// Stands in for a read where none came.
    fn no_read(&self) -> ReadMark {
        ReadMark::user(self.client.setup.anchor.now(), 0)
    }
}
