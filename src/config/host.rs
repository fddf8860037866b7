//! Where this program runs, as its environment and a few files say: what goes into the resource
//! of OTLP unless the operator says otherwise.
//!
//! Nothing is asked over the network. What is not there is left out.

use std::collections::BTreeMap;
use std::path::Path;

use super::secret::read_text;

/// Longest file that is read here, bytes.
const LONGEST: u64 = 4096;

/// Variables by which a pod is told about itself (the downward API has no fixed names: these are
/// the usual ones), best first.
const FROM_VARIABLES: [(&str, &[&str]); 6] = [
    ("k8s.pod.name", &["K8S_POD_NAME", "POD_NAME", "MY_POD_NAME"]),
    ("k8s.pod.uid", &["K8S_POD_UID", "POD_UID", "MY_POD_UID"]),
    ("k8s.pod.ip", &["K8S_POD_IP", "POD_IP", "MY_POD_IP"]),
    (
        "k8s.namespace.name",
        &[
            "K8S_NAMESPACE_NAME",
            "K8S_NAMESPACE",
            "POD_NAMESPACE",
            "MY_POD_NAMESPACE",
        ],
    ),
    (
        "k8s.node.name",
        &["K8S_NODE_NAME", "NODE_NAME", "MY_NODE_NAME"],
    ),
    (
        "k8s.container.name",
        &["K8S_CONTAINER_NAME", "CONTAINER_NAME"],
    ),
];
/// Set by the kubelet in every container.
const IN_KUBERNETES: &str = "KUBERNETES_SERVICE_HOST";
/// Below the root of the file system.
const HOSTNAME: &str = "etc/hostname";
const NAMESPACE: &str = "var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Attributes of the host and the pod; `root` is the root of the file system.
pub(super) fn resource(
    environment: &BTreeMap<String, String>,
    root: &Path,
) -> Vec<(String, String)> {
    let set = |name: &&str| {
        let value = environment.get(*name)?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let file = |name: &str| {
        let text = read_text(root.join(name), LONGEST).ok()?;
        let line = text.trim();
        (!line.is_empty()).then(|| line.to_owned())
    };
    let mut found = Vec::new();
    let mut put = |name: &str, value: Option<String>| {
        found.extend(value.map(|value| (name.to_owned(), value)));
    };
    let host = set(&"HOSTNAME").or_else(|| file(HOSTNAME));
    put("host.name", host.clone());
    put("host.arch", Some(arch().to_owned()));
    put("os.type", Some(std::env::consts::OS.to_owned()));
    let in_kubernetes = environment.contains_key(IN_KUBERNETES);
    for (name, variables) in FROM_VARIABLES {
        let told = variables.iter().find_map(set);
        put(
            name,
            match name {
                // Without the downward API a pod still knows its name: it is the host's.
                "k8s.pod.name" => told.or_else(|| host.clone().filter(|_| in_kubernetes)),
                "k8s.namespace.name" => told.or_else(|| file(NAMESPACE)),
                // Names that also other programs use say nothing outside Kubernetes.
                _ => told.filter(|_| in_kubernetes),
            },
        );
    }
    found
}

/// The processor as the conventions call it.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn found(environment: &[(&str, &str)], root: &Path) -> BTreeMap<String, String> {
        let environment = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        resource(&environment, root).into_iter().collect()
    }

    fn root(name: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("tokencanary-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).expect("the folder is ours");
        root
    }

    #[test]
    fn a_pod_knows_itself_without_the_downward_api() {
        let root = root("host_pod");
        let folder = root.join("var/run/secrets/kubernetes.io/serviceaccount");
        fs::create_dir_all(&folder).expect("the folder is ours");
        fs::write(folder.join("namespace"), "inference").expect("the folder is ours");
        let found = found(
            &[
                ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
                ("HOSTNAME", "vllm-0"),
                ("NODE_NAME", "node-7"),
            ],
            &root,
        );
        for (name, value) in [
            ("host.name", "vllm-0"),
            ("k8s.pod.name", "vllm-0"),
            ("k8s.namespace.name", "inference"),
            ("k8s.node.name", "node-7"),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(!found.contains_key("k8s.pod.uid"));
    }

    #[test]
    fn a_host_has_its_name_from_a_file_and_no_pod() {
        let root = root("host_plain");
        fs::create_dir_all(root.join("etc")).expect("the folder is ours");
        fs::write(root.join("etc/hostname"), "gpu-3\n").expect("the folder is ours");
        let found = found(&[("HOSTNAME", " "), ("NODE_NAME", "mine")], &root);
        assert_eq!(found["host.name"], "gpu-3");
        assert!(
            !found.keys().any(|name| name.starts_with("k8s.")),
            "{found:?}"
        );
    }
}
