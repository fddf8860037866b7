//! The section `gpu` of a target.

use std::time::Duration;

use super::super::diagnostic::Problem;
use super::super::given::{Given, Refusal};
use super::super::keys;
use super::super::reader::{Reader, Section};
use super::super::{GpuConfig, GpuSelect, GpuSource};
use super::target::{page_url, url_at};
use super::{HOUR, items, small};

/// The default of `every`. Exporters collect every 30 s unless they are told otherwise, and values
/// of the driver are means over a second at most.
const EVERY: Duration = Duration::from_secs(10);
/// More often, and the exporter would be asked for what it has not.
const FASTEST: Duration = Duration::from_millis(100);
/// Numbers of GPUs on one host.
const MOST_INDEX: u64 = 1023;

/// Reads `gpu`; `None` if it is not there or wrong.
pub(super) fn gpu<'a>(reader: &mut Reader<'a>, target: &Section<'a>) -> Option<GpuConfig> {
    let section = reader.subsection(target, "gpu", &keys::GPU)?;
    let source = source(reader, &section);
    let select = select(reader, &section);
    let every = reader.optional(&section, "every", |given| given.duration(FASTEST..=HOUR));
    let source = source?;
    if source == GpuSource::Nvml {
        // The driver of this machine knows no pods, and has no other host.
        for key in ["pod", "namespace", "host"] {
            if let Some(node) = section.get(key) {
                let refusal = Refusal::new(Problem::Conflict)
                    .wanted("`index`, or nothing for all GPUs of this machine")
                    .hint("`nvml` reads the driver of this machine, which knows no pods and hosts");
                reader.refuse(&node, &refusal);
            }
        }
    }
    Some(GpuConfig {
        source,
        select,
        every: every.unwrap_or(EVERY),
    })
}

fn source<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<GpuSource> {
    const SOURCES: [&str; 3] = ["dcgm", "amd", "nvml"];
    let mut given = SOURCES.iter().filter_map(|key| section.get(key));
    let Some(_) = given.next() else {
        reader.missing(
            section,
            ("dcgm", "`dcgm` or `amd` with a URL, or `nvml: true`"),
        );
        return None;
    };
    if let Some(second) = given.next() {
        let refusal = Refusal::new(Problem::Conflict).wanted("one of `dcgm`, `amd` and `nvml`");
        reader.refuse(&second, &refusal);
        return None;
    }
    if let Some(node) = section.get("nvml") {
        let on = reader.optional(section, "nvml", |given| given.flag())?;
        if !on {
            let refusal = Refusal::new(Problem::NotUnderstood)
                .wanted("`true`")
                .hint("leave `gpu` out to read nothing");
            reader.refuse(&node, &refusal);
            return None;
        }
        return Some(GpuSource::Nvml);
    }
    let exporter = |key, example: &'static str| {
        move |reader: &mut Reader<'a>| {
            url_at(reader, section, key, |text| {
                let without_query = text.split('?').next().unwrap_or_default();
                page_url(without_query, example)?;
                Ok(text.to_owned())
            })
        }
    };
    let url = match section.get("dcgm") {
        Some(_) => exporter("dcgm", "http://node-7:9400/metrics")(reader),
        None => exporter("amd", "http://node-7:5000/metrics")(reader),
    };
    url.map(GpuSource::Exporter)
}

fn select<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> GpuSelect {
    let mut text = |key| reader.optional(section, key, label);
    let (pod, namespace, host) = (text("pod"), text("namespace"), text("host"));
    let mut index = Vec::new();
    if section.get("index").is_some() {
        for node in items(reader, section, "index").unwrap_or_default() {
            let number = reader.item(section, (&node, "index"), |given| {
                given.whole(0..=MOST_INDEX)
            });
            match number.map(small) {
                Some(number) if index.contains(&number) => {
                    let refusal = Refusal::new(Problem::Duplicate).wanted("each number once");
                    reader.refuse(&node, &refusal);
                }
                Some(number) => index.push(number),
                None => {}
            }
        }
    }
    GpuSelect {
        pod,
        namespace,
        host,
        index,
    }
}

/// A value of a label; a `*` at its end only.
fn label(given: Given<'_>) -> Result<String, Refusal> {
    /// Names of pods and hosts have at most 253 letters.
    const LONGEST: usize = 254;
    let text = given.text()?;
    let begin = text.strip_suffix('*').unwrap_or(text);
    if text.is_empty() || text.len() > LONGEST || begin.contains('*') {
        return Err(Refusal::new(Problem::NotUnderstood).hint("a `*` may stand at its end only"));
    }
    Ok(text.to_owned())
}
