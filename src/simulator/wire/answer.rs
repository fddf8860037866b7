//! One connection: requests in, answers out, each write noted before it goes.
//!
//! While an answer is under way the connection is read as well, so that a client that leaves is
//! noticed and its job cancelled.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::Simulator;
use super::ask::{self, Api, Ask, Refusal};
use super::frames::{self, Frames};
use super::frontend::Pass;
use super::http::{self, Request, Unread};
use super::pages::{self, Answer, Page};
use super::state::Accepted;
use super::write_log::{Moment, Writing};
use crate::simulator::engine::{EmissionKind, Finish, JobId, Refused};
use crate::simulator::faults::Ending;

const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nserver: tokencanary-simulator\r\n\
    content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
/// The same for a client of HTTP/1.0, which knows no chunks.
const OLD_STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nserver: tokencanary-simulator\r\n\
    content-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const DONE_FRAME: &str = "data: [DONE]\n\n";

/// The connection is over: the client is gone, or a fault wants it closed.
struct Over;

/// One side of a connection with what is read ahead and what is about to be written.
struct Link<'a, Io> {
    simulator: &'a Simulator,
    io: Io,
    read: BytesMut,
    out: Vec<u8>,
    /// Whether a stream is sent in chunks, with an end of its own.
    chunked: bool,
    /// Whether a stream goes out as one piece, at its end.
    buffers: bool,
    writing: Writing,
}

/// A job whose answer is under way; dropping it cancels the job.
struct Ticket<'a> {
    simulator: &'a Simulator,
    accepted: Accepted,
    /// Prompt tokens from the prefix cache, as of its admission.
    cached_tokens: u32,
    /// Its place in the frontend, given up after the job.
    _pass: Pass<'a>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.simulator
            .change(|state, now| state.cancel(self.accepted.job, now));
    }
}

/// Answers requests until the connection ends.
pub(super) async fn serve<Io>(simulator: &Simulator, io: Io)
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let mut link = Link {
        simulator,
        io,
        read: BytesMut::with_capacity(4096),
        out: Vec::with_capacity(1024),
        chunked: true,
        buffers: false,
        writing: Writing::default(),
    };
    loop {
        let request = match http::read_request(&mut link.io, &mut link.read).await {
            Ok(request) => request,
            Err(Unread::Closed) => return,
            Err(Unread::Refused(status, message)) => {
                // The connection ends either way.
                let (Ok(()) | Err(Over)) = link.page(&Page::error(status, message), true).await;
                return;
            }
        };
        link.writing = Writing {
            request: request.id.as_deref().map(Arc::from),
            write: 0,
        };
        link.chunked = request.chunked;
        link.note(Moment::Read);
        if link.answer(&request).await.is_err() || request.close {
            return;
        }
    }
}

