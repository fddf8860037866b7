//! The fields of NVIDIA's DCGM exporter: which of ours each one is, in which unit, within which
//! range.
//!
//! Where a field has no value, exporters up to version 3 print a huge number; versions and pages
//! that pass it on may do so still.

use super::page::Meaning;
use crate::measurement::GpuField;

const MIB: f64 = 1_048_576.0;
const PERCENT: f64 = 0.01;

/// What the exporter's family `name` is, if it is one that is read.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    let field = name.strip_prefix("DCGM_FI_")?;
    let (field, scale, most) = match field {
        "DEV_GPU_UTIL" => (GpuField::Utilization, PERCENT, 1.0),
        "DEV_MEM_COPY_UTIL" => (GpuField::MemoryActivity, PERCENT, 1.0),
        "DEV_FB_USED" => (GpuField::MemoryUsed, MIB, MOST_BYTES),
        "DEV_FB_FREE" => (GpuField::MemoryFree, MIB, MOST_BYTES),
        "DEV_FB_RESERVED" => (GpuField::MemoryReserved, MIB, MOST_BYTES),
        "DEV_FB_TOTAL" => (GpuField::MemoryTotal, MIB, MOST_BYTES),
        "DEV_SM_CLOCK" => (GpuField::SmClock, 1e6, MOST_HERTZ),
        "DEV_MEM_CLOCK" => (GpuField::MemoryClock, 1e6, MOST_HERTZ),
        "DEV_POWER_USAGE" => (GpuField::Power, 1.0, MOST_WATTS),
        "DEV_POWER_MGMT_LIMIT" => (GpuField::PowerLimit, 1.0, MOST_WATTS),
        "DEV_TOTAL_ENERGY_CONSUMPTION" => (GpuField::Energy, 1e-3, MOST_JOULES),
        "DEV_GPU_TEMP" => (GpuField::Temperature, 1.0, MOST_DEGREES),
        "DEV_MEMORY_TEMP" => (GpuField::MemoryTemperature, 1.0, MOST_DEGREES),
        "DEV_XID_ERRORS" => (GpuField::Xid, 1.0, MOST_XID),
        "DEV_CLOCKS_EVENT_REASONS" | "DEV_CLOCK_THROTTLE_REASONS" => {
            (GpuField::ClockReasons, 1.0, MOST_BITS)
        }
        // Nanoseconds by the exporter's own list; lists of some older versions say microseconds.
        "DEV_THERMAL_VIOLATION" => (GpuField::ThermalThrottled, 1e-9, MOST_SECONDS),
        "DEV_POWER_VIOLATION" => (GpuField::PowerThrottled, 1e-9, MOST_SECONDS),
        "DEV_PCIE_REPLAY_COUNTER" => (GpuField::PcieReplays, 1.0, MOST_BITS),
        "PROF_GR_ENGINE_ACTIVE" => (GpuField::EngineActive, 1.0, 1.0),
        "PROF_SM_ACTIVE" => (GpuField::SmActive, 1.0, 1.0),
        "PROF_PIPE_TENSOR_ACTIVE" => (GpuField::TensorActive, 1.0, 1.0),
        "PROF_DRAM_ACTIVE" => (GpuField::DramActive, 1.0, 1.0),
        "PROF_PCIE_TX_BYTES" => (GpuField::PcieSent, 1.0, MOST_RATE),
        "PROF_PCIE_RX_BYTES" => (GpuField::PcieReceived, 1.0, MOST_RATE),
        "PROF_NVLINK_TX_BYTES" => (GpuField::LinkSent, 1.0, MOST_RATE),
        "PROF_NVLINK_RX_BYTES" => (GpuField::LinkReceived, 1.0, MOST_RATE),
        _ => return None,
    };
    Some(Meaning { field, scale, most })
}

/// 64 TiB, 10 GHz, 10 kW, 300 °C: more than any GPU to come soon.
pub(super) const MOST_BYTES: f64 = 7e13;
pub(super) const MOST_HERTZ: f64 = 1e10;
pub(super) const MOST_WATTS: f64 = 1e4;
pub(super) const MOST_DEGREES: f64 = 300.0;
/// Ten years of that power.
pub(super) const MOST_JOULES: f64 = 3e12;
pub(super) const MOST_SECONDS: f64 = 3.2e8;
const MOST_XID: f64 = 1e4;
pub(super) const MOST_BITS: f64 = 4_294_967_295.0;
/// 100 TB/s.
pub(super) const MOST_RATE: f64 = 1e14;

/// Whether `value` stands for no value: DCGM's blanks of 64-bit and 32-bit numbers and of floats,
/// each with the few that say why.
pub(super) fn is_blank(value: f64) -> bool {
    const WIDE: f64 = 9.2e18;
    const NARROW: std::ops::Range<f64> = 2_147_483_632.0..2_147_483_648.0;
    const FLOAT: std::ops::Range<f64> = 140_737_488_355_328.0..140_737_488_355_344.0;
    !value.is_finite() || value >= WIDE || NARROW.contains(&value) || FLOAT.contains(&value)
}
