//! Size of sequence state: pages, window pages and recurrent states, and their bytes.

use kernels::{KvDType, KvLayerLayout, KvLayout, KvPrecision, PAGE_LEN, Retention};

use super::CHECKPOINT_CHUNK_TOKENS;
use super::requantize::KvRequantize;
use crate::decoder::kv_layout;
use crate::error::{EngineError, Result};
use crate::spec::ModelSpec;

/// Rows of one run: enough that weights are read seldom, few enough that a cancellation waits only briefly.
pub const DEFAULT_MAX_ROWS: usize = 256;

/// Positions that a window keeps beyond its length: the longest draft to take back, and the few tokens at a prompt's
/// end that its continuation does not repeat.
pub const WINDOW_REWIND_TOKENS: usize = 64;

/// Rewind points of all sequences together. Far more than anyone edits.
pub const MAX_REWIND_POINTS: usize = 64;

/// How far a sequence can rewind without a rewind point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewind {
    /// To any position: only full attention.
    Anywhere,
    /// By `WINDOW_REWIND_TOKENS` positions: windows drop older ones.
    Near,
    /// Not at all: a recurrent state cannot be undone.
    Nowhere,
}

/// Limits of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Positions per page.
    pub page_len: usize,
    /// Maximum tokens per sequence.
    pub n_ctx: usize,
    /// Maximum sequences at a time.
    pub max_sequences: usize,
    /// Maximum rows of one run.
    pub max_rows: usize,
    /// Positions that the longest window reaches. `None` without windowed layers.
    pub window: Option<usize>,
    /// Whether layers carry a recurrent state.
    pub recurrent: bool,
    /// Maximum rewind points of all sequences.
    pub max_rewind_points: usize,
    /// Window pages for rewind points, beyond those of live sequences.
    pub n_rewind_window_pages: usize,
    /// State slots for rewind points, beyond those of live sequences.
    pub n_rewind_states: usize,
    /// State slots for marks, to return to when a draft was wrong.
    pub n_mark_states: usize,
    /// Full-attention pages of all sequences. `None`: enough for all contexts at full length.
    pub max_pages: Option<usize>,
    /// When full-attention pages are requantized.
    pub requantize: RequantizePolicy,
}

/// When keys and values are requantized, and the page sizes before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequantizePolicy {
    /// Setting of the model.
    pub when: KvRequantize,
    /// Bytes of an exact full-attention page.
    pub page_bytes: u64,
    /// Bytes of a requantized page.
    pub requantized_page_bytes: u64,
}

impl Geometry {
    /// Plans the cache for the layers of `layout`. Rewind points and marks take at most `rewind_bytes`.
    pub fn new(
        layout: &KvLayout,
        n_ctx: usize,
        max_sequences: usize,
        max_rows: usize,
        rewind_bytes: u64,
    ) -> Self {
        assert!(n_ctx > 0 && max_sequences > 0 && max_rows > 0, "a cache has layers");
        let window = layout.layers.iter().filter_map(|layer| layer.window).max();
        let live = Self {
            page_len: PAGE_LEN,
            n_ctx,
            max_sequences,
            max_rows,
            window,
            recurrent: !layout.states.is_empty(),
            max_rewind_points: 0,
            n_rewind_window_pages: 0,
            n_rewind_states: 0,
            n_mark_states: 0,
            max_pages: None,
            requantize: RequantizePolicy::default(),
        };
        if !live.can_lose_positions() {
            return live;
        }
        let bytes = KvUnitBytes::of(layout);
        let n_mark_states = match live.recurrent {
            true => max_sequences.min((rewind_bytes / 2 / bytes.state.max(1)) as usize),
            false => 0,
        };
        let rewind_bytes = rewind_bytes - n_mark_states as u64 * bytes.state;
        // The most that a rewind point costs: the pages of its window, and a state.
        let n_pages = if live.loses_pages() { live.live_window_pages() } else { 0 };
        let of_one = (n_pages as u64 * bytes.window_page + bytes.state).max(1);
        let max_rewind_points =
            MAX_REWIND_POINTS.min(usize::try_from(rewind_bytes / of_one).unwrap_or(MAX_REWIND_POINTS));
        Self {
            max_rewind_points,
            n_rewind_window_pages: max_rewind_points * n_pages,
            n_rewind_states: if live.recurrent { max_rewind_points } else { 0 },
            n_mark_states,
            ..live
        }
    }

