//! A look at a server that is not configured yet: what it is, which protocol it answers, and how
//! its requests have to look. What `init` writes down.
//!
//! Each try is a whole configuration, made of the text that would be written, and asked as
//! `check` asks: what was answered here is answered there too. Nothing is written here.

mod tries;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use self::tries::{candidates, changed, length_said, may_speak_another, model_of_info, pace};
use super::aside::Asking;
use super::check::{CheckedRequest, check_target};
use super::discover::{DiscoverError, listed_at};
use super::polls::poll;
use super::recognise::{Recognised, body, recognise};
use super::streams::streams;
use crate::analysis::Cause;
use crate::client::models_path;
use crate::clock::TimeAnchor;
use crate::config::{
    Config, Diagnostics, Format, Limits, ServerMetrics, TargetConfig, from_text_in,
};
use crate::measurement::server::ScrapeResult;
use crate::measurement::{Api, Outcome, RequestRecord};
use crate::report::{Draft, Manner, Pace, PageSaid, Seen, canary_file};
use crate::telemetry::SelfMetrics;
use crate::transport::Connect;

/// Changes that are made to a request before its protocol is given up.
const MOST_CHANGES: usize = 5;
/// Longest time for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// What is known before the look. Its environment holds secrets, so it is not shown.
pub struct Survey {
    /// Where the server is. Its model may be absent; its manner and pace are found out.
    pub draft: Draft,
    /// The only protocol to try.
    pub api: Option<Api>,
    /// When a request is given up.
    pub timeout: Duration,
    /// Where secrets are, and what comes on top of a file.
    pub environment: Vec<(String, String)>,
}

/// Why there is nothing to write.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// What was given makes no configuration.
    #[error("{0}")]
    Unusable(Diagnostics),
    /// It is not known which model to ask for, or the server does not list it.
    #[error("{0}")]
    Model(DiscoverError),
    /// No protocol was answered.
    #[error("no request was answered")]
    Unanswered {
        /// The protocol and the request that say most.
        most: Box<(Api, RequestRecord)>,
        /// All others that were tried.
        others: Vec<Api>,
        /// The model that was chosen of a list of so many.
        chosen: Option<(String, usize)>,
    },
    /// What was given cannot be used, or something broke in us.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

/// Models that a server lists, or why none is known.
struct Listing {
    models: Vec<String>,
    url: String,
    /// Why there are none.
    silent: Option<DiscoverError>,
    /// Whether a model that is not among them is not served.
    is_whole: bool,
}

/// An answer, with what was sent for it.
struct Answered {
    manner: Manner,
    record: RequestRecord,
    pace: Pace,
}

impl Survey {
    /// Looks at the server: its pages, its models, and tiny requests until one is answered. The
    /// draft then holds what was found; only its plan is left open.
    ///
    /// # Errors
    ///
    /// If nothing can be written that `check` would pass.
    pub async fn look(
        mut self,
        connect: Arc<dyn Connect>,
        anchor: TimeAnchor,
    ) -> Result<Draft, SurveyError> {
        self.draft.api = self.api.unwrap_or(Api::Chat);
        let config = self.config(&self.draft)?;
        for plan in streams(&config)? {
            // First, so that what cannot be used is told as such.
            plan.client(Arc::clone(&connect), anchor)?;
        }
        let target = &config.targets[0];
        let asking = Asking::within(&config.probes[0].limits, anchor);
        let own = SelfMetrics::new().context("self metrics")?;
        let page = poll(0, target, (asking, &own))?.context("the page is to be read")?;
        let (listing, (scrape, url)) = tokio::join!(models(target, asking), page.once());
        let server = recognise(target, asking, (&scrape, url)).await;
        let is_told = self.draft.model.is_some();
        let (model, others) = choose(self.draft.model.take(), &listing)?;
        self.draft.model = model;
        let found = self.find(&server, listing, (connect, anchor)).await;
        let (api, answered) = found.map_err(|error| match (error, &self.draft.model) {
            (
                SurveyError::Unanswered {
                    most, others: apis, ..
                },
                Some(model),
            ) if !is_told && !others.is_empty() => SurveyError::Unanswered {
                most,
                others: apis,
                chosen: Some((model.clone(), others.len() + 1)),
            },
            (error, _) => error,
        })?;
        let Answered {
            manner,
            record,
            pace,
        } = answered;
        let asked = record.tokens.requested_output;
        let seen = Seen {
            engine: server.engine,
            version: server.version.clone(),
            others,
            page: page_said(&server),
            length: length_said(manner, (api, &record), asked),
        };
        Ok(Draft {
            api,
            // A name that the protocol does not send would only be a label.
            model: self.draft.model.filter(|_| names_model(api)),
            manner,
            pace,
            seen: Some(seen),
            ..self.draft
        })
    }

