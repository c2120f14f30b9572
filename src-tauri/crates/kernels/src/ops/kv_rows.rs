//! Keys and values of one layer as plain rows, for whoever moves what a sequence holds: out of its pages, and into new
//! ones. Not for the fast path.

use super::kv_write::{F16_CONVERT, load_keys, load_values, store_key, store_value};
use crate::cpu::arena::{bytes_of, bytes_of_mut};
use crate::graph::{KvLayerLayout, PAGE_LEN};

/// A page of a layer in fewer bits: one that `Executor::kv_page` gave, as `write_kv_page` takes it for an aged page.
/// The same on every device and instruction set, so that whoever ages the same bytes gets the same.
pub fn requantized_page(layout: KvLayerLayout, page: &[u8]) -> Vec<u8> {
    let aged = layout.requantized().expect("the executor has aged pages only for layers that can age");
    // floats, so that the bytes are aligned as those of a store are
    let mut room = vec![0.0f32; page.len().div_ceil(size_of::<f32>())];
    let held = &mut bytes_of_mut(&mut room)[..page.len()];
    held.copy_from_slice(page);
    let rows = KvRows::read(layout, PAGE_LEN, std::iter::once(&*held));
    KvRows { layout: aged, ..rows }.pages().concat()
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
    /// Room for `n` positions.
    pub fn zeroed(layout: KvLayerLayout, n: usize) -> Self {
        let len = layout.n_kv_heads * n * layout.head_dim;
        Self { layout, n, keys: vec![0.0; len], values: vec![0.0; len] }
    }

    /// The first `n` positions of pages as `Executor::kv_page` gives them.
    pub fn read<'a>(layout: KvLayerLayout, n: usize, pages: impl Iterator<Item = &'a [u8]>) -> Self {
        Self::read_mixed(layout, n, pages.map(|page| (layout, page)))
    }

    /// The same of pages that may have aged, each with its own layout; what is written of it has `layout`.
    pub fn read_mixed<'a>(
        layout: KvLayerLayout,
        n: usize,
        pages: impl Iterator<Item = (KvLayerLayout, &'a [u8])>,
    ) -> Self {
        let mut rows = Self::zeroed(layout, n);
        let (d, n_heads) = (layout.head_dim, layout.n_kv_heads);
        let mut room = vec![0.0; PAGE_LEN * d];
        for (index, (layout, page)) in pages.enumerate() {
            let block_bytes = PAGE_LEN * layout.dtype.row_bytes(d);
            let start = index * PAGE_LEN;
            let n_here = n.saturating_sub(start).min(PAGE_LEN);
            for head in 0..n_heads {
                let keys = &page[head * block_bytes..][..block_bytes];
                load_keys(F16_CONVERT.portable, layout.dtype, keys, d, &mut room); // (head_dim, PAGE_LEN)
                for slot in 0..n_here {
                    let row = rows.key_mut(head, start + slot);
                    row.iter_mut().enumerate().for_each(|(i, x)| *x = room[i * PAGE_LEN + slot]);
                }
                let values = &page[(n_heads + head) * block_bytes..][..block_bytes];
                load_values(F16_CONVERT.portable, layout.dtype, values, d, &mut room); // (PAGE_LEN, head_dim)
                for slot in 0..n_here {
                    rows.value_mut(head, start + slot).copy_from_slice(&room[slot * d..(slot + 1) * d]);
                }
            }
        }
        rows
    }

    pub fn layout(&self) -> KvLayerLayout {
        self.layout
    }

    pub fn key(&self, head: usize, at: usize) -> &[f32] {
        let range = self.range(head, at);
        &self.keys[range]
    }

    pub fn value(&self, head: usize, at: usize) -> &[f32] {
        let range = self.range(head, at);
        &self.values[range]
    }

    pub fn key_mut(&mut self, head: usize, at: usize) -> &mut [f32] {
        let range = self.range(head, at);
        &mut self.keys[range]
    }

    pub fn value_mut(&mut self, head: usize, at: usize) -> &mut [f32] {
        let range = self.range(head, at);
        &mut self.values[range]
    }

    /// The pages that hold them, as `Executor::write_kv_page` takes them.
    pub fn pages(&self) -> Vec<Vec<u8>> {
        let KvLayerLayout { n_kv_heads, head_dim, dtype, .. } = self.layout;
        let block_bytes = PAGE_LEN * dtype.row_bytes(head_dim);
        let mut pages = Vec::with_capacity(self.n.div_ceil(PAGE_LEN));
        for start in (0..self.n).step_by(PAGE_LEN) {
            // floats, so that the bytes are aligned as those of a store are
            let mut room = vec![0.0f32; self.layout.page_bytes().div_ceil(size_of::<f32>())];
            for (block, room) in bytes_of_mut(&mut room).chunks_exact_mut(block_bytes).enumerate() {
                for slot in 0..PAGE_LEN.min(self.n - start) {
                    match block < n_kv_heads {
                        true => {
                            store_key(F16_CONVERT.portable, dtype, self.key(block, start + slot), slot, room)
                        }
                        false => {
                            let value = self.value(block - n_kv_heads, start + slot);
                            store_value(F16_CONVERT.portable, dtype, value, slot, room);
                        }
                    }
                }
            }
            pages.push(bytes_of(&room)[..self.layout.page_bytes()].to_vec());
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
        for dtype in [KvDType::F32, KvDType::F16, KvDType::Q8_0, KvDType::Q4_0] {
            let layout = KvLayerLayout { n_kv_heads: 2, head_dim: 32, dtype, window: None };
            let n = PAGE_LEN + 3;
            let mut rows = KvRows::zeroed(layout, n);
            for head in 0..2 {
                for at in 0..n {
                    // a number that every format holds exactly
                    let number = |i: usize| ((head * 31 + at * 7 + i) % 15) as f32 - 7.0;
                    let extreme = |i| if i == 0 { -8.0 } else { number(i) };
                    rows.key_mut(head, at).iter_mut().enumerate().for_each(|(i, x)| *x = extreme(i));
                    rows.value_mut(head, at).iter_mut().enumerate().for_each(|(i, x)| *x = extreme(i));
                }
            }
            let pages = rows.pages();
            // as a store would hold them: aligned
            let held: Vec<Vec<f32>> = pages
                .iter()
                .map(|page| {
                    let mut room = vec![0.0f32; page.len().div_ceil(4)];
                    bytes_of_mut(&mut room)[..page.len()].copy_from_slice(page);
                    room
                })
                .collect();
            let bytes = held.iter().zip(&pages).map(|(room, page)| &bytes_of(room)[..page.len()]);
            let again = KvRows::read(layout, n, bytes);
            let worst = rows.keys.iter().zip(&again.keys).chain(rows.values.iter().zip(&again.values));
            let worst = test_support::largest(worst.map(|(a, b)| (a - b).abs()));
            assert!(worst < 0.05, "{dtype:?}: {worst}");
        }
    }
}
