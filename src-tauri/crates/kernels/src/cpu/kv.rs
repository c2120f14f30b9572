//! The paged KV store of a CPU: one pool for layers with full attention, one for those with a sliding window,
//! and one for pages requantized to fewer bits.
//! Order: pages, layers, key blocks of the heads, value blocks of the heads. A page of a layer is contiguous.

use std::ops::Range;

use super::arena::AlignedVec;
use super::disjoint_slices::DisjointSlices;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, KvLayerLayout, PAGE_LEN, Retention};
use crate::ops::kv_write::{F16Convert, store_key, store_value};

/// Keys and values of the layers of one device.
pub struct KvStore {
    all: KvPages,
    window: KvPages,
    /// Requantized pages of layers with full attention; their indices follow those of `all`.
    requantized: KvPages,
    /// Pages in `all`.
    n_exact: u32,
    /// `None`: a layer of another device.
    layers: Vec<Option<KvLayerSpans>>,
}

/// Where the keys and values of a layer are stored.
#[derive(Clone, Copy)]
struct KvLayerSpans {
    own: LayerSpan,
    /// In requantized pages; `None`: it has none.
    requantized: Option<LayerSpan>,
}

/// The pages of all layers of one kind.
struct KvPages {
    bytes: AlignedVec<u8>,
    page_bytes: usize,
}

/// Position and layout of a layer within a page.
#[derive(Clone, Copy)]
struct LayerSpan {
    offset: usize,
    layout: KvLayerLayout,
}

impl KvStore {
    /// Allocates the pages of the layers on `device`.
    pub fn new(graph: &Graph, device: DeviceId, capacity: &Capacity) -> Result<Self, KernelError> {
        let (mut all, mut window, mut requantized_bytes) = (0, 0, 0);
        let mut layers = Vec::with_capacity(graph.kv().layers.len());
        let requantizes = capacity.n_requantized_pages > 0;
        for (layout, at) in graph.kv().layers.iter().zip(graph.kv_devices()) {
            if *at != device {
                layers.push(None);
                continue;
            }
            let page_bytes = match layout.retention() {
                Retention::All => &mut all,
                Retention::Window => &mut window,
            };
            let own = LayerSpan::next(*layout, page_bytes);
            let requantized = layout.requantized().filter(|_| requantizes);
            let requantized = requantized.map(|layout| LayerSpan::next(layout, &mut requantized_bytes));
            layers.push(Some(KvLayerSpans { own, requantized }));
        }
        let pages = |page_bytes: usize, n_pages: usize| -> Result<KvPages, KernelError> {
            let n_bytes = page_bytes.saturating_mul(n_pages);
            let bytes = AlignedVec::zeroed(n_bytes, "the context (KV cache)")?.in_huge_pages();
            Ok(KvPages { bytes, page_bytes })
        };
        Ok(Self {
            all: pages(all, capacity.n_pages)?,
            window: pages(window, capacity.n_window_pages)?,
            requantized: pages(requantized_bytes, capacity.n_requantized_pages)?,
            n_exact: u32::try_from(capacity.n_pages).unwrap_or(u32::MAX),
            layers,
        })
    }

    /// Returns how the layer stores keys and values in `page`.
    pub fn layout_of(&self, layer: usize, page: u32) -> KvLayerLayout {
        self.locate(layer, page).1.layout
    }

    /// Returns how the layer stores requantized keys and values; `None`: the store has no pages for them.
    pub fn requantized(&self, layer: usize) -> Option<KvLayerLayout> {
        self.spans(layer).requantized.map(|span| span.layout)
    }

    /// Returns whether `page` of the layer is requantized.
    pub fn is_requantized(&self, layer: usize, page: u32) -> bool {
        self.spans(layer).requantized.is_some() && page >= self.n_exact
    }

    /// Returns the memory of a full-attention page to the system, if it supports that.
    pub fn release_page(&mut self, page: u32) {
        let start = page as usize * self.all.page_bytes;
        self.all.bytes.release(start..start + self.all.page_bytes);
    }

    /// Returns how the layer stores keys and values in pages that are not requantized.
    pub fn layout(&self, layer: usize) -> KvLayerLayout {
        self.span(layer).layout
    }

    /// Borrows the keys of one head in one page.
    pub fn keys(&self, layer: usize, page: u32, head: usize) -> &[u8] {
        let (pages, span, page) = self.locate(layer, page);
        &pages.bytes[range_in(span, pages.page_bytes, page, span.layout.keys_of(head))]
    }

    /// Borrows the values of one head in one page.
    pub fn values(&self, layer: usize, page: u32, head: usize) -> &[u8] {
        let (pages, span, page) = self.locate(layer, page);
        &pages.bytes[range_in(span, pages.page_bytes, page, span.layout.values_of(head))]
    }

