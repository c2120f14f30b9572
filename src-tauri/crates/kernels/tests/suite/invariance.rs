//! Checks that a token's logits do not depend on chunk boundaries, other sequences, page placement or thread count: bit
//! for bit, on every backend and level.

use crate::common::*;
use kernels::cpu::isa::IsaLevel;
use kernels::*;
use weights::DType;

const CAPACITY: Capacity = Capacity {
    n_pages: 64,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: 48,
    max_outputs: 48,
    n_states: 0,
};

fn random_pages(r: &mut Random, n: usize) -> Vec<u32> {
    let mut pages: Vec<u32> = (0..CAPACITY.n_pages as u32).collect();
    for i in (1..pages.len()).rev() {
        pages.swap(i, r.below(i + 1));
    }
    pages.truncate(n);
    pages
}

#[test]
fn chunks_threads_and_pages_change_no_bit() {
    let r = &mut Random(7);
    // block format, KV format, window, heads, KV heads, head size
    let cases = [
        (DType::F32, KvDType::Q8_0, None, 4, 2, 64),
        (DType::F32, KvDType::F32, None, 4, 4, 24),
        (DType::Q8_0, KvDType::F16, Some(40), 4, 1, 64),
        (DType::Q4_K, KvDType::F16, None, 8, 2, 32),
        (DType::Q6_K, KvDType::Q8_0, Some(5), 8, 4, 32),
        (DType::Q4_0, KvDType::Q4_0, None, 6, 3, 32),
        (DType::BF16, KvDType::F16, Some(270), 5, 1, 20),
        (DType::F16, KvDType::F16, None, 40, 1, 8),
    ];
    for (dtype, kv, window, n_heads, n_kv_heads, head_dim) in cases {
        // with rows of 64 elements, keys and values differ in format
        let values = (kv == KvDType::Q8_0 && head_dim == 64).then_some(KvDType::Q4_0);
        let shape = Shape { dtype, kv, values, window, n_heads, n_kv_heads, head_dim, ..SMALL };
        let tokens = tokens(280, shape.n_vocab, 3); // more than one chunk of attention
        let graph = model(shape, 5);
        for (name, backend) in backends() {
            let make = |threads| Executor::new(graph.clone(), vec![backend(threads)], CAPACITY).unwrap();
            let first = run_chunks(&mut make(1), &tokens, &random_pages(r, 10), &[48, 48, 48, 48, 48, 40]);
            assert!(first.iter().all(|x| x.is_finite()), "{name} {dtype}");
            for threads in [2, 3] {
                let chunks = random_chunks(r, tokens.len(), [4, 48][threads - 2]);
                let again = run_chunks(&mut make(threads), &tokens, &random_pages(r, 10), &chunks);
                assert_eq!(first, again, "{name} {dtype} {kv:?} threads {threads} chunks {chunks:?}");
            }
        }
    }
}

#[test]
fn batch_mates_change_no_bit() {
    let r = &mut Random(11);
    let shape = Shape { dtype: DType::Q8_0, kv: KvDType::F16, window: Some(33), ..SMALL };
    let texts: Vec<Vec<u32>> = (0..4).map(|i| tokens(60 + 30 * i, shape.n_vocab, i as u64)).collect();
    let pages: Vec<Vec<u32>> = (0..4).map(|i| (i * 8..i * 8 + 8).rev().collect()).collect();
    let graph = model(shape, 5);
    for (name, backend) in backends() {
        let alone: Vec<Vec<f32>> = texts
            .iter()
            .map(|t| {
                let mut executor = Executor::new(graph.clone(), vec![backend(1)], CAPACITY).unwrap();
                run_chunks(&mut executor, t, &pages[0], &random_chunks(&mut Random(1), t.len(), 40))
            })
            .collect();
        let mut executor = Executor::new(graph.clone(), vec![backend(3)], CAPACITY).unwrap();
        let tables: Vec<&[u32]> = pages.iter().map(Vec::as_slice).collect();
        let mut at = [0usize; 4];
        let mut together: Vec<Vec<f32>> = vec![Vec::new(); 4];
        while (0..4).any(|s| at[s] < texts[s].len()) {
            let (mut ids, mut positions, mut sequence) = (Vec::new(), Vec::new(), Vec::new());
            for s in 0..4 {
                for _ in 0..r.below(12).min(texts[s].len() - at[s]) {
                    ids.push(texts[s][at[s]]);
                    positions.push(at[s] as u32);
                    sequence.push(s as u32);
                    at[s] += 1;
                }
            }
            if ids.is_empty() {
                continue;
            }
            let outputs: Vec<u32> = (0..ids.len() as u32).collect();
            let batch = Batch {
                tokens: &ids,
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
            for (row, s) in sequence.iter().enumerate() {
                let n = shape.n_vocab;
                together[*s as usize].extend_from_slice(&executor.output()[row * n..(row + 1) * n]);
            }
        }
        assert!(alone == together, "{name}");
    }
}

#[test]
fn pages_can_be_copied_saved_and_restored() {
    let shape = Shape { kv: KvDType::F16, ..SMALL };
    let tokens = tokens(80, shape.n_vocab, 3);
    let mut executor = Executor::new(model(shape, 5), vec![cpu(2, IsaLevel::detect())], CAPACITY).unwrap();
    let whole = run_chunks(&mut executor, &tokens, &[0, 1, 2], &[40, 40]);
    executor.copy_kv_page(Retention::All, 1, 9).unwrap();
    for layer in 0..shape.n_layers {
        let page = executor.kv_page(layer, 0).unwrap().to_vec();
        executor.write_kv_page(layer, 30, &page).unwrap();
        assert!(executor.write_kv_page(layer, 30, &page[1..]).is_err());
    }
    // positions 64.. again, over the copies
    let (rest, positions): (Vec<u32>, Vec<u32>) = (tokens[64..].to_vec(), (64..80).collect());
    let outputs: Vec<u32> = (0..16).collect();
    let batch = Batch {
        tokens: &rest,
        positions: &positions,
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0; 16],
        page_tables: &[&[30, 9, 5]],
        window_tables: &[],
        states: &[],
        outputs: &outputs,
    };
    executor.run(&batch).unwrap();
    assert_eq!(executor.output(), &whole[64 * shape.n_vocab..]);
    assert!(executor.kv_page(2, 0).is_err());
    assert!(executor.kv_page(0, 64).is_err());
    assert!(executor.copy_kv_page(Retention::All, 0, 64).is_err());
}
