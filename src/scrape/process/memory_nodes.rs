//! The memory nodes (NUMA) of this machine: how often memory came from another node than it was
//! wanted from, and whether a process is bound to one.
//!
//! Nodes without processors are left out: memory of GPUs and of expanders shows as such. On a
//! machine with one node nothing is said.

use std::fs;
use std::path::Path;

use super::table::{Numbers, Status};
use crate::measurement::MemoryPlaces;
use crate::telemetry::{keyed, small_text};

/// Nodes that are read at most; kernels have no more than 1,024.
const MOST_NODES: usize = 1_024;

/// The nodes of one machine, at one moment. None where there are fewer than two.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::scrape) struct MemoryNodes(Vec<Node>);

#[derive(Debug, Clone, PartialEq)]
struct Node {
    number: Numbers,
    cpus: Numbers,
    places: Option<MemoryPlaces>,
}

impl MemoryNodes {
    /// Those of the machine whose files are below `root`.
    pub(in crate::scrape) fn read(root: &Path) -> Self {
        let folder = root.join("sys/devices/system/node");
        let Ok(entries) = fs::read_dir(&folder) else {
            return Self::default();
        };
        let nodes = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let number = Numbers::parse(name.to_str()?.strip_prefix("node")?)?;
            let cpus = Numbers::parse(&small_text(&entry.path().join("cpulist"))?)?;
            let is_one = !number.is_empty() && !cpus.is_empty();
            is_one.then(|| Node {
                number,
                cpus,
                places: places(&entry.path().join("numastat")),
            })
        });
        let nodes: Vec<Node> = nodes.take(MOST_NODES).collect();
        Self(if nodes.len() > 1 { nodes } else { Vec::new() })
    }

    /// Where memory came from, over all nodes; `None` if one does not say, or there is one only.
    pub(in crate::scrape) fn places(&self) -> Option<MemoryPlaces> {
        let all = self.0.iter().map(|node| node.places);
        let all = all.collect::<Option<Vec<_>>>()?;
        all.into_iter().reduce(|sum, one| MemoryPlaces {
            hit: sum.hit + one.hit,
            miss: sum.miss + one.miss,
            local: sum.local + one.local,
            other: sum.other + one.other,
        })
    }

    /// On how many nodes the process of `status` may run, and from how many it may have memory.
    pub(super) fn spans(&self, status: &Status) -> (Option<f64>, Option<f64>) {
        let count = |is_in: &dyn Fn(&Node) -> bool| {
            let count = self.0.iter().filter(|node| is_in(node)).count();
            u32::try_from(count).ok().map(f64::from)
        };
        if self.0.is_empty() {
            return (None, None);
        }
        let cpus = status.cpus.as_ref();
        let memory = status.memory_nodes.as_ref();
        (
            cpus.and_then(|cpus| count(&|node| node.cpus.meets(cpus))),
            memory.and_then(|memory| count(&|node| node.number.meets(memory))),
        )
    }
}

fn places(path: &Path) -> Option<MemoryPlaces> {
    let text = small_text(path)?;
    Some(MemoryPlaces {
        hit: keyed(&text, "numa_hit")?,
        miss: keyed(&text, "numa_miss")?,
        local: keyed(&text, "local_node")?,
        other: keyed(&text, "other_node")?,
    })
}
