//! What a tensor's values go through on their way to the new file: containers order heads and store decays and norms
//! differently.

/// Order of rows or columns in the new file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Permutation {
    #[default]
    AsStored,
    /// In each head of `head_dim` rows the first `n_rot` alternate: i and i + n_rot / 2.
    Interleaved { head_dim: usize, n_rot: usize },
    /// From `first` on, a table of (n_outer, n_inner) heads of `head_len` that is stored as (n_inner, n_outer).
    Heads { first: usize, n_outer: usize, n_inner: usize, head_len: usize },
}

impl Permutation {
    /// Returns the source index of index `index` in the new file.
    pub fn source_of(self, index: usize) -> usize {
        match self {
            Self::AsStored => index,
            Self::Interleaved { head_dim, n_rot } => {
                let (head, at) = (index / head_dim * head_dim, index % head_dim);
                if at >= n_rot {
                    return index;
                }
                head + at / 2 + at % 2 * (n_rot / 2)
            }
            Self::Heads { first, .. } if index < first => index,
            Self::Heads { first, n_outer, n_inner, head_len } => {
                let (head, at) = ((index - first) / head_len, (index - first) % head_len);
                let (outer, inner) = (head / n_inner, head % n_inner);
                first + (inner * n_outer + outer) * head_len + at
            }
        }
    }
}

/// Change of every value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum ValueChange {
    #[default]
    None,
    /// Adds a number.
    Add(f32),
    /// −exp(x)
    NegatedExp,
}

impl ValueChange {
    pub fn apply(self, values: &mut [f32]) {
        match self {
            Self::None => {}
            Self::Add(offset) => values.iter_mut().for_each(|value| *value += offset),
            Self::NegatedExp => values.iter_mut().for_each(|value| *value = -value.exp()),
        }
    }
}

/// Everything that happens to a tensor's values before they are encoded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rearrangement {
    pub rows: Permutation,
    pub columns: Permutation,
    pub change: ValueChange,
}

impl Rearrangement {
    /// Returns whether the values stay as they are.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Applies what does not concern whole rows. `values`: (rows, n_cols)
    pub fn apply_within_rows(&self, values: &mut [f32], n_cols: usize) {
        if self.columns != Permutation::AsStored {
            for row in values.chunks_exact_mut(n_cols) {
                let stored = row.to_vec();
                for (column, value) in row.iter_mut().enumerate() {
                    *value = stored[self.columns.source_of(column)];
                }
            }
        }
        self.change.apply(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(order: Permutation, expected: &[usize]) {
        let found: Vec<usize> = (0..expected.len()).map(|index| order.source_of(index)).collect();
        assert_eq!(found, expected, "{order:?}");
    }

    #[test]
    fn interleaving_puts_halves_side_by_side_in_every_head() {
        check(Permutation::Interleaved { head_dim: 6, n_rot: 4 }, &[0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11]);
    }

    /// Two key heads with three value heads each: grouped by key head, then one value head of each key head in turn.
    #[test]
    fn heads_are_transposed_behind_what_stays() {
        let order = Permutation::Heads { first: 1, n_outer: 3, n_inner: 2, head_len: 2 };
        check(order, &[0, 1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12]);
        let back = Permutation::Heads { first: 1, n_outer: 2, n_inner: 3, head_len: 2 };
        assert!((0..13).all(|index| back.source_of(order.source_of(index)) == index));
    }

    #[test]
    fn columns_move_within_each_row_and_values_change() {
        let columns = Permutation::Heads { first: 0, n_outer: 2, n_inner: 2, head_len: 1 };
        let made = Rearrangement { columns, change: ValueChange::Add(1.0), ..Rearrangement::default() };
        let mut values = [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0];
        made.apply_within_rows(&mut values, 4);
        assert_eq!(values, [1.0, 3.0, 2.0, 4.0, 11.0, 13.0, 12.0, 14.0]);
        let mut decays = [0.0, 2f32.ln()];
        ValueChange::NegatedExp.apply(&mut decays);
        assert!((decays[0] + 1.0).abs() < 1e-6 && (decays[1] + 2.0).abs() < 1e-6, "{decays:?}");
    }
}