    /// Borrows all of one layer in one page.
    pub fn page(&self, layer: usize, page: u32) -> &[u8] {
        let (pages, span, page) = self.locate(layer, page);
        &pages.bytes[page_range(span, pages.page_bytes, page)]
    }

    /// Borrows all of one layer in one page mutably.
    pub fn page_mut(&mut self, layer: usize, page: u32) -> &mut [u8] {
        let (pages, span, index) = self.locate(layer, page);
        let range = page_range(span, pages.page_bytes, index);
        match self.is_requantized(layer, page) {
            true => &mut self.requantized.bytes[range],
            false => &mut self.of_kind(span.layout.retention()).bytes[range],
        }
    }

    /// Copies all layers of one kind from one page to another.
    pub fn copy_page(&mut self, retention: Retention, from: u32, to: u32) {
        let KvPages { bytes, page_bytes } = self.of_kind(retention);
        let start = from as usize * *page_bytes;
        bytes.copy_within(start..start + *page_bytes, to as usize * *page_bytes);
    }

    /// Writes key and value (head_dim) of one head at one slot of one page.
    #[allow(clippy::too_many_arguments)] // an address in the store and what to write
    pub fn write(
        &mut self,
        halves: F16Convert,
        layer: usize,
        page: u32,
        slot: usize,
        head: usize,
        k: &[f32],
        v: &[f32],
    ) {
        // SAFETY: the store is borrowed exclusively, so no other thread writes.
        unsafe { self.writer(layer).write(halves, page, slot, head, k, v) }
    }

    /// Returns a writer for several workers, each with separate KV heads.
    pub fn writer(&mut self, layer: usize) -> KvWriter<'_> {
        let span = self.span(layer);
        let KvPages { bytes, page_bytes } = self.of_kind(span.layout.retention());
        KvWriter { bytes: DisjointSlices::new(bytes), page_bytes: *page_bytes, span }
    }

    /// Returns the pool of `page`, the layer's layout in it, and the page's index there.
    fn locate(&self, layer: usize, page: u32) -> (&KvPages, LayerSpan, u32) {
        let KvLayerSpans { own, requantized } = self.spans(layer);
        match (own.layout.retention(), requantized) {
            (Retention::Window, _) => (&self.window, own, page),
            (Retention::All, Some(requantized)) if page >= self.n_exact => {
                (&self.requantized, requantized, page - self.n_exact)
            }
            (Retention::All, Some(_) | None) => (&self.all, own, page),
        }
    }

    fn of_kind(&mut self, retention: Retention) -> &mut KvPages {
        match retention {
            Retention::All => &mut self.all,
            Retention::Window => &mut self.window,
        }
    }

    fn spans(&self, layer: usize) -> KvLayerSpans {
        self.layers[layer].expect("the graph uses a KV layer only on the device that writes it")
    }

    fn span(&self, layer: usize) -> LayerSpan {
        self.spans(layer).own
    }
}

impl LayerSpan {
    /// Places a layer after the `page_bytes` already in use.
    fn next(layout: KvLayerLayout, page_bytes: &mut usize) -> Self {
        let offset = *page_bytes;
        *page_bytes += layout.page_bytes();
        Self { offset, layout }
    }
}

fn page_range(span: LayerSpan, page_bytes: usize, page: u32) -> Range<usize> {
    range_in(span, page_bytes, page, 0..span.layout.page_bytes())
}

/// The bytes `of_layer` of a layer's part of a page.
fn range_in(span: LayerSpan, page_bytes: usize, page: u32, of_layer: Range<usize>) -> Range<usize> {
    let start = page as usize * page_bytes + span.offset;
    start + of_layer.start..start + of_layer.end
}

/// Writes to one layer.
pub struct KvWriter<'a> {
    bytes: DisjointSlices<'a, u8>,
    page_bytes: usize,
    span: LayerSpan,
}

impl KvWriter<'_> {
    /// Writes key and value (head_dim) of one head at one slot of one page.
    ///
    /// # Safety
    /// No other thread writes the same `head` at the same time.
    pub unsafe fn write(
        &self,
        halves: F16Convert,
        page: u32,
        slot: usize,
        head: usize,
        k: &[f32],
        v: &[f32],
    ) {
        let layout = self.span.layout;
        assert!(head < layout.n_kv_heads && slot < PAGE_LEN);
        let at = range_in(self.span, self.page_bytes, page, layout.keys_of(head));
        // SAFETY: blocks of different heads do not overlap, and only this thread uses this head.
        store_key(halves, layout.precision.keys, k, slot, unsafe { self.bytes.slice_mut(at) });
        let at = range_in(self.span, self.page_bytes, page, layout.values_of(head));
        // SAFETY: as above.
        store_value(halves, layout.precision.values, v, slot, unsafe { self.bytes.slice_mut(at) });
    }
}
