//! Where the state of GPUs comes from, and what is said of sections that do not fit.

use super::*;
use crate::config::{GpuConfig, GpuSelect, GpuSource, NodeSource, PodInfoConfig};

fn with(lines: &str) -> String {
    with_probe(GOOD).replace("name: a", &format!("name: a\n  gpu: {lines}"))
}

fn read(lines: &str) -> GpuConfig {
    let config = from_text(&with(lines), Format::Yaml, "c.yaml");
    let config = config.unwrap_or_else(|found| panic!("{found}"));
    config.targets[0].gpu.clone().expect("it was given")
}

#[test]
fn every_key_is_read() {
    let all = read(
        "{ dcgm: 'http://node-7:9400/metrics', pod: vllm-*, namespace: prod, host: node-7, index: [0, 3], every: 2s }",
    );
    let expected = GpuConfig {
        source: GpuSource::Exporter("http://node-7:9400/metrics".to_owned()),
        select: GpuSelect {
            pod: Some("vllm-*".to_owned()),
            namespace: Some("prod".to_owned()),
            host: Some("node-7".to_owned()),
            index: vec![0, 3],
        },
        every: Duration::from_secs(2),
    };
    assert_eq!(all, expected);
    let amd = read("{ amd: 'http://node-8:5000/metrics' }");
    assert_eq!(
        amd.source,
        GpuSource::Exporter("http://node-8:5000/metrics".to_owned())
    );
    assert_eq!(
        (amd.select, amd.every),
        (GpuSelect::default(), Duration::from_secs(10))
    );
    let nvml = read("{ nvml: true, index: [1] }");
    assert_eq!((nvml.source, nvml.select.index), (GpuSource::Nvml, vec![1]));
}

#[test]
fn the_host_of_a_target_is_a_page() {
    let with = |lines: &str| with_probe(GOOD).replace("name: a", &format!("name: a\n  {lines}"));
    let good = with("node: 'http://node-7:9100/metrics'\n  node_every: 5s");
    let config = from_text(&good, Format::Yaml, "c.yaml").unwrap_or_else(|found| panic!("{found}"));
    let target = &config.targets[0];
    let page = NodeSource::Page("http://node-7:9100/metrics".to_owned());
    assert_eq!(target.node, Some(page));
    assert_eq!(target.node_every, Duration::from_secs(5));
    let this = from_text(&with("node: this"), Format::Yaml, "c.yaml").expect("this machine");
    assert_eq!(this.targets[0].node, Some(NodeSource::This));
    let bad = from_text(&with("node: node-7"), Format::Yaml, "c.yaml").expect_err("no URL");
    assert!(
        bad.to_string().contains("http://node-7:9100/metrics"),
        "{bad}"
    );
}

#[test]
fn a_pod_is_described_in_a_directory() {
    let with = |lines: &str| with_probe(GOOD).replace("name: a", &format!("name: a\n  {lines}"));
    let read = |lines: &str| from_text(&with(lines), Format::Yaml, "c.yaml");
    let good = |lines: &str| {
        let config = read(lines).unwrap_or_else(|found| panic!("{found}"));
        config.targets[0].pod_info.clone()
    };
    let usual = PodInfoConfig::at("/etc/podinfo");
    assert_eq!(usual.image_keys[3], "app.kubernetes.io/version");
    assert_eq!(good("pod_info: /etc/podinfo"), Some(usual.clone()));
    assert_eq!(good("pod_info: { dir: /etc/podinfo }"), Some(usual));
    let own = good("pod_info: { dir: p, image_keys: [example.com/image, tag] }").expect("given");
    assert_eq!(own.image_keys, ["example.com/image", "tag"]);
    for (lines, path, wanted) in [
        ("pod_info: ''", "pod_info", "`/etc/podinfo`, or a section"),
        ("pod_info: 7", "pod_info", "`/etc/podinfo`, or a section"),
        ("pod_info: {}", "pod_info.dir", "missing"),
        (
            "pod_info: { dir: p, keys: [a] }",
            "pod_info.keys",
            "image_keys",
        ),
        (
            "pod_info: { dir: p, image_keys: [] }",
            "image_keys",
            "at least one",
        ),
        (
            "pod_info: { dir: p, image_keys: [a, a] }",
            "image_keys[1]",
            "each key once",
        ),
        (
            "pod_info: { dir: p, image_keys: [a/b/c] }",
            "image_keys[0]",
            "example.com/image",
        ),
        (
            "pod_info: { dir: p, image_keys: ['a=b'] }",
            "image_keys[0]",
            "example.com/image",
        ),
    ] {
        let found = read(lines).expect_err(lines).to_string();
        assert!(
            found.contains(path) && found.contains(wanted),
            "{lines}: {found}"
        );
    }
    let many: Vec<String> = (0..33).map(|number| format!("k{number}")).collect();
    let many = format!("pod_info: {{ dir: p, image_keys: [{}] }}", many.join(", "));
    let found = read(&many).expect_err("too many").to_string();
    assert!(
        found.contains("image_keys[32]") && found.contains("at most 32"),
        "{found}"
    );
}

#[test]
fn what_does_not_fit_is_refused_with_what_was_wanted() {
    for (lines, path, wanted) in [
        ("{}", "targets[0].gpu.dcgm", "missing"),
        ("{ pod: a }", "targets[0].gpu.dcgm", "or `nvml: true`"),
        (
            "{ dcgm: 'http://a/m', nvml: true }",
            "targets[0].gpu.nvml",
            "one of `dcgm`",
        ),
        (
            "{ dcgm: node-7 }",
            "targets[0].gpu.dcgm",
            "http://node-7:9400/metrics",
        ),
        (
            "{ dcgm: 'unix:///run/x' }",
            "targets[0].gpu.dcgm",
            "over `http` or `https`",
        ),
        ("{ nvml: false }", "targets[0].gpu.nvml", "leave `gpu` out"),
        (
            "{ nvml: true, pod: a }",
            "targets[0].gpu.pod",
            "knows no pods",
        ),
        (
            "{ nvml: true, index: [] }",
            "targets[0].gpu.index",
            "at least one",
        ),
        (
            "{ nvml: true, index: [0, 0] }",
            "targets[0].gpu.index[1]",
            "each number once",
        ),
        (
            "{ nvml: true, index: [-1] }",
            "targets[0].gpu.index[0]",
            "-1",
        ),
        (
            "{ nvml: true, every: 1ms }",
            "targets[0].gpu.every",
            "100ms",
        ),
        (
            "{ dcgm: 'http://a/m', pod: 'a*b' }",
            "targets[0].gpu.pod",
            "at its end only",
        ),
        (
            "{ dcgm: 'http://a/m', pods: a }",
            "targets[0].gpu.pods",
            "`pod`",
        ),
    ] {
        let found = from_text(&with(lines), Format::Yaml, "c.yaml").expect_err(lines);
        let text = found.to_string();
        let paths: Vec<_> = found.as_slice().iter().map(|one| &*one.path).collect();
        assert_eq!(paths, [path], "{lines}: {text}");
        assert!(text.contains(wanted), "{lines}: {wanted} in {text}");
    }
}