    /// The first protocol that is answered.
    async fn find(
        &self,
        server: &Recognised,
        listing: Listing,
        with: (Arc<dyn Connect>, TimeAnchor),
    ) -> Result<(Api, Answered), SurveyError> {
        let has_model = self.draft.model.is_some();
        let apis = match (self.api, &listing.silent) {
            (Some(api), _) => vec![api],
            // It does not answer at all, and chat says best why.
            (None, Some(DiscoverError::Fetch { .. })) => vec![Api::Chat],
            (None, Some(error)) if !has_model && is_kept_from_us(error) => Vec::new(),
            _ => candidates(server.engine, has_model),
        };
        let mut tried: Vec<(Api, RequestRecord)> = Vec::new();
        for api in apis {
            let draft = Draft {
                api,
                model: self.draft.model.clone().filter(|_| names_model(api)),
                ..self.draft.clone()
            };
            match self.answered(draft, &with).await? {
                Ok(answered) => return Ok((api, answered)),
                Err(record) => {
                    let may_go_on = may_speak_another(&record);
                    tried.push((api, record));
                    if !may_go_on {
                        return Err(unanswered(tried.len() - 1, tried));
                    }
                }
            }
        }
        match listing.silent {
            // It speaks no HTTP, or something else that no list would mend.
            Some(DiscoverError::Fetch { .. }) => Err(unanswered(0, tried)),
            // A server that says which model it serves is asked for that one; others have to be
            // told.
            Some(error) if !has_model && self.api.is_none_or(names_model) => {
                Err(SurveyError::Model(error))
            }
            _ => Err(unanswered(0, tried)),
        }
    }

    /// Asks as `draft` says, and otherwise where the server says what it does not like; the last
    /// record if nothing helped.
    async fn answered(
        &self,
        mut draft: Draft,
        with: &(Arc<dyn Connect>, TimeAnchor),
    ) -> Result<Result<Answered, RequestRecord>, SurveyError> {
        for _ in 0..MOST_CHANGES {
            let CheckedRequest {
                observed,
                refuses_length,
                ..
            } = self.ask(&draft, with).await?;
            let mut record = observed.record;
            if record.outcome == Outcome::Ok {
                let mut pace = pace(took(&record));
                if pace != Pace::Usual {
                    // It may have had to load the model first.
                    let again = self.ask(&draft, with).await?.observed.record;
                    if again.outcome == Outcome::Ok {
                        pace = tries::pace(took(&again));
                        record = again;
                    }
                }
                return Ok(Ok(Answered {
                    manner: draft.manner,
                    record,
                    pace,
                }));
            }
            match changed(draft.manner, (draft.api, &record), refuses_length) {
                Some(manner) => draft.manner = manner,
                None => return Ok(Err(record)),
            }
        }
        let last = self.ask(&draft, with).await?;
        Ok(Err(last.observed.record))
    }

    /// One request as `draft` says.
    async fn ask(
        &self,
        draft: &Draft,
        (connect, anchor): &(Arc<dyn Connect>, TimeAnchor),
    ) -> Result<CheckedRequest, SurveyError> {
        let mut config = self.config(draft)?;
        // The page was read before.
        config.targets[0].server_metrics = ServerMetrics::Off;
        let checked = check_target(&config, 0, Arc::clone(connect), *anchor).await?;
        let checked = checked.context("the probe uses the target")?;
        let [request] = <[CheckedRequest; 1]>::try_from(checked.requests)
            .map_err(|_| anyhow::anyhow!("a target with one address is asked once"))?;
        match checked.model {
            Some(error) if request.observed.record.outcome == Outcome::Ok => {
                Err(SurveyError::Model(error))
            }
            _ => Ok(request),
        }
    }

