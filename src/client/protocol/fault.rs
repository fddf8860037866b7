//! The error that an event in a successful response tells of.

use super::{Said, error_in};
use crate::client::framing::Event;

/// Notes the error of `event`, if it `tells` of one. (What an event tells by its name is for
/// the reading to see, in every protocol.)
///
/// # Errors
///
/// If its data is not JSON.
pub(super) fn note(
    event: Event<'_>,
    tells: bool,
    said: &mut Said<'_>,
) -> Result<(), serde_json::Error> {
    if tells {
        said.error = match serde_json::from_slice(event.data)? {
            serde_json::Value::Array(all) => all.iter().find_map(error_in),
            json => error_in(&json),
        };
    }
    Ok(())
}
