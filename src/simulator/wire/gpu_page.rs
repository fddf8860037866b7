//! The page of a DCGM exporter on the simulated server's node, as version 4 writes it.
//!
//! The server's GPUs come first, with the labels of its pod. Behind them are one GPU of another
//! pod, which is moderately busy whatever happens, and one that is cut into two MIG instances, of
//! which one belongs to a third pod. Instances have no utilisation, and some of their fields are
//! blank, printed as exporters up to version 3 did: who reads the page has to choose and to drop.

use super::page_text::PageText;
use crate::simulator::hardware::{Activity, Gpu, Hardware};

/// Stands for a whole number that is not there.
const BLANK: f64 = f64::INFINITY;
/// What that is printed as, and what a float is that is not there.
const BLANK_TEXT: &str = "9223372036854775794";
const FLOAT_BLANK: f64 = 140_737_488_355_328.0;

/// Pod of the simulated server, for `select`.
const POD: (&str, &str) = ("inference", "canary-sim-0");
const HOST: &str = "sim-node-0";

/// One row of each family.
struct Row {
    labels: String,
    gpu: Gpu,
    instance: bool,
}

/// A family: name, kind, help, and the value of a row, or none if it has no such row.
type Field = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Gpu, bool) -> Option<f64>,
);

/// The whole page.
pub(super) fn render(hardware: Hardware, activity: &Activity<'_>) -> String {
    let rows = rows(hardware, activity);
    let mut page = PageText::default();
    for (name, kind, help, value) in FIELDS {
        page.family(name, kind, help);
        for row in &rows {
            if let Some(value) = value(&row.gpu, row.instance) {
                page.row(name, &row.labels, Number(value));
            }
        }
    }
    page.finish()
}

fn rows(hardware: Hardware, activity: &Activity<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let gpus = hardware.gpus.max(1);
    for index in 0..gpus {
        rows.push(Row {
            labels: labels(index, "", Some(POD)),
            gpu: hardware.gpu(index, activity),
            instance: false,
        });
    }
    let other = Gpu {
        utilization: 0.35,
        sm_active: 0.2,
        tensor_active: 0.05,
        dram_active: 0.18,
        watts: 210.0,
        joules: 210.0 * activity.sums.elapsed,
        clock: 1755.0,
        temperature: 48.0,
        xid: 0,
        clock_reasons: 0,
        thermal_seconds: 0.0,
        memory_used: 20_480.0,
        memory_free: 60_466.0,
        ..hardware.gpu(gpus.saturating_sub(1), activity)
    };
    rows.push(Row {
        labels: labels(gpus, "", Some(("batch", "embedder-0"))),
        gpu: other,
        instance: false,
    });
    for (instance, pod) in [(1, Some(("notebooks", "notebook-0"))), (2, None)] {
        let mig = format!(r#"GPU_I_PROFILE="3g.40gb",GPU_I_ID="{instance}","#);
        rows.push(Row {
            labels: labels(gpus + 1, &mig, pod),
            gpu: Gpu {
                memory_used: 1_024.0 * f64::from(instance),
                memory_free: 40_064.0 - 1_024.0 * f64::from(instance),
                memory_reserved: 300.0,
                ..other
            },
            instance: true,
        });
    }
    rows
}

fn labels(index: u32, mig: &str, pod: Option<(&str, &str)>) -> String {
    let (namespace, pod) = pod.unwrap_or_default();
    let container = if pod.is_empty() { "" } else { "server" };
    format!(
        r#"gpu="{index}",UUID="GPU-5ca1ab1e-0000-4000-8000-{index:012}",pci_bus_id="00000000:{:02X}:00.0",device="nvidia{index}",modelName="NVIDIA H100 80GB HBM3",{mig}Hostname="{HOST}",DCGM_FI_DRIVER_VERSION="570.124.06",container="{container}",namespace="{namespace}",pod="{pod}""#,
        0x18 + index
    )
}

/// Whole numbers as such, others with six decimals.
struct Number(f64);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_infinite() {
            f.write_str(BLANK_TEXT)
        } else if self.0.fract() == 0.0 {
            write!(f, "{:.0}", self.0)
        } else {
            write!(f, "{:.6}", self.0)
        }
    }
}

