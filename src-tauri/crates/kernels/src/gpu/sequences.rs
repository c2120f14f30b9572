//! Operations on what sequences keep as kernels of a card: pages of keys and values, recurrent states.

use super::buffers::Span;
use super::inputs;
use super::nodes::{Made, act_words, defined, plain};
use super::program::{Bound, Extent, Maker};
use super::shader;
use crate::graph::{AttentionShape, ConvShape, DeltaShape, HeadOrder, Mask, Retention, Rows, ValueId};
use crate::ops::{kv_write, short_conv};

use Bound::Value;

/// Positions that attention is taken to go over where submissions are cut.
const TYPICAL_CONTEXT: usize = 2048;

impl Maker<'_> {
    pub(super) fn kv_write(&mut self, i: usize, [k, v]: [ValueId; 2], layer: usize) -> Made {
        let pages = self.kept.pages(layer);
        let layout = pages.layout;
        let section = match layout.retention() {
            Retention::All => inputs::PAGES,
            Retention::Window => inputs::WINDOW_PAGES,
        };
        let page_words = (pages.page_bytes / 4) as u32;
        let block_words = page_words / (2 * layout.n_kv_heads as u32);
        let bound = [Bound::Rows, Value(k), Value(v), Bound::Buffer(Span::whole(&pages.buffer))];
        let params = [layout.n_kv_heads as u32, layout.head_dim as u32, block_words, page_words, section];
        let extent = Extent::elements(2 * layout.n_kv_heads * layout.head_dim.div_ceil(32), Rows::Tokens);
        let variant = defined(kv_write::shader_define(layout.dtype));
        self.add(i, (&shader::KV_WRITE, variant), &params, &bound, extent)
    }

    pub(super) fn attention(&mut self, i: usize, q: ValueId, shape: &AttentionShape, out: ValueId) -> Made {
        let sinks = self.vector(shape.sinks.as_deref().unwrap_or(&[0.0]))?;
        let pages = self.kept.pages(shape.layer);
        let layout = pages.layout;
        let section = match layout.retention() {
            Retention::All => inputs::TABLES,
            Retention::Window => inputs::WINDOW_TABLES,
        };
        let page_words = (pages.page_bytes / 4) as u32;
        let kv = Bound::Buffer(Span::whole(&pages.buffer));
        let params = [
            shape.n_heads as u32,
            (shape.n_heads / shape.n_kv_heads) as u32,
            shape.head_dim as u32,
            shape.n_kv_heads as u32,
            page_words / (2 * layout.n_kv_heads as u32),
            page_words,
            section,
            shape.window.map_or(0, |window| u32::try_from(window).unwrap_or(u32::MAX)),
            shape.scale.to_bits(),
            shape.softcap.unwrap_or(0.0).to_bits(),
            u32::from(shape.sinks.is_some()),
            match shape.mask {
                Mask::Causal => 0,
                Mask::Bidirectional => 1,
            },
        ];
        let bound = [Bound::Rows, Value(q), kv, sinks, Value(out)];
        let variant = defined(kv_write::shader_define(layout.dtype));
        let cost = (2 * shape.n_heads * shape.head_dim * TYPICAL_CONTEXT) as u64;
        let extent = Extent { cost, ..Extent::groups(shape.n_heads, Rows::Tokens) };
        self.add(i, (&shader::ATTENTION, variant), &params, &bound, extent)
    }

    pub(super) fn short_conv(&mut self, i: usize, x: ValueId, conv: &ConvShape, out: ValueId) -> Made {
        let n = self.graph.value(x).width;
        let taps = self.vector(&short_conv::by_tap(conv))?;
        let bias = conv.bias.as_ref().map_or_else(|| vec![0.0; n], |bias| bias.to_vec());
        let bias = self.vector(&bias)?;
        let states = Bound::Buffer(Span::whole(&self.kept.states(conv.state).buffer));
        let params = [n as u32, conv.kernel as u32, act_words(conv.act)[0]];
        let bound = [Bound::Rows, Value(x), taps, bias, states, Value(out)];
        let extent = Extent::once(n.div_ceil(64));
        self.add(i, (&shader::SHORT_CONV, plain()), &params, &bound, extent)
    }

    pub(super) fn delta_net(
        &mut self,
        i: usize,
        [qkv, beta, alpha]: [ValueId; 3],
        delta: &DeltaShape,
        out: ValueId,
    ) -> Made {
        let gates = self.vector(&[&delta.decay[..], &delta.dt_bias[..]].concat())?;
        let states = Bound::Buffer(Span::whole(&self.kept.states(delta.state).buffer));
        let tiled = match delta.order {
            HeadOrder::Tiled => 1,
            HeadOrder::Grouped => 0,
        };
        let dims = [delta.n_k_heads, delta.n_v_heads, delta.k_dim, delta.v_dim].map(|n| n as u32);
        let params = [&dims[..], &[tiled]].concat();
        let bound = [Bound::Rows, Value(qkv), Value(beta), Value(alpha), gates, states, Value(out)];
        self.add(i, (&shader::DELTA_NET, plain()), &params, &bound, Extent::once(delta.n_v_heads))
    }
}
