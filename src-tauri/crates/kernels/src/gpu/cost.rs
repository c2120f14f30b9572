//! Estimates how long a kernel keeps the GPU busy, to bound the length of submissions: multiplications, or bytes read
//! where those take longer. A kernel that exceeds the bound by itself is split.

use crate::batch::Batch;
use crate::graph::Mask;

/// Largest cost of one submission, in multiplications: about 50 ms on a slow GPU, so that no watchdog fires and the
/// desktop stays responsive.
pub const MAX_SUBMISSION_COST: u64 = 20_000_000_000;
/// The same for GPUs with cooperative matrices, the slowest of which read four times as fast. Tokens of most models then take
/// one submission, so that the next one can be encoded ahead.
pub const MAX_FAST_SUBMISSION_COST: u64 = 4 * MAX_SUBMISSION_COST;

/// Multiplications that a slow GPU performs while it reads a byte: 400 G/s at 50 GB/s.
pub const COST_PER_BYTE: u64 = 8;

/// Cost of one kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelCost {
    /// multiplications per row
    pub row: u64,
    /// bytes read once for all rows of a workgroup
    pub bytes: u64,
    /// multiplications per row and visible position
    pub position: u64,
    /// positions that a row of attention sees
    pub visible: VisiblePositions,
}

/// The positions that a row of attention sees: at most `max`, as the mask allows.
#[derive(Clone, Copy, Debug)]
pub struct VisiblePositions {
    pub max: u64,
    pub mask: Mask,
}

impl Default for VisiblePositions {
    fn default() -> Self {
        Self { max: 0, mask: Mask::Causal }
    }
}

impl VisiblePositions {
    /// Visible positions of rows at these positions, in total.
    fn total(&self, positions: &[u32]) -> u64 {
        let last = positions.iter().max().copied().unwrap_or(0);
        let of_row = |position: &u32| {
            let (seen, max) = match self.mask {
                Mask::Causal | Mask::CausalAfterFirst => (*position, self.max),
                // an image may reach to the end of the batch
                Mask::CausalImages => (last, self.max.saturating_add(u64::from(last - position))),
                Mask::Bidirectional => (last, self.max.saturating_mul(2)),
            };
            (u64::from(seen) + 1).min(max)
        };
        positions.iter().map(of_row).sum()
    }
}

impl KernelCost {
    /// A cost of `row` multiplications per row.
    pub fn of_row(row: u64) -> Self {
        Self { row, ..Self::default() }
    }

    /// Cost of rows `first..first + n_rows` of a batch in `n_groups` workgroups, each of which reads the bytes once.
    pub fn of(&self, batch: &Batch, (first, n_rows): (usize, usize), n_groups: u64) -> u64 {
        let seen = match self.position {
            0 => 0,
            _ => self.visible.total(batch.positions.get(first..first + n_rows).unwrap_or(batch.positions)),
        };
        let multiplied = self.row * n_rows as u64 + self.position.saturating_mul(seen);
        multiplied.max(COST_PER_BYTE * self.bytes * n_groups)
    }

    /// Upper bound for `n_rows` rows in contexts of `n_positions`.
    pub fn upper_bound(&self, n_rows: u64, n_positions: u64, n_groups: u64) -> u64 {
        let seen = match self.visible.mask {
            Mask::Causal | Mask::CausalAfterFirst => n_positions.min(self.visible.max),
            Mask::CausalImages => n_positions,
            Mask::Bidirectional => n_positions.min(self.visible.max.saturating_mul(2)),
        };
        let multiplied = n_rows.saturating_mul(self.row + self.position.saturating_mul(seen));
        multiplied.max(COST_PER_BYTE * self.bytes * n_groups)
    }
}

/// The workgroups of the third dimension that a dispatch runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupRange {
    /// all; they never exceed the bound
    #[default]
    All,
    /// all, if they cost no more than this; else none
    Within(u64),
    /// `n` from `first` on, if all together cost more than `max_cost`; else none
    Slice { first: u32, n: u32, max_cost: u64 },
}

