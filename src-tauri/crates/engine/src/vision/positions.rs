//! Learned tables of positions, brought to an image of another shape.

use crate::spec::TableResampling;

/// Resamples a square table (side · side, width) bilinearly to `rows` × `cols`: (rows · cols, width)
pub(super) fn resample(
    table: &[f32],
    side: usize,
    rule: TableResampling,
    (rows, cols): (usize, usize),
) -> Vec<f32> {
    let width = table.len() / (side * side);
    let (down, across) = (taps(side, rows, rule), taps(side, cols, rule));
    // rows of the table as wide as the image, then as many as it has
    let mut narrowed = vec![0.0; side * cols * width];
    for (index, out) in narrowed.chunks_exact_mut(width).enumerate() {
        let (row, col) = (index / cols, index % cols);
        for (from, share) in &across[col] {
            let place = &table[(row * side + from) * width..][..width];
            out.iter_mut().zip(place).for_each(|(sum, x)| *sum += share * x);
        }
    }
    let mut out = vec![0.0; rows * cols * width];
    for (index, out) in out.chunks_exact_mut(width).enumerate() {
        let (row, col) = (index / cols, index % cols);
        for (from, share) in &down[row] {
            let place = &narrowed[(from * cols + col) * width..][..width];
            out.iter_mut().zip(place).for_each(|(sum, x)| *sum += share * x);
        }
    }
    out
}

/// Adds the columns' and the rows' positions: `table` (2, side, width) → (rows · cols, width)
pub(super) fn sum_axes(table: &[f32], side: usize, (rows, cols): (usize, usize)) -> Vec<f32> {
    let width = table.len() / (2 * side);
    let place = |axis: usize, at: usize| &table[(axis * side + at) * width..][..width];
    let mut out = Vec::with_capacity(rows * cols * width);
    for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
        out.extend(place(0, col).iter().zip(place(1, row)).map(|(x, y)| x + y));
    }
    out
}

/// Positions of the table that make up one of the image, and their shares.
type TableTaps = Vec<(usize, f32)>;

/// Returns the taps of `n` places over `side` positions.
fn taps(side: usize, n: usize, rule: TableResampling) -> Vec<TableTaps> {
    match rule {
        TableResampling::Corners => (0..n).map(|i| between(side, n, i)).collect(),
        TableResampling::Antialiased => (0..n).map(|i| covered(side, n, i)).collect(),
    }
}

/// The two positions beside place `i` of `n`, of which the first and last are those of the table.
fn between(side: usize, n: usize, i: usize) -> TableTaps {
    let at = if n > 1 { i as f32 * ((side - 1) as f32 / (n - 1) as f32) } else { 0.0 };
    let low = (at as usize).min(side - 1);
    let share = at - low as f32;
    vec![(low, 1.0 - share), ((low + 1).min(side - 1), share)]
}

/// All positions that place `i` of `n` covers, by a triangle as wide as two places of the coarser of both.
fn covered(side: usize, n: usize, i: usize) -> TableTaps {
    let scale = side as f32 / n as f32;
    let support = scale.max(1.0);
    let centre = scale * (i as f32 + 0.5);
    let first = (centre - support + 0.5).max(0.0) as usize;
    let end = ((centre + support + 0.5) as usize).min(side);
    let share = |at: usize| (1.0 - ((at as f32 - centre + 0.5) / support).abs()).max(0.0);
    let total: f32 = (first..end).map(share).sum();
    (first..end).map(|at| (at, share(at) / total)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_stay_and_what_lies_between_is_interpolated() {
        let resample = |table: &[f32], side, shape| resample(table, side, TableResampling::Corners, shape);
        let table = [0.0, 2.0, 4.0, 8.0];
        assert_eq!(resample(&table, 2, (2, 2)), table);
        assert_eq!(resample(&table, 2, (3, 3)), [0.0, 1.0, 2.0, 2.0, 3.5, 5.0, 4.0, 6.0, 8.0]);
        assert_eq!(resample(&table, 2, (1, 3)), [0.0, 1.0, 2.0]);
        assert_eq!(resample(&[7.0], 1, (2, 2)), [7.0; 4]);
    }

    #[test]
    fn shrinking_averages_what_a_place_covers() {
        let resample =
            |table: &[f32], side, shape| resample(table, side, TableResampling::Antialiased, shape);
        let table: Vec<f32> = (0..16).map(|i| (i % 4) as f32).collect();
        assert_eq!(resample(&table, 4, (4, 4)), table);
        // by hand: weights 3, 3 and 1 of 7 at the first of two places
        let shrunk = resample(&table, 4, (4, 2));
        assert!((shrunk[0] - 5.0 / 7.0).abs() < 1e-6 && (shrunk[1] - 16.0 / 7.0).abs() < 1e-6, "{shrunk:?}");
        // by hand: the edges stay, and places lie a quarter of a position beside them
        assert_eq!(resample(&[0.0, 4.0, 0.0, 4.0], 2, (1, 4)), [0.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn columns_and_rows_have_a_table_each() {
        let table = [1.0, 2.0, 3.0, 10.0, 20.0, 30.0];
        assert_eq!(sum_axes(&table, 3, (2, 3)), [11.0, 12.0, 13.0, 21.0, 22.0, 23.0]);
    }
}
