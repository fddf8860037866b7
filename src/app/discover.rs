//! Which model a target serves, where the configuration does not say.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::LOCATION;

use super::aside::{Asking, Page, page_at};
use super::streams::headers;
use crate::client::{models_path, served_models};
use crate::clock::TimeAnchor;
use crate::config::{BaseUrl, Config, TargetConfig};
use crate::measurement::Stream;
use crate::transport::fetch::{FetchError, Fetched};

/// Models named in a message.
const SHOWN: usize = 10;
/// Longest list of models that is read.
const MAX_LIST: usize = 1 << 20;
/// A target that did not tell is asked again after this time.
const AGAIN: Duration = Duration::from_secs(5);

/// Why a target's model is not known.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// A header that HTTP does not allow, or a file of certificates that is none.
    #[error("{0:#}")]
    Unusable(anyhow::Error),
    /// No answer.
    #[error("`{url}`: {error}")]
    Fetch {
        /// What was asked.
        url: String,
        /// Why there is no answer.
        error: FetchError,
    },
    /// An answer without a list of models.
    #[error("`{url}` answered {status}{} and no list of models", leading(.to.as_deref()))]
    NoList {
        /// What was asked.
        url: String,
        /// Status of the answer.
        status: u16,
        /// Where it leads to instead.
        to: Option<String>,
    },
    /// The configured one is not among them.
    #[error("`{url}` lists {}, and not `{model}`", names(.served))]
    NotListed {
        /// What was asked.
        url: String,
        /// The configured name.
        model: String,
        /// The names listed.
        served: Vec<String>,
    },
    /// None, or several to choose from.
    #[error("`{url}` lists {}; set `model`", names(.served))]
    NotOne {
        /// What was asked.
        url: String,
        /// The names listed.
        served: Vec<String>,
    },
}

/// Where `answer` leads to, if it is a redirect.
fn leads_to(answer: &Fetched) -> Option<String> {
    /// Longer ones are cut.
    const SHOWN: usize = 256;
    let location = answer.headers.get(LOCATION);
    let location = location.filter(|_| answer.status.is_redirection())?;
    let text = String::from_utf8_lossy(location.as_bytes());
    Some(text.chars().take(SHOWN).collect())
}

/// The same in a message.
fn leading(to: Option<&str>) -> String {
    to.map(|to| format!(", which leads to `{to}`,"))
        .unwrap_or_default()
}

/// The first few of them.
fn names(served: &[String]) -> String {
    match served {
        [] => "no model".to_owned(),
        few if few.len() <= SHOWN => format!("{} models (`{}`)", few.len(), few.join("`, `")),
        many => format!(
            "{} models (`{}`, …)",
            many.len(),
            many[..SHOWN].join("`, `")
        ),
    }
}

/// The model to ask `target` for: the configured one if the server lists it, else the only one
/// that it lists. The first of its addresses that answers is believed. `None` if its protocol
/// has no list of models.
///
/// # Errors
///
/// If none answers, or the one that does lacks the configured one, or lists none or several.
pub(super) async fn served(
    target: &TargetConfig,
    asking: Asking,
) -> Result<Option<String>, DiscoverError> {
    let Some(path) = models_path(target.api) else {
        return Ok(None);
    };
    let mut failed = None;
    for url in &target.urls {
        match served_at(target, (url, path), asking).await {
            Err(error @ DiscoverError::Fetch { .. }) => {
                failed.get_or_insert(error);
            }
            Err(error) => return Err(error),
            Ok(model) => return Ok(Some(model)),
        }
    }
    failed.map_or(Ok(None), Err)
}

/// [`served`], of one address.
async fn served_at(
    target: &TargetConfig,
    at: (&BaseUrl, &str),
    asking: Asking,
) -> Result<String, DiscoverError> {
    let (url, served) = listed_at(target, at, asking).await?;
    match &target.model {
        Some(model) if served.contains(model) => Ok(model.clone()),
        Some(model) => Err(DiscoverError::NotListed {
            url,
            model: model.clone(),
            served,
        }),
        None => <[String; 1]>::try_from(served)
            .map(|[model]| model)
            .map_err(|served| DiscoverError::NotOne { url, served }),
    }
}

/// The models that the address `at` lists below the path beside it, and the URL of the list.
///
/// # Errors
///
/// If there is no answer, or no list in it.
pub(super) async fn listed_at(
    target: &TargetConfig,
    at: (&BaseUrl, &str),
    asking: Asking,
) -> Result<(String, Vec<String>), DiscoverError> {
    let Page { fetch, url } = page_at(target, at, asking).map_err(DiscoverError::Unusable)?;
    let headers = headers(target).map_err(DiscoverError::Unusable)?;
    let answer =
        fetch
            .get(&url, &headers, MAX_LIST)
            .await
            .map_err(|error| DiscoverError::Fetch {
                url: url.clone(),
                error,
            })?;
    match served_models(&answer.body) {
        Ok(served) if answer.status.is_success() => Ok((url, served)),
        _ => Err(DiscoverError::NoList {
            url,
            status: answer.status.as_u16(),
            to: leads_to(&answer),
        }),
    }
}

/// Asks `target` once, with a client of its own, for the model to use: the configured one if the
/// server lists it, else the only one that it lists. `None` if its protocol has no list of
/// models.
///
/// # Errors
///
/// If it does not answer, does not list the configured one, or lists none or several.
pub async fn ask_model(
    target: &TargetConfig,
    anchor: TimeAnchor,
) -> Result<Option<String>, DiscoverError> {
    served(target, Asking::beside(anchor)).await
}

/// Targets whose model is not configured and can be asked for, with their streams.
pub(super) fn unresolved(
    config: &Config,
    streams: &[Arc<Stream>],
) -> Vec<(TargetConfig, Vec<Arc<Stream>>)> {
    let of = |index: usize| {
        streams
            .iter()
            .filter(|stream| stream.target_index == index)
            .map(Arc::clone)
            .collect()
    };
    let targets = config.targets.iter().enumerate();
    targets
        .filter(|(_, target)| target.model.is_none() && models_path(target.api).is_some())
        .map(|(index, target)| (target.clone(), of(index)))
        .collect()
}

/// Asks until the target tells, then names the model of its streams.
pub(super) async fn keep_asking(
    anchor: TimeAnchor,
    target: TargetConfig,
    streams: Vec<Arc<Stream>>,
) {
    let mut last = String::new();
    loop {
        match served(&target, Asking::beside(anchor)).await {
            Ok(None) => return,
            Ok(Some(model)) => {
                tracing::info!(name = %target.name, %model, "the server tells its model");
                for stream in streams {
                    stream.model.get_or_init(|| model.as_str().into());
                }
                return;
            }
            Err(error) => {
                let message = error.to_string();
                if message != last {
                    tracing::warn!(name = %target.name, "the model is not known yet: {message}");
                    last = message;
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}
