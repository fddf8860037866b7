//! Objects for Kubernetes: what runs the canary, what scrapes it, and its rules.
//!
//! Text only, as JSON values that are written as YAML. The service monitor and the rules are
//! those of the Prometheus operator. Tests read them with the types of Kubernetes itself.

use serde_json::{Value, json};

use super::rules::RuleFile;

/// The user and group it runs as: nobody's in particular, and not root.
const USER: u32 = 65_532;

/// Where the configuration is in the container.
const FOLDER: &str = "/etc/tokencanary";

/// What the objects are about.
#[derive(Debug, Clone, PartialEq)]
pub struct Installation {
    /// Name of all objects.
    pub name: String,
    /// Their namespace; absent: that of whoever applies them.
    pub namespace: Option<String>,
    /// Name of the configuration file and its text.
    pub file: (String, String),
    /// Port that the canary listens on.
    pub port: u16,
    /// How it runs.
    pub form: Running,
}

/// How the canary runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Running {
    /// In a pod of its own, from this image.
    Alone(String),
    /// In pods that others describe, which have this label.
    Beside(String, String),
}

/// All objects, in the order in which they are applied.
#[must_use]
pub fn objects(installation: &Installation, rules: &RuleFile) -> Vec<Value> {
    let mut objects = vec![config_map(installation)];
    if let Running::Alone(image) = &installation.form {
        objects.push(deployment(installation, image));
    }
    objects.push(service(installation));
    objects.push(service_monitor(installation));
    objects.push(prometheus_rule(installation, rules));
    objects
}

fn object(installation: &Installation, kind: [&str; 2], spec: (&str, Value)) -> Value {
    let [api, kind] = kind;
    let mut metadata = json!({
        "name": installation.name,
        "labels": { "app.kubernetes.io/name": "tokencanary" },
    });
    if let Some(namespace) = &installation.namespace {
        metadata["namespace"] = json!(namespace);
    }
    let (key, value) = spec;
    json!({ "apiVersion": api, "kind": kind, "metadata": metadata, key: value })
}

fn config_map(installation: &Installation) -> Value {
    let (name, text) = &installation.file;
    object(
        installation,
        ["v1", "ConfigMap"],
        ("data", json!({ name: text })),
    )
}

/// Labels of the pods in which the canary runs.
fn selector(installation: &Installation) -> Value {
    match &installation.form {
        Running::Alone(_) => json!({
            "app.kubernetes.io/name": "tokencanary",
            "app.kubernetes.io/instance": installation.name,
        }),
        Running::Beside(label, value) => json!({ label: value }),
    }
}

fn deployment(installation: &Installation, image: &str) -> Value {
    let labels = selector(installation);
    let name = &installation.name;
    let spec = json!({
        "replicas": 1,
        // Two at once would send twice the load and use up a budget each.
        "strategy": { "type": "Recreate" },
        "selector": { "matchLabels": labels },
        "template": {
            "metadata": { "labels": labels },
            "spec": {
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 30,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [container(installation, image)],
                "volumes": [{ "name": "config", "configMap": { "name": name } }],
            },
        },
    });
    object(installation, ["apps/v1", "Deployment"], ("spec", spec))
}

fn container(installation: &Installation, image: &str) -> Value {
    let probe = |path: &str, period: u32| {
        json!({
            "httpGet": { "path": path, "port": "metrics" },
            "periodSeconds": period,
        })
    };
    json!({
        "name": "tokencanary",
        "image": image,
        "args": ["run", "-c", format!("{FOLDER}/{}", installation.file.0)],
        // Secrets of the configuration: `api_key: { env: NAME }`.
        "envFrom": [{ "secretRef": { "name": installation.name, "optional": true } }],
        "ports": [{ "name": "metrics", "containerPort": installation.port }],
        "livenessProbe": probe("/healthz", 20),
        "readinessProbe": probe("/readyz", 5),
        "resources": {
            // The measuring thread must not be throttled: no limit on the processor.
            "requests": { "cpu": "100m", "memory": "64Mi" },
            "limits": { "memory": "128Mi" },
        },
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
        "volumeMounts": [{ "name": "config", "mountPath": FOLDER, "readOnly": true }],
    })
}

fn service(installation: &Installation) -> Value {
    let spec = json!({
        "selector": selector(installation),
        "ports": [{ "name": "metrics", "port": installation.port, "targetPort": installation.port }],
    });
    object(installation, ["v1", "Service"], ("spec", spec))
}

fn service_monitor(installation: &Installation) -> Value {
    let spec = json!({
        "selector": { "matchLabels": { "app.kubernetes.io/name": "tokencanary" } },
        "endpoints": [{
            "port": "metrics",
            "interval": "15s",
            // Our series have a label `endpoint`, the address that is tested. Without this the
            // operator's own label of that name, the port, would push it aside.
            "honorLabels": true,
        }],
    });
    let kind = ["monitoring.coreos.com/v1", "ServiceMonitor"];
    object(installation, kind, ("spec", spec))
}

fn prometheus_rule(installation: &Installation, rules: &RuleFile) -> Value {
    let kind = ["monitoring.coreos.com/v1", "PrometheusRule"];
    let rules = json!({ "groups": rules.groups });
    object(installation, kind, ("spec", rules))
}
