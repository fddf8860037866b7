//! From an exporter's page to the GPUs that serve one target.

use std::collections::{BTreeMap, BTreeSet};

use super::amd::{self, Amd};
use super::dcgm;
use super::select::Row;
use crate::config::GpuSelect;
use crate::measurement::{Gpu, GpuField, GpuFields};
use crate::scrape::{Line, Lines};

/// GPUs of one page at most; a host has 16, a page that gathers hosts some more.
const MOST: usize = 1024;

/// What a family means: which field, what one of its unit is in ours, and the most that can be
/// true of it, in ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Meaning {
    pub(super) field: GpuField,
    pub(super) scale: f64,
    pub(super) most: f64,
}

/// What a page said.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuPage {
    /// The GPUs that were asked for, by host, number and instance.
    pub gpus: Vec<Gpu>,
    /// The pods that these serve, in order.
    pub pods: Vec<Box<str>>,
    /// Whether any family of a known exporter was on it.
    pub recognised: bool,
    /// Values that were blank.
    pub blank: u64,
    /// Values that cannot be true.
    pub implausible: u64,
    /// Lines that were no samples.
    pub bad_lines: u64,
}

/// Which GPU: host, number, instance; numbers in their own order.
type Key = (String, u64, String, String);

/// Reads the GPUs of `page` that `select` asks for.
#[must_use]
pub fn read_gpus(page: &str, select: &GpuSelect) -> GpuPage {
    let mut lines = Lines::new(page);
    let mut read = Reading::default();
    for line in lines.by_ref() {
        read.take(&line, select);
    }
    GpuPage {
        bad_lines: lines.bad(),
        recognised: read.recognised,
        blank: read.blank,
        implausible: read.implausible,
        pods: std::mem::take(&mut read.pods).into_iter().collect(),
        gpus: read.finish(),
    }
}

#[derive(Default)]
struct Reading {
    gpus: BTreeMap<Key, Gpu>,
    pods: BTreeSet<Box<str>>,
    recognised: bool,
    blank: u64,
    implausible: u64,
}

impl Reading {
    fn take(&mut self, line: &Line<'_>, select: &GpuSelect) {
        let row = Row::new(line.labels);
        let (meaning, violation) = match dcgm::meaning(&line.name) {
            Some(meaning) => (Some(meaning), None),
            None => match amd::meaning(&line.name) {
                Some(Amd::Field(meaning)) => (Some(meaning), None),
                Some(Amd::Clock) => (amd::clock(row.clock_type().as_deref()), None),
                Some(Amd::Violation(bit)) => (None, Some(bit)),
                None => return,
            },
        };
        self.recognised = true;
        if !row.is_in(select) {
            return;
        }
        if self.pods.len() < MOST
            && let Some(pod) = row.pod(select)
        {
            self.pods.insert(pod.into());
        }
        let Some(fields) = self.fields(&row) else {
            return;
        };
        if let Some(bit) = violation {
            note_violation(fields, bit, line.value);
            return;
        }
        let Some(Meaning { field, scale, most }) = meaning else {
            return;
        };
        if dcgm::is_blank(line.value) {
            self.blank += 1;
            return;
        }
        let value = line.value * scale;
        // A hair above a whole share is rounding.
        if !(0.0..=most * (1.0 + 1e-6)).contains(&value) {
            self.implausible += 1;
            return;
        }
        fields.set(
            field,
            Some(merged(field, fields.get(field), value.min(most))),
        );
    }

    /// What is known of the GPU of `row`; `None` if it has no number, or there are too many.
    fn fields(&mut self, row: &Row<'_>) -> Option<&mut GpuFields> {
        let index = row.index()?;
        let host = row.host().unwrap_or_default();
        let instance = row.instance().unwrap_or_default();
        let number = index.parse().unwrap_or(u64::MAX);
        let key = (
            host.into_owned(),
            number,
            index.into_owned(),
            instance.into_owned(),
        );
        if self.gpus.len() >= MOST && !self.gpus.contains_key(&key) {
            return None;
        }
        let gpu = self
            .gpus
            .entry(key)
            .or_insert_with_key(|(_, _, index, instance)| {
                let name = match &**instance {
                    "" => index.clone(),
                    instance => format!("{index}/{instance}"),
                };
                Gpu {
                    uuid: row.uuid().into(),
                    model: row.model().into(),
                    ..Gpu::named(&name)
                }
            });
        Some(&mut gpu.fields)
    }

