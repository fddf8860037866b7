//! Several addresses of one target share the arrivals of a schedule; each is a stream of its own.

use tokencanary::app::{Extent, Outputs};
use tokencanary::config::{Arrivals, Balance, BaseUrl, WhenFull};
use tokencanary::measurement::{ConnectionPolicy, Outcome};
use tokencanary::simulator::{Profile, SimulatorConfig};

use super::{Left, World, config, ms};

/// `count` arrivals, ten a second, over `hosts`; three tokens in 3 ms.
async fn spread(hosts: &[&str], balance: Balance, count: u64) -> Left {
    let mut config = config(Arrivals::Constant { rate: 10.0 }, WhenFull::Refuse, 8);
    let url = |host: &&str| BaseUrl::parse(&format!("http://{host}")).expect("good");
    config.targets[0].urls = hosts.iter().map(url).collect();
    config.targets[0].balance = balance;
    World {
        simulator: SimulatorConfig::new(Profile::fixed(ms(1), ms(1))),
        faults: Vec::new(),
        config,
        extent: Extent {
            count: Some(count),
            ..Extent::default()
        },
        outputs: Outputs::default(),
    }
    .run()
    .await
}

/// Endpoint, arrivals and `ok` records of each stream.
fn shares(left: &Left) -> Vec<(String, u64, u64)> {
    let live = left.live.lock().expect("not poisoned");
    let share = |stream: &tokencanary::aggregate::StreamLive| {
        let totals = stream.totals();
        (
            stream.stream().endpoint.to_string(),
            totals.arrivals(),
            totals.by_outcome(Outcome::Ok),
        )
    };
    live.streams().iter().map(share).collect()
}

#[tokio::test(start_paused = true)]
async fn one_schedule_goes_round_and_windows_close_for_every_address() {
    let left = spread(&["a", "b", "c"], Balance::RoundRobin, 60).await;
    let share = |host: &str| (format!("http://{host}:80"), 20, 20);
    assert_eq!(shares(&left), [share("a"), share("b"), share("c")]);
    let hosts: Vec<String> = left
        .records()
        .iter()
        .take(4)
        .map(|record| record.stream.endpoint.to_string())
        .collect();
    assert_eq!(
        hosts,
        ["http://a:80", "http://b:80", "http://c:80", "http://a:80"]
    );
    let live = left.live.lock().expect("not poisoned");
    for stream in live.streams() {
        for windows in stream.windows() {
            assert_eq!((windows.late(), windows.incomplete()), (0, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn random_choice_reaches_every_address_and_loses_nothing() {
    let shares = shares(&spread(&["a", "b"], Balance::Random, 100).await);
    let total: u64 = shares.iter().map(|(_, arrivals, _)| arrivals).sum();
    assert_eq!(total, 100);
    for (host, arrivals, _) in shares {
        // Outside in one of ten thousand seeds; the seed is fixed.
        assert!((30..=70).contains(&arrivals), "{host}: {arrivals}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_holds_a_request_gets_no_other_while_one_is_free() {
    let left = spread(&["stuck", "free"], Balance::LeastInFlight, 50).await;
    assert_eq!(
        shares(&left),
        [
            ("http://stuck:80".to_owned(), 1, 0),
            ("http://free:80".to_owned(), 49, 49)
        ],
        "the limit for connecting is 5 s, and so long are 50 arrivals"
    );
}

#[tokio::test(start_paused = true)]
async fn each_place_of_a_closed_loop_keeps_a_connection() {
    let mut config = config(Arrivals::Closed { concurrency: 3 }, WhenFull::Wait, 3);
    config.probes[0].connection = ConnectionPolicy::PerSession;
    let left = World {
        simulator: SimulatorConfig::new(Profile::fixed(ms(1), ms(1))),
        faults: Vec::new(),
        config,
        extent: Extent {
            count: Some(30),
            ..Extent::default()
        },
        outputs: Outputs::default(),
    }
    .run()
    .await;
    let records = left.records();
    let opened = records.iter().filter(|one| one.reused == Some(false));
    assert_eq!((records.len(), opened.count()), (30, 3));
}
