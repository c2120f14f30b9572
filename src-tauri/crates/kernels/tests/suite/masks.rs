//! Bidirectional attention: every backend and level equals the specification, in any company, and a window extends equally
//! far to both sides.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use crate::common::*;
use kernels::*;
use weights::DType;

const CAPACITY: Capacity = Capacity {
    n_pages: 64,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: 400,
    max_outputs: 400,
    n_states: 0,
};

/// Sums in another order; an f16 key or value may round either way.
const CLOSE: f32 = 1e-4;
const ROUNDED: f32 = 1e-3;

const AHEAD: Shape = Shape { mask: Mask::Bidirectional, ..SMALL };

/// Outputs of all rows of some texts in one batch. (texts, tokens · n_vocab)
fn run(executor: &mut Executor, texts: &[&[u32]]) -> Vec<Vec<f32>> {
    let tokens: Vec<u32> = texts.concat();
    let positions: Vec<u32> = texts.iter().flat_map(|text| 0..text.len() as u32).collect();
    let of = |(n, text): (usize, &&[u32])| vec![n as u32; text.len()];
    let sequence: Vec<u32> = texts.iter().enumerate().flat_map(of).collect();
    let n_pages = CAPACITY.n_pages / texts.len();
    let pages: Vec<Vec<u32>> = (0..texts.len())
        .map(|n| (0..n_pages).rev().map(|page| (n * n_pages + page) as u32).collect())
        .collect();
    let tables: Vec<&[u32]> = pages.iter().map(Vec::as_slice).collect();
    let outputs: Vec<u32> = (0..tokens.len() as u32).collect();
    let batch = Batch {
        tokens: &tokens,
        positions: &positions,
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &sequence,
        page_tables: &tables,
        window_tables: &[],
        states: &[],
        outputs: &outputs,
    };
    executor.run(&batch).unwrap();
    let mut all = executor.output();
    let split = |text: &&[u32]| {
        let (mine, rest) = all.split_at(text.len() * SMALL.n_vocab);
        all = rest;
        mine.to_vec()
    };
    texts.iter().map(split).collect()
}

#[test]
fn every_backend_looks_ahead_alike() {
    for (kv, window) in [(KvDType::F32, None), (KvDType::F16, Some(40)), (KvDType::F32, Some(1))] {
        let shape = Shape { kv, window, dtype: DType::F32, ..AHEAD };
        // one page, one chunk of attention, more than one
        let texts: Vec<Vec<u32>> =
            [3, 33, 330].iter().map(|n| tokens(*n, shape.n_vocab, *n as u64)).collect();
        let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let mut expected: Option<Vec<Vec<f32>>> = None;
        for (name, make) in backends() {
            let mut executor = Executor::new(model(shape, 7), vec![make(2)], CAPACITY).unwrap();
            let together = run(&mut executor, &texts);
            for (n, text) in texts.iter().enumerate() {
                assert!(
                    run(&mut executor, &[text])[0] == together[n],
                    "{name}, {kv:?}: mates change text {n}"
                );
            }
            match &expected {
                None => expected = Some(together),
                Some(expected) => {
                    for (a, b) in expected.iter().zip(&together) {
                        let off = distance(a, b);
                        let most = if kv == KvDType::F32 { CLOSE } else { ROUNDED };
                        assert!(off < most, "{name}, {kv:?}, window {window:?}: {off}");
                    }
                }
            }
        }
    }
}

/// One attention over the embedded tokens themselves.
fn one_layer(mask: Mask, window: Option<usize>) -> Graph {
    let (n_vocab, head_dim) = (SMALL.n_vocab, 32);
    let layer = KvLayerLayout { n_kv_heads: 1, head_dim, precision: KvDType::F32.both(), window: None };
    let mut b = GraphBuilder::new(KvLayout::uniform(1, layer)).unwrap();
    let r = &mut Random(4);
    let x = b.embed("embed", &r.tensor(DType::F32, &[n_vocab, head_dim], 1.0), 1.0).unwrap();
    b.kv_write("kv", x, x, 0).unwrap();
    let scale = 0.1;
    let (n_heads, n_kv_heads, softcap, sinks) = (1, 1, None, None);
    let shape =
        AttentionShape { layer: 0, n_heads, n_kv_heads, head_dim, scale, mask, window, softcap, sinks };
    let x = b.attention("attention", x, shape).unwrap();
    let x = b.output_rows("output_rows", x).unwrap();
    let x = b.matmul("logits", x, &r.tensor(DType::F32, &[n_vocab, head_dim], 1.0), None).unwrap();
    b.finish(x).unwrap()
}

#[test]
fn a_window_reaches_to_both_sides() {
    let text = tokens(30, SMALL.n_vocab, 3);
    let mut other = text.clone();
    other[15] = (other[15] + 1) % SMALL.n_vocab as u32;
    let check = |mask: Mask, window: Option<usize>, expected: std::ops::Range<usize>| {
        for (name, make) in backends() {
            let mut executor = Executor::new(one_layer(mask, window), vec![make(1)], CAPACITY).unwrap();
            let [a, b] = [&text, &other].map(|text| run(&mut executor, &[text.as_slice()]).remove(0));
            let of = |row: usize| row * SMALL.n_vocab..(row + 1) * SMALL.n_vocab;
            let differs: Vec<usize> = (0..text.len()).filter(|row| a[of(*row)] != b[of(*row)]).collect();
            assert_eq!(differs, expected.clone().collect::<Vec<_>>(), "{name}, {mask:?}, {window:?}");
        }
    };
    check(Mask::Causal, None, 15..30);
    check(Mask::Causal, Some(4), 15..19);
    check(Mask::Bidirectional, None, 0..30);
    check(Mask::Bidirectional, Some(4), 12..19);
    check(Mask::Bidirectional, Some(1), 15..16);
    check(Mask::Bidirectional, Some(usize::MAX), 0..30);
}
