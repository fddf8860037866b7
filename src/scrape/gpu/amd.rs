//! The fields of AMD's device metrics exporter. Names may have a prefix of the operator's choice
//! and either case; memory is in MiB although the unit is called MB.

use super::dcgm::{MOST_BITS, MOST_BYTES, MOST_DEGREES, MOST_HERTZ, MOST_JOULES, MOST_WATTS};
use super::page::Meaning;
use crate::measurement::GpuField;

const MIB: f64 = 1_048_576.0;
const PERCENT: f64 = 0.01;

/// Bits of NVML's that stand for the two kinds of violation.
pub(super) const POWER_CAP: u32 = 0x4;
pub(super) const HARDWARE_THERMAL: u32 = 0x40;

/// What a family is.
pub(super) enum Amd {
    /// A field.
    Field(Meaning),
    /// A clock, of what its label says.
    Clock,
    /// The share of time in which clocks were lowered, for the reason with this bit.
    Violation(u32),
}

/// What the exporter's family `name` is, if it is one that is read.
pub(super) fn meaning(name: &str) -> Option<Amd> {
    let lower = name.to_ascii_lowercase();
    let at = ["gpu_", "pcie_"]
        .iter()
        .filter_map(|begin| lower.find(begin))
        .min()?;
    if at > 0 && !lower[..at].ends_with('_') {
        return None;
    }
    let (field, scale, most) = match &lower[at..] {
        "gpu_clock" => return Some(Amd::Clock),
        name if name.starts_with("gpu_violation_") => return violation(name),
        "gpu_gfx_activity" => (GpuField::Utilization, PERCENT, 1.0),
        "gpu_umc_activity" => (GpuField::MemoryActivity, PERCENT, 1.0),
        "gpu_used_vram" => (GpuField::MemoryUsed, MIB, MOST_BYTES),
        "gpu_free_vram" => (GpuField::MemoryFree, MIB, MOST_BYTES),
        "gpu_total_vram" => (GpuField::MemoryTotal, MIB, MOST_BYTES),
        "gpu_package_power" | "gpu_average_package_power" | "gpu_power_usage" => {
            (GpuField::Power, 1.0, MOST_WATTS)
        }
        "gpu_energy_consumed" => (GpuField::Energy, 1e-6, MOST_JOULES),
        "gpu_junction_temperature" | "gpu_edge_temperature" => {
            (GpuField::Temperature, 1.0, MOST_DEGREES)
        }
        "gpu_memory_temperature" => (GpuField::MemoryTemperature, 1.0, MOST_DEGREES),
        "pcie_replay_count" => (GpuField::PcieReplays, 1.0, MOST_BITS),
        _ => return None,
    };
    Some(Amd::Field(Meaning { field, scale, most }))
}

fn violation(name: &str) -> Option<Amd> {
    if !name.ends_with("_residency_percentage") {
        return None;
    }
    let bit = if name.contains("thermal") || name.contains("processor_hot") {
        HARDWARE_THERMAL
    } else if name.contains("ppt") || name.contains("_power_") {
        POWER_CAP
    } else {
        return None;
    };
    Some(Amd::Violation(bit))
}

/// Which clock the label says: `None` for those of other engines.
pub(super) fn clock(kind: Option<&str>) -> Option<Meaning> {
    let kind = kind.unwrap_or("SYSTEM").to_ascii_uppercase();
    let field = if kind.contains("MEM") {
        GpuField::MemoryClock
    } else if ["SYS", "GFX"].iter().any(|name| kind.contains(name)) {
        GpuField::SmClock
    } else {
        return None;
    };
    Some(Meaning {
        field,
        scale: 1e6,
        most: MOST_HERTZ,
    })
}
