//! CSV files: columns by their names in the header, records in bounded memory.

use std::io::{self, BufRead, Read};

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::fields::Bad;
use crate::load::trace::error::Fault;

/// A CSV file.
pub(in crate::load::trace) struct Table<R> {
    reader: Reader<Bounded<R>>,
    record: ByteRecord,
    header: Option<Vec<String>>,
}

/// A column that is looked for: its name, and its place once that is known.
pub(super) struct Record<'a> {
    header: &'a [String],
    record: &'a ByteRecord,
}

impl<R: BufRead> Table<R> {
    pub(in crate::load::trace) fn new(reader: R, longest: usize) -> Self {
        let bounded = Bounded {
            inner: reader,
            since: 0,
            longest,
        };
        Self {
            // Records of another length are told with what is missing.
            reader: ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .buffer_capacity(64 << 10)
                .from_reader(bounded),
            record: ByteRecord::new(),
            header: None,
        }
    }

    /// Line of the record that was read last.
    pub(in crate::load::trace) fn line(&self) -> u64 {
        self.record
            .position()
            .map_or_else(|| self.reader.position().line(), csv::Position::line)
    }

    /// Reads the next record; false at the end.
    pub(in crate::load::trace) fn next(&mut self) -> io::Result<bool> {
        loop {
            self.reader.get_mut().since = 0;
            let any = self.reader.read_byte_record(&mut self.record)?;
            if !any || self.header.is_some() {
                return Ok(any);
            }
            let names = self.record.iter().map(|name| {
                let name = name.strip_prefix(b"\xef\xbb\xbf").unwrap_or(name);
                String::from_utf8_lossy(name).trim().to_owned()
            });
            self.header = Some(names.collect());
        }
    }

    /// The record that was read last.
    pub(super) fn record(&self) -> Record<'_> {
        Record {
            header: self.header.as_deref().unwrap_or_default(),
            record: &self.record,
        }
    }
}

impl Record<'_> {
    /// The value of the column `name`; `None` if there is no such column or nothing in it.
    pub(super) fn optional(&self, name: &str) -> Result<Option<&str>, Bad> {
        let Some(place) = self.header.iter().position(|there| there == name) else {
            return Ok(None);
        };
        let Some(value) = self.record.get(place) else {
            return Err(Fault::new(
                "row",
                &format!("{} columns", self.record.len()),
                format!("{} columns, as the header has", self.header.len()),
            ));
        };
        let value = std::str::from_utf8(value)
            .map_err(|_| Fault::new(name, &String::from_utf8_lossy(value), "a text in UTF-8"))?;
        Ok(Some(value.trim()).filter(|value| !value.is_empty()))
    }

    /// The value of the column `name`, which has to be there.
    pub(super) fn required(&self, name: &str) -> Result<&str, Bad> {
        match self.optional(name)? {
            Some(value) => Ok(value),
            None if self.header.iter().any(|there| there == name) => {
                Err(Fault::missing(name, "a value in this column"))
            }
            None => Err(Fault::new(
                "header",
                &self.header.join(","),
                format!("a column `{name}`"),
            )),
        }
    }
}

/// A reader that refuses to go on within one record for ever.
struct Bounded<R> {
    inner: R,
    since: usize,
    longest: usize,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since > self.longest {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a row longer than {} bytes", self.longest),
            ));
        }
        let read = self.inner.read(buffer)?;
        self.since += read;
        Ok(read)
    }
}
