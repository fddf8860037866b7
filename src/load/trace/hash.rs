//! Hashes of ids: a mixing that loses nothing, and one for texts.

/// Spreads the bits of `id` over the whole word. Different ids stay different: every step can be
/// undone (the finaliser of `splitmix64`).
pub(super) const fn mix(id: u64) -> u64 {
    let id = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let id = (id ^ (id >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let id = (id ^ (id >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    id ^ (id >> 31)
}

/// A hash of a text (FNV-1a, then mixed).
pub(super) fn of(text: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    mix(hash)
}

/// Spreads ids over the whole word by eights: each eight that stand together stay together, so
/// that tables find the blocks of a prompt, whose ids often follow each other, in one line of the
/// processor's cache. Different ids stay different.
pub(super) const fn near(id: u64) -> u64 {
    const BITS: u64 = (1 << 61) - 1;
    let eight = id >> 3;
    let eight = (eight ^ (eight >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9) & BITS;
    let eight = (eight ^ (eight >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) & BITS;
    (eight ^ (eight >> 31)) << 3 | (id & 7)
}

/// Which part of all hashes is kept: a half less with each step.
///
/// It mixes again, so that what is kept is spread evenly over tables and groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sampling {
    /// How often the part was halved.
    pub(super) halvings: u32,
}

impl Sampling {
    /// Most halvings: then one in 65,536 is kept.
    pub(super) const MOST: u32 = 16;

    pub(super) const fn keeps(self, hash: u64) -> bool {
        self.halvings == 0 || mix(hash) >> 48 < 1 << (Self::MOST - self.halvings)
    }

    /// How many each kept one stands for.
    pub(super) fn weight(self) -> f64 {
        f64::from(1_u32 << self.halvings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_halving_keeps_half() {
        let kept = |halvings| {
            let sampling = Sampling { halvings };
            (0..100_000_u64)
                .filter(|id| sampling.keeps(near(*id)))
                .count()
        };
        assert_eq!(kept(0), 100_000);
        assert!((49_000..51_000).contains(&kept(1)), "{}", kept(1));
        assert!((12_000..13_000).contains(&kept(3)), "{}", kept(3));
    }

    #[test]
    fn eights_stay_together_and_nothing_falls_together() {
        let mut seen = std::collections::HashSet::new();
        for id in (0..20_000).chain(u64::MAX - 20_000..=u64::MAX) {
            assert!(seen.insert(near(id)), "{id}");
            assert_eq!(near(id) >> 3, near(id & !7) >> 3, "{id}");
        }
    }
}
