//! `generate`: files for other programs, made from the catalog of metrics and the configuration.

use clap::Subcommand;

use super::{
    Exit, generate_dashboards, generate_kubernetes, generate_metrics_reference, generate_rules,
    generate_schema,
};

/// Arguments of `generate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Recording rules and alerts for Prometheus.
    Rules(Box<generate_rules::Args>),
    /// Boards for Grafana.
    Dashboards(generate_dashboards::Args),
    /// Objects for Kubernetes: configuration, service, scraping, rules.
    Kubernetes(Box<generate_kubernetes::Args>),
    /// The table of all metrics, as in docs/metrics.md.
    MetricsReference,
    /// The configuration as a JSON Schema, as in docs/schema.json.
    Schema,
}

impl Args {
    /// The configuration file, if one is read.
    pub(super) fn config(&self) -> Option<&std::path::Path> {
        match &self.what {
            What::Rules(args) => args.config(),
            What::Kubernetes(args) => Some(args.config()),
            What::Dashboards(_) | What::MetricsReference | What::Schema => None,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.what {
        What::Rules(args) => generate_rules::run(args),
        What::Dashboards(args) => generate_dashboards::run(args),
        What::Kubernetes(args) => generate_kubernetes::run(args),
        What::MetricsReference => generate_metrics_reference::run(),
        What::Schema => generate_schema::run(),
    }
}