impl GroupRange {
    /// The first workgroup and the number of workgroups to run, of `all`, which cost `cost` together.
    pub fn of(self, all: u32, cost: impl FnOnce() -> u64) -> (u32, u32) {
        match self {
            Self::All => (0, all),
            Self::Within(max_cost) => (0, if cost() <= max_cost { all } else { 0 }),
            Self::Slice { first, n, max_cost } => match all > first && cost() > max_cost {
                true => (first, n.min(all - first)),
                false => (first, 0),
            },
        }
    }

    /// Splits a kernel of up to `n_groups` workgroups, which cost up to `worst`, into dispatches of at most `max_cost`.
    pub fn split(n_groups: u32, worst: u64, max_cost: u64) -> Vec<Self> {
        if worst <= max_cost || n_groups <= 1 {
            return vec![Self::All];
        }
        let of_one = worst.div_ceil(u64::from(n_groups));
        let n = u32::try_from(max_cost / of_one).unwrap_or(n_groups).max(1);
        let slices = (0..n_groups).step_by(n as usize).map(|first| Self::Slice { first, n, max_cost });
        std::iter::once(Self::Within(max_cost)).chain(slices).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::GivenRows;

    #[test]
    fn slices_cover_all_groups_and_none_exceeds_the_bound() {
        for (n_groups, worst, most) in [(1, 50, 10), (7, 10, 10), (7, 11, 10), (7, 70, 10), (100, 1000, 333)]
        {
            let ranges = GroupRange::split(n_groups, worst, most);
            for all in 0..=n_groups {
                for cost in [0, most, worst * u64::from(all) / u64::from(n_groups)] {
                    let run: Vec<(u32, u32)> = ranges.iter().map(|range| range.of(all, || cost)).collect();
                    let mut next = 0;
                    for (first, n) in run.into_iter().filter(|(_, n)| *n > 0) {
                        assert_eq!(first, next, "{n_groups} {worst} {most}: {all}");
                        next += n;
                        let is_short = cost <= most || u64::from(n) * worst <= most * u64::from(n_groups);
                        assert!(is_short || n == 1, "{n} of {n_groups}");
                    }
                    assert_eq!(next, all, "{n_groups} {worst} {most}: {all} that cost {cost}");
                }
            }
        }
    }

    #[test]
    fn the_slower_of_reading_and_multiplying_counts() {
        let batch = |positions: &'static [u32]| Batch {
            tokens: positions,
            positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &[0; 8][..positions.len()],
            page_tables: &[],
            window_tables: &[],
            states: &[],
            outputs: &[],
        };
        let product = KernelCost { row: 1000, bytes: 500, ..KernelCost::default() };
        assert_eq!(product.of(&batch(&[0]), (0, 1), 1), COST_PER_BYTE * 500, "one row waits for weights");
        assert_eq!(product.of(&batch(&[0; 8]), (0, 8), 1), 8000);
        let sees = |max, mask| KernelCost {
            position: 3,
            visible: VisiblePositions { max, mask },
            ..KernelCost::default()
        };
        let batch = batch(&[9, 10, 11]);
        assert_eq!(sees(u64::MAX, Mask::Causal).of(&batch, (0, 3), 3), 3 * (10 + 11 + 12));
        assert_eq!(sees(u64::MAX, Mask::Causal).of(&batch, (2, 1), 1), 3 * 12);
        assert_eq!(sees(5, Mask::Causal).of(&batch, (0, 3), 3), 3 * 15);
        assert_eq!(sees(5, Mask::Bidirectional).of(&batch, (0, 3), 3), 3 * 30);
        let all = sees(u64::MAX, Mask::Bidirectional);
        assert!(all.of(&batch, (0, 3), 3) <= all.upper_bound(3, 12, 3));
    }
}
