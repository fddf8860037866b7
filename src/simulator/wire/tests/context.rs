//! What stands around the engine: gateways, other users, other models, and the exporters' pages.

use super::*;
use crate::simulator::FaultKind;

fn inject(rig: &Rig, kind: FaultKind, from: u64, until: u64) {
    let injected = rig.simulator.inject(Fault {
        kind,
        from: MonoTime::ZERO + ms(from),
        lasts: ms(until - from),
    });
    injected.expect("there is room for a fault");
}

fn instants(peer: &Peer) -> Vec<u64> {
    peer.writes().iter().map(|(at, _)| *at).collect()
}

/// The value of the series that begins like this.
fn value(page: &str, series: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(series));
    let line = line.unwrap_or_else(|| panic!("no `{series}` in {page}"));
    let (_, value) = line.rsplit_once(' ').expect("series and value");
    value.parse().expect("a number")
}

#[tokio::test(start_paused = true)]
async fn a_slow_gateway_is_not_in_the_servers_own_times() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(5)));
    inject(&rig, FaultKind::GatewayDelay { delay: ms(200) }, 0, 100);
    let mut peer = rig.connect();
    peer.say(&streamed(3)).await;
    rig.until(1000).await;
    assert_eq!(instants(&peer), [200, 210, 210, 215, 220, 220, 220]);
    let page = rig.ask(&get("/metrics")).await;
    let sum = value(&page, "vllm:time_to_first_token_seconds_sum");
    assert!((sum - 0.01).abs() < 1e-12, "{sum}");
    let mut left = rig.connect();
    inject(&rig, FaultKind::GatewayDelay { delay: ms(500) }, 1000, 1100);
    left.say(&streamed(3)).await;
    settle().await;
    drop(left);
    rig.until(2000).await;
    assert_eq!(rig.simulator.times().len(), 1, "who left never arrived");
}

#[tokio::test(start_paused = true)]
async fn a_buffering_proxy_gives_all_at_the_end() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    let plain = {
        let mut peer = rig.connect();
        peer.say(&streamed(4)).await;
        rig.until(500).await;
        peer.text()
    };
    inject(&rig, FaultKind::Buffer, 500, 600);
    let mut peer = rig.connect();
    peer.say(&streamed(4)).await;
    peer.say(&get("/health")).await;
    rig.until(1000).await;
    assert_eq!(instants(&peer), [540, 540]);
    let frames = |text: &str| text.matches("data: ").count();
    assert_eq!(frames(&peer.writes()[0].1), frames(&plain));
    assert!(
        peer.writes()[0]
            .1
            .ends_with("data: [DONE]\n\n\r\n0\r\n\r\n")
    );
}

#[tokio::test(start_paused = true)]
async fn the_frontend_lets_in_so_many_and_nobody_counts_the_others() {
    let rig = Rig::new(Profile::fixed(ms(100), ms(10)));
    inject(&rig, FaultKind::FrontendLimit { requests: 1 }, 0, 150);
    let mut peers = Vec::new();
    for _ in 0..4 {
        let mut peer = rig.connect();
        peer.say(&streamed(1)).await;
        settle().await;
        peers.push(peer);
    }
    let page = rig.ask(&get("/metrics")).await;
    assert!((value(&page, "vllm:num_requests_running") - 1.0).abs() < 1e-12);
    assert!(value(&page, "vllm:num_requests_waiting").abs() < 1e-12);
    // The third leaves; the second goes in when the first is done; the fourth when the limit is
    // over.
    drop(peers.remove(2));
    rig.until(1000).await;
    let first: Vec<u64> = peers.iter().map(|peer| instants(peer)[0]).collect();
    assert_eq!(first, [0, 100, 150]);
    let last: Vec<u64> = peers.iter().filter_map(|p| instants(p).pop()).collect();
    assert_eq!(last, [100, 200, 250]);
    let page = rig.ask(&get("/metrics")).await;
    let queue = value(&page, "vllm:request_queue_time_seconds_sum");
    assert!(queue.abs() < 1e-12, "{queue}");
}