    /// Adds requantization, if it saves anything in `layout`.
    pub fn with_requantize(self, when: KvRequantize, layout: &KvLayout) -> Self {
        if !layout.can_requantize() || when == KvRequantize::Off {
            return self;
        }
        let KvUnitBytes { page, requantized_page, .. } = KvUnitBytes::of(layout);
        Self {
            requantize: RequantizePolicy { when, page_bytes: page, requantized_page_bytes: requantized_page },
            ..self
        }
    }

    /// Returns the slots for requantized pages. Both kinds together stay within the bytes of `n_pages`.
    pub fn n_requantized_pages(&self) -> usize {
        let full = self.pages_for(self.n_ctx).saturating_mul(self.max_sequences);
        let within = |policy: RequantizePolicy| {
            self.n_pages() as u64 * policy.page_bytes / policy.requantized_page_bytes.max(1)
        };
        match self.requantize.when {
            KvRequantize::Off => 0,
            KvRequantize::Pressure | KvRequantize::After(_) => full.min(within(self.requantize) as usize),
        }
    }

    /// Returns the pages that `n` tokens of a sequence take. Requantized ones count by their bytes.
    pub fn pages_to_hold(&self, n: usize) -> usize {
        let n_requantized = self.pages_for(self.requantize.when.due(n) * CHECKPOINT_CHUNK_TOKENS);
        let requantized_bytes = n_requantized as u64 * self.requantize.requantized_page_bytes;
        self.pages_for(n) - n_requantized
            + requantized_bytes.div_ceil(self.requantize.page_bytes.max(1)) as usize
    }

    /// Returns the bytes of one whole context in full-attention layers.
    fn context_bytes(&self, page_bytes: u64) -> u64 {
        let n_exact = self.pages_for(self.requantize.when.n_exact(self.n_ctx));
        let n_requantized = self.pages_for(self.n_ctx) - n_exact;
        n_exact as u64 * page_bytes + n_requantized as u64 * self.requantize.requantized_page_bytes
    }

    /// Returns the pages that hold `n` positions.
    pub fn pages_for(&self, n: usize) -> usize {
        n.div_ceil(self.page_len)
    }

    /// Returns the full-attention pages of all sequences.
    pub fn n_pages(&self) -> usize {
        let full = self.pages_for(self.n_ctx).saturating_mul(self.max_sequences);
        self.max_pages.map_or(full, |max| max.min(full))
    }

    /// Shrinks the plan to `bytes`: fewer sequences if each has a fixed cost, then fewer pages. One whole context
    /// always fits.
    pub fn within(self, bytes: Option<u64>, layout: &KvLayout) -> Self {
        let Some(bytes) = bytes else { return self };
        let piece = KvUnitBytes::of(layout);
        let one = self.context_bytes(piece.page);
        let fixed = self.live_window_pages() as u64 * piece.window_page
            + if self.recurrent { piece.state } else { 0 };
        let left = bytes.saturating_sub(one);
        let max_sequences = left.checked_div(fixed).and_then(|n| usize::try_from(n).ok());
        let max_sequences = max_sequences.unwrap_or(usize::MAX).clamp(1, self.max_sequences);
        let left = bytes.saturating_sub(fixed.saturating_mul(max_sequences as u64));
        let n_pages = left.checked_div(piece.page).and_then(|n| usize::try_from(n).ok());
        // A model without full-attention layers takes no such pages.
        let min_pages = one.div_ceil(piece.page.max(1)) as usize;
        Self { max_sequences, max_pages: Some(n_pages.unwrap_or(usize::MAX).max(min_pages)), ..self }
    }

    /// Returns the window pages of all sequences and rewind points.
    pub fn n_window_pages(&self) -> usize {
        match self.window {
            Some(_) => self.live_window_pages() * self.max_sequences + self.n_rewind_window_pages,
            None => 0,
        }
    }

    /// Returns the state slots of all sequences, rewind points and marks.
    pub fn n_states(&self) -> usize {
        match self.recurrent {
            true => self.max_sequences + self.n_rewind_states + self.n_mark_states,
            false => 0,
        }
    }

    /// Returns the window pages that one live sequence holds at most, in the middle of a run.
    pub fn live_window_pages(&self) -> usize {
        let Some(window) = self.window else { return 0 };
        let n_positions = window.saturating_add(WINDOW_REWIND_TOKENS).saturating_add(self.max_rows);
        // Both ends may lie anywhere in a page.
        self.pages_for(self.n_ctx).min(n_positions.div_ceil(self.page_len).saturating_add(1))
    }

