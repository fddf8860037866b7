//! What is provoked, and how.

use std::time::Duration;

use tokencanary::analysis::Cause;
use tokencanary::clock::MonoTime;
use tokencanary::simulator::{Fault, FaultKind, Profile};

/// One provocation, or a near miss.
pub(super) struct Scene {
    pub(super) name: &'static str,
    /// What has to be found; `None`: nothing may be.
    pub(super) cause: Option<Cause>,
    /// What may be found beside it, since it follows.
    with: &'static [Cause],
    pub(super) config: String,
    pub(super) profile: Profile,
    /// What holds all the time.
    always: Vec<FaultKind>,
    /// What begins when the healthy time is over.
    then: Vec<FaultKind>,
    /// Then nothing of this machine runs now and then.
    pub(super) stalls: Option<Stalls>,
}

/// A machine that is set aside again and again, with all that runs on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stalls {
    /// From the end of one to the beginning of the next.
    pub(super) apart: Duration,
    pub(super) lasts: Duration,
}

/// A probe of the simulated server: when it asks, what, and what else is said of it.
struct Probe {
    arrivals: &'static str,
    workload: &'static str,
    more: &'static str,
}

impl Probe {
    fn yaml(&self) -> String {
        let Self {
            arrivals,
            workload,
            more,
        } = self;
        format!(
            "targets: [{{ name: sim, url: 'http://sim', model: sim/canary-0.6b }}]
probes:
  - name: chat
    targets: [sim]
    when_full: wait
    arrivals: {{ {arrivals} }}
    workload: {{ {workload} }}
    limits: {{ first_token: 10s, total: 60s }}
    {more}
governor: {{ in_flight: 1000 }}
"
        )
    }
}

/// Two short questions a second.
const CHAT: Probe = Probe {
    arrivals: "process: poisson, rate: 2/s",
    workload: "synthetic: { input_tokens: 128, output_tokens: 16 }",
    more: "",
};
/// Longer ones with limits of objectives.
const LIMITED: Probe = Probe {
    arrivals: "process: constant, rate: 1/s",
    workload: "synthetic: { input_tokens: 256, output_tokens: 32 }",
    more: "slo: { ttft: 300ms at p95, itl: 6ms at p95 }",
};
/// Questions that begin alike.
const SHARED: Probe = Probe {
    workload: "synthetic: { input_tokens: 1024, output_tokens: 16 }, cache: warm",
    ..CHAT
};
/// More questions than one at a time can be answered.
const BUSY: Probe = Probe {
    arrivals: "process: poisson, rate: 8/s",
    ..CHAT
};

const fn load(rate: f64, input_tokens: u32, output_tokens: u32) -> FaultKind {
    FaultKind::Load {
        rate,
        input_tokens,
        output_tokens,
    }
}

impl Scene {
    fn new(name: &'static str, cause: Option<Cause>, then: FaultKind) -> Self {
        Self {
            name,
            cause,
            with: &[],
            config: CHAT.yaml(),
            profile: Profile::demo(),
            always: Vec::new(),
            then: vec![then],
            stalls: None,
        }
    }

    fn of(cause: Cause, then: FaultKind) -> Self {
        Self::new(cause.name(), Some(cause), then)
    }

    fn near(name: &'static str, then: FaultKind) -> Self {
        Self::new(name, None, then)
    }

    fn with(mut self, causes: &'static [Cause]) -> Self {
        self.with = causes;
        self
    }

    fn probe(mut self, probe: &Probe) -> Self {
        self.config = probe.yaml();
        self
    }

    fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    fn always(mut self, kind: FaultKind) -> Self {
        self.always.push(kind);
        self
    }

    fn stalls(mut self, apart: Duration, lasts: Duration) -> Self {
        self.stalls = Some(Stalls { apart, lasts });
        self
    }

    pub(super) fn allows(&self, cause: Cause) -> bool {
        self.cause == Some(cause) || self.with.contains(&cause)
    }

    /// Its faults, if the healthy time ends after `well`.
    pub(super) fn faults(&self, well: Duration) -> Vec<Fault> {
        let fault = |kind: &FaultKind, from| Fault {
            kind: kind.clone(),
            from,
            lasts: Duration::from_hours(1),
        };
        let always = self.always.iter().map(|kind| fault(kind, MonoTime::ZERO));
        let then = self
            .then
            .iter()
            .map(|kind| fault(kind, MonoTime::ZERO + well));
        always.chain(then).collect()
    }
}

/// An engine of few places.
fn narrow() -> Profile {
    Profile {
        max_running: 8,
        ..Profile::demo()
    }
}

