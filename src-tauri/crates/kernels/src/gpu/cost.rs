//! How long a kernel keeps a card busy, about, so that no submission is long: multiplications, or bytes that are read
//! where those take longer. A kernel that would be too long by itself is cut.

use super::program::PerRow;
use crate::graph::Mask;
use crate::plan::Batch;

/// Multiplications in one submission: some 50 ms of a slow card, so that no watchdog fires and the desktop moves.
pub const SUBMITTED: u64 = 20_000_000_000;

/// What a slow card multiplies while it reads a byte: 400 G a second beside 50 GB.
pub const PER_BYTE: u64 = 8;

/// Of one kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// multiplications of a row
    pub row: u64,
    /// bytes that are read once for all rows of a workgroup
    pub bytes: u64,
    /// of a row with each position that it sees, in multiplications
    pub position: u64,
    /// positions that a row sees at most, and where they are
    pub sees: Sees,
}

/// Which positions a row of attention sees.
#[derive(Clone, Copy, Debug)]
pub struct Sees {
    pub most: u64,
    pub mask: Mask,
}

impl Default for Sees {
    fn default() -> Self {
        Self { most: 0, mask: Mask::Causal }
    }
}

impl Sees {
    /// All that rows at these positions see.
    fn all(&self, positions: &[u32]) -> u64 {
        let last = positions.iter().max().copied().unwrap_or(0);
        let of_row = |position: &u32| {
            let (seen, most) = match self.mask {
                Mask::Causal => (*position, self.most),
                Mask::Bidirectional => (last, self.most.saturating_mul(2)),
            };
            (u64::from(seen) + 1).min(most)
        };
        positions.iter().map(of_row).sum()
    }
}

impl Cost {
    pub fn of_row(row: u64) -> Self {
        Self { row, ..Self::default() }
    }

    /// Of `n_rows` rows of a batch from `first` on, in `n_groups` workgroups that share what they read.
    pub fn of(&self, batch: &Batch, (first, n_rows): (usize, usize), n_groups: u64) -> u64 {
        let seen = match self.position {
            0 => 0,
            _ => self.sees.all(batch.positions.get(first..first + n_rows).unwrap_or(batch.positions)),
        };
        let multiplied = self.row * n_rows as u64 + self.position.saturating_mul(seen);
        multiplied.max(PER_BYTE * self.bytes * n_groups)
    }

    /// At most, of `n_rows` rows in contexts of `n_positions`.
    pub fn at_most(&self, n_rows: u64, n_positions: u64, n_groups: u64) -> u64 {
        let seen = match self.sees.mask {
            Mask::Causal => n_positions.min(self.sees.most),
            Mask::Bidirectional => n_positions.min(self.sees.most.saturating_mul(2)),
        };
        let multiplied = n_rows.saturating_mul(self.row + self.position.saturating_mul(seen));
        multiplied.max(PER_BYTE * self.bytes * n_groups)
    }
}

/// Which workgroups of the third dimension a kernel runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// all, which never cost too much
    #[default]
    All,
    /// all, where they cost no more than that
    Within(u64),
    /// `n` from `first` on, where all together would cost more
    Part { first: u32, n: u32, most: u64 },
}

impl Share {
    /// Those of `all` that cost `cost` together: the first, and how many.
    pub fn of(self, all: u32, cost: impl FnOnce() -> u64) -> (u32, u32) {
        match self {
            Self::All => (0, all),
            Self::Within(most) => (0, if cost() <= most { all } else { 0 }),
            Self::Part { first, n, most } => match all > first && cost() > most {
                true => (first, n.min(all - first)),
                false => (first, 0),
            },
        }
    }

    /// All that there are to be of a kernel that has up to `n_groups` of them, which cost up to `worst`.
    pub fn cut(n_groups: u32, worst: u64, most: u64) -> Vec<Self> {
        if worst <= most || n_groups <= 1 {
            return vec![Self::All];
        }
        let of_one = worst.div_ceil(u64::from(n_groups));
        let n = u32::try_from(most / of_one).unwrap_or(n_groups).max(1);
        let parts = (0..n_groups).step_by(n as usize).map(|first| Self::Part { first, n, most });
        std::iter::once(Self::Within(most)).chain(parts).collect()
    }
}

impl PerRow {
    /// Rows of a batch that a workgroup of the third dimension has, which follow those of the one before. None: they
    /// are shared out otherwise.
    pub(super) fn rows_of_group(&self) -> Option<usize> {
        match self {
            Self::Once | Self::Each(..) | Self::Between { .. } | Self::Tiles { .. } => None,
            Self::Whole { rows, .. } => Some(*rows as usize),
            Self::Chunks { .. } | Self::Merge { .. } => Some(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_whole_again_and_no_part_is_long() {
        for (n_groups, worst, most) in [(1, 50, 10), (7, 10, 10), (7, 11, 10), (7, 70, 10), (100, 1000, 333)]
        {
            let shares = Share::cut(n_groups, worst, most);
            for all in 0..=n_groups {
                for cost in [0, most, worst * u64::from(all) / u64::from(n_groups)] {
                    let run: Vec<(u32, u32)> = shares.iter().map(|share| share.of(all, || cost)).collect();
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
    fn what_takes_longer_counts() {
        let batch = |positions: &'static [u32]| Batch {
            tokens: positions,
            positions,
            sequence: &[0; 8][..positions.len()],
            page_tables: &[],
            window_tables: &[],
            states: &[],
            outputs: &[],
        };
        let product = Cost { row: 1000, bytes: 500, ..Cost::default() };
        assert_eq!(product.of(&batch(&[0]), (0, 1), 1), PER_BYTE * 500, "one row waits for weights");
        assert_eq!(product.of(&batch(&[0; 8]), (0, 8), 1), 8000);
        let sees = |most, mask| Cost { position: 3, sees: Sees { most, mask }, ..Cost::default() };
        let batch = batch(&[9, 10, 11]);
        assert_eq!(sees(u64::MAX, Mask::Causal).of(&batch, (0, 3), 3), 3 * (10 + 11 + 12));
        assert_eq!(sees(u64::MAX, Mask::Causal).of(&batch, (2, 1), 1), 3 * 12);
        assert_eq!(sees(5, Mask::Causal).of(&batch, (0, 3), 3), 3 * 15);
        assert_eq!(sees(5, Mask::Bidirectional).of(&batch, (0, 3), 3), 3 * 30);
        let all = sees(u64::MAX, Mask::Bidirectional);
        assert!(all.of(&batch, (0, 3), 3) <= all.at_most(3, 12, 3));
    }
}
