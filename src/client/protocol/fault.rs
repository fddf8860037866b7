//! The error that an event in a successful response tells of.

use serde_json::Value;

use super::said::error_from;
use super::{Said, error_in};
use crate::client::framing::Event;

/// Notes the error of `event`, if it `tells` of one or its name says that it is one.
///
/// # Errors
///
/// If its data is not JSON.
pub(super) fn note(
    event: Event<'_>,
    tells: bool,
    said: &mut Said<'_>,
) -> Result<(), serde_json::Error> {
    if tells || event.name == b"error" {
        let json: Value = serde_json::from_slice(event.data)?;
        said.error = Some(error_in(&json).unwrap_or_else(|| error_from(&json, None)));
    }
    Ok(())
}