    /// What `draft` would be as a file, with our patience.
    fn config(&self, draft: &Draft) -> Result<Config, SurveyError> {
        let text = canary_file(draft);
        let environment = self.environment.iter().cloned();
        let mut config = from_text_in(&text, (Format::Yaml, "canary.yaml"), environment)
            .map_err(SurveyError::Unusable)?;
        config.probes[0].limits = Limits {
            connect: CONNECT.min(self.timeout),
            first_token: Some(self.timeout),
            gap: Some(self.timeout),
            total: self.timeout,
        };
        Ok(config)
    }
}

/// The models of the server: of its list, of Ollama's, or the only one of those that have no list.
async fn models(target: &TargetConfig, asking: Asking) -> Listing {
    let address = &target.urls[0];
    let mut silent = None;
    for path in ["/v1/models", "/api/tags"] {
        match listed_at(target, (address, path), asking).await {
            Ok((url, served)) if served.is_empty() => {
                silent.get_or_insert(DiscoverError::NotOne { url, served });
            }
            Ok((url, models)) => {
                return Listing {
                    models,
                    url,
                    silent: None,
                    is_whole: true,
                };
            }
            Err(error) => {
                let is_mute = matches!(error, DiscoverError::Fetch { .. });
                silent.get_or_insert(error);
                if is_mute {
                    break;
                }
            }
        }
    }
    let info = match &silent {
        Some(DiscoverError::Fetch { .. }) => None,
        _ => body(target, "/info", asking).await,
    };
    let model = info.and_then(|info| model_of_info(&info));
    Listing {
        silent: silent.filter(|_| model.is_none()),
        models: model.into_iter().collect(),
        url: format!("{address}/info"),
        is_whole: false,
    }
}

/// The model to ask for, `wished` or the first of the list, and the others.
fn choose(
    wished: Option<String>,
    listing: &Listing,
) -> Result<(Option<String>, Vec<String>), SurveyError> {
    let Listing { models, url, .. } = listing;
    let chosen = match wished {
        Some(model) if listing.is_whole && !models.contains(&model) => {
            return Err(SurveyError::Model(DiscoverError::NotListed {
                url: url.clone(),
                model,
                served: models.clone(),
            }));
        }
        Some(model) => Some(model),
        None => models.first().cloned(),
    };
    let others = models
        .iter()
        .filter(|model| Some(*model) != chosen.as_ref());
    let others = others.cloned().collect();
    Ok((chosen, others))
}

/// Whether requests of `api` name a model.
const fn names_model(api: Api) -> bool {
    models_path(api).is_some() || api.names_model_in_path()
}

/// Whether whatever is asked there is answered likewise: who it is has to be said first, it is
/// elsewhere, or it does not serve now.
fn is_kept_from_us(error: &DiscoverError) -> bool {
    matches!(
        error,
        DiscoverError::NoList {
            status: 300..=399 | 401 | 403 | 408 | 429 | 500 | 502..,
            ..
        }
    )
}

fn took(record: &RequestRecord) -> Duration {
    record.service_time().unwrap_or_default()
}

/// Of all that were tried, the one at `index` says most.
fn unanswered(index: usize, mut tried: Vec<(Api, RequestRecord)>) -> SurveyError {
    if index >= tried.len() {
        return SurveyError::Other(anyhow::anyhow!("no protocol is known to try"));
    }
    let most = Box::new(tried.remove(index));
    let others = tried.into_iter().map(|(api, _)| api).collect();
    SurveyError::Unanswered {
        most,
        others,
        chosen: None,
    }
}

fn page_said(server: &Recognised) -> PageSaid {
    match server.result {
        ScrapeResult::Ok => PageSaid::Read {
            url: server.page.clone(),
            lacks: with_causes(&server.lacks),
            never: with_causes(&server.never),
        },
        other => PageSaid::NotRead {
            url: server.page.clone(),
            result: other.name(),
        },
    }
}

/// Roles, each with the causes that are never told without it.
fn with_causes(roles: &[&'static str]) -> Vec<(&'static str, Vec<&'static str>)> {
    let untold = |role: &str| -> Vec<&'static str> {
        let causes = Cause::untold_without(role).iter();
        causes.map(|cause| cause.name()).collect()
    };
    roles.iter().map(|role| (*role, untold(role))).collect()
}
