//! Where results go.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;

use super::super::diagnostic::Problem;
use super::super::given::Refusal;
use super::super::keys;
use super::super::reader::{Reader, Section};
use super::super::{ExportConfig, FilesConfig, HttpConfig};
use super::{otlp, small};

/// The default of `export.http.listen`.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9464));
/// Bytes of a record file before it is closed.
const MAX_SIZE: u64 = 100_000_000;
const LEAST_SIZE: u64 = 10_000;
const MOST_SIZE: u64 = 1_000_000_000_000;
/// Closed record files.
const KEEP: u64 = 5;
const MOST_KEEP: u64 = 10_000;

/// Reads `export`; `None` if it is wrong.
pub(super) fn export<'a>(reader: &mut Reader<'a>, top: &Section<'a>) -> Option<ExportConfig> {
    let mut export = ExportConfig {
        http: Some(HttpConfig { listen: LISTEN }),
        otlp: None,
        files: None,
    };
    if top.get("export").is_none() {
        return Some(export);
    }
    let section = reader.subsection(top, "export", &keys::EXPORT)?;
    if let Some(http) = reader.subsection(&section, "http", &keys::HTTP) {
        let listen = reader.optional(&http, "listen", |given| given.address());
        export.http = Some(HttpConfig {
            listen: listen.unwrap_or(LISTEN),
        });
    }
    if let Some(section) = reader.subsection(&section, "otlp", &keys::OTLP) {
        export.otlp = otlp::otlp(reader, &section);
    }
    if let Some(section) = reader.subsection(&section, "files", &keys::FILES) {
        export.files = files(reader, &section);
    }
    Some(export)
}

fn files<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<FilesConfig> {
    let dir = reader.required(section, "dir", |given| match given.text()? {
        "" => Err(Refusal::new(Problem::NotUnderstood)),
        text => Ok(PathBuf::from(text)),
    });
    let max_size = reader.optional(section, "max_size", |given| {
        given.size(LEAST_SIZE..=MOST_SIZE)
    });
    let keep = reader.optional(section, "keep", |given| given.whole(1..=MOST_KEEP));
    Some(FilesConfig {
        dir: dir?,
        max_size: max_size.unwrap_or(MAX_SIZE),
        keep: small(keep.unwrap_or(KEEP)),
    })
}
