//! Memory budgets: how many bytes of weights may be resident, and how many bytes contexts may take.

use engine::WeightBudget;
use platform::memory::free_bytes;

/// Weights of up to this share of what is free are simply kept; others share the machine with them.
const FITS: (u64, u64) = (4, 5);
/// Share of free memory for weights that don't all fit. The rest is for the context, for
/// computation, and for the system's read-ahead.
const TAKES: (u64, u64) = (7, 10);
/// What contexts may take where the system doesn't say what is free, and what they may take always.
const CONTEXTS: u64 = 1 << 30;
const MIN_CONTEXTS: u64 = 64 << 20;
/// With less than this the model would wait for the disk in every step.
const MIN_BYTES: u64 = 64 << 20;

/// Bytes of weights that may be resident at once: as requested, else a sensible limit if they don't
/// fit. None: all of them.
pub fn budget(asked: Option<u64>, weight_bytes: u64) -> Option<WeightBudget> {
    decide(asked, weight_bytes, free_bytes())
}

/// Whether the weights take such a share of free memory that they can't all stay resident.
pub fn is_tight(weight_bytes: u64, free: u64) -> bool {
    weight_bytes > free / FITS.1 * FITS.0
}

/// Bytes that contexts may take: as requested, else half of what the weights leave.
pub fn for_contexts(asked: Option<u64>, weight_bytes: u64) -> u64 {
    asked.unwrap_or_else(|| contexts_of(weight_bytes, free_bytes()))
}

fn contexts_of(weight_bytes: u64, free: Option<u64>) -> u64 {
    free.map_or(CONTEXTS, |free| free.saturating_sub(weight_bytes) / 2).max(MIN_CONTEXTS)
}

/// Weights that take up to this share of what is free are worth memory that the system can't take back, as it could
/// the pages of their file.
const MOVES: (u64, u64) = (3, 5);

/// Whether weights should leave their file for large pages.
pub fn may_settle(weight_bytes: u64) -> bool {
    free_bytes().is_some_and(|free| weight_bytes <= free / MOVES.1 * MOVES.0)
}

/// `free`: memory that this process could still have, where the system says.
fn decide(asked: Option<u64>, weight_bytes: u64, free: Option<u64>) -> Option<WeightBudget> {
    let tight = free.is_some_and(|free| is_tight(weight_bytes, free));
    let automatic = free.filter(|_| tight).map(|free| (free / TAKES.1 * TAKES.0).max(MIN_BYTES));
    asked.or(automatic).map(|n_bytes| WeightBudget { n_bytes, is_tight: tight })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    #[test]
    fn small_models_have_no_budget_and_large_ones_leave_room() {
        let check = |weights, free, expected: Option<u64>| {
            let expected = expected.map(|n_bytes| WeightBudget { n_bytes, is_tight: true });
            assert_eq!(decide(None, weights, Some(free)), expected, "{weights} of {free}");
        };
        check(GB, 16 * GB, None);
        check(8 * GB, 10 * GB, None);
        check(9 * GB, 10 * GB, Some(7 * GB));
        check(12 * GB, 1000, Some(MIN_BYTES));
        check(0, 0, None);
        check(u64::MAX, u64::MAX, Some(u64::MAX / 10 * 7));
        let asked = |free| decide(Some(5), GB, free).map(|it| (it.n_bytes, it.is_tight));
        assert_eq!(
            [asked(None), asked(Some(9 * GB)), asked(Some(GB))],
            [Some((5, false)), Some((5, false)), Some((5, true))],
            "whoever asks, gets"
        );
        assert_eq!(decide(None, GB, None), None);
    }

    #[test]
    fn contexts_have_half_of_what_weights_leave() {
        assert_eq!(contexts_of(GB, Some(9 * GB)), 4 * GB);
        assert_eq!(contexts_of(9 * GB, Some(GB)), MIN_CONTEXTS);
        assert_eq!(contexts_of(9 * GB, None), CONTEXTS);
    }

    #[test]
    fn weights_larger_than_memory_stay_in_their_file() {
        assert!(!may_settle(u64::MAX));
    }
}
