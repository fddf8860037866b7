//! The cache against what was worked out by hand. Blocks have 4 tokens.

use proptest::prelude::*;

use super::*;

fn chain(cache: &KvCache, tokens: impl IntoIterator<Item = u64>) -> Chain {
    salted(cache, None, tokens)
}

fn salted(cache: &KvCache, salt: Option<u64>, tokens: impl IntoIterator<Item = u64>) -> Chain {
    let mut chain = cache.chain(salt);
    tokens.into_iter().for_each(|token| chain.push(token));
    chain
}

/// Tokens found when a prompt is admitted, which is released again.
fn found(cache: &mut KvCache, tokens: impl IntoIterator<Item = u64>) -> u32 {
    let chain = chain(cache, tokens);
    let (held, cached) = cache.admit(&chain).expect("there is room");
    cache.release(held);
    cached
}

#[test]
fn whole_leading_blocks_are_found_and_never_the_last_token() {
    let mut cache = KvCache::new(100, 4, true);
    assert_eq!(found(&mut cache, 0..12), 0);
    for (tokens, cached) in [
        (13, 12),
        (20, 12),
        (12, 8),
        (9, 8),
        (8, 4),
        (5, 4),
        (4, 0),
        (0, 0),
    ] {
        assert_eq!(found(&mut cache, 0..tokens), cached, "{tokens} tokens");
    }
    // The second block differs, so the third is another as well.
    let other = (0..4).chain(50..54).chain(8..12).chain([99]);
    assert_eq!(found(&mut cache, other), 4);
    assert_eq!(found(&mut cache, 1..12), 0);
}

#[test]
fn salts_keep_equal_prompts_apart() {
    let mut cache = KvCache::new(100, 4, true);
    let mut cached = |salt| {
        let chain = salted(&cache, salt, 0..9);
        let (held, cached) = cache.admit(&chain).expect("there is room");
        cache.release(held);
        cached
    };
    let salts = [None, None, Some(1), Some(1), Some(2), None];
    assert_eq!(salts.map(&mut cached), [0, 8, 0, 8, 0, 8]);
}

#[test]
fn without_reuse_nothing_is_found() {
    let mut cache = KvCache::new(100, 4, false);
    assert_eq!([0; 3].map(|_| found(&mut cache, 0..9)), [0; 3]);
}

#[test]
fn the_end_of_the_prompt_used_longest_ago_is_evicted_first() {
    let mut cache = KvCache::new(6, 4, true);
    // Blocks a1 a2 a3, then b1 b2 b3; the third ones are not full. They become free as
    // a3 a2 a1 b3 b2 b1, which is the order of eviction.
    assert_eq!(found(&mut cache, 0..9), 0);
    assert_eq!(found(&mut cache, 100..109), 0);
    // Two blocks are taken: a3 and a2. Left: a1 b3 b2 b1 c2 c1.
    assert_eq!(found(&mut cache, 200..205), 0);
    // a1 is found and b3 taken. Left: b2 b1 c2 c1 a2 a1.
    assert_eq!(found(&mut cache, 0..5), 4);
    // b1 and b2 are found and c2 taken, and then, since a2 is gone, a1 only.
    assert_eq!(found(&mut cache, 100..109), 8);
    assert_eq!(found(&mut cache, 0..9), 4);
}

#[test]
fn shared_blocks_are_held_once_and_given_back_once() {
    let mut cache = KvCache::new(10, 4, true);
    let usage = |cache: &KvCache| (cache.usage() * 10.0).round();
    let prompt = chain(&cache, 0..9);
    let (one, _) = cache.admit(&prompt).expect("there is room");
    assert!((usage(&cache) - 3.0).abs() < 1e-9);
    let (other, cached) = cache.admit(&prompt).expect("there is room");
    assert_eq!(cached, 8);
    assert!((usage(&cache) - 4.0).abs() < 1e-9);
    cache.release(one);
    assert!((usage(&cache) - 3.0).abs() < 1e-9);
    cache.release(other);
    assert!(usage(&cache).abs() < 1e-9);
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let mut cache = KvCache::new(4, 4, true);
    let (held, _) = cache.admit(&chain(&cache, 0..9)).expect("three blocks");
    assert_eq!(cache.admit(&chain(&cache, 50..55)), None);
    // A shared block is not counted twice: one more block is enough.
    let (shared, cached) = cache.admit(&chain(&cache, 0..5)).expect("one block");
    assert_eq!(cached, 4);
    cache.release(shared);
    cache.release(held);
    // Found blocks that are free have to be counted, since they are about to be held.
    let (other, _) = cache.admit(&chain(&cache, 50..55)).expect("two blocks");
    assert_eq!(cache.admit(&chain(&cache, 0..9)), None);
    cache.release(other);
}

