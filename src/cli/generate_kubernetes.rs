//! `generate kubernetes`: objects that run, scrape and judge a canary in a cluster.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::generate_rules::{Numbers, warn};
use super::{Exit, print, say, usage};
use crate::config;
use crate::export::kubernetes::{Installation, Running, objects};
use crate::export::rules;

/// Arguments of `generate kubernetes`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Configuration of the canary; put into a `ConfigMap` as it is.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Name of all objects.
    #[arg(long, value_name = "NAME", default_value = "tokencanary")]
    name: String,
    /// Namespace of all objects [default: that of whoever applies them].
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Image of the canary.
    #[arg(long, value_name = "IMAGE", default_value = "tokencanary:latest")]
    image: String,
    /// The canary runs in pods with this label, which are described elsewhere: no deployment.
    #[arg(long, value_name = "LABEL=VALUE", value_parser = label, conflicts_with = "image")]
    sidecar_of: Option<(String, String)>,
    #[command(flatten)]
    numbers: Numbers,
}

impl Args {
    /// The configuration file.
    pub(super) fn config(&self) -> &Path {
        &self.config
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let settings = args.numbers.settings();
    let config = match config::load(&args.config, config::environment(), &[]) {
        Ok(config) => config,
        Err(diagnostics) => return Ok(usage(&diagnostics)),
    };
    let Some(listen) = config.export.http.map(|http| http.listen) else {
        say("export.http: not set\n  wanted: an address that Prometheus can reach");
        return Ok(Exit::Usage);
    };
    if listen.ip().is_loopback() {
        say(&format!(
            "export.http.listen: `{listen}`: nobody outside the pod can reach it\n  wanted: an address such as `0.0.0.0:{}`\n  hint: beyond loopback only /metrics, /healthz and /readyz answer",
            listen.port()
        ));
        return Ok(Exit::Usage);
    }
    warn(&settings, &config);
    let text = fs::read_to_string(&args.config)
        .with_context(|| format!("`{}` cannot be read", args.config.display()))?;
    let name = args.config.file_name().unwrap_or(args.config.as_os_str());
    let form = match &args.sidecar_of {
        Some((label, value)) => Running::Beside(label.clone(), value.clone()),
        None => Running::Alone(args.image.clone()),
    };
    let installation = Installation {
        name: args.name.clone(),
        namespace: args.namespace.clone(),
        file: (name.to_string_lossy().into_owned(), text),
        port: listen.port(),
        form,
    };
    let rules = rules::rules(&settings, Some(&config));
    for object in objects(&installation, &rules) {
        print(&rules::to_yaml("---\n", &object)?)?;
    }
    Ok(Exit::Fine)
}

/// A label and its value.
fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((label, value)) if !label.is_empty() && !value.is_empty() => {
            Ok((label.to_owned(), value.to_owned()))
        }
        _ => Err("must be LABEL=VALUE".to_owned()),
    }
}
