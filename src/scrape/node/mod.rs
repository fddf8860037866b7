//! The host of a server, from the page of its node exporter, or from the kernel where it is the
//! machine that we run on.

mod here;
mod poll;

pub use here::NodeHere;
pub use poll::NodePoll;

use super::page::Lines;
use crate::measurement::NodeState;
use crate::telemetry::HostState;

/// Reads the host of `page`; `None` if no family of a node exporter is on it.
#[must_use]
pub fn read_node(page: &str) -> Option<NodeState> {
    let mut state = NodeState::default();
    let (mut cpus, mut busy, mut recognised) = (0_u32, None, false);
    for line in Lines::new(page) {
        let value = Some(line.value).filter(|value| value.is_finite() && *value >= 0.0);
        let place = match &*line.name {
            // `node_cpu` until version 0.15, in the same seconds.
            "node_cpu_seconds_total" | "node_cpu" => {
                recognised = true;
                match line.labels.get("mode").as_deref() {
                    Some("idle") => cpus += 1,
                    Some("iowait") | None => {}
                    Some(_) => busy = value.map(|value| busy.unwrap_or(0.0) + value).or(busy),
                }
                continue;
            }
            "node_pressure_cpu_waiting_seconds_total" => &mut state.cpu_waiting,
            "node_pressure_memory_waiting_seconds_total" => &mut state.memory_waiting,
            "node_load1" => &mut state.load,
            "node_memory_MemTotal_bytes" => &mut state.memory_total,
            "node_memory_MemAvailable_bytes" => &mut state.memory_available,
            "node_boot_time_seconds" => &mut state.booted,
            _ => continue,
        };
        recognised = true;
        *place = value;
    }
    state.cpus = (cpus > 0).then(|| f64::from(cpus));
    state.cpu_busy = busy;
    recognised.then_some(state)
}

/// The host as its own kernel tells it; `None` if that tells nothing.
fn of_kernel(host: &HostState) -> Option<NodeState> {
    let state = NodeState {
        cpus: host.cpu.map(|cpu| f64::from(cpu.cpus)),
        // As an exporter's page has it: time that a hypervisor took is none for idling.
        cpu_busy: host.cpu.map(|cpu| cpu.user + cpu.system + cpu.steal),
        cpu_waiting: host.pressure.cpu.some,
        memory_waiting: host.pressure.memory.some,
        load: host.load,
        memory_total: host.memory_total,
        memory_available: host.memory_available,
        booted: None,
        memory_places: None,
    };
    (state != NodeState::default()).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{CpuTimes, Pressure, Pressures};

    #[test]
    fn a_node_exporters_page_is_read() {
        let page = "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 100\n\
            node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 5\n\
            node_cpu_seconds_total{cpu=\"0\",mode=\"iowait\"} 50\n\
            node_cpu_seconds_total{cpu=\"1\",mode=\"idle\"} 90\n\
            node_cpu_seconds_total{cpu=\"1\",mode=\"system\"} 2.5\n\
            node_pressure_cpu_waiting_seconds_total 3\n\
            node_load1 0.5\nnode_memory_MemTotal_bytes 1000\n\
            node_memory_MemAvailable_bytes NaN\nnode_boot_time_seconds 1.7e9\n";
        let expected = NodeState {
            cpus: Some(2.0),
            cpu_busy: Some(7.5),
            cpu_waiting: Some(3.0),
            memory_waiting: None,
            load: Some(0.5),
            memory_total: Some(1000.0),
            memory_available: None,
            booted: Some(1.7e9),
            memory_places: None,
        };
        assert_eq!(read_node(page), Some(expected));
    }

    #[test]
    fn a_kernel_tells_the_same() {
        let some = |some| Pressure {
            some: Some(some),
            full: Some(0.5),
        };
        let host = HostState {
            cpu: Some(CpuTimes {
                user: 5.0,
                system: 2.0,
                idle: 190.0,
                iowait: 50.0,
                steal: 0.5,
                cpus: 2,
            }),
            load: Some(0.5),
            memory_total: Some(1000.0),
            pressure: Pressures {
                cpu: some(3.0),
                ..Pressures::default()
            },
            ..HostState::default()
        };
        let expected = NodeState {
            cpus: Some(2.0),
            cpu_busy: Some(7.5),
            cpu_waiting: Some(3.0),
            load: Some(0.5),
            memory_total: Some(1000.0),
            ..NodeState::default()
        };
        assert_eq!(of_kernel(&host), Some(expected));
        assert_eq!(of_kernel(&HostState::default()), None);
    }

    #[test]
    fn another_page_is_none() {
        assert_eq!(read_node("vllm:num_requests_running 3\n"), None);
        assert_eq!(read_node("<html>"), None);
    }
}
