//! The largest numbers of a row of logits with their columns, largest first, of equals the first column: all that most
//! samplers need of it. A device whose memory is not the machine's sends these instead of the row.
//!
//! What is no finite number comes before all, so that nobody who looks at the first takes the row for a good one.

/// A column and its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likely {
    pub id: u32,
    pub logit: f32,
}

/// As large as any number counts: differences of such are numbers yet.
pub const LARGEST_LOGIT: f32 = f32::MAX / 4.0;

/// The rank of what is no number.
pub const NAN_RANK: u32 = u32::MAX;

/// Larger numbers have larger ranks, in the order of `f32::total_cmp`.
pub fn rank(x: f32) -> u32 {
    let bits = x.min(LARGEST_LOGIT).to_bits();
    match x.is_nan() {
        true => NAN_RANK,
        false if x.is_infinite() => NAN_RANK - 1,
        false if bits >> 31 == 1 => !bits,
        false => bits | 1 << 31,
    }
}

/// The number of a rank; of one that had none, what stands for it.
pub fn number(rank: u32) -> f32 {
    match rank {
        NAN_RANK => f32::NAN,
        _ if rank == NAN_RANK - 1 => f32::INFINITY,
        _ if rank >> 31 == 1 => f32::from_bits(rank & !(1 << 31)),
        _ => f32::from_bits(!rank),
    }
}

/// row (n) → min(k, n) of it
pub fn scalar(row: &[f32], k: usize) -> Vec<Likely> {
    let mut all: Vec<(u32, u32)> = (0..).zip(row).map(|(id, x)| (rank(*x), id)).collect();
    all.sort_by(|(a, id), (b, other)| b.cmp(a).then(id.cmp(other)));
    all.iter().take(k).map(|(rank, id)| Likely { id: *id, logit: number(*rank) }).collect()
}

/// Entries that are gathered at least before the smaller ones leave.
const LEAST_ROOM: usize = 256;

/// As `scalar`, added to `out`. `room` is scratch that is kept for the next row.
fn of_row(row: &[f32], k: usize, room: &mut Vec<u64>, out: &mut Vec<Likely>) {
    if k == 0 {
        return;
    }
    let most = (2 * k).max(LEAST_ROOM);
    // of what has left, the largest: only what is larger can be among the largest
    let mut least = 0;
    room.clear();
    for (id, x) in (0u32..).zip(row) {
        let entry = u64::from(rank(*x)) << 32 | u64::from(!id);
        if entry > least {
            room.push(entry);
            if room.len() == most {
                least = *room.select_nth_unstable_by(k, |a, b| b.cmp(a)).1;
                room.truncate(k);
            }
        }
    }
    room.sort_unstable_by(|a, b| b.cmp(a));
    let likely = |entry: &u64| Likely { id: !(*entry as u32), logit: number((entry >> 32) as u32) };
    out.extend(room.iter().take(k).map(likely));
}

/// Of rows of `n_columns` each.
pub fn of_rows(rows: &[f32], n_columns: usize, k: usize, out: &mut Vec<Likely>) {
    let mut room = Vec::new();
    rows.chunks_exact(n_columns).for_each(|row| of_row(row, k, &mut room, out));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_in_order_and_lead_back() {
        let numbers = [f32::MIN, -2.0, -1e-40, -0.0, 0.0, 1e-40, 1.0, 3.5, LARGEST_LOGIT];
        for pair in numbers.windows(2) {
            assert!(rank(pair[0]) < rank(pair[1]), "{pair:?}");
        }
        for x in numbers {
            assert_eq!(number(rank(x)).to_bits(), x.to_bits());
        }
        assert_eq!(rank(f32::MAX), rank(LARGEST_LOGIT));
        for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN] {
            assert!(rank(x) > rank(f32::MAX) && !number(rank(x)).is_finite());
        }
    }

    #[test]
    fn gathering_is_sorting() {
        let mut room = Vec::new();
        for n in [0, 1, 5, 300, 3000] {
            // many equals
            let row: Vec<f32> = (0..n).map(|i| ((i * 7919 + 13) % 101) as f32 - 50.0).collect();
            for k in [0, 1, 2, 40, 300, 5000] {
                let mut found = Vec::new();
                of_row(&row, k, &mut room, &mut found);
                assert_eq!(found, scalar(&row, k), "{n} {k}");
            }
        }
        let mut found = Vec::new();
        of_row(&[1.0, f32::NAN, 7.0], 2, &mut room, &mut found);
        assert!(found[0].logit.is_nan() && found[1] == Likely { id: 2, logit: 7.0 });
    }
}
