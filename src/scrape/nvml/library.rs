//! `libnvidia-ml`, through `nvml-wrapper`.
//!
//! Every call may say that this GPU does not support it; then the field is absent. Activity of
//! tensor cores and memory comes from the driver's own performance monitor (Hopper and later),
//! over the time since the last reading. Errors come as events: the last one of each GPU is kept,
//! as exporters keep it, and 0 until the first.

use nvml_wrapper::enum_wrappers::device::{
    Clock, PcieUtilCounter, PerformancePolicy, TemperatureSensor,
};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::NVML_FI_DEV_MEMORY_TEMP;
use nvml_wrapper::{Device, Nvml};

use self::events::Errors;
use super::driver::{DriverError, GpuDriver};
use crate::measurement::{Gpu, GpuField, GpuFields};

/// Instances of one GPU at most.
const MOST_INSTANCES: u32 = 16;

/// The library, loaded and begun.
pub(super) struct Library {
    /// It stays until the program ends: samples and events hold on to it.
    nvml: &'static Nvml,
    /// Of each GPU.
    seen: Vec<Seen>,
}

/// What is remembered of one GPU.
struct Seen {
    /// The last sample of its performance monitor, where it has one.
    sample: Option<GpmSample<'static>>,
    errors: Errors,
}

impl Library {
    pub(super) fn open() -> Result<Self, DriverError> {
        let nvml = Nvml::init().map_err(|error| DriverError::Absent(error.to_string()))?;
        Ok(Self {
            nvml: Box::leak(Box::new(nvml)),
            seen: Vec::new(),
        })
    }

    fn gpu(&mut self, index: u32) -> Result<Gpu, NvmlError> {
        let device = self.nvml.device_by_index(index)?;
        let mut gpu = Gpu {
            uuid: device.uuid().unwrap_or_default().into(),
            model: device.name().unwrap_or_default().into(),
            ..Gpu::named(&index.to_string())
        };
        read_plain(&device, &mut gpu.fields);
        read_counters(&device, &mut gpu.fields);
        let place = index as usize;
        while self.seen.len() <= place {
            self.seen.push(Seen {
                sample: None,
                errors: Errors::Unknown,
            });
        }
        let seen = &mut self.seen[place];
        let xid = seen.errors.last(self.nvml, &device);
        gpu.fields.set(GpuField::Xid, xid.map(f64::from));
        let sample = device.gpm_sample().ok();
        if let (Some(before), Some(now)) = (&seen.sample, &sample) {
            read_monitor(self.nvml, (before, now), &mut gpu.fields);
        }
        seen.sample = sample;
        if gpu.fields.get(GpuField::PcieSent).is_none() {
            read_pcie(&device, &mut gpu.fields);
        }
        Ok(gpu)
    }

    /// The instances of a GPU that is cut into several; none otherwise.
    fn instances(&self, index: u32) -> Vec<Gpu> {
        let Ok(device) = self.nvml.device_by_index(index) else {
            return Vec::new();
        };
        let cut = device.mig_mode().is_ok_and(|mode| mode.current != 0);
        let most = if cut {
            device.mig_device_count().unwrap_or(0).min(MOST_INSTANCES)
        } else {
            0
        };
        let found = (0..most).filter_map(|instance| {
            let part = device.mig_device_by_index(instance).ok()?;
            let mut gpu = Gpu {
                uuid: part.uuid().unwrap_or_default().into(),
                model: part.name().unwrap_or_default().into(),
                ..Gpu::named(&format!("{index}/{instance}"))
            };
            read_memory(&part, &mut gpu.fields);
            Some(gpu)
        });
        found.collect()
    }
}

impl GpuDriver for Library {
    fn read(&mut self) -> Result<Vec<(u32, Gpu)>, DriverError> {
        let count = self.nvml.device_count();
        let count = count.map_err(|error| DriverError::Lost(error.to_string()))?;
        let mut gpus = Vec::new();
        for index in 0..count {
            let instances = self.instances(index);
            if instances.is_empty() {
                // One that has fallen off the bus is known by its name, and by nothing else.
                let gpu = self.gpu(index);
                gpus.push((
                    index,
                    gpu.unwrap_or_else(|_| Gpu::named(&index.to_string())),
                ));
            } else {
                gpus.extend(instances.into_iter().map(|gpu| (index, gpu)));
            }
        }
        Ok(gpus)
    }
}

/// What may be said, in our unit.
fn set<T: Into<f64>>(
    fields: &mut GpuFields,
    field: GpuField,
    (value, scale): (Result<T, NvmlError>, f64),
) {
    fields.set(field, value.ok().map(|value| value.into() * scale));
}

fn read_plain(device: &Device<'_>, fields: &mut GpuFields) {
    const PERCENT: f64 = 0.01;
    const MEGA: f64 = 1e6;
    const MILLI: f64 = 1e-3;
    let busy = device.utilization_rates();
    if let Ok(busy) = busy {
        fields.set(GpuField::Utilization, Some(f64::from(busy.gpu) * PERCENT));
        fields.set(
            GpuField::MemoryActivity,
            Some(f64::from(busy.memory) * PERCENT),
        );
    }
    read_memory(device, fields);
    set(
        fields,
        GpuField::SmClock,
        (device.clock_info(Clock::SM), MEGA),
    );
    set(
        fields,
        GpuField::MemoryClock,
        (device.clock_info(Clock::Memory), MEGA),
    );
    set(fields, GpuField::Power, (device.power_usage(), MILLI));
    set(
        fields,
        GpuField::PowerLimit,
        (device.enforced_power_limit(), MILLI),
    );
    let temperature = device.temperature(TemperatureSensor::Gpu);
    set(fields, GpuField::Temperature, (temperature, 1.0));
    fields.set(GpuField::MemoryTemperature, memory_temperature(device));
    // Bits that this version of the wrapper does not know are dropped, not an error.
    let reasons = device.current_throttle_reasons();
    let bits = reasons
        .ok()
        .and_then(|reasons| u32::try_from(reasons.bits()).ok());
    fields.set(GpuField::ClockReasons, bits.map(f64::from));
    set(
        fields,
        GpuField::PcieReplays,
        (device.pcie_replay_counter(), 1.0),
    );
}