    /// Returns whether windows pass positions before the context is full.
    fn loses_pages(&self) -> bool {
        self.first_window_page(self.n_ctx) > 0
    }

    /// Returns how far a sequence can rewind without a rewind point.
    pub fn rewind(&self) -> Rewind {
        match (self.recurrent, self.loses_pages()) {
            (true, _) => Rewind::Nowhere,
            (false, true) => Rewind::Near,
            (false, false) => Rewind::Anywhere,
        }
    }

    /// Returns whether a sequence cannot rewind everywhere.
    pub fn can_lose_positions(&self) -> bool {
        self.rewind() != Rewind::Anywhere
    }

    /// Returns the index of the first window page that a sequence of `n_held` tokens keeps.
    pub fn first_window_page(&self, n_held: usize) -> usize {
        match self.window {
            Some(window) => {
                (n_held + 1).saturating_sub(window.saturating_add(WINDOW_REWIND_TOKENS)) / self.page_len
            }
            None => 0,
        }
    }

    /// Returns whether the windows of a token at `position` reach no page before `first`.
    pub fn is_covered(&self, first: usize, position: usize) -> bool {
        match self.window {
            Some(window) => (position + 1).saturating_sub(window) / self.page_len >= first,
            None => true,
        }
    }
}

/// Bytes of one page or state of each kind, all layers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvUnitBytes {
    /// Full-attention page.
    pub page: u64,
    /// Requantized full-attention page. 0 if requantization saves nothing.
    pub requantized_page: u64,
    /// Sliding-window page.
    pub window_page: u64,
    /// Recurrent state.
    pub state: u64,
}

impl KvUnitBytes {
    /// Computes the bytes of each unit for a layout.
    pub fn of(layout: &KvLayout) -> Self {
        let of = |retention| {
            let layers = layout.layers.iter().filter(|layer| layer.retention() == retention);
            layers.map(|layer| layer.page_bytes() as u64).sum()
        };
        let n_floats: usize = layout.states.iter().sum();
        let requantized = layout.layers.iter().filter_map(KvLayerLayout::requantized);
        Self {
            page: of(Retention::All),
            requantized_page: if layout.can_requantize() {
                requantized.map(|layer| layer.page_bytes() as u64).sum()
            } else {
                0
            },
            window_page: of(Retention::Window),
            state: (n_floats * size_of::<f32>()) as u64,
        }
    }
}

/// Checks that heads fill whole blocks of the precision.
///
/// Errors: `model.kv_dtype`.
pub fn check_precision(layout: &KvLayout) -> Result<()> {
    for layer in &layout.layers {
        let KvPrecision { keys, values } = layer.precision;
        let unfit =
            [keys, values].into_iter().find(|dtype| !layer.head_dim.is_multiple_of(dtype.block_len()));
        if let Some(dtype) = unfit {
            let (block, name) = (dtype.block_len(), format!("{dtype:?}").to_lowercase());
            return Err(EngineError::new(
                "model.kv_dtype",
                format!(
                    "heads of {} elements cannot be stored as {name}, in blocks of {block}",
                    layer.head_dim
                ),
                "Use --kv f16 for this model.",
            ));
        }
    }
    Ok(())
}

/// Returns a smaller precision than `kv` at hardly any loss. `None` if there is none, or heads do not fit its blocks.
pub fn next_smaller(spec: &ModelSpec, kv: KvPrecision) -> Option<KvPrecision> {
    let quantized = |dtype: KvDType| if dtype.is_quantized() { dtype } else { KvDType::Q8_0 };
    let smaller = KvPrecision { keys: quantized(kv.keys), values: quantized(kv.values) };
    Some(smaller).filter(|smaller| *smaller != kv && check_precision(&kv_layout(spec, *smaller)).is_ok())
}

/// Returns what `n_sequences` sequences of up to `n_ctx` tokens take, without rewind points.
pub fn kv_bytes(spec: &ModelSpec, kv: KvPrecision, n_ctx: usize, n_sequences: usize) -> KvBytes {
    let layout = kv_layout(spec, kv);
    let geometry = Geometry::new(&layout, n_ctx.max(1), n_sequences.max(1), DEFAULT_MAX_ROWS, 0);
    KvBytes::of(&layout, &geometry)
}

