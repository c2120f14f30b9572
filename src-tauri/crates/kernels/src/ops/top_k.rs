//! Selects the k largest logits of a row with their columns, largest first, on ties the first column: all that most
//! samplers need. A device with dedicated memory returns these instead of whole rows.
//!
//! Numbers that are not finite come first, so that the first entry shows whether the row is valid.

/// One selected column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopKEntry {
    /// column of the row: a token id
    pub id: u32,
    /// its value, at most `LARGEST_LOGIT` if finite
    pub logit: f32,
}

/// Larger numbers are clamped to this, so that differences of logits stay finite.
pub const LARGEST_LOGIT: f32 = f32::MAX / 4.0;

/// The rank of NaN.
pub const NAN_RANK: u32 = u32::MAX;

/// Maps a number to an integer in the order of `f32::total_cmp`; infinities and NaN rank highest.
pub fn rank(x: f32) -> u32 {
    let bits = x.min(LARGEST_LOGIT).to_bits();
    match x.is_nan() {
        true => NAN_RANK,
        false if x.is_infinite() => NAN_RANK - 1,
        false if bits >> 31 == 1 => !bits,
        false => bits | 1 << 31,
    }
}

/// Inverts `rank`; both infinities come back as positive.
pub fn value_of_rank(rank: u32) -> f32 {
    match rank {
        NAN_RANK => f32::NAN,
        _ if rank == NAN_RANK - 1 => f32::INFINITY,
        _ if rank >> 31 == 1 => f32::from_bits(rank & !(1 << 31)),
        _ => f32::from_bits(!rank),
    }
}

/// row (n) → (min(k, n)) entries
pub fn scalar(row: &[f32], k: usize) -> Vec<TopKEntry> {
    let mut all: Vec<(u32, u32)> = (0..).zip(row).map(|(id, x)| (rank(*x), id)).collect();
    all.sort_by(|(a, id), (b, other)| b.cmp(a).then(id.cmp(other)));
    all.iter().take(k).map(|(rank, id)| TopKEntry { id: *id, logit: value_of_rank(*rank) }).collect()
}

/// Smallest number of candidates collected before the smaller ones are dropped.
const MIN_CANDIDATES: usize = 256;

/// As `scalar`, appended to `out`. `candidates` is scratch memory, reused for the next row.
fn of_row(row: &[f32], k: usize, candidates: &mut Vec<u64>, out: &mut Vec<TopKEntry>) {
    if k == 0 {
        return;
    }
    let max_candidates = (2 * k).max(MIN_CANDIDATES);
    // the largest dropped candidate: smaller entries can't be among the k largest
    let mut threshold = 0;
    candidates.clear();
    for (id, x) in (0u32..).zip(row) {
        let entry = u64::from(rank(*x)) << 32 | u64::from(!id);
        if entry > threshold {
            candidates.push(entry);
            if candidates.len() == max_candidates {
                threshold = *candidates.select_nth_unstable_by(k, |a, b| b.cmp(a)).1;
                candidates.truncate(k);
            }
        }
    }
    candidates.sort_unstable_by(|a, b| b.cmp(a));
    let to_entry =
        |entry: &u64| TopKEntry { id: !(*entry as u32), logit: value_of_rank((entry >> 32) as u32) };
    out.extend(candidates.iter().take(k).map(to_entry));
}

/// Appends the entries of each row of `n_columns` to `out`.
pub fn of_rows(rows: &[f32], n_columns: usize, k: usize, out: &mut Vec<TopKEntry>) {
    let mut candidates = Vec::new();
    rows.chunks_exact(n_columns).for_each(|row| of_row(row, k, &mut candidates, out));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_ordered_and_invertible() {
        let numbers = [f32::MIN, -2.0, -1e-40, -0.0, 0.0, 1e-40, 1.0, 3.5, LARGEST_LOGIT];
        for pair in numbers.windows(2) {
            assert!(rank(pair[0]) < rank(pair[1]), "{pair:?}");
        }
        for x in numbers {
            assert_eq!(value_of_rank(rank(x)).to_bits(), x.to_bits());
        }
        assert_eq!(rank(f32::MAX), rank(LARGEST_LOGIT));
        for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN] {
            assert!(rank(x) > rank(f32::MAX) && !value_of_rank(rank(x)).is_finite());
        }
    }

    #[test]
    fn selection_equals_sorting() {
        let mut candidates = Vec::new();
        for n in [0, 1, 5, 300, 3000] {
            // many equals
            let row: Vec<f32> = (0..n).map(|i| ((i * 7919 + 13) % 101) as f32 - 50.0).collect();
            for k in [0, 1, 2, 40, 300, 5000] {
                let mut found = Vec::new();
                of_row(&row, k, &mut candidates, &mut found);
                assert_eq!(found, scalar(&row, k), "{n} {k}");
            }
        }
        let mut found = Vec::new();
        of_row(&[1.0, f32::NAN, 7.0], 2, &mut candidates, &mut found);
        assert!(found[0].logit.is_nan() && found[1] == TopKEntry { id: 2, logit: 7.0 });
    }
}