    /// The GPUs of which anything is known. One that is cut into instances is not one itself:
    /// what it says would count twice.
    fn finish(self) -> Vec<Gpu> {
        let hosts = {
            let mut hosts: Vec<&str> = self.gpus.keys().map(|(host, ..)| &**host).collect();
            hosts.dedup();
            hosts.len()
        };
        let is_cut = |(host, number, ..): &Key| {
            let instances = self
                .gpus
                .keys()
                .filter(|(.., instance)| !instance.is_empty());
            instances
                .into_iter()
                .any(|(other, same, ..)| other == host && same == number)
        };
        let whole: Vec<bool> = self
            .gpus
            .keys()
            .map(|key| !key.3.is_empty() || !is_cut(key))
            .collect();
        let kept = self.gpus.into_iter().zip(whole).filter(|(_, whole)| *whole);
        kept.filter(|((_, gpu), _)| !gpu.fields.is_empty())
            .map(|((key, mut gpu), _)| {
                if !key.3.is_empty() {
                    drop_what_is_of_the_whole(&mut gpu.fields);
                }
                if hosts > 1 {
                    gpu.name = format!("{}/{}", key.0, gpu.name).into();
                }
                gpu
            })
            .collect()
    }
}

/// Of an instance: exporters say the power of the whole GPU with each instance of it, or with one
/// (dcgm-exporter #257), and others may have the rest of it.
fn drop_what_is_of_the_whole(fields: &mut GpuFields) {
    for field in [GpuField::Power, GpuField::PowerLimit, GpuField::Energy] {
        fields.set(field, None);
    }
}

/// Of several rows of one GPU: with one row for each pod that shares it they are alike; of several
/// clocks of AMD's the fastest engine's counts.
const fn merged(field: GpuField, known: Option<f64>, value: f64) -> f64 {
    match (field, known) {
        (GpuField::SmClock | GpuField::MemoryClock, Some(known)) => known.max(value),
        _ => value,
    }
}

