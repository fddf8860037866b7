//! The list of served models.

use tokencanary::client::served_models;

/// Names become labels and lines of a log: short, not empty, without control characters.
pub(crate) fn holds(body: &[u8]) {
    let Ok(names) = served_models(body) else {
        return;
    };
    assert!(names.len() <= body.len());
    for name in names {
        assert!(!name.is_empty() && name.len() <= 256, "{name:?}");
        assert!(!name.chars().any(char::is_control), "{name:?}");
    }
}