fn read_memory(device: &Device<'_>, fields: &mut GpuFields) {
    let Ok(memory) = device.memory_info() else {
        return;
    };
    for (field, bytes) in [
        (GpuField::MemoryUsed, memory.used),
        (GpuField::MemoryFree, memory.free),
        (GpuField::MemoryReserved, memory.reserved),
        (GpuField::MemoryTotal, memory.total),
    ] {
        fields.set(field, Some(float(bytes)));
    }
}

fn read_counters(device: &Device<'_>, fields: &mut GpuFields) {
    let energy = device.total_energy_consumption();
    let energy = energy.ok().map(|millijoules| float(millijoules) / 1e3);
    fields.set(GpuField::Energy, energy);
    for (field, policy) in [
        (GpuField::ThermalThrottled, PerformancePolicy::Thermal),
        (GpuField::PowerThrottled, PerformancePolicy::Power),
    ] {
        let time = device.violation_status(policy).ok();
        fields.set(field, time.map(|time| float(time.violation_time) / 1e9));
    }
}

fn memory_temperature(device: &Device<'_>) -> Option<f64> {
    let values = device
        .field_values_for(&[FieldId(NVML_FI_DEV_MEMORY_TEMP)])
        .ok()?;
    let degrees = match values.into_iter().next()?.ok()?.value.ok()? {
        SampleValue::F64(value) => value,
        SampleValue::U32(value) => f64::from(value),
        SampleValue::U64(value) => float(value),
        SampleValue::I64(_) => return None,
    };
    // Boards without such a sensor say 0.
    (degrees > 0.0).then_some(degrees)
}

/// Shares of cycles and rates between two samples of the performance monitor.
fn read_monitor(
    nvml: &'static Nvml,
    (before, now): (&GpmSample<'static>, &GpmSample<'static>),
    fields: &mut GpuFields,
) {
    const PERCENT: f64 = 0.01;
    const MIB: f64 = 1_048_576.0;
    let wanted = [
        (GpmMetricId::GraphicsUtil, GpuField::EngineActive, PERCENT),
        (GpmMetricId::SmUtil, GpuField::SmActive, PERCENT),
        (GpmMetricId::AnyTensorUtil, GpuField::TensorActive, PERCENT),
        (GpmMetricId::DramBwUtil, GpuField::DramActive, PERCENT),
        (GpmMetricId::PcieTxPerSec, GpuField::PcieSent, MIB),
        (GpmMetricId::PcieRxPerSec, GpuField::PcieReceived, MIB),
        (GpmMetricId::NvlinkTotalTxPerSec, GpuField::LinkSent, MIB),
        (
            GpmMetricId::NvlinkTotalRxPerSec,
            GpuField::LinkReceived,
            MIB,
        ),
    ];
    let ids = wanted.map(|(id, ..)| id);
    let Ok(results) = gpm_metrics_get(nvml, before, now, &ids) else {
        return;
    };
    for ((_, field, scale), result) in wanted.into_iter().zip(results) {
        let value = result.ok().map(|result| result.value * scale);
        fields.set(
            field,
            value.filter(|value| value.is_finite() && *value >= 0.0),
        );
    }
}

/// Rates of `PCIe` over 20 ms, where the performance monitor does not say them. Each call takes as
/// long as that.
fn read_pcie(device: &Device<'_>, fields: &mut GpuFields) {
    const KILO: f64 = 1e3;
    let sent = device.pcie_throughput(PcieUtilCounter::Send);
    set(fields, GpuField::PcieSent, (sent, KILO));
    let received = device.pcie_throughput(PcieUtilCounter::Receive);
    set(fields, GpuField::PcieReceived, (received, KILO));
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counters of a driver, all below 2^53"
)]
const fn float(value: u64) -> f64 {
    value as f64
}

/// Errors of one GPU, as events.
mod events {
    use nvml_wrapper::bitmasks::event::EventTypes;
    use nvml_wrapper::enums::event::XidError;
    use nvml_wrapper::{Device, EventSet, Nvml};

    /// Events of one reading at most.
    const MOST_EVENTS: usize = 64;

    pub(super) enum Errors {
        /// Nobody asked yet.
        Unknown,
        /// It tells none.
        Silent,
        /// It tells them; the last one.
        Told(EventSet<'static>, u32),
    }

    impl Errors {
        /// Number of the last error, 0 for none; `None` if the GPU does not tell.
        pub(super) fn last(
            &mut self,
            nvml: &'static Nvml,
            device: &Device<'static>,
        ) -> Option<u32> {
            if let Self::Unknown = self {
                let set = nvml.create_event_set().ok();
                let set = set.and_then(|set| {
                    let errors = EventTypes::CRITICAL_XID_ERROR;
                    device.register_events(errors, set).ok()
                });
                *self = set.map_or(Self::Silent, |set| Self::Told(set, 0));
            }
            let Self::Told(set, last) = self else {
                return None;
            };
            for _ in 0..MOST_EVENTS {
                // Without an event it is over at once: an error.
                let Ok(event) = set.wait(0) else { break };
                if let Some(XidError::Value(xid)) = event.event_data {
                    *last = u32::try_from(xid).unwrap_or(u32::MAX);
                }
            }
            Some(*last)
        }
    }
}
