//! The table: each figure beside the bar it is held against.

use std::process::ExitCode;

use super::clients::Found;
use super::measures::{Both, memory, paced, timed, unpaced};

/// Figures so far, and how many missed their bar.
#[derive(Default)]
struct Table {
    missed: usize,
}

/// Runs what `arguments` ask for.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    let only = arguments
        .iter()
        .position(|argument| *argument == "--only")
        .and_then(|at| arguments.get(at + 1));
    let wanted = |part: &str| only.is_none_or(|only| only.split(',').any(|one| one == part));
    let mut table = Table::default();
    Table::head();
    if wanted("cpu") {
        table.cost("zero delay, 50 streams, one core", &unpaced(), 2.0);
    }
    if wanted("paced") {
        table.cost("10 ms, 500 streams", &paced(), 1.5);
    }
    for streams in [1, 50, 500] {
        if wanted("ttft") || wanted("stamps") {
            let both = timed(streams, false);
            table.ttft(streams, &both);
            table.stamps(streams, "", &both);
        }
    }
    if wanted("stamps") {
        table.stamps(500, ", all cores busy", &timed(500, true));
    }
    if wanted("memory") {
        table.memory(&memory());
    }
    if table.missed > 0 && arguments.contains(&"--strict") {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its table")]
impl Table {
    fn head() {
        println!(
            "{:<52} {:>9} {:>9} {:>12} {:>9}",
            "", "bare", "canary", "difference", "bar"
        );
    }

    fn row(&mut self, what: &str, texts: [String; 3], bar: Option<(&str, bool)>) {
        let [bare, ours, difference] = texts;
        let (bar, met) = bar.map_or((String::new(), true), |(bar, met)| (bar.to_owned(), met));
        let mark = if met { "" } else { "  MISSED" };
        self.missed += usize::from(!met);
        println!("{what:<52} {bare:>9} {ours:>9} {difference:>12} {bar:>9}{mark}");
    }

    /// CPU seconds per million chunks.
    fn cost(&mut self, load: &str, both: &Both, bar: f64) {
        let per_million = |found: &[Found]| {
            let all = found.iter().map(|one| one.cpu / both.chunks * 1e6);
            sorted(all.collect())
        };
        let (bare, ours) = (per_million(&both.bare), per_million(&both.ours));
        let ratio = quantile(&ours, 50.0) / quantile(&bare, 50.0);
        let texts = [
            format!("{:.2}", quantile(&bare, 50.0)),
            format!("{:.2}", quantile(&ours, 50.0)),
            format!("{ratio:.2}x"),
        ];
        let what = format!("CPU-s per million chunks: {load}");
        self.row(&what, texts, Some((&format!("<= {bar}x"), ratio <= bar)));
        for (name, found) in [("bare", &bare), ("canary", &ours)] {
            let all: Vec<String> = found.iter().map(|one| format!("{one:.2}")).collect();
            println!("    {name}: {}", all.join(" "));
        }
    }

    /// TTFT, as the clients see it and over the server's own. Ours may be the truer one: the
    /// kernel's stamp does not wait for our turn.
    fn ttft(&mut self, streams: usize, both: &Both) {
        let p50 = |values: fn(&Found) -> &Vec<f64>, found: &[Found]| {
            quantile(
                &sorted(found.iter().flat_map(values).copied().collect()),
                50.0,
            )
        };
        let (bare, ours) = (
            p50(|one| &one.ttft, &both.bare),
            p50(|one| &one.ttft, &both.ours),
        );
        let texts = [
            format!("{bare:.0}"),
            format!("{ours:.0}"),
            format!("{:+.0}", ours - bare),
        ];
        self.row(&format!("TTFT p50, us: {streams} streams"), texts, None);
        let (bare, ours) = (
            p50(|one| &one.added, &both.bare),
            p50(|one| &one.added, &both.ours),
        );
        let difference = ours - bare;
        let texts = [
            format!("{bare:.0}"),
            format!("{ours:.0}"),
            format!("{difference:+.0}"),
        ];
        let what = format!("TTFT p50 over the server's own, us: {streams} streams");
        self.row(&what, texts, Some(("<= +100", difference <= 100.0)));
    }

    /// Chunk stamps against the server's clock before its write.
    #[expect(clippy::cast_precision_loss, reason = "some hundred thousand chunks")]
    fn stamps(&mut self, streams: usize, load: &str, both: &Both) {
        let stamps = both.ours.iter().flat_map(|one| &one.stamps);
        let stamps = sorted(stamps.copied().collect());
        let sum = |count: fn(&Found) -> usize| both.ours.iter().map(count).sum::<usize>();
        let requests: usize = both.ours.iter().map(|one| one.added.len()).sum();
        let (chunks, merged, kernel) = (
            sum(|one| one.chunks),
            sum(|one| one.merged),
            sum(|one| one.kernel),
        );
        let p99 = quantile(&stamps, 99.0);
        let what = format!("stamp - server's clock p99, us: {streams} streams{load}");
        let bar = (streams == 500).then_some(("<= 1000", p99 <= 1000.0));
        self.row(
            &what,
            [String::new(), format!("{p99:.0}"), String::new()],
            bar,
        );
        println!(
            "    p0 {:.0} p50 {:.0} p99.9 {:.0} max {:.0}; exact {} of {chunks} chunks, merged {:.2} %; kernel clock on {kernel} of {requests} requests",
            stamps[0],
            quantile(&stamps, 50.0),
            quantile(&stamps, 99.9),
            quantile(&stamps, 100.0),
            stamps.len(),
            100.0 * merged as f64 / chunks as f64
        );
    }

    fn memory(&mut self, both: &Both) {
        let of = |found: &[Found]| found[0].memory.expect("it was asked for");
        let (bare, ours) = (of(&both.bare), of(&both.ours));
        let texts = [
            format!("{bare:.1}"),
            format!("{ours:.1}"),
            format!("{:+.1}", ours - bare),
        ];
        let bar = Some(("<= 32", ours <= 32.0));
        self.row("KiB per stream in flight: 2000 streams", texts, bar);
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The smallest value with at least `percent` of all at or below it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank"
)]
fn quantile(sorted: &[f64], percent: f64) -> f64 {
    let rank = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}
