//! What was odd about a response that was read nevertheless: a closed set, as a small set.
//!
//! A note is not an outcome. It says why a number is absent or to be read with care.

use serde::{Serialize, Serializer};

/// One oddity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Note {
    /// Nearly all of the answer came at once at its end: something between holds streams back.
    Buffered,
    /// The first token shared its read with later ones.
    FirstTokenMerged,
    /// Token counts on the chunks went down, or did not add up.
    UsageNotCumulative,
    /// Usage came though it was not asked for.
    UsageUnasked,
    /// Something followed the protocol's last event.
    AfterEnd,
    /// A keep-alive comment was wrapped into a data field.
    BadKeepAlive,
    /// One event among others could not be read.
    BadEvent,
    /// The body was compressed though it was not asked for.
    Compressed,
    /// The text was not UTF-8 throughout.
    BadUtf8,
    /// The number of output tokens is not the one asked for.
    LengthNotAsked,
    /// A count in usage was negative, or larger than can be.
    BadUsage,
    /// The server ended the answer for what it says.
    ContentFilter,
    /// The kernel's stamp of a read was not usable; our own clock stands in.
    BadStamp,
    /// We noticed late that a limit had passed: what came in time may have been missed.
    LateTimer,
    /// The prefix cache served less than half of what was sent before.
    CacheMissed,
    /// The prefix cache served more than half of a prompt that was new.
    CacheHit,
}

impl Note {
    /// Every note.
    pub const ALL: [Self; 16] = [
        Self::Buffered,
        Self::FirstTokenMerged,
        Self::UsageNotCumulative,
        Self::UsageUnasked,
        Self::AfterEnd,
        Self::BadKeepAlive,
        Self::BadEvent,
        Self::Compressed,
        Self::BadUtf8,
        Self::LengthNotAsked,
        Self::BadUsage,
        Self::ContentFilter,
        Self::BadStamp,
        Self::LateTimer,
        Self::CacheMissed,
        Self::CacheHit,
    ];

    /// The name in records and span attributes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Buffered => "buffered",
            Self::FirstTokenMerged => "first_token_merged",
            Self::UsageNotCumulative => "usage_not_cumulative",
            Self::UsageUnasked => "usage_unasked",
            Self::AfterEnd => "after_end",
            Self::BadKeepAlive => "bad_keep_alive",
            Self::BadEvent => "bad_event",
            Self::Compressed => "compressed",
            Self::BadUtf8 => "bad_utf8",
            Self::LengthNotAsked => "length_not_asked",
            Self::BadUsage => "bad_usage",
            Self::ContentFilter => "content_filter",
            Self::BadStamp => "bad_stamp",
            Self::LateTimer => "late_timer",
            Self::CacheMissed => "cache_missed",
            Self::CacheHit => "cache_hit",
        }
    }
}

/// A set of notes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes(u16);

impl Notes {
    /// Adds `note`.
    pub const fn add(&mut self, note: Note) {
        self.0 |= 1 << note as u8;
    }

    /// Whether `note` is in it.
    #[must_use]
    pub const fn has(self, note: Note) -> bool {
        self.0 & (1 << note as u8) != 0
    }

    /// Its notes, in the order of [`Note::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Note> {
        Note::ALL.into_iter().filter(move |note| self.has(*note))
    }
}

impl Serialize for Notes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Note::name))
    }
}