fn note_violation(fields: &mut GpuFields, bit: u32, percent: f64) {
    if !(0.0..=100.0).contains(&percent) {
        return;
    }
    let known = fields.clock_reasons().unwrap_or(0);
    let bits = if percent > 0.0 { known | bit } else { known };
    fields.set(GpuField::ClockReasons, Some(f64::from(bits)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::measurement::GpuState;

    fn all() -> GpuSelect {
        GpuSelect::default()
    }

    fn pod(name: &str) -> GpuSelect {
        GpuSelect {
            pod: Some(name.to_owned()),
            ..all()
        }
    }

    fn names(page: &GpuPage) -> Vec<&str> {
        page.gpus.iter().map(|gpu| &*gpu.name).collect()
    }

    /// Rows of one GPU of a DCGM exporter.
    fn row(field: &str, more: &str, value: &str) -> String {
        format!("DCGM_FI_{field}{{gpu=\"0\",UUID=\"GPU-1\",modelName=\"H100\",{more}}} {value}\n")
    }

    #[test]
    fn every_field_has_its_unit() {
        let cases = [
            ("DEV_GPU_UTIL", "37", GpuField::Utilization, 0.37),
            ("DEV_MEM_COPY_UTIL", "4", GpuField::MemoryActivity, 0.04),
            ("DEV_FB_USED", "1024", GpuField::MemoryUsed, 1_073_741_824.0),
            ("DEV_SM_CLOCK", "1980", GpuField::SmClock, 1.98e9),
            ("DEV_POWER_USAGE", "123.456", GpuField::Power, 123.456),
            (
                "DEV_TOTAL_ENERGY_CONSUMPTION",
                "5000",
                GpuField::Energy,
                5.0,
            ),
            ("DEV_GPU_TEMP", "61", GpuField::Temperature, 61.0),
            ("DEV_XID_ERRORS", "79", GpuField::Xid, 79.0),
            (
                "DEV_CLOCKS_EVENT_REASONS",
                "68",
                GpuField::ClockReasons,
                68.0,
            ),
            (
                "DEV_CLOCK_THROTTLE_REASONS",
                "1",
                GpuField::ClockReasons,
                1.0,
            ),
            (
                "DEV_THERMAL_VIOLATION",
                "2500000000",
                GpuField::ThermalThrottled,
                2.5,
            ),
            (
                "PROF_PIPE_TENSOR_ACTIVE",
                "0.25",
                GpuField::TensorActive,
                0.25,
            ),
            ("PROF_PCIE_RX_BYTES", "1000000", GpuField::PcieReceived, 1e6),
        ];
        for (field, text, ours, value) in cases {
            let page = read_gpus(&row(field, "", text), &all());
            let known: Vec<_> = page.gpus[0].fields.known().collect();
            assert_eq!(known.len(), 1, "{field}");
            assert_eq!(known[0].0, ours, "{field}");
            assert!(
                (known[0].1 - value).abs() < 1e-9 * value.max(1.0),
                "{field}: {known:?}"
            );
            assert_eq!(
                (&*page.gpus[0].uuid, &*page.gpus[0].model),
                ("GPU-1", "H100")
            );
        }
    }

    #[test]
    fn blanks_and_what_cannot_be_true_are_left_out_and_counted() {
        let blanks = [
            "9223372036854775794",
            "9.223372036854775792e+18",
            "2147483632",
            "140737488355328",
            "NaN",
            "+Inf",
        ];
        for blank in blanks {
            let page = read_gpus(&row("DEV_MEMORY_TEMP", "", blank), &all());
            assert_eq!((page.blank, page.implausible), (1, 0), "{blank}");
            assert!(page.gpus.is_empty() && page.recognised, "{blank}");
        }
        for (field, text) in [
            ("DEV_GPU_UTIL", "-1"),
            ("DEV_GPU_UTIL", "523"),
            ("PROF_DRAM_ACTIVE", "1.5"),
            ("DEV_GPU_TEMP", "4000"),
            ("DEV_SM_CLOCK", "70368744177664"),
        ] {
            let page = read_gpus(&row(field, "", text), &all());
            assert_eq!((page.blank, page.implausible), (0, 1), "{field} {text}");
        }
    }

    #[test]
    fn the_target_has_the_gpus_of_its_pod_its_host_or_its_numbers() {
        let one = |gpu: u32, host: &str, pod: &str| {
            format!(
                "DCGM_FI_DEV_GPU_UTIL{{gpu=\"{gpu}\",Hostname=\"{host}\",namespace=\"prod\",pod=\"{pod}\"}} {gpu}\n"
            )
        };
        let page = [
            one(0, "a", "vllm-0"),
            one(1, "a", "vllm-0"),
            one(10, "a", "vllm-1"),
            one(2, "a", ""),
            one(0, "b", "vllm-7d9f-x"),
        ]
        .concat();
        let chosen = |select: &GpuSelect| read_gpus(&page, select).gpus.len();
        assert_eq!(chosen(&all()), 5);
        assert_eq!(names(&read_gpus(&page, &pod("vllm-0"))), ["0", "1"]);
        assert_eq!(chosen(&pod("vllm-*")), 4);
        assert_eq!(chosen(&pod("vllm")), 0);
        let host = GpuSelect {
            host: Some("a".to_owned()),
            ..all()
        };
        assert_eq!(names(&read_gpus(&page, &host)), ["0", "1", "2", "10"]);
        let both = GpuSelect {
            index: vec![0],
            host: Some("b".to_owned()),
            namespace: Some("prod".to_owned()),
            ..all()
        };
        assert_eq!(chosen(&both), 1);
        let numbers = GpuSelect {
            index: vec![0, 10],
            ..all()
        };
        assert_eq!(names(&read_gpus(&page, &numbers)), ["a/0", "a/10", "b/0"]);
        let elsewhere = GpuSelect {
            namespace: Some("test".to_owned()),
            ..all()
        };
        let none = read_gpus(&page, &elsewhere);
        assert!(none.gpus.is_empty() && none.recognised);
    }

    #[test]
    fn labels_that_a_prometheus_renamed_count_first() {
        let page = row(
            "DEV_GPU_UTIL",
            "pod=\"dcgm-exporter-x\",exported_pod=\"vllm-0\"",
            "1",
        );
        assert_eq!(read_gpus(&page, &pod("vllm-0")).gpus.len(), 1);
        assert_eq!(read_gpus(&page, &pod("dcgm*")).gpus.len(), 0);
        let old = row("DEV_GPU_UTIL", "pod_name=\"vllm-0\"", "1");
        assert_eq!(read_gpus(&old, &pod("vllm-0")).gpus.len(), 1);
    }

    #[test]
    fn pods_are_those_of_the_gpus_that_were_asked_for() {
        let page = |rows: &[&str]| -> String {
            rows.iter()
                .map(|labels| row("DEV_GPU_UTIL", labels, "1"))
                .collect()
        };
        let mine = page(&[
            "pod=\"vllm-b\"",
            "pod=\"other\"",
            "pod=\"vllm-a\"",
            "pod=\"\"",
        ]);
        let pods = |page: &str, select: &GpuSelect| -> Vec<String> {
            let pods = read_gpus(page, select).pods;
            pods.iter().map(ToString::to_string).collect()
        };
        assert_eq!(pods(&mine, &pod("vllm-*")), ["vllm-a", "vllm-b"]);
        assert_eq!(pods(&mine, &all()), ["other", "vllm-a", "vllm-b"]);
        // Prometheus gives a row without a pod the one that the exporter runs in.
        let passed_on = page(&[
            "job=\"dcgm\",pod=\"exporter-x\",exported_pod=\"vllm-a\"",
            "job=\"dcgm\",pod=\"exporter-x\"",
        ]);
        assert_eq!(pods(&passed_on, &all()), ["vllm-a"]);
        let kept = page(&[
            "job=\"dcgm\",pod=\"vllm-a\"",
            "job=\"dcgm\",pod=\"exporter-x\"",
        ]);
        assert_eq!(pods(&kept, &all()), [""; 0]);
        assert_eq!(pods(&kept, &pod("vllm-*")), ["vllm-a"]);
    }

    #[test]
    fn instances_are_kept_apart_and_their_gpu_is_not_one_more() {
        let mig = |id: u32| format!("GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"{id}\"");
        let page = [
            row("DEV_FB_USED", "", "900"),
            row("DEV_FB_USED", &mig(1), "100"),
            row("DEV_FB_USED", &mig(2), "200"),
            row("PROF_GR_ENGINE_ACTIVE", &mig(2), "0.5"),
            // Of the whole GPU, as the exporter has it: twice.
            row("DEV_POWER_USAGE", &mig(1), "410"),
            row("DEV_POWER_USAGE", &mig(2), "410"),
            row("DEV_TOTAL_ENERGY_CONSUMPTION", &mig(1), "5000"),
            row("DEV_TOTAL_ENERGY_CONSUMPTION", &mig(2), "5000"),
        ]
        .concat();
        let read = read_gpus(&page, &all());
        assert_eq!(names(&read), ["0/1", "0/2"]);
        assert_eq!(read.gpus[1].fields.get(GpuField::EngineActive), Some(0.5));
        let state = GpuState::of(&read.gpus);
        assert_eq!((state.power_w, state.energy_j), (None, None));
    }

    #[test]
    fn the_exporter_of_amd_is_read_likewise() {
        let row = |name: &str, more: &str, value: &str| {
            format!(
                "{name}{{gpu_id=\"0\",card_model=\"MI300X\",gpu_compute_partition_type=\"spx\",gpu_partition_id=\"0\",hostname=\"h\"{more}}} {value}\n"
            )
        };
        let page = [
            row("gpu_gfx_activity", "", "80"),
            row("amd_gpu_used_vram", "", "100"),
            row("gpu_total_vram", "", "400"),
            row("GPU_PACKAGE_POWER", "", "640"),
            row("gpu_energy_consumed", "", "3000000"),
            row(
                "gpu_clock",
                ",clock_index=\"0\",clock_type=\"GPU_CLOCK_TYPE_SYSTEM\"",
                "1700",
            ),
            row(
                "gpu_clock",
                ",clock_index=\"1\",clock_type=\"GPU_CLOCK_TYPE_SYSTEM\"",
                "2100",
            ),
            row(
                "gpu_clock",
                ",clock_index=\"8\",clock_type=\"GPU_CLOCK_TYPE_MEMORY\"",
                "1300",
            ),
            row(
                "gpu_clock",
                ",clock_index=\"9\",clock_type=\"GPU_CLOCK_TYPE_VIDEO\"",
                "29",
            ),
            row("gpu_violation_hbm_thermal_residency_percentage", "", "3"),
            row("gpu_violation_ppt_residency_percentage", "", "0"),
            "notgpu_clock 5\n".to_owned(),
        ]
        .concat();
        let read = read_gpus(&page, &all());
        assert_eq!(names(&read), ["0"]);
        let fields = &read.gpus[0].fields;
        assert_eq!(fields.get(GpuField::Utilization), Some(0.8));
        assert_eq!(fields.memory_share(), Some(0.25));
        assert_eq!(fields.get(GpuField::Power), Some(640.0));
        assert_eq!(fields.get(GpuField::Energy), Some(3.0));
        assert_eq!(fields.get(GpuField::SmClock), Some(2.1e9));
        assert_eq!(fields.get(GpuField::MemoryClock), Some(1.3e9));
        assert_eq!(fields.clock_reasons(), Some(0x40));
    }

    #[test]
    fn another_page_is_none_of_these() {
        let page = "vllm:num_requests_running 3\n<html>\n";
        let read = read_gpus(page, &all());
        assert!(!read.recognised && read.gpus.is_empty());
        assert_eq!(read.bad_lines, 1);
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(
            lines in prop::collection::vec(
                ("(DCGM_FI_DEV_(GPU_UTIL|FB_USED)|gpu_clock|gpu_[a-z_]{0,9})", "[0-9a-z]{0,3}", "(-?[0-9]{1,22}|NaN|[a-z])"),
                0..30,
            ),
        ) {
            let rows: Vec<String> = lines
                .iter()
                .map(|(name, gpu, value)| format!("{name}{{gpu=\"{gpu}\",GPU_I_ID=\"{gpu}\"}} {value}"))
                .collect();
            let page = rows.join("\n");
            let read = read_gpus(&page, &all());
            for gpu in &read.gpus {
                for (_, value) in gpu.fields.known() {
                    prop_assert!(value.is_finite() && value >= 0.0);
                }
            }
        }
    }
}