#[tokio::test(start_paused = true)]
async fn requests_of_others_fill_the_engine_and_its_page() {
    let rig = Rig::new(Profile {
        max_running: 2,
        ..Profile::fixed(ms(100), ms(10))
    });
    inject(
        &rig,
        FaultKind::Load {
            rate: 20.0,
            input_tokens: 50,
            output_tokens: 11,
        },
        1_000,
        11_000,
    );
    rig.until(900).await;
    assert_eq!(rig.simulator.state().running, 0);
    rig.until(10_000).await;
    // Each takes 200 ms, so that 10 a second are served: about 90 of 180.
    let state = rig.simulator.state();
    assert!(state.running == 2 && state.waiting > 50, "{state:?}");
    let mut peer = rig.connect();
    peer.say(&streamed(1)).await;
    rig.until(60_000).await;
    let first = instants(&peer)[1];
    assert!(first > 14_000, "it waited behind the others, till {first}");
    let page = rig.ask(&get("/metrics")).await;
    let done = value(&page, "vllm:e2e_request_latency_seconds_count");
    assert!((160.0..240.0).contains(&done), "{done}");
    assert_eq!(rig.simulator.times().len(), 1, "they are not ours");
    let long = post(
        "/sim/faults",
        r#"{"fault":"load","rate":1,"input_tokens":131072,"output_tokens":1,"for":"1s"}"#,
    );
    let refused = rig.ask(&long).await;
    assert!(refused.contains("wanted at most 131072"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn another_model_is_served_for_a_while() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    let change = FaultKind::ModelChange {
        model: Some("sim/canary-0.6b-fp8".to_owned()),
        version: Some("0.12.0".to_owned()),
        factor: 2.0,
    };
    inject(&rig, change, 1_000, 2_000);
    let seen = async || {
        let models = rig.ask(&get("/v1/models")).await.contains("0.6b-fp8");
        let version = rig.ask(&get("/version")).await.contains("0.12.0");
        let page = rig.ask(&get("/metrics")).await;
        (
            models,
            version,
            page.contains("model_name=\"sim/canary-0.6b-fp8\""),
        )
    };
    assert_eq!(seen().await, (false, false, false));
    rig.until(1_000).await;
    assert_eq!(seen().await, (true, true, true));
    // The old name is still served, by the new model.
    let mut peer = rig.connect();
    peer.say(&streamed(2)).await;
    rig.until(1_500).await;
    assert_eq!(instants(&peer), [1_000, 1_020, 1_020, 1_040, 1_040, 1_040]);
    assert!(peer.text().contains(r#""model":"sim/canary-0.6b-fp8""#));
    rig.until(2_000).await;
    assert_eq!(seen().await, (false, false, false));
}

fn rig_of(gpus: u32) -> Rig {
    Rig::with(SimulatorConfig {
        hardware: Hardware { gpus },
        ..SimulatorConfig::new(Profile::fixed(ms(10), ms(10)))
    })
}

/// The value of a field of the server's GPU with this number.
fn gpu(page: &str, field: &str, index: u32) -> f64 {
    value(page, &format!("{field}{{gpu=\"{index}\""))
}

#[tokio::test(start_paused = true)]
async fn the_gpus_of_the_page_do_what_the_engine_does() {
    let rig = rig_of(2);
    rig.until(2_000).await;
    let idle = rig.ask(&get("/dcgm/metrics")).await;
    let mut peer = rig.connect();
    peer.say(&streamed(1_000)).await;
    inject(&rig, FaultKind::Throttle { factor: 2.0 }, 4_000, 6_000);
    inject(&rig, FaultKind::Xid { code: 48 }, 7_000, 7_500);
    rig.until(4_000).await;
    let busy = rig.ask(&get("/dcgm/metrics")).await;
    rig.until(6_000 - 1).await;
    let hot = rig.ask(&get("/dcgm/metrics")).await;
    rig.until(9_000).await;
    let failed = rig.ask(&get("/dcgm/metrics")).await;
    let of = |page: &str, field: &str| gpu(page, field, 1);
    assert!(of(&idle, "DCGM_FI_DEV_GPU_UTIL").abs() < 1e-9);
    assert!((of(&busy, "DCGM_FI_DEV_GPU_UTIL") - 100.0).abs() < 1e-9);
    assert!(of(&idle, "DCGM_FI_DEV_POWER_USAGE") + 200.0 < of(&busy, "DCGM_FI_DEV_POWER_USAGE"));
    let energy = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION";
    let joules = (of(&busy, energy) - of(&idle, energy)) / 1e3;
    // Two seconds at this power, in which it was busy but for the idle state before.
    let watts = of(&busy, "DCGM_FI_DEV_POWER_USAGE");
    assert!(
        (joules - 2.0 * watts).abs() < 15.0,
        "{joules} J at {watts} W"
    );
    assert!((of(&hot, "DCGM_FI_DEV_SM_CLOCK") - 990.0).abs() < 1e-9);
    assert!((of(&hot, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS") - 96.0).abs() < 1e-9);
    let heat = of(&failed, "DCGM_FI_DEV_THERMAL_VIOLATION");
    assert!(
        (heat - 2e9).abs() < 1e3,
        "two seconds in nanoseconds: {heat}"
    );
    assert!((of(&failed, "DCGM_FI_DEV_XID_ERRORS") - 48.0).abs() < 1e-9);
    assert!(gpu(&failed, "DCGM_FI_DEV_XID_ERRORS", 0).abs() < 1e-9);
    assert!((of(&failed, "DCGM_FI_DEV_SM_CLOCK") - 1980.0).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn the_gpus_page_has_others_instances_and_blanks() {
    let rig = rig_of(2);
    let page = rig.ask(&get("/dcgm/metrics")).await;
    let rows = |field: &str| -> Vec<&str> {
        let begin = format!("{field}{{");
        page.lines()
            .filter(|line| line.starts_with(&begin))
            .collect()
    };
    assert_eq!(rows("DCGM_FI_DEV_GPU_UTIL").len(), 3, "instances have none");
    let used = rows("DCGM_FI_DEV_FB_USED");
    assert_eq!(used.len(), 5);
    let own = used
        .iter()
        .filter(|row| row.contains("pod=\"canary-sim-0\""));
    assert_eq!(own.count(), 2);
    assert!(used[3].contains("GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"1\""));
    let copies = rows("DCGM_FI_DEV_MEM_COPY_UTIL");
    assert!(copies[4].ends_with(" 9223372036854775794"), "{}", copies[4]);
    assert!(rows("DCGM_FI_PROF_DRAM_ACTIVE")[4].ends_with(" 140737488355328"));
    assert_eq!(page.matches("# TYPE DCGM_FI_").count(), 26);
}

#[tokio::test(start_paused = true)]
async fn one_full_gpu_stands_out() {
    let rig = rig_of(4);
    inject(&rig, FaultKind::GpuFull { factor: 4.0 }, 0, 5_000);
    let mut peer = rig.connect();
    peer.say(&streamed(500)).await;
    rig.until(3_000).await;
    let page = rig.ask(&get("/dcgm/metrics")).await;
    let busy: Vec<f64> = (0..4)
        .map(|n| gpu(&page, "DCGM_FI_DEV_GPU_UTIL", n))
        .collect();
    assert_eq!(busy, [100.0, 25.0, 25.0, 25.0]);
    let free: Vec<f64> = (0..2)
        .map(|n| gpu(&page, "DCGM_FI_DEV_FB_FREE", n))
        .collect();
    assert!(free[0] < 10.0 && free[1] > 1_000.0, "{free:?}");
}

#[tokio::test(start_paused = true)]
async fn a_host_under_pressure_shows_on_the_nodes_page_and_the_servers() {
    let rig = rig_of(1);
    inject(
        &rig,
        FaultKind::HostPressure { factor: 2.0 },
        10_000,
        20_000,
    );
    rig.until(9_999).await;
    let calm = rig.ask(&get("/node/metrics")).await;
    rig.until(19_000).await;
    let mut peer = rig.connect();
    peer.say(&streamed(2)).await;
    rig.until(20_000).await;
    assert_eq!(instants(&peer)[1..4], [19_020, 19_020, 19_040]);
    let pressed = rig.ask(&get("/node/metrics")).await;
    let grew = |series: &str| value(&pressed, series) - value(&calm, series);
    assert!(grew("node_pressure_cpu_waiting_seconds_total") > 5.0);
    assert!(grew("container_cpu_cfs_throttled_seconds_total") > 5.0);
    assert!(grew("node_cpu_seconds_total{cpu=\"3\",mode=\"idle\"}") < 1.0);
    assert!(value(&pressed, "node_load1") > 2.0 * value(&calm, "node_load1"));
    let page = rig.ask(&get("/metrics")).await;
    let cpu = value(&page, "process_cpu_seconds_total");
    assert!(cpu > 1.0 && cpu < 20.0, "{cpu}");
}
