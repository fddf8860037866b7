//! Whose row of an exporter's page it is, and whether that is one of the target's.
//!
//! Exporters have called the same label by several names, and a Prometheus in between puts
//! `exported_` before those that it sets itself.

use std::borrow::Cow;

use crate::config::GpuSelect;
use crate::scrape::Labels;

/// Names of each label, the one that counts first.
const POD: [&str; 3] = ["exported_pod", "pod", "pod_name"];
const NAMESPACE: [&str; 3] = ["exported_namespace", "namespace", "pod_namespace"];
const HOST: [&str; 3] = ["Hostname", "hostname", "exported_hostname"];
const INDEX: [&str; 2] = ["gpu", "gpu_id"];

/// The labels of one row.
pub(super) struct Row<'a> {
    labels: Labels<'a>,
}

impl<'a> Row<'a> {
    pub(super) const fn new(labels: Labels<'a>) -> Self {
        Self { labels }
    }

    fn first(&self, names: &[&str]) -> Option<Cow<'a, str>> {
        let values = names.iter().filter_map(|name| self.labels.get(name));
        values.into_iter().find(|value| !value.is_empty())
    }

    pub(super) fn host(&self) -> Option<Cow<'a, str>> {
        self.first(&HOST)
    }

    /// Its number on its host.
    pub(super) fn index(&self) -> Option<Cow<'a, str>> {
        self.first(&INDEX)
    }

    /// The instance, if the GPU is cut into several: MIG's number, or AMD's partition.
    pub(super) fn instance(&self) -> Option<Cow<'a, str>> {
        if let Some(mig) = self.first(&["GPU_I_ID"]) {
            return Some(mig);
        }
        let cut = self.first(&["gpu_compute_partition_type"])?;
        if cut.eq_ignore_ascii_case("spx") {
            return None;
        }
        self.first(&["gpu_partition_id"])
    }

    pub(super) fn uuid(&self) -> Cow<'a, str> {
        self.first(&["UUID", "uuid", "serial_number"])
            .unwrap_or_default()
    }

    pub(super) fn model(&self) -> Cow<'a, str> {
        self.first(&["modelName", "card_model"]).unwrap_or_default()
    }

    /// The pod that it serves, if it says so. On a page that a Prometheus passed on, `pod` may be
    /// the exporter's own: there it is believed if `select` asks for such a pod.
    pub(super) fn pod(&self, select: &GpuSelect) -> Option<Cow<'a, str>> {
        let [of_workload, others @ ..] = POD;
        let is_passed_on = || self.first(&["job"]).is_some();
        self.first(&[of_workload]).or_else(|| {
            let is_believed = select.pod.is_some() || !is_passed_on();
            is_believed.then(|| self.first(&others)).flatten()
        })
    }

    pub(super) fn clock_type(&self) -> Option<Cow<'a, str>> {
        self.first(&["clock_type"])
    }

    /// Whether it is one that `select` asks for.
    pub(super) fn is_in(&self, select: &GpuSelect) -> bool {
        let like = |wanted: &Option<String>, names: &[&str]| {
            wanted.as_ref().is_none_or(|wanted| {
                let value = self.first(names);
                value.is_some_and(|value| fits(wanted, &value))
            })
        };
        let numbered = select.index.is_empty()
            || self
                .index()
                .and_then(|text| text.parse().ok())
                .is_some_and(|index| select.index.contains(&index));
        numbered
            && like(&select.pod, &POD)
            && like(&select.namespace, &NAMESPACE)
            && like(&select.host, &HOST)
    }
}

/// Whether `value` is what is wanted; a `*` at the end stands for anything, since pods of a
/// deployment have random ends.
fn fits(wanted: &str, value: &str) -> bool {
    wanted
        .strip_suffix('*')
        .map_or(wanted == value, |begin| value.starts_with(begin))
}
