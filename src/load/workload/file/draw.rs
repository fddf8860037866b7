//! Conversations in an order by chance, from a file that is never wholly in memory.
//!
//! A pool of bounded size stands between the file and what is drawn. A file that fits is shuffled
//! as a whole, or drawn from with the same chance for each. Of a longer one a shuffle moves an
//! entry by about the size of the pool, and each entry is still drawn once in a pass; what is
//! drawn at random is replaced in the pool by later entries, so that all of the file is seen.

use rand::RngExt;
use rand::rngs::StdRng;

use super::Script;
use crate::config::Sampling;

/// Conversations in a pool.
const POOL: usize = 1_024;
/// Bytes in a pool, but for the last that came in.
const POOL_BYTES: usize = 64 << 20;

/// Draws conversations.
#[derive(Debug)]
pub struct Pool {
    sampling: Sampling,
    random: StdRng,
    held: Vec<Script>,
    weight: usize,
    /// The file ended while the pool was filled: what is in it is the rest, or all.
    complete: bool,
    /// Something was taken out of a pool that is drawn from at random: the file is longer.
    longer: bool,
}

impl Pool {
    /// Draws as `sampling` says.
    #[must_use]
    pub const fn new(sampling: Sampling, random: StdRng) -> Self {
        Self {
            sampling,
            random,
            held: Vec::new(),
            weight: 0,
            complete: false,
            longer: false,
        }
    }

    /// The next conversation. `read` gives those of the file, `None` at its end and then again
    /// from its beginning. `None` at the end of a pass where there is one.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn next<E>(
        &mut self,
        mut read: impl FnMut() -> Result<Option<Script>, E>,
    ) -> Result<Option<Script>, E> {
        if self.sampling == Sampling::Sequential {
            return read();
        }
        let mut again = self.longer;
        while !self.complete && self.held.len() < POOL && self.weight < POOL_BYTES {
            match read()? {
                Some(script) => self.put(script),
                None if again => again = false,
                None => self.complete = true,
            }
        }
        if self.held.is_empty() {
            self.complete = false;
            return Ok(None);
        }
        let place = self.random.random_range(0..self.held.len());
        if self.sampling == Sampling::Shuffle {
            let drawn = self.take(place);
            return Ok(Some(drawn));
        }
        let drawn = self.held[place].clone();
        if !self.complete {
            let gone = self.random.random_range(0..self.held.len());
            self.take(gone);
            self.longer = true;
        }
        Ok(Some(drawn))
    }

    fn put(&mut self, script: Script) {
        self.weight += script.weight();
        self.held.push(script);
    }

    fn take(&mut self, place: usize) -> Script {
        let taken = self.held.swap_remove(place);
        self.weight -= taken.weight();
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use rand::SeedableRng;

    use super::super::super::Prompt;
    use super::*;

    /// `passes` passes, or as many draws, over a file of `entries`.
    fn drawn(sampling: Sampling, entries: usize, draws: usize) -> Vec<Option<usize>> {
        let mut pool = Pool::new(sampling, StdRng::seed_from_u64(5));
        let mut at = 0;
        let mut read = || {
            at += 1;
            if at > entries {
                at = 0;
                return Ok::<_, Infallible>(None);
            }
            let prompt = Prompt {
                text: (at - 1).to_string(),
                ..Prompt::default()
            };
            Ok(Some(Script::single(prompt)))
        };
        (0..draws)
            .map(|_| {
                let Ok(next) = pool.next(&mut read);
                next.map(|script| script.steps[0].prompt.text.parse().expect("a number"))
            })
            .collect()
    }

    #[test]
    fn a_shuffle_gives_each_once_in_a_pass_in_another_order() {
        let two = drawn(Sampling::Shuffle, 100, 202);
        let (one, other) = (&two[..100], &two[101..201]);
        assert_eq!((two[100], two[201]), (None, None), "each pass has an end");
        let all = |pass: &[Option<usize>]| pass.iter().flatten().copied().collect::<BTreeSet<_>>();
        assert_eq!(all(one), (0..100).collect());
        assert_eq!(all(other), (0..100).collect());
        assert_ne!(one, other);
        let long = drawn(Sampling::Shuffle, 3_000, 3_001);
        assert_eq!(all(&long[..3_000]), (0..3_000).collect());
        assert_eq!(long[3_000], None);
    }

    #[test]
    fn a_random_draw_has_no_end_and_sees_all_of_the_file() {
        let short = drawn(Sampling::Random, 10, 1_000);
        assert!(short.iter().all(Option::is_some));
        assert_eq!(short.iter().flatten().collect::<BTreeSet<_>>().len(), 10);
        let long = drawn(Sampling::Random, 3_000, 20_000);
        let seen: BTreeSet<_> = long.iter().flatten().collect();
        assert!(seen.len() > 2_950, "{}", seen.len());
    }
}
