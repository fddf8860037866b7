//! The fields of a GPU.

/// Reasons for lowered clocks that are no good sign, as NVML numbers them: hardware slowdown,
/// software and hardware thermal slowdown, power brake. Idle, a set clock and the power cap are
/// everyday ones.
pub const THROTTLING: u32 = 0x8 | 0x20 | 0x40 | 0x80;

macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $unit:literal;)*) => {
        /// What may be known of a GPU.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum GpuField {
            $($(#[$doc])* $variant,)*
        }

        impl GpuField {
            /// All of them, in the order of their positions.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its unit, empty for plain numbers; `share` is from 0 to 1.
            #[must_use]
            pub const fn unit(self) -> &'static str {
                match self { $(Self::$variant => $unit,)* }
            }
        }

        const COUNT: usize = [$(GpuField::$variant),*].len();
    };
}

fields! {
    /// Share of time in which any kernel ran; says nothing of how much of the GPU that took.
    Utilization = "utilization", "share";
    /// Share of time in which memory was read or written.
    MemoryActivity = "memory_activity", "share";
    /// Memory in use.
    MemoryUsed = "memory_used", "bytes";
    /// Memory that can be taken.
    MemoryFree = "memory_free", "bytes";
    /// Memory that the driver keeps.
    MemoryReserved = "memory_reserved", "bytes";
    /// All memory.
    MemoryTotal = "memory_total", "bytes";
    /// Clock of the multiprocessors.
    SmClock = "sm_clock", "hertz";
    /// Clock of the memory.
    MemoryClock = "memory_clock", "hertz";
    /// Power.
    Power = "power", "watts";
    /// Most power that it is allowed.
    PowerLimit = "power_limit", "watts";
    /// Energy since the driver was loaded.
    Energy = "energy", "joules";
    /// Temperature of the GPU.
    Temperature = "temperature", "celsius";
    /// Temperature of its memory.
    MemoryTemperature = "memory_temperature", "celsius";
    /// Number of the last error, 0 for none.
    Xid = "xid", "";
    /// Why clocks are lowered, as bits.
    ClockReasons = "clock_reasons", "";
    /// Time in which clocks were lowered for heat, since the driver was loaded.
    ThermalThrottled = "thermal_throttled", "seconds";
    /// Time in which clocks were lowered for power, since the driver was loaded.
    PowerThrottled = "power_throttled", "seconds";
    /// Share of time in which the compute engine was busy.
    EngineActive = "engine_active", "share";
    /// Share of multiprocessors and cycles that had work.
    SmActive = "sm_active", "share";
    /// Share of cycles in which tensor cores worked.
    TensorActive = "tensor_active", "share";
    /// Share of cycles in which memory moved data; 0.8 to 0.9 is its ceiling in practice.
    DramActive = "dram_active", "share";
    /// Sent over `PCIe`.
    PcieSent = "pcie_sent", "bytes_per_second";
    /// Received over `PCIe`.
    PcieReceived = "pcie_received", "bytes_per_second";
    /// Transfers over `PCIe` that were repeated.
    PcieReplays = "pcie_replays", "";
    /// Sent over `NVLink` or its like.
    LinkSent = "link_sent", "bytes_per_second";
    /// Received over `NVLink` or its like.
    LinkReceived = "link_received", "bytes_per_second";
}

/// What is known of one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuFields([Option<f64>; COUNT]);

impl Default for GpuFields {
    fn default() -> Self {
        Self([None; COUNT])
    }
}

impl GpuFields {
    /// The value of `field`.
    #[must_use]
    pub const fn get(&self, field: GpuField) -> Option<f64> {
        self.0[field as usize]
    }

    /// Sets the value of `field`.
    pub const fn set(&mut self, field: GpuField, value: Option<f64>) {
        self.0[field as usize] = value;
    }

    /// Those that are known, in order.
    pub fn known(&self) -> impl Iterator<Item = (GpuField, f64)> + '_ {
        let all = GpuField::ALL.iter();
        all.filter_map(|field| Some((*field, self.get(*field)?)))
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// All memory: what is said, or the sum of its parts.
    #[must_use]
    pub fn memory_total(&self) -> Option<f64> {
        let parts = || {
            let used = self.get(GpuField::MemoryUsed)?;
            let free = self.get(GpuField::MemoryFree)?;
            Some(used + free + self.get(GpuField::MemoryReserved).unwrap_or(0.0))
        };
        self.get(GpuField::MemoryTotal).or_else(parts)
    }

    /// Memory in use as a share of what there is.
    #[must_use]
    pub fn memory_share(&self) -> Option<f64> {
        let used = self.get(GpuField::MemoryUsed)?;
        let total = self.memory_total()?;
        (total > 0.0).then(|| (used / total).clamp(0.0, 1.0))
    }

    /// Reasons for lowered clocks, as bits.
    #[must_use]
    pub fn clock_reasons(&self) -> Option<u32> {
        self.get(GpuField::ClockReasons).map(whole)
    }

    /// Number of the last error, 0 for none.
    #[must_use]
    pub fn xid(&self) -> Option<u32> {
        self.get(GpuField::Xid).map(whole)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float is clamped to the range of the number"
)]
const fn whole(value: f64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_names_belong_together() {
        assert_eq!(GpuField::ALL.len(), COUNT);
        for (place, field) in GpuField::ALL.iter().enumerate() {
            assert_eq!(*field as usize, place);
        }
        let names: std::collections::BTreeSet<_> =
            GpuField::ALL.iter().map(|field| field.name()).collect();
        assert_eq!(names.len(), COUNT);
    }

    #[test]
    fn the_share_of_memory_needs_a_whole() {
        let mut fields = GpuFields::default();
        fields.set(GpuField::MemoryUsed, Some(30.0));
        assert_eq!(fields.memory_share(), None);
        fields.set(GpuField::MemoryFree, Some(60.0));
        fields.set(GpuField::MemoryReserved, Some(10.0));
        assert_eq!(fields.memory_share(), Some(0.3));
        fields.set(GpuField::MemoryTotal, Some(120.0));
        assert_eq!(fields.memory_share(), Some(0.25));
    }
}
