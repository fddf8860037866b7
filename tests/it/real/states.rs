//! The server's state on records against the pages that it was read from, as a proxy kept them,
//! read by somebody else than the canary.
//!
//! Which page a state is of says its age: the instant less the age is when that page had been
//! read, which is shortly after the proxy let go of its last byte. That page must be the last one
//! that was there, and say what the state says.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::prometheus::told_of;
use super::proxy::Page;
use crate::program::tell;

/// The canary's end of reading is at most this long after the proxy let go of the last byte, on a
/// busy machine. Pages are farther apart.
const READ_NS: u64 = 250_000_000;
/// Two programs that read one clock, one of which converts what it read, differ by less.
const CLOCK_NS: u64 = 5_000_000;
/// Three intervals of half a second.
pub(super) const STALE: Duration = Duration::from_millis(1_500);
/// Shares that are means of several are the same up to rounding.
const ROUNDING: f64 = 1e-12;

/// Values of a page by the names that records have for them.
pub(super) type Gauges = BTreeMap<&'static str, f64>;

/// A sample of a page: name, labels, value.
pub(super) type Sample = (String, BTreeMap<String, String>, f64);
/// The same as the reference parser prints it.
type Printed = (String, BTreeMap<String, String>, String);
/// What somebody makes of the samples of a page.
pub(super) type Read = fn(&[Sample]) -> Gauges;

/// A page, as somebody else read it.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// Just before the proxy let go of its last byte.
    pub(super) sent_unix_ns: u64,
    /// What it says.
    pub(super) gauges: Gauges,
}

/// What was held against pages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// States.
    pub(super) states: usize,
    /// Of these, such as would have been others if the page before or after had been taken.
    pub(super) telling: usize,
}

/// Holds the three states of every one of `records` against `pages`, oldest first. A page says
/// nothing any more after `too_old`. Records that end after the last page are left out: nobody may
/// have waited for that page.
pub(super) fn hold(records: &[Value], pages: &[Told], too_old: Duration) -> Held {
    let mut held = Held::default();
    let last = pages.last().map_or(0, |page| page.sent_unix_ns);
    for record in records {
        let instants = instants(record);
        if instants.iter().any(|(_, instant)| *instant > Some(last)) {
            continue;
        }
        for (name, instant) in instants {
            let state = &record["server"][name];
            let Some(instant) = instant else {
                assert!(state.is_null(), "a state at no instant: {record}");
                continue;
            };
            let page = page_of(pages, (instant, state), nanos(too_old));
            let page = page.unwrap_or_else(|why| panic!("`{name}`: {why}: {record}"));
            if let Some(page) = page {
                held.states += 1;
                held.telling += usize::from(is_telling(pages, page));
            }
        }
    }
    held
}

/// Holds the `records` of the target called `name`, whose page is read every half a second, against
/// its `pages`; and says what came of it.
pub(super) fn assert_held(name: &str, (records, pages): (&[Value], &[Told]), least: &Held) {
    let held = hold(records, pages, STALE);
    assert!(held.states >= least.states, "{name}: {held:?}");
    assert!(held.telling >= least.telling, "{name}: {held:?}");
    let most = |gauge: &str| {
        let values = pages.iter().filter_map(|page| page.gauges.get(gauge));
        let most = values.copied().reduce(f64::max);
        most.map_or_else(|| "not told".to_owned(), |most| most.to_string())
    };
    tell(&format!(
        "{name}: {} states of {} records are those of the last of {} pages at their instants, {} would be others a page earlier or later; most at once: {} running, {} waiting",
        held.states,
        records.len(),
        pages.len(),
        held.telling,
        most("running"),
        most("waiting")
    ));
}

