//! Whole answers: vectors, ranks, bodies of the operator's own; and what was compressed.

use std::io::Write;

use super::*;

/// An answer to a request of `api`, in reads 10 ms apart.
struct Answer<'a> {
    api: Api,
    streaming: bool,
    text: Option<&'a str>,
    encoding: Option<&'a str>,
}

fn unary(api: Api) -> Answer<'static> {
    Answer {
        api,
        streaming: false,
        text: None,
        encoding: None,
    }
}

fn raw() -> Answer<'static> {
    unary(Api::Raw)
}

impl Answer<'_> {
    fn reads(&self, reads: &[&[u8]], ended: Ended) -> RequestRecord {
        let played = Played {
            api: self.api,
            streaming: self.streaming,
            ..Played::default()
        };
        let style = RequestConfig {
            body: Some("{}".to_owned()),
            text: self.text.map(str::to_owned),
            ..RequestConfig::default()
        };
        let mut record = played.record();
        let protocol = Protocol::new(self.api, style).expect("it is right");
        let mut reading = Reading::new(Arc::new(protocol));
        if let Some(encoding) = self.encoding {
            reading.encoded(encoding);
        }
        let mut last = ReadMark::user(at(0), 0);
        for (number, bytes) in (1..).zip(reads) {
            last = ReadMark::user(at(u64::from(number) * 10), number);
            reading.take(bytes, last, &mut record);
        }
        reading.end(ended, last, &mut record);
        record
    }

    fn body(&self, body: &str) -> RequestRecord {
        self.reads(&[body.as_bytes()], Ended::Complete)
    }
}

fn message(record: &RequestRecord) -> &str {
    record.error.as_ref().map_or("", |error| &*error.message)
}

#[test]
fn vectors_and_ranks_are_answers_without_tokens() {
    for (api, body) in [
        (
            Api::Embeddings,
            r#"{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":9}}"#,
        ),
        (
            Api::Rerank,
            r#"{"results":[{"relevance_score":0.5}],"usage":{"total_tokens":9}}"#,
        ),
    ] {
        let (head, tail) = body.as_bytes().split_at(20);
        let record = unary(api).reads(&[head, tail], Ended::Complete);
        assert_eq!(record.outcome, Outcome::Ok, "{api:?}");
        assert_eq!(record.tokens.input, Some(9));
        assert_eq!(record.tokens.output, None);
        assert_eq!(record.tokens.source, None);
        assert_eq!(record.ttft(), None);
        assert_eq!(record.service_time(), Some(ms(20)));
    }
}