/// Bytes of the cache when every sequence is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KvBytes {
    /// Keys and values of full-attention layers. Grows with the context.
    pub full: u64,
    /// Keys and values of sliding-window layers.
    pub windowed: u64,
    /// Recurrent states.
    pub states: u64,
    /// Rewind points and marks.
    pub rewind: u64,
}

impl KvBytes {
    /// Computes the bytes of a cache with these limits.
    pub fn of(layout: &KvLayout, geometry: &Geometry) -> Self {
        let bytes = KvUnitBytes::of(layout);
        let n = geometry.max_sequences as u64;
        let n_states = if geometry.recurrent { n } else { 0 };
        Self {
            full: (geometry.n_pages() as u64 * bytes.page)
                .min(n.saturating_mul(geometry.context_bytes(bytes.page))),
            windowed: n * geometry.live_window_pages() as u64 * bytes.window_page,
            states: n_states * bytes.state,
            rewind: geometry.n_rewind_window_pages as u64 * bytes.window_page
                + (geometry.n_rewind_states + geometry.n_mark_states) as u64 * bytes.state,
        }
    }

    /// Returns what does not grow with the context once a window fits in it.
    pub fn fixed(&self) -> u64 {
        self.windowed + self.states
    }

    /// Returns the total without rewind points and marks.
    pub fn live(&self) -> u64 {
        self.total() - self.rewind
    }

