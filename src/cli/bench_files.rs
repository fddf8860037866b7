//! What is said at the end of a run about the files that its prompts came from.

use crate::app::FileReport;

/// What is worth knowing, whether or not the numbers can be trusted.
pub(super) fn told_of(file: &FileReport) -> Vec<String> {
    let FileReport { name, .. } = file;
    let mut told: Vec<String> = file
        .listed
        .iter()
        .map(|bad| format!("passed over: {bad}"))
        .collect();
    if file.bad_rows > 0 && file.skips_bad_rows {
        told.push(format!("{name}: {} rows passed over", file.bad_rows));
    }
    if file.wraps > 0 {
        told.push(format!(
            "{name}: begun again {} times, since it has fewer rows than were sent",
            file.wraps
        ));
    }
    told.extend(
        file.notes
            .iter()
            .map(|(what, count)| format!("{name}: {count} {what}")),
    );
    if file.cut_sessions > 0 {
        told.push(format!(
            "{name}: {} conversations ended with a turn that failed",
            file.cut_sessions
        ));
    }
    if file.unsent_turns > 0 {
        told.push(format!(
            "{name}: {} turns were not due before their conversation or the run ended",
            file.unsent_turns
        ));
    }
    if file.forgotten_sessions > 0 {
        told.push(format!(
            "{name}: {} idle sessions were forgotten, since there were very many; what came of them later began anew",
            file.forgotten_sessions
        ));
    }
    told
}

/// Why the numbers are not to be trusted.
pub(super) fn file_doubts(file: &FileReport) -> Vec<String> {
    let FileReport { name, .. } = file;
    let mut doubts = Vec::new();
    if file.bad_rows > 0 && !file.skips_bad_rows {
        doubts.push(format!("{name}: {} rows could not be used", file.bad_rows));
    }
    if let Some(broken) = &file.broken {
        doubts.push(format!("{name}: not read to its end: {broken}"));
    }
    doubts
}