#[test]
fn no_vector_is_no_answer() {
    for (api, body) in [
        (Api::Embeddings, r#"{"data":[]}"#),
        (Api::TeiEmbed, "[]"),
        (Api::CohereRerank, r#"{"results":[]}"#),
        (Api::TeiRerank, "[]"),
    ] {
        assert_eq!(unary(api).body(body).outcome, Outcome::Empty, "{api:?}");
    }
    let record = unary(Api::TeiEmbed).body(r#"{"error":"overloaded","error_type":"Overloaded"}"#);
    assert_eq!(record.outcome, Outcome::StreamError);
    assert_eq!(message(&record), "overloaded");
}

#[test]
fn an_answer_of_vectors_may_be_larger_than_an_event() {
    let body = format!("[[{}0.25]]", "0.125,".repeat(1_000_000));
    let reads: Vec<&[u8]> = body.as_bytes().chunks(65_536).collect();
    let record = unary(Api::TeiEmbed).reads(&reads, Ended::Complete);
    assert_eq!(record.outcome, Outcome::Ok);
    let record = unary(Api::Chat).reads(&reads, Ended::Complete);
    assert_eq!(record.outcome, Outcome::Malformed);
    assert_eq!(message(&record), "the body is larger than 4194304 bytes");
}

#[test]
fn a_plain_text_is_the_answer_to_a_body_of_the_operators_own() {
    let record = raw().reads(&[b"Hel", b"lo"], Ended::Complete);
    assert_eq!(record.outcome, Outcome::Ok);
    assert_eq!(record.service_time(), Some(ms(20)));
    let cut = raw().reads(&[b"Hel"], Ended::Broken);
    assert_eq!(cut.outcome, Outcome::StreamCut);
    let page = raw().body("<html>busy</html>");
    assert_eq!(
        page.outcome,
        Outcome::Malformed,
        "a page is never an answer"
    );
    let streaming = Answer {
        streaming: true,
        ..raw()
    };
    assert_eq!(streaming.body("Hello").outcome, Outcome::NotAStream);
}

#[test]
fn a_stream_of_the_operators_own_ends_with_its_body() {
    let answer = Answer {
        streaming: true,
        text: Some("$.out"),
        ..raw()
    };
    let reads: [&[u8]; 3] = [
        b"data: {\"out\":\"a\"}\n\n",
        b"data: {\"out\":",
        b"\"b\"}\n\n",
    ];
    let record = answer.reads(&reads, Ended::Complete);
    assert_eq!(record.outcome, Outcome::Ok);
    assert_eq!(record.chunks.len(), 2);
    assert_eq!(record.ttft(), Some(ms(10)));
    let record = answer.reads(&reads, Ended::Broken);
    assert_eq!(record.outcome, Outcome::StreamCut);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::new(9);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(text).expect("in memory");
    encoder.finish().expect("in memory")
}

#[test]
fn compressed_answers_are_read_and_said_to_be_compressed() {
    let answer = Answer {
        encoding: Some("gzip"),
        ..unary(Api::Embeddings)
    };
    let body = gzip(br#"{"data":[{"embedding":[0.5]}]}"#);
    let record = answer.reads(&[&body], Ended::Complete);
    assert_eq!(record.outcome, Outcome::Ok);
    assert!(record.notes.has(Note::Compressed));
    assert_eq!(record.bytes, body.len() as u64, "as they came");
    let cut = &body[..body.len() - 3];
    let record = answer.reads(&[cut], Ended::Complete);
    assert_eq!(record.outcome, Outcome::Malformed);
    assert_eq!(
        message(&record),
        "the body ended inside its `gzip` encoding"
    );
}

#[test]
fn what_cannot_be_decoded_is_malformed() {
    let encoded = |encoding| Answer {
        encoding: Some(encoding),
        ..unary(Api::Embeddings)
    };
    let record = encoded("gzip").body("this is no gzip");
    assert_eq!(record.outcome, Outcome::Malformed);
    assert_eq!(message(&record), "the body is not valid `gzip`");
    let record = encoded("lzma").body("{}");
    assert_eq!(record.outcome, Outcome::Malformed);
    assert_eq!(message(&record), "content encoding `lzma` is not known");
    let bomb = gzip(&vec![b' '; 80 * 1024 * 1024]);
    let reads: Vec<&[u8]> = bomb.chunks(1024).collect();
    let record = encoded("gzip").reads(&reads, Ended::Complete);
    assert_eq!(record.outcome, Outcome::Malformed);
    assert!(
        message(&record).starts_with("too large"),
        "{}",
        message(&record)
    );
}

#[test]
fn a_stream_whose_checksum_is_wrong_is_malformed_though_it_ended() {
    let body = format!("data: {A}\n\ndata: {FINISH}\n\ndata: {DONE}\n\n");
    let answer = Answer {
        streaming: true,
        encoding: Some("gzip"),
        ..unary(Api::Chat)
    };
    let good = gzip(body.as_bytes());
    let record = answer.reads(&[&good], Ended::Complete);
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    // Without its sum it is whole as far as anybody can know.
    let record = answer.reads(&[&good[..good.len() - 8]], Ended::Complete);
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    let mut bad = good;
    let place = bad.len() - 8;
    bad[place] ^= 1;
    let record = answer.reads(&[&bad], Ended::Complete);
    assert_eq!(record.outcome, Outcome::Malformed);
    assert_eq!(message(&record), "the body is not valid `gzip`");
}

#[test]
fn a_vector_of_nothing_is_malformed() {
    for body in [
        r#"{"data":[{"embedding":[null]}]}"#,
        r#"{"data":[{"embedding":"AAC*PwAA"}]}"#,
    ] {
        let record = unary(Api::Embeddings).body(body);
        assert_eq!(record.outcome, Outcome::Malformed, "{body}");
    }
}
