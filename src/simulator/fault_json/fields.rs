//! The fields of a fault, each checked where it is taken.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::simulator::faults::FaultKind;

/// Above this a factor is a typing error.
const MAX_FACTOR: f64 = 1_000_000.0;
/// Longest fault, so that instants cannot overflow.
const MAX_SPAN: Duration = Duration::from_hours(365 * 24);
/// Requests of others a second: far more than an engine takes.
const MAX_RATE: f64 = 10_000.0;
/// Tokens of one request of others, as of the longest context.
const MAX_TOKENS: u32 = 131_072;
/// Numbers of errors that drivers know.
const XIDS: RangeInclusive<u32> = 1..=255;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fields {
    pub(super) fault: Option<String>,
    #[serde(rename = "for")]
    pub(super) lasts: Option<Value>,
    factor: Option<Value>,
    after_chunks: Option<Value>,
    code: Option<Value>,
    pub(super) retry_after: Option<Value>,
    version: Option<Value>,
    model: Option<Value>,
    share: Option<Value>,
    delay: Option<Value>,
    rate: Option<Value>,
    input_tokens: Option<Value>,
    output_tokens: Option<Value>,
    requests: Option<Value>,
}

impl Fields {
    /// What is left after the named fault took what it uses.
    pub(super) fn refuse_rest(self, name: &str) -> Result<(), String> {
        let rest = [
            ("factor", self.factor),
            ("after_chunks", self.after_chunks),
            ("code", self.code),
            ("retry_after", self.retry_after),
            ("version", self.version),
            ("model", self.model),
            ("share", self.share),
            ("delay", self.delay),
            ("rate", self.rate),
            ("input_tokens", self.input_tokens),
            ("output_tokens", self.output_tokens),
            ("requests", self.requests),
        ];
        match rest.into_iter().find(|(_, value)| value.is_some()) {
            Some((field, _)) => Err(format!(
                "`{field}` means nothing for `{name}`; leave it out"
            )),
            None => Ok(()),
        }
    }

    pub(super) fn factor(&mut self) -> Result<f64, String> {
        let value = needed(
            self.factor.take(),
            ("factor", "a number above 0 such as `2`"),
        )?;
        within(
            "factor",
            &value,
            0.0..=MAX_FACTOR,
            "a number above 0 such as `2`",
        )
    }

    pub(super) fn share(&mut self) -> Result<f64, String> {
        const WANTED: &str = "a number between 0 and 1 such as `0.2`";
        let value = needed(self.share.take(), ("share", WANTED))?;
        within("share", &value, 0.0..=1.0, WANTED)
    }

    pub(super) fn rate(&mut self) -> Result<f64, String> {
        const WANTED: &str = "requests a second above 0, at most 10000, such as `5`";
        let value = needed(self.rate.take(), ("rate", WANTED))?;
        within("rate", &value, 0.0..=MAX_RATE, WANTED)
    }

    pub(super) fn input_tokens(&mut self) -> Result<u32, String> {
        const WANTED: &str = "a whole number from 1 to 131072 such as `1000`";
        let value = needed(self.input_tokens.take(), ("input_tokens", WANTED))?;
        whole("input_tokens", &value, 1..=MAX_TOKENS, WANTED)
    }

    pub(super) fn output_tokens(&mut self) -> Result<u32, String> {
        const WANTED: &str = "a whole number from 1 to 131072 such as `200`";
        let value = needed(self.output_tokens.take(), ("output_tokens", WANTED))?;
        whole("output_tokens", &value, 1..=MAX_TOKENS, WANTED)
    }

    pub(super) fn requests(&mut self) -> Result<u32, String> {
        const WANTED: &str = "a whole number above 0 such as `4`";
        let value = needed(self.requests.take(), ("requests", WANTED))?;
        whole("requests", &value, 1..=u32::MAX, WANTED)
    }

    /// Absent: one chunk.
    pub(super) fn after_chunks(&mut self) -> Result<u32, String> {
        let Some(value) = self.after_chunks.take() else {
            return Ok(1);
        };
        whole(
            "after_chunks",
            &value,
            0..=u32::MAX,
            "a whole number such as `3`",
        )
    }

    /// Absent: 503.
    pub(super) fn status(&mut self) -> Result<u16, String> {
        let Some(value) = self.code.take() else {
            return Ok(503);
        };
        let code = whole("code", &value, 400..=599, "a status from 400 to 599")?;
        Ok(u16::try_from(code).unwrap_or(503))
    }

    /// Absent: 79, the GPU has fallen off the bus.
    pub(super) fn xid(&mut self) -> Result<u32, String> {
        let Some(value) = self.code.take() else {
            return Ok(79);
        };
        whole(
            "code",
            &value,
            XIDS,
            "the number of an XID, 1 to 255, such as `79`",
        )
    }

    pub(super) fn delay(&mut self) -> Result<Duration, String> {
        let delay = duration("delay", self.delay.take())?;
        delay.ok_or_else(|| "`delay` is missing; wanted a duration such as `200ms`".to_owned())
    }

    pub(super) fn version(&mut self) -> Result<Option<String>, String> {
        named("version", self.version.take(), "0.12.0")
    }

    /// Something of it must be other than before.
    pub(super) fn model_change(&mut self) -> Result<FaultKind, String> {
        let model = named("model", self.model.take(), "sim/canary-8b")?;
        let version = self.version()?;
        let factor = match &self.factor {
            Some(_) => Some(self.factor()?),
            None => None,
        };
        if model.is_none() && version.is_none() && factor.is_none() {
            return Err(
                "`model_change` changes nothing; wanted `model`, `version` or `factor`".to_owned(),
            );
        }
        Ok(FaultKind::ModelChange {
            model,
            version,
            factor: factor.unwrap_or(1.0),
        })
    }
}

pub(super) fn duration(field: &str, value: Option<Value>) -> Result<Option<Duration>, String> {
    let Some(value) = value else { return Ok(None) };
    let span = value
        .as_str()
        .and_then(|text| humantime::parse_duration(text).ok())
        .filter(|span| *span <= MAX_SPAN);
    span.map(Some).ok_or_else(|| {
        format!("`{field}` is `{value}`; wanted a duration such as `5s`, at most a year")
    })
}

fn needed(value: Option<Value>, (field, wanted): (&str, &str)) -> Result<Value, String> {
    value.ok_or_else(|| format!("`{field}` is missing; wanted {wanted}"))
}

/// A number above the first and up to the second.
fn within(
    field: &str,
    value: &Value,
    range: RangeInclusive<f64>,
    wanted: &str,
) -> Result<f64, String> {
    value
        .as_f64()
        .filter(|number| *number > *range.start() && range.contains(number))
        .ok_or_else(|| format!("`{field}` is `{value}`; wanted {wanted}"))
}

fn whole(
    field: &str,
    value: &Value,
    range: RangeInclusive<u32>,
    wanted: &str,
) -> Result<u32, String> {
    value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("`{field}` is `{value}`; wanted {wanted}"))
}

fn named(field: &str, value: Option<Value>, such: &str) -> Result<Option<String>, String> {
    let Some(value) = value else { return Ok(None) };
    match value.as_str().filter(|text| !text.is_empty()) {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(format!(
            "`{field}` is `{value}`; wanted a text such as `\"{such}\"`"
        )),
    }
}
