//! What prompts share and what they do not, by words: a word is a token here.

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::config::{
    CacheModes, Lengths, PrefixPool, SizePairs, Sizes, Synthetic, SystemPrompt, TextStyle,
};
use crate::measurement::CacheMode;

const COLD: CacheModes = CacheModes::Only(CacheMode::Cold);
const WARM: CacheModes = CacheModes::Only(CacheMode::Warm);

fn of(tokens: u32) -> Synthetic {
    Synthetic::new(Sizes::Apart {
        input: Lengths::Fixed(tokens),
        output: Some(Lengths::Fixed(8)),
    })
}

/// Prompts of a run with seed 1; `fresh` is what no run has twice.
fn workload((synthetic, cache): (Synthetic, CacheModes), fresh: u64) -> Workload {
    let config = WorkloadConfig {
        source: PromptSource::Synthetic(Box::new(synthetic)),
        cache,
        cache_salt: true,
    };
    let sources = Sources {
        seeded: StdRng::seed_from_u64(1),
        fresh: StdRng::seed_from_u64(fresh),
    };
    Workload::new(&config, Measure::default(), sources)
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Words that two texts begin with alike.
fn common(one: &Prompt, other: &Prompt) -> usize {
    let pairs = words(&one.text).into_iter().zip(words(&other.text));
    pairs.take_while(|(one, other)| one == other).count()
}

#[test]
fn a_prompt_has_as_many_words_as_tokens_are_asked_for() {
    for tokens in [1, 7, 128, 4_096] {
        let prompt = workload((of(tokens), COLD), 2).prompt(None);
        assert_eq!(words(&prompt.text).len(), tokens as usize);
        assert_eq!(prompt.input_tokens, Some(tokens));
        assert_eq!(prompt.output_tokens, Some(8));
        assert_eq!(prompt.shared_tokens, Some(0));
    }
}

#[test]
fn cold_prompts_differ_at_the_start_also_between_runs_of_one_seed() {
    let mut run = workload((of(128), COLD), 10);
    let (one, next) = (run.prompt(None), run.prompt(None));
    let other = workload((of(128), COLD), 11).prompt(None);
    for prompt in [&next, &other] {
        assert_ne!(words(&one.text)[..6], words(&prompt.text)[..6]);
    }
    assert_eq!(
        words(&one.text)[6..],
        words(&other.text)[6..],
        "the seed decides the rest"
    );
    assert_ne!(one.cache_salt, next.cache_salt, "a salt of its own");
    assert_eq!(next.shared_tokens, Some(0));
}

#[test]
fn warm_prompts_share_all_but_their_last_sixteen_tokens() {
    let mut run = workload((of(128), WARM), 10);
    let (one, other) = (run.prompt(None), run.prompt(None));
    assert!((112..116).contains(&common(&one, &other)));
    assert_eq!(one.shared_tokens, Some(0), "nothing was sent before");
    assert_eq!(other.shared_tokens, Some(112));
    assert_eq!(one.cache_salt, other.cache_salt);
    let again = workload((of(128), WARM), 11).prompt(None);
    assert!(common(&one, &again) >= 112, "the seed decides it");
}

#[test]
fn warm_prompts_of_many_lengths_share_what_the_shorter_has() {
    let sizes = "200,1:50;100,1:50";
    let sizes = Sizes::Pairs(SizePairs::parse(sizes).expect("pairs"));
    let mut run = workload((Synthetic::new(sizes), WARM), 3);
    let mut longest = 0;
    for _ in 0..20 {
        let prompt = run.prompt(None);
        let fixed = prompt.input_tokens.expect("counted") - 16;
        assert_eq!(prompt.shared_tokens, Some(fixed.min(longest)));
        longest = longest.max(fixed);
    }
    assert_eq!(longest, 184);
}

#[test]
fn the_second_of_a_pair_differs_in_its_last_sixteen_tokens_only() {
    let synthetic = Synthetic {
        system: Some(SystemPrompt::Tokens(50)),
        ..of(128)
    };
    let mut run = workload((synthetic, CacheModes::Paired), 5);
    let [cold, warm, next] = [(); 3].map(|()| run.prompt(None));
    assert!((112..116).contains(&common(&cold, &warm)));
    assert_eq!(common(&cold, &next), 0);
    assert_eq!(cold.shared_tokens, Some(0));
    assert_eq!(warm.shared_tokens, Some(162));
    assert_eq!(next.shared_tokens, Some(50), "the system message was sent");
    for prompt in [&cold, &warm, &next] {
        assert_eq!(prompt.input_tokens, Some(178));
        assert_eq!(prompt.system, cold.system);
    }
    assert_eq!(cold.cache_salt, warm.cache_salt);
    assert_ne!(cold.cache_salt, next.cache_salt);
}

#[test]
fn each_prompt_begins_with_one_of_the_prefixes() {
    let synthetic = Synthetic {
        prefixes: Some(PrefixPool {
            count: 3,
            tokens: 40,
        }),
        ..of(20)
    };
    let mut run = workload((synthetic, COLD), 5);
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..60 {
        let prompt = run.prompt(None);
        assert_eq!(prompt.input_tokens, Some(60));
        let prefix = words(&prompt.text)[..40].join(" ");
        let known = seen.contains(&prefix);
        assert_eq!(prompt.shared_tokens, Some(if known { 40 } else { 0 }));
        if !known {
            seen.push(prefix);
        }
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_session_keeps_its_context() {
    let synthetic = Synthetic {
        system: Some(SystemPrompt::Text("be brief".to_owned())),
        context_tokens: Some(30),
        ..of(20)
    };
    let mut run = workload((synthetic, COLD), 5);
    let sessions = [Some(1), Some(2), Some(1), None, None];
    let prompts = sessions.map(|session| run.prompt(session));
    let context = |index: usize| &prompts[index].history[0].text;
    assert_eq!(context(0), context(2));
    for other in [1, 3, 4] {
        assert_ne!(context(0), context(other));
    }
    assert_ne!(
        context(3),
        context(4),
        "each request is a session of its own"
    );
    let shared = prompts.each_ref().map(|prompt| prompt.shared_tokens);
    // Two words of the system message, and thirty of the context where it was sent.
    assert_eq!(shared, [Some(0), Some(2), Some(32), Some(2), Some(2)]);
    assert_eq!(prompts[0].input_tokens, Some(52));
    assert_eq!(prompts[0].system.as_deref(), Some("be brief"));
}

#[test]
fn a_calibrated_workload_sends_fewer_words() {
    let mut run = workload((of(100), COLD), 5);
    run.calibrate(Calibration {
        tokens_per_word: 1.25,
        around: 7.0,
    });
    let prompt = run.prompt(None);
    assert_eq!(words(&prompt.text).len(), 80);
    assert_eq!(prompt.input_tokens, Some(100));
}

#[test]
fn a_server_is_asked_how_it_counts_only_if_that_is_wanted() {
    let mut run = workload((of(100), COLD), 5);
    assert!(run.to_calibrate().is_none());
    let synthetic = Synthetic {
        count: Counting::Server,
        ..of(100)
    };
    let mut run = workload((synthetic, COLD), 5);
    let prompts = run.to_calibrate().expect("wanted");
    let counts = prompts.each_ref().map(|prompt| words(&prompt.text).len());
    assert_eq!(counts, [32, 1_056]);
}

#[test]
fn the_same_seed_gives_the_same_lengths() {
    let sizes = Sizes::Apart {
        input: Lengths::parse("normal(200, 50)").expect("lengths"),
        output: Some(Lengths::parse("uniform(1, 99)").expect("lengths")),
    };
    let drawn = |fresh| {
        let synthetic = Synthetic {
            style: TextStyle::Prose,
            ..Synthetic::new(sizes.clone())
        };
        let mut run = workload((synthetic, COLD), fresh);
        [(); 50].map(|()| {
            let prompt = run.prompt(None);
            (prompt.input_tokens, prompt.output_tokens)
        })
    };
    assert_eq!(drawn(1), drawn(2));
    let mut different = drawn(1).to_vec();
    different.dedup();
    assert!(different.len() > 40);
}
