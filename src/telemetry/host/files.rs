//! The texts of `/proc` and of control groups, read without a file.

use super::{CpuTimes, Pressure, Traffic};

/// Parts of a second in which the kernel tells times of processors. It is 100 towards programs on
/// every machine that Linux runs servers on, whatever the kernel's own beat.
const TICKS: f64 = 100.0;

/// `/proc/stat`.
pub(super) fn cpu_times(text: &str) -> Option<CpuTimes> {
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = all
        .split_ascii_whitespace()
        .map_while(|number| number.parse().ok())
        .collect();
    let [user, nice, system, idle, rest @ ..] = ticks.as_slice() else {
        return None;
    };
    let more = |place: usize| rest.get(place).copied().unwrap_or(0.0);
    let (iowait, irq, soft_irq, steal) = (more(0), more(1), more(2), more(3));
    let is_one = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let cpus = text.lines().filter(is_one).count();
    Some(CpuTimes {
        user: (user + nice) / TICKS,
        system: (system + irq + soft_irq) / TICKS,
        idle: idle / TICKS,
        iowait: iowait / TICKS,
        steal: steal / TICKS,
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
    })
}

/// The first number of `/proc/loadavg`.
pub(super) fn mean_load(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse().ok()
}

/// The number behind `key` on a line of its own, as in `/proc/meminfo` and `cpu.stat`.
#[must_use]
pub fn keyed(text: &str, key: &str) -> Option<f64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| (words.next()? == key).then(|| words.next()?.parse().ok())?)
}

/// A file that is one number. `max` is none.
pub(super) fn first_number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// `cpu.max`: the quota and its period, or `max`.
pub(super) fn cpu_limit(text: &str) -> Option<f64> {
    let mut words = text.split_ascii_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (period > 0.0).then(|| quota / period)
}

/// A file of pressure: the totals, which are in microseconds.
pub(super) fn pressure(text: &str) -> Pressure {
    let total = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        let (_, total) = line.rsplit_once("total=")?;
        Some(total.trim().parse::<f64>().ok()? / 1e6)
    };
    Pressure {
        some: total("some "),
        full: total("full "),
    }
}

/// A number of `/proc/net/snmp`, which has a line of names and one of numbers for each protocol.
pub(super) fn protocol_count(text: &str, (protocol, name): (&str, &str)) -> Option<f64> {
    let of_protocol = |line: &&str| {
        line.split_once(':')
            .is_some_and(|(head, _)| head == protocol)
    };
    let mut lines = text.lines().filter(of_protocol);
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut pairs = names
        .split_ascii_whitespace()
        .zip(numbers.split_ascii_whitespace());
    pairs.find(|(known, _)| *known == name)?.1.parse().ok()
}

/// `/proc/net/dev`: received and sent, over all interfaces but loopback.
pub(super) fn network(text: &str) -> (Traffic, Traffic) {
    let mut all = (Traffic::default(), Traffic::default());
    for line in text.lines() {
        let Some((name, numbers)) = line.split_once(':') else {
            continue;
        };
        let numbers: Vec<f64> = numbers
            .split_ascii_whitespace()
            .map_while(|number| number.parse().ok())
            .collect();
        // bytes packets errs drop fifo frame compressed multicast, then the same of what was sent.
        if name.trim() == "lo" || numbers.len() < 12 {
            continue;
        }
        all.0.bytes += numbers[0];
        all.0.lost += numbers[2] + numbers[3];
        all.1.bytes += numbers[8];
        all.1.lost += numbers[10] + numbers[11];
    }
    all
}
