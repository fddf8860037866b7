//! From the merged tree to a [`Config`]: one function per section.

mod arrivals;
mod export;
mod gpu;
mod known_answers;
mod network;
mod otlp;
mod phases;
mod pod;
mod probe;
mod prompt_file;
mod request;
mod slo;
mod target;
mod workload;

pub(super) use arrivals::PROCESSES;
pub use request::wrong_path;

use std::time::Duration;

use super::diagnostic::{Problem, quoted};
use super::given::{Given, Refusal};
use super::keys;
use super::reader::{Node, Reader, Section};
use super::{Config, GovernorConfig};

/// Durations below this are slips: nothing here works faster.
const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_hours(1);
/// The default of `drain`.
const DRAIN: Duration = Duration::from_secs(4);
/// Targets and probes each; their product numbers the streams in 16 bits.
const MOST_ITEMS: usize = 255;
/// Requests in flight per target.
const MOST_IN_FLIGHT: u64 = 100_000;

/// Reads the whole tree. `None` if anything in it is wrong; the reader has noted what.
pub(super) fn config<'a>(reader: &mut Reader<'a>, root: Node<'a>) -> Option<Config> {
    let top = reader.section(root, &keys::TOP)?;
    let seed = reader.optional(&top, "seed", |given| given.whole(0..=u64::MAX));
    let drain = reader.optional(&top, "drain", |given| given.duration(Duration::ZERO..=HOUR));
    let governor = governor(reader, &top);
    let targets = target::targets(reader, &top);
    let probes = probe::probes(reader, &top, governor.in_flight);
    let export = export::export(reader, &top);
    Some(Config {
        seed,
        drain: drain.unwrap_or(DRAIN),
        targets: targets?,
        probes: probes?,
        governor,
        export: export?,
    })
}

fn governor<'a>(reader: &mut Reader<'a>, top: &Section<'a>) -> GovernorConfig {
    /// More than any fleet serves in a day.
    const MOST_REQUESTS: u64 = 1_000_000_000;
    const MOST_TOKENS: u64 = 1_000_000_000_000;
    let section = reader.subsection(top, "governor", &keys::GOVERNOR);
    let mut read = |key, most| {
        let section = section.as_ref()?;
        reader.optional(section, key, |given| given.count(1..=most))
    };
    let requests = read("requests_per_day", MOST_REQUESTS);
    let tokens = read("tokens_per_day", MOST_TOKENS);
    let in_flight = read("in_flight", MOST_IN_FLIGHT);
    GovernorConfig {
        requests_per_day: Some(requests.unwrap_or(50_000)),
        tokens_per_day: Some(tokens.unwrap_or(5_000_000)),
        in_flight: small(in_flight.unwrap_or(4)),
    }
}

/// The items of a list that must hold at least one.
fn items<'a>(reader: &mut Reader<'a>, top: &Section<'a>, key: &str) -> Option<Vec<Node<'a>>> {
    reader.require(top, key);
    let items = reader.list(top, key)?;
    let wrong = match items.len() {
        0 => Refusal::new(Problem::Missing).wanted("at least one"),
        1..=MOST_ITEMS => return Some(items),
        many => Refusal::new(Problem::OutOfRange)
            .wanted(format!("at most {MOST_ITEMS}"))
            .hint(format!("there are {many}")),
    };
    reader.refuse(&top.get(key)?, &wrong);
    None
}

/// A name that can be a label value and part of a file name.
fn name(given: Given<'_>) -> Result<String, Refusal> {
    let text = given.text()?;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=64).contains(&text.len()) && text.bytes().all(good) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(Problem::NotUnderstood))
    }
}

/// Notes names that were given to an earlier item already.
fn check_unique<'a>(reader: &mut Reader<'a>, sections: &[Section<'a>]) {
    let named: Vec<(Node<'a>, &'a str)> = sections
        .iter()
        .filter_map(|section| {
            let node = section.get("name")?;
            let text = node.value.as_str()?;
            Some((node, text))
        })
        .collect();
    for (index, (node, text)) in named.iter().enumerate() {
        if let Some((first, _)) = named[..index].iter().find(|(_, other)| other == text) {
            let refusal = Refusal::new(Problem::Duplicate)
                .wanted("a name of its own")
                .hint(format!("{} has it already", quoted(&first.path)));
            reader.refuse(node, &refusal);
        }
    }
}

/// A number whose range was checked to fit 32 bits.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