    /// Returns the bytes of all parts.
    pub fn total(&self) -> u64 {
        let Self { full, windowed, states, rewind } = *self;
        full + windowed + states + rewind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(windows: &[Option<usize>], states: &[usize]) -> KvLayout {
        let layer =
            |&window| KvLayerLayout { n_kv_heads: 4, head_dim: 128, precision: KvDType::F16.both(), window };
        KvLayout { page_len: PAGE_LEN, layers: windows.iter().map(layer).collect(), states: states.to_vec() }
    }

    #[test]
    fn windows_and_states_do_not_grow_with_the_context() {
        // Gemma 3's pattern: five layers of 1,024 positions to one of all
        let layout = layout(&[Some(1024), Some(1024), Some(1024), Some(1024), Some(1024), None], &[10, 20]);
        let of = |n_ctx| KvBytes::of(&layout, &Geometry::new(&layout, n_ctx, 2, 64, 0));
        let (short, long) = (of(8192), of(131_072));
        assert_eq!((short.windowed, short.states), (long.windowed, long.states));
        // keys and values, 4 heads of 128 in two bytes
        assert_eq!(long.full, 2 * 131_072 * 2 * 4 * 128 * 2);
        assert_eq!(long.windowed, 2 * (1024 + 64 + 64 + 32) * 5 * 2 * 4 * 128 * 2);
        assert_eq!((long.states, long.rewind), (2 * 30 * 4, 0));
        // a context shorter than the window needs no more than its length
        assert_eq!(of(256).windowed, 2 * 256 * 5 * 2 * 4 * 128 * 2);
    }

    #[test]
    fn rewind_points_stay_within_their_bytes() {
        let layout = layout(&[Some(512), None], &[250_000]);
        for rewind_bytes in [0, 1 << 20, 64 << 20, 1 << 40] {
            let geometry = Geometry::new(&layout, 32_768, 4, 64, rewind_bytes);
            assert!(KvBytes::of(&layout, &geometry).rewind <= rewind_bytes, "{geometry:?}");
            assert!(geometry.max_rewind_points <= MAX_REWIND_POINTS);
        }
        assert_eq!(Geometry::new(&layout, 32_768, 4, 64, 1 << 40).max_rewind_points, MAX_REWIND_POINTS);
    }

    #[test]
    fn contexts_stay_within_their_bytes_and_one_always_fits() {
        let of = |layout: &KvLayout, bytes| {
            let geometry = Geometry::new(layout, 8192, 32, 64, 0).within(Some(bytes), layout);
            (geometry.max_sequences, KvBytes::of(layout, &geometry).total())
        };
        let plain = layout(&[None, None], &[]);
        let one = of(&plain, 0).1;
        assert_eq!(one, 8192 * 2 * 2 * 4 * 128 * 2);
        assert_eq!(of(&plain, 3 * one), (32, 3 * one), "sequences cost nothing while they are empty");
        assert_eq!(of(&plain, 99 * one), (32, 32 * one));
        let windowed = layout(&[Some(1024), None], &[100]);
        let (n, min_pages) = of(&windowed, 0);
        assert_eq!(n, 1);
        for more in [1 << 20, 10 << 20, 100 << 20] {
            let (n, bytes) = of(&windowed, min_pages + more);
            assert!(bytes <= min_pages + more, "{n} sequences in {bytes}");
        }
        assert_eq!(of(&windowed, 1 << 40).0, 32);
    }

    #[test]
    fn requantizing_contexts_take_less_and_one_always_fits() {
        let plain = layout(&[None, None], &[]);
        let of = |when, bytes| {
            let geometry =
                Geometry::new(&plain, 8192, 4, 256, 0).with_requantize(when, &plain).within(bytes, &plain);
            (KvBytes::of(&plain, &geometry).total(), geometry.n_pages(), geometry.n_requantized_pages())
        };
        let page = KvUnitBytes::of(&plain);
        assert_eq!(page.requantized_page * 64, page.page * 34, "a byte and a share of a scale for two bytes");
        let (exact, n_pages, n_requantized) = of(KvRequantize::Off, None);
        assert_eq!((n_pages, n_requantized), (4 * 256, 0));
        let (requantized, n_pages, n_requantized) = of(KvRequantize::After(1024), None);
        assert_eq!((n_pages, n_requantized), (4 * 256, 4 * 256), "of either kind there may be many");
        assert_eq!(
            requantized,
            4 * ((1024 + 512) / 32 * page.page + (8192 - 1536) / 32 * page.requantized_page)
        );
        assert!(requantized * 100 < exact * 63, "{requantized} of {exact}");
        let geometry =
            Geometry::new(&plain, 8192, 4, 256, 0).with_requantize(KvRequantize::After(1024), &plain);
        assert_eq!([0, 1000, 1280].map(|n| geometry.pages_to_hold(n)), [0, 32, 32 + 8 * 34 / 64 + 1]);
        assert!(
            geometry.pages_to_hold(8192) < 160
                && Geometry::new(&plain, 8192, 4, 256, 0).pages_to_hold(8192) == 256
        );
        let (bytes, n_pages, n_requantized) = of(KvRequantize::After(1024), Some(0));
        assert!(bytes.div_ceil(page.page) == n_pages as u64 && bytes >= requantized / 4, "one context");
        assert!(n_requantized as u64 * page.requantized_page <= n_pages as u64 * page.page);
        assert_eq!(of(KvRequantize::Pressure, Some(0)).0, exact / 4);
        // off where it saves nothing
        let mut short = layout(&[None], &[]);
        short.layers[0].precision = KvDType::Q8_0.both();
        assert_eq!(
            Geometry::new(&short, 8192, 4, 256, 0)
                .with_requantize(KvRequantize::Pressure, &short)
                .n_requantized_pages(),
            0
        );
        let windowed = layout(&[Some(512)], &[]);
        assert_eq!(
            Geometry::new(&windowed, 8192, 4, 256, 0)
                .with_requantize(KvRequantize::Pressure, &windowed)
                .requantize,
            RequantizePolicy::default()
        );
    }

    #[test]
    fn heads_without_a_fitting_block_are_errors() {
        let mut layout = layout(&[None], &[]);
        for (dtype, head_dim, is_fit) in
            [(KvDType::F16, 8, true), (KvDType::Q8_0, 8, false), (KvDType::Q4_0, 96, true)]
        {
            (layout.layers[0].precision, layout.layers[0].head_dim) = (dtype.both(), head_dim);
            assert_eq!(
                check_precision(&layout).map_err(|e| e.code()).is_ok(),
                is_fit,
                "{dtype:?} {head_dim}"
            );
        }
    }

    #[test]
    fn rewind_depends_on_the_layers() {
        let rewind =
            |windows, states, n_ctx| Geometry::new(&layout(windows, states), n_ctx, 1, 64, 0).rewind();
        assert_eq!(rewind(&[None, None], &[], 8192), Rewind::Anywhere);
        assert_eq!(rewind(&[Some(512), None], &[], 8192), Rewind::Near);
        assert_eq!(rewind(&[Some(512), None], &[], 500), Rewind::Anywhere);
        assert_eq!(rewind(&[None], &[8], 8192), Rewind::Nowhere);
    }
}