#[test]
fn a_sequence_that_grows_takes_a_block_at_each_border() {
    let mut cache = KvCache::new(3, 4, true);
    let mut sequence = chain(&cache, 0..7);
    let (mut held, _) = cache.admit(&sequence).expect("two blocks");
    let mut grown = |token| {
        sequence.push(token);
        cache.grow(&mut held, &sequence)
    };
    // Tokens 8, 9 to 12, and 13, for which there is no block.
    let fits: Vec<bool> = (7..13).map(&mut grown).collect();
    assert_eq!(fits, [true, true, true, true, true, false]);
    cache.release(held);
    assert_eq!(found(&mut cache, 0..12), 8);
}

#[test]
fn a_block_that_was_computed_twice_serves_after_the_older_one_is_gone() {
    let mut cache = KvCache::new(3, 4, true);
    // The last token is computed anew, and with it the second block: it is there twice.
    assert_eq!(found(&mut cache, 0..8), 0);
    assert_eq!(found(&mut cache, 0..8), 4);
    // One block is taken: the older of the two.
    assert_eq!(found(&mut cache, 100..103), 0);
    assert_eq!(found(&mut cache, 0..9), 8);
    // And the other way round: it is now the only one.
    assert_eq!(found(&mut cache, 200..212), 0);
    assert_eq!(found(&mut cache, 0..9), 0);
}

#[test]
fn prefixes_are_forgotten_only_while_nothing_is_held() {
    let mut cache = KvCache::new(9, 4, true);
    let (held, _) = cache.admit(&chain(&cache, 0..9)).expect("three blocks");
    assert!(!cache.reset_prefixes());
    cache.release(held);
    assert_eq!(found(&mut cache, 0..9), 8);
    assert!(cache.reset_prefixes());
    assert_eq!(found(&mut cache, 0..9), 0);
}

/// Something that happens to the cache.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// A prompt out of a family of texts that share beginnings.
    Admit {
        family: u64,
        tokens: u64,
    },
    Grow(usize),
    Release(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => (0..5_u64, 0..40_u64).prop_map(|(family, tokens)| Deed::Admit { family, tokens }),
        4 => (0..100_usize).prop_map(Deed::Grow),
        2 => (0..100_usize).prop_map(Deed::Release),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_block_is_held_or_free(
        capacity in 1..40_u32,
        deeds in prop::collection::vec(deed(), 1..2000),
    ) {
        let mut cache = KvCache::new(capacity, 4, true);
        let mut living: Vec<(Held, Chain)> = Vec::new();
        for deed in deeds {
            match deed {
                Deed::Admit { family, tokens } => {
                    // All families begin alike, and each goes on in its own way.
                    let text = (0..tokens).map(|at| if at < 10 { at } else { family * 1000 + at });
                    let chain = chain(&cache, text);
                    let free = cache.pool.free();
                    if let Some((held, cached)) = cache.admit(&chain) {
                        prop_assert!(u64::from(cached) < tokens.max(1));
                        prop_assert_eq!(cached % 4, 0);
                        living.push((held, chain));
                    } else {
                        prop_assert_eq!(cache.pool.free(), free);
                    }
                }
                Deed::Grow(which) if !living.is_empty() => {
                    let which = which % living.len();
                    let (held, chain) = &mut living[which];
                    chain.push(7);
                    if !cache.grow(held, chain) {
                        let (held, _) = living.swap_remove(which);
                        cache.release(held);
                    }
                }
                Deed::Release(which) if !living.is_empty() => {
                    let (held, _) = living.swap_remove(which % living.len());
                    cache.release(held);
                }
                Deed::Grow(_) | Deed::Release(_) => {}
            }
            let mut held: Vec<BlockId> =
                living.iter().flat_map(|(held, _)| held.blocks.iter().copied()).collect();
            held.sort_unstable();
            held.dedup();
            let held = u32::try_from(held.len()).expect("few");
            prop_assert_eq!(held + cache.pool.free(), capacity);
        }
        for (held, _) in living {
            cache.release(held);
        }
        prop_assert_eq!(cache.pool.free(), capacity);
    }
}
