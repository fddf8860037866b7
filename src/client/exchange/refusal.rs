//! Reads the answer of a server that refuses.

use hyper::Response;

use super::super::encoding::decoded_start;
use super::super::watch::Gone;
use super::Exchange;
use super::failure::{self, Failed};
use super::head::unasked_encoding;
use crate::measurement::{Note, Outcome};
use crate::transport::{Connection, ReadMark, Taken};

/// How much of the body of a response that is not a success is read.
const MAX_ERROR_BODY: usize = 64 * 1024;

impl Exchange<'_> {
    /// Reads the body of a response that is not a success, as far as it says why.
    pub(super) async fn refusal(
        &mut self,
        response: &Response<()>,
        connection: &mut Connection,
    ) -> Result<bool, Failed> {
        let mut kept = Vec::new();
        let complete = loop {
            let (deadline, late) = self.next_deadline();
            let record = &mut self.record;
            let take = |data: &[u8], read: ReadMark| {
                record.timeline.first_byte.get_or_insert(read.at);
                record.bytes += data.len() as u64;
                let room = (MAX_ERROR_BODY + 1).saturating_sub(kept.len());
                kept.extend_from_slice(&data[..data.len().min(room)]);
            };
            match self.watch.until(deadline, connection.body(take)).await {
                Ok(Ok(Taken::Part)) if kept.len() <= MAX_ERROR_BODY => {}
                Ok(Ok(Taken::End | Taken::Closed)) => break true,
                Err(Gone::Cancelled) => return Err(Failed::from((Gone::Cancelled, late))),
                Ok(Ok(Taken::Part) | Err(_)) | Err(Gone::Late) => break false,
            }
        };
        if let Some(encoding) = unasked_encoding(response.headers()) {
            kept = decoded_start(&encoding, &kept, MAX_ERROR_BODY);
            self.record.notes.add(Note::Compressed);
        }
        self.record.error = Some(failure::refusal(
            response.status(),
            response.headers(),
            &kept,
        ));
        self.record.outcome = Outcome::HttpStatus;
        self.record.timeline.end = Some(self.last_read(connection.marks()).at);
        Ok(complete)
    }
}
