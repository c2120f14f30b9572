//! Keys and values of one layer as plain rows, for moving the contents of a sequence from its pages into new ones.
//! Not for the fast path.

use super::kv_write::{F16_CONVERT, load_keys, load_values, store_key, store_value};
use crate::cpu::arena::{bytes_of, bytes_of_mut};
use crate::graph::{KvLayerLayout, KvPrecision, PAGE_LEN};

/// Requantizes one layer of a page: from the bytes of `Executor::kv_page` to those that `write_kv_page` takes for a
/// requantized page. Equal bytes give equal results on every device and instruction set.
pub fn requantized_page(layout: KvLayerLayout, page: &[u8]) -> Vec<u8> {
    let requantized =
        layout.requantized().expect("the executor has requantized pages only for layers that support them");
    // floats, to align the bytes as in a KV store
    let mut buffer = vec![0.0f32; page.len().div_ceil(size_of::<f32>())];
    let held = &mut bytes_of_mut(&mut buffer)[..page.len()];
    held.copy_from_slice(page);
    let rows = KvRows::read(layout, PAGE_LEN, std::iter::once(&*held));
    KvRows { layout: requantized, ..rows }.pages().concat()
}

/// Rows of one layer, position by position.
pub struct KvRows {
    layout: KvLayerLayout,
    n: usize,
    /// (n_kv_heads, n, head_dim)
    keys: Vec<f32>,
    /// (n_kv_heads, n, head_dim)
    values: Vec<f32>,
}

impl KvRows {
    /// Zeros for `n` positions.
    pub fn zeroed(layout: KvLayerLayout, n: usize) -> Self {
        let len = layout.n_kv_heads * n * layout.head_dim;
        Self { layout, n, keys: vec![0.0; len], values: vec![0.0; len] }
    }

    /// Reads the first `n` positions of pages from `Executor::kv_page`.
    pub fn read<'a>(layout: KvLayerLayout, n: usize, pages: impl Iterator<Item = &'a [u8]>) -> Self {
        Self::read_mixed(layout, n, pages.map(|page| (layout, page)))
    }

    /// As `read`, for pages of which some may be requantized, each with its layout. `pages` writes them in `layout`.
    pub fn read_mixed<'a>(
        layout: KvLayerLayout,
        n: usize,
        pages: impl Iterator<Item = (KvLayerLayout, &'a [u8])>,
    ) -> Self {
        let mut rows = Self::zeroed(layout, n);
        let (d, n_heads) = (layout.head_dim, layout.n_kv_heads);
        let mut buffer = vec![0.0; PAGE_LEN * d];
        for (index, (layout, page)) in pages.enumerate() {
            let start = index * PAGE_LEN;
            let n_here = n.saturating_sub(start).min(PAGE_LEN);
            for head in 0..n_heads {
                let keys = &page[layout.keys_of(head)];
                load_keys(F16_CONVERT.portable, layout.precision.keys, keys, d, &mut buffer); // (head_dim, PAGE_LEN)
                for slot in 0..n_here {
                    let row = rows.key_mut(head, start + slot);
                    row.iter_mut().enumerate().for_each(|(i, x)| *x = buffer[i * PAGE_LEN + slot]);
                }
                let values = &page[layout.values_of(head)];
                load_values(F16_CONVERT.portable, layout.precision.values, values, d, &mut buffer); // (PAGE_LEN, head_dim)
                for slot in 0..n_here {
                    rows.value_mut(head, start + slot).copy_from_slice(&buffer[slot * d..(slot + 1) * d]);
                }
            }
        }
        rows
    }

    /// The layout in which `pages` writes the rows.
    pub fn layout(&self) -> KvLayerLayout {
        self.layout
    }

    /// The key of a head at a position: (head_dim)
    pub fn key(&self, head: usize, at: usize) -> &[f32] {
        let range = self.range(head, at);
        &self.keys[range]
    }

    /// The value of a head at a position: (head_dim)
    pub fn value(&self, head: usize, at: usize) -> &[f32] {
        let range = self.range(head, at);
        &self.values[range]
    }

    /// As `key`, mutable.
    pub fn key_mut(&mut self, head: usize, at: usize) -> &mut [f32] {
        let range = self.range(head, at);
        &mut self.keys[range]
    }

    /// As `value`, mutable.
    pub fn value_mut(&mut self, head: usize, at: usize) -> &mut [f32] {
        let range = self.range(head, at);
        &mut self.values[range]
    }

    /// Encodes the rows as pages for `Executor::write_kv_page`.
    pub fn pages(&self) -> Vec<Vec<u8>> {
        let KvPrecision { keys, values } = self.layout.precision;
        let halves = F16_CONVERT.portable;
        let mut pages = Vec::with_capacity(self.n.div_ceil(PAGE_LEN));
        for start in (0..self.n).step_by(PAGE_LEN) {
            // floats, to align the bytes as in a KV store
            let mut buffer = vec![0.0f32; self.layout.page_bytes().div_ceil(size_of::<f32>())];
            let bytes = bytes_of_mut(&mut buffer);
            for head in 0..self.layout.n_kv_heads {
                for slot in 0..PAGE_LEN.min(self.n - start) {
                    let key = &mut bytes[self.layout.keys_of(head)];
                    store_key(halves, keys, self.key(head, start + slot), slot, key);
                    let value = &mut bytes[self.layout.values_of(head)];
                    store_value(halves, values, self.value(head, start + slot), slot, value);
                }
            }
            pages.push(bytes_of(&buffer)[..self.layout.page_bytes()].to_vec());
        }
        pages
    }

    fn range(&self, head: usize, at: usize) -> std::ops::Range<usize> {
        let d = self.layout.head_dim;
        let start = (head * self.n + at) * d;
        start..start + d
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::KvDType;

    #[test]
    fn rows_come_back_from_their_pages() {
        let dtypes = [KvDType::F32, KvDType::F16, KvDType::Q8_0, KvDType::Q4_0];
        for (keys, values) in dtypes.iter().flat_map(|keys| dtypes.map(|values| (*keys, values))) {
            let precision = KvPrecision { keys, values };
            let layout = KvLayerLayout { n_kv_heads: 2, head_dim: 32, precision, window: None };
            let n = PAGE_LEN + 3;
            let mut rows = KvRows::zeroed(layout, n);
            for head in 0..2 {
                for at in 0..n {
                    // a number that every format represents exactly
                    let number = |i: usize| ((head * 31 + at * 7 + i) % 15) as f32 - 7.0;
                    let extreme = |i| if i == 0 { -8.0 } else { number(i) };
                    rows.key_mut(head, at).iter_mut().enumerate().for_each(|(i, x)| *x = extreme(i));
                    rows.value_mut(head, at).iter_mut().enumerate().for_each(|(i, x)| *x = extreme(i));
                }
            }
            let pages = rows.pages();
            // aligned as in a KV store
            let held: Vec<Vec<f32>> = pages
                .iter()
                .map(|page| {
                    let mut buffer = vec![0.0f32; page.len().div_ceil(4)];
                    bytes_of_mut(&mut buffer)[..page.len()].copy_from_slice(page);
                    buffer
                })
                .collect();
            let bytes = held.iter().zip(&pages).map(|(buffer, page)| &bytes_of(buffer)[..page.len()]);
            let again = KvRows::read(layout, n, bytes);
            let worst = rows.keys.iter().zip(&again.keys).chain(rows.values.iter().zip(&again.values));
            let worst = test_support::largest(worst.map(|(a, b)| (a - b).abs()));
            assert!(worst < 0.05, "{precision:?}: {worst}");
        }
    }
}
