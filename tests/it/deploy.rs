//! What is in `deploy/`: that it can be read by those it is for, and that its parts fit together.
//!
//! Kubernetes' own objects are read with its types; those of the Prometheus operator with types of
//! our own that take no unknown field. What only `promtool` and `amtool` can say is in `real`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Secret, Service};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokencanary::config::{Format, PodInfoConfig, from_text};
use tokencanary::export::rules::ALERTS;

use crate::program::{blessing, scratch, tell, tokencanary};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn text(path: impl AsRef<Path>) -> String {
    let path = deploy().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("it is YAML")
}

/// The objects of a file, by kind.
fn objects(text: &str) -> BTreeMap<String, Value> {
    let all = text
        .split("\n---\n")
        .map(|part| part.trim_start_matches("---\n"));
    let all = all.filter(|part| {
        part.lines()
            .any(|line| !line.starts_with('#') && !line.is_empty())
    });
    all.map(|part| {
        let object = yaml(part);
        (object["kind"].as_str().expect("a kind").to_owned(), object)
    })
    .collect()
}

/// `object` as `T`, which keeps all of it.
fn typed<T: DeserializeOwned + Serialize>(object: &Value) -> T {
    let typed: T = serde_json::from_value(object.clone()).expect("it is one");
    let back = serde_json::to_value(&typed).expect("it is plain");
    assert_eq!(&back, object, "a field is not known");
    typed
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ServiceMonitor {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: MonitorSpec,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
    labels: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MonitorSpec {
    selector: Selector,
    endpoints: Vec<Scraped>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Scraped {
    port: String,
    interval: String,
    honor_labels: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PrometheusRule {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: RuleSpec,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleSpec {
    groups: Vec<RuleGroup>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleGroup {
    name: String,
    interval: String,
    rules: Vec<RuleOf>,
}

/// The fields that the operator's definition knows.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleOf {
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alert: Option<String>,
    expr: String,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    hold: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<BTreeMap<String, String>>,
}

/// What `generate kubernetes` prints for the sample.
fn generated(arguments: &[&str]) -> String {
    let output = tokencanary()
        .args(["generate", "kubernetes", "-c"])
        .arg(deploy().join("kubernetes/canary.yaml"))
        .args(arguments)
        .env("VLLM_API_KEY", "not written anywhere")
        .output()
        .expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!told.contains("not written anywhere"));
    told
}

const HEAD: &str = "# Made by: VLLM_API_KEY=any tokencanary generate kubernetes -c deploy/kubernetes/canary.yaml \\\n#   --name vllm-canary --sidecar-of app=vllm\n";

#[test]
fn the_generated_objects_are_up_to_date() {
    let wanted =
        HEAD.to_owned() + &generated(&["--name", "vllm-canary", "--sidecar-of", "app=vllm"]);
    let file = deploy().join("kubernetes/generated.yaml");
    if blessing() {
        fs::write(&file, &wanted).expect("the tree can be written to");
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == wanted,
        "changed; `TOKENCANARY_BLESS=1` writes it anew"
    );
}

/// Environment variables, volumes and ports that `container` names.
fn check_container(container: &Container, volumes: &BTreeSet<String>) {
    let security = container.security_context.as_ref().expect("it is hardened");
    assert_eq!(security.run_as_non_root.or(Some(true)), Some(true));
    assert_eq!(security.read_only_root_filesystem, Some(true));
    assert_eq!(security.allow_privilege_escalation, Some(false));
    for mount in container.volume_mounts.iter().flatten() {
        assert!(volumes.contains(&mount.name), "{}", mount.name);
    }
    let ports: Vec<i32> = container
        .ports
        .iter()
        .flatten()
        .map(|port| port.container_port)
        .collect();
    assert_eq!(ports, [9464]);
    let limits = container
        .resources
        .as_ref()
        .and_then(|one| one.limits.as_ref())
        .expect("it has one");
    assert!(
        limits.contains_key("memory") && !limits.contains_key("cpu"),
        "{limits:?}"
    );
}

fn volumes(deployment: &Deployment) -> BTreeSet<String> {
    let pod = deployment.spec.template.spec.as_ref();
    let volumes = pod
        .and_then(|pod| pod.volumes.as_ref())
        .expect("it has some");
    volumes.iter().map(|volume| volume.name.clone()).collect()
}

fn canary_in(deployment: &Deployment) -> Container {
    let pod = deployment.spec.template.spec.as_ref();
    let containers = &pod.expect("it has a pod").containers;
    let found = containers.iter().find(|one| one.name == "tokencanary");
    found.expect("it is there").clone()
}

/// Where the canary reads how its pod is described, that is what is there.
fn check_pod_info(deployment: &Deployment) {
    let config = yaml(&text("kubernetes/canary.yaml"));
    let dir = config["targets"][0]["pod_info"].as_str();
    let read = PodInfoConfig::at(dir.expect("it is read"));
    let canary = canary_in(deployment);
    let mut mounts = canary.volume_mounts.iter().flatten();
    let mount = mounts.find(|mount| Path::new(&mount.mount_path) == read.dir);
    let mount = mount.expect("it is mounted");
    assert_eq!(mount.sub_path, None, "it would never change");
    let pod = deployment.spec.template.spec.as_ref().expect("a pod");
    let mut volumes = pod.volumes.iter().flatten();
    let volume = volumes.find(|volume| volume.name == mount.name);
    let source = volume.and_then(|volume| volume.downward_api.as_ref());
    let items = source.and_then(|source| source.items.as_ref());
    let files: Vec<(&str, &str)> = items
        .into_iter()
        .flatten()
        .map(|file| {
            let field = file.field_ref.as_ref().expect("a field of the pod");
            (&*file.path, &*field.field_path)
        })
        .collect();
    let expected = ["name", "uid", "labels", "annotations"];
    let fields = [
        "metadata.name",
        "metadata.uid",
        "metadata.labels",
        "metadata.annotations",
    ];
    assert_eq!(files, expected.into_iter().zip(fields).collect::<Vec<_>>());
    let labels = deployment.spec.template.metadata.as_ref();
    let labels = labels.and_then(|one| one.labels.as_ref()).expect("some");
    assert!(labels.keys().any(|key| read.names_image(key)), "{labels:?}");
}

/// That the canary may see the processes of the server beside it.
fn check_sight(deployment: &Deployment) {
    let pod = deployment
        .spec
        .template
        .spec
        .as_ref()
        .expect("it has a pod");
    assert_eq!(pod.share_process_namespace, Some(true));
    let of_pod = pod.security_context.as_ref().expect("one for all");
    assert_eq!(of_pod.run_as_non_root, Some(true));
    let all = (of_pod.run_as_user, of_pod.run_as_group);
    assert!(all.0 > Some(0) && all.1 > Some(0), "{all:?}");
    for container in &pod.containers {
        let own = container.security_context.as_ref();
        let user = own.and_then(|own| own.run_as_user).or(all.0);
        let group = own.and_then(|own| own.run_as_group).or(all.1);
        assert_eq!((user, group), all, "{}", container.name);
        let added = own.and_then(|own| own.capabilities.as_ref()?.add.as_ref());
        assert_eq!(added, None, "{}", container.name);
    }
}

#[test]
fn the_sidecar_and_the_generated_objects_fit_together() {
    let by_hand = objects(&text("kubernetes/vllm-with-canary.yaml"));
    let made = objects(&text("kubernetes/generated.yaml"));
    let kinds: Vec<&String> = made.keys().collect();
    assert_eq!(
        kinds,
        ["ConfigMap", "PrometheusRule", "Service", "ServiceMonitor"]
    );

    let deployment: Deployment = typed(&by_hand["Deployment"]);
    let secret: Secret = typed(&by_hand["Secret"]);
    let map: ConfigMap = typed(&made["ConfigMap"]);
    let service: Service = typed(&made["Service"]);
    let monitor: ServiceMonitor = typed(&made["ServiceMonitor"]);
    let rules: PrometheusRule = typed(&made["PrometheusRule"]);

    check_container(&canary_in(&deployment), &volumes(&deployment));
    check_pod_info(&deployment);
    check_sight(&deployment);
    let config = map
        .data
        .as_ref()
        .and_then(|data| data.get("canary.yaml"))
        .expect("its name");
    assert_eq!(config, &text("kubernetes/canary.yaml"));
    let keys: Vec<&String> = secret
        .string_data
        .as_ref()
        .expect("it has some")
        .keys()
        .collect();
    assert_eq!(keys, ["VLLM_API_KEY"]);
    assert!(config.contains("{ env: VLLM_API_KEY }"));

    let labels = deployment.spec.template.metadata.as_ref();
    let labels = labels
        .and_then(|one| one.labels.as_ref())
        .expect("it has some");
    let spec = service.spec.expect("it has one");
    for (label, value) in spec.selector.expect("it selects") {
        assert_eq!(labels.get(&label), Some(&value), "{label}");
    }
    let port = &spec.ports.expect("it has one")[0];
    assert_eq!(port.name.as_deref(), Some(&*monitor.spec.endpoints[0].port));
    assert_eq!(port.port, 9464);
    assert!(
        monitor.spec.endpoints[0].honor_labels,
        "our label `endpoint` must stay"
    );
    let service_labels = service.metadata.labels.expect("it has some");
    for (label, value) in monitor.spec.selector.match_labels {
        assert_eq!(service_labels.get(&label), Some(&value), "{label}");
    }
    let alerts: Vec<&str> = rules
        .spec
        .groups
        .iter()
        .flat_map(|group| &group.rules)
        .filter_map(|rule| rule.alert.as_deref())
        .collect();
    assert!(
        alerts.contains(&"TokencanaryStreamMissing"),
        "made from the configuration"
    );
}

#[test]
fn a_canary_of_its_own_has_a_deployment() {
    let made = objects(&generated(&[
        "--namespace",
        "watch",
        "--image",
        "registry/canary:1",
    ]));
    let deployment: Deployment = typed(&made["Deployment"]);
    let canary = canary_in(&deployment);
    check_container(&canary, &volumes(&deployment));
    assert_eq!(canary.image.as_deref(), Some("registry/canary:1"));
    assert_eq!(
        canary.args.as_deref(),
        Some(&["run", "-c", "/etc/tokencanary/canary.yaml"].map(str::to_owned)[..])
    );
    let service: Service = typed(&made["Service"]);
    let spec = deployment.spec;
    assert_eq!(
        spec.selector.match_labels,
        service.spec.and_then(|spec| spec.selector)
    );
    assert_eq!(spec.replicas, Some(1));
    for object in made.values() {
        assert_eq!(object["metadata"]["namespace"], "watch");
    }
}

#[test]
fn a_canary_that_nobody_can_reach_is_refused() {
    let output = tokencanary()
        .args(["generate", "kubernetes", "-c", "config/minimal.yaml"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("export.http.listen: `127.0.0.1:9464`"),
        "{told}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn compose_mounts_what_is_there_and_runs_what_is_built() {
    let compose = yaml(&text("compose/compose.yaml"));
    let folder = deploy().join("compose");
    let named = compose["volumes"].as_object().expect("it has some");
    let mut mounted = 0;
    for (name, service) in compose["services"].as_object().expect("it has some") {
        let image = service["image"].as_str().expect("an image");
        assert!(image.contains(':'), "{name}: {image} has no version");
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let volume = volume.as_str().expect("a text");
            let (from, _) = volume.split_once(':').expect("a place");
            let there = named.contains_key(from) || folder.join(from).exists();
            assert!(there, "{name}: {volume}");
            mounted += 1;
        }
        for port in service["ports"].as_array().into_iter().flatten() {
            let port = port.as_str().expect("a text");
            assert!(
                port.starts_with("127.0.0.1:"),
                "{name}: {port} is open to all"
            );
        }
    }
    assert!(mounted > 8);
    let file = folder.join(
        compose["services"]["simulator"]["build"]["context"]
            .as_str()
            .expect("a text"),
    );
    let file = file.join(
        compose["services"]["simulator"]["build"]["dockerfile"]
            .as_str()
            .expect("a text"),
    );
    assert!(file.exists());
    from_text(&text("compose/canary.yaml"), Format::Yaml, "canary.yaml").expect("it is good");
    let source = yaml(&text("compose/grafana/datasources/prometheus.yaml"));
    assert_eq!(source["datasources"][0]["url"], "http://prometheus:9090");
    let provider = yaml(&text("compose/grafana/dashboards/tokencanary.yaml"));
    let path = provider["providers"][0]["options"]["path"]
        .as_str()
        .expect("a path");
    assert!(
        compose
            .to_string()
            .contains(&format!("{path}/overview.json"))
    );
}

#[test]
fn inhibitions_name_alerts_that_exist() {
    let known: BTreeSet<&str> = ALERTS.iter().map(|alert| alert.name()).collect();
    let config = text("compose/alertmanager.yml");
    let words = config.split(|one: char| !one.is_ascii_alphanumeric());
    let named: BTreeSet<&str> = words
        .filter(|word| word.starts_with("Tokencanary"))
        .collect();
    assert!(named.len() > 5, "{named:?}");
    assert!(named.is_subset(&known), "{:?}", named.difference(&known));
}

#[test]
fn the_container_file_copies_what_is_there_and_ends_without_root() {
    let file = text("Dockerfile");
    let mut stages = 0;
    let mut user = "";
    for line in file.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("FROM") => {
                stages += 1;
                user = "root";
                assert!(
                    words.next().is_some_and(|image| image.contains(':')),
                    "{line}"
                );
            }
            Some("USER") => user = words.next().expect("a name"),
            Some("COPY") if !line.contains("--from") => {
                let parts: Vec<&str> = words.collect();
                let (_, sources) = parts.split_last().expect("where to");
                for source in sources {
                    assert!(deploy().join("..").join(source).exists(), "{line}");
                }
            }
            _ => {}
        }
    }
    assert_eq!((stages, user), (2, "65532:65532"));
    // Whatever the source includes has to be in the build.
    let ignored = text("Dockerfile.dockerignore");
    for needed in [
        "!src",
        "!Cargo.lock",
        "!benches",
        "!tests",
        "!docs/configuration.md",
    ] {
        assert!(ignored.lines().any(|line| line == needed), "{needed}");
    }
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let unit = text("systemd/tokencanary.service");
    for line in [
        "DynamicUser=yes",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=",
    ] {
        assert!(unit.lines().any(|one| one == line), "{line}");
    }
    // It looks whether the binary is there.
    let folder = scratch("systemd_unit");
    let file = folder.join("tokencanary.service");
    let here = env!("CARGO_BIN_EXE_tokencanary");
    fs::write(&file, unit.replace("/usr/local/bin/tokencanary", here)).expect("the folder is ours");
    match Command::new("systemd-analyze")
        .arg("verify")
        .arg(&file)
        .output()
    {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{told}");
            assert!(!told.contains("tokencanary.service:"), "{told}");
        }
        Err(_) => tell("there is no systemd-analyze here: the unit was only read"),
    }
}