/// The instants at which a record has a state, nanoseconds since the Unix epoch.
fn instants(record: &Value) -> [(&'static str, Option<u64>); 3] {
    let after_start = |name: &str| {
        let start = record["start_unix_ns"].as_u64()?;
        Some(start + nanos(millis(&record["times_ms"][name])?))
    };
    [
        ("intended", record["intended_unix_ns"].as_u64()),
        ("first_token", after_start("ttft")),
        ("end", after_start("end")),
    ]
}

fn millis(value: &Value) -> Option<Duration> {
    Some(Duration::from_secs_f64(value.as_f64()? / 1e3))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("less than 584 years")
}

/// The position of the page that `state` at `instant` is of; `None` if it is of none, rightly.
fn page_of(
    pages: &[Told],
    (instant, state): (u64, &Value),
    too_old: u64,
) -> Result<Option<usize>, String> {
    let complete = |until: u64| pages.partition_point(|page| page.sent_unix_ns <= until);
    if state.is_null() {
        // A page that was there long enough before, and not too old, is a state.
        let surely = complete(instant.saturating_sub(READ_NS + CLOCK_NS));
        return match surely.checked_sub(1).map(|last| pages[last].sent_unix_ns) {
            Some(sent) if instant - sent < too_old => Err(format!(
                "no state, although a page was there {} ns before",
                instant - sent
            )),
            _ => Ok(None),
        };
    }
    let age = millis(&state["age_ms"]).map(nanos).ok_or("no age")?;
    if age > too_old {
        return Err(format!("{age} ns are too old"));
    }
    let read = instant - age;
    let page = complete(read + CLOCK_NS)
        .checked_sub(1)
        .ok_or("no page was complete by then")?;
    let waited = read.saturating_sub(pages[page].sent_unix_ns);
    if waited > READ_NS {
        return Err(format!("no page was read {age} ns before"));
    }
    if let Some(next) = pages.get(page + 1)
        && next.sent_unix_ns + READ_NS + CLOCK_NS < instant
    {
        return Err("a newer page was there".to_owned());
    }
    says(state, &pages[page].gauges)?;
    Ok(Some(page))
}

/// Whether `state` says what a page has, and nothing else.
fn says(state: &Value, page: &Gauges) -> Result<(), String> {
    let fields = state.as_object().ok_or("it is no object")?;
    let named = |name: &&&str| !fields.contains_key(**name);
    if let Some(missing) = page.keys().find(named) {
        return Err(format!("`{missing}` is on the page"));
    }
    for (name, found) in fields.iter().filter(|(name, _)| *name != "age_ms") {
        let expected = page.get(name.as_str()).copied();
        let found = found.as_f64();
        let same = match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() <= ROUNDING,
            (found, expected) => found.is_none() && expected.is_none(),
        };
        if !same {
            return Err(format!("`{name}` is {found:?}, on the page {expected:?}"));
        }
    }
    Ok(())
}

fn is_telling(pages: &[Told], page: usize) -> bool {
    let neighbours = [page.checked_sub(1), Some(page + 1)];
    let mut neighbours = neighbours
        .into_iter()
        .flatten()
        .filter_map(|at| pages.get(at));
    neighbours.any(|other| other.gauges != pages[page].gauges)
}

/// What the reference parser says of `pages`, in the `python` of an environment that has it.
pub(super) fn parsed(python: &str, pages: &[Page]) -> Vec<Vec<Sample>> {
    let texts: Vec<_> = pages
        .iter()
        .map(|page| String::from_utf8_lossy(&page.body))
        .collect();
    let texts = serde_json::to_string(&texts).expect("text is JSON");
    let mut command = Command::new(python);
    command.arg(super::pages::SCRIPT).arg("--many");
    let told: Vec<Vec<Printed>> =
        serde_json::from_str(&told_of(command, &texts)).expect("it prints samples");
    let number = |(name, labels, value): Printed| (name, labels, value.parse().expect("a number"));
    let samples = |page: Vec<_>| page.into_iter().map(number).collect();
    told.into_iter().map(samples).collect()
}

