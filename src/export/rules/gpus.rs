//! Alerts on the GPUs behind targets.

use std::time::Duration;

use super::Settings;
use super::alerts::{Alert, AlertKind, Severity};
use super::promql::PLACE;
use crate::export::catalog::{GPU_THROTTLED, GPU_XID};

const MINUTE: Duration = Duration::from_mins(1);
/// Errors and clocks are looked at over this long.
const WINDOW: Duration = Duration::from_mins(10);
/// Clocks are held down for so much of it.
const HELD_DOWN: f64 = 0.5;

/// An error that was not there before: the number stays on its page until the driver is loaded
/// anew, so that a number alone is old.
pub(super) fn error(settings: &Settings) -> Alert {
    let window = settings.span(WINDOW);
    let name = GPU_XID.prometheus;
    Alert {
        kind: AlertKind::GpuError,
        severity: Severity::Warning,
        expr: format!(
            "max without ({PLACE}) ({name}) > 0\nand max without ({PLACE}) (changes({name}[{window}])) > 0"
        ),
        hold: Duration::ZERO,
        summary: "A GPU of {{ $labels.target }} reports an error".to_owned(),
        description: format!(
            "GPU {{{{ $labels.gpu }}}} of {{{{ $labels.target }}}} reports XID {{{{ $value | printf \"%.0f\" }}}}, and did not {window} ago."
        ),
    }
}

/// Clocks that are held down for long.
pub(super) fn throttled(settings: &Settings) -> Alert {
    let window = settings.span(WINDOW);
    Alert {
        kind: AlertKind::GpuThrottled,
        severity: Severity::Warning,
        expr: format!(
            "max without ({PLACE}) (avg_over_time({}[{window}])) > {HELD_DOWN}",
            GPU_THROTTLED.prometheus
        ),
        hold: 5 * MINUTE,
        summary: "Clocks of a GPU of {{ $labels.target }} are held down".to_owned(),
        description: format!(
            "The clocks of GPU {{{{ $labels.gpu }}}} of {{{{ $labels.target }}}} were held down for heat, by a power brake or by its hardware for {{{{ $value | humanizePercentage }}}} of {window}."
        ),
    }
}