const FIELDS: [Field; 26] = [
    (
        "DCGM_FI_DEV_SM_CLOCK",
        "gauge",
        "SM clock frequency (in MHz).",
        |gpu, _| Some(gpu.clock.round()),
    ),
    (
        "DCGM_FI_DEV_MEM_CLOCK",
        "gauge",
        "Memory clock frequency (in MHz).",
        |gpu, _| Some(gpu.memory_clock),
    ),
    (
        "DCGM_FI_DEV_MEMORY_TEMP",
        "gauge",
        "Memory temperature (in C).",
        |gpu, instance| {
            Some(if instance {
                BLANK
            } else {
                gpu.memory_temperature.round()
            })
        },
    ),
    (
        "DCGM_FI_DEV_GPU_TEMP",
        "gauge",
        "GPU temperature (in C).",
        |gpu, _| Some(gpu.temperature.round()),
    ),
    (
        "DCGM_FI_DEV_POWER_USAGE",
        "gauge",
        "Power draw (in W).",
        |gpu, _| Some(gpu.watts),
    ),
    (
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        |gpu, _| Some((gpu.joules * 1e3).round()),
    ),
    (
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "counter",
        "Total number of PCIe retries.",
        |_, _| Some(0.0),
    ),
    (
        "DCGM_FI_DEV_GPU_UTIL",
        "gauge",
        "GPU utilization (in %).",
        |gpu, instance| (!instance).then(|| (gpu.utilization * 100.0).round()),
    ),
    (
        "DCGM_FI_DEV_MEM_COPY_UTIL",
        "gauge",
        "Memory utilization (in %).",
        |gpu, instance| {
            Some(if instance {
                BLANK
            } else {
                (gpu.memory_activity * 100.0).round()
            })
        },
    ),
    (
        "DCGM_FI_DEV_XID_ERRORS",
        "gauge",
        "Value of the last XID error encountered.",
        |gpu, _| Some(f64::from(gpu.xid)),
    ),
    (
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        "gauge",
        "Current clock event reasons (bitmask of DCGM_CLOCKS_EVENT_REASON_*)",
        |gpu, _| Some(f64::from(gpu.clock_reasons)),
    ),
    (
        "DCGM_FI_DEV_POWER_VIOLATION",
        "counter",
        "Throttling duration due to power constraints (in ns).",
        |_, _| Some(0.0),
    ),
    (
        "DCGM_FI_DEV_THERMAL_VIOLATION",
        "counter",
        "Throttling duration due to thermal constraints (in ns).",
        |gpu, _| Some((gpu.thermal_seconds * 1e9).round()),
    ),
    (
        "DCGM_FI_DEV_FB_FREE",
        "gauge",
        "Framebuffer memory free (in MiB).",
        |gpu, _| Some(gpu.memory_free.round()),
    ),
    (
        "DCGM_FI_DEV_FB_USED",
        "gauge",
        "Framebuffer memory used (in MiB).",
        |gpu, _| Some(gpu.memory_used.round()),
    ),
    (
        "DCGM_FI_DEV_FB_RESERVED",
        "gauge",
        "Framebuffer memory reserved (in MiB).",
        |gpu, _| Some(gpu.memory_reserved.round()),
    ),
    (
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for uncorrectable errors",
        |_, _| Some(0.0),
    ),
    (
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "counter",
        "Total number of NVLink bandwidth counters for all lanes.",
        |gpu, instance| (!instance).then(|| (gpu.nvlink / 1e6).round()),
    ),
    (
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "gauge",
        "Ratio of time the graphics engine is active.",
        |gpu, _| Some(gpu.utilization),
    ),
    (
        "DCGM_FI_PROF_SM_ACTIVE",
        "gauge",
        "The ratio of cycles an SM has at least 1 warp assigned.",
        |gpu, _| Some(gpu.sm_active),
    ),
    (
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "gauge",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        |gpu, _| Some(gpu.tensor_active),
    ),
    (
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        |gpu, instance| {
            Some(if instance {
                FLOAT_BLANK
            } else {
                gpu.dram_active
            })
        },
    ),
    (
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        "gauge",
        "The rate of data transmitted over the PCIe bus in bytes per second.",
        |gpu, _| Some(gpu.pcie_sent.round()),
    ),
    (
        "DCGM_FI_PROF_PCIE_RX_BYTES",
        "gauge",
        "The rate of data received over the PCIe bus in bytes per second.",
        |gpu, _| Some(gpu.pcie_received.round()),
    ),
    (
        "DCGM_FI_PROF_NVLINK_TX_BYTES",
        "gauge",
        "The rate of data transmitted over NVLink in bytes per second.",
        |gpu, instance| (!instance).then(|| (gpu.nvlink / 2.0).round()),
    ),
    (
        "DCGM_FI_PROF_NVLINK_RX_BYTES",
        "gauge",
        "The rate of data received over NVLink in bytes per second.",
        |gpu, instance| (!instance).then(|| (gpu.nvlink / 2.0).round()),
    ),
];