/// The values on one page of `samples` that are called `name` and that `keep` keeps.
pub(super) fn values(
    samples: &[Sample],
    name: &str,
    keep: impl Fn(&BTreeMap<String, String>) -> bool,
) -> Vec<f64> {
    let of_name = samples.iter().filter(|(known, ..)| known == name);
    of_name
        .filter(|(_, labels, _)| keep(labels))
        .map(|(.., value)| *value)
        .collect()
}

/// `pages` with what `read` makes of their samples.
pub(super) fn told(pages: &[Page], samples: &[Vec<Sample>], read: Read) -> Vec<Told> {
    let pairs = pages.iter().zip(samples);
    pairs
        .map(|(page, samples)| Told {
            sent_unix_ns: page.sent_unix_ns,
            gauges: read(samples),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Pages complete at 1.0 s, 1.5 s, 2.0 s and 2.5 s, with 1, 2, 3 and 4 running.
    fn pages() -> Vec<Told> {
        let pages = [(1_000, 1.0), (1_500, 2.0), (2_000, 3.0), (2_500, 4.0)];
        let told = pages.map(|(at, running)| Told {
            sent_unix_ns: at * MS,
            gauges: Gauges::from([("running", running)]),
        });
        told.into()
    }

    fn page(at_ms: u64, state: &Value) -> Result<Option<usize>, String> {
        page_of(&pages(), (at_ms * MS, state), 1_500 * MS)
    }

    fn state(running: f64, age_ms: f64) -> Value {
        json!({ "running": running, "waiting": null, "age_ms": age_ms })
    }

    #[test]
    fn the_page_is_the_last_one_that_was_there() {
        assert_eq!(page(1_900, &state(2.0, 398.0)), Ok(Some(1)));
        // Still on its way.
        assert_eq!(page(2_010, &state(2.0, 508.0)), Ok(Some(1)));
        assert_eq!(page(2_010, &state(3.0, 9.0)), Ok(Some(2)));
        assert!(page(2_400, &state(2.0, 898.0)).is_err(), "a newer one");
        assert!(page(1_900, &state(1.0, 898.0)).is_err(), "a newer one");
    }

    #[test]
    fn the_age_is_that_of_the_page_that_has_the_values() {
        assert!(page(1_900, &state(1.0, 398.0)).is_err(), "other values");
        assert!(page(1_900, &state(2.0, 100.0)).is_err(), "no page then");
        assert!(page(1_900, &state(2.0, 950.0)).is_err(), "before the first");
        let more = json!({ "running": 2.0, "waiting": 0.0, "age_ms": 398.0 });
        assert!(page(1_900, &more).is_err(), "zero is not absent");
        let less = json!({ "waiting": null, "age_ms": 398.0 });
        assert!(page(1_900, &less).is_err(), "absent is not there");
        assert!(page(4_000, &state(3.0, 1_990.0)).is_err(), "too old");
    }

    #[test]
    fn no_state_is_right_before_the_first_page_and_long_after_the_last() {
        let none = Value::Null;
        assert_eq!(page(900, &none), Ok(None));
        assert_eq!(page(1_100, &none), Ok(None), "it may have been on its way");
        assert!(page(1_900, &none).is_err());
        assert_eq!(page(4_100, &none), Ok(None));
    }

    #[test]
    fn every_instant_of_a_record_is_held() {
        let record = |end: Value| {
            json!({
                "intended_unix_ns": 1_100 * MS, "start_unix_ns": 1_101 * MS,
                "times_ms": { "ttft": 499.0, "end": 1_000.0 },
                "server": { "intended": state(1.0, 98.0), "first_token": state(2.0, 98.0), "end": end },
            })
        };
        let stale = Duration::from_millis(1_500);
        let right = [record(state(3.0, 99.0))];
        let expected = Held {
            states: 3,
            telling: 3,
        };
        assert_eq!(hold(&right, &pages(), stale), expected);
        let wrong = [record(state(2.0, 99.0))];
        let wrong = std::panic::catch_unwind(|| hold(&wrong, &pages(), stale));
        assert!(wrong.is_err());
    }
}
