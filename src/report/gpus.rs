//! GPUs on a terminal: every field of each, also those that are not known.

use std::fmt::Write as _;

use super::number::UNKNOWN;
use crate::measurement::{Gpu, GpuField};

/// All fields of `gpus`, which come from `source`.
///
/// # Panics
///
/// Never: writing to a text does not fail.
#[must_use]
pub fn gpu_fields(of: &str, source: &str, gpus: &[Gpu]) -> String {
    const NEVER: &str = "writing to a `String` cannot fail";
    let mut out = String::new();
    writeln!(out, "{of}: {} GPUs, from {source}", gpus.len()).expect(NEVER);
    for gpu in gpus {
        let uuid = if gpu.uuid.is_empty() {
            UNKNOWN
        } else {
            &gpu.uuid
        };
        writeln!(out, "\n  GPU {} {} ({uuid})", gpu.name, gpu.model).expect(NEVER);
        for field in GpuField::ALL {
            let name = field.name();
            match shown(gpu, *field) {
                Some(value) => writeln!(out, "    {name:<20} {value}"),
                None => writeln!(out, "    {name:<20} {UNKNOWN}"),
            }
            .expect(NEVER);
        }
    }
    out
}

/// A value as people read it.
fn shown(gpu: &Gpu, field: GpuField) -> Option<String> {
    const GIB: f64 = 1_073_741_824.0;
    if field == GpuField::ClockReasons {
        return gpu.fields.clock_reasons().map(|bits| format!("{bits:#x}"));
    }
    let value = gpu.fields.get(field)?;
    Some(match field.unit() {
        "share" => format!("{:.1} %", value * 100.0),
        "bytes" => format!("{:.2} GiB", value / GIB),
        "hertz" => format!("{:.0} MHz", value / 1e6),
        "watts" => format!("{value:.1} W"),
        "joules" => format!("{value:.1} J"),
        "celsius" => format!("{value:.0} °C"),
        "seconds" => format!("{value:.3} s"),
        "bytes_per_second" => format!("{:.3} MB/s", value / 1e6),
        _ => format!("{value:.0}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_there_known_or_not() {
        let mut gpu = Gpu {
            model: "H100".into(),
            ..Gpu::named("0")
        };
        for (field, value) in [
            (GpuField::Utilization, 0.375),
            (GpuField::MemoryUsed, 2_147_483_648.0),
            (GpuField::SmClock, 1.98e9),
            (GpuField::ClockReasons, 68.0),
            (GpuField::PcieSent, 1.5e6),
        ] {
            gpu.fields.set(field, Some(value));
        }
        let text = gpu_fields("qwen", "http://node:9400/metrics", &[gpu]);
        assert!(
            text.starts_with("qwen: 1 GPUs, from http://node:9400/metrics\n\n  GPU 0 H100 (–)\n"),
            "{text}"
        );
        for line in [
            "    utilization          37.5 %",
            "    memory_used          2.00 GiB",
            "    sm_clock             1980 MHz",
            "    clock_reasons        0x44",
            "    pcie_sent            1.500 MB/s",
            "    xid                  –",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert_eq!(text.lines().count(), 3 + GpuField::ALL.len());
    }
}
