//! Every operation in one model: `Cpu` against the specification, and the same bits however a text is cut into
//! batches, with the states of recurrent layers saved, restored and copied on the way.

mod common;

use std::sync::Arc;

use common::mixed::{MIXED, Mixed, N_VOCAB, model};
use common::*;
use kernels::cpu::isa::IsaLevel;
use kernels::*;
use weights::DType;

const CAPACITY: Capacity = Capacity { n_pages: 32, max_rows: 64, max_outputs: 64, n_states: 4 };
const PAGES: [u32; 10] = [3, 1, 4, 15, 9, 2, 6, 5, 8, 7];

/// Largest deviation of a node that quantises activations to 8 bits: see `backends`.
const QUANTISED: f32 = 0.12;
/// Sums in another order and e^x by polynomial; the state of a delta rule carries them on.
const FLOAT: f32 = 5e-5;

#[test]
fn every_node_agrees_with_the_specification_at_every_level() {
    let text = tokens(50, N_VOCAB, 9);
    let all: Vec<u32> = (0..50).collect();
    let batch = |range: std::ops::Range<usize>| Batch {
        tokens: &text[range.clone()],
        positions: &all[range.clone()],
        sequence: &[0; 50][..range.len()],
        page_tables: &[&PAGES],
        states: &[2],
        outputs: &all[..range.len().min(3)],
    };
    let batches = [batch(0..33), batch(33..34), batch(34..50)];
    for (dtype, act, order) in [
        (DType::F32, Activation::ClampedSwish { limit: 0.7 }, HeadOrder::Grouped),
        (DType::BF16, Activation::Gelu, HeadOrder::Tiled),
        (DType::Q8_0, Activation::GeluTanh, HeadOrder::Grouped),
        (DType::Q4_0, Activation::Silu, HeadOrder::Tiled),
        (DType::Q4_K, Activation::Silu, HeadOrder::Grouped),
    ] {
        let graph = Arc::new(model(Mixed { dtype, act, order, ..MIXED }, 21));
        for level in IsaLevel::present() {
            let (mut a, mut b) = (Scalar::new(), cpu(2, level));
            let tolerance = if dtype.block_len() > 1 { QUANTISED } else { FLOAT };
            let found = compare(&graph, [&mut a, &mut *b], CAPACITY, &batches, tolerance).unwrap();
            assert_eq!(found, None, "{dtype} {level}");
        }
    }
}
