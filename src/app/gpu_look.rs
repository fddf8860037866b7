//! The GPUs that a configuration names, and those of this machine, read once: what
//! `check --gpu` shows.

use std::time::Duration;

use anyhow::Context;

use super::aside::Asking;
use super::gpus::poll;
use crate::clock::TimeAnchor;
use crate::config::{Config, GpuSource, Limits};
use crate::measurement::Gpu;
use crate::scrape::{DriverError, open_driver};
use crate::telemetry::SelfMetrics;

/// Between two readings of the driver: what its performance monitor says is over this time.
const BETWEEN: Duration = Duration::from_secs(1);

/// GPUs from one source.
#[derive(Debug)]
pub struct GpuLook {
    /// Whose they are: a target, or this machine.
    pub of: String,
    /// Where their state comes from.
    pub source: String,
    /// What was found, or why nothing was.
    pub found: Result<Vec<Gpu>, String>,
    /// Whether it should have been found.
    pub wanted: bool,
}

/// Reads the GPUs of the targets of `config`, and those of this machine.
///
/// # Errors
///
/// If the reading cannot be made, as with a URL that is none.
pub async fn look_at_gpus(config: Option<&Config>) -> anyhow::Result<Vec<GpuLook>> {
    let anchor = TimeAnchor::start();
    let own = SelfMetrics::new().context("self metrics")?;
    let asking = Asking::within(&Limits::PROBE, anchor);
    let mut looks = Vec::new();
    let mut wanted = false;
    for (index, target) in config
        .iter()
        .flat_map(|config| config.targets.iter().enumerate())
    {
        wanted |= target
            .gpu
            .as_ref()
            .is_some_and(|gpu| gpu.source == GpuSource::Nvml);
        let Some(poll) = poll(index, target, (asking, &own))? else {
            continue;
        };
        let (result, sample) = poll.once().await;
        looks.push(GpuLook {
            of: target.name.clone(),
            source: poll.url.clone(),
            found: sample
                .map(|sample| sample.gpus.to_vec())
                .ok_or_else(|| why(result).to_owned()),
            wanted: true,
        });
    }
    looks.push(GpuLook {
        of: "this machine".to_owned(),
        source: "NVIDIA driver".to_owned(),
        found: driver().await.map_err(|error| error.to_string()),
        wanted,
    });
    Ok(looks)
}

/// What the result of a reading means.
fn why(result: &str) -> &'static str {
    match result {
        "status" => "the page was answered with another status than 200",
        "unreachable" => "the page cannot be reached",
        "unrecognised" => "the page has no family of a GPU exporter",
        "not_selected" => "no GPU of the page is one of those asked for",
        _ => "the page says nothing of GPUs",
    }
}

/// Its calls block for moments, and nothing else happens in the meantime.
async fn driver() -> Result<Vec<Gpu>, DriverError> {
    let mut driver = open_driver()?;
    driver.read()?;
    tokio::time::sleep(BETWEEN).await;
    let gpus = driver.read()?;
    Ok(gpus.into_iter().map(|(_, gpu)| gpu).collect())
}
