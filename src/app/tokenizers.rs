//! Local tokenizers: made from their files before a run, asked after a response has ended, on
//! the runtime that does not measure.

use std::path::Path;
use std::sync::Arc;

use super::streams::UnusableTarget;
use crate::config::{Config, Counting, ProbeConfig, PromptSource, TargetConfig, TokenizerConfig};
use crate::load::workload::{Measure, Pattern, Tokenizer};
use crate::measurement::{RequestRecord, TokenSource};

/// Largest file; the largest vocabularies of today take a tenth of it.
const LARGEST: u64 = 256 << 20;

/// The tokenizer of each target that has one, in the order of targets.
pub(super) type Tokenizers = Vec<Option<Arc<Tokenizer>>>;

/// Reads the tokenizers of all targets.
pub(super) fn load_all(config: &Config) -> Result<Tokenizers, UnusableTarget> {
    let targets = config.targets.iter().enumerate();
    targets.map(load).collect()
}

/// The tokenizer of the target at `index`, if it has one.
pub(super) fn load(
    (index, target): (usize, &TargetConfig),
) -> Result<Option<Arc<Tokenizer>>, UnusableTarget> {
    let Some(config) = &target.tokenizer else {
        return Ok(None);
    };
    made(config)
        .map(Arc::new)
        .map(Some)
        .map_err(|what| UnusableTarget {
            index,
            key: match config {
                TokenizerConfig::Words => "tokenizer",
                TokenizerConfig::Json(_) => "tokenizer.json",
                TokenizerConfig::Tiktoken(_) => "tokenizer.tiktoken",
            },
            what,
            wanted: "`words`, the `tokenizer.json` of a model, or a file of tiktoken ranks",
        })
}

/// How the prompts of `probe` to the target at `index` are counted, whose tokenizer is `tokenizer`.
pub(super) fn measure(
    probe: &ProbeConfig,
    (index, target): (usize, &TargetConfig),
    tokenizer: Option<&Arc<Tokenizer>>,
) -> Result<Measure, UnusableTarget> {
    let of_file = tokenizer.filter(|_| {
        let tokenizer = target.tokenizer.as_ref();
        tokenizer.is_some_and(|config| *config != TokenizerConfig::Words)
    });
    let count = match &probe.workload.source {
        PromptSource::Synthetic(synthetic) => synthetic.count,
        PromptSource::File(file) => file.count,
        PromptSource::Known(_) => Counting::Auto,
    };
    match (count, of_file) {
        (Counting::Auto | Counting::Tokenizer, Some(tokenizer)) => {
            Ok(Measure::Exact(Arc::clone(tokenizer)))
        }
        (Counting::Tokenizer, None) => Err(UnusableTarget {
            index,
            key: "tokenizer",
            what: format!("probe `{}` counts its prompts with it", probe.name),
            wanted: "the `tokenizer.json` of the model, or a file of tiktoken ranks",
        }),
        (Counting::Auto | Counting::Words | Counting::Server, _) => Ok(Measure::default()),
    }
}

fn made(config: &TokenizerConfig) -> Result<Tokenizer, String> {
    let (path, tokenizer) = match config {
        TokenizerConfig::Words => return Ok(Tokenizer::words()),
        TokenizerConfig::Json(path) => (path, Tokenizer::json(&bytes(path)?)),
        TokenizerConfig::Tiktoken(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let pattern = Pattern::of_file(&name);
            (path, Tokenizer::tiktoken(&bytes(path)?, pattern))
        }
    };
    tokenizer.map_err(|error| format!("`{}`: {error}", path.display()))
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let told = |error: std::io::Error| format!("`{}`: {error}", path.display());
    let size = std::fs::metadata(path).map_err(told)?.len();
    if size > LARGEST {
        return Err(format!(
            "`{}` has {size} bytes, wanted at most {LARGEST}",
            path.display()
        ));
    }
    std::fs::read(path).map_err(told)
}

/// Counts the answer of `record` where the server did not, and lets go of its text.
pub(super) fn recount(tokenizer: Option<&Tokenizer>, record: &mut RequestRecord) {
    let (Some(tokenizer), Some(text)) = (tokenizer, record.text.take()) else {
        return;
    };
    if !matches!(record.tokens.source, None | Some(TokenSource::Chunks)) {
        return;
    }
    match tokenizer.count(&text) {
        Ok(0) => {}
        Ok(count) => {
            record.tokens.output = Some(count);
            record.tokens.source = Some(tokenizer.source());
        }
        Err(error) => {
            tracing::debug!(%error, target_name = &*record.stream.target, "an answer was not counted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::fixture::{ok, stream};

    #[test]
    fn a_text_is_counted_where_the_server_did_not() {
        let words = Tokenizer::words();
        for (source, counted) in [
            (None, (Some(2), Some(TokenSource::Words))),
            (
                Some(TokenSource::Chunks),
                (Some(2), Some(TokenSource::Words)),
            ),
            (
                Some(TokenSource::Usage),
                (Some(1), Some(TokenSource::Usage)),
            ),
        ] {
            let mut record = ok(&stream(0), 0, &[10]).record;
            record.tokens.source = source;
            record.text = Some("two words".into());
            recount(Some(&words), &mut record);
            assert_eq!((record.tokens.output, record.tokens.source), counted);
            assert_eq!(record.text, None, "the text is let go");
        }
    }
}