impl<'a, Io> Link<'a, Io>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    async fn answer(&mut self, request: &Request) -> Result<(), Over> {
        match pages::answer(self.simulator, request) {
            Answer::Page(page) => self.page(&page, request.close).await,
            Answer::Generated(api) => self.generate(request, api).await,
        }
    }

    async fn generate(&mut self, request: &Request, api: Api) -> Result<(), Over> {
        let ending = self.simulator.change(super::state::State::ending);
        match ending {
            Ending::Hang => {
                http::gone(&mut self.io, &mut self.read).await;
                return Err(Over);
            }
            Ending::Status { code, retry_after } => {
                let page = Page::status_fault(code, retry_after);
                return self.page(&page, request.close).await;
            }
            Ending::Normal | Ending::Cut { .. } | Ending::StreamError { .. } => {}
        }
        let simulator = self.simulator;
        let relay = simulator.change(|state, now| state.faults.relay(now));
        self.wait(relay.delay).await?;
        let served = simulator.served();
        let mut ask = match ask::parse(&request.body, api, &served) {
            Ok(ask) => ask,
            Err(refusal) => return self.page(&Page::refusal(&refusal), request.close).await,
        };
        let pass = self.enter().await?;
        let id = request.id.clone();
        let accepted = self
            .simulator
            .change(|state, now| state.submit(&mut ask, id, now));
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(refused) => {
                let status = match refused {
                    Refused::Full(_) => 503,
                    Refused::TooLong { .. } => 400,
                };
                let page = Page::error(status, &refused.to_string());
                return self.page(&page, request.close).await;
            }
        };
        let frames = self.frames((request, &served.model), &ask, accepted.job);
        let ticket = Ticket {
            simulator,
            accepted,
            _pass: pass,
            cached_tokens: 0,
        };
        self.buffers = ask.stream && relay.buffers;
        if ask.stream {
            self.stream(ticket, frames, (&ask, &ending)).await
        } else {
            self.whole(ticket, frames, &ending).await
        }
    }

    /// Waits on behalf of what is in front of the server.
    async fn wait(&mut self, delay: Duration) -> Result<(), Over> {
        if delay.is_zero() {
            return Ok(());
        }
        let anchor = self.simulator.inner.anchor;
        let until = anchor.instant(self.simulator.now() + delay);
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(until) => Ok(()),
            () = http::gone(&mut self.io, &mut self.read) => Err(Over),
        }
    }

    /// Waits until the frontend lets the request in.
    async fn enter(&mut self) -> Result<Pass<'a>, Over> {
        let mut pass = Pass::new(self.simulator);
        tokio::select! {
            biased;
            () = pass.inside() => {}
            () = http::gone(&mut self.io, &mut self.read) => return Err(Over),
        }
        Ok(pass)
    }

    /// Writes the answer token by token.
    async fn stream(
        &mut self,
        mut ticket: Ticket<'_>,
        mut frames: Frames,
        (ask, ending): (&Ask, &Ending),
    ) -> Result<(), Over> {
        let head = if self.chunked {
            STREAM_HEAD
        } else {
            OLD_STREAM_HEAD
        };
        self.out.extend_from_slice(head);
        self.send(Moment::Headers).await?;
        let mut written = 0;
        self.fail_if_due(ending, written).await?;
        loop {
            let (index, finish) = self.next_token(&mut ticket).await?;
            frames.cached_tokens = ticket.cached_tokens;
            if index == 0 && ask.api == Api::Chat {
                self.frame(frames.role());
                self.send(Moment::Role).await?;
            }
            if finish.is_some() && ask.api == Api::Completions {
                self.fail_if_due(ending, u32::MAX).await?;
            }
            self.frame(frames.token(index, finish));
            self.send(Moment::Token).await?;
            written += 1;
            self.fail_if_due(ending, written).await?;
            if let Some(finish) = finish {
                self.fail_if_due(ending, u32::MAX).await?;
                return self.end(&mut frames, (finish, written), ask).await;
            }
        }
    }

    /// Writes what follows the last token.
    async fn end(
        &mut self,
        frames: &mut Frames,
        (finish, tokens): (Finish, u32),
        ask: &Ask,
    ) -> Result<(), Over> {
        if ask.api == Api::Chat {
            self.frame(frames.finish(finish, tokens));
            self.send(Moment::Finish).await?;
        }
        if ask.include_usage {
            self.frame(frames.usage(tokens));
            self.send(Moment::Usage).await?;
        }
        self.last_frame();
        self.send(Moment::Done).await
    }

    /// Ends the answer as a fault wants it, if `written` token chunks are enough for that.
    async fn fail_if_due(&mut self, ending: &Ending, written: u32) -> Result<(), Over> {
        match ending {
            Ending::Cut { after_chunks } if written >= *after_chunks => Err(Over),
            Ending::StreamError { after_chunks } if written >= *after_chunks => {
                let error = frames::error(&injected());
                self.frame(&format!("data: {error}\n\n"));
                self.last_frame();
                self.send(Moment::Body).await?;
                Err(Over)
            }
            _ => Ok(()),
        }
    }

    /// Writes the answer as one JSON object, when its last token has come.
    async fn whole(
        &mut self,
        mut ticket: Ticket<'_>,
        mut frames: Frames,
        ending: &Ending,
    ) -> Result<(), Over> {
        loop {
            let (index, finish) = self.next_token(&mut ticket).await?;
            let Some(finish) = finish else { continue };
            frames.cached_tokens = ticket.cached_tokens;
            let page = match ending {
                Ending::Cut { .. } => return Err(Over),
                Ending::StreamError { .. } => Page::refusal(&injected()),
                _ => Page::json(200, frames.whole(finish, index + 1)),
            };
            return self.page(&page, false).await;
        }
    }

    /// The next token of the job, or that the connection is over.
    async fn next_token(&mut self, ticket: &mut Ticket<'_>) -> Result<(u32, Option<Finish>), Over> {
        loop {
            let emission = tokio::select! {
                biased;
                emission = ticket.accepted.emissions.recv() => emission.ok_or(Over)?,
                () = http::gone(&mut self.io, &mut self.read) => return Err(Over),
            };
            match emission.kind {
                EmissionKind::Token { index, finish } => return Ok((index, finish)),
                EmissionKind::Admitted { cached_tokens } => ticket.cached_tokens = cached_tokens,
                EmissionKind::Preempted | EmissionKind::Resumed { .. } => {}
            }
        }
    }

    async fn page(&mut self, page: &Page, close: bool) -> Result<(), Over> {
        page.write(&mut self.out, close);
        self.send(Moment::Body).await
    }

    /// Puts the frame that ends a stream into the buffer, and the end of the body.
    fn last_frame(&mut self) {
        self.frame(DONE_FRAME);
        if self.chunked {
            self.out.extend_from_slice(LAST_CHUNK);
        }
    }

    /// Puts one frame into the buffer, as an HTTP chunk of its own where there are chunks.
    fn frame(&mut self, frame: &str) {
        if !self.chunked {
            self.out.extend_from_slice(frame.as_bytes());
            return;
        }
        self.out
            .extend_from_slice(format!("{:x}\r\n", frame.len()).as_bytes());
        self.out.extend_from_slice(frame.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// Notes the moment and writes what is in the buffer.
    async fn send(&mut self, moment: Moment) -> Result<(), Over> {
        if self.buffers && !matches!(moment, Moment::Done | Moment::Body) {
            return Ok(());
        }
        self.note(moment);
        self.writing.write += 1;
        let written = self.io.write_all(&self.out).await;
        self.out.clear();
        written.map_err(|_| Over)?;
        self.io.flush().await.map_err(|_| Over)
    }

    fn note(&self, moment: Moment) {
        if let Some(log) = &self.simulator.inner.log {
            log.note(&self.writing, moment);
        }
    }

    /// Frames named after the request's own id, as vLLM does, if it can stand in JSON as it is.
    fn frames(&self, (request, model): (&Request, &str), ask: &Ask, job: JobId) -> Frames {
        let plain = |id: &&str| id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let own = format!("{:032x}", job.0);
        let id = request.id.as_deref().filter(plain).unwrap_or(&own);
        let created = pages::unix_seconds(self.simulator);
        Frames::new(ask, model, (id, created, job.0))
    }
}

fn injected() -> Refusal {
    Refusal {
        status: 500,
        message: "the engine died while it was generating (injected)".to_owned(),
        param: None,
    }
}