/// What is wrong in the engine, and a near miss of each.
pub(super) fn inside() -> Vec<Scene> {
    let none = FaultKind::SlowPrefill { factor: 1.0 };
    let long = load(4.0, 1000, 200);
    let growing = load(6.0, 50, 400);
    vec![
        Scene::of(Cause::Queueing, load(20.0, 100, 50))
            .with(&[Cause::DecodeBound])
            .profile(narrow()),
        Scene::near("a few more users", load(1.0, 100, 20)).profile(narrow()),
        Scene::of(Cause::KvCachePressure, FaultKind::ShrinkKv { share: 0.12 })
            .with(&[Cause::Preemption])
            .always(long.clone()),
        Scene::near("a smaller cache", FaultKind::ShrinkKv { share: 0.8 }).always(long),
        Scene::of(Cause::NoRoomForCache, none.clone())
            .with(&[Cause::Preemption])
            .probe(&LIMITED)
            .profile(Profile {
                kv_blocks: 100,
                ..Profile::demo()
            })
            .always(load(2.2, 400, 100)),
        Scene::of(Cause::Preemption, FaultKind::ShrinkKv { share: 0.14 })
            .with(&[Cause::KvCachePressure])
            .always(growing),
        Scene::near("room to grow", FaultKind::ShrinkKv { share: 0.6 }).always(load(2.0, 50, 400)),
        Scene::of(Cause::PrefillBound, FaultKind::SlowPrefill { factor: 2.5 }),
        Scene::near(
            "a little slower prefill",
            FaultKind::SlowPrefill { factor: 1.05 },
        ),
        Scene::of(Cause::DecodeBound, FaultKind::SlowDecode { factor: 2.0 }),
        Scene::near(
            "a little slower decode",
            FaultKind::SlowDecode { factor: 1.05 },
        ),
        Scene::of(Cause::SlowAlone, none.clone()).probe(&LIMITED),
        Scene::near("nothing at all", none),
        Scene::of(Cause::PrefixCacheLoss, FaultKind::FlushPrefixCache)
            .with(&[Cause::PrefillBound])
            .probe(&SHARED),
        Scene::near("a cache that is not used", FaultKind::FlushPrefixCache),
    ]
}

/// What is wrong around it, and a near miss of each.
pub(super) fn around() -> Vec<Scene> {
    let ms = Duration::from_millis;
    let users = load(3.0, 200, 60);
    let none = FaultKind::SlowPrefill { factor: 1.0 };
    vec![
        Scene::of(Cause::GpuThrottled, FaultKind::Throttle { factor: 1.6 }).always(users.clone()),
        Scene::near("a little throttled", FaultKind::Throttle { factor: 1.03 })
            .always(users.clone()),
        Scene::of(Cause::GpuError, FaultKind::Xid { code: 79 }).always(users.clone()),
        Scene::of(Cause::GpuImbalance, FaultKind::GpuFull { factor: 1.8 }).always(users.clone()),
        Scene::of(Cause::HostBound, FaultKind::HostStall { factor: 3.0 }).always(users.clone()),
        Scene::of(Cause::ServerHost, FaultKind::HostPressure { factor: 2.0 })
            .with(&[Cause::HostBound])
            .always(users.clone()),
        Scene::near("a little late host", FaultKind::HostStall { factor: 1.05 }).always(users),
        Scene::of(Cause::Network, FaultKind::GatewayDelay { delay: ms(200) }),
        Scene::near("a short way", FaultKind::GatewayDelay { delay: ms(5) }),
        Scene::of(Cause::BufferingProxy, FaultKind::Buffer),
        Scene::of(Cause::HungEngine, FaultKind::Hang),
        Scene::of(
            Cause::ModelChange,
            FaultKind::ModelChange {
                model: Some("other".to_owned()),
                version: Some("9.9.9".to_owned()),
                factor: 2.0,
            },
        ),
        Scene::near(
            "another model as fast",
            FaultKind::ModelChange {
                model: Some("other".to_owned()),
                version: None,
                factor: 1.0,
            },
        ),
        Scene::of(
            Cause::FrontendBound,
            FaultKind::FrontendLimit { requests: 1 },
        )
        .probe(&BUSY),
        Scene::near(
            "a limit that is wide",
            FaultKind::FrontendLimit { requests: 50 },
        )
        .probe(&BUSY),
        // A fifth of the time.
        Scene::of(Cause::OwnClient, none.clone()).stalls(ms(600), ms(150)),
        Scene::near("a machine of short breath", none.clone()).stalls(ms(200), ms(4)),
        Scene::near("a machine that rarely stands", none).stalls(ms(20_000), ms(150)),
    ]
}
