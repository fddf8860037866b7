//! Which crate does which job where, and the test that sees its effect: a crate that is only
//! listed, or only called by tests, is not in use.

use super::source::{Source, is_word};

/// One crate at work.
pub(super) struct Card {
    /// The crate, as code spells it.
    pub(super) name: &'static str,
    /// File or folder below `src` whose non-test code uses it.
    pub(super) room: &'static str,
    /// What of it must occur there.
    pub(super) symbol: &'static str,
    /// The test that fails if it does not do its job.
    pub(super) test: &'static str,
}

const fn card(
    (name, room): (&'static str, &'static str),
    symbol: &'static str,
    test: &'static str,
) -> Card {
    Card {
        name,
        room,
        symbol,
        test,
    }
}

/// Every crate whose job is part of what the product promises.
pub(super) const CARDS: &[Card] = &[
    card(
        ("opentelemetry", "export/otlp"),
        "SpanContext",
        "every_span_arrives_with_its_ids_and_attributes",
    ),
    card(
        ("opentelemetry_otlp", "export/otlp"),
        "SpanExporter",
        "a_partial_success_counts_what_was_rejected",
    ),
    card(
        ("tokio", "app"),
        "spawn",
        "a_real_server_is_measured_and_seen_by_prometheus_and_otlp",
    ),
    card(
        ("hyper", "transport"),
        "client::conn::http1",
        "a_real_server_is_measured_and_seen_by_prometheus_and_otlp",
    ),
    card(("prometheus", "telemetry"), "Registry", "memory_stays_flat"),
    card(
        ("reqwest", "transport/fetch"),
        "Client",
        "a_page_comes_with_status_headers_and_the_instant_of_its_last_byte",
    ),
    card(
        ("rand_distr", "load/schedule"),
        "Exp1",
        "poisson_gaps_are_exponential",
    ),
    card(
        ("serde", "config"),
        "Deserialize",
        "every_sample_file_is_good",
    ),
    card(
        ("figment", "config"),
        "Figment",
        "every_sample_file_is_good",
    ),
    card(
        ("tracing_subscriber", "telemetry"),
        "fmt",
        "a_real_server_is_measured_and_seen_by_prometheus_and_otlp",
    ),
];

/// Cards whose crate, symbol or test is not where the table says.
pub(super) fn violations(cards: &[Card], sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for card in cards {
        let place = format!("src/{}", card.room);
        let room: Vec<&Source> = sources
            .iter()
            .filter(|source| is_in(&source.path, &place))
            .collect();
        for wanted in [card.name, card.symbol] {
            if !room.iter().any(|source| has_word(&source.product, wanted)) {
                found.push(format!(
                    "`{wanted}` of crate `{}` does not occur in `{place}`",
                    card.name
                ));
            }
        }
        let test = format!("fn {}", card.test);
        if !sources.iter().any(|source| has_word(&source.code, &test)) {
            found.push(format!(
                "the test `{}` of crate `{}` does not exist",
                card.test, card.name
            ));
        }
    }
    found
}

fn is_in(path: &str, place: &str) -> bool {
    path.strip_prefix(place)
        .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).map(|index| code.as_bytes()[index]);
        let after = code.as_bytes().get(at + word.len()).copied();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_only_tests_use_is_not_in_use() {
        let sources = [
            Source::new(
                "src/config/mod.rs",
                "#[cfg(test)]\nmod tests { use figment::Figment; fn layers_stack() {} }",
            ),
            Source::new("src/web/mod.rs", "use figment::Figment;"),
        ];
        let cards = [card(("figment", "config"), "Figment", "layers_stack")];
        assert_eq!(violations(&cards, &sources).len(), 2);
        let cards = [card(("figment", "web"), "Figment", "layers")];
        assert_eq!(
            violations(&cards, &sources),
            ["the test `layers` of crate `figment` does not exist"]
        );
        let cards = [card(("figment", "web"), "Figment", "layers_stack")];
        assert!(violations(&cards, &sources).is_empty());
    }
}
